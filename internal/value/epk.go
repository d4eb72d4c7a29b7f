// SPDX-License-Identifier: MIT

// Effective partition keys: where a partition key lies in a container's key
// space, and where that space is cut into physical partitions.
//
// Clients compute them too and compare them with the ranges that they were sent, as
// upper-case hexadecimal text; so every byte here follows what the SDKs do
// (vectors in the tests are from the JavaScript SDK). Comparing the bytes is
// comparing the texts.

package value

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"slices"
	"unicode/utf8"

	"github.com/twmb/murmur3"
)

// The first byte of a component says its type.
const (
	epkUndefined byte = 0x00
	epkNull      byte = 0x01
	epkFalse     byte = 0x02
	epkTrue      byte = 0x03
	epkNumber    byte = 0x05
	epkString    byte = 0x08
)

// What follows a string's bytes when it is hashed.
const (
	endOfStringV1 byte = 0x00
	endOfStringV2 byte = 0xFF
)

const (
	// maxStringUnitsV1 is how much of a string counts in version 1, in UTF-16
	// code units, for that is what the SDKs' languages call characters.
	maxStringUnitsV1 = 100
	// hashMaskV2 clears the two top bits of a hash, to stay below FF, the end
	// of the key space.
	hashMaskV2 = math.MaxUint64 >> 2
	// EPKLevelBytes is how long the effective partition key is, of one component.
	EPKLevelBytes = 16
	// hashBitsV2 are the bits of a hash that are left.
	hashBitsV2 = 126
	// epkScratch is room for hashing most keys without an allocation.
	epkScratch = 256
)

// AppendEPKV1 appends the effective partition key in a container whose partition
// key is of kind Hash, version 1. The empty key lies at the very beginning of the
// key space, here and in the other kinds.
func AppendEPKV1(dst []byte, pk PartitionKey) []byte {
	if len(pk) == 0 {
		return dst
	}
	var scratch [epkScratch]byte
	typed := scratch[:0]
	for _, v := range pk {
		if v.kind == KindString {
			typed = append(appendTruncated(append(typed, epkString), v.str), endOfStringV1)
		} else {
			typed = appendTyped(typed, v)
		}
	}
	dst = appendOrdered(dst, float64(murmur3.Sum32(typed)))
	for _, v := range pk {
		dst = appendComponentV1(dst, v)
	}
	return dst
}

// AppendEPKV2 appends the effective partition key in a container whose partition
// key is of kind Hash, version 2.
func AppendEPKV2(dst []byte, pk PartitionKey) []byte {
	if len(pk) == 0 {
		return dst
	}
	var scratch [epkScratch]byte
	typed := scratch[:0]
	for _, v := range pk {
		if v.kind == KindString {
			typed = append(append(append(typed, epkString), v.str...), endOfStringV2)
		} else {
			typed = appendTyped(typed, v)
		}
	}
	low, high := murmur3.Sum128(typed)
	dst = binary.BigEndian.AppendUint64(slices.Grow(dst, EPKLevelBytes), high&hashMaskV2)
	return binary.BigEndian.AppendUint64(dst, low)
}

// AppendEPKMultiHash appends the effective partition key in a container with a
// hierarchical partition key. That of a prefix is a prefix.
func AppendEPKMultiHash(dst []byte, pk PartitionKey) []byte {
	for i := range pk {
		dst = AppendEPKV2(dst, pk[i:i+1])
	}
	return dst
}

// EPKText returns the form in which clients see an effective partition key.
func EPKText(epk []byte) string { return fmt.Sprintf("%X", epk) }

// BoundariesV1 returns the n-1 effective partition keys that cut the key space
// of version 1 into n partitions, in order.
func BoundariesV1(n int) [][]byte {
	var boundaries [][]byte
	for i := 1; i < n; i++ {
		step := math.MaxUint32 / uint64(n)
		boundaries = append(boundaries, appendOrdered(nil, float64(uint64(i)*step)))
	}
	return boundaries
}

// BoundariesV2 returns the n-1 effective partition keys that cut the key space
// of version 2, and of hierarchical keys, into n partitions, in order.
func BoundariesV2(n int) [][]byte {
	var boundaries [][]byte
	greatest := new(big.Int).Lsh(big.NewInt(1), hashBitsV2)
	greatest.Sub(greatest, big.NewInt(1))
	for i := 1; i < n; i++ {
		step := new(big.Int).Div(greatest, big.NewInt(int64(n)))
		boundary := step.Mul(step, big.NewInt(int64(i)))
		boundaries = append(boundaries, boundary.FillBytes(make([]byte, EPKLevelBytes)))
	}
	return boundaries
}

// appendTyped appends what is hashed for a value that is not a string.
func appendTyped(dst []byte, v Scalar) []byte {
	switch v.kind {
	case KindNull:
		return append(dst, epkNull)
	case KindBool:
		if v.num != 0 {
			return append(dst, epkTrue)
		}
		return append(dst, epkFalse)
	case KindNumber:
		return binary.LittleEndian.AppendUint64(append(dst, epkNumber), math.Float64bits(v.num))
	}
	return append(dst, epkUndefined)
}

// appendComponentV1 appends the value that follows the hash in version 1.
func appendComponentV1(dst []byte, v Scalar) []byte {
	switch v.kind {
	case KindNumber:
		return appendOrdered(dst, v.num)
	case KindString:
		dst = append(dst, epkString)
		from := len(dst)
		dst = appendTruncated(dst, v.str)
		for i := from; i < len(dst); i++ {
			dst[i]++ // UTF-8 has no FF; 00 is the end
		}
		return append(dst, endOfStringV1)
	}
	return appendTyped(dst, v)
}

// appendTruncated appends as much of s as counts in version 1. Where the cut
// halves a surrogate pair, the SDKs encode the half that is left as U+FFFD.
func appendTruncated(dst []byte, s string) []byte {
	if len(s) <= maxStringUnitsV1 { // there are never more units than bytes
		return append(dst, s...)
	}
	units := 0
	for i, r := range s {
		if units == maxStringUnitsV1 {
			return append(dst, s[:i]...)
		}
		if units++; r > math.MaxUint16 {
			units++
		}
		if units > maxStringUnitsV1 {
			return utf8.AppendRune(append(dst, s[:i]...), utf8.RuneError)
		}
	}
	return append(dst, s...)
}

// appendOrdered appends a number of version 1 so that bytes sort as numbers:
// eight bits, then seven at a time with a last bit that says whether more
// follow. A tail of nothing but zeros is left out.
func appendOrdered(dst []byte, f float64) []byte {
	bits := math.Float64bits(f)
	if bits&signBit == 0 {
		bits ^= signBit
	} else {
		bits = -bits
	}
	dst = append(dst, epkNumber, byte(bits>>56))
	for bits <<= 8; bits != 0; {
		group := byte(bits>>56) &^ 1
		if bits <<= 7; bits != 0 {
			group |= 1
		}
		dst = append(dst, group)
	}
	return dst
}
