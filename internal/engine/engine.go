// SPDX-License-Identifier: MIT

// Package engine has one method for each operation of a client: find the container, check
// and prepare the request, and pass it to a partition. It opens partitions when they are
// first used, and runs the background work. It knows nothing of HTTP, nor of the layout
// of rows. DESIGN.md tells how a request is served.
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
	"github.com/mayflydb/mayfly/internal/cluster"
	"github.com/mayflydb/mayfly/internal/erase"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/purge"
	"github.com/mayflydb/mayfly/internal/ru"
	"github.com/mayflydb/mayfly/internal/script"
	"github.com/mayflydb/mayfly/internal/store"
)

const (
	// tickInterval is how often idle snapshots are released.
	tickInterval = time.Second
)

// defaultCaches is enough for about 300,000 rows of indexes, and 15,000 items of 1 KiB.
var defaultCaches = store.CacheSizes{IndexRows: 16 << 20, ItemRows: 16 << 20}

// Options are the parameters of Open.
type Options struct {
	DB kv.DB
	// FreeBytes returns the free disk space for the data; nil means that there is enough.
	FreeBytes func() (uint64, error)
	// Reclaim frees the space of deleted rows at once; nil if that happens by itself.
	Reclaim func(context.Context) error
	// Explain returns an error's status and message as clients see them, for scripts.
	// Required.
	Explain func(error) (status int, text string)
	// Health reports the storage engine's state; nil if it is unknown.
	Health func() kv.Health
	// Throughput says whether provisioned throughput is enforced.
	Throughput ThroughputMode
	// Quotas bound the live bytes of containers.
	Quotas Quotas
	// Retention is how long the change feed keeps all versions and deletes of containers
	// without a policy of their own.
	Retention time.Duration
	// QueryTime is how long a query may run that cannot end early with a part of its
	// result; 0 means DefaultQueryTime.
	QueryTime time.Duration
	// Caches bound the memory for rows that queries have read; the zero value means
	// defaultCaches.
	Caches store.CacheSizes
	// HistoryBytes bounds the memory for the last hour of containers; 0 means
	// defaultHistories.
	HistoryBytes int64
	// Scripts is how many scripts may run at once; 0 means script.MaxAtOnce. ScriptMemory
	// is the memory limit of each, in bytes; 0 means script.DefaultMemory. ReserveScript
	// reserves that memory before a script runs, and may wait; nil means that there is
	// enough. ScriptTime is how long a stored procedure or a trigger may run; 0 means
	// script.DefaultTime.
	Scripts       int
	ScriptMemory  int64
	ScriptTime    time.Duration
	ReserveScript func(ctx context.Context, bytes int64) (release func(), err error)
	// EraseWithin is the time in which the bytes of deleted data leave the disk, in containers
	// that set none; 0 for any time.
	EraseWithin time.Duration
	// PurgePaused starts with purge paused everywhere, whatever the stored setting.
	PurgePaused bool
	// PurgeDebt is how many bytes the expired items of a container may take, if its live
	// items take less, before writes carry purges with them; 0 means purge.DefaultDebt.
	PurgeDebt int64
	// TestClock lets clients move the database's time.
	TestClock bool
	// ClockSource reads the machine's clocks, and ClockBoot its boot clock; nil means the
	// real ones (clock.Options).
	ClockSource func() clock.Reading
	ClockBoot   func() clock.Boot
	Logger      *slog.Logger
	// Failed is called when a commit failed. Nothing more can be written, and the process
	// should end. It must not call the engine. On a shared storage engine a failed commit
	// ends its partition only, and Failed is called if another process took this node's name.
	Failed func(error)

	// Cluster makes the engine a node of a cluster, on a storage engine that other processes
	// use too; nil if it has DB for itself. Open sets its DB, TestClock, Logger, Dropped and
	// Surrender.
	Cluster *cluster.Options
	// Region is where this node of a cluster is, and MultiWrite lets clients write in every
	// region of the cluster.
	Region     catalog.Region
	MultiWrite bool
	// Peers reaches the other nodes; nil if there are none.
	Peers Peers

	elapsed func() time.Duration // replaces the time since Open in tests
}

