// SPDX-License-Identifier: MIT

package clock

import (
	"fmt"
	"time"
)

// Mode says what drives the time.
type Mode string

const (
	// ModeWall: time is the wall clock's.
	ModeWall Mode = "wall"
	// ModeAhead: the wall clock is behind; time goes on ahead of it, at the pace of the
	// boot clock.
	ModeAhead Mode = "ahead"
	// ModeHeld: the wall clock jumped too far ahead to be followed at once; time goes
	// on at the pace of the boot clock.
	ModeHeld Mode = "held"
	// ModeStandingStill: the floor is reached and cannot be saved (Status.SaveError).
	ModeStandingStill Mode = "standing still"
	// ModeTest: a test clock that ticks.
	ModeTest Mode = "test"
	// ModeTestFrozen: a test clock that is frozen.
	ModeTestFrozen Mode = "test frozen"
	// ModeEngine: time is that of the engine that several nodes share.
	ModeEngine Mode = "engine"
	// ModeClosed: time stands still because the clock was closed.
	ModeClosed Mode = "closed"
)

// What operators read when the time is not simply the wall clock's.
const (
	adviceAhead        = "database time is ahead of the wall clock, and goes on there: if the wall clock is right, stop the server and run mayfly clock rewind; if it is wrong, set it right"
	adviceHeld         = "the wall clock jumped by more than a day: it is followed after ten minutes, unless it returns; if it is right, run mayfly clock confirm"
	adviceEngineBehind = "the engine's clock stepped back: database time is ahead of it, and goes at half its pace until the engine's clock is there; if that clock is wrong, set it right"
	adviceEngineHeld   = "the engine's clock jumped by more than seven days: the time goes on without the jump on all nodes, until it goes back; if the engine's clock is right, run mayfly clock confirm"
	adviceEngineDoubt  = "the engine's clock stepped ahead, or all nodes were off for long: items that expired only because of that are hidden, and will be purged and reported after a day; if the engine's clock is right, run mayfly clock confirm"
	adviceDoubt        = "the wall clock jumped, or the machine was restarted: items that expired only because of that are hidden, and will be purged and reported after a day; if the wall clock is right, run mayfly clock confirm"
)

// Stamp returns a time in RFC 3339, in UTC and to the millisecond.
func Stamp(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }

// Moment is the time of an answer, for people and for programs.
type Moment struct {
	Now   string `json:"now"`
	NowMs int64  `json:"nowMs"`
}

// At returns the moment of a time.
func At(ms int64) Moment { return Moment{Stamp(ms), ms} }

// Status is the state of the clock at one moment. Operators get it as JSON.
type Status struct {
	Moment
	WallMs int64 `json:"wallMs"`
	Mode   Mode  `json:"mode"`
	// HorizonMs is the time up to which expired items may be purged, and Trusted says
	// that it is NowMs: no jump is in doubt.
	HorizonMs int64 `json:"horizonMs"`
	Trusted   bool  `json:"purgeTrusted"`
	// AheadMs is how far the time is ahead of the wall clock, in ModeAhead.
	AheadMs int64 `json:"aheadMs,omitempty"`
	// Notice says what is unusual, and what to do about it; empty if nothing is unusual.
	Notice string `json:"reason,omitempty"`

	SkewMs  int64 `json:"-"` // WallMs less NowMs: above 0 the wall clock is ahead
	FloorMs int64 `json:"-"` // saved: where time would go on after a crash
	// DoubtLeft is how long jumps are still in doubt at least. It does not count down
	// while the wall clock is not followed.
	DoubtLeft time.Duration `json:"-"`
	// SaveError is the error of the latest save of the floor; nil if it succeeded.
	SaveError error `json:"-"`
}

// Status reads the time, as Now does, and returns it with its mode and horizon.
func (c *Clock) Status() Status {
	if c.follow != nil {
		return c.follow.status(c)
	}
	c.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	r, wantMs := c.lookLocked()
	_, leftMs := c.mu.guard.doubtMs()
	s := Status{
		Moment:    At(c.timeLocked(wantMs)),
		WallMs:    r.WallMs,
		FloorMs:   c.mu.floorMs,
		Mode:      c.modeLocked(wantMs),
		DoubtLeft: time.Duration(leftMs) * time.Millisecond,
		SaveError: c.mu.saveErr,
	}
	s.SkewMs = s.WallMs - s.NowMs
	s.HorizonMs = c.horizonLocked(s.NowMs)
	s.Trusted = s.HorizonMs == s.NowMs
	if s.Mode == ModeAhead {
		s.AheadMs = -s.SkewMs
	}
	s.Notice = s.notice()
	return s
}

func (s *Status) notice() string {
	lag := time.Duration(s.NowMs-s.HorizonMs) * time.Millisecond
	switch {
	case s.Mode == ModeAhead:
		return fmt.Sprintf("%s (ahead by %v)", adviceAhead, time.Duration(s.AheadMs)*time.Millisecond)
	case s.Mode == ModeHeld:
		return adviceHeld
	case s.HorizonMs < s.NowMs:
		return fmt.Sprintf("%s (jumped by %v, %v left)", adviceDoubt, lag, s.DoubtLeft.Round(time.Second))
	}
	return ""
}

func (c *Clock) modeLocked(wantMs int64) Mode {
	switch {
	case c.mu.closed:
		return ModeClosed
	case c.mu.state.Frozen:
		return ModeTestFrozen
	case c.test:
		return ModeTest
	case c.mu.saveErr != nil && wantMs > c.mu.floorMs:
		return ModeStandingStill
	case c.mu.guard.mode == holding:
		return ModeHeld
	case c.mu.guard.mode == ahead:
		return ModeAhead
	}
	return ModeWall
}
