// SPDX-License-Identifier: MIT

package kv

// Health is how an engine that keeps its data in sorted runs is doing: whether
// background work should go on, slow down or stop, and what a metrics page shows.
// It is a moment's view. Counts go up from zero, which is when the store was opened.
type Health struct {
	// ReadAmp is how many runs overlap among those that were flushed and not
	// compacted yet. A read may have to look into each. It grows when flushes
	// outrun compactions, and in the end makes commits wait.
	ReadAmp int
	// CompactionDebtBytes is about how much has to be compacted until nothing is
	// due any more.
	CompactionDebtBytes uint64
	// Flushing is how many memtables wait to be flushed, or are being flushed.
	Flushing int
	// Stalled says that commits wait for flushes or compactions at this moment, or
	// are refused. Stalls is how often they had to wait: a stall may be over before
	// anybody looks.
	Stalled bool
	Stalls  int64

	// DiskBytes is what the data takes at this moment, where it is kept: the logs,
	// and also what nothing but a snapshot still uses, and what is about to be
	// removed.
	DiskBytes uint64
	// WALBytes is what is in the logs and not in tables yet, so that a start after
	// a crash has to read it. SpareWALBytes is what old logs take that are kept to be
	// written over: what was deleted since may still be in them.
	WALBytes, SpareWALBytes uint64
	// GarbageBytes is about how much of DiskBytes compactions could free, because
	// it was deleted, and Tombstones is about how many deletes are kept until they
	// do. Neither counts what has not been flushed, and both lag a little.
	GarbageBytes uint64
	Tombstones   uint64

	// MemTableBytes and CacheBytes is what memtables, and blocks that were read,
	// take in memory.
	MemTableBytes, CacheBytes uint64
	// CacheHits and CacheMisses count blocks that were wanted.
	CacheHits, CacheMisses int64

	// Flushes and Compactions count what was done, and BytesFlushed and
	// BytesCompacted what that wrote.
	Flushes, Compactions         int64
	BytesFlushed, BytesCompacted uint64
}
