// SPDX-License-Identifier: MIT

package pebblekv

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/kv/kvtest"
)

// This file tests failures of the disk: writes and syncs fail from some moment on, or once.

// hangTimeout is far more than any of these tests takes.
const hangTimeout = time.Minute

// within ends the test binary, with the stacks of all goroutines, if f hangs.
func within(t *testing.T, f func()) {
	t.Helper()
	watchdog := time.AfterFunc(hangTimeout, func() {
		stacks := make([]byte, 1<<20)
		panic(fmt.Sprintf("%s hangs:\n%s", t.Name(), stacks[:runtime.Stack(stacks, true)]))
	})
	defer watchdog.Stop()
	f()
}

// fault is an injector that fails operations on files with the given extension,
// from the nth on, or only the nth.
type fault struct {
	ext  string
	err  error
	from int64 // counted from 1 on
	once bool
	held <-chan struct{} // if not nil, an operation fails only once this is closed

	on    atomic.Bool
	count atomic.Int64
	hits  atomic.Int64
}

func (f *fault) String() string {
	return fmt.Sprintf("%v on %s from operation %d, once %v", f.err, f.ext, f.from, f.once)
}

// MaybeError implements errorfs.Injector.
func (f *fault) MaybeError(op errorfs.Op) error {
	switch op.Kind {
	case errorfs.OpCreate, errorfs.OpReuseForWrite, errorfs.OpRename, errorfs.OpFileWrite,
		errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileClose:
	default:
		return nil
	}
	if !f.on.Load() || (f.ext != "" && filepath.Ext(op.Path) != f.ext) {
		return nil
	}
	if n := f.count.Add(1); n < f.from || (f.once && n > f.from) {
		return nil
	}
	f.hits.Add(1)
	if f.held != nil {
		<-f.held
	}
	return f.err
}

func TestLogFails(t *testing.T) {
	for _, err := range []error{syscall.ENOSPC, syscall.EIO} {
		for _, once := range []bool{false, true} {
			for n := int64(1); n < 300*int64(kvtest.LongFactor(t)); n = n*7/5 + 1 {
				f := &fault{ext: ".log", err: err, from: n, once: once}
				within(t, func() { testLogFails(t, f) })
			}
		}
	}
}

func testLogFails(t *testing.T, f *fault) {
	c := newCrashRun(uint64(f.from), Options{tune: smallTables})
	c.options.FS = errorfs.Wrap(c.fs, f)
	db := mustOpen(t, c.options)
	f.on.Store(true)
	var wg sync.WaitGroup
	errs := make([]error, crashWriters)
	for w := range crashWriters {
		wg.Go(func() { errs[w] = c.write(db, work{c.seed, w}) })
	}
	go func() {
		wg.Wait()
		close(c.started)
	}()
	for range c.started {
	}
	if err := errors.Join(errs...); err != nil || f.hits.Load() > 0 {
		wantFault(t, f, "a commit", err)
		var b kv.Batch
		b.Set([]byte("later"), nil)
		wantFault(t, f, "a commit afterwards", db.Commit(context.Background(), &b))
		checkReads(t, c, db)
	}
	if err := db.Close(); err != nil || f.hits.Load() > 0 {
		wantFault(t, f, "close", err)
	}
	if err := c.recover(c.crash(0)); err != nil {
		t.Errorf("%v: %v", f, err)
	}
}

// After its log has failed, the engine may still begin another one. The next start must not
// find that beside the failed one: the torn end of the failed log would then count as
// damage.
func TestLogFailsAndIsRotated(t *testing.T) {
	for n := range int64(20) {
		log := &fault{ext: ".log", err: syscall.EIO, from: 1 + n, once: true}
		within(t, func() { testLogFailsAndIsRotated(t, log) })
	}
}

