// SPDX-License-Identifier: MIT

// The rows of items that were read lately, by ordinal. To find one in the engine takes
// many steps through memory that is seldom in the processor's caches, five microseconds
// where there are a million items; here it takes a few.
//
// The cache holds for each of its items the row that is published: a group that changes
// an item takes its row out in the step that publishes the change, and a reader puts in
// what it found only if nothing was published since it took its view. So a row that is
// here is right for every view that is not older than its last write. Expiry is not its
// business: whoever takes a row out of it asks expiry.go.
//
// The partitions of an engine share one. Rows lie one after the other in chunks, without
// a pointer for the collector to follow; when there is no room, the oldest chunk is used
// again, whosever rows it has.

package store

import (
	"bytes"
	"encoding/binary"
	"sync"
	"sync/atomic"

	"github.com/mayflydb/mayfly/internal/invariant"
)

const (
	// rowShards is how many parts the cache has, each with a lock of its own.
	rowShards     = 8
	rowChunkBytes = 128 << 10
	// cachedRowBytes is the largest row that is kept.
	cachedRowBytes = 16 << 10
	// A row is preceded by its key and its length.
	rowPrefixBytes = 12
)

// rowCache is the cache of an engine.
type rowCache struct {
	owners atomic.Uint32
	shards [rowShards]rowShard
}

type rowShard struct {
	mu     sync.RWMutex
	most   int // chunks
	places rowTable
	chunks [][]byte // each filled up to its length, the oldest first
	first  uint32   // the number of the oldest
}

// rowKey tells the rows of all items apart: {owner 24 bits}{item 40 bits}. Each opening of
// a partition is an owner of its own, and the item is what is its own in an ordinal.
type rowKey uint64

const itemBits = 40

// rowKeyOf returns the key of an item, if there is one: beyond a trillion items in a
// partition, and sixteen million openings of partitions, rows are not kept. Owners are
// numbered from 1, so that no key is 0.
func rowKeyOf(owner uint32, ordinal uint64) (k rowKey, ok bool) {
	item := ordinal & (1<<ordinalShift - 1)
	return rowKey(owner)<<itemBits | rowKey(item), item>>itemBits == 0 && owner > 0 && owner>>(64-itemBits) == 0
}

// rowPlace is where a row begins: {chunk 32 bits}{at 32 bits}, in the chunk with a number.
type rowPlace uint64

func rowPlaceOf(chunk uint32, at int) rowPlace { return rowPlace(chunk)<<32 | rowPlace(at) }

// from returns a row and what follows it.
func (s *rowShard) from(p rowPlace) []byte { return s.chunks[uint32(p>>32)-s.first][uint32(p):] }

func (c *rowCache) setBytes(bytes int64) {
	for i := range c.shards {
		c.shards[i].most = int(bytes / rowShards / rowChunkBytes)
	}
}

func (c *rowCache) shard(k rowKey) *rowShard { return &c.shards[k%rowShards] }

// get appends to dst the row of an item, if it is here and no younger than an lsn.
func (c *rowCache) get(dst []byte, k rowKey, lsn uint64) (row []byte, found bool) {
	s := c.shard(k)
	s.mu.RLock()
	defer s.mu.RUnlock()
	at, found := s.places.get(k)
	if !found {
		return dst, false
	}
	_, row, _ = cutRow(s.from(at))
	if rowLSN(row) > lsn {
		return dst, false
	}
	return append(dst, row...), true
}

// put keeps the row of an item that is not here.
func (c *rowCache) put(k rowKey, row []byte) {
	if len(row) < headerBytes || len(row) > cachedRowBytes {
		return
	}
	s := c.shard(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, found := s.places.get(k); found || !s.makeRoom(rowPrefixBytes+len(row)) {
		return
	}
	last := len(s.chunks) - 1
	s.places.put(k, rowPlaceOf(s.first+uint32(last), len(s.chunks[last])))
	s.chunks[last] = appendCachedRow(s.chunks[last], k, row)
}

// makeRoom makes the last chunk one that has so many bytes left.
func (s *rowShard) makeRoom(bytes int) bool {
	n := len(s.chunks)
	switch {
	case n > 0 && rowChunkBytes-len(s.chunks[n-1]) >= bytes:
	case n < s.most:
		s.chunks = append(s.chunks, make([]byte, 0, rowChunkBytes))
	case n > 0:
		oldest := s.leaveOldest()
		s.chunks = append(s.chunks, oldest)
	default:
		return false
	}
	return true
}

// leaveOldest takes out the oldest chunk, and returns its memory.
func (s *rowShard) leaveOldest() []byte {
	oldest := s.chunks[0]
	for rest := oldest; len(rest) > 0; {
		at := rowPlaceOf(s.first, len(oldest)-len(rest))
		var k rowKey
		k, _, rest = cutRow(rest)
		if place, found := s.places.get(k); found && place == at { // and it was not put in again since
			s.places.remove(k)
		}
	}
	s.chunks = s.chunks[1:]
	s.first++
	return oldest[:0]
}

// remove takes out the row of an item. Its memory comes back with that of its chunk.
func (c *rowCache) remove(k rowKey) {
	s := c.shard(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.places.remove(k)
}

func appendCachedRow(dst []byte, k rowKey, row []byte) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(k))
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(row)))
	return append(dst, row...)
}

// cutRow returns the first of some rows and what follows it.
func cutRow(rows []byte) (k rowKey, row, rest []byte) {
	end := rowPrefixBytes + int(binary.BigEndian.Uint32(rows[8:]))
	return rowKey(binary.BigEndian.Uint64(rows)), rows[rowPrefixBytes:end], rows[end:]
}

// rowReader is the part of a cache that a partition has. The zero value has none.
type rowReader struct {
	cache *rowCache
	owner uint32
}

// forget takes out the rows of items that a group has changed.
func (r rowReader) forget(changes []change) {
	if r.cache == nil {
		return
	}
	for i := range changes {
		if k, ok := rowKeyOf(r.owner, changes[i].ordinal); ok {
			r.cache.remove(k)
		}
	}
}

// readRow appends to dst the row of an item in a view, given its key and its ordinal.
// Somebody may read it again soon, if it is to be kept.
func (p *Partition) readRow(v *view, dst, key []byte, ordinal uint64, keep bool) (row []byte, found bool, err error) {
	k, ok := rowKeyOf(p.rows.owner, ordinal)
	if p.rows.cache == nil || !ok {
		return v.snap.GetInto(dst, key)
	}
	if row, found := p.rows.cache.get(dst, k, v.meta.LSN); found {
		if invariant.Enabled {
			stored, _, err := v.snap.Get(key)
			invariant.Check(err != nil || bytes.Equal(stored, row[len(dst):]), "the row of item %d in memory is not the one in the engine", ordinal)
		}
		return row, true, nil
	}
	row, found, err = v.snap.GetInto(dst, key)
	if err != nil || !found || !keep {
		return row, found, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.view == v {
		p.rows.cache.put(k, row[len(dst):])
	}
	return row, true, nil
}
