// SPDX-License-Identifier: MIT

// Resuming an ordered query at the values of a row, instead of at a continuation token.
//
// A client that merges the rows of several ranges stops in the middle of a page of each. The
// token that it has of a range begins after that page, or at it, and never in between. So it
// sends to each range the sort keys of the last row that it returned, and the item that the
// row was of.

package query

import (
	"errors"
	"math"

	"github.com/mayflydb/mayfly/internal/sql"
	"github.com/mayflydb/mayfly/internal/sql/datum"
)

// ErrResume is returned for a query without an order, or with another number of sort keys
// than the client sent values.
var ErrResume = errors.New("the query cannot go on at these values")

// Resume is where an ordered query resumes: at the first row whose sort keys do not come
// before Keys.
type Resume struct {
	// Keys are the values, one for each key of the order.
	Keys []datum.Value
	// Exclude skips the rows whose sort keys equal Keys.
	Exclude bool
	// Ordinal skips, among the rows whose sort keys equal Keys, those of items that come
	// before the item with this ordinal; 0 skips none.
	Ordinal uint64
}

// position returns the position at which the page begins. No item need exist there: the item
// of the last row may have expired since.
func (r *Resume) position(p *sql.Program) position {
	first, last := uint64(0), uint64(math.MaxUint64) // which no item has
	if p.LatestFirst() {
		first, last = last, first
	}
	at := position{Ordinal: first, keys: r.Keys, named: true}
	switch {
	case r.Exclude:
		at.Ordinal = last
	case r.Ordinal != 0:
		at.Ordinal = r.Ordinal
	}
	return at
}

// Resumable reports whether a query can resume at values: it has an order of the rows of
// single items.
func Resumable(p *sql.Program) bool {
	return p.OverItems() && p.Input() == nil && p.Ranking() == nil && !p.Grouped() && len(p.OrderBy()) > 0
}

// fits reports whether a query can resume at these values: there are as many as keys.
func (r *Resume) fits(p *sql.Program) bool { return Resumable(p) && len(p.OrderBy()) == len(r.Keys) }

// readPosition decodes the position of the continuation token. If the client also sent the
// values of a row, the page begins at whichever of the two comes later.
func (x *execution) readPosition() error {
	if err := x.readKeys(); err != nil || x.q.Resume == nil {
		return err
	}
	p := x.q.Program
	if !x.q.Resume.fits(p) {
		return ErrResume
	}
	at := x.q.Resume.position(p)
	if !x.at.started() || compareRows(p, x.at.keys, at.keys, x.at.Ordinal, at.Ordinal) < 0 {
		x.at.position, x.at.Rows = at, 0
	}
	return nil
}
