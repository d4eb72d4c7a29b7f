// SPDX-License-Identifier: MIT

package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/cluster"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/kv/kvtest"
	"github.com/mayflydb/mayfly/internal/kv/pebblekv"
	"github.com/mayflydb/mayfly/internal/kv/pgkv"
	"github.com/mayflydb/mayfly/internal/kv/pgkv/pgtest"
	"github.com/mayflydb/mayfly/internal/store"
)

// site is a storage engine of one kind, with a database on it while it is open.
type site struct {
	world
	shared bool
	wallMs int64 // by the machine's clock, or by that of the shared engine
}

func (s *site) Look(ctx context.Context, keys ...[]byte) ([][]byte, int64, error) {
	values, _, err := s.db.Look(ctx, keys...)
	return values, s.wallMs, err
}

// kinds are the storage engines. The shared one without a server is that of package kvtest.
var kinds = map[string]func(t *testing.T) *site{
	"embedded": func(t *testing.T) *site {
		db, err := pebblekv.OpenMemory(pebblekv.Options{Logger: quiet()})
		return newSite(t, db, err, false)
	},
	"shared": func(t *testing.T) *site { return newSite(t, kvtest.NewModel(), nil, true) },
	"PostgreSQL": func(t *testing.T) *site {
		db, err := pgkv.Open(t.Context(), pgkv.Options{URL: pgtest.New(t), Logger: quiet()})
		return newSite(t, db, err, true)
	},
}

func newSite(t *testing.T, db kv.DB, err error, shared bool) *site {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	s := &site{world{t: t, db: db}, shared, startMs}
	t.Cleanup(func() {
		if s.e != nil {
			s.must(s.e.Close())
		}
		_ = db.Close()
	})
	return s
}

// start opens the database.
func (s *site) start(test bool) {
	s.t.Helper()
	s.must(s.tryStart(test))
}

func (s *site) tryStart(test bool) (err error) {
	o := Options{DB: s.db, TestClock: test, Explain: testExplain, ClockSource: func() clock.Reading { return clock.Reading{WallMs: s.wallMs, MonoMs: s.wallMs - startMs + 3_600_000} }}
	if s.shared {
		o.DB = looking{s.db, s}
		o.Cluster = &cluster.Options{Name: "a", Address: "http://a", Watch: func() int64 { return s.wallMs }}
	}
	s.e, err = Open(o)
	return err
}

// looking is a store with the time of a site.
type looking struct {
	kv.DB
	s *site
}

func (l looking) Look(ctx context.Context, keys ...[]byte) ([][]byte, int64, error) {
	return l.s.Look(ctx, keys...)
}

func (s *site) stop() {
	s.t.Helper()
	s.must(s.e.Close())
	s.e = nil
	s.checkClean()
}

// copyTo copies everything to another site. Both are stopped.
func (s *site) copyTo(to *site) (CopyProgress, error) {
	return Copy(context.Background(), CopyOptions{From: s.db, To: looking{to.db, to}, Shared: to.shared})
}

// TestCopyKeepsEverything: data goes from engine to engine, with all that clients remember of
// it, and expires when it would have expired.
func TestCopyKeepsEverything(t *testing.T) {
	alone(t)
	for _, way := range [][]string{
		{"embedded", "embedded", "shared", "shared", "embedded"},
		{"embedded", "PostgreSQL", "embedded"},
	} {
		t.Run(fmt.Sprint(way), func(t *testing.T) { copyAlong(t, way) })
	}
}

