// SPDX-License-Identifier: MIT

// Counters of items and bytes, by time. The times are those of the expiry orders, so the
// counters give how much is expired at any moment, or will be. They are exact: they change
// in the same batch as the items.
//
//	stat row: items 8, bytes 8, first lsn 8, first ms 2, last ms 2, big-endian
//
// There is a counter for every second, minute and hour with items in it, so that the sum
// over any time needs few of them (usage.go).

package store

import (
	"encoding/binary"

	"github.com/mayflydb/mayfly/internal/kv"
)

// class is how the items of a bucket expire.
type class byte

const (
	classInherits class = 'i' // by the container's default; the time is that of the last write
	classOwn      class = 'o' // by their own ttl; the time is the deadline
	classNever    class = 'n' // never; one bucket, second 0
)

func (k ttlKind) class() class { return [...]class{classInherits, classOwn, classNever}[k] }

// level is the length of time that a bucket covers.
type level byte

// In the order of their keys.
const (
	levelHour   level = 'h'
	levelMinute level = 'm'
	levelSecond level = 's'
)

// seconds returns how many seconds a bucket of the level covers.
func (l level) seconds() int64 {
	switch l {
	case levelHour:
		return 3600
	case levelMinute:
		return 60
	default:
		return 1
	}
}

// bucketKey identifies a counter. start is its first second.
type bucketKey struct {
	class class
	level level
	start int64
}

// bucket is a counter. Only buckets of one second have the fields after the totals.
// firstLSN is at most the lsn of any item in the bucket, so that the items can be found in
// the feed. All items have times between the milliseconds firstMs and lastMs of the second.
type bucket struct {
	Amount
	firstLSN        uint64
	firstMs, lastMs uint16
}

const (
	bucketBytes = 28
	// cachedBuckets bounds the cache; a fuller one is emptied.
	cachedBuckets = 4096
)

// counters caches buckets, as they are in the view.
type counters struct{ cached map[bucketKey]bucket }

// bucketsOf returns the keys of the buckets that count an item, that of its second first.
func bucketsOf(h *header) (keys [3]bucketKey, n int) {
	k, second := h.kind(), h.orderMs()/1000
	if k == kindNever {
		return [3]bucketKey{{classNever, levelSecond, 0}}, 1
	}
	for i, l := range [3]level{levelSecond, levelMinute, levelHour} {
		keys[i] = bucketKey{k.class(), l, second - second%l.seconds()}
	}
	return keys, 3
}

// loadBuckets reads an item's buckets into the cache, so that addToBuckets cannot fail.
func (w *writer) loadBuckets(h *header) error {
	keys, n := bucketsOf(h)
	for _, k := range keys[:n] {
		if _, known := w.bucket(k); known {
			continue
		}
		b, err := w.view.bucketAt(k)
		if err != nil {
			return err
		}
		if w.counters.cached == nil {
			w.counters.cached = map[bucketKey]bucket{}
		}
		w.counters.cached[k] = b
	}
	return nil
}

// bucketAt returns a counter; without a row it is empty.
func (s stored) bucketAt(k bucketKey) (bucket, error) {
	b, _, err := rowAt(s.snap, s.prefix.appendStatKey(nil, k), parseBucket)
	return b.bucket, err
}

// addToBuckets adds an item to its loaded buckets (sign 1) or subtracts it (sign -1).
func (w *writer) addToBuckets(sign int64, h *header) {
	keys, n := bucketsOf(h)
	for _, k := range keys[:n] {
		b, _ := w.bucket(k)
		if sign > 0 && k.level == levelSecond {
			b.join(h)
		}
		b.Amount = b.Plus(h.amount(sign))
		w.buckets[k] = b
	}
}

// join widens firstLSN, firstMs and lastMs to include an item.
func (b *bucket) join(h *header) {
	at := uint16(h.orderMs() % 1000)
	if b.Items == 0 {
		b.firstLSN, b.firstMs, b.lastMs = h.lsn, at, at
		return
	}
	b.firstLSN = min(b.firstLSN, h.lsn) // a rewind does not add items in order
	b.firstMs, b.lastMs = min(b.firstMs, at), max(b.lastMs, at)
}

// flush writes the changed buckets; an empty one has no row.
func (c *counters) flush(changed map[bucketKey]bucket, batch *kv.Batch, x *prefix) {
	var keySpace [32]byte
	var rowSpace [bucketBytes]byte
	for k, b := range changed {
		key := x.appendStatKey(keySpace[:0], k)
		if b.Items == 0 {
			batch.Delete(key, bucketBytes)
			delete(c.cached, k)
		} else {
			batch.Set(key, b.append(rowSpace[:0]))
			c.cached[k] = b
		}
	}
	if len(c.cached) > cachedBuckets {
		clear(c.cached)
	}
}

func (b *bucket) append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint64(b.Amount.append(dst), b.firstLSN)
	dst = binary.BigEndian.AppendUint16(dst, b.firstMs)
	return binary.BigEndian.AppendUint16(dst, b.lastMs)
}

func decodeBucket(e kv.Entry) (bucket, error) {
	raw := e.Value
	if len(raw) != bucketBytes {
		return bucket{}, corrupt(e.Key, "not a counter")
	}
	return bucket{
		decodeAmount(raw),
		binary.BigEndian.Uint64(raw[16:]),
		binary.BigEndian.Uint16(raw[24:]),
		binary.BigEndian.Uint16(raw[26:]),
	}, nil
}

// keyedBucket is a counter with its key.
type keyedBucket struct {
	bucketKey
	bucket
}

func parseBucket(e kv.Entry) (b keyedBucket, err error) {
	if len(e.Key) != prefixBytes+1+10 {
		return b, corrupt(e.Key, "not a counter's key")
	}
	k := e.Key[prefixBytes+1:]
	b.bucketKey = bucketKey{class(k[0]), level(k[1]), int64(binary.BigEndian.Uint64(k[2:]))}
	b.bucket, err = decodeBucket(e)
	return b, err
}
