// SPDX-License-Identifier: MIT

package engine

import (
	"context"
	"errors"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/store"
	"github.com/mayflydb/mayfly/internal/value"
)

// ResolveRID turns a target with the rids of a container and of an item into one with the
// item's id and partition key. It returns any other target unchanged. A rid without an
// item is store.ErrNotFound, also if the item has expired, or was purged or deleted:
// together with its container's rid it is not taken for a name. A given partition key
// other than the item's is ErrKeyMismatch.
func (e *Engine) ResolveRID(ctx context.Context, t Target) (Target, error) {
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
	key, id, err := e.nameOf(ctx, c, ordinal)
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

// nameOf returns the partition key and the id of the item with an ordinal. It is in the
// partition that the ordinal names, or in one of those that were made from it.
func (e *Engine) nameOf(ctx context.Context, c *catalog.Container, ordinal uint64) (value.PartitionKey, string, error) {
	in := descendants(c, store.PartitionOf(ordinal), 0, len(c.Ranges)-1)
	if len(in) == 1 || e.node == nil {
		for _, i := range in {
			p, err := e.partition(c, c.Ranges[i].ID)
			if err != nil {
				return nil, "", err
			}
			key, id, err := p.NameOf(ordinal, e.clock.Now())
			if !errors.Is(err, store.ErrNotFound) {
				return key, id, err
			}
		}
		return nil, "", store.ErrNotFound
	}
	ids := make([]int, len(in))
	for n, i := range in {
		ids[n] = c.Ranges[i].ID
	}
	names, err := gatherThose(ctx, e, c, ids, opNameOf, ordinal)
	if err != nil {
		return nil, "", err
	}
	for _, name := range names {
		if name.ID != "" {
			key, err := value.ParsePartitionKey(name.PartitionKey)
			return key, name.ID, err
		}
	}
	return nil, "", store.ErrNotFound
}

// named is the partition key and the id of an item; without an id there is none.
type named struct{ PartitionKey, ID string }

var opNameOf = newOperation(operation[uint64, named]{"name of an item", func(_ context.Context, e *Engine, _ *catalog.Container, _ int, p *store.Partition, ordinal uint64) (named, error) {
	key, id, err := p.NameOf(ordinal, e.clock.Now())
	if errors.Is(err, store.ErrNotFound) {
		return named{}, nil
	}
	return named{key.String(), id}, err
}, false})
