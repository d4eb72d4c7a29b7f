// SPDX-License-Identifier: MIT

package store

import (
	"testing"
	"time"
)

func TestRhythm(t *testing.T) {
	ended := time.Unix(1000, 0)
	const sync = time.Millisecond
	for _, c := range []struct {
		name  string
		last  int
		took  time.Duration
		n     int
		after time.Duration // the end of the last group
		want  time.Duration
	}{
		{"a client that is alone", 1, sync, 1, 0, 0},
		{"the second of two at once", 1, sync, 2, 0, sync},
		{"one after a group of two", 2, sync, 1, 300 * time.Microsecond, 700 * time.Microsecond},
		{"almost as long ago as a sync takes", 2, sync, 1, 900 * time.Microsecond, 0},
		{"long ago", 2, sync, 1, time.Hour, 0},
		{"a group that is not small", 9, sync, smallGroup, 0, 0},
		{"a slow disk", 2, time.Second, 1, 0, mostWait},
		{"without syncs", 2, 50 * time.Microsecond, 2, 0, 0},
	} {
		var r rhythm
		r.note(c.last, ended.Add(-c.took), ended)
		if got := r.wait(c.n, ended.Add(c.after)); got != c.want {
			t.Errorf("%s: waits %v, want %v", c.name, got, c.want)
		}
	}
	if got := new(rhythm).wait(3, ended); got != 0 {
		t.Errorf("the first group waits %v", got)
	}
}

// simulation is a loop whose commits take a fixed time.
type simulation struct {
	commit time.Duration
	waits  bool
	rhythm rhythm

	arrivals []time.Duration // of the writes that are not committed yet, ascending
	again    time.Duration   // after its answer a client writes again; 0 for never
	answered int
	groups   int
	slowest  time.Duration
}

// run commits what arrives up to the given time.
func (s *simulation) run(until time.Duration) {
	start := time.Unix(0, 0)
	for now := time.Duration(0); len(s.arrivals) > 0 && s.arrivals[0] < until; {
		now = max(now, s.arrivals[0])
		if s.waits {
			now += s.rhythm.wait(s.waiting(now), start.Add(now))
		}
		n := s.waiting(now)
		began := now
		now += s.commit
		s.rhythm.note(n, start.Add(began), start.Add(now))
		s.slowest = max(s.slowest, now-s.arrivals[0])
		s.arrivals = s.arrivals[n:]
		s.answered, s.groups = s.answered+n, s.groups+1
		for i := 0; i < n && s.again > 0; i++ { // clients come back one after the other
			s.arrivals = append(s.arrivals, now+s.again+time.Duration(i)*10*time.Microsecond)
		}
	}
}

// waiting returns how many writes wait.
func (s *simulation) waiting(now time.Duration) int {
	n := 0
	for n < len(s.arrivals) && s.arrivals[n] <= now {
		n++
	}
	return n
}

// Writes that come by themselves, one each half millisecond, share a sync by four instead of
// two.
func TestRhythmOfManyClients(t *testing.T) {
	var groups [2]int
	for i, waits := range []bool{false, true} {
		s := simulation{commit: time.Millisecond, waits: waits}
		for at := time.Duration(0); at < time.Second; at += 500 * time.Microsecond {
			s.arrivals = append(s.arrivals, at)
		}
		s.run(time.Second)
		groups[i] = s.groups
		if s.answered != 2000 || s.slowest > 3*time.Millisecond {
			t.Errorf("waits %v: %d writes, the slowest took %v", waits, s.answered, s.slowest)
		}
	}
	if groups[1] > groups[0]*6/10 {
		t.Errorf("%d groups instead of %d", groups[1], groups[0])
	}
}

// Clients that write again after each answer write about as much as if no group waited.
func TestRhythmOfBusyClients(t *testing.T) {
	for _, clients := range []int{1, 2, 3, 4, 8, 16, 64} {
		var answered [2]int
		for i, waits := range []bool{false, true} {
			s := simulation{commit: time.Millisecond, waits: waits, again: 300 * time.Microsecond}
			for c := range clients {
				s.arrivals = append(s.arrivals, time.Duration(c)*100*time.Microsecond)
			}
			s.run(time.Second)
			answered[i] = s.answered
		}
		if answered[1]*100 < answered[0]*95 {
			t.Errorf("%d clients: %d writes a second instead of %d", clients, answered[1], answered[0])
		}
	}
}
