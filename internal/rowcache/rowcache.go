// SPDX-License-Identifier: MIT

// Package rowcache keeps rows that were read lately. Finding a row in the engine takes many
// steps through memory that is seldom in the processor's caches, five microseconds with a
// million items; here it takes a few steps.
//
// The partitions of an engine share one cache. Rows are stored one after another in chunks,
// without pointers that the garbage collector would follow. When there is no room, the oldest
// chunk is reused, whichever owners its rows have.
//
// A cache does not know whether its rows are current. The owner of a row removes it when it
// changes, and puts a row in only if it is still the current one.
package rowcache

import (
	"encoding/binary"
	"hash/maphash"
	"math/bits"
	"sync"
	"sync/atomic"
)

const (
	// shardCount is how many parts the cache has, each with a lock of its own.
	shardCount = 8
	chunkBytes = 128 << 10
	// MaxRowBytes is the largest row that is kept.
	MaxRowBytes = 16 << 10
	// bytesPerHint is how many bytes of the cache there are for each hint: about a row.
	bytesPerHint = 1 << 10
	// prefixBytes is the length of the key and the length that precede a row.
	prefixBytes = 12
)

// Cache is the cache of an engine. The zero value keeps nothing.
type Cache struct {
	owners atomic.Uint32
	shards [shardCount]shard

	// hints have the keys under which rows may be found, by the hash of the row's name. They
	// are never removed: a caller that follows a hint checks the name of the row.
	hints []atomic.Uint64
	seed  maphash.Seed
}

// New returns a cache of so many bytes.
func New(bytes int64) *Cache {
	c := &Cache{seed: maphash.MakeSeed()}
	for i := range c.shards {
		c.shards[i].most = int(bytes / shardCount / chunkBytes)
	}
	if n := bytes / bytesPerHint; n > 0 {
		c.hints = make([]atomic.Uint64, 1<<(bits.Len64(uint64(n))-1))
	}
	return c
}

// Owner returns the number of a new owner of rows.
func (c *Cache) Owner() uint32 { return c.owners.Add(1) }

type shard struct {
	mu        sync.RWMutex
	most      int // chunks
	addresses table
	chunks    [][]byte // the oldest first
	first     uint32   // the number of the oldest chunk
}

// Key identifies a row among the rows of all owners: {owner 24 bits}{number 40 bits}.
type Key uint64

const itemBits = 40

// KeyOf returns the key of an owner's row. Rows with numbers above a trillion, and rows of
// owners above sixteen million, have no key and are not cached. Owners are numbered from 1,
// so that no key is 0.
func KeyOf(owner uint32, number uint64) (k Key, ok bool) {
	return Key(owner)<<itemBits | Key(number&(1<<itemBits-1)), number>>itemBits == 0 && owner > 0 && owner>>(64-itemBits) == 0
}

// address is where a row begins: {number of its chunk 32 bits}{offset in it 32 bits}.
type address uint64

func addressOf(chunk uint32, at int) address { return address(chunk)<<32 | address(at) }

// from returns the rest of a chunk from an address on.
func (s *shard) from(p address) []byte { return s.chunks[uint32(p>>32)-s.first][uint32(p):] }

func (c *Cache) shard(k Key) *shard { return &c.shards[k%shardCount] }

// Hint records the key of the row with a name.
func (c *Cache) Hint(name []byte, k Key) {
	if len(c.hints) > 0 {
		c.hint(name).Store(uint64(k))
	}
}

// Hinted returns the key under which an owner's row with a name may be found; 0 is none.
func (c *Cache) Hinted(owner uint32, name []byte) Key {
	if len(c.hints) == 0 {
		return 0
	}
	k := c.hint(name).Load()
	if k>>itemBits != uint64(owner) {
		return 0
	}
	return Key(k)
}

func (c *Cache) hint(name []byte) *atomic.Uint64 {
	return &c.hints[maphash.Bytes(c.seed, name)&uint64(len(c.hints)-1)]
}

// Get appends to dst the row under a key, if the cache has it and it fits. A row that does
// not fit is not copied.
func (c *Cache) Get(dst []byte, k Key, fits func(row []byte) bool) (row []byte, found bool) {
	s := c.shard(k)
	s.mu.RLock()
	defer s.mu.RUnlock()
	at, found := s.addresses.get(k)
	if !found {
		return dst, false
	}
	_, row, _ = cutRow(s.from(at))
	if !fits(row) {
		return dst, false
	}
	return append(dst, row...), true
}

// Put adds a row, unless the cache has one under its key.
func (c *Cache) Put(k Key, row []byte) {
	if len(row) > MaxRowBytes {
		return
	}
	s := c.shard(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, found := s.addresses.get(k); found || !s.makeRoom(prefixBytes+len(row)) {
		return
	}
	last := len(s.chunks) - 1
	s.addresses.put(k, addressOf(s.first+uint32(last), len(s.chunks[last])))
	s.chunks[last] = appendRow(s.chunks[last], k, row)
}

// makeRoom ensures that the last chunk has so many bytes left. It returns false if the shard
// may have no chunks.
func (s *shard) makeRoom(bytes int) bool {
	n := len(s.chunks)
	switch {
	case n > 0 && chunkBytes-len(s.chunks[n-1]) >= bytes:
	case n < s.most:
		s.chunks = append(s.chunks, make([]byte, 0, chunkBytes))
	case n > 0:
		oldest := s.leaveOldest()
		s.chunks = append(s.chunks, oldest)
	default:
		return false
	}
	return true
}

// leaveOldest removes the oldest chunk with its rows, and returns its memory.
func (s *shard) leaveOldest() []byte {
	oldest := s.chunks[0]
	for rest := oldest; len(rest) > 0; {
		at := addressOf(s.first, len(oldest)-len(rest))
		var k Key
		k, _, rest = cutRow(rest)
		if address, found := s.addresses.get(k); found && address == at { // it was not added again since
			s.addresses.remove(k)
		}
	}
	s.chunks = s.chunks[1:]
	s.first++
	return oldest[:0]
}

// Remove removes a row. Its memory is reused together with its chunk.
func (c *Cache) Remove(k Key) {
	s := c.shard(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addresses.remove(k)
}

func appendRow(dst []byte, k Key, row []byte) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(k))
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(row)))
	return append(dst, row...)
}

// cutRow returns the first of some rows, its key, and the rows after it.
func cutRow(rows []byte) (k Key, row, rest []byte) {
	end := prefixBytes + int(binary.BigEndian.Uint32(rows[8:]))
	return Key(binary.BigEndian.Uint64(rows)), rows[prefixBytes:end], rows[end:]
}
