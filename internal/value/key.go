// SPDX-License-Identifier: MIT

// Keys: values as bytes.
//
//  1. Order: comparing two encodings as bytes compares the values, as Compare does.
//  2. Injective: two values have one encoding only if they are equal, and
//     decoding accepts no second spelling of a value.
//  3. Self-delimiting: an encoding knows its end, so keys are made by putting
//     encodings one after another.
//
// A value is a tag, in the order of kinds, and for numbers and strings a body:
//
//	undefined  10
//	null       20
//	false      30
//	true       31
//	number     40  float64, big endian; sign bit flipped, or all bits if negative
//	string     50  bytes with 00 as 00 FF, then 00 01
//
// Tags leave room for kinds to come. No tag is below 10, so that a lower byte
// can end a list of values before any longer list.

package value

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// ErrKey is returned for bytes that no Append function of this package wrote.
var ErrKey = errors.New("malformed key")

const (
	tagUndefined byte = 0x10
	tagNull      byte = 0x20
	tagFalse     byte = 0x30
	tagTrue      byte = 0x31
	tagNumber    byte = 0x40
	tagString    byte = 0x50
)

// In an escaped byte string 00 is always followed by one of these two.
// The end sorts first, so that a prefix sorts before what it begins.
const (
	escapeByte byte = 0x00
	escapeEnd  byte = 0x01
	escapeZero byte = 0xFF
)

const (
	numberBytes = 8
	signBit     = 1 << 63
)

// AppendKey appends v's key encoding.
func AppendKey(dst []byte, v Scalar) []byte {
	switch v.kind {
	case KindNull:
		return append(dst, tagNull)
	case KindBool:
		if v.num != 0 {
			return append(dst, tagTrue)
		}
		return append(dst, tagFalse)
	case KindNumber:
		return binary.BigEndian.AppendUint64(append(dst, tagNumber), sortableBits(v.num))
	case KindString:
		return appendEscapedBytes(append(dst, tagString), v.str)
	}
	return append(dst, tagUndefined)
}

// DecodeKey reads the value that src begins with and returns what follows it.
// The value does not share memory with src. The error is [ErrKey].
func DecodeKey(src []byte) (v Scalar, rest []byte, err error) {
	if len(src) == 0 {
		return Scalar{}, nil, fmt.Errorf("%w: value is missing", ErrKey)
	}
	tag, rest := src[0], src[1:]
	switch tag {
	case tagUndefined:
		return Scalar{}, rest, nil
	case tagNull:
		return Null(), rest, nil
	case tagFalse:
		return Bool(false), rest, nil
	case tagTrue:
		return Bool(true), rest, nil
	case tagNumber:
		return decodeNumber(rest)
	case tagString:
		s, rest, err := DecodeBytesKey(rest)
		if err != nil {
			return Scalar{}, nil, err
		}
		return String(string(s)), rest, nil
	}
	return Scalar{}, nil, fmt.Errorf("%w: unknown tag %#02x", ErrKey, tag)
}

func decodeNumber(src []byte) (v Scalar, rest []byte, err error) {
	if len(src) < numberBytes {
		return Scalar{}, nil, fmt.Errorf("%w: number is cut short", ErrKey)
	}
	f := fromSortableBits(binary.BigEndian.Uint64(src))
	if !finite(f) || f == 0 && math.Signbit(f) {
		return Scalar{}, nil, fmt.Errorf("%w: number %v is never written", ErrKey, f)
	}
	return Number(f), src[numberBytes:], nil
}

// sortableBits maps numbers to unsigned integers of the same order.
func sortableBits(f float64) uint64 {
	bits := math.Float64bits(f)
	if bits&signBit != 0 {
		return ^bits
	}
	return bits | signBit
}

func fromSortableBits(bits uint64) float64 {
	if bits&signBit == 0 {
		return math.Float64frombits(^bits)
	}
	return math.Float64frombits(bits &^ signBit)
}

// AppendStringKey appends what AppendKey appends for String(string(s)), without
// making one.
func AppendStringKey(dst, s []byte) []byte { return AppendBytesKey(append(dst, tagString), s) }

// AppendBytesKey appends raw bytes so that they sort as they are and know their
// end, as the body of a string does.
func AppendBytesKey(dst, b []byte) []byte {
	if bytes.IndexByte(b, escapeByte) < 0 {
		return append(append(dst, b...), escapeByte, escapeEnd)
	}
	return appendEscapedBytes(dst, b)
}

func appendEscapedBytes[T string | []byte](dst []byte, s T) []byte {
	start := 0
	for i := range len(s) {
		if s[i] == escapeByte {
			dst = append(dst, s[start:i]...)
			dst = append(dst, escapeByte, escapeZero)
			start = i + 1
		}
	}
	dst = append(dst, s[start:]...)
	return append(dst, escapeByte, escapeEnd)
}

// DecodeBytesKey reads what [AppendBytesKey] wrote at the beginning of src and
// returns what follows it. Where nothing was escaped, b is a part of src. The
// error is [ErrKey].
func DecodeBytesKey(src []byte) (b, rest []byte, err error) {
	for i := 0; ; {
		next := bytes.IndexByte(src[i:], escapeByte)
		if next < 0 || i+next+1 >= len(src) {
			return nil, nil, fmt.Errorf("%w: bytes have no end", ErrKey)
		}
		chunk := src[i : i+next]
		i += next + 2
		switch mark := src[i-1]; mark {
		case escapeEnd:
			if b == nil {
				return chunk, src[i:], nil
			}
			return append(b, chunk...), src[i:], nil
		case escapeZero:
			b = append(append(b, chunk...), escapeByte)
		default:
			return nil, nil, fmt.Errorf("%w: unknown escape %#02x", ErrKey, mark)
		}
	}
}

// skipKey returns what follows the value that src begins with.
func skipKey(src []byte) (rest []byte, err error) {
	if len(src) == 0 {
		return nil, fmt.Errorf("%w: no value", ErrKey)
	}
	switch tag := src[0]; tag {
	case tagUndefined, tagNull, tagFalse, tagTrue:
		return src[1:], nil
	case tagNumber:
		if len(src) < 1+numberBytes {
			return nil, fmt.Errorf("%w: number has no end", ErrKey)
		}
		return src[1+numberBytes:], nil
	case tagString:
		return skipBytesKey(src[1:])
	default:
		return nil, fmt.Errorf("%w: unknown tag %#02x", ErrKey, tag)
	}
}

// skipBytesKey returns what follows the escaped bytes that src begins with.
func skipBytesKey(src []byte) (rest []byte, err error) {
	for {
		next := bytes.IndexByte(src, escapeByte)
		if next < 0 || next+1 >= len(src) {
			return nil, fmt.Errorf("%w: bytes have no end", ErrKey)
		}
		mark := src[next+1]
		src = src[next+2:]
		if mark == escapeEnd {
			return src, nil
		}
	}
}
