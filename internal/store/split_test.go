// SPDX-License-Identifier: MIT

package store

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/kv/kvtest"
)

// splitting is a split of a fixture's partition, step by step.
type splitting struct {
	f        *fixture
	cut      []byte
	children [2]int
	s        *Split
	phase    int
}

// newSplitting returns a split at a key, which belongs to the upper side.
func newSplitting(f *fixture, cut []byte) *splitting {
	n := len(f.container.Ranges)
	return &splitting{f: f, cut: cut, children: [2]int{n, n + 1}}
}

// step does one step of the split: its beginning, a group, or catching up. Sometimes it
// gives the split up, so that the next step begins another one.
func (x *splitting) step(t *rapid.T) {
	x.f.t = t
	if x.s == nil {
		var err error
		x.s, err = x.f.p.BeginSplit(x.children, x.cut)
		x.f.must(err)
		x.s.most, x.phase = rapid.IntRange(1, 4).Draw(t, "rows"), 0
		return
	}
	var err error
	switch rapid.IntRange(0, 15).Draw(t, "step of the split") {
	case 0:
		x.abandon()
		return
	case 1, 2, 3:
		err = x.s.catchUp(func() error { return nil })
	default:
		more := false
		switch x.phase {
		case 0:
			more, err = x.s.copyItems()
		case 1:
			more, err = x.s.copyEvents()
		case 2:
			more, err = x.s.copyLog()
		}
		if err == nil && !more {
			x.phase++
		}
	}
	if errors.Is(err, ErrSplitStale) {
		x.abandon()
		return
	}
	x.f.must(err)
}

func (x *splitting) abandon() {
	if x.s == nil {
		return
	}
	x.s.Abandon()
	x.s = nil
	var b kv.Batch
	for _, index := range x.children {
		RemovePartition(&b, false, x.f.container.RID, index)
	}
	x.f.must(x.f.db.Commit(context.Background(), &b))
	x.children[0] += 2
	x.children[1] += 2
}

// end finishes the split, from wherever it is, and compares the rows.
func (x *splitting) end(t *rapid.T) *catalog.Container {
	x.f.t = t
	if x.s == nil {
		x.step(t)
	}
	err := x.s.Copy(func() error { return nil })
	if errors.Is(err, ErrSplitStale) {
		x.abandon()
		x.step(t)
		err = x.s.Copy(func() error { return nil })
	}
	x.f.must(err)
	var before map[string]string
	x.f.must(x.s.Finish(context.Background(), func() error {
		before = x.rows(x.f.index)
		var b kv.Batch
		RemovePartition(&b, false, x.f.container.RID, x.f.index)
		return x.f.db.Commit(context.Background(), &b)
	}))
	if _, err := x.f.p.Read(nil, x.f.key("k", "x"), "", x.f.clock.Now()); !errors.Is(err, ErrClosed) && !errors.Is(err, ErrNotFound) {
		t.Fatalf("a read after the split: %v", err)
	}
	if _, err := x.f.write(x.f.item(Upsert, "late", "")); !errors.Is(err, ErrClosed) {
		t.Fatalf("a write after the split: %v, want ErrClosed", err)
	}
	c := x.container()
	for i, index := range x.children {
		for key, row := range x.rows(index) {
			if before[key] != row {
				t.Errorf("row %q of child %d is %x, and was %x", key, i, row, before[key])
			}
			delete(before, key)
		}
		x.checkChild(t, c, index)
	}
	for key := range before {
		t.Errorf("row %q is in no child", key)
	}
	return c
}

// rows returns the rows of a partition that a split keeps as they are, without its prefix.
func (x *splitting) rows(index int) map[string]string {
	prefix := partitionPrefix(x.f.container.RID, index)
	snap, err := x.f.db.Snapshot()
	x.f.must(err)
	defer snap.Close()
	all := map[string]string{}
	for e, err := range snap.Scan(prefix[:], kv.After(prefix[:]), kv.Forward) {
		x.f.must(err)
		kind := e.Key[prefixBytes]
		if kind == indexSpace && x.f.p.Unindexed() {
			continue // the children have those rows that the parent did not have yet, too
		}
		if bytes.IndexByte([]byte{statSpace, metaSpace, logStateSpace}, kind) < 0 {
			all[string(e.Key[prefixBytes:])] = string(e.Value)
		}
	}
	return all
}

// container returns the container after the split.
func (x *splitting) container() *catalog.Container {
	c := *x.f.container
	c.Ranges = nil
	for _, r := range x.f.container.Ranges {
		if r.ID != x.f.index {
			c.Ranges = append(c.Ranges, r)
			continue
		}
		c.Ranges = append(c.Ranges, catalog.Range{ID: x.children[0], Min: r.Min, Max: x.cut, Parents: []int{r.ID}},
			catalog.Range{ID: x.children[1], Min: x.cut, Max: r.Max, Parents: []int{r.ID}})
	}
	return &c
}

