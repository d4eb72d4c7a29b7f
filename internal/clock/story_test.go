// SPDX-License-Identifier: MIT

package clock

import (
	"context"
	"errors"
	"flag"
	"log/slog"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// A history is short and cheap; the library's hundred runs would miss rare cases.
	if err := flag.Set("rapid.checks", "3000"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

const (
	startMs = 1_790_000_000_000 // in September 2026
	second  = int64(1000)
	minute  = 60 * second
	hour    = 60 * minute
	day     = 24 * hour
	year    = 365 * day
)

var errDisk = errors.New("disk is full")

// hands are the clocks of a machine, set by a test.
type hands struct {
	mu     sync.Mutex
	at     Reading
	booted Boot
	looks  int // how often the boot clock was read
}

func newHands() hands {
	return hands{at: Reading{WallMs: startMs, MonoMs: 5000}, booted: Boot{ID: "the first", Ms: 70_000}}
}

func (h *hands) read() Reading {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.at
}

func (h *hands) boot() Boot {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.looks++
	return h.booted
}

// pass lets time pass: all clocks move.
func (h *hands) pass(ms int64) {
	h.sleep(ms)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at.MonoMs += ms
}

// sleep lets time pass while the machine is suspended.
func (h *hands) sleep(ms int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at.WallMs += ms
	h.booted.Ms += ms
}

// reboot restarts the machine after it was off for a while.
func (h *hands) reboot(offMs int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at.WallMs += offMs
	h.at.MonoMs = 1
	h.booted = Boot{ID: h.booted.ID + ", and then the next", Ms: 20}
}

// step moves the wall clock, and no other clock.
func (h *hands) step(ms int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at.WallMs += ms
}

// keeper saves the state as bytes, as a database would. Tests make it fail.
type keeper struct {
	mu         sync.Mutex
	kept       []byte
	tries      int
	fault      error // what every save returns
	keepFaulty bool  // a save that returns the fault is kept nevertheless
	busy       bool
	overlapped bool
	gate       chan struct{} // when set, a save waits for it to close
}

func (k *keeper) save(s State) error {
	k.mu.Lock()
	k.overlapped = k.overlapped || k.busy
	k.busy = true
	k.tries++
	gate := k.gate
	k.mu.Unlock()
	if gate != nil {
		<-gate
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.busy = false
	if k.fault == nil || k.keepFaulty {
		k.kept = s.Encode()
	}
	return k.fault
}

func (k *keeper) setFault(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.fault = err
}

func (k *keeper) saves() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.tries
}

// state is what a crash would leave.
func (k *keeper) state(t fataler) State {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.kept == nil {
		return State{}
	}
	s, err := DecodeState(k.kept)
	if err != nil {
		t.Fatalf("kept state: %v", err)
	}
	return s
}

type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// journal counts log lines by message.
type journal struct {
	mu    sync.Mutex
	lines []slog.Record
}

func (j *journal) Enabled(context.Context, slog.Level) bool { return true }
func (j *journal) WithAttrs([]slog.Attr) slog.Handler       { return j }
func (j *journal) WithGroup(string) slog.Handler            { return j }
func (j *journal) Handle(_ context.Context, r slog.Record) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, r)
	return nil
}

// take returns the levels of the lines since the last take.
func (j *journal) take() []slog.Level {
	j.mu.Lock()
	defer j.mu.Unlock()
	var levels []slog.Level
	for _, r := range j.lines {
		levels = append(levels, r.Level)
	}
	j.lines = nil
	return levels
}

// story is the clock of a database on a machine whose clocks the test sets.
type story struct {
	*testing.T
	hands
	keeper
	journal
	test bool
	c    *Clock
}

func newStory(t *testing.T) *story {
	return &story{T: t, hands: newHands()}
}

func (s *story) open() {
	s.Helper()
	c, err := Open(s.options())
	if err != nil {
		s.Fatalf("open: %v", err)
	}
	s.c = c
}

func (s *story) options() Options {
	return Options{State: s.state(s), Save: s.save, Test: s.test, Source: s.read, Boot: s.boot, Logger: slog.New(&s.journal)}
}

// crash drops the clock without closing it, and opens another.
func (s *story) crash() {
	s.Helper()
	s.c.background.Wait()
	s.open()
}

// restart closes the clock, and opens another.
func (s *story) restart() {
	s.Helper()
	if err := s.c.Close(); err != nil {
		s.Fatalf("close: %v", err)
	}
	s.open()
}

// restartMachine closes the clock, and turns the machine off for a while.
func (s *story) restartMachine(offMs int64) {
	s.Helper()
	if err := s.c.Close(); err != nil {
		s.Fatalf("close: %v", err)
	}
	s.reboot(offMs)
	s.open()
}

// now checks the time, relative to startMs, and the promise about the floor.
func (s *story) now(wantMs int64) {
	s.Helper()
	got := s.c.Now()
	s.c.background.Wait()
	if got != startMs+wantMs {
		s.Fatalf("now: got start%+d ms, want start%+d ms (wall start%+d ms)", got-startMs, wantMs, s.at.WallMs-startMs)
	}
	if floor := s.state(s).FloorMs; got > floor {
		s.Fatalf("now: %d is above the saved floor %d", got, floor)
	}
}

// horizon checks how far the horizon is behind the time, and that Status agrees.
func (s *story) horizon(behindMs int64) {
	s.Helper()
	got, now := s.c.Horizon(), s.c.Now()
	st := s.c.Status()
	s.c.background.Wait()
	if got != now-behindMs {
		s.Fatalf("horizon: got %d ms behind the time, want %d", now-got, behindMs)
	}
	if st.HorizonMs != got || st.NowMs != now || (st.Notice == "") != (behindMs == 0 && st.Mode == ModeWall) {
		s.Fatalf("status: %+v, though the horizon is %d and the time %d", st, got, now)
	}
}

func (s *story) mode(want Mode) {
	s.Helper()
	st := s.c.Status()
	s.c.background.Wait()
	if st.Mode != want {
		s.Fatalf("mode: got %q, want %q (status %+v)", st.Mode, want, st)
	}
	if st.SkewMs != st.WallMs-st.NowMs || st.WallMs != s.at.WallMs {
		s.Fatalf("status: skew %d, wall %d, now %d, wall in truth %d", st.SkewMs, st.WallMs, st.NowMs, s.at.WallMs)
	}
}

func (s *story) logged(want ...slog.Level) {
	s.Helper()
	got := s.take()
	if len(got) != len(want) {
		s.Fatalf("log: got %v, want %v", got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			s.Fatalf("log: got %v, want %v", got, want)
		}
	}
}

// ok fails the test on an error.
func (s *story) ok(err error) {
	s.Helper()
	if err != nil {
		s.Fatalf("got error %v", err)
	}
}

func (s *story) refused(err, want error) {
	s.Helper()
	if !errors.Is(err, want) {
		s.Fatalf("error: got %v, want %v", err, want)
	}
}
