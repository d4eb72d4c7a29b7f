// SPDX-License-Identifier: MIT

// Finding the items that may have rows.

package query

import (
	"bytes"
	"errors"
	"iter"
	"slices"

	"github.com/mayflydb/mayfly/internal/index"
	"github.com/mayflydb/mayfly/internal/sql"
	"github.com/mayflydb/mayfly/internal/sql/datum"
	"github.com/mayflydb/mayfly/internal/store"
)

// candidate is an item that may have rows. Its slices are valid until the next.
type candidate struct {
	store.Found
	value index.Value // its place in the index by which it was found
	// key is what it is ordered by, if that is a string that the index has cut.
	key datum.Value
	// keys are what it is ordered by, if a composite index does not hold all of that.
	keys []datum.Value
}

// candidates calls yield with the items that the plan finds after the token's place,
// which is itself among them if some of its rows are not done.
func (x *execution) candidates(yield func(candidate) (more bool, err error)) error {
	switch x.plan.method {
	case nothing:
		return nil
	case fullScan:
		return x.scan(yield)
	case logicalScan:
		return x.logical(yield)
	case pointFind:
		return x.point(yield)
	case manyFinds:
		return x.many(yield)
	case indexSeek, indexUnion, indexIntersection:
		return x.seek(yield)
	case cellSeek:
		return x.inCells(yield)
	}
	if x.plan.composite != nil {
		return x.composed(yield)
	}
	return x.walk(yield)
}

// from returns the ordinal after which to go on by ordinals.
func (x *execution) from() uint64 {
	if !x.at.place.started() {
		return 0
	}
	return x.at.Ordinal - 1 // the item itself again: perhaps not all its rows are done
}

// found hands an item on.
func (x *execution) found(c candidate, yield func(candidate) (bool, error)) (bool, error) {
	x.took(&x.page.Times.Load)
	x.read(&c.Found)
	if err := x.input(len(c.Body)); err != nil {
		return false, err
	}
	x.matched = false
	more, err := yield(c)
	if x.matched {
		x.page.Work.Matched++
	}
	x.took(&x.page.Times.Run)
	return more, err
}

// input takes memory for an item that is looked at, unless it has been for a larger one.
func (x *execution) input(bytes int) error {
	if bytes <= x.largest {
		return nil
	}
	if err := x.q.Memory.Take(x.ctx, int64(bytes-x.largest)); err != nil {
		return err
	}
	x.largest = bytes
	return nil
}

// read counts an item that was read.
func (x *execution) read(f *store.Found) {
	x.page.Work.Items++
	x.page.Work.Bytes += int64(len(f.Body))
}

func (x *execution) inScope(epk []byte) bool { return x.q.Scope.holds(epk) }

// holds reports whether an effective partition key is one that was asked for.
func (s *Scope) holds(epk []byte) bool {
	if s.Logical != nil {
		return s.Logical.Holds(epk)
	}
	return (s.MinEPK == nil || bytes.Compare(epk, s.MinEPK) >= 0) && (s.MaxEPK == nil || bytes.Compare(epk, s.MaxEPK) < 0)
}

func (x *execution) scan(yield func(candidate) (bool, error)) error {
	for f, err := range x.r.Scan(x.from()) {
		if err != nil {
			return err
		}
		if f.Body == nil || !x.inScope(f.EPK) {
			if ends, err := x.passBy(f.Ordinal, index.Value{}); err != nil || ends {
				return err
			}
			continue
		}
		if more, err := x.found(candidate{Found: f}, yield); err != nil || !more {
			return err
		}
	}
	return nil
}

func (x *execution) logical(yield func(candidate) (bool, error)) error {
	for after := x.from(); ; {
		ordinals, more, err := x.r.Logical(*x.q.Scope.Logical, after)
		if err != nil {
			return err
		}
		for _, ordinal := range ordinals {
			after = ordinal
			f, live, err := x.r.Visit(ordinal)
			if err != nil {
				return err
			}
			if !live {
				if ends, err := x.passBy(ordinal, index.Value{}); err != nil || ends {
					return err
				}
				continue
			}
			if more, err := x.found(candidate{Found: f}, yield); err != nil || !more {
				return err
			}
		}
		if !more {
			return nil
		}
	}
}

