// SPDX-License-Identifier: MIT

package clock

import (
	"log/slog"
	"testing"
	"time"
)

// inUse opens a clock on data that has been in use in this boot. Its time is
// startMs+60 s.
func inUse(t *testing.T) *story {
	s := newStory(t)
	s.open()
	s.now(0)
	s.pass(minute)
	s.now(minute)
	s.restart()
	s.now(minute)
	s.horizon(0)
	s.logged()
	return s
}

func TestScenario67WallStepsBack(t *testing.T) {
	s := inUse(t)
	s.step(-hour)
	s.now(minute)
	s.logged(slog.LevelWarn)
	s.mode(ModeAhead)
	s.horizon(0) // nothing is in doubt: purge goes on with the time
	s.pass(2 * second)
	s.now(minute + 2*second) // an item with ttl 2 is gone after 2 s
	s.refused(s.c.Confirm(), ErrAhead)
	s.crash()
	s.logged(slog.LevelWarn) // logged once per start
	floor := s.state(s).FloorMs - startMs
	s.now(floor)
	s.pass(30 * minute)
	s.now(floor + 30*minute)
	if st := s.c.Status(); st.SkewMs != -hour-floor+minute+2*second {
		t.Errorf("skew: got %d", st.SkewMs)
	}
	s.step(hour) // and forward to where it should be
	s.pass(second)
	s.c.Now()
	s.logged(slog.LevelInfo)
	s.mode(ModeWall)
	s.horizon(0)
}

func TestScenario68JumpOfTenYearsCorrectedInTime(t *testing.T) {
	s := inUse(t)
	s.step(10 * year)
	s.now(minute)
	s.logged(slog.LevelError)
	s.mode(ModeHeld)
	s.horizon2(0)
	for range 9 {
		s.pass(minute)
		s.now(s.at.WallMs - startMs - 10*year)
	}
	s.logged()
	s.step(-10 * year) // the fix
	s.pass(5)
	s.now(10*minute + 5)
	s.logged(slog.LevelInfo)
	s.mode(ModeWall)
	s.horizon(0) // no item expired because of the jump
	if s.state(s).Jumps != ([MaxJumps]Jump{}) {
		t.Error("the jump is remembered")
	}
}

// horizon2 is horizon for clocks whose Status has a Notice for another reason.
func (s *story) horizon2(behindMs int64) {
	s.Helper()
	if got, now := s.c.Horizon(), s.c.Now(); got != now-behindMs {
		s.Fatalf("horizon: got %d ms behind the time, want %d", now-got, behindMs)
	}
	s.c.background.Wait()
}

func TestScenario68aFollowedAfterTenMinutes(t *testing.T) {
	s := inUse(t)
	s.step(10 * year)
	s.now(minute)
	s.pass(HoldMs - 1)
	s.now(11*minute - 1)
	s.logged(slog.LevelError)
	s.pass(1)
	s.now(11*minute + 10*year)
	s.logged(slog.LevelWarn)
	s.mode(ModeWall)
	s.horizon(10 * year)
	s.pass(hour) // purge goes on with the time before
	s.now(11*minute + 10*year + hour)
	s.horizon(10 * year)

	s.step(-10 * year) // corrected after an hour
	s.now(11*minute + 10*year + hour)
	s.mode(ModeAhead)
	s.pass(30 * day) // a jump that the wall clock has taken back stays in doubt
	s.now(11*minute + 10*year + hour + 30*day)
	s.horizon(10 * year)
	s.refused(s.c.Confirm(), ErrAhead)
	s.restart()
	s.horizon(10 * year)
	s.mode(ModeAhead)
}

func TestScenario68bLaptopWakesUp(t *testing.T) {
	s := inUse(t)
	s.sleep(8 * hour)
	s.now(minute + 8*hour)
	s.mode(ModeWall)
	s.horizon(0)
	s.sleep(400 * day) // however long
	s.now(minute + 8*hour + 400*day)
	s.horizon(0)
	s.logged()
}

func TestScenario68cVirtualMachineWasPaused(t *testing.T) {
	s := inUse(t)
	s.step(8 * hour)
	s.now(minute + 8*hour)
	s.logged(slog.LevelWarn)
	s.mode(ModeWall)
	s.horizon(8 * hour)
	s.pass(day - 1)
	s.horizon(8 * hour)
	s.pass(1)
	s.horizon(0)
	s.logged(slog.LevelInfo)
}

