// SPDX-License-Identifier: MIT

// Purge as the engine runs it: which partitions are due, what throughput is left over,
// and the operators' settings.

package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/purge"
	"github.com/mayflydb/mayfly/internal/ru"
	"github.com/mayflydb/mayfly/internal/store"
)

// lookAtClosedEvery is how often closed partitions are checked. They have no writes, so
// what is due there does not change in between.
const lookAtClosedEvery = time.Second

// lookAgainEvery is how long what is known of a closed partition holds in a cluster.
const lookAgainEvery = 10 * time.Second

// purgeable is the engine as purge sees it. Only purge's goroutine uses its own fields.
type purgeable struct {
	*Engine
	closed   map[partitionID]closedPartition
	closedAt time.Duration // the last check of closed partitions
}

// Due returns the partitions with something to purge at nowMs. It opens those that were
// not used since the start.
func (e *purgeable) Due(nowMs int64) []purge.Target {
	return append(e.targets(func(p *store.Partition) bool { return p.PurgeDue() <= nowMs }), e.closedTargets(nowMs)...)
}

// Unindexed returns the open partitions whose items wait for index rows, while there is
// disk space for these.
func (e *purgeable) Unindexed() []purge.Target {
	if e.writable() != nil {
		return nil
	}
	return e.targets((*store.Partition).Unindexed)
}

// Meter returns the meter of a partition, if throughput is enforced.
func (e *purgeable) Meter(t purge.Target) *ru.Meter {
	if e.meters.mode != Enforce {
		return nil
	}
	return e.meters.meter(meterOf(t.Container, t.Index))
}

// Room returns why nothing can be deleted; nil if it can.
func (e *purgeable) Room() error { return e.removable() }

// Elapsed returns real time.
func (e *purgeable) Elapsed() time.Duration { return e.meters.elapsed() }

// targets returns the open partitions that wanted selects.
func (e *Engine) targets(wanted func(*store.Partition) bool) []purge.Target {
	var all []purge.Target
	e.mu.RLock()
	defer e.mu.RUnlock()
	for id, p := range e.mu.open {
		if wanted(p) {
			all = append(all, purge.Target{Container: p.Container(), Index: id.index, Partition: p})
		}
	}
	return all
}

// IndexProgress returns the percentage of a container's items that have their index rows,
// in the partition that has the lowest.
func (e *Engine) IndexProgress(ctx context.Context, c *catalog.Container) (int, error) {
	all, err := gather(ctx, e, c, opIndexProgress, 0)
	return slices.Min(append(all, 100)), err
}

var opIndexProgress = newOperation(operation[int, int]{"index progress", func(_ context.Context, _ *Engine, _ *catalog.Container, _ int, p *store.Partition, _ int) (int, error) {
	return p.IndexProgress()
}, false})

// closedTargets opens and returns the closed partitions that are due.
func (e *purgeable) closedTargets(nowMs int64) []purge.Target {
	now := e.meters.elapsed()
	if e.closedAt != 0 && now-e.closedAt < lookAtClosedEvery {
		return nil
	}
	e.closedAt = now
	var due []purge.Target
	for _, c := range e.AllContainers() {
		for i := range c.Ranges {
			id := c.Ranges[i].ID
			if e.closedDue(c, id) > nowMs {
				continue
			}
			p, err := e.partition(c, id)
			if err == nil {
				due = append(due, purge.Target{Container: c, Index: id, Partition: p})
			} else if elsewhere := (*NotOwnerError)(nil); !errors.Is(err, store.ErrClosed) && !errors.Is(err, ErrStopping) && !errors.Is(err, ErrUnavailable) && !errors.As(err, &elsewhere) {
				e.logger.Error("cannot open a partition to purge it", "container", c.ID, "partition", id, "err", err)
			}
		}
	}
	return due
}

// closedDue returns when a closed partition is due; Never if it is open or nothing
// expires in it.
func (e *purgeable) closedDue(c *catalog.Container, index int) int64 {
	if c.DefaultTTL == catalog.TTLAbsent && !c.Final() {
		return store.Never
	}
	id := partitionID{c.RID, index}
	e.mu.RLock()
	open := e.mu.open[id] != nil || e.mu.dropping[c.RID] != nil
	e.mu.RUnlock()
	if open {
		delete(e.closed, id)
		return store.Never
	}
	if e.node != nil && !e.mayOpen(id) {
		delete(e.closed, id)
		return store.Never
	}
	if known, ok := e.closed[id]; ok && known.epoch == c.Epoch && (e.node == nil || e.meters.elapsed() < known.until) {
		return known.dueMs
	}
	dueMs := int64(0)
	snap, err := e.db.Snapshot()
	if err == nil {
		dueMs, err = store.DueOf(snap, c, index)
		snap.Close()
	}
	if err != nil {
		e.logger.Error("cannot read when a partition's items expire", "container", c.ID, "partition", index, "err", err)
		dueMs = store.Never
	}
	e.closed[id] = closedPartition{c.Epoch, dueMs, e.meters.elapsed() + lookAgainEvery}
	return dueMs
}

