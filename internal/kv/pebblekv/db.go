// SPDX-License-Identifier: MIT

// Package pebblekv keeps the promises of package kv with Pebble, an embedded log-structured
// engine, on disk or in memory. It gives keys no meaning, and it never acknowledges a commit
// whose log is not synced, unless the store was opened with NoSync or the batch is Lazy.
//
// The invariant to know: the order of the write-ahead log is the order of commits. All
// commits that a commit could see when it was applied are before it in the log, so a crash
// that keeps the commit keeps those too.
package pebblekv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/mayflydb/mayfly/internal/kv"
)

// DB is a store in one directory, or in memory. It implements kv.DB.
//
// Lock order: life before order.
type DB struct {
	pebble  *pebble.DB
	fs      *logFS
	watch   *watcher
	dir     string
	durable bool // every commit is synced
	// withoutLog says that there is no write-ahead log: the store is in memory.
	withoutLog bool
	// memTableBytes is the size of a full memtable.
	memTableBytes uint64
	release       func() error // releases the inventory, the lock and the disk monitor

	// position is one more than the engine's last sequence number, or 0 until that is known
	// (now in remains.go). logged is the sequence
	// number of the first delete since all logs were new, or 0 (remains.go).
	position, logged atomic.Uint64
	known            known
	erasing          chan struct{} // held by Erase
	checkpointing    chan struct{} // held while a checkpoint is there
	aside            aside

	pointReads pebble.IterOptions // never changes
	orderings  sync.Pool          // of *ordering

	// life is held for reading by methods that use pebble, and for writing by Close: the
	// engine panics when it is used after it was closed.
	life   sync.RWMutex
	closed atomic.Bool // written under life

	// order is held for reading while a batch is applied, and for writing while
	// the Requires of a batch are checked and it is applied. It is not held while
	// the log is synced.
	order sync.RWMutex
}

var _ kv.DB = (*DB)(nil)

// Snapshot implements kv.DB.
func (db *DB) Snapshot() (kv.Snapshot, error) {
	db.life.RLock()
	defer db.life.RUnlock()
	if db.closed.Load() {
		return nil, kv.ErrClosed
	}
	return &snapshot{db: db, pebble: db.pebble.NewSnapshot()}, nil
}

// Commit implements kv.DB.
//
// A batch is applied and visible before it is durable. That is safe for a conditional batch
// that depends on it: that one comes later in the log, and a sync of the log covers
// everything before it.
//
// If the log cannot be written, because the disk is full or broken, this and every later
// Commit returns the error, while reads go on. While tables cannot be written, commits are
// refused too, until a flush succeeds. Commits wait while too many memtables are queued to
// be flushed.
func (db *DB) Commit(ctx context.Context, b *kv.Batch) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := b.Check(); err != nil {
		return err
	}
	db.life.RLock()
	defer db.life.RUnlock()
	if db.closed.Load() {
		return kv.ErrClosed
	}
	if err := db.admit(ctx); err != nil {
		return err
	}

	pb := db.pebble.NewBatchWithSize(b.Bytes() + (b.Len()+1)*opOverheadBytes)
	holds, err := db.fill(pb, b)
	if err != nil {
		return fmt.Errorf("fill a batch: %w", err)
	}
	durable := db.durable && !b.IsLazy()
	if err := db.apply(pb, b, holds.requires, durable); err != nil {
		return errors.Join(err, pb.Close())
	}
	db.notePosition(pb, holds.deletes)
	if durable {
		if err := pb.SyncWait(); err != nil {
			return translate(err)
		}
	}
	if err := pb.Close(); err != nil {
		return fmt.Errorf("release a batch: %w", err)
	}
	return translate(db.fs.failure())
}

// Close implements kv.DB. It reports a failure of the log even if a Commit has
// done so before.
func (db *DB) Close() error {
	db.life.Lock()
	defer db.life.Unlock()
	if db.closed.Swap(true) {
		return kv.ErrClosed
	}
	db.fs.closing.Store(true)
	db.flush()
	err := errors.Join(db.pebble.Close(), db.fs.failure())
	if err == nil && db.fs.inventory != nil {
		if err := db.fs.inventory.closed(); err != nil {
			db.watch.log.Warn("the clean stop cannot be recorded: the next start will treat it as a crash", "error", err.Error())
		}
	}
	return translate(errors.Join(err, db.release()))
}

// closeFlushLimit is how long Close waits for the memtable to be written out.
const closeFlushLimit = 5 * time.Second

