// SPDX-License-Identifier: MIT

package engine

import (
	"fmt"
	"slices"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/store"
)

// CheckProgress says how far a check is: how many items it has seen, and how many there are.
type CheckProgress struct{ Items, AllItems int64 }

// checkReports is how many items are between two reports of progress.
const checkReports = 1000

// Check checks all rows of a database at rest, and calls report for each problem. It
// calls progress, which may be nil, now and then. An error means that the check could not
// go on.
func Check(db kv.DB, progress func(CheckProgress), report func(problem string)) (store.Amount, error) {
	var totals store.Amount
	f, err := readFormat(db, formatVersion)
	if err != nil {
		return totals, err
	}
	if f.number != 0 && f.number < formatVersion {
		return totals, fmt.Errorf("the data has format %d: start a server on it once, which migrates it to %d, and check it then", f.number, formatVersion)
	}
	state, err := loadClock(db)
	if err != nil {
		return totals, err
	}
	if state.RewindToMs != 0 {
		return totals, clock.ErrRewinding // only some rows are rewound yet
	}
	cat, err := catalog.Open(db, catalog.Options{})
	if err != nil {
		return totals, err
	}
	snap, err := db.Snapshot()
	if err != nil {
		return totals, err
	}
	defer snap.Close()
	if snap, err = store.WithoutSwept(snap); err != nil {
		return totals, err
	}
	if err := cat.Check(snap, report); err != nil {
		return totals, err
	}
	var done CheckProgress
	for _, c := range containersOf(cat) {
		for i := range c.Ranges {
			n, err := store.CountItems(snap, c, c.Ranges[i].ID)
			if err != nil {
				return totals, err
			}
			done.AllItems += n
		}
	}
	if progress == nil {
		progress = func(CheckProgress) {}
	}
	progress(done)
	seen := func() {
		if done.Items++; done.Items%checkReports == 0 {
			progress(done)
		}
	}
	for _, c := range containersOf(cat) {
		for i := range c.Ranges {
			t, err := store.Check(snap, c, c.Ranges[i].ID, seen, report)
			if err != nil {
				return totals, err
			}
			totals = totals.Plus(t)
		}
	}
	progress(done)
	return totals, store.CheckOrphans(snap, func(rid catalog.ContainerRID, index int) bool {
		c, err := cat.Current(rid)
		return err == nil && (c.PositionOf(index) >= 0 || c.Split != nil && slices.Contains(c.Split.Children[:], index))
	}, report)
}
