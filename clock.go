// SPDX-License-Identifier: MIT

package mayfly

import (
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
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

// Confirm accepts a jump of the wall clock that was too large to be followed.
func (c *Clock) Confirm() error { return c.c.Confirm() }
