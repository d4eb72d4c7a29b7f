// SPDX-License-Identifier: MIT

// How much of the memory that requests share a write takes. An item's index rows may be
// many times as large as the item, so they are counted as they are made: the entries before
// the loop, where a write can wait for memory, and the group's batch, which contains them,
// when the write is submitted. What depends on the item's present state is known only in
// the loop, which must not wait: there, a write without enough memory fails.

package store

import "github.com/mayflydb/mayfly/internal/index"

// batchRowBytes is about what a row takes in the group's batch and in the engine's, beside
// its bytes: its offsets, and its key in the order of the batch.
const batchRowBytes = 200

// batchBytes is about what the rows of the entries take in batches.
func batchBytes(t *index.Entries) int { return 2*rowBytes(t) + t.Len()*batchRowBytes }

// batchBytes is about what a write takes in batches.
func (w *write) batchBytes() int { return 2*len(w.row) + batchBytes(&w.entries) }
