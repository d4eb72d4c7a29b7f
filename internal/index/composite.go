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
// _ts is known when a write executes and no sooner: its place is left open (Stamp).

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
		var rough bool
		w.buf, rough = appendComponents(w.buf, paths, func(i, at int) Component {
			if isTimestamp(paths[i].Path) {
				w.stamps = append(w.stamps, stampPlace{byte(number), uint16(at - start)})
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

// appendComponents appends the values at the paths of an index, up to one that is rough,
// given what value there is at a path and where it is written.
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

// Turned returns an ordinal as it stands after an entry, and back.
func Turned(ordinal uint64, entry []byte) uint64 {
	if len(entry) > 0 && entryKind(entry[0]) == entryComposite && entry[len(entry)-1]&endReversed != 0 {
		return ^ordinal
	}
	return ordinal
}

// Stamp writes the time of the write into the entries that have it.
func (t *Entries) Stamp(writtenMs int64) {
	for _, s := range t.stamps {
		start := []byte{byte(entryComposite), s.number}
		i := t.From(start)
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

// CompositePlace returns the place in a composite index of an item with these values.
func CompositePlace(paths []catalog.CompositePath, values []Component, ordinal uint64) Place {
	raw, rough := appendComponents(nil, paths, func(i, _ int) Component { return values[i] })
	return Place{Value{append(raw, endOf(paths, rough))}, ordinal}
}

// CompositeBounds returns those of the rows, after the start of the index, whose values
// at the first paths are equal to some, and at the path after them in a range, if it is
// not nil.
func CompositeBounds(start []byte, paths []catalog.CompositePath, equal []value.Value, next *ValueRange) (lower, upper []byte) {
	prefix, rough := appendComponents(bytes.Clone(start), paths[:len(equal)], func(i, _ int) Component { return ScalarComponent(equal[i]) })
	if rough || next == nil { // there is nothing after what is rough
		return prefix, kv.After(prefix)
	}
	lower, upper = bytes.Clone(next.lower), bytes.Clone(next.upper)
	if paths[len(equal)].Descending {
		// What begins with a bound is above it here and there: so the bounds change
		// places, and each lies after all that begins with it.
		complement(lower)
		complement(upper)
		lower, upper = kv.After(upper), kv.After(lower)
	}
	return append(bytes.Clone(prefix), lower...), append(prefix, upper...)
}

// AppendCompositeStart appends what the entries of a composite index begin with.
func AppendCompositeStart(dst []byte, number int) []byte {
	return append(dst, byte(entryComposite), byte(number))
}
