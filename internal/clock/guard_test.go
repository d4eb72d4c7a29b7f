// SPDX-License-Identifier: MIT

package clock

import (
	"log/slog"
	"testing"
	"time"
)

// settled opens a clock on data that has been in use, and lets the first minute
// pass, so that purge trusts the time. It stands at startMs+60 s.
func settled(t *testing.T) *story {
	s := tell(t)
	s.kept = State{FloorMs: startMs - 500}.Encode()
	s.open()
	s.now(0)
	s.pass(minute)
	s.now(minute)
	s.trusted("", 0)
	s.logged()
	return s
}

func TestScenario67WallStepsBack(t *testing.T) {
	s := settled(t)
	s.step(-hour)
	s.now(minute)
	s.logged(slog.LevelWarn, slog.LevelWarn) // stepped; stands still
	s.mode(ModeStandingStill)
	s.trusted(doubtAhead, hour-AgreeWithinMs)
	s.pass(30 * minute)
	s.now(minute)
	s.mode(ModeStandingStill)
	s.trusted(doubtAhead, 30*minute-AgreeWithinMs)
	s.crash()
	s.logged(slog.LevelWarn) // stands still, told once a start
	floor := s.state(s).FloorMs - startMs
	s.now(floor)
	s.pass(30 * minute)
	s.now(floor)
	s.pass(floor - minute + 1)
	s.now(floor + 1)
	s.mode(ModeWall)
	s.trusted("", 0)
	s.logged(slog.LevelInfo) // moves on
}

func TestScenario68JumpOfTenYearsIsNotFollowed(t *testing.T) {
	s := settled(t)
	s.step(10 * year)
	s.now(minute)
	s.logged(slog.LevelError)
	s.mode(ModeGuarded)
	s.trusted(doubtGuarded, 0)
	if st := s.c.Status(); st.SkewMs != 10*year {
		t.Fatalf("skew: got %d, want %d", st.SkewMs, 10*year)
	}
	for range 100 {
		s.pass(hour)
		s.now(s.at.WallMs - startMs - 10*year)
	}
	s.trusted(doubtGuarded, 0)
	s.logged()

	s.step(-10 * year) // the fix
	s.now(minute + 100*hour)
	s.logged(slog.LevelInfo)
	s.mode(ModeWall)
	s.trusted(doubtStep, minute)
	s.pass(minute)
	s.now(2*minute + 100*hour)
	s.trusted("", 0)
}

func TestScenario68bLaptopWakesUp(t *testing.T) {
	s := settled(t)
	s.step(8 * hour) // the monotonic clock slept, too
	s.now(minute + 8*hour)
	s.logged(slog.LevelWarn)
	s.mode(ModeWall)
	s.trusted(doubtStep, minute)
	s.pass(minute - 1)
	s.now(8*hour + 2*minute - 1)
	s.trusted(doubtStep, 1)
	s.pass(1)
	s.trusted("", 0)
	s.logged()
}

func TestScenario69RestartBehindTheFloor(t *testing.T) {
	s := settled(t)
	s.step(-3 * day)
	s.crash()
	floor := s.state(s).FloorMs - startMs
	s.logged(slog.LevelWarn)
	s.now(floor)
	s.mode(ModeStandingStill)
	s.pass(day)
	s.now(floor)
	s.trusted(doubtAhead, 2*day+floor-minute-AgreeWithinMs)
	s.restart()
	s.now(floor)
}

func TestScenario71LeapSecondIsNoStep(t *testing.T) {
	s := settled(t)
	s.pass(10)
	s.now(minute + 10)
	s.step(-1001) // a second inserted, and the rounding of two readings
	s.now(minute + 10)
	s.trusted("", 0)
	s.pass(1000)
	s.now(minute + 10)
	s.pass(2)
	s.now(minute + 11)
	s.trusted("", 0)
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
		doubt    string
	}{
		{"slewing", 200, true, ""},
		{"just within agreement", AgreeWithinMs, true, ""},
		{"just beyond", AgreeWithinMs + 1, true, doubtStep},
		{"a day", day, true, doubtStep},
		{"seven days", MaxFollowedJumpMs, true, doubtStep},
		{"a millisecond more", MaxFollowedJumpMs + 1, false, doubtGuarded},
		{"past the largest time", MaxMs, false, doubtGuarded},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := settled(t)
			s.at.WallMs = min(s.at.WallMs+test.jumpMs, MaxMs)
			want := minute
			if test.followed {
				want += test.jumpMs
			}
			s.now(want)
			if ok, doubt := s.c.PurgeTrusted(); doubt != test.doubt {
				t.Errorf("purge trusted: got %v %q, want %q", ok, doubt, test.doubt)
			}
		})
	}
}

