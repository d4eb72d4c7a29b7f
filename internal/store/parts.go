// SPDX-License-Identifier: MIT

// The totals of each logical partition, expired items included. Quotas use them.
//
//	part row: items, bytes; eight bytes each, big-endian

package store

import "github.com/mayflydb/mayfly/internal/kv"

const (
	partRowBytes = 16
	// cachedParts bounds the cache; a fuller one is emptied.
	cachedParts = 4096
)

// part is the totals of a logical partition. lsn, which is not stored, is that of its last
// write or later.
type part struct {
	Amount
	lsn uint64
}

// logicalTotals caches the totals of logical partitions, as they are in the view, by the
// start of their identities, as it is in keys.
type logicalTotals struct {
	cached map[string]part
	// forgotten is the partition's lsn when the cache was last emptied. Logical partitions
	// that are not in the cache were last written then or before.
	forgotten uint64
}

// loadPart returns a logical partition's totals, and caches them for addToPart.
func (w *writer) loadPart(logical []byte) (part, error) {
	if p, known := w.part(logical); known {
		return p, nil
	}
	p, _, err := rowAt(w.view.snap, w.p.prefix.appendKey(nil, partSpace, logical), decodePart)
	if err != nil {
		return part{}, err
	}
	if w.totals.cached == nil {
		w.totals.cached = map[string]part{}
	}
	p.lsn = w.totals.forgotten
	w.totals.cached[string(logical)] = p
	return p, nil
}

// addToPart adds an item to its loaded part (sign 1) or subtracts it (sign -1).
func (w *writer) addToPart(sign int64, c *current) {
	p, _ := w.part(c.logical)
	p.Amount = p.Plus(c.header.amount(sign))
	p.lsn = max(p.lsn, w.meta.LSN)
	w.parts[string(c.logical)] = p
}

// flush writes the changed parts; one without items has no row. lsn is the partition's.
func (s *logicalTotals) flush(changed map[string]part, batch *kv.Batch, x *prefix, lsn uint64) {
	var key []byte
	var space [partRowBytes]byte
	for logical, p := range changed {
		key = x.appendKey(key[:0], partSpace, []byte(logical))
		if p.Items == 0 {
			batch.Delete(key, partRowBytes)
		} else {
			batch.Set(key, p.Amount.append(space[:0]))
		}
		s.cached[logical] = p
	}
	if len(s.cached) > cachedParts {
		clear(s.cached)
		s.forgotten = lsn
	}
}

func decodePart(e kv.Entry) (part, error) {
	if len(e.Value) != partRowBytes {
		return part{}, corrupt(e.Key, "not the totals of a logical partition")
	}
	return part{Amount: decodeAmount(e.Value)}, nil
}
