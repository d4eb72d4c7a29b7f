// SPDX-License-Identifier: MIT

// Counters of items and bytes, by second: how much there is, and, since the
// seconds are those of the expiry order, how much of it is expired at any
// moment. They are exact: they move in the same batch as the items.
//
//	stat row: items, bytes, first lsn; eight bytes each, big-endian

package store

import (
	"encoding/binary"

	"github.com/mayflydb/mayfly/internal/kv"
)

// class says by what the items of a bucket expire.
type class byte

const (
	classInherits class = 'i' // by the container's default; second of the last write
	classOwn      class = 'o' // by their own ttl; second of the deadline
	classNever    class = 'n' // not at all; one bucket, second 0
)

// bucketKey names a counter.
type bucketKey struct {
	class  class
	second int64
}

// bucket is a counter. firstLSN is at most the lsn of any item in it, so that
// a second's items can be found in the feed.
type bucket struct {
	items, bytes int64
	firstLSN     uint64
}

const (
	bucketBytes = 24
	// cachedBuckets bounds the loop's memory; beyond it the cache is emptied.
	cachedBuckets = 4096
)

// counters are the buckets that the loop has touched lately.
type counters struct {
	cached map[bucketKey]bucket
	dirty  map[bucketKey]struct{}
}

// bucketOf returns the bucket in which an item is counted.
func bucketOf(h *header) bucketKey {
	switch kindOf(h.ttl) {
	case kindOwn:
		return bucketKey{classOwn, ownDeadline(h.writtenMs, h.ttl) / 1000}
	case kindNever:
		return bucketKey{classNever, 0}
	default:
		return bucketKey{classInherits, h.writtenMs / 1000}
	}
}

// load makes sure that a bucket is in memory, so that add cannot fail.
func (c *counters) load(snap kv.Snapshot, x *prefix, k bucketKey) error {
	if _, ok := c.cached[k]; ok {
		return nil
	}
	if c.cached == nil {
		c.cached, c.dirty = map[bucketKey]bucket{}, map[bucketKey]struct{}{}
	}
	key := x.appendStatKey(nil, k)
	raw, found, err := snap.Get(key)
	if err != nil {
		return err
	}
	var b bucket
	if found {
		if b, err = decodeBucket(key, raw); err != nil {
			return err
		}
	}
	c.cached[k] = b
	return nil
}

// add counts an item in (sign 1) or out (sign -1) of a loaded bucket.
func (c *counters) add(k bucketKey, sign int64, h *header) {
	b := c.cached[k]
	if b.items == 0 && sign > 0 {
		b.firstLSN = h.lsn
	}
	b.items += sign
	b.bytes += sign * int64(h.size)
	c.cached[k] = b
	c.dirty[k] = struct{}{}
}

// flush writes the buckets that have changed; an empty one needs no row.
func (c *counters) flush(batch *kv.Batch, x *prefix) {
	var key []byte
	for k := range c.dirty {
		b := c.cached[k]
		key = x.appendStatKey(key[:0], k)
		if b.items == 0 {
			batch.Delete(key, bucketBytes)
			delete(c.cached, k)
		} else {
			batch.Set(key, b.encode())
		}
	}
	clear(c.dirty)
	if len(c.cached) > cachedBuckets {
		clear(c.cached)
	}
}

func (b bucket) encode() []byte {
	raw := binary.BigEndian.AppendUint64(make([]byte, 0, bucketBytes), uint64(b.items))
	raw = binary.BigEndian.AppendUint64(raw, uint64(b.bytes))
	return binary.BigEndian.AppendUint64(raw, b.firstLSN)
}

func decodeBucket(key, raw []byte) (bucket, error) {
	if len(raw) != bucketBytes {
		return bucket{}, corrupt(key, "not a counter")
	}
	return bucket{
		int64(binary.BigEndian.Uint64(raw)),
		int64(binary.BigEndian.Uint64(raw[8:])),
		binary.BigEndian.Uint64(raw[16:]),
	}, nil
}
