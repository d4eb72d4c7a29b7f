// SPDX-License-Identifier: MIT

// Package pgkv keeps the promises of package kv with a server that speaks the protocol of
// PostgreSQL. Several processes may have the same store open: the server orders their commits.
//
// The invariant to know: a commit is one message. The server executes it without waiting for
// the client, so a client that stops holds no locks, and a message that did not arrive whole
// does nothing. DESIGN.md has the decisions and figures.
package pgkv

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/mayflydb/mayfly/internal/kv"
)

// Options are the parameters of Open.
type Options struct {
	// URL names the server, the database and the user, as PostgreSQL's own programs take it:
	// postgres://user:password@host:port/database?sslmode=verify-full. The tables are in the
	// first schema of its search_path.
	URL string
	// Connections is how many connections to the server this process has at most; 0 is
	// DefaultConnections. Each open Snapshot holds one. ReservedConnections are for commits
	// and looks alone.
	Connections int
	// Logger gets what an operator should know; nil is slog.Default().
	Logger *slog.Logger
}

const (
	// DefaultConnections is a third of what a server accepts by default.
	DefaultConnections = 32
	// ReservedConnections is how many connections snapshots leave to commits and looks.
	ReservedConnections = 8
)

// DB is one handle on a store. It implements kv.DB.
type DB struct {
	pool *pool
	log  *slog.Logger
	// snapshots has a token for each connection that a snapshot may hold.
	snapshots chan struct{}
	// release has the callers of snapshots close those that they can do without; it may be nil.
	// releasing says that it is under way.
	release   atomic.Pointer[func()]
	releasing atomic.Bool

	// life is held for reading by methods that use the server, and for writing by Close.
	life   sync.RWMutex
	closed bool // guarded by life
	// background counts what Close waits for: connections that closed snapshots give back.
	background sync.WaitGroup
	stop       chan struct{}

	open struct {
		sync.Mutex
		snapshots map[*snapshot]struct{}
	}
}

var _ kv.Scarce = (*DB)(nil)

// Open opens the store, and makes its tables if there are none. It returns kv.ErrUnavailable if
// the server cannot be reached, and kv.ErrNewerFormat.
func Open(ctx context.Context, o Options) (*DB, error) {
	if o.Connections == 0 {
		o.Connections = DefaultConnections
	}
	if o.Connections < ReservedConnections+2 {
		return nil, fmt.Errorf("%d connections to the storage engine are too few: at least %d are needed", o.Connections, ReservedConnections+2)
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	config, err := pgconn.ParseConfig(o.URL)
	if err != nil {
		return nil, fmt.Errorf("the address of the storage engine: %w", err) // the library hides the password
	}
	db := &DB{
		pool:      newPool(config, o.Connections),
		log:       o.Logger,
		snapshots: make(chan struct{}, o.Connections-ReservedConnections),
		stop:      make(chan struct{}),
	}
	db.open.snapshots = map[*snapshot]struct{}{}
	if err := db.createTables(ctx); err != nil {
		db.pool.close()
		return nil, err
	}
	db.background.Go(db.keepAlive)
	return db, nil
}

// Far implements kv.DB.
func (db *DB) Far() bool { return true }

// Remains implements kv.DB. Files, logs and backups of the server are out of reach.
func (db *DB) Remains([]kv.Range) (position uint64, left []kv.Remains, err error) {
	return 0, nil, kv.ErrNoErasure
}

// Erase implements kv.DB.
func (db *DB) Erase(context.Context, []kv.Range, func(kv.Remains) error) error {
	return kv.ErrNoErasure
}

// Close implements kv.DB.
func (db *DB) Close() error {
	db.life.Lock()
	if db.closed {
		db.life.Unlock()
		return kv.ErrClosed
	}
	db.closed = true
	db.life.Unlock()
	close(db.stop)
	db.background.Wait()
	db.pool.close()
	return nil
}

// WhenScarce implements kv.Scarce.
func (db *DB) WhenScarce(release func()) { db.release.Store(&release) }

// ask has snapshots released that are kept for later, unless that is under way. The caller has
// entered.
func (db *DB) ask() {
	release := db.release.Load()
	if release == nil || db.releasing.Swap(true) {
		return
	}
	db.background.Go(func() {
		defer db.releasing.Store(false)
		(*release)()
	})
}

// enter begins the use of the server, until the caller calls db.life.RUnlock.
func (db *DB) enter() error {
	db.life.RLock()
	if db.closed {
		db.life.RUnlock()
		return kv.ErrClosed
	}
	return nil
}
