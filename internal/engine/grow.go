// SPDX-License-Identifier: MIT

// Containers that grow: after a replace of a container's throughput its partitions are split,
// one after the other, until they carry it. What is wanted is in the catalog, so that it
// survives a restart, and every node of a cluster sees to it. Two nodes do not do it twice:
// both choose the same range, and a range is split once.

package engine

import (
	"context"
	"errors"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/store"
)

const (
	// growPause is the time until the first attempt to split a range is repeated. It doubles
	// with every further one.
	growPause = time.Second
	// growTries is how often a range is tried before its container stays as it is.
	growTries = 8
)

// attempts counts the attempts to split a range, and says when the next one may begin.
type attempts struct {
	id, count int
	next      time.Time
}

// wakeGrowing has the goroutine of keepGrowing look at the catalog.
func (e *Engine) wakeGrowing() {
	select {
	case e.growing <- struct{}{}:
	default: // it will look anyway
	}
}

// keepGrowing splits partitions until each container has as many as it wants. It sleeps while
// no container grows.
func (e *Engine) keepGrowing(ctx context.Context) {
	tried := map[catalog.ContainerRID]attempts{}
	for {
		var again <-chan time.Time
		if tried = e.growAll(ctx, tried); len(tried) > 0 {
			again = time.After(growPause)
		}
		select {
		case <-ctx.Done():
			return
		case <-e.growing:
		case <-again:
		}
	}
}

// growAll begins the next split in every container that grows, and returns the attempts in
// these.
func (e *Engine) growAll(ctx context.Context, tried map[catalog.ContainerRID]attempts) map[catalog.ContainerRID]attempts {
	growing := map[catalog.ContainerRID]attempts{}
	for _, d := range e.catalog.Databases() {
		for _, c := range d.Containers() {
			if !c.Growing() {
				continue
			}
			a := tried[c.RID]
			if id := c.Largest().ID; a.id != id || a.count == 0 {
				a = attempts{id: id}
			}
			e.grow(ctx, c, &a)
			growing[c.RID] = a
		}
	}
	return growing
}

// grow begins the next split in a container, unless one is under way. After too many attempts
// it gives up.
func (e *Engine) grow(ctx context.Context, c *catalog.Container, a *attempts) {
	if time.Now().Before(a.next) || e.looksOn() != nil {
		return
	}
	e.mu.RLock()
	run := e.mu.splits[c.RID]
	e.mu.RUnlock()
	if run != nil && !run.over() {
		return // its end wakes this
	}
	if a.count == growTries {
		e.logger.Error("a container keeps the partitions that it has, although its throughput takes more: raise the throughput again, or split with the command", "container", c.Path, "partitions", len(c.Ranges), "wanted", c.Wanted)
		if err := e.changed(e.catalog.StopGrowing(ctx, c.RID)); err != nil {
			e.logger.Warn("that a container keeps its partitions could not be written yet", "container", c.Path, "err", err)
		}
		return
	}
	err := e.Moment(ctx)
	if err == nil {
		_, err = e.SplitRange(ctx, c, catalog.RangeID(a.id))
	}
	switch {
	case errors.Is(err, ErrSplitting), errors.Is(err, ErrRangeGone), errors.Is(err, ErrOwnerNotFound), errors.Is(err, store.ErrClosed), ctx.Err() != nil:
		return // another node was first, or the container has changed
	case err != nil:
		e.logger.Warn("a partition could not be split for a higher throughput", "container", c.Path, "range", a.id, "err", err)
	}
	a.next = time.Now().Add(growPause << a.count)
	a.count++
}
