// SPDX-License-Identifier: MIT

package kvtest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/kv"
)

// This file tests what engines that are far away need: Look, Warm, Sweep, and several handles
// on one store.

const (
	// maxTimeDifference is how much an engine's time may differ from that of the machine of
	// the test: it is the same machine, or one with a clock that is set.
	maxTimeDifference = 10 * time.Second

	lookCommits = 100
	sweptRows   = 25_000 // more than an engine sweeps at a time
	sharedMoves = 100
)

func look(t testing.TB, db kv.DB, keys ...string) (values [][]byte, ms int64) {
	t.Helper()
	var all [][]byte
	for _, key := range keys {
		all = append(all, []byte(key))
	}
	values, ms, err := db.Look(context.Background(), all...)
	if err != nil {
		t.Fatalf("look: %v", err)
	}
	if len(values) != len(keys) {
		t.Fatalf("look at %d keys: got %d values", len(keys), len(values))
	}
	return values, ms
}

func testLook(t *testing.T, db kv.DB) {
	put(t, db, "a", "1", "empty", "")
	values, ms := look(t, db, "b", "a", "empty", "", "a")
	if values[0] != nil || string(values[1]) != "1" || values[2] == nil || len(values[2]) != 0 || values[3] != nil || string(values[4]) != "1" {
		t.Errorf("look: got %q", values)
	}
	copy(values[1], "X")
	if string(values[4]) != "1" {
		t.Error("two values of one look share memory")
	}
	if d := time.Since(time.UnixMilli(ms)).Abs(); d > maxTimeDifference {
		t.Errorf("the engine's time differs by %v from the machine's", d)
	}
	if values, _ = look(t, db); len(values) != 0 {
		t.Errorf("look at nothing but the time: got %q", values)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_, _, err := db.Look(ended, []byte("a"))
	wantError(t, "look with a context that has ended", err, context.Canceled)
}

// testLookFollows looks after each commit, while others look too: they see it, both halves.
func testLookFollows(t *testing.T, db kv.DB) {
	put(t, db, "left", "0", "right", "0")
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				values, _, err := db.Look(context.Background(), []byte("left"), []byte("right"))
				if err != nil || string(values[0]) != string(values[1]) {
					t.Errorf("look: got %q, %v, want two equal values", values, err)
					return
				}
			}
		})
	}
	for n := 1; n <= lookCommits; n++ {
		text := strconv.Itoa(n)
		put(t, db, "left", text, "right", text)
		if values, _ := look(t, db, "right"); string(values[0]) != text {
			t.Fatalf("look after commit %d: got %q", n, values[0])
		}
	}
	close(stop)
	wg.Wait()
}

func testWarm(t *testing.T, db kv.DB) {
	put(t, db, "a", "1", "b", "2", "empty", "")
	s := snapshot(t, db)
	defer s.Close()
	put(t, db, "a", "changed", "new", "")
	keys := [][]byte{[]byte("a"), []byte("none"), []byte("empty"), []byte("new"), {}, []byte("a")}
	for range 2 {
		if err := s.Warm(keys); err != nil {
			t.Fatalf("warm: %v", err)
		}
	}
	copy(keys[0], "X")
	for range 2 {
		wantGet(t, s, "a", []byte("1"))
		wantGet(t, s, "b", []byte("2"))
		wantGet(t, s, "empty", []byte{})
		wantGet(t, s, "none", nil)
		wantGet(t, s, "new", nil)
		wantGet(t, s, "", nil)
		wantGet(t, s, "X", nil)
		value, _, err := s.Get([]byte("a"))
		if err != nil {
			t.Fatal(err)
		}
		copy(value, "Y") // it is the caller's
	}
	if got := scan(t, s, nil, nil, kv.Forward); got != "a=1 b=2 empty=" {
		t.Errorf("a scan after Warm: %q", got)
	}
	if err := s.Warm(nil); err != nil {
		t.Errorf("warm nothing: %v", err)
	}
}

func testSweep(t *testing.T, db kv.DB) {
	ctx := context.Background()
	commit(t, db, func(b *kv.Batch) {
		for i := range sweptRows {
			b.Set(fmt.Appendf(nil, "swept%06d", i), []byte("x"))
		}
	})
	put(t, db, "swep", "1", "swept", "2", "swepu", "3")
	for range 2 {
		if err := db.Sweep(ctx, []byte("swept0"), []byte("swepu")); err != nil {
			t.Fatalf("sweep: %v", err)
		}
		wantContents(t, db, "swep=1 swept=2 swepu=3")
	}
	for _, bounds := range [][2]string{{"swep", "swep"}, {"z", "a"}, {"a", ""}} {
		if err := db.Sweep(ctx, []byte(bounds[0]), []byte(bounds[1])); err != nil {
			t.Errorf("sweep of nothing: %v", err)
		}
	}
	wantContents(t, db, "swep=1 swept=2 swepu=3")
	if err := db.Sweep(ctx, nil, []byte("swept")); err != nil {
		t.Errorf("sweep from the first key: %v", err)
	}
	wantContents(t, db, "swept=2 swepu=3")
	ended, cancel := context.WithCancel(ctx)
	cancel()
	wantError(t, "sweep with a context that has ended", db.Sweep(ended, nil, []byte("z")), context.Canceled)
	wantContents(t, db, "swept=2 swepu=3")
}

