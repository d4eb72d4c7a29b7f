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

const (
	compositeRange   method = "composite"         // the items with values in a composite index
	compositeOrdered method = "composite ordered" // the same, in the order that was asked for
	compositeCount   method = "composite count"   // the same, without reading an item
)

// compositePlan is the part of a composite index that a plan reads.
type compositePlan struct {
	store.CompositeRange
	paths []catalog.CompositePath
	text  []string // what is said of each path, for people
	// Of an order: the key of each path after those.
	keys    []int
	program *sql.Program
}

func (p *compositePlan) String() string {
	s := ""
	for i, path := range p.paths {
		for _, name := range path.Path {
			s += "/" + name
		}
		if path.Descending {
			s += " desc"
		}
		if i < len(p.text) {
			s += " " + p.text[i]
		}
		if i+1 < len(p.paths) {
			s += ", "
		}
	}
	return s
}

func (p *compositePlan) scan(order kv.Order) store.IndexScan {
	return store.IndexScan{Composite: &p.CompositeRange, Order: order}
}

// fixed returns the one value that the filter, or the scope, holds a path to.
func (c *chooser) fixed(path value.Path) (v value.Scalar, text string, ok bool) {
	for _, f := range c.facts {
		if f.Op == sql.CondEq && len(f.Values) == 1 && f.Path.Is(path) {
			if v, ok := scalarOf(f.Values[0]); ok {
				return v, condText(f), true
			}
		}
	}
	if c.s.Logical == nil {
		return value.Scalar{}, "", false
	}
	for i, p := range c.r.Container().PartitionKey.Paths {
		if pk := c.s.Logical.PartitionKey; i < len(pk) && slices.Equal(p, path) && pk[i].Defined() {
			return pk[i], "= partition key", true
		}
	}
	return value.Scalar{}, "", false
}

// part returns the part of a composite index that the filter is about, and how many of
// its paths that says something of.
func (c *chooser) part(number int, paths []catalog.CompositePath) (*compositePlan, int) {
	p := &compositePlan{CompositeRange: store.CompositeRange{Number: number}, paths: paths}
	for _, path := range paths {
		v, text, ok := c.fixed(path.Path)
		if !ok {
			break
		}
		p.Equal, p.text = append(p.Equal, v), append(p.text, text)
	}
	said := len(p.Equal)
	if said == len(paths) {
		return p, said
	}
	all, found := index.AllValues(), false
	text := ""
	for _, f := range c.facts {
		if v, ok := rangeOfFact(f); ok && f.Path.Is(paths[said].Path) {
			all, found = all.And(v), true
			text += " " + condText(f)
		}
	}
	if found {
		p.Next, p.text = &all, append(p.text, text[1:])
		said++
	}
	return p, said
}

// compositeRange finds the composite index that the filter says most of, if that is more
// than another index knows.
func (c *chooser) compositeRange() *plan {
	var best *plan
	most := 1
	for number, paths := range c.r.Container().IndexedComposites {
		if p, said := c.part(number, paths); said > most {
			most, best = said, c.unsorted(&plan{method: compositeRange, composite: p})
		}
	}
	return best
}

// compositeCount finds a composite index whose rows, of values or a range, are just what
// the filter asks for, so that they can be counted.
func (c *chooser) compositeCount() *plan {
	if !c.p.Condition().Exact || !c.s.whole() && c.s.Logical == nil || slices.ContainsFunc(c.facts, func(f *sql.Condition) bool { return !f.Exact }) {
		return nil
	}
	for number, paths := range c.r.Container().IndexedComposites {
		p, said := c.part(number, paths)
		if said > 1 && c.tellsAll(p) {
			return &plan{method: compositeCount, composite: p, sorted: true}
		}
	}
	return nil
}

