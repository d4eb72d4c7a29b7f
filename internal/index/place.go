// SPDX-License-Identifier: MIT

package index

import "bytes"

// Place is a place in an index: after the row with this value and ordinal. The
// value is encoded, and of no meaning to others.
type Place struct {
	Value   []byte
	Ordinal uint64
}

// Cut reports whether the value is the beginning of a longer string. Rows of strings
// that begin alike are in no order.
func (p Place) Cut() bool {
	end := len(p.Value) - termHashBytes
	return end > maxTermValueBytes && p.Value[0] == tagString && p.Value[end-2] == escape && p.Value[end-1] == escapedCut
}

// Alike reports whether both are of strings that are cut after the same beginning.
func (p Place) Alike(q Place) bool {
	return p.Cut() && q.Cut() && bytes.Equal(cutShort(p.Value), cutShort(q.Value))
}

// Beginning returns what all rows of cut strings that begin like this one begin with.
func (p Place) Beginning() []byte { return cutShort(p.Value) }
