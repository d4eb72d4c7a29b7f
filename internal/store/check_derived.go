// SPDX-License-Identifier: MIT

package store

import (
	"bytes"
	"encoding/binary"

	"github.com/mayflydb/mayfly/internal/index"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/memory"
)

// checkMark reports an item that purge's mark has passed, so that it would never be purged.
func (k *checker) checkMark(h *header, ordinal uint64) {
	kind := h.kind()
	if kind == kindNever || k.meta.Marks[kind].before(h.mark()) {
		return
	}
	if m := k.meta.Marks[kind]; kind == kindInherits {
		k.report("item %d, lsn %d, inherits its TTL, but purge has passed lsn %d", ordinal, h.lsn, m.At.LSN)
	} else {
		k.report("item %d expires at %d ms, but purge has passed %d ms", ordinal, h.mark().ExpiryMs, m.ExpiryMs)
	}
}

// derivedRows are the kinds of rows that an item has beside its item row, by space.
var derivedRows = map[byte]struct {
	what, aRow string
	bytes      int // length of the row's value
	keyBytes   int // 0 for any
}{
	idSpace:     {"id row", "an id row", idRowBytes, 0},
	feedSpace:   {"feed row", "a feed row", feedRowBytes, prefixBytes + 1 + positionBytes},
	ownSpace:    {"own row", "an own row", ownRowBytes, prefixBytes + 1 + markBytes},
	uniqueSpace: {"unique key's row", "a unique key's row", uniqueRowBytes, 0},
	indexSpace:  {what: "index row"},
}

// shadow initialises a writer whose rows are not committed.
func (k *checker) shadow(w *writer) {
	*w = writer{p: &Partition{prefix: *k.prefix}}
	w.init()
	w.reset()
	w.view = &view{published: &published{container: k.container}}
	w.meta.Generation = k.meta.Generation
}

// write returns all rows of an item, as the loop would write them. Rows that depend on
// unreadable parts of the item are missing; k.body has reported those parts.
func (k *checker) write(w *writer, c *current, row []byte) *kv.Batch {
	w.batch.Reset()
	_ = c.derive(k.container, memory.Room{})
	var err error
	if c.logical, err = logicalOf(c.header.identity); err != nil {
		c.entries = index.Entries{}
	}
	w.insertRows(c, row)
	w.changes = w.changes[:0]
	clear(w.holders)
	delete(w.parts, "")
	return w.batch
}

// derived checks the rows that an item should have. While a new indexing policy is being
// applied, some index rows do not exist yet.
func (k *checker) derived(c *current, row []byte) error {
	reached, passBy := c.ordinal <= k.meta.IndexedTo, k.earlierPolicy
	for op := range k.write(&k.all, c, row).Ops {
		space := op.Key[prefixBytes]
		if space == itemSpace || space == indexSpace && passBy {
			continue
		}
		got, found, err := k.snap.Get(op.Key)
		switch {
		case err != nil:
			return err
		case !found && space == indexSpace && !reached:
			passBy = true
		case !found:
			k.report("item %d has no %s", c.ordinal, derivedRows[space].what)
		case !bytes.Equal(got, op.Value):
			k.report("item %d has a %s that says %x instead of %x", c.ordinal, derivedRows[space].what, got, op.Value)
		default:
			k.correct[space]++
		}
	}
	if c.overfull && reached && !k.earlierPolicy {
		k.overfull++
	}
	return nil
}

// strays reports rows that belong to no item. A space with as many rows as were found
// correct has none.
func (k *checker) strays() error {
	for _, space := range []byte{idSpace, feedSpace, ownSpace, uniqueSpace, indexSpace} {
		rows := 0
		err := k.each(space, func(kv.Entry) error { rows++; return nil })
		if err == nil && rows != k.correct[space] {
			err = k.each(space, k.owned)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// owned checks that a derived row is one that its item requires.
func (k *checker) owned(e kv.Entry) error {
	ordinal, ok := k.ownerOf(e)
	if !ok {
		return nil
	}
	key := k.prefix.appendItemKey(nil, ordinal)
	row, found, err := k.snap.Get(key)
	switch {
	case err != nil:
		return err
	case !found:
		k.report("row %x belongs to item %d, which does not exist", e.Key, ordinal)
		return nil
	}
	c, err := itemOf(kv.Entry{Key: key, Value: row})
	has := err == nil && k.earlierPolicy && e.Key[prefixBytes] == indexSpace
	if err == nil && !has {
		k.one.reset()
		for op := range k.write(&k.one, &c, row).Ops {
			has = has || bytes.Equal(op.Key, e.Key)
		}
	}
	if !has {
		k.report("row %x is not one that item %d has", e.Key, ordinal)
	}
	return nil
}

// ownerOf returns the ordinal of the item that a derived row belongs to. It reports a row
// that cannot be read.
func (k *checker) ownerOf(e kv.Entry) (ordinal uint64, ok bool) {
	if e.Key[prefixBytes] == indexSpace {
		start := k.prefix.appendIndexStart(nil, k.meta.Generation)
		if !bytes.HasPrefix(e.Key, start) || len(e.Key) < len(start)+1+ordinalBytes || len(e.Value) < indexRowBytes {
			k.report("row %x is not an index row of generation %d", e.Key, k.meta.Generation)
			return 0, false
		}
		return indexOrdinal(e.Key), true
	}
	d := derivedRows[e.Key[prefixBytes]]
	if len(e.Value) != d.bytes || d.keyBytes != 0 && len(e.Key) != d.keyBytes {
		k.report("row %x is not %s", e.Key, d.aRow)
		return 0, false
	}
	return binary.BigEndian.Uint64(e.Value), true
}

// part compares the totals of a logical partition with the count.
func (k *checker) part(e kv.Entry, got part) error {
	logical := string(e.Key[prefixBytes+1:])
	want := k.all.parts[logical]
	delete(k.all.parts, logical)
	if got != want || want.Items == 0 { // totals of 0 items should have no row
		k.report("the totals of logical partition %x are %d items, %d bytes, but there are %d items, %d bytes",
			logical, got.Items, got.Bytes, want.Items, want.Bytes)
	}
	return nil
}

// event checks that the item of an event does not exist any more.
func (k *checker) event(e kv.Entry, ev Event) error {
	_, found, err := k.snap.Get(k.prefix.appendItemKey(nil, ev.Ordinal))
	if err == nil && found {
		k.report("row %x says that item %d was purged, but it exists", e.Key, ev.Ordinal)
	}
	return err
}
