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

// Check checks all rows of a database at rest, and calls report for each problem. It
// calls progress before each container. An error means that the check could not go on.
func Check(db kv.DB, progress func(c *catalog.Container), report func(problem string)) (store.Amount, error) {
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
	for _, c := range containersOf(cat) {
		progress(c)
		for i := range c.Ranges {
			t, err := store.Check(snap, c, c.Ranges[i].ID, report)
			if err != nil {
				return totals, err
			}
			totals = totals.Plus(t)
		}
	}
	return totals, store.CheckOrphans(snap, func(rid catalog.ContainerRID, index int) bool {
		c, err := cat.Current(rid)
		return err == nil && (c.PositionOf(index) >= 0 || c.Split != nil && slices.Contains(c.Split.Children[:], index))
	}, report)
}
