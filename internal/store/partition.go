// SPDX-License-Identifier: MIT

// Package store keeps a partition: its items, their expiry order, their change feed and
// their counters. It hides expired items from all callers. It knows nothing of HTTP or of
// other partitions.
//
// Invariants:
//
//  1. A partition has one writer, its loop (loop.go). All other code reads the state that
//     the loop has published, which is durable.
//  2. All rows of an item change in one batch (rows.go).
//  3. Whether an item is expired is decided in one place (expiry.go), at one moment per
//     request.
//  4. LSNs are dense and grow in commit order, and writtenMs never decreases with them.
package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/index"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/ru"
)

var (
	// ErrNotFound: the item does not exist, or has expired.
	ErrNotFound = errors.New("no such item")
	// ErrExists: an item with this id and partition key exists.
	ErrExists = errors.New("an item with this id exists")
	// ErrNotUnique: another item holds a unique key of the item.
	ErrNotUnique = errors.New("another item has the same unique key")
	// ErrPrecondition: the item's etag does not meet the condition.
	ErrPrecondition = errors.New("the item has changed")
	// ErrNotModified: the item's etag is the one in IfNoneMatch.
	ErrNotModified = errors.New("the item has not changed")
	// ErrClosed: the partition is closed, because its container was dropped or the database
	// is closing.
	ErrClosed = errors.New("the partition is closed")
	// ErrFailed: an earlier commit failed. No write can be acknowledged until the data is
	// opened again.
	ErrFailed = errors.New("the partition stopped after a failed commit")
	// ErrChanged: the logical partition has changed since it was read.
	ErrChanged = errors.New("the logical partition has changed")
	// ErrTooMuch: the writes of a WriteAll, or the items that it reads, are too large for
	// one commit.
	ErrTooMuch = errors.New("too much for one commit")
	// ErrTooManyTerms: the item has too much to index.
	ErrTooManyTerms = index.ErrTooManyTerms
	// ErrBusy: the container's settings kept changing while the write was being prepared.
	ErrBusy = errors.New("the container's settings keep changing")
)

const (
	// ordinalShift leaves 48 bits for counting a partition's items. The bits above hold the
	// partition's index, so that rids are unique in a container.
	ordinalShift = 48
)

// FirstOrdinal returns a number below all ordinals of a partition.
func FirstOrdinal(partition int) uint64 { return uint64(partition) << ordinalShift }

// PartitionOf returns the partition of the item with the given ordinal.
func PartitionOf(ordinal uint64) int { return int(ordinal >> ordinalShift) }

// Options are what Open needs.
type Options struct {
	DB        kv.DB
	Clock     *clock.Clock
	Container *catalog.Container
	Index     int
	// Cache is the memory for caches; nil caches nothing.
	Cache *CacheBudget
	// Quotas limit what is stored.
	Quotas Quotas
	// Ledger receives the work that the partition does without a request; nil drops it.
	Ledger *ru.Ledger
	// Failed is called once if a commit fails. None of its writes was acknowledged, and no
	// later write will be. On a shared engine Lost is called instead.
	Failed func(error)

	// Lease is set on a shared engine.
	Lease *Lease
	// Renew changes the owner row to one that no earlier commit requires, and returns the new
	// lease. The partition calls it after a commit whose outcome is unknown.
	Renew func(ctx context.Context) (*Lease, error)
	// Lost is called once, on a goroutine of its own, when the partition has found that it is
	// no longer its owner, or cannot know what was committed. By then it is closed. It may
	// be called before Open returns.
	Lost func(error)
}

