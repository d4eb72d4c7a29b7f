// SPDX-License-Identifier: MIT

// Running compiled queries: rows of a FROM, and what subqueries make of theirs.
//
// Rows are passed to a function as they are made, and never collected here: an item may make
// a million rows, of which EXISTS wants one. A function that has enough returns false.

package sql

import (
	"fmt"
	"math"
	"slices"

	"github.com/mayflydb/mayfly/internal/sql/datum"
	"github.com/mayflydb/mayfly/internal/sql/function"
	"github.com/mayflydb/mayfly/internal/sql/syntax"
)

// maxRowsPerItem is how many rows the sources of a query, and those of its
// subqueries, make of one item at most.
const maxRowsPerItem = 1 << 20

// frame is the state of one execution: what is in the slots.
type frame struct {
	cx      *function.Context
	slots   []datum.Value
	args    []argument
	stack   []datum.Value // arguments of the calls that are under way
	scratch []byte
	rows    int // of this item
	kept    int // bytes that groups have kept, since [Runner.Kept] was asked
}

// open returns what is in a slot. Whatever is done with it, all of its text may be
// read, for what is looked up may be far inside.
func (f *frame) open(slot int) datum.Value {
	v := f.slots[slot]
	if v.Size() >= function.TickBytes && !f.cx.Read(v.Size(), 1) {
		return datum.Undefined()
	}
	return v
}

// fits stops the query if a value has grown too large, and reports whether it may
// go on growing.
func (f *frame) fits(size int) bool {
	if size > function.MaxResultBytes {
		f.cx.Fail(function.ErrResultTooLarge)
	}
	return f.cx.Err() == nil
}

// callUDF calls a user-defined function. Its failure ends the query: an undefined value in
// its place would look like an answer.
func (f *frame) callUDF(name string, args []datum.Value, at syntax.Span) datum.Value {
	if f.cx.UDF == nil {
		return f.cx.Fail(syntax.Errorf(at, "", "The user-defined function '%s' does not exist.", name))
	}
	v, err := f.cx.UDF(name, args)
	if err != nil {
		return f.cx.Fail(fmt.Errorf("user-defined function %q: %w", name, err))
	}
	if !f.fits(v.Size()) {
		return datum.Undefined()
	}
	return v
}

// step counts a row and reports whether there may be more.
func (f *frame) step() bool {
	f.rows++
	if f.rows > maxRowsPerItem {
		f.cx.Fail(syntax.Errorf(syntax.Span{}, "", "The query makes more than %d rows of one item.", maxRowsPerItem))
	}
	return f.cx.Tick() == nil
}

// rows calls emit for the rows that the sources from the given one on make of
// what is in the slots, and that pass the filter. It returns false if emit did,
// or if the execution must end.
func (b *block) rows(f *frame, at int, emit func() bool) bool {
	// What the sources so far decide is tested before the next one is opened.
	if at > 0 || len(b.sources) == 0 {
		if !f.step() {
			return false
		}
		if !b.passes(f, at-1) {
			return f.cx.Err() == nil
		}
	}
	if at == len(b.sources) {
		return emit() && f.cx.Err() == nil
	}
	src := &b.sources[at]
	switch {
	case src.query != nil:
		return src.query.run(f, func(v datum.Value) bool {
			if src.kind == sourceElement && v.Kind() == datum.KindArray {
				return b.elements(f, at, v, emit)
			}
			f.slots[src.slot] = v
			return b.rows(f, at+1, emit)
		})
	case src.kind == sourceElement:
		return b.elements(f, at, src.from(f), emit)
	case src.from != nil:
		f.slots[src.slot] = src.from(f)
	}
	if f.slots[src.slot].IsUndefined() {
		return f.cx.Err() == nil
	}
	return b.rows(f, at+1, emit)
}

// elements is rows for a source that iterates over an array.
func (b *block) elements(f *frame, at int, array datum.Value, emit func() bool) bool {
	slot := b.sources[at].slot
	element, i, ok := array.ElementAt(datum.FirstElement)
	for ok {
		f.slots[slot] = element
		if !b.rows(f, at+1, emit) {
			return false
		}
		element, i, ok = array.ElementAt(i)
	}
	return f.cx.Err() == nil
}

// passes tests the part of the filter that needs the given source and none after
// it. The first source's part has also what needs none.
func (b *block) passes(f *frame, at int) bool {
	for i := range b.where {
		if max(b.where[i].reach, 0) == max(at, 0) && !b.where[i].eval(f).IsTrue() {
			return false
		}
	}
	return true
}

