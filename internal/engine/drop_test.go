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

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/kv/kvtest"
	"github.com/mayflydb/mayfly/internal/store"
)

func TestDropContainerFreesItsRows(t *testing.T) {
	w := newWorld(t)
	gone, kept := w.container("gone", "-1", 4), w.container("kept", "null", 1)
	for i, pk := range spread(gone) {
		w.put("gone", pk, "a", `"ttl":5`)
		w.put("kept", pk, fmt.Sprint(i), "")
	}
	spanCache := w.rowsOf(kept)
	if w.rowsOf(gone) == 0 || spanCache == 0 {
		t.Fatal("there are no rows to drop")
	}
	if err := w.e.DeleteContainer(t.Context(), "d", "gone", `"x"`); !errors.Is(err, catalog.ErrPrecondition) {
		t.Errorf("another etag: got %v, want ErrPrecondition", err)
	}
	w.put("gone", spread(gone)[0], "b", "") // a refused drop leaves it in use
	w.must(w.e.DeleteContainer(t.Context(), "d", "gone", gone.ETag))
	if n := w.rowsOf(gone); n != 0 {
		t.Errorf("%d rows of the dropped container are left", n)
	}
	if n := w.rowsOf(kept); n != spanCache {
		t.Errorf("the other container has %d rows, want %d", n, spanCache)
	}
	if _, err := w.read("gone", spread(gone)[0], "a"); !errors.Is(err, ErrOwnerNotFound) {
		t.Errorf("read: got %v, want ErrOwnerNotFound", err)
	}
	if _, err := w.write(store.Upsert, "gone", "x", "a", ""); !errors.Is(err, ErrOwnerNotFound) {
		t.Errorf("write: got %v, want ErrOwnerNotFound", err)
	}
	if _, err := w.e.ListItems(t.Context(), &Request{Target: Target{Database: "d", Container: "gone"}}); !errors.Is(err, ErrOwnerNotFound) {
		t.Errorf("list: got %v, want ErrOwnerNotFound", err)
	}
	if err := w.e.DeleteContainer(t.Context(), "d", "gone", ""); !errors.Is(err, catalog.ErrNotFound) {
		t.Errorf("second drop: got %v, want ErrNotFound", err)
	}
}

func TestDropDatabaseFreesItsRows(t *testing.T) {
	w := newWorld(t)
	a, b := w.container("a", "null", 2), w.container("b", "5", 1)
	w.database("other")
	c, err := w.e.CreateContainer(t.Context(), "other", definition("c", "null"), partitions(1))
	w.must(err)
	for _, pk := range spread(a) {
		w.put("a", pk, "x", "")
		w.put("b", pk, "x", "")
	}
	_, err = w.e.WriteItem(t.Context(), &Request{Target: Target{Database: "other", Container: "c"}, Op: store.Create, Body: body("k", "x", "")})
	w.must(err)
	spanCache := w.rowsOf(c)
	if err := w.e.DeleteDatabase(t.Context(), "d", `"x"`); !errors.Is(err, catalog.ErrPrecondition) {
		t.Errorf("another etag: got %v, want ErrPrecondition", err)
	}
	w.must(w.e.DeleteDatabase(t.Context(), "d", ""))
	if n, m, k := w.rowsOf(a), w.rowsOf(b), w.rowsOf(c); n != 0 || m != 0 || k != spanCache {
		t.Errorf("rows left: %d, %d and %d of the other database, want 0, 0 and %d", n, m, k, spanCache)
	}
	if _, err := w.read("a", "x", "x"); !errors.Is(err, ErrOwnerNotFound) {
		t.Errorf("read: got %v, want ErrOwnerNotFound", err)
	}
	w.reopen(Options{})
	if n := len(w.e.catalog.Databases()); n != 1 {
		t.Errorf("there are %d databases, want 1", n)
	}
}

// A container created again under the same name is another one.
func TestRecreateContainer(t *testing.T) {
	w := newWorld(t)
	old := w.container("c", "null", 1)
	before := w.put("c", "k", "a", "")
	for round := range 3 {
		w.must(w.e.DeleteContainer(t.Context(), "d", "c", ""))
		fresh := w.container("c", "null", 1)
		if fresh.RID == old.RID {
			t.Fatalf("round %d: the rid %s is given again", round, fresh.RID)
		}
		if _, err := w.read("c", "k", "a"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("round %d: the old item: got %v, want ErrNotFound", round, err)
		}
		r := w.put("c", "k", "a", "")
		if !r.Created || r.LSN != 1 || string(r.Body) == string(before.Body) {
			t.Errorf("round %d: got %+v, want the first write of a container", round, r)
		}
		stale := item("c", "k", "a")
		stale.IntendedRID = old.RID.String()
		if _, err := w.e.ReadItem(&Request{Target: stale}); !errors.Is(err, ErrContainerChanged) {
			t.Errorf("round %d: a request for the old one: got %v, want ErrContainerChanged", round, err)
		}
		stale.IntendedRID = fresh.RID.String()
		if _, err := w.e.ReadItem(&Request{Target: stale}); err != nil {
			t.Errorf("round %d: a request for this one: %v", round, err)
		}
		byRID := item(fresh.RID.String(), "k", "a")
		if _, err := w.e.ReadItem(&Request{Target: byRID}); err != nil {
			t.Errorf("round %d: by rid: %v", round, err)
		}
		old = fresh
	}
}

