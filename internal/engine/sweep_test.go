// SPDX-License-Identifier: MIT

package engine

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/kv/kvtest"
	"github.com/mayflydb/mayfly/internal/store"
	"github.com/mayflydb/mayfly/internal/value"
)

// farModel is a store that several engines share and that is far away from them.
type farModel struct{ *kvtest.Model }

func (farModel) Far() bool { return true }

// rowsAt counts the rows in a store, and those of them that are of a container.
func rowsAt(t *testing.T, db kv.DB, c *catalog.Container) (all, own int) {
	t.Helper()
	prefix := store.OwnerKey(c.RID, 0)[:9]
	snap, err := db.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	for e, err := range snap.Scan(nil, nil, kv.Forward) {
		if err != nil {
			t.Fatal(err)
		}
		if all++; bytes.HasPrefix(e.Key, prefix) {
			own++
		}
	}
	return all, own
}

// checkStore reports problems of a store.
func checkStore(t *testing.T, db kv.DB) {
	t.Helper()
	if _, err := Check(db, nil, func(problem string) { t.Errorf("check: %s", problem) }); err != nil {
		t.Error(err)
	}
}

// On an engine that is far, a container that is deleted is gone at once, for its owners too.
// Its rows are swept later, by one of the nodes.
func TestDropIsSweptByOneNode(t *testing.T) {
	ns := newNodesOn(t, farModel{kvtest.NewModel()})
	ns.begin("a", "b")
	c, kept := ns.container("c", "-1", 4), ns.container("kept", "-1", 1)
	for i, pk := range spread(c) {
		for _, name := range []string{"c", "kept"} {
			if _, err := ns.put("a", name, pk, fmt.Sprint(i), ""); err != nil {
				t.Fatal(err)
			}
		}
	}
	owners := map[int]*store.Partition{}
	for _, e := range ns.all {
		e.mu.RLock()
		for id, p := range e.mu.open {
			if id.container == c.RID {
				owners[id.index] = p
			}
		}
		e.mu.RUnlock()
	}
	_, before := rowsAt(t, ns.db, kept)
	if err := ns.all["a"].DeleteContainer(t.Context(), "d", "c", ""); err != nil {
		t.Fatal(err)
	}
	if _, own := rowsAt(t, ns.db, c); own == 0 {
		t.Fatal("the drop has removed all rows itself")
	}
	for i := range c.Ranges {
		if _, found, err := kv.Get(ns.db, store.OwnerKey(c.RID, i)); err != nil || found {
			t.Errorf("partition %d has an owner row: %v, %v", i, found, err)
		}
	}
	if len(owners) != len(c.Ranges) {
		t.Errorf("%d partitions were open", len(owners))
	}
	for i, p := range owners { // also those of the other node, which does not know of the drop
		pk := value.PartitionKey{value.String(spread(c)[i])}
		key := store.Key{EPK: c.PartitionKey.AppendEPK(nil, pk), PartitionKey: pk, ID: fmt.Sprint(i)}
		if _, err := p.Write(t.Context(), store.Write{Op: store.Delete, Key: key}); !errors.Is(err, store.ErrClosed) {
			t.Errorf("a write by the owner of partition %d after the drop: got %v", i, err)
		}
	}
	checkStore(t, ns.db)
	swept := 0
	for _, e := range ns.all {
		n, err := e.sweep(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		swept += n
	}
	_, own := rowsAt(t, ns.db, c)
	_, after := rowsAt(t, ns.db, kept)
	if swept != 1 || own != 0 || after != before {
		t.Errorf("%d ranges were swept; there are %d rows of the container, and %d of the other one, which had %d", swept, own, after, before)
	}
}

// If all nodes stop between the drop of a database and its sweep, the next one to start
// sweeps it. A copy made before has none of its rows.
func TestDropIsSweptAfterRestart(t *testing.T) {
	db := kvtest.NewModel()
	open := func() *Engine {
		t.Helper()
		e, err := Open(Options{DB: farModel{db.Another()}, TestClock: true, ClockSource: atStart, PurgePaused: true})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	e := open()
	if _, err := e.CreateDatabase(t.Context(), []byte(`{"id":"d"}`), catalog.Throughput{}); err != nil {
		t.Fatal(err)
	}
	c, err := e.CreateContainer(t.Context(), "d", definition("c", "null"), partitions(2))
	if err != nil {
		t.Fatal(err)
	}
	for _, pk := range spread(c) {
		if _, err := e.WriteItem(t.Context(), &Request{Target: Target{Database: "d", Container: "c"}, Op: store.Create, Body: body(pk, "x", "")}); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.DeleteDatabase(t.Context(), "d", ""); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if _, own := rowsAt(t, db, c); own == 0 {
		t.Fatal("the rows were swept already")
	}
	checkStore(t, db)
	copied := kvtest.NewModel()
	if _, err := Copy(t.Context(), CopyOptions{From: db, To: copied}); err != nil {
		t.Fatal(err)
	}
	if _, own := rowsAt(t, copied, c); own != 0 {
		t.Errorf("%d rows that are to be swept were copied", own)
	}
	checkStore(t, copied)
	e = open()
	for {
		ranges := 0
		if _, own := rowsAt(t, db, c); own == 0 {
			snap, err := db.Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			for range snap.Scan(catalog.SweepPrefix, kv.After(catalog.SweepPrefix), kv.Forward) {
				ranges++
			}
			snap.Close()
			if ranges == 0 {
				break
			}
		}
		time.Sleep(time.Millisecond)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	checkStore(t, db)
}
