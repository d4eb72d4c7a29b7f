// SPDX-License-Identifier: MIT

package store

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mayflydb/mayfly/internal/index"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/kv/kvtest"
	"github.com/mayflydb/mayfly/internal/ru"
	"github.com/mayflydb/mayfly/internal/value"
)

// readerFixture writes items with these scalars at /x. Every third expires after a second.
func readerFixture(t *testing.T, scalars ...string) *fixture {
	t.Helper()
	f := newFixture(t, withTTL("-1"))
	for i, x := range scalars {
		ttl := ""
		if i%3 == 2 {
			ttl = `,"ttl":1`
		}
		f.put(fmt.Sprint("i", i), fmt.Sprintf(`"x":%s%s`, x, ttl))
	}
	f.advance(time.Second)
	return f
}

func (f *fixture) reader() *Reader {
	f.t.Helper()
	r, err := f.p.NewReader(f.clock.Now())
	f.must(err)
	return r
}

var pathX = index.Path{index.Property("x")}

func (f *fixture) hits(r *Reader, s IndexScan) (ordinals []uint64) {
	f.t.Helper()
	for hit, err := range r.Index(s) {
		f.must(err)
		if !bytes.Equal(hit.EPK, f.key("k", "").EPK) {
			f.t.Errorf("a hit has the effective partition key %x", hit.EPK)
		}
		ordinals = append(ordinals, hit.Ordinal)
	}
	return ordinals
}

func TestReaderShowsTheLiving(t *testing.T) {
	f := readerFixture(t, "3", "1", "0", "2", "2", "2", `"a"`, "null", "9")
	r := f.reader()
	defer r.Close()
	var scanned []uint64
	for found, err := range r.Scan(1) {
		f.must(err)
		scanned = append(scanned, found.Ordinal)
		again, live, err := r.Get(found.Ordinal)
		if err != nil || !live || !bytes.Equal(again.Body, found.Body) || !bytes.Equal(again.EPK, found.EPK) {
			t.Errorf("item %d: got %s, %v, %v, want %s", found.Ordinal, again.Body, live, err, found.Body)
		}
	}
	if want := []uint64{2, 4, 5, 7, 8}; !slices.Equal(scanned, want) {
		t.Errorf("scan after 1: got %v, want %v", scanned, want)
	}
	if _, live, err := r.Get(3); live || err != nil {
		t.Errorf("an expired item: got %v, %v", live, err)
	}
	if found, live, err := r.Find(f.key("k", "i3")); err != nil || !live || found.Ordinal != 4 {
		t.Errorf("find i3: got %d, %v, %v", found.Ordinal, live, err)
	}
	for _, id := range []string{"i2", "none"} {
		if _, live, err := r.Find(f.key("k", id)); err != nil || live {
			t.Errorf("find %s: got %v, %v, want nothing", id, live, err)
		}
	}
	if n, err := r.Live(); n != 6 || err != nil || r.Items() != 9 {
		t.Errorf("got %d live of %d, %v, want 6 of 9", n, r.Items(), err)
	}
	k := f.key("k", "")
	within := LogicalPartition{EPK: k.EPK, PartitionKey: k.PartitionKey}
	ordinals, more, err := r.Logical(within, 4)
	if want := []uint64{5, 6, 7, 8, 9}; err != nil || more || !slices.Equal(ordinals, want) {
		t.Errorf("the partition key after 4: got %v, %v, %v, want %v", ordinals, more, err, want)
	}
	if n, err := r.LogicalItems(within); n != 9 || err != nil {
		t.Errorf("the partition key has %d items, %v, want 9", n, err)
	}
	f.put("one more", "")
	later := f.reader()
	defer later.Close()
	for _, c := range []struct {
		name string
		r    *Reader
		want int64
	}{{"before a write", r, 9}, {"after it", later, 10}, {"after it, again", later, 10}} {
		if n, err := c.r.LogicalItems(within); n != c.want || err != nil {
			t.Errorf("%s, the partition key has %d items, %v, want %d", c.name, n, err, c.want)
		}
	}
	within.EPK = []byte("none")
	for range 2 {
		if n, err := r.LogicalItems(within); n != 0 || err != nil {
			t.Errorf("another partition key has %d items, %v, want 0", n, err)
		}
	}
}

