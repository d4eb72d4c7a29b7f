// SPDX-License-Identifier: MIT

package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/kv/kvtest"
	"github.com/mayflydb/mayfly/internal/ru"
)

// lazyContainer is the definition of one that is indexed lazily and does not index a
// path.
func lazyContainer(path string) string {
	return fmt.Sprintf(`{"id":"c","partitionKey":{"paths":["/pk"],"version":2},"defaultTtl":-1,"indexingPolicy":{"indexingMode":"lazy","excludedPaths":[{"path":%q}],`+
		`"compositeIndexes":[[{"path":"/x"},{"path":"/_ts"}]]}}`, path)
}

// A write in a container that is indexed lazily costs no rows; they follow, across a
// restart, and queries see what is there. Reads of items see all at once.
func TestLazyIndexFollows(t *testing.T) {
	f := newFixture(t, lazyContainer("/z/*"))
	found := func() []uint64 {
		r := f.reader()
		defer r.Close()
		if !r.Indexed() {
			t.Error("the index is not used")
		}
		return f.hits(r, IndexScan{Path: pathX, Values: AllValues()})
	}
	for i := range 5 {
		if got := f.put(fmt.Sprint(i), fmt.Sprintf(`"x":%d`, i)).Work; got.IndexRows != 0 {
			t.Errorf("a write had the work %+v, want no index rows", got)
		}
	}
	if got := found(); len(got) > 0 || !f.p.Unindexed() || f.p.LazyProgress() != 0 {
		t.Errorf("before anything was indexed: got %v, %d percent", got, f.p.LazyProgress())
	}
	_, more, err := f.p.Reindex(t.Context(), 2)
	f.must(err)
	if got := found(); !slices.Equal(got, []uint64{1, 2}) || !more || f.p.LazyProgress() != 40 {
		t.Errorf("after a group: got %v, more %v, %d percent", got, more, f.p.LazyProgress())
	}
	f.checkClean()
	f.reopen()
	// An item that has rows loses them when it is written, and so does one that goes.
	if got := f.put("0", `"x":9`).Work; got.IndexRows == 0 {
		t.Errorf("a write over an indexed item had the work %+v", got)
	}
	_, err = f.write(Write{Op: Delete, Key: f.key("k", "1")})
	f.must(err)
	if got := found(); len(got) > 0 {
		t.Errorf("the rows of earlier versions are there: %v", got)
	}
	if _, err := f.read("0"); err != nil {
		t.Errorf("an item that is not indexed cannot be read: %v", err)
	}
	f.checkClean()
	f.reindexAll(1)
	if got := found(); !slices.Equal(got, []uint64{3, 4, 5, 1}) || f.p.Unindexed() || f.p.LazyProgress() != 100 {
		t.Errorf("at the end: got %v, %d percent", got, f.p.LazyProgress())
	}
	f.checkClean()
}

// Whatever happens, the rows are those of live items as they are, and all of them once
// the index has followed.
func TestLazyAgreesWithItems(t *testing.T) {
	for range kvtest.LongFactor(t) {
		rapid.Check(t, func(t *rapid.T) {
			f := makeFixture(t, kvtest.NewModel(), setup{definition: lazyContainer("/z/*"), nowMs: startMs})
			defer func() { f.p.Close() }()
			for range rapid.IntRange(1, 40).Draw(t, "steps") {
				f.lazyStep(t)
				f.compareLazyWithItems(t)
				f.checkClean()
			}
			f.reindexAll(3)
			f.checkClean()
			f.compareIndexWithItems()
			f.compareCompositesWithItems(t)
		})
	}
}

