// SPDX-License-Identifier: MIT

// This engine as a node of a cluster, on a storage engine that several processes share.
// Package cluster has the rules, and DESIGN.md says how requests keep them.

package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/cluster"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/store"
)

const (
	// aliveWait is how long a request waits for this node to register anew, after another
	// node declared it dead.
	aliveWait = 3 * time.Second
	// alivePause is the time between two attempts.
	alivePause = 50 * time.Millisecond
	// claimLimit bounds the claim of a partition: the waits for a dead node's floor, and for
	// the storage engine.
	claimLimit = 10 * time.Second
	// joinLimit bounds how long a start waits for the storage engine, and leaveLimit a stop.
	joinLimit  = 30 * time.Second
	leaveLimit = 15 * time.Second
)

// NotOwnerError says that another node owns the partition of a request. Nothing was done.
type NotOwnerError = cluster.NotOwnerError

// ErrUnavailable: the storage engine cannot be reached, or this node may not answer now.
// Nothing was written.
var ErrUnavailable = kv.ErrUnavailable

// join makes the engine a node.
func (e *Engine) join() error {
	o := *e.options.Cluster
	o.DB, o.TestClock, o.Logger = e.db, e.options.TestClock, e.logger
	o.Format = cmp.Or(o.Format, formatVersion) // tests have nodes of other versions
	o.Dropped, o.Surrender = e.dropAll, e.surrender
	o.Region, o.WriteRegion = e.options.Region.Name, e.writeRegion
	ctx, cancel := context.WithTimeout(context.Background(), joinLimit)
	defer cancel()
	node, err := cluster.Join(ctx, o)
	if err != nil {
		return fmt.Errorf("join the cluster as node %s: %w", o.Name, err)
	}
	e.node, e.clock = node, node.Clock()
	if err := e.enterRegion(ctx); err != nil {
		return errors.Join(fmt.Errorf("enter the region %s: %w", o.Region, err), e.leave(), e.clock.Close())
	}
	return nil
}

// Node returns this engine's part in the cluster; nil if there is no cluster.
func (e *Engine) Node() *cluster.Node { return e.node }

// Moment begins a request, before it reads anything. On a shared storage engine it proves
// that this node may answer, brings the clock up to date, and the catalog. Without an
// engine there is nothing to do.
func (e *Engine) Moment(ctx context.Context) error {
	if e == nil || e.node == nil {
		return nil
	}
	return e.moment(ctx)
}

func (e *Engine) moment(ctx context.Context) error {
	for began := time.Now(); ; {
		m, err := e.node.Moment(ctx)
		switch {
		case err == nil:
			return e.refresh(m)
		case ctx.Err() != nil:
			return ctx.Err()
		case !errors.Is(err, cluster.ErrNotAlive) || time.Since(began) > aliveWait:
			return unavailable(err)
		}
		if err := pause(ctx, alivePause); err != nil {
			return err
		}
	}
}

// refresh brings the catalog up to date with a moment.
func (e *Engine) refresh(m cluster.Moment) error {
	e.moments.Add(1)
	reloaded, err := e.catalog.Refresh(m.Sequence)
	if reloaded {
		select {
		case e.behind <- struct{}{}:
		default: // it will follow anyway
		}
	}
	return unavailable(err)
}

// unavailable marks the errors of a node that may not answer, or cannot claim, as
// ErrUnavailable. Others stay as they are.
func unavailable(err error) error {
	for _, known := range []error{cluster.ErrNotAlive, cluster.ErrReplaced, cluster.ErrNewerData, cluster.ErrLeft, cluster.ErrNoNode, cluster.ErrContended, catalog.ErrContended, kv.ErrClosed} {
		if errors.Is(err, known) {
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
	}
	return err
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// own claims a partition, and returns what its store needs. The catalog is brought up to
// date after the claim: a replace of the container that looked for the owner before the
// claim has found none, so this node must see what it wrote.
func (e *Engine) own(id partitionID, o *opening) (store.Options, error) {
	ctx, cancel := context.WithTimeout(context.Background(), claimLimit)
	defer cancel()
	key := store.OwnerKey(id.container, id.index)
	e.mu.Lock()
	e.mu.keys[string(key)] = id
	claim := e.node.Own
	if e.mu.taking[id] {
		claim = e.node.Take
	}
	delete(e.mu.taking, id)
	e.mu.Unlock()
	lease, err := claim(ctx, key)
	if err == nil {
		e.claims.Add(1)
		err = e.moment(ctx)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%w: the claim of a partition took longer than %v", ErrUnavailable, claimLimit)
	}
	if err != nil {
		return store.Options{}, unavailable(err)
	}
	return store.Options{
		Lease: e.held(o, key, lease),
		Renew: func(ctx context.Context) (*store.Lease, error) {
			lease, err := e.node.Renew(ctx, key)
			if err != nil {
				return nil, unavailable(err)
			}
			return e.held(o, key, lease), nil
		},
		Lost: func(err error) { e.lost(id, o, err) },
	}, nil
}

// take has the next claim of a partition succeed if it has no live owner, whichever node is
// preferred.
func (e *Engine) take(id partitionID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mu.taking[id] = true
}

// held records and returns the lease of a partition.
func (e *Engine) held(o *opening, key []byte, l cluster.Lease) *store.Lease {
	e.mu.Lock()
	defer e.mu.Unlock()
	o.fence = l.Fence
	return &store.Lease{Key: key, Fence: l.Fence, OpenedMs: l.OpenedMs}
}

// lost removes a partition from the table that has closed itself: another node owns it, or
// whether it is owned cannot be found out. The next request for it claims it.
func (e *Engine) lost(id partitionID, o *opening, err error) {
	e.losses.Add(1)
	e.mu.Lock()
	o.lost = true
	if o.p != nil && e.mu.open[id] == o.p {
		delete(e.mu.open, id)
	}
	fence := o.fence
	e.mu.Unlock()
	e.node.Disown(store.OwnerKey(id.container, id.index), fence)
	e.logger.Warn("a partition was lost to another node, or its state is unknown; it is opened again when it is next used", "container", id.container.String(), "partition", id.index, "err", err)
}

// dropAll forgets all partitions when this node's incarnation is dead. Nothing is written.
// Groups under way may still commit, as long as no other node has claimed their partition.
func (e *Engine) dropAll() {
	e.mu.Lock()
	e.mu.lives++
	ps, _ := e.takeLocked(func(partitionID) bool { return true })
	e.mu.Unlock()
	for _, p := range ps {
		e.closing.Go(p.Close)
	}
	if err := e.node.Ready(); (errors.Is(err, cluster.ErrReplaced) || errors.Is(err, cluster.ErrNewerData)) && e.options.Failed != nil {
		e.options.Failed(err)
	}
}

// disown forgets the partitions of containers that are gone, with their owner rows.
func (e *Engine) disown(containers []*catalog.Container) {
	if e.node == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, c := range containers {
		for i := range c.Ranges {
			key := store.OwnerKey(c.RID, c.Ranges[i].ID)
			delete(e.mu.keys, string(key))
			e.node.Disown(key, nil)
		}
	}
}

// abandon removes the claim of a partition whose container is gone.
func (e *Engine) abandon(id partitionID) {
	if e.node == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), claimLimit)
	defer cancel()
	if err := e.node.Remove(ctx, store.OwnerKey(id.container, id.index)); err != nil {
		e.logger.Warn("the owner row of a partition could not be removed, whose container was deleted", "container", id.container.String(), "err", err)
	}
}

