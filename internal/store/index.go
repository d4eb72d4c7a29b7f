// SPDX-License-Identifier: MIT

// Index rows: one for each entry of an item (package index), written in the batch of the
// item. From its value, a reader learns whether the item is live and which partition key it
// has, without reading the item:
//
//	ms 8, ttl 4, epk
//
// Entries of some kinds carry data, which comes before the epk, after its length:
//
//	ms 8, ttl 4, length, data, epk
//
// ms and ttl are the item's life (expiry.go).

package store

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/index"
	"github.com/mayflydb/mayfly/internal/memory"
	"github.com/mayflydb/mayfly/internal/value"
)

const (
	indexRowBytes   = lifeBytes
	generationBytes = 4
	ordinalBytes    = 8
)

// appendIndexKey appends the key of the row of one entry of an item.
func (p *prefix) appendIndexKey(dst []byte, generation uint32, entry []byte, ordinal uint64) []byte {
	dst = append(p.appendIndexStart(dst, generation), entry...)
	return binary.BigEndian.AppendUint64(dst, index.Turned(ordinal, entry))
}

// indexOrdinal returns the ordinal in the key of an index row. The caller has checked the
// key's length.
func indexOrdinal(key []byte) uint64 {
	entry, ordinal := key[prefixBytes+1+generationBytes:len(key)-ordinalBytes], binary.BigEndian.Uint64(key[len(key)-ordinalBytes:])
	return index.Turned(ordinal, entry)
}

func appendIndexRow(dst []byte, h *header) ([]byte, error) {
	epk, _, err := value.DecodeBytesKey(h.identity)
	return append(h.life().append(dst), epk...), err
}

// appendEntryRow appends the value of an entry's row. row is what appendIndexRow returns
// for the item.
func appendEntryRow(dst, row []byte, t *index.Entries, i int) []byte {
	if !index.Carries(t.At(i)) {
		return append(dst, row...)
	}
	carried := t.Carried(i)
	dst = binary.AppendUvarint(append(dst, row[:indexRowBytes]...), uint64(len(carried)))
	return append(append(dst, carried...), row[indexRowBytes:]...)
}

// rowBytes is about how many bytes the rows of the entries have.
func rowBytes(t *index.Entries) int {
	return t.Size() + t.Len()*(prefixBytes+indexRowBytes+2*ordinalBytes)
}

// putIndex writes the index rows of an item. A new version writes also the rows of entries
// that have not changed, since they contain the time of the write.
func (w *writer) putIndex(c *current) {
	if c.entries.Len() == 0 {
		return
	}
	var space, rowSpace [64]byte
	row, err := appendIndexRow(space[:0], &c.header)
	if err != nil {
		panic("store: an identity that was made here cannot be read: " + err.Error())
	}
	for i := range c.entries.Len() {
		w.key = w.p.prefix.appendIndexKey(w.key[:0], w.meta.Generation, c.entries.At(i), c.ordinal)
		w.batch.Set(w.key, appendEntryRow(rowSpace[:0], row, &c.entries, i))
	}
}

// removeIndex removes the index rows of an item, except those of entries that its next
// version has too. Both lists are sorted. An item that was written under an earlier policy
// may have no rows yet; deleting them has no effect. The rows of the ranged terms are removed
// by the caller. It returns how many rows were removed.
func (w *writer) removeIndex(c *current, next *index.Entries, ranged terms) (removed int) {
	if c.overfull && c.ordinal <= w.meta.IndexedTo {
		w.meta.Overfull--
	}
	n := 0
	for i := range c.entries.Len() {
		entry := c.entries.At(i)
		for next != nil && n < next.Len() && bytes.Compare(next.At(n), entry) < 0 {
			n++
		}
		if next != nil && n < next.Len() && bytes.Equal(next.At(n), entry) {
			continue
		}
		if _, is := ranged[string(entry)]; is {
			continue
		}
		w.key = w.p.prefix.appendIndexKey(w.key[:0], w.meta.Generation, entry, c.ordinal)
		w.batch.Delete(w.key, indexRowBytes+ordinalBytes)
		removed++
	}
	return removed
}

// terms is a set of terms.
type terms map[string]struct{}

// removeTerm removes the rows that a term has of the items from first to last.
func (w *writer) removeTerm(term []byte, first, last uint64) {
	x, generation := &w.p.prefix, w.meta.Generation
	w.batch.DeleteRange(x.appendIndexKey(nil, generation, term, first), x.appendIndexKey(nil, generation, term, last+1))
}

// dropGenerations removes the index rows of all generations before the present.
func (w *writer) dropGenerations() {
	lower, _ := w.p.prefix.space(indexSpace)
	removeRange(w.batch, w.p.far, lower, w.p.prefix.appendIndexStart(nil, w.meta.Generation))
}

// derive computes the unique keys and the entries of an item that was read.
func (c *current) derive(container *catalog.Container, m memory.Room) error {
	if c.derived {
		return nil
	}
	if !derives(container) {
		c.derived = true
		return nil
	}
	o, err := value.ParseObject(c.body)
	if err != nil {
		return err
	}
	return c.deriveFrom(container, o, index.Entries{}, m)
}

// derives reports whether the items of a container have unique keys or entries.
func derives(container *catalog.Container) bool {
	return len(container.UniqueKeys) > 0 || !container.Index.Empty()
}

// deriveFrom computes the unique keys and the entries of an item that was read, whose body
// is o. It uses the memory of space.
func (c *current) deriveFrom(container *catalog.Container, o *value.Object, space index.Entries, m memory.Room) error {
	c.derived = true
	if len(container.UniqueKeys) > 0 {
		i, err := parseIdentity(c.header.identity)
		if err != nil {
			return err
		}
		c.unique = uniqueKeys(container, i.pk, o)
	}
	var err error
	c.entries, err = index.Append(space, &container.Definition, o, m)
	c.entries.Stamp(c.header.writtenMs)
	if errors.Is(err, ErrTooManyTerms) { // it has no index rows under this policy
		c.entries, c.overfull, err = index.Entries{}, true, nil
	}
	return err
}