func testLogFailsAndIsRotated(t *testing.T, log *fault) {
	tables := &fault{ext: ".sst", err: log.err, from: 1}
	disk := vfs.NewCrashableMem()
	db := mustOpen(t, Options{Dir: "data", FS: errorfs.Wrap(disk, errorfs.Any(log, tables))})
	log.on.Store(true)
	tables.on.Store(true)
	longerThanBlocks := make([]byte, 100_000)
	var b kv.Batch
	var err error
	begun := 0
	for ; err == nil; begun++ {
		b.Reset()
		b.Set([]byte("last"), strconv.AppendInt(nil, int64(begun), 10))
		b.Set([]byte("long"), longerThanBlocks)
		err = db.Commit(context.Background(), &b)
	}
	wantFault(t, log, "a commit", err)
	if _, err := db.pebble.AsyncFlush(); err != nil {
		t.Error(err)
	}
	crashed := disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
	wantFault(t, log, "close", db.Close())
	db = mustOpen(t, Options{Dir: "data", FS: crashed})
	defer mustClose(t, db)
	s, err := db.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	last, found, err := s.Get([]byte("last"))
	if err != nil {
		t.Fatal(err)
	}
	// The commit that failed may exist, those before it must.
	if kept := begun - 1; !found && kept > 0 || found && string(last) != strconv.Itoa(kept) && string(last) != strconv.Itoa(kept-1) {
		t.Errorf("%v: found %v, commit %q, but %d were acknowledged", log, found, last, kept)
	}
}

func wantFault(t *testing.T, f *fault, what string, err error) {
	t.Helper()
	if !errors.Is(err, f.err) || errors.Is(err, kv.ErrDiskFull) != (f.err == syscall.ENOSPC) {
		t.Errorf("%v: %s returns %v", f, what, err)
	}
}

// checkReads checks that a store that accepts no commits can still be read.
func checkReads(t *testing.T, c *crashRun, db *DB) {
	t.Helper()
	s, err := db.Snapshot()
	if err != nil {
		t.Errorf("snapshot: %v", err)
		return
	}
	defer s.Close()
	for w := range crashWriters {
		if n, err := (work{c.seed, w}).done(s); err != nil {
			t.Errorf("writer %d after %d commits: %v", w, n, err)
		}
	}
}