// surrender closes a partition and releases it, for another node. Requests that come
// meanwhile wait, as for an opening, and then find that it is closed: if they opened it anew,
// it would still be open after its release.
func (e *Engine) surrender(ctx context.Context, key []byte) {
	e.mu.Lock()
	id, known := e.mu.keys[string(key)]
	if under := e.mu.opening[id]; known && under != nil { // it was just claimed: its turn comes again
		e.mu.Unlock()
		<-under.done
		return
	}
	o := &opening{done: make(chan struct{}), err: store.ErrClosed}
	if known {
		e.mu.opening[id] = o
	}
	ps, _ := e.takeLocked(func(other partitionID) bool { return known && other == id })
	e.mu.Unlock()
	closeThem(ps, nil)
	if err := e.node.Release(ctx, key, e.clock.Now()); err != nil {
		e.logger.Warn("a partition could not be released; its next owner claims it when this node has gone", "err", err)
	}
	if known {
		e.mu.Lock()
		delete(e.mu.opening, id)
		e.mu.Unlock()
		close(o.done)
	}
}

// Drain gives all partitions up, and claims none any more. Requests that come are for other
// nodes from then on. If no other node serves, nothing changes.
func (e *Engine) Drain(ctx context.Context) error {
	if e.node == nil || !slices.ContainsFunc(e.node.Members(), func(m cluster.Member) bool { return !m.Self && m.Preferable }) {
		return nil
	}
	return e.node.Drain(ctx)
}

// leave gives everything up, and writes that the node has left.
func (e *Engine) leave() error {
	if e.node == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaveLimit)
	defer cancel()
	return e.node.Leave(ctx)
}

// keepUp takes a moment every tick, so that this node follows the catalog while no request
// comes, and applies what has changed.
func (e *Engine) keepUp(ctx context.Context) {
	t := time.NewTicker(tickInterval)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			_ = e.moment(ctx) // a beat logs what is wrong with the storage engine
		case <-e.behind:
			if err := e.follow(ctx); err != nil && ctx.Err() == nil {
				e.logger.Error("a change of another node could not be applied yet", "err", err)
			}
		}
	}
}

// follow applies what the catalog says now to all that is open here: the settings of purge,
// the throughput, and the definitions of containers. What belongs to a container that is
// gone is closed.
func (e *Engine) follow(ctx context.Context) error {
	e.following.Lock()
	defer e.following.Unlock()
	err := e.purger.Follow()
	e.meters.followAll()
	e.wakeGrowing()
	e.mu.Lock()
	gone, _ := e.takeLocked(func(id partitionID) bool {
		_, err := e.catalog.Current(id.container)
		return err != nil
	})
	open := map[partitionID]*store.Partition{}
	for id, p := range e.mu.open {
		open[id] = p
	}
	for key, id := range e.mu.keys {
		if _, err := e.catalog.Current(id.container); err != nil {
			delete(e.mu.keys, key)
			e.node.Disown([]byte(key), nil)
		}
	}
	e.mu.Unlock()
	for _, p := range gone {
		e.closing.Go(p.Close)
	}
	for id, p := range open {
		c, gone := e.catalog.Current(id.container)
		if gone == nil && p.Container().Epoch < c.Epoch {
			if failed := p.Reconfigure(ctx, c); !errors.Is(failed, store.ErrClosed) {
				err = errors.Join(err, failed)
			}
		}
	}
	return err
}
