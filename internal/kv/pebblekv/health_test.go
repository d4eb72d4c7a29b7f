// SPDX-License-Identifier: MIT

package pebblekv

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/mayflydb/mayfly/internal/kv"
)

// This file tests what Health reports, and that Compact frees space.

// uncompacted lets tables accumulate until the test calls Compact.
func uncompacted(p *pebble.Options) { p.DisableAutomaticCompactions = true }

const (
	healthRows      = 2000
	healthRowBytes  = 1000
	healthDataBytes = healthRows * healthRowBytes
)

func healthKey(n int) []byte { return fmt.Appendf(nil, "row %06d", n) }

// commitRows commits rows that do not compress, ten at a time.
func commitRows(t testing.TB, db *DB, seed uint64) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 1))
	value := make([]byte, healthRowBytes)
	var b kv.Batch
	for n := range healthRows {
		for i := range value {
			value[i] = byte(random.Uint32())
		}
		b.Set(healthKey(n), value)
		if n%10 == 9 {
			mustCommit(t, db, &b)
		}
	}
}

func mustCommit(t testing.TB, db *DB, b *kv.Batch) {
	t.Helper()
	if err := db.Commit(context.Background(), b); err != nil {
		t.Fatal(err)
	}
	b.Reset()
}

// Deleted rows are garbage until they are compacted, and then take no space.
func TestCompactFreesSpace(t *testing.T) {
	for name, deleteRows := range map[string]func(b *kv.Batch){
		"one by one": func(b *kv.Batch) {
			for n := range healthRows {
				b.Delete(healthKey(n), healthRowBytes)
			}
		},
		"by range": func(b *kv.Batch) { b.DeleteRange(healthKey(0), healthKey(healthRows)) },
	} {
		t.Run(name, func(t *testing.T) {
			db := mustOpen(t, Options{Dir: "d", FS: vfs.NewMem(), tune: uncompacted})
			defer mustClose(t, db)
			commitRows(t, db, 1)
			commitRow(t, db, "kept", "value")
			mustCompact(t, db, nil, nil)
			full := db.Health()
			if full.DiskBytes-full.SpareWALBytes < healthDataBytes || full.GarbageBytes != 0 || full.Compactions == 0 ||
				full.Flushes == 0 || full.BytesFlushed < healthDataBytes {
				t.Errorf("with %d bytes of data: %+v", healthDataBytes, full)
			}

			var b kv.Batch
			deleteRows(&b)
			mustCommit(t, db, &b)
			if err := db.pebble.Flush(); err != nil {
				t.Fatal(err)
			}
			// The engine reads the tables' statistics in the background.
			eventually(t, db, "the garbage is seen", func(h kv.Health) bool {
				return h.GarbageBytes > healthDataBytes/2 && h.Tombstones > 0 && h.ReadAmp > 0
			})
			mustCompact(t, db, healthKey(0), healthKey(healthRows))
			// The current log overwrites an old one, of the first, small memtables.
			eventually(t, db, "the space is free", func(h kv.Health) bool {
				return h.DiskBytes-h.SpareWALBytes < healthDataBytes/4 && h.DiskBytes < full.DiskBytes-healthDataBytes/2 &&
					h.GarbageBytes == 0 && h.Tombstones == 0
			})
			wantRow(t, db, "kept", "value")
		})
	}
}

// Compact does not free rows that a snapshot sees.
func TestCompactSparesSnapshots(t *testing.T) {
	db := mustOpen(t, Options{Dir: "d", FS: vfs.NewMem(), tune: uncompacted})
	defer mustClose(t, db)
	commitRows(t, db, 1)
	s, err := db.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var b kv.Batch
	b.DeleteRange(nil, []byte("s"))
	mustCommit(t, db, &b)
	mustCompact(t, db, nil, nil)
	if h := db.Health(); h.DiskBytes-h.SpareWALBytes < healthDataBytes {
		t.Errorf("of %d bytes that a snapshot sees: %+v", healthDataBytes, h)
	}
	for n := range healthRows {
		if value, found, err := s.Get(healthKey(n)); err != nil || !found || len(value) != healthRowBytes {
			t.Fatalf("row %d in the snapshot: %d bytes, %v, %v", n, len(value), found, err)
		}
	}
}