func copyAlong(t *testing.T, way []string) {
	at := kinds[way[0]](t)
	at.start(true)
	at.must(at.e.Clock().Freeze())
	c := at.container("c", "100", 3)
	keys := spread(c)
	etags := map[string]string{}
	for i := range 50 {
		id, pk := fmt.Sprint(i), keys[i%len(keys)]
		etags[id] = at.put("c", pk, id, `"text":"`+string(bytes.Repeat([]byte("x"), 50*i))+`"`).ETag
	}
	at.put("c", keys[0], "short", `"ttl":10`)
	gone := 0
	for stop, kind := range way[1:] {
		at.advance(5 * time.Second)
		now := at.e.Clock().Now()
		at.stop()
		next := kinds[kind](t)
		next.wallMs = at.wallMs
		done, err := at.copyTo(next)
		if err != nil || done.Rows != done.AllRows || done.Rows < 50 {
			t.Fatalf("to %s: %+v, %v", kind, done, err)
		}
		at = next
		at.start(true)
		if got := at.e.Clock().Now(); got < now || got > now+5000 {
			t.Fatalf("to %s: the time was %d, and is %d", kind, now, got)
		}
		for i := range 50 {
			id, pk := fmt.Sprint(i), keys[i%len(keys)]
			if a, err := at.read("c", pk, id); err != nil || a.ETag != etags[id] || len(a.Body) < 50*i {
				t.Fatalf("to %s: item %s has etag %s, and had %s: %v", kind, id, a.ETag, etags[id], err)
			}
		}
		_, err = at.read("c", keys[0], "short")
		if live := at.e.Clock().Now() < startMs+10_000; live != (err == nil) {
			t.Errorf("to %s: 10 s after %d, at %d: %v", kind, startMs, at.e.Clock().Now(), err)
		} else if !live {
			gone++
		}
		before := at.put("c", keys[1], "1", `"stop":1`)
		if after := at.put("c", keys[1], "1", `"stop":2`); after.LSN <= before.LSN {
			t.Errorf("to %s: a write has LSN %d, the next one %d", kind, before.LSN, after.LSN)
		} else {
			etags["1"] = after.ETag
		}
		at.put("c", keys[1], "1", `"text":"`+string(bytes.Repeat([]byte("y"), 60))+fmt.Sprint(stop)+`"`)
		a, err := at.read("c", keys[1], "1")
		at.must(err)
		etags["1"] = a.ETag
	}
	if gone == 0 {
		t.Error("the item that expires never did")
	}
	at.stop()
}

// TestCopiedTimeDoesNotGoBack: the clock of the target is an hour behind. Items that were
// gone stay gone.
func TestCopiedTimeDoesNotGoBack(t *testing.T) {
	alone(t)
	for _, way := range [][2]string{{"embedded", "embedded"}, {"embedded", "shared"}, {"shared", "embedded"}, {"shared", "shared"}} {
		from, to := kinds[way[0]](t), kinds[way[1]](t)
		from.start(false)
		from.container("c", "60", 1)
		from.put("c", "p", "i", "")
		from.wallMs += 59_000
		from.must(from.e.Moment(context.Background()))
		from.wallMs += 2_000
		from.must(from.e.Moment(context.Background()))
		from.must(errOf(from.read("c", "p", "i")), store.ErrNotFound)
		now := from.e.Clock().Now()
		from.stop()
		to.wallMs = from.wallMs - 3_600_000
		_, err := from.copyTo(to)
		to.must(err)
		to.start(false)
		if got := to.e.Clock().Now(); got < now {
			t.Errorf("%v: the time was %d, and is %d", way, now, got)
		}
		to.must(errOf(to.read("c", "p", "i")), store.ErrNotFound)
		to.stop()
	}
}

func errOf(_ Answer, err error) error { return err }

// must fails unless err is one of the allowed, or nil if none is.
func (s *site) must(err error, allowed ...error) {
	s.t.Helper()
	for _, a := range allowed {
		if errors.Is(err, a) {
			return
		}
	}
	if err != nil || len(allowed) > 0 {
		s.t.Fatalf("unexpected: %v", err)
	}
}

// failing is a store whose commits fail from some number on.
type failing struct {
	kv.DB
	left int
	err  error
	// lands says that a failing commit happens nevertheless.
	lands bool
	fails int // how many do
}

func (f *failing) Commit(ctx context.Context, b *kv.Batch) error {
	if f.left--; f.left >= 0 || f.fails == 0 {
		return f.DB.Commit(ctx, b)
	}
	f.fails--
	if f.lands {
		if err := f.DB.Commit(ctx, b); err != nil {
			return err
		}
	}
	return f.err
}

// filled returns a stopped site with a few batches of rows.
func filled(t *testing.T) *site {
	s := kinds["embedded"](t)
	s.start(true)
	s.container("c", "null", 1)
	for i := range 40 {
		s.put("c", "p", fmt.Sprint(i), `"text":"`+string(bytes.Repeat([]byte("x"), 100_000))+`"`)
	}
	s.stop()
	return s
}

