// SPDX-License-Identifier: MIT

package pebblekv

import (
	"bytes"
	"context"

	"github.com/mayflydb/mayfly/internal/kv"
)

// Health returns the state of the engine; the zero Health once the store is closed. It holds
// a lock that commits sometimes need for a few microseconds, and may wait for a sync of the
// manifest: call it a few times a second, not for every commit.
func (db *DB) Health() kv.Health {
	db.life.RLock()
	defer db.life.RUnlock()
	if db.closed.Load() {
		return kv.Health{}
	}
	m := db.pebble.Metrics()
	h := kv.Health{
		ReadAmp:             int(m.Levels[0].Sublevels),
		CompactionDebtBytes: m.Compact.EstimatedDebt,
		Flushing:            int(max(m.MemTable.Count-1, 0)), // one of them takes commits
		Stalled:             db.watch.stalled.Load() > 0 || db.refused() != nil,
		Stalls:              db.watch.stalls.Load(),
		DiskBytes:           m.DiskSpaceUsage(),
		WALBytes:            m.WAL.Size,
		SpareWALBytes:       m.WAL.ObsoletePhysicalSize,
		GarbageBytes:        m.Table.Garbage.PointDeletionsBytesEstimate + m.Table.Garbage.RangeDeletionsBytesEstimate,
		Tombstones:          m.Keys.TombstoneCount,
		MemTableBytes:       m.MemTable.Size,
		CacheBytes:          uint64(max(m.BlockCache.Size, 0)),
		CacheHits:           m.BlockCache.Hits,
		CacheMisses:         m.BlockCache.Misses,
		Flushes:             m.Flush.Count,
		Compactions:         m.Compact.Count,
	}
	// The engine counts the current log with the size that it had when it was begun, which
	// is 0 unless an old log is overwritten.
	if m.WAL.Size > m.WAL.PhysicalSize {
		h.DiskBytes += m.WAL.Size - m.WAL.PhysicalSize
	}
	for i := range m.Levels {
		h.BytesFlushed += m.Levels[i].TableBytesFlushed + m.Levels[i].BlobBytesFlushed
		h.BytesCompacted += m.Levels[i].TableBytesCompacted + m.Levels[i].BlobBytesCompacted
	}
	return h
}

// Compact merges all tables that may hold keys k with lower <= k < upper, level by level, one
// compaction at a time. A nil bound is open. Afterwards the disk holds nothing in that range
// that was deleted or overwritten before Compact was called, except:
//
//   - rows that a Snapshot sees, or that one saw when the table was written: a table that
//     overlaps no other is moved, and not rewritten. The engine compacts such tables by
//     itself when the Snapshot is closed;
//   - rows in files that were replaced, and are removed a moment later;
//   - rows in old logs that are kept to be overwritten (Health's SpareWALBytes).
//
// If ctx ends, Compact returns ctx's error, and the compaction that is under way goes on
// alone. Close waits for Compact, so a caller of Close should cancel ctx first.
func (db *DB) Compact(ctx context.Context, lower, upper []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(lower) == 0 {
		lower = []byte(firstKey)
	}
	if upper == nil {
		upper = beyondLastKey()
	}
	db.life.RLock()
	defer db.life.RUnlock()
	if db.closed.Load() {
		return kv.ErrClosed
	}
	if bytes.Compare(lower, upper) >= 0 {
		return nil
	}
	// The engine flushes the memtable first, which begins a new one, as a commit may.
	if err := db.admit(ctx); err != nil {
		return err
	}
	return db.compact(ctx, bytes.Clone(lower), bytes.Clone(upper))
}

// compact gives up when flushes fail: the engine would wait until one succeeds.
func (db *DB) compact(ctx context.Context, lower, upper []byte) error {
	ctx, giveUp := context.WithCancelCause(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		giveUp(db.watch.failure(ctx))
	}()
	err := db.pebble.Compact(ctx, lower, upper, false)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	giveUp(nil)
	<-watched
	return translate(err)
}

// beyondLastKey returns a key above all possible keys. The engine's Compact needs one: it has
// no open bounds.
func beyondLastKey() []byte { return bytes.Repeat([]byte{0xff}, kv.MaxKeyBytes+1) }