// Partition is one physical partition of a container.
type Partition struct {
	db     kv.DB
	far    bool // the engine is
	clock  *clock.Clock
	index  int
	prefix prefix
	failed func(error)
	ledger *ru.Ledger
	lease
	// incarnation is a new random number whenever the partition is opened. openedAt is its
	// lsn at that time.
	incarnation uint8
	openedAt    uint64

	queue chan *job
	// background is the queue of tasks: purges, removals, expiries to be logged, index rows
	// and rewinds.
	background chan *job
	stop       chan struct{}
	ended      chan struct{}
	closed     sync.Once
	debt       debt
	returning  returning

	writer writer     // only the loop uses it
	turn   sync.Mutex // held while a purge or index rows are planned and committed

	touches touches

	rowBuffers sync.Pool // of *rowBuffer
	rows       itemRows

	// forgottenMs is the time before which events have no identities (forget.go).
	forgottenMs atomic.Int64

	mu struct {
		sync.Mutex
		now  *published
		view *view // of now; nil while the partition is idle

		// The following fields are derived from the published state; see follow.
		expiredCount expiredCount
		// soonestMs is when the next item may be purged, or earlier.
		soonestMs int64
		// kept limits the events.
		kept keptEvents
		// groupMs is the moment of the group under way; never if there is none.
		groupMs int64
		tracked map[string]*trackedPath // by encoded path
		// tallies has the expired bytes of full logical partitions, by the start of their
		// identities.
		tallies map[string]tally
		// writing: a group is under way, or has ended with a commit whose outcome is
		// unknown. Its rows may be in the engine without being durable, so no new snapshot
		// may be taken.
		writing bool
		// sending: on a shared engine, a commit was sent whose outcome is not published yet.
		// sends counts commits.
		sending bool
		sends   uint64
		used    bool // since the last ReleaseIdle
		spans   spanCache
		// journal has what has changed since a split began; nil if there is none.
		journal *journal
		closed  bool
	}
}

// published is the state of a partition after a commit. It never changes: the next commit
// makes a new one.
type published struct {
	container *catalog.Container
	meta      meta
	rules     rules // of meta
	// number counts publications since the partition was opened, from 1. The lsn does not:
	// purge leaves it as it is.
	number uint64
	// purged is the expired items that were removed or undeleted since the partition was
	// opened.
	purged Amount
}

// view is a published state with a snapshot of its rows.
type view struct {
	*published
	stored
	refs  int // guarded by Partition.mu; Partition.mu.view counts as one
	sizes logicalSizes
}