func TestReaderWalksAnIndex(t *testing.T) {
	f := readerFixture(t, "3", "1", "0", "2", "2", "2", `"a"`, "null", "9", "2")
	r := f.reader()
	defer r.Close()
	two := index.Exactly(value.Number(2))
	for _, c := range []struct {
		name string
		s    IndexScan
		want []uint64
	}{
		{"all", IndexScan{Values: index.AllValues()}, []uint64{8, 2, 4, 5, 10, 1, 7}},
		{"all, descending", IndexScan{Values: index.AllValues(), Order: kv.Reverse}, []uint64{7, 1, 10, 5, 4, 2, 8}},
		{"twos", IndexScan{Values: two}, []uint64{4, 5, 10}},
		{"after a two", IndexScan{Values: two, After: two.PlaceOf(4)}, []uint64{5, 10}},
		{"from a two", IndexScan{Values: two, From: two.PlaceOf(5)}, []uint64{5, 10}},
		{"from one that does not exist", IndexScan{Values: index.AllValues(), From: two.PlaceOf(6)}, []uint64{10, 1, 7}},
		{"after a two, descending", IndexScan{Values: index.AllValues(), Order: kv.Reverse, After: two.PlaceOf(5)}, []uint64{4, 2, 8}},
		{"from a two, descending", IndexScan{Values: index.AllValues(), Order: kv.Reverse, From: two.PlaceOf(5)}, []uint64{5, 4, 2, 8}},
		{"after all", IndexScan{Values: two, After: two.PlaceOf(99)}, nil},
		{"nothing", IndexScan{Values: index.Above(value.Number(5)).And(index.Below(value.Number(4)))}, nil},
	} {
		c.s.Path = pathX
		if got := f.hits(r, c.s); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

// Strings that are cut alike are adjacent, and a scan can resume before all of them.
func TestReaderGoesOnBeforeStringsThatAreCutAlike(t *testing.T) {
	long := func(tail string) string { return `"` + string(bytes.Repeat([]byte("x"), 300)) + tail + `"` }
	f := readerFixture(t, `"a"`, long("b"), "0", long("a"), long("c"), "0", `"y"`)
	r := f.reader()
	defer r.Close()
	all := f.hits(r, IndexScan{Path: pathX, Values: index.AllValues()})
	if len(all) != 5 || all[0] != 1 || all[4] != 7 {
		t.Fatalf("got %v, want 1, three that are cut, 7", all)
	}
	var places []index.Place
	for hit, err := range r.Index(IndexScan{Path: pathX, Values: index.Strings()}) {
		f.must(err)
		places = append(places, index.Place{Value: hit.Value.Clone(), Ordinal: hit.Ordinal})
	}
	for _, p := range places[1:4] {
		if got := f.hits(r, IndexScan{Path: pathX, Values: index.AllValues(), Alike: p}); !slices.Equal(got, all[1:]) {
			t.Errorf("forward: got %v, want %v", got, all[1:])
		}
		got := f.hits(r, IndexScan{Path: pathX, Values: index.AllValues(), Order: kv.Reverse, Alike: p})
		if slices.Reverse(got); !slices.Equal(got, all[:4]) {
			t.Errorf("in reverse: got %v, want the reverse of %v", got, all[:4])
		}
	}
}

// A reader calls Stop.Look also while it passes over rows that it does not return.
func TestReaderStops(t *testing.T) {
	f := newFixtureOn(t, inMemory(t), withTTL("1"))
	for i := range stopSteps + 1 {
		_, err := f.write(f.item(Create, fmt.Sprint(i), `"x":1`))
		f.must(err)
	}
	f.advance(time.Minute)
	r := f.reader()
	defer r.Close()
	over := errors.New("time is up")
	r.StopWith(Stop{Look: func() error { return over }})
	for name, walk := range map[string]func() error{
		"scan": func() (last error) {
			for _, err := range r.Scan(0) {
				last = err
			}
			return last
		},
		"index": func() (last error) {
			for _, err := range r.Index(IndexScan{Path: pathX, Values: index.AllValues()}) {
				last = err
			}
			return last
		},
		"count": func() error {
			_, err := r.AllHave(pathX)
			return err
		},
		"logical partition": func() error {
			k := f.key("k", "")
			_, _, err := r.Logical(LogicalPartition{EPK: k.EPK, PartitionKey: k.PartitionKey}, 0)
			return err
		},
	} {
		if err := walk(); !errors.Is(err, over) {
			t.Errorf("%s: got %v, want that it ended", name, err)
		}
	}
}

// Expired items and rows that a reader passes over are in the ledger, and not charged to
// it.
func TestReaderAccountsForExpiredRows(t *testing.T) {
	f := readerFixture(t, "1", "1", "1", "1", "1", "1")
	before := f.ledger.Total(ru.DeadRead).Items
	r := f.reader()
	f.hits(r, IndexScan{Path: pathX, Values: index.AllValues()})
	for _, err := range r.Scan(0) {
		f.must(err)
	}
	r.Close()
	if got := f.ledger.Total(ru.DeadRead).Items - before; got != 4 {
		t.Errorf("got %d expired rows passed over, want two items and two index rows", got)
	}
}

// The index rows of live items are those of a naive scan of the items, in order.
func TestReaderIndexAgreesWithTheItems(t *testing.T) {
	scalars := []string{"null", "true", "0", "-1", "1e300", `""`, `"a"`, `"a\u0000"`, `"\ue000"`, `"😀"`}
	for range kvtest.LongFactor(t) {
		rapid.Check(t, func(t *rapid.T) {
			f := makeFixture(t, kvtest.NewModel(), setup{definition: withTTL("-1"), nowMs: startMs})
			defer func() { f.p.Close() }()
			for range rapid.IntRange(0, 25).Draw(t, "writes") {
				id := fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "id"))
				switch rapid.IntRange(0, 5).Draw(t, "what") {
				case 0:
					f.advance(time.Duration(rapid.IntRange(1, 1500).Draw(t, "ms")) * time.Millisecond)
				case 1:
					_, err := f.write(Write{Op: Delete, Key: f.key("k", id)})
					if err != nil && !errors.Is(err, ErrNotFound) {
						t.Fatal(err)
					}
				default:
					properties := fmt.Sprintf(`"ttl":%d`, rapid.SampledFrom([]int{-1, 1, 2}).Draw(t, "ttl"))
					if rapid.Bool().Draw(t, "has x") {
						properties += `,"x":` + rapid.SampledFrom(scalars).Draw(t, "x")
					}
					f.put(id, properties)
				}
			}
			f.compareIndexWithItems()
		})
	}
}

