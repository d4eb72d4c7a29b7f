// SPDX-License-Identifier: MIT

package clock

// MaxJumps is how many jumps of the wall clock are remembered. When the oldest is
// dropped while it is in doubt, its size and its doubt go over to the next one.
const MaxJumps = 8

// Jump is a jump of the wall clock that was followed. It is remembered while it is in
// doubt, so that items which only it has expired are kept, and after that, so that a
// rewind can undo it (Rewound).
type Jump struct {
	// FromMs and ToMs are the time before and after the jump: no time between them was
	// ever returned. GapMs is how far the jump led from the line: the difference of the
	// two, or more if time was a little ahead of the line, or if dropped jumps are added.
	FromMs, ToMs, GapMs int64
	// LeftMs is how long the jump is still in doubt; 0 once the doubt has ended.
	LeftMs int64
}

// addJump adds the latest jump.
func addJump(all [MaxJumps]Jump, j Jump) [MaxJumps]Jump {
	n := countJumps(all)
	if n > 0 && j.FromMs < all[n-1].ToMs { // no time after the last jump was returned
		j.GapMs += all[n-1].GapMs
		all[n-1] = j
		return all
	}
	if n < MaxJumps {
		all[n] = j
		return all
	}
	oldest := all[0]
	copy(all[:], all[1:])
	all[MaxJumps-1] = j
	if oldest.LeftMs > 0 {
		all[0].GapMs += oldest.GapMs
		all[0].LeftMs = max(all[0].LeftMs, oldest.LeftMs)
	}
	return all
}

func countJumps(all [MaxJumps]Jump) (n int) {
	for n < MaxJumps && all[n] != (Jump{}) {
		n++
	}
	return n
}
