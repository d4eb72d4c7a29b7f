// SPDX-License-Identifier: MIT

package pebblekv

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"math"
	"slices"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/mayflydb/mayfly/internal/kv"
)

// reserves are the amounts of free space that tables must leave when the disk is nearly full.
// A log that cannot be written ends all commits, while a table that cannot be written is
// repeated. So tables do not get the last of the space, and compactions stop before flushes: a
// flush frees a log, and a clean stop waits for one.
type reserves struct {
	// compactions must leave enough to flush the memtables.
	compactions uint64
	// flushes must leave some space for the log, the manifest and the inventory.
	flushes uint64
	// logs are not preallocated if less than this is left: the engine would take the size of
	// a whole memtable at once.
	logs uint64
}

var defaultReserves = reserves{compactions: 48 << 20, flushes: 16 << 20, logs: 256 << 20}

const (
	// roomEveryBytes is how much of a table is written between two checks of the free space.
	roomEveryBytes = 1 << 20

	flushCategory vfs.DiskWriteCategory = "pebble-memtable-flush"
)

// free returns the space that is left in a directory, and the largest number if the file
// system has no limit.
func (fs *logFS) free(dir string) (uint64, error) {
	usage, err := fs.GetDiskUsage(dir)
	if errors.Is(err, vfs.ErrUnsupported) {
		return math.MaxUint64, nil
	}
	if err != nil {
		return 0, fmt.Errorf("free space of %s: %w", dir, err)
	}
	return usage.AvailBytes, nil
}

// FreeBytes returns how much space is left on the disk of a directory, if the system says so.
func FreeBytes(dir string) (free uint64, known bool) {
	usage, err := vfs.Default.GetDiskUsage(dir)
	return usage.AvailBytes, err == nil
}

// tableFile is a table whose writes fail when only reserved space is left.
type tableFile struct {
	vfs.File
	fs        *logFS
	dir       string
	category  vfs.DiskWriteCategory
	unchecked int // bytes since the last check
}

// room returns ENOSPC if only reserved space is left.
func (f *tableFile) room() error {
	f.unchecked = 0
	if !f.fs.open.Load() {
		return nil // opening may use the reserve
	}
	reserved := f.fs.reserves.compactions
	if f.category == flushCategory {
		reserved = f.fs.reserves.flushes
	}
	free, err := f.fs.free(f.dir)
	if err != nil {
		return err
	}
	if free < reserved {
		return fmt.Errorf("the last %d bytes of the disk are reserved: %w", reserved, syscall.ENOSPC)
	}
	return nil
}

func (f *tableFile) Write(p []byte) (int, error) {
	if f.unchecked += len(p); f.unchecked >= roomEveryBytes {
		if err := f.room(); err != nil {
			return 0, err
		}
	}
	return f.File.Write(p)
}

// createTable makes a table, if there is room for one.
func (fs *logFS) createTable(name string, category vfs.DiskWriteCategory, create func() (vfs.File, error)) (vfs.File, error) {
	t := &tableFile{fs: fs, dir: fs.PathDir(name), category: category}
	if err := t.room(); err != nil {
		return nil, err
	}
	var err error
	t.File, err = create()
	if err != nil {
		return nil, err
	}
	return t, nil
}

// Preallocate implements vfs.File. It may do nothing: the engine does not rely on it.
func (f *file) Preallocate(offset, length int64) error {
	if f.scarce != nil && f.scarce() {
		return nil
	}
	return f.File.Preallocate(offset, length)
}

// scarce returns a function that reports whether a log must not be preallocated.
func (fs *logFS) scarce(name string) func() bool {
	dir := fs.PathDir(name)
	return func() bool {
		free, err := fs.free(dir)
		return err == nil && free < fs.reserves.logs
	}
}

