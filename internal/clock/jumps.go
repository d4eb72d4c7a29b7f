// SPDX-License-Identifier: MIT

package clock

// MaxJumps is how many jumps of the wall clock are remembered. What is forgotten of the
// oldest is only where it was: its size goes over to the next.
const MaxJumps = 8

// Jump is one that was followed. It is remembered while it is in doubt, so that what
// only it has expired is kept, and after that, so that it can be taken back (Rewound).
type Jump struct {
	// FromMs and ToMs are the time before and after it: no time between them was ever
	// returned. GapMs is how far it was from the line: their difference, or more if time
	// was ahead of the line by a little, or if it stands for forgotten ones too.
	FromMs, ToMs, GapMs int64
	// LeftMs is for how long it is in doubt; 0 if it is not any more.
	LeftMs int64
}

// addJump adds the latest.
func addJump(all [MaxJumps]Jump, j Jump) [MaxJumps]Jump {
	n := countJumps(all)
	if n > 0 && j.FromMs < all[n-1].ToMs { // the time after that was never given out
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
