// SPDX-License-Identifier: MIT

// Transactions: writes that nobody else sees yet. A transaction holds what its writes
// have changed, over a parent: that of a bundle lies over its group's, and those of a
// group and of a draft lie over a view. What a transaction has not changed is read from
// its parent. A child that succeeds is merged into its parent; one that fails is
// dropped, and nothing has happened.

package store

import (
	"maps"

	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/ru"
)

// tx is a transaction.
type tx struct {
	parent *tx // nil over a view
	view   *view
	moment
	state
	items       map[string]current   // by identity; one that does not exist was removed
	identities  map[uint64]string    // by ordinal: the identities of those
	holders     map[string]uint64    // by unique key: the holder's ordinal, 0 for none
	buckets     map[bucketKey]bucket // counters that have changed
	parts       map[string]part      // logical partitions that have changed
	purgedItems []purgedItem
	changes     []change // of index entries

	batch       *kv.Batch // its rows, after those of the parent
	rows, bytes int       // of the batch when the transaction began

	together bool   // its writes have one lsn
	writes   uint16 // that it has done
}

// state is what a child begins with as its parent has it.
type state struct {
	meta      meta
	log       changeLog
	soonestMs int64  // the next deadline of what was written
	purged    Amount // of expired items that were removed
	assisted  assisted
}

// assisted is the work of removing expired items that stood in the way of writes.
type assisted struct {
	Amount
	units ru.Units
}

// purgedItem is the removal of an expired item, for what is known of the dead.
type purgedItem struct {
	logical []byte
	bytes   int64
}

// reset forgets what has changed, but for the state.
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
	t.purgedItems, t.changes = t.purgedItems[:0], t.changes[:0]
	t.writes = 0
}

// beginChild begins a child of the present transaction, whose writes have one lsn.
func (w *writer) beginChild() {
	t, c := w.tx, &w.child
	c.reset()
	c.parent, c.view, c.moment, c.state, c.batch = t, t.view, t.moment, t.state, t.batch
	c.rows, c.bytes = t.batch.Len(), t.batch.Bytes()
	c.together = true
	w.tx = c
}

// endChild ends the child: it is merged into its parent, or dropped if it has failed.
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
	}
	c.reset()
}

// nextLSN returns the lsn and the n that the next write has. Those of writes that have
// one lsn are numbered from 1.
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

// takeLSN moves on to the place of the write that is about to be done.
func (t *tx) takeLSN() {
	t.meta.LSN, _ = t.nextLSN()
	t.writes++
}

// setItem puts an item over the one that was there.
func (t *tx) setItem(c *current) { t.set(c.header.identity, c.ordinal, c) }

// removeItem leaves no item where one was.
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
		return current{}, true // another one has its identity
	}
	return c, true
}

// current returns the item with an identity as the transaction has it.
func (w *writer) current(identity []byte) (current, error) {
	if c, known := w.changed(identity); known {
		return c, nil
	}
	w.key = w.p.prefix.appendKey(w.key[:0], idSpace, identity)
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

// purgedIn returns how many bytes of a logical partition had expired and were removed.
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

// bucket returns a counter that was loaded.
func (w *writer) bucket(k bucketKey) (b bucket, known bool) {
	for t := w.tx; t != nil; t = t.parent {
		if b, known = t.buckets[k]; known {
			return b, true
		}
	}
	b, known = w.counters.cached[k]
	return b, known
}

// part returns the totals of a logical partition that were loaded.
func (w *writer) part(logical []byte) (p part, known bool) {
	for t := w.tx; t != nil; t = t.parent {
		if p, known = t.parts[string(logical)]; known {
			return p, true
		}
	}
	p, known = w.totals.cached[string(logical)]
	return p, known
}