// checkChild checks a child at rest, and that it goes on after the parent's lsn.
func (x *splitting) checkChild(t *rapid.T, c *catalog.Container, index int) {
	snap, err := x.f.db.Snapshot()
	x.f.must(err)
	_, err = Check(snap, c, index, func() {}, func(p string) { t.Errorf("check: %s", p) })
	snap.Close()
	x.f.must(err)
	child, err := Open(Options{DB: x.f.db, Clock: x.f.clock, Container: c, Index: index})
	x.f.must(err)
	defer child.Close()
	was, is := x.f.p.now().meta, child.now().meta
	if is.LSN != was.LSN || is.Final != was.Final || is.ChangedMs != was.ChangedMs || is.Marks != was.Marks || is.Epoch != was.Epoch || is.ContainerDefault != was.ContainerDefault {
		t.Fatalf("child %d has %+v, its parent had %+v", index, is, was)
	}
}

// Random histories, in the middle of which the partition is split, with writes, purges,
// touches, renames, unique keys and settings between all steps. Each row of the partition is
// in exactly one child afterwards, byte for byte, and the counters of the children are right.
func TestSplitAgainstTwin(t *testing.T) {
	const unique = `,"uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/u"]},{"paths":["/v"]}]}`
	for name, k := range map[string]kind{
		"the only partition": {}, "one of five": {throughput: catalog.Throughput{Manual: 25_100}, index: 3}, "unique keys": {properties: unique},
	} {
		t.Run(name, func(t *testing.T) {
			for range modelRounds * kvtest.LongFactor(t) {
				rapid.Check(t, func(t *rapid.T) { runSplitHistory(t, k) })
			}
		})
	}
}

func runSplitHistory(t *rapid.T, k kind) {
	h := newHistory(t, k)
	defer func() { h.f.p.Close() }()
	a, b := h.f.key(h.keys[0], "").EPK, h.f.key(h.keys[1], "").EPK
	if bytes.Compare(a, b) > 0 {
		a, b = b, a
	}
	x := newSplitting(h.f, b)
	defer func() {
		if x.s != nil {
			x.s.close()
		}
	}()
	t.Repeat(map[string]func(*rapid.T){
		"write": h.writeOne, "rewrite": h.writeOne, "again": h.writeOne, "group": h.writeGroup, "bundle": h.writeBundles,
		"race": h.purgeBesideWrites, "undelete": h.undelete, "slide": h.slide, "purge": h.purge, "purge all": h.purgeAll,
		"advance": h.advance, "transient": h.comeAndGo, "poll": h.poll,
		"settings": func(t *rapid.T) {
			if rapid.IntRange(0, 3).Draw(t, "settings") == 0 {
				h.changeSettings(t)
			}
		},
		"split": x.step, "split on": x.step, "split further": x.step, "": h.checkAll,
	})
	x.end(t)
}

// The same with a log of all versions, and events without identities.
func TestSplitLogAgainstTwin(t *testing.T) {
	for range modelRounds * kvtest.LongFactor(t) {
		rapid.Check(t, func(t *rapid.T) {
			h := &feedHistory{items: map[string]*feedItem{}, changes: map[string][]string{}, ttl: 5, inFeed: rapid.Bool().Draw(t, "touches in the feed")}
			h.f = makeFixture(t, kvtest.NewModel(), setup{definition: h.definition(), nowMs: startMs})
			defer func() { h.f.p.Close() }()
			x := newSplitting(h.f, h.f.key("k", "").EPK)
			if rapid.Bool().Draw(t, "below the cut") {
				x.cut[len(x.cut)-1]++
			}
			defer func() {
				if x.s != nil {
					x.s.close()
				}
			}()
			in := func(do func(*rapid.T)) func(*rapid.T) {
				return func(t *rapid.T) { h.f.t = t; do(t) }
			}
			t.Repeat(map[string]func(*rapid.T){
				"write": in(h.write), "rewrite": in(h.write), "bundle": in(h.writeAll), "slide": in(h.slide), "retire": in(h.retire),
				"advance": in(func(t *rapid.T) { h.advance(time.Duration(rapid.IntRange(1, 4000).Draw(t, "ms")) * time.Millisecond) }),
				"purge":   in(func(t *rapid.T) { h.purge(rapid.IntRange(1, 3).Draw(t, "items")) }),
				"logged":  in(func(*rapid.T) { h.f.must(h.f.p.LogExpired(context.Background(), h.f.clock.Now())) }),
				"forget":  in(func(*rapid.T) { h.f.must(h.f.p.Forget(context.Background(), h.f.clock.Now()-3000)) }),
				"split":   x.step, "split on": x.step,
			})
			x.end(t)
		})
	}
}
