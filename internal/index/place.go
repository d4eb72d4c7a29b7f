// SPDX-License-Identifier: MIT

package index

import (
	"bytes"
	"encoding/base64"
)

// Value is the value of a row in an index, as the index has it: others can compare it,
// keep it and write it down, and nothing else. The zero value is none.
type Value struct {
	raw []byte
}

// ValueOf returns the value whose bytes stand in a row's key.
func ValueOf(raw []byte) Value { return Value{raw} }

// Bytes returns what stands in a row's key. They are not to be changed.
func (v Value) Bytes() []byte { return v.raw }

// IsZero reports whether it is none.
func (v Value) IsZero() bool { return len(v.raw) == 0 }

// Compare tells which of two comes first in the index.
func (v Value) Compare(w Value) int { return bytes.Compare(v.raw, w.raw) }

// Size is how much memory it takes.
func (v Value) Size() int { return len(v.raw) }

// Set makes it a copy of another, in the memory that it has.
func (v *Value) Set(w Value) { v.raw = append(v.raw[:0], w.raw...) }

// Clone returns a copy.
func (v Value) Clone() Value { return Value{bytes.Clone(v.raw)} }

// MarshalText and UnmarshalText are for tokens.
func (v Value) MarshalText() ([]byte, error) { return base64.StdEncoding.AppendEncode(nil, v.raw), nil }

func (v *Value) UnmarshalText(text []byte) (err error) {
	v.raw, err = base64.StdEncoding.AppendDecode(nil, text)
	return err
}

// Cut reports whether the value is the beginning of a longer string. Rows of strings
// that begin alike are in no order.
func (v Value) Cut() bool {
	end := len(v.raw) - termHashBytes
	return end > maxTermValueBytes && v.raw[0] == tagString && v.raw[end-2] == escape && v.raw[end-1] == escapedCut
}

// Alike reports whether both are of strings that are cut after the same beginning.
func (v Value) Alike(w Value) bool {
	return v.Cut() && w.Cut() && bytes.Equal(cutShort(v.raw), cutShort(w.raw))
}

// Beginning returns what all rows of cut strings that begin like this one begin with.
func (v Value) Beginning() []byte { return cutShort(v.raw) }

// Rough reports whether rows with this value of a composite index are in no order.
func (v Value) Rough() bool { return v.raw[len(v.raw)-1]&endRough != 0 }

// Place is a place in an index: after the row with this value and ordinal.
type Place struct {
	Value   Value
	Ordinal uint64
}
