// SPDX-License-Identifier: MIT

package clock

import (
	"bytes"
	"errors"
	"testing"

	"pgregory.net/rapid"
)

func TestDecodeSharedRefusesGarbage(t *testing.T) {
	row := Shared{ShiftMs: 5, ShiftFromMs: startMs, GapMs: 3, GapUntilMs: startMs + 9, Test: true, OffsetMs: -7, StopMs: startMs}
	good := row.Encode()
	if got, err := DecodeShared(good); err != nil || got != row {
		t.Errorf("DecodeShared(Encode(%+v)): got %+v, %v", row, got, err)
	}
	for n := 1; n < len(good); n++ {
		if _, err := DecodeShared(good[:n]); !errors.Is(err, ErrBadState) {
			t.Errorf("first %d bytes: got error %v, want ErrBadState", n, err)
		}
	}
	for bit := 8; bit < 8*len(good); bit++ {
		bad := bytes.Clone(good)
		bad[bit/8] ^= 1 << (bit % 8)
		if _, err := DecodeShared(bad); !errors.Is(err, ErrBadState) {
			t.Errorf("bit %d flipped: got error %v, want ErrBadState", bit, err)
		}
	}
	newer := bytes.Clone(good)
	newer[0]++
	if _, err := DecodeShared(newer); !errors.Is(err, ErrNewerState) {
		t.Errorf("next version: got error %v, want ErrNewerState", err)
	}
	for _, bad := range []Shared{{ShiftMs: -MaxMs - 1}, {GapMs: -1}, {GapUntilMs: MaxMs + 1}, {OffsetMs: 1}, {StopMs: 1}} {
		if _, err := DecodeShared(bad.Encode()); !errors.Is(err, ErrBadState) {
			t.Errorf("%+v: got error %v, want ErrBadState", bad, err)
		}
	}
}

// looker is what package cluster keeps of a node's looks.
type looker struct {
	trail  Trail
	lastMs int64
}

// look writes into the row what the engine's clock did, and returns the time.
func (l *looker) look(row *Shared, engineMs, watchMs int64) int64 {
	*row = row.Judge(engineMs, watchMs, l.trail)
	l.lastMs = max(l.lastMs, row.At(engineMs))
	l.trail = row.Trail(engineMs, watchMs)
	return l.lastMs
}

// Whatever the engine's clock does, and whichever of several nodes looks: no node's time goes
// back, none is ahead of the time that has passed by more than seven days unless the engine's
// clock is, and the horizon is not past the time.
func TestRandomHistoriesOfASharedClock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		row := Shared{}
		nodes := make([]looker, 3)
		realMs := int64(startMs)
		engineMs := realMs
		for i := range nodes {
			nodes[i].look(&row, engineMs, realMs-startMs)
		}
		for range rapid.IntRange(1, 40).Draw(t, "looks") {
			passed := rapid.Int64Range(0, 2*dayMs).Draw(t, "passed")
			stepped := int64(0)
			if rapid.Bool().Draw(t, "steps") {
				stepped = rapid.Int64Range(-20*dayMs, 20*dayMs).Draw(t, "stepped")
			}
			realMs += passed
			engineMs = max(0, engineMs+passed+stepped)
			i := rapid.IntRange(0, len(nodes)-1).Draw(t, "node")
			was := nodes[i].lastMs
			now := nodes[i].look(&row, engineMs, realMs-startMs)
			if now < was {
				t.Fatalf("the time went from %d back to %d", was, now)
			}
			if horizon := row.horizon(engineMs, now); horizon > now {
				t.Fatalf("the horizon is %d at %d", horizon, now)
			}
			if row.ShiftMs < 0 && row.corrected(engineMs) > engineMs {
				t.Fatalf("a jump is held, and the time %d is ahead of the engine's %d", row.corrected(engineMs), engineMs)
			}
			if raw, err := DecodeShared(row.Encode()); err != nil || raw != row {
				t.Fatalf("the row %+v does not survive its bytes: %v", row, err)
			}
			if again := row.Judge(engineMs, realMs-startMs, nodes[i].trail); again != row {
				t.Fatalf("a second look at the same time changes %+v to %+v", row, again)
			}
		}
	})
}
