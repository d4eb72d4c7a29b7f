// SPDX-License-Identifier: MIT

package clock

import (
	"errors"
	"fmt"
	"time"
)

// Rewinding sets a clock back that has followed a wrong wall clock. It is done to the
// data at rest: all times in it that were taken from the wrong clock move back by as
// much as it was ahead, by a function of time alone (Back), so that the order of times
// stays, and an item keeps the life that it has left. What was written before the jumps
// stays as it is: so it comes back, if only they had expired it.

// ErrUnexplained: the wall clock is further back than the jumps that are remembered.
var ErrUnexplained = errors.New("clock: the wall clock is further back than all jumps that database time has followed explain")

// BeginRewind returns the state with which a rewind to the wall clock begins, or goes on
// if one was begun. Of the options it needs the state and what reads the machine. It is
// ErrNotAhead if the wall clock is not behind, and ErrUnexplained, with the state all the
// same, if not every write time can be told right from wrong: what is in the future is
// then put in the present, so that it may live longer than it should, though no longer
// than it was given.
func BeginRewind(o Options) (State, error) {
	s := o.State
	if s.RewindToMs != 0 {
		return s, nil
	}
	if s.Test {
		return s, ErrTestData
	}
	source, boot := o.clocks()
	r := source()
	wallMs := min(max(r.WallMs, 1), MaxMs)
	at := boot(r)
	begun := s
	if s.Boot != (BootKey{}) && s.Boot == at.key() { // what has passed since is known
		begun.FloorMs = min(max(s.FloorMs, at.Ms+s.LineMs), MaxMs)
	}
	aheadMs := begun.FloorMs - wallMs
	if aheadMs <= AgreeWithinMs {
		return s, ErrNotAhead
	}
	s = begun
	s.RewindToMs, s.Boot, s.LineMs = wallMs, at.key(), wallMs-at.Ms
	var explainedMs int64
	for _, j := range s.Jumps {
		explainedMs += j.GapMs
	}
	if aheadMs > explainedMs+AgreeWithinMs {
		return s, fmt.Errorf("%w: database time is ahead by %v, of which %v are known jumps", ErrUnexplained,
			time.Duration(aheadMs)*time.Millisecond, time.Duration(explainedMs)*time.Millisecond)
	}
	return s, nil
}

// Back returns where a rewind that was begun takes each time: the same for times from
// before the jumps, and never later than the one given. A later time never comes before
// an earlier one.
func (s State) Back() func(ms int64) int64 {
	n := countJumps(s.Jumps)
	// What was given out after a jump goes back by what was wrong then: all of it after
	// the last, and before that less by each.
	var shifts [MaxJumps + 1]int64
	shifts[n] = s.FloorMs - s.RewindToMs
	for i := n; i > 0; i-- {
		shifts[i-1] = max(0, shifts[i]-s.Jumps[i-1].GapMs)
	}
	shifts[0] = 0 // nothing is known of these
	// And none goes back beyond those before the jump, of which a write may be a
	// millisecond ahead.
	var leastMs [MaxJumps + 1]int64
	for i := range n {
		leastMs[i+1] = max(leastMs[i], s.Jumps[i].FromMs+1-shifts[i])
	}
	return func(ms int64) int64 {
		i := n
		for i > 0 && ms < s.Jumps[i-1].ToMs {
			i--
		}
		back := min(max(ms-shifts[i], leastMs[i]), s.RewindToMs)
		if i < n { // times within a jump were never given out
			back = min(back, leastMs[i+1])
		}
		return back
	}
}

// ChangedFromMs is the first time that Back may change.
func (s State) ChangedFromMs() int64 {
	back, firstMs := s.Back(), s.RewindToMs+1
	for i := countJumps(s.Jumps) - 1; i >= 0; i-- {
		if to := s.Jumps[i].ToMs; back(to) != to {
			firstMs = min(firstMs, to)
		}
	}
	return firstMs
}

// Rewound returns the state after a rewind: time goes on from the wall clock, and the
// jumps that were taken back are forgotten.
func (s State) Rewound() State {
	leftMs := s.FloorMs - s.RewindToMs
	for i := countJumps(s.Jumps) - 1; i >= 0 && leftMs > 0; i-- {
		j := &s.Jumps[i]
		if taken := min(leftMs, j.GapMs); j.GapMs-taken > AgreeWithinMs && j.ToMs-taken > j.FromMs {
			j.ToMs, j.GapMs, leftMs = j.ToMs-taken, j.GapMs-taken, 0
		} else {
			*j, leftMs = Jump{}, leftMs-taken
		}
	}
	s.FloorMs, s.RewindToMs = s.RewindToMs, 0
	return s
}
