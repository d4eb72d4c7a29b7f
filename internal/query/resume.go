// SPDX-License-Identifier: MIT

// Going on where a client says, and not a token of ours. A client that has merged rows
// of several ranges has a token of the page that it took the last of them from, at best.
// It says of what values its last row was, to each range, and which row.

package query

import (
	"errors"
	"math"

	"github.com/mayflydb/mayfly/internal/sql"
	"github.com/mayflydb/mayfly/internal/sql/datum"
)

// ErrResume: the query has no order, or another one than what a client wants to go on at.
var ErrResume = errors.New("the query cannot go on at these values")

// Resume is where an ordered query goes on: with the rows that do not come before these
// values.
type Resume struct {
	// Keys are the values, one for each key of the order.
	Keys []datum.Value
	// Exclude leaves out the rows that have just these.
	Exclude bool
	// Ordinal is that of the item with which rows begin that have just these; 0 is with
	// the first.
	Ordinal uint64
}

// position returns the position before the first row of an item that is still to come.
// Whether there is such an item does not matter.
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

// fits reports whether a query can go on so.
func (r *Resume) fits(p *sql.Program) bool {
	return p.OverItems() && p.Input() == nil && p.Ranking() == nil && !p.Grouped() && len(p.OrderBy()) > 0 && len(p.OrderBy()) == len(r.Keys)
}

// readPosition finds out what the keys of the token stand for, and goes on where the
// client says, if that is further.
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
