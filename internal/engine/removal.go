// SPDX-License-Identifier: MIT

package engine

import (
	"context"

	"github.com/mayflydb/mayfly/internal/ru"
	"github.com/mayflydb/mayfly/internal/store"
)

// DeletePartitionKey deletes all items with a partition key. When it returns they are
// gone, except for items written meanwhile. Once begun it is completed, even if the
// client goes or the server restarts.
func (e *Engine) DeletePartitionKey(ctx context.Context, r *Request) (a Answer, err error) {
	a.Charge = ru.Refused
	if err := e.removable(); err != nil {
		return a, err
	}
	err = e.serve(r, &a, ru.Refused, func(session) error {
		k, err := givenKey(a.Container, r.PartitionKey)
		if err != nil {
			return err
		}
		epk := a.Container.PartitionKey.AppendEPK(nil, k)
		return e.onPartition(&a, epk, func(p *store.Partition) error {
			removed, err := p.Remove(ctx, store.LogicalPartition{EPK: epk, PartitionKey: k})
			a.LSN, a.Charge = removed.LSN, ru.Refused+removed.Units
			e.removed()
			return err
		})
	})
	return a, err
}