func TestGuardedTimeReturnsWithTheWallClock(t *testing.T) {
	tests := []struct {
		name     string
		backToMs int64 // relative to our own time
		nowMs    int64
		mode     Mode
	}{
		{"to our own time", 0, 0, ModeWall},
		{"ahead within the window", 3 * day, 3 * day, ModeWall},
		{"to the window's edge", MaxFollowedJumpMs, MaxFollowedJumpMs, ModeWall},
		{"still too far", MaxFollowedJumpMs + 1, 0, ModeGuarded},
		{"further away", 20 * year, 0, ModeGuarded},
		{"behind", -day, 0, ModeStandingStill},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := settled(t)
			s.step(10 * year)
			s.pass(hour)
			s.now(minute + hour)
			s.step(test.backToMs - 10*year)
			s.now(minute + hour + test.nowMs)
			s.mode(test.mode)
			if ok, _ := s.c.PurgeTrusted(); ok {
				t.Error("purge trusted: got true right after the wall clock moved")
			}
		})
	}
}

func TestConfirmAcceptsAJump(t *testing.T) {
	s := settled(t)
	s.refused(s.c.Confirm(), ErrNothingToConfirm)
	s.step(30 * day)
	s.now(minute)
	s.logged(slog.LevelError)
	s.pass(10 * minute)
	s.ok(s.c.Confirm())
	s.logged(slog.LevelWarn)
	s.now(11*minute + 30*day)
	s.mode(ModeWall)
	s.trusted(doubtConfirm, minute)
	s.refused(s.c.Confirm(), ErrNothingToConfirm)
	s.pass(minute)
	s.now(12*minute + 30*day)
	s.trusted("", 0)
	s.step(8 * day) // the next one is held back again
	s.now(12*minute + 30*day)
	s.mode(ModeGuarded)
}

// TestConfirmWithoutAnyReadBefore: the jump is found by Confirm itself.
func TestConfirmWithoutAnyReadBefore(t *testing.T) {
	s := settled(t)
	s.step(30 * day)
	s.ok(s.c.Confirm())
	s.now(minute + 30*day)
}

func TestWallClockPutRightAfterLongIsFollowed(t *testing.T) {
	s := settled(t)
	s.step(-10 * year) // a battery died
	s.now(minute)
	for range 20 {
		s.pass(day)
		s.now(minute)
	}
	s.step(10 * year) // and the network told the time
	s.now(minute + 20*day)
	s.mode(ModeWall)
	s.trusted(doubtStep, minute)
}

func TestJumpWhileStandingStillGoesOnFromThere(t *testing.T) {
	s := settled(t)
	s.step(-hour)
	s.now(minute)
	s.pass(10 * minute)
	s.now(minute)
	s.step(10 * year)
	s.now(minute)
	s.mode(ModeGuarded)
	s.pass(5)
	s.now(minute + 5)
}

func TestMachineWithoutABatteryGetsTheTimeAfterTheStart(t *testing.T) {
	s := settled(t)
	s.ok(s.c.Close())
	s.step(-20 * year)
	s.open()
	s.now(minute)
	s.mode(ModeStandingStill)
	s.pass(30 * second)
	s.step(20*year + 2*day) // it was off for two days
	s.now(minute + 30*second + 2*day)
	s.mode(ModeWall)
	s.trusted(doubtStep, minute)
}

// TestCaughtUpTimeIsHeldToTheWallClockAgain: what was allowed to a wall clock that
// was behind ends the moment that it is not.
func TestCaughtUpTimeIsHeldToTheWallClockAgain(t *testing.T) {
	s := settled(t)
	s.step(-30 * second)
	s.now(minute)
	s.logged(slog.LevelWarn, slog.LevelWarn)
	s.pass(30*second + 10)
	s.now(minute + 10)
	s.logged(slog.LevelInfo)
	s.step(MaxFollowedJumpMs + 2*second)
	s.now(minute + 10)
	s.mode(ModeGuarded)
}

func TestDriftWhileStandingStillIsNoStep(t *testing.T) {
	s := settled(t)
	s.step(-hour)
	s.now(minute)
	s.logged(slog.LevelWarn, slog.LevelWarn)
	for range 3000 {
		s.pass(990)
		s.step(10)
		s.now(minute)
	}
	s.logged()
}

