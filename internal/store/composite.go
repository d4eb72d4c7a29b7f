// SPDX-License-Identifier: MIT

package store

import (
	"bytes"
	"iter"

	"github.com/mayflydb/mayfly/internal/index"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/value"
)

// CompositeScan asks for rows of a composite index.
type CompositeScan struct {
	// Number is that of the index among the container's IndexedComposites.
	Number int
	// Equal is what the values at the first paths are, and Next, if it is not nil, a
	// range of those at the path after them.
	Equal []value.Value
	Next  *index.ValueRange
	Order kv.Order
	// From is where to go on, with the row there, and Alike is where to go on with all
	// rows like the one there. Zero is the beginning.
	From, Alike index.Place
	// Within, if it is not nil, narrows the scan to a logical partition.
	Within *Within
	// Places is that of an IndexScan.
	Places bool
}

// Composite returns the rows that a scan asks for, of live items, in the order of the
// index. The value of a hit's place is all that the index has of the item.
func (r *Reader) Composite(s CompositeScan) iter.Seq2[Hit, error] {
	start := index.AppendCompositeStart(r.p.prefix.appendIndexStart(nil, r.v.meta.Generation), s.Number)
	lower, upper := index.CompositeBounds(start, r.v.container.IndexedComposites[s.Number], s.Equal, s.Next)
	s.goOn(start, &lower, &upper)
	return r.rows(lower, upper, s.Order, len(start), s.Within, s.Places)
}

// goOn narrows the bounds to what is still to come.
func (s *CompositeScan) goOn(start []byte, lower, upper *[]byte) {
	var from, to []byte
	switch {
	case len(s.From.Value) > 0:
		from = index.AppendCompositeRow(bytes.Clone(start), s.From)
		to = append(bytes.Clone(from), 0)
	case len(s.Alike.Value) > 0:
		from = append(bytes.Clone(start), s.Alike.Value...)
		to = kv.After(from)
	default:
		return
	}
	if s.Order == kv.Reverse && bytes.Compare(to, *upper) < 0 {
		*upper = to
	}
	if s.Order == kv.Forward && bytes.Compare(from, *lower) > 0 {
		*lower = from
	}
}
