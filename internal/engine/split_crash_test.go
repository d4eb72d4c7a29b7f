// SPDX-License-Identifier: MIT

package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/kv/kvtest"
	"github.com/mayflydb/mayfly/internal/kv/pebblekv"
	"github.com/mayflydb/mayfly/internal/store"
)

// crashing is a store that is cloned, as a crash may leave its disk, before and after every
// commit while it is armed.
type crashing struct {
	kv.DB
	mu    sync.Mutex
	armed bool
	clone func()
}

func (c *crashing) look() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.armed {
		c.clone()
	}
}

func (c *crashing) Commit(ctx context.Context, b *kv.Batch) error {
	c.look()
	err := c.DB.Commit(ctx, b)
	c.look()
	return err
}

// The machine crashes before and after every commit of a split, and of the writes beside it.
// Unsynced data survives in whole, in part or not at all. Each time there is the parent with
// everything or the children with everything, the rows agree, and the split can be done.
func TestSplitCrashes(t *testing.T) {
	alone(t)
	for seed := range uint64(kvtest.LongFactor(t)) {
		crashSplit(t, seed)
	}
}

// crashedSplit is a disk, and the items that were acknowledged before the crash and that may be
// there.
type crashedSplit struct {
	disk        *vfs.MemFS
	kept, begun map[string]string
}

func crashSplit(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 7))
	fs := vfs.NewCrashableMem()
	options := func(fs vfs.FS) pebblekv.Options {
		return pebblekv.Options{Dir: "data", FS: fs, Logger: quiet(), CacheBytes: 1 << 20}
	}
	pebble, err := pebblekv.Open(options(fs))
	if err != nil {
		t.Fatal(err)
	}
	var items sync.Mutex // guards the following
	kept, begun := map[string]string{}, map[string]string{}
	var crashes []crashedSplit
	db := &crashing{DB: pebble}
	db.clone = func() {
		items.Lock()
		defer items.Unlock()
		c := crashedSplit{kept: maps.Clone(kept), begun: maps.Clone(begun)}
		c.disk = fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: []int{0, 30, 70, 100}[rng.IntN(4)], RNG: rng})
		crashes = append(crashes, c)
	}
	w := &world{t: t, db: db}
	w.open(Options{PurgePaused: true})
	w.container("c", "-1", 1)
	put := func(i int) {
		pk, id := fmt.Sprint("key ", i%50), fmt.Sprint("i", i)
		items.Lock()
		begun[pk+"/"+id] = ""
		items.Unlock()
		a, err := w.write(store.Upsert, "c", pk, id, "")
		if err != nil {
			t.Errorf("write %d: %v", i, err)
			return
		}
		items.Lock()
		defer items.Unlock()
		kept[pk+"/"+id], begun[pk+"/"+id] = string(a.Body), string(a.Body)
	}
	for i := range 700 { // two groups of a split
		put(i)
	}
	db.mu.Lock()
	db.armed = true
	db.mu.Unlock()
	w.beginSplit("0")
	var writing sync.WaitGroup
	writing.Go(func() {
		for i := range 15 {
			put(2000 + i)
		}
	})
	w.awaitSplit()
	writing.Wait()
	db.mu.Lock()
	db.armed = false
	db.mu.Unlock()
	w.must(w.e.Close())
	w.must(pebble.Close())
	if len(crashes) < 20 {
		t.Errorf("there were %d crashes only", len(crashes))
	}
	states := map[string]int{}
	for i, c := range crashes {
		if t.Failed() {
			return
		}
		again, err := pebblekv.Open(options(c.disk))
		if err != nil {
			t.Fatal(err)
		}
		after := &world{t: t, db: again}
		after.checkClean()
		after.open(Options{PurgePaused: true})
		states[after.afterCrash(i, c)]++
		if i%4 == 0 {
			after.split(catalog.RangeID(after.named("c").Ranges[0].ID))
			after.afterCrash(i, c)
		}
		after.close()
	}
	if states["parent"] == 0 || states["children"] == 0 || len(states) != 2 {
		t.Errorf("after the crashes there were %v", states)
	}
}

// afterCrash checks that all items are there that must be, and none that was never written.
func (w *world) afterCrash(n int, c crashedSplit) string {
	w.t.Helper()
	state := map[string]string{"0[]": "parent", "1[0] 2[0]": "children"}[splitRangesOf(w.named("c"))]
	for name, body := range c.kept {
		pk, id, _ := strings.Cut(name, "/")
		if a, err := w.read("c", pk, id); err != nil || string(a.Body) != body {
			w.t.Fatalf("crash %d, %s: %s is %s, %v, want %s", n, state, name, a.Body, err, body)
		}
	}
	found := 0
	for name := range c.begun {
		pk, id, _ := strings.Cut(name, "/")
		switch _, err := w.read("c", pk, id); {
		case err == nil:
			found++
		case !errors.Is(err, store.ErrNotFound):
			w.t.Fatalf("crash %d: %s: %v", n, name, err)
		}
	}
	u, err := w.e.Usage(context.Background(), w.named("c"))
	w.must(err)
	if int(u.Live.Items) != found {
		w.t.Fatalf("crash %d, %s: %d items can be read, and %d are counted", n, state, found, u.Live.Items)
	}
	return state
}