// flush writes the memtable out, so that the next start has no log to replay: replaying a
// full memtable takes longer than all the rest of a start. If the flush fails, the log still
// holds everything.
func (db *DB) flush() {
	if db.withoutLog || db.fs.failure() != nil {
		return
	}
	err := db.refused()
	if err == nil {
		var flushed <-chan struct{}
		if flushed, err = db.pebble.AsyncFlush(); err == nil {
			ctx, cancel := context.WithTimeout(context.Background(), closeFlushLimit)
			defer cancel()
			err = db.flushEnds(ctx, flushed)
		}
	}
	if err != nil {
		db.watch.log.Warn("the last writes stay in the log: the next start will take longer", "error", err.Error())
	}
}

// FreeBytes returns how much space is left on the disk of the data. In memory it returns the
// largest number.
func (db *DB) FreeBytes() (uint64, error) {
	return db.fs.free(db.dir)
}

// opOverheadBytes is more than the engine adds to the bytes of one operation, and more than
// it adds to a batch.
const opOverheadBytes = 12

// firstKey is the lowest possible key. The engine does not accept an empty key, not even as
// a bound.
const firstKey = "\x00"

// holds says which kinds of operations a batch has.
type holds struct{ requires, deletes bool }

// fill adds the writes of b to pb.
func (db *DB) fill(pb *pebble.Batch, b *kv.Batch) (has holds, err error) {
	o, _ := db.orderings.Get().(*ordering)
	if o == nil {
		o = new(ordering)
	}
	defer func() {
		o.reset()
		db.orderings.Put(o)
	}()
	for _, p := range o.of(b) {
		switch op := &o.ops[p.op]; op.Kind {
		case kv.OpSet:
			err = pb.Set(op.Key, op.Value, nil)
		case kv.OpDelete:
			has.deletes = true
			if op.SizeHint > 0 {
				err = pb.DeleteSized(op.Key, op.SizeHint, nil)
			} else {
				err = pb.Delete(op.Key, nil)
			}
		case kv.OpDeleteRange:
			has.deletes = true
			lower := op.Key
			if len(lower) == 0 {
				lower = []byte(firstKey)
			}
			if bytes.Compare(lower, op.Value) < 0 {
				err = pb.DeleteRange(lower, op.Value, nil)
			}
		case kv.OpRequire, kv.OpRequireAbsent:
			has.requires = true
		}
		if err != nil {
			return holds{}, err
		}
	}
	return has, nil
}

// apply checks the Requires of the batch, makes its writes visible and, if the commit must be
// durable, starts the sync.
func (db *DB) apply(pb *pebble.Batch, b *kv.Batch, conditional, durable bool) error {
	if conditional {
		db.order.Lock()
		defer db.order.Unlock()
		if err := db.checkRequires(b); err != nil {
			return err
		}
	} else {
		db.order.RLock()
		defer db.order.RUnlock()
	}
	if durable {
		return translate(db.pebble.ApplyNoSyncWait(pb, pebble.Sync))
	}
	return translate(db.pebble.Apply(pb, pebble.NoSync))
}

// checkRequires returns ErrConflict unless all Requires of b hold. The caller holds order for
// writing.
func (db *DB) checkRequires(b *kv.Batch) error {
	for op := range b.Ops {
		if op.Kind != kv.OpRequire && op.Kind != kv.OpRequireAbsent {
			continue
		}
		value, closer, err := db.pebble.Get(op.Key)
		if errors.Is(err, pebble.ErrNotFound) {
			if op.Kind == kv.OpRequire {
				return kv.ErrConflict
			}
			continue
		}
		if err != nil {
			return translate(err)
		}
		holds := op.Kind == kv.OpRequire && bytes.Equal(value, op.Value)
		if err := closer.Close(); err != nil {
			return translate(err)
		}
		if !holds {
			return kv.ErrConflict
		}
	}
	return nil
}

// admit waits until there is room for a commit. It returns an error if none is accepted.
func (db *DB) admit(ctx context.Context) error {
	if err := db.fs.failure(); err != nil {
		return translate(err)
	}
	return translate(db.watch.room(ctx, db.crowded))
}

// crowded reports whether the memtables have reached their largest size in all. The first
// memtables are small, and may queue in any number: the engine flushes them together.
func (db *DB) crowded() bool {
	return db.pebble.Metrics().MemTable.Size >= memTablesMax*db.memTableBytes
}

// refused returns why no commit is accepted, or nil.
func (db *DB) refused() error {
	if err := db.fs.failure(); err != nil {
		return translate(err)
	}
	return translate(db.watch.refused())
}
