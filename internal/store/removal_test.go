// SPDX-License-Identifier: MIT

package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mayflydb/mayfly/internal/kv/kvtest"
	"github.com/mayflydb/mayfly/internal/value"
)

// removalCount is more than fits into a group.
const removalCount = 2*removalItems + 7

func removalDefinition() string {
	return `{"id":"c","partitionKey":{"paths":["/pk"],"version":2},"defaultTtl":-1,"uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/n"]}]}}`
}

func (f *fixture) within(pk string) LogicalPartition {
	k := f.key(pk, "")
	return LogicalPartition{EPK: k.EPK, PartitionKey: k.PartitionKey}
}

// fillRemovable writes items, some of which expire, and one with the partition key "kk",
// which begins like theirs.
func (f *fixture) fillRemovable() {
	f.t.Helper()
	for i := range removalCount {
		properties := fmt.Sprintf(`"n":%d`, i)
		if i%5 == 0 {
			properties += `,"ttl":1`
		}
		f.put(fmt.Sprint("i", i), properties)
	}
	o, err := value.ParseObject([]byte(`{"id":"i0","pk":"kk","n":0}`))
	f.must(err)
	_, err = f.write(Write{Op: Create, Key: f.key("kk", "i0"), Item: o})
	f.must(err)
}

// checkRemoved checks that only the named items and that of "kk" exist.
func (f *fixture) checkRemoved(kept ...string) {
	f.t.Helper()
	f.checkClean()
	page, err := f.p.List(context.Background(), List{MaxItems: 1000, MaxBytes: 1 << 20}, f.clock.Now())
	f.must(err)
	f.check(page.Count == 1+len(kept), "%d items are left, want %d: %s", page.Count, 1+len(kept), page.Items)
	for _, id := range kept {
		_, err := f.read(id)
		f.must(err)
	}
	if _, err := f.p.Read(nil, f.key("kk", "i0"), "", f.clock.Now()); err != nil {
		f.t.Errorf("the item with another partition key: %v", err)
	}
	snap, err := f.db.Snapshot()
	f.must(err)
	defer snap.Close()
	under, err := f.p.removals(snap)
	f.must(err)
	f.check(len(under) == 0, "%d removals are still under way", len(under))
}

func TestRemove(t *testing.T) {
	for name, wait := range map[string]time.Duration{"all live": time.Millisecond, "some expired": 2 * time.Second} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, removalDefinition())
			f.fillRemovable()
			f.advance(wait)
			before := f.p.mu.now.meta.LSN
			r, err := f.p.Remove(context.Background(), f.within("k"))
			f.must(err)
			live := int64(removalCount)
			if wait > time.Second {
				live -= (removalCount + 4) / 5
			}
			f.check(r.Items == live && r.Units > 0 && r.LSN == before+uint64(live), "removed %+v after lsn %d, want %d items", r, before, live)
			f.checkRemoved()
			f.put("again", `"n":3`) // its unique key is free
			f.checkRemoved("again")
			if r, err = f.p.Remove(context.Background(), f.within("empty")); err != nil || r.Items != 0 {
				t.Errorf("of a partition key without items: %+v, %v", r, err)
			}
		})
	}
}

// Items written after the removal began stay: a new one, and one that is replaced.
func TestRemoveLeavesWhatIsWrittenLater(t *testing.T) {
	f := newFixture(t, removalDefinition())
	f.fillRemovable()
	r := &removal{logical: f.within("k").appendedKey(), begin: true}
	f.must(f.p.removeStep(context.Background(), r))
	f.put("i7", `"n":7,"later":true`)
	f.put("new", `"n":-1`)
	f.must(f.p.removeAll(context.Background(), r))
	f.checkRemoved("i7", "new")
}

func (l LogicalPartition) appendedKey() []byte { return l.appendKey(nil) }

// A partition that was stopped during a removal completes it when it is opened, before any
// read. A second removal may have begun meanwhile.
func TestRemoveGoesOnAfterAStop(t *testing.T) {
	for groups := range removalCount/removalItems + 2 {
		for _, again := range []bool{false, true} {
			f := newFixture(t, removalDefinition())
			f.fillRemovable()
			r := &removal{logical: f.within("k").appendedKey(), begin: true}
			f.must(f.p.removeStep(context.Background(), r))
			var after []byte
			for range groups {
				var err error
				r.identities, err = f.p.removable(r.logical, after)
				f.must(err)
				if len(r.identities) > 0 {
					after = r.identities[len(r.identities)-1]
				}
				f.must(f.p.removeStep(context.Background(), r))
			}
			f.put("between", `"n":-1`)
			kept := []string{"between"}
			if again {
				kept = nil
				second := &removal{logical: r.logical, begin: true}
				f.must(f.p.removeStep(context.Background(), second))
				r.end = true
				f.must(f.p.removeStep(context.Background(), r)) // which must not delete the row of the second
			}
			f.reopen()
			f.checkRemoved(kept...)
		}
	}
}

