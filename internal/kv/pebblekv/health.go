// SPDX-License-Identifier: MIT

package pebblekv

import (
	"bytes"
	"context"

	"github.com/mayflydb/mayfly/internal/kv"
)

// Health returns how the engine is doing, and nothing at all once the store is
// closed. It takes a few microseconds of the lock that commits need now and then,
// and may wait for a sync of the manifest: ask a few times a second, not for every
// commit.
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
	// The engine counts the log that is written with the size that it was created
	// with, which is none unless it is an old one that is used again.
	if m.WAL.Size > m.WAL.PhysicalSize {
		h.DiskBytes += m.WAL.Size - m.WAL.PhysicalSize
	}
	for i := range m.Levels {
		h.BytesFlushed += m.Levels[i].TableBytesFlushed + m.Levels[i].BlobBytesFlushed
		h.BytesCompacted += m.Levels[i].TableBytesCompacted + m.Levels[i].BlobBytesCompacted
	}
	return h
}

// Compact merges all tables that may hold keys k with lower <= k < upper, level by
// level, one compaction at a time. A nil bound is open. Afterwards they hold nothing
// that was deleted or overwritten before Compact was called, except:
//
//   - what a Snapshot sees, or what one saw when the table was written: a table that
//     overlaps no other is moved, and not rewritten. The engine looks after such
//     tables itself when the Snapshot is closed;
//   - in files that were replaced, and are removed a moment later;
//   - in old logs that are kept to be written over (Health's SpareWALBytes).
//
// If ctx ends, Compact returns ctx's error, and the compaction that is under way
// goes on alone. Close waits for Compact: whoever closes ends ctx first.
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
	// The memtable is flushed first, which makes a new one, as a commit may.
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

// beyondLastKey returns a key that is above all that there can be. The engine needs
// one: it has no open bounds here.
func beyondLastKey() []byte { return bytes.Repeat([]byte{0xff}, kv.MaxKeyBytes+1) }
