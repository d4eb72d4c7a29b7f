// SPDX-License-Identifier: MIT

package purge

import (
	"context"
	"runtime"
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

// requests counts n requests that took up to 2^class microseconds, and looks.
func (b *bench) requests(n int64, class int) {
	b.now += lookEvery
	b.traffic.requests.Add(n)
	b.traffic.latency[class].Add(n)
	b.look(b.now)
}

func (b *bench) rate() float64 { return b.mu.rate }

// purged records that an item was purged, so that the latency of requests does not count
// as their latency without purge.
func (b *bench) purged() { b.spent(Target{}, store.Purged{Amount: store.Amount{Items: 1}}) }

func TestQuantile(t *testing.T) {
	before := latencies{3: 5}
	for _, c := range []struct {
		name    string
		latency latencies
		share   float64
		want    time.Duration
		n       int64
	}{
		{"nothing", latencies{3: 5}, 0.99, 0, 0},
		{"one", latencies{3: 6}, 0.99, 8 * time.Microsecond, 1},
		{"99 of 100", latencies{3: 5, 4: 99, 10: 1}, 0.99, 16 * time.Microsecond, 100},
		{"98 of 100", latencies{3: 5, 4: 98, 10: 2}, 0.99, 1024 * time.Microsecond, 100},
		{"half", latencies{3: 5, 4: 50, 10: 50}, 0.5, 16 * time.Microsecond, 100},
		{"the slowest", latencies{3: 5, latencyBuckets - 1: 1}, 0.5, (1 << 31) * time.Microsecond, 1},
	} {
		if got, n := c.latency.quantile(&before, c.share); got != c.want || n != c.n {
			t.Errorf("%s: got %v of %d, want %v of %d", c.name, got, n, c.want, c.n)
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
	b.requests(10, 5)
	if b.group() != busyGroup {
		t.Errorf("busy: groups of %d", b.group())
	}
	b.take(busyGroup)
	if d := b.take(busyGroup); d <= 0 {
		t.Errorf("busy: two groups go at once")
	}
	b.now += time.Hour
	if got := b.group(); got != mostBusyGroup {
		t.Errorf("an hour later: groups of %d, want %d", got, mostBusyGroup)
	}
	if d := b.take(mostBusyGroup); d != 0 {
		t.Errorf("an hour later: wait %v", d)
	}
	if d := b.take(busyGroup); d <= 0 || b.group() != busyGroup {
		t.Errorf("after a quiet hour more than one group goes at once")
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
	b.requests(10, 5)
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
	b.requests(10, 5)
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

// Requests that take longer than without purge halve the rate, down to politeRate;
// otherwise it grows.
func TestLatencyHalvesTheRate(t *testing.T) {
	b := newBench()
	for range 20 { // about 4 ms without purge
		b.requests(100, 12)
	}
	start := b.rate()
	b.purged()
	b.requests(100, 12)
	if b.rate() <= start {
		t.Errorf("requests as fast as without purge: the rate went from %.0f to %.0f", start, b.rate())
	}
	b.mu.rate = 40_000
	b.purged()
	b.requests(100, 13)
	if b.rate() != 20_000 || b.why() != Latency {
		t.Errorf("requests twice as slow: the rate went from 40000 to %.0f", b.rate())
	}
	for range 50 {
		b.purged()
		b.requests(100, 13)
	}
	polite := politeRate * float64(runtime.GOMAXPROCS(0))
	if b.rate() != polite {
		t.Errorf("slow for long: the rate is %.0f, want %.0f", b.rate(), polite)
	}
	b.purged()
	b.requests(enoughSamples-1, 20)
	if b.rate() <= polite {
		t.Errorf("too few requests to judge by: the rate is %.0f", b.rate())
	}
}

// An engine that is behind lowers the rate further, even while no request comes.
func TestHealthHalvesTheRate(t *testing.T) {
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
		if b.rate() != 500 || b.group() != busyGroup {
			t.Errorf("%s: the rate is %.0f, groups of %d", name, b.rate(), b.group())
		}
		b.take(busyGroup)
		if d := b.take(busyGroup); d <= 0 || b.why() != Engine {
			t.Errorf("%s: the next group waits %v, because of %q", name, d, b.why())
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
		b.requests(10, 5)
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
	p, err := New(Options{Database: newBench(), Rows: rows})
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
	saved, err := loadSettings(rows)
	if got := p.mu.settings; len(got.Containers) != 0 || rows.commits != 4 || err != nil || len(saved.Containers) != 0 {
		t.Errorf("forgotten: %+v, saved %+v %d times, %v", got, saved, rows.commits, err)
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
