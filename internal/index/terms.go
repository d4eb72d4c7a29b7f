// SPDX-License-Identifier: MIT

// Terms are the entries of the range index. Every scalar of an item that the container's
// policy indexes has a term of its path and its value (termkey.go), and so has every empty
// object and array. The elements of an array share one path.

package index

import (
	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/value"
)

// termWalk finds the terms of an item. It recurses as deep as the item is nested, at most
// [value.MaxNesting].
type termWalk struct {
	entryWriter
	cursor value.Cursor
	path   pathEncoder
}

// terms adds the terms of o.
func (w *entryWriter) terms(x *catalog.IndexPaths, o *value.Object) error {
	walk := termWalk{entryWriter: *w, cursor: o.Cursor()} // a copy stays off the heap
	err := walk.value(x.Root(), pathOffset{})
	*w = walk.entryWriter
	return err
}

// begin writes the path of a term and returns where its entry starts.
func (w *termWalk) begin(at pathOffset) (start int) {
	start = w.entryWriter.begin(entryTerm)
	w.buf = w.path.appendPath(w.buf, at)
	return start
}

// value adds the terms of the value at the cursor.
func (w *termWalk) value(n *catalog.IndexNode, at pathOffset) error {
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

func (w *termWalk) object(n *catalog.IndexNode, at pathOffset) error {
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

func (w *termWalk) array(n *catalog.IndexNode, at pathOffset) error {
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

// empty adds the term of an empty object or array.
func (w *termWalk) empty(n *catalog.IndexNode, at pathOffset, tag byte) error {
	if !n.Empty() {
		return nil
	}
	start := w.begin(at)
	w.buf = append(w.buf, tag)
	return w.end(start)
}
