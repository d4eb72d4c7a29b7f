// SPDX-License-Identifier: MIT

// Walking along an index: in its own order, or in the order of ORDER BY.

package query

import (
	"errors"
	"slices"
	"strconv"

	"github.com/mayflydb/mayfly/internal/index"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/sql/datum"
	"github.com/mayflydb/mayfly/internal/store"
)

// walkPath is the items with values in a range, in the order of an index.
type walkPath struct {
	indexPart
	direction kv.Order
	// keyed says that the order is that of ORDER BY.
	keyed bool
	// demanded says that the filter demands a value, so that the index has all items that
	// may have rows. Otherwise the path can be taken only if every item has one.
	demanded bool
	// patience is how many items the scope's partition key has. A walk that has taken as
	// long as reading these is given up for that; 0 is never.
	patience int64
	fact     int // the first condition that the range is of
}

func (w *walkPath) name() string {
	switch {
	case w.keyed && w.composite != nil:
		return "ordered:" + w.composite.id()
	case w.keyed:
		return "ordered"
	case w.composite != nil:
		return "composite:" + w.composite.id()
	}
	return "range:" + strconv.Itoa(w.fact)
}

func (w *walkPath) order() order {
	if w.keyed {
		return byKeys
	}
	return byValue
}

func (w *walkPath) open(x *execution, most int64) (bool, error) {
	if !w.demanded {
		if all, err := x.r.AllHave(w.path); err != nil || !all {
			return false, err
		}
	}
	return w.fits(x, most)
}

// indexPart is the rows of an index with values in a range at a path, or a part of a
// composite index in place of these.
type indexPart struct {
	path      index.Path
	values    index.ValueRange
	composite *compositePart
}

func (p *indexPart) scan() store.IndexScan {
	if p.composite != nil {
		return store.IndexScan{Composite: &p.composite.CompositeRange}
	}
	return store.IndexScan{Path: p.path, Values: p.values}
}

// fits reports whether there are no more than so many rows.
func (p *indexPart) fits(x *execution, most int64) (bool, error) {
	if most == unlimited {
		return true, nil
	}
	rows, err := p.countRows(x, most)
	return rows <= most, err
}

// countRows counts the rows, also those of other partition keys, up to a limit; beyond, it
// returns one more.
func (p *indexPart) countRows(x *execution, most int64) (n int64, err error) {
	s := p.scan()
	s.Within = x.counting(&n, most)
	for _, err := range x.r.Index(s) {
		if err != nil {
			return 0, err
		}
		if n++; n > most {
			break
		}
	}
	return min(n, most+1), nil
}

// counting counts the rows of other partition keys that a scan passes over, up to a
// limit, if the query is about one key.
func (x *execution) counting(n *int64, limit int64) *store.Within {
	if x.q.Scope.Logical == nil {
		return nil
	}
	return &store.Within{Logical: x.q.Scope.Logical, Passed: func(rows int64, _ index.Place) (bool, error) {
		*n += rows
		return *n <= limit, nil
	}}
}

func (w *walkPath) find(x *execution, yield visitor) error {
	s := w.scan()
	s.Order, s.Within, s.Places, s.Visits = w.direction, x.within(), x.endsAnywhere, true
	run := &run{x: x, w: w, from: x.resume()}
	if run.from.started() {
		// The item itself again: perhaps not all its rows are done.
		s.From = index.Place{Value: run.from.Value, Ordinal: run.from.Ordinal}
		if run.takes(s.From) {
			s.From, s.Alike = index.Place{}, s.From
		}
	}
	x.run = run
	var at index.Value
	for hit, err := range x.r.Index(s) {
		if err != nil {
			return err
		}
		x.took(&x.page.Times.Index)
		if hit.EPK != nil {
			x.page.Work.IndexRows++
		}
		if hit.EPK == nil || !x.inScope(hit.EPK) {
			if ends, err := x.passBy(hit.Ordinal, hit.Value); err != nil || ends {
				return err
			}
			continue
		}
		x.met++
		if more, err := run.flushBefore(hit.Place, yield); err != nil || !more {
			return err
		}
		if run.takes(hit.Place) {
			if err := run.add(hit.Place); err != nil {
				return err
			}
			continue
		}
		at.Set(hit.Value)
		if more, err := x.visit(hit.Ordinal, at, yield); err != nil || !more {
			return err
		}
	}
	_, err := run.flush(yield)
	return err
}

// resume is the position where the last page ended. The token's own moves on.
func (x *execution) resume() position {
	p := x.at.position
	p.Value = p.Value.Clone()
	return p
}

// rough reports whether a row of the index does not have all that its item is ordered by.
func (w *walkPath) rough(v index.Value) bool {
	if w.composite != nil {
		return v.Rough()
	}
	return v.Cut()
}

// together reports whether two rough rows are in one run, in which the index has no order.
func (w *walkPath) together(a, b index.Value) bool {
	if w.composite != nil {
		return a.Compare(b) == 0
	}
	return a.Alike(b)
}

