// SPDX-License-Identifier: MIT

// Rows of items that were read lately (package rowcache), by ordinal and by identity.
//
// The cache goes by the rule of all caches (Partition.follow). So a row that is there is
// right for every state that is not older than its last write. Expiry is not the cache's
// business: whoever takes a row out of it asks expiry.go.

package store

import (
	"bytes"

	"github.com/mayflydb/mayfly/internal/invariant"
	"github.com/mayflydb/mayfly/internal/rowcache"
)

// CacheBudget is what the partitions of an engine share to keep what was read.
type CacheBudget struct {
	rows  budget // of indexes (span.go)
	items *rowcache.Cache
}

// CacheSizes say how much memory may be taken by what was read.
type CacheSizes struct {
	IndexRows int64 // that queries pass over
	ItemRows  int64 // that were read
}

// NewCacheBudget returns a budget.
func NewCacheBudget(s CacheSizes) *CacheBudget {
	return &CacheBudget{rows: budget{most: s.IndexRows}, items: rowcache.New(s.ItemRows)}
}

// itemRows is the part of a cache that a partition has. The zero value has none.
type itemRows struct {
	cache *rowcache.Cache
	owner uint32 // another one whenever a partition is opened
}

// key returns the key of an item's row, if it can be kept.
func (r itemRows) key(ordinal uint64) (k rowcache.Key, ok bool) {
	if r.cache == nil {
		return 0, false
	}
	return rowcache.KeyOf(r.owner, ordinal&(1<<ordinalShift-1))
}

// get appends to dst the row under a key, if it is there and no younger than an lsn.
func (r itemRows) get(dst []byte, k rowcache.Key, lsn uint64) (row []byte, found bool) {
	row, found = r.cache.Get(dst, k)
	if found && rowLSN(row[len(dst):]) > lsn {
		return dst, false
	}
	return row, found
}

// find appends to dst, which is empty, the row of the item with an identity, if it is
// there and no younger than an lsn.
func (r itemRows) find(dst, identity []byte, lsn uint64) (row []byte, found bool) {
	if r.cache == nil {
		return dst, false
	}
	k := r.cache.Hinted(r.owner, identity)
	if k == 0 {
		return dst, false
	}
	row, found = r.get(dst, k, lsn)
	return row, found && bytes.Equal(identityIn(row), identity)
}

// forget takes out the rows of items that a group has changed.
func (r itemRows) forget(changes []change) {
	for i := range changes {
		if k, ok := r.key(changes[i].ordinal); ok {
			r.cache.Remove(k)
		}
	}
}

// readRow appends to dst the row of an item in a view, given its key and its ordinal.
// Somebody may read it again soon, if it is to be kept.
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
	if err != nil || !found || !keep || len(row)-len(dst) < headerBytes {
		return row, found, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.view == v {
		p.rows.cache.Put(k, row[len(dst):])
	}
	return row, true, nil
}
