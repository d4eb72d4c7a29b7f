// SPDX-License-Identifier: MIT

package clock

import "time"

// Mode says what drives the time.
type Mode string

const (
	// ModeWall: time is the wall clock's.
	ModeWall Mode = "wall"
	// ModeStandingStill: the wall clock is behind the time, or the floor is reached
	// and cannot be saved (Status.SaveError).
	ModeStandingStill Mode = "standing still"
	// ModeGuarded: the wall clock jumped too far ahead; time goes on at the pace of
	// the monotonic clock.
	ModeGuarded Mode = "guarded"
	// ModeTest: a test clock that ticks.
	ModeTest Mode = "test"
	// ModeTestFrozen: a test clock that is frozen.
	ModeTestFrozen Mode = "test frozen"
	// ModeClosed: time stands still because the clock was closed.
	ModeClosed Mode = "closed"
)

// Status is the clock at one moment.
type Status struct {
	NowMs   int64
	WallMs  int64
	SkewMs  int64 // WallMs less NowMs: above 0 the wall clock is ahead
	FloorMs int64 // saved: where time would go on after a crash
	Mode    Mode

	PurgeTrusted bool
	// PurgeReason says why purge does not trust the clock; empty when it does.
	PurgeReason string
	// PurgeWait is the least time until it does; 0 when it does, or when that waits
	// for something other than time.
	PurgeWait time.Duration

	// SaveError is why the latest save of the floor failed; nil when it did not.
	SaveError error
}

// Status reads the time, as Now does, and says how it came about.
func (c *Clock) Status() Status {
	c.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	r, wantMs := c.lookLocked()
	reason, waitMs := c.doubtLocked(r)
	s := Status{
		NowMs:        c.timeLocked(wantMs),
		WallMs:       r.WallMs,
		FloorMs:      c.mu.floorMs,
		Mode:         c.modeLocked(wantMs),
		PurgeTrusted: reason == "",
		PurgeReason:  reason,
		PurgeWait:    time.Duration(waitMs) * time.Millisecond,
		SaveError:    c.mu.saveErr,
	}
	s.SkewMs = s.WallMs - s.NowMs
	return s
}

func (c *Clock) modeLocked(wantMs int64) Mode {
	switch {
	case c.mu.closed:
		return ModeClosed
	case c.mu.state.Frozen:
		return ModeTestFrozen
	case c.test:
		return ModeTest
	case c.mu.guard.guarded:
		return ModeGuarded
	case c.mu.guard.behind, c.mu.saveErr != nil && wantMs > c.mu.floorMs:
		return ModeStandingStill
	}
	return ModeWall
}