func TestScenario69RestartBehindTheFloor(t *testing.T) {
	for _, rebooted := range []bool{false, true} {
		s := inUse(t)
		s.ok(s.c.Close())
		s.step(-3 * day)
		if rebooted {
			s.reboot(0)
		}
		s.open()
		s.logged(slog.LevelWarn)
		s.now(minute)
		s.mode(ModeAhead)
		s.pass(day)
		s.now(minute + day)
		s.horizon2(0)
		s.restart()
		s.now(minute + day)
	}
}

func TestScenario71LeapSecondIsNoStep(t *testing.T) {
	s := inUse(t)
	s.pass(10)
	s.now(minute + 10)
	s.step(-1001) // a second inserted, and the rounding of two readings
	s.now(minute + 10)
	s.pass(1000)
	s.now(minute + 510) // at half the pace until the wall clock is there
	s.pass(1000)
	s.now(minute + 1009)
	s.pass(2)
	s.now(minute + 1011)
	s.mode(ModeWall)
	s.horizon(0)
	s.logged()
}

func TestScenario71ZoneDoesNotMatter(t *testing.T) {
	local := time.Local
	t.Cleanup(func() { time.Local = local })
	read := machine()
	before := read()
	for _, hours := range []int{-12, 1, 14} {
		time.Local = time.FixedZone("elsewhere", hours*60*60)
		r := read()
		if r.WallMs < before.WallMs || r.WallMs > before.WallMs+minute || r.MonoMs < before.MonoMs {
			t.Errorf("zone %+d h: reading went from %+v to %+v", hours, before, r)
		}
	}
}

func TestForwardJumps(t *testing.T) {
	tests := []struct {
		name     string
		jumpMs   int64
		followed bool
		doubtMs  int64
	}{
		{"slewing", 200, true, 0},
		{"just within agreement", AgreeWithinMs, true, 0},
		{"just beyond", AgreeWithinMs + 1, true, AgreeWithinMs + 1},
		{"a day", day, true, day},
		{"a millisecond more", day + 1, false, 0},
		{"past the largest time", MaxMs, false, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := inUse(t)
			s.at.WallMs = min(s.at.WallMs+test.jumpMs, MaxMs)
			want := minute
			if test.followed {
				want += test.jumpMs
			}
			s.now(want)
			s.horizon2(test.doubtMs)
		})
	}
}

func TestHeldTimeReturnsWithTheWallClock(t *testing.T) {
	tests := []struct {
		name     string
		backToMs int64 // relative to the database's time
		nowMs    int64
		mode     Mode
		doubtMs  int64
	}{
		{"to the database's time", 0, 0, ModeWall, 0},
		{"ahead within a day", 3 * hour, 3 * hour, ModeWall, 3 * hour},
		{"to the day's edge", day, day, ModeWall, day},
		{"still too far", day + 1, 0, ModeHeld, 0},
		{"further away", 20 * year, 0, ModeHeld, 0},
		{"behind", -day, 0, ModeAhead, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := inUse(t)
			s.step(10 * year)
			s.now(minute)
			s.pass(5 * minute)
			s.now(6 * minute)
			s.step(test.backToMs - 10*year)
			s.now(6*minute + test.nowMs)
			s.mode(test.mode)
			s.horizon2(test.doubtMs)
		})
	}
}

// TestASecondStepBeginsTheTenMinutesAnew: a wall clock that keeps stepping must not hide
// all items.
func TestASecondStepBeginsTheTenMinutesAnew(t *testing.T) {
	s := inUse(t)
	s.step(10 * year)
	s.now(minute)
	s.pass(9 * minute)
	s.step(-day)
	s.now(10 * minute)
	s.pass(9 * minute)
	s.now(19 * minute)
	s.mode(ModeHeld)
	s.pass(minute)
	s.now(20*minute + 10*year - day)
}

func TestConfirm(t *testing.T) {
	s := inUse(t)
	s.refused(s.c.Confirm(), ErrNothingToConfirm)
	s.step(30 * day)
	s.now(minute)
	s.logged(slog.LevelError)
	s.ok(s.c.Confirm()) // while it is held back
	s.logged(slog.LevelWarn)
	s.crash()
	s.now(minute + 30*day + ReserveMs)
	s.mode(ModeWall)
	s.horizon(0)
	s.refused(s.c.Confirm(), ErrNothingToConfirm)
	s.pass(hour)
	s.step(20 * hour)
	s.now(minute + 30*day + 21*hour)
	s.horizon(20 * hour)
	s.ok(s.c.Confirm()) // while it is in doubt
	s.horizon(0)
	s.step(8 * hour)
	s.setFault(errDisk)
	s.refused(s.c.Confirm(), errDisk) // it could not be saved
	s.setFault(nil)
}