func (x *execution) point(yield func(candidate) (bool, error)) error {
	l := x.q.Scope.Logical
	f, live, err := x.r.Find(store.Key{EPK: l.EPK, PartitionKey: l.PartitionKey, ID: x.plan.id})
	if err != nil || !live || f.Ordinal <= x.from() {
		return err
	}
	_, err = x.found(candidate{Found: f}, yield)
	return err
}

// visit reads an item that an index has named, by a value if the place of a page is
// one, and hands it on if it lives. It reports whether to go on.
func (x *execution) visit(ordinal uint64, value index.Value, yield func(candidate) (bool, error)) (bool, error) {
	f, live, err := x.r.Visit(ordinal)
	if err != nil || !live {
		return err == nil, err
	}
	return x.found(candidate{Found: f, value: value}, yield)
}

// visitAll reads the items of those ordinals, which are in order, that are still to
// come.
func (x *execution) visitAll(ordinals []uint64, yield func(candidate) (bool, error)) error {
	done, _ := slices.BinarySearch(ordinals, x.from()+1)
	ordinals = ordinals[done:]
	if c := x.q.Program.Condition(); c.Exact && c.Op != sql.CondAnd {
		x.expected = int64(len(ordinals)) // the filter says no more than that
	}
	for _, ordinal := range ordinals {
		if more, err := x.visit(ordinal, index.Value{}, yield); err != nil || !more {
			return err
		}
	}
	return nil
}

// seek finds the items of a set, in the order of ordinals.
func (x *execution) seek(yield func(candidate) (bool, error)) error {
	s := x.plan.set
	found := s.found
	switch {
	case found != nil:
		x.page.Work.IndexRows += found.rows
	case len(s.ranges) != 1:
		var err error
		if found, err = x.gather(s, x.from()); err != nil {
			return err
		}
	}
	x.took(&x.page.Times.Index)
	if found != nil {
		return x.visitAll(found.ordinals, yield)
	}
	return x.seekRows(yield)
}

// seekRows is seek along the rows of the index.
func (x *execution) seekRows(yield func(candidate) (bool, error)) error {
	for ordinal, err := range x.ordinals(x.from()) {
		if errors.Is(err, errPageEnds) {
			return nil
		}
		if err != nil {
			return err
		}
		x.took(&x.page.Times.Index)
		if more, err := x.visit(ordinal, index.Value{}, yield); err != nil || !more {
			return err
		}
	}
	return nil
}

// ordinals returns those of the plan's set after one, in order, by the index.
func (x *execution) ordinals(after uint64) iter.Seq2[uint64, error] {
	s := x.plan.set
	if len(s.ranges) == 1 {
		return x.only(s, after)
	}
	return func(yield func(uint64, error) bool) { x.merged(s, after, yield) }
}

// merged walks over a set that has parts, all of them at once.
func (x *execution) merged(s *set, after uint64, yield func(uint64, error) bool) {
	c := x.open(s)
	defer c.close()
	for {
		ordinal, err := c.seek(after + 1)
		if err != nil {
			yield(0, err)
			return
		}
		if ordinal == 0 || !yield(ordinal, nil) {
			return
		}
		after = ordinal
	}
}

// gatheredPerValue is how many rows there may be for each value that is looked up, for
// their ordinals to be gathered and sorted. To walk over the values at once takes a
// walk of its own for each, which costs more than so many rows.
const gatheredPerValue = 8

// gather looks up one value of a union after the other and returns the ordinals after
// one. It returns nil if there are too many, or if the set is no union of values.
func (x *execution) gather(s *set, after uint64) (*hits, error) {
	leaves, ok := s.leaves(nil)
	if !ok {
		return nil, nil
	}
	most := int64(gatheredPerValue * s.seeks())
	found := &hits{}
	take := func(hit store.Hit, err error) bool { // of all values, where a loop would be one for each
		if found.err = err; err != nil {
			return false
		}
		x.page.Work.IndexRows++
		found.rows++
		if x.inScope(hit.EPK) {
			found.ordinals = append(found.ordinals, hit.Ordinal)
		}
		return found.rows <= most
	}
	for _, leaf := range leaves {
		for _, v := range leaf.ranges {
			if x.r.Index(leaf.rowsAfter(v, after))(take); found.err != nil || found.rows > most {
				return nil, found.err
			}
		}
	}
	slices.Sort(found.ordinals)
	found.ordinals = slices.Compact(found.ordinals) // an item may have several of the values
	return found, nil
}

