// SPDX-License-Identifier: MIT

package clock

import (
	"errors"
	"log/slog"
	"math"
	"testing"
	"time"
)

func newTestStory(t *testing.T) *story {
	s := newStory(t)
	s.test = true
	s.open()
	return s
}

func TestOnlyATestClockMoves(t *testing.T) {
	s := newStory(t)
	s.open()
	s.refused(s.c.Freeze(), ErrNotTestClock)
	s.refused(s.c.Release(), ErrNotTestClock)
	s.refused(s.c.Set(startMs+1), ErrNotTestClock)
	s.refused(s.c.Advance(time.Second), ErrNotTestClock)
	s.now(0)
}

func TestTestClockMoves(t *testing.T) {
	s := newTestStory(t)
	s.now(0)
	s.pass(250)
	s.now(250)
	s.mode(ModeTest)

	s.ok(s.c.Freeze())
	s.pass(hour)
	s.now(250)
	s.now(250)
	s.mode(ModeTestFrozen)
	s.ok(s.c.Freeze())
	s.now(250)

	s.ok(s.c.Advance(90 * time.Second))
	s.now(250 + 90*second)
	s.ok(s.c.Set(startMs + day))
	s.pass(7)
	s.now(day)
	s.ok(s.c.Set(startMs + day)) // where it is
	s.mode(ModeTestFrozen)

	s.ok(s.c.Release())
	s.now(day)
	s.pass(3)
	s.now(day + 3)
	s.mode(ModeTest)
	s.ok(s.c.Release())
	s.now(day + 3)

	s.ok(s.c.Advance(time.Hour)) // running, it goes on running
	s.now(day + 3 + hour)
	s.pass(4)
	s.now(day + 7 + hour)
	s.ok(s.c.Set(startMs + 2*day))
	s.pass(5)
	s.now(2*day + 5)
	s.horizon2(0)
	s.logged()
}

func TestTestClockRefusals(t *testing.T) {
	s := newTestStory(t)
	s.now(0)
	tests := []struct {
		name string
		move func() error
		want error
	}{
		{"set back", func() error { return s.c.Set(startMs - 1) }, ErrBackwards},
		{"set to nothing", func() error { return s.c.Set(math.MinInt64) }, ErrBackwards},
		{"set too far", func() error { return s.c.Set(MaxMs + 1) }, ErrTooFar},
		{"set beyond numbers", func() error { return s.c.Set(math.MaxInt64) }, ErrTooFar},
		{"advance back", func() error { return s.c.Advance(-time.Second) }, ErrBackwards},
		{"advance by less than nothing", func() error { return s.c.Advance(-1) }, ErrBackwards},
		{"advance by nothing", func() error { return s.c.Advance(0) }, ErrTooShort},
		{"advance by less than a millisecond", func() error { return s.c.Advance(999 * time.Microsecond) }, ErrTooShort},
		{"advance too far", func() error { return s.c.Advance(math.MaxInt64) }, ErrTooFar},
	}
	for _, frozen := range []string{"running", "frozen"} {
		for _, test := range tests {
			t.Run(frozen+"/"+test.name, func(t *testing.T) {
				before := s.saves()
				s.refused(test.move(), test.want)
				s.now(0)
				if got := s.saves() - before; got != 0 {
					t.Errorf("saves: got %d, want 0", got)
				}
			})
		}
		s.ok(s.c.Freeze())
	}
	s.ok(s.c.Advance(1999 * time.Microsecond)) // whole milliseconds count
	s.now(1)
	s.ok(s.c.Close())
	s.refused(s.c.Advance(time.Second), ErrClosed)
	s.refused(s.c.Freeze(), ErrClosed)
}

func TestScenario72FrozenAndAdvancedBy68Years(t *testing.T) {
	const longestTTLMs = 2147483647 * second
	s := newTestStory(t)
	s.ok(s.c.Freeze())
	s.ok(s.c.Advance(time.Duration(longestTTLMs) * time.Millisecond))
	s.now(longestTTLMs)
	s.now(longestTTLMs)
	s.horizon2(0)
	s.crash()
	s.now(longestTTLMs)
	s.ok(s.c.Set(MaxMs))
	s.now(MaxMs - startMs)
	s.refused(s.c.Advance(time.Millisecond), ErrTooFar)
	s.ok(s.c.Release())
	s.pass(hour)
	s.now(MaxMs - startMs)
	s.restart()
	s.now(MaxMs - startMs)
}

