// SPDX-License-Identifier: MIT

// What a write takes of the memory that requests share. An item's index rows may be many
// times as large as the item, so they are counted as they are made: the entries before
// the loop, where a write can wait, and the group's batch, which is made of them, when
// the write goes to the loop. What depends on the item's present state is known in the
// loop only, which waits for nobody: there, a write for which there is no room fails.

package store

import "github.com/mayflydb/mayfly/internal/index"

// batchRowBytes is about what a row takes in the group's batch and in the engine's,
// beside its bytes in each: where it lies and its place in the order of keys.
const batchRowBytes = 200

// batchBytes is about what the rows of the entries take in batches.
func batchBytes(t *index.Entries) int { return 2*rowBytes(t) + t.Len()*batchRowBytes }

// batchBytes is about what a write takes in batches.
func (w *write) batchBytes() int { return 2*len(w.row) + batchBytes(&w.entries) }
