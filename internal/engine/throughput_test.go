// SPDX-License-Identifier: MIT

package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/ru"
	"github.com/mayflydb/mayfly/internal/store"
)

// stopwatch is the real time of a test: it stands still until the test moves it.
type stopwatch struct{ ns atomic.Int64 }

func (s *stopwatch) now() time.Duration       { return time.Duration(s.ns.Load()) }
func (s *stopwatch) advance(by time.Duration) { s.ns.Add(int64(by)) }

// metered opens the world in a mode, with a stopwatch.
func (w *world) metered(mode ThroughputMode) *stopwatch {
	w.t.Helper()
	s := &stopwatch{}
	w.reopen(Options{Throughput: mode, elapsed: s.now})
	return s
}

func (w *world) provisioned(name string, t catalog.Throughput) *catalog.Container {
	w.t.Helper()
	if _, err := w.e.catalog.Database("d"); err != nil {
		w.database("d")
	}
	c, err := w.e.CreateContainer(context.Background(), "d", definition(name, "null"), t)
	w.must(err)
	return c
}

// offerOf returns the offer for a rid.
func (w *world) offerOf(rid string) *catalog.Offer {
	w.t.Helper()
	for _, o := range w.e.Offers() {
		if o.ResourceRID == rid {
			return o
		}
	}
	w.t.Fatalf("%s has no offer", rid)
	return nil
}

func (w *world) setThroughput(rid string, perSecond int) {
	w.t.Helper()
	offer := w.offerOf(rid).RIDText
	body := fmt.Appendf(nil, `{"id":%q,"content":{"offerThroughput":%d}}`, offer, perSecond)
	_, err := write[*catalog.Offer](context.Background(), w.e, catalog.Write{Address: catalog.Address{Kind: catalog.Offers, ID: offer}, Mode: catalog.Replace, Body: body})
	w.must(err)
}

// exhaust writes items under a partition key until it is throttled, and returns what it
// spent and the refusal. Time stands still.
func (w *world) exhaust(container, pk string) (spent ru.Units, refusal *ThrottledError) {
	w.t.Helper()
	for i := range 100_000 {
		r, err := w.write(store.Upsert, container, pk, fmt.Sprint("i", i%10), "")
		if errors.As(err, &refusal) {
			if r.Charge != 0 || r.Body != nil || r.Container == nil {
				w.t.Errorf("refused with %+v", r)
			}
			return spent, refusal
		}
		w.must(err)
		spent += r.Charge
	}
	w.t.Fatal("nothing is refused")
	return 0, nil
}

// leftover returns what a physical partition did not use of its share in the last whole
// second.
func (w *world) leftover(c *catalog.Container, index int) ru.Units {
	if meter := w.e.meters.meter(meterOf(c, index)); meter != nil {
		return meter.Leftover(w.e.meters.elapsed())
	}
	return 0
}

func near(a, b ru.Units) bool { return math.Abs(float64(a-b)) < 1e-6 }

func TestEnforcedThroughput(t *testing.T) {
	w := newWorld(t)
	s := w.metered(Enforce)
	c := w.provisioned("c", catalog.Throughput{Manual: 400})
	cost := w.put("c", "a", "i0", "").Charge
	spent, refusal := w.exhaust("c", "a")
	spent += cost
	// One second's units are there at the start, and the last request may exceed them.
	if spent < 400 || spent >= 400+2*cost { // a replace costs more than a create
		t.Errorf("%v RU could be spent at once, want 400 and one request's charge more", spent)
	}
	owed := time.Duration(float64(spent-400) / 400 * float64(time.Second))
	if refusal.RetryAfter <= owed || refusal.RetryAfter > owed+2*time.Millisecond || refusal.RetryAfter%time.Millisecond != 0 {
		t.Errorf("told to wait %v to pay back %v", refusal.RetryAfter, owed)
	}
	var throttled *ThrottledError
	for name, op := range map[string]func() error{
		"create":  func() error { _, err := w.write(store.Create, "c", "a", "new", ""); return err },
		"replace": func() error { _, err := w.write(store.Replace, "c", "a", "i1", `"n":1`); return err },
		"delete":  func() error { _, err := w.write(store.Delete, "c", "a", "i1", ""); return err },
		"read":    func() error { _, err := w.read("c", "a", "i1"); return err },
		"list": func() error {
			_, err := w.e.ListItems(t.Context(), &Request{Target: Target{Database: "d", Container: "c"}})
			return err
		},
	} {
		if err := op(); !errors.As(err, &throttled) {
			t.Errorf("%s: got %v, want it throttled", name, err)
		}
	}
	// Operations on the container itself are not limited.
	w.setThroughput(c.RIDText, 400)
	w.replace("c", "60")

	s.advance(refusal.RetryAfter)
	if r, err := w.read("c", "a", "i1"); err != nil || string(r.Body) == "" {
		t.Errorf("after the wait: got %+v, %v", r, err)
	}
	if _, err := w.read("c", "a", "new"); !errors.As(err, &throttled) && !errors.Is(err, store.ErrNotFound) {
		t.Errorf("what was refused: got %v", err)
	}
	s.advance(time.Minute)
	if _, err := w.read("c", "a", "new"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("what was refused: got %v, want ErrNotFound", err)
	}
	if again, _ := w.exhaust("c", "a"); again < 400-ru.NotFound || again >= 400+2*cost {
		t.Errorf("a minute later %v RU could be spent at once, want no more than a second's worth", again)
	}
}

