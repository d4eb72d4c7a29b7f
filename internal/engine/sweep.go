// SPDX-License-Identifier: MIT

package engine

import (
	"context"
	"time"

	"github.com/mayflydb/mayfly/internal/store"
)

// sweepInterval is the time between two looks for ranges of rows that are to be swept.
const sweepInterval = 10 * time.Second

// keepSweeping sweeps ranges of rows that nothing reads any more (store.Sweep), on an engine
// that is far.
func (e *Engine) keepSweeping(ctx context.Context) {
	t := time.NewTicker(sweepInterval)
	defer t.Stop()
	for {
		switch swept, err := e.sweep(ctx); {
		case ctx.Err() != nil:
			return
		case err != nil:
			e.logger.Warn("rows that nothing reads any more could not be removed yet", "err", err)
		case swept > 0:
			e.logger.Info("removed ranges of rows that nothing reads any more", "ranges", swept)
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// sweep sweeps the ranges that are this node's to sweep: the preferred node does it, as with
// partitions, so that nodes do not get in each other's way. That is not needed for safety.
func (e *Engine) sweep(ctx context.Context) (swept int, err error) {
	return store.Sweep(ctx, e.db, func(lower []byte) bool {
		if e.node == nil {
			return true
		}
		name, _, err := e.node.Preferred(lower)
		return err == nil && name == e.node.Name()
	})
}
