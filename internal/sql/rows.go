// SPDX-License-Identifier: MIT

// Runner: the steps that an executor puts together to a page of results. For
// each item it asks for the rows; for each row for its projection, its sort keys,
// or the group it belongs to; and for each group for its projection.

package sql

import (
	"slices"

	"github.com/mayflydb/mayfly/internal/sql/datum"
	"github.com/mayflydb/mayfly/internal/sql/function"
	"github.com/mayflydb/mayfly/internal/sql/syntax"
)

// Runner executes one program in one goroutine.
type Runner struct {
	p  *Program
	f  frame
	cx function.Context
	// few is room for the slots, of which most programs have no more.
	few [2]datum.Value
}

// NewRunner returns a runner in a context like the one given.
func (p *Program) NewRunner(cx *function.Context) *Runner {
	r := &Runner{p: p, cx: *cx}
	r.cx.Planar = p.planar
	r.f = frame{cx: &r.cx, args: p.args, slots: r.few[:min(p.slots, len(r.few))]}
	if p.slots > len(r.few) {
		r.f.slots = make([]datum.Value, p.slots)
	}
	return r
}

// Rows calls yield for every row that FROM makes of an item and WHERE lets pass,
// until it returns false. The other methods speak of that row while yield runs. A
// program that is not [Program.OverItems] takes no item: it has one row.
func (r *Runner) Rows(item datum.Value, yield func() bool) error {
	r.f.slots[itemSlot] = item
	r.f.rows = 0
	r.p.main.rows(&r.f, 0, yield)
	return r.f.cx.Err()
}

// Filter reports whether an item has a row. If it is true and the program is
// [Program.Plain], the item's row is the one that the other methods speak of.
func (r *Runner) Filter(item datum.Value) (bool, error) {
	main := r.p.main
	if !r.p.Plain() {
		found := false
		err := r.Rows(item, func() bool {
			found = true
			return false
		})
		return found, err
	}
	r.f.slots[itemSlot] = item
	r.f.rows = 0
	if err := r.f.cx.Tick(); err != nil {
		return false, err
	}
	for i := range main.where {
		if !main.where[i].eval(&r.f).IsTrue() {
			return false, r.f.cx.Err()
		}
	}
	return true, r.f.cx.Err()
}

// Project returns what the row is in the result: undefined if it is not there.
func (r *Runner) Project() (datum.Value, error) {
	v := r.p.main.project.eval(&r.f)
	return v, r.finish(v)
}

// AppendProjection appends what the row is in the result, as JSON. If it is not
// there, ok is false and nothing is appended.
func (r *Runner) AppendProjection(dst []byte) (_ []byte, ok bool, err error) {
	p := &r.p.main.project
	if p.value != nil {
		v := p.value(&r.f)
		if err := r.finish(v); err != nil || v.IsUndefined() {
			return dst, false, err
		}
		return v.AppendJSON(dst), true, nil
	}
	start := len(dst)
	dst = append(dst, '{')
	for i := range p.items {
		v := p.items[i].eval(&r.f)
		if err := r.finish(v); err != nil {
			return dst[:start], false, err
		}
		if v.IsUndefined() {
			continue
		}
		if len(dst) > start+1 {
			dst = append(dst, ',')
		}
		dst = v.AppendJSON(append(dst, p.items[i].label...))
		if !r.f.fits(len(dst) - start) {
			return dst[:start], false, r.f.cx.Err()
		}
	}
	return append(dst, '}'), true, nil
}

// finish returns why a value cannot be part of a result.
func (r *Runner) finish(v datum.Value) error {
	if !v.Finite() {
		r.f.cx.Fail(syntax.Errorf(r.p.query.Span, "4001", "The result contains a number that is not finite and has no JSON representation."))
	}
	return r.f.cx.Err()
}

// AppendSortKeys appends the row's values of the items of ORDER BY. They may share
// memory with the item: see [Value.Detach].
func (r *Runner) AppendSortKeys(dst []datum.Value) ([]datum.Value, error) {
	for i := range r.p.main.order {
		dst = append(dst, r.p.main.order[i].eval(&r.f).Ordered())
	}
	return dst, r.f.cx.Err()
}

// CompareSortKeys orders two rows by what AppendSortKeys has appended for them.
func (p *Program) CompareSortKeys(a, b []datum.Value) int {
	for i := range p.main.order {
		c := datum.Compare(a[i], b[i])
		if c == 0 {
			continue
		}
		if p.main.order[i].Desc {
			return -c
		}
		return c
	}
	return 0
}

// LatestFirst reports whether rows that are equal in all keys come with the latest item
// first: they go in the direction of the first key, however they are found. Clients count
// on it: they skip rows by it when they resume.
func (p *Program) LatestFirst() bool { return len(p.main.order) > 0 && p.main.order[0].Desc }

