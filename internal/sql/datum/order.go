// SPDX-License-Identifier: MIT

// Equality, order and canonical text of values.
//
//  1. Numbers are compared as float64, whatever form they have, as indexes
//     compare them: 9007199254740993 equals 9007199254740992.
//  2. Equal values have equal canonical text, and only they, but for NaN, which
//     equals nothing and has one.

package datum

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/mayflydb/mayfly/internal/value"
)

// Equal reports whether two values are the same, at any depth: 1 is 1.0, and the
// order of properties does not matter. Undefined equals undefined only, NaN
// nothing.
func Equal(a, b Value) bool {
	if a.kind != b.kind {
		return false
	}
	switch a.kind {
	case KindBool:
		return a.bits == b.bits
	case KindNumber:
		return a.Number() == b.Number()
	case KindString:
		return a.Text() == b.Text()
	case KindArray:
		return a.text == b.text && a.form != formInfinite || EqualArrays(a, b, Equal)
	case KindObject:
		return a.text == b.text && a.form != formInfinite || equalObjects(a, b)
	}
	return true
}

// EqualArrays reports whether two arrays have the same length and elements that equal says
// are equal, one by one.
func EqualArrays(a, b Value, equal func(a, b Value) bool) bool {
	x, i, moreX := a.ElementAt(FirstElement)
	y, j, moreY := b.ElementAt(FirstElement)
	for moreX && moreY {
		if !equal(x, y) {
			return false
		}
		x, i, moreX = a.ElementAt(i)
		y, j, moreY = b.ElementAt(j)
	}
	return moreX == moreY
}

// maxLookups is the widest object whose properties are looked up one by one in
// the other; wider ones are sorted.
const maxLookups = 16

func equalObjects(a, b Value) bool {
	n := a.Len()
	if n != b.Len() {
		return false
	}
	if n > maxLookups {
		return bytes.Equal(a.AppendCanonical(nil), b.AppendCanonical(nil))
	}
	for name, property := range a.Properties {
		// A property that is there is not undefined, so this finds a missing one.
		if !Equal(property, b.Member(name)) {
			return false
		}
	}
	return true
}

// Compare orders all values: undefined < null < false < true < numbers < strings
// < arrays < objects. NaN is the least of the numbers; strings are ordered by
// UTF-16 code units; arrays, and objects, by a hash, as clients order them. It returns
// -1, 0 or +1.
func Compare(a, b Value) int {
	if c := cmp.Compare(a.kind, b.kind); c != 0 {
		return c
	}
	switch a.kind {
	case KindBool:
		return cmp.Compare(a.bits, b.bits)
	case KindNumber:
		return cmp.Compare(a.Number(), b.Number())
	case KindString:
		return compareStrings(a.Text(), b.Text())
	case KindArray, KindObject:
		return a.Hash().Compare(b.Hash())
	}
	return 0
}

// The first bytes in UTF-8 of characters that UTF-16 orders the other way round:
// those beyond U+FFFF are written with surrogates there, which are less than the
// characters from U+E000 on.
const (
	leadFromE000    = 0xEE
	leadBeyondPlane = 0xF0
)

// compareStrings orders two strings in UTF-8 as their UTF-16 code units.
func compareStrings(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		x, y := a[i], b[i]
		if x == y {
			continue
		}
		if x >= leadFromE000 && y >= leadFromE000 && (x >= leadBeyondPlane) != (y >= leadBeyondPlane) {
			return cmp.Compare(y, x)
		}
		return cmp.Compare(x, y)
	}
	return cmp.Compare(len(a), len(b))
}

// AppendCanonical appends a text that equal values share and that says where it
// ends, for finding duplicates and groups: numbers and strings are spelled in one
// way, names are sorted, and undefined is a word.
func (v Value) AppendCanonical(dst []byte) []byte {
	switch v.kind {
	case KindUndefined:
		return append(dst, "undefined"...)
	case KindNumber:
		return appendFloat(dst, v.Number())
	case KindString:
		return value.AppendString(dst, v.Text())
	case KindArray:
		dst = append(dst, '[')
		separator := ""
		for element := range v.Elements {
			dst = append(dst, separator...)
			dst = element.AppendCanonical(dst)
			separator = ","
		}
		return append(dst, ']')
	case KindObject:
		return v.appendCanonicalObject(dst)
	}
	return v.AppendJSON(dst)
}

func (v Value) appendCanonicalObject(dst []byte) []byte {
	type property struct {
		name string
		v    Value
	}
	var space [maxLookups]property
	properties := space[:0]
	for name, p := range v.Properties {
		properties = append(properties, property{name, p})
	}
	slices.SortFunc(properties, func(a, b property) int { return strings.Compare(a.name, b.name) })
	dst = append(dst, '{')
	for i, p := range properties {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(value.AppendString(dst, p.name), ':')
		dst = p.v.AppendCanonical(dst)
	}
	return append(dst, '}')
}

// Set holds values by their canonical text.
type Set map[string]bool

// SetOf returns the elements of an array.
func SetOf(array Value) Set {
	s := Set{}
	for element := range array.Elements {
		s.Add(element)
	}
	return s
}

// Add returns how many bytes the set keeps of a new value, or 0 if it had the value already.
func (s Set) Add(v Value) int {
	key := v.AppendCanonical(nil)
	if s[string(key)] {
		return 0
	}
	s[string(key)] = true
	return len(key)
}

// Has reports whether the value, or one that is equal to it, has been added.
func (s Set) Has(v Value) bool { return s[string(v.AppendCanonical(nil))] }
