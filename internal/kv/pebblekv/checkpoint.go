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
		err = db.pebble.Checkpoint(c.dir, pebble.WithFlushedWAL())
	}
	if err == nil {
		err = c.list()
	}
	if err != nil {
		return nil, errors.Join(err, removeAside(c.fs, db.dir))
	}
	return c, nil
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
	return removeAside(c.fs, c.db.dir)
}
