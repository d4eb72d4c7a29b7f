// SPDX-License-Identifier: MIT

package store

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/index"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/kv/kvtest"
	"github.com/mayflydb/mayfly/internal/value"
)

// farDB is an engine that is far away. It counts round trips as an engine has them: a scan
// takes one for its first 16 rows, one for the next 64, and one for every 256 that follow.
type farDB struct {
	kv.DB
	trips atomic.Int64
}

func (db *farDB) Far() bool { return true }

func (db *farDB) Snapshot() (kv.Snapshot, error) {
	db.trips.Add(1)
	snap, err := db.DB.Snapshot()
	return &farSnapshot{Snapshot: snap, db: db, warm: map[string]bool{}}, err
}

func (db *farDB) Commit(ctx context.Context, b *kv.Batch) error {
	db.trips.Add(1)
	return db.DB.Commit(ctx, b)
}

type farSnapshot struct {
	kv.Snapshot
	db   *farDB
	warm map[string]bool // the tests read one thing at a time
}

func (s *farSnapshot) Warm(keys [][]byte) error {
	s.db.trips.Add(1)
	for _, key := range keys {
		s.warm[string(key)] = true
	}
	return nil
}

func (s *farSnapshot) count(key []byte) {
	if !s.warm[string(key)] {
		s.db.trips.Add(1)
	}
}

func (s *farSnapshot) Get(key []byte) ([]byte, bool, error) {
	s.count(key)
	return s.Snapshot.Get(key)
}

func (s *farSnapshot) GetInto(dst, key []byte) ([]byte, bool, error) {
	s.count(key)
	return s.Snapshot.GetInto(dst, key)
}

func (s *farSnapshot) Scan(lower, upper []byte, o kv.Order) iter.Seq2[kv.Entry, error] {
	return func(yield func(kv.Entry, error) bool) {
		s.db.trips.Add(1)
		n, page := 0, 16
		for e, err := range s.Snapshot.Scan(lower, upper, o) {
			if n == page {
				s.db.trips.Add(1)
				n, page = 0, min(4*page, 256)
			}
			n++
			if !yield(e, err) {
				return
			}
		}
	}
}

// Over an engine that is far away, what reads many items takes few round trips.
func TestRoundTrips(t *testing.T) {
	const items = 300
	far := &farDB{DB: kvtest.NewModel()}
	f := newFixtureOn(t, far, withTTL("100"))
	var ops []Write
	for i := range items {
		ops = append(ops, f.item(Create, fmt.Sprintf("%03d", i), fmt.Sprintf(`"n":%d`, i%3)))
	}
	_, err := f.p.WriteAll(context.Background(), ops)
	f.must(err)
	k := f.logical("k")
	trips := func(what string, most int64, do func() error) {
		t.Helper()
		f.p.Close()
		f.budget = NewCacheBudget(CacheSizes{}) // nothing is in memory
		f.open()
		before := far.trips.Load()
		if err := do(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		got := far.trips.Load() - before
		t.Logf("%s: %d round trips", what, got)
		if got > most {
			t.Errorf("%s: got %d round trips, want at most %d", what, got, most)
		}
	}
	trips("a page of 100 items by an index", 10, func() error {
		r, err := f.p.NewReader(f.clock.Now())
		if err != nil {
			return err
		}
		defer r.Close()
		n := 0
		for hit, err := range r.Index(IndexScan{Path: index.Path{index.Property("n")}, Values: index.Exactly(value.Number(1)), Visits: true}) {
			if err != nil {
				return err
			}
			if _, live, err := r.Visit(hit.Ordinal); err != nil || !live {
				return fmt.Errorf("item %d: live %v, %w", hit.Ordinal, live, err)
			}
			n++
		}
		if n != items/3 {
			return fmt.Errorf("got %d items, want %d", n, items/3)
		}
		return nil
	})
	trips("a list of a partition key", 12, func() error {
		page, err := f.p.List(context.Background(), List{Within: &k, MaxItems: 100, MaxBytes: 1 << 20}, f.clock.Now())
		if err == nil && page.Count != 100 {
			err = fmt.Errorf("got %d items", page.Count)
		}
		return err
	})
	trips("a page of the feed", 12, func() error {
		page, err := f.p.Changes(context.Background(), Changes{MaxItems: 100, MaxBytes: 1 << 20}, f.clock.Now())
		if err == nil && page.Count != items { // one lsn
			err = fmt.Errorf("got %d items", page.Count)
		}
		return err
	})
	trips("a group of 50 replaces", 9, func() error {
		var ops []Write
		for i := range 50 {
			ops = append(ops, f.item(Replace, fmt.Sprintf("%03d", i), `"n":7`))
		}
		_, err := f.p.WriteAll(context.Background(), ops)
		return err
	})
	trips("a group of 50 creates", 6, func() error {
		var ops []Write
		for i := range 50 {
			ops = append(ops, f.item(Create, fmt.Sprintf("new%03d", i), ""))
		}
		_, err := f.p.WriteAll(context.Background(), ops)
		return err
	})
	f.advance(200 * time.Second)
	trips("a page of events", 20, func() error {
		page, err := f.p.Events(EventKey{}, 100)
		if err == nil && len(page.Events) != 100 {
			err = fmt.Errorf("got %d events", len(page.Events))
		}
		return err
	})
	trips("a purge of 100 items", 20, func() error {
		done, err := f.p.Purge(context.Background(), Purge{MaxItems: 100})
		if err == nil && done.Items != 100 {
			err = errors.New("nothing was purged")
		}
		return err
	})
	f.checkClean()
}