// A request that ends before the removal begins changes nothing. A closed partition refuses
// it.
func TestRemoveRefused(t *testing.T) {
	f := newFixture(t, removalDefinition())
	f.fillRemovable()
	f.p.Close()
	if _, err := f.p.Remove(context.Background(), f.within("k")); !errors.Is(err, ErrClosed) {
		t.Errorf("of a closed partition: %v", err)
	}
	f.open()
	if _, err := f.read("i1"); err != nil {
		t.Errorf("it has been removed all the same: %v", err)
	}
}

// Partition keys with a common prefix are listed and counted together.
func TestKeysWithOneBeginning(t *testing.T) {
	f := newFixture(t, `{"id":"c","partitionKey":{"paths":["/a","/b"],"kind":"MultiHash","version":2}}`)
	epk := func(k ...value.Scalar) []byte { return f.container.PartitionKey.AppendEPK(nil, k) }
	for i := range 12 {
		k := value.PartitionKey{value.Number(float64(i % 3)), value.Number(float64(i))}
		o, err := value.ParseObject(fmt.Appendf(nil, `{"id":"%d","a":%d,"b":%d}`, i, i%3, i))
		f.must(err)
		_, err = f.write(Write{Op: Create, Key: Key{EPK: epk(k...), PartitionKey: k, ID: fmt.Sprint(i)}, Item: o})
		f.must(err)
	}
	for a := range 3 {
		within := LogicalPartition{EPK: epk(value.Number(float64(a))), Prefix: true}
		page, err := f.p.List(context.Background(), List{MaxItems: 100, MaxBytes: 1 << 20, Within: &within}, f.clock.Now())
		f.must(err)
		r, err := f.p.NewReader(f.clock.Now())
		f.must(err)
		n, err := r.LogicalItems(within)
		r.Close()
		if err != nil || n != 4 || page.Count != 4 {
			t.Errorf("of %d: %d items are counted, %v, and %d listed, want 4", a, n, err, page.Count)
		}
		bounded, err := f.p.List(context.Background(), List{MaxItems: 100, MaxBytes: 1 << 20, MinEPK: within.EPK, MaxEPK: append(epk(value.Number(float64(a))), 0xff)}, f.clock.Now())
		if err != nil || string(bounded.Items) != string(page.Items) {
			t.Errorf("of %d: between bounds there are %s, %v, want %s", a, bounded.Items, err, page.Items)
		}
	}
}

// removalModel is the expected content of a partition: the version of each item by its
// partition key and id.
type removalModel map[[2]string]int

// Random removals, some of which are stopped half-way, among writes, expiry, purges and
// restarts. What was written after they began is left, and nothing else.
func TestRemovalsAgreeWithAModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := makeFixture(t, kvtest.NewModel(), setup{definition: withTTL("-1"), nowMs: startMs})
		defer func() { f.p.Close() }()
		model := removalModel{}
		version := 0
		put := func(pk, id string) {
			version++
			o, err := value.ParseObject(fmt.Appendf(nil, `{"id":%q,"pk":%q,"v":%d}`, id, pk, version))
			f.must(err)
			_, err = f.write(Write{Op: Upsert, Key: f.key(pk, id), Item: o})
			f.must(err)
			model[[2]string{pk, id}] = version
		}
		keys := rapid.SampledFrom([]string{"k", "kk", "l"})
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"fill", "fill", "put", "remove", "stop"}).Draw(t, "step") {
			case "fill":
				pk := keys.Draw(t, "pk")
				for i := range rapid.IntRange(1, removalItems+3).Draw(t, "items") {
					put(pk, fmt.Sprint(i))
				}
			case "put":
				put(keys.Draw(t, "pk"), fmt.Sprint(rapid.IntRange(0, removalItems).Draw(t, "id")))
			case "remove":
				pk := keys.Draw(t, "pk")
				_, err := f.p.Remove(context.Background(), f.within(pk))
				f.must(err)
				maps.DeleteFunc(model, func(k [2]string, _ int) bool { return k[0] == pk })
			case "stop":
				pk := keys.Draw(t, "pk")
				r := &removal{logical: f.within(pk).appendedKey(), begin: true}
				f.must(f.p.removeStep(context.Background(), r))
				before := maps.Clone(model)
				if rapid.Bool().Draw(t, "a group") {
					var err error
					r.identities, err = f.p.removable(r.logical, nil)
					f.must(err)
					f.must(f.p.removeStep(context.Background(), r))
				}
				for range rapid.IntRange(0, 3).Draw(t, "writes") {
					put(pk, fmt.Sprint(rapid.IntRange(0, removalItems).Draw(t, "id")))
				}
				f.reopen()
				maps.DeleteFunc(model, func(k [2]string, v int) bool { return k[0] == pk && before[k] == v })
			}
			model.check(f)
		}
	})
}

func (m removalModel) check(f *fixture) {
	f.t.Helper()
	f.checkClean()
	page, err := f.p.List(context.Background(), List{MaxItems: 10_000, MaxBytes: 1 << 24}, f.clock.Now())
	f.must(err)
	f.check(page.Count == len(m), "%d items are there, want %d", page.Count, len(m))
	for k, version := range m {
		item, err := f.p.Read(nil, f.key(k[0], k[1]), "", f.clock.Now())
		f.must(err)
		f.check(strings.Contains(string(item.Body), fmt.Sprintf(`"v":%d,`, version)), "%v is %s, want version %d", k, item.Body, version)
	}
}
