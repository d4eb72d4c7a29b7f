// SPDX-License-Identifier: MIT

package ru

import (
	"math"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const ms = time.Millisecond

// step is one moment of a sequence of calls: a Settle, if any, and an Admit.
type step struct {
	at     time.Duration
	settle Units         // what is settled, if anything
	retry  time.Duration // what Admit then returns; 0 for a request that is admitted
}

func TestMeterAdmits(t *testing.T) {
	for name, c := range map[string]struct {
		rate  Units
		steps []step
	}{
		"a second's worth at the start": {100, []step{{0, 0, 0}, {0, 99, 0}, {0, 1, 1 * ms}, {1 * ms, 0, 0}}},
		"it accrues continuously":       {100, []step{{0, 100, 1 * ms}, {10 * ms, 1, 1 * ms}, {11 * ms, 0, 0}}},
		"a second's worth at most":      {100, []step{{time.Hour, 100, 1 * ms}, {time.Hour + ms, 0, 0}}},
		"debt is paid back":             {100, []step{{0, 350, 2501 * ms}, {2500 * ms, 0, 1 * ms}, {2501 * ms, 0, 0}}},
		"rounded up":                    {100, []step{{0, 100.07, 1 * ms}, {ms / 2, 0, 1 * ms}, {ms, 0, 0}}},
		"debt adds up":                  {10, []step{{0, 15, 501 * ms}, {0, 15, 2001 * ms}, {time.Second, 0, 1001 * ms}}},
		"time does not go back":         {100, []step{{time.Second, 100, 1 * ms}, {0, 0, 1 * ms}, {0, 1, 11 * ms}}},
		"nothing below zero":            {100, []step{{0, 100, 1 * ms}, {0, -100, 1 * ms}, {0, Units(math.NaN()), 1 * ms}}},
		"a rate of zero":                {0, []step{{0, 0, MaxDebt}, {0, 5, MaxDebt}, {2 * MaxDebt, 0, MaxDebt}}},
		"a rate that is no number":      {Units(math.NaN()), []step{{0, 0, MaxDebt}}},
		"no limit":                      {Units(math.Inf(1)), []step{{0, 1e11, 0}, {0, 1e11, 0}}},
		"debt has a limit":              {1, []step{{0, 1e9, MaxDebt + ms}, {0, 1e18, MaxDebt + ms}, {0, Units(math.Inf(1)), MaxDebt + ms}, {MaxDebt + ms, 0, 0}}},
	} {
		t.Run(name, func(t *testing.T) {
			m := NewMeter(c.rate)
			for i, s := range c.steps {
				m.Settle(s.at, s.settle)
				if retry, ok := m.Admit(s.at); retry != s.retry || ok != (s.retry == 0) {
					t.Errorf("step %d, at %v: got %v, %v, want %v", i, s.at, retry, ok, s.retry)
				}
			}
		})
	}
}

// The balance, whether positive or a debt, survives a change of the rate.
func TestMeterSetRate(t *testing.T) {
	for _, c := range []struct {
		name    string
		from    Units
		settle  Units
		to      Units
		balance Units // at the same moment
	}{
		{"up, with units left", 100, 40, 1000, 60},
		{"down, with units left", 100, 40, 80, 60},
		{"down, with more left than accrues", 100, 40, 10, 10},
		{"up, in debt", 100, 300, 1000, -200},
		{"down, in debt", 100, 300, 10, -200},
		{"up, after a long rest", 100, 0, 1000, 100},
		{"down, deep in debt", 1000, 1_001_000, 1, -Units(MaxDebt.Seconds())},
		{"from nothing", 0, 300, 10, 0},
	} {
		m := NewMeter(c.from)
		m.Settle(time.Minute, c.settle)
		m.SetRate(c.to)
		if m.Rate() != c.to {
			t.Errorf("%s: the rate is %v, want %v", c.name, m.Rate(), c.to)
		}
		if c.balance > 0 {
			m.Settle(time.Minute, c.balance)
		}
		want := time.Duration(max(0, -c.balance)/c.to*1e9) + ms
		if got, ok := m.Admit(time.Minute); ok || got != want {
			t.Errorf("%s: got %v, %v, want a balance of %v", c.name, got, ok, c.balance)
		}
	}
	m := NewMeter(100)
	m.SetRate(0)
	if _, ok := m.Admit(time.Hour); ok || m.Leftover(time.Hour) != 0 {
		t.Error("a request is admitted at a rate of 0")
	}
}

func TestMeterUsed(t *testing.T) {
	m := NewMeter(100)
	for i, s := range []struct {
		at             time.Duration
		settle         Units
		used, leftover Units
	}{
		{0, 30, 0, 100},
		{999 * ms, 20, 0, 100},
		{1000 * ms, 500, 50, 50},
		{1999 * ms, 0, 50, 50},
		{2000 * ms, 7, 500, 0},
		{1500 * ms, 1, 500, 0}, // earlier than the last: it counts in the last's second
		{3000 * ms, 0, 8, 92},
		{4000 * ms, 9, 0, 100},
		{6000 * ms, 0, 0, 100}, // a whole second later
	} {
		m.Settle(s.at, s.settle)
		if used, left := m.Used(s.at), m.Leftover(s.at); used != s.used || left != s.leftover {
			t.Errorf("step %d, at %v: used %v, left %v, want %v and %v", i, s.at, used, left, s.used, s.leftover)
		}
	}
}

// twin is a Meter that keeps everything and counts in billionths of a unit, which
// is exact for whole rates and charges.
type twin struct {
	rate    int64
	balance int64
	last    time.Duration
	settled []spent
}

type spent struct {
	at    time.Duration
	units int64
}

func (w *twin) advance(now time.Duration) {
	if now <= w.last {
		return
	}
	w.balance = min(w.balance+int64(now-w.last)*w.rate, w.rate*1e9)
	w.last = now
}

func (w *twin) admit(now time.Duration) (retryAfter time.Duration, ok bool) {
	w.advance(now)
	balance := w.balance
	for balance <= 0 {
		retryAfter += ms
		balance += int64(ms) * w.rate
	}
	return retryAfter, retryAfter == 0
}

func (w *twin) settle(now time.Duration, units int64) {
	w.advance(now)
	w.balance -= units * 1e9
	w.settled = append(w.settled, spent{w.last, units})
}

func (w *twin) used(now time.Duration) (sum int64) {
	w.advance(now)
	for _, s := range w.settled {
		if s.at/time.Second == w.last/time.Second-1 {
			sum += s.units
		}
	}
	return sum
}

// drawStep draws how far time moves: sometimes back, as racing goroutines pass it.
func drawStep(t *rapid.T) time.Duration {
	return time.Duration(rapid.OneOf(
		rapid.Just(int64(0)),
		rapid.Int64Range(-int64(ms), int64(ms)),
		rapid.Int64Range(0, int64(time.Second)),
		rapid.SampledFrom([]int64{int64(time.Second / 4), int64(time.Second), int64(5 * time.Second / 2)}),
	).Draw(t, "step"))
}

func TestMeterAgainstTwin(t *testing.T) {
	// Each divides a billion, so that the Meter rounds nothing.
	rates := rapid.SampledFrom([]int64{1, 4, 5, 10, 400, 1000, 10_000, 1_000_000})
	rapid.Check(t, func(t *rapid.T) {
		rate := rates.Draw(t, "rate")
		m, naive := NewMeter(Units(rate)), &twin{rate: rate, balance: rate * 1e9}
		now := time.Duration(0)
		for range rapid.IntRange(1, 60).Draw(t, "calls") {
			now = max(0, now+drawStep(t))
			switch rapid.IntRange(0, 2).Draw(t, "call") {
			case 0:
				gotWait, gotOK := m.Admit(now)
				wantWait, wantOK := naive.admit(now)
				if gotWait != wantWait || gotOK != wantOK {
					t.Fatalf("Admit(%v): got %v, %v, want %v, %v", now, gotWait, gotOK, wantWait, wantOK)
				}
			case 1:
				units := rapid.Int64Range(0, 2*rate).Draw(t, "units")
				m.Settle(now, Units(units))
				naive.settle(now, units)
			case 2:
				used := Units(naive.used(now))
				if got := m.Used(now); got != used {
					t.Fatalf("Used(%v): got %v, want %v", now, got, used)
				}
				if got, want := m.Leftover(now), max(0, Units(rate)-used); got != want {
					t.Fatalf("Leftover(%v): got %v, want %v", now, got, want)
				}
			}
		}
	})
}

// In any window, requests that follow one another spend no more than what accrues in it,
// plus a second's worth, plus the charge of the last. A request that waits for retryAfter
// is admitted; one that waits a millisecond less is not.
func TestMeterBoundsEveryWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := Units(rapid.Float64Range(0.1, 1e6).Draw(t, "rate"))
		m := NewMeter(rate)
		type request struct {
			at     time.Duration
			charge Units
		}
		var admitted []request
		now := time.Duration(0)
		for range rapid.IntRange(1, 60).Draw(t, "requests") {
			now += max(0, drawStep(t))
			if wait, ok := m.Admit(now); !ok {
				if wait < ms || wait%ms != 0 {
					t.Fatalf("told to wait %v", wait)
				}
				if _, ok := m.Admit(now + wait - ms); ok {
					t.Fatalf("told to wait %v at %v, and admitted earlier", wait, now)
				}
				now += wait
				if _, ok := m.Admit(now); !ok {
					t.Fatalf("not admitted at %v after waiting %v as told", now, wait)
				}
			}
			charge := rate * Units(rapid.Float64Range(0.001, 3).Draw(t, "share of the rate"))
			m.Settle(now, charge)
			admitted = append(admitted, request{now, charge})
		}
		for first := range admitted {
			sum := Units(0)
			for _, last := range admitted[first:] {
				sum += last.charge
				bound := rate*Units((last.at-admitted[first].at).Seconds()+1) + last.charge
				if sum > bound*(1+1e-12) {
					t.Fatalf("%v units from %v to %v at a rate of %v", sum, admitted[first].at, last.at, rate)
				}
			}
		}
	})
}

