// SPDX-License-Identifier: MIT

package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/kv/kvtest"
	"github.com/mayflydb/mayfly/internal/store"
)

func TestClockStateOfTheData(t *testing.T) {
	alone(t)
	w := newWorld(t)
	w.advance(7 * time.Second)
	w.reopen(Options{})
	if got := w.e.Clock().Now(); got != startMs+7000 {
		t.Errorf("after a restart it is %d, want %d", got, startMs+7000)
	}
	w.must(w.e.Close())
	if _, err := Open(Options{DB: w.db}); !errors.Is(err, clock.ErrTestData) {
		t.Errorf("without the test clock: got %v, want ErrTestData", err)
	}
	w.open(Options{})
}

// Everything is there after a restart: definitions, items, numbers.
func TestRestart(t *testing.T) {
	w := newWorld(t)
	c := w.container("c", "60", 4)
	keys := spread(c)
	var want []Answer
	for i, pk := range keys {
		for range i + 1 {
			want = append(want[:i], w.put("c", pk, "a", `"ttl":-1`))
		}
	}
	for range 2 {
		w.reopen(Options{})
		for i, pk := range keys {
			r, err := w.read("c", pk, "a")
			if err != nil || string(r.Body) != string(want[i].Body) || r.ETag != want[i].ETag || r.LSN != uint64(i+1) || r.Partition != i {
				t.Errorf("partition %d: got %+v, %v, want %+v", i, r, err, want[i])
			}
		}
		now, err := w.e.Container("d", "c")
		if err != nil || string(now.Body) != string(c.Body) {
			t.Errorf("container: got %s, %v, want %s", now.Body, err, c.Body)
		}
	}
}

// A replace applies to the next request, in every partition, whether it was open or not.
func TestReplaceIsSeenAtOnce(t *testing.T) {
	w := newWorld(t)
	c := w.container("c", "null", 5)
	keys := spread(c)
	for _, pk := range keys {
		w.put("c", pk, "a", "")
	}
	w.reopen(Options{PurgePaused: true}) // what expires has to come back
	w.advance(10 * time.Second)
	_, err := w.read("c", keys[1], "a") // opens one partition, not the others
	w.must(err)
	for round, ttl := range []string{"10", "11", "5", "null", "1", "-1"} {
		fresh := w.replace("c", ttl)
		want := fresh.DefaultTTL > 10 || fresh.DefaultTTL <= 0
		for i, pk := range keys {
			if _, err := w.read("c", pk, "a"); (err == nil) != want {
				t.Errorf("round %d, defaultTtl %s, partition %d: got %v, want it there %v", round, ttl, i, err, want)
			}
		}
		page, err := w.e.ListItems(t.Context(), &Request{Target: Target{Database: "d", Container: "c"}})
		if err != nil || (page.Count == len(keys)) != want {
			t.Errorf("round %d, defaultTtl %s: list has %d items, %v", round, ttl, page.Count, err)
		}
	}
	if _, err := w.e.ReplaceContainer(t.Context(), "d", "c", definition("c", "0"), ""); err == nil {
		t.Error("an invalid definition is accepted")
	}
	if _, err := w.e.ReplaceContainer(t.Context(), "d", "c", definition("c", "7"), `"x"`); !errors.Is(err, catalog.ErrPrecondition) {
		t.Errorf("another etag: got %v, want ErrPrecondition", err)
	}
	if _, err := w.e.ReplaceContainer(t.Context(), "d", "none", definition("none", "7"), ""); !errors.Is(err, catalog.ErrNotFound) {
		t.Errorf("no such container: got %v, want ErrNotFound", err)
	}
}

// A request that found its container before a replace, and opens the partition after it,
// does not bring the old settings back.
func TestPartitionOpensWithCurrentSettings(t *testing.T) {
	w := newWorld(t)
	old := w.container("c", "null", 1)
	fresh := w.replace("c", "-1")
	p, err := w.e.partition(old, 0)
	w.must(err)
	if got := p.Container(); got != fresh {
		t.Errorf("the partition has epoch %d, want %d", got.Epoch, fresh.Epoch)
	}
}

