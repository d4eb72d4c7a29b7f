// SPDX-License-Identifier: MIT

// An index cuts long strings, and has those that begin alike in no order. Where a
// query walks it in order, each run of such rows is put in order here.

package query

import (
	"slices"

	"github.com/mayflydb/mayfly/internal/index"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/sql/datum"
	"github.com/mayflydb/mayfly/internal/store"
)

// alike is a run of index rows of strings that are cut after the same beginning.
type alike struct {
	x      *execution
	resume place
	rows   []alikeRow
	held   int
}

type alikeRow struct {
	place index.Place
	key   datum.Value
}

func (a *alike) takes(p index.Place) bool {
	return a.x.plan.method == orderedScan && p.Value.Cut()
}

func (a *alike) empty() bool { return len(a.rows) == 0 }

// add takes in a row.
func (a *alike) add(p index.Place) error {
	f, live, err := a.x.r.Get(p.Ordinal)
	if err != nil || !live {
		return err
	}
	key := datum.Raw(f.Body)
	for _, step := range a.x.q.Program.OrderBy()[0].Path {
		key = key.Member(step.Name)
	}
	key = key.Detach()
	text, _ := key.AsString()
	a.rows = append(a.rows, alikeRow{index.Place{Value: p.Value.Clone(), Ordinal: p.Ordinal}, key})
	size := len(text) + p.Value.Size() + rowOverhead
	a.held += size
	return a.x.hold(size)
}

// flushBefore ends the run if a place is no part of it.
func (a *alike) flushBefore(p index.Place, yield func(candidate) (bool, error)) (more bool, err error) {
	if len(a.rows) == 0 || a.rows[0].place.Value.Alike(p.Value) {
		return true, nil
	}
	return a.flush(yield)
}

// flush hands on the rows of the run, from the place on where the last page ended.
func (a *alike) flush(yield func(candidate) (bool, error)) (more bool, err error) {
	slices.SortFunc(a.rows, func(p, q alikeRow) int {
		order := datum.Compare(p.key, q.key)
		if order == 0 {
			order = compareOrdinals(p.place.Ordinal, q.place.Ordinal)
		}
		if a.x.plan.order == kv.Reverse {
			order = -order
		}
		return order
	})
	for _, row := range a.rows {
		c := candidate{Found: store.Found{Ordinal: row.place.Ordinal}, value: row.place.Value, key: row.key}
		if a.resume.started() && !a.resume.same(&c) && !a.resume.before(&c, a.x.plan) {
			continue
		}
		var live bool
		if c.Found, live, err = a.x.r.Get(row.place.Ordinal); err != nil || !live {
			return false, err
		}
		if more, err := a.x.found(c, yield); err != nil || !more {
			return false, err
		}
	}
	a.rows = a.rows[:0]
	a.x.release(a.held)
	a.held = 0
	return true, nil
}
