// SPDX-License-Identifier: MIT

// Unique keys: within a logical partition, no two live items may have the same values at
// the paths of a unique key of the container's policy. A missing value counts as null. An
// expired item holds no unique keys.

package store

import (
	"crypto/sha256"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/memory"
	"github.com/mayflydb/mayfly/internal/value"
)

const (
	// maxTupleBytes bounds the values in a unique key's row; longer ones are hashed.
	maxTupleBytes = 256

	tuplePlain  = 1
	tupleHashed = 2

	// In a tuple, elementText precedes the text of an array or object, and elementScalar
	// the key encoding of any other value.
	elementScalar = 1
	elementText   = 2

	uniqueRowBytes = 8
)

// uniqueKeys returns the unique keys that an item holds: {policy}{pk}{tuple}, one for each
// unique key of the policy, as they are in keys of rows.
func uniqueKeys(c *catalog.Container, pk value.PartitionKey, item *value.Object) [][]byte {
	keys := make([][]byte, 0, len(c.UniqueKeys))
	encoded := pk.AppendKey(nil)
	for policy, paths := range c.UniqueKeys {
		var tuple []byte
		for _, path := range paths {
			tuple = appendElement(tuple, item, path)
		}
		key := appendPlacedPK([]byte{byte(policy)}, encoded)
		if len(tuple) > maxTupleBytes {
			sum := sha256.Sum256(tuple)
			key = append(append(key, tupleHashed), sum[:]...)
		} else {
			key = append(append(key, tuplePlain), tuple...)
		}
		keys = append(keys, key)
	}
	return keys
}

func appendElement(dst []byte, item *value.Object, path value.Path) []byte {
	raw, found := item.At(path)
	if !found {
		return value.AppendKey(append(dst, elementScalar), value.Null())
	}
	if v, ok := value.FromJSON(raw); ok {
		return value.AppendKey(append(dst, elementScalar), v)
	}
	return value.AppendBytesKey(append(dst, elementText), raw)
}

// claim checks that the item to be written may have its unique keys, and its new id if the
// write renames it. It returns the expired items that hold one of these, to be purged in
// the same batch, with their counters loaded. self is the item that is replaced, if there
// is one.
func (w *writer) claim(r *write, self *current) ([]current, error) {
	var expired []current
	claim := func(h *current, taken error) error {
		switch {
		case !h.exists, self.exists && h.ordinal == self.ordinal:
			return nil
		case !h.header.expired(&w.view.rules, w.nowMs):
			return taken
		}
		if err := w.prepareRemoval(h, memory.RoomNow(r.share)); err != nil {
			return err
		}
		expired = append(expired, *h)
		return nil
	}
	if r.renames() {
		h, err := w.current(r.next)
		if err == nil {
			err = claim(&h, ErrExists)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, key := range r.unique {
		h, err := w.holder(key)
		if err == nil {
			err = claim(&h, ErrNotUnique)
		}
		if err != nil {
			return nil, err
		}
	}
	return expired, nil
}

// purgeHolder purges an expired item that holds a unique key or the id of the item being
// written. Several keys may have the same holder, which is purged once.
func (w *writer) purgeHolder(c *current) {
	if now, known := w.changed(c.header.identity); known && !now.exists {
		return
	}
	w.purgeItem(c)
	w.removeItem(c)
}