// Reclaim frees space now. The engine frees space too, but only when it has written enough or
// is idle. Reclaim removes the logs that are kept to be overwritten, flushes the memtable, and
// compacts the ranges of all tables in which something was deleted, the smallest first. It
// skips ranges for which the disk has no room, and then returns ErrDiskFull.
func (db *DB) Reclaim(ctx context.Context) error {
	if err := errors.Join(db.removeSpareLogs(), db.flushNow(ctx), db.removeSpareLogs()); err != nil {
		return err
	}
	ranges, err := db.deletedRanges()
	if err != nil {
		return err
	}
	var full error
	for _, r := range ranges {
		err := db.Compact(ctx, r.lower, r.upper)
		if errors.Is(err, kv.ErrDiskFull) && ctx.Err() == nil {
			full = err
			continue
		}
		if err != nil {
			return err
		}
	}
	return full
}

// removeSpareLogs removes the logs that the manifest no longer needs. The engine does not
// know: when it wants to overwrite one of them, logFS makes a new log.
func (db *DB) removeSpareLogs() error {
	db.life.RLock()
	defer db.life.RUnlock()
	if db.closed.Load() {
		return kv.ErrClosed
	}
	files, err := db.fs.List(db.dir)
	if err != nil {
		return err
	}
	current, err := readManifest(db.fs.FS, db.dir, files)
	if err != nil {
		return err
	}
	// The engine may be about to sync what was read of the manifest.
	if current.number > 0 {
		if err := syncFile(db.fs.FS, db.fs.PathJoin(db.dir, manifestName(current.number))); errors.Is(err, iofs.ErrNotExist) {
			return nil // another one is in use by now, and the next call reads it
		} else if err != nil {
			return err
		}
	}
	for _, name := range files {
		if n, ok := logNumber(name); ok && n < current.firstLog {
			if err := db.fs.Remove(db.fs.PathJoin(db.dir, name)); err != nil && !errors.Is(err, iofs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

func syncFile(fs vfs.FS, name string) error {
	f, err := fs.OpenReadWrite(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// flushNow writes the memtable out.
func (db *DB) flushNow(ctx context.Context) error {
	db.life.RLock()
	defer db.life.RUnlock()
	if db.closed.Load() {
		return kv.ErrClosed
	}
	if err := db.admit(ctx); err != nil {
		return err
	}
	flushed, err := db.pebble.AsyncFlush()
	if err != nil {
		return translate(err)
	}
	return translate(db.flushEnds(ctx, flushed))
}

// flushEnds waits until flushed is closed, flushes fail, or ctx ends.
func (db *DB) flushEnds(ctx context.Context, flushed <-chan struct{}) error {
	ctx, cancel := context.WithCancel(ctx)
	failed := make(chan error)
	go func() { failed <- db.watch.failure(ctx) }()
	select {
	case <-flushed:
		cancel()
		<-failed
		return nil
	case err := <-failed:
		cancel()
		return err
	}
}

// deletedRange is the range of a table in which something was deleted.
type deletedRange struct {
	lower, upper []byte
	bytes        uint64 // of all tables there
}

// deletedRanges returns those ranges, the smallest first.
func (db *DB) deletedRanges() ([]deletedRange, error) {
	db.life.RLock()
	defer db.life.RUnlock()
	if db.closed.Load() {
		return nil, kv.ErrClosed
	}
	levels, err := db.pebble.SSTables(pebble.WithProperties())
	if err != nil {
		return nil, translate(err)
	}
	var ranges []deletedRange
	for _, tables := range levels {
		for _, t := range tables {
			if t.Properties == nil || t.Properties.NumDeletions == 0 {
				continue
			}
			r := deletedRange{lower: bytes.Clone(t.Smallest.UserKey), upper: append(bytes.Clone(t.Largest.UserKey), 0)}
			if r.bytes, err = db.pebble.EstimateDiskUsage(r.lower, r.upper); err != nil {
				return nil, translate(err)
			}
			ranges = append(ranges, r)
		}
	}
	slices.SortStableFunc(ranges, func(a, b deletedRange) int { return cmp.Compare(a.bytes, b.bytes) })
	return ranges, nil
}
