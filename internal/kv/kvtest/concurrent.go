// SPDX-License-Identifier: MIT

package kvtest

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mayflydb/mayfly/internal/kv"
)

// This file tests the promises whose violation only several goroutines can see.

const (
	writers            = 8
	incrementsEach     = 25
	maxIncrementTries  = 10_000
	creationRounds     = 20
	fenceRounds        = 300
	pairsEach          = 40
	minSnapshotsOfPair = 50
)

// testCounter lets many goroutines read a counter, add one and commit under a Require,
// while others write without one: no increment may be lost.
func testCounter(t *testing.T, db kv.DB) {
	put(t, db, "counter", "0")
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range incrementsEach {
				if err := increment(db); err != nil {
					t.Errorf("increment: %v", err)
					return
				}
				err := tryCommit(db, func(b *kv.Batch) { b.Set(fmt.Appendf(nil, "blind-%d-%d", w, i), []byte("x")) })
				if err != nil {
					t.Errorf("blind commit: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
	s := snapshot(t, db)
	defer s.Close()
	wantGet(t, s, "counter", []byte(strconv.Itoa(writers*incrementsEach)))
	blind := 0
	for _, err := range s.Scan([]byte("blind-"), []byte("blind."), kv.Forward) {
		if err != nil {
			t.Fatalf("scan: %v", err)
		}
		blind++
	}
	if blind != writers*incrementsEach {
		t.Errorf("%d blind writes are there, want %d", blind, writers*incrementsEach)
	}
}

// increment adds one to the counter, and tries again as long as it meets conflicts.
func increment(db kv.DB) error {
	for range maxIncrementTries {
		s, err := db.Snapshot()
		if err != nil {
			return err
		}
		old, _, err := s.Get([]byte("counter"))
		s.Close()
		if err != nil {
			return err
		}
		n, err := strconv.Atoi(string(old))
		if err != nil {
			return err
		}
		err = tryCommit(db, func(b *kv.Batch) {
			b.Require([]byte("counter"), old)
			b.Set([]byte("counter"), []byte(strconv.Itoa(n+1)))
		})
		if !errors.Is(err, kv.ErrConflict) {
			return err
		}
	}
	return fmt.Errorf("no success in %d tries", maxIncrementTries)
}

func testOneCreator(t *testing.T, db kv.DB) {
	for round := range creationRounds {
		key := fmt.Appendf(nil, "created-%d", round)
		var wins, conflicts atomic.Int32
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				err := tryCommit(db, func(b *kv.Batch) {
					b.RequireAbsent(key)
					b.Set(key, strconv.AppendInt(nil, int64(w), 10))
				})
				switch {
				case err == nil:
					wins.Add(1)
				case errors.Is(err, kv.ErrConflict):
					conflicts.Add(1)
				default:
					t.Errorf("commit: %v", err)
				}
			})
		}
		wg.Wait()
		if wins.Load() != 1 || conflicts.Load() != writers-1 {
			t.Fatalf("round %d: %d creators won and %d met a conflict, want 1 and %d",
				round, wins.Load(), conflicts.Load(), writers-1)
		}
	}
}

// testFence has writers that write the number of a fence under a Require of it. Another
// writer moves the fence without a Require and removes what they wrote: no commit that
// required the old fence may come after the new one.
func testFence(t *testing.T, db kv.DB) {
	fence, guarded := []byte("fence"), []byte("guarded")
	put(t, db, "fence", "0")
	var at atomic.Int64
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for n := at.Load(); n < fenceRounds; n = at.Load() {
				number := strconv.AppendInt(nil, n, 10)
				err := tryCommit(db, func(b *kv.Batch) {
					b.Require(fence, number)
					b.Set(guarded, number)
				})
				if err != nil && !errors.Is(err, kv.ErrConflict) {
					t.Errorf("commit behind the fence: %v", err)
					return
				}
			}
		})
	}
	for n := int64(1); n <= fenceRounds; n++ {
		number := strconv.AppendInt(nil, n, 10)
		err := tryCommit(db, func(b *kv.Batch) {
			b.Set(fence, number)
			b.Delete(guarded, len(number))
		})
		if err != nil {
			t.Errorf("move the fence: %v", err)
		}
		if got := contents(t, db); got != fmt.Sprintf("fence=%d", n) && got != fmt.Sprintf("fence=%d guarded=%d", n, n) {
			t.Errorf("a commit slipped past the fence: %s", got)
		}
		at.Store(n)
	}
	wg.Wait()
}

// testSeenWhole has writers that set two keys of their own to the same number,
// growing, while snapshots are taken: each must show both halves of a commit,
// and every commit that had returned before.
func testSeenWhole(t *testing.T, db kv.DB) {
	var returned [writers]atomic.Int64
	var wg sync.WaitGroup
	var writing atomic.Int32
	writing.Store(writers)
	for w := range writers {
		wg.Go(func() {
			defer writing.Add(-1)
			for i := int64(1); i <= pairsEach; i++ {
				err := tryCommit(db, func(b *kv.Batch) {
					b.Set(pairKey(w, "left"), strconv.AppendInt(nil, i, 10))
					b.Set(pairKey(w, "right"), strconv.AppendInt(nil, i, 10))
				})
				if err != nil {
					t.Errorf("commit: %v", err)
					return
				}
				returned[w].Store(i)
			}
		})
	}
	for taken := 0; writing.Load() > 0 || taken < minSnapshotsOfPair; taken++ {
		var floor [writers]int64
		for w := range floor {
			floor[w] = returned[w].Load()
		}
		checkPairs(t, db, floor[:])
	}
	wg.Wait()
}

func checkPairs(t *testing.T, db kv.DB, floor []int64) {
	s := snapshot(t, db)
	defer s.Close()
	for w, least := range floor {
		left, foundLeft, err := s.Get(pairKey(w, "left"))
		if err != nil {
			t.Fatalf("get: %v", err)
		}
		right, foundRight, err := s.Get(pairKey(w, "right"))
		if err != nil {
			t.Fatalf("get: %v", err)
		}
		if foundLeft != foundRight || string(left) != string(right) {
			t.Fatalf("writer %d: half of a commit is visible: left %q, right %q", w, left, right)
		}
		if n, _ := strconv.ParseInt(string(left), 10, 64); n < least {
			t.Fatalf("writer %d: a snapshot shows %d although commit %d had returned", w, n, least)
		}
	}
}

func pairKey(writer int, half string) []byte { return fmt.Appendf(nil, "pair-%d-%s", writer, half) }
