// SPDX-License-Identifier: MIT

package store

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/mayflydb/mayfly/internal/kv/pebblekv"
	"github.com/mayflydb/mayfly/internal/value"
)

// The machine crashes before, in and after every commit of bundles that rewrite the same
// items. Unsynced data survives in whole, in part or not at all. After it, all items are of
// the same bundle, and not of one before the last acknowledged.
func TestBundleIsThereEntirelyOrNotAtAll(t *testing.T) {
	const bundles, items = 12, 5
	fs := vfs.NewCrashableMem()
	rng := rand.New(rand.NewPCG(1, 44))
	db, err := pebblekv.Open(purgeCrashOptions(fs))
	if err != nil {
		t.Fatal(err)
	}
	f := makeFixture(t, db, setup{definition: withTTL("-1"), nowMs: startMs})
	type crashed struct {
		disk *vfs.MemFS
		when string
		done int
	}
	var crashes []crashed
	done := 0 // acknowledged bundles
	crash := func(when string) {
		for _, percent := range []int{0, 50, 100} {
			disk := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng})
			crashes = append(crashes, crashed{disk, fmt.Sprintf("%s bundle %d, with %d%%", when, done+1, percent), done})
		}
	}
	f.db.play(func(commit func() error) error {
		crash("before")
		err := commit()
		crash("after")
		return err
	})
	for ; done < bundles; done++ {
		var ops []Write
		for i := range items {
			if done > 0 {
				ops = append(ops, f.op(Delete, fmt.Sprint(i)))
			}
			ops = append(ops, f.item(Create, fmt.Sprint(i), fmt.Sprintf(`"bundle":%d`, done+1)))
		}
		_, err := f.writeAll(ops...)
		f.must(err)
	}
	f.p.Close()
	f.must(f.db.Close())
	s := &purgeCrash{t: t}
	for _, c := range crashes {
		db, err := pebblekv.Open(purgeCrashOptions(c.disk))
		if err != nil {
			t.Fatal(err)
		}
		r := s.reopened(db, startMs)
		found := map[string]int{}
		for i := range items {
			found[bundleOf(r, fmt.Sprint(i))]++
		}
		before, now := fmt.Sprint(c.done), fmt.Sprint(c.done+1)
		if c.done == 0 {
			before = "none"
		}
		if len(found) != 1 || found[before]+found[now] != items {
			t.Errorf("%s: got items of bundles %v, want all of %s or all of %s", c.when, found, before, now)
		}
		r.checkClean()
		r.p.Close()
		f.must(db.Close())
	}
}

// bundleOf returns which bundle wrote an item.
func bundleOf(f *fixture, id string) string {
	item, err := f.read(id)
	if err != nil {
		return "none"
	}
	o, err := value.ParseObject(item.Body)
	f.must(err)
	raw, _ := o.Lookup("bundle")
	return string(raw)
}

// Clients move amounts between two items, each in a bundle conditional on what it has read.
// No amount is lost, and no read in a bundle sees half of a move.
func TestBundlesAreIsolated(t *testing.T) {
	const clients, moves, total = 4, 30, 1000
	f := newFixture(t, withTTL("-1"))
	f.put("a", fmt.Sprintf(`"n":%d`, total))
	f.put("b", `"n":0`)
	amount := func(body []byte) int {
		o, err := value.ParseObject(body)
		f.must(err)
		raw, _ := o.Lookup("n")
		v, _ := value.FromJSON(raw)
		n, _ := v.Number()
		return int(n)
	}
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for done := 0; done < moves; {
				res, err := f.writeAll(f.op(Read, "a"), f.op(Read, "b"))
				if err != nil {
					t.Error(err)
					return
				}
				a, b := amount(res[0].Body), amount(res[1].Body)
				if a+b != total {
					t.Errorf("a has %d and b %d", a, b)
				}
				from := f.item(Replace, "a", fmt.Sprintf(`"n":%d`, a-1))
				from.IfMatch = res[0].ETag
				if _, err := f.writeAll(from, f.item(Replace, "b", fmt.Sprintf(`"n":%d`, b+1))); err == nil {
					done++
				}
			}
		})
	}
	wg.Wait()
	a, err := f.read("a")
	f.must(err)
	if got := amount(a.Body); got != total-clients*moves {
		t.Errorf("a has %d after %d moves, want %d", got, clients*moves, total-clients*moves)
	}
	f.checkClean()
}
