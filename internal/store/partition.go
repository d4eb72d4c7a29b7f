// SPDX-License-Identifier: MIT

// Package store keeps a partition: its items, their expiry order, their change
// feed and their counters. It hides expired items from everyone. It knows
// nothing of HTTP, and of other partitions.
//
// Invariants:
//
//  1. A partition has one writer, its loop (loop.go). Everybody else reads what
//     the loop has published, which is durable.
//  2. All rows of an item change in one batch (rows.go).
//  3. Whether an item is expired is decided in one place (expiry.go), at one
//     moment per request.
//  4. LSNs are dense and grow in commit order, and writtenMs never decreases
//     with them.
package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/index"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/ru"
)

var (
	// ErrNotFound: there is no such item, or it has expired.
	ErrNotFound = errors.New("no such item")
	// ErrExists: an item with this id and partition key exists.
	ErrExists = errors.New("an item with this id exists")
	// ErrNotUnique: another item holds a unique key of the item.
	ErrNotUnique = errors.New("another item has the same unique key")
	// ErrPrecondition: the item's etag is not the one that was asked for.
	ErrPrecondition = errors.New("the item has changed")
	// ErrNotModified: the item's etag is the one that the reader has.
	ErrNotModified = errors.New("the item has not changed")
	// ErrClosed: the partition is closed, since its container was dropped or the
	// database stops.
	ErrClosed = errors.New("the partition is closed")
	// ErrFailed: an earlier commit failed, so that nothing can be acknowledged
	// until the data is opened anew.
	ErrFailed = errors.New("the partition stopped after a failed commit")
	// ErrChanged: the logical partition has changed since it was read.
	ErrChanged = errors.New("the logical partition has changed")
	// ErrTooMuch: the writes of a WriteAll, or what they read, are too much for one
	// commit.
	ErrTooMuch = errors.New("too much for one commit")
	// ErrTooManyTerms: the item has too much to index.
	ErrTooManyTerms = index.ErrTooManyTerms
	// ErrBusy: the container's settings changed again and again while the write
	// was being prepared.
	ErrBusy = errors.New("the container's settings keep changing")
)

const (
	// ordinalShift leaves 48 bits for counting a partition's items; the bits
	// above hold the partition's index, so that rids are unique in a container.
	ordinalShift = 48
)

// FirstOrdinal returns the lowest ordinal of a partition, which no item has.
func FirstOrdinal(partition int) uint64 { return uint64(partition) << ordinalShift }

// PartitionOf returns the partition of the item with the given ordinal.
func PartitionOf(ordinal uint64) int { return int(ordinal >> ordinalShift) }

// Options say which partition to open, and where.
type Options struct {
	DB        kv.DB
	Clock     *clock.Clock
	Container *catalog.Container
	Index     int
	// Cache is the budget of the items kept in memory; nil keeps none.
	Cache *CacheBudget
	// Quotas bound what is kept.
	Quotas Quotas
	// Ledger gets what work the partition does without being asked to; nil is for
	// nobody to know.
	Ledger *ru.Ledger
	// Failed is called once if a commit fails. Nothing that was in it has been
	// acknowledged, and nothing more will be.
	Failed func(error)
}

// Partition is one physical partition of a container.
type Partition struct {
	db     kv.DB
	clock  *clock.Clock
	index  int
	prefix prefix
	failed func(error)
	ledger *ru.Ledger
	// incarnation is another one whenever the partition is opened, which was when it was
	// at the lsn openedAt.
	incarnation uint8
	openedAt    uint64

	queue chan *job
	// background is for tasks: purges, removals, the log of expired items, index rows and
	// rewinds.
	background chan *job
	stop       chan struct{}
	ended      chan struct{}
	closed     sync.Once

	writer writer     // the loop's own
	turn   sync.Mutex // held while a purge or index rows are planned and written

	rowBuffers sync.Pool // of *visited
	rows       itemRows

	mu struct {
		sync.Mutex
		now  *published
		view *view // of now; nil while idle

		// What follows is derived from what was published; see follow.
		expiredCount expiredCount
		// soonestMs is when the next item expires, or earlier.
		soonestMs int64
		// groupMs is the moment of the group under way, never if there is none.
		groupMs int64
		tracked map[string]*trackedPath // by their encoded paths
		// dead is what is known of logical partitions that are full, by the start of
		// their identities.
		tallies map[string]tally
		// writing says that a group is under way, or ended with a commit whose
		// outcome is unknown: its rows may already be in the engine and not be
		// durable, so no new snapshot may be taken.
		writing bool
		used    bool // since the last ReleaseIdle
		spans   spanCache
		closed  bool
	}
}

