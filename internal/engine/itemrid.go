// SPDX-License-Identifier: MIT

package engine

import (
	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/store"
)

// ResolveRID turns a target with the rids of a container and of an item into one with the
// item's id and partition key. It returns any other target unchanged. A rid without an
// item is store.ErrNotFound, also if the item has expired, or was purged or deleted:
// together with its container's rid it is not taken for a name. A given partition key
// other than the item's is ErrKeyMismatch.
func (e *Engine) ResolveRID(t Target) (Target, error) {
	if len(t.ID) != catalog.ItemRIDChars || !catalog.IsRID(t.ID) { // as for most requests
		return t, nil
	}
	c, err := e.catalog.Container(t.Database, t.Container)
	if err != nil || c.RIDText != t.Container {
		return t, nil
	}
	ordinal, ok := c.RID.Ordinal(t.ID)
	if !ok {
		return t, nil
	}
	partition := store.PartitionOf(ordinal)
	if partition >= len(c.Ranges) {
		return t, store.ErrNotFound
	}
	p, err := e.partition(c, partition)
	if err != nil {
		return t, err
	}
	key, id, err := p.NameOf(ordinal, e.clock.Now())
	if err != nil {
		return t, err
	}
	if t.PartitionKey != "" {
		given, err := givenKey(c, t.PartitionKey)
		if err != nil {
			return t, err
		}
		if !given.Equal(key) {
			return t, ErrKeyMismatch
		}
	}
	t.ID, t.PartitionKey = id, key.String()
	return t, nil
}
