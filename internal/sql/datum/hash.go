// SPDX-License-Identifier: MIT

// The order of arrays and of objects, and where in an order to go on.
//
// Clients that merge the rows of several ranges order arrays, and objects, by a hash, and
// so rows that are ordered by them have to come in its order. It is that of the .NET SDK:
// MurmurHash3 of 128 bits, with a seed for each kind of value, an element's index and a
// property's name as the seed of what is there. Numbers are hashed as they are spelled,
// so that integers beyond 2^53, and -0.0, differ here from those that they are equal to.
//
// To go on after a value, clients send the value, or the hash of an array or object.

package datum

import (
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"

	"github.com/mayflydb/mayfly/internal/value"
)

var (
	hashRoot     = value.Hash{Low: 0xbfc2359eafc0e2b7, High: 0x8846e00284c4cf1f}
	hashNull     = value.Hash{Low: 0x1380f68bb3b0cfe4, High: 0x156c918bf564ee48}
	hashFalse    = value.Hash{Low: 0xc1be517fe893b40c, High: 0xe9fc8a4c531cd0dd}
	hashTrue     = value.Hash{Low: 0xf86d4abf9a412e74, High: 0x788488365c8a985d}
	hashNumber   = value.Hash{Low: 0x2400e8b894ce9c2a, High: 0x790be1eabd7b9481}
	hashString   = value.Hash{Low: 0x61f53f0a44204cfb, High: 0x09481be8ef4b56dd}
	hashArray    = value.Hash{Low: 0xfa573b014c4dc18e, High: 0xa014512c858eb115}
	hashObject   = value.Hash{Low: 0x77b285ac511aef30, High: 0x3dcf187245822449}
	hashElement  = value.Hash{Low: 0xfe057204216db999, High: 0x5b1cc3178bd9c593}
	hashProperty = value.Hash{Low: 0xc915dde058492a8a, High: 0x7c8be2eba72e4634}.SumHash(hashString)
)

// Hash returns the clients' hash of a value.
func (v Value) Hash() value.Hash {
	if v.form == formHashed {
		return value.Hash{Low: v.bits, High: binary.LittleEndian.Uint64([]byte(v.text))}
	}
	return v.hashIn(hashRoot)
}

func (v Value) hashIn(seed value.Hash) value.Hash {
	switch v.kind {
	case KindNull:
		return seed.SumHash(hashNull)
	case KindBool:
		if v.bits != 0 {
			return seed.SumHash(hashTrue)
		}
		return seed.SumHash(hashFalse)
	case KindNumber:
		return seed.SumHash(hashNumber).Sum(string(v.appendHashed(nil)))
	case KindString:
		return seed.SumHash(hashString).Sum(v.Text())
	case KindArray:
		h := seed.SumHash(hashArray)
		i := uint64(0)
		for element := range v.Elements {
			h = h.SumHash(element.hashIn(hashElement.Plus(i)))
			i++
		}
		return h
	case KindObject:
		h := seed.SumHash(hashObject)
		var all value.Hash // in whatever order they come
		for name, property := range v.Properties {
			all = all.Xor(property.hashIn(hashProperty.Sum(name)))
		}
		if all == (value.Hash{}) {
			return h
		}
		return h.SumHash(all)
	}
	return seed
}

const (
	floatDigits = 53 // the bits of a float64 that are digits
	floatBias   = 1023
	// extraDigits are those that an int64 has beyond a float64, and extraShift is where
	// clients have them in two bytes.
	extraDigits = 10
	extraShift  = 6
)

// appendHashed appends a number as it is hashed: a float64, and the digits for which it
// has no room.
func (v Value) appendHashed(dst []byte) []byte {
	if v.form == formInt || v.form == formSpelled && isDigits(v.text) {
		if n, ok := v.AsInt(); ok && n != math.MinInt64 {
			return appendHashedInt(dst, n)
		}
	}
	return append(binary.LittleEndian.AppendUint64(dst, math.Float64bits(v.Number())), 0, 0)
}

func appendHashedInt(dst []byte, n int64) []byte {
	size := uint64(max(n, -n))
	length := bits.Len64(size)
	if length-bits.TrailingZeros64(size) <= floatDigits {
		return append(binary.LittleEndian.AppendUint64(dst, math.Float64bits(float64(n))), 0, 0)
	}
	// Without the first digit, which is always one, filled up to those of a float64 and
	// the extra ones. It is cut, where a conversion would round it.
	digits := size << (63 - length) & (1<<(floatDigits-1+extraDigits) - 1)
	float := uint64(length-1+floatBias)<<(floatDigits-1) | digits>>extraDigits
	if n < 0 {
		float |= 1 << 63
	}
	dst = binary.LittleEndian.AppendUint64(dst, float)
	return binary.LittleEndian.AppendUint16(dst, uint16(digits&(1<<extraDigits-1)<<extraShift))
}

// Ordered returns what is left of a value as a key of ORDER BY: of an array or object, its
// hash.
func (v Value) Ordered() Value {
	if v.kind < KindArray {
		return v
	}
	return Hashed(v.kind, v.Hash())
}

// Hashed returns an array or object of which no more is known than its hash. It can be
// Ordered, and nothing else.
func Hashed(kind Kind, h value.Hash) Value {
	return Value{kind: kind, form: formHashed, bits: h.Low, text: string(binary.LittleEndian.AppendUint64(nil, h.High))}
}

// AppendResume appends a value as clients say where to go on after it: undefined is an
// empty array, and arrays and objects are their hash.
func (v Value) AppendResume(dst []byte) []byte {
	switch v.kind {
	case KindUndefined:
		return append(dst, "[]"...)
	case KindArray, KindObject:
		h := v.Hash()
		dst = append(append(append(dst, `{"type":"`...), v.kind.String()...), `","low":`...)
		dst = append(strconv.AppendInt(dst, int64(h.Low), 10), `,"high":`...)
		return append(strconv.AppendInt(dst, int64(h.High), 10), '}')
	}
	return v.AppendJSON(dst)
}

// Resumed reads what AppendResume appends.
func Resumed(v Value) (_ Value, ok bool) {
	switch v.kind {
	case KindArray:
		return Undefined(), v.Len() == 0
	case KindObject:
		kind, _ := v.Member("type").AsString()
		low, okLow := v.Member("low").AsInt()
		high, okHigh := v.Member("high").AsInt()
		h := value.Hash{Low: uint64(low), High: uint64(high)}
		switch {
		case !okLow || !okHigh || v.Len() != 3:
		case kind == KindArray.String():
			return Hashed(KindArray, h), true
		case kind == KindObject.String():
			return Hashed(KindObject, h), true
		}
		return Value{}, false
	}
	return v, v.kind != KindUndefined
}
