// SPDX-License-Identifier: MIT

package store

import (
	"slices"
	"testing"
	"time"
)

// writers are clients of a simulated loop.
type writers struct {
	commit   time.Duration   // how long one takes
	again    time.Duration   // a client writes again so long after its answer; 0 is never
	arrivals []time.Duration // of writes, ascending
}

// loopOf simulates a loop. Time passes in commits and in waits.
type loopOf struct {
	writers
	waits           bool
	returning       returning
	groups, written int
	waited, longest time.Duration
}

func (s *loopOf) waiting(now time.Duration) int {
	n, _ := slices.BinarySearch(s.arrivals, now+1)
	return n
}

func (s *loopOf) run(until time.Duration) {
	start := time.Unix(1000, 0)
	for now := time.Duration(0); len(s.arrivals) > 0 && s.arrivals[0] < until; {
		now = max(now, s.arrivals[0])
		r := &s.returning
		if from := s.waiting(now); s.waits {
			if w := r.wait(from, start.Add(now)); w.patience != nil {
				end := now + max(w.d, returnTime) // a timer takes that long
				if last := w.target - 1; last < len(s.arrivals) {
					end = min(end, s.arrivals[last])
				}
				s.waited += end - now
				now = end
				w.gained(from, s.waiting(now), w.target)
			}
		}
		n := s.waiting(now)
		s.longest = max(s.longest, now+s.commit-s.arrivals[0])
		r.began = start.Add(now)
		now += s.commit
		s.arrivals = s.arrivals[n:]
		r.answers(n, s.waiting(now), start.Add(now))
		s.groups, s.written = s.groups+1, s.written+n
		for range n {
			if s.again > 0 {
				s.arrivals = append(s.arrivals, now+s.again)
			}
		}
		slices.Sort(s.arrivals)
	}
}

// each returns moments that are equally far apart.
func each(d time.Duration, n int) []time.Duration {
	moments := make([]time.Duration, n)
	for i := range moments {
		moments[i] = time.Duration(i) * d
	}
	return moments
}

func TestGroupsAwaitClientsThatReturn(t *testing.T) {
	const us, ms = time.Microsecond, time.Millisecond
	both := func(w writers, until time.Duration) (without, with *loopOf) {
		without, with = &loopOf{writers: w}, &loopOf{writers: w, waits: true}
		with.arrivals = slices.Clone(w.arrivals)
		without.run(until)
		with.run(until)
		return without, with
	}

	// Clients that write again as soon as they are answered need one group instead of two,
	// and write more than before.
	for _, clients := range []int{2, 4, 16} {
		without, with := both(writers{commit: 500 * us, again: 100 * us, arrivals: each(250*us, clients)}, time.Second)
		if perGroup := float64(with.written) / float64(with.groups); perGroup < 0.9*float64(clients) {
			t.Errorf("%d clients: groups have %.1f writes", clients, perGroup)
		}
		if with.written <= without.written {
			t.Errorf("%d clients wrote %d items, and %d without waits", clients, with.written, without.written)
		}
	}

	// A client that is alone never waits.
	if _, with := both(writers{commit: 500 * us, again: 100 * us, arrivals: each(0, 1)}, time.Second); with.waited > 0 {
		t.Errorf("a client that is alone waited %v", with.waited)
	}

	// Many clients that write at moments of their own share groups. None waits for long.
	for _, c := range []struct {
		apart, commit time.Duration
		most          int // groups, of a hundred without waits
	}{{400 * us, 500 * us, 80}, {500 * us, 600 * us, 70}, {500 * us, 500 * us, 70}, {200 * us, 250 * us, 50}} {
		without, with := both(writers{commit: c.commit, arrivals: each(c.apart, 2000)}, time.Second)
		if with.groups*100 > without.groups*c.most {
			t.Errorf("a write every %v, commits of %v: %d groups, and %d without waits", c.apart, c.commit, with.groups, without.groups)
		}
		if with.longest > 2*without.longest+returnTime {
			t.Errorf("a write every %v, commits of %v: one took %v, and %v without waits", c.apart, c.commit, with.longest, without.longest)
		}
	}
	// They do not wait if a commit begins seldom anyway.
	if _, with := both(writers{commit: 500 * us, arrivals: each(2*ms, 500)}, time.Second); with.waited > 0 {
		t.Errorf("500 writes a second waited %v", with.waited)
	}

	// Clients that return too late are awaited ever less often.
	without, with := both(writers{commit: 500 * us, again: 5 * ms, arrivals: each(0, 8)}, 20*time.Second)
	if with.written < without.written*98/100 {
		t.Errorf("clients that are slow wrote %d items, and %d without waits", with.written, without.written)
	}

	// Without syncs there is nothing to share.
	if _, with := both(writers{commit: 50 * us, again: 100 * us, arrivals: each(10*us, 8)}, time.Second); with.waited > 0 {
		t.Errorf("groups that are not synced waited %v", with.waited)
	}
}

func TestWaitEndsWhenEnoughHaveCome(t *testing.T) {
	newWaiting := func() *Partition {
		p := &Partition{queue: make(chan *job, queueJobs), stop: make(chan struct{})}
		p.returning.init()
		p.returning.expected, p.returning.until = 3, time.Now().Add(time.Hour)
		return p
	}
	p, ended := newWaiting(), make(chan struct{})
	for range 2 {
		p.queue <- &job{}
		p.returning.queued(len(p.queue))
	}
	p.awaitReturning() // all are there already

	p = newWaiting()
	go func() {
		p.awaitReturning()
		close(ended)
	}()
	for range 2 {
		p.queue <- &job{}
		p.returning.queued(len(p.queue))
	}
	<-ended
	if p.returning.forClients.penalty != 0 {
		t.Error("a wait in which all came has a penalty")
	}

	p = newWaiting()
	close(p.stop)
	p.awaitReturning()
	if p.returning.forClients.skip != firstSkip {
		t.Errorf("after a wait without gain, %d groups do not wait", p.returning.forClients.skip)
	}
	p.returning.until = time.Now().Add(time.Hour)
	p.awaitReturning() // is skipped
}
