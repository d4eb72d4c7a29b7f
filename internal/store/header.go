// SPDX-License-Identifier: MIT

// The bytes of an item's row:
//
//	0   1  version: 1; 2 if the item names its deadline; 3 if it was touched
//	1   8  lsn of the last write or touch
//	9   2  n, the number of the write among those of that lsn, from 1; 0 if it is the only one
//	11  8  writtenMs, the moment of the last write
//	19  4  ttl: the item's own, 0 for none
//	23  4  size of the body
//	27  2  length of the identity
//	29  …  identity: {epk}{pk}{id}, as in the id row's key
//	…   …  body: the exact bytes that a read returns
//
// From version 2 on these are between the length and the identity:
//
//	29  8  baseMs, the moment of the last touch, from which the countdown runs; 0 if it runs from the last write
//	37  8  atMs, the deadline that the item names itself, 0 for none
//
// and in version 3 these follow:
//
//	45  8  lsn of the last write
//	53  2  n of the last write
//	55  1  1 if the change feed shows the touch, else 0
//
// A point read returns the body as it is, and parses none of it. With the identity, all
// other rows of the item can be found from this one.

package store

import (
	"encoding/binary"

	"github.com/mayflydb/mayfly/internal/catalog"
)

const (
	plainVersion   = 1
	timedVersion   = 2
	touchedVersion = 3
	plainBytes     = 29
	timedBytes     = plainBytes + 16
	touchedBytes   = timedBytes + 11
)

// header is the part of an item's row before the body.
type header struct {
	lsn       uint64
	n         uint16
	writtenMs int64
	ttl       catalog.TTL
	baseMs    int64
	atMs      int64
	touched   touched // zero if it was not touched since its last write
	size      int
	identity  []byte
}

// touched is what a touched item keeps of its last write, whose etag it still has.
type touched struct {
	wrote position
	shown bool // the change feed shows the touch
}

// version returns the version of the item's row.
func (h *header) version() byte {
	switch {
	case h.baseMs != 0:
		return touchedVersion
	case h.atMs != 0:
		return timedVersion
	}
	return plainVersion
}

// bytes is the length of the fixed part of the header.
func (h *header) bytes() int { return versionBytes[h.version()] }

// versionBytes has the length of the fixed part of the header, by version.
var versionBytes = [...]int{plainVersion: plainBytes, timedVersion: timedBytes, touchedVersion: touchedBytes}

// bodyAt is where the body begins in the item's row.
func (h *header) bodyAt() int { return h.bytes() + len(h.identity) }

// put writes the fixed part of the header to the start of row, before the identity and the
// body.
func (h *header) put(row []byte) {
	row[0] = h.version()
	if row[0] >= timedVersion {
		binary.BigEndian.PutUint64(row[29:], uint64(h.baseMs))
		binary.BigEndian.PutUint64(row[37:], uint64(h.atMs))
	}
	if row[0] == touchedVersion {
		h.touched.wrote.append(row[45:45])
		row[55] = 0
		if h.touched.shown {
			row[55] = 1
		}
	}
	binary.BigEndian.PutUint64(row[1:], h.lsn)
	binary.BigEndian.PutUint16(row[9:], h.n)
	binary.BigEndian.PutUint64(row[11:], uint64(h.writtenMs))
	binary.BigEndian.PutUint32(row[19:], uint32(h.ttl))
	binary.BigEndian.PutUint32(row[23:], uint32(h.size))
	binary.BigEndian.PutUint16(row[27:], uint16(len(h.identity)))
}

// parseItem parses an item's row. The results share its memory.
func parseItem(key, row []byte) (header, []byte, error) {
	fixed := fixedBytes(row)
	if fixed == 0 || len(row) < fixed {
		return header{}, nil, corrupt(key, "not an item")
	}
	h := header{
		lsn:       rowLSN(row),
		n:         binary.BigEndian.Uint16(row[9:]),
		writtenMs: int64(binary.BigEndian.Uint64(row[11:])),
		ttl:       catalog.TTL(binary.BigEndian.Uint32(row[19:])),
		size:      int(binary.BigEndian.Uint32(row[23:])),
	}
	if row[0] >= timedVersion {
		h.baseMs, h.atMs = int64(binary.BigEndian.Uint64(row[29:])), int64(binary.BigEndian.Uint64(row[37:]))
		if row[0] == touchedVersion {
			h.touched = touched{decodePosition(row[45:]), row[55] == 1}
		}
		if h.version() != row[0] || row[0] == touchedVersion && row[55] > 1 {
			return header{}, nil, corrupt(key, "an item of the wrong version")
		}
	}
	bodyAt := fixed + int(binary.BigEndian.Uint16(row[27:]))
	if len(row) != bodyAt+h.size {
		return header{}, nil, corrupt(key, "an item of the wrong length")
	}
	h.identity = row[fixed:bodyAt:bodyAt]
	return h, row[bodyAt:], nil
}

// fixedBytes returns the length of the fixed part of the header of an item's row, 0 if the
// row is of no known version.
func fixedBytes(row []byte) int {
	if len(row) == 0 || int(row[0]) >= len(versionBytes) {
		return 0
	}
	return versionBytes[row[0]]
}

// identityIn returns the identity in an item's row that was read before.
func identityIn(row []byte) []byte {
	fixed := fixedBytes(row)
	return row[fixed : fixed+int(binary.BigEndian.Uint16(row[27:]))]
}

// rowLSN returns the lsn of an item's row, that of its last write or touch.
func rowLSN(row []byte) uint64 { return binary.BigEndian.Uint64(row[1:]) }

// at returns the position of the item's last write or touch, which is its position in the
// orders of expiry.
func (h *header) at() position { return position{h.lsn, h.n} }

// wroteAt returns the position of the item's last write.
func (h *header) wroteAt() position {
	if h.baseMs != 0 {
		return h.touched.wrote
	}
	return h.at()
}

// shownAt returns the position at which the change feed shows the item, and when that was.
func (h *header) shownAt() (at position, ms int64) {
	if h.baseMs != 0 && h.touched.shown {
		return h.at(), h.baseMs
	}
	return h.wroteAt(), h.writtenMs
}

// hidden reports whether the change feed does not show the item's last touch.
func (h *header) hidden() bool { return h.baseMs != 0 && !h.touched.shown }

// etagText returns the etag of this version of the item. The second of the write is in it
// so that data restored from a copy does not give an old etag to new content. The partition
// in it is that of the ordinal, so that a split keeps it, and so does a touch.
func (h *header) etagText(ordinal uint64) string {
	at := h.wroteAt()
	return catalog.ETag(uint64(h.writtenMs/1000)<<32|uint64(uint16(PartitionOf(ordinal)))<<16|uint64(at.N), at.LSN)
}