func TestDriftIsFollowed(t *testing.T) {
	s := settled(t)
	for range 3000 { // 1% fast, for 50 minutes
		s.pass(990)
		s.step(10)
		s.now(s.at.WallMs - startMs)
	}
	s.trusted("", 0)
	s.logged()
}

func TestDriftTooFastIsNoAgreement(t *testing.T) {
	s := settled(t)
	for range 40 { // 10% fast: more than agreement allows, in small bites
		s.pass(900)
		s.step(100)
		s.now(s.at.WallMs - startMs)
	}
	if ok, reason := s.c.PurgeTrusted(); ok || reason != doubtStep {
		t.Errorf("purge trusted: got %v %q, want %q", ok, reason, doubtStep)
	}
	s.logged(slog.LevelWarn)
}

func TestFlutteringWallClockIsLoggedOnceAMinute(t *testing.T) {
	s := settled(t)
	for range 120 { // two minutes
		s.step(10 * second)
		s.now(s.at.WallMs - startMs)
		s.step(-2 * second)
		s.pass(second)
		s.c.Now()
		s.c.background.Wait()
	}
	if got := len(s.take()); got < 2 || got > 8 {
		t.Errorf("log lines of 240 steps in two minutes: got %d, want a few", got)
	}
}

func TestPurgeWaitsAfterAStart(t *testing.T) {
	tests := []struct {
		name   string
		offMs  int64
		waitMs int64
		doubt  string
	}{
		{"at once", 2 * second, minute, doubtStart},
		{"a weekend later", 2 * day, minute, doubtStart},
		{"seven days later", MaxFollowedJumpMs, minute, doubtStart},
		{"more than seven days later", MaxFollowedJumpMs + 1, 10 * minute, doubtRestart},
		{"ten years later", 10 * year, 10 * minute, doubtRestart},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := settled(t)
			s.ok(s.c.Close())
			s.pass(test.offMs)
			s.at.MonoMs = 77
			s.open()
			s.trusted(test.doubt, test.waitMs)
			s.now(minute + test.offMs)
			s.mode(ModeWall)
			s.pass(test.waitMs - 1)
			s.trusted(test.doubt, 1)
			s.pass(1)
			s.trusted("", 0)
		})
	}
}

func TestAnotherRestartDoesNotShortenTheWait(t *testing.T) {
	s := settled(t)
	s.ok(s.c.Close())
	s.pass(10 * year)
	s.open()
	s.trusted(doubtRestart, 10*minute)
	s.now(minute + 10*year)
	s.pass(4 * minute)
	s.crash()
	s.trusted(doubtRestart, 6*minute)
	s.pass(minute)
	s.restart()
	s.trusted(doubtRestart, 5*minute)
	s.pass(4*minute + 30*second)
	s.restart()
	s.trusted(doubtStart, minute)
	s.pass(hour)
	s.restart()
	s.trusted(doubtStart, minute)
}

func TestAStepDoesNotShortenTheWait(t *testing.T) {
	s := settled(t)
	s.ok(s.c.Close())
	s.pass(10 * year)
	s.open()
	s.now(minute + 10*year)
	s.pass(minute)
	s.step(hour)
	s.now(2*minute + 10*year + hour)
	s.trusted(doubtRestart, 9*minute)
	s.pass(8*minute + 30*second)
	s.step(hour)
	s.trusted(doubtStep, minute)
}

func TestNoKeptStateMakesPurgeWaitForEver(t *testing.T) {
	s := tell(t)
	s.kept = State{FloorMs: startMs, SuspectUntilMs: startMs + 10*year}.Encode()
	s.open()
	s.trusted(doubtRestart, RestartJumpWaitMs)
}

func TestAStepBeginsTheMinuteAnew(t *testing.T) {
	s := settled(t)
	s.step(hour)
	s.now(minute + hour)
	s.pass(40 * second)
	s.now(minute + hour + 40*second)
	s.step(2 * second)
	s.now(minute + hour + 42*second)
	s.trusted(doubtStep, minute)
	s.pass(30 * second)
	s.now(minute + hour + 72*second)
	s.step(-1600) // backwards counts as well
	s.now(minute + hour + 72*second)
	s.trusted(doubtAhead, minute)
	s.pass(minute)
	s.trusted("", 0)
}

func TestFreshDataIsTrustedAtOnce(t *testing.T) {
	s := tell(t)
	s.open()
	s.trusted("", 0)
	s.now(0)
	s.trusted("", 0)
	s.step(hour)
	s.now(hour)
	s.trusted(doubtStep, minute)
}

// TestRealClock holds the clock against the machine's own.
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
}
