// SPDX-License-Identifier: MIT

// The bytes of an item's row:
//
//	0   1  version: 1, or 2 if the item has a deadline of its own or was touched
//	1   8  lsn of the last write
//	9   2  n, the number of the write among those of that lsn, from 1; 0 if it is the only one
//	11  8  writtenMs, the moment of the last write
//	19  4  ttl: the item's own, 0 for none
//	23  4  size of the body
//	27  2  length of the identity
//	29  …  identity: {epk}{pk}{id}, as in the id row's key
//	…   …  body: the exact bytes that a read returns
//
// In version 2 these are between the length and the identity:
//
//	29  8  baseMs, the moment from which the countdown runs, 0 if it is the last write
//	37  8  atMs, the deadline that the item names itself, 0 for none
//
// A point read returns the body as it is, and parses none of it. With the identity, all
// other rows of the item can be found from this one.

package store

import (
	"encoding/binary"

	"github.com/mayflydb/mayfly/internal/catalog"
)

const (
	plainVersion = 1
	timedVersion = 2
	plainBytes   = 29
	timedBytes   = plainBytes + 16
)

// header is the part of an item's row before the body.
type header struct {
	lsn       uint64
	n         uint16
	writtenMs int64
	ttl       catalog.TTL
	baseMs    int64
	atMs      int64
	size      int
	identity  []byte
}

// bytes is the length of the fixed part of the header.
func (h *header) bytes() int {
	if h.baseMs != 0 || h.atMs != 0 {
		return timedBytes
	}
	return plainBytes
}

// bodyAt is where the body begins in the item's row.
func (h *header) bodyAt() int { return h.bytes() + len(h.identity) }

// put writes the fixed part of the header to the start of row, before the identity and the
// body.
func (h *header) put(row []byte) {
	row[0] = plainVersion
	if h.bytes() == timedBytes {
		row[0] = timedVersion
		binary.BigEndian.PutUint64(row[29:], uint64(h.baseMs))
		binary.BigEndian.PutUint64(row[37:], uint64(h.atMs))
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
	if fixed == timedBytes {
		h.baseMs, h.atMs = int64(binary.BigEndian.Uint64(row[29:])), int64(binary.BigEndian.Uint64(row[37:]))
		if h.bytes() != fixed {
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
	switch {
	case len(row) == 0:
		return 0
	case row[0] == plainVersion:
		return plainBytes
	case row[0] == timedVersion:
		return timedBytes
	}
	return 0
}

// identityIn returns the identity in an item's row that was read before.
func identityIn(row []byte) []byte {
	fixed := fixedBytes(row)
	return row[fixed : fixed+int(binary.BigEndian.Uint16(row[27:]))]
}

// rowLSN returns the lsn of an item's row.
func rowLSN(row []byte) uint64 { return binary.BigEndian.Uint64(row[1:]) }

// etagText returns the etag of this version of the item. The second of the write is in it
// so that data restored from a copy does not give an old etag to new content.
func (h *header) etagText(partition int) string {
	return catalog.ETag(uint64(h.writtenMs/1000)<<32|uint64(uint16(partition))<<16|uint64(h.n), h.lsn)
}
