// SPDX-License-Identifier: MIT

// Composite indexes. An item has an entry for each composite index of the policy, made of
// the values at all its paths, so that a query can read items in the order of several
// properties.
//
//	{number}{component}…{end}
//
// {number} is the position of the index in catalog.Definition.IndexedComposites. A
// component is
//
//	undefined     10            the item has no value at the path
//	scalar        as in a term  (termkey.go)
//	string, cut   50 {the first bytes, escaped} 00 02
//	array         60
//	object        70
//
// with all its bytes complemented if the path is descending. The component of a cut
// string, an array or an object is rough: it does not hold all bytes that the value is
// ordered by. A rough component is the last of its entry. Rows with the same rough entry
// are in no order. {end} is one byte, the sum of
//
//	01  the last component is rough
//	02  the first path is descending: the ordinal that follows is complemented, so that
//	    items with equal values are in the direction of the first path, as queries order
//	    them
//
// Invariants:
//
//  1. Order: the rows of an index, read forwards, are in the order of its paths, and read
//     backwards in the opposite order. Only items with the same rough entry are in no
//     order.
//  2. Complete: every item has one row in each index, even if it lacks the properties.
//  3. The entries that begin with the same values are one range, and so are those of them
//     whose next value is in a range.
//
// _ts is known only when a write executes: its bytes are filled in then (Stamp).

package index

import (
	"bytes"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/value"
)

const (
	tagNumber byte = 0x40

	endRough    byte = 0x01
	endReversed byte = 0x02

	// longestExact is the longest component that is not cut, which is that of a string.
	longestExact = len("\x50") + maxTermValueBytes + len("\x00\x01")
	// numberComponentBytes is the length of a number's component.
	numberComponentBytes = 9
)

// stampOffset is where the time of the write is in the entry of a composite index: the
// number of the index, and the offset from the start of the entry.
type stampOffset struct {
	number byte
	at     uint16
}

// composites adds the entries of the composite indexes.
func (w *entryWriter) composites(list [][]catalog.CompositePath, o *value.Object) error {
	for number, paths := range list {
		start := w.begin(entryComposite)
		w.buf = append(w.buf, byte(number))
		var rough bool
		w.buf, rough = appendComponents(w.buf, paths, func(i, at int) Component {
			if isTimestamp(paths[i].Path) {
				w.stamps = append(w.stamps, stampOffset{byte(number), uint16(at - start)})
				return ScalarComponent(value.Number(0))
			}
			return componentAt(o, paths[i].Path)
		})
		w.buf = append(w.buf, endOf(paths, rough))
		if err := w.end(start); err != nil {
			return err
		}
	}
	return nil
}

// appendComponents appends the values at the paths of an index, up to one that is rough.
// of returns the value at path i, which is written at offset at.
func appendComponents(dst []byte, paths []catalog.CompositePath, of func(i, at int) Component) (_ []byte, rough bool) {
	for i := 0; i < len(paths) && !rough; i++ {
		at := len(dst)
		if dst, rough = appendComponent(dst, of(i, at)); paths[i].Descending {
			complement(dst[at:])
		}
	}
	return dst, rough
}

func isTimestamp(p value.Path) bool { return len(p) == 1 && p[0] == "_ts" }

// endOf returns the end of an entry.
func endOf(paths []catalog.CompositePath, rough bool) (end byte) {
	if rough {
		end = endRough
	}
	if paths[0].Descending {
		end |= endReversed
	}
	return end
}

// Turned converts an ordinal to the form in which it follows an entry, and back.
func Turned(ordinal uint64, entry []byte) uint64 {
	if len(entry) > 0 && entryKind(entry[0]) == entryComposite && entry[len(entry)-1]&endReversed != 0 {
		return ^ordinal
	}
	return ordinal
}

// Stamp writes the time of the write into the entries that contain it.
func (t *Entries) Stamp(writtenMs int64) {
	for _, s := range t.stamps {
		start := []byte{byte(entryComposite), s.number}
		i := t.From(start)
		var space [numberComponentBytes]byte
		number := value.AppendKey(space[:0], value.Number(float64(writtenMs/1000)))
		stamp := t.At(i)[s.at : int(s.at)+numberComponentBytes]
		if stamp[0] != tagNumber {
			complement(number)
		}
		copy(stamp, number)
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
	scalar value.Scalar
	nested byte // the tag of an array or an object
}

// ScalarComponent returns the component of a scalar, or of undefined.
func ScalarComponent(v value.Scalar) Component { return Component{scalar: v} }

// ArrayComponent returns the component of any array.
func ArrayComponent() Component { return Component{nested: tagEmptyArray} }

// ObjectComponent returns the component of any object.
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

// CompositePlace returns the place of an item with these values in a composite index.
func CompositePlace(paths []catalog.CompositePath, values []Component, ordinal uint64) Place {
	raw, rough := appendComponents(nil, paths, func(i, _ int) Component { return values[i] })
	return Place{Value{append(raw, endOf(paths, rough))}, ordinal}
}

// CompositeBounds returns the bounds of the rows whose values at the first paths are
// equal, and whose value at the path after them is in the range next, unless that is nil.
// start is what the rows of the index begin with.
func CompositeBounds(start []byte, paths []catalog.CompositePath, equal []value.Scalar, next *ValueRange) (lower, upper []byte) {
	prefix, rough := appendComponents(bytes.Clone(start), paths[:len(equal)], func(i, _ int) Component { return ScalarComponent(equal[i]) })
	if rough || next == nil { // nothing follows a rough component
		return prefix, kv.After(prefix)
	}
	lower, upper = bytes.Clone(next.lower), bytes.Clone(next.upper)
	if paths[len(equal)].Descending {
		// A value that begins with a bound sorts after the bound, complemented or not. So
		// the bounds swap, and each moves behind all values that begin with it.
		complement(lower)
		complement(upper)
		lower, upper = kv.After(upper), kv.After(lower)
	}
	return append(bytes.Clone(prefix), lower...), append(prefix, upper...)
}

// AppendCompositeStart appends the bytes that the entries of a composite index begin with.
func AppendCompositeStart(dst []byte, number int) []byte {
	return append(dst, byte(entryComposite), byte(number))
}
