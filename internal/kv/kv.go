// SPDX-License-Identifier: MIT

// Package kv is the interface between the database and the engine that stores its bytes:
// an ordered store with snapshots and atomic, conditional, durable batches. It is small on
// purpose, so that an embedded engine and a distributed one can keep the same promises. It
// knows nothing of items or containers.
//
// # Promises
//
// Every engine keeps these promises, and package kvtest tests all but durability:
//
//  1. Atomicity. A Commit applies all of its batch or nothing of it, whatever
//     happens, a crash included.
//  2. Durability. When Commit returns nil, the batch survives a crash of the
//     process and of the machine, unless the engine was opened without syncing
//     or the batch is Lazy. When two commits follow one another, the second is
//     never kept without the first: a Lazy one is durable when a later one is.
//  3. Isolation. A Snapshot shows all of every commit that returned before it
//     was taken and nothing of any that began after. Of a commit that was under
//     way it shows all or nothing. It may show a commit that is not durable yet:
//     a caller that must not see one takes its snapshot after the commit returns.
//  4. Conditions. The Requires of a batch are checked and its writes applied as
//     one step: no other commit comes between. They refer to the store before
//     the batch, wherever they stand in it. If one fails, Commit returns
//     ErrConflict and nothing was written.
//  5. Order. Keys are compared as bytes. Within a batch, later operations win
//     over earlier ones, and a DeleteRange does not remove keys set after it.
//  6. Slices. The caller may reuse the slices it passed as soon as the call
//     returns. A value that Get returns belongs to the caller. An Entry belongs
//     to the engine and is valid until the next step of the loop.
//  7. Erasure. When Erase returns nil, no file of the store holds what was deleted
//     in its ranges before: not the rows, and not the keys of the deletes. An engine
//     that cannot promise that returns ErrNoErasure.
//  8. Errors. An error never looks like an empty result: Get reports found=false
//     without an error only for a key that does not exist, and a Scan that fails
//     yields the error as its last step.
//  9. Time. Look shows what a Snapshot taken while it was under way would show, and
//     an engine's time that was read while it was under way. All handles on one
//     store have the same time, whichever process or machine they are in. It goes back
//     if the clock of the engine does.
//
// A store of an engine that serves several processes may be open more than once. Each
// promise then holds for all of its handles together: a Snapshot shows every commit that
// had returned on any of them.
//
// All methods may be called from several goroutines at once, except those of
// one Batch.
package kv

import (
	"context"
	"errors"
	"iter"
)

var (
	// ErrConflict: a Require of the batch did not hold. Nothing was written.
	ErrConflict = errors.New("a required key has changed")
	// ErrLimit: the batch breaks one of the limits below. Nothing was written.
	ErrLimit = errors.New("a limit of the store is exceeded")
	// ErrClosed: the DB or the Snapshot is closed. Nothing was written.
	ErrClosed = errors.New("the store is closed")
	// ErrInUse: another process has the data open.
	ErrInUse = errors.New("the data is in use by another process")
	// ErrNewerFormat: the data was written by a newer version than this one.
	ErrNewerFormat = errors.New("the data has a newer format than this version understands")
	// ErrDiskFull: the engine ran out of space. Whether the commit that failed with it
	// happened is unknown until the store is opened again.
	ErrDiskFull = errors.New("the disk is full")
	// ErrUnavailable: the engine cannot be reached at present. Nothing was written. A
	// Snapshot that returns it once returns it always: the caller takes a new one.
	ErrUnavailable = errors.New("the storage engine cannot be reached")
	// ErrUnknown: the connection broke, or the time was up, before the answer to a commit
	// came. The commit has happened, or has not, or still will: only a commit that removes
	// what the lost one required makes sure that it does not happen any more.
	ErrUnknown = errors.New("whether the commit happened is unknown")
	// ErrNoErasure: the engine cannot erase deleted data from the files of its store.
	ErrNoErasure = errors.New("the storage engine cannot erase deleted data from its files")
	// ErrCorrupt: the engine found bytes that it did not write.
	ErrCorrupt = errors.New("the data is corrupt")
)

