// SPDX-License-Identifier: MIT

package kv

import "fmt"

// Batch collects writes that are committed together. The zero value is ready to use. It
// copies keys and values.
type Batch struct {
	ops  []packedOp
	data []byte
	lazy bool
}

// packedOp is an operation whose bytes lie in Batch.data: its key begins where
// the value of the operation before it ends.
type packedOp struct {
	kind             OpKind
	sizeHint         uint32
	keyEnd, valueEnd int
}

// OpKind says what an Op does.
type OpKind uint8

// The kinds of operation.
const (
	OpSet OpKind = iota + 1
	OpDelete
	OpDeleteRange
	OpRequire
	OpRequireAbsent
)

// Op is one operation of a batch, as an engine reads it. Value is the upper
// bound of an OpDeleteRange and empty in OpDelete and OpRequireAbsent.
type Op struct {
	Kind     OpKind
	Key      []byte
	Value    []byte
	SizeHint uint32
}

// Set writes value under key.
func (b *Batch) Set(key, value []byte) { b.add(OpSet, key, value, 0) }

// Delete removes key. sizeHint is about how many bytes the value has, from which the engine
// estimates how much space it can free; 0 is "unknown".
func (b *Batch) Delete(key []byte, sizeHint int) {
	b.add(OpDelete, key, nil, uint32(min(max(sizeHint, 0), MaxValueBytes)))
}

// DeleteRange removes every key k with lower <= k < upper; nothing, if upper is not above
// lower. An engine that is near may have to flush for each range, so it is meant for long
// runs of keys. On one that is far it is a transaction of all those rows, so it is meant for
// runs that are known to be bounded; longer ones are left to DB.Sweep.
func (b *Batch) DeleteRange(lower, upper []byte) { b.add(OpDeleteRange, lower, upper, 0) }

// Require makes the commit fail with ErrConflict unless key holds value.
func (b *Batch) Require(key, value []byte) { b.add(OpRequire, key, value, 0) }

// RequireAbsent makes the commit fail with ErrConflict if key exists.
func (b *Batch) RequireAbsent(key []byte) { b.add(OpRequireAbsent, key, nil, 0) }

// Lazy says that the commit need not be durable when it returns: a crash may undo it,
// together with everything after it. It is for work that can be repeated.
func (b *Batch) Lazy() { b.lazy = true }

// IsLazy reports whether Lazy was called.
func (b *Batch) IsLazy() bool { return b.lazy }

// Len returns the number of operations.
func (b *Batch) Len() int { return len(b.ops) }

// Bytes returns how many bytes of keys and values the batch holds.
func (b *Batch) Bytes() int { return len(b.data) }

// maxKeptBytes is how much memory a batch keeps for reuse.
const maxKeptBytes = 2 << 20

// Reset empties the batch and keeps its memory for reuse, unless that is much.
func (b *Batch) Reset() {
	if cap(b.data) > maxKeptBytes {
		*b = Batch{}
	}
	b.ops = b.ops[:0]
	b.data = b.data[:0]
	b.lazy = false
}

// Truncate drops all operations but the first n.
func (b *Batch) Truncate(n int) {
	b.ops = b.ops[:n]
	b.data = b.data[:0]
	if n > 0 {
		b.data = b.data[:b.ops[n-1].valueEnd]
	}
}

// Ops calls yield with each operation in order. The slices of an Op are valid
// until the batch is changed.
func (b *Batch) Ops(yield func(Op) bool) {
	start := 0
	for _, p := range b.ops {
		op := Op{
			Kind:     p.kind,
			Key:      b.data[start:p.keyEnd:p.keyEnd],
			Value:    b.data[p.keyEnd:p.valueEnd:p.valueEnd],
			SizeHint: p.sizeHint,
		}
		start = p.valueEnd
		if !yield(op) {
			return
		}
	}
}

// Check returns an ErrLimit that names the first limit the batch breaks, or nil. Every
// engine calls it before it commits a batch.
func (b *Batch) Check() error {
	if len(b.data) > MaxBatchBytes {
		return fmt.Errorf("%w: the batch has %d bytes, at most %d", ErrLimit, len(b.data), MaxBatchBytes)
	}
	start := 0
	for i, p := range b.ops {
		keyBytes, valueBytes := p.keyEnd-start, p.valueEnd-p.keyEnd
		start = p.valueEnd
		limit := MaxValueBytes
		if p.kind == OpDeleteRange {
			limit = MaxKeyBytes
		} else if keyBytes == 0 {
			return fmt.Errorf("%w: the key of operation %d is empty", ErrLimit, i)
		}
		if keyBytes > MaxKeyBytes {
			return fmt.Errorf("%w: the key of operation %d has %d bytes, at most %d", ErrLimit, i, keyBytes, MaxKeyBytes)
		}
		if valueBytes > limit {
			return fmt.Errorf("%w: the value of operation %d has %d bytes, at most %d", ErrLimit, i, valueBytes, limit)
		}
	}
	return nil
}

func (b *Batch) add(kind OpKind, key, value []byte, sizeHint uint32) {
	b.data = append(b.data, key...)
	keyEnd := len(b.data)
	b.data = append(b.data, value...)
	b.ops = append(b.ops, packedOp{kind: kind, sizeHint: sizeHint, keyEnd: keyEnd, valueEnd: len(b.data)})
}
