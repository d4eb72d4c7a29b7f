// SPDX-License-Identifier: MIT

// What a write takes of the memory that requests share. An item's index rows may be many
// times as large as the item, so they are counted as they are made: the entries before
// the loop, where a write can wait, and the group's batch, which is made of them, when
// the write goes to the loop. What depends on the item's present state is known in the
// loop only, which waits for nobody: there, a write for which there is no room fails.

package store

import (
	"context"

	"github.com/mayflydb/mayfly/internal/memory"
)

// batchRowBytes is about what a row takes in the group's batch and in the engine's,
// beside its bytes in each: where it lies and its place in the order of keys.
const batchRowBytes = 200

// room is where memory is taken for a write. The zero value has no bounds.
type room struct {
	ctx   context.Context // of those that can wait
	share *memory.Share
}

func (m room) take(bytes int) error {
	if m.ctx != nil {
		return m.share.Take(m.ctx, int64(bytes))
	}
	if !m.share.TryTake(int64(bytes)) {
		return memory.ErrFull
	}
	return nil
}

func (m room) give(bytes int) { m.share.Give(int64(bytes)) }

// mark returns what was taken so far.
func (m room) mark() int64 { return m.share.Used() }

// release gives back what was taken after a mark.
func (m room) release(mark int64) { m.share.Give(m.share.Used() - mark) }

// batchBytes is about what the rows of the entries take in batches.
func (t *entries) batchBytes() int { return 2*t.Bytes() + t.Len()*batchRowBytes }

// batchBytes is about what a write takes in batches.
func (w *write) batchBytes() int { return 2*len(w.row) + w.entries.batchBytes() }
