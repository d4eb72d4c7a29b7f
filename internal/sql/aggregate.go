// SPDX-License-Identifier: MIT

// Aggregates: one value made of many. All of them skip undefined, as the service does: a
// property that some items lack must not spoil the sum of the others.

package sql

import (
	"slices"

	"github.com/mayflydb/mayfly/internal/sql/datum"
	"github.com/mayflydb/mayfly/internal/sql/function"
	"github.com/mayflydb/mayfly/internal/sql/syntax"
)

// aggregateOp is an aggregate function.
type aggregateOp uint8

const (
	aggCount aggregateOp = iota
	aggCountIf
	aggSum
	aggAvg
	aggMin
	aggMax
	aggMakeList
	aggMakeSet
)

var aggregateNames = [...]string{
	aggCount: "COUNT", aggCountIf: "COUNTIF", aggSum: "SUM", aggAvg: "AVG",
	aggMin: "MIN", aggMax: "MAX", aggMakeList: "MAKELIST", aggMakeSet: "MAKESET",
}

// aggregateNamed finds an aggregate by its name in upper case.
func aggregateNamed(name string) (op aggregateOp, ok bool) {
	at := slices.Index(aggregateNames[:], name)
	return aggregateOp(max(at, 0)), at >= 0
}

// aggregate is one aggregate of a query: what it is fed with for each row, and
// the slot that its result is put in.
type aggregate struct {
	op   aggregateOp
	eval evaluator
	slot int
	text *TextAggregate // what it asks about texts, if it does
}

// aggregateCall compiles an aggregate: its argument for rows, and itself for
// groups.
func (c *compiler) aggregateCall(op aggregateOp, e *syntax.Call, s *scope) (code, error) {
	if len(e.Args) != 1 {
		return code{}, syntax.Errorf(e.Span, "SC2050", "The %s function requires 1 argument(s).", e.Name)
	}
	arg := e.Args[0]
	// In a subquery the service takes an aggregate of a subquery, which each row has its
	// own of.
	if syntax.Contains(arg, IsAggregate) || s.outer == nil && syntax.Contains(arg, is[*syntax.Subquery]) {
		return code{}, syntax.Errorf(e.Span, "SC2101", "Cannot perform an aggregate function on an expression containing an aggregate or a subquery.")
	}
	grouping := s.grouping
	if grouping == nil {
		return code{}, syntax.Errorf(e.Span, "", "The aggregate function %s is only allowed in the select list.", e.Name)
	}
	s.grouping = nil
	x, err := c.expr(arg, s)
	s.grouping = grouping
	if err != nil {
		return code{}, err
	}
	slot := c.newSlot()
	grouping.aggregates = append(grouping.aggregates, aggregate{op: op, eval: x.eval, slot: slot, text: textAggregateOf(op, x)})
	return code{eval: slotEval(slot)}, nil
}

// maxListBytes is how much text MAKELIST and MAKESET collect at most.
const maxListBytes = function.MaxResultBytes

const (
	// accumulatorBytes and seenBytes are about what an accumulator takes, and a value that
	// a set has seen beside its text.
	accumulatorBytes = 104
	seenBytes        = 48
)

// accumulator is an aggregate in the making.
type accumulator struct {
	count int64 // of values, or of those that are true
	sum   float64
	// spoiled is set by a value of a type that leaves the result undefined.
	spoiled bool
	best    datum.Value
	list    datum.ArrayBuilder
	seen    datum.Set
}

// add takes one value in. COUNTIF counts what is true, and nothing else about it matters.
func (a *accumulator) add(op aggregateOp, v datum.Value, f *frame) {
	if v.IsUndefined() {
		return
	}
	switch op {
	case aggCountIf:
		if v.IsTrue() {
			a.count++
		}
		return
	case aggSum, aggAvg:
		x, ok := v.AsFloat()
		a.sum += x
		a.spoiled = a.spoiled || !ok
	case aggMin:
		a.takeBest(v, -1, f)
	case aggMax:
		a.takeBest(v, +1, f)
	case aggMakeList, aggMakeSet:
		a.collect(op, v, f)
	}
	a.count++
}

// takeBest keeps the value at one end of the order. Arrays and objects are ordered
// for ORDER BY alone: with one of them, MIN and MAX are undefined.
func (a *accumulator) takeBest(v datum.Value, sign int, f *frame) {
	if v.Kind() >= datum.KindArray {
		a.spoiled = true
		return
	}
	if a.best.IsUndefined() || datum.Compare(v, a.best)*sign > 0 {
		f.kept -= a.best.Size()
		a.best = v.Detach()
		f.kept += a.best.Size()
	}
}

// collect takes a value into a list or a set. What both keep is counted, for the caller to
// hold against a budget.
func (a *accumulator) collect(op aggregateOp, v datum.Value, f *frame) {
	if op == aggMakeSet {
		if a.seen == nil {
			a.seen = datum.Set{}
		}
		kept := a.seen.Add(v)
		if kept == 0 {
			return
		}
		f.kept += kept + seenBytes
	}
	if a.list.Size() > maxListBytes {
		f.cx.Fail(function.ErrResultTooLarge)
		return
	}
	before := a.list.Size()
	a.list.Add(v)
	f.kept += 2 * (a.list.Size() - before) // with the room to grow
}

// result returns what the aggregate is so far. AVG of nothing has no value, and SUM of
// nothing is 0, as in the service.
func (a *accumulator) result(op aggregateOp) datum.Value {
	if a.spoiled {
		return datum.Value{}
	}
	switch op {
	case aggCount, aggCountIf:
		return datum.Int(a.count)
	case aggSum:
		return datum.Float(a.sum)
	case aggAvg:
		if a.count == 0 {
			return datum.Value{}
		}
		return datum.Float(a.sum / float64(a.count))
	case aggMin, aggMax:
		return a.best
	}
	return a.list.Snapshot()
}

// Group holds the keys and the aggregates of rows that belong together. It outlives the
// rows, so that it keeps no memory of theirs.
type Group struct {
	keys         []datum.Value
	accumulators []accumulator
}

// newGroup returns a group with the keys of the frame's row, detached from its item.
func newGroup(g *grouping, f *frame) *Group {
	group := &Group{accumulators: make([]accumulator, len(g.aggregates))}
	f.kept += len(g.aggregates) * accumulatorBytes
	for _, k := range g.keys {
		key := k.eval(f).Detach()
		group.keys = append(group.keys, key)
		f.kept += key.Size()
	}
	return group
}

// add takes the frame's row in.
func (group *Group) add(g *grouping, f *frame) {
	for i := range g.aggregates {
		a := &g.aggregates[i]
		group.accumulators[i].add(a.op, a.eval(f), f)
	}
}

// fill puts the group's keys and results where its projection finds them.
func (group *Group) fill(g *grouping, f *frame) {
	for i, k := range g.keys {
		f.slots[k.slot] = group.keys[i]
	}
	for i := range g.aggregates {
		f.slots[g.aggregates[i].slot] = group.accumulators[i].result(g.aggregates[i].op)
	}
}

// appendKey appends a text that the rows of one group share, and only they.
func (g *grouping) appendKey(dst []byte, f *frame) []byte {
	for _, k := range g.keys {
		dst = append(k.eval(f).AppendCanonical(dst), ',')
	}
	return dst
}

// compare orders two groups as ORDER BY asks.
func (g *grouping) compare(a, b *Group) int {
	for _, o := range g.order {
		if c := datum.Compare(a.keys[o.key], b.keys[o.key]); c != 0 {
			if o.desc {
				return -c
			}
			return c
		}
	}
	return 0
}
