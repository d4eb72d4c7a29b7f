// SPDX-License-Identifier: MIT

package engine

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/kv/kvtest"
	"github.com/mayflydb/mayfly/internal/purge"
	"github.com/mayflydb/mayfly/internal/ru"
	"github.com/mayflydb/mayfly/internal/store"
)

// alive runs a test in a synctest bubble, in which the database's clock advances by
// itself and purge works in the background.
func alive(t *testing.T, o Options, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, db: kvtest.NewModel()}
		w.start(o)
		test(w)
		w.must(w.e.Close())
		w.checkClean()
	})
}

// start opens the world with a clock that advances.
func (w *world) start(o Options) {
	w.t.Helper()
	o.DB = w.db
	if w.booted.IsZero() {
		w.booted = time.Now()
	}
	if o.ClockBoot == nil { // the machine's own boot clock is outside of the bubble
		o.ClockBoot = func() clock.Boot { return clock.Boot{ID: "bubble", Ms: time.Since(w.booted).Milliseconds()} }
	}
	var err error
	w.e, err = Open(o)
	w.must(err)
}

// restart closes the world and opens it again.
func (w *world) restart(o Options) {
	w.t.Helper()
	w.must(w.e.Close())
	w.start(o)
	pass(time.Second)
}

// pass lets time pass.
func pass(d time.Duration) {
	time.Sleep(d) // in the bubble's time
	synctest.Wait()
}

func (w *world) status(container string) TTLStatus {
	w.t.Helper()
	s, err := w.e.TTLStatus(context.Background(), w.find(container))
	w.must(err)
	return s
}

// find returns a container of the database d.
func (w *world) find(container string) *catalog.Container {
	w.t.Helper()
	c, err := w.e.Container("d", container)
	w.must(err)
	return c
}

func (w *world) pausePurge(c *catalog.Container, paused bool) {
	w.t.Helper()
	_, err := w.e.PausePurge(context.Background(), c, paused)
	w.must(err)
}

// Without other work, expired items are purged within two seconds, again and again.
func TestPurgeKeepsUp(t *testing.T) {
	alive(t, Options{}, func(w *world) {
		keys := spread(w.container("c", "5", 3))
		for second := range 30 {
			for i := range 20 {
				w.put("c", keys[i%3], fmt.Sprint(second, "-", i), "")
			}
			w.put("c", keys[0], fmt.Sprint("own ", second), `"ttl":2`)
			w.put("c", keys[1], fmt.Sprint("kept ", second), `"ttl":-1`)
			pass(time.Second)
			if s := w.status("c"); s.Purge.LagSeconds >= 2 {
				t.Fatalf("after %d s the oldest expired item has been there for %v s", second, s.Purge.LagSeconds)
			}
		}
		pass(7 * time.Second)
		s := w.status("c")
		if s.Live.Items != 30 || s.Expired.Items != 0 || s.Purge.LagSeconds != 0 || s.Purge.PurgedItems != 21*30 || s.Purge.HeldBack != purge.None {
			t.Errorf("at the end: %+v", s)
		}
		if got := w.e.SystemWork(ru.Sweep); got.Items != 21*30 || got.Units < 21*30*5 {
			t.Errorf("the ledger says %+v", got)
		}
	})
}

