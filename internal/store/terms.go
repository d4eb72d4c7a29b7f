// SPDX-License-Identifier: MIT

// Terms: what an item is found by. Every scalar of an item that the container's
// policy indexes, and every object and array without content, makes a term of its
// path and its value (termkey.go); the elements of an array share one path. An
// index row is a term and the item's ordinal.

package store

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/value"
)

// ErrTooManyTerms is returned for an item whose terms take more than
// maxTermsBytes.
var ErrTooManyTerms = errors.New("the item has too much to index: exclude paths in the indexing policy")

const (
	// maxTermsBytes bounds the terms of one item.
	maxTermsBytes = 16 << 20
	// maxRawTermsBytes bounds them while there may be duplicates among them. The
	// room above the other bound keeps the duplicates of a large array from being
	// looked for again and again.
	maxRawTermsBytes = maxTermsBytes + maxTermsBytes/2
	// maxTermBytes is more than the longest term has.
	maxTermBytes = maxTermPathBytes + maxTermValueBytes + 64

	// Up to largeTermsBytes memory grows as append has it, above it doubles: for
	// large slices append takes many small steps.
	largeTermsBytes = 64 << 10
	firstSpans      = 16
)

// terms are the terms of an item, in ascending order and each once.
type terms struct {
	buf   []byte // all of them, in the order of the item
	spans []termSpan
}

// termSpan is where a term lies, with its first bytes as a number: most terms of
// an item differ within them.
type termSpan struct {
	first      uint64
	start, end uint32
}

// Len returns how many terms there are.
func (t *terms) Len() int { return len(t.spans) }

// At returns a term. It is valid until the terms are used again.
func (t *terms) At(i int) []byte {
	s := &t.spans[i]
	return t.buf[s.start:s.end:s.end]
}

// appendTerms returns the terms of o. They are made in dst's memory, and what dst
// held is lost. The error is ErrTooManyTerms, and the memory comes back with it.
func appendTerms(dst terms, x *catalog.IndexPaths, o *value.Object) (terms, error) {
	if x.Empty() {
		return terms{dst.buf[:0], dst.spans[:0]}, nil
	}
	size := len(o.Bytes())
	w := termWalk{cursor: o.Cursor(nil)}
	w.buf = slices.Grow(dst.buf[:0], min(size+size/2, largeTermsBytes))
	w.spans = slices.Grow(dst.spans[:0], firstSpans)
	err := w.value(x.Root(), pathPlace{})
	if err == nil {
		err = w.sort()
	}
	if err != nil {
		return terms{w.buf[:0], w.spans[:0]}, err
	}
	if w.bytes < len(w.buf) {
		w.buf = w.compact(make([]byte, 0, w.bytes))
	}
	return w.terms, nil
}

// termWalk finds the terms of an item. It goes as deep as the item is nested, at
// most [value.MaxNesting].
type termWalk struct {
	terms         // in the order of the item, duplicates among them, until sorted
	bytes  int    // of the terms, since they were sorted
	spare  []byte // memory for compacting
	cursor value.Cursor
	path   pathEncoder
}

// value finds the terms of the value before the cursor.
func (w *termWalk) value(n *catalog.IndexNode, at pathPlace) error {
	switch w.cursor.Next() {
	case '{':
		return w.object(n, at)
	case '[':
		return w.array(n, at)
	}
	if !n.Scalar() {
		w.cursor.Skip()
		return nil
	}
	start := w.begin(at)
	if w.cursor.Next() == '"' {
		w.buf = appendTermString(w.buf, w.cursor.Text())
	} else {
		w.buf = value.AppendKey(w.buf, w.cursor.Literal())
	}
	return w.end(start)
}

func (w *termWalk) object(n *catalog.IndexNode, at pathPlace) error {
	if !w.cursor.Enter() {
		return w.empty(n, at, tagEmptyObject)
	}
	for {
		name := w.cursor.Name()
		if child := n.Property(name); child == nil {
			w.cursor.Skip()
		} else if err := w.value(child, w.path.property(at, name)); err != nil {
			return err
		}
		if !w.cursor.More() {
			return nil
		}
	}
}

func (w *termWalk) array(n *catalog.IndexNode, at pathPlace) error {
	if n.Elements() == nil && !n.Empty() {
		w.cursor.Skip()
		return nil
	}
	if !w.cursor.Enter() {
		return w.empty(n, at, tagEmptyArray)
	}
	child := n.Elements()
	if child != nil {
		at = w.path.elements(at)
	}
	for {
		if child == nil {
			w.cursor.Skip()
		} else if err := w.value(child, at); err != nil {
			return err
		}
		if !w.cursor.More() {
			return nil
		}
	}
}

// empty adds the term of an object or array without content.
func (w *termWalk) empty(n *catalog.IndexNode, at pathPlace, tag byte) error {
	if !n.Empty() {
		return nil
	}
	start := w.begin(at)
	w.buf = append(w.buf, tag)
	return w.end(start)
}

// begin writes the path of a term and returns where the term starts.
func (w *termWalk) begin(at pathPlace) (start int) {
	if len(w.buf) > largeTermsBytes && cap(w.buf)-len(w.buf) < maxTermBytes {
		w.buf = slices.Grow(w.buf, cap(w.buf))
	}
	start = len(w.buf)
	w.buf = w.path.appendPath(w.buf, at)
	return start
}

// end takes in the term that was written from start on.
func (w *termWalk) end(start int) error {
	if len(w.spans) == cap(w.spans) {
		w.spans = slices.Grow(w.spans, cap(w.spans))
	}
	var first [8]byte
	copy(first[:], w.buf[start:])
	w.spans = append(w.spans, termSpan{binary.BigEndian.Uint64(first[:]), uint32(start), uint32(len(w.buf))})
	if len(w.buf) <= maxRawTermsBytes {
		return nil
	}
	if err := w.sort(); err != nil {
		return err
	}
	w.spare = w.compact(w.spare[:0])
	w.buf = append(w.buf[:0], w.spare...)
	return nil
}

// sort puts the terms in order and leaves each of them once.
func (w *termWalk) sort() error {
	buf := w.buf
	slices.SortFunc(w.spans, func(a, b termSpan) int {
		if a.first != b.first {
			return cmp.Compare(a.first, b.first)
		}
		return bytes.Compare(buf[a.start:a.end], buf[b.start:b.end])
	})
	kept := w.spans[:0]
	var last []byte
	w.bytes = 0
	for _, s := range w.spans {
		term := buf[s.start:s.end]
		if bytes.Equal(term, last) {
			continue
		}
		kept = append(kept, s)
		w.bytes += len(term)
		last = term
	}
	w.spans = kept
	if w.bytes > maxTermsBytes {
		return ErrTooManyTerms
	}
	return nil
}

// compact appends the terms without what sorting left out, and returns what then
// is the memory they lie in.
func (w *termWalk) compact(dst []byte) []byte {
	dst = slices.Grow(dst, w.bytes)
	for i := range w.spans {
		s := &w.spans[i]
		start := len(dst)
		dst = append(dst, w.buf[s.start:s.end]...)
		s.start, s.end = uint32(start), uint32(len(dst))
	}
	return dst
}
