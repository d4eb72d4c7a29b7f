// SPDX-License-Identifier: MIT

package engine

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/kv/kvtest"
	"github.com/mayflydb/mayfly/internal/purge"
	"github.com/mayflydb/mayfly/internal/store"
)

// Writes are refused before the disk is full, reads and deletes go on, and writes are
// accepted when there is space again.
func TestDiskFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, db: kvtest.NewModel()}
		var free atomic.Uint64
		var broken atomic.Bool
		free.Store(reservedBytes)
		w.open(Options{FreeBytes: func() (uint64, error) {
			if broken.Load() {
				return 0, errors.New("no such disk")
			}
			return free.Load(), nil
		}})
		tick := func() { // in the bubble's time
			time.Sleep(tickInterval)
			synctest.Wait()
		}
		w.container("c", "null", 1)
		w.container("drop me", "null", 1)
		w.put("c", "k", "a", "")
		for _, id := range []string{"1", "2", "3", "4"} {
			w.put("c", "other", id, "")
		}

		free.Store(reservedBytes - 1)
		tick()
		for range 2 {
			if err := w.e.Ready(); !errors.Is(err, ErrDiskFull) {
				t.Errorf("ready: got %v, want ErrDiskFull", err)
			}
			for _, op := range []store.Op{store.Create, store.Upsert, store.Replace} {
				if _, err := w.write(op, "c", "k", "a", ""); !errors.Is(err, ErrDiskFull) {
					t.Errorf("op %d: got %v, want ErrDiskFull", op, err)
				}
			}
			_, database := w.e.CreateDatabase(t.Context(), []byte(`{"id":"e"}`), catalog.Throughput{})
			_, container := w.e.CreateContainer(t.Context(), "d", definition("x", "1"), partitions(1))
			_, replace := w.e.ReplaceContainer(t.Context(), "d", "c", definition("c", "1"), "")
			for _, err := range []error{database, container, replace} {
				if !errors.Is(err, ErrDiskFull) {
					t.Errorf("a change of the catalog: got %v, want ErrDiskFull", err)
				}
			}
			if _, err := w.read("c", "k", "a"); err != nil {
				t.Errorf("read: %v", err)
			}
			if page, err := w.e.ListItems(t.Context(), &Request{Target: Target{Database: "d", Container: "c"}}); err != nil || page.Count != 5 {
				t.Errorf("list: got %d items, %v", page.Count, err)
			}
			broken.Store(true) // without a reading, the state stays
			tick()
		}
		if err := w.e.DeleteContainer(t.Context(), "d", "drop me", ""); err != nil {
			t.Errorf("a drop, which frees space: %v", err)
		}
		if _, err := w.write(store.Delete, "c", "other", "1", ""); err != nil {
			t.Errorf("a delete: %v", err)
		}
		target := Target{Database: "d", Container: "c", PartitionKey: `["other"]`}
		deletes := &Request{Target: target, Ops: []ItemOp{{Op: store.Delete, ID: "2"}, {Op: store.Read, ID: "3"}}}
		if res, err := w.e.Batch(t.Context(), deletes); err != nil || res.Ops[0].Err != nil {
			t.Errorf("a batch of deletes: %+v, %v", res, err)
		}
		mixed := &Request{Target: target, Ops: []ItemOp{{Op: store.Delete, ID: "3"}, {Op: store.Create, Body: []byte(`{"id":"5","pk":"other"}`)}}}
		if _, err := w.e.Batch(t.Context(), mixed); !errors.Is(err, ErrDiskFull) {
			t.Errorf("a batch with a create: %v, want ErrDiskFull", err)
		}
		broken.Store(false)
		free.Store(lastReserveBytes - 1)
		tick()
		_, remove := w.write(store.Delete, "c", "other", "3", "")
		_, batch := w.e.Batch(t.Context(), deletes)
		_, all := w.e.DeletePartitionKey(t.Context(), &Request{Target: target})
		_, purge := w.e.PurgeNow(t.Context(), w.find("c"))
		_, pause := w.e.PausePurge(context.Background(), nil, true)
		for i, err := range []error{remove, batch, all, purge, pause} {
			if !errors.Is(err, ErrDiskSpent) {
				t.Errorf("delete %d without space: got %v, want ErrDiskSpent", i, err)
			}
		}
		free.Store(lastReserveBytes)
		tick()
		if _, err := w.e.DeletePartitionKey(t.Context(), &Request{Target: target}); err != nil {
			t.Errorf("a delete by partition key: %v", err)
		}
		free.Store(reservedBytes)
		tick()
		w.must(w.e.Ready())
		w.put("c", "k", "a", "")
		w.must(w.e.Close())
		w.checkClean()
	})
}

// While the disk is nearly full, expired items are purged, and the space of deleted rows
// is freed, until so little is left that a delete could be too much.
func TestPurgeOnFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, db: kvtest.NewModel()}
		var free atomic.Uint64
		var reclaims atomic.Int64
		free.Store(reservedBytes)
		w.open(Options{
			FreeBytes: func() (uint64, error) { return free.Load(), nil },
			Reclaim:   func(context.Context) error { reclaims.Add(1); return nil },
		})
		c := w.container("c", "10", 1)
		w.put("c", "k", "a", "")
		wait := func(d time.Duration) { // in the bubble's time
			time.Sleep(d)
			synctest.Wait()
		}
		wait(reclaimInterval)
		if n := reclaims.Load(); n != 0 {
			t.Errorf("space was freed %d times while there was enough", n)
		}
		free.Store(lastReserveBytes - 1)
		wait(reclaimInterval)
		w.advance(time.Minute)
		wait(reclaimInterval)
		if s := w.e.purger.Status(c.RID); s.PurgedItems != 0 || s.HeldBack != purge.Disk {
			t.Errorf("without space: purged %d items, held back by %q", s.PurgedItems, s.HeldBack)
		}
		before := reclaims.Load()
		if before == 0 {
			t.Error("no space was freed when there was little")
		}
		free.Store(reservedBytes - 1)
		wait(2 * reclaimInterval)
		if s := w.e.purger.Status(c.RID); s.PurgedItems != 1 {
			t.Errorf("with little space: purged %d items, held back by %q", s.PurgedItems, s.HeldBack)
		}
		if reclaims.Load() == before {
			t.Error("the space of what was purged was not freed")
		}
		w.must(w.e.Close())
		w.checkClean()
	})
}
