// SPDX-License-Identifier: MIT

package clock

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// promises runs a clock through one random history of jumps, slewing, suspends,
// restarts, reboots, crashes and saves that fail, and checks these promises. It sees
// only what is visible from outside: the machine's clocks and the clock's answers.
//
//  1. Time never goes back, whatever happens.
//  2. No time is above the saved floor.
//  3. Time never stands still: as long as saves succeed, it moves at least at half the
//     pace of the boot clock, except for a moment (lullMs, plus slewing of the wall
//     clock).
//  4. While the clock is open, or was opened again within one boot, time moves ahead of
//     the boot clock by no more than a day, unless the wall clock has stood still
//     beyond that for ten minutes, or was confirmed.
//  5. The horizon is not past any line that time jumped away from within the last day in
//     which the clock was open. A line is the time before the jump, going on at the boot
//     clock's pace.
//  6. The horizon is not past the time, and is the time after a day in which the wall
//     clock was followed and did not step.
//  7. A rewind takes time back to the wall clock. It leaves times from before the jumps
//     as they are, and keeps the order of all others and the time that each item has left.
type promises struct {
	hands
	keeper
	c *Clock

	highestMs int64
	elapsedMs int64 // of the boot clock, since the highest time was returned
	owedMs    int64 // how long time stood still because it could not be saved
	steadyMs  int64 // of the boot clock, since the wall clock last stepped
	unseenMs  int64 // what the wall clock has stepped by since the last reading
	agreedMs  int64 // of the boot clock, since a reading showed a step of the wall clock
	faulty    bool  // a save may have failed since then
	strange   bool  // there was a restart or a confirmation since then
	confirmed bool  // there was a confirmation since then
	calm      bool  // the wall clock was followed at the last look, and has not stepped since
	calmMs    int64 // of the monotonic clock, since calm is true
	slackMs   int64 // how much slewing and crashes may have added to a line
	lines     []line
}

// line is where time would be, had it not jumped.
type line struct{ ms, ageMs int64 }

func (p *promises) open(t *rapid.T) {
	kept := p.state(t)
	c, err := Open(Options{State: kept, Save: p.save, Source: p.read, Boot: p.boot})
	if err != nil {
		t.Fatalf("open from %+v: %v", kept, err)
	}
	p.c, p.calm = c, false
}

// passes moves the lines on by the time that has passed.
func (p *promises) passes(bootMs, monoMs int64) {
	p.elapsedMs += bootMs
	p.steadyMs += bootMs
	p.agreedMs += bootMs
	p.calmMs += monoMs
	for i := range p.lines {
		p.lines[i].ms += bootMs
		p.lines[i].ageMs += monoMs
	}
}

func (p *promises) letPass(t *rapid.T) {
	ms := rapid.OneOf(
		rapid.Int64Range(0, 3000),
		rapid.SampledFrom([]int64{99, 100, 500, 501, 1000, 59_999, 60_000, 9 * minute, 600_000, hour, 23 * hour, day}),
	).Draw(t, "ms")
	p.pass(ms)
	p.passes(ms, ms)
}

// letSleep reads the time before and after: a step of the wall clock and a sleep that
// cancel each other out between two readings are not seen. Slews that the guard has not
// seen add up to AgreeWithinMs at most. So it sees a sleep that is longer than twice that.
func (p *promises) letSleep(t *rapid.T) {
	p.now(t)
	defer p.now(t)
	ms := rapid.SampledFrom([]int64{4 * second, minute, hour, 8 * hour, 30 * day}).Draw(t, "ms")
	p.sleep(ms)
	p.passes(ms, 0)
}

func (p *promises) jump(t *rapid.T) {
	size := rapid.SampledFrom([]int64{2 * second, minute, hour, 8 * hour, 20 * hour, day, day + 2*second, 6 * day, 10 * year}).Draw(t, "size")
	if rapid.Bool().Draw(t, "back") {
		size = -size
	}
	if to := p.at.WallMs + size; to > year && to < MaxMs-100*year {
		p.step(size)
		p.steadyMs, p.calm = 0, false
		p.unseenMs += size
	}
}

func (p *promises) slew(t *rapid.T) {
	ms := rapid.Int64Range(-300, 300).Draw(t, "ms")
	p.step(ms)
	p.slackMs += max(ms, -ms)
}