func TestFrozenClockReopensFrozen(t *testing.T) {
	for _, end := range []string{"crash", "restart"} {
		t.Run(end, func(t *testing.T) {
			s := newTestStory(t)
			s.pass(123)
			s.ok(s.c.Freeze())
			s.ok(s.c.Advance(time.Minute))
			s.now(minute + 123)
			s.pass(day)
			if end == "crash" {
				s.crash()
			} else {
				s.restart()
			}
			s.now(minute + 123)
			s.mode(ModeTestFrozen)
			s.ok(s.c.Release())
			s.pass(1)
			s.now(minute + 124)
		})
	}
}

func TestRunningClockReopensWithItsOffset(t *testing.T) {
	s := newTestStory(t)
	s.ok(s.c.Advance(10 * 24 * time.Hour))
	s.now(10 * day)
	s.pass(400)
	s.now(10*day + 400)
	s.restart()
	s.now(10*day + 400)
	s.pass(hour)
	s.crash() // wall and offset are past the floor
	s.now(10*day + 400 + hour)
	s.crash() // and here the floor is ahead of them
	s.now(10*day + 1400 + hour)
}

func TestTestClockFollowsAnyJumpButNeverBack(t *testing.T) {
	s := newTestStory(t)
	s.now(0)
	s.step(10 * year)
	s.now(10 * year)
	s.horizon2(0)
	s.step(-5 * year)
	s.now(10 * year)
	s.pass(day)
	s.now(10 * year)
	s.refused(s.c.Set(startMs+10*year-1), ErrBackwards)
	s.ok(s.c.Release()) // ticks on from where it is
	s.pass(9)
	s.now(10*year + 9)
	s.step(-year)
	s.ok(s.c.Advance(time.Second))
	s.pass(1)
	s.now(10*year + 10 + second)
	s.mode(ModeTest)
}

func TestTestDataIsMarked(t *testing.T) {
	s := newStory(t)
	s.open()
	s.now(0)
	s.pass(10)
	s.ok(s.c.Close())
	s.test = true
	s.open() // plain data may become test data
	if got := s.state(s); !got.Test || got.FloorMs != startMs+10 {
		t.Fatalf("state: got %+v, want it marked and its floor kept", got)
	}
	s.ok(s.c.Close())
	s.test = false
	_, err := Open(s.options())
	s.refused(err, ErrTestData)
}

func TestMoveThatIsNotSavedDoesNotHappen(t *testing.T) {
	s := newTestStory(t)
	s.now(0)
	s.setFault(errDisk)
	s.refused(s.c.Advance(time.Hour), errDisk)
	s.now(0)
	s.refused(s.c.Freeze(), errDisk)
	s.mode(ModeTest)
	s.logged(slog.LevelError)
	if st := s.c.Status(); !errors.Is(st.SaveError, errDisk) {
		t.Fatalf("status: got save error %v, want %v", st.SaveError, errDisk)
	}
	s.setFault(nil)
	s.pass(150)
	s.now(150)
	s.ok(s.c.Advance(time.Hour))
	s.now(150 + hour)
}

// TestFreezeThatFailedMayHaveHappened: a freeze lowers the floor to the time. If its save
// fails and was kept nevertheless, ticking on would pass the saved floor.
func TestFreezeThatFailedMayHaveHappened(t *testing.T) {
	s := newTestStory(t)
	s.now(0)
	s.pass(100)
	s.keepFaulty = true
	s.setFault(errDisk)
	s.refused(s.c.Freeze(), errDisk)
	s.keepFaulty = false
	s.pass(50)
	s.now(100)
	s.crash()
	s.now(100)
}

// TestCloseSettlesAFailedMove: after a failed save the saved state is unknown, so Close
// saves although nothing changed.
func TestCloseSettlesAFailedMove(t *testing.T) {
	s := newTestStory(t)
	s.ok(s.c.Freeze())
	s.keepFaulty = true
	s.setFault(errDisk)
	s.refused(s.c.Advance(time.Hour), errDisk)
	s.setFault(nil)
	s.restart()
	s.now(0)
}

func TestFrozenClockDoesNotSave(t *testing.T) {
	s := newTestStory(t)
	s.ok(s.c.Freeze())
	before := s.saves()
	for range 100 {
		s.pass(minute)
		s.now(0)
	}
	s.ok(s.c.Freeze())
	if got := s.saves() - before; got != 0 {
		t.Errorf("saves: got %d, want 0", got)
	}
}
