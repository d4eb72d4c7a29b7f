// SPDX-License-Identifier: MIT

package clock

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	readers  = 8
	readings = 4000
)

// witness checks from many goroutines that time never goes back: a call that begins after
// another has returned gets no earlier time.
type witness struct {
	highestMs atomic.Int64
	wg        sync.WaitGroup
}

func (w *witness) read(t *testing.T, c *Clock) {
	for range readers {
		w.wg.Go(func() {
			for range readings {
				before := w.highestMs.Load()
				got := c.Now()
				if got < before {
					t.Errorf("time went back: got %d after %d", got, before)
					return
				}
				for before < got && !w.highestMs.CompareAndSwap(before, got) {
					before = w.highestMs.Load()
				}
			}
		})
	}
}

func TestReadersNeverSeeTimeGoBack(t *testing.T) {
	s := newStory(t)
	s.open()
	var w witness
	w.read(t, s.c)
	w.wg.Go(func() { // the machine: ticks, steps of every kind, a disk that fails at times
		steps := []int64{hour, -2 * hour, 8 * day, -9 * day, 200, -200, 30 * day, -20 * day}
		for i := range readings {
			s.pass(int64(i % 40))
			if i%50 == 0 {
				s.step(steps[i/50%len(steps)])
			}
			s.setFault(nil)
			if i%7 == 0 {
				s.setFault(errDisk)
			}
			if i%500 == 0 {
				// ErrNothingToConfirm is expected here.
				_ = s.c.Confirm()
			}
			s.c.Horizon()
			s.c.Status()
		}
		s.setFault(nil)
	})
	w.wg.Wait()
	s.ok(s.c.Close())
	if floor := s.state(s).FloorMs; w.highestMs.Load() > floor {
		t.Errorf("time %d was returned, above the saved floor %d", w.highestMs.Load(), floor)
	}
	if s.overlapped {
		t.Error("two saves at the same time")
	}
}

// TestCloseAmongReaders: the time that Close saves is at or above every time that was
// returned, even to readers that ran at the same time.
func TestCloseAmongReaders(t *testing.T) {
	for range 20 {
		s := newStory(t)
		s.open()
		var w witness
		w.read(t, s.c)
		w.wg.Go(func() {
			for range readings / 2 {
				s.pass(1)
			}
			s.ok(s.c.Close())
			for range readings / 2 {
				s.pass(1)
			}
		})
		w.wg.Wait()
		if floor := s.state(s).FloorMs; w.highestMs.Load() > floor || s.c.Now() != floor {
			t.Fatalf("highest %d, at the end %d, saved floor %d", w.highestMs.Load(), s.c.Now(), floor)
		}
	}
}

func TestMovesAmongReaders(t *testing.T) {
	s := newTestStory(t)
	var w witness
	w.read(t, s.c)
	w.wg.Go(func() {
		for i := range 500 {
			s.pass(1)
			before := s.c.Now()
			s.ok(s.c.Advance(3 * time.Second))
			if got := s.c.Now(); got < before+3000 {
				t.Errorf("after Advance by 3 s at %d: got %d", before, got)
			}
			if i%10 == 0 {
				s.ok(s.c.Freeze())
				frozen := s.c.Now()
				s.pass(50)
				if got := s.c.Now(); got != frozen {
					t.Errorf("frozen at %d: got %d", frozen, got)
				}
				s.ok(s.c.Release())
			}
		}
	})
	w.wg.Wait()
	s.ok(s.c.Close())
	if floor := s.state(s).FloorMs; w.highestMs.Load() > floor {
		t.Errorf("time %d was returned, above the saved floor %d", w.highestMs.Load(), floor)
	}
}

// TestFrozenTimeIsExactForAll: calls of Now that began before the freeze cannot move the
// frozen time.
func TestFrozenTimeIsExactForAll(t *testing.T) {
	s := newTestStory(t)
	var w witness
	w.read(t, s.c)
	for range 200 {
		s.pass(1)
		s.ok(s.c.Freeze())
		frozen := s.c.Now()
		s.pass(1)
		for range 20 {
			if got := s.c.Now(); got != frozen {
				t.Fatalf("frozen at %d: got %d", frozen, got)
			}
		}
		s.ok(s.c.Release())
	}
	w.wg.Wait()
	s.ok(s.c.Close())
}
