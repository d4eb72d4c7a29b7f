// SPDX-License-Identifier: MIT

package pebblekv

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/mayflydb/mayfly/internal/kv"
)

// ordering sorts the operations of a batch by key: neighbouring keys are cheaper to insert.
// No operation is moved past a range delete, since it may be of a key in the range. It is
// reused for other batches.
type ordering struct {
	ops   []kv.Op
	keys  []opKey
	spare []opKey // for scatter
}

// opKey is the index of an operation, and the part of its key that it is sorted by: eight
// bytes. Operations themselves are too large to move.
type opKey struct {
	key uint64
	op  int32
}

// of fills o.ops with the operations of b, and returns their keys in the order of writing.
// Operations on the same key keep their order.
func (o *ordering) of(b *kv.Batch) []opKey {
	for op := range b.Ops {
		o.keys = append(o.keys, opKey{op: int32(len(o.ops))})
		o.ops = append(o.ops, op)
	}
	for from, i := 0, 0; i <= len(o.ops); i++ {
		if i == len(o.ops) || o.ops[i].Kind == kv.OpDeleteRange {
			o.sort(from, i)
			from = i + 1
		}
	}
	return o.keys
}

// sort sorts the operations of a batch from one up to another, exclusive.
func (o *ordering) sort(from, to int) {
	keys := o.keys[from:to]
	o.sortFrom(keys, o.commonPrefix(keys))
}

const (
	// fewKeys is how many keys are compared as they are.
	fewKeys = 12
	// manyKeys is how many keys it takes for scattering them to be faster than comparing.
	manyKeys = 128
)

// sortFrom sorts operations whose keys have a common prefix of the given length, by the
// eight bytes after it, and then those that do not differ there: in large batches many keys
// have a path or a value in common. The order of operations that are passed to it is that of
// the batch.
func (o *ordering) sortFrom(keys []opKey, common int) {
	if len(keys) <= fewKeys {
		o.sortWhole(keys)
		return
	}
	for i := range keys {
		keys[i].key = leading(o.ops[keys[i].op].Key[common:])
	}
	if len(keys) >= manyKeys {
		o.scatter(keys)
	} else {
		slices.SortFunc(keys, func(x, y opKey) int {
			if x.key != y.key {
				return cmp.Compare(x.key, y.key)
			}
			return cmp.Compare(x.op, y.op)
		})
	}
	for from, to := 0, 1; to <= len(keys); to++ {
		if to < len(keys) && keys[to].key == keys[from].key {
			continue
		}
		if same := keys[from:to]; len(same) > 1 {
			if longer := o.commonPrefix(same); longer > common {
				o.sortFrom(same, longer)
			} else { // one of them ends here, and the others go on with zeros
				o.sortWhole(same)
			}
		}
		from = to
	}
}

// scatter sorts operations by their opKey.key, byte by byte from the last to the first, and
// keeps the order of those that have the same. Comparing them takes several times as long,
// since a processor cannot predict how comparisons end.
func (o *ordering) scatter(keys []opKey) {
	var counts [8][256]int32
	for _, k := range keys {
		for b := range 8 {
			counts[b][byte(k.key>>(8*b))]++
		}
	}
	if cap(o.spare) < len(keys) {
		o.spare = make([]opKey, len(keys))
	}
	from, to := keys, o.spare[:len(keys)]
	for b := range 8 {
		count := &counts[b]
		if int(count[byte(keys[0].key>>(8*b))]) == len(keys) {
			continue // all have the same byte
		}
		next := int32(0)
		for i, n := range count {
			count[i], next = next, next+n
		}
		for _, k := range from {
			at := &count[byte(k.key>>(8*b))]
			to[*at] = k
			*at++
		}
		from, to = to, from
	}
	if &from[0] != &keys[0] {
		copy(keys, from)
	}
}

// sortWhole sorts operations by their whole keys.
func (o *ordering) sortWhole(keys []opKey) {
	slices.SortFunc(keys, func(x, y opKey) int {
		if c := bytes.Compare(o.ops[x.op].Key, o.ops[y.op].Key); c != 0 {
			return c
		}
		return cmp.Compare(x.op, y.op)
	})
}

// commonPrefix returns the length of the longest common prefix of all keys.
func (o *ordering) commonPrefix(keys []opKey) int {
	if len(keys) == 0 {
		return 0
	}
	first := o.ops[keys[0].op].Key
	for _, k := range keys[1:] {
		first = first[:common(first, o.ops[k.op].Key)]
	}
	return len(first)
}

// common returns the length of the longest common prefix of two keys.
func common(a, b []byte) int {
	n := min(len(a), len(b))
	i := 0
	for i+8 <= n {
		if x := binary.BigEndian.Uint64(a[i:]) ^ binary.BigEndian.Uint64(b[i:]); x != 0 {
			return i + bits.LeadingZeros64(x)/8
		}
		i += 8
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}

// leading returns the first eight bytes of a key as a number. A shorter key is padded with
// zeros, so it is never greater than a key that it is a prefix of.
func leading(key []byte) uint64 {
	if len(key) >= 8 {
		return binary.BigEndian.Uint64(key)
	}
	var full [8]byte
	copy(full[:], key)
	return binary.BigEndian.Uint64(full[:])
}

// reset drops the batch and keeps the memory.
func (o *ordering) reset() {
	clear(o.ops)
	o.ops, o.keys = o.ops[:0], o.keys[:0]
}
