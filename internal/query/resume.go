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

// place returns the place before the first row of an item that is still to come. Whether
// there is such an item does not matter.
func (r *Resume) place(p *sql.Program) place {
	first, last := uint64(0), uint64(math.MaxUint64) // which no item has
	if p.LatestFirst() {
		first, last = last, first
	}
	at := place{Ordinal: first, keys: r.Keys, named: true}
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

// goOnAt goes on where the client says, unless the token is further.
func (x *execution) goOnAt(r *Resume) error {
	p := x.q.Program
	if !r.fits(p) {
		return ErrResume
	}
	at := r.place(p)
	if x.at.started() && compareRows(p, x.at.keys, at.keys, x.at.Ordinal, at.Ordinal) >= 0 {
		return nil
	}
	if x.plan.method == nothing {
		return nil
	}
	x.plan.patience = 0 // as of a token
	x.at.place, x.at.Rows = at, 0
	if !x.plan.sorted || !x.plan.leadsTo(at.keys) {
		x.sortAll()
		return nil
	}
	x.at.Method, x.at.Index = x.plan.method, x.plan.compositeID()
	return nil
}

// leadsTo reports whether the index of an ordered plan has a place for such values. What
// it has none for is in no row that the plan finds, but comes before them or after.
func (p *plan) leadsTo(keys []datum.Value) bool {
	if p.composite == nil {
		_, ok := scalarOf(keys[0])
		return ok
	}
	return p.composite.leadsTo(keys)
}

// sortAll sorts what all items have, after the place that there is.
func (x *execution) sortAll() {
	x.at.Method = methodSort
	if !x.plan.sorted {
		return
	}
	x.plan = &plan{method: fullScan}
	if x.q.Scope.Logical != nil {
		x.plan.method = logicalScan
	}
}
