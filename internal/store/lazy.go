// SPDX-License-Identifier: MIT

// Containers that are indexed lazily: a write puts no index rows, and the item gets them
// in the background, in the order of the feed. One mark in the feed tells which items have
// theirs, so that nothing has to be remembered of a single item, and nothing is lost by a
// restart. A write takes away what the version before had: rows are never those of an
// earlier version, so that what a query sees is live and as it is, if it sees it.

package store

import (
	"math"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/kv"
)

// lazily reports whether index rows follow the items in the background.
func lazily(c *catalog.Container) bool { return c.IndexingMode == catalog.IndexingLazy }

// reached reports whether the item, which was there before, has its index rows for sure.
func (m *meta) reached(c *catalog.Container, item *current) bool {
	if lazily(c) {
		return !before(m.LazyAt, position{item.header.lsn, item.header.n})
	}
	return item.ordinal <= m.IndexedTo
}

// forgetUnindexed makes an item that was derived one without entries, if it has no index
// rows yet.
func (w *writer) forgetUnindexed(c *current) {
	if lazily(w.view.container) && !w.meta.reached(w.view.container, c) {
		c.entries, c.overfull = entries{}, false
	}
}

// planLazy finds the next items in the feed after the plan's place.
func (p *Partition) planLazy(v *view, pl *reindexPlan, most int) error {
	lower := append(p.prefix.appendFeedKey(nil, pl.lazyTo.LSN, pl.lazyTo.N), 0)
	_, upper := p.prefix.space(feedSpace)
	bytes := 0
	for e, err := range v.snap.Scan(lower, upper, kv.Forward) {
		if err != nil {
			return err
		}
		row, err := parseFeedRow(e)
		if err != nil {
			return err
		}
		if len(pl.items) == most || bytes > reindexBytes {
			pl.more = true
			return nil
		}
		pl.lazyTo = row.at
		c := current{exists: true, ordinal: row.ordinal}
		key := p.prefix.appendItemKey(nil, row.ordinal)
		raw, found, err := v.snap.Get(key)
		if err != nil {
			return err
		}
		if !found {
			continue // purge takes the row away
		}
		if c.header, c.body, err = parseItem(key, raw); err != nil {
			return err
		}
		if c.header.lsn != row.at.LSN || c.header.n != row.at.N {
			continue
		}
		if err := c.derive(v.container); err != nil {
			return err
		}
		bytes += len(c.body) + c.entries.Bytes()
		pl.items = append(pl.items, c)
	}
	pl.lazyTo = endOf(v.lsn)
	return nil
}

// LazyProgress returns how many percent of what was written the index has followed, in a
// container that is indexed lazily; 100 in others.
func (p *Partition) LazyProgress() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !lazily(p.mu.container) {
		return 100
	}
	return share(p.mu.lazyAt, p.mu.lsn)
}

// share returns how many percent of the way to an lsn another one is: 100 only at its
// end.
func share(at position, all uint64) int {
	if !before(at, endOf(all)) {
		return 100
	}
	return int(min(99, 100*at.LSN/max(all, 1)))
}

// endOf is the place in the feed after all items with an lsn.
func endOf(lsn uint64) position { return position{lsn, math.MaxUint16} }
