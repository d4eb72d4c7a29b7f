// SPDX-License-Identifier: MIT

package cluster

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
)

// times has two nodes look at the time now. They must see the same, and never less than
// before.
type times struct {
	w    *world
	last int64
}

// join starts a node that beats seldom, since days pass here.
func (s *times) join(name string) {
	s.w.t.Helper()
	o := s.w.options(name)
	o.Beat, o.Death = 20*time.Second, 10*time.Minute
	s.w.joinWith(o)
}

// now has all nodes take a moment.
func (s *times) now() int64 {
	s.w.t.Helper()
	var seen int64
	for name, n := range s.w.nodes {
		m, err := n.Moment(s.w.t.Context())
		if err != nil {
			s.w.t.Fatal(err)
		}
		if seen != 0 && m.NowMs != seen {
			s.w.t.Errorf("node %s sees %d, and another %d", name, m.NowMs, seen)
		}
		if m.NowMs < s.last {
			s.w.t.Errorf("node %s sees %d, after %d was seen", name, m.NowMs, s.last)
		}
		seen = m.NowMs
	}
	s.last = seen
	return seen
}

// after lets time pass, and returns how much of the database's time has passed.
func (s *times) after(d time.Duration) time.Duration {
	s.w.t.Helper()
	was := s.now()
	time.Sleep(d)
	return time.Duration(s.now()-was) * time.Millisecond
}

func (s *times) step(d time.Duration) { s.w.stepMs.Add(d.Milliseconds()) }

// status checks the mode of the time on all nodes, and how much of it is in doubt.
func (s *times) status(mode string, doubt time.Duration) {
	s.w.t.Helper()
	s.now()
	for name, n := range s.w.nodes {
		got := n.Clock().Status()
		if string(got.Mode) != mode || got.NowMs-got.HorizonMs != doubt.Milliseconds() {
			s.w.t.Errorf("at node %s the mode is %s and %v are in doubt, want %s and %v", name, got.Mode, time.Duration(got.NowMs-got.HorizonMs)*time.Millisecond, mode, doubt)
		}
	}
}

func runTimes(t *testing.T, story func(t *testing.T, s *times)) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := &times{w: w}
		s.join("a")
		s.join("b")
		time.Sleep(10 * time.Second)
		s.now()
		story(t, s)
	})
}

func want(t *testing.T, what string, got, want time.Duration) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v have passed, want %v", what, got, want)
	}
}

// The engine's clock goes back by a little: the time stands still until it is there again.
func TestEngineClockStepsBackALittle(t *testing.T) {
	runTimes(t, func(t *testing.T, s *times) {
		s.now()
		s.step(-2 * time.Second)
		want(t, "in the first two seconds", s.after(2*time.Second), 0)
		want(t, "in the third", s.after(time.Second), time.Second)
		s.status("engine", 0)
	})
}

// It goes back by an hour: the time goes on at half its pace until the engine's is there.
func TestEngineClockStepsBack(t *testing.T) {
	runTimes(t, func(t *testing.T, s *times) {
		s.now()
		s.step(-time.Hour)
		want(t, "in the first hour", s.after(time.Hour), 30*time.Minute)
		s.status("ahead", 0)
		if err := s.w.nodes["a"].Clock().Confirm(); !errors.Is(err, clock.ErrEngineBehind) {
			t.Errorf("Confirm = %v, want ErrEngineBehind", err)
		}
		want(t, "in the second", s.after(time.Hour), 30*time.Minute)
		want(t, "in the third", s.after(time.Hour), time.Hour)
		s.status("engine", 0)
		if got := time.Duration(s.now()-time.Now().UnixMilli()) * time.Millisecond; got != -time.Hour {
			t.Errorf("the time is %v ahead of the machine's, want -1h", got)
		}
	})
}

// It is set right while the time is bridged: the bridge ends there, and nothing of it is added
// to the right time.
func TestEngineClockIsSetRightAgain(t *testing.T) {
	runTimes(t, func(t *testing.T, s *times) {
		s.now()
		s.step(-time.Hour)
		s.after(20 * time.Minute)
		was := s.now()
		s.step(time.Hour)
		want(t, "at once", time.Duration(s.now()-was)*time.Millisecond, 10*time.Minute)
		s.status("engine", 10*time.Minute)
		if got := time.Duration(s.now()-time.Now().UnixMilli()) * time.Millisecond; got != 0 {
			t.Errorf("the time is %v ahead of the engine's", got)
		}
	})
}

