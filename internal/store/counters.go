// SPDX-License-Identifier: MIT

// Counters of items and bytes, by time: how much there is, and, since the times
// are those of the expiry order, how much of it is expired at any moment, or will
// be. They are exact: they move in the same batch as the items.
//
//	stat row: items 8, bytes 8, first lsn 8, first ms 2, last ms 2, big-endian
//
// There are counters for every second, minute and hour in which there is anything,
// so that a sum over any time adds up few of them (usage.go).

package store

import (
	"encoding/binary"

	"github.com/mayflydb/mayfly/internal/kv"
)

// class says by what the items of a bucket expire.
type class byte

const (
	classInherits class = 'i' // by the container's default; time of the last write
	classOwn      class = 'o' // by their own ttl; time of the deadline
	classNever    class = 'n' // not at all; one bucket, second 0
)

func (k ttlKind) class() class { return [...]class{classInherits, classOwn, classNever}[k] }

// level is how much time a bucket covers.
type level byte

// In the order of their keys.
const (
	levelHour   level = 'h'
	levelMinute level = 'm'
	levelSecond level = 's'
)

// seconds returns how many a bucket of the level covers.
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

// bucketKey names a counter. start is its first second.
type bucketKey struct {
	class class
	level level
	start int64
}

// bucket is a counter. What follows the totals only a second has: firstLSN is at
// most the lsn of any item in it, so that its items can be found in the feed, and
// all of them have times between its milliseconds firstMs and lastMs.
type bucket struct {
	Amount
	firstLSN        uint64
	firstMs, lastMs uint16
}

const (
	bucketBytes = 28
	// cachedBuckets bounds the loop's memory; beyond it the cache is emptied.
	cachedBuckets = 4096
)

// counters are buckets that were read or written lately, as they are in the view.
type counters struct{ cached map[bucketKey]bucket }

// bucketsOf returns the buckets in which an item is counted: its second first.
func bucketsOf(h *header) (keys [3]bucketKey, n int) {
	k, second := kindOf(h.ttl), orderMs(h.writtenMs, h.ttl)/1000
	if k == kindNever {
		return [3]bucketKey{{classNever, levelSecond, 0}}, 1
	}
	for i, l := range [3]level{levelSecond, levelMinute, levelHour} {
		keys[i] = bucketKey{k.class(), l, second - second%l.seconds()}
	}
	return keys, 3
}

// loadBuckets makes sure that an item's buckets are in memory, so that addToBuckets
// cannot fail.
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

// bucketAt returns a counter, which is empty if there is none.
func (s stored) bucketAt(k bucketKey) (bucket, error) {
	b, _, err := rowAt(s.snap, s.prefix.appendStatKey(nil, k), parseBucket)
	return b.bucket, err
}

// addToBuckets counts an item in (sign 1) or out (sign -1) of its loaded buckets.
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

// join widens what a second says of its items.
func (b *bucket) join(h *header) {
	at := uint16(orderMs(h.writtenMs, h.ttl) % 1000)
	if b.Items == 0 {
		b.firstLSN, b.firstMs, b.lastMs = h.lsn, at, at
		return
	}
	b.firstLSN = min(b.firstLSN, h.lsn) // in a rewind they do not come in order
	b.firstMs, b.lastMs = min(b.firstMs, at), max(b.lastMs, at)
}

// flush writes the buckets that have changed; an empty one needs no row.
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
