// SPDX-License-Identifier: MIT

// Composite indexes: walking items in the order of several properties, and finding those
// with certain values at some of them and a range of values at the next.
//
// An index serves an order if, without the properties that the filter holds to one value,
// both are the same, or the very opposite. Every item has a row in a composite index,
// whatever it lacks, so that nothing has to be known of the values.

package query

import (
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/index"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/sql"
	"github.com/mayflydb/mayfly/internal/sql/datum"
	"github.com/mayflydb/mayfly/internal/store"
	"github.com/mayflydb/mayfly/internal/value"
)

// compositePart is the part of a composite index that a path reads.
type compositePart struct {
	store.CompositeRange
	paths []catalog.CompositePath
	said  int // how many paths the filter, or the scope, says something of
	// Of an order: the number of the key of each path after those of Equal, and of the
	// key, if there is one, of each of those.
	keys      []int
	equalKeys []int
}

// fixed returns the one value that the filter, or the scope, holds a path to.
func (pl *planner) fixed(path value.Path) (v value.Scalar, ok bool) {
	for _, f := range pl.facts {
		if f.Op == sql.CondEq && len(f.Values) == 1 && f.Path.Is(path) {
			if v, ok := scalarOf(f.Values[0]); ok {
				return v, true
			}
		}
	}
	if pl.scope.Logical == nil {
		return value.Scalar{}, false
	}
	for i, p := range pl.container.PartitionKey.Paths {
		if pk := pl.scope.Logical.PartitionKey; i < len(pk) && slices.Equal(p, path) && pk[i].Defined() {
			return pk[i], true
		}
	}
	return value.Scalar{}, false
}

// part returns the part of a composite index that the filter is about.
func (pl *planner) part(number int) *compositePart {
	paths := pl.container.IndexedComposites[number]
	p := &compositePart{CompositeRange: store.CompositeRange{Number: number}, paths: paths}
	for _, path := range paths {
		v, ok := pl.fixed(path.Path)
		if !ok {
			break
		}
		p.Equal = append(p.Equal, v)
	}
	p.said = len(p.Equal)
	if p.said == len(paths) {
		return p
	}
	all, found := index.AllValues(), false
	for _, f := range pl.facts {
		if v, ok := rangeOfFact(f); ok && f.Path.Is(paths[p.said].Path) {
			all, found = all.And(v), true
		}
	}
	if found {
		p.Next = &all
		p.said++
	}
	return p
}

// compositeRange finds the composite index that the filter says most of, if that is more
// than another index knows.
func (pl *planner) compositeRange() *compositePart {
	var best *compositePart
	for number := range pl.container.IndexedComposites {
		if p := pl.part(number); p.said > 1 && (best == nil || p.said > best.said) {
			best = p
		}
	}
	return best
}

// compositeCount finds a composite index whose rows, of values or a range, are just what
// the filter asks for, so that they can be counted.
func (pl *planner) compositeCount() *countPath {
	if slices.ContainsFunc(pl.facts, func(f *sql.Condition) bool { return !f.Exact }) {
		return nil
	}
	for number := range pl.container.IndexedComposites {
		if p := pl.part(number); p.said > 1 && pl.tellsAll(p) {
			return &countPath{indexPart: indexPart{composite: p}}
		}
	}
	return nil
}

// tellsAll reports whether an item is in the part of an index if and only if all facts
// hold for it.
func (pl *planner) tellsAll(p *compositePart) bool {
	told := 0
	for i, path := range p.paths {
		facts, ranges := 0, 0
		for _, f := range pl.facts {
			if !f.Path.Is(path.Path) {
				continue
			}
			facts++
			if bounds(f) {
				ranges++
			}
		}
		told += facts
		switch {
		case i < len(p.Equal) && (facts > 1 || !index.Exactly(p.Equal[i]).Exact()):
			return false
		case i == len(p.Equal) && facts > 0 && (ranges < facts || !p.Next.Exact()):
			return false
		case i > len(p.Equal) && facts > 0:
			return false
		}
	}
	return told == len(pl.facts)
}