// The database's time does not matter: moving it refills nothing.
func TestThroughputIsOfRealTime(t *testing.T) {
	w := newWorld(t)
	w.metered(Enforce)
	w.provisioned("c", catalog.Throughput{Manual: 400})
	w.exhaust("c", "a")
	w.advance(time.Hour)
	var throttled *ThrottledError
	if _, err := w.read("c", "a", "i1"); !errors.As(err, &throttled) {
		t.Errorf("an hour later by the database's clock: got %v, want it throttled", err)
	}
}

// Without a test's stopwatch, it is the time since Open.
func TestElapsedTime(t *testing.T) {
	w := newWorld(t)
	before := w.e.meters.elapsed()
	if after := w.e.meters.elapsed(); before < 0 || after < before || after > time.Hour {
		t.Errorf("elapsed %v, then %v", before, after)
	}
}

func TestReportedThroughput(t *testing.T) {
	w := newWorld(t)
	s := w.metered(Report)
	c := w.provisioned("c", catalog.Throughput{Manual: 400})
	if got, want := w.e.throughputOf(c), (ThroughputStatus{Mode: Report, Provisioned: 400, Leftover: 400}); got != want {
		t.Errorf("at first: got %+v, want %+v", got, want)
	}
	var spent ru.Units
	for i := range 50 {
		spent += w.put("c", "a", fmt.Sprint("i", i), "").Charge
	}
	// A failed request costs what it is charged.
	for _, op := range []func() (Answer, error){
		func() (Answer, error) { return w.write(store.Create, "c", "a", "i0", "") },
		func() (Answer, error) { return w.write(store.Replace, "c", "a", "missing", "") },
		func() (Answer, error) { return w.read("c", "a", "missing") },
		func() (Answer, error) {
			return w.e.ReadItem(&Request{Target: item("c", "a", "i0"), SessionToken: "0:-1#999"})
		},
	} {
		r, err := op()
		if err == nil || r.Charge <= 0 {
			t.Errorf("got %+v, %v, want a refusal with a charge", r, err)
		}
		spent += r.Charge
	}
	r, err := w.read("c", "a", "i0")
	w.must(err)
	page, err := w.e.ListItems(t.Context(), &Request{Target: Target{Database: "d", Container: "c"}})
	w.must(err)
	spent += r.Charge + page.Charge
	_, err = w.e.ListItems(t.Context(), &Request{Target: Target{Database: "d", Container: "c"}, SessionToken: "0:-1#999"})
	if !errors.Is(err, ErrSession) {
		t.Errorf("list ahead: got %v", err)
	}
	spent += ru.ListBase

	if got := w.e.throughputOf(c); got.Used != 0 || got.Leftover != 400 {
		t.Errorf("in the same second: got %+v", got)
	}
	s.advance(time.Second)
	if got := w.e.throughputOf(c); !near(got.Used, spent) || !near(got.Leftover, max(0, 400-spent)) || got.Shared {
		t.Errorf("a second later: got %+v, want %v used", got, spent)
	}
	if got := w.leftover(c, 0); !near(got, max(0, 400-spent)) {
		t.Errorf("leftover %v", got)
	}
	s.advance(time.Second)
	if got := w.e.throughputOf(c); got.Used != 0 || got.Leftover != 400 {
		t.Errorf("two seconds later: got %+v", got)
	}
	for range 200 { // far beyond 400 RU, without a refusal
		w.put("c", "a", "i", "")
	}
}