// A drop whose request is cancelled before it begins leaves the container unchanged.
func TestCancelledDrop(t *testing.T) {
	w := newWorld(t)
	w.container("c", "null", 1)
	w.put("c", "k", "a", "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.e.DeleteContainer(ctx, "d", "c", ""); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	if err := w.e.DeleteDatabase(ctx, "d", ""); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	if _, err := w.read("c", "k", "a"); err != nil {
		t.Error(err)
	}
	w.put("c", "k", "a", "")
	w.must(w.e.Ready())
}

// Clients write, read and list while the container is dropped and created again. Each
// gets a correct answer: done, or no such container. No row of a dropped container is
// left.
func TestDropUnderLoad(t *testing.T) {
	const rounds, clients = 20, 6
	w := newWorld(t)
	w.container("c", "5", 2)
	keys := spread(w.container("other", "5", 2))
	var stop atomic.Bool
	var done [3]atomic.Int64
	var running sync.WaitGroup
	for client := range clients {
		running.Go(func() {
			for i := 0; !stop.Load(); i++ {
				var err error
				switch kind := (client + i) % 3; kind {
				case 0:
					_, err = w.write(store.Upsert, "c", keys[i%2], fmt.Sprint(i%5), `"ttl":3`)
				case 1:
					_, err = w.read("c", keys[i%2], fmt.Sprint(i%5))
				case 2:
					_, err = w.list("c", 3)
				}
				if err != nil && !errors.Is(err, ErrOwnerNotFound) && !errors.Is(err, store.ErrNotFound) {
					t.Errorf("client %d: %v", client, err)
					return
				}
				if err == nil {
					done[(client+i)%3].Add(1)
				}
			}
		})
	}
	for range rounds {
		c, err := w.e.Container("d", "c")
		w.must(err)
		for start := done[0].Load(); done[0].Load() < start+10 && !t.Failed(); {
			w.put("other", keys[0], "a", "") // at the same time
		}
		w.must(w.e.DeleteContainer(t.Context(), "d", "c", ""))
		if n := w.rowsOf(c); n != 0 {
			t.Errorf("%d rows of a dropped container are left", n)
		}
		w.container("c", "5", 2)
	}
	stop.Store(true)
	running.Wait()
	for kind := range done {
		if done[kind].Load() == 0 {
			t.Errorf("no client got through with operation %d", kind)
		}
	}
}

// While a drop is being committed, requests for its container wait for the outcome. They
// must not fail as if the server were stopping.
func TestRequestsWaitForADrop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &heldDB{DB: kvtest.NewModel(), entered: make(chan struct{}), open: make(chan struct{})}
		w := &world{t: t, db: db}
		w.open(Options{})
		w.container("c", "null", 1)
		w.put("c", "k", "a", "")
		db.hold.Store(true)
		dropped := make(chan error, 1)
		go func() { dropped <- w.e.DeleteContainer(context.Background(), "d", "c", "") }()
		<-db.entered
		answers := make(chan error, 3)
		go func() { _, err := w.read("c", "k", "a"); answers <- err }()
		go func() { _, err := w.write(store.Upsert, "c", "k", "a", ""); answers <- err }()
		go func() { _, err := w.list("c", 0); answers <- err }()
		synctest.Wait()
		if n := len(answers); n != 0 {
			t.Errorf("%d requests are answered while the outcome is open, the first with %v", n, <-answers)
		}
		db.hold.Store(false)
		db.open <- struct{}{}
		w.must(<-dropped)
		for range cap(answers) {
			if err := <-answers; !errors.Is(err, ErrOwnerNotFound) {
				t.Errorf("got %v, want ErrOwnerNotFound", err)
			}
		}
		w.must(w.e.Close())
	})
}

// heldDB delays commits.
type heldDB struct {
	kv.DB
	hold          atomic.Bool
	entered, open chan struct{}
}

func (db *heldDB) Commit(ctx context.Context, b *kv.Batch) error {
	if db.hold.Load() {
		db.entered <- struct{}{}
		<-db.open
	}
	return db.DB.Commit(ctx, b)
}