// only returns the ordinals of a seek for one value.
func (x *execution) only(s *set, after uint64) iter.Seq2[uint64, error] {
	return func(yield func(uint64, error) bool) {
		scan := s.rowsAfter(s.ranges[0], after)
		scan.Within, scan.Places = x.within(), x.places
		x.r.Index(scan)(func(hit store.Hit, err error) bool {
			if err != nil {
				yield(0, err)
				return false
			}
			if hit.EPK != nil {
				x.page.Work.IndexRows++
			}
			if hit.EPK != nil && x.inScope(hit.EPK) {
				return yield(hit.Ordinal, nil)
			}
			ends, err := x.passBy(hit.Ordinal, index.Value{})
			if err != nil {
				yield(0, err)
			}
			return err == nil && !ends
		})
	}
}

// walk finds the items by the order of an index.
func (x *execution) walk(yield func(candidate) (bool, error)) error {
	s := store.IndexScan{Path: x.plan.path, Values: x.plan.ranges[0], Order: x.plan.order, Within: x.within(), Places: x.places}
	run := &alike{x: x, resume: x.resume()}
	return x.follow(s, run.resume, run, yield)
}

// looseRun puts those rows of an index in order that it has in none.
type looseRun interface {
	// takes reports whether a row is one of these.
	takes(p index.Place) bool
	// add takes in a row.
	add(p index.Place) error
	// flushBefore hands on the rows that it has, if a place is no part of their run, and
	// flush all of them.
	flushBefore(p index.Place, yield func(candidate) (bool, error)) (more bool, err error)
	flush(yield func(candidate) (bool, error)) (more bool, err error)
	// empty reports whether it has none.
	empty() bool
}

// follow visits the items of the rows of an index, in its order, from where it has come.
func (x *execution) follow(s store.IndexScan, from place, run looseRun, yield func(candidate) (bool, error)) error {
	if from.started() {
		// The item itself again: perhaps not all its rows are done.
		s.From = index.Place{Value: from.Value, Ordinal: from.Ordinal}
		if run.takes(s.From) {
			s.From, s.Alike = index.Place{}, s.From
		}
	}
	x.loose = run
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

// resume is the place where the last page ended. The token's own moves on.
func (x *execution) resume() place {
	p := x.at.place
	p.Value = p.Value.Clone()
	return p
}

// errLost: a walk along an index has met too many rows of other partition keys.
var errLost = errors.New("the walk is given up")

// within narrows a scan to the logical partition that is asked for, if it is one.
func (x *execution) within() *store.Within {
	if x.q.Scope.Logical == nil {
		return nil
	}
	return &store.Within{Logical: x.q.Scope.Logical, Passed: x.pass}
}

// pass counts rows of other partition keys. It reports whether more of the one that is
// asked for may follow: not if an index that has one row for each item has shown as many
// as there are. Of keys with one beginning that is not known. Where the place is told the
// page may end.
func (x *execution) pass(rows int64, at index.Place) (more bool, err error) {
	x.took(&x.page.Times.Index)
	more = true
	if p := x.plan.patience; p > 0 {
		most := (p-x.met+1)*passedPerItem - x.passed // that may be passed before it is given up
		switch {
		case x.met == p && x.plan.method.keyed() && !x.q.Scope.Logical.Prefix:
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

// startOver makes the page in another way than the one that led nowhere.
func (x *execution) startOver() {
	x.plan = &plan{method: logicalScan, sorted: len(x.q.Program.OrderBy()) == 0}
	x.at, x.loose = token{}, nil
	x.release(x.held)
	x.page = Page{Rows: x.page.Rows[:0], Work: x.page.Work, Times: x.page.Times, Indexes: x.page.Indexes}
	clear(x.seen)
}