// Each physical partition has its own share.
func TestPartitionsHaveTheirShare(t *testing.T) {
	w := newWorld(t)
	s := w.metered(Enforce)
	c := w.provisioned("c", catalog.Throughput{AutoscaleMax: 20_000})
	if len(c.Ranges) != 2 {
		t.Fatalf("%d partitions, want 2", len(c.Ranges))
	}
	w.setThroughput(c.RIDText, 2000)
	keys := spread(c)
	spent, _ := w.exhaust("c", keys[0])
	if spent < 1000 || spent > 1010 {
		t.Errorf("a partition could spend %v, want half of 2000", spent)
	}
	if _, err := w.read("c", keys[1], "x"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the other partition: got %v, want ErrNotFound", err)
	}
	s.advance(time.Second)
	got := w.e.throughputOf(c)
	if got.Mode != Enforce || !near(got.Provisioned, 2000) || !near(got.Used, spent+ru.NotFound) || !near(got.Leftover, 1000-ru.NotFound) {
		t.Errorf("got %+v", got)
	}
	if a, b := w.leftover(c, 0), w.leftover(c, 1); a != 0 || !near(b, 1000-ru.NotFound) {
		t.Errorf("left over: %v and %v", a, b)
	}
}

func TestSharedThroughput(t *testing.T) {
	w := newWorld(t)
	s := w.metered(Enforce)
	d, err := w.e.CreateDatabase(t.Context(), []byte(`{"id":"d"}`), catalog.Throughput{Manual: 600})
	w.must(err)
	a, b := w.provisioned("a", catalog.Throughput{}), w.provisioned("b", catalog.Throughput{})
	own := w.provisioned("own", catalog.Throughput{Manual: 400})
	spent, _ := w.exhaust("a", "k")
	if spent < 600 || spent > 610 {
		t.Errorf("%v could be spent, want 600", spent)
	}
	var throttled *ThrottledError
	if _, err := w.read("b", "k", "x"); !errors.As(err, &throttled) {
		t.Errorf("a container that shares: got %v, want it throttled", err)
	}
	if _, err := w.read("own", "k", "x"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a container with its own: got %v, want ErrNotFound", err)
	}
	s.advance(time.Second)
	for _, c := range []*catalog.Container{a, b} {
		if got := w.e.throughputOf(c); !got.Shared || !near(got.Provisioned, 600) || !near(got.Used, spent) || got.Leftover != 0 || w.leftover(c, 0) != 0 {
			t.Errorf("%s: got %+v", c.ID, got)
		}
	}
	if got := w.e.throughputOf(own); got.Shared || !near(got.Provisioned, 400) || !near(got.Used, ru.NotFound) {
		t.Errorf("own: got %+v", got)
	}
	w.setThroughput(d.RID.String(), 1000)
	if got := w.e.throughputOf(b); !near(got.Provisioned, 1000) {
		t.Errorf("after the replace: got %+v", got)
	}
}

// A replace takes effect at once, for existing and for later meters.
func TestReplacedThroughputHoldsAtOnce(t *testing.T) {
	w := newWorld(t)
	s := w.metered(Enforce)
	c := w.provisioned("c", catalog.Throughput{Manual: 12_000})
	keys := spread(c)
	w.put("c", keys[0], "a", "") // one has a meter, the other not yet
	w.setThroughput(c.RIDText, 800)
	s.advance(10 * time.Second)
	for i, pk := range keys {
		if spent, _ := w.exhaust("c", pk); spent < 400 || spent > 410 {
			t.Errorf("partition %d could spend %v, want 400", i, spent)
		}
	}
	w.setThroughput(c.RIDText, 8000)
	s.advance(time.Second)
	for i, pk := range keys {
		if spent, _ := w.exhaust("c", pk); spent < 3990 || spent > 4010 {
			t.Errorf("partition %d could spend %v a second later, want 4000", i, spent)
		}
	}
	if now, err := w.e.Container("d", "c"); err != nil || len(now.Ranges) != 2 {
		t.Errorf("the container has become %+v, %v", now, err)
	}
	w.reopen(Options{})
	if got := w.offerOf(c.RIDText); got.Manual != 8000 || got.Highest != 12_000 {
		t.Errorf("after a restart: %+v", got)
	}
}