// TestConfirmWithoutAnyReadBefore: the jump is found by Confirm itself.
func TestConfirmWithoutAnyReadBefore(t *testing.T) {
	s := inUse(t)
	s.step(30 * day)
	s.ok(s.c.Confirm())
	s.now(minute + 30*day)
	s.horizon(0)
}

func TestWallClockPutRightAfterLongIsFollowed(t *testing.T) {
	s := inUse(t)
	s.step(-10 * year) // a battery died
	for range 20 {
		s.pass(day)
		s.c.Now()
	}
	s.now(minute + 20*day)
	s.step(10 * year) // and the network set the clock
	s.now(minute + 20*day)
	s.mode(ModeWall)
	s.horizon(0)
}

func TestJumpWhileAheadGoesOnFromThere(t *testing.T) {
	s := inUse(t)
	s.step(-hour)
	s.now(minute)
	s.pass(10 * minute)
	s.now(11 * minute)
	s.step(10 * year)
	s.now(11 * minute)
	s.mode(ModeHeld)
	s.pass(5)
	s.now(11*minute + 5)
}

func TestMachineWithoutABatteryGetsTheTimeAfterTheStart(t *testing.T) {
	s := inUse(t)
	s.ok(s.c.Close())
	s.reboot(-20 * year)
	s.open()
	s.now(minute)
	s.mode(ModeAhead)
	s.pass(30 * second)
	s.step(20*year + 20*hour) // it was off for twenty hours
	s.now(minute + 30*second + 20*hour)
	s.mode(ModeWall)
	s.horizon(20 * hour)
}

func TestDriftWhileAheadIsNoStep(t *testing.T) {
	s := inUse(t)
	s.step(-hour)
	s.now(minute)
	s.logged(slog.LevelWarn)
	for i := range int64(3000) {
		s.pass(990)
		s.step(10)
		s.now(minute + 990*(i+1)) // at the boot clock's pace
	}
	s.logged()
}

func TestDriftIsFollowed(t *testing.T) {
	s := inUse(t)
	looks := s.looks
	for range 3000 { // 1% fast, for 50 minutes
		s.pass(990)
		s.step(10)
		s.now(s.at.WallMs - startMs)
	}
	for range 3000 { // and slow
		s.pass(1010)
		s.step(-10)
		s.now(s.at.WallMs - startMs)
	}
	s.horizon(0)
	s.logged()
	if s.looks != looks {
		t.Errorf("the boot clock was read %d times, though the two others agreed", s.looks-looks)
	}
}

func TestDriftTooFastIsNoAgreement(t *testing.T) {
	s := inUse(t)
	for range 40 { // 10% fast: more than agreement allows, in small steps
		s.pass(900)
		s.step(100)
		s.now(s.at.WallMs - startMs)
	}
	if behind := s.c.Now() - s.c.Horizon(); behind < second || behind > 4*second {
		t.Errorf("the horizon is %d ms behind, want what the wall clock gained in two bites", behind)
	}
	s.logged(slog.LevelWarn)
}

func TestFlutteringWallClockIsLoggedSeldom(t *testing.T) {
	s := inUse(t)
	for range 120 { // two minutes
		s.step(10 * second)
		s.c.Now()
		s.step(-20 * second)
		s.pass(second)
		s.step(10 * second)
		s.c.Now()
		s.c.background.Wait()
	}
	if got := len(s.take()); got < 1 || got > 8 {
		t.Errorf("log lines of 240 steps in two minutes: got %d, want a few", got)
	}
}

// TestStarts: within one boot the boot clock shows how long the database was not open.
// After a reboot no clock does, and items that expired only meanwhile are in doubt.
func TestStarts(t *testing.T) {
	tests := []struct {
		name        string
		off, reboot int64 // how long the clock was closed, without and with a reboot; -1 is none
		step        int64
		nowMs       int64 // relative to startMs plus a minute
		doubtMs     int64
		mode        Mode
	}{
		{"at once", 2 * second, -1, 0, 2 * second, 0, ModeWall},
		{"a month later, in the same boot", 30 * day, -1, 0, 30 * day, 0, ModeWall},
		{"a month later, off meanwhile", 0, 30 * day, 0, 30 * day, 30 * day, ModeWall},
		{"ten years later, off meanwhile", 0, 10 * year, 0, 10 * year, 10 * year, ModeWall},
		{"a minute later, off meanwhile", 0, minute, 0, minute, minute, ModeWall},
		{"a second later, off meanwhile", 0, second, 0, second, 0, ModeWall},
		{"the wall clock was set by an hour meanwhile", minute, -1, hour, minute + hour, hour, ModeWall},
		{"and by two days", minute, -1, 2 * day, minute, 0, ModeHeld},
		{"and back", minute, -1, -hour, minute, 0, ModeAhead},
		{"off meanwhile, and set back", 0, day, -2 * day, 0, 0, ModeAhead},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := inUse(t)
			s.ok(s.c.Close())
			s.pass(test.off)
			if test.reboot >= 0 {
				s.reboot(test.reboot)
			}
			s.step(test.step)
			s.open()
			s.now(minute + test.nowMs)
			s.mode(test.mode)
			s.horizon2(test.doubtMs)
			if test.mode == ModeHeld {
				return
			}
			s.pass(hour)
			s.restart() // another start makes no difference
			s.horizon2(test.doubtMs)
			if test.mode != ModeWall {
				return
			}
			s.now(minute + test.nowMs + hour)
			s.pass(23 * hour)
			s.horizon(0)
		})
	}
}