// before reports whether a position comes before an item in the order of the walk.
func (w *walkPath) before(x *execution, p *position, c *candidate) bool {
	if len(p.keys) > 0 && len(c.keys) > 0 && w.together(p.Value, c.value) {
		if order := x.q.Program.CompareSortKeys(p.keys, c.keys); order != 0 {
			return order < 0
		}
	} else if order := p.Value.Compare(c.value); order != 0 {
		return (order < 0) == (w.direction == kv.Forward)
	}
	descending := w.direction == kv.Reverse
	if w.composite != nil && w.composite.paths[0].Descending {
		descending = !descending
	}
	if descending {
		return p.Ordinal > c.Ordinal
	}
	return p.Ordinal < c.Ordinal
}

// rowValue returns the value of a row in the index whose item is ordered by such keys. It
// reports false if the walk cannot come by one: what the index has no row for, or what
// the filter excludes, comes before all rows of the walk or after them.
func (w *walkPath) rowValue(keys []datum.Value, ordinal uint64) (index.Value, bool) {
	if w.composite != nil {
		return w.composite.rowValue(keys, ordinal)
	}
	v, ok := scalarOf(keys[0])
	if !ok {
		return index.Value{}, false
	}
	return index.Exactly(v).PlaceOf(ordinal).Value, true
}

// run is a run of rough rows, which the index has in no order: they are put in order here.
type run struct {
	x     *execution
	w     *walkPath
	from  position    // where the page begins
	value index.Value // of the first row
	rows  []runRow
	held  int
}

type runRow struct {
	place index.Place
	keys  []datum.Value
}

// takes reports whether a row is one that has to be put in order.
func (r *run) takes(p index.Place) bool { return r.w.keyed && r.w.rough(p.Value) }

// add takes in a row, if its item is one that the query is about.
func (r *run) add(p index.Place) error {
	value := p.Value.Clone()
	_, err := r.x.visit(p.Ordinal, value, func(c candidate) (bool, error) {
		passes, err := r.x.runner.Filter(datum.Raw(c.Body))
		if err != nil || !passes {
			return true, err
		}
		r.x.matched = true
		keys, err := r.x.runner.AppendSortKeys(nil)
		if err != nil {
			return false, err
		}
		row := sortedRow{keys: keys}
		row.detach()
		if len(r.rows) == 0 {
			r.value = value
		}
		r.rows = append(r.rows, runRow{index.Place{Value: value, Ordinal: p.Ordinal}, row.keys})
		r.held += row.bytes
		return true, r.x.hold(row.bytes)
	})
	return err
}

// flushBefore ends the run if a place is no part of it.
func (r *run) flushBefore(p index.Place, yield visitor) (more bool, err error) {
	if len(r.rows) == 0 || r.w.together(r.value, p.Value) {
		return true, nil
	}
	return r.flush(yield)
}

// flush hands on the rows of the run, from the position on where the page begins.
func (r *run) flush(yield visitor) (more bool, err error) {
	p := r.x.q.Program
	slices.SortFunc(r.rows, func(a, b runRow) int { return compareRows(p, a.keys, b.keys, a.place.Ordinal, b.place.Ordinal) })
	for _, row := range r.rows {
		c := candidate{Found: store.Found{Ordinal: row.place.Ordinal}, value: row.place.Value, keys: row.keys}
		if r.from.started() && !r.from.same(&c) && !r.w.before(r.x, &r.from, &c) {
			continue
		}
		// It is live, as it was when it was taken in.
		if c.Found, _, err = r.x.r.Visit(row.place.Ordinal); err != nil {
			return false, err
		}
		if more, err := yield(c); err != nil || !more {
			return false, err
		}
	}
	r.rows = r.rows[:0]
	r.x.release(r.held)
	r.held = 0
	return true, nil
}

// errLost: a walk along an index has met too many rows of other partition keys.
var errLost = errors.New("the walk is given up")

// within narrows a scan to the logical partition that is asked for, if it is one.
func (x *execution) within() *store.Within {
	if x.q.Scope.Logical == nil {
		return nil
	}
	w := &store.Within{Logical: x.q.Scope.Logical}
	w.Passed = func(rows int64, at index.Place) (bool, error) { return x.pass(rows, at, x.met+w.Gathered) }
	return w
}

// pass counts rows of other partition keys. It reports whether more of the one that is
// asked for may follow: not if an index that has one row for each item has shown as many
// as there are, of which the walk has met so many. Of keys with one beginning that is not known. Where the place is told the
// page may end.
func (x *execution) pass(rows int64, at index.Place, met int64) (more bool, err error) {
	x.took(&x.page.Times.Index)
	more = true
	if w, ok := x.path.(*walkPath); ok && w.patience > 0 {
		most := (w.patience-met+1)*passedPerItem - x.passed // that may be passed before it is given up
		switch {
		case met == w.patience && x.q.Scope.oneKey():
			rows, more = 1, false
		case rows >= most:
			rows, more, err = most, false, errLost
		}
	}
	x.passed += rows
	x.page.Work.IndexRows += rows
	if at.Ordinal == 0 || !more {
		return more, err
	}
	ends, err := x.endAt(at.Ordinal, at.Value)
	return !ends, err
}

// startOver makes the page from all items, after a walk that led nowhere.
func (x *execution) startOver() {
	x.path = allItems{}
	x.at, x.run = token{}, nil
	x.release(x.held)
	x.page = Page{Rows: x.page.Rows[:0], Work: x.page.Work, Times: x.page.Times, Indexes: x.page.Indexes}
	clear(x.seen)
}
