// SPDX-License-Identifier: MIT

package engine

import (
	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/store"
)

// ResolveRID turns a target that is addressed by rids, its container's and its own,
// into one by id and partition key. One that is not stays as it is. A rid that no item
// has is store.ErrNotFound, also if it had one that has expired, been purged or deleted:
// beside the rid of its container it is no name. A partition key that was given and is
// not the item's is ErrKeyMismatch.
func (e *Engine) ResolveRID(t Target) (Target, error) {
	if len(t.ID) != catalog.ItemRIDChars || !catalog.IsRID(t.ID) { // as most are
		return t, nil
	}
	named := t
	err := whileClosed(func() error {
		c, err := e.catalog.Container(t.Database, t.Container)
		if err != nil || c.RIDText != t.Container {
			return nil
		}
		ordinal, ok := c.RID.Ordinal(t.ID)
		if !ok {
			return nil
		}
		if store.PartitionOf(ordinal) >= len(c.Ranges) {
			return store.ErrNotFound
		}
		named, err = e.named(c, t, ordinal)
		return err
	})
	return named, err
}

func (e *Engine) named(c *catalog.Container, t Target, ordinal uint64) (Target, error) {
	p, err := e.partition(c, store.PartitionOf(ordinal))
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