// OfOneScore reports whether it is one of the queries that a client sends for ORDER BY RANK,
// each for one of the scores.
func (p *Program) OfOneScore() bool {
	if len(p.main.order) == 0 || p.main.order[0].Call == nil {
		return false
	}
	name := p.main.order[0].Call.Name
	return name == function.TextScoreOf || name == function.VectorScoreOf
}

// AppendGroupKey appends bytes that the rows of one group share, and only they.
func (r *Runner) AppendGroupKey(dst []byte) ([]byte, error) {
	return r.p.main.grouping.appendKey(dst, &r.f), r.f.cx.Err()
}

// NewGroup returns a group without rows that has the keys of this row. Without
// GROUP BY there are no keys and need be no row.
func (r *Runner) NewGroup() (*Group, error) {
	return newGroup(r.p.main.grouping, &r.f), r.f.cx.Err()
}

// AddToGroup takes this row into a group.
func (r *Runner) AddToGroup(g *Group) error {
	g.add(r.p.main.grouping, &r.f)
	return r.f.cx.Err()
}

// Kept returns how many more bytes groups keep than when it was last asked, or fewer.
func (r *Runner) Kept() int {
	n := r.f.kept
	r.f.kept = 0
	return n
}

// CountRows takes n rows into a group of which nothing is asked but how many rows it
// has.
func (r *Runner) CountRows(g *Group, n int64) {
	for i := range g.accumulators {
		g.accumulators[i].count += n
	}
}

// ProjectGroup returns what a group is in the result: undefined if it is not
// there.
func (r *Runner) ProjectGroup(g *Group) (datum.Value, error) {
	g.fill(r.p.main.grouping, &r.f)
	return r.Project()
}

// CompareGroups orders two groups as ORDER BY asks. Those with equal keys of it are
// equal.
func (p *Program) CompareGroups(a, b *Group) int { return p.main.grouping.compare(a, b) }

// OrdersGroups reports whether there is an ORDER BY for groups.
func (p *Program) OrdersGroups() bool { return p.Grouped() && len(p.main.grouping.order) > 0 }

// Query returns what the program was compiled from.
func (p *Program) Query() *syntax.Query { return p.query }

// Params returns the values of parameters that it was compiled with.
func (p *Program) Params() map[string]datum.Value { return p.params }

// Computes reports whether a property of items is computed, whatever is stored by its
// name.
func (p *Program) Computes(name string) bool { return slices.Contains(p.computed, name) }

// Input returns the program whose rows are the items of this one, or nil if it
// runs over the container's items.
func (p *Program) Input() *Program { return p.input }

// OverItems reports whether there is a FROM; without one, a query has one row.
func (p *Program) OverItems() bool { return p.rowed }

// Plain reports whether every item makes one row at most, which is the item.
func (p *Program) Plain() bool {
	return len(p.main.sources) == 1 && p.main.sources[0].kind == sourceItem && p.main.sources[0].slot == itemSlot
}

// Grouped reports whether rows are collected in groups: whether there are
// aggregates or GROUP BY.
func (p *Program) Grouped() bool { return p.main.grouping != nil }

// HasGroupKeys reports whether there is a GROUP BY. Without, there is one group,
// even of no rows.
func (p *Program) HasGroupKeys() bool { return p.Grouped() && len(p.main.grouping.keys) > 0 }

// Distinct reports whether equal rows of the result are one.
func (p *Program) Distinct() bool { return p.main.distinct }

// SelectsValue reports whether the rows are values that may be of any kind.
func (p *Program) SelectsValue() bool { return p.query.Select.Value != nil }

// OrderBy returns the sort keys.
func (p *Program) OrderBy() []SortKey { return p.main.order }

// Slice returns which rows of the result are wanted.
func (p *Program) Slice() Slice { return p.slice }

// Condition returns what is known about the items that have a row. It is never
// nil.
func (p *Program) Condition() *Condition { return p.condition }

// Tested returns the paths that SELECT VALUE tests with a function which an index can
// answer, such as STARTSWITH(c.name, "A").
func (p *Program) Tested() []Path { return p.main.tested }

// GroupPaths returns the properties of GROUP BY, or nil if it has something else too.
func (p *Program) GroupPaths() []Path {
	if p.main.grouping == nil {
		return nil
	}
	var paths []Path
	for _, k := range p.main.grouping.keys {
		if !k.origin.single() {
			return nil
		}
		paths = append(paths, k.origin.path)
	}
	return paths
}

// UDFs returns the names of the user-defined functions that are called.
func (p *Program) UDFs() []string { return p.udfs }