// Meters are dropped with their container, and late charges do not restore them.
func TestMetersAreDropped(t *testing.T) {
	w := newWorld(t)
	w.metered(Enforce)
	_, err := w.e.CreateDatabase(t.Context(), []byte(`{"id":"d"}`), catalog.Throughput{Manual: 600})
	w.must(err)
	own := w.provisioned("own", catalog.Throughput{Manual: 12_000})
	shares := w.provisioned("shares", catalog.Throughput{})
	count := func() int {
		w.e.meters.mu.RLock()
		defer w.e.meters.mu.RUnlock()
		return len(w.e.meters.mu.byID)
	}
	for _, pk := range spread(own) {
		w.put("own", pk, "a", "")
	}
	w.put("shares", "k", "a", "")
	if n := count(); n != 3 {
		t.Errorf("there are %d meters, want 3", n)
	}
	w.must(w.e.DeleteContainer(t.Context(), "d", "own", ""))
	if n := count(); n != 1 {
		t.Errorf("without the container there are %d meters, want the database's", n)
	}
	w.e.meters.settle(own, 0, 5)
	w.must(w.e.meters.admit(own, 0))
	w.must(w.e.DeleteDatabase(t.Context(), "d", ""))
	w.e.meters.settle(shares, 0, 5)
	if n := count(); n != 0 {
		t.Errorf("without the database there are %d meters", n)
	}
	if got := w.e.throughputOf(own); got.Provisioned != 0 || w.leftover(shares, 0) != 0 {
		t.Errorf("what is gone has %+v", got)
	}
}

// A list that reaches a throttled partition ends its page there, and continues later.
func TestListEndsItsPageWhereItIsThrottled(t *testing.T) {
	w := newWorld(t)
	s := w.metered(Enforce)
	c := w.provisioned("c", catalog.Throughput{Manual: 18_000})
	keys := spread(c)
	if len(keys) != 3 {
		t.Fatalf("%d partitions, want 3", len(keys))
	}
	w.setThroughput(c.RIDText, 1200)
	for _, pk := range keys {
		w.put("c", pk, "i0", "")
	}
	w.exhaust("c", keys[1])
	list := &Request{Target: Target{Database: "d", Container: "c"}}
	first, err := w.e.ListItems(t.Context(), list)
	if err != nil || first.Count != 1 || first.Partition != 0 || first.Continuation == "" || first.Charge != ru.ListBase+ru.Read(len(first.Rows)) {
		t.Fatalf("the first page: got %+v, %v", first, err)
	}
	list.Continuation = first.Continuation
	var throttled *ThrottledError
	if page, err := w.e.ListItems(t.Context(), list); !errors.As(err, &throttled) || page.Charge != 0 {
		t.Fatalf("the second page: got %+v, %v, want it throttled", page, err)
	}
	s.advance(throttled.RetryAfter)
	rest, err := w.e.ListItems(t.Context(), list)
	if err != nil || rest.Count != 11 || rest.Continuation != "" {
		t.Errorf("after the wait: got %+v, %v", rest, err)
	}
	// The charges of the partitions add up to the page's charge.
	s.advance(5 * time.Second)
	page, err := w.e.ListItems(t.Context(), &Request{Target: Target{Database: "d", Container: "c"}})
	w.must(err)
	s.advance(time.Second)
	if used := w.e.throughputOf(c).Used; page.Count != 12 || !near(used, page.Charge) {
		t.Errorf("%d items for %v, of which %v are settled", page.Count, page.Charge, used)
	}
}

// Concurrent requests while the throughput changes and the container is deleted.
func TestConcurrentThroughput(t *testing.T) {
	w := newWorld(t)
	s := w.metered(Enforce)
	c := w.provisioned("c", catalog.Throughput{Manual: 12_000})
	keys := spread(c)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 100 {
				_, err := w.write(store.Upsert, "c", keys[g%2], fmt.Sprint("i", i), "")
				var throttled *ThrottledError
				if err != nil && !errors.As(err, &throttled) && !errors.Is(err, ErrOwnerNotFound) {
					t.Errorf("write: %v", err)
				}
				s.advance(time.Millisecond)
				w.e.throughputOf(c)
			}
		})
	}
	for i := range 20 {
		w.setThroughput(c.RIDText, 400+100*i)
	}
	w.must(w.e.DeleteContainer(t.Context(), "d", "c", ""))
	wg.Wait()
	if n := len(w.e.meters.mu.byID); n != 0 {
		t.Errorf("there are %d meters, want none", n)
	}
}

// BenchmarkMetering measures the cost of metering, from two goroutines on one partition.
func BenchmarkMetering(b *testing.B) {
	w := newWorld(b)
	w.reopen(Options{Throughput: Enforce})
	c := w.provisioned("c", catalog.Throughput{Manual: 400})
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			_ = w.e.meters.admit(c, 0)
			w.e.meters.settle(c, 0, 1e-9)
		}
	})
}