// Scenario 56: while requests use all provisioned throughput, purge takes nothing of it.
// The lag grows and is reported correctly, and afterwards purge catches up.
func TestPurgeUsesOnlyWhatIsLeftOver(t *testing.T) {
	alive(t, Options{Throughput: Enforce}, func(w *world) {
		w.container("c", "2", 1) // 400 RU/s
		w.pausePurge(nil, true)
		for i := range 100 {
			w.put("c", "k", fmt.Sprint("dead ", i), "")
			pass(50 * time.Millisecond)
		}
		pass(2 * time.Second)
		// Requests without end, of one unit each, so that they leave less than an item
		// costs.
		w.put("c", "k", "busy", `"ttl":-1`)
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for ctx.Err() == nil {
				_, err := w.read("c", "k", "busy")
				var throttled *ThrottledError
				if errors.As(err, &throttled) {
					time.Sleep(throttled.RetryAfter) // in the bubble's time
				} else if err != nil {
					t.Error(err)
					return
				}
			}
		}()
		pass(3 * time.Second)
		began := w.status("c")
		w.pausePurge(nil, false)
		const busy = time.Minute
		pass(busy)
		s := w.status("c")
		if s.Purge.PurgedItems != 0 || s.Expired.Items != 100 {
			t.Errorf("while requests used everything, purge took %d items away", s.Purge.PurgedItems)
		}
		if grown := s.Purge.LagSeconds - began.Purge.LagSeconds; grown < busy.Seconds()-0.1 || grown > busy.Seconds()+0.1 {
			t.Errorf("in %v the lag grew from %v to %v s", busy, began.Purge.LagSeconds, s.Purge.LagSeconds)
		}
		if s.Purge.HeldBack != purge.Throughput || s.Throughput.Mode != Enforce || s.Throughput.Leftover > itemCost {
			t.Errorf("status while requests use everything: %+v", s)
		}
		cancel()
		<-ended
		// 100 items of about 6 RU, with 80 % of 400 RU/s: two seconds, and one to notice
		// that throughput is left over.
		pass(4 * time.Second)
		if s := w.status("c"); s.Expired.Items != 0 || s.Purge.LagSeconds != 0 || s.Purge.PurgedItems != 100 {
			t.Errorf("four seconds after the requests ended: %+v", s)
		}
	})
}

// itemCost is about the charge for purging a small item.
const itemCost = 6

// Items that have waited very long are purged even if requests use everything, but
// slowly, and not out of the requests' throughput.
func TestPurgeFloor(t *testing.T) {
	alive(t, Options{Throughput: Enforce}, func(w *world) {
		w.container("c", "2", 1)
		for i := range 40 {
			w.put("c", "k", fmt.Sprint("dead ", i), "")
		}
		c, err := w.e.Container("d", "c")
		w.must(err)
		// A debt that lasts longer than the test.
		w.e.meters.settle(c, 0, 400*ru.Units((20*time.Minute).Seconds()))
		for range 9 * 60 {
			pass(time.Second)
			w.e.meters.settle(c, 0, 400)
		}
		if s := w.status("c"); s.Purge.PurgedItems != 0 {
			t.Fatalf("after nine minutes %d items were taken away", s.Purge.PurgedItems)
		}
		for range 3 * 60 {
			pass(time.Second)
			w.e.meters.settle(c, 0, 400)
		}
		if s := w.status("c"); s.Expired.Items != 0 {
			t.Errorf("after twelve minutes: %+v", s)
		}
	})
}

