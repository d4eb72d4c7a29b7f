// SPDX-License-Identifier: MIT

// Where items were last found. A point read takes two steps, from the id row to
// the item's; a hint saves the first, which is more than a third of the engine's
// part in a read. A hint is never believed: the item's row tells whose it is, and
// an ordinal is never given twice, so a hint that has become wrong leads to no row
// or to another item's, and the id row is asked.

package store

import (
	"hash/maphash"
	"sync/atomic"
)

const (
	// hintSlots bounds the memory: eight bytes each, taken at the first read.
	hintSlots = 1 << 14

	// A slot holds the low bits of an ordinal and, above them, bits of the hash
	// that did not choose the slot, so that few other items are tried in vain.
	hintOrdinalBits = ordinalShift
	hintOrdinalMask = 1<<hintOrdinalBits - 1
)

// hints are shared by all readers of a partition.
type hints struct {
	seed  maphash.Seed
	first uint64 // the bits that all ordinals of the partition have in common
	slots [hintSlots]atomic.Uint64
}

func newHints(partition int) *hints {
	return &hints{seed: maphash.MakeSeed(), first: FirstOrdinal(partition)}
}

// slot returns the slot of an identity, and what marks it there.
func (h *hints) slot(identity []byte) (slot *atomic.Uint64, mark uint64) {
	sum := maphash.Bytes(h.seed, identity)
	return &h.slots[sum%hintSlots], sum &^ hintOrdinalMask
}

// ordinal returns where the item may be, 0 if nobody knows.
func (h *hints) ordinal(identity []byte) uint64 {
	slot, mark := h.slot(identity)
	v := slot.Load()
	if v == 0 || v&^hintOrdinalMask != mark {
		return 0
	}
	return h.first | v&hintOrdinalMask
}

// note remembers where the item was found.
func (h *hints) note(identity []byte, ordinal uint64) {
	slot, mark := h.slot(identity)
	slot.Store(mark | ordinal&hintOrdinalMask)
}
