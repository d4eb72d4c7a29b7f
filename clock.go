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

// Clock is the time of a database, by which its items expire. It can be moved forward if
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

// Set moves the time forward to t. A frozen clock stays frozen.
func (c *Clock) Set(t time.Time) error { return c.c.Set(t.UnixMilli()) }

// Advance moves the time forward by d.
func (c *Clock) Advance(d time.Duration) error { return c.c.Advance(d) }

// Release lets the time go on from where it is.
func (c *Clock) Release() error { return c.c.Release() }

// Confirm states that the wall clock is right after a jump: the database follows the jump
// if it has not yet, and items that only the jump has expired may be purged.
func (c *Clock) Confirm() error { return c.c.Confirm() }

// RewindOptions are the options of RewindClock.
type RewindOptions struct {
	// Dir is the directory of the data. No server may have it open.
	Dir string
	// Force sets the clock back even if it is ahead by more than the jumps that it has
	// followed. Items written in the future then count as written now: they may live
	// longer than they should, but never shorter.
	Force bool
	// Progress gets a line of progress every few seconds; nil for none.
	Progress io.Writer
}

// RewindReport is the result of RewindClock.
type RewindReport struct {
	From, To time.Time // the database's time before and after
	Items    int       // rewritten, since they were written at a wrong time
}

// RewindClock sets the clock of a stopped database back to the wall clock, after it has
// followed a wall clock that was wrong. Items that only the wrong time had expired come
// back, unless they were purged or overwritten. Items written meanwhile keep the lifetime
// that they have left. After an interrupted rewind the database opens only when another
// rewind has completed.
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

// rewindTellEvery is the time between two lines of progress.
const rewindTellEvery = 2 * time.Second