func (p *promises) now(t *rapid.T) {
	// Steps that cancel each other out between two readings are not seen.
	if max(p.unseenMs, -p.unseenMs) > 2*AgreeWithinMs {
		p.agreedMs = 0
	}
	p.unseenMs = 0
	got := p.c.Now()
	p.c.background.Wait()
	p.returned(t, got)
	p.horizon(t)
	got = p.c.Now() // Horizon and Status may have moved the time on
	p.c.background.Wait()
	p.returned(t, got)
}

// returned checks a time against the first four promises.
func (p *promises) returned(t *rapid.T, got int64) {
	t.Helper()
	if got < p.highestMs {
		t.Fatalf("1: time went back: got %d after %d", got, p.highestMs)
	}
	if floor := p.state(t).FloorMs; got > floor || got > MaxMs {
		t.Fatalf("2: time %d is above the saved floor %d", got, floor)
	}
	movedMs := got - p.highestMs
	if leastMs := p.elapsedMs/2 - lullMs - 2 - p.slackMs; p.highestMs > 0 && movedMs < leastMs && !p.faulty && !p.strange {
		t.Fatalf("3: time moved by %d ms in %d ms (wall %d, status %+v)", movedMs, p.elapsedMs, p.at.WallMs, p.c.Status())
	}
	jumpMs := movedMs - p.elapsedMs - p.owedMs
	if jumpMs > day+p.slackMs && p.highestMs > 0 && !p.strange && !p.faulty && max(p.steadyMs, p.agreedMs) < HoldMs {
		t.Fatalf("4: time jumped by %d ms, %d ms after the wall clock stepped", jumpMs, p.steadyMs)
	}
	if jumpMs > 2*AgreeWithinMs && p.highestMs > 0 && !p.confirmed && !p.faulty {
		p.lines = append(p.lines, line{ms: p.highestMs + p.elapsedMs + p.owedMs})
	}
	p.owedMs = max(0, p.owedMs+p.elapsedMs-movedMs)
	p.elapsedMs = 0
	if !p.faulty {
		p.owedMs = 0
	}
	p.highestMs, p.strange = got, p.strange && p.faulty
	p.faulty = p.fault != nil || p.c.Status().SaveError != nil
	p.confirmed = false
}

func (p *promises) horizon(t *rapid.T) {
	got := p.c.Horizon()
	p.c.background.Wait()
	if now := p.c.Now(); got > now {
		t.Fatalf("6: the horizon %d is past the time %d", got, now)
	}
	for _, l := range p.lines {
		if l.ageMs < day && got > l.ms+p.slackMs {
			t.Fatalf("5: the horizon %d is past %d, from which time jumped away %d ms ago", got, l.ms, l.ageMs)
		}
	}
	st := p.c.Status()
	if p.calm && p.calmMs >= day && st.HorizonMs != st.NowMs {
		t.Fatalf("6: still in doubt after %d ms without a step: %+v", p.calmMs, st)
	}
	if follows := st.Mode == ModeWall; follows != p.calm {
		p.calm, p.calmMs = follows, 0
	}
	p.c.background.Wait()
}

func (p *promises) confirm(t *rapid.T) {
	p.setFault(nil) // a Confirm that fails may have been saved or not
	err := p.c.Confirm()
	switch {
	case err == nil:
		p.lines, p.strange, p.confirmed = nil, true, true
		p.now(t)
	case !errors.Is(err, ErrNothingToConfirm) && !errors.Is(err, ErrAhead):
		t.Fatalf("confirm: %v", err)
	}
}

func (p *promises) faults(t *rapid.T) {
	fault := rapid.SampledFrom([]fault{faultNone, faultNone, faultLost, faultKept}).Draw(t, "fault")
	p.keepFaulty = fault == faultKept
	p.setFault(nil)
	if fault != faultNone {
		p.setFault(errDisk)
		p.faulty = true
	}
}

// maxLeadMs is the most by which the floor leads time, so a restart after a crash with a
// sound wall clock stands still no longer than this.
const maxLeadMs = ReserveMs + extendWithinMs

// next begins another life of the data.
func (p *promises) next(t *rapid.T) {
	p.setFault(nil)
	p.slackMs += 2 * maxLeadMs
	if rapid.Bool().Draw(t, "reboot") {
		p.reboot(rapid.SampledFrom([]int64{0, minute, 8 * hour, 30 * day}).Draw(t, "off"))
		p.steadyMs, p.agreedMs = 0, 0
	}
	p.open(t)
	p.strange = true // a state that was not saved may be lost
	p.now(t)
}

