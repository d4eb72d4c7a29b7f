// SPDX-License-Identifier: MIT

package purge

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/kv/kvtest"
	"github.com/mayflydb/mayfly/internal/ru"
	"github.com/mayflydb/mayfly/internal/store"
)

// bench is a pace whose inputs the test sets.
type bench struct {
	now    time.Duration
	health kv.Health
	meters map[int]*ru.Meter
	*pace
}

func newBench() *bench {
	b := &bench{now: time.Hour}
	b.pace = newPace(b, &Traffic{})
	return b
}

func (b *bench) Due(int64) []Target       { return nil }
func (b *bench) Unindexed() []Target      { return nil }
func (b *bench) Room() error              { return nil }
func (b *bench) Health() kv.Health        { return b.health }
func (b *bench) Elapsed() time.Duration   { return b.now }
func (b *bench) Meter(t Target) *ru.Meter { return b.meters[t.Index] }

// requests counts n requests that took the given time, in the time from one look to the
// next.
func (b *bench) requests(n int64, took time.Duration) {
	b.now += lookEvery
	b.traffic.requests.Add(n)
	b.traffic.latency[latencyBucket(took)].Add(n)
	b.look(b.now)
}

func (b *bench) rate() float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.target()
}

// purged records that items were purged.
func (b *bench) purged(n int64) {
	b.spent(Target{}, store.Purged{Amount: store.Amount{Items: n}})
}

// cycle is a window in which purge works, as fast as it may, and one in which it rests.
// Requests take the given times.
func (b *bench) cycle(n int64, with, without time.Duration) {
	for b.mu.resting {
		b.requests(0, 0)
	}
	for !b.mu.resting {
		b.purged(int64(b.rate() * lookEvery.Seconds()))
		b.requests(n, with)
	}
	for b.mu.resting {
		b.requests(n, without)
	}
}

// Every latency is below the bound of its class, and not below that of the class before.
func TestLatencyBuckets(t *testing.T) {
	for micros := range int64(10_000) {
		took := time.Duration(micros) * time.Microsecond
		i := latencyBucket(took)
		if took >= bucketLatency(i) || i > 0 && micros > 1 && took < bucketLatency(i-1) {
			t.Fatalf("%v is in class %d, from %v to %v", took, i, bucketLatency(i-1), bucketLatency(i))
		}
	}
	if i := latencyBucket(time.Duration(1<<63 - 1)); i != latencyBuckets-1 {
		t.Errorf("the longest latency is in class %d", i)
	}
}

func TestQuantile(t *testing.T) {
	before := latencies{12: 5}
	for _, c := range []struct {
		name    string
		latency latencies
		share   float64
		want    int // the class
		n       float64
	}{
		{"nothing", latencies{12: 5}, 0.99, -1, 0},
		{"one", latencies{12: 6}, 0.99, 12, 1},
		{"99 of 100", latencies{12: 5, 16: 99, 40: 1}, 0.99, 16, 100},
		{"98 of 100", latencies{12: 5, 16: 98, 40: 2}, 0.99, 40, 100},
		{"half", latencies{12: 5, 16: 50, 40: 50}, 0.5, 16, 100},
		{"the slowest", latencies{12: 5, latencyBuckets - 1: 1}, 0.5, latencyBuckets - 1, 1},
	} {
		var f fading
		f.add(&c.latency, &before)
		want := time.Duration(0)
		if c.want >= 0 {
			want = bucketLatency(c.want)
		}
		if got, n := f.quantile(c.share); got != want || n != c.n {
			t.Errorf("%s: got %v of %v, want %v of %v", c.name, got, n, want, c.n)
		}
	}
}

