// SPDX-License-Identifier: MIT

// Item rows that were read recently (package rowcache), by ordinal and by identity.
//
// The cache follows the rule of all caches (Partition.follow). So a cached row is right for
// every state that is not older than its last write. The cache does not check expiry: its
// callers do, with expiry.go.

package store

import (
	"bytes"
	"slices"

	"github.com/mayflydb/mayfly/internal/invariant"
	"github.com/mayflydb/mayfly/internal/rowcache"
)

// CacheBudget is the memory for caches that the partitions of an engine share.
type CacheBudget struct {
	rows  budget // index rows (span.go)
	items *rowcache.Cache
}

// CacheSizes are the limits of the caches, in bytes.
type CacheSizes struct {
	IndexRows int64 // index rows that queries pass over
	ItemRows  int64 // item rows
}

// NewCacheBudget returns a budget.
func NewCacheBudget(s CacheSizes) *CacheBudget {
	return &CacheBudget{rows: budget{most: s.IndexRows}, items: rowcache.New(s.ItemRows)}
}

// itemRows is a partition's part of the cache. The zero value caches nothing.
type itemRows struct {
	cache *rowcache.Cache
	owner uint32 // a new number whenever a partition is opened
	// line has the partition, and those that it was made from by splits: it has items with
	// the ordinals of all of them.
	line []int
}

// lineShift leaves room for the place in the line above 34 billion items of each partition.
// Those beyond are not cached.
const lineShift = 35

// key returns the key of an item's row, if the row can be cached.
func (r itemRows) key(ordinal uint64) (k rowcache.Key, ok bool) {
	if r.cache == nil {
		return 0, false
	}
	number, of := ordinal&(1<<ordinalShift-1), slices.Index(r.line, PartitionOf(ordinal))
	if number>>lineShift != 0 || of < 0 {
		return 0, false
	}
	return rowcache.KeyOf(r.owner, uint64(of)<<lineShift|number)
}

// get appends to dst the row with a key, if it is cached and was written no later than lsn.
func (r itemRows) get(dst []byte, k rowcache.Key, lsn uint64) (row []byte, found bool) {
	return r.cache.Get(dst, k, func(row []byte) bool { return rowLSN(row) <= lsn })
}

// find appends to dst, which is empty, the row of the item with an identity, if it is
// cached and was written no later than lsn.
func (r itemRows) find(dst, identity []byte, lsn uint64) (row []byte, found bool) {
	if r.cache == nil {
		return dst, false
	}
	k := r.cache.Hinted(r.owner, identity)
	if k == 0 {
		return dst, false
	}
	return r.cache.Get(dst, k, func(row []byte) bool { return rowLSN(row) <= lsn && bytes.Equal(identityIn(row), identity) })
}

// forget removes the rows of items that a group has changed.
func (r itemRows) forget(changes []change) {
	for i := range changes {
		if k, ok := r.key(changes[i].ordinal); ok {
			r.cache.Remove(k)
		}
	}
}

// readRow appends to dst the row of an item in a view, given its key and its ordinal. With
// keep, the row is cached for later reads.
func (p *Partition) readRow(v *view, dst, key []byte, ordinal uint64, keep bool) (row []byte, found bool, err error) {
	k, ok := p.rows.key(ordinal)
	if !ok {
		return v.snap.GetInto(dst, key)
	}
	if row, found := p.rows.get(dst, k, v.meta.LSN); found {
		if invariant.Enabled {
			stored, _, err := v.snap.Get(key)
			invariant.Check(err != nil || bytes.Equal(stored, row[len(dst):]), "the row of item %d in memory is not the one in the engine", ordinal)
		}
		return row, true, nil
	}
	row, found, err = v.snap.GetInto(dst, key)
	if err != nil || !found || !keep || fixedBytes(row[len(dst):]) == 0 {
		return row, found, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.view == v {
		p.rows.cache.Put(k, row[len(dst):])
	}
	return row, true, nil
}
