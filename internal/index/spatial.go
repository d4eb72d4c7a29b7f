// SPDX-License-Identifier: MIT

// Spatial entries. A geometry at a path with a spatial index has
//
//	{path}{cell}    one for each cell of its covering; the cell has eight bytes
//
// A geometry is an object with a type and coordinates, or a string that holds one. The
// index does not check whether it is valid: it may yield too many items, but never too
// few, and the reader checks each.

package index

import (
	"encoding/binary"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/geo"
	"github.com/mayflydb/mayfly/internal/value"
)

// maxItemGeometries is how many geometries of an item have a covering. The others have the
// cell geo.Everywhere.
const maxItemGeometries = 1000

// CellRanges returns the ranges of an index with all geometries that may touch one of the
// cells: those that have a cell inside of it, and those that have a cell around it.
func CellRanges(list []geo.Cell) []ValueRange {
	var ranges []ValueRange
	around := map[geo.Cell]bool{}
	for _, c := range list {
		ranges = append(ranges, cellRange(c.First(), c.Last()))
		for _, larger := range c.Around() {
			if !around[larger] {
				around[larger] = true
				ranges = append(ranges, cellRange(larger, larger))
			}
		}
	}
	return ranges
}

func cellRange(first, last geo.Cell) ValueRange {
	return ValueRange{binary.BigEndian.AppendUint64(nil, uint64(first)), binary.BigEndian.AppendUint64(nil, uint64(last)+1), false}
}

// geometries adds the entries of the geometries of o.
func (w *entryWriter) geometries(paths []catalog.SpatialPath, o *value.Object) error {
	walk := spatialWalk{entryWriter: *w, cursor: o.Cursor(), room: maxItemGeometries, budget: geo.CoverBudget} // a copy stays off the heap
	err := walk.object(newSpatialNode(paths), pathOffset{})
	*w = walk.entryWriter
	return err
}

// spatialNode says whether a geometry at a value, or below it, is indexed. nil means that
// none is.
type spatialNode struct {
	here, below bool
	names       map[string]*spatialNode
}

var everySpatial = &spatialNode{here: true, below: true}

func newSpatialNode(paths []catalog.SpatialPath) *spatialNode {
	root := &spatialNode{}
	for _, p := range paths {
		n := root
		for _, name := range p.Path {
			if n.names == nil {
				n.names = map[string]*spatialNode{}
			}
			if n.names[name] == nil {
				n.names[name] = &spatialNode{}
			}
			n = n.names[name]
		}
		n.here, n.below = true, n.below || p.Below
	}
	if root.names == nil {
		root.names = map[string]*spatialNode{}
	}
	for _, name := range catalog.SystemProperties() {
		root.names[name] = nil // a client's values of these are not stored
	}
	return root
}

// property returns the node of a property; nil if nothing in it is indexed.
func (n *spatialNode) property(name []byte) *spatialNode {
	child, named := n.names[string(name)]
	if n.below && !(named && child == nil) {
		return everySpatial
	}
	return child
}

// spatialWalk finds the geometries of an item. It recurses as deep as the item is nested.
type spatialWalk struct {
	entryWriter
	cursor       value.Cursor
	path         pathEncoder
	room, budget int
}

func (w *spatialWalk) value(n *spatialNode, at pathOffset) error {
	switch b := w.cursor.Next(); {
	case b == '{':
		return w.object(n, at)
	case b == '[' && n.below:
		return w.array(n, at)
	case b == '"' && n.here:
		kind, coordinates, ok := geo.Members(w.cursor.Raw())
		if !ok {
			return w.entry(at, geo.Everywhere)
		}
		return w.geometry(at, kind, coordinates)
	}
	w.cursor.Skip()
	return nil
}

// object finds the geometries in an object, which may be a geometry itself.
func (w *spatialWalk) object(n *spatialNode, at pathOffset) error {
	if !w.cursor.Enter() {
		return nil
	}
	kind, coordinates := geo.Kind(0), []byte(nil)
	for {
		name := w.cursor.Name()
		child := n.property(name)
		next := at
		if child != nil {
			next = w.path.property(at, name)
		}
		ahead := w.cursor
		switch {
		case string(name) == "type" && ahead.Next() == '"':
			kind = geo.KindOf(ahead.Text())
		case string(name) == "coordinates" && ahead.Next() == '[':
			coordinates = ahead.Raw()
		}
		if child == nil {
			w.cursor.Skip()
		} else if err := w.value(child, next); err != nil {
			return err
		}
		if !w.cursor.More() {
			break
		}
	}
	if !n.here {
		return nil
	}
	return w.geometry(at, kind, coordinates)
}

func (w *spatialWalk) array(n *spatialNode, at pathOffset) error {
	if !w.cursor.Enter() {
		return nil
	}
	at = w.path.elements(at)
	for {
		if err := w.value(n, at); err != nil {
			return err
		}
		if !w.cursor.More() {
			return nil
		}
	}
}

// geometry adds the entries of an object with a kind and coordinates, if that is a
// geometry.
func (w *spatialWalk) geometry(at pathOffset, kind geo.Kind, coordinates []byte) error {
	if coordinates == nil {
		return nil
	}
	if w.room == 0 {
		return w.entry(at, geo.Everywhere)
	}
	list := geo.ItemCells(kind, coordinates, &w.budget)
	if len(list) > 0 {
		w.room--
	}
	for _, c := range list {
		if err := w.entry(at, c); err != nil {
			return err
		}
	}
	return nil
}

func (w *spatialWalk) entry(at pathOffset, c geo.Cell) error {
	start := w.begin(entryCell)
	w.buf = w.path.appendPath(w.buf, at)
	w.buf = binary.BigEndian.AppendUint64(w.buf, uint64(c))
	return w.end(start)
}
