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
	defer e.observe(e.begin())
	if _, err := e.lookUp(r, &a, ru.Refused); err != nil {
		return a, err
	}
	k, err := givenKey(a.Container, r.PartitionKey)
	if err != nil {
		return a, err
	}
	l := store.LogicalPartition{EPK: a.Container.PartitionKey.AppendEPK(nil, k), PartitionKey: k}
	p, err := e.admit(&a, a.Container.Partition(l.EPK))
	if err != nil {
		return a, err
	}
	defer e.settle(&a, &err)
	removed, err := p.Remove(ctx, l)
	a.LSN, a.Charge = removed.LSN, ru.Refused+removed.Units
	e.removed()
	return a, err
}
