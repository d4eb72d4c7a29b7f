// SPDX-License-Identifier: MIT

package kvtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/kv"
)

// This file tests the promises that one goroutine can check.

func testGet(t *testing.T, db kv.DB) {
	put(t, db, "a", "1", "empty", "")
	s := snapshot(t, db)
	defer s.Close()
	wantGet(t, s, "a", []byte("1"))
	wantGet(t, s, "empty", []byte{})
	for _, absent := range []string{"", "A", "a\x00", "b", strings.Repeat("k", kv.MaxKeyBytes+1)} {
		wantGet(t, s, absent, nil)
	}
}

func testEmptyBatch(t *testing.T, db kv.DB) {
	commit(t, db, func(*kv.Batch) {})
	put(t, db, "a", "1")
	commit(t, db, func(b *kv.Batch) { b.Require([]byte("a"), []byte("1")) })
	wantError(t, "a batch that only requires",
		tryCommit(db, func(b *kv.Batch) { b.RequireAbsent([]byte("a")) }), kv.ErrConflict)
	wantContents(t, db, "a=1")
}

func testFailedRequire(t *testing.T, db kv.DB) {
	put(t, db, "a", "1", "b", "2", "empty", "")
	for name, require := range map[string]func(*kv.Batch){
		"other value":            func(b *kv.Batch) { b.Require([]byte("a"), []byte("2")) },
		"longer value":           func(b *kv.Batch) { b.Require([]byte("a"), []byte("12")) },
		"empty value":            func(b *kv.Batch) { b.Require([]byte("a"), nil) },
		"no such key":            func(b *kv.Batch) { b.Require([]byte("c"), nil) },
		"absent, but exists":     func(b *kv.Batch) { b.RequireAbsent([]byte("a")) },
		"absent, but is empty":   func(b *kv.Batch) { b.RequireAbsent([]byte("empty")) },
		"the second of two":      func(b *kv.Batch) { b.Require([]byte("a"), []byte("1")); b.RequireAbsent([]byte("b")) },
		"the first of two":       func(b *kv.Batch) { b.RequireAbsent([]byte("b")); b.Require([]byte("a"), []byte("1")) },
		"of a key set elsewhere": func(b *kv.Batch) { b.Require([]byte("b"), []byte("9")) },
	} {
		err := tryCommit(db, func(b *kv.Batch) {
			b.Set([]byte("x"), []byte("before"))
			b.DeleteRange([]byte("a"), []byte("c"))
			require(b)
			b.Delete([]byte("b"), 0)
			b.Set([]byte("y"), []byte("after"))
		})
		wantError(t, name, err, kv.ErrConflict)
		wantContents(t, db, "a=1 b=2 empty=")
	}
	commit(t, db, func(b *kv.Batch) {
		b.Require([]byte("a"), []byte("1"))
		b.Require([]byte("empty"), nil)
		b.RequireAbsent([]byte("c"))
		b.Set([]byte("c"), []byte("3"))
	})
	wantContents(t, db, "a=1 b=2 c=3 empty=")
}

func testRequireBefore(t *testing.T, db kv.DB) {
	put(t, db, "a", "1")
	commit(t, db, func(b *kv.Batch) {
		b.Set([]byte("a"), []byte("2"))
		b.Require([]byte("a"), []byte("1"))
		b.Set([]byte("b"), []byte("2"))
		b.RequireAbsent([]byte("b"))
	})
	wantContents(t, db, "a=2 b=2")
	wantError(t, "a require of the batch's own write", tryCommit(db, func(b *kv.Batch) {
		b.Set([]byte("a"), []byte("3"))
		b.Require([]byte("a"), []byte("3"))
	}), kv.ErrConflict)
	wantContents(t, db, "a=2 b=2")
}

