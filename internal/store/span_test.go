// SPDX-License-Identifier: MIT

package store

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mayflydb/mayfly/internal/index"
	"github.com/mayflydb/mayfly/internal/invariant"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/kv/kvtest"
	"github.com/mayflydb/mayfly/internal/value"
)

// ownedItem is the write of an item with the given partition key.
func (f *fixture) ownedItem(op Op, pk string, id int, properties string) Write {
	f.t.Helper()
	o, err := value.ParseObject(fmt.Appendf(nil, `{"id":"%d","pk":%q,%s}`, id, pk, properties))
	f.must(err)
	return Write{Op: op, Key: f.key(pk, fmt.Sprint(id)), Item: o}
}

// fillOwned writes items of several partition keys in turn, with their number at /x.
func (f *fixture) fillOwned(items int, keys ...string) {
	f.t.Helper()
	var wg sync.WaitGroup
	for c := range manyClients {
		wg.Go(func() {
			for i := c; i < items; i += manyClients {
				if _, err := f.write(f.ownedItem(Upsert, keys[i%len(keys)], i, fmt.Sprintf(`"x":%d`, i))); err != nil {
					f.t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// walked is the rows that a walk returned and passed over.
type walked struct {
	hits   []Hit
	passed int64
}

func (w walked) equal(v walked) bool {
	return w.passed == v.passed && slices.EqualFunc(w.hits, v.hits, func(a, b Hit) bool {
		return a.Ordinal == b.Ordinal && a.Value.Compare(b.Value) == 0 && bytes.Equal(a.EPK, b.EPK)
	})
}

func (h Hit) clone() Hit {
	return Hit{Place: index.Place{Value: h.Value.Clone(), Ordinal: h.Ordinal}, EPK: bytes.Clone(h.EPK)}
}

// walk walks within a partition key until it has so many rows.
func (f *fixture) walk(r *Reader, s IndexScan, pk string, most int) (w walked) {
	f.t.Helper()
	l := f.within(pk)
	s.Within = &Within{Logical: &l, Passed: func(rows int64, _ index.Place) (bool, error) {
		w.passed += rows
		return true, nil
	}}
	for hit, err := range r.Index(s) {
		f.must(err)
		if w.hits = append(w.hits, hit.clone()); len(w.hits) == most {
			break
		}
	}
	return w
}

// filtered is walk by a scan of all rows.
func (f *fixture) filtered(r *Reader, s IndexScan, pk string, most int) (w walked) {
	f.t.Helper()
	l := f.within(pk)
	for hit, err := range r.Index(s) {
		f.must(err)
		if !l.Holds(hit.EPK) {
			w.passed++
			continue
		}
		if w.hits = append(w.hits, hit.clone()); len(w.hits) == most {
			break
		}
	}
	return w
}

// Rows that a walk has passed over are not read again: not by a walk within another key, in
// the other direction, or after writes elsewhere. (Builds with invariants read them to
// compare.)
func TestWalksReadOnce(t *testing.T) {
	f := newFixture(t, withTTL("-1"))
	keys := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	f.fillOwned(2000, keys...)
	read := func(pk string, s IndexScan, most int) int64 {
		t.Helper()
		s.Path = pathX
		r := f.reader()
		defer r.Close()
		want := f.filtered(r, s, pk, most)
		var got walked
		n := f.scanned(func() { got = f.walk(r, s, pk, most) })
		if !got.equal(want) {
			t.Errorf("%s: got %d rows and passed %d, want %d and %d", pk, len(got.hits), got.passed, len(want.hits), want.passed)
		}
		return n
	}
	all := IndexScan{Values: index.AllValues()}
	down := IndexScan{Values: index.AllValues(), Order: kv.Reverse}
	for _, step := range []struct {
		what string
		pk   string
		scan IndexScan
		most int
		want int64
	}{
		{"the first rows", "a", all, 20, 153},
		{"of another key, and a few further", "b", all, 20, 1},
		{"the same", "b", all, 20, 0},
		{"all", "c", all, -1, 2000 - 154},
		{"all, backwards", "d", down, -1, 0},
		{"a part", "e", IndexScan{Values: index.Above(value.Number(700))}, 3, 0},
	} {
		if got := read(step.pk, step.scan, step.most); got != step.want && !invariant.Enabled {
			t.Errorf("%s: %d rows were read, want %d", step.what, got, step.want)
		}
	}
	f.must(errorOf(f.write(f.ownedItem(Upsert, "a", 9999, `"x":1000.5`))))
	if n := read("f", all, -1); (n == 0 || n > spanRows+1) && !invariant.Enabled {
		t.Errorf("after a write, %d rows were read, want those of one span", n)
	}
	f.must(errorOf(f.write(f.ownedItem(Upsert, "a", 9998, `"y":1`))))
	if n := read("f", all, -1); n != 0 && !invariant.Enabled {
		t.Errorf("after a write elsewhere, %d rows were read, want none", n)
	}
	// For a key with many of the items, no spans are kept.
	f.fillOwned(2000, "z")
	if n := read("z", all, -1); n != 4001 {
		t.Errorf("within a large key, %d rows were read, want all 4001", n)
	}
}

func errorOf(_ Result, err error) error { return err }

// The first walk may be backwards.
func TestWalksReadOnceBackwards(t *testing.T) {
	f := newFixture(t, withTTL("-1"))
	f.fillOwned(1500, "a", "b", "c", "d", "e", "f")
	s := IndexScan{Path: pathX, Values: index.AllValues(), Order: kv.Reverse}
	r := f.reader()
	defer r.Close()
	for i, want := range []int64{1500, 0} {
		if n := f.scanned(func() { f.walk(r, s, "a", -1) }); n != want && !invariant.Enabled {
			t.Errorf("walk %d read %d rows, want %d", i, n, want)
		}
	}
	s.Order = kv.Forward
	if got, want := f.walk(r, s, "b", -1), f.filtered(r, s, "b", -1); !got.equal(want) {
		t.Errorf("forwards: got %d rows and passed %d, want %d and %d", len(got.hits), got.passed, len(want.hits), want.passed)
	}
}

// The budget limits the spans of all paths. An idle or closed partition keeps none, and a
// change of the policy removes all.
func TestSpansAreBounded(t *testing.T) {
	f := newFixture(t, withTTL("-1"))
	used := f.budget.rows.used.Load
	f.budget.rows.most = 40 << 10
	f.fillOwned(3000, "a", "b", "c", "d", "e", "f")
	walk := func(want bool) {
		t.Helper()
		r := f.reader()
		defer r.Close()
		s := IndexScan{Path: pathX, Values: index.AllValues()}
		if got, want := f.walk(r, s, "b", -1), f.filtered(r, s, "b", -1); !got.equal(want) {
			t.Errorf("got %d rows and passed %d, want %d and %d", len(got.hits), got.passed, len(want.hits), want.passed)
		}
		if n := used(); n > f.budget.rows.most || n > 0 != want {
			t.Errorf("%d of %d bytes are kept", n, f.budget.rows.most)
		}
	}
	walk(true)
	walk(true)
	f.p.ReleaseIdle() // they were used
	walk(true)
	for range 3 {
		f.p.ReleaseIdle()
	}
	if n := used(); n != 0 {
		t.Errorf("an idle partition keeps %d bytes", n)
	}
	f.budget.rows.most = 0
	walk(false)
	f.budget.rows.most = 1 << 20
	walk(true)
	f.reconfigure(`{"id":"c","partitionKey":{"paths":["/pk"],"version":2},"defaultTtl":-1,"indexingPolicy":{"excludedPaths":[{"path":"/z/*"}]}}`)
	if n := used(); n != 0 {
		t.Errorf("after a change of the policy %d bytes are kept", n)
	}
	f.reindexAll(1000)
	walk(true)
	f.p.Close()
	if n := used(); n != 0 {
		t.Errorf("a closed partition keeps %d bytes", n)
	}
}

// The number of paths is limited.
func TestKeptPathsAreBounded(t *testing.T) {
	f := newFixture(t, withTTL("-1"))
	properties := `"x":1`
	for i := range spanPaths + 5 {
		properties += fmt.Sprintf(`,"p%d":1`, i)
	}
	for i := range 100 {
		f.must(errorOf(f.write(f.ownedItem(Upsert, fmt.Sprint("k", i%8), i, properties))))
	}
	r := f.reader()
	defer r.Close()
	for i := range spanPaths + 5 {
		s := IndexScan{Path: index.Path{index.Property(fmt.Sprint("p", i))}, Values: index.AllValues()}
		if got := f.walk(r, s, "k1", -1); len(got.hits) != 13 {
			t.Errorf("p%d: got %d rows, want 13", i, len(got.hits))
		}
	}
	if n := len(f.p.mu.spans.paths); n != spanPaths {
		t.Errorf("%d paths are kept, want %d", n, spanPaths)
	}
}

// In random histories, a walk returns the same rows as a scan of all rows, and counts those
// that it passes over.
func TestSpansHistories(t *testing.T) {
	keys := []string{"a", "b", "c", "d", "e", "f", "g"}
	rapid.Check(t, func(t *rapid.T) {
		f := makeFixture(t, kvtest.NewModel(), setup{definition: withTTL("100"), nowMs: startMs})
		defer func() { f.p.Close() }()
		f.fillOwned(rapid.IntRange(100, 1500).Draw(t, "items"), keys...)
		for range 40 {
			f.spanStep(t, keys)
			r := f.reader()
			if !r.Indexed() {
				r.Close()
				continue
			}
			s := IndexScan{Path: pathX, Values: index.AllValues(), Order: kv.Order(rapid.IntRange(0, 1).Draw(t, "order"))}
			switch rapid.IntRange(0, 2).Draw(t, "values") {
			case 0:
				s.Values = index.Above(value.Number(float64(rapid.IntRange(0, 1500).Draw(t, "above"))))
			case 1:
				s.Values = index.AtMost(value.Number(float64(rapid.IntRange(0, 1500).Draw(t, "below"))))
			}
			pk := rapid.SampledFrom(keys).Draw(t, "pk")
			most := rapid.SampledFrom([]int{-1, 1, 5, 30}).Draw(t, "most")
			if got, want := f.walk(r, s, pk, most), f.filtered(r, s, pk, most); !got.equal(want) {
				t.Fatalf("%s: got %d rows and passed %d, want %d and %d", pk, len(got.hits), got.passed, len(want.hits), want.passed)
			}
			r.Close()
		}
	})
}

func (f *fixture) spanStep(t *rapid.T, keys []string) {
	id := rapid.IntRange(0, 1600).Draw(t, "id")
	pk := keys[id%len(keys)]
	switch rapid.IntRange(0, 11).Draw(t, "step") {
	case 0:
		_, err := f.write(Write{Op: Delete, Key: f.key(pk, fmt.Sprint(id))})
		if err != nil && !errors.Is(err, ErrNotFound) {
			t.Fatal(err)
		}
	case 1:
		f.advance(time.Duration(rapid.SampledFrom([]int{1, 1, 1, 99}).Draw(t, "seconds")) * time.Second)
	case 2:
		_, err := f.p.Purge(t.Context(), Purge{MaxItems: 50})
		f.must(err)
	case 3:
		f.p.ReleaseIdle()
	case 4:
		f.reconfigure(withTTL(rapid.SampledFrom([]string{"100", "-1", "null", "50"}).Draw(t, "ttl")))
	case 5:
		path := rapid.SampledFrom([]string{"/z/*", "/y/*"}).Draw(t, "excluded")
		f.reconfigure(fmt.Sprintf(`{"id":"c","partitionKey":{"paths":["/pk"],"version":2},"defaultTtl":100,"indexingPolicy":{"excludedPaths":[{"path":%q}]}}`, path))
		if rapid.Bool().Draw(t, "rebuild") {
			f.reindexAll(500)
		}
	case 6:
		one, other := f.ownedItem(Upsert, pk, id, `"x":7.5`), f.ownedItem(Upsert, pk, id+7*len(keys), `"x":8.5,"ttl":2`)
		_, err := f.writeAll(one, other)
		f.must(err)
	case 7:
		f.budget.rows.most = rapid.SampledFrom([]int64{0, 10 << 10, testRowBytes}).Draw(t, "budget")
	default:
		x := rapid.SampledFrom([]string{"%d", "%d.5", `"%d"`, "[%d,3]", "null", "%d,\"ttl\":3"}).Draw(t, "x")
		if x != "null" {
			x = fmt.Sprintf(x, rapid.IntRange(0, 1600).Draw(t, "value"))
		}
		f.must(errorOf(f.write(f.ownedItem(Upsert, pk, id, `"x":`+x))))
	}
}

// Walks beside writers see the rows of their views.
func TestSpansBesideWrites(t *testing.T) {
	f := newFixtureOn(t, inMemory(t), withTTL("-1"))
	keys := []string{"a", "b", "c", "d", "e", "f"}
	f.fillOwned(1200, keys...)
	f.beside(func(w int) {
		for i := range 150 {
			id := (i*37 + w*600) % 1200
			if _, err := f.write(f.ownedItem(Upsert, keys[id%len(keys)], id, fmt.Sprintf(`"x":%d`, (id*7+i)%1200))); err != nil {
				t.Error(err)
			}
		}
	}, func(r *Reader, w, n int) {
		pk := keys[(n+w)%len(keys)]
		s := IndexScan{Path: pathX, Values: index.Above(value.Number(float64(n * 13 % 1200))), Order: kv.Order(n % 2)}
		if got, want := f.walk(r, s, pk, 40), f.filtered(r, s, pk, 40); !got.equal(want) {
			t.Errorf("got %d rows and passed %d, want %d and %d", len(got.hits), got.passed, len(want.hits), want.passed)
		}
	})
}

// beside reads again and again in three goroutines, each time with a new view, while two
// others write.
func (f *fixture) beside(write func(w int), read func(r *Reader, w, n int)) {
	done := make(chan struct{})
	var writers, readers sync.WaitGroup
	for w := range 2 {
		writers.Go(func() { write(w) })
	}
	for w := range 3 {
		readers.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-done:
					return
				default:
				}
				r, err := f.p.NewReader(f.clock.Now())
				if err != nil {
					f.t.Error(err)
					return
				}
				read(r, w, n)
				r.Close()
			}
		})
	}
	writers.Wait()
	close(done)
	readers.Wait()
}

// A walk in an older view sees the older rows, whatever spans were kept since, and keeps
// none itself.
func TestOlderViewsKeepApart(t *testing.T) {
	f := newFixture(t, withTTL("-1"))
	f.fillOwned(700, "a", "b", "c", "d", "e", "f", "g")
	s := IndexScan{Path: pathX, Values: index.AllValues()}
	compare := func(r *Reader, when string) {
		t.Helper()
		if got, want := f.walk(r, s, "a", -1), f.filtered(r, s, "a", -1); !got.equal(want) {
			t.Errorf("%s: got %d rows and passed %d, want %d and %d", when, len(got.hits), got.passed, len(want.hits), want.passed)
		}
	}
	older := f.reader()
	defer older.Close()
	f.must(errorOf(f.write(f.ownedItem(Upsert, "a", 7000, `"x":3.5`))))
	newer := f.reader()
	defer newer.Close()
	compare(newer, "in the newer view")
	compare(older, "in the older view, after the newer")
	f.must(errorOf(f.write(f.ownedItem(Upsert, "a", 7007, `"x":4.5`))))
	compare(newer, "in what is now an older view")
	newest := f.reader()
	defer newest.Close()
	compare(newest, "in the newest view, after an older")
}

// Within.Passed may end the walk, or let it fail.
func TestPassedEndsAWalk(t *testing.T) {
	f := newFixture(t, withTTL("-1"))
	f.fillOwned(700, "a", "b", "c", "d", "e", "f", "g")
	f.fillOwned(1, "far")
	f.must(errorOf(f.write(f.ownedItem(Upsert, "far", 1, `"x":99999`))))
	l := f.within("far")
	for _, why := range []error{nil, errBroken} {
		for range 2 { // from the engine, then from spans
			rowsPassed := int64(0)
			var failed error
			r := f.reader()
			for hit, err := range r.Index(IndexScan{Path: pathX, Values: index.AllValues(), Within: &Within{Logical: &l, Passed: func(rows int64, _ index.Place) (bool, error) {
				rowsPassed += rows
				return rowsPassed < 100, map[bool]error{false: nil, true: why}[rowsPassed >= 100]
			}}}) {
				if failed = err; err == nil && hit.Ordinal == 0 {
					t.Errorf("a row that is none")
				}
			}
			r.Close()
			if rowsPassed < 100 || rowsPassed > 100+spanRows || !errors.Is(failed, why) {
				t.Errorf("passed over %d rows, ended with %v, want %v", rowsPassed, failed, why)
			}
		}
	}
}