// Engine is an open database.
type Engine struct {
	options Options
	db      kv.DB
	clock   *clock.Clock
	catalog *catalog.Catalog
	logger  *slog.Logger

	// settings is held while a container is created, replaced or deleted, until all its
	// partitions have followed: they must take replacements in order. Lock it before mu.
	settings sync.Mutex

	// scripts has the workers that run scripts. A request that has a seat there never
	// waits for a second one, so seats cannot deadlock: a script's queries and triggers
	// run in its own.
	scripts *script.Pool
	strikes strikes
	queries queries
	meters  *meters
	ledger  ru.Ledger
	purger  *purge.Purger
	eraser  *erase.Eraser
	cache   *store.CacheBudget
	// histories has the last hour of containers.
	histories *histories
	space     atomic.Int32 // the current space
	// removals counts deletes, for reclaim.
	removals atomic.Int64
	failed   atomic.Pointer[error]
	// background counts the goroutines that run until cancel is called, which ends running.
	background sync.WaitGroup
	running    context.Context
	cancel     context.CancelFunc
	// growing wakes the goroutine that splits partitions for a higher throughput.
	growing chan struct{}

	// The following is for a node of a cluster (node.go). node is nil if there is none.
	node *cluster.Node
	// behind wakes the goroutine that follows changes of other nodes, and following is held
	// while they are applied.
	behind    chan struct{}
	following sync.Mutex
	// closing counts the partitions that are being closed.
	closing                 sync.WaitGroup
	moments, claims, losses atomic.Int64

	mu struct {
		sync.RWMutex
		open map[partitionID]*store.Partition
		// opening has the partitions that are being opened.
		opening map[partitionID]*opening
		// dropping has the containers that are being deleted, each with a channel that is
		// closed when that is over.
		dropping map[catalog.ContainerRID]chan struct{}
		closed   bool
		// keys has the partitions by the keys of their owner rows, and lives counts how often
		// this node was declared dead.
		keys  map[string]partitionID
		lives int
		// splits has the last split of each container that this node has begun.
		splits map[catalog.ContainerRID]*splitRun
		// taking has the partitions that are claimed although another node is preferred.
		taking map[partitionID]bool
	}
}

// DefaultLogicalBytes is the quota of live bytes of a logical partition, as in the
// service.
const DefaultLogicalBytes = 20 << 30

