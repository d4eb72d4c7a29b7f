// SPDX-License-Identifier: MIT

package pebblekv

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/mayflydb/mayfly/internal/kv"
)

// This file tests disks that are nearly full.

// quotaFS is a disk of limited size, in memory, with one directory.
type quotaFS struct {
	vfs.FS
	dir   string
	total atomic.Int64
}

func newQuotaFS(total int64) *quotaFS {
	fs := &quotaFS{FS: vfs.NewMem(), dir: "d"}
	fs.total.Store(total)
	return fs
}

func (fs *quotaFS) free() int64 {
	names, _ := fs.List(fs.dir)
	free := fs.total.Load()
	for _, name := range names {
		if info, err := fs.Stat(fs.PathJoin(fs.dir, name)); err == nil {
			free -= info.Size()
		}
	}
	return max(free, 0)
}

func (fs *quotaFS) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: uint64(fs.free()), TotalBytes: uint64(fs.total.Load())}, nil
}

func (fs *quotaFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.Create(name, category)
	return &quotaFile{f, fs}, err
}

func (fs *quotaFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.ReuseForWrite(oldname, newname, category)
	return &quotaFile{f, fs}, err
}

type quotaFile struct {
	vfs.File
	fs *quotaFS
}

func (f *quotaFile) Write(p []byte) (int, error) {
	if f.fs.free() < int64(len(p)) {
		return 0, syscall.ENOSPC
	}
	return f.File.Write(p)
}

const quotaRowBytes = 10_000

// fillDisk commits rows until so many bytes are left, and returns how many rows those are.
func fillDisk(t *testing.T, db *DB, disk *quotaFS, left int64) int {
	t.Helper()
	value := make([]byte, quotaRowBytes)
	for n := 0; ; n++ {
		if disk.free() < left {
			return n
		}
		for i := range value {
			value[i] = byte(rand.Uint32())
		}
		commitRow(t, db, fmt.Sprintf("row%06d", n), string(value))
	}
}

// On a disk that is nearly full, rows are deleted, and their space and that of old logs is
// freed, while the log always has room. The store goes on although old logs that it would
// overwrite are gone.
func TestReclaim(t *testing.T) {
	disk := newQuotaFS(24 << 20)
	o := Options{Dir: disk.dir, FS: disk, reserves: reserves{compactions: 3 << 20, flushes: 1 << 20}}
	db := mustOpen(t, o)
	n := fillDisk(t, db, disk, 6<<20)
	kept := map[string]bool{}
	var b kv.Batch
	for i := range n {
		key := fmt.Sprintf("row%06d", i)
		if i%10 == 0 {
			kept[key] = true
			continue
		}
		b.Reset()
		b.Delete([]byte(key), quotaRowBytes)
		if err := db.Commit(t.Context(), &b); err != nil {
			t.Fatalf("delete %d of %d, with %d bytes free: %v", i, n, disk.free(), err)
		}
	}
	before := disk.free()
	if err := db.Reclaim(t.Context()); err != nil {
		t.Fatal(err)
	}
	if free, least := disk.free(), disk.total.Load()-int64(3*len(kept)*quotaRowBytes); free < least {
		t.Errorf("%d bytes were free, and %d are, want %d", before, free, least)
	}
	for i := range 5 {
		commitRow(t, db, fmt.Sprint("later", i), "v")
		if err := db.pebble.Flush(); err != nil { // begins a new log
			t.Fatal(err)
		}
	}
	mustClose(t, db)
	db = mustOpen(t, o)
	defer mustClose(t, db)
	s, err := db.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i := range n {
		key := fmt.Sprintf("row%06d", i)
		if _, found, err := s.Get([]byte(key)); err != nil || found != kept[key] {
			t.Errorf("%s: found %v, %v, want %v", key, found, err, kept[key])
		}
	}
	wantRow(t, db, "later4", "v")
}

// The last of the space is reserved for the log: tables are not written there, so that the
// store can be closed, and has everything when there is space again.
func TestReservedForTheLog(t *testing.T) {
	disk := newQuotaFS(16 << 20)
	var log strings.Builder
	o := Options{Dir: disk.dir, FS: disk, Logger: slog.New(slog.NewTextHandler(&log, nil)), reserves: reserves{compactions: 3 << 20, flushes: 1 << 20}}
	db := mustOpen(t, o)
	n := fillDisk(t, db, disk, 8<<20)
	disk.total.Add(-disk.free() + 900_000) // as if other programs filled the disk
	for i := range 5 {
		commitRow(t, db, fmt.Sprintf("row%06d", n+i), "v")
	}
	within(t, func() {
		if err := db.Reclaim(t.Context()); !errors.Is(err, kv.ErrDiskFull) {
			t.Errorf("Reclaim = %v, want %v", err, kv.ErrDiskFull)
		}
		var b kv.Batch
		b.Set([]byte("refused"), nil)
		if err := db.Commit(context.Background(), &b); !errors.Is(err, kv.ErrDiskFull) {
			t.Errorf("a commit while nothing can be flushed: %v, want %v", err, kv.ErrDiskFull)
		}
		mustClose(t, db)
	})
	if !strings.Contains(log.String(), "stay in the log") {
		t.Errorf("nothing is said of what was not flushed:\n%s", &log)
	}
	disk.total.Store(32 << 20)
	db = mustOpen(t, o)
	defer mustClose(t, db)
	for i := range 5 {
		wantRow(t, db, fmt.Sprintf("row%06d", n+i), "v")
	}
}
