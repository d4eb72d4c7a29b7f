// SPDX-License-Identifier: MIT

// Composite indexes: an entry for each composite index of the policy, made of the values
// at all its paths, so that a query can walk items in the order of several properties.
//
//	{number}{component}…{end}
//
// {number} is that of the index in catalog.Definition.IndexedComposites. A component is
//
//	undefined     10            the path leads nowhere
//	scalar        as in a term  (termkey.go)
//	string, cut   50 {the first bytes, escaped} 00 02
//	array         60
//	object        70
//
// with all its bytes complemented where the path is descending. Of a string that is cut,
// and of an array and an object, the entry does not hold all that they are ordered by:
// the component is rough, and the last of its entry. Rows with the same rough entry are
// in no order. {end} is one byte:
//
//	01  the last component is rough
//	02  the first path is descending: the ordinal that follows is complemented, so that
//	    items with equal values are in the direction of the first path, as queries order
//	    them
//
//  1. Order: walking the rows of an index forwards is walking the items in the order of
//     its paths, walking them backwards is walking them in the opposite order, and only
//     items with the same rough entry are in no order.
//  2. Complete: every item has one row in each index, whatever it lacks.
//  3. The entries that begin with the same values are one range, and so are those with
//     a range of values after them.
//
// _ts is known when a write executes and no sooner: its place is left open (stamp).

package store

import (
	"bytes"
	"encoding/binary"
	"iter"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/value"
)

const (
	tagNumber byte = 0x40

	endRough    byte = 0x01
	endReversed byte = 0x02

	// longestExact is the longest component that is not cut: of a string.
	longestExact = len("\x50") + maxTermValueBytes + len("\x00\x01")
	// numberComponentBytes is what a number takes.
	numberComponentBytes = 9
)

// stampPlace is where an entry has the time of the write: in that of a composite index,
// so many bytes from its start.
type stampPlace struct {
	number byte
	at     uint16
}

// composites adds the entries of the composite indexes.
func (w *entryWriter) composites(list [][]catalog.CompositePath, o *value.Object) error {
	for number, paths := range list {
		start := w.begin(entryComposite)
		w.buf = append(w.buf, byte(number))
		var end byte
		for _, p := range paths {
			at := len(w.buf)
			rough := false
			if isTimestamp(p.Path) {
				w.stamps = append(w.stamps, stampPlace{byte(number), uint16(at - start)})
				w.buf = value.AppendKey(w.buf, value.Number(0))
			} else {
				w.buf, rough = appendComponent(w.buf, componentAt(o, p.Path))
			}
			if p.Descending {
				complement(w.buf[at:])
			}
			if rough {
				end = endRough
				break
			}
		}
		w.buf = append(w.buf, end|reversal(paths))
		if err := w.end(start); err != nil {
			return err
		}
	}
	return nil
}

func isTimestamp(p value.Path) bool { return len(p) == 1 && p[0] == "_ts" }

func reversal(paths []catalog.CompositePath) byte {
	if paths[0].Descending {
		return endReversed
	}
	return 0
}

// turned returns an ordinal as it stands after an entry of a composite index, and back.
func turned(ordinal uint64, entry []byte) uint64 {
	if entry[len(entry)-1]&endReversed != 0 {
		return ^ordinal
	}
	return ordinal
}

// stamp writes the time of the write into the entries that have it.
func (t *entries) stamp(writtenMs int64) {
	for _, s := range t.stamps {
		start := []byte{byte(entryComposite), s.number}
		i := t.from(start)
		var space [numberComponentBytes]byte
		number := value.AppendKey(space[:0], value.Number(float64(writtenMs/1000)))
		place := t.At(i)[s.at : int(s.at)+numberComponentBytes]
		if place[0] != tagNumber {
			complement(number)
		}
		copy(place, number)
	}
}

func complement(b []byte) {
	for i := range b {
		b[i] = ^b[i]
	}
}

// Component is a value in a composite index: a scalar, undefined, an array or an object.
// The zero value is undefined.
type Component struct {
	scalar value.Value
	nested byte // the tag of an array or an object
}

// ScalarComponent is a scalar, or undefined.
func ScalarComponent(v value.Value) Component { return Component{scalar: v} }

// ArrayComponent is any array.
func ArrayComponent() Component { return Component{nested: tagEmptyArray} }

