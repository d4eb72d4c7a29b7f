// SPDX-License-Identifier: MIT

package store

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/invariant"
	"github.com/mayflydb/mayfly/internal/kv/kvtest"
)

// bodyBy returns the body of the item with an ordinal.
func (f *fixture) bodyBy(r *Reader, ordinal uint64) string {
	f.t.Helper()
	found, live, err := r.Visit(ordinal)
	f.must(err)
	if !live {
		return "gone"
	}
	return string(found.Body)
}

// mustHave checks that an item has a property, and how many rows are read for it. (Builds
// with invariants read more.)
func (f *fixture) mustHave(r *Reader, ordinal uint64, property string, rows int64) {
	f.t.Helper()
	var body string
	n := f.asked(func() { body = f.bodyBy(r, ordinal) })
	f.check(strings.Contains(body, property), "got %s, want %s", body, property)
	f.check(n == rows || invariant.Enabled, "%d rows were asked for, want %d", n, rows)
}

// Rows are read once, until they change. A reader with an older view sees the older row.
func TestRowsAreReadOnce(t *testing.T) {
	f := newFixture(t, withTTL("10"))
	f.put("a", `"n":1`)
	ordinal := FirstOrdinal(0) + 1
	older := f.reader()
	defer older.Close()
	f.mustHave(older, ordinal, `"n":1`, 1)
	f.mustHave(older, ordinal, `"n":1`, 0)

	f.put("a", `"n":2`)
	f.mustHave(older, ordinal, `"n":1`, 1)
	newer := f.reader()
	defer newer.Close()
	f.mustHave(newer, ordinal, `"n":2`, 1) // the reader of the older view has cached nothing
	f.mustHave(newer, ordinal, `"n":2`, 0)
	f.mustHave(older, ordinal, `"n":1`, 1)

	f.put("b", "") // another item: this one stays cached
	newest := f.reader()
	defer newest.Close()
	f.mustHave(newest, ordinal, `"n":2`, 0)
	f.mustHave(newer, ordinal, `"n":2`, 0)

	f.advance(10 * time.Second)
	late := f.reader()
	defer late.Close()
	f.mustHave(late, ordinal, "gone", 0)
	f.mustHave(newest, ordinal, `"n":2`, 0) // as of its moment
	f.check(f.purgeAll() == 2, "nothing was purged")
	after := f.reader()
	defer after.Close()
	f.mustHave(after, ordinal, "gone", 1)
}

// Rows that were written or deleted are not in the cache any more.
func TestRowsFollowWrites(t *testing.T) {
	f := newFixture(t, withTTL("-1"))
	for i := range 20 {
		f.put(fmt.Sprint(i), `"n":0`)
	}
	read := func(ordinal uint64, want string) {
		t.Helper()
		r := f.reader()
		defer r.Close()
		if got := f.bodyBy(r, ordinal); !strings.Contains(got, want) {
			t.Errorf("item %d: got %s, want %s", ordinal, got, want)
		}
	}
	for i := range uint64(20) {
		read(1+i, `"n":0`)
	}
	_, err := f.writeAll(f.item(Upsert, "0", `"n":1`), f.item(Upsert, "1", `"n":2`), f.op(Delete, "2"))
	f.must(err)
	read(1, `"n":1`)
	read(2, `"n":2`)
	read(3, "gone")
	_, err = f.writeAll(f.item(Upsert, "3", `"n":3`), f.op(Delete, "none"))
	f.check(err != nil, "a bundle with a delete of nothing")
	read(4, `"n":0`)
	f.reopen()
	f.put("4", `"n":4`)
	read(5, `"n":4`)
	read(6, `"n":0`)
}

// A reader whose row is written before it puts it into the cache does not put it.
func TestOvertakenReaderLeavesNoRow(t *testing.T) {
	f := newFixture(t, withTTL("null"))
	f.put("a", `"n":1`)
	overtake := func() { f.put("a", `"n":2`) }
	r := f.reader()
	defer r.Close()
	f.db.afterGet.Store(&overtake)
	if got := f.bodyBy(r, 1); !strings.Contains(got, `"n":1`) {
		t.Errorf("the reader got %s", got)
	}
	next := f.reader()
	defer next.Close()
	if got := f.bodyBy(next, 1); !strings.Contains(got, `"n":2`) {
		t.Errorf("the next reader got %s", got)
	}
}

// Each partition has its own rows, also if ordinals are equal.
func TestRowsOfOtherPartitions(t *testing.T) {
	f := newFixture(t, withTTL("null"))
	f.put("a", `"n":1`)
	g := makeFixture(t, kvtest.NewModel(), setup{definition: withTTL("null"), nowMs: startMs})
	g.p.Close()
	g.budget = f.budget
	g.open()
	defer g.p.Close()
	g.put("a", `"n":2`)
	for range 2 {
		for want, of := range map[string]*fixture{`"n":1`: f, `"n":2`: g} {
			r := of.reader()
			if got := of.bodyBy(r, 1); !strings.Contains(got, want) {
				t.Errorf("got %s, want %s", got, want)
			}
			r.Close()
		}
	}
}

// Readers beside writers see the rows of their views.
func TestRowsBesideWrites(t *testing.T) {
	const items = 40
	f := newFixtureOn(t, inMemory(t), withTTL("-1"))
	for i := range items {
		f.put(fmt.Sprint(i), `"n":0`)
	}
	f.beside(func(w int) {
		for i := range 300 {
			write := f.item(Upsert, fmt.Sprint((i*7+w)%items), fmt.Sprintf(`"n":%d`, i))
			if _, err := f.write(write); err != nil {
				t.Error(err)
			}
		}
	}, func(r *Reader, _, _ int) {
		for n := range 10 {
			ordinal := uint64(1 + (n*3)%items)
			found, live, err := r.Visit(ordinal)
			row, _, wrong := r.v.snap.Get(f.p.prefix.appendItemKey(nil, ordinal))
			if err != nil || wrong != nil || !live || !bytes.HasSuffix(row, found.Body) {
				t.Errorf("item %d: got %s, %v, want %s, %v", ordinal, found.Body, err, row, wrong)
			}
		}
	})
}