// RunShared checks an engine whose stores may be open more than once. Each call of open makes
// an empty store, and returns a function that opens one more handle on it. RunShared closes
// the handles.
func RunShared(t *testing.T, open func(t *testing.T) (another func() kv.DB)) {
	for name, test := range map[string]func(t *testing.T, a, b kv.DB){
		"two handles see each other's commits":  testHandles,
		"a stale owner writes nothing":          testStaleOwner,
		"a handle outlives another":             testOutlive,
		"nothing slips past a fence from afar":  testSharedFence,
		"all handles have about the same time":  testSharedTime,
		"a sweep holds for all handles at once": testSharedSweep,
	} {
		t.Run(name, func(t *testing.T) {
			another := open(t)
			a, b := another(), another()
			test(t, a, b)
			for _, db := range []kv.DB{a, b} {
				if err := db.Close(); err != nil && !errors.Is(err, kv.ErrClosed) {
					t.Errorf("close: %v", err)
				}
			}
		})
	}
}

func testHandles(t *testing.T, a, b kv.DB) {
	before := snapshot(t, b)
	defer before.Close()
	for n := range 20 {
		text := strconv.Itoa(n)
		put(t, a, "k", text)
		if values, _ := look(t, b, "k"); string(values[0]) != text {
			t.Fatalf("look by another handle: got %q, want %s", values[0], text)
		}
		wantContents(t, b, "k="+text)
		a, b = b, a
	}
	wantGet(t, before, "k", nil)
}

// testStaleOwner is how a partition changes hands: the new owner writes the owner row, and no
// commit of the old one that requires it happens afterwards, whatever it writes.
func testStaleOwner(t *testing.T, a, b kv.DB) {
	put(t, a, "owner", "a1")
	owned := func(db kv.DB, owner string, fill func(*kv.Batch)) error {
		return tryCommit(db, func(batch *kv.Batch) {
			batch.Require([]byte("owner"), []byte(owner))
			fill(batch)
		})
	}
	set := func(key, value string) func(*kv.Batch) {
		return func(b *kv.Batch) { b.Set([]byte(key), []byte(value)) }
	}
	if err := owned(a, "a1", set("item", "by a")); err != nil {
		t.Fatal(err)
	}
	if err := owned(b, "a1", set("owner", "b2")); err != nil {
		t.Fatal(err)
	}
	for name, fill := range map[string]func(*kv.Batch){
		"set":              set("item", "stale"),
		"create":           set("other", "stale"),
		"delete":           func(b *kv.Batch) { b.Delete([]byte("item"), 0) },
		"delete of absent": func(b *kv.Batch) { b.Delete([]byte("none"), 0) },
		"delete of range":  func(b *kv.Batch) { b.DeleteRange([]byte("a"), []byte("z")) },
		"lazy":             func(b *kv.Batch) { b.Lazy(); set("item", "stale")(b) },
		"nothing":          func(*kv.Batch) {},
	} {
		wantError(t, name+" by the stale owner", owned(a, "a1", fill), kv.ErrConflict)
	}
	if err := owned(b, "b2", set("more", "by b")); err != nil {
		t.Fatal(err)
	}
	wantContents(t, a, "item=by a more=by b owner=b2")
}

func testOutlive(t *testing.T, a, b kv.DB) {
	put(t, a, "k", "1")
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	wantContents(t, b, "k=1")
	put(t, b, "k", "2")
	wantContents(t, b, "k=2")
}

// testSharedFence is testFence with the mover on another handle than the writers.
func testSharedFence(t *testing.T, a, b kv.DB) {
	put(t, a, "fence", "0")
	moved := make(chan struct{})
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for {
				select {
				case <-moved:
					return
				default:
				}
				values, _, err := a.Look(context.Background(), []byte("fence"))
				if err != nil {
					t.Errorf("look: %v", err)
					return
				}
				err = tryCommit(a, func(b *kv.Batch) {
					b.Require([]byte("fence"), values[0])
					b.Set([]byte("guarded"), values[0])
				})
				if err != nil && !errors.Is(err, kv.ErrConflict) {
					t.Errorf("commit behind the fence: %v", err)
					return
				}
			}
		})
	}
	for n := 1; n <= sharedMoves; n++ {
		err := tryCommit(b, func(batch *kv.Batch) {
			batch.Set([]byte("fence"), strconv.AppendInt(nil, int64(n), 10))
			batch.Delete([]byte("guarded"), 0)
		})
		if err != nil {
			t.Errorf("move the fence: %v", err)
		}
		if got := contents(t, b); got != fmt.Sprintf("fence=%d", n) && got != fmt.Sprintf("fence=%d guarded=%d", n, n) {
			t.Errorf("a commit slipped past the fence: %s", got)
		}
	}
	close(moved)
	wg.Wait()
}

func testSharedTime(t *testing.T, a, b kv.DB) {
	for range 20 {
		_, first := look(t, a)
		_, second := look(t, b)
		if d := time.Duration(second-first) * time.Millisecond; d < 0 || d > maxTimeDifference {
			t.Fatalf("a later look by another handle: the time moved by %v", d)
		}
		a, b = b, a
	}
}

func testSharedSweep(t *testing.T, a, b kv.DB) {
	put(t, a, "k1", "", "k2", "", "l", "")
	if err := b.Sweep(context.Background(), []byte("k"), []byte("l")); err != nil {
		t.Fatal(err)
	}
	wantContents(t, a, "l=")
}