func testBatchOrder(t *testing.T, open func(t *testing.T) kv.DB) {
	set := func(k, v string) func(*kv.Batch) { return func(b *kv.Batch) { b.Set([]byte(k), []byte(v)) } }
	del := func(k string) func(*kv.Batch) { return func(b *kv.Batch) { b.Delete([]byte(k), 1) } }
	delRange := func(l, u string) func(*kv.Batch) {
		return func(b *kv.Batch) { b.DeleteRange([]byte(l), []byte(u)) }
	}
	for _, c := range []struct {
		name string
		ops  []func(*kv.Batch)
		want string
	}{
		{"last set wins", []func(*kv.Batch){set("b", "1"), set("b", "2")}, "a=0 b=2 c=0"},
		{"delete after set", []func(*kv.Batch){set("b", "1"), del("b")}, "a=0 c=0"},
		{"set after delete", []func(*kv.Batch){del("b"), set("b", "1")}, "a=0 b=1 c=0"},
		{"delete of nothing", []func(*kv.Batch){del("x")}, "a=0 b=0 c=0"},
		{"range excludes its upper bound", []func(*kv.Batch){delRange("a", "c")}, "c=0"},
		{"range between keys", []func(*kv.Batch){delRange("a\x00", "bz")}, "a=0 c=0"},
		{"range from the start", []func(*kv.Batch){delRange("", "b")}, "b=0 c=0"},
		{"range then set", []func(*kv.Batch){delRange("a", "z"), set("b", "1")}, "b=1"},
		{"set then range", []func(*kv.Batch){set("b", "1"), set("x", "1"), delRange("b", "z")}, "a=0"},
		{"two ranges", []func(*kv.Batch){delRange("a", "b"), set("a", "1"), delRange("b", "d")}, "a=1"},
		{"same range twice", []func(*kv.Batch){delRange("a", "c"), set("a", "1"), delRange("a", "c")}, "c=0"},
		{"empty range", []func(*kv.Batch){delRange("b", "b")}, "a=0 b=0 c=0"},
		{"inverted range", []func(*kv.Batch){delRange("c", "a")}, "a=0 b=0 c=0"},
		{"range without an upper bound", []func(*kv.Batch){delRange("a", "")}, "a=0 b=0 c=0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			with(func(t *testing.T, db kv.DB) {
				put(t, db, "a", "0", "b", "0", "c", "0")
				commit(t, db, func(b *kv.Batch) {
					for _, op := range c.ops {
						op(b)
					}
				})
				wantContents(t, db, c.want)
			})(t, open)
		})
	}
}

func testKeyOrder(t *testing.T, db kv.DB) {
	put(t, db, "b", "", "a\xff\xff", "", "a", "", "a\x00", "", "\xff", "", "\x00", "", "a\x00\x00", "", "ab", "", "B", "")
	wantContents(t, db, "\x00= B= a= a\x00= a\x00\x00= ab= a\xff\xff= b= \xff=")
}

func testSnapshotIsolation(t *testing.T, db kv.DB) {
	empty := snapshot(t, db)
	defer empty.Close()
	put(t, db, "a", "1", "b", "1", "c", "1")
	first := snapshot(t, db)
	defer first.Close()
	commit(t, db, func(b *kv.Batch) {
		b.Set([]byte("a"), []byte("2"))
		b.Delete([]byte("b"), 1)
		b.Set([]byte("d"), []byte("2"))
	})
	second := snapshot(t, db)
	defer second.Close()
	commit(t, db, func(b *kv.Batch) { b.DeleteRange([]byte("a"), []byte("z")) })

	for _, c := range []struct {
		name string
		s    kv.Snapshot
		want string
	}{{"empty", empty, ""}, {"first", first, "a=1 b=1 c=1"}, {"second", second, "a=2 c=1 d=2"}} {
		if got := scan(t, c.s, nil, nil, kv.Forward); got != c.want {
			t.Errorf("snapshot %s shows %q, want %q", c.name, got, c.want)
		}
	}
	wantGet(t, empty, "a", nil)
	wantGet(t, first, "a", []byte("1"))
	wantGet(t, first, "d", nil)
	wantGet(t, second, "a", []byte("2"))
	wantGet(t, second, "b", nil)
	wantContents(t, db, "")
}

