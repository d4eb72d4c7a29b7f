// SPDX-License-Identifier: MIT

package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"github.com/mayflydb/mayfly/internal/index"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/kv/kvtest"
	"github.com/mayflydb/mayfly/internal/kv/pebblekv"
)

// withoutPath is the definition of a container that does not index a path.
func withoutPath(path string) string {
	return fmt.Sprintf(`{"id":"c","partitionKey":{"paths":["/pk"],"version":2},"defaultTtl":-1,"indexingPolicy":{"excludedPaths":[{"path":%q}]}}`, path)
}

// indexed reports whether readers may use the index.
func (f *fixture) indexed() bool {
	f.t.Helper()
	r := f.reader()
	defer r.Close()
	return r.Indexed()
}

func (f *fixture) reindexAll(most int) {
	f.t.Helper()
	for more := true; more; {
		var err error
		_, more, err = f.p.Reindex(context.Background(), most)
		f.must(err)
	}
}

// After a change of the policy, readers do not use the index until all items have their
// rows. That begins at the moment when the change is published.
func TestReindexIsSeenWhenItIsDone(t *testing.T) {
	f := newFixture(t, withoutPath("/x/*"))
	for i := range 10 {
		f.put(fmt.Sprint(i), fmt.Sprintf(`"x":%d,"y":%d`, i, i))
	}
	if !f.indexed() || f.p.Unindexed() {
		t.Fatal("a partition without a change has no index")
	}
	f.reconfigure(withoutPath("/y/*"))
	last := 0
	for step := 0; ; step++ {
		if f.indexed() || !f.p.Unindexed() {
			t.Errorf("step %d: the index is used before it is complete", step)
		}
		if r := f.reader(); r.Container().Epoch != f.container.Epoch {
			t.Error("the reader goes by the old settings")
		} else {
			r.Close()
		}
		percent, err := f.p.IndexProgress()
		if err != nil || percent < last || percent > 99 {
			t.Errorf("step %d: %d percent are done after %d, %v", step, percent, last, err)
		}
		last = percent
		items, more, err := f.p.Reindex(context.Background(), 3)
		f.must(err)
		if !more {
			break
		}
		if items != 3 {
			t.Errorf("step %d: got %d items, want 3", step, items)
		}
	}
	if last == 0 {
		t.Error("there was no progress on the way")
	}
	if percent, err := f.p.IndexProgress(); percent != 100 || err != nil || !f.indexed() || f.p.Unindexed() {
		t.Errorf("at the end %d percent are done, %v", percent, err)
	}
	f.compareIndexWithItems()
	r := f.reader()
	defer r.Close()
	if hits := f.hits(r, IndexScan{Path: index.Path{index.Property("y")}, Values: index.AllValues()}); len(hits) > 0 {
		t.Errorf("what the policy leaves out has the rows %v", hits)
	}
	f.checkClean()
	if items, more, err := f.p.Reindex(context.Background(), 3); items != 0 || more || err != nil {
		t.Errorf("once more: got %d, %v, %v, want nothing to do", items, more, err)
	}
}

// An empty partition has nothing to rebuild under any policy.
func TestReindexOfNothing(t *testing.T) {
	f := newFixture(t, withTTL("-1"))
	f.reconfigure(withoutPath("/x/*"))
	if !f.indexed() {
		t.Error("no item lacks its rows, and the index is not used")
	}
	f.reindexAll(10)
	if percent, err := f.p.IndexProgress(); percent != 100 || err != nil {
		t.Errorf("got %d percent, %v, want 100", percent, err)
	}
}

// A rebuild agrees with the items, whatever is written, expires, is purged or changes
// meanwhile.
func TestReindexAmongWrites(t *testing.T) {
	for range kvtest.LongFactor(t) {
		rapid.Check(t, func(t *rapid.T) {
			f := makeFixture(t, kvtest.NewModel(), setup{definition: withoutPath("/z/*"), nowMs: startMs})
			defer func() { f.p.Close() }()
			for i := range rapid.IntRange(0, 12).Draw(t, "items") {
				f.put(fmt.Sprint(i), fmt.Sprintf(`"x":%d`, i%3))
			}
			for range rapid.IntRange(1, 20).Draw(t, "steps") {
				f.reindexStep(t)
				if f.indexed() {
					f.compareIndexWithItems()
				}
			}
			f.reindexAll(2)
			f.compareIndexWithItems()
			f.checkClean()
		})
	}
}

