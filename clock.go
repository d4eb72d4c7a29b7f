// SPDX-License-Identifier: MIT

package mayfly

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/engine"
	"github.com/mayflydb/mayfly/internal/kv/pebblekv"
	"github.com/mayflydb/mayfly/internal/store"
)

// Clock is the time of a database, by which its items expire. It can be moved if
// the database was opened with Options.TestClock; setting it back is an error.
type Clock struct {
	c *clock.Clock
}

// Clock returns the database's time.
func (s *Server) Clock() *Clock { return &Clock{s.engine.Clock()} }

// Now returns the time, to the millisecond.
func (c *Clock) Now() time.Time { return time.UnixMilli(c.c.Now()).UTC() }

// Freeze stops the time where it is.
func (c *Clock) Freeze() error { return c.c.Freeze() }

// Set moves the time forward to t. Frozen or not, it stays so.
func (c *Clock) Set(t time.Time) error { return c.c.Set(t.UnixMilli()) }

// Advance moves the time forward by d.
func (c *Clock) Advance(d time.Duration) error { return c.c.Advance(d) }

// Release lets the time go on from where it is.
func (c *Clock) Release() error { return c.c.Release() }

// Confirm says that the wall clock is right, after it jumped: the jump is followed if it
// is held back, and what only it has expired is taken away like the rest.
func (c *Clock) Confirm() error { return c.c.Confirm() }

// RewindOptions say which clock to set back.
type RewindOptions struct {
	// Dir is where the data is. No server may have it open.
	Dir string
	// Force sets the clock back although it is further ahead than the jumps that it has
	// followed explain. Items that were written in the future are then as if they were
	// written now: they may live longer than they should, and no shorter.
	Force bool
	// Progress is told how far it is.
	Progress io.Writer
}

// RewindReport says what a rewind has done.
type RewindReport struct {
	From, To time.Time // the database's time before and after
	Items    int       // that had been written at a wrong time
}

// RewindClock sets the clock of a stopped database back to the wall clock, after it has
// followed one that was wrong. Items that only the wrong time had expired, and that were
// neither purged nor written over, come back; items that were written meanwhile keep the
// life that they have left. If it is interrupted, the database opens only when it has
// been done again, to its end.
func RewindClock(ctx context.Context, o RewindOptions) (RewindReport, error) {
	where := Options{Dir: o.Dir}
	if !exists(where.dataDir()) {
		return RewindReport{}, fmt.Errorf("there is no data in %s", o.Dir)
	}
	db, err := pebblekv.Open(pebblekv.Options{Dir: where.dataDir(), IsIndexKey: store.IsIndexKey, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return RewindReport{}, fmt.Errorf("open the data in %s: %w", o.Dir, err)
	}
	progress := o.Progress
	if progress == nil {
		progress = io.Discard
	}
	told := time.Now()
	done, err := engine.Rewind(ctx, engine.RewindOptions{DB: db, Force: o.Force, Progress: func(c *catalog.Container, items int) {
		if time.Since(told) >= rewindTellEvery {
			told = time.Now()
			fmt.Fprintf(progress, "rewinding container %s of database %s: %d items so far\n", c.ID, c.DatabaseID, items)
		}
	}})
	report := RewindReport{time.UnixMilli(done.FromMs).UTC(), time.UnixMilli(done.ToMs).UTC(), done.Items}
	return report, errors.Join(err, db.Close())
}

// rewindTellEvery is how often a rewind says how far it is.
const rewindTellEvery = 2 * time.Second