// Quotas bound live bytes. Expired items do not count.
type Quotas struct {
	// ContainerBytes is for a container, in equal shares for its physical partitions; 0
	// means no bound.
	ContainerBytes int64
	// LogicalBytes is for each logical partition; 0 means DefaultLogicalBytes.
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

// Open opens the database in o.DB. The caller closes o.DB, after the engine.
func Open(o Options) (*Engine, error) {
	if o.Caches == (store.CacheSizes{}) {
		o.Caches = defaultCaches
	}
	o.QueryTime = cmp.Or(o.QueryTime, DefaultQueryTime)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	e := &Engine{
		options: o, db: o.DB, logger: o.Logger, cache: store.NewCacheBudget(o.Caches), histories: newHistories(cmp.Or(o.HistoryBytes, defaultHistories)),
		scripts: script.NewPool(script.PoolOptions{
			Gate:   script.GateOptions{Slots: cmp.Or(o.Scripts, script.MaxAtOnce), Queue: script.MaxWaiting, Wait: script.MaxWait},
			Memory: o.ScriptMemory, Time: o.ScriptTime, Reserve: o.ReserveScript,
		}),
	}
	e.mu.open, e.mu.opening = map[partitionID]*store.Partition{}, map[partitionID]*opening{}
	e.mu.splits = map[catalog.ContainerRID]*splitRun{}
	e.mu.dropping, e.mu.keys = map[catalog.ContainerRID]chan struct{}{}, map[string]partitionID{}
	e.behind, e.growing, e.mu.taking = make(chan struct{}, 1), make(chan struct{}, 1), map[partitionID]bool{}
	var err error
	if o.Cluster != nil {
		err = current().openShared(o.DB)
	} else {
		err = openFormat(o.DB, migrations[:], e.logger)
	}
	if err != nil {
		return nil, err
	}
	if e.catalog, err = catalog.Open(o.DB, catalog.Options{Retention: o.Retention}); err != nil {
		return nil, err
	}
	if o.Cluster != nil {
		err = e.join()
	} else {
		e.clock, err = openClock(o)
	}
	if err != nil {
		return nil, err
	}
	if db, ok := o.DB.(kv.Scarce); ok {
		db.WhenScarce(func() { e.release((*store.Partition).ReleaseUnused) })
	}
	e.meters = newMeters(&o, e.catalog)
	e.strikes.elapsed = e.meters.elapsed
	ctx, cancel := context.WithCancel(context.Background())
	e.running, e.cancel = ctx, cancel
	e.watchSpace()
	e.purger, err = purge.New(purge.Options{
		Database: &purgeable{e, map[partitionID]closedPartition{}, 0}, Saved: e.catalog, Clock: e.clock, Retention: EventRetention, Debt: o.PurgeDebt, Paused: o.PurgePaused, Logger: e.logger,
	})
	if err != nil {
		cancel()
		return nil, errors.Join(err, e.leave(), e.clock.Close())
	}
	e.eraser, err = erase.New(erase.Options{Database: &erasable{Engine: e}, Rows: e.db, Clock: e.clock, Logger: e.logger})
	if err != nil {
		cancel()
		return nil, errors.Join(err, e.leave(), e.clock.Close())
	}
	works := []func(context.Context){e.purger.Run, e.housekeep, e.reclaim, e.eraser.Run, e.keepHistories, e.keepGrowing}
	if e.node != nil {
		works = append(works, e.keepUp)
	}
	if e.db.Far() {
		works = append(works, e.keepSweeping)
	}
	for _, work := range works {
		e.background.Go(func() { work(ctx) })
	}
	return e, nil
}

// Close ends scripts and background work, stops the partitions after their current
// groups, and closes the clock last. A node of a cluster gives its partitions up and leaves.
func (e *Engine) Close() error {
	e.cancel()
	e.scripts.Close()
	e.background.Wait()
	e.mu.Lock()
	e.mu.closed = true // no partition is opened any more
	e.mu.Unlock()
	err := e.leave()
	e.closeAll()
	e.closing.Wait()
	return errors.Join(err, e.clock.Close())
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

// Clock returns the database's clock.
func (e *Engine) Clock() *clock.Clock { return e.clock }

// Ready returns why the engine cannot serve; nil if it can.
func (e *Engine) Ready() error {
	if err := e.failed.Load(); err != nil {
		return *err
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	if e.mu.closed {
		return ErrStopping
	}
	if e.node != nil {
		if err := e.node.Ready(); err != nil {
			return err
		}
		if e.node.Draining() {
			return ErrDraining
		}
	}
	return e.writable()
}

// fail records that a commit failed, once.
func (e *Engine) fail(err error) {
	if e.failed.CompareAndSwap(nil, &err) {
		e.logger.Error("a commit failed; nothing more is written", "err", err)
		if e.options.Failed != nil {
			e.options.Failed(err)
		}
	}
}

// housekeep releases idle snapshots and watches the disk space until the engine is
// closed.
func (e *Engine) housekeep(ctx context.Context) {
	tick, look := time.NewTicker(tickInterval), time.NewTicker(spaceInterval)
	defer tick.Stop()
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			e.release((*store.Partition).ReleaseIdle)
		case <-look.C:
			e.watchSpace()
		}
	}
}

// release has all open partitions release their snapshots, under the condition of f.
func (e *Engine) release(f func(*store.Partition)) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	for _, p := range e.mu.open {
		f(p)
	}
}