// Open opens a partition and starts its loop. The caller closes it.
func Open(o Options) (*Partition, error) {
	p, under, err := open(o)
	if err == nil {
		if err = p.resume(under); err != nil {
			p.Close()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open partition %d of container %q: %w", o.Index, o.Container.ID, err)
	}
	return p, nil
}

// open opens a partition. It returns the removals that were under way when it was last
// closed.
func open(o Options) (*Partition, []*removal, error) {
	p := &Partition{
		db:         o.DB,
		far:        o.DB.Far(),
		clock:      o.Clock,
		index:      o.Index,
		prefix:     partitionPrefix(o.Container.RID, o.Index),
		failed:     o.Failed,
		ledger:     cmp.Or(o.Ledger, &ru.Ledger{}),
		queue:      make(chan *job, queueJobs),
		background: make(chan *job),
		stop:       make(chan struct{}),
		ended:      make(chan struct{}),
	}
	p.debt.owes, p.debt.lifted, p.debt.mu.step = make(chan struct{}, 1), make(chan struct{}, 1), debtStep
	p.lease.renew, p.lost = o.Renew, o.Lost
	p.hold(o.Lease)
	snap, err := p.snapshot()
	if err != nil {
		return nil, nil, err
	}
	defer snap.Close()
	s := stored{snap, &p.prefix}
	m, found, err := s.readMeta(p.index)
	if err != nil {
		return nil, nil, err
	}
	under, err := p.removals(snap)
	if err != nil {
		return nil, nil, err
	}
	// Settings that the partition does not have yet were changed by a call that did not
	// return. So they may as well change now.
	generation, epoch := m.Generation, m.Epoch
	m.adopt(o.Container, p.time())
	w := &p.writer
	*w = writer{p: p, quotas: o.Quotas, dropOld: found && generation != m.Generation, totals: logicalTotals{forgotten: m.LSN}}
	w.init()
	w.meta, w.marked = m, m.Marks
	if w.log.state, w.log.on, err = s.logState(); err != nil {
		return nil, nil, err
	}
	w.log.adopt(o.Container, &w.meta)
	if found && epoch != m.Epoch {
		// Readers will use these settings at once, so what they make final must be durable.
		err := w.finish()
		if errors.Is(err, ErrUnknown) {
			err = fmt.Errorf("%w: %w", ErrClosed, err) // no client waits for an answer
		}
		if err != nil {
			return nil, nil, err
		}
		m = w.meta
		p.mu.sending = false
	}
	p.incarnation, p.openedAt = newIncarnation(), m.LSN
	p.mu.now = &published{container: o.Container, meta: m, rules: m.rules(), number: 1}
	p.mu.groupMs = never
	p.mu.spans.budget = o.Cache
	if o.Cache != nil {
		p.rows = itemRows{o.Cache.items, o.Cache.items.Owner(), []int{o.Index}}
		if i := o.Container.PositionOf(o.Index); i >= 0 {
			p.rows.line = append(p.rows.line, o.Container.Ranges[i].Parents...)
		}
	}
	p.mu.kept.most = KeptEvents
	p.returning.init()
	go p.loop()
	return p, under, nil
}

// Close stops the loop after the group under way, and refuses the jobs that wait.
func (p *Partition) Close() {
	p.stopLoop()
	<-p.ended
	p.shut()
}

// stopLoop ends the loop, after the group under way.
func (p *Partition) stopLoop() { p.closed.Do(func() { close(p.stop) }) }

// shut makes all further requests fail with ErrClosed.
func (p *Partition) shut() {
	p.stopLoop()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.closed = true
	p.drop()
	p.mu.spans.empty()
}

// Closed reports whether the partition takes no requests any more.
func (p *Partition) Closed() bool {
	select {
	case <-p.stop:
		return true
	default:
		return false
	}
}

// acquire returns the published view, with a new snapshot if the partition was idle. The
// caller releases it.
func (p *Partition) acquire() (*view, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.acquireLocked()
}

func (p *Partition) acquireLocked() (*view, error) {
	if p.mu.closed {
		return nil, ErrClosed
	}
	p.mu.used = true
	if p.mu.view == nil {
		if err := p.takeLocked(); err != nil {
			return nil, err
		}
	}
	p.mu.view.refs++
	return p.mu.view, nil
}

// beginGroup acquires the view for a group of writes, and keeps it published until the
// group ends. It returns the group's moment.
func (p *Partition) beginGroup() (*view, moment, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	v, err := p.acquireLocked()
	if err != nil {
		return nil, moment{}, err
	}
	p.mu.writing = true
	at := p.moment()
	p.mu.groupMs = at.nowMs
	return v, at, nil
}

// endGroup releases the view. After a failed commit the view stays published for good.
func (p *Partition) endGroup(v *view, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.writing, p.mu.sending = err != nil, false
	p.mu.groupMs = never
	v.unref()
}

func (p *Partition) release(v *view) {
	p.mu.Lock()
	defer p.mu.Unlock()
	v.unref()
}

func (v *view) unref() {
	v.refs--
	if v.refs == 0 {
		v.snap.Close()
	}
}

// drop releases the published view; p.mu is held.
func (p *Partition) drop() {
	if p.mu.view != nil {
		p.mu.view.unref()
		p.mu.view = nil
	}
}

// ReleaseIdle releases the snapshot if it was not used since the last call, since a
// snapshot keeps the engine from reclaiming space. Cached spans stay until they have not
// been used either.
func (p *Partition) ReleaseIdle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.mu.used && !p.mu.writing {
		p.drop()
		if !p.mu.spans.used {
			p.mu.spans.empty()
		}
	}
	p.mu.used, p.mu.spans.used = false, false
}

// ReleaseUnused releases the snapshot if nothing uses it at this moment: the storage engine has
// no more of them.
func (p *Partition) ReleaseUnused() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.view != nil && p.mu.view.refs == 1 && !p.mu.writing {
		p.drop()
	}
}

// now returns the published state.
func (p *Partition) now() *published {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.now
}

// Container returns the container with the settings that the partition applies.
func (p *Partition) Container() *catalog.Container { return p.now().container }

// LSN returns that of the last published write.
func (p *Partition) LSN() uint64 { return p.now().meta.LSN }

// Commits returns how many commits have changed the partition: writes, touches and purges.
func (p *Partition) Commits() uint64 { return p.now().meta.Commits }

// Reconfigure gives the partition new settings of its container. When it returns, all reads
// and writes that begin later use them, and no write under the old ones can still commit.
func (p *Partition) Reconfigure(ctx context.Context, c *catalog.Container) error {
	_, err := p.submit(ctx, &job{reconfigure: c})
	return err
}
