// SPDX-License-Identifier: MIT

// Removing long ranges of rows that nothing reads any more: a container that was deleted,
// the rows of an earlier index, old events, and the beginning of the log.
//
// On an engine that is near, a range delete does it, in the commit that makes the rows
// unreachable. On one that is far away, that would be a transaction of millions of rows. So
// the commit writes a sweep row instead:
//
//	's' 'w' {lower} -> upper
//
// Whoever finds the row sweeps the range and then removes the row, also after a restart and
// on another node. No row that is needed may ever be written into such a range. Two rows
// with one lower bound are one: the later one is set in its place, and its range is longer.

package store

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"sort"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/kv"
)

// removeRange adds to b the removal of a long range of rows that nothing reads any more.
func removeRange(b *kv.Batch, far bool, lower, upper []byte) {
	if far {
		b.Set(append(bytes.Clone(catalog.SweepPrefix), lower...), upper)
	} else {
		b.DeleteRange(lower, upper)
	}
}

// sweeps returns the ranges that are to be swept, at most so many.
func sweeps(snap kv.Snapshot, most int) (ranges []kv.Range, err error) {
	for e, err := range snap.Scan(catalog.SweepPrefix, kv.After(catalog.SweepPrefix), kv.Forward) {
		if err != nil {
			return nil, err
		}
		if ranges = append(ranges, kv.Range{Lower: bytes.Clone(e.Key[len(catalog.SweepPrefix):]), Upper: bytes.Clone(e.Value)}); len(ranges) == most {
			break
		}
	}
	return ranges, nil
}

// sweepRows is how many sweep rows are read at a time.
const sweepRows = 1000

// Sweep sweeps the ranges that are to be swept, and returns how many there were. Those that
// ours refuses are left to another node.
func Sweep(ctx context.Context, db kv.DB, ours func(lower []byte) bool) (swept int, err error) {
	snap, err := db.Snapshot()
	if err != nil {
		return 0, err
	}
	ranges, err := sweeps(snap, sweepRows)
	snap.Close()
	for _, r := range ranges {
		if err != nil {
			break
		}
		if ours(r.Lower) {
			if err = sweepRange(ctx, db, r); err == nil {
				swept++
			}
		}
	}
	return swept, err
}

// sweepRange sweeps a range, and then removes its row. If the row has changed meanwhile, it
// stays, and is found again.
func sweepRange(ctx context.Context, db kv.DB, r kv.Range) error {
	if err := db.Sweep(ctx, r.Lower, r.Upper); err != nil {
		return err
	}
	key := append(bytes.Clone(catalog.SweepPrefix), r.Lower...)
	var b kv.Batch
	b.Require(key, r.Upper)
	b.Delete(key, len(r.Upper))
	if err := db.Commit(ctx, &b); !errors.Is(err, kv.ErrConflict) {
		return err
	}
	return nil
}

// WithoutSwept returns a view of the snapshot without the rows that are to be swept, and
// without sweep rows. Closing it closes the snapshot.
func WithoutSwept(snap kv.Snapshot) (kv.Snapshot, error) {
	ranges, err := sweeps(snap, -1)
	if err != nil || len(ranges) == 0 {
		return snap, err
	}
	// Ranges may overlap: each gets the highest upper bound of those before it and its own,
	// so that one look at the last range that begins at or before a key is enough.
	for i := 1; i < len(ranges); i++ {
		if before := ranges[i-1].Upper; bytes.Compare(ranges[i].Upper, before) < 0 {
			ranges[i].Upper = before
		}
	}
	return &withoutSwept{snap, ranges}, nil
}

type withoutSwept struct {
	kv.Snapshot
	ranges []kv.Range // in the order of their lower bounds, and of their upper ones
}

func (s *withoutSwept) hides(key []byte) bool {
	n := sort.Search(len(s.ranges), func(i int) bool { return bytes.Compare(s.ranges[i].Lower, key) > 0 })
	return n > 0 && bytes.Compare(key, s.ranges[n-1].Upper) < 0 || bytes.HasPrefix(key, catalog.SweepPrefix)
}

func (s *withoutSwept) Get(key []byte) ([]byte, bool, error) { return s.GetInto(nil, key) }

func (s *withoutSwept) GetInto(dst, key []byte) ([]byte, bool, error) {
	if s.hides(key) {
		return dst, false, nil
	}
	return s.Snapshot.GetInto(dst, key)
}

func (s *withoutSwept) Scan(lower, upper []byte, order kv.Order) iter.Seq2[kv.Entry, error] {
	return func(yield func(kv.Entry, error) bool) {
		for e, err := range s.Snapshot.Scan(lower, upper, order) {
			if (err != nil || !s.hides(e.Key)) && !yield(e, err) {
				return
			}
		}
	}
}