// tellsAll reports whether an item is in the part of an index if and only if all facts
// hold for it.
func (c *chooser) tellsAll(p *compositePlan) bool {
	told := 0
	for i, path := range p.paths {
		facts, ranges := 0, 0
		for _, f := range c.facts {
			if !f.Path.Is(path.Path) {
				continue
			}
			facts++
			if _, ok := rangeOfFact(f); ok {
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
	return told == len(c.facts)
}

// compositeOrdered finds the composite index that has the order of the query, and of
// several the one that the filter says most of.
func (c *chooser) compositeOrdered() (best *plan, said int) {
	keys := c.p.OrderBy()
	if len(keys) == 0 || !c.p.Plain() || slices.ContainsFunc(keys, func(k sql.SortKey) bool { return k.Call != nil }) {
		return nil, 0
	}
	for number, paths := range c.r.Container().IndexedComposites {
		p, n := c.part(number, paths)
		if best != nil && n <= said {
			continue
		}
		if order, ok := c.serves(p, keys); ok {
			best, said = &plan{method: compositeOrdered, composite: p, order: order, sorted: true}, n
		}
	}
	return best, said
}

// orSeek chooses between a part of a composite index in order and a look-up whose items
// have to be sorted: that only if they are few, and those of the index are not.
func (c *chooser) orSeek(composed, seek *plan) (*plan, error) {
	if seek == nil || seek.composite != nil {
		return composed, nil
	}
	few, err := c.few(seek)
	if err != nil || !few {
		return composed, err
	}
	if few, err = c.few(composed); err != nil || few {
		return composed, err
	}
	return seek, nil
}

// serves reports whether an index has the order of the keys, in which direction, and
// notes which path has which key.
func (c *chooser) serves(p *compositePlan, keys []sql.SortKey) (kv.Order, bool) {
	p.program = c.p
	k := 0
	skipFixed := func() {
		for k < len(keys) && c.constant(keys[k].Path, p) {
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
	turned := c.p.LatestFirst() != p.paths[0].Descending
	if !known && turned {
		order = kv.Reverse
	}
	return order, (order == kv.Reverse) == turned
}

// constant reports whether all rows that a part of an index leads to have the same value
// at a path.
func (c *chooser) constant(path sql.Path, p *compositePlan) bool {
	return slices.ContainsFunc(p.paths[:len(p.Equal)], func(q catalog.CompositePath) bool { return path.Is(q.Path) })
}

// compositeRows returns how many index rows a composite plan reads; one more than most,
// if there are more.
func (c *chooser) compositeRows(p *plan, most int64) (n int64, err error) {
	s := p.composite.scan(kv.Forward)
	s.Within = c.counting(&n, most)
	for _, err := range c.r.Index(s) {
		if err != nil {
			return n, err
		}
		if n++; n > most {
			break
		}
	}
	return min(n, most+1), nil
}

// compositeBetter reports whether a composite index is better than reading all of the
// scope's partition key, which has so many items.
func (c *chooser) compositeBetter(p *plan, items int64) (bool, error) {
	switch {
	case c.startsWithScope(p):
		return true, nil
	case p.method == compositeOrdered && len(p.composite.Equal) == 0 && p.composite.Next == nil:
		return c.worthWalking(p, items), nil
	}
	if p.method == compositeCount {
		items *= rowsPerItem
	}
	return c.atMost(p, items)
}

// startsWithScope reports whether the part of the index that is read holds items of the
// scope's partition key alone.
func (c *chooser) startsWithScope(p *plan) bool {
	paths := c.r.Container().PartitionKey.Paths
	n := 0
	for n < len(paths) && slices.ContainsFunc(p.composite.paths[:len(p.composite.Equal)], func(q catalog.CompositePath) bool {
		return slices.Equal(q.Path, paths[n])
	}) {
		n++
	}
	return n == len(paths)
}

// countComposed counts the items of a part of a composite index.
func (x *execution) countComposed() (n int64, err error) {
	s := x.plan.composite.scan(kv.Forward)
	s.Within = x.within()
	for hit, err := range x.r.Index(s) {
		if err != nil {
			return 0, err
		}
		x.page.Work.IndexRows++
		if x.inScope(hit.EPK) {
			n++
		}
	}
	return n, nil
}

// composed finds the items by a composite index.
func (x *execution) composed(yield func(candidate) (bool, error)) error {
	s := x.plan.composite.scan(x.plan.order)
	s.Within, s.Places = x.within(), x.places
	run := &roughRun{x: x, resume: x.resume()}
	return x.follow(s, run.resume, run, yield)
}

// roughRun is a run of rows of a composite index that are in no order: they are put in
// order here.
type roughRun struct {
	x      *execution
	resume place
	value  index.Value // that all of them have
	rows   []roughRow
	held   int
}

type roughRow struct {
	ordinal uint64
	keys    []datum.Value
}

func (a *roughRun) takes(p index.Place) bool {
	return a.x.plan.method == compositeOrdered && p.Value.Rough()
}

func (a *roughRun) empty() bool { return len(a.rows) == 0 }

// add takes in a row, if its item is one that the query is about.
func (a *roughRun) add(p index.Place) error {
	f, live, err := a.x.r.Get(p.Ordinal)
	if err != nil || !live {
		return err
	}
	a.x.read(&f)
	passes, err := a.x.runner.Filter(datum.Raw(f.Body))
	if err != nil || !passes {
		return err
	}
	a.x.page.Work.Matched++
	keys, err := a.x.runner.AppendSortKeys(nil)
	if err != nil {
		return err
	}
	row := sortedRow{keys: keys, ordinal: p.Ordinal}
	for i, k := range keys {
		keys[i] = k.Detach()
	}
	row.measure()
	a.value.Set(p.Value)
	a.rows = append(a.rows, roughRow{p.Ordinal, keys})
	a.held += row.bytes
	return a.x.hold(row.bytes)
}

// flushBefore ends the run if a place is no part of it.
func (a *roughRun) flushBefore(p index.Place, yield func(candidate) (bool, error)) (more bool, err error) {
	if len(a.rows) == 0 || a.value.Compare(p.Value) == 0 {
		return true, nil
	}
	return a.flush(yield)
}

// flush hands on the rows of the run, from the place on where the last page ended.
func (a *roughRun) flush(yield func(candidate) (bool, error)) (more bool, err error) {
	p := a.x.q.Program
	slices.SortFunc(a.rows, func(r, s roughRow) int { return compareRows(p, r.keys, s.keys, r.ordinal, s.ordinal) })
	for _, row := range a.rows {
		c := candidate{Found: store.Found{Ordinal: row.ordinal}, value: a.value, keys: row.keys}
		if a.resume.started() && !a.resume.same(&c) && !a.resume.before(&c, a.x.plan) {
			continue
		}
		var live bool
		if c.Found, live, err = a.x.r.Get(row.ordinal); err != nil || !live {
			return false, err
		}
		if more, err := yield(c); err != nil || !more {
			return false, err
		}
	}
	a.rows = a.rows[:0]
	a.x.release(a.held)
	a.held = 0
	return true, nil
}

// compareRows orders two rows by their keys, then in the order of their creation, or the
// opposite.
func compareRows(p *sql.Program, a, b []datum.Value, aOrdinal, bOrdinal uint64) int {
	order := p.CompareSortKeys(a, b)
	if order == 0 {
		if order = compareOrdinals(aOrdinal, bOrdinal); p.LatestFirst() {
			order = -order
		}
	}
	return order
}

// beforeComposed reports whether the place comes before a candidate that a composite
// index has led to.
func (p *place) beforeComposed(c *candidate, pl *plan) bool {
	order := p.Value.Compare(c.value)
	if pl.order == kv.Reverse {
		order = -order
	}
	if order != 0 {
		return order < 0
	}
	if len(p.keys) > 0 && len(c.keys) > 0 {
		if order = pl.composite.program.CompareSortKeys(p.keys, c.keys); order != 0 {
			return order < 0
		}
	}
	order = compareOrdinals(p.Ordinal, c.Ordinal)
	if pl.composite.paths[0].Descending != (pl.order == kv.Reverse) {
		order = -order
	}
	return order < 0
}

// compositeID tells the index of a plan from others.
func (p *plan) compositeID() uint32 {
	if p.composite == nil {
		return 0
	}
	h := fnv.New32a()
	for _, path := range p.composite.paths {
		fmt.Fprintf(h, "%q %t,", path.Path, path.Descending)
	}
	return h.Sum32()
}

// leadsTo reports whether the part of the index that is read has a place for such keys:
// whether they are what the filter says, where it says what they are.
func (p *compositePlan) leadsTo(keys []datum.Value) bool {
	for i, key := range p.program.OrderBy() {
		at := slices.IndexFunc(p.paths[:len(p.Equal)], func(path catalog.CompositePath) bool { return key.Path.Is(path.Path) })
		if at < 0 {
			continue
		}
		if v, ok := scalarOf(keys[i]); !ok || value.Compare(v, p.Equal[at]) != 0 {
			return false
		}
	}
	return true
}

// compositePlace works out where in the plan's index the token's item was.
func (x *execution) compositePlace() {
	p := x.plan.composite
	values := make([]index.Component, 0, len(p.paths))
	for _, v := range p.Equal {
		values = append(values, index.ScalarComponent(v))
	}
	for _, key := range p.keys {
		values = append(values, componentOf(x.at.keys[key]))
	}
	x.at.Value = index.CompositePlace(p.paths, values, x.at.Ordinal).Value
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