func (f *fixture) reindexStep(t *rapid.T) {
	id := fmt.Sprint(rapid.IntRange(0, 14).Draw(t, "id"))
	switch rapid.IntRange(0, 8).Draw(t, "step") {
	case 0:
		f.reconfigure(withoutPath(rapid.SampledFrom([]string{"/z/*", "/y/*", "/pk/*"}).Draw(t, "policy")))
	case 1, 2, 3:
		_, _, err := f.p.Reindex(context.Background(), rapid.IntRange(1, 4).Draw(t, "most"))
		f.must(err)
	case 4:
		_, err := f.write(Write{Op: Delete, Key: f.key("k", id)})
		if err != nil && !errors.Is(err, ErrNotFound) {
			t.Fatal(err)
		}
	case 5:
		f.advance(time.Second)
		_, err := f.p.Purge(context.Background(), Purge{MaxItems: 2})
		f.must(err)
	case 6:
		f.reopen()
	default:
		f.put(id, fmt.Sprintf(`"x":%d,"ttl":%s`, rapid.IntRange(0, 5).Draw(t, "x"), rapid.SampledFrom([]string{"-1", "1", "3"}).Draw(t, "ttl")))
	}
}

// A group is planned outside of the loop: items that have changed since are skipped, and a
// plan under an earlier policy is void.
func TestReindexPlansThatAreLate(t *testing.T) {
	f := newFixture(t, withoutPath("/z/*"))
	for i := range 4 {
		f.put(fmt.Sprint(i), fmt.Sprintf(`"x":%d`, i))
	}
	f.reconfigure(withoutPath("/y/*"))
	pl, err := f.p.planReindex(10)
	f.must(err)
	f.put("1", `"x":7`)
	_, err = f.write(Write{Op: Delete, Key: f.key("k", "2")})
	f.must(err)
	_, err = f.p.submit(context.Background(), &job{task: &task{do: pl.write, under: pl.under}})
	f.must(err)
	f.compareIndexWithItems()
	f.checkClean()

	f.reconfigure(withoutPath("/z/*"))
	if pl, err = f.p.planReindex(10); err != nil || len(pl.items) != 3 {
		t.Fatalf("got a plan of %d items, %v, want 3", len(pl.items), err)
	}
	f.reconfigure(withoutPath("/y/*"))
	_, err = f.p.submit(context.Background(), &job{task: &task{do: pl.write, under: pl.under}})
	if !errors.Is(err, errStale) {
		t.Errorf("a plan under an earlier policy: got %v, want errStale", err)
	}
	if f.indexed() {
		t.Error("the index is used before it is complete")
	}
	f.reindexAll(10)
	f.compareIndexWithItems()
	f.checkClean()
}

// The machine crashes around every commit of a rebuild. Unsynced data survives in whole, in
// part or not at all. The rebuild resumes, and in the end all items have their rows.
func TestReindexSurvivesCrashes(t *testing.T) {
	fs := vfs.NewCrashableMem()
	db, err := pebblekv.Open(purgeCrashOptions(fs))
	if err != nil {
		t.Fatal(err)
	}
	f := makeFixture(t, db, setup{definition: withoutPath("/z/*"), nowMs: startMs})
	const items = 12
	for i := range items {
		f.put(fmt.Sprint(i), fmt.Sprintf(`"x":%d`, i))
	}
	rng := rand.New(rand.NewPCG(1, 2))
	var disks []*vfs.MemFS
	crash := func() {
		for _, percent := range []int{0, 50, 100} {
			disks = append(disks, fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng}))
		}
	}
	f.db.play(func(commit func() error) error {
		crash()
		err := commit()
		crash()
		return err
	})
	f.reconfigure(withoutPath("/y/*"))
	f.reindexAll(2)
	f.db.stopPlaying()
	f.p.Close()
	f.must(f.db.Close())
	if len(disks) < 30 {
		t.Errorf("there were %d crashes only", len(disks))
	}
	for _, disk := range disks {
		recoverReindex(t, disk, items)
	}
}

func recoverReindex(t *testing.T, disk vfs.FS, items int) {
	t.Helper()
	db, err := pebblekv.Open(purgeCrashOptions(disk))
	if err != nil {
		t.Fatal(err)
	}
	s := purgeCrash{t: t}
	f := s.reopened(db, startMs)
	f.checkClean()
	if f.indexed() {
		f.compareIndexWithItems()
	}
	f.reindexAll(3)
	f.compareIndexWithItems()
	f.checkClean()
	r := f.reader()
	if hits := f.hits(r, IndexScan{Path: pathX, Values: index.AllValues(), Order: kv.Reverse}); len(hits) != items || !slices.IsSortedFunc(hits, func(a, b uint64) int { return int(b) - int(a) }) {
		t.Errorf("got the rows %v, want those of %d items", hits, items)
	}
	r.Close()
	f.p.Close()
	f.must(db.Close())
}