// Without requests there is no rate. With requests there is one, and groups are small.
func TestIdleAndBusy(t *testing.T) {
	b := newBench()
	b.look(b.now)
	if d := b.take(idleGroup); d != 0 || b.group() != idleGroup {
		t.Errorf("idle: wait %v for groups of %d", d, b.group())
	}
	b.requests(10, 32*time.Microsecond)
	b.begin()
	group := max(busyGroup, int(perProcessor(politeRate)*groupEvery.Seconds()))
	if b.group() != group {
		t.Errorf("busy: groups of %d, want %d", b.group(), group)
	}
	b.take(group)
	if d := b.take(group); d <= 0 {
		t.Errorf("busy: two groups go at once")
	}
	b.now += time.Hour
	if got := b.group(); got != mostBusyGroup {
		t.Errorf("after an hour without a turn: groups of %d, want %d", got, mostBusyGroup)
	}
	if d := b.take(mostBusyGroup); d != 0 {
		t.Errorf("after an hour without a turn: wait %v", d)
	}
	if d := b.take(group); d <= 0 || b.group() != group {
		t.Errorf("after an hour without a turn more than one group goes at once")
	}
	b.now += time.Hour
	b.begin()
	if d := b.take(group); d <= 0 {
		t.Errorf("an hour without work has saved something up")
	}
	b.now += idleAfter
	b.look(b.now)
	if d := b.take(idleGroup); d != 0 || b.group() != idleGroup {
		t.Errorf("idle again: wait %v for groups of %d", d, b.group())
	}
}

// Over any time, no more items are let through than the rate allows.
func TestRateHolds(t *testing.T) {
	b := newBench()
	b.requests(10, 32*time.Microsecond)
	const rate = 1000.0
	through := 0
	began := b.now
	for b.now-began < 10*time.Second {
		b.mu.rate = rate
		d := b.take(busyGroup)
		if d == 0 {
			through += busyGroup
		}
		b.now += max(d, 100*time.Microsecond)
	}
	if got := float64(through) / 10; got > rate*1.05 || got < rate*0.9 {
		t.Errorf("got %.0f items/s at a rate of %.0f", got, rate)
	}
}

// Where a group takes long because the disk is slow, groups grow, and the rate holds.
func TestRateHoldsOnSlowDisks(t *testing.T) {
	b := newBench()
	b.requests(10, 32*time.Microsecond)
	through := 0
	began := b.now
	for b.now-began < 10*time.Second {
		b.mu.rate = 1000
		n := b.group()
		d := b.take(n)
		if d == 0 {
			through += n
			d = 20 * time.Millisecond // until it is on disk
		}
		b.now += d
	}
	if got := through / 10; got > 1050 || got < 900 {
		t.Errorf("got %d items/s at a rate of 1000", got)
	}
}

// Requests that take longer with purge than without halve the rate, down to politeRate;
// otherwise it grows. How slow they are in both does not matter.
func TestLatencyHalvesTheRate(t *testing.T) {
	polite := perProcessor(politeRate)
	for _, ms := range []time.Duration{1, 10, 1000} {
		b := newBench()
		took := ms * time.Millisecond
		for range 12 {
			b.cycle(100, took, took)
		}
		high := b.rate()
		if high < 8*polite || b.why() != None {
			t.Errorf("as slow as without purge, %v: the rate went from %.0f to %.0f", took, polite, high)
		}
		b.cycle(100, 2*took, took)
		if b.rate() != high/2 || b.why() != Latency {
			t.Errorf("twice as slow as without purge, %v: the rate went from %.0f to %.0f", took, high, b.rate())
		}
		for range 20 {
			b.cycle(100, 2*took, took)
		}
		if b.rate() != polite {
			t.Errorf("slow for long, %v: the rate is %.0f, want %.0f", took, b.rate(), polite)
		}
		for range 12 {
			b.cycle(100, took, took)
		}
		if b.rate() <= polite {
			t.Errorf("no longer slow, %v: the rate is %.0f", took, b.rate())
		}
	}
}

// Too few requests are not compared, and a window in which writes paid is not either.
func TestWhatIsNotCompared(t *testing.T) {
	b := newBench()
	for range 5 {
		b.cycle(1, time.Second, time.Millisecond)
	}
	if b.why() != None {
		t.Errorf("too few requests: %v", b.why())
	}
	b = newBench()
	for range 5 {
		b.paid()
		b.cycle(100, time.Second, time.Millisecond)
	}
	if got := b.mu.comparison.with; got != (fading{}) {
		t.Errorf("windows in which writes paid were counted")
	}
}

