// SPDX-License-Identifier: MIT

package pebblekv

import (
	"bytes"
	"errors"
	"iter"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"github.com/mayflydb/mayfly/internal/kv"
)

// snapshot implements kv.Snapshot.
type snapshot struct {
	db     *DB
	pebble *pebble.Snapshot
	closed atomic.Bool
	// getter and scanner are iterators for the next Get and the next Scan. Seeking with an
	// existing iterator takes a third of the time of making one. They keep the memtables and
	// tables of the snapshot alive, which is one more reason to close snapshots soon.
	getter, scanner idle
}

// idle holds an unused iterator, or none.
type idle struct {
	it atomic.Pointer[pebble.Iterator]
}

// take returns an iterator, or nil.
func (i *idle) take() *pebble.Iterator { return i.it.Swap(nil) }

// leave keeps an iterator for the next caller. It closes an iterator that has met an error,
// and returns that error; it also closes one if another is kept already.
func (i *idle) leave(it *pebble.Iterator) error {
	if it.Error() != nil || !i.it.CompareAndSwap(nil, it) {
		return it.Close()
	}
	return nil
}

// Get implements kv.Snapshot.
func (s *snapshot) Get(key []byte) (value []byte, found bool, err error) {
	value, found, err = s.GetInto([]byte{}, key)
	if !found {
		value = nil
	}
	return value, found, err
}

// GetInto implements kv.Snapshot. It uses an iterator because the engine's own Get
// does not ask the bloom filters of the last level, where most keys are, and so
// reads a block for every key that does not exist.
func (s *snapshot) GetInto(dst, key []byte) (value []byte, found bool, err error) {
	if s.isClosed() {
		return dst, false, kv.ErrClosed
	}
	if len(key) == 0 {
		return dst, false, nil
	}
	it := s.getter.take()
	if it == nil {
		if it, err = s.pebble.NewIter(&s.db.pointReads); err != nil {
			return dst, false, translate(err)
		}
	}
	value = dst
	// To the engine the whole key is its prefix, so only the key itself is found.
	if it.SeekPrefixGE(key) {
		var stored []byte
		if stored, err = it.ValueAndErr(); err == nil {
			value, found = append(dst, stored...), true
		}
	}
	if err := errors.Join(err, s.getter.leave(it)); err != nil {
		return dst, false, translate(err)
	}
	return value, found, nil
}

// Warm implements kv.Snapshot. Gets are cheap.
func (s *snapshot) Warm([][]byte) error {
	if s.isClosed() {
		return kv.ErrClosed
	}
	return nil
}

// Scan implements kv.Snapshot.
func (s *snapshot) Scan(lower, upper []byte, order kv.Order) iter.Seq2[kv.Entry, error] {
	nothing := upper != nil && bytes.Compare(lower, upper) >= 0
	lower, upper = cloneBounds(lower, upper)
	return func(yield func(kv.Entry, error) bool) {
		if s.isClosed() {
			yield(kv.Entry{}, kv.ErrClosed)
			return
		}
		if nothing {
			return
		}
		it := s.scanner.take()
		if it != nil {
			it.SetBounds(lower, upper)
		} else {
			var err error
			if it, err = s.pebble.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper}); err != nil {
				yield(kv.Entry{}, translate(err))
				return
			}
		}
		if more, err := s.walk(it, order, yield); err != nil && more {
			yield(kv.Entry{}, translate(err))
		}
	}
}

// cloneBounds copies both bounds. An empty lower bound becomes nil: the engine does not accept
// an empty one.
func cloneBounds(lower, upper []byte) (_, _ []byte) {
	room := append(append(make([]byte, 0, len(lower)+len(upper)), lower...), upper...)
	n := len(lower)
	if n > 0 {
		lower = room[:n:n]
	} else {
		lower = nil
	}
	if upper != nil {
		upper = room[n:]
	}
	return lower, upper
}

// walk yields every entry until the loop ends, and leaves the iterator. more reports whether
// the loop would go on.
func (s *snapshot) walk(it *pebble.Iterator, order kv.Order, yield func(kv.Entry, error) bool) (more bool, err error) {
	// Deferred, in case the loop's body panics.
	defer func() { err = s.scanner.leave(it) }()
	first, next := it.First, it.Next
	if order == kv.Reverse {
		first, next = it.Last, it.Prev
	}
	for valid := first(); valid; valid = next() {
		value, err := it.ValueAndErr()
		if err != nil {
			break
		}
		if !yield(kv.Entry{Key: it.Key(), Value: value}, nil) {
			return false, nil
		}
	}
	return true, nil
}

// Close implements kv.Snapshot.
func (s *snapshot) Close() {
	if s.closed.Swap(true) {
		return
	}
	s.db.life.RLock()
	defer s.db.life.RUnlock()
	if s.db.closed.Load() {
		return
	}
	var err error
	for _, it := range []*pebble.Iterator{s.getter.take(), s.scanner.take()} {
		if it != nil {
			err = errors.Join(err, it.Close())
		}
	}
	if err := errors.Join(err, s.pebble.Close()); err != nil {
		s.db.watch.log.Error("a snapshot could not be released", "error", err)
	}
}

func (s *snapshot) isClosed() bool { return s.closed.Load() || s.db.closed.Load() }
