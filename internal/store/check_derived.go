// SPDX-License-Identifier: MIT

package store

import (
	"bytes"

	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/memory"
)

// count notes an item for the counters.
func (k *checker) count(h *header) {
	keys, n := bucketsOf(h)
	for _, key := range keys[:n] {
		b := k.counted[key]
		if key.level == levelSecond {
			b.join(h)
		}
		b.Amount = b.Plus(h.amount(1))
		k.counted[key] = b
	}
	if logical, err := logicalOf(h.identity); err == nil { // k.body reports the others
		p := k.parts[string(logical)]
		k.parts[string(logical)] = part{Amount: p.Plus(h.amount(1))}
	}
	k.totals = k.totals.Plus(h.amount(1))
}

// passed reports an item that purge would never come to.
func (k *checker) passed(h *header, ordinal uint64) {
	kind := kindOf(h.ttl)
	if kind == kindNever || k.meta.Marks[kind].before(h.mark()) {
		return
	}
	if m := k.meta.Marks[kind]; kind == kindInherits {
		k.report("item %d, lsn %d, inherits its TTL, but purge has passed lsn %d", ordinal, h.lsn, m.At.LSN)
	} else {
		k.report("item %d expires at %d ms, but purge has passed %d ms", ordinal, h.mark().ExpiryMs, m.ExpiryMs)
	}
}

// indexed looks for the index rows that the item should have. While a new indexing
// policy is being carried out, some are not there yet.
func (k *checker) indexed(c *current, body []byte) error {
	if k.earlierPolicy {
		return nil
	}
	d := *c
	d.body = body
	if err := d.derive(k.container, memory.Room{}); err != nil {
		return nil // k.body has reported what cannot be read
	}
	row, err := appendIndexRow(nil, &c.header)
	if err != nil {
		return nil
	}
	reached := c.ordinal <= k.meta.IndexedTo
	if d.overfull && reached {
		k.overfull++
	}
	for i := range d.entries.Len() {
		key := k.prefix.appendIndexKey(nil, k.meta.Generation, d.entries.At(i), c.ordinal)
		if !reached {
			if _, found, err := k.snap.Get(key); err != nil || !found {
				return err
			}
		}
		if err := k.derived(c, key, appendEntryRow(nil, row, &d.entries, i), "index row"); err != nil {
			return err
		}
	}
	return nil
}

// indexRow checks that an index row belongs to an item that has its entry.
func (k *checker) indexRow(e kv.Entry) error {
	start := k.prefix.appendIndexStart(nil, k.meta.Generation)
	if !bytes.HasPrefix(e.Key, start) || len(e.Key) < len(start)+1+ordinalBytes || len(e.Value) < indexRowBytes {
		k.report("row %x is not an index row of generation %d", e.Key, k.meta.Generation)
		return nil
	}
	entry := e.Key[len(start) : len(e.Key)-ordinalBytes]
	ordinal := indexOrdinal(e.Key)
	return k.owner(e, ordinal, func(h header, body []byte) bool {
		if k.earlierPolicy {
			return true
		}
		c := current{exists: true, ordinal: ordinal, header: h, body: body}
		if err := c.derive(k.container, memory.Room{}); err != nil {
			return false
		}
		for i := range c.entries.Len() {
			if bytes.Equal(c.entries.At(i), entry) {
				return true
			}
		}
		return false
	})
}

// part compares the totals of a logical partition with what was counted.
func (k *checker) part(e kv.Entry) error {
	got, err := decodePart(e.Key, e.Value)
	if err != nil {
		k.report("%v", err)
		return nil
	}
	logical := string(e.Key[prefixBytes+1:])
	want := k.parts[logical]
	delete(k.parts, logical)
	if got != want || want.Items == 0 { // one without items has no row
		k.report("the totals of logical partition %x are %d items, %d bytes, but there are %d items, %d bytes",
			logical, got.Items, got.Bytes, want.Items, want.Bytes)
	}
	return nil
}

// event checks that an event can be read, and that its item is gone.
func (k *checker) event(e kv.Entry) error {
	ev, err := parseEventRow(e)
	if err != nil {
		k.report("%v", err)
		return nil
	}
	_, found, err := k.snap.Get(k.prefix.appendItemKey(nil, ev.Ordinal))
	if err == nil && found {
		k.report("row %x tells that item %d has expired, but it is there", e.Key, ev.Ordinal)
	}
	return err
}
