// SPDX-License-Identifier: MIT

package clock

import (
	"fmt"
	"time"
)

// A test clock is moved by hand. Every move and every Now of a test clock takes mu, so a
// move is a single moment for all callers, and a frozen clock is exact. On the fast path
// a reader could take the time just before a freeze and publish it just after.

// pose is where a test clock stands, and whether it ticks.
type pose struct {
	ms     int64
	frozen bool
}

// Freeze stops the time where it is, at the end of the present millisecond.
func (c *Clock) Freeze() error {
	return c.move(func(at pose) (pose, error) {
		return pose{ms: at.ms, frozen: true}, nil
	})
}

// Release lets a frozen clock tick on from where it is.
func (c *Clock) Release() error {
	return c.move(func(at pose) (pose, error) {
		return pose{ms: at.ms}, nil
	})
}

// Set moves the time forward to ms. A frozen clock stays frozen.
func (c *Clock) Set(ms int64) error {
	return c.move(func(at pose) (pose, error) {
		if ms < at.ms {
			return at, fmt.Errorf("%w: set to %d ms at %d ms", ErrBackwards, ms, at.ms)
		}
		if ms > MaxMs {
			return at, fmt.Errorf("%w: set to %d ms, the largest is %d ms", ErrTooFar, ms, int64(MaxMs))
		}
		return pose{ms: ms, frozen: at.frozen}, nil
	})
}

// Advance moves the time forward by d, rounded down to whole milliseconds. A frozen clock
// stays frozen.
func (c *Clock) Advance(d time.Duration) error {
	return c.move(func(at pose) (pose, error) {
		if d < 0 {
			return at, fmt.Errorf("%w: advance by %v", ErrBackwards, d)
		}
		if d < time.Millisecond {
			return at, fmt.Errorf("%w: advance by %v", ErrTooShort, d)
		}
		next := at.ms + d.Milliseconds() // no overflow: both are below 10^13
		if next > MaxMs {
			return at, fmt.Errorf("%w: advance by %v at %d ms, the largest is %d ms", ErrTooFar, d, at.ms, int64(MaxMs))
		}
		return pose{ms: next, frozen: at.frozen}, nil
	})
}

// move saves the new pose and then takes it. It holds mu throughout: a reader gets the
// time from before the move or from after it, and from after it once move has returned.
func (c *Clock) move(to func(pose) (pose, error)) error {
	if !c.test {
		return ErrNotTestClock
	}
	if c.follow != nil {
		return c.follow.move(c, to)
	}
	c.saver.Lock()
	defer c.saver.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.closed {
		return ErrClosed
	}
	r, wantMs := c.lookLocked()
	at := pose{ms: max(wantMs, c.last.Load()), frozen: c.mu.state.Frozen}
	next, err := to(at)
	if err != nil {
		return err
	}
	if next == at && at.frozen {
		return nil
	}
	if next.frozen && !at.frozen { // at or above every write time while it ticked
		next.ms = min(next.ms+r.stepMs(), MaxMs)
	}

	state := c.mu.state
	state.Frozen = next.frozen
	state.OffsetMs = next.ms - r.WallMs
	state.FloorMs = next.ms
	if !next.frozen {
		state.FloorMs = min(next.ms+ReserveMs, MaxMs)
	}
	err = c.save(state)
	c.settleLocked(state, err)
	if err != nil {
		return fmt.Errorf("save the moved test clock: %w", err)
	}
	c.raise(next.ms)
	return nil
}
