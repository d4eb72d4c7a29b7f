// SPDX-License-Identifier: MIT

package store

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/ru"
)

const withVersions = `{"id":"c","partitionKey":{"paths":["/pk"],"version":2},"defaultTtl":60,"changeFeedPolicy":{"retentionDuration":10}}`

// TestCheckOfTheLog removes the rows of the log, one at a time; each time, check reports a
// problem.
func TestCheckOfTheLog(t *testing.T) {
	f := newFixture(t, withVersions)
	f.put("replaced", "")
	f.put("replaced", `"n":1`)
	f.put("deleted", "")
	_, err := f.write(Write{Op: Delete, Key: f.key("k", "deleted")})
	f.must(err)
	f.put("expired", `"ttl":1`)
	f.put("purged", `"ttl":1`)
	f.advance(time.Second)
	_, err = f.p.Purge(context.Background(), Purge{MaxItems: 1, Cause: ru.Sweep})
	f.must(err)
	f.must(f.p.LogExpired(context.Background(), f.clock.Now()))
	f.put("kept", "")
	f.checkClean()
	tried := 0
	for key, value := range f.rows() {
		switch strings.TrimPrefix(key, string(f.p.prefix[:]))[0] {
		case logSpace, logStateSpace:
		default:
			continue
		}
		var remove, restore kv.Batch
		remove.Delete([]byte(key), 0)
		f.must(f.db.Commit(context.Background(), &remove))
		f.check(len(f.problems()) > 0, "without the row %x nothing is found", key)
		restore.Set([]byte(key), []byte(value))
		f.must(f.db.Commit(context.Background(), &restore))
		tried++
	}
	f.check(tried == 10, "%d rows were tried, want 9 changes and the state", tried)
	f.checkClean()
}

// TestLogIsDurableBeforeItIsShown: a purge need not be durable if no caller waits for it,
// unless it logs expiries, whose lsns readers see.
func TestLogIsDurableBeforeItIsShown(t *testing.T) {
	for _, c := range []struct {
		definition string
		lazy       bool
	}{{withTTL("60"), true}, {withVersions, false}} {
		f := newFixture(t, c.definition)
		f.put("a", `"ttl":1`)
		f.advance(time.Second)
		before := f.p.LSN()
		if _, err := f.p.Purge(context.Background(), Purge{MaxItems: 1, Cause: ru.Sweep}); err != nil {
			t.Fatal(err)
		}
		if got := f.p.writer.batch.IsLazy(); got != c.lazy || (f.p.LSN() == before) != c.lazy {
			t.Errorf("%s: lazy %v at lsn %d after %d", c.definition, got, f.p.LSN(), before)
		}
	}
}

// TestLogExpiredTwice: the expiry of an item is logged once, by the first code that finds
// it.
func TestLogExpiredTwice(t *testing.T) {
	f := newFixture(t, withVersions)
	for range 300 {
		f.put("a", `"ttl":1`)
		f.advance(time.Second)
	}
	f.must(f.p.LogExpired(context.Background(), f.clock.Now()))
	lsn := f.p.LSN()
	f.must(f.p.LogExpired(context.Background(), f.clock.Now()))
	f.check(f.p.LSN() == lsn, "what was logged already is logged again")
	page, err := f.p.Changes(context.Background(), Changes{AllVersions: true, MaxItems: 1000, MaxBytes: 1 << 20}, f.clock.Now())
	f.must(err)
	f.check(page.Count == 600, "%d changes, want 300 creates and as many ends", page.Count)
	f.checkClean()
}

// TestLogOfManyExpired: more expiries than fit into one group are logged for one reader.
func TestLogOfManyExpired(t *testing.T) {
	f := newFixtureOn(t, inMemory(t), withVersions)
	const items = 3*logGroup + 1
	for i := range items {
		f.put("item "+string(rune('a'+i%26))+strings.Repeat("x", i/26), "")
	}
	f.advance(time.Minute)
	before := f.p.LSN()
	f.must(f.p.LogExpired(context.Background(), f.clock.Now()))
	f.check(f.p.LSN() == before+items, "%d expiries were logged, want %d", f.p.LSN()-before, items)
	f.checkClean()
}