// What is left over of a second and what was used of it together never exceed the rate,
// whatever is settled, and when.
func TestMeterLeftoverIsUnused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := Units(rapid.IntRange(0, 1000).Draw(t, "rate"))
		m := NewMeter(rate)
		used := map[time.Duration]Units{} // by second
		now := time.Duration(0)
		for range rapid.IntRange(1, 60).Draw(t, "settled") {
			now += max(0, drawStep(t))
			u := Units(rapid.IntRange(0, 500).Draw(t, "units"))
			m.Settle(now, u)
			used[now/time.Second] += u
			before := used[now/time.Second-1]
			if left := m.Leftover(now); left < 0 || left > 0 && left+before > rate {
				t.Fatalf("at %v, %v are left of %v where %v were used", now, left, rate, before)
			}
		}
	})
}

// Concurrent Settles all count.
func TestMeterConcurrently(t *testing.T) {
	const workers, requests = 4, 1000
	m := NewMeter(workers * requests)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range requests {
				m.Admit(0)
				m.Leftover(0)
				m.SetRate(m.Rate())
				m.Settle(0, 1)
			}
		})
	}
	wg.Wait()
	if wait, ok := m.Admit(0); ok || wait != ms {
		t.Errorf("after a second's worth: got %v, %v, want %v", wait, ok, ms)
	}
	if got := m.Used(time.Second); got != workers*requests {
		t.Errorf("used %v, want %v", got, workers*requests)
	}
}

