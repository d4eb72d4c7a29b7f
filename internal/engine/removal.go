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
