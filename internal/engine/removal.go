// SPDX-License-Identifier: MIT

package engine

import (
	"context"
	"errors"

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
	for range maxDropRetries {
		c, err := e.target(t)
		if err != nil {
			return res, err
		}
		res.Container = c
		k, err := headerKey(c, t.PartitionKey)
		if err != nil {
			return res, err
		}
		epk := c.PartitionKey.AppendEPK(nil, k)
		res.Partition = c.Partition(epk)
		if err := e.meters.admit(c, res.Partition); err != nil {
			res.Charge = 0
			return res, err
		}
		p, err := e.partition(c, res.Partition)
		if err == nil {
			var removed store.Removed
			removed, err = p.Remove(ctx, store.LogicalPartition{EPK: epk, PartitionKey: k})
			res.LSN, res.Charge = removed.LSN, ru.Refused+removed.Units
			e.removed()
		}
		if !errors.Is(err, store.ErrClosed) {
			e.meters.settle(c, res.Partition, res.Charge)
			return res, err
		}
	}
	return res, ErrStopping
}
