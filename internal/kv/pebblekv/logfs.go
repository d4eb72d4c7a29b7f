// SPDX-License-Identifier: MIT

package pebblekv

import (
	"errors"
	iofs "io/fs"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// logFS is a layer between the engine and the file system. It handles failures of the file
// system that the engine handles badly.
//
// When the write-ahead log cannot be written, the engine panics with its locks held, in the
// goroutine that meets the failure, and some of these panics cannot be recovered. Here the
// failure becomes an error of Commit instead:
//
//  1. The first failure of the log is kept for good.
//  2. From then on nothing reaches a log file: on disk it is as if the machine had crashed at
//     this point, and recovery handles crashes.
//  3. The engine gets no error, and goes on.
//  4. Commit calls failure before it acknowledges a batch, and again before it accepts the
//     next one. So a batch whose write or sync failed is not acknowledged: the failure was
//     kept before the engine saw the end of the sync.
//
// The engine may still flush a memtable with batches whose Commit returned that error. They
// become durable whole and in order, which an unknown outcome allows.
//
// While the store is being opened, failures are returned as they are, except that pebble.Open
// must not return any once it has started background work: it would free memory that this
// work uses, and crash the process.
type logFS struct {
	vfs.FS
	watch *watcher
	open  atomic.Bool // the store is open
	// closing says that there are no more commits: later syncs concern no acknowledged commit
	// that was not synced before.
	closing atomic.Bool
	// newLogs says that no log may be overwritten: it would keep the bytes behind the new
	// ones.
	newLogs  atomic.Bool
	first    atomic.Pointer[error]
	reserves reserves
	// inventory records the first sync of each log; nil in memory.
	inventory *inventory
}

const (
	logSuffix      = ".log"
	manifestMarker = "marker.manifest."
	// retryPause is the pause before a flush or compaction is repeated, taken where no lock
	// is held. The engine repeats one that failed at once and for ever, which would keep a
	// processor busy.
	retryPause = 50 * time.Millisecond
)

// errLogLost: the log failed before, so this write to it is dropped.
var errLogLost = errors.New("the log has failed before")

// failure returns why the log cannot be written, or nil.
func (fs *logFS) failure() error {
	if first := fs.first.Load(); first != nil {
		return *first
	}
	return nil
}

// ofLog returns the error that the engine gets for an operation on a log that ended with err.
func (fs *logFS) ofLog(err error) error {
	if err == nil || !fs.open.Load() {
		return fs.ofOpening(err)
	}
	first := err // so that err itself stays on the stack when all is well
	if fs.first.CompareAndSwap(nil, &first) {
		fs.watch.log.Error("the log of the store cannot be written: no more commits are accepted", "error", err)
	}
	return nil
}

// ofOpening returns the error that the engine gets for an operation that ended with err. It
// does not return if the engine, while it opens the store, could not handle the error.
func (fs *logFS) ofOpening(err error) error {
	if err != nil && !fs.open.Load() && fs.watch.working.Load() {
		fs.watch.abandon(err)
	}
	return err
}

// Create implements vfs.FS.
func (fs *logFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	create := func() (vfs.File, error) { return fs.FS.Create(name, category) }
	if isAside(name) {
		return create()
	}
	if filepath.Ext(name) == logSuffix {
		return fs.createLog(name, create)
	}
	if fs.watch.jobFailed.Load() {
		time.Sleep(retryPause)
	}
	if filepath.Ext(name) == tableSuffix {
		inner := create
		create = func() (vfs.File, error) { return fs.createTable(name, category, inner) }
	}
	if strings.HasPrefix(fs.PathBase(name), manifestMarker) {
		// The marker names a manifest that was created just now. The engine syncs
		// the directory for both at once, so a crash before that could keep the
		// marker without the manifest, and the store could not be opened again.
		if err := syncDir(fs, fs.PathDir(name)); err != nil {
			return nil, err
		}
	}
	f, err := create()
	if fs.open.Load() || err != nil {
		return f, fs.ofOpening(err)
	}
	return &file{File: f, translate: fs.ofOpening}, nil
}

// ReuseForWrite implements vfs.FS. The engine recycles nothing but logs.
func (fs *logFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return fs.createLog(newname, func() (vfs.File, error) {
		if fs.newLogs.Load() {
			if err := fs.FS.Remove(oldname); err != nil && !errors.Is(err, iofs.ErrNotExist) {
				return nil, err
			}
			return fs.FS.Create(newname, category)
		}
		f, err := fs.FS.ReuseForWrite(oldname, newname, category)
		if errors.Is(err, iofs.ErrNotExist) { // removed for its space
			return fs.FS.Create(newname, category)
		}
		return f, err
	})
}

func (fs *logFS) createLog(name string, create func() (vfs.File, error)) (vfs.File, error) {
	err := fs.failure()
	if err == nil {
		var f vfs.File
		if f, err = create(); err == nil {
			return &file{File: f, translate: fs.ofLog, lost: fs.failure, firstSync: fs.noteLog(name), scarce: fs.scarce(name)}, nil
		}
	}
	if err := fs.ofLog(err); err != nil {
		return nil, err
	}
	return &file{File: vfs.NewMemFile(nil), translate: fs.ofLog, lost: fs.failure}, nil
}

// noteLog returns the function to call at the first sync of a log, before the engine sees
// that sync: by then the directory has been synced, and no commit in the log has been
// acknowledged.
func (fs *logFS) noteLog(name string) func() error {
	n, ok := logNumber(fs.PathBase(name))
	if !ok || fs.inventory == nil {
		return nil
	}
	return func() error {
		if fs.closing.Load() {
			return nil
		}
		return fs.inventory.synced(n)
	}
}

// Rename implements vfs.FS.
func (fs *logFS) Rename(oldname, newname string) error {
	return fs.ofOpening(fs.FS.Rename(oldname, newname))
}

// List implements vfs.FS.
func (fs *logFS) List(dir string) ([]string, error) {
	names, err := fs.FS.List(dir)
	return names, fs.ofOpening(err)
}

// OpenDir implements vfs.FS.
func (fs *logFS) OpenDir(name string) (vfs.File, error) {
	f, err := fs.FS.OpenDir(name)
	if isAside(name) {
		return f, err
	}
	if err != nil {
		return nil, fs.ofOpening(err)
	}
	return &directory{File: f, fs: fs, name: name}, nil
}

// Unwrap implements vfs.FS.
func (fs *logFS) Unwrap() vfs.FS { return fs.FS }

// file is a file whose errors are translated for the engine. Once lost returns an
// error, it drops all writes.
type file struct {
	vfs.File
	translate func(error) error
	lost      func() error
	// firstSync, unless it is nil, is called after each sync until it succeeds.
	firstSync func() error
	// scarce reports whether space must not be preallocated; nil for never.
	scarce func() bool
}

func (f *file) Write(p []byte) (int, error) {
	err := f.do(func() error {
		_, err := f.File.Write(p)
		return err
	})
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

func (f *file) Sync() error     { return f.do(func() error { return f.synced(f.File.Sync()) }) }
func (f *file) SyncData() error { return f.do(func() error { return f.synced(f.File.SyncData()) }) }

// synced calls firstSync if that is due, after a sync that ended with err.
func (f *file) synced(err error) error {
	if err != nil || f.firstSync == nil {
		return err
	}
	if err := f.firstSync(); err != nil {
		return err
	}
	f.firstSync = nil
	return nil
}

func (f *file) SyncTo(length int64) (fullSync bool, err error) {
	err = f.do(func() error {
		var err error
		fullSync, err = f.File.SyncTo(length)
		return err
	})
	return fullSync, err
}

// Close closes the file even if it is lost, so that its descriptor is freed.
func (f *file) Close() error { return f.translate(f.File.Close()) }

func (f *file) do(op func() error) error {
	if f.lost != nil && f.lost() != nil {
		return f.translate(errLogLost)
	}
	return f.translate(op())
}

// directory is a directory whose sync must not fail: after a failure the engine would panic,
// or go on without knowing which of its files would survive a crash.
type directory struct {
	vfs.File
	fs   *logFS
	name string
}

func (d *directory) Sync() error {
	err := d.File.Sync()
	if err != nil && d.fs.open.Load() {
		d.fs.watch.Fatalf("sync of directory %s: %v", d.name, err)
	}
	return d.fs.ofOpening(err)
}