func TestTablesFail(t *testing.T) {
	f := &fault{ext: ".sst", err: syscall.ENOSPC, from: 1}
	disk := vfs.NewCrashableMem()
	var log strings.Builder
	db := mustOpen(t, Options{
		Dir: "data", FS: errorfs.Wrap(disk, f), tune: smallTables,
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	f.on.Store(true)
	var b kv.Batch
	b.Set([]byte("row"), nil)
	returned := 0
	within(t, func() {
		if _, err := db.pebble.AsyncFlush(); err != nil {
			t.Error(err)
		}
		var err error
		for ; err == nil; returned++ {
			err = db.Commit(context.Background(), &b)
		}
		wantFault(t, f, "a commit", err)
	})
	if returned == 0 {
		t.Errorf("no commit was acknowledged before the first flush")
	}
	s, err := db.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if _, found, err := s.Get([]byte("row")); err != nil || !found {
		t.Errorf("get while tables cannot be written: %v, %v", found, err)
	}
	s.Close()

	f.on.Store(false)
	within(t, func() {
		flushed, err := db.pebble.AsyncFlush()
		if err != nil {
			t.Error(err)
		}
		<-flushed
	})
	if err := db.Commit(context.Background(), &b); err != nil {
		t.Errorf("commit once tables can be written again: %v", err)
	}
	if err := db.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if n := strings.Count(log.String(), "level=ERROR"); n != 1 {
		t.Errorf("%d errors were logged, want the first alone:\n%s", n, &log)
	}
}

// A flush may take long before it fails, while commits go on. They wait when too much is
// queued behind it, and are refused when it fails.
func TestTablesFailLate(t *testing.T) {
	fail := make(chan struct{})
	f := &fault{ext: ".sst", err: syscall.ENOSPC, from: 1, held: fail}
	db := mustOpen(t, Options{Dir: "data", FS: errorfs.Wrap(vfs.NewCrashableMem(), f), tune: smallTables})
	f.on.Store(true)
	var b kv.Batch
	b.Set([]byte("row"), make([]byte, 1000))
	for db.watch.queued.Load() < memTablesQueued || !db.crowded() {
		if err := db.Commit(context.Background(), &b); err != nil {
			t.Fatal(err)
		}
	}
	waiting, cancel := context.WithCancel(context.Background())
	cancelled := make(chan error, 1)
	go func() { cancelled <- db.Commit(waiting, &b) }()
	refused := make(chan error, 1)
	go func() { refused <- db.Commit(context.Background(), &b) }()
	within(t, func() {
		cancel()
		if err := <-cancelled; !errors.Is(err, context.Canceled) {
			t.Errorf("a commit that waits for room returns %v when it is cancelled", err)
		}
		close(fail)
		wantFault(t, f, "a commit that waits for room", <-refused)
		f.on.Store(false)
		flushed, err := db.pebble.AsyncFlush()
		if err != nil {
			t.Error(err)
		}
		<-flushed
		if err := db.Commit(context.Background(), &b); err != nil {
			t.Errorf("commit once tables can be written again: %v", err)
		}
		mustClose(t, db)
	})
}

// Opening has to flush the rows of the log. If the disk is too full for that, Open must not
// hang, and a later attempt must find everything.
func TestOpenOnFullDisk(t *testing.T) {
	c := newCrashRun(1, Options{tune: smallTables})
	full := c.fillAndCrash(t)
	free := full.CrashClone(vfs.CrashCloneCfg{})
	for _, ext := range []string{".sst", ".log", ""} {
		f := &fault{ext: ext, err: syscall.ENOSPC, from: 1}
		f.on.Store(true)
		o := c.options
		o.FS = errorfs.Wrap(full.CrashClone(vfs.CrashCloneCfg{}), f)
		within(t, func() {
			db, err := Open(o)
			if !errors.Is(err, kv.ErrDiskFull) {
				t.Errorf("%v: Open returns %v, %v", f, db, err)
			}
		})
	}
	end := c.crash(0)
	end.disk = free
	if err := c.recover(end); err != nil {
		t.Error(err)
	}
}

// fillAndCrash does all the work and returns a disk on which a part of it is only in the log.
func (c *crashRun) fillAndCrash(t *testing.T) *vfs.MemFS {
	db := mustOpen(t, c.options)
	go func() {
		for range c.started {
		}
	}()
	for w := range crashWriters {
		if err := c.write(db, work{c.seed, w}); err != nil {
			t.Fatal(err)
		}
	}
	close(c.started)
	disk := c.fs.CrashClone(vfs.CrashCloneCfg{})
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return disk
}

// Every failure while a store is opened, new or not, is an error of Open. It neither ends the
// process nor hangs, and does not damage the data.
func TestOpenFails(t *testing.T) {
	c := newCrashRun(1, Options{tune: smallTables})
	disk := c.fillAndCrash(t)
	end := c.crash(0)
	for name, start := range map[string]*vfs.MemFS{"new": vfs.NewCrashableMem(), "old": disk} {
		for n := int64(1); ; n++ {
			clone := start.CrashClone(vfs.CrashCloneCfg{})
			f := &fault{err: syscall.EIO, from: n, once: true}
			f.on.Store(true)
			o := c.options
			o.FS = errorfs.Wrap(clone, f)
			var err error
			within(t, func() { err = openAndClose(o, f) })
			if f.hits.Load() == 0 {
				break
			}
			if err != nil && !errors.Is(err, syscall.EIO) {
				t.Errorf("%s, operation %d: Open returns %v", name, n, err)
			}
			after := end
			after.disk = clone.CrashClone(vfs.CrashCloneCfg{})
			if name == "new" {
				after.least, after.most = [crashWriters]int64{}, [crashWriters]int64{}
			}
			if err := c.recover(after); err != nil {
				t.Errorf("%s, after operation %d failed with %v: %v", name, n, err, err)
			}
		}
	}
}

// openAndClose injects faults into Open alone.
func openAndClose(o Options, f *fault) error {
	db, err := Open(o)
	f.on.Store(false)
	if err != nil {
		return err
	}
	return db.Close()
}
