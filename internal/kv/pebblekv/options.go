// SPDX-License-Identifier: MIT

package pebblekv

import (
	"log/slog"
	"runtime"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Options are the parameters of Open. The zero value of every field but Dir is a sensible
// default.
type Options struct {
	// Dir is the directory of the data. It is created if it does not exist.
	Dir string
	// FS is the file system that Dir is in; nil is the operating system's.
	FS vfs.FS
	// NoSync makes Commit return before the data is on disk, or even handed to the operating
	// system. A crash of the machine, or of the process alone, loses the last commits.
	NoSync bool
	// CacheBytes is how much memory cached blocks may take; 0 is 128 MiB. It is allocated as
	// blocks are read.
	CacheBytes int64
	// MemTableBytes is the size of a full memtable, of which there may be four; 0 is
	// 32 MiB.
	MemTableBytes int64
	// IsIndexKey reports whether a key is read only by Scan. A Get finds it too, but without
	// the help of filters. nil means no key.
	IsIndexKey func(key []byte) bool
	// Logger gets what an operator should know, and everything else at debug level; nil is
	// slog.Default().
	Logger *slog.Logger

	// tune changes the engine's options last: tests use it to make tables small.
	tune func(*pebble.Options)
	// reserves are smaller in tests.
	reserves reserves
	// withoutLog keeps no write-ahead log, for a store in memory.
	withoutLog bool
}

const (
	// formatVersion is the newest on-disk format that this release of the engine
	// has declared stable. It is written out, so that an upgrade of the engine
	// does not silently lock older versions of this program out of the data.
	formatVersion = pebble.FormatValueSeparation

	defaultCacheBytes = 128 << 20
	// memoryCacheBytes is for a store in memory, where the cache only saves decompression.
	memoryCacheBytes = 32 << 20

	// A memtable starts at 256 KiB and doubles with each flush up to its size, so
	// an idle store is small, and a busy one writes tables of a useful size.
	defaultMemTableBytes = 32 << 20
	// Commits wait when the memtables have grown to the size of this many full ones: one that
	// fills, and memTablesQueued behind a slow flush. The engine would make commits wait where
	// a failure cannot wake them; its limit is one memtable higher.
	memTablesMax    = 4
	memTablesQueued = memTablesMax - 1
	// Two memtables are in use at most times, the one that fills and the one that
	// is flushed, and the engine counts them as part of the cache.
	memTablesInCache = 2

	// Big enough to compress well, small enough that a point read of a row of a
	// few dozen bytes does not decompress much for it.
	blockBytes = 16 << 10
	// A table's index is one block, up to this size, rather than a tree of blocks: that saves
	// one lookup for each table that a read searches.
	indexBlockBytes = 256 << 10
	// Compaction of L0 begins with 4 overlapping runs, which the engine counts twice: index
	// rows are spread over their whole key space, so each compaction rewrites most of the
	// next level (DESIGN.md has figures). Above 10 the engine uses its spare compaction
	// slots; at 24 commits would wait, which is late enough for the compactions to come
	// first.
	l0CompactionThreshold = 8
	l0StopWritesThreshold = 24

	// The level that L0 is compacted into holds eight memtables. With the engine's
	// default of half of that, a third more bytes were compacted.
	memTablesInBase = 8

	// A range delete frees no space before its memtable is flushed, and until then each
	// commit has the next reader sort all range deletes of the memtable again: flush soon,
	// rather than when the memtable is full (DESIGN.md has figures).
	flushDelayDeleteRange = time.Second

	// At most this many compactions at once, and half the processors.
	compactionsMax = 4

	// Without a sync for each commit, the log is written to the disk in pieces of this
	// size, so that the operating system does not write it all at once.
	unsyncedLogBytes = 512 << 10

	// A manifest has the first and the last key of tables, also of tables that are gone. The
	// engine begins a new one only when its edits have more tables than the store, so that the
	// smallest limit costs little, and Erase can have a new one soon.
	maxManifestBytes = 1

	// A write or sync that takes this long is reported.
	diskSlowThreshold = 5 * time.Second
)

func (o Options) withDefaults() Options {
	if o.CacheBytes <= 0 {
		o.CacheBytes = defaultCacheBytes
	}
	if o.MemTableBytes <= 0 {
		o.MemTableBytes = defaultMemTableBytes
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.reserves == (reserves{}) {
		o.reserves = defaultReserves
	}
	return o
}

// pebbleOptions returns the engine's options for o. Options that are not set here have the
// engine's defaults, such as WALMinSyncInterval (0: the engine already groups the syncs of
// concurrent commits) and TombstoneDenseCompactionThreshold (0.1).
func (o Options) pebbleOptions(fs *logFS, lock *pebble.Lock, w *watcher) *pebble.Options {
	p := &pebble.Options{
		FS:                          fs,
		Lock:                        lock,
		FormatMajorVersion:          formatVersion,
		CacheSize:                   o.CacheBytes + memTablesInCache*o.MemTableBytes,
		MemTableSize:                uint64(o.MemTableBytes),
		MemTableStopWritesThreshold: memTablesMax + 1,
		L0CompactionThreshold:       l0CompactionThreshold,
		L0StopWritesThreshold:       l0StopWritesThreshold,
		LBaseMaxBytes:               memTablesInBase * o.MemTableBytes,
		FlushDelayDeleteRange:       flushDelayDeleteRange,
		CompactionConcurrencyRange:  func() (lower, upper int) { return compactionConcurrency(fs.open.Load()) },
		DisableWAL:                  o.withoutLog,
		MaxManifestFileSize:         maxManifestBytes,
		BlockPropertyCollectors:     []func() pebble.BlockPropertyCollector{newCollector},
		EventListener:               w.listener(),
		Logger:                      w,
	}
	if o.NoSync {
		p.WALBytesPerSync = unsyncedLogBytes
	}
	copy(p.TargetFileSizes[:], tableBytes[:])
	setFilters(p, o.IsIndexKey)
	for i := range p.Levels {
		p.Levels[i].BlockSize = blockBytes
		p.Levels[i].IndexBlockSize = indexBlockBytes
	}
	// JSON shrinks to 60 %. Compression costs about as much CPU as it saves in compactions:
	// the CPU per item was the same with and without it (22 to 26 us).
	p.ApplyCompressionSettings(func() pebble.DBCompressionSettings { return pebble.DBCompressionFastest })
	if o.tune != nil {
		o.tune(p)
	}
	return p
}

// tableBytes is the size of tables in L0, in the level that it is compacted into, and in those
// below. Small tables have few rows beside dead ones: they are dropped whole, and erasure
// rewrites less (internal/erase/DESIGN.md). The lower levels of a large store have tables of
// the engine's usual size, so that there are not too many files.
var tableBytes = [...]int64{256 << 10, 1 << 20, 4 << 20, 16 << 20, 32 << 20, 64 << 20}

// compactionConcurrency returns how many compactions may run at once: usually one, and more
// when the engine sees that they fall behind. While the store is opened there is none, unless
// there is much to do: opening would wait for its end, and it can as well begin later.
func compactionConcurrency(opened bool) (lower, upper int) {
	if !opened {
		return 0, 1
	}
	return 1, min(max(runtime.GOMAXPROCS(0)/2, 2), compactionsMax)
}
