// SPDX-License-Identifier: MIT

package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/kv/kvtest"
)

func all([]byte) bool { return true }

// pending returns the kinds of rows of the partition that are to be swept, and how many
// sweep rows there are.
func (f *fixture) pending() (kinds string, ranges int) {
	f.t.Helper()
	snap, err := f.db.Snapshot()
	f.must(err)
	defer snap.Close()
	found, err := sweeps(snap, -1)
	f.must(err)
	for _, r := range found {
		for e, err := range snap.Scan(r.Lower, r.Upper, kv.Forward) {
			f.must(err)
			if kind := string(e.Key[prefixBytes]); !strings.Contains(kinds, kind) {
				kinds += kind
			}
		}
	}
	return kinds, len(found)
}

// On an engine that is far, long ranges stay until they are swept: the rows of an earlier
// index, of a log that was switched off, old changes and old events. Until then they are
// hidden, and what is written after them is not swept.
func TestFarRangesAreSwept(t *testing.T) {
	f := newFixtureOn(t, &farDB{DB: kvtest.NewModel()}, withVersions)
	want := func(when, kinds string, ranges int) {
		t.Helper()
		got, n := f.pending()
		if sorted := slices.Sorted(slices.Values(strings.Split(got, ""))); strings.Join(sorted, "") != kinds || n != ranges {
			t.Errorf("%s: rows of kinds %q are to be swept, in %d ranges, want %q in %d", when, got, n, kinds, ranges)
		}
		f.checkClean()
	}
	sweep := func(when string, ranges int) {
		t.Helper()
		n, err := Sweep(context.Background(), f.db, all)
		if f.must(err); n != ranges {
			t.Errorf("%s: %d ranges were swept, want %d", when, n, ranges)
		}
		want(when+", swept", "", 0)
	}
	for i := range 20 {
		f.put(fmt.Sprint(i), fmt.Sprintf(`"x":%d`, i))
	}
	want("at first", "", 0)

	f.reconfigure(strings.Replace(withVersions, `"defaultTtl":60`, `"defaultTtl":60,"indexingPolicy":{"excludedPaths":[{"path":"/x/*"}]}`, 1))
	want("after a change of the index", "i", 1)
	f.reindexAll(100)
	index := f.rowsOf()[indexSpace]
	sweep("after a change of the index", 1)
	if now := f.rowsOf()[indexSpace]; now == 0 || now >= index {
		t.Errorf("%d index rows are left of %d", now, index)
	}

	without := strings.Replace(withVersions, `,"changeFeedPolicy":{"retentionDuration":10}`, "", 1)
	f.reconfigure(without)
	f.reconfigure(withVersions)
	f.put("later", "")
	want("after the log was switched off and on", "iv", 2)
	f.reopen()
	sweep("after the log was switched off and on", 2)
	if n := f.rowsOf()[logSpace]; n != 1 {
		t.Errorf("the log has %d rows, want that of the last write", n)
	}

	f.advance(11 * time.Minute)
	_, err := f.p.Purge(context.Background(), Purge{MaxItems: 100})
	f.must(err)
	f.advance(2 * time.Hour)
	_, err = f.p.Purge(context.Background(), Purge{MaxItems: 100, PruneMs: f.clock.Now() - 1000})
	f.must(err)
	want("after a purge of old events and changes", "ev", 2)
	f.put("last", "")
	sweep("after a purge of old events and changes", 2)
	if rows := f.rowsOf(); rows[eventSpace] != 0 || rows[logSpace] != 1 || rows[itemSpace] != 1 {
		t.Errorf("there are rows %v, want one item and its change", rows)
	}
}

// interrupted is a store in which something happens after a sweep.
type interrupted struct {
	kv.DB
	after func() error
}

func (s interrupted) Sweep(ctx context.Context, lower, upper []byte) error {
	return errors.Join(s.DB.Sweep(ctx, lower, upper), s.after())
}

