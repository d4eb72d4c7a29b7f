// SPDX-License-Identifier: MIT

package index

import (
	"bytes"

	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/value"
)

// Step leads from a value to one of its properties, or to its elements.
type Step = step

// String names the step.
func (s step) String() string {
	if s.elements {
		return "[]"
	}
	return s.name
}

// Property returns the step to a property.
func Property(name string) Step { return step{name: name} }

// Elements returns the step to the elements of an array.
func Elements() Step { return step{elements: true} }

// Path leads to a value in an item.
type Path []Step

// ValueRange is a range of the values in an index. Long strings are cut in the index, so a
// range may contain a few more values than it should: unless it is Exact, the reader
// checks the item of each row.
type ValueRange struct {
	lower, upper []byte // encoded; upper is exclusive
	exact        bool
}

// Exact reports whether all values in the range are meant to be in it.
func (v ValueRange) Exact() bool { return v.exact }

// PlaceOf returns the place of an ordinal in the range of one value.
func (v ValueRange) PlaceOf(ordinal uint64) Place { return Place{Value{v.lower}, ordinal} }

// Tags of value.AppendKey, with which the values of a kind begin.
const (
	tagFirst  = 0x20 // null
	tagString = 0x50
	tagScalar = tagEmptyArray
)

// AllValues returns the range of all scalars.
func AllValues() ValueRange { return tags(tagFirst, tagScalar) }

// tags returns the range of all values with tags from first on and below end.
func tags(first, end byte) ValueRange {
	both := []byte{first, end}
	return ValueRange{both[:1:1], both[1:], true}
}

const (
	// numberTermBytes is the length of a number in an index. Null and booleans are
	// shorter.
	numberTermBytes = 9
	// termOverhead is the length of a string in an index without its own bytes, if none
	// of these has to be escaped.
	termOverhead = len("\x50\x00\x01") + termHashBytes
)

// encodeTerm returns the value as encoded in an index, and whether it is cut. The slice
// has capacity for as many bytes again, so that a range takes one allocation.
func encodeTerm(v value.Scalar) (raw []byte, cut bool) {
	if s, ok := v.Text(); ok {
		raw = appendTermString(make([]byte, 0, 2*(min(len(s), maxTermValueBytes)+termOverhead)), []byte(s))
		return raw, Value{raw}.Cut()
	}
	return value.AppendKey(make([]byte, 0, 2*numberTermBytes), v), false
}

// Exactly returns the range of one value.
func Exactly(v value.Scalar) ValueRange {
	raw, cut := encodeTerm(v)
	n := len(raw)
	upper := append(raw[n:], raw...)
	return ValueRange{raw[:n:n], kv.Raise(upper), !cut}
}

// ofKind returns the range of all values of v's kind. raw is the encoding of v.
func ofKind(v value.Scalar, raw []byte) ValueRange {
	if v.Kind() == value.KindBool {
		return tags(0x30, 0x32)
	}
	return tags(raw[0], raw[0]+1)
}

// cutShort returns a cut string without its hash: the bytes that all cut strings with the
// same beginning share.
func cutShort(raw []byte) []byte { return raw[:len(raw)-termHashBytes] }

// AtLeast returns the range of the values of v's kind from v on.
func AtLeast(v value.Scalar) ValueRange { return from(v, true) }

// Above returns the range of the values of v's kind above v.
func Above(v value.Scalar) ValueRange { return from(v, false) }

func from(v value.Scalar, inclusive bool) ValueRange {
	raw, cut := encodeTerm(v)
	upper := ofKind(v, raw).upper
	switch {
	case cut:
		return ValueRange{cutShort(raw), upper, false}
	case inclusive:
		return ValueRange{raw, upper, true}
	}
	return ValueRange{kv.Raise(raw), upper, true}
}

// AtMost returns the range of the values of v's kind up to v.
func AtMost(v value.Scalar) ValueRange { return upTo(v, true) }

// Below returns the range of the values of v's kind below v.
func Below(v value.Scalar) ValueRange { return upTo(v, false) }

func upTo(v value.Scalar, inclusive bool) ValueRange {
	raw, cut := encodeTerm(v)
	lower := ofKind(v, raw).lower
	switch {
	case cut:
		return ValueRange{lower, kv.Raise(cutShort(raw)), false}
	case inclusive:
		return ValueRange{lower, kv.Raise(raw), true}
	}
	return ValueRange{lower, raw, true}
}

// BeginningWith returns the range of the strings that begin with s.
func BeginningWith(s string) ValueRange {
	raw := value.AppendStringKey(nil, []byte(s))
	raw = raw[:len(raw)-len("\x00\x01")]
	raiseLeads(raw)
	if len(raw) > maxTermValueBytes {
		raw = raw[:maxTermValueBytes]
		return ValueRange{raw, kv.After(raw), false}
	}
	// Cut strings are in the range only if they begin with s, so it is exact.
	return ValueRange{raw, kv.After(raw), true}
}

// Numbers returns the range of all numbers.
func Numbers() ValueRange { return tags(0x40, 0x41) }

// Strings returns the range of all strings.
func Strings() ValueRange { return tags(tagString, tagString+1) }

// And returns the intersection of two ranges.
func (v ValueRange) And(w ValueRange) ValueRange {
	both := ValueRange{v.lower, v.upper, v.exact && w.exact}
	if bytes.Compare(w.lower, both.lower) > 0 {
		both.lower = w.lower
	}
	if bytes.Compare(w.upper, both.upper) < 0 {
		both.upper = w.upper
	}
	return both
}

// Empty reports whether the range contains no value.
func (v ValueRange) Empty() bool { return bytes.Compare(v.lower, v.upper) >= 0 }

// Bounds returns the bounds of the range's rows, whose keys begin with start. They are
// written behind start, if it has the capacity.
func (v ValueRange) Bounds(start []byte) (lower, upper []byte) {
	room := append(append(start[len(start):], start...), v.lower...)
	n := len(room)
	room = append(append(room, start...), v.upper...)
	return room[:n:n], room[n:]
}
