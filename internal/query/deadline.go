// SPDX-License-Identifier: MIT

// When the work for a page ends.
//
//  1. A query whose client has gone, or that has worked for QueryTime, ends with an
//     error: everything that may take long asks look now and then, the reader by rows,
//     expressions by steps.
//  2. A page of rows that are shown as they are found ends after PageTime with what it
//     has, and a token. It ends at a position, which may be one where no row is, and that
//     comes after the position where the page began, in the order in which items are
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

// begins is where a page begins that is not the first: the position, and how many rows of
// the item there are done.
type begins struct {
	position
	rows int
}

// beforeRow reports whether a row of a candidate comes after the beginning of the page.
func (b *begins) beforeRow(c *candidate, rows int) bool {
	return b == nil || !b.same(c) || rows > b.rows
}

// passBy notes that a row was passed of which nothing is shown, and reports whether the
// page ends there.
func (x *execution) passBy(ordinal uint64, value index.Value) (ends bool, err error) {
	if !x.endsAnywhere || !x.due() {
		return false, nil
	}
	return x.endAt(ordinal, value)
}

// endAt ends the page at a row of which nothing is shown, if it should end and can. A
// position in an order is told by an item's keys, so that there must be one.
func (x *execution) endAt(ordinal uint64, value index.Value) (ends bool, err error) {
	if !x.endsAnywhere || !x.overdue() {
		return false, nil
	}
	if r := x.run; r != nil && (len(r.rows) > 0 || r.takes(index.Place{Value: value, Ordinal: ordinal})) {
		return false, nil // in no order
	}
	c := candidate{Found: store.Found{Ordinal: ordinal}}
	if x.path.order() != byOrdinal {
		c.value = value
	}
	if b := x.begins; b != nil && (b.same(&c) || !x.before(&b.position, &c)) {
		return false, nil // no further than where it began
	}
	if x.behind {
		x.catchUp()
		return false, nil
	}
	if x.path.order() == byKeys {
		f, live, err := x.r.Get(ordinal)
		if err != nil || !live {
			return false, err
		}
		if _, err := x.runner.Filter(datum.Raw(f.Body)); err != nil {
			return false, err
		}
	}
	x.at.set(&c, 0)
	return true, x.endPage()
}