// run calls emit for the rows of a subquery's result. It returns false if emit
// did, or if the execution must end.
func (b *block) run(f *frame, emit func(datum.Value) bool) bool {
	// Rows are compared by their canonical text, which is kept: its size is bounded.
	if b.distinct {
		all := emit
		seen, size := datum.Set{}, 0
		emit = func(v datum.Value) bool {
			if !f.cx.Read(v.Size(), 1) {
				return false
			}
			kept := seen.Add(v)
			size += kept
			return f.fits(size) && (kept == 0 || all(v))
		}
	}
	if b.grouping != nil {
		return b.runGroups(f, func(add func() bool) bool { return b.rows(f, 0, add) }, maxGroups, emit)
	}
	return b.rows(f, 0, func() bool {
		v := b.project.eval(f)
		return v.IsUndefined() || emit(v)
	})
}

// maxGroups is how many groups a subquery may have. All are in memory at
// once.
const maxGroups = 1 << 16

// runGroups collects the rows that feed makes, and calls emit for the groups in the order of
// ORDER BY. It returns false if emit did, or if the execution must end.
func (b *block) runGroups(f *frame, feed func(add func() bool) bool, limit int, emit func(datum.Value) bool) bool {
	groups := map[string]*Group{}
	var order []*Group
	var key []byte
	if len(b.grouping.keys) == 0 {
		// Without GROUP BY there is one group, even of no rows.
		order = append(order, newGroup(b.grouping, f))
		groups[""] = order[0]
	}
	more := feed(func() bool {
		key = b.grouping.appendKey(key[:0], f)
		group := groups[string(key)]
		if group == nil {
			if len(order) == limit {
				f.cx.Fail(syntax.Errorf(syntax.Span{}, "", "A subquery has more than %d groups.", limit))
				return false
			}
			group = newGroup(b.grouping, f)
			groups[string(key)] = group
			order = append(order, group)
		}
		group.add(b.grouping, f)
		return true
	})
	slices.SortStableFunc(order, b.grouping.compare)
	for i := 0; more && i < len(order); i++ {
		order[i].fill(b.grouping, f)
		if v := b.project.eval(f); !v.IsUndefined() {
			more = emit(v)
		}
	}
	return more && f.cx.Err() == nil
}

// eval returns the projected value of the frame's row or group. The size is checked after
// each property, because a few of them can hold many copies of an item.
func (p *projection) eval(f *frame) datum.Value {
	if p.value != nil {
		return p.value(f)
	}
	var b datum.ObjectBuilder
	for i := range p.items {
		b.Set(p.items[i].name, p.items[i].eval(f))
		if !f.fits(b.Size()) {
			return datum.Undefined()
		}
	}
	return b.Value()
}

// subquery compiles a subquery in an expression. It asks for no more rows than decide its
// value: one for EXISTS, two to see that there is more than one.
func (c *compiler) subquery(e *syntax.Subquery, s *scope) (code, error) {
	b, err := c.block(e.Query, &scope{outer: s}, false)
	if err != nil {
		return code{}, err
	}
	switch e.Kind {
	case syntax.Exists:
		return code{yes: b.whenAnyRow(), eval: func(f *frame) datum.Value {
			rows, _ := b.last(f, 1)
			return datum.Bool(rows > 0)
		}}, nil
	case syntax.All:
		return code{eval: func(f *frame) datum.Value { return datum.Bool(b.all(f)) }}, nil
	case syntax.Array:
		return code{eval: b.array}, nil
	case syntax.First:
		return code{eval: func(f *frame) datum.Value {
			_, row := b.last(f, 1)
			return row
		}}, nil
	case syntax.Last:
		return code{eval: func(f *frame) datum.Value {
			_, row := b.last(f, math.MaxInt)
			return row
		}}, nil
	}
	return code{eval: func(f *frame) datum.Value {
		rows, row := b.last(f, 2)
		if rows > 1 {
			return f.cx.Fail(syntax.Errorf(e.Span, "", "The cardinality of a scalar subquery result set cannot be greater than one."))
		}
		return row
	}}, nil
}

// last computes rows up to a limit, and returns how many there are and the last of them.
func (b *block) last(f *frame, limit int) (rows int, row datum.Value) {
	b.run(f, func(v datum.Value) bool {
		rows, row = rows+1, v
		return rows < limit
	})
	return rows, row
}

// all reports whether there is no row for which the filter is false.
func (b *block) all(f *frame) bool {
	// The filter is what is asked here, and not what rows are left out by.
	open := *b
	open.where = nil
	holds := true
	open.rows(f, 0, func() bool {
		for i := range b.where {
			holds = holds && !b.where[i].eval(f).IsFalse()
		}
		return holds
	})
	return holds
}

// array collects all rows, up to the size that a value may have.
func (b *block) array(f *frame) datum.Value {
	var list datum.ArrayBuilder
	b.run(f, func(v datum.Value) bool {
		list.Add(v)
		return f.fits(list.Size())
	})
	return list.Value()
}
