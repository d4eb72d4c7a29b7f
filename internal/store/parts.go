// SPDX-License-Identifier: MIT

// How much each logical partition holds, expired items included, for its limit.
//
//	part row: items, bytes; eight bytes each, big-endian

package store

import (
	"encoding/binary"

	"github.com/mayflydb/mayfly/internal/kv"
)

const (
	partRowBytes = 16
	// cachedParts bounds the loop's memory; beyond it the cache is emptied.
	cachedParts = 4096
)

// part is what a logical partition holds, and, in memory alone, the lsn of its
// last write or a later one.
type part struct {
	items, bytes int64
	lsn          uint64
}

// parts are the logical partitions that the loop has touched lately, by the start
// of their identities.
type parts struct {
	cached map[string]*part
	dirty  map[string]*part
	// forgotten is the partition's lsn when the cache was last emptied: logical
	// partitions that are not in it had their last write then or before.
	forgotten uint64
}

// load returns a logical partition's totals, which add changes.
func (s *parts) load(snap kv.Snapshot, x *prefix, logical []byte) (*part, error) {
	if p := s.cached[string(logical)]; p != nil {
		return p, nil
	}
	if s.cached == nil {
		s.cached, s.dirty = map[string]*part{}, map[string]*part{}
	}
	key := x.appendPartKey(nil, logical)
	raw, found, err := snap.Get(key)
	if err != nil {
		return nil, err
	}
	p := &part{}
	if found {
		if *p, err = decodePart(key, raw); err != nil {
			return nil, err
		}
	}
	p.lsn = s.forgotten
	s.cached[string(logical)] = p
	return p, nil
}

// add counts an item in (sign 1) or out (sign -1) of its loaded part, at an lsn.
func (s *parts) add(sign int64, c *current, lsn uint64) {
	p := s.cached[string(c.logical)]
	p.items += sign
	p.bytes += sign * int64(c.header.size)
	p.lsn = max(p.lsn, lsn)
	s.dirty[string(c.logical)] = p
}

// restorer returns what takes a loaded part back to what it is.
func (s *parts) restorer(c *current) func() {
	p := s.cached[string(c.logical)]
	was := *p
	return func() { *p = was }
}

// flush writes what has changed up to an lsn; an empty part needs no row.
func (s *parts) flush(batch *kv.Batch, x *prefix, lsn uint64) {
	var key []byte
	var space [partRowBytes]byte
	for logical, p := range s.dirty {
		key = x.appendPartKey(key[:0], []byte(logical))
		if p.items == 0 {
			batch.Delete(key, partRowBytes)
		} else {
			batch.Set(key, p.append(space[:0]))
		}
	}
	clear(s.dirty)
	if len(s.cached) > cachedParts {
		clear(s.cached)
		s.forgotten = lsn
	}
}

func (p *part) append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(p.items))
	return binary.BigEndian.AppendUint64(dst, uint64(p.bytes))
}

func decodePart(key, raw []byte) (part, error) {
	if len(raw) != partRowBytes {
		return part{}, corrupt(key, "not the totals of a logical partition")
	}
	return part{items: int64(binary.BigEndian.Uint64(raw)), bytes: int64(binary.BigEndian.Uint64(raw[8:]))}, nil
}