// TestDoubtsAddUp: the horizon stays on the line before the first of several jumps, and
// moves to the next line as each doubt ends.
func TestDoubtsAddUp(t *testing.T) {
	s := inUse(t)
	s.step(hour)
	s.now(minute + hour)
	s.pass(10 * hour)
	s.step(2 * hour)
	s.now(minute + 13*hour)
	s.horizon(3 * hour)
	s.restartMachine(5 * hour)
	s.horizon(8 * hour)
	s.pass(14 * hour)
	s.horizon(7 * hour)
	s.pass(10 * hour)
	s.horizon(0)
}

// TestManyJumpsAreBounded: dropping the oldest jump does not end its doubt.
func TestManyJumpsAreBounded(t *testing.T) {
	s := inUse(t)
	for i := range int64(3 * MaxJumps) {
		s.pass(minute)
		s.step(hour)
		s.now(minute + (i+1)*(minute+hour))
		s.horizon((i + 1) * hour)
	}
	s.restart()
	s.horizon(3 * MaxJumps * hour)
	s.pass(day)
	s.horizon(0)
}

// TestADayPassesOnlyWhileTheClockIsOpenAndAwake: at other times no operator could notice
// a wrong clock.
func TestADayPassesOnlyWhileTheClockIsOpenAndAwake(t *testing.T) {
	s := inUse(t)
	s.step(hour)
	s.now(minute + hour)
	s.sleep(3 * day)
	s.horizon(hour)
	s.ok(s.c.Close())
	s.pass(3 * day)
	s.open()
	s.horizon(hour)
	s.pass(day)
	s.horizon(0)
}

// TestAJumpIsInDoubtBeforeItsTimeIsGivenOut: the jump is saved first, so that a crash
// cannot lose it.
func TestAJumpIsInDoubtBeforeItsTimeIsGivenOut(t *testing.T) {
	s := inUse(t)
	s.step(hour)
	s.setFault(errDisk)
	before := s.state(s).FloorMs
	if got := s.c.Now(); got > before {
		t.Fatalf("the time after the jump was given out unsaved")
	}
	s.setFault(nil)
	s.crash()
	s.now(minute + hour)
	s.horizon2(hour)
}

func TestFreshDataIsTrustedAtOnce(t *testing.T) {
	s := newStory(t)
	s.open()
	s.now(0)
	s.horizon(0)
	s.step(hour)
	s.now(hour)
	s.horizon(hour)
}

// TestRealClock compares the clock with the machine's own.
func TestRealClock(t *testing.T) {
	var k keeper
	before := time.Now().UnixMilli()
	c, err := Open(Options{Save: k.save})
	if err != nil {
		t.Fatal(err)
	}
	got := c.Now()
	after := time.Now().UnixMilli()
	if got < before || got > after {
		t.Errorf("now: got %d, want from %d to %d", got, before, after)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if floor := k.state(t).FloorMs; floor < got || floor > time.Now().UnixMilli() {
		t.Errorf("floor after Close: got %d, want from %d to now", floor, got)
	}
	// Another clock on the same data, in the same boot.
	if c, err = Open(Options{State: k.state(t), Save: k.save}); err != nil {
		t.Fatal(err)
	}
	if st := c.Status(); st.Mode != ModeWall || st.HorizonMs != st.NowMs {
		t.Errorf("after a restart: %+v", st)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestMachineBoot: the boot clock advances, and has an ID where restarts are verified.
func TestMachineBoot(t *testing.T) {
	boot := machineBoot()
	a := boot(Reading{MonoMs: 1})
	b := boot(Reading{MonoMs: 2})
	if b.Ms < a.Ms || a.ID != b.ID || a.key() != machineBoot()(Reading{}).key() {
		t.Errorf("got %+v, then %+v", a, b)
	}
}
