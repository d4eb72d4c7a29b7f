// SPDX-License-Identifier: MIT

// When the work for a page ends.
//
//  1. A query whose client has gone, or that has worked for QueryTime, ends with an
//     error: everything that may take long asks look now and then, the reader by rows,
//     expressions by steps.
//  2. A page of rows that are shown as they are found ends after PageTime with what it
//     has, and a token. It ends at a place, which may be one where no row is, and that
//     place comes after the one where the page began, in the order in which items are
//     found. So every page gets on, and pages come to an end, though some may be empty.
//  3. Rows that have to be sorted, grouped or ranked are all found before one is shown,
//     by every page again: what has been found cannot be handed on in a token, so that
//     such a page never ends early.
//  4. DISTINCT meets again what the pages before met. That is no part of PageTime, or a
//     page would not get far.

package query

import (
	"errors"

	"github.com/mayflydb/mayfly/internal/index"
	"github.com/mayflydb/mayfly/internal/sql/datum"
	"github.com/mayflydb/mayfly/internal/store"
)

// errPageEnds: the page has ended, and its token is made.
var errPageEnds = errors.New("the page ends here")

// look says whether the query must end, and why.
func (x *execution) look() error {
	if err := x.ctx.Err(); err != nil {
		return err
	}
	if x.q.QueryTime > 0 && x.q.Elapsed()-x.q.Began > x.q.QueryTime {
		return ErrQueryTime
	}
	return nil
}

// late reports now and then whether a page that can end should.
func (x *execution) late() bool { return x.due() && x.overdue() }

// due reports whether it is time for another look.
func (x *execution) due() bool {
	every := checkRows
	if x.q.every > 0 {
		every = x.q.every
	}
	x.ticks++
	return x.ticks%every == 0
}

func (x *execution) overdue() bool {
	return x.q.PageTime > 0 && x.q.Elapsed()-x.began > x.q.PageTime
}

// catchUp notes that the page has come to where it goes on.
func (x *execution) catchUp() {
	x.behind = false
	x.began = x.q.Elapsed()
}

// begins is where a page begins that is not the first: the place, and how many rows of
// the item there are done.
type begins struct {
	place
	rows int
}

// beforeRow reports whether a row of a candidate comes after the beginning of the page.
func (b *begins) beforeRow(c *candidate, rows int) bool {
	return b == nil || !b.same(c) || rows > b.rows
}

// beforePlace reports whether a place comes after the beginning of the page.
func (b *begins) beforePlace(c *candidate, p *plan) bool {
	return b == nil || !b.same(c) && b.before(c, p)
}

// passBy notes that a place was passed where nothing is shown, and reports whether the
// page ends there.
func (x *execution) passBy(ordinal uint64, value index.Value) (ends bool, err error) {
	if !x.places || !x.due() {
		return false, nil
	}
	return x.endAt(ordinal, value)
}

// endAt ends the page at a place where nothing is shown, if it should end and can. A
// place in an order is told by an item's keys, so that there must be one.
func (x *execution) endAt(ordinal uint64, value index.Value) (ends bool, err error) {
	c := candidate{Found: store.Found{Ordinal: ordinal}, value: value}
	if !x.plan.method.valued() {
		c.value = index.Value{}
	}
	if !x.places || !x.overdue() {
		return false, nil
	}
	if x.loose != nil && (!x.loose.empty() || x.loose.takes(index.Place{Value: value, Ordinal: ordinal})) {
		return false, nil // in no order
	}
	if !x.begins.beforePlace(&c, x.plan) {
		return false, nil
	}
	if x.behind {
		x.catchUp()
		return false, nil
	}
	if x.plan.method.keyed() {
		f, live, err := x.r.Get(ordinal)
		if err != nil || !live {
			return false, err
		}
		if _, err := x.runner.Filter(datum.Raw(f.Body)); err != nil {
			return false, err
		}
	}
	x.at.set(&c, 0)
	return true, x.end()
}

// valued reports whether a place is one in an index by value.
func (m method) valued() bool { return m.keyed() || m == indexRange || m == compositeRange }