func testScanBounds(t *testing.T, db kv.DB) {
	put(t, db, "a", "1", "b", "2", "c", "3", "d", "4")
	s := snapshot(t, db)
	defer s.Close()
	bound := func(b string) []byte { return []byte(b) }
	for _, c := range []struct {
		name         string
		lower, upper []byte
		want         string
	}{
		{"open", nil, nil, "a=1 b=2 c=3 d=4"},
		{"lower", bound("b"), nil, "b=2 c=3 d=4"},
		{"upper", nil, bound("c"), "a=1 b=2"},
		{"both", bound("b"), bound("d"), "b=2 c=3"},
		{"between keys", bound("aa"), bound("cc"), "b=2 c=3"},
		{"empty lower", bound(""), bound("b"), "a=1"},
		{"empty upper", bound("a"), bound(""), ""},
		{"empty both", bound(""), bound(""), ""},
		{"equal", bound("b"), bound("b"), ""},
		{"inverted", bound("d"), bound("a"), ""},
		{"past the end", bound("e"), nil, ""},
		{"before the start", nil, bound("a"), ""},
	} {
		if got := scan(t, s, c.lower, c.upper, kv.Forward); got != c.want {
			t.Errorf("%s, forward: got %q, want %q", c.name, got, c.want)
		}
		want := reverseWords(c.want)
		if got := scan(t, s, c.lower, c.upper, kv.Reverse); got != want {
			t.Errorf("%s, reverse: got %q, want %q", c.name, got, want)
		}
	}
}

func reverseWords(s string) string {
	words := strings.Fields(s)
	for i, j := 0, len(words)-1; i < j; i, j = i+1, j-1 {
		words[i], words[j] = words[j], words[i]
	}
	return strings.Join(words, " ")
}

func testScanBreak(t *testing.T, db kv.DB) {
	put(t, db, "a", "1", "b", "2", "c", "3")
	s := snapshot(t, db)
	defer s.Close()
	for _, order := range []kv.Order{kv.Forward, kv.Reverse} {
		seq := s.Scan(nil, nil, order)
		for run := range 2 {
			var steps int
			for _, err := range seq {
				if err != nil {
					t.Fatalf("scan: %v", err)
				}
				if steps++; steps == 2 {
					break
				}
			}
			if steps != 2 {
				t.Errorf("order %d, run %d: %d steps, want 2", order, run, steps)
			}
		}
	}
	if got := scan(t, s, nil, nil, kv.Forward); got != "a=1 b=2 c=3" {
		t.Errorf("after broken scans: %q", got)
	}
}

