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
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/kv"
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
	// ErrBusy: the container's settings changed again and again while the write
	// was being prepared.
	ErrBusy = errors.New("the container's settings keep changing")
)

const (
	metaVersion = 1
	metaBytes   = 17

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

	queue  chan *job
	stop   chan struct{}
	ended  chan struct{}
	closed sync.Once

	writer writer // the loop's own

	mu struct {
		sync.Mutex
		view *view // nil while idle
		// container and lsn outlive the view.
		container *catalog.Container
		lsn       uint64
		// writing says that a group is under way, or ended with a commit whose
		// outcome is unknown: its rows may already be in the engine and not be
		// durable, so no new snapshot may be taken.
		writing bool
		used    bool // since the last ReleaseIdle
		cache   itemCache
		closed  bool
	}
}

// view is what readers see: a snapshot, and the container's settings with it.
type view struct {
	snap      kv.Snapshot
	container *catalog.Container
	lsn       uint64
	refs      int // guarded by Partition.mu; one is Partition.mu.view's own
}

// Open opens a partition and starts its loop. The caller closes it.
func Open(o Options) (*Partition, error) {
	p := &Partition{
		db:     o.DB,
		clock:  o.Clock,
		index:  o.Index,
		prefix: partitionPrefix(o.Container.RID, o.Index),
		failed: o.Failed,
		queue:  make(chan *job, queueJobs),
		stop:   make(chan struct{}),
		ended:  make(chan struct{}),
	}
	m, err := p.loadMeta()
	if err != nil {
		return nil, fmt.Errorf("open partition %d of container %q: %w", o.Index, o.Container.ID, err)
	}
	p.writer = writer{p: p, lsn: m.lsn, nextOrdinal: m.nextOrdinal}
	p.mu.container = o.Container
	p.mu.lsn = m.lsn
	p.mu.cache = newItemCache(o.Cache)
	go p.loop()
	return p, nil
}

// Close stops the loop, after the group under way, and refuses what waits.
func (p *Partition) Close() {
	p.closed.Do(func() { close(p.stop) })
	<-p.ended
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.closed = true
	p.drop()
	p.mu.cache.empty()
}

// meta is the partition's own row.
type meta struct {
	lsn         uint64
	nextOrdinal uint64
}

func (p *Partition) loadMeta() (meta, error) {
	snap, err := p.db.Snapshot()
	if err != nil {
		return meta{}, err
	}
	defer snap.Close()
	return readMeta(snap, &p.prefix, p.index)
}

func readMeta(snap kv.Snapshot, x *prefix, index int) (meta, error) {
	raw, found, err := snap.Get(x.metaKey())
	if err != nil {
		return meta{}, err
	}
	if !found {
		return meta{nextOrdinal: FirstOrdinal(index) + 1}, nil
	}
	if len(raw) != metaBytes || raw[0] != metaVersion {
		return meta{}, corrupt(x.metaKey(), "not a partition's meta row")
	}
	return meta{binary.BigEndian.Uint64(raw[1:]), binary.BigEndian.Uint64(raw[9:])}, nil
}

func (m meta) encode() []byte {
	b := binary.BigEndian.AppendUint64([]byte{metaVersion}, m.lsn)
	return binary.BigEndian.AppendUint64(b, m.nextOrdinal)
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
		p.mu.view = &view{snap: snap, container: p.mu.container, lsn: p.mu.lsn, refs: 1}
	}
	p.mu.view.refs++
	return p.mu.view, nil
}

// beginGroup acquires the view for a group of writes and keeps it published
// until the group ends.
func (p *Partition) beginGroup() (*view, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	v, err := p.acquireLocked()
	p.mu.writing = err == nil
	return v, err
}

// endGroup releases the view. After a failed commit it stays published for good.
func (p *Partition) endGroup(v *view, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.writing = err != nil
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
// snapshot holds back the reclaiming of space everywhere in the engine. The items
// in memory stay a while longer, as long as they are read.
func (p *Partition) ReleaseIdle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.mu.used && !p.mu.writing {
		p.drop()
		if !p.mu.cache.used {
			p.mu.cache.empty()
		}
	}
	p.mu.used, p.mu.cache.used = false, false
}

// Container returns the container with its settings as the partition has them.
func (p *Partition) Container() *catalog.Container {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.container
}

// LSN returns that of the last write that is published.
func (p *Partition) LSN() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.lsn
}

// Reconfigure gives the partition new settings of its container. When it
// returns, every read and every write that begins later goes by them, and none
// that went by the old ones is still to commit.
func (p *Partition) Reconfigure(ctx context.Context, c *catalog.Container) error {
	_, err := p.submit(ctx, &job{reconfigure: c, done: make(chan struct{})})
	return err
}