// A sweep row stays until all of its range is swept: after a crash, and if the range became
// longer meanwhile. Then another process sweeps the rest.
func TestSweepRowStaysUntilItIsDone(t *testing.T) {
	db := kvtest.NewModel()
	other := db.Another()
	fill := func(far bool, upper string) func() error {
		return func() error {
			var b kv.Batch
			for _, key := range []string{"p1", "p2", "p3", "p4"} {
				b.Set([]byte(key), []byte("row"))
			}
			removeRange(&b, far, []byte("p1"), []byte(upper))
			return other.Commit(context.Background(), &b)
		}
	}
	keys := func(want ...string) {
		t.Helper()
		if got := slices.Sorted(maps.Keys(allRows(t, other))); !slices.Equal(got, want) {
			t.Errorf("the rows are %q, want %q", got, want)
		}
	}
	do := func(db kv.DB, swept int, want error) {
		t.Helper()
		if n, err := Sweep(context.Background(), db, all); n != swept || !errors.Is(err, want) {
			t.Errorf("swept %d, %v, want %d, %v", n, err, swept, want)
		}
	}
	begin := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	begin(fill(true, "p3")())
	do(interrupted{db, func() error { return errCrash }}, 0, errCrash)
	keys("p3", "p4", "swp1")
	do(other, 1, nil)
	keys("p3", "p4")

	begin(fill(true, "p3")())
	do(interrupted{db, fill(true, "p4")}, 1, nil)
	keys("p1", "p2", "p3", "p4", "swp1")
	do(other, 1, nil)
	keys("p4")

	begin(fill(true, "p3")())
	if n, err := Sweep(context.Background(), db, func([]byte) bool { return false }); n != 0 || err != nil {
		t.Errorf("of another node: swept %d, %v", n, err)
	}
	keys("p1", "p2", "p3", "p4", "swp1")
	do(db, 1, nil)

	begin(fill(false, "p4")())
	keys("p4")
}

// A view without what is to be swept shows the other rows, whichever ranges overlap.
func TestWithoutSwept(t *testing.T) {
	db := kvtest.NewModel()
	var b kv.Batch
	for _, key := range []string{"a", "p1", "p2", "p25", "p3", "p4", "p5", "p6", "z"} {
		b.Set([]byte(key), []byte("row "+key))
	}
	for _, r := range []string{"p1-p4", "p2-p3", "p25-p26", "p5-p6", "x-y"} {
		lower, upper, _ := strings.Cut(r, "-")
		removeRange(&b, true, []byte(lower), []byte(upper))
	}
	if err := db.Commit(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	snap, err := db.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	v, err := WithoutSwept(snap)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"a", "p4", "p6", "z"}
	for _, order := range []kv.Order{kv.Forward, kv.Reverse} {
		var got []string
		for e, err := range v.Scan(nil, nil, order) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, string(e.Key))
		}
		if order == kv.Reverse {
			slices.Reverse(got)
		}
		if !slices.Equal(got, want) {
			t.Errorf("order %d: got %q, want %q", order, got, want)
		}
	}
	for key := range allRows(t, db) {
		row, found, err := v.Get([]byte(key))
		if shown := slices.Contains(want, key); err != nil || found != shown || shown && string(row) != "row "+key {
			t.Errorf("%s: got %q, %v, %v", key, row, found, err)
		}
	}
}

// A far drop removes the owner rows at once, and leaves the rest to be swept.
func TestFarDrop(t *testing.T) {
	c := &catalog.Container{RID: catalog.ContainerRID{Database: 1, Container: 2}}
	c.Ranges = []catalog.Range{{ID: 0}, {ID: 1}, {ID: 2}}
	var b kv.Batch
	DropContainer(&b, true, c)
	var ops []string
	for op := range b.Ops {
		ops = append(ops, fmt.Sprintf("%d %x %x", op.Kind, op.Key, op.Value))
	}
	want := []string{
		"2 7000000001000000020000" + "6f ", "2 7000000001000000020001" + "6f ", "2 7000000001000000020002" + "6f ",
		"1 7377" + "7000000001000000020000 7000000001000000030000",
	}
	if !slices.Equal(ops, want) {
		t.Errorf("got  %q\nwant %q", ops, want)
	}
}
