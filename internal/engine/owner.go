// SPDX-License-Identifier: MIT

package engine

import (
	"context"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/store"
)

// Owner returns the node that owns a partition, or that should claim it. The address is empty
// if it is this node, and if there is no cluster.
func (e *Engine) Owner(ctx context.Context, c *catalog.Container, index int) (node, address string, err error) {
	if e.node == nil {
		return "", "", nil
	}
	node, address, err = e.node.Where(ctx, store.OwnerKey(c.RID, index))
	if err != nil {
		return "", "", unavailable(err)
	}
	if node == e.node.Name() {
		address = ""
	}
	return node, address, nil
}