// Purge follows its settings at once, and after a restart.
func TestPurgeObeys(t *testing.T) {
	alive(t, Options{}, func(w *world) {
		w.container("c", "1", 1)
		w.container("other", "1", 1)
		w.pausePurge(w.find("c"), true)
		for i := range 50 {
			w.put("c", "k", fmt.Sprint(i), "")
			w.put("other", "k", fmt.Sprint(i), "")
		}
		pass(3 * time.Second)
		if s := w.status("c"); s.Expired.Items != 50 || !s.Purge.Paused || s.Purge.HeldBack != purge.Paused {
			t.Errorf("paused: %+v", s)
		}
		if s := w.status("other"); s.Expired.Items != 0 || s.Purge.Paused {
			t.Errorf("beside a paused one: %+v", s)
		}
		w.restart(Options{})
		pass(3 * time.Second)
		if s := w.status("c"); s.Expired.Items != 50 || !s.Purge.Paused {
			t.Errorf("paused, after a restart: %+v", s)
		}
		_, err := w.e.LimitPurge(context.Background(), w.find("c"), 5)
		w.must(err)
		w.pausePurge(w.find("c"), false)
		pass(4*time.Second + 500*time.Millisecond)
		if s := w.status("c"); s.Expired.Items < 25 || s.Expired.Items > 30 || s.Purge.Limit != 5 {
			t.Errorf("four seconds at five items a second: %+v", s)
		}
		w.pausePurge(nil, true)
		stopped := w.status("c").Expired
		pass(3 * time.Second)
		if s := w.status("c"); s.Expired != stopped {
			t.Errorf("paused everywhere: %+v, was %+v", s, stopped)
		}
		took, err := w.e.PurgeNow(context.Background(), w.find("c"))
		w.must(err)
		if s := w.status("c"); took.Purged != stopped || s.Expired.Items != 0 {
			t.Errorf("forced: took %+v of %+v, then %+v", took, stopped, s)
		}
		if got := w.e.SystemWork(ru.Forced); got.Items != stopped.Items {
			t.Errorf("the ledger says %+v", got)
		}
		if _, err := w.e.LimitPurge(context.Background(), w.find("c"), -1); err == nil {
			t.Errorf("a limit below zero is accepted")
		}
		w.must(w.e.DeleteContainer(context.Background(), "d", "c", ""))
		if raw, _, err := kv.Get(w.db, catalog.PurgeKey); err != nil || string(raw) != `{"paused":true}` {
			t.Errorf("settings, of a container that is gone too: %s, %v", raw, err)
		}
	})
}

// Items that expired while the server was down are purged after a restart, though no
// request uses the container. Partitions where nothing is due stay closed.
func TestPurgeAfterRestart(t *testing.T) {
	alive(t, Options{}, func(w *world) {
		w.pausePurge(nil, true)
		keys := spread(w.container("c", "5", 3))
		w.container("off", "null", 1)
		w.container("later", "86400", 1)
		for i := range 30 {
			w.put("c", keys[i%3], fmt.Sprint(i), "")
			w.put("off", "k", fmt.Sprint(i), `"ttl":1`)
			w.put("later", "k", fmt.Sprint(i), "")
		}
		w.pausePurge(nil, false)
		w.restart(Options{})
		pass(8 * time.Second)
		w.e.mu.RLock()
		open := len(w.e.mu.open)
		w.e.mu.RUnlock()
		if got := w.e.SystemWork(ru.Sweep); got.Items != 30 || open != 3 {
			t.Errorf("the ledger says %+v, and %d partitions are open", got, open)
		}
		for name, want := range map[string]int64{"c": 0, "off": 30, "later": 30} {
			if s := w.status(name); s.Live.Items != want || s.Expired.Items != 0 {
				t.Errorf("%s: %+v", name, s)
			}
		}
	})
}

// With TTL off, purge reads nothing. With no item due yet, it reads hardly anything, and
// neither does the history of a container after its first point.
func TestPurgeReadsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &countingDB{DB: kvtest.NewModel()}
		w := &world{t: t, db: db}
		w.start(Options{})
		w.container("off", "null", 1)
		w.container("later", "86400", 1)
		for i := range 100 {
			w.put("off", "k", fmt.Sprint(i), `"ttl":1`)
			w.put("later", "k", fmt.Sprint(i), "")
		}
		pass(5*time.Second + HistoryEvery)
		before := db.taken.Load()
		pass(time.Hour)
		if got := db.taken.Load() - before; got > 0 {
			t.Errorf("%d snapshots were taken in an idle hour", got)
		}
		h, err := w.e.History(context.Background(), w.find("later"))
		w.must(err)
		if n := len(h.Points); n < historyPoints-1 || h.Points[0].Live != h.Points[n-1].Live || h.Points[0].Live.Items != 100 {
			t.Errorf("the history of the idle hour has %d points, the first of %+v", n, h.Points[0])
		}
		w.must(w.e.Close())
	})
}