// published is the state of a partition after a commit. It never changes: the next
// commit makes another one.
type published struct {
	container *catalog.Container
	meta      meta
	rules     rules // of meta
	// number counts publications since the partition was opened, from 1: purge leaves
	// the lsn as it is.
	number uint64
	// buried is what had expired and was removed since the partition was opened.
	purged Amount
}

// view is a published state with a snapshot of its rows.
type view struct {
	*published
	stored
	refs  int // guarded by Partition.mu; one is Partition.mu.view's own
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
// stopped.
func open(o Options) (*Partition, []*removal, error) {
	p := &Partition{
		db:         o.DB,
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
	snap, err := p.db.Snapshot()
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
	// Settings that it does not know were changed by a call that did not return:
	// as far as anybody can tell, they change now.
	generation, epoch := m.Generation, m.Epoch
	m.adopt(o.Container, o.Clock.Now())
	w := &p.writer
	*w = writer{p: p, quotas: o.Quotas, dropOld: found && generation != m.Generation, totals: logicalTotals{forgotten: m.LSN}}
	w.init()
	w.meta, w.marked = m, m.Marks
	if w.log.state, w.log.on, err = s.logState(); err != nil {
		return nil, nil, err
	}
	w.log.adopt(o.Container, &w.meta)
	if found && epoch != m.Epoch {
		// Readers are about to go by them: what they make final must last.
		if err := w.finish(); err != nil {
			return nil, nil, err
		}
	}
	p.incarnation, p.openedAt = newIncarnation(), m.LSN
	p.mu.now = &published{container: o.Container, meta: m, rules: m.rules(), number: 1}
	p.mu.groupMs = never
	p.mu.spans.budget = o.Cache
	if o.Cache != nil {
		p.rows = itemRows{o.Cache.items, o.Cache.items.Owner()}
	}
	go p.loop()
	return p, under, nil
}

// Close stops the loop, after the group under way, and refuses what waits.
func (p *Partition) Close() {
	p.closed.Do(func() { close(p.stop) })
	<-p.ended
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.closed = true
	p.drop()
	p.mu.spans.empty()
}

// acquire returns the published view, with a fresh snapshot if the partition was
// idle. The caller releases it.
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
		// A group under way keeps the view published, so there is none: the
		// snapshot shows only what is durable.
		snap, err := p.db.Snapshot()
		if err != nil {
			return nil, err
		}
		p.mu.view = &view{published: p.mu.now, stored: stored{snap, &p.prefix}, refs: 1}
	}
	p.mu.view.refs++
	return p.mu.view, nil
}

// beginGroup acquires the view for a group of writes and keeps it published
// until the group ends. It returns the group's moment.
func (p *Partition) beginGroup() (*view, moment, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	v, err := p.acquireLocked()
	if err != nil {
		return nil, moment{}, err
	}
	p.mu.writing = true
	var at moment
	at.nowMs, at.writeMs = p.clock.NowAndWrite()
	p.mu.groupMs = at.nowMs
	return v, at, nil
}

// endGroup releases the view. After a failed commit it stays published for good.
func (p *Partition) endGroup(v *view, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.writing = err != nil
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

// drop lets go of the published view; p.mu is held.
func (p *Partition) drop() {
	if p.mu.view != nil {
		p.mu.view.unref()
		p.mu.view = nil
	}
}

// ReleaseIdle lets go of the snapshot if nobody used it since the last call: a
// snapshot holds back the reclaiming of space everywhere in the engine. What is kept
// of indexes stays a while longer, as long as it is used.
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

// now returns the published state.
func (p *Partition) now() *published {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.now
}

// Container returns the container with its settings as the partition has them.
func (p *Partition) Container() *catalog.Container { return p.now().container }

// LSN returns that of the last write that is published.
func (p *Partition) LSN() uint64 { return p.now().meta.LSN }

// Reconfigure gives the partition new settings of its container. When it
// returns, every read and every write that begins later goes by them, and none
// that went by the old ones is still to commit.
func (p *Partition) Reconfigure(ctx context.Context, c *catalog.Container) error {
	_, err := p.submit(ctx, &job{reconfigure: c})
	return err
}