// closedPartition is what is known of a partition that is not open.
type closedPartition struct {
	epoch uint64
	dueMs int64
	// until is how long that holds in a cluster, where another node may have had it.
	until time.Duration
}

// mayOpen reports whether this node is the one to claim a partition that nobody has.
func (e *Engine) mayOpen(id partitionID) bool {
	name, _, err := e.node.Preferred(store.OwnerKey(id.container, id.index))
	return err == nil && name == e.node.Name()
}

// PurgeSetting is the setting of a container, or the global one.
type PurgeSetting struct {
	// Paused says that purge is paused globally or, for a container, either there or
	// globally.
	Paused bool       `json:"paused"`
	Limit  purge.Rate `json:"limit,omitzero"`
}

// PausePurge pauses or resumes purge, in a container or, if c is nil, globally. The
// setting survives restarts.
func (e *Engine) PausePurge(ctx context.Context, c *catalog.Container, paused bool) (PurgeSetting, error) {
	if c != nil {
		return e.changePurge(ctx, c, func(s *purge.ContainerSettings) { s.Paused = paused })
	}
	if err := e.removable(); err != nil {
		return PurgeSetting{}, err
	}
	return PurgeSetting{Paused: paused}, e.tellNodes(ctx, e.purger.Change(func(s *purge.Settings) { s.Paused = paused }))
}

// LimitPurge bounds how many items a second purge removes in a container; 0 means no
// bound.
func (e *Engine) LimitPurge(ctx context.Context, c *catalog.Container, itemsPerSecond float64) (PurgeSetting, error) {
	if !(itemsPerSecond >= 0 && itemsPerSecond <= maxPurgeLimit) {
		return PurgeSetting{}, invalid("The rate must be between 0, for no limit, and %d items per second.", int64(maxPurgeLimit))
	}
	return e.changePurge(ctx, c, func(s *purge.ContainerSettings) { s.ItemsPerSecond = purge.Rate(itemsPerSecond) })
}

// maxPurgeLimit is more than any machine can do.
const maxPurgeLimit = 1e9

func (e *Engine) changePurge(ctx context.Context, c *catalog.Container, change func(*purge.ContainerSettings)) (PurgeSetting, error) {
	if err := e.removable(); err != nil {
		return PurgeSetting{}, err
	}
	err := e.purger.Change(func(s *purge.Settings) {
		set := s.Containers[c.RID.String()]
		change(&set)
		s.Containers[c.RID.String()] = set
	})
	s := e.purger.Status(c.RID)
	return PurgeSetting{s.Paused, s.Limit}, e.tellNodes(ctx, err)
}

// PurgeResult is the result of PurgeNow.
type PurgeResult struct {
	Purged store.Amount `json:"purged"`
	Reason string       `json:"reason"`
}

// PurgeNow purges all expired items of a container or, if c is nil, of all, at once and
// regardless of throughput. It is for tests, and for operators who need the space.
func (e *Engine) PurgeNow(ctx context.Context, c *catalog.Container) (PurgeResult, error) {
	r := PurgeResult{Reason: ru.Forced.String()}
	for _, c := range e.oneOrAll(c) {
		purged, err := gather(ctx, e, c, opPurgeNow, 0)
		for _, a := range purged {
			r.Purged = r.Purged.Plus(a)
		}
		if err != nil {
			return r, err
		}
	}
	return r, nil
}

var opPurgeNow = newOperation(operation[int, store.Amount]{"purge now", func(ctx context.Context, e *Engine, c *catalog.Container, i int, p *store.Partition, _ int) (store.Amount, error) {
	return e.purger.Force(ctx, []purge.Target{{Container: c, Index: i, Partition: p}})
}, false})

// opFollow has a node follow the settings of purge that are saved now.
var opFollow = newOperation(operation[int, bool]{"follow", func(_ context.Context, e *Engine, _ *catalog.Container, _ int, _ *store.Partition, _ int) (bool, error) {
	return true, e.purger.Follow()
}, false})

// tellNodes has all nodes follow the settings of purge. One that does not answer follows them
// by itself within a tick, or is dead.
func (e *Engine) tellNodes(ctx context.Context, err error) error {
	if err == nil && e.node != nil {
		_, _, err = askNodes(ctx, e, nil, opFollow, 0)
	}
	return e.changed(err)
}

// PurgeThrottled returns for how long each cause has held purge back.
func (e *Engine) PurgeThrottled() map[purge.Cause]time.Duration { return e.purger.Throttled() }

// SystemWork returns the work that the database did on its own.
func (e *Engine) SystemWork(cause ru.Cause) ru.Entry { return e.ledger.Total(cause) }

// Health returns the storage engine's state.
func (e *Engine) Health() kv.Health {
	if e.options.Health == nil {
		return kv.Health{}
	}
	return e.options.Health()
}

// observe reports to purge that a client's operation on items ended, which began at the
// given moment.
func (e *Engine) observe(began time.Duration) { e.purger.Traffic.End(e.meters.elapsed() - began) }

// begin reports to purge that such an operation begins, and returns the time.
func (e *Engine) begin() time.Duration {
	e.purger.Traffic.Begin()
	return e.meters.elapsed()
}
