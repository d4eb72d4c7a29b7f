// SPDX-License-Identifier: MIT

package catalog

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/kv/pebblekv"
)

func memoryDB(t *testing.T) kv.DB {
	t.Helper()
	db, err := pebblekv.OpenMemory(pebblekv.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// sequenceOf reads the sequence row as a moment does.
func sequenceOf(t *testing.T, db kv.DB) []byte {
	t.Helper()
	raw, _, err := kv.Get(db, SequenceKey)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// Two processes on one store: a change of the second is decided on what the first left.
func TestChangeFollowsAnotherProcess(t *testing.T) {
	db := memoryDB(t)
	first, second := open(t, db), open(t, db)
	d := createDatabase(t, first, "d")
	if _, err := second.CreateDatabase(t.Context(), []byte(`{"id":"d"}`), Throughput{}, nowMs); !errors.Is(err, ErrExists) {
		t.Errorf("create a database that another process has made: got %v, want ErrExists", err)
	}
	e := createDatabase(t, second, "e")
	if e.RID == d.RID {
		t.Errorf("two databases have the rid %v", e.RID)
	}
	ct := createContainer(t, first, d, with(""), Throughput{})
	stale := ct.ETag
	replaced, err := second.ReplaceContainer(t.Context(), ct.RID, with(`"defaultTtl":1`), "", nowMs)
	if err == nil { // second has not seen the container, but its database
		t.Errorf("replaced %v by the name of an unknown container", replaced.RID)
	}
	if _, err := second.Refresh(sequenceOf(t, db)); err != nil {
		t.Fatal(err)
	}
	if _, err := second.ReplaceContainer(t.Context(), ct.RID, with(`"defaultTtl":1`), "", nowMs); err != nil {
		t.Fatal(err)
	}
	if _, err := first.ReplaceContainer(t.Context(), ct.RID, with(`"defaultTtl":2`), stale, nowMs); !errors.Is(err, ErrPrecondition) {
		t.Errorf("replace under an etag of before: got %v, want ErrPrecondition", err)
	}
	if _, err := first.ReplaceContainer(t.Context(), ct.RID, with(`"defaultTtl":3`), "", nowMs); err != nil {
		t.Fatal(err)
	}
	var b kv.Batch
	b.Set([]byte("x"), []byte("caller's"))
	if err := second.DeleteDatabase(t.Context(), d.RID, "", &b); err != nil {
		t.Fatal(err)
	}
	if raw, found, err := kv.Get(db, []byte("x")); err != nil || !found || string(raw) != "caller's" {
		t.Errorf("the caller's row of a repeated delete: got %q, %v, %v", raw, found, err)
	}
	if err := first.DeleteContainer(t.Context(), ct.RID, "", &kv.Batch{}); !errors.Is(err, ErrNotFound) {
		t.Errorf("delete a container that another process has deleted: got %v, want ErrNotFound", err)
	}
	snap, err := db.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	if err := open(t, db).Check(snap, func(problem string) { t.Error(problem) }); err != nil {
		t.Error(err)
	}
}

// Changes of many processes at once all happen, and each resource has its own number.
func TestChangesOfManyProcesses(t *testing.T) {
	db := memoryDB(t)
	const processes, changes = 4, 8
	var all sync.WaitGroup
	for i := range processes {
		c := open(t, db)
		all.Go(func() {
			for n := range changes {
				body := fmt.Appendf(nil, `{"id":"d%d-%d"}`, i, n)
				if _, err := c.CreateDatabase(t.Context(), body, Throughput{}, nowMs); err != nil {
					t.Errorf("process %d, change %d: %v", i, n, err)
				}
			}
		})
	}
	all.Wait()
	got := open(t, db).Databases()
	if len(got) != processes*changes {
		t.Errorf("got %d databases, want %d", len(got), processes*changes)
	}
	for i, d := range got {
		if int(d.RID) != i+1 {
			t.Errorf("database %d has the number %d", i, d.RID)
		}
	}
}

// An engine whose required row changes before every commit.
type overtaken struct {
	kv.DB
	commits int
}

func (o *overtaken) Commit(context.Context, *kv.Batch) error {
	o.commits++
	return kv.ErrConflict
}

func TestRepeatsAreBounded(t *testing.T) {
	db := &overtaken{DB: memoryDB(t)}
	c := open(t, db)
	_, err := c.CreateDatabase(t.Context(), []byte(`{"id":"d"}`), Throughput{}, nowMs)
	if !errors.Is(err, ErrContended) || db.commits != maxRepeats {
		t.Errorf("got %v after %d commits, want ErrContended after %d", err, db.commits, maxRepeats)
	}
}

func TestRefresh(t *testing.T) {
	db := memoryDB(t)
	first, second := open(t, db), open(t, db)
	before := sequenceOf(t, db)
	if reloaded, err := second.Refresh(before); reloaded || err != nil {
		t.Errorf("nothing has changed: got %v, %v", reloaded, err)
	}
	createDatabase(t, first, "d")
	err := first.ChangePurge(t.Context(), func(was []byte) ([]byte, error) {
		if was != nil {
			t.Errorf("settings of purge before: got %q", was)
		}
		return []byte(`{"paused":true}`), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{true, false} {
		if reloaded, err := second.Refresh(sequenceOf(t, db)); reloaded != want || err != nil {
			t.Errorf("refresh %d: got %v, %v, want %v", i, reloaded, err, want)
		}
	}
	if _, err := second.Database("d"); err != nil || string(second.PurgeSettings()) != `{"paused":true}` {
		t.Errorf("after the refresh: %v, settings of purge %q", err, second.PurgeSettings())
	}
	if reloaded, err := second.Refresh(before); reloaded || err != nil {
		t.Errorf("a row of before: got %v, %v", reloaded, err)
	}
	if _, err := second.Refresh([]byte("short")); !errors.Is(err, kv.ErrCorrupt) {
		t.Errorf("a damaged row: got %v, want ErrCorrupt", err)
	}
}
