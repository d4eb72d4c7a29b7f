// SPDX-License-Identifier: MIT

// Transactions: writes that are not published yet. A transaction holds what its writes have
// changed. The transaction of a group or a draft is over a view. That of a bundle is a
// child of its group's. What a transaction has not changed is read from its parent, or from
// the view. A child that succeeds is merged into its parent; one that fails is dropped
// without effect.

package store

import (
	"maps"

	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/ru"
)

// tx is a transaction.
type tx struct {
	parent *tx // nil if it is directly over a view
	view   *view
	moment
	state
	items       map[string]current   // changed items, by identity; a removed one does not exist
	identities  map[uint64]string    // of changed items, by ordinal
	holders     map[string]uint64    // ordinals of holders, by unique key; 0 for none
	buckets     map[bucketKey]bucket // changed counters
	parts       map[string]part      // changed totals of logical partitions
	purgedItems []purgedItem
	changes     []change   // of index entries
	events      []EventKey // whose rows are new, or others

	batch       *kv.Batch // its rows, after those of its parent
	rows, bytes int       // in the batch when the transaction began

	together bool   // its writes share one lsn
	writes   uint16 // number of writes done
}

// state is the part of a transaction that a child starts from.
type state struct {
	meta      meta
	log       changeLog
	soonestMs int64  // when the first of the items written may be purged
	purged    Amount // expired items that were removed or undeleted
	assisted  assisted
	gone      eventStep // events of items that were purged
}

// assisted is the work of purging expired items that writes replaced.
type assisted struct {
	Amount
	units ru.Units
}

// purgedItem is an expired item that was removed, for the tallies of quotas.
type purgedItem struct {
	logical []byte
	bytes   int64
}

// reset forgets all changes. It keeps the state.
func (t *tx) reset() {
	if t.items == nil {
		t.items, t.identities, t.holders = map[string]current{}, map[uint64]string{}, map[string]uint64{}
		t.buckets, t.parts = map[bucketKey]bucket{}, map[string]part{}
	}
	clear(t.items)
	clear(t.identities)
	clear(t.holders)
	clear(t.buckets)
	clear(t.parts)
	clear(t.purgedItems)
	clear(t.changes)
	t.purgedItems, t.changes, t.events = t.purgedItems[:0], t.changes[:0], t.events[:0]
	t.writes = 0
}

// beginChild begins a child of the present transaction. The child's writes share one lsn.
func (w *writer) beginChild() {
	t, c := w.tx, &w.child
	c.reset()
	c.parent, c.view, c.moment, c.state, c.batch = t, t.view, t.moment, t.state, t.batch
	c.rows, c.bytes = t.batch.Len(), t.batch.Bytes()
	c.together = true
	w.tx = c
}

// endChild merges the child into its parent, or drops it if it has failed.
func (w *writer) endChild(failed bool) {
	c, t := w.tx, w.tx.parent
	w.tx = t
	if failed {
		t.batch.Truncate(c.rows)
	} else {
		t.state = c.state
		maps.Copy(t.items, c.items)
		maps.Copy(t.identities, c.identities)
		maps.Copy(t.holders, c.holders)
		maps.Copy(t.buckets, c.buckets)
		maps.Copy(t.parts, c.parts)
		t.purgedItems = append(t.purgedItems, c.purgedItems...)
		t.changes = append(t.changes, c.changes...)
		t.events = append(t.events, c.events...)
	}
	c.reset()
}

// nextLSN returns the lsn and the n of the next write. Writes that share an lsn have n from
// 1.
func (t *tx) nextLSN() (lsn uint64, n uint16) {
	switch {
	case !t.together:
		return t.meta.LSN + 1, 0
	case t.writes == 0:
		return t.meta.LSN + 1, 1
	default:
		return t.meta.LSN, t.writes + 1
	}
}

// takeLSN moves to the lsn of the next write.
func (t *tx) takeLSN() {
	t.meta.LSN, _ = t.nextLSN()
	t.writes++
}

// setItem replaces the item with its identity.
func (t *tx) setItem(c *current) { t.set(c.header.identity, c.ordinal, c) }

// removeItem records that the item does not exist any more.
func (t *tx) removeItem(c *current) { t.set(c.header.identity, c.ordinal, &current{}) }

func (t *tx) set(identity []byte, ordinal uint64, c *current) {
	key := string(identity)
	t.items[key], t.identities[ordinal] = *c, key
}

// changed returns the item with an identity, if the transaction has changed it.
func (t *tx) changed(identity []byte) (c current, known bool) {
	for ; t != nil && !known; t = t.parent {
		c, known = t.items[string(identity)]
	}
	return c, known
}

// changedAt returns the item with an ordinal, if the transaction has changed it.
func (t *tx) changedAt(ordinal uint64) (c current, known bool) {
	identity, known := "", false
	for at := t; at != nil && !known; at = at.parent {
		identity, known = at.identities[ordinal]
	}
	if !known {
		return current{}, false
	}
	if c, _ = t.changed([]byte(identity)); c.ordinal != ordinal {
		return current{}, true // another item has its identity now
	}
	return c, true
}

// current returns the item with an identity as the transaction sees it.
func (w *writer) current(identity []byte) (current, error) {
	if c, known := w.changed(identity); known {
		return c, nil
	}
	w.key = w.p.prefix.appendIDKey(w.key[:0], identity)
	ordinal, found, err := rowAt(w.view.snap, w.key, parseOrdinalRow)
	if err != nil || !found {
		return current{}, err
	}
	return w.load(ordinal)
}

// load reads an item that the transaction has not changed.
func (w *writer) load(ordinal uint64) (current, error) {
	h, body, err := w.p.item(w.view, ordinal)
	if err != nil {
		return current{}, err
	}
	return current{exists: true, ordinal: ordinal, header: h, body: body}, nil
}

// holder returns the item that holds a unique key.
func (w *writer) holder(key []byte) (current, error) {
	ordinal, known, err := uint64(0), false, error(nil)
	for t := w.tx; t != nil && !known; t = t.parent {
		ordinal, known = t.holders[string(key)]
	}
	if !known {
		w.key = w.p.prefix.appendKey(w.key[:0], uniqueSpace, key)
		ordinal, _, err = rowAt(w.view.snap, w.key, parseOrdinalRow)
	}
	if err != nil || ordinal == 0 {
		return current{}, err
	}
	if c, known := w.changedAt(ordinal); known {
		return c, nil
	}
	return w.load(ordinal)
}

// purgedIn returns how many bytes of a logical partition the transaction has purged.
func (t *tx) purgedIn(logical []byte) (bytes int64) {
	for ; t != nil; t = t.parent {
		for i := range t.purgedItems {
			if string(t.purgedItems[i].logical) == string(logical) {
				bytes += t.purgedItems[i].bytes
			}
		}
	}
	return bytes
}

// bucket returns a loaded counter.
func (w *writer) bucket(k bucketKey) (b bucket, known bool) {
	for t := w.tx; t != nil; t = t.parent {
		if b, known = t.buckets[k]; known {
			return b, true
		}
	}
	b, known = w.counters.cached[k]
	return b, known
}

// part returns the loaded totals of a logical partition.
func (w *writer) part(logical []byte) (p part, known bool) {
	for t := w.tx; t != nil; t = t.parent {
		if p, known = t.parts[string(logical)]; known {
			return p, true
		}
	}
	p, known = w.totals.cached[string(logical)]
	return p, known
}
