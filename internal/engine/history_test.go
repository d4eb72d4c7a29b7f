// SPDX-License-Identifier: MIT

package engine

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
)

// times returns the moments of points, in seconds.
func times(points []point) (all []int64) {
	for _, p := range points {
		all = append(all, p.atMs/1000)
	}
	return all
}

// A ring keeps the last hour, a point for every ten seconds, however long it runs.
func TestRing(t *testing.T) {
	var r ring
	if r.last() != nil || len(r.since(0)) != 0 {
		t.Error("an empty ring has points")
	}
	for ms := int64(0); ms < 3*HistoryLength.Milliseconds(); ms += 2500 {
		r.add(point{atMs: ms})
		if got := r.last(); got.atMs != ms {
			t.Fatalf("the last point is at %d, want %d", got.atMs, ms)
		}
	}
	last := 3*HistoryLength.Milliseconds() - 2500
	all := r.since(last - HistoryLength.Milliseconds())
	if len(all) != historyPoints || all[0].atMs != 2*HistoryLength.Milliseconds()+7500 || all[historyPoints-1].atMs != last {
		t.Errorf("%d points from %d to %d", len(all), all[0].atMs, all[len(all)-1].atMs)
	}
	if !slices.IsSortedFunc(all, func(a, b point) int { return int(a.atMs - b.atMs) }) {
		t.Errorf("out of order: %v", times(all))
	}
	r.add(point{atMs: last - 20_000}) // read before the last one, and late
	if got := r.since(0); len(got) != historyPoints || got[historyPoints-1].atMs != last {
		t.Errorf("a late point changes the ring: %v", times(got))
	}
	// After a pause only what is within the hour is shown.
	r.add(point{atMs: last + 3_590_000})
	if got := r.since(last - 10_000); len(got) != 2 {
		t.Errorf("after a pause: %v", times(got))
	}
}

// Histories take no more memory than they may, and deleted containers make room.
func TestHistoriesAreBounded(t *testing.T) {
	h := newHistories(2*ringBytes + ringBytes/2)
	rids := []catalog.ContainerRID{{Database: 1, Container: 1}, {Database: 1, Container: 2}, {Database: 1, Container: 3}}
	for i, rid := range rids {
		points, kept := h.add(rid, version{}, point{atMs: 5000}, 0)
		if len(points) != 1 || kept != (i < 2) || h.has(rid) != kept {
			t.Errorf("container %d of two: %v, kept %v", i, points, kept)
		}
	}
	h.prune([]*catalog.Container{{RID: rids[1]}, {RID: rids[2]}})
	if _, kept := h.add(rids[2], version{}, point{atMs: 5000}, 0); !kept || h.has(rids[0]) || !h.has(rids[1]) {
		t.Error("a deleted container makes no room")
	}
	if newHistories(0).most != 1 {
		t.Error("no room for a single container")
	}
}

// While the server runs, every container in use has a point for every ten seconds of the
// last hour. A container without TTL has none, and one that is not used stays closed.
func TestHistoryIsKept(t *testing.T) {
	alive(t, Options{}, func(w *world) {
		busy, unused := w.container("c", "60", 2), w.container("unused", "60", 1)
		w.container("off", "null", 1)
		w.put("off", "k", "1", "")
		keys := spread(busy)
		w.restart(Options{})
		for i := range 62 * 6 {
			w.put("c", keys[i%2], fmt.Sprint(i), "")
			pass(HistoryEvery)
		}
		h, err := w.e.History(context.Background(), busy)
		w.must(err)
		if n := len(h.Points); !h.Kept || n < historyPoints-1 || n > historyPoints {
			t.Fatalf("%d points, kept %v", n, h.Kept)
		}
		for i, p := range h.Points {
			if i > 0 && p.AtMs-h.Points[i-1].AtMs > 2*HistoryEvery.Milliseconds() {
				t.Errorf("from %s to %s nothing is known", h.Points[i-1].At, p.At)
			}
			if p.Live.Items < 5 || p.Live.Items > 7 || p.Live.Bytes == 0 || p.Expired.Items > 1 || p.LagSeconds > 2 {
				t.Errorf("a point is %+v", p)
			}
		}
		if w.e.histories.has(w.find("off").RID) || w.e.histories.has(unused.RID) || w.e.used(unused) {
			t.Error("there are points of a container without TTL, or of one that is not used")
		}
		// TTL is switched off: the hour goes on.
		w.replace("c", "null")
		pass(time.Minute)
		off, err := w.e.History(context.Background(), w.find("c"))
		w.must(err)
		if last := off.Points[len(off.Points)-2]; last.AtMs <= h.NowMs || last.Live.Items == 0 {
			t.Errorf("after TTL was switched off, the last point is %+v", last)
		}
	})
}

// Items expire in a container that nobody writes to: the next point has seen it, whether they
// are purged at once or after a grace.
func TestHistorySeesExpiry(t *testing.T) {
	alive(t, Options{}, func(w *world) {
		w.container("c", "15", 1)
		_, err := w.e.CreateContainer(context.Background(), "d", []byte(`{"id":"graced","partitionKey":{"paths":["/pk"],"version":2},"defaultTtl":15,"undeleteGraceSeconds":600}`), partitions(1))
		w.must(err)
		for _, id := range []string{"c", "graced"} {
			w.put(id, "k", "1", "")
		}
		pass(time.Minute)
		for _, id := range []string{"c", "graced"} {
			h, err := w.e.History(context.Background(), w.find(id))
			w.must(err)
			if n := len(h.Points); n < 5 {
				t.Fatalf("%s: %d points", id, n)
			}
			for _, p := range h.Points {
				age := h.NowMs - p.AtMs
				if live := p.Live.Items == 1; live != (age > 45_000) || id == "graced" && live == (p.Expired.Items == 1) {
					t.Errorf("%s: %v ms ago there were %+v", id, age, p.Usage)
				}
			}
		}
	})
}