func testScanNested(t *testing.T, db kv.DB) {
	put(t, db, "a", "1", "b", "2")
	s := snapshot(t, db)
	defer s.Close()
	var rows []string
	for outer, err := range s.Scan(nil, nil, kv.Forward) {
		if err != nil {
			t.Fatalf("scan: %v", err)
		}
		wantGet(t, s, "b", []byte("2"))
		put(t, db, "c", "3")
		rows = append(rows, string(outer.Key)+":", scan(t, s, nil, nil, kv.Reverse))
	}
	if got, want := strings.Join(rows, " "), "a: b=2 a=1 b: b=2 a=1"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func testSlicesIn(t *testing.T, db kv.DB) {
	var b kv.Batch
	key, value := []byte("a"), []byte("1")
	b.Set(key, value)
	copy(key, "b")
	copy(value, "2")
	b.Set(key, value)
	if err := db.Commit(context.Background(), &b); err != nil {
		t.Fatalf("commit: %v", err)
	}
	b.Reset()
	b.Set([]byte("c"), []byte("3"))
	wantContents(t, db, "a=1 b=2")
	if err := db.Commit(context.Background(), &b); err != nil {
		t.Fatalf("commit of a reused batch: %v", err)
	}
	b.Reset()
	wantContents(t, db, "a=1 b=2 c=3")

	s := snapshot(t, db)
	defer s.Close()
	lower, upper := []byte("a"), []byte("b")
	seq := s.Scan(lower, upper, kv.Forward)
	copy(lower, "x")
	copy(upper, "z")
	for e, err := range seq {
		if err != nil || string(e.Key) != "a" {
			t.Errorf("a scan whose bounds were overwritten yields %q, %v, want only a", e.Key, err)
		}
	}
}

func testSlicesOut(t *testing.T, db kv.DB) {
	put(t, db, "a", "11", "b", "22")
	s := snapshot(t, db)
	a, _, err := s.Get([]byte("a"))
	if err != nil {
		t.Fatalf("get: %v", err)
	}
	copy(a, "XX")
	wantGet(t, s, "a", []byte("11"))
	b, _, err := s.Get([]byte("b"))
	if err != nil {
		t.Fatalf("get: %v", err)
	}
	room := make([]byte, 0, 8)
	for _, key := range []string{"a", "none", "b"} {
		value, _, err := s.GetInto(room, []byte(key))
		if err != nil {
			t.Fatalf("get into memory: %v", err)
		}
		if len(value) > 0 && &value[0] != &room[:1][0] {
			t.Errorf("get %s into memory: it was not used", key)
		}
	}
	put(t, db, "a", "33", "b", "44")
	s.Close()
	if string(room[:2]) != "22" {
		t.Errorf("the memory has changed after it was read into: %q", room[:2])
	}
	if string(a) != "XX" || string(b) != "22" {
		t.Errorf("values changed after they were handed out: %q, %q", a, b)
	}
	wantContents(t, db, "a=33 b=44")
}

func testLimits(t *testing.T, db kv.DB) {
	longKey := strings.Repeat("k", kv.MaxKeyBytes)
	big := make([]byte, kv.MaxValueBytes+1)
	big[0], big[kv.MaxValueBytes-1] = 1, 2
	commit(t, db, func(b *kv.Batch) {
		b.Set([]byte(longKey), []byte("1"))
		b.Set([]byte("big"), big[:kv.MaxValueBytes])
	})
	s := snapshot(t, db)
	defer s.Close()
	wantGet(t, s, longKey, []byte("1"))
	wantGet(t, s, "big", big[:kv.MaxValueBytes])

	for name, breakIt := range map[string]func(*kv.Batch){
		"empty key":   func(b *kv.Batch) { b.Set(nil, []byte("v")) },
		"long key":    func(b *kv.Batch) { b.Set([]byte(longKey+"k"), []byte("v")) },
		"long value":  func(b *kv.Batch) { b.Set([]byte("v"), big) },
		"long bound":  func(b *kv.Batch) { b.DeleteRange([]byte("a"), []byte(longKey+"k")) },
		"large batch": func(b *kv.Batch) { fillBeyondBatchLimit(b, big[:kv.MaxValueBytes]) },
	} {
		err := tryCommit(db, func(b *kv.Batch) {
			b.Set([]byte("x"), []byte("must not be there"))
			breakIt(b)
		})
		wantError(t, name, err, kv.ErrLimit)
	}
	after := snapshot(t, db)
	defer after.Close()
	wantGet(t, after, "x", nil)
	wantGet(t, after, "big", big[:kv.MaxValueBytes])
}

func fillBeyondBatchLimit(b *kv.Batch, value []byte) {
	for b.Bytes() <= kv.MaxBatchBytes {
		b.Set([]byte("v"), value)
	}
}

func testContext(t *testing.T, db kv.DB) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var b kv.Batch
	b.Set([]byte("a"), []byte("1"))
	wantError(t, "commit with an ended context", db.Commit(ctx, &b), context.Canceled)
	wantContents(t, db, "")
	if err := db.Commit(context.Background(), &b); err != nil {
		t.Errorf("commit of the same batch afterwards: %v", err)
	}
	wantContents(t, db, "a=1")
}

func testClosedSnapshot(t *testing.T, db kv.DB) {
	put(t, db, "a", "1")
	s := snapshot(t, db)
	wantGet(t, s, "a", []byte("1"))
	before := s.Scan(nil, nil, kv.Forward)
	s.Close()
	s.Close()
	wantClosed(t, s)
	for _, err := range before {
		wantError(t, "scan made before the close", err, kv.ErrClosed)
	}
	wantContents(t, db, "a=1")
}

