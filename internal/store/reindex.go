// SPDX-License-Identifier: MIT

// After a change of the indexing policy, the existing items get their index rows in the
// background, a group at a time, in the order of their ordinals. A write creates rows under
// the new policy by itself, so an item that has changed since it was read is skipped.

package store

import (
	"bytes"
	"context"
	"errors"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/memory"
)

// reindexBytes bounds the items of one group.
const reindexBytes = 1 << 20

// reindexPlan is a group of items whose index rows are to be written.
type reindexPlan struct {
	under *catalog.Container
	lsn   uint64
	items []current
	to    uint64 // then all items up to this ordinal have their rows
	more  bool
}

// IndexProgress returns how many percent of the items have their index rows.
func (p *Partition) IndexProgress() (int, error) {
	p.mu.Lock()
	m := p.mu.now.meta
	closed := p.mu.closed
	p.mu.Unlock()
	if closed {
		return 0, ErrClosed
	}
	if m.Items == 0 || m.IndexedTo == indexedAll {
		return 100, nil
	}
	first := FirstOrdinal(p.index)
	done, all := max(m.IndexedTo, first)-first, m.NextOrdinal-first
	return int(min(99, 100*done/max(all, 1))), nil
}

// Unindexed reports whether there are items that have no index rows yet.
func (p *Partition) Unindexed() bool { return p.now().meta.IndexedTo != indexedAll }

// Reindex writes the index rows of the next items that have none, at most so many. It
// returns whether there may be more.
func (p *Partition) Reindex(ctx context.Context, most int) (items int, more bool, err error) {
	p.turn.Lock() // one background group at a time
	defer p.turn.Unlock()
	pl, err := p.planReindex(most)
	if err != nil {
		return 0, false, err
	}
	_, err = p.submit(ctx, &job{task: &task{do: pl.write, under: pl.under}})
	if errors.Is(err, errStale) {
		return 0, true, nil
	}
	return len(pl.items), pl.more, err
}

func (p *Partition) planReindex(most int) (*reindexPlan, error) {
	v, err := p.acquire()
	if err != nil {
		return nil, err
	}
	defer p.release(v)
	after := v.meta.IndexedTo
	pl := &reindexPlan{under: v.container, lsn: v.meta.LSN, to: indexedAll}
	if after == indexedAll {
		return pl, nil
	}
	_, upper := p.prefix.space(itemSpace)
	size := 0
	for c, err := range scanRows(v.snap, p.prefix.appendItemKey(nil, after+1), upper, func(e kv.Entry) (current, error) {
		return itemOf(kv.Entry{Key: e.Key, Value: bytes.Clone(e.Value)})
	}) {
		if err != nil {
			return nil, err
		}
		if len(pl.items) == most || size > reindexBytes {
			pl.to, pl.more = pl.items[len(pl.items)-1].ordinal, true
			break
		}
		if err := c.derive(v.container, memory.Room{}); err != nil {
			return nil, err
		}
		size += len(c.body) + rowBytes(&c.entries)
		pl.items = append(pl.items, c)
	}
	return pl, nil
}

// write writes the index rows of the plan's items that have not changed since.
func (pl *reindexPlan) write(w *writer) error {
	for i := range pl.items {
		c := &pl.items[i]
		same, err := w.unchanged(pl.lsn, c)
		if err != nil {
			return err
		}
		if same {
			w.putIndex(c)
		}
		if same && c.overfull {
			w.meta.Overfull++
		}
	}
	w.indexed = w.meta.IndexedTo != pl.to
	w.meta.IndexedTo = pl.to
	return nil
}
