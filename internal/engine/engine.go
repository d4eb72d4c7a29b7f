// SPDX-License-Identifier: MIT

// Package engine has one method for each operation of a client: look the
// container up, check and prepare, let a partition do it. It opens partitions
// when they are first used, and runs the background work. It knows nothing of
// HTTP, and of how rows are laid out.
package engine

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/purge"
	"github.com/mayflydb/mayfly/internal/ru"
	"github.com/mayflydb/mayfly/internal/script"
	"github.com/mayflydb/mayfly/internal/store"
)

const (
	// tickInterval is that of letting go of idle snapshots.
	tickInterval = time.Second
)

// defaultCaches is for about 300,000 rows of indexes, and 15,000 items of 1 KiB.
var defaultCaches = store.CacheSizes{IndexRows: 16 << 20, ItemRows: 16 << 20}

// Options say what to open.
type Options struct {
	DB kv.DB
	// FreeBytes tells how much space is left for the data; nil means enough.
	FreeBytes func() (uint64, error)
	// Reclaim frees the space of what was deleted, at once; nil if that frees itself.
	Reclaim func(context.Context) error
	// Explain tells scripts an error as clients see it. It must be given.
	Explain func(error) (status int, text string)
	// Health tells how the engine below is; nil means well.
	Health func() kv.Health
	// Throughput says whether provisioned throughput is enforced.
	Throughput ThroughputMode
	// Quotas bound what containers hold.
	Quotas Quotas
	// Retention is for how long the change feed keeps all versions and deletes of
	// containers that do not say.
	Retention time.Duration
	// QueryTime is how long a query may work that cannot end early with what it has; 0 is
	// DefaultQueryTime.
	QueryTime time.Duration
	// Caches say how much memory rows may take that queries have read; the zero value
	// is defaultCaches.
	Caches store.CacheSizes
	// Scripts is how many scripts may run at once; 0 is script.MaxAtOnce. ScriptMemory is
	// how many bytes of memory each may take; 0 is script.DefaultMemory. ReserveScript is
	// asked for them before it runs, and may make it wait; nil means that there is enough.
	// ScriptTime is how long a stored procedure or a trigger may take; 0 is
	// script.DefaultTime.
	Scripts       int
	ScriptMemory  int64
	ScriptTime    time.Duration
	ReserveScript func(ctx context.Context, bytes int64) (release func(), err error)
	// PurgePaused begins with purge paused everywhere, whatever was set before.
	PurgePaused bool
	// TestClock lets clients move the time.
	TestClock bool
	// ClockSource reads the machine's clocks, and ClockBoot its boot clock; nil means
	// the real ones (clock.Options).
	ClockSource func() clock.Reading
	ClockBoot   func() clock.Boot
	Logger      *slog.Logger
	// Failed is called when a commit failed: nothing more can be written, and the
	// process should end. It must not call the engine.
	Failed func(error)

	elapsed func() time.Duration // in tests, in place of the time since Open
}

// Engine is an open database.
type Engine struct {
	options Options
	db      kv.DB
	clock   *clock.Clock
	catalog *catalog.Catalog
	logger  *slog.Logger

	// settings is held while a container is made, replaced or removed, until all
	// its partitions have followed: they take replacements in order. It comes
	// before mu.
	settings sync.Mutex

	// scripts has the workers that run scripts. A request that has a place there waits
	// for none that waits for one: a script's own queries and triggers are part of it.
	scripts *script.Pool
	strikes strikes
	queries queries
	meters  *meters
	ledger  ru.Ledger
	purger  *purge.Purger
	cache   *store.CacheBudget
	space   atomic.Int32 // the space that is left
	// removals counts what was deleted.
	removals atomic.Int64
	failed   atomic.Pointer[error]
	// background is what works until cancel is called.
	background sync.WaitGroup
	cancel     context.CancelFunc

	mu struct {
		sync.RWMutex
		open map[partitionID]*store.Partition
		// dropping has the containers whose removal is under way, each with a
		// channel that is closed when it is over.
		dropping map[catalog.ContainerRID]chan struct{}
		closed   bool
	}
}

// DefaultLogicalBytes is how many live bytes items with one partition key may have,
// as in the service.
const DefaultLogicalBytes = 20 << 30

// Quotas bound live bytes. What has expired counts for nobody.
type Quotas struct {
	// ContainerBytes is for a container, in equal shares for its physical
	// partitions; 0 is no bound.
	ContainerBytes int64
	// LogicalBytes is for all items with one partition key; 0 is
	// DefaultLogicalBytes.
	LogicalBytes int64
}

// of returns the quotas of each partition of a container.
func (q Quotas) of(c *catalog.Container) store.Quotas {
	s := store.Quotas{PartitionBytes: q.ContainerBytes / int64(len(c.Ranges)), LogicalBytes: q.LogicalBytes}
	if s.LogicalBytes == 0 {
		s.LogicalBytes = DefaultLogicalBytes
	}
	return s
}

type partitionID struct {
	container catalog.ContainerRID
	index     int
}

