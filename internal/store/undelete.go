// SPDX-License-Identifier: MIT

// A way back: until an expired item is purged, it can be undeleted. That is a write of the
// item, with a new ttl. It keeps its ordinal, and with it its _rid. What a new item has taken
// meanwhile, its id or a unique key, has purged the expired one, so there is nothing to
// undelete then.
//
// A container may have a grace: purge leaves items alone for so long after their deadlines.

package store

import (
	"context"
	"errors"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/value"
)

var (
	// ErrLive refuses to undelete an item that has not expired.
	ErrLive = errors.New("the item has not expired")
	// ErrFinal refuses to undelete items of a container whose expired items stay expired.
	ErrFinal = errors.New("expired items of the container stay expired")
)

// admitUndelete decides whether an item can be brought back.
func (w *writer) admitUndelete(old *current) error {
	switch {
	case !old.exists:
		return ErrNotFound
	case old.live:
		return ErrLive
	case w.view.container.Final():
		return ErrFinal
	}
	return nil
}

// discountExpired records that an item is not expired any more, in the counts of expired
// items that are in memory.
func (w *writer) discountExpired(c *current) {
	w.purged = w.purged.Plus(c.header.amount(1))
	w.purgedItems = append(w.purgedItems, purgedItem{c.logical, int64(c.header.size)})
}

// purgeableFrom returns when an item with this deadline may be purged, given how long purge
// waits in its container.
func purgeableFrom(deadlineMs, graceMs int64) int64 {
	if deadlineMs > never-graceMs {
		return never
	}
	return deadlineMs + graceMs
}

// graceMs returns how long after their deadlines items are not purged.
func graceMs(c *catalog.Container) int64 {
	if c.Final() { // nothing can be undeleted
		return 0
	}
	return c.UndeleteGrace.Milliseconds()
}

// ExpiredItem is an expired item that is not purged.
type ExpiredItem struct {
	PartitionKey value.PartitionKey
	ID           string
	WrittenMs    int64
	DeadlineMs   int64
	// PurgeMs is when purge may take it.
	PurgeMs int64
}

// Undeletable returns expired items that are not purged yet, as of nowMs: at most so many,
// those that purge takes first, and whether there are more.
func (p *Partition) Undeletable(ctx context.Context, most int, nowMs int64) (items []ExpiredItem, more bool, err error) {
	nowMs = p.notBefore(nowMs)
	v, err := p.acquire()
	if err != nil {
		return nil, false, err
	}
	defer p.release(v)
	cut := v.rules.cutsAt(nowMs)
	pl := &plan{marks: v.meta.Marks}
	for k := range expiring {
		for more := true; more; {
			pl.done.More = false
			found, _, err := v.nextExpired(&v.rules, k, cut[k], pl, most)
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				return nil, false, err
			}
			pl.victims, more = append(pl.victims, found...), pl.done.More && len(found) == 0
		}
		more = more || pl.done.More
	}
	pl.done.More = false
	pl.choose(most)
	for i := range pl.victims {
		c := &pl.victims[i]
		h, _, err := p.item(v, c.ordinal)
		if err != nil {
			return nil, false, err
		}
		id, err := parseIdentity(h.identity)
		if err != nil {
			return nil, false, err
		}
		items = append(items, ExpiredItem{id.pk, id.id, h.writtenMs, c.deadlineMs, purgeableFrom(c.deadlineMs, graceMs(v.container))})
	}
	return items, more || pl.done.More, nil
}
