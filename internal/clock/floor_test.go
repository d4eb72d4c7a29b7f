// SPDX-License-Identifier: MIT

package clock

import (
	"errors"
	"log/slog"
	"sync"
	"testing"
)

func TestOpenRefuses(t *testing.T) {
	save := func(State) error { return nil }
	tests := []struct {
		name string
		o    Options
		want error
	}{
		{"no save", Options{}, ErrNoSave},
		{"test data without a test clock", Options{State: State{FloorMs: 1, Test: true}, Save: save}, ErrTestData},
		{"mark of a test clock not saved", Options{Save: func(State) error { return errDisk }, Test: true}, errDisk},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c, err := Open(test.o)
			if c != nil || !errors.Is(err, test.want) {
				t.Errorf("Open: got %v, %v, want error %v", c, err, test.want)
			}
		})
	}
}

func TestTimeIsTheWallClocks(t *testing.T) {
	s := newStory(t)
	s.open()
	s.now(0)
	s.now(0)
	for ms := int64(0); ms < 5000; ms += 7 {
		s.now(ms)
		s.pass(7)
	}
	s.mode(ModeWall)
	s.logged()
}

func TestFloorIsSavedAheadAndNotWhenIdle(t *testing.T) {
	s := newStory(t)
	s.open()
	steps := []struct {
		passMs, nowMs int64
		wantFloor     int64
		wantSaves     int
		why           string
	}{
		{0, 0, 1000, 1, "the first call saves a reserve"},
		{500, 500, 1000, 1, "half of it is left"},
		{1, 501, 2000, 2, "less than half: extended by the reserve"},
		{999, 1500, 2000, 2, "half is left again"},
		{500, 2000, 3000, 3, "on the floor itself"},
		{6 * hour, 2000 + 6*hour, 3000 + 6*hour, 4, "after idling: one save, by the caller"},
	}
	for _, step := range steps {
		before := s.saves()
		s.pass(step.passMs)
		s.c.background.Wait()
		if got := s.saves() - before; got != 0 {
			t.Fatalf("%s: %d saves before the time was read", step.why, got)
		}
		s.now(step.nowMs)
		if got := s.state(s).FloorMs - startMs; got != step.wantFloor || s.saves() != step.wantSaves {
			t.Fatalf("%s: floor start%+d with %d saves, want start%+d with %d",
				step.why, got, s.saves(), step.wantFloor, step.wantSaves)
		}
	}
}

func TestNobodyWaitsForASaveInTheBackground(t *testing.T) {
	s := newStory(t)
	s.open()
	s.now(0)
	s.gate = make(chan struct{})
	s.pass(600)
	for i := range int64(400) { // up to the floor, while the save hangs
		if got := s.c.Now(); got != startMs+600+i {
			t.Fatalf("now: got start%+d, want start%+d", got-startMs, 600+i)
		}
		s.pass(1)
	}
	if st := s.c.Status(); st.Mode != ModeWall || st.FloorMs != startMs+1000 {
		t.Fatalf("status while the save hangs: %+v", st)
	}
	close(s.gate)
	s.c.background.Wait()
	if got := s.saves(); got != 2 {
		t.Fatalf("saves: got %d, want 2", got)
	}
}

func TestOneSavesAndTheOthersWait(t *testing.T) {
	s := newStory(t)
	s.open()
	s.now(0)
	s.pass(hour)
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			if got := s.c.Now(); got != startMs+hour {
				t.Errorf("now: got start%+d, want start%+d", got-startMs, hour)
			}
		})
	}
	wg.Wait()
	if s.saves() != 2 || s.overlapped {
		t.Errorf("got %d saves, overlapping %v; want 2 in all, one at a time", s.saves(), s.overlapped)
	}
}

func TestFailingSaveStopsTimeAtTheFloor(t *testing.T) {
	s := newStory(t)
	s.open()
	s.now(0)
	s.setFault(errDisk)
	s.pass(700)
	s.now(700)
	s.logged(slog.LevelError)
	s.pass(299)
	s.now(999)
	for range 50 {
		s.pass(10)
		s.now(1000)
	}
	s.mode(ModeStandingStill)
	if st := s.c.Status(); !errors.Is(st.SaveError, errDisk) || st.SkewMs != 499 {
		t.Fatalf("status: got save error %v, skew %d, want %v, 499", st.SaveError, st.SkewMs, errDisk)
	}
	s.logged()

	s.setFault(nil)
	s.pass(100)
	s.now(1599)
	s.mode(ModeWall)
	s.logged(slog.LevelInfo)
	if st := s.c.Status(); st.SaveError != nil {
		t.Fatalf("status: got save error %v, want none", st.SaveError)
	}
	s.setFault(errDisk)
	s.pass(hour)
	s.now(2599)
	s.logged(slog.LevelError)
}

