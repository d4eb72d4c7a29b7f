// SPDX-License-Identifier: MIT

// Forgetting who expired. An event keeps the partition key and the id of its item, for its
// readers, for as long as the bytes of the item itself may stay on disk. Then it keeps only
// times: rows with identities are written again without them.

package store

import (
	"bytes"
	"context"
	"errors"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/kv"
)

// forgetRows bounds the events of one group.
const forgetRows = 512

// Forget removes the identities from events of items that were gone before the given time, and
// from those that are recorded later for such items.
func (p *Partition) Forget(ctx context.Context, beforeMs int64) error {
	p.turn.Lock() // one background group at a time
	defer p.turn.Unlock()
	for { // it never decreases
		was := p.forgottenMs.Load()
		if beforeMs <= was {
			break
		}
		if p.forgottenMs.CompareAndSwap(was, beforeMs) {
			break
		}
	}
	after := EventKey{}
	for {
		pl, err := p.planForget(after, beforeMs)
		if err != nil || len(pl.keys) == 0 {
			return err
		}
		_, err = p.submit(ctx, &job{task: &task{do: pl.write}})
		if err != nil && !errors.Is(err, errStale) {
			return err
		}
		after = pl.last
	}
}

// forgetPlan is the events of one group, whose rows become rows.
type forgetPlan struct {
	keys, rows [][]byte
	events     []EventKey
	last       EventKey
}

// planForget finds the next events that have identities. No other code changes the row of an
// event, except to remove it, and that is also a background group.
func (p *Partition) planForget(after EventKey, beforeMs int64) (*forgetPlan, error) {
	v, err := p.acquire()
	if err != nil {
		return nil, err
	}
	defer p.release(v)
	pl := &forgetPlan{}
	lower := append(p.prefix.appendEventKey(nil, after), 0)
	upper := p.prefix.appendEventKey(nil, EventKey{GoneMs: beforeMs})
	for e, err := range v.snap.Scan(lower, upper, kv.Forward) {
		if err != nil {
			return nil, err
		}
		if len(e.Value) <= eventRowBytes {
			continue
		}
		if pl.last, err = parseEventKey(e.Key); err != nil {
			return nil, err
		}
		pl.events = append(pl.events, pl.last)
		pl.keys = append(pl.keys, bytes.Clone(e.Key))
		pl.rows = append(pl.rows, bytes.Clone(e.Value[:eventRowBytes]))
		if len(pl.keys) == forgetRows {
			break
		}
	}
	return pl, nil
}

// write executes the plan.
func (pl *forgetPlan) write(w *writer) error {
	for i, key := range pl.keys {
		w.batch.Delete(key, eventRowBytes) // so that the old row is erased
		w.batch.Set(key, pl.rows[i])
	}
	w.events = append(w.events, pl.events...)
	return nil
}

// Renew lets go of the snapshot that reads use, so that the next one takes a new one: a
// snapshot keeps the bytes of rows that were deleted since. A group under way keeps its own,
// and publishes a new one when it ends.
func (p *Partition) Renew() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.mu.writing {
		p.drop()
	}
}

// ContainerRange returns the keys of all rows of a container.
func ContainerRange(c catalog.ContainerRID) kv.Range {
	first := partitionPrefix(c, 0)
	end := partitionPrefix(catalog.ContainerRID{Database: c.Database, Container: c.Container + 1}, 0)
	return kv.Range{Lower: first[:], Upper: end[:]}
}

// HasEvents reports whether a partition that is not open has events with identities of items
// that were gone before the given time.
func HasEvents(snap kv.Snapshot, c *catalog.Container, index int, beforeMs int64) (bool, error) {
	x := partitionPrefix(c.RID, index)
	lower, _ := x.space(eventSpace)
	for e, err := range snap.Scan(lower, x.appendEventKey(nil, EventKey{GoneMs: beforeMs}), kv.Forward) {
		if err != nil || len(e.Value) > eventRowBytes {
			return err == nil, err
		}
	}
	return false, nil
}
