// SPDX-License-Identifier: MIT

package clock

import (
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"
)

// A clock on a shared engine has no source. Its time is that of the latest moment, a look
// at the engine's time and at the clock row, which package cluster takes and passes on. The
// floor is in the node's row. All that an operator or a test changes is in the clock row.

// FollowOptions are the parameters of Follow.
type FollowOptions struct {
	// Test allows moves of the time, for all nodes.
	Test bool
	// Change replaces the clock row by what edit makes of it at a time of the engine. It
	// calls edit again if the row has changed meanwhile. When it returns nil, the row is
	// durable, and the clock was passed a moment that was begun after it was.
	Change func(edit func(row Shared, engineMs int64) (Shared, error)) error
	// Logger gets a line when trouble with the engine's time begins or ends; nil logs
	// nothing.
	Logger *slog.Logger
}

// follower is the part of a clock without a source.
type follower struct {
	change func(edit func(row Shared, engineMs int64) (Shared, error)) error
	seen   atomic.Pointer[seenMoment]
}

// seenMoment is the latest moment. It is immutable.
type seenMoment struct {
	row      Shared
	engineMs int64
}

// Follow returns a clock whose time is the highest that was passed to Reach.
func Follow(o FollowOptions) *Clock {
	c := &Clock{test: o.Test, logger: o.Logger, follow: &follower{change: o.Change}}
	if c.logger == nil {
		c.logger = slog.New(slog.DiscardHandler)
	}
	c.follow.seen.Store(&seenMoment{})
	return c
}

// Reach passes a moment to a clock without a source: the clock row and the engine's time
// of one look, and the time that the node may use. Calls do not overlap.
func (c *Clock) Reach(row Shared, engineMs, nowMs int64) {
	was := c.follow.seen.Load()
	c.follow.seen.Store(&seenMoment{row, engineMs})
	c.raise(min(max(nowMs, 0), MaxMs))
	if was.row == row {
		return
	}
	switch held := row.ShiftMs < 0; {
	case held && was.row.ShiftMs >= 0:
		c.logger.Warn("clock: "+adviceEngineHeld, "engineMs", engineMs, "heldMs", -row.ShiftMs)
	case !held && was.row.ShiftMs < 0:
		c.logger.Warn("clock: the engine's time is followed again", "engineMs", engineMs)
	case row.ShiftMs > 0 && row.ShiftFromMs != was.row.ShiftFromMs:
		c.logger.Warn("clock: "+adviceEngineBehind, "engineMs", engineMs, "aheadMs", row.shift(engineMs))
	}
	if row.doubt(engineMs) > was.row.doubt(engineMs) {
		c.logger.Warn("clock: "+adviceEngineDoubt, "engineMs", engineMs, "doubtMs", row.doubt(engineMs))
	}
}

// now returns the time of the latest moment. A time that stands still is exact.
func (f *follower) now(c *Clock) (int64, Reading) {
	seen, t := f.seen.Load(), c.last.Load()
	return t, Reading{WallMs: seen.engineMs, Floored: !seen.row.Frozen(t)}
}

func (f *follower) horizon(c *Clock) int64 {
	seen := f.seen.Load()
	return seen.row.horizon(seen.engineMs, c.last.Load())
}

func (f *follower) status(c *Clock) Status {
	seen, t := f.seen.Load(), c.last.Load()
	row := seen.row
	s := Status{Moment: At(t), WallMs: seen.engineMs, SkewMs: seen.engineMs - t, Mode: ModeEngine}
	s.HorizonMs = row.horizon(seen.engineMs, t)
	s.Trusted = s.HorizonMs == t
	if !s.Trusted {
		s.DoubtLeft = time.Duration(row.GapUntilMs-row.corrected(seen.engineMs)) * time.Millisecond
	}
	shift := row.shift(seen.engineMs)
	switch {
	case row.Frozen(t):
		s.Mode = ModeTestFrozen
	case shift < 0:
		s.Mode, s.Notice = ModeHeld, adviceEngineHeld
	case shift > 0:
		s.Mode, s.AheadMs = ModeAhead, shift
		s.Notice = fmt.Sprintf("%s (ahead by %v)", adviceEngineBehind, time.Duration(shift)*time.Millisecond)
	case c.test:
		s.Mode = ModeTest
	}
	if s.Notice == "" && !s.Trusted {
		s.Notice = fmt.Sprintf("%s (stepped by %v, %v left)", adviceEngineDoubt, time.Duration(t-s.HorizonMs)*time.Millisecond, s.DoubtLeft.Round(time.Second))
	}
	return s
}

