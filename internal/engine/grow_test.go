// SPDX-License-Identifier: MIT

package engine

import (
	"fmt"
	"maps"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/kv/kvtest"
)

// grown waits until a container does not grow any more, and returns it.
func grown(t *testing.T, find func() *catalog.Container) *catalog.Container {
	t.Helper()
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		c := find()
		switch {
		case !c.Growing():
			return c
		case time.Since(began) > time.Minute:
			t.Fatalf("the container still grows: it has %s, and wants %d", splitRangesOf(c), c.Wanted)
		}
	}
}

// A higher throughput splits partitions until they carry it, a restart in between or not. One
// that they carry splits nothing.
func TestHigherThroughputSplits(t *testing.T) {
	w := newWorld(t)
	c := w.container("c", "null", 1)
	for i := range 200 {
		w.put("c", fmt.Sprint("key ", i), "a", "")
	}
	named := func() *catalog.Container { return w.named("c") }
	w.setThroughput(c.RIDText, 10_000)
	if w.offerOf(c.RIDText).Pending || w.named("c").Growing() {
		t.Fatal("10,000 RU/s ask for another partition")
	}
	w.setThroughput(c.RIDText, 40_000)
	w.reopen(Options{})
	if c = grown(t, named); len(c.Ranges) != 4 {
		t.Fatalf("the ranges are %s", splitRangesOf(c))
	}
	if w.offerOf(c.RIDText).Pending {
		t.Error("the offer is still pending")
	}
	if page, err := w.list("c", -1); err != nil || page.Count != 200 {
		t.Errorf("%d items, %v", page.Count, err)
	}
	w.setThroughput(c.RIDText, 400)
	w.setThroughput(c.RIDText, 40_000)
	if now := w.named("c"); now.Growing() || splitRangesOf(now) != splitRangesOf(c) {
		t.Errorf("the ranges are %s", splitRangesOf(now))
	}
}

// A split for which there is no space is tried again, later and later, and given up in the end.
// The next replace of the throughput begins anew.
func TestGrowingWaitsForSpace(t *testing.T) {
	alone(t)
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, db: kvtest.NewModel()}
		var free atomic.Uint64
		free.Store(reservedBytes)
		w.open(Options{PurgePaused: true, FreeBytes: func() (uint64, error) { return free.Load(), nil }})
		c := w.container("c", "null", 1)
		for i := range 20 {
			w.put("c", fmt.Sprint("key ", i), "a", "")
		}
		named := func() *catalog.Container { return w.named("c") }
		w.setThroughput(c.RIDText, 11_000)
		time.Sleep(growPause + growPause/2) // in the bubble's time
		if c := named(); !c.Growing() || len(c.Ranges) != 1 || !w.offerOf(c.RIDText).Pending {
			t.Fatalf("without space: %s, wanted %d", splitRangesOf(c), c.Wanted)
		}
		free.Store(2 * reservedBytes)
		if c = grown(t, named); splitRangesOf(c) != "1[0] 2[0]" {
			t.Fatalf("with space: %s", splitRangesOf(c))
		}

		free.Store(reservedBytes)
		w.setThroughput(c.RIDText, 21_000)
		time.Sleep(growPause << (growTries - 1))
		if c := named(); !c.Growing() || len(c.Ranges) != 2 {
			t.Fatalf("after %d attempts: %s, wanted %d", growTries-1, splitRangesOf(c), c.Wanted)
		}
		time.Sleep(growPause << growTries)
		if c := named(); c.Growing() || len(c.Ranges) != 2 || w.offerOf(c.RIDText).Pending {
			t.Fatalf("after %d attempts: %s, wanted %d", growTries, splitRangesOf(c), c.Wanted)
		}
		free.Store(2 * reservedBytes)
		w.setThroughput(c.RIDText, 21_000)
		if c = grown(t, named); len(c.Ranges) != 3 {
			t.Errorf("with space again: %s", splitRangesOf(c))
		}
		w.must(w.e.Close())
	})
}

// In a cluster any node may get the replace, and every node sees to the splits: there are as
// many as it takes, and no more. If the node that splits a partition stands still, another one
// takes over.
func TestGrowingInACluster(t *testing.T) {
	ns := startNodes(t, "a", "b", "c")
	rids := map[string]string{}
	for _, name := range []string{"c1", "c2", "c3"} {
		rids[name] = ns.container(name, "null", 1).RIDText
		for i := range 50 {
			if _, err := ns.put("a", name, fmt.Sprint("key ", i), "x", ""); err != nil {
				t.Fatal(err)
			}
		}
	}
	raise := func(at, name string, perSecond int) {
		t.Helper()
		ns.moments()
		w := &world{t: t, e: ns.all[at]}
		w.setThroughput(rids[name], perSecond)
	}
	check := func(name string, want int) {
		t.Helper()
		for at := range ns.all {
			if c := grown(t, func() *catalog.Container { return ns.find(at, name) }); len(c.Ranges) != want {
				t.Errorf("%s at %s: %s, want %d ranges", name, at, splitRangesOf(c), want)
			}
			if n := ns.list(at, name); n != 50 {
				t.Errorf("%s at %s has %d items", name, at, n)
			}
		}
	}
	raise("a", "c1", 50_000)
	raise("b", "c2", 30_000)
	raise("c", "c3", 10_000)
	for name, want := range map[string]int{"c1": 5, "c2": 3, "c3": 1} {
		check(name, want)
	}

	c := ns.find("a", "c3")
	owners := ns.owners(c)
	if len(owners) != 1 {
		t.Fatalf("the partition of c3 is owned as %v", owners)
	}
	for owner := range maps.Keys(owners) {
		at, link := map[string]string{"a": "b", "b": "c", "c": "a"}[owner], ns.links[owner]
		copying := make(chan struct{}, 1)
		hold := func(*kv.Batch) {
			now, err := ns.all[owner].catalog.Current(c.RID)
			if err != nil || now.Split == nil {
				return
			}
			select {
			case copying <- struct{}{}:
			default:
				return
			}
			for link.open.TryRLock() { // until all calls that follow wait
				link.open.RUnlock()
				time.Sleep(100 * time.Microsecond)
			}
		}
		link.before.Store(&hold)
		raise(at, "c3", 40_000)
		<-copying
		link.open.Lock()
		grown(t, func() *catalog.Container {
			if err := ns.all[at].Moment(t.Context()); err != nil {
				t.Fatal(err)
			}
			now, err := ns.all[at].catalog.Current(c.RID)
			if err != nil {
				t.Fatal(err)
			}
			return now
		})
		link.before.Store(nil)
		link.open.Unlock()
	}
	check("c3", 4)
}
