// SPDX-License-Identifier: MIT

package pebblekv

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/mayflydb/mayfly/internal/kv"
)

// ordering puts the operations of a batch in the order in which they are written:
// by key, if their order does not matter otherwise, for neighbours are cheaper to
// insert. It is kept for the next batch.
type ordering struct {
	ops    []kv.Op
	places []place
}

// place is where an operation stands, and what it is sorted by: operations are too
// large to be moved about, and most keys differ in the eight bytes after those that
// they have in common.
type place struct {
	key uint64
	op  int32
}

// of returns where the operations of b stand in o.ops, in the order of writing.
// Those of one key stay as they were.
func (o *ordering) of(b *kv.Batch) []place {
	ranges := false
	for op := range b.Ops {
		o.places = append(o.places, place{op: int32(len(o.ops))})
		o.ops = append(o.ops, op)
		ranges = ranges || op.Kind == kv.OpDeleteRange
	}
	if ranges {
		return o.places
	}
	common := o.commonPrefix()
	for i := range o.places {
		o.places[i].key = leading(o.ops[i].Key[common:])
	}
	slices.SortFunc(o.places, func(x, y place) int {
		if c := cmp.Compare(x.key, y.key); c != 0 {
			return c
		}
		if c := bytes.Compare(o.ops[x.op].Key, o.ops[y.op].Key); c != 0 {
			return c
		}
		return cmp.Compare(x.op, y.op)
	})
	return o.places
}

// commonPrefix is how many bytes all keys begin with.
func (o *ordering) commonPrefix() int {
	if len(o.ops) == 0 {
		return 0
	}
	first := o.ops[0].Key
	common := len(first)
	for _, op := range o.ops[1:] {
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

// leading is the number that the first eight bytes of a key make. A shorter key is
// filled up with zeros, and so is never greater than one that it begins.
func leading(key []byte) uint64 {
	if len(key) >= 8 {
		return binary.BigEndian.Uint64(key)
	}
	var full [8]byte
	copy(full[:], key)
	return binary.BigEndian.Uint64(full[:])
}

// reset forgets the batch.
func (o *ordering) reset() {
	clear(o.ops)
	o.ops, o.places = o.ops[:0], o.places[:0]
}