// Only the tables that may hold the range are rewritten.
func TestCompactIsBounded(t *testing.T) {
	db := mustOpen(t, Options{Dir: "d", FS: vfs.NewMem(), tune: uncompacted})
	defer mustClose(t, db)
	commitRows(t, db, 1)
	if err := db.pebble.Flush(); err != nil {
		t.Fatal(err)
	}
	before := db.Health()
	for _, bounds := range [][2][]byte{
		{[]byte("x"), nil}, {nil, []byte("a")}, {nil, {}}, {healthKey(9), healthKey(9)}, {healthKey(9), healthKey(8)},
	} {
		mustCompact(t, db, bounds[0], bounds[1])
		if after := db.Health(); after.Compactions != before.Compactions || after.ReadAmp != before.ReadAmp {
			t.Errorf("compacting %q to %q: %+v, and before %+v", bounds[0], bounds[1], after, before)
		}
	}
	mustCompact(t, db, healthKey(9), nil)
	if after := db.Health(); after.Compactions == before.Compactions || after.ReadAmp != 0 {
		t.Errorf("compacting everything: %+v, and before %+v", after, before)
	}
}

// Health reports the log, the memtables and the cache separately.
func TestHealthOfMemory(t *testing.T) {
	db := mustOpen(t, Options{Dir: "d", FS: vfs.NewMem()})
	defer mustClose(t, db)
	empty := db.Health()
	if empty.Stalled || empty.Flushing != 0 || empty.ReadAmp != 0 || empty.CompactionDebtBytes != 0 {
		t.Errorf("an empty store: %+v", empty)
	}
	commitRow(t, db, "k", string(make([]byte, 100_000)))
	logged := db.Health()
	if logged.WALBytes < 100_000 || logged.MemTableBytes == 0 || logged.DiskBytes < empty.DiskBytes+100_000 {
		t.Errorf("with 100000 bytes in the log: %+v, and before %+v", logged, empty)
	}
	if err := db.pebble.Flush(); err != nil {
		t.Fatal(err)
	}
	if h := db.Health(); h.WALBytes >= 100_000 || h.Flushes == 0 {
		t.Errorf("with 100000 bytes flushed: %+v", h)
	}
	for range 2 {
		wantRow(t, db, "k", string(make([]byte, 100_000)))
	}
	if h := db.Health(); h.CacheBytes == 0 || h.CacheHits == 0 || h.CacheMisses == 0 {
		t.Errorf("after two reads: %+v", h)
	}
}

// While flushes hang commits wait, and Health reports a stall; when flushes fail, Compact does
// not wait for them to succeed.
func TestHealthWhenTablesFail(t *testing.T) {
	fail := make(chan struct{})
	f := &fault{ext: ".sst", err: syscall.ENOSPC, from: 1, held: fail}
	db := mustOpen(t, Options{Dir: "data", FS: errorfs.Wrap(vfs.NewCrashableMem(), f), tune: smallTables})
	f.on.Store(true)
	var b kv.Batch
	b.Set([]byte("row"), make([]byte, 1000))
	compacted := make(chan error, 1)
	within(t, func() {
		if err := db.Commit(context.Background(), &b); err != nil {
			t.Fatal(err)
		}
		go func() { compacted <- db.Compact(context.Background(), nil, nil) }()
		eventually(t, db, "the flush hangs", func(h kv.Health) bool { return h.Flushing > 0 && !h.Stalled })

		for db.watch.queued.Load() < memTablesQueued || !db.crowded() {
			if err := db.Commit(context.Background(), &b); err != nil {
				t.Fatal(err)
			}
		}
		waits := make(chan error, 1)
		go func() { waits <- db.Commit(context.Background(), &b) }()
		eventually(t, db, "a commit waits", func(h kv.Health) bool {
			return h.Stalled && h.Stalls > 0 && h.Flushing >= memTablesQueued
		})

		close(fail)
		wantFault(t, f, "a commit that waits for room", <-waits)
		wantFault(t, f, "a compaction that waits for a flush", <-compacted)
		wantFault(t, f, "a compaction after that", db.Compact(context.Background(), nil, nil))
		if h := db.Health(); !h.Stalled {
			t.Errorf("commits are refused: %+v", h)
		}
		f.on.Store(false)
		flushed, err := db.pebble.AsyncFlush()
		if err != nil {
			t.Fatal(err)
		}
		<-flushed
		mustCompact(t, db, nil, nil)
		if h := db.Health(); h.Stalled {
			t.Errorf("tables can be written again: %+v", h)
		}
		mustClose(t, db)
	})
}