// Limits on what a batch may hold: a key has at least one byte and at most
// MaxKeyBytes, and so on. A batch that breaks one is refused whole, with
// ErrLimit, by Commit. The bounds of a Scan and of a DeleteRange may be empty. PostgreSQL
// refuses keys of more than 2,704 bytes, and TiKV rows of more than 6 MiB.
const (
	MaxKeyBytes   = 2560
	MaxValueBytes = 4 << 20
	MaxBatchBytes = 64 << 20
)

// DB is an ordered key-value store.
type DB interface {
	// Snapshot returns a view of the store as it is now. The caller closes it.
	// Snapshots hold back the reclaiming of space, so they should be short-lived.
	Snapshot() (Snapshot, error)
	// Commit applies the batch: all or nothing, durable when it returns nil. The
	// batch may be Reset and reused afterwards. ErrConflict, ErrLimit, ErrClosed,
	// ErrUnavailable and ctx's own error say that nothing was written; ErrUnknown leaves
	// that open; after any other error the outcome is unknown until the store is opened
	// again. If ctx ends before
	// the batch is handed to the engine, Commit returns ctx's error; afterwards
	// ctx has no effect.
	Commit(ctx context.Context, b *Batch) error
	// Look returns the values of keys as they are now, nil for a key that does not exist, and
	// the engine's time in milliseconds since 1970. It is one round trip.
	Look(ctx context.Context, keys ...[]byte) (values [][]byte, ms int64, err error)
	// Sweep removes every key k with lower <= k < upper. It is for ranges that nobody reads
	// any more, of any length: it is not atomic, Snapshots may lose the rows too, and an
	// error leaves a part of them there. A Sweep that returned nil survives a crash once a
	// later commit does; until then the caller may have to repeat it.
	Sweep(ctx context.Context, lower, upper []byte) error
	// Far reports whether a Get is a round trip to another process, so that a caller gathers
	// keys and Warms them.
	Far() bool
	// Remains returns what the files of the store may still hold of data that was deleted in
	// each of the ranges. position is that of the last commit: it never decreases, and grows
	// with each commit. It survives a restart. While there is a checkpoint, all that was
	// deleted since it was made counts as left.
	Remains(ranges []Range) (position uint64, left []Remains, err error)
	// Erase rewrites files until none of them holds anything in the ranges that was deleted
	// by a commit which returned before Erase was called. It waits for Snapshots that were
	// taken before, as they may show deleted rows, and for a checkpoint that was made before,
	// whose files have them. It calls step, which may wait, before each piece of work and while
	// it waits itself, with what is left to do; an error of step ends it. What was erased by
	// then stays erased, and another Erase does the rest.
	Erase(ctx context.Context, ranges []Range, step func(left Remains) error) error
	// Close waits for the commits that are under way and releases the store.
	// Open snapshots must be closed first. A second Close returns ErrClosed.
	Close() error
}

// Scarce is a DB that has a limited number of snapshots.
type Scarce interface {
	DB
	// WhenScarce sets the function to call when a Snapshot waits for another one to be closed.
	// It is called in a goroutine of its own, and not again before it has returned.
	WhenScarce(release func())
}

// Snapshot is an unchanging view of a DB.
type Snapshot interface {
	// Get returns the value of key. The value belongs to the caller.
	Get(key []byte) (value []byte, found bool, err error)
	// GetInto is Get into the caller's memory: the value is appended to dst. If there is
	// no value, dst is returned unchanged.
	GetInto(dst, key []byte) (value []byte, found bool, err error)
	// Warm reads keys together, so that their Gets come from memory, until the snapshot is
	// closed. It does nothing if Gets are cheap.
	Warm(keys [][]byte) error
	// Scan walks the keys k with lower <= k < upper, in the given order. A nil
	// bound is open; an empty upper bound is not nil, and nothing lies below it.
	// Breaking out of the loop releases what the scan holds.
	Scan(lower, upper []byte, order Order) iter.Seq2[Entry, error]
	// Close releases the snapshot; a second Close does nothing. No Get or Scan
	// may be under way.
	Close()
}

// Entry is one step of a Scan. Both slices belong to the engine and are valid
// until the next step.
type Entry struct {
	Key, Value []byte
}

// Order is the direction of a Scan.
type Order int

// The two directions.
const (
	Forward Order = iota
	Reverse
)
