// SPDX-License-Identifier: MIT

package engine

import (
	"context"

	"github.com/mayflydb/mayfly/internal/ru"
	"github.com/mayflydb/mayfly/internal/store"
)

// DeletePartitionKey deletes all items with a partition key. They are gone when it
// returns, but for those that were written meanwhile. Once it has begun it is carried
// through, whatever becomes of the client or the server.
func (e *Engine) DeletePartitionKey(ctx context.Context, t Target) (ItemResult, error) {
	defer e.observe(e.begin())
	res := ItemResult{Charge: ru.Refused}
	if err := e.removable(); err != nil {
		return res, err
	}
	err := whileClosed(func() error {
		c, err := e.target(t)
		if err != nil {
			return err
		}
		res.Container = c
		k, err := headerKey(c, t.PartitionKey)
		if err != nil {
			return err
		}
		epk := c.PartitionKey.AppendEPK(nil, k)
		return e.onPartition(&res, epk, func(p *store.Partition) error {
			removed, err := p.Remove(ctx, store.LogicalPartition{EPK: epk, PartitionKey: k})
			res.LSN, res.Charge = removed.LSN, ru.Refused+removed.Units
			e.removed()
			return err
		})
	})
	return res, err
}