// Settings alternate while clients write and read. An item whose ttl is valid under one
// and inert under the other always gets the answer of one of the two.
func TestReplaceUnderLoad(t *testing.T) {
	const flips, clients = 60, 4
	w := newWorld(t)
	keys := spread(w.container("c", "null", 3))
	w.advance(time.Second)
	var stop atomic.Bool
	var running sync.WaitGroup
	for client := range clients {
		running.Go(func() {
			for i := 0; !stop.Load(); i++ {
				pk, id := keys[i%3], fmt.Sprint(client)
				_, err := w.write(store.Upsert, "c", pk, id, `"ttl":0`)
				var refused *store.TTLError
				if err != nil && !errors.As(err, &refused) {
					t.Errorf("write: %v", err)
					return
				}
				if _, err := w.read("c", pk, id); err != nil && !errors.Is(err, store.ErrNotFound) {
					t.Errorf("read: %v", err)
					return
				}
			}
		})
	}
	for i := range flips {
		c := w.replace("c", []string{"null", "-1"}[i%2])
		_, err := w.write(store.Upsert, "c", keys[i%3], "flip", `"ttl":0`)
		if refused := err != nil; refused != (c.DefaultTTL != catalog.TTLAbsent) {
			t.Errorf("right after defaultTtl became %d: got %v", c.DefaultTTL, err)
		}
	}
	stop.Store(true)
	running.Wait()
}

// An idle partition releases its snapshot within two ticks, and works as before.
func TestIdleSnapshotsGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &countingDB{DB: kvtest.NewModel()}
		w := &world{t: t, db: db}
		w.open(Options{})
		keys := spread(w.container("c", "null", 3))
		for _, pk := range keys {
			w.put("c", pk, "a", "")
			if _, err := w.read("c", pk, "a"); err != nil {
				t.Error(err)
			}
		}
		synctest.Wait()
		if got := db.open.Load(); got != 3 {
			t.Errorf("in use: %d snapshots, want 3", got)
		}
		time.Sleep(2*tickInterval + tickInterval/2) // in the bubble's time
		synctest.Wait()
		if got := db.open.Load(); got != 0 {
			t.Errorf("idle: %d snapshots, want none", got)
		}
		for _, pk := range keys {
			if _, err := w.read("c", pk, "a"); err != nil {
				t.Error(err)
			}
		}
		w.must(w.e.Close())
		if got := db.open.Load(); got != 0 {
			t.Errorf("closed: %d snapshots, want none", got)
		}
	})
}

// countingDB counts the snapshots that are open, and those that were taken.
type countingDB struct {
	kv.DB
	open, taken atomic.Int64
}

func (db *countingDB) Snapshot() (kv.Snapshot, error) {
	s, err := db.DB.Snapshot()
	db.open.Add(1)
	db.taken.Add(1)
	return &countedSnapshot{s, db}, err
}

type countedSnapshot struct {
	kv.Snapshot
	db *countingDB
}

func (s *countedSnapshot) Close() {
	s.db.open.Add(-1)
	s.Snapshot.Close()
}

// brokenDB fails every commit while it is set to.
type brokenDB struct {
	kv.DB
	broken atomic.Bool
}

var errBroken = errors.New("the disk is on fire")

func (db *brokenDB) Commit(ctx context.Context, b *kv.Batch) error {
	if db.broken.Load() {
		return errBroken
	}
	return db.DB.Commit(ctx, b)
}

