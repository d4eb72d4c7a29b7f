// SPDX-License-Identifier: MIT

// Items that were read lately, kept as a read returns them: those that are read
// again and again, such as sessions and tokens, do not ask the engine each time.
//
// The cache is guarded by the partition's lock, and holds for each of its items
// the version that is published: a group that changes an item takes it out in the
// step that publishes the change, and a reader puts in what it found only if
// nothing was published since it looked. Expiry is not its business: whoever takes
// an item out of it asks expiry.go.

package store

import (
	"bytes"
	"cmp"
	"hash/maphash"
	"sync/atomic"
)

const (
	// cacheSlots is how many items a partition may keep; each has one place.
	cacheSlots = 4096
	// cachedItemBytes is the largest row that is kept.
	cachedItemBytes = 8 << 10
	// cacheBytes bounds the rows of all partitions of an engine together, unless there
	// is another bound.
	cacheBytes = 32 << 20
)

// CacheBudget is what the caches of an engine's partitions share.
type CacheBudget struct {
	items budget
	rows  budget // of indexes (stretch.go)
	read  rowCache
}

// CacheSizes say how much memory may be taken by what was read.
type CacheSizes struct {
	Items     int64 // that are read by id; 0 for 32 MiB
	IndexRows int64 // that queries pass over
	ItemRows  int64 // that were read
}

// NewCacheBudget returns a budget.
func NewCacheBudget(s CacheSizes) *CacheBudget {
	b := &CacheBudget{items: budget{most: cmp.Or(s.Items, cacheBytes)}, rows: budget{most: s.IndexRows}}
	b.read.setBytes(s.ItemRows)
	return b
}

type budget struct {
	most int64
	used atomic.Int64
}

// take reserves n bytes, if there are so many.
func (b *budget) take(n int) bool {
	if b.used.Add(int64(n)) > b.most {
		b.used.Add(int64(-n))
		return false
	}
	return true
}

func (b *budget) give(n int) { b.used.Add(int64(-n)) }

// cachedItem is an item as it was read. Nothing in it changes, and everybody who
// reads the item shares its body.
type cachedItem struct {
	header header
	body   []byte
	etag   string
}

// bytes is what the item takes of the budget.
func (i *cachedItem) bytes() int { return len(i.header.identity) + len(i.body) }

// itemCache is the cache of one partition; the partition's lock guards it.
type itemCache struct {
	seed   maphash.Seed
	budget *CacheBudget
	slots  []*cachedItem // nil while there is nothing to keep
	used   bool          // since the last ReleaseIdle
}

func newItemCache(b *CacheBudget) itemCache {
	return itemCache{seed: maphash.MakeSeed(), budget: b}
}

// slot tells where an identity has its place. It needs no lock.
func (c *itemCache) slot(identity []byte) int {
	return int(maphash.Bytes(c.seed, identity) % cacheSlots)
}

func (c *itemCache) get(slot int, identity []byte) *cachedItem {
	if c.slots == nil {
		return nil
	}
	i := c.slots[slot]
	if i == nil || !bytes.Equal(i.header.identity, identity) {
		return nil
	}
	c.used = true
	return i
}

// put keeps an item in place of the one that has its place now.
func (c *itemCache) put(slot int, i *cachedItem) {
	if i.bytes() > cachedItemBytes || c.budget == nil {
		return
	}
	if c.slots == nil {
		c.slots = make([]*cachedItem, cacheSlots)
	}
	c.remove(slot)
	if c.budget.items.take(i.bytes()) {
		c.slots[slot] = i
	}
}

// remove takes out whatever has this place.
func (c *itemCache) remove(slot int) {
	if c.slots == nil || c.slots[slot] == nil {
		return
	}
	c.budget.items.give(c.slots[slot].bytes())
	c.slots[slot] = nil
}

// empty lets go of everything.
func (c *itemCache) empty() {
	for slot := range c.slots {
		c.remove(slot)
	}
	c.slots = nil
}