// It goes ahead by an hour: the time follows, and what has expired only by that is kept from
// purge for a day. A second node that sees the same step does not double the doubt.
func TestEngineClockStepsAhead(t *testing.T) {
	for _, confirmed := range []bool{false, true} {
		runTimes(t, func(t *testing.T, s *times) {
			was := s.now()
			s.step(time.Hour)
			want(t, "at once", time.Duration(s.now()-was)*time.Millisecond, time.Hour)
			s.status("engine", time.Hour)
			if confirmed {
				if err := s.w.nodes["b"].Clock().Confirm(); err != nil {
					t.Fatal(err)
				}
				s.status("engine", 0)
				return
			}
			want(t, "in most of a day", s.after(23*time.Hour), 23*time.Hour)
			s.status("engine", time.Hour)
			s.after(time.Hour + time.Second)
			s.status("engine", 0)
		})
	}
}

// It goes ahead by less than a minute: the time follows, without a doubt.
func TestEngineClockIsSlewed(t *testing.T) {
	runTimes(t, func(t *testing.T, s *times) {
		was := s.now()
		s.step(30 * time.Second)
		want(t, "at once", time.Duration(s.now()-was)*time.Millisecond, 30*time.Second)
		s.status("engine", 0)
	})
}

// It jumps by more than seven days: no node follows, also none that starts, until it is
// confirmed on one of them, or goes back.
func TestEngineClockJumps(t *testing.T) {
	for _, confirmed := range []bool{false, true} {
		runTimes(t, func(t *testing.T, s *times) {
			const jump = 30 * 24 * time.Hour
			s.now()
			s.step(jump)
			want(t, "in a minute", s.after(time.Minute), time.Minute)
			s.status("held", 0)
			s.join("c")
			want(t, "in another", s.after(time.Minute), time.Minute)
			s.status("held", 0)
			if confirmed {
				if err := s.w.nodes["c"].Clock().Confirm(); err != nil {
					t.Fatal(err)
				}
				s.status("engine", 0)
				if got := time.Duration(s.now()-time.Now().UnixMilli()) * time.Millisecond; got != jump {
					t.Errorf("the time is %v ahead of the machine's, want the whole jump", got)
				}
				return
			}
			s.step(-jump)
			want(t, "in a third", s.after(time.Minute), time.Minute)
			s.status("engine", 0)
			if got := s.now() - time.Now().UnixMilli(); got != 0 {
				t.Errorf("the time is %d ms ahead of the engine's", got)
			}
		})
	}
}

// All nodes were off for a month: the time follows the engine's, however far it is, and what
// expired meanwhile is in doubt for a day.
func TestAllNodesWereOff(t *testing.T) {
	runTimes(t, func(t *testing.T, s *times) {
		was := s.now()
		for name, n := range s.w.nodes {
			if err := n.Leave(t.Context()); err != nil {
				t.Fatal(err)
			}
			delete(s.w.nodes, name)
		}
		const off = 30 * 24 * time.Hour
		time.Sleep(off)
		s.join("a")
		s.join("b")
		if passed := time.Duration(s.now()-was) * time.Millisecond; passed != off {
			t.Errorf("%v have passed, want %v", passed, off)
		}
		for name, n := range s.w.nodes {
			got := n.Clock().Status()
			if doubt := time.Duration(got.NowMs-got.HorizonMs) * time.Millisecond; doubt < off-time.Minute || doubt > off {
				t.Errorf("at node %s %v are in doubt, want %v", name, doubt, off)
			}
		}
		s.after(25 * time.Hour)
		s.status("engine", 0)
	})
}

// The engine's clock is an hour behind when nodes start, as after a failover to a standby whose
// clock is wrong: what was seen expired stays so.
func TestEngineIsBehindAtTheStart(t *testing.T) {
	runTimes(t, func(t *testing.T, s *times) {
		s.now()
		for name, n := range s.w.nodes {
			if err := n.Leave(t.Context()); err != nil {
				t.Fatal(err)
			}
			delete(s.w.nodes, name)
		}
		s.step(-time.Hour)
		s.join("a")
		s.join("b")
		s.now()
		want(t, "in an hour", s.after(time.Hour), 30*time.Minute)
		s.status("ahead", 0)
	})
}
