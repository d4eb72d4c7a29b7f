// SPDX-License-Identifier: MIT

// Partitions on a shared engine, which several processes use at once. Only the owner of a
// partition opens it, and holds a lease of it: the bytes of its owner row. Every commit
// requires them, so that an owner that was replaced cannot write. It notices that by a
// commit that fails, or by a snapshot in which the owner row is another, and closes itself.
//
// The engine is another process, so a commit may also fail without an effect, or with an
// unknown one. In the first case the group did not happen, and the partition goes on. In the
// second case it renews its lease first: from then on the lost commit cannot happen any
// more. Then one snapshot tells whether it did: the meta row counts commits.

package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/kv"
)

// ErrUnknown: the storage engine did not say whether it did the write, and it could not be
// found out.
var ErrUnknown = errors.New("whether the write was done is not known")

// Lease is the right to serve a partition on a shared engine.
type Lease struct {
	// Key and Fence are the owner row, which every commit of the partition requires.
	Key, Fence []byte
	// OpenedMs is the opening moment: the partition never looks at its items at an earlier
	// time, since an earlier owner may have seen them expire.
	OpenedMs int64
}

// OwnerKey returns the key of a partition's owner row. Other packages write the row.
func OwnerKey(c catalog.ContainerRID, index int) []byte {
	p := partitionPrefix(c, index)
	return append(p[:], ownerSpace)
}

// IsOwnerKey reports whether a key is that of an owner row.
func IsOwnerKey(key []byte) bool {
	return len(key) == prefixBytes+1 && key[0] == partitionTag && key[prefixBytes] == ownerSpace
}

const (
	// renewTime bounds how long a lease is renewed.
	renewTime = 10 * time.Second
	// snapshotTries is how often a snapshot is taken again because the engine broke it, or
	// because a commit came in between.
	snapshotTries = 3
	// brokenMost is how many snapshots a view uses up, which it keeps until it ends.
	brokenMost = 16
)

// lease is what a partition on a shared engine has in addition to others.
type lease struct {
	// held is nil if the engine is not shared.
	held  atomic.Pointer[Lease]
	renew func(ctx context.Context) (*Lease, error)
	lost  func(error)
	// openedMs is 0 if the engine is not shared.
	openedMs atomic.Int64
	losing   sync.Once
	// taking is held while a snapshot is taken, so that many readers take one.
	taking sync.Mutex
}

func (l *lease) hold(held *Lease) {
	if held != nil {
		l.held.Store(held)
		l.openedMs.Store(max(l.openedMs.Load(), held.OpenedMs))
	}
}

// shared reports whether the engine is shared.
func (l *lease) shared() bool { return l.held.Load() != nil }

// notBefore returns the moment of a request, or the opening moment if that is later.
func (l *lease) notBefore(nowMs int64) int64 { return max(nowMs, l.openedMs.Load()) }

// time returns the time.
func (p *Partition) time() int64 { return p.notBefore(p.clock.Now()) }

// moment returns the moment of a group.
func (p *Partition) moment() moment {
	nowMs, writeMs := p.clock.NowAndWrite()
	step := writeMs - nowMs
	nowMs = p.notBefore(nowMs)
	return moment{nowMs, nowMs + step}
}

// undoneError: the engine refused a commit of the group, and nothing was written.
type undoneError struct{ cause error }

func (e *undoneError) Error() string { return "nothing was written: " + e.cause.Error() }

func (e *undoneError) Unwrap() error { return e.cause }

// fenced commits the writer's batch if the lease still holds. The error is an undoneError if
// nothing was written. After any other one the partition must close.
func (w *writer) fenced(held *Lease) error {
	p := w.p
	w.batch.Require(held.Key, held.Fence)
	p.mu.Lock()
	p.mu.sending = true
	p.mu.sends++
	p.mu.Unlock()
	err := p.db.Commit(context.Background(), w.batch)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, kv.ErrConflict):
		return fmt.Errorf("%w: its owner row has changed", ErrClosed)
	case errors.Is(err, kv.ErrUnavailable), errors.Is(err, kv.ErrLimit):
		return &undoneError{err}
	}
	return w.resolve(err)
}

