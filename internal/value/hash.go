// SPDX-License-Identifier: MIT

package value

import (
	"bytes"
	"encoding/binary"

	"github.com/twmb/murmur3"
)

// Hash is a hash of 128 bits, by which clients order what has no order of its own.
type Hash struct{ Low, High uint64 }

// Sum returns the hash of some text, with h as the seed.
func (h Hash) Sum(text string) Hash {
	low, high := murmur3.SeedStringSum128(h.Low, h.High, text)
	return Hash{low, high}
}

// SumHash returns the hash of another hash, with h as the seed.
func (h Hash) SumHash(of Hash) Hash {
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:8], of.Low)
	binary.LittleEndian.PutUint64(b[8:], of.High)
	low, high := murmur3.SeedSum128(h.Low, h.High, b[:])
	return Hash{low, high}
}

// Plus returns the hash as a number, and another number added to it.
func (h Hash) Plus(n uint64) Hash {
	sum := Hash{h.Low + n, h.High}
	if sum.Low < n {
		sum.High++
	}
	return sum
}

// Xor returns the bits in which two hashes differ.
func (h Hash) Xor(other Hash) Hash { return Hash{h.Low ^ other.Low, h.High ^ other.High} }

// Compare orders hashes as clients do: by the low half, then by the high one, each from
// its lowest byte on.
func (h Hash) Compare(other Hash) int {
	var a, b [16]byte
	binary.LittleEndian.PutUint64(a[:8], h.Low)
	binary.LittleEndian.PutUint64(a[8:], h.High)
	binary.LittleEndian.PutUint64(b[:8], other.Low)
	binary.LittleEndian.PutUint64(b[8:], other.High)
	return bytes.Compare(a[:], b[:])
}