// confirm declares the engine's time right: a jump that is held is followed by all nodes,
// and all doubts end.
func (f *follower) confirm(c *Clock) error {
	err := f.change(func(row Shared, engineMs int64) (Shared, error) {
		switch {
		case row.shift(engineMs) > 0:
			return row, ErrEngineBehind
		case row.ShiftMs >= 0 && row.doubt(engineMs) == 0:
			return row, ErrNothingToConfirm
		}
		row.ShiftMs, row.ShiftFromMs, row.GapMs, row.GapUntilMs = 0, 0, 0, 0
		return row, nil
	})
	if err == nil {
		c.logger.Warn("clock: the engine's time was confirmed")
	}
	return err
}

const (
	// stopAheadMs is how far ahead of the time a shared test clock is first stopped. All
	// nodes must have seen that before their times are there; if that took longer, it is
	// stopped further ahead, four times as far each, stopTries times at most.
	stopAheadMs = 10
	stopTries   = 6
	// frozenMarginMs is how far the ticking time of a frozen clock is ahead of where it
	// stands, so that a step back of the engine's clock does not move it.
	frozenMarginMs = 60 * 60 * 1000
)

// move moves a test clock, for all nodes. A reader gets the time from before the move or
// from after it, and from after it once move has returned.
func (f *follower) move(c *Clock, to func(pose) (pose, error)) error {
	stop := int64(stopAheadMs)
	var tried Shared // the row of a freeze that was too late
	for range stopTries {
		stoppedAt := int64(0)
		err := f.change(func(row Shared, engineMs int64) (Shared, error) {
			stoppedAt = 0
			again := tried != (Shared{}) && row == tried
			if again {
				row.StopMs = 0
			}
			at := pose{ms: max(row.At(engineMs), c.last.Load())}
			at.frozen = row.Frozen(at.ms)
			next, err := to(at)
			if err != nil || next == at && at.frozen == (row.StopMs != 0) {
				return row, err
			}
			switch {
			case next.frozen && at.frozen:
				row.StopMs, row.OffsetMs = next.ms, next.ms+frozenMarginMs-row.corrected(engineMs)
			case next.frozen:
				// Nodes tick on to where it stops, so that all of them stand at one time.
				stoppedAt = min(next.ms+stop, MaxMs)
				row.StopMs = stoppedAt
				tried = row
			default:
				row.StopMs, row.OffsetMs = 0, next.ms-row.corrected(engineMs)
			}
			return row, nil
		})
		if err != nil || stoppedAt == 0 {
			return err
		}
		seen := f.seen.Load()
		ticks := seen.row
		ticks.StopMs = 0
		left := stoppedAt - ticks.At(seen.engineMs)
		if left >= 0 && c.last.Load() <= stoppedAt { // no node was past it when it was stopped
			time.Sleep(time.Duration(left) * time.Millisecond)
			return f.settle(c)
		}
		stop *= 4
	}
	return ErrNotFrozen
}

// settle puts the ticking time of a clock that stops well ahead of where it stops.
func (f *follower) settle(*Clock) error {
	return f.change(func(row Shared, engineMs int64) (Shared, error) {
		if row.StopMs != 0 {
			row.OffsetMs = row.StopMs + frozenMarginMs - row.corrected(engineMs)
		}
		return row, nil
	})
}
