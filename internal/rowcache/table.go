// SPDX-License-Identifier: MIT

package rowcache

import "math/bits"

// table has the addresses of rows by key. It is a hash table with open addressing, in one piece
// of memory: a lookup among a million rows reads one or two cache lines. A map reads a
// directory, a table and a group, and takes 1.5 times as long.
type table struct {
	slots []tableSlot // their number is a power of two
	shift int         // by which a hash is shifted right to give the number of a slot
	used  int
}

// tableSlot is empty if its key is 0.
type tableSlot struct {
	key     Key
	address address
}

const (
	leastSlots = 64
	// Three of four slots are used at most.
	usedOf, slotsOf = 3, 4
)

// home returns the slot of a key if no other key occupies it. The factor is 2^64 divided by
// the golden ratio, which spreads consecutive keys.
func (t *table) home(k Key) int { return int(uint64(k) * 0x9e3779b97f4a7c15 >> t.shift) }

// find returns the slot of a key, or the empty slot where it would be put.
func (t *table) find(k Key) (slot int, found bool) {
	mask := len(t.slots) - 1
	for slot = t.home(k); t.slots[slot].key != 0; slot = (slot + 1) & mask {
		if t.slots[slot].key == k {
			return slot, true
		}
	}
	return slot, false
}

func (t *table) get(k Key) (p address, found bool) {
	if t.used == 0 {
		return 0, false
	}
	slot, found := t.find(k)
	return t.slots[slot].address, found
}

func (t *table) put(k Key, p address) {
	if t.used*slotsOf >= len(t.slots)*usedOf {
		t.grow()
	}
	slot, found := t.find(k)
	if !found {
		t.used++
	}
	t.slots[slot] = tableSlot{k, p}
}

func (t *table) grow() {
	old := t.slots
	n := max(leastSlots, 2*len(old))
	t.slots, t.shift = make([]tableSlot, n), 64-bits.Len(uint(n-1))
	for _, s := range old {
		if s.key != 0 {
			slot, _ := t.find(s.key)
			t.slots[slot] = s
		}
	}
}

// remove removes a key, and moves later keys back to where find expects them.
func (t *table) remove(k Key) {
	if t.used == 0 {
		return
	}
	hole, found := t.find(k)
	if !found {
		return
	}
	mask := len(t.slots) - 1
	for next := (hole + 1) & mask; t.slots[next].key != 0; next = (next + 1) & mask {
		// A key whose home is after the hole stays where it is.
		if (next-t.home(t.slots[next].key))&mask >= (next-hole)&mask {
			t.slots[hole] = t.slots[next]
			hole = next
		}
	}
	t.slots[hole] = tableSlot{}
	t.used--
}
