// SPDX-License-Identifier: MIT

package clock

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// model runs a test clock and its twin through one random history.
type model struct {
	hands
	keeper
	c *Clock
	w *twin

	highestMs int64 // ever returned, by any clock of this history
}

func (m *model) open(t *rapid.T) {
	kept := m.state(t)
	c, err := Open(Options{State: kept, Save: m.save, Test: true, Source: m.read, Boot: m.boot})
	if err != nil {
		t.Fatalf("open from %+v: %v", kept, err)
	}
	m.c, m.w = c, newTwin(&m.hands, kept)
}

func (m *model) setFaults(f fault) {
	m.w.fault = f
	m.keepFaulty = f == faultKept
	m.setFault(nil)
	if f != faultNone {
		m.setFault(errDisk)
	}
}

// reopen begins the next life of the data, with or without a reboot of the machine.
func (m *model) reopen(t *rapid.T) {
	if rapid.Bool().Draw(t, "reboot") {
		m.reboot(0)
	}
	m.setFaults(faultNone)
	m.open(t)
}

// returned checks a time that the clock returned.
func (m *model) returned(t *rapid.T, gotMs, wantMs int64) {
	t.Helper()
	m.c.background.Wait()
	if gotMs < m.highestMs {
		t.Fatalf("time went back: got %d after %d", gotMs, m.highestMs)
	}
	if floor := m.state(t).FloorMs; gotMs > floor {
		t.Fatalf("time %d is above the saved floor %d", gotMs, floor)
	}
	if gotMs > MaxMs {
		t.Fatalf("time %d is beyond the largest", gotMs)
	}
	m.highestMs = gotMs
	if gotMs != wantMs {
		t.Fatalf("time: got %d, twin %d (wall %d, mono %d)", gotMs, wantMs, m.at.WallMs, m.at.MonoMs)
	}
}

func (m *model) sameError(t *rapid.T, got error, wantOK bool, want error) {
	t.Helper()
	if wantOK {
		want = nil
	}
	if !errors.Is(got, want) {
		t.Fatalf("error: got %v, twin %v", got, want)
	}
}

// check runs after every action.
func (m *model) check(t *rapid.T) {
	m.c.background.Wait()
	if m.state(t) != m.w.kept {
		t.Fatalf("kept state: got %+v, twin %+v", m.state(t), m.w.kept)
	}
	if m.overlapped {
		t.Fatalf("two saves at the same time")
	}
}

func (m *model) letPass(t *rapid.T) {
	ms := rapid.OneOf(
		rapid.Int64Range(0, 300),
		rapid.Int64Range(0, 5000),
		rapid.SampledFrom([]int64{99, 100, 500, 501, 1000, 59_999, 60_000, 600_000, hour, 8 * day}),
	).Draw(t, "ms")
	m.pass(ms)
}

// jump steps the wall clock.
func (m *model) jump(t *rapid.T) {
	size := rapid.OneOf(
		rapid.SampledFrom([]int64{2 * second, hour, 8 * hour, 6 * day, 7 * day, 7*day + 2*second, 30 * day, 10 * year}),
		rapid.Map(rapid.Int64Range(1, 20_000), func(n int64) int64 { return 2 * second * n }),
	).Draw(t, "size")
	if rapid.Bool().Draw(t, "back") {
		size = -size
	}
	if to := m.at.WallMs + size; to > year && to < MaxMs-10*year {
		m.step(size)
	}
}

func (m *model) now(t *rapid.T) {
	for range rapid.IntRange(1, 3).Draw(t, "calls") {
		m.returned(t, m.c.Now(), m.w.now())
	}
}

func (m *model) status(t *rapid.T) {
	want := m.w.now()
	st := m.c.Status()
	m.returned(t, st.NowMs, want)
	if st.HorizonMs != st.NowMs || m.c.Horizon() != st.NowMs || st.Notice != "" {
		t.Fatalf("status: got %+v: a test clock is not in doubt", st)
	}
}

func (m *model) faults(t *rapid.T) {
	m.setFaults(rapid.SampledFrom([]fault{faultNone, faultNone, faultLost, faultKept}).Draw(t, "fault"))
}

func (m *model) crash(t *rapid.T) {
	m.c.background.Wait()
	m.reopen(t)
}

func (m *model) restart(t *rapid.T) {
	wantOK := m.w.close()
	m.sameError(t, m.c.Close(), wantOK, errDisk)
	if m.state(t) != m.w.kept {
		t.Fatalf("kept at the end: got %+v, twin %+v", m.state(t), m.w.kept)
	}
	final := m.c.Now()
	m.returned(t, final, final)
	m.reopen(t)
}

func (m *model) freeze(t *rapid.T) {
	wantOK := m.w.move(pose{ms: m.w.here(), frozen: true})
	m.sameError(t, m.c.Freeze(), wantOK, errDisk)
}

func (m *model) release(t *rapid.T) {
	wantOK := m.w.move(pose{ms: m.w.here()})
	m.sameError(t, m.c.Release(), wantOK, errDisk)
}

func (m *model) set(t *rapid.T) {
	to := m.w.here() + rapid.OneOf(rapid.Int64Range(-5, 2000), rapid.Int64Range(0, year)).Draw(t, "by")
	switch {
	case to < m.w.here():
		m.sameError(t, m.c.Set(to), false, ErrBackwards)
	case to > MaxMs:
		m.sameError(t, m.c.Set(to), false, ErrTooFar)
	default:
		wantOK := m.w.move(pose{ms: to, frozen: m.w.state.Frozen})
		m.sameError(t, m.c.Set(to), wantOK, errDisk)
	}
}

func (m *model) advance(t *rapid.T) {
	ms := rapid.OneOf(rapid.Int64Range(1, 2000), rapid.SampledFrom([]int64{day, 100 * year})).Draw(t, "ms")
	d := time.Duration(ms) * time.Millisecond
	to := m.w.here() + ms
	if to > MaxMs {
		m.sameError(t, m.c.Advance(d), false, ErrTooFar)
		return
	}
	wantOK := m.w.move(pose{ms: to, frozen: m.w.state.Frozen})
	m.sameError(t, m.c.Advance(d), wantOK, errDisk)
}

func TestRandomHistoriesOfTestClocks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &model{hands: newHands()}
		m.open(t)
		t.Repeat(map[string]func(*rapid.T){
			"":        m.check,
			"pass":    m.letPass,
			"jump":    m.jump,
			"now":     m.now,
			"now2":    m.now,
			"status":  m.status,
			"faults":  m.faults,
			"crash":   m.crash,
			"restart": m.restart,
			"freeze":  m.freeze,
			"release": m.release,
			"set":     m.set,
			"advance": m.advance,
		})
		m.setFaults(faultNone)
		if err := m.c.Close(); err != nil {
			t.Fatalf("close: %v", err)
		}
	})
}
