// SPDX-License-Identifier: MIT

// Scans of indexes.

package store

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"iter"

	"github.com/mayflydb/mayfly/internal/index"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/value"
)

// IndexScan asks for index rows.
type IndexScan struct {
	Kind   index.Kind
	Path   index.Path
	Values index.ValueRange
	// Composite, if not nil, asks for rows of a composite index instead.
	Composite *CompositeRange
	Order     kv.Order
	// After and From are where to resume: after the row at the place, or at it. Zero is the
	// beginning.
	After, From index.Place
	// Alike is where to resume with all rows that equal the one at the place: in a
	// composite index the rows with the same value, elsewhere the rows of cut strings with
	// the same beginning.
	Alike index.Place
	// Within, if not nil, limits the scan to a logical partition.
	Within *Within
	// Visits says that the caller visits the items of the hits.
	Visits bool
	// Places asks for hits without a row, which report how far a walk has come that has
	// nothing to return. A scan within a logical partition reports it to Within.Passed.
	Places bool
}

// CompositeRange is a part of a composite index.
type CompositeRange struct {
	// Number is the position of the index in the container's IndexedComposites.
	Number int
	// Equal has the values at the first paths. Next, if not nil, is a range of values at
	// the path after them.
	Equal []value.Scalar
	Next  *index.ValueRange
}

// Hit is an index row of a live item. Its slices are valid until the next step.
type Hit struct {
	index.Place
	EPK []byte // nil if the hit has no row
	// Carried is the data that the entry carries, encoded by package index.
	Carried []byte
}

// Corrupt returns an error that names the item whose row carries unreadable data.
func (h *Hit) Corrupt(err error) error { return fmt.Errorf("item %d: %w", h.Ordinal, err) }

// Indexed reports whether queries may use the index. After a change of the indexing policy
// it takes a while until all items have their rows, and an item that has too much to index
// never has any. The changes of a transaction are in no index.
func (r *Reader) Indexed() bool {
	if r.over != nil {
		return false
	}
	m := &r.v.meta
	return m.Items == 0 || m.IndexedTo == indexedAll && m.Overfull == 0
}

// Index returns the index rows of live items that a scan asks for, in the order of value
// and ordinal. In a composite index, the value is the whole entry.
func (r *Reader) Index(s IndexScan) iter.Seq2[Hit, error] {
	start := r.p.prefix.appendIndexStart(r.keys[:0], r.v.meta.Generation)
	var lower, upper []byte
	if c := s.Composite; c != nil {
		start = index.AppendCompositeStart(start, c.Number)
		lower, upper = index.CompositeBounds(start, r.v.container.IndexedComposites[c.Number], c.Equal, c.Next)
	} else {
		start = index.AppendStart(start, s.Kind, s.Path)
		lower, upper = s.Values.Bounds(start)
	}
	s.narrow(start, &lower, &upper)
	if s.Visits && r.p.far && r.over == nil {
		return r.gathered(lower, upper, len(start), s)
	}
	return r.rows(lower, upper, s.Order, len(start), s.Within, s.Places)
}

// gathered is rows for a caller that visits the items of the hits.
func (r *Reader) gathered(lower, upper []byte, first int, s IndexScan) iter.Seq2[Hit, error] {
	return func(yield func(Hit, error) bool) {
		c := chunk[Hit]{p: r.p, v: r.v, ordinal: func(h *Hit) uint64 { return h.Ordinal }, yield: yield, most: firstGather}
		if s.Within != nil {
			asked, of, passed := s.Within, *s.Within, s.Within.Passed
			of.Passed = func(rows int64, at index.Place) (bool, error) {
				// The walk may end at the place, which what was gathered comes before.
				if at.Ordinal != 0 && !c.flush() {
					return false, nil
				}
				asked.Gathered = int64(len(c.rows))
				return passed(rows, at)
			}
			s.Within = &of
		}
		c.walk(ownHits(r.rows(lower, upper, s.Order, first, s.Within, s.Places)))
	}
}

// ownHits returns hits with memory of their own.
func ownHits(hits iter.Seq2[Hit, error]) iter.Seq2[Hit, error] {
	return func(yield func(Hit, error) bool) {
		for hit, err := range hits {
			hit.Value = hit.Value.Clone()
			hit.EPK, hit.Carried = bytes.Clone(hit.EPK), bytes.Clone(hit.Carried)
			if !yield(hit, err) {
				return
			}
		}
	}
}

// rows returns the index rows of live items in a range. The value of a hit's place is the
// entry without the first bytes of its key.
func (r *Reader) rows(lower, upper []byte, order kv.Order, first int, of *Within, places bool) iter.Seq2[Hit, error] {
	if of != nil {
		return r.within(lower, upper, order, first, of)
	}
	if bytes.Compare(lower, upper) >= 0 {
		return func(func(Hit, error) bool) {} // the place to resume is past the range
	}
	entries := r.v.snap.Scan(lower, upper, order)
	return func(yield func(Hit, error) bool) {
		// A call allocates less than a range loop over the function.
		entries(func(e kv.Entry, err error) bool {
			var hit Hit
			live := false
			if err == nil {
				err = r.step()
			}
			if err == nil {
				hit, live, err = r.hit(e, first)
			}
			if err != nil {
				yield(Hit{}, err)
				return false
			}
			if !live && !(places && r.checkedStop()) {
				return true
			}
			return yield(hit, nil)
		})
	}
}

// narrow moves the bounds of a scan to where it resumes.
func (s *IndexScan) narrow(start []byte, lower, upper *[]byte) {
	row := func(p index.Place) []byte {
		key := append(bytes.Clone(start), p.Value.Bytes()...)
		return binary.BigEndian.AppendUint64(key, index.Turned(p.Ordinal, key[prefixBytes+1+generationBytes:]))
	}
	var from, to []byte // checked, since a client may send a place outside of the bounds
	switch {
	case s.After.Ordinal != 0:
		to = row(s.After)
		from = append(bytes.Clone(to), 0)
	case !s.From.Value.IsZero():
		from = row(s.From)
		to = append(bytes.Clone(from), 0)
	case s.Composite != nil && !s.Alike.Value.IsZero(), s.Alike.Value.Cut():
		from = append(bytes.Clone(start), s.Alike.Value.Bytes()...)
		if s.Composite == nil {
			from = append(from[:len(start)], s.Alike.Value.Beginning()...)
		}
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

func (r *Reader) hit(e kv.Entry, start int) (h Hit, live bool, err error) {
	end := len(e.Key) - ordinalBytes
	if end <= start || len(e.Value) < indexRowBytes {
		return Hit{}, false, corrupt(e.Key, "not an index row")
	}
	h.Place = index.Place{Value: index.ValueOf(e.Key[start:end]), Ordinal: indexOrdinal(e.Key)}
	if r.cut.expired(decodeLife(e.Value)) {
		r.expired = r.expired.Plus(Amount{1, int64(len(e.Key) + len(e.Value))})
		return h, false, nil
	}
	h.EPK = e.Value[indexRowBytes:]
	if index.Carries(e.Key[prefixBytes+1+generationBytes:]) {
		n, used := binary.Uvarint(h.EPK)
		if used <= 0 || n > uint64(len(h.EPK)-used) {
			return Hit{}, false, corrupt(e.Key, "not an index row of its kind")
		}
		h.Carried, h.EPK = h.EPK[used:used+int(n)], h.EPK[used+int(n):]
	}
	return h, true, nil
}