// resolve finds out whether the last commit happened, whose outcome is unknown. It returns
// as fenced does. Its errors do not wrap their causes, which are not about the write.
func (w *writer) resolve(cause error) error {
	p := w.p
	ctx, cancel := context.WithTimeout(context.Background(), renewTime)
	defer cancel()
	held, err := p.lease.renew(ctx)
	if err != nil {
		return fmt.Errorf("%w: %v; the lease could not be renewed: %v", ErrUnknown, cause, err)
	}
	p.hold(held)
	m, err := p.ownMeta()
	switch {
	case err != nil:
		return fmt.Errorf("%w: %v; the partition could not be read: %v", ErrUnknown, cause, err)
	case m.Commits == w.meta.Commits:
		return nil
	case m.Commits+1 == w.meta.Commits:
		return &undoneError{fmt.Errorf("%w: %v", kv.ErrUnavailable, cause)}
	}
	return fmt.Errorf("%w: %v; the partition has %d commits instead of %d", ErrUnknown, cause, m.Commits, w.meta.Commits)
}

// ownMeta returns the meta row as it is under the present lease.
func (p *Partition) ownMeta() (m meta, err error) {
	for range snapshotTries {
		var snap kv.Snapshot
		if snap, err = p.snapshot(); err == nil {
			m, _, err = stored{snap, &p.prefix}.readMeta(p.index)
			snap.Close()
		}
		if !errors.Is(err, kv.ErrUnavailable) {
			break
		}
	}
	return m, err
}

// errNotOwner: a snapshot shows another owner row. It is ErrClosed for callers.
var errNotOwner = fmt.Errorf("%w: another node owns it", ErrClosed)

// snapshot returns a snapshot of the engine as it is now. On a shared engine, the error is
// errNotOwner if the partition has another owner in it. So if no commit of this one is under
// way, the snapshot shows exactly the published state.
func (p *Partition) snapshot() (kv.Snapshot, error) {
	snap, err := p.db.Snapshot()
	held := p.held.Load()
	if err != nil || held == nil {
		return snap, err
	}
	fence, found, err := snap.Get(held.Key)
	if err == nil && (!found || !bytes.Equal(fence, held.Fence)) {
		err = errNotOwner
	}
	if err != nil {
		snap.Close()
		return nil, err
	}
	return snap, nil
}

// takeLocked gives the partition a view of the published state. On a shared engine it
// releases p.mu while it waits for the engine.
func (p *Partition) takeLocked() error {
	if !p.shared() {
		// There is no group under way, since that would keep the view. So the snapshot has
		// only durable rows.
		snap, err := p.snapshot()
		if err == nil {
			p.mu.view = p.newView(snap)
		}
		return err
	}
	p.mu.Unlock()
	p.taking.Lock()
	p.mu.Lock()
	defer p.taking.Unlock()
	if p.mu.closed {
		return ErrClosed
	}
	if p.mu.view != nil {
		return nil
	}
	snap, err := p.presentLocked(p.mu.now.number)
	switch {
	case err != nil:
		return err
	case p.mu.view != nil: // the loop has published another state meanwhile
		snap.Close()
	default:
		p.mu.view = p.newView(snap)
	}
	return nil
}

// presentLocked returns a snapshot that shows exactly the published state, if its number is
// still the given one. It releases p.mu while it waits for the engine.
func (p *Partition) presentLocked(number uint64) (kv.Snapshot, error) {
	for range snapshotTries {
		if p.mu.closed {
			return nil, ErrClosed
		}
		if p.mu.sending || p.mu.now.number != number {
			break
		}
		sends := p.mu.sends
		p.mu.Unlock()
		snap, err := p.snapshot()
		p.mu.Lock()
		if p.mu.sends == sends {
			if errors.Is(err, errNotOwner) {
				p.mu.closed = true
				p.lose(err)
			}
			return snap, err
		}
		if err == nil {
			snap.Close() // it may show a commit that is not published
		}
	}
	return nil, fmt.Errorf("the state that is read is not the last one, or is about to change: %w", kv.ErrUnavailable)
}

// newView returns a view of the published state; p.mu is held.
func (p *Partition) newView(snap kv.Snapshot) *view {
	if p.shared() {
		s := &sharedSnapshot{p: p, number: p.mu.now.number}
		s.mu.all = []kv.Snapshot{snap}
		s.now.Store(&s.mu.all[0])
		snap = s
	}
	return &view{published: p.mu.now, stored: stored{snap, &p.prefix}, refs: 1}
}