// Open opens the database in o.DB, which stays the caller's to close.
func Open(o Options) (*Engine, error) {
	if o.Caches == (store.CacheSizes{}) {
		o.Caches = defaultCaches
	}
	o.QueryTime = cmp.Or(o.QueryTime, DefaultQueryTime)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	e := &Engine{
		options: o, db: o.DB, logger: o.Logger, cache: store.NewCacheBudget(o.Caches),
		scripts: script.NewPool(script.PoolOptions{
			Gate:   script.GateOptions{Places: cmp.Or(o.Scripts, script.MaxAtOnce), Queue: script.MaxWaiting, Wait: script.MaxWait},
			Memory: o.ScriptMemory, Time: o.ScriptTime, Reserve: o.ReserveScript,
		}),
	}
	e.mu.open = map[partitionID]*store.Partition{}
	e.mu.dropping = map[catalog.ContainerRID]chan struct{}{}
	if err := openFormat(o.DB, migrations[:], e.logger); err != nil {
		return nil, err
	}
	var err error
	if e.catalog, err = catalog.Open(o.DB, catalog.Options{Retention: o.Retention}); err != nil {
		return nil, err
	}
	if e.clock, err = openClock(o); err != nil {
		return nil, err
	}
	e.meters = newMeters(&o, e.catalog)
	e.strikes.elapsed = e.meters.elapsed
	ctx, cancel := context.WithCancel(context.Background())
	e.cancel = cancel
	e.watchSpace()
	e.purger, err = purge.New(purge.Options{
		Database: &purgeable{e, map[partitionID]closedPartition{}, 0}, Rows: e.db, Clock: e.clock, Retention: EventRetention, Paused: o.PurgePaused, Logger: e.logger,
	})
	if err != nil {
		cancel()
		return nil, errors.Join(err, e.clock.Close())
	}
	for _, work := range []func(context.Context){e.purger.Run, e.housekeep, e.reclaim} {
		e.background.Go(func() { work(ctx) })
	}
	return e, nil
}

// Close ends scripts, stops the partitions after the groups under way, and the clock
// last.
func (e *Engine) Close() error {
	e.cancel()
	e.scripts.Close()
	e.background.Wait()
	e.mu.Lock()
	open := e.mu.open
	e.mu.open, e.mu.closed = nil, true
	e.mu.Unlock()
	for _, p := range open {
		p.Close()
	}
	return e.clock.Close()
}

func openClock(o Options) (*clock.Clock, error) {
	state, err := loadClock(o.DB)
	if err != nil {
		return nil, err
	}
	return clock.Open(clock.Options{
		State:  state,
		Save:   func(s clock.State) error { return kv.Set(context.Background(), o.DB, catalog.ClockKey, s.Encode()) },
		Test:   o.TestClock,
		Source: o.ClockSource,
		Boot:   o.ClockBoot,
		Logger: o.Logger,
	})
}

func loadClock(db kv.DB) (clock.State, error) {
	raw, found, err := kv.Get(db, catalog.ClockKey)
	if err != nil || !found {
		return clock.State{}, err
	}
	return clock.DecodeState(raw)
}

// Clock returns the database's time.
func (e *Engine) Clock() *clock.Clock { return e.clock }

// Ready returns why the engine cannot serve, nil if it can.
func (e *Engine) Ready() error {
	if err := e.failed.Load(); err != nil {
		return *err
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	if e.mu.closed {
		return ErrStopping
	}
	return e.writable()
}

// partition returns a partition of a container, opening it if it is not. While
// the container is being removed it waits: whether it was is known afterwards.
func (e *Engine) partition(c *catalog.Container, index int) (*store.Partition, error) {
	id := partitionID{c.RID, index}
	e.mu.RLock()
	p, over := e.mu.open[id], e.mu.dropping[c.RID]
	e.mu.RUnlock()
	if p != nil {
		return p, nil
	}
	if over != nil {
		<-over
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.mu.closed:
		return nil, ErrStopping
	case e.mu.dropping[c.RID] != nil: // the next attempt
		return nil, store.ErrClosed
	case e.mu.open[id] != nil:
		return e.mu.open[id], nil
	}
	// The definition is looked up anew under the lock: a replace that is under
	// way either finds the partition open or is seen here.
	now, err := e.catalog.Current(c.RID)
	if err != nil {
		return nil, store.ErrClosed
	}
	p, err = store.Open(store.Options{
		DB: e.db, Clock: e.clock, Container: now, Index: index, Cache: e.cache, Failed: e.fail,
		Quotas: e.options.Quotas.of(now), Ledger: &e.ledger,
	})
	if err != nil {
		return nil, err
	}
	e.mu.open[id] = p
	return p, nil
}

// fail notes that a commit failed, once.
func (e *Engine) fail(err error) {
	if e.failed.CompareAndSwap(nil, &err) {
		e.logger.Error("a commit failed; nothing more is written", "err", err)
		if e.options.Failed != nil {
			e.options.Failed(err)
		}
	}
}

// housekeep runs until the engine is closed.
func (e *Engine) housekeep(ctx context.Context) {
	tick, look := time.NewTicker(tickInterval), time.NewTicker(spaceInterval)
	defer tick.Stop()
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			e.releaseIdle()
		case <-look.C:
			e.watchSpace()
		}
	}
}

func (e *Engine) releaseIdle() {
	e.mu.RLock()
	defer e.mu.RUnlock()
	for _, p := range e.mu.open {
		p.ReleaseIdle()
	}
}

// commitFailed passes on the error of a commit, and notes it: its outcome is unknown.
func (e *Engine) commitFailed(err error) error {
	if err != nil {
		e.fail(err)
	}
	return err
}
