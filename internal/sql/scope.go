// SPDX-License-Identifier: MIT

// Names: which slot of a frame an alias stands for, and what is known about
// what is in it.

package sql

import (
	"slices"

	"github.com/mayflydb/mayfly/internal/sql/syntax"
	"github.com/mayflydb/mayfly/internal/value"
)

// itemSlot is where a frame holds the item.
const itemSlot = 0

// AnyElement is the index of a step to every element of an array at once.
const AnyElement int64 = -1

// Path leads from the item to a value inside it. A step to an element has its
// index, or [AnyElement] where a source of FROM iterates.
type Path []syntax.Step

// Is reports whether the path leads from property to property by these names.
func (p Path) Is(names value.Path) bool {
	return slices.EqualFunc(p, names, func(s syntax.Step, name string) bool { return !s.Element && s.Name == name })
}

// origin says where in the item a value was taken from.
type origin struct {
	known bool
	path  Path
	// built has the properties of an object that a subquery builds, which is not itself a
	// part of the item; nil for any other value.
	built *builtObject
}

type builtObject struct {
	names   []string
	origins []origin
}

// addMember notes a property of an object that is built, if something outside may lead
// into it.
func (o *origin) addMember(s *scope, name string, x code) {
	if s.outer == nil {
		return
	}
	if o.built == nil {
		o.built = &builtObject{}
	}
	o.built.names, o.built.origins = append(o.built.names, name), append(o.built.origins, x.origin)
}

// member returns the origin of a property of an object that is built.
func (b *builtObject) member(s syntax.Step) origin {
	if b == nil || s.Element {
		return origin{}
	}
	if at := slices.Index(b.names, s.Name); at >= 0 {
		return b.origins[at]
	}
	return origin{}
}

// with returns the origin of what steps lead to. The path is copied, for others may lead on
// from the same one.
func (o origin) with(steps ...syntax.Step) origin {
	if len(steps) > 0 && !o.known {
		return o.built.member(steps[0]).with(steps[1:]...)
	}
	if !o.known {
		return o
	}
	if len(o.path) == 0 {
		return origin{known: true, path: slices.Clip(Path(steps))}
	}
	path := make(Path, 0, len(o.path)+len(steps))
	return origin{known: true, path: append(append(path, o.path...), steps...)}
}

// binding is what a name stands for.
type binding struct {
	name    string
	slot    int
	source  int // its position among the sources of its query
	kind    sourceKind
	origin  origin
	derived bool // the value is not a part of the item as it is stored
}

type sourceKind uint8

const (
	sourceItem    sourceKind = iota // the container's items themselves
	sourcePath                      // what a path leads to, one value
	sourceElement                   // the elements of an array
	sourceQuery                     // the rows of a subquery
)

// scope holds the names of one query, inside those of the query around it.
type scope struct {
	outer    *scope
	bindings []binding
	// container is whether the first source names the container: in the query
	// itself, and in a subquery that is the first source of such a query.
	container bool
	// reach is the last source that was asked for since it was set to -1.
	reach int
	// grouping is set while expressions are compiled that are evaluated once per
	// group, and not per row.
	grouping *grouping
	// ranking is set while the scores of ORDER BY RANK are compiled.
	ranking bool
}

// lookup finds a name. The scope it was found in comes with it.
func (s *scope) lookup(name string) (*binding, *scope) {
	for at := s; at != nil; at = at.outer {
		// From the end: a later source hides an earlier one of the same name.
		for i := len(at.bindings) - 1; i >= 0; i-- {
			if at.bindings[i].name == name {
				return &at.bindings[i], at
			}
		}
	}
	return nil, nil
}

// grouping collects what is computed for every group of a query's rows.
type grouping struct {
	keys       []groupKey
	aggregates []aggregate
	order      []groupOrder

	slots   map[string]int // of keys, by fingerprint
	heights map[int]bool   // of keys: expressions of other heights are none
}

// groupKey is one expression of GROUP BY.
type groupKey struct {
	slot   int
	eval   evaluator
	origin origin
}

// groupOrder is one item of ORDER BY, which is one of the keys.
type groupOrder struct {
	key  int
	desc bool
}

// addKey notes a key by a text that the same expression has wherever it stands. Heights keep
// most other expressions from being printed for a comparison.
func (g *grouping) addKey(e syntax.Expr, s *scope, k groupKey) {
	g.keys = append(g.keys, k)
	g.slots[fingerprint(e, s)] = k.slot
	g.heights[syntax.Height(e)] = true
}

// keySlot returns where the value of an expression is found that some grouping
// around has as a key.
func (s *scope) keySlot(e syntax.Expr) (slot int, ok bool) {
	for at := s; at != nil; at = at.outer {
		if at.grouping == nil || !at.grouping.heights[syntax.Height(e)] {
			continue
		}
		if slot, ok := at.grouping.slots[fingerprint(e, s)]; ok {
			return slot, true
		}
	}
	return 0, false
}