// lose closes the partition, which is no longer, or may not be, the one that may write.
func (p *Partition) lose(err error) {
	p.losing.Do(func() {
		p.stopLoop()
		go func() {
			p.Close()
			if p.lost != nil {
				p.lost(err)
			}
		}()
	})
}

// before is what a group may have to be taken back to.
type before struct {
	state   state
	marked  marks
	dropOld bool
}

func (w *writer) before() before { return before{w.group.state, w.marked, w.dropOld} }

// takeBack takes back a group that did not happen.
func (w *writer) takeBack(b before) {
	w.group.state, w.marked, w.dropOld = b.state, b.marked, b.dropOld
	clear(w.counters.cached)
	clear(w.totals.cached)
	w.totals.forgotten = w.meta.LSN
	w.reset()
}

// refused ends a group whose commit failed on a shared engine, and answers its jobs. It
// returns the others if the partition goes on. Otherwise it returns the error.
func (p *Partition) refused(v *view, group, rest []*job, b before, err error) ([]*job, error) {
	var undone *undoneError
	if errors.As(err, &undone) {
		p.writer.takeBack(b)
		p.endGroup(v, nil)
		_ = answer(group, err)
		return rest, nil
	}
	p.shut()
	p.endGroup(v, nil)
	_ = answer(group, err)
	_ = answer(rest, ErrClosed)
	return nil, err
}

// sharedSnapshot is the snapshot of a view on a shared engine. If the engine breaks it, it
// goes on with another snapshot of the same state, if there is one.
type sharedSnapshot struct {
	p      *Partition
	number uint64 // of the published state that it shows
	now    atomic.Pointer[kv.Snapshot]
	// mu comes before Partition.mu. Close, under which Partition.mu is held, has it alone.
	mu struct {
		sync.Mutex
		all []kv.Snapshot // the last one is the present one
	}
}

// again returns another snapshot in place of the one that failed with cause.
func (s *sharedSnapshot) again(broken *kv.Snapshot, cause error) (*kv.Snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.now.Load(); now != broken {
		return now, nil
	}
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	if len(s.mu.all) == brokenMost {
		if s.p.mu.view != nil && s.p.mu.view.snap == s {
			s.p.drop() // the next reader takes a new view
		}
		return nil, cause
	}
	snap, err := s.p.presentLocked(s.number)
	if err != nil {
		return nil, err
	}
	s.mu.all = append(s.mu.all, snap)
	s.now.Store(&snap)
	return &snap, nil
}

// do reads from the snapshot, again if the engine broke it.
func (s *sharedSnapshot) do(read func(kv.Snapshot) error) error {
	now := s.now.Load()
	for try := 1; ; try++ {
		err := read(*now)
		if !errors.Is(err, kv.ErrUnavailable) || try == snapshotTries {
			return err
		}
		if now, err = s.again(now, err); err != nil {
			return err
		}
	}
}

func (s *sharedSnapshot) Get(key []byte) (value []byte, found bool, err error) {
	err = s.do(func(snap kv.Snapshot) (err error) {
		value, found, err = snap.Get(key)
		return err
	})
	return value, found, err
}

func (s *sharedSnapshot) GetInto(dst, key []byte) (value []byte, found bool, err error) {
	err = s.do(func(snap kv.Snapshot) (err error) {
		value, found, err = snap.GetInto(dst, key)
		return err
	})
	return value, found, err
}

func (s *sharedSnapshot) Warm(keys [][]byte) error {
	return s.do(func(snap kv.Snapshot) error { return snap.Warm(keys) })
}

func (s *sharedSnapshot) Scan(lower, upper []byte, order kv.Order) iter.Seq2[kv.Entry, error] {
	lower, upper = bytes.Clone(lower), bytes.Clone(upper)
	return func(yield func(kv.Entry, error) bool) {
		from, to := lower, upper
		ended := false
		err := s.do(func(snap kv.Snapshot) error {
			var last []byte
			for e, err := range snap.Scan(from, to, order) {
				if err != nil {
					switch {
					case last == nil:
					case order == kv.Reverse:
						to = last
					default:
						from = append(last, 0)
					}
					return err
				}
				last = append(last[:0], e.Key...)
				if ended = !yield(e, nil); ended {
					return nil
				}
			}
			return nil
		})
		if err != nil && !ended {
			yield(kv.Entry{}, err)
		}
	}
}

func (s *sharedSnapshot) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, snap := range s.mu.all {
		snap.Close()
	}
}
