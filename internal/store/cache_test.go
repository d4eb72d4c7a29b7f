// SPDX-License-Identifier: MIT

package store

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/rowcache"
)

// bodyOf reads an item that must exist.
func (f *fixture) bodyOf(id string) string {
	f.t.Helper()
	item, err := f.read(id)
	f.must(err)
	return string(item.Body)
}

// asked returns how many rows a function reads from the engine.
func (f *fixture) asked(do func()) int64 {
	before := f.db.gets.Load()
	do()
	return f.db.gets.Load() - before
}

// The second read of an item neither reads from the engine nor needs a snapshot.
func TestSecondReadIsFromMemory(t *testing.T) {
	f := newFixture(t, withTTL("null"))
	want := string(f.put("a", "").Body)
	if n := f.asked(func() { f.bodyOf("a") }); n != 2 {
		t.Errorf("the first read asked for %d rows, want 2", n)
	}
	f.p.ReleaseIdle()
	f.bodyOf("a")
	f.p.ReleaseIdle() // the snapshot was not used since the last call
	if n := f.asked(func() {
		if got := f.bodyOf("a"); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}); n != 0 || f.db.open.Load() != 0 {
		t.Errorf("the second read asked for %d rows, with %d snapshots open", n, f.db.open.Load())
	}
}

// Every change of an item is seen by the next read.
func TestChangesAreSeenThroughTheCache(t *testing.T) {
	f := newFixture(t, withUniqueKeys)
	f.put("a", `"a":1,"b":1`)
	f.bodyOf("a")
	f.put("a", `"a":1,"b":2`)
	if got := f.bodyOf("a"); !strings.Contains(got, `"b":2`) {
		t.Errorf("after a rewrite: %s", got)
	}
	_, err := f.write(Write{Op: Delete, Key: f.key("k", "a")})
	f.must(err)
	if _, err := f.read("a"); !errors.Is(err, ErrNotFound) {
		t.Errorf("after a delete: %v", err)
	}
	f.put("a", `"a":1,"b":3`)
	f.bodyOf("a")
	f.advance(2 * time.Second)
	if _, err := f.read("a"); !errors.Is(err, ErrNotFound) {
		t.Errorf("after its deadline: %v", err)
	}
	// b takes a's unique key, so a is purged.
	f.put("b", `"a":1,"b":4`)
	f.reconfigure(strings.Replace(withUniqueKeys, `"defaultTtl":2`, `"defaultTtl":3600`, 1))
	if _, err := f.read("a"); !errors.Is(err, ErrNotFound) {
		t.Errorf("after another took its place: %v", err)
	}
}

// A longer default makes an expired item live again, also in the cache.
func TestSettingsHoldForCachedItems(t *testing.T) {
	f := newFixture(t, withTTL("5"))
	f.put("a", "")
	f.bodyOf("a")
	f.advance(5 * time.Second)
	if _, err := f.read("a"); !errors.Is(err, ErrNotFound) {
		t.Errorf("after its deadline: %v", err)
	}
	f.reconfigure(withTTL("10"))
	f.bodyOf("a")
	f.reconfigure(withTTL("1"))
	if _, err := f.read("a"); !errors.Is(err, ErrNotFound) {
		t.Errorf("after a shorter default: %v", err)
	}
}

// A write commits between a reader's read of the engine and its put into the cache. Then
// the reader must not put.
func TestOvertakenReaderLeavesNothingStale(t *testing.T) {
	f := newFixture(t, withTTL("null"))
	f.put("a", `"n":1`)
	overtake := func() { f.put("a", `"n":2`) }
	f.db.afterGet.Store(&overtake)
	if got := f.bodyOf("a"); !strings.Contains(got, `"n":1`) && !strings.Contains(got, `"n":2`) {
		t.Errorf("the reader got %s", got)
	}
	if got := f.bodyOf("a"); !strings.Contains(got, `"n":2`) {
		t.Errorf("the next reader got %s", got)
	}
}

// Large items are not cached, and a closed partition answers nothing from the cache.
func TestWhatIsNotKept(t *testing.T) {
	f := newFixture(t, withTTL("null"))
	f.put("large", fmt.Sprintf(`"x":%q`, strings.Repeat("x", rowcache.MaxRowBytes)))
	f.bodyOf("large")
	if n := f.asked(func() { f.bodyOf("large") }); n != 2 {
		t.Errorf("the second read of a large item asked for %d rows, want 2", n)
	}
	f.put("a", "")
	f.bodyOf("a")
	f.p.Close()
	if _, err := f.read("a"); !errors.Is(err, ErrClosed) {
		t.Errorf("a read of a closed partition: %v", err)
	}
}