// TestRetention: a position is refused when a change after it is too old.
func TestRetention(t *testing.T) {
	f := newFixture(t, withVersions)
	read := func(after uint64) error {
		t.Helper()
		_, err := f.p.Changes(context.Background(), Changes{AllVersions: true, Start: ChangeStart{After: after}, MaxItems: 10, MaxBytes: 1 << 20}, f.clock.Now())
		return err
	}
	first := f.put("a", `"ttl":-1`).LSN
	f.advance(5 * time.Minute)
	second := f.put("a", `"ttl":-1`).LSN
	for _, c := range []struct {
		wait  time.Duration
		after uint64
		want  error
	}{
		{5*time.Minute - time.Millisecond, first - 1, nil},
		{time.Millisecond, first - 1, ErrRetention},
		{0, first, nil},
		{5 * time.Minute, first, ErrRetention},
		{0, second, nil},
		{24 * time.Hour, second, nil},
	} {
		if c.wait > 0 {
			f.advance(c.wait)
		}
		if err := read(c.after); !errors.Is(err, c.want) {
			t.Errorf("at %d, after lsn %d: %v, want %v", f.clock.Now()-startMs, c.after, err, c.want)
		}
	}
	_, err := f.p.Purge(context.Background(), Purge{MaxItems: 1, Cause: ru.Sweep})
	f.must(err)
	f.check(errors.Is(read(first), ErrRetention) && read(second) == nil, "after the log was pruned positions mean something else")
	for key := range f.rows() {
		f.check(key[len(f.p.prefix)] != logSpace, "the log has row %x still", key)
	}
	f.checkClean()
}

// FuzzLogRow: a damaged row of the log is refused, or parsed as another valid one.
func FuzzLogRow(f *testing.F) {
	x := partitionPrefix(catalog.ContainerRID{Database: 1, Container: 2}, 3)
	key := x.appendLogKey(nil, 7, 1)
	row := append([]byte{logVersion, byte(logReplace)}, make([]byte, 16)...)
	f.Add(key, append(row, 0, 2, 'i', 'd', '{', '}'))
	f.Add(key, append(row, 0xff, 0xff))
	f.Add(key[:9], row)
	f.Add(key, []byte{logVersion, byte(logExpiry)})
	f.Add(key, append([]byte{logVersion, byte(logDelete)}, make([]byte, logRowBytes-2)...))
	f.Fuzz(func(t *testing.T, key, raw []byte) {
		r, err := parseLogRow(kv.Entry{Key: key, Value: raw})
		if err != nil {
			return
		}
		written := r.kind == logCreate || r.kind == logReplace
		if len(r.identity)+len(r.image)+logRowBytes != len(raw) || written && len(r.image) == 0 {
			t.Errorf("%x is read as %+v", raw, r)
		}
	})
}

// TestLogIsPrunedInTheBackground: the log makes a partition due for purge, open or not,
// even if nothing in it expires.
func TestLogIsPrunedInTheBackground(t *testing.T) {
	f := newFixture(t, strings.Replace(withVersions, `"defaultTtl":60,`, "", 1))
	_, err := f.p.Purge(context.Background(), Purge{MaxItems: 1, Cause: ru.Sweep})
	f.must(err)
	f.check(f.p.PurgeDue() == Never, "an empty log is due at %d", f.p.PurgeDue())
	f.put("a", "")
	want := startMs + int64(10*60*1000+logPruneEveryMs)
	f.check(f.p.PurgeDue() == want, "the log is due at %d, want %d", f.p.PurgeDue(), want)
	snap, err := f.db.Snapshot()
	f.must(err)
	due, err := DueOf(snap, f.container, f.index)
	snap.Close()
	f.must(err)
	f.check(due == want, "while the partition is closed the log is due at %d, want %d", due, want)

	f.reopen()
	f.advance(time.Duration(want-startMs) * time.Millisecond)
	_, err = f.p.Purge(context.Background(), Purge{MaxItems: 1, Cause: ru.Sweep})
	f.must(err)
	for key := range f.rows() {
		f.check(key[len(f.p.prefix)] != logSpace, "the log has row %x still", key)
	}
	f.checkClean()
}

// TestLogBeginsAndEnds: the log has rows only under its policy.
func TestLogBeginsAndEnds(t *testing.T) {
	f := newFixture(t, withTTL("60"))
	logRows := func() (n int) {
		for key := range f.rows() {
			if space := key[len(f.p.prefix)]; space == logSpace || space == logStateSpace {
				n++
			}
		}
		return n
	}
	for _, c := range []struct {
		definition string
		want       int // the state, and a change
	}{{withTTL("60"), 0}, {withVersions, 2}, {withTTL("60"), 0}, {withVersions, 2}} {
		f.reconfigure(c.definition)
		f.put("a", "")
		f.check(logRows() == c.want, "under %s there are %d rows, want %d", c.definition, logRows(), c.want)
		f.checkClean()
	}
	// The partition was closed before it received a change of settings.
	f.redefine(withTTL("60"))
	f.reopen()
	f.check(logRows() == 0, "a partition that finds its log ended has %d rows of it", logRows())
	f.checkClean()
}