func (p *promises) crash(t *rapid.T) {
	p.c.background.Wait()
	p.next(t)
}

func (p *promises) restart(t *rapid.T) {
	if err := p.c.Close(); err != nil && !errors.Is(err, errDisk) {
		t.Fatalf("close: %v", err)
	}
	p.next(t)
}

// rewind stops the clock, and sets it back if the wall clock is behind.
func (p *promises) rewind(t *rapid.T) {
	p.setFault(nil)
	if err := p.c.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	was := p.state(t)
	begun, err := BeginRewind(Options{State: was, Source: p.read, Boot: p.boot})
	if errors.Is(err, ErrNotAhead) {
		p.next(t)
		return
	}
	if err != nil && !errors.Is(err, ErrUnexplained) {
		t.Fatalf("begin a rewind: %v", err)
	}
	if _, err := Open(Options{State: begun, Save: p.save}); !errors.Is(err, ErrRewinding) {
		t.Fatalf("7: opened in the middle of a rewind: %v", err)
	}
	p.rewound(t, was, begun, err == nil)
	k := begun.Rewound()
	if err := k.validate(); err != nil {
		t.Fatalf("7: %v", err)
	}
	if err := p.save(k); err != nil {
		t.Fatal(err)
	}
	*p = promises{hands: hands{at: p.at, booted: p.booted}, keeper: keeper{kept: p.kept}}
	p.open(t)
	if got, wall := p.c.Now(), p.at.WallMs; got != wall {
		t.Fatalf("7: after the rewind it is %d, and %d by the wall clock", got, wall)
	}
	p.c.background.Wait()
	p.highestMs = p.c.Now()
}

// rewound checks State.Back against the last promise.
func (p *promises) rewound(t *rapid.T, was, begun State, explained bool) {
	back, aheadMs := begun.Back(), was.FloorMs-begun.RewindToMs
	var times []int64
	firstMs := was.FloorMs
	for _, j := range was.Jumps[:countJumps(was.Jumps)] {
		times = append(times, j.FromMs-hour, j.FromMs, j.FromMs+1, j.ToMs, j.ToMs+1, j.ToMs+hour)
		firstMs = min(firstMs, j.ToMs)
	}
	times = append(times, was.FloorMs)
	times = slices.DeleteFunc(times, func(ms int64) bool { // those that were never returned
		return ms > was.FloorMs || slices.ContainsFunc(was.Jumps[:], func(j Jump) bool { return ms > j.FromMs+1 && ms < j.ToMs })
	})
	slices.Sort(times)
	for i, ms := range times {
		got := back(ms)
		if got > ms || got > begun.RewindToMs {
			t.Fatalf("7: %d goes to %d, past itself or the wall clock %d", ms, got, begun.RewindToMs)
		}
		if ms < firstMs && ms <= min(was.Jumps[0].FromMs, begun.RewindToMs) && got != ms {
			t.Fatalf("7: %d, from before the jumps, goes to %d", ms, got)
		}
		if ms < begun.ChangedFromMs() && got != ms {
			t.Fatalf("7: %d goes to %d, before the first that changes", ms, got)
		}
		if i > 0 && back(times[i-1]) > got {
			t.Fatalf("7: %d goes to %d, and the later %d to %d", times[i-1], back(times[i-1]), ms, got)
		}
	}
	if n := countJumps(was.Jumps); explained && n > 0 {
		if j := was.Jumps[n-1]; aheadMs <= j.GapMs && back(was.FloorMs) != was.FloorMs-aheadMs {
			t.Fatalf("7: the latest time does not keep what is left of it")
		}
	}
}

func TestRandomHistories(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &promises{hands: newHands()}
		p.open(t)
		p.now(t)
		t.Repeat(map[string]func(*rapid.T){
			"":        func(t *rapid.T) { p.c.background.Wait() },
			"pass":    p.letPass,
			"pass2":   p.letPass,
			"sleep":   p.letSleep,
			"jump":    p.jump,
			"slew":    p.slew,
			"now":     p.now,
			"now2":    p.now,
			"now3":    p.now,
			"confirm": p.confirm,
			"faults":  p.faults,
			"crash":   p.crash,
			"restart": p.restart,
			"rewind":  p.rewind,
		})
		if p.overlapped {
			t.Fatalf("two saves at the same time")
		}
		p.setFault(nil)
		if err := p.c.Close(); err != nil {
			t.Fatalf("close: %v", err)
		}
	})
}