// A compaction that cannot write its tables returns an error, and may be repeated.
func TestCompactFails(t *testing.T) {
	f := &fault{ext: ".sst", err: syscall.ENOSPC, from: 1}
	db := mustOpen(t, Options{Dir: "data", FS: errorfs.Wrap(vfs.NewCrashableMem(), f), tune: uncompacted})
	for seed := range uint64(2) { // tables that overlap, so that they cannot just be moved
		commitRows(t, db, seed)
		if err := db.pebble.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	within(t, func() {
		f.on.Store(true)
		wantFault(t, f, "a compaction", db.Compact(context.Background(), nil, nil))
		f.on.Store(false)
		mustCompact(t, db, nil, nil)
		if h := db.Health(); h.ReadAmp != 0 || h.BytesCompacted < healthDataBytes {
			t.Errorf("after a compaction that failed and one that did not: %+v", h)
		}
		mustClose(t, db)
	})
}

// Compact returns when its context ends, even if the compaction goes on.
func TestCompactIsCancelled(t *testing.T) {
	proceed := make(chan struct{})
	f := &fault{ext: ".sst", from: 1, held: proceed} // slow, and without a failure
	db := mustOpen(t, Options{Dir: "data", FS: errorfs.Wrap(vfs.NewCrashableMem(), f)})
	commitRow(t, db, "k", "v")
	f.on.Store(true)
	ctx, cancel := context.WithCancel(context.Background())
	compacted := make(chan error, 1)
	within(t, func() {
		go func() { compacted <- db.Compact(ctx, nil, nil) }()
		eventually(t, db, "the flush hangs", func(h kv.Health) bool { return h.Flushing > 0 })
		cancel()
		if err := <-compacted; !errors.Is(err, context.Canceled) {
			t.Errorf("a compaction that is cancelled returns %v", err)
		}
		if err := db.Compact(ctx, nil, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("a compaction with an ended context returns %v", err)
		}
		close(proceed)
		mustClose(t, db)
	})
}

// Health and Compact may be called while the store is being closed, and after.
func TestHealthAfterClose(t *testing.T) {
	db := mustOpen(t, Options{Dir: "d", FS: vfs.NewMem(), tune: smallTables})
	commitRows(t, db, 1)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for db.Health() != (kv.Health{}) {
				if err := db.Compact(context.Background(), nil, nil); err != nil && !errors.Is(err, kv.ErrClosed) {
					t.Errorf("compact: %v", err)
				}
			}
		})
	}
	mustClose(t, db)
	wg.Wait()
	if h := db.Health(); h != (kv.Health{}) {
		t.Errorf("health of a closed store: %+v", h)
	}
	if err := db.Compact(context.Background(), nil, nil); !errors.Is(err, kv.ErrClosed) {
		t.Errorf("compact a closed store: %v", err)
	}
}

// eventually waits until the engine's background work has the wanted effect.
func eventually(t *testing.T, db *DB, what string, holds func(h kv.Health) bool) {
	t.Helper()
	deadline := time.Now().Add(hangTimeout)
	for h := db.Health(); !holds(h); h = db.Health() {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not so after %v: %+v", what, hangTimeout, h)
		}
		runtime.Gosched()
	}
}

func mustCompact(t testing.TB, db *DB, lower, upper []byte) {
	t.Helper()
	if err := db.Compact(context.Background(), lower, upper); err != nil {
		t.Fatalf("compact %q to %q: %v", lower, upper, err)
	}
}

// BenchmarkHealth measures Health with a few and with a few hundred tables.
func BenchmarkHealth(b *testing.B) {
	for name, tune := range map[string]func(*pebble.Options){"large tables": nil, "small tables": smallTables} {
		b.Run(name, func(b *testing.B) {
			db := mustOpen(b, Options{Dir: "d", FS: vfs.NewMem(), NoSync: true, tune: tune})
			defer db.Close()
			commitRows(b, db, 1)
			mustCompact(b, db, nil, nil)
			b.ReportAllocs()
			for b.Loop() {
				if db.Health().DiskBytes == 0 {
					b.Fatal("no data")
				}
			}
		})
	}
}
