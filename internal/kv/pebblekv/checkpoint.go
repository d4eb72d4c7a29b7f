// SPDX-License-Identifier: MIT

package pebblekv

import (
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/mayflydb/mayfly/internal/kv"
)

// asideSuffix is what the directory of a checkpoint has after the name of the store's. It is
// beside the store, on the same file system, so that tables are linked and not copied.
const asideSuffix = ".checkpoint"

// Checkpoint makes a checkpoint, which the caller closes before it closes the store. There can
// be one at a time. Tables in it are links; while it is open, the space of tables that the
// store has dropped is not free, and what was deleted from the store is still in them.
func (db *DB) Checkpoint(ctx context.Context) (kv.Checkpoint, error) {
	db.life.RLock()
	defer db.life.RUnlock()
	if db.closed.Load() {
		return nil, kv.ErrClosed
	}
	select {
	case db.checkpointing <- struct{}{}:
	default:
		return nil, kv.ErrCheckpointing
	}
	c, err := db.checkpoint(ctx)
	if err != nil {
		<-db.checkpointing
		return nil, fmt.Errorf("make a checkpoint: %w", translate(err))
	}
	return c, nil
}

func (db *DB) checkpoint(ctx context.Context) (*checkpoint, error) {
	if err := db.refused(); err != nil {
		return nil, err
	}
	if db.withoutLog { // what is only in memtables would be missing
		flushed, err := db.pebble.AsyncFlush()
		if err != nil {
			return nil, err
		}
		if err := db.flushEnds(ctx, flushed); err != nil {
			return nil, err
		}
	}
	c := &checkpoint{db: db, fs: db.fs.FS, dir: db.dir + asideSuffix}
	err := removeAside(c.fs, db.dir)
	if err == nil {
		err = db.noteCheckpoint()
	}
	if err == nil {
		err = db.pebble.Checkpoint(c.dir, pebble.WithFlushedWAL())
	}
	if err == nil {
		err = c.list()
	}
	if err != nil {
		return nil, errors.Join(err, db.removeCheckpoint())
	}
	return c, nil
}

// aside is what the store knows about its checkpoint, which may have what it deletes
// meanwhile, and what was deleted before and is still in tables.
type aside struct {
	sync.Mutex
	// begun is how many checkpoints were begun, each after the one before was removed.
	begun uint64
	// position is the one before the checkpoint was made, 0 without a checkpoint; logged and
	// tables are what was left of deleted data then.
	position, logged uint64
	tables           []table
}

// noteCheckpoint records what a checkpoint that is made from now on may have of deleted data.
func (db *DB) noteCheckpoint() error {
	position := max(db.now(), 1)
	logged := db.logged.Load()
	tables, err := db.tables()
	if err != nil {
		return err
	}
	a := &db.aside
	a.Lock()
	defer a.Unlock()
	a.begun++
	a.position, a.logged = position, logged
	a.tables = slices.DeleteFunc(tables, func(t table) bool { return t.oldest == 0 })
	return nil
}

// oldest returns the position of the oldest delete of which the checkpoint may have something
// left in a range, or a lower one, when the store is at a position; 0 if nothing is left.
func (a *aside) oldest(r kv.Range, now uint64) (oldest uint64) {
	a.Lock()
	defer a.Unlock()
	if a.position == 0 {
		return 0
	}
	if now > a.position {
		oldest = a.position
	}
	if a.logged != 0 {
		lower(&oldest, a.logged)
	}
	for i := range a.tables {
		if a.tables[i].overlaps(r) {
			lower(&oldest, a.tables[i].oldest)
		}
	}
	return oldest
}

// count returns how many checkpoints were begun.
func (a *aside) count() uint64 {
	a.Lock()
	defer a.Unlock()
	return a.begun
}

// removeCheckpoint removes the checkpoint that is there. If that fails, what is in it still
// counts as left. The caller has the place of the checkpoint.
func (db *DB) removeCheckpoint() error {
	if err := removeAside(db.fs.FS, db.dir); err != nil {
		return err
	}
	a := &db.aside
	a.Lock()
	defer a.Unlock()
	a.position, a.logged, a.tables = 0, 0, nil
	return nil
}

// checkpoint waits until there is no checkpoint that was made before. One that was begun since
// has the files of the store as they are now, and so none of what was erased.
func (e *erasure) checkpoint(ctx context.Context) error {
	db := e.db
	before := db.aside.count()
	for {
		select {
		case db.checkpointing <- struct{}{}:
			defer func() { <-db.checkpointing }()
			return e.alive(func() error {
				if err := db.removeCheckpoint(); err != nil || db.withoutLog {
					return err
				}
				return syncDir(db.fs, db.fs.PathDir(db.dir))
			})
		default:
		}
		if db.aside.count() > before {
			return nil
		}
		e.left.InCheckpoint = true
		if err := e.wait(ctx); err != nil {
			return err
		}
	}
}

// removeAside removes a checkpoint that is there, perhaps from a process that crashed.
func removeAside(fs vfs.FS, dir string) error {
	err := fs.RemoveAll(dir + asideSuffix)
	if errors.Is(err, iofs.ErrNotExist) {
		return nil
	}
	return err
}

// isAside reports whether a file is one of a checkpoint: its failure is not one of the store.
func isAside(name string) bool { return strings.Contains(name, asideSuffix) }

// checkpoint implements kv.Checkpoint.
type checkpoint struct {
	db    *DB
	fs    vfs.FS
	dir   string
	files []kv.CheckpointFile
}

func (c *checkpoint) list() error {
	names, err := c.fs.List(c.dir)
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		info, err := c.fs.Stat(c.fs.PathJoin(c.dir, name))
		if err != nil {
			return err
		}
		c.files = append(c.files, kv.CheckpointFile{Name: name, Bytes: info.Size(), Modified: info.ModTime().UnixNano()})
	}
	return nil
}

func (c *checkpoint) Files() []kv.CheckpointFile { return c.files }

func (c *checkpoint) Open(name string) (io.ReadCloser, error) {
	return c.fs.Open(c.fs.PathJoin(c.dir, name))
}

func (c *checkpoint) Close() error {
	defer func() { <-c.db.checkpointing }()
	return c.db.removeCheckpoint()
}