func (f *fixture) lazyStep(t *rapid.T) {
	id := fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "id"))
	switch rapid.IntRange(0, 14).Draw(t, "step") {
	case 0:
		policies := []string{lazyContainer("/z/*"), lazyContainer("/y/*"), withoutPath("/z/*"), withoutPath("/pk/*")}
		f.reconfigure(rapid.SampledFrom(policies).Draw(t, "policy"))
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
	case 6:
		_, err := f.p.Purge(context.Background(), Purge{MaxItems: 2, Cause: ru.Sweep})
		f.must(err)
	case 7:
		f.reopen()
	case 8:
		ops := []Write{f.item(Upsert, id, `"x":7`), f.item(Upsert, "a"+id, `"x":8,"ttl":1`), {Op: Delete, Key: f.key("k", id)}}
		_, err := f.p.WriteAll(context.Background(), ops[:rapid.IntRange(1, 3).Draw(t, "ops")])
		f.must(err)
	default:
		f.put(id, fmt.Sprintf(`"x":%d,"ttl":%s`, rapid.IntRange(0, 5).Draw(t, "x"), rapid.SampledFrom([]string{"-1", "1", "3"}).Draw(t, "ttl")))
	}
}

// compareLazyWithItems checks that whatever the index shows is a live item.
func (f *fixture) compareLazyWithItems(t *rapid.T) {
	r := f.reader()
	defer r.Close()
	if !r.Indexed() {
		return
	}
	hits := f.hits(r, IndexScan{Path: pathX, Values: AllValues()})
	for _, ordinal := range hits {
		if _, live, err := r.Get(ordinal); err != nil || !live {
			t.Errorf("the index shows item %d, which is not live: %v", ordinal, err)
		}
	}
	if r.Container().IndexingMode != catalog.IndexingLazy || f.p.LazyProgress() == 100 {
		f.compareIndexWithItems()
	}
	if all, err := r.AllHave(pathX); err != nil || all && int64(len(hits)) < r.Items() && f.p.PurgeDue() == never {
		t.Errorf("all %d items are said to be in the index, which has %d, %v", r.Items(), len(hits), err)
	}
}

// Items that a new policy has too much of to index have no rows: as long as there are
// any, queries read all items rather than miss one.
func TestOverfullItems(t *testing.T) {
	var numbers strings.Builder
	for i := range 90_000 {
		fmt.Fprintf(&numbers, ",%d", i)
	}
	full := `"` + strings.Repeat("n", 200) + `":[` + numbers.String()[1:] + `]`
	for _, mode := range []string{"consistent", "lazy"} {
		f := newFixture(t, withoutPath("/*"))
		f.put("small", `"x":1`)
		f.put("full", full)
		f.put("full too", full)
		f.put("gone", full)
		all := strings.Replace(withTTL("-1"), "}", `},"indexingPolicy":{"indexingMode":"`+mode+`"}`, 1)
		f.reconfigure(all)
		if _, err := f.write(Write{Op: Delete, Key: f.key("k", "gone")}); err != nil {
			t.Fatal(err)
		}
		f.checkClean()
		if f.indexed() {
			t.Error("the index is used before it is complete")
		}
		for more := true; more; {
			var err error
			_, more, err = f.p.Reindex(t.Context(), 1)
			f.must(err)
			f.checkClean()
		}
		if percent, err := f.p.IndexProgress(); percent != 100 || err != nil || f.p.Unindexed() {
			t.Errorf("%s: got %d percent, %v, want the end", mode, percent, err)
		}
		if f.indexed() {
			t.Errorf("%s: the index is used, and has not all items", mode)
		}
		f.reopen()
		if _, err := f.write(Write{Op: Delete, Key: f.key("k", "full")}); err != nil {
			t.Fatal(err)
		}
		f.checkClean()
		if f.indexed() {
			t.Errorf("%s: the index is used, and has not all items", mode)
		}
		f.put("full too", `"x":2`)
		f.reindexAll(1)
		if !f.indexed() {
			t.Errorf("%s: all items have their rows, and the index is not used", mode)
		}
		f.checkClean()
		f.compareIndexWithItems()
		if mode == "lazy" { // where a write does not know yet
			f.put("full", full)
			f.reindexAll(1)
			if f.indexed() {
				t.Error("the index is used, and has not all items")
			}
			f.checkClean()
		}
	}
}