func (f *fixture) compareIndexWithItems() {
	f.t.Helper()
	r := f.reader()
	defer r.Close()
	type row struct {
		value   value.Scalar
		ordinal uint64
	}
	var want []row
	var live int64
	for found, err := range r.Scan(0) {
		f.must(err)
		live++
		o, err := value.ParseObject(found.Body)
		f.must(err)
		if raw, ok := o.Lookup("x"); ok {
			v, _ := value.FromJSON(raw)
			want = append(want, row{v, found.Ordinal})
		}
	}
	slices.SortStableFunc(want, func(a, b row) int { return compareUTF16(a.value, b.value) })
	var ordinals []uint64
	for _, w := range want {
		ordinals = append(ordinals, w.ordinal)
	}
	if got := f.hits(r, IndexScan{Path: pathX, Values: index.AllValues()}); !slices.Equal(got, ordinals) {
		f.t.Errorf("the index has %v, want %v", got, want)
	}
	if n, err := r.Live(); n != live || err != nil {
		f.t.Errorf("got %d live items, %v, want %d", n, err, live)
	}
}

// Readers reuse the memory of each other's last items: each must see its own items,
// whatever others read meanwhile.
func TestReadersVisitAtOnce(t *testing.T) {
	f := newFixture(t, withTTL("-1"))
	long := strings.Repeat("x", maxKeptRow)
	for i := range 20 {
		f.put(fmt.Sprint("i", i), fmt.Sprintf(`"x":%d,"pad":"%s"`, i, long[:min(1<<i, len(long))]))
	}
	var ordinals []uint64
	var bodies []string
	r := f.reader()
	for item, err := range r.Scan(0) {
		f.must(err)
		ordinals, bodies = append(ordinals, item.Ordinal), append(bodies, string(item.Body))
	}
	r.Close()
	var all sync.WaitGroup
	for n := range 4 {
		all.Go(func() {
			for i := range 200 {
				r, err := f.p.NewReader(f.clock.Now())
				if err != nil {
					t.Error(err)
					return
				}
				for k := range 3 {
					at := (i*7 + n + k*5) % len(ordinals)
					item, live, err := r.Visit(ordinals[at])
					if err != nil || !live || string(item.Body) != bodies[at] {
						t.Errorf("visited %d: live %v, %v, another item's body: %v", ordinals[at], live, err, string(item.Body) != bodies[at])
					}
				}
				r.Close()
			}
		})
	}
	all.Wait()
}
