// SPDX-License-Identifier: MIT

// The two orders in which items expire. Items that inherit the container's TTL expire in
// the order of their last write, which is the order of the feed. Items with a ttl of their
// own, or with a deadline that they name themselves, expire in the order of their
// deadlines, which is the order of the own rows. Code that
// reads an order is written once, for both, and takes the kind of item as an argument.
//
//	feed row: ordinal 8, ms 8, kind 1, size 4
//	own row:  ordinal 8, size 4
//
// An item that was touched since its last write has a second feed row, at the touch, unless
// the change feed shows touches: then the touch has moved the only one. The row at the touch
// is in the order of expiry, and the row at the write in the change feed.

package store

import (
	"encoding/binary"

	"github.com/mayflydb/mayfly/internal/kv"
)

// ttlKind is the class of an item's ttl in its feed row. It says which expiry order the
// item is in, so that the item itself need not be read.
type ttlKind uint8

const (
	kindInherits ttlKind = iota // expires by the container's default
	kindOwn                     // expires by its own ttl, or at the deadline that it names
	kindNever                   // never expires, by its own ttl

	// kindMoved is of the feed row at the last write of an item that was touched since: in
	// the order of expiry it is at the touch.
	kindMoved

	// expiring is the number of kinds that expire: those before it, each with an order.
	expiring = kindNever
)

// kind returns which order the item is in.
func (h *header) kind() ttlKind { return h.life().kind() }

// orderMs returns the time by which the item is sorted in the order of its kind.
func (h *header) orderMs() int64 { return h.life().orderMs() }

// position is a position in the feed: after this lsn and n.
type position struct {
	LSN uint64
	N   uint16
}

const positionBytes = 10

func (p position) before(q position) bool { return p.LSN < q.LSN || p.LSN == q.LSN && p.N < q.N }

// next returns the position right after p.
func (p position) next() position {
	if p.N++; p.N == 0 {
		p.LSN++
	}
	return p
}

func (p position) append(dst []byte) []byte {
	return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint64(dst, p.LSN), p.N)
}

func decodePosition(raw []byte) position {
	return position{binary.BigEndian.Uint64(raw), binary.BigEndian.Uint16(raw[8:])}
}

// mark is a position in one of the orders. In the feed, ExpiryMs is 0.
type mark struct {
	ExpiryMs int64
	At       position
}

const markBytes = 8 + positionBytes

// marks are positions in both orders, by kind.
type marks [expiring]mark

func (m mark) before(n mark) bool {
	return m.ExpiryMs < n.ExpiryMs || m.ExpiryMs == n.ExpiryMs && m.At.before(n.At)
}

func (m mark) append(dst []byte) []byte {
	return m.At.append(binary.BigEndian.AppendUint64(dst, uint64(m.ExpiryMs)))
}

func decodeMark(raw []byte) mark {
	return mark{int64(binary.BigEndian.Uint64(raw)), decodePosition(raw[8:])}
}

// append appends the marks as rows store them.
func (m *marks) append(dst []byte) []byte { return m[kindOwn].append(m[kindInherits].At.append(dst)) }

func decodeMarks(raw []byte) marks {
	return marks{{At: decodePosition(raw)}, decodeMark(raw[positionBytes:])}
}

// mark returns the item's position in the order of its kind.
func (h *header) mark() mark {
	if h.kind() == kindOwn {
		return mark{h.orderMs(), h.at()}
	}
	return mark{At: h.at()}
}

// appendOrderKey appends the key of the row at a mark of an order.
func (p *prefix) appendOrderKey(dst []byte, k ttlKind, m mark) []byte {
	if k == kindOwn {
		return m.append(p.appendKey(dst, ownSpace, nil))
	}
	return m.At.append(p.appendKey(dst, feedSpace, nil))
}

const (
	feedRowBytes = 21
	ownRowBytes  = 12
	// hiddenBit is set in the kind of a feed row that the change feed does not show.
	hiddenBit = 0x80
)

// feedRow is the part of a feed row that two rows of one item differ in.
type feedRow struct {
	at   position
	ms   int64
	kind byte
}

// feedRows returns the item's feed rows: one, or two if it was touched and the change feed
// does not show that.
func (h *header) feedRows() (rows [2]feedRow, n int) {
	kind, ms := byte(h.kind()), max(h.baseMs, h.writtenMs)
	if !h.hidden() {
		return [2]feedRow{{h.at(), ms, kind}}, 1
	}
	return [2]feedRow{{h.at(), ms, kind | hiddenBit}, {h.touched.wrote, h.writtenMs, byte(kindMoved)}}, 2
}

func (r *feedRow) append(dst []byte, c *current) []byte {
	dst = binary.BigEndian.AppendUint64(dst, c.ordinal)
	dst = binary.BigEndian.AppendUint64(dst, uint64(r.ms))
	dst = append(dst, r.kind)
	return binary.BigEndian.AppendUint32(dst, uint32(c.header.size))
}

func appendOwnRow(dst []byte, c *current) []byte {
	dst = binary.BigEndian.AppendUint64(dst, c.ordinal)
	return binary.BigEndian.AppendUint32(dst, uint32(c.header.size))
}

// orderRow is a feed row or an own row.
type orderRow struct {
	mark
	ordinal uint64
	kind    ttlKind // of the item
	ms      int64   // the last write or touch in a feed row, the deadline in an own row
	size    int64
	hidden  bool // from the change feed
}

func parseFeedRow(e kv.Entry) (orderRow, error) {
	if len(e.Value) != feedRowBytes || len(e.Key) != prefixBytes+1+positionBytes ||
		e.Value[16]&^hiddenBit > byte(kindMoved) || e.Value[16] == byte(kindMoved)|hiddenBit {
		return orderRow{}, corrupt(e.Key, "not a feed row")
	}
	return orderRow{
		mark:    mark{At: decodePosition(e.Key[prefixBytes+1:])},
		ordinal: binary.BigEndian.Uint64(e.Value),
		kind:    ttlKind(e.Value[16] &^ hiddenBit),
		hidden:  e.Value[16]&hiddenBit != 0,
		ms:      int64(binary.BigEndian.Uint64(e.Value[8:])),
		size:    int64(binary.BigEndian.Uint32(e.Value[17:])),
	}, nil
}

func parseOwnRow(e kv.Entry) (orderRow, error) {
	if len(e.Value) != ownRowBytes || len(e.Key) != prefixBytes+1+markBytes {
		return orderRow{}, corrupt(e.Key, "not an own row")
	}
	at := decodeMark(e.Key[prefixBytes+1:])
	return orderRow{
		mark: at, ordinal: binary.BigEndian.Uint64(e.Value), kind: kindOwn, ms: at.ExpiryMs, size: int64(binary.BigEndian.Uint32(e.Value[8:])),
	}, nil
}