// A rate that purge does not use does not grow: it is not known what it would do.
func TestUnusedRateStays(t *testing.T) {
	b := newBench()
	for range 100 {
		b.purged(1)
		b.requests(100, time.Millisecond)
	}
	if b.rate() != perProcessor(politeRate) {
		t.Errorf("the rate is %.0f", b.rate())
	}
}

// Purge is at least as fast as items expire, however slow requests are.
func TestRateFollowsDeaths(t *testing.T) {
	b := newBench()
	for range 40 { // ten seconds
		b.died(1000)
		b.purged(1000)
		b.requests(100, time.Millisecond)
		b.mu.slow, b.mu.rate = true, perProcessor(politeRate)
	}
	if got := b.rate() * workWindow.Seconds() / (workWindow + restWindow).Seconds(); got < 4000 {
		t.Errorf("at 4000 deaths a second the rate is %.0f", got)
	}
	for range 4 * (deathSeconds + 1) {
		b.requests(100, time.Millisecond)
	}
	b.mu.rate = perProcessor(politeRate)
	if b.rate() != perProcessor(politeRate) {
		t.Errorf("after the last death the rate is %.0f", b.rate())
	}
	// A burst is purged within the time over which deaths are counted.
	const burst = 60_000
	b.died(burst)
	left, began := float64(burst), b.now
	for left > 0 {
		b.requests(100, time.Millisecond)
		left -= b.rate() * lookEvery.Seconds() * workWindow.Seconds() / (workWindow + restWindow).Seconds()
	}
	if took := b.now - began; took > deathSeconds*time.Second {
		t.Errorf("a burst of %d items takes %v", burst, took)
	}
	// So is one that takes all of that time at the highest rate, with its few rests.
	b.now += deathSeconds * time.Second
	b.requests(100, time.Millisecond)
	left, began = 9*perProcessor(mostKeepUp), b.now
	for b.died(int64(left)); left > 0; {
		worked := b.rate() * lookEvery.Seconds()
		if b.mu.resting {
			worked = 0
		}
		b.purged(int64(worked))
		b.requests(100, time.Millisecond)
		left -= worked
	}
	if took := b.now - began; took > deathSeconds*time.Second {
		t.Errorf("a burst at the highest rate takes %v", took)
	}
	b.died(1e9)
	if most := perProcessor(mostKeepUp); b.rate() != most {
		t.Errorf("after a storm the rate is %.0f, want %.0f", b.rate(), most)
	}
}

// While requests come, purge rests in between.
func TestPurgeRests(t *testing.T) {
	b := newBench()
	b.requests(100, time.Millisecond)
	for !b.mu.resting {
		b.purged(10)
		b.requests(100, time.Millisecond)
	}
	if d := b.take(1); d != restWindow {
		t.Errorf("resting: wait %v", d)
	}
	b.requests(100, time.Millisecond)
	if b.mu.resting {
		t.Errorf("it rests again")
	}
}

// An engine that is behind brakes the rate, even while no request comes.
func TestEngineBrakes(t *testing.T) {
	for name, sick := range map[string]kv.Health{
		"stalled":            {Stalled: true},
		"has stalled":        {Stalls: 1},
		"read amplification": {ReadAmp: mostReadAmp + 1},
	} {
		b := newBench()
		b.mu.rate = 1000
		b.health = sick
		b.now += lookEvery
		b.look(b.now)
		b.begin()
		if b.rate() != 500 || b.group() != 10 {
			t.Errorf("%s: the rate is %.0f, groups of %d", name, b.rate(), b.group())
		}
		b.take(busyGroup)
		if d := b.take(busyGroup); d <= 0 || b.why() != Engine {
			t.Errorf("%s: the next group waits %v, because of %q", name, d, b.why())
		}
		b.health = kv.Health{Stalls: sick.Stalls}
		b.now += lookEvery
		if b.look(b.now); b.rate() != 1000 || b.limited() {
			t.Errorf("well again: the rate is %.0f", b.rate())
		}
	}
	b := newBench()
	b.health.Stalled = true
	for range 20 {
		b.now += lookEvery
		b.look(b.now)
	}
	if b.rate() != leastRate {
		t.Errorf("stalled for long: the rate is %.0f, want %d", b.rate(), leastRate)
	}
}