// compositeOrdered finds the composite index that has the order of the query, and of
// several the one that the filter says most of.
func (pl *planner) compositeOrdered() *walkPath {
	keys := pl.program.OrderBy()
	if len(keys) == 0 || !pl.program.Plain() || slices.ContainsFunc(keys, func(k sql.SortKey) bool { return k.Call != nil }) {
		return nil
	}
	var best *walkPath
	for number := range pl.container.IndexedComposites {
		p := pl.part(number)
		if best != nil && p.said <= best.composite.said {
			continue
		}
		if direction, ok := pl.serves(p, keys); ok {
			best = &walkPath{indexPart: indexPart{composite: p}, direction: direction, keyed: true, demanded: true}
		}
	}
	return best
}

// serves reports whether an index has the order of the keys, in which direction, and
// notes which path has which key.
func (pl *planner) serves(p *compositePart, keys []sql.SortKey) (kv.Order, bool) {
	p.equalKeys = make([]int, len(p.Equal))
	for i, path := range p.paths[:len(p.Equal)] {
		p.equalKeys[i] = slices.IndexFunc(keys, func(k sql.SortKey) bool { return k.Path.Is(path.Path) })
	}
	k := 0
	skipFixed := func() {
		for k < len(keys) && slices.ContainsFunc(p.paths[:len(p.Equal)], func(q catalog.CompositePath) bool { return keys[k].Path.Is(q.Path) }) {
			k++
		}
	}
	order, known := kv.Forward, false
	for _, path := range p.paths[len(p.Equal):] {
		if skipFixed(); k == len(keys) || !keys[k].Path.Is(path.Path) {
			return 0, false
		}
		direction := kv.Forward
		if keys[k].Desc != path.Descending {
			direction = kv.Reverse
		}
		if known && direction != order {
			return 0, false
		}
		order, known = direction, true
		p.keys = append(p.keys, k)
		k++
	}
	if skipFixed(); k < len(keys) {
		return 0, false
	}
	// Items that are equal come as LatestFirst says.
	turned := pl.program.LatestFirst() != p.paths[0].Descending
	if !known && turned {
		order = kv.Reverse
	}
	return order, (order == kv.Reverse) == turned
}

// startsWithScope reports whether the part of the index that is read holds items of the
// scope's partition key alone.
func (pl *planner) startsWithScope(p *compositePart) bool {
	return !slices.ContainsFunc(pl.container.PartitionKey.Paths, func(path value.Path) bool { return !p.fixes(path) })
}

// fixes reports whether all rows of the part have the same value at a path.
func (p *compositePart) fixes(path value.Path) bool {
	return slices.ContainsFunc(p.paths[:len(p.Equal)], func(q catalog.CompositePath) bool { return slices.Equal(q.Path, path) })
}

// id tells the index from others.
func (p *compositePart) id() string {
	h := fnv.New32a()
	for _, path := range p.paths {
		fmt.Fprintf(h, "%q %t,", path.Path, path.Descending)
	}
	return fmt.Sprintf("%x", h.Sum32())
}

// rowValue returns the value of a row whose item is ordered by such keys, if the part has
// rows for them: if they are what the filter says, where it says what they are.
func (p *compositePart) rowValue(keys []datum.Value, ordinal uint64) (index.Value, bool) {
	values := make([]index.Component, 0, len(p.paths))
	for i, v := range p.Equal {
		if k := p.equalKeys[i]; k >= 0 {
			if key, ok := scalarOf(keys[k]); !ok || value.Compare(key, v) != 0 {
				return index.Value{}, false
			}
		}
		values = append(values, index.ScalarComponent(v))
	}
	for _, k := range p.keys {
		values = append(values, componentOf(keys[k]))
	}
	return index.CompositePlace(p.paths, values, ordinal).Value, true
}

// componentOf returns a value as a composite index has it.
func componentOf(v datum.Value) index.Component {
	switch v.Kind() {
	case datum.KindArray:
		return index.ArrayComponent()
	case datum.KindObject:
		return index.ObjectComponent()
	}
	scalar, _ := scalarOf(v) // undefined, if it is none
	return index.ScalarComponent(scalar)
}
