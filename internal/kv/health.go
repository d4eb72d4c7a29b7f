// SPDX-License-Identifier: MIT

package kv

import "time"

// Health is the state of an engine that keeps its data in sorted runs, at one moment: it
// shows whether background work should go on, slow down or stop, and serves as metrics.
// Counts start at zero when the store is opened.
type Health struct {
	// ReadAmp is how many runs overlap among those that were flushed and not compacted
	// yet. A read may have to search each of them. It grows when flushes outrun
	// compactions, until commits have to wait.
	ReadAmp int
	// CompactionDebtBytes is about how much has to be compacted until no compaction is
	// due.
	CompactionDebtBytes uint64
	// Flushing is how many memtables wait to be flushed, or are being flushed.
	Flushing int
	// Stalled says that commits wait for flushes or compactions at this moment, or are
	// refused. Stalls is how often they had to wait: a stall may end between two calls of
	// Health.
	Stalled bool
	Stalls  int64

	// DiskBytes is the space that all files of the store take, including logs, files that
	// only a snapshot still uses, and files that are about to be removed.
	DiskBytes uint64
	// WALBytes is the size of the part of the logs that is not in tables yet: a start after
	// a crash has to read it. SpareWALBytes is the space of old logs that are kept to be
	// overwritten: they may still contain data that was deleted since.
	WALBytes, SpareWALBytes uint64
	// GarbageBytes is about how much of DiskBytes holds deleted data, which compactions
	// could free, and Tombstones is about how many deletes are stored until they do. Neither
	// counts deletes in memtables, and both lag a little.
	GarbageBytes uint64
	Tombstones   uint64

	// MemTableBytes and CacheBytes are the memory that memtables and cached blocks take.
	MemTableBytes, CacheBytes uint64
	// CacheHits and CacheMisses count lookups of blocks in the cache.
	CacheHits, CacheMisses int64

	// Flushes and Compactions count those that have ended, and BytesFlushed and
	// BytesCompacted the bytes that they wrote.
	Flushes, Compactions         int64
	BytesFlushed, BytesCompacted uint64
}

// Stepper is implemented by engines whose time moves in steps that people notice.
type Stepper interface {
	// Step returns how far the time moves at once. What was due in between happens that much
	// late.
	Step() time.Duration
}
