// SPDX-License-Identifier: MIT

package index

import (
	"bytes"
	"encoding/base64"
)

// Value is the encoded value of a row in an index. Other packages can compare, keep and
// serialize it, but not decode it. The zero value is no value.
type Value struct {
	raw []byte
}

// ValueOf returns the value with these bytes of a row's key.
func ValueOf(raw []byte) Value { return Value{raw} }

// Bytes returns the bytes of the value in a row's key. The caller must not change them.
func (v Value) Bytes() []byte { return v.raw }

// IsZero reports whether there is no value.
func (v Value) IsZero() bool { return len(v.raw) == 0 }

// Compare compares two values in the order of the index.
func (v Value) Compare(w Value) int { return bytes.Compare(v.raw, w.raw) }

// Size returns the number of bytes of the value.
func (v Value) Size() int { return len(v.raw) }

// Set copies w into v, and reuses the memory of v.
func (v *Value) Set(w Value) { v.raw = append(v.raw[:0], w.raw...) }

// Clone returns a copy.
func (v Value) Clone() Value { return Value{bytes.Clone(v.raw)} }

// MarshalText encodes the value for a continuation token.
func (v Value) MarshalText() ([]byte, error) { return base64.StdEncoding.AppendEncode(nil, v.raw), nil }

// UnmarshalText is the inverse of MarshalText.
func (v *Value) UnmarshalText(text []byte) (err error) {
	v.raw, err = base64.StdEncoding.AppendDecode(nil, text)
	return err
}

// Cut reports whether the value is of a string that is cut. Rows of cut strings with the
// same beginning are in no order.
func (v Value) Cut() bool {
	end := len(v.raw) - termHashBytes
	return end > maxTermValueBytes && v.raw[0] == tagString && v.raw[end-2] == escape && v.raw[end-1] == escapedCut
}

// Alike reports whether both values are of cut strings with the same beginning.
func (v Value) Alike(w Value) bool {
	return v.Cut() && w.Cut() && bytes.Equal(cutShort(v.raw), cutShort(w.raw))
}

// Beginning returns the bytes that the values of all cut strings with the same beginning
// as this one begin with.
func (v Value) Beginning() []byte { return cutShort(v.raw) }

// Rough reports whether this value of a composite index is rough: rows with it are in no
// order.
func (v Value) Rough() bool { return v.raw[len(v.raw)-1]&endRough != 0 }

// Place is a place in an index: after the row with this value and ordinal.
type Place struct {
	Value   Value
	Ordinal uint64
}
