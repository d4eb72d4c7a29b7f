// SPDX-License-Identifier: MIT

package clock

import (
	"errors"
	"fmt"
	"time"
)

// A rewind sets a clock back that has followed a wrong wall clock. It changes the data
// while no server has it open: all times that came from the wrong clock move back by as
// much as that clock was ahead. They move by a function of time alone (Back), so that
// their order stays, and an item keeps the life that it has left. Items written before
// the jumps keep their times: those that expired only because of the jumps come back.

// ErrUnexplained: the wall clock is further behind than all remembered jumps together.
var ErrUnexplained = errors.New("clock: the wall clock is further back than all jumps that database time has followed explain")

// BeginRewind returns the state with which a rewind to the wall clock begins, or goes on
// if one has begun. Of the options it uses State, Source and Boot. The error is
// ErrNotAhead if the wall clock is not behind. It is ErrUnexplained, with the state
// nevertheless, if the remembered jumps do not show which write times are wrong: times
// in the future then become the present, so that an item may live longer than it should,
// though no longer than its TTL.
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
	if s.Boot != (BootKey{}) && s.Boot == at.key() { // the boot clock shows what has passed
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

// Back returns the function by which a rewind moves times. It leaves times from before
// the jumps as they are, never moves a time forward, and never changes the order of two
// times.
func (s State) Back() func(ms int64) int64 {
	n := countJumps(s.Jumps)
	// A time returned after a jump goes back by the error at that moment: the whole error
	// after the last jump, and less by each jump before it.
	var shifts [MaxJumps + 1]int64
	shifts[n] = s.FloorMs - s.RewindToMs
	for i := n; i > 0; i-- {
		shifts[i-1] = max(0, shifts[i]-s.Jumps[i-1].GapMs)
	}
	shifts[0] = 0 // times from before all remembered jumps stay
	// No time goes back past the times from before the jump, whose writes may be a
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
		if i < n { // times within a jump were never returned
			back = min(back, leastMs[i+1])
		}
		return back
	}
}

// ChangedFromMs returns the first time that Back may change.
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
// jumps that were undone are forgotten.
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
