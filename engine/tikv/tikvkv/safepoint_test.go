// SPDX-License-Identifier: MIT

package tikvkv

import (
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/kv"
)

// quickly collects old versions as soon as they are a moment old.
var quickly = collection{every: 20 * time.Millisecond, keep: time.Second, settle: 40 * time.Millisecond, sweepPieces: 1}

func safePoint(t *testing.T, db *DB) uint64 {
	t.Helper()
	point, err := db.store.GetPDClient().UpdateGCSafePoint(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	return point
}

// waitFor waits until a condition holds.
func waitFor(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited too long until %s", what)
		}
	}
}

// The safe point follows the time, but not past a snapshot that is still read.
func TestSafePointWaitsForSnapshots(t *testing.T) {
	open := newMock(t, quickly)
	db, other := open(), open()
	defer db.Close()
	if err := db.Commit(t.Context(), set("row", "old")); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the safe point moves", func() bool { return safePoint(t, db) > 0 })
	s, err := other.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	ts := s.(*snapshot).ts
	if err := db.Commit(t.Context(), set("row", "new")); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * quickly.wait()) // in which the safe point must not pass
	if point := safePoint(t, db); point > ts {
		t.Errorf("the safe point is %d, after the snapshot at %d", point, ts)
	}
	if value, _, err := s.Get([]byte("row")); err != nil || string(value) != "old" {
		t.Errorf("the snapshot shows %q, %v", value, err)
	}
	s.Close()
	waitFor(t, "the safe point passes", func() bool { return safePoint(t, db) > ts })
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
}

// One handle moves the safe point, and another does when that is gone.
func TestAnotherCollectorTakesOver(t *testing.T) {
	c := quickly
	c.every = 500 * time.Millisecond // a busy machine does not miss three rounds
	open := newMock(t, c)
	collector := func(db *DB) string {
		values, _, err := db.look(t.Context(), db.own, [][]byte{[]byte(leaderRow)})
		if err != nil {
			t.Fatal(err)
		}
		return string(values[0][:min(len(values[0]), len(db.id))])
	}
	first := open()
	waitFor(t, "the first handle collects", func() bool { return collector(first) == first.id })
	second := open()
	defer second.Close()
	for range 20 {
		if got := collector(second); got != first.id {
			t.Fatalf("beside the first handle, %s collects", got)
		}
		time.Sleep(c.every / 4)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the second handle collects", func() bool { return collector(second) == second.id })
	before := safePoint(t, second)
	waitFor(t, "the safe point moves on", func() bool { return safePoint(t, second) > before })
}

// Close does not wait for a sweep that waits for the safe point.
func TestCloseEndsALongSweep(t *testing.T) {
	c := defaultCollection
	c.sweepPieces = 1
	db := newMock(t, c)()
	var b kv.Batch
	for i := range sweepRows + 10 {
		b.Set([]byte{'k', byte(i >> 8), byte(i)}, nil)
	}
	if err := db.Commit(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	swept := make(chan error, 1)
	go func() { swept <- db.Sweep(t.Context(), []byte("k"), []byte("l")) }()
	waitFor(t, "the first piece is gone", func() bool {
		_, found, err := kv.Get(db, []byte{'k', 0, 0})
		return err == nil && !found
	})
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-swept; err == nil {
		t.Error("a sweep that was cut short returned nil")
	}
}