// Units spent in a second lower what may be spent in that second, and not in the next.
func TestUnspent(t *testing.T) {
	b := newBench()
	b.now = 7 * time.Second
	b.meters = map[int]*ru.Meter{1: ru.NewMeter(100), 2: ru.NewMeter(100)}
	t1, t2 := Target{Index: 1}, Target{Index: 2}
	if got := b.Meter(t1).Unspent(b.now, leftoverShare); got != 80 {
		t.Errorf("of 100 left over, %v may be spent", got)
	}
	b.spent(t1, store.Purged{Units: 50})
	for _, c := range []struct {
		t      Target
		second time.Duration
		want   ru.Units
	}{{t1, 7, 30}, {t2, 7, 80}, {t1, 8, 80}} {
		if got := b.Meter(c.t).Unspent(c.second*time.Second, leftoverShare); got != c.want {
			t.Errorf("meter %d, second %d: %v may be spent, want %v", c.t.Index, c.second, got, c.want)
		}
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench()
		b.requests(10, 32*time.Microsecond)
		b.mu.rate = leastRate
		b.take(busyGroup)
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		if _, _, err := b.wait(ctx, busyGroup); err == nil {
			t.Errorf("got no error")
		}
	})
}

// The reported rate is that of the last nine whole seconds.
func TestRecordRate(t *testing.T) {
	var r record
	for second := range int64(30) {
		r.count(100+second, 18)
		r.count(100+second, 18)
	}
	for _, c := range []struct {
		second int64
		want   float64
	}{{129, 36}, {130, 36}, {131, 32}, {138, 4}, {139, 0}, {1000, 0}} {
		if got := r.rate(c.second); got != c.want {
			t.Errorf("second %d: got %v items/s, want %v", c.second, got, c.want)
		}
	}
}

// Empty settings of a container are not saved.
func TestChange(t *testing.T) {
	rows := &counting{DB: kvtest.NewModel()}
	saved, err := catalog.Open(rows, catalog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(Options{Database: newBench(), Saved: saved})
	if err != nil {
		t.Fatal(err)
	}
	rid := catalog.ContainerRID{Database: 1, Container: 2}
	set := func(c ContainerSettings) {
		t.Helper()
		if err := p.Change(func(s *Settings) { s.Containers[rid.String()] = c }); err != nil {
			t.Fatal(err)
		}
	}
	set(ContainerSettings{ItemsPerSecond: 3})
	if s := p.Status(rid); s.Limit != 3 || s.Paused || s.HeldBack != None {
		t.Errorf("limited: %+v", s)
	}
	set(ContainerSettings{Paused: true})
	if s := p.Status(rid); s.Limit != 0 || !s.Paused || s.HeldBack != Paused {
		t.Errorf("paused: %+v", s)
	}
	if err := p.Change(func(s *Settings) { s.Containers["other"] = ContainerSettings{} }); err != nil {
		t.Fatal(err)
	}
	if err := p.Forget(rid); err != nil {
		t.Fatal(err)
	}
	kept, err := decodeSettings(saved.PurgeSettings())
	if got := p.mu.settings; len(got.Containers) != 0 || rows.commits != 4 || err != nil || len(kept.Containers) != 0 {
		t.Errorf("forgotten: %+v, saved %+v %d times, %v", got, kept, rows.commits, err)
	}
	if err := p.Forget(rid); err != nil || rows.commits != 4 {
		t.Errorf("forgotten twice: %v, saved %d times", err, rows.commits)
	}
}

// counting counts commits.
type counting struct {
	kv.DB
	commits int
}

func (c *counting) Commit(ctx context.Context, b *kv.Batch) error {
	c.commits++
	return c.DB.Commit(ctx, b)
}