// ObjectComponent is any object.
func ObjectComponent() Component { return Component{nested: tagEmptyObject} }

func componentAt(o *value.Object, p value.Path) Component {
	raw, found := o.At(p)
	switch {
	case !found:
		return Component{}
	case raw[0] == '[':
		return ArrayComponent()
	case raw[0] == '{':
		return ObjectComponent()
	}
	v, _ := value.FromJSON(raw)
	return ScalarComponent(v)
}

// appendComponent appends a component of an ascending path.
func appendComponent(dst []byte, c Component) (_ []byte, rough bool) {
	if c.nested != 0 {
		return append(dst, c.nested), true
	}
	text, isString := c.scalar.Text()
	if !isString {
		return value.AppendKey(dst, c.scalar), false
	}
	start := len(dst)
	dst = appendTermString(dst, []byte(text))
	if len(dst)-start <= longestExact {
		return dst, false
	}
	return cutShort(dst), true
}

// CompositeScan asks for rows of a composite index.
type CompositeScan struct {
	// Number is that of the index among the container's IndexedComposites.
	Number int
	// Equal is what the values at the first paths are, and Next, if it is not nil, a
	// range of those at the path after them.
	Equal []value.Value
	Next  *ValueRange
	Order kv.Order
	// From is where to go on, with the row there, and Alike is where to go on with all
	// rows like the one there. Zero is the beginning.
	From, Alike Place
	// Within, if it is not nil, narrows the scan to a logical partition.
	Within *Within
	// Places is that of an IndexScan.
	Places bool
}

// Rough reports whether rows at this place of a composite index are in no order.
func (p Place) Rough() bool { return p.Value[len(p.Value)-1]&endRough != 0 }

// CompositePlace returns the place in a composite index of an item with these values.
func CompositePlace(paths []catalog.CompositePath, values []Component, ordinal uint64) Place {
	var raw []byte
	for i, p := range paths {
		at := len(raw)
		var rough bool
		raw, rough = appendComponent(raw, values[i])
		if p.Descending {
			complement(raw[at:])
		}
		if rough {
			return Place{append(raw, endRough|reversal(paths)), ordinal}
		}
	}
	return Place{append(raw, reversal(paths)), ordinal}
}

// Composite returns the rows that a scan asks for, of live items, in the order of the
// index. The value of a hit's place is all that the index has of the item.
func (r *Reader) Composite(s CompositeScan) iter.Seq2[Hit, error] {
	start := append(r.p.prefix.appendIndexStart(nil, r.v.meta.Generation), byte(entryComposite), byte(s.Number))
	lower, upper := s.bounds(start, r.v.container.IndexedComposites[s.Number])
	s.goOn(start, &lower, &upper)
	return r.rows(lower, upper, s.Order, len(start), s.Within, s.Places)
}

// bounds returns those of the rows with the values that a scan asks for.
func (s *CompositeScan) bounds(start []byte, paths []catalog.CompositePath) (lower, upper []byte) {
	prefix := bytes.Clone(start)
	for i, v := range s.Equal {
		at := len(prefix)
		var rough bool
		prefix, rough = appendComponent(prefix, ScalarComponent(v))
		if paths[i].Descending {
			complement(prefix[at:])
		}
		if rough { // there is nothing after it
			return prefix, keyAfter(prefix)
		}
	}
	if s.Next == nil {
		return prefix, keyAfter(prefix)
	}
	lower, upper = bytes.Clone(s.Next.lower), bytes.Clone(s.Next.upper)
	if paths[len(s.Equal)].Descending {
		// What begins with a bound is above it here and there: so the bounds change
		// places, and each lies after all that begins with it.
		complement(lower)
		complement(upper)
		lower, upper = keyAfter(upper), keyAfter(lower)
	}
	return append(bytes.Clone(prefix), lower...), append(prefix, upper...)
}

// goOn narrows the bounds to what is still to come.
func (s *CompositeScan) goOn(start []byte, lower, upper *[]byte) {
	var from, to []byte
	switch {
	case len(s.From.Value) > 0:
		from = append(bytes.Clone(start), s.From.Value...)
		from = binary.BigEndian.AppendUint64(from, turned(s.From.Ordinal, s.From.Value))
		to = append(bytes.Clone(from), 0)
	case len(s.Alike.Value) > 0:
		from = append(bytes.Clone(start), s.Alike.Value...)
		to = keyAfter(from)
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
