// SPDX-License-Identifier: MIT

package rowcache

import "math/bits"

// table says where rows are. It is a hash table with open addressing, in one piece of
// memory: a lookup among a million rows reads one or two lines of it, where a map goes
// by way of a directory, a table and a group, and takes half as long again.
type table struct {
	slots []tableSlot // a power of two of them
	shift int         // what a hash is shifted by to number them
	used  int
}

// tableSlot is empty if its key is 0.
type tableSlot struct {
	key   Key
	place place
}

const (
	leastSlots = 64
	// Three of four slots are used at most.
	usedOf, slotsOf = 3, 4
)

// home is where a key would be if no other were in its way. The factor is 2^64 divided
// by the golden ratio, which spreads keys that follow one another.
func (t *table) home(k Key) int { return int(uint64(k) * 0x9e3779b97f4a7c15 >> t.shift) }

// find returns the slot of a key, or the empty one where it would be.
func (t *table) find(k Key) (slot int, found bool) {
	mask := len(t.slots) - 1
	for slot = t.home(k); t.slots[slot].key != 0; slot = (slot + 1) & mask {
		if t.slots[slot].key == k {
			return slot, true
		}
	}
	return slot, false
}

func (t *table) get(k Key) (p place, found bool) {
	if t.used == 0 {
		return 0, false
	}
	slot, found := t.find(k)
	return t.slots[slot].place, found
}

func (t *table) put(k Key, p place) {
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

// remove takes out a key, and moves up those that it was in the way of.
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
		// One that is at home after the hole stays where it is.
		if (next-t.home(t.slots[next].key))&mask >= (next-hole)&mask {
			t.slots[hole] = t.slots[next]
			hole = next
		}
	}
	t.slots[hole] = tableSlot{}
	t.used--
}
