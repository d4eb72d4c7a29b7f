// SPDX-License-Identifier: MIT

// All rows of an item are written here and nowhere else. Each function adds what
// belongs together to the group's one batch, and removing undoes what putting
// did.

package store

import (
	"encoding/binary"

	"github.com/mayflydb/mayfly/internal/catalog"
)

// current is an item as the group under way has it.
type current struct {
	exists  bool
	live    bool // it exists and has not expired; known while a write executes
	ordinal uint64
	header  header
	unique  [][]byte // the unique keys that it holds
}

// ttlKind is the class of an item's ttl in its feed row: enough to tell, without
// reading the item, which expiry order it is in.
type ttlKind uint8

const (
	kindInherits ttlKind = iota // expires by the container's default
	kindOwn                     // by its own ttl
	kindNever                   // its own ttl says never
)

func kindOf(ttl catalog.TTL) ttlKind {
	switch {
	case ttl == catalog.TTLAbsent:
		return kindInherits
	case ttl == catalog.TTLForever:
		return kindNever
	default:
		return kindOwn
	}
}

const (
	feedRowBytes = 21
	ownRowBytes  = 12
	idRowBytes   = 8
)

// insertRows writes all rows of a new item. row is the item's own.
func (w *writer) insertRows(c *current, row []byte) {
	var buf [idRowBytes]byte
	w.key = w.p.prefix.appendIDKey(w.key[:0], c.header.identity)
	w.batch.Set(w.key, binary.BigEndian.AppendUint64(buf[:0], c.ordinal))
	w.putUnique(c)
	w.putVersion(c, row)
}

// updateRows writes all rows of an item's new version in place of those of the
// old one. The id row stays: an item keeps its ordinal.
func (w *writer) updateRows(old, c *current, row []byte) {
	w.removeUnique(old)
	w.putUnique(c)
	w.removeVersion(old)
	w.putVersion(c, row)
}

// removeRows takes away all rows of an item.
func (w *writer) removeRows(c *current) {
	h := &c.header
	w.key = w.p.prefix.appendItemKey(w.key[:0], c.ordinal)
	w.batch.Delete(w.key, headerBytes+len(h.identity)+h.size)
	w.key = w.p.prefix.appendIDKey(w.key[:0], h.identity)
	w.batch.Delete(w.key, idRowBytes)
	w.removeUnique(c)
	w.removeVersion(c)
}

// putVersion writes the rows that change with every write, and counts the item.
func (w *writer) putVersion(c *current, row []byte) {
	x, h := &w.p.prefix, &c.header
	var buf [feedRowBytes]byte
	w.key = x.appendItemKey(w.key[:0], c.ordinal)
	w.batch.Set(w.key, row)
	w.key = x.appendFeedKey(w.key[:0], h.lsn, h.n)
	w.batch.Set(w.key, appendFeedRow(buf[:0], c))
	if kindOf(h.ttl) == kindOwn {
		w.key = x.appendOwnKey(w.key[:0], ownDeadline(h.writtenMs, h.ttl), h.lsn, h.n)
		w.batch.Set(w.key, appendOwnRow(buf[:0], c))
	}
	w.counters.add(bucketOf(h), 1, h)
}

// removeVersion undoes putVersion, but for the item's own row.
func (w *writer) removeVersion(c *current) {
	x, h := &w.p.prefix, &c.header
	w.key = x.appendFeedKey(w.key[:0], h.lsn, h.n)
	w.batch.Delete(w.key, feedRowBytes)
	if kindOf(h.ttl) == kindOwn {
		w.key = x.appendOwnKey(w.key[:0], ownDeadline(h.writtenMs, h.ttl), h.lsn, h.n)
		w.batch.Delete(w.key, ownRowBytes)
	}
	w.counters.add(bucketOf(h), -1, h)
}

func (w *writer) putUnique(c *current) {
	var buf [uniqueRowBytes]byte
	for _, key := range c.unique {
		w.key = w.p.prefix.appendUniqueKey(w.key[:0], key)
		w.batch.Set(w.key, binary.BigEndian.AppendUint64(buf[:0], c.ordinal))
		w.held[string(key)] = c.ordinal
	}
}

func (w *writer) removeUnique(c *current) {
	for _, key := range c.unique {
		w.key = w.p.prefix.appendUniqueKey(w.key[:0], key)
		w.batch.Delete(w.key, uniqueRowBytes)
		w.held[string(key)] = 0
	}
}

func appendFeedRow(dst []byte, c *current) []byte {
	dst = binary.BigEndian.AppendUint64(dst, c.ordinal)
	dst = binary.BigEndian.AppendUint64(dst, uint64(c.header.writtenMs))
	dst = append(dst, byte(kindOf(c.header.ttl)))
	return binary.BigEndian.AppendUint32(dst, uint32(c.header.size))
}

func appendOwnRow(dst []byte, c *current) []byte {
	dst = binary.BigEndian.AppendUint64(dst, c.ordinal)
	return binary.BigEndian.AppendUint32(dst, uint32(c.header.size))
}