// A storage engine that falls behind slows purge down.
func TestPurgeYields(t *testing.T) {
	var stalled atomic.Bool
	alive(t, Options{Health: func() kv.Health { return kv.Health{Stalled: stalled.Load()} }}, func(w *world) {
		w.container("c", "1", 1)
		w.pausePurge(nil, true)
		for i := range 3000 {
			w.put("c", "k", fmt.Sprint(i), "")
		}
		pass(2 * time.Second)
		stalled.Store(true)
		w.pausePurge(nil, false)
		pass(2 * time.Second)
		slow := w.status("c").Purge.PurgedItems
		if slow == 0 || slow > 2500 {
			t.Errorf("with a stalled engine %d items were taken away in two seconds", slow)
		}
		stalled.Store(false)
		pass(2 * time.Second)
		if s := w.status("c"); s.Expired.Items != 0 {
			t.Errorf("once the engine is well: %+v", s)
		}
	})
}

// Scenario 55, for reads and lists: the cost of skipping expired items is reported, and
// no client is charged.
func TestDeadReadsAreNobodysCharge(t *testing.T) {
	alive(t, Options{PurgePaused: true}, func(w *world) {
		w.container("c", "2", 1)
		for i := range 50 {
			w.put("c", "k", fmt.Sprint(i), "")
		}
		pass(3 * time.Second)
		w.put("c", "k", "live", "")
		page, err := w.e.ListItems(context.Background(), &Request{Target: Target{Database: "d", Container: "c"}})
		w.must(err)
		missing, err := w.read("c", "k", "never there")
		if !errors.Is(err, store.ErrNotFound) {
			t.Fatal(err)
		}
		dead, err := w.read("c", "k", "7")
		if !errors.Is(err, store.ErrNotFound) {
			t.Fatal(err)
		}
		if want := ru.ListBase + ru.Read(len(page.Rows)); page.Count != 1 || page.Charge != want || dead.Charge != missing.Charge {
			t.Errorf("a list of %d items costs %v, want %v; a dead item %v, one that never was %v", page.Count, page.Charge, want, dead.Charge, missing.Charge)
		}
		if got := w.e.SystemWork(ru.DeadRead); got.Items != 51 || got.Units <= 0 {
			t.Errorf("the ledger says %+v, want 51 items", got)
		}
	})
}

// A container with much to purge does not delay another with little.
func TestPurgeIsFair(t *testing.T) {
	alive(t, Options{Health: func() kv.Health { return kv.Health{Stalled: true} }}, func(w *world) {
		w.container("big", "1", 1)
		w.container("small", "1", 1)
		w.pausePurge(nil, true)
		for i := range 2000 {
			w.put("big", "k", fmt.Sprint(i), "")
		}
		pass(time.Second)
		for i := range 20 {
			w.put("small", "k", fmt.Sprint(i), "")
		}
		pass(2 * time.Second)
		w.pausePurge(nil, false)
		pass(3 * time.Second)
		big, small := w.status("big"), w.status("small")
		if small.Expired.Items != 0 || big.Expired.Items == 0 || big.Purge.PurgedItems == 0 {
			t.Errorf("after three seconds: %d of 2000 items are left, and %d of 20", big.Expired.Items, small.Expired.Items)
		}
	})
}

// Purge follows a burst at once, also in a container in which nothing has expired before,
// and while requests come.
func TestPurgeFollowsABurst(t *testing.T) {
	alive(t, Options{}, func(w *world) {
		const burst = 3000
		w.container("c", "-1", 1)
		w.put("c", "k", "live", `"ttl":-1`)
		for i := range burst {
			w.put("c", "k", fmt.Sprint(i), "")
		}
		pass(20 * time.Second)
		_, err := w.e.ReplaceContainer(context.Background(), "d", "c", definition("c", "1"), "")
		w.must(err)
		for range 150 {
			_, err := w.read("c", "k", "live")
			w.must(err)
			pass(10 * time.Millisecond)
		}
		if s := w.status("c"); s.Expired.Items != 0 {
			t.Errorf("after 1.5 seconds of requests, %d of %d items are left", s.Expired.Items, burst)
		}
	})
}
