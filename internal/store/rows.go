// SPDX-License-Identifier: MIT

// All rows of an item are written here and nowhere else. Each function adds the rows that
// belong together to the group's one batch, and each remove function undoes its put
// function.

package store

import (
	"bytes"
	"encoding/binary"

	"github.com/mayflydb/mayfly/internal/index"
)

// current is an item as a transaction sees it.
type current struct {
	exists  bool
	live    bool // it exists and has not expired; set while a write executes
	ordinal uint64
	header  header
	logical []byte        // {epk}{pk}, the start of its identity, as it is in keys
	unique  [][]byte      // the unique keys that it holds
	entries index.Entries // its index entries
	derived bool          // unique and entries are known
	// overfull: it has too much to index, and so no entries.
	overfull bool
	body     []byte // as a read returns it
}

const idRowBytes = 8

// insertRows writes all rows of a new item. row is its item row.
func (w *writer) insertRows(c *current, row []byte) {
	w.putID(c)
	w.putUnique(c)
	w.putIndex(c)
	w.putVersion(c, row)
	w.logChange(logCreate, &c.header, 0, row[c.header.bodyAt():])
	w.changes = append(w.changes, change{ordinal: c.ordinal, next: c.entries})
}

// updateRows writes all rows of an item's new version in place of those of the old one, and
// returns how many index rows were written or removed. The item keeps its ordinal, and its
// id row unless its id changes.
func (w *writer) updateRows(old, c *current, row []byte) (changed int) {
	if !bytes.Equal(old.header.identity, c.header.identity) {
		w.removeID(old)
		w.putID(c)
	}
	w.removeUnique(old)
	w.putUnique(c)
	removed := w.removeIndex(old, &c.entries, nil)
	w.putIndex(c)
	w.removeVersion(old)
	w.putVersion(c, row)
	w.logChange(logReplace, &c.header, old.header.wroteAt().LSN, row[c.header.bodyAt():])
	w.changes = append(w.changes, change{c.ordinal, old.entries, c.entries})
	kept := old.entries.Len() - removed
	return removed + c.entries.Len() - kept
}

// removeRows removes all rows of an item.
func (w *writer) removeRows(c *current) {
	h := &c.header
	w.key = w.p.prefix.appendItemKey(w.key[:0], c.ordinal)
	w.batch.Delete(w.key, h.bodyAt()+h.size)
	w.removeFeed(c)
	w.removeScattered(c, nil)
}

// removeScattered removes all rows of an item but the item row and the feed row, and
// subtracts it from the counters. The caller removes those two, which are next to the rows
// of items written before and after, and the rows of the ranged terms.
func (w *writer) removeScattered(c *current, ranged terms) {
	w.removeID(c)
	w.removeUnique(c)
	w.removeIndex(c, nil, ranged)
	w.removeOwn(c)
	w.count(-1, c)
	w.changes = append(w.changes, change{ordinal: c.ordinal, old: c.entries})
}

func (w *writer) putID(c *current) {
	var buf [idRowBytes]byte
	w.key = w.p.prefix.appendIDKey(w.key[:0], c.header.identity)
	w.batch.Set(w.key, binary.BigEndian.AppendUint64(buf[:0], c.ordinal))
}

func (w *writer) removeID(c *current) {
	w.key = w.p.prefix.appendIDKey(w.key[:0], c.header.identity)
	w.batch.Delete(w.key, idRowBytes)
}

// putVersion writes the rows that change with every write, and counts the item.
func (w *writer) putVersion(c *current, row []byte) {
	w.putTimes(c, row)
	w.count(1, c)
}

// putTimes writes the rows that depend on when the item was written or touched.
func (w *writer) putTimes(c *current, row []byte) {
	x, h := &w.p.prefix, &c.header
	var buf [feedRowBytes]byte
	w.key = x.appendItemKey(w.key[:0], c.ordinal)
	w.batch.Set(w.key, row)
	rows, n := h.feedRows()
	for i := range rows[:n] {
		w.key = x.appendFeedKey(w.key[:0], rows[i].at)
		w.batch.Set(w.key, rows[i].append(buf[:0], c))
	}
	if h.kind() == kindOwn {
		w.key = x.appendOrderKey(w.key[:0], kindOwn, h.mark())
		w.batch.Set(w.key, appendOwnRow(buf[:0], c))
	}
	w.soonestMs = min(w.soonestMs, purgeableFrom(h.deadline(w.view.rules.containerDefault), graceMs(w.view.container)))
}

// removeVersion undoes putVersion.
func (w *writer) removeVersion(c *current) {
	w.removeTimes(c)
	w.count(-1, c)
}

// removeTimes undoes putTimes. The item row is deleted although it is always written again:
// otherwise the engine would not know that there are bytes to erase.
func (w *writer) removeTimes(c *current) {
	w.key = w.p.prefix.appendItemKey(w.key[:0], c.ordinal)
	w.batch.Delete(w.key, c.header.bodyAt()+c.header.size)
	w.removeFeed(c)
	w.removeOwn(c)
}

func (w *writer) removeFeed(c *current) {
	rows, n := c.header.feedRows()
	for i := range rows[:n] {
		w.key = w.p.prefix.appendFeedKey(w.key[:0], rows[i].at)
		w.batch.Delete(w.key, feedRowBytes)
	}
}

func (w *writer) removeOwn(c *current) {
	if h := &c.header; h.kind() == kindOwn {
		w.key = w.p.prefix.appendOrderKey(w.key[:0], kindOwn, h.mark())
		w.batch.Delete(w.key, ownRowBytes)
	}
}

// count adds an item to all counters (sign 1) or subtracts it (sign -1). loadCounts has
// loaded them.
func (w *writer) count(sign int64, c *current) {
	w.addToBuckets(sign, &c.header)
	w.addToPart(sign, c)
	w.meta.Amount = w.meta.Plus(c.header.amount(sign))
}

// loadCounts loads the counters that count changes.
func (w *writer) loadCounts(c *current) error {
	if err := w.loadBuckets(&c.header); err != nil {
		return err
	}
	if c.logical == nil {
		var err error
		if c.logical, err = logicalOf(c.header.identity); err != nil {
			return err
		}
	}
	_, err := w.loadPart(c.logical)
	return err
}

func (w *writer) putUnique(c *current) {
	var buf [uniqueRowBytes]byte
	for _, key := range c.unique {
		w.key = w.p.prefix.appendKey(w.key[:0], uniqueSpace, key)
		w.batch.Set(w.key, binary.BigEndian.AppendUint64(buf[:0], c.ordinal))
		w.holders[string(key)] = c.ordinal
	}
}

func (w *writer) removeUnique(c *current) {
	for _, key := range c.unique {
		w.key = w.p.prefix.appendKey(w.key[:0], uniqueSpace, key)
		w.batch.Delete(w.key, uniqueRowBytes)
		w.holders[string(key)] = 0
	}
}