func TestFailingSaveIsRetriedAtABoundedRate(t *testing.T) {
	s := newStory(t)
	s.open()
	s.now(0)
	s.setFault(errDisk)
	before := s.saves()
	for range 10_000 {
		s.pass(1)
		s.c.Now()
		s.c.background.Wait()
		s.c.Now()
		s.c.background.Wait()
	}
	// The first try comes at 501 ms, then one every 100 ms.
	if got := s.saves() - before; got != 95 {
		t.Errorf("tries in 10 s: got %d, want 95", got)
	}
}

func TestASaveThatFailedMayHaveHappened(t *testing.T) {
	s := newStory(t)
	s.keepFaulty = true
	s.open()
	s.now(0)
	s.setFault(errDisk)
	s.pass(700)
	s.now(700) // a floor of +2000 is on disk, but only +1000 is certain
	s.pass(700)
	s.now(1000) // the same, with +2400
	s.setFault(nil)
	s.crash()
	s.now(2400)
}

func TestCrashRestartBeginsAtTheFloor(t *testing.T) {
	s := newStory(t)
	s.open()
	s.now(0)
	s.pass(900)
	s.now(900) // the floor goes to +2000
	s.crash()
	s.now(2000)
	s.pass(300)
	s.now(2150) // at half its pace, until the wall clock is there
	s.pass(1800)
	s.now(3000)
	s.pass(100)
	s.now(3100)
	s.pass(1)
	s.now(3101)
	s.mode(ModeWall)
	s.horizon(0)
	s.logged() // after a crash there is nothing to say about the wall clock
}

func TestCleanRestartGoesOnExactly(t *testing.T) {
	s := newStory(t)
	s.open()
	s.now(0)
	s.pass(900)
	s.now(900)
	s.pass(20)
	s.restart()
	if got := s.state(s).FloorMs - startMs; got != 920 {
		t.Fatalf("floor after Close: got start%+d, want start+920", got)
	}
	s.now(920)
	s.pass(1)
	s.now(921)
}

func TestCloseExactlyOnTheFloor(t *testing.T) {
	s := newStory(t)
	s.open()
	s.now(0)
	s.pass(1000)
	s.ok(s.c.Close())
	s.now(1000)
	if got := s.saves(); got != 1 {
		t.Errorf("saves: got %d, want 1: the time is on the floor already", got)
	}
}

func TestClosedClockStandsStill(t *testing.T) {
	s := newStory(t)
	s.open()
	s.now(0)
	s.pass(300)
	s.ok(s.c.Close())
	s.ok(s.c.Close())
	s.pass(hour)
	s.now(300)
	s.mode(ModeClosed)
	s.refused(s.c.Confirm(), ErrClosed)
	if got := s.saves(); got != 2 {
		t.Errorf("saves: got %d, want 2: the first reserve and the end", got)
	}
}

func TestCloseReportsAFailingSave(t *testing.T) {
	s := newStory(t)
	s.open()
	s.now(0)
	s.pass(300)
	s.setFault(errDisk)
	s.refused(s.c.Close(), errDisk)
	s.refused(s.c.Close(), errDisk)
	s.now(0) // nothing later was ever returned, and nothing later is saved
	s.setFault(nil)
	s.crash()
	s.now(1000)
}

func TestTimeEndsAtMaxMs(t *testing.T) {
	s := newStory(t)
	s.at.WallMs = MaxMs - 1200
	s.open()
	last := int64(0)
	for range 200 {
		last = s.c.Now()
		s.c.background.Wait()
		if want := min(s.at.WallMs, MaxMs); last != want {
			t.Fatalf("now: got %d, want %d", last, want)
		}
		s.pass(10)
	}
	if last != MaxMs || s.state(s).FloorMs != MaxMs {
		t.Fatalf("got time %d, floor %d, want %d", last, s.state(s).FloorMs, int64(MaxMs))
	}
	if got := s.saves(); got > 3 {
		t.Errorf("saves: got %d, want none once the floor is the largest time", got)
	}
	s.restart()
	if got := s.c.Now(); got != MaxMs {
		t.Errorf("now after a restart: got %d, want %d", got, int64(MaxMs))
	}
}

func TestWallClockBeforeTheEpoch(t *testing.T) {
	s := newStory(t)
	s.at.WallMs = -5 * year
	s.open()
	if got := s.c.Now(); got != 0 {
		t.Errorf("now in 1965: got %d, want 0", got)
	}
	s.at.WallMs = startMs
	s.pass(1)
	if got := s.c.Now(); got != 1 {
		t.Errorf("now after a jump of decades: got %d, want 1", got)
	}
	s.mode(ModeHeld)
}