func TestMeterDoesNotAllocate(t *testing.T) {
	m, now := NewMeter(400), time.Duration(0)
	if n := testing.AllocsPerRun(100, func() {
		now += 100 * ms
		m.Admit(now)
		m.Settle(now, 6.2)
		m.Leftover(now)
	}); n != 0 {
		t.Errorf("%v allocations a request", n)
	}
}

// BenchmarkMeter admits and settles one request.
func BenchmarkMeter(b *testing.B) {
	b.Run("alone", func(b *testing.B) {
		m := NewMeter(1000)
		b.ReportAllocs()
		for now := time.Duration(0); b.Loop(); now += time.Microsecond {
			m.Admit(now)
			m.Settle(now, 6.2)
		}
	})
	b.Run("shared", func(b *testing.B) {
		m := NewMeter(1000)
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for now := time.Duration(0); pb.Next(); now += time.Microsecond {
				m.Admit(now)
				m.Settle(now, 6.2)
			}
		})
	})
}

// Spending units left over lowers Unspent in that second alone, and changes nothing for
// requests.
func TestMeterSpendsLeftover(t *testing.T) {
	m := NewMeter(100)
	m.Settle(time.Second, 40)
	m.SpendLeftover(2*time.Second, 20)
	for _, c := range []struct {
		at   time.Duration
		want Units
	}{{2 * time.Second, 10}, {2900 * time.Millisecond, 10}, {3 * time.Second, 50}} {
		if got := m.Unspent(c.at, 0.5); got != c.want {
			t.Errorf("at %v: %v of half of what is left over is unspent, want %v", c.at, got, c.want)
		}
	}
	if _, ok := m.Admit(3 * time.Second); !ok || m.Used(3*time.Second) != 0 {
		t.Error("spending leftover units changed what requests may use")
	}
}
