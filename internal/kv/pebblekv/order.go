// SPDX-License-Identifier: MIT

package pebblekv

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/mayflydb/mayfly/internal/kv"
)

// ordering sorts the operations of a batch by key: neighbouring keys are cheaper to insert.
// No operation is moved past a range delete, since it may be of a key in the range. It is
// reused for other batches.
type ordering struct {
	ops  []kv.Op
	keys []opKey
}

// opKey is the index of an operation, and the part of its key that it is sorted by.
// Operations themselves are too large to move, and most keys differ in the eight bytes after
// their common prefix.
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
	common := commonPrefix(o.ops[from:to])
	for i := range keys {
		keys[i].key = leading(o.ops[from+i].Key[common:])
	}
	slices.SortFunc(keys, func(x, y opKey) int {
		if c := cmp.Compare(x.key, y.key); c != 0 {
			return c
		}
		if c := bytes.Compare(o.ops[x.op].Key, o.ops[y.op].Key); c != 0 {
			return c
		}
		return cmp.Compare(x.op, y.op)
	})
}

// commonPrefix returns the length of the longest common prefix of all keys.
func commonPrefix(ops []kv.Op) int {
	if len(ops) == 0 {
		return 0
	}
	first := ops[0].Key
	common := len(first)
	for _, op := range ops[1:] {
		common = min(common, len(op.Key))
		for i := range common {
			if op.Key[i] != first[i] {
				common = i
				break
			}
		}
	}
	return common
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