// After a failed commit the engine is not ready and reports why, once. No write is
// acknowledged any more, and reads go on.
func TestFailedCommit(t *testing.T) {
	alone(t)
	for name, fail := range map[string]func(w *world) error{
		"of items": func(w *world) error { _, err := w.write(store.Upsert, "c", "k", "a", `"v":2`); return err },
		"of the catalog": func(w *world) error {
			_, err := w.e.CreateDatabase(context.Background(), []byte(`{"id":"e"}`), catalog.Throughput{})
			return err
		},
		"of a drop": func(w *world) error { return w.e.DeleteContainer(context.Background(), "d", "other", "") },
	} {
		t.Run(name, func(t *testing.T) {
			db := &brokenDB{DB: kvtest.NewModel()}
			w := &world{t: t, db: db}
			failures := make(chan error, 10)
			w.open(Options{Failed: func(err error) { failures <- err }, Logger: quiet()})
			w.container("c", "null", 1)
			w.container("other", "null", 1)
			old := w.put("c", "k", "a", `"v":1`)
			db.broken.Store(true)
			for range 3 {
				if err := fail(w); err == nil {
					t.Error("a commit that failed is acknowledged")
				}
				if r, err := w.read("c", "k", "a"); err != nil || string(r.Body) != string(old.Body) {
					t.Errorf("read: got %s, %v, want %s", r.Body, err, old.Body)
				}
			}
			if err := <-failures; !errors.Is(err, errBroken) {
				t.Errorf("Failed was called with %v, want the cause", err)
			}
			if err := w.e.Ready(); !errors.Is(err, errBroken) {
				t.Errorf("ready: got %v, want the cause", err)
			}
			db.broken.Store(false)
			w.must(w.e.Close())
			if n := len(failures); n != 0 {
				t.Errorf("Failed was called %d times more", n)
			}
			w.checkClean()
		})
	}
}

// Requests during a stop get ErrStopping, and never that there is no such container or
// item.
func TestCloseUnderLoad(t *testing.T) {
	const clients = 8
	w := newWorld(t)
	keys := spread(w.container("c", "null", 2))
	for _, pk := range keys {
		w.put("c", pk, "kept", "")
	}
	var running sync.WaitGroup
	var begun sync.WaitGroup
	begun.Add(clients)
	for client := range clients {
		running.Go(func() {
			var once sync.Once
			for i := 0; ; i++ {
				var err error
				switch i % 3 {
				case 0:
					_, err = w.write(store.Upsert, "c", keys[i%2], fmt.Sprint(client), "")
				case 1:
					_, err = w.read("c", keys[i%2], "kept")
				case 2:
					_, err = w.list("c", 0)
				}
				once.Do(begun.Done)
				if errors.Is(err, ErrStopping) {
					return
				}
				if err != nil {
					t.Errorf("got %v, want nil or ErrStopping", err)
					return
				}
			}
		})
	}
	begun.Wait()
	w.must(w.e.Close())
	running.Wait()
	if err := w.e.Ready(); !errors.Is(err, ErrStopping) {
		t.Errorf("ready: got %v, want ErrStopping", err)
	}
	w.must(w.e.Close())
	w.open(Options{})
}

func TestDatabasesAndContainers(t *testing.T) {
	w := newWorld(t)
	if _, err := w.e.CreateContainer(t.Context(), "d", definition("c", "1"), partitions(1)); !errors.Is(err, catalog.ErrNotFound) {
		t.Errorf("container of no database: got %v, want ErrNotFound", err)
	}
	if _, _, err := w.e.Containers("d"); !errors.Is(err, catalog.ErrNotFound) {
		t.Errorf("containers of no database: got %v, want ErrNotFound", err)
	}
	w.container("b", "1", 1)
	w.container("a", "1", 1)
	w.database("c")
	var bad *catalog.InvalidError
	if _, err := w.e.CreateContainer(t.Context(), "d", []byte(`{"id":"x"}`), partitions(1)); !errors.As(err, &bad) {
		t.Errorf("no partition key: got %v, want a refusal", err)
	}
	if _, err := w.e.CreateDatabase(t.Context(), []byte(`{"id":"d"}`), catalog.Throughput{}); !errors.Is(err, catalog.ErrExists) {
		t.Errorf("second database: got %v, want ErrExists", err)
	}
	d, cs, err := w.e.Containers("d")
	if err != nil || d.ID != "d" || len(cs) != 2 || cs[0].ID != "b" || cs[1].ID != "a" {
		t.Errorf("containers: got %v, %v, want the oldest first", cs, err)
	}
	if ds := w.e.catalog.Databases(); len(ds) != 2 || ds[0].ID != "d" || ds[1].ID != "c" {
		t.Errorf("databases: got %v, want the oldest first", ds)
	}
	if err := w.e.DeleteDatabase(t.Context(), "none", ""); !errors.Is(err, catalog.ErrNotFound) {
		t.Errorf("delete of no database: got %v, want ErrNotFound", err)
	}
	w.must(w.e.Ready())
}