// TestInterruptedCopiesCannotBeOpened: whenever a copy ends early, the target is refused, and
// another copy starts over.
func TestInterruptedCopiesCannotBeOpened(t *testing.T) {
	alone(t)
	from := filled(t)
	broken := errors.New("broken")
	for stop := 0; ; stop++ {
		to := kinds["embedded"](t)
		_, err := Copy(t.Context(), CopyOptions{From: from.db, To: &failing{to.db, stop, broken, false, 1}})
		if err == nil {
			if stop < 4 {
				t.Errorf("the copy took %d commits only", stop)
			}
			break
		}
		if stop > 0 {
			to.must(err, broken)
			to.must(to.tryStart(true), ErrHalfCopied)
			if _, err := to.copyTo(kinds["embedded"](t)); !errors.Is(err, ErrHalfCopied) {
				t.Errorf("a copy of half a copy: %v", err)
			}
		}
		restarted := false
		_, err = Copy(t.Context(), CopyOptions{From: from.db, To: to.db, Restarted: func() { restarted = true }})
		if to.must(err); restarted != (stop > 0) {
			t.Errorf("%d: restarted: %v", stop, restarted)
		}
		to.start(true)
		for i := range 40 {
			to.must(errOf(to.read("c", "p", fmt.Sprint(i))))
		}
		to.stop()
	}
}

// TestCopiesOutlastTheirEngine: commits whose outcome is unknown are repeated, the last one
// too, whether they have happened or not.
func TestCopiesOutlastTheirEngine(t *testing.T) {
	alone(t)
	from := filled(t)
	for _, err := range []error{kv.ErrUnknown, kv.ErrUnavailable} {
		for stop := 1; stop < 6; stop++ {
			for _, lands := range []bool{false, true} {
				if lands && errors.Is(err, kv.ErrUnavailable) {
					continue // it says that nothing was written
				}
				rows := kvtest.NewModel()
				synctest.Test(t, func(t *testing.T) {
					if _, err := Copy(t.Context(), CopyOptions{From: from.db, To: &failing{rows, stop, err, lands, 3}}); err != nil {
						t.Errorf("after %d commits, lands=%v: %v", stop, lands, err)
					}
				})
				if raw, _, err := kv.Get(rows, catalog.FormatKey); err != nil || !bytes.Equal(raw, []byte{byte(formatVersion)}) {
					t.Errorf("the format is %x, %v", raw, err)
				}
			}
		}
	}
}

func TestCopyRefuses(t *testing.T) {
	alone(t)
	from, to := filled(t), kinds["embedded"](t)
	if _, err := kinds["embedded"](t).copyTo(to); !errors.Is(err, ErrNoData) {
		t.Errorf("from an empty engine: %v", err)
	}
	if _, err := from.copyTo(from); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("into itself: %v", err)
	}
	to.must(kv.Set(t.Context(), to.db, []byte("x"), []byte("y")))
	if _, err := from.copyTo(to); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("into an engine with a row: %v", err)
	}
	// Another copy into the same target ends this one.
	rows := kvtest.NewModel()
	report := func(CopyProgress) {}
	first := &failing{DB: rows, left: 2, err: kv.ErrUnknown, fails: 1}
	synctest.Test(t, func(t *testing.T) {
		_, err := Copy(t.Context(), CopyOptions{From: from.db, To: &meanwhile{first, func() {
			_, err := Copy(t.Context(), CopyOptions{From: from.db, To: rows, Report: report})
			if err != nil {
				t.Error(err)
			}
		}}})
		if !errors.Is(err, kv.ErrConflict) {
			t.Errorf("a copy that another one has overtaken: %v", err)
		}
	})
	// A source whose time is in doubt is not copied to another kind of clock.
	state := clock.State{FloorMs: startMs, Jumps: [clock.MaxJumps]clock.Jump{{FromMs: startMs - 5, ToMs: startMs, GapMs: 5, LeftMs: 5}}}
	from.must(kv.Set(t.Context(), from.db, catalog.ClockKey, state.Encode()))
	if _, err := from.copyTo(kinds["shared"](t)); !errors.Is(err, ErrUnsettled) {
		t.Errorf("a source in doubt: %v", err)
	}
}

// meanwhile does something after the first commit that fails.
type meanwhile struct {
	*failing
	do func()
}

func (m *meanwhile) Commit(ctx context.Context, b *kv.Batch) error {
	err := m.failing.Commit(ctx, b)
	if err != nil && m.do != nil {
		do := m.do
		m.do = nil
		do()
	}
	return err
}

// Data of an older format is not copied: its rows may exceed the limits of today.
func TestCopyOfOlderFormat(t *testing.T) {
	from, to := kvtest.NewModel(), kvtest.NewModel()
	setRow(t, from, catalog.FormatKey, []byte{byte(formatVersion) - 1})
	if _, err := Copy(t.Context(), CopyOptions{From: from, To: to}); err == nil || !strings.Contains(err.Error(), "migrates it to") {
		t.Errorf("got %v", err)
	}
	if empty, err := isEmpty(to); err != nil || !empty {
		t.Errorf("the target is empty: %v, %v", empty, err)
	}
}