func testClosedStore(t *testing.T, open func(t *testing.T) kv.DB) {
	db := open(t)
	put(t, db, "a", "1")
	s := snapshot(t, db)
	s.Close()
	if err := db.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	wantClosed(t, s)
	s.Close()
	_, err := db.Snapshot()
	wantError(t, "snapshot", err, kv.ErrClosed)
	wantError(t, "commit", tryCommit(db, func(b *kv.Batch) { b.Set([]byte("a"), nil) }), kv.ErrClosed)
	wantError(t, "conditional commit", tryCommit(db, func(b *kv.Batch) { b.RequireAbsent([]byte("a")) }), kv.ErrClosed)
	wantError(t, "empty commit", tryCommit(db, func(*kv.Batch) {}), kv.ErrClosed)
	_, _, err = db.Look(context.Background(), []byte("a"))
	wantError(t, "look", err, kv.ErrClosed)
	wantError(t, "sweep", db.Sweep(context.Background(), []byte("a"), []byte("b")), kv.ErrClosed)
	wantError(t, "second close", db.Close(), kv.ErrClosed)
}

func wantClosed(t *testing.T, s kv.Snapshot) {
	t.Helper()
	_, found, err := s.Get([]byte("a"))
	wantError(t, "get", err, kv.ErrClosed)
	wantError(t, "warm", s.Warm([][]byte{[]byte("a")}), kv.ErrClosed)
	if found {
		t.Errorf("get found something although it is closed")
	}
	steps := 0
	for _, err := range s.Scan(nil, nil, kv.Forward) {
		wantError(t, "scan", err, kv.ErrClosed)
		steps++
	}
	if steps != 1 {
		t.Errorf("a scan after the close took %d steps, want the error alone", steps)
	}
}

func testErase(t *testing.T, db kv.DB) {
	ctx := context.Background()
	all := []kv.Range{{}}
	first, left, err := db.Remains([]kv.Range{{}, {Lower: []byte("a"), Upper: []byte("b")}})
	if errors.Is(err, kv.ErrNoErasure) {
		err := db.Erase(ctx, all, func(kv.Remains) error { return nil })
		wantError(t, "Erase where Remains is refused", err, kv.ErrNoErasure)
		return
	}
	if err != nil || len(left) != 2 {
		t.Fatalf("Remains: got %v, %v", left, err)
	}
	commit(t, db, func(b *kv.Batch) {
		for i := range 100 {
			b.Set(fmt.Appendf(nil, "k%02d", i), []byte("old"))
		}
	})
	commit(t, db, func(b *kv.Batch) {
		for i := range 100 {
			key := fmt.Appendf(nil, "k%02d", i)
			b.Delete(key, 3)
			if i%3 == 0 {
				b.Set(key, []byte("new"))
			}
		}
		b.DeleteRange([]byte("k90"), []byte("k95"))
	})
	steps := 0
	step := func(kv.Remains) error { steps++; return nil }
	if err := db.Erase(ctx, all, step); err != nil || steps == 0 {
		t.Fatalf("Erase: got %v after %d steps", err, steps)
	}
	position, left, err := db.Remains(all)
	if err != nil || left[0].Oldest != 0 || position <= first {
		t.Errorf("after Erase: got %+v, %v at position %d, which was %d", left, err, position, first)
	}
	for i := range 100 {
		value, found, err := kv.Get(db, fmt.Appendf(nil, "k%02d", i))
		if want := i%3 == 0 && i != 90 && i != 93; err != nil || found != want || found && string(value) != "new" {
			t.Errorf("row %d after Erase: got %q, %v, %v", i, value, found, err)
		}
	}
	stop := errors.New("stop")
	if err := db.Erase(ctx, all, func(kv.Remains) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("Erase that a step ends: got %v", err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := db.Erase(ended, all, step); !errors.Is(err, context.Canceled) {
		t.Errorf("Erase with a context that has ended: got %v", err)
	}
}
