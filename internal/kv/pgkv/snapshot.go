// SPDX-License-Identifier: MIT

package pgkv

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/kv"
)

const (
	// The pages of a scan have this many rows at first, four times as many with each page, and
	// at most pageRowsMax: short scans read little too much, and long ones need few round
	// trips.
	pageRowsFirst  = 16
	pageRowsGrowth = 4
	pageRowsMax    = 512
	// pageBytesMax is how many bytes of rows a page keeps. Rows beyond are read again with the
	// next page.
	pageBytesMax = 4 << 20

	// warmKeysMax is how many keys one statement of Warm has.
	warmKeysMax = 4096

	// askEvery is how often callers are asked to release snapshots while one waits.
	askEvery = 20 * time.Millisecond

	// beat is how often a snapshot that is not used tells the server that it is still needed.
	beat = idleLimit / 3
)

// snapshot implements kv.Snapshot: a connection in a transaction that sees one state of the
// store. Its reads take turns.
type snapshot struct {
	db *DB

	mu struct {
		sync.Mutex
		conn   *conn // nil: closed
		failed error // of the first read that failed; it ended the transaction
		warm   map[string]warmValue
	}
}

type warmValue struct {
	value []byte
	found bool
}

// Snapshot implements kv.DB. It is one round trip: the server fixes what a transaction sees
// at its first query.
func (db *DB) Snapshot() (kv.Snapshot, error) {
	if err := db.enter(); err != nil {
		return nil, err
	}
	defer db.life.RUnlock()
	ctx := context.Background()
	select {
	case db.snapshots <- struct{}{}:
	default:
		if err := db.turn(ctx); err != nil {
			return nil, fmt.Errorf("snapshots hold all connections that they may: %w", err)
		}
	}
	s := &snapshot{db: db}
	if err := db.begin(ctx, s); err != nil {
		<-db.snapshots
		return nil, err
	}
	db.open.Lock()
	db.open.snapshots[s] = struct{}{}
	db.open.Unlock()
	return s, nil
}

// turn waits until a snapshot is closed, and has others released meanwhile: one that is in use
// now may be kept for later in a moment.
func (db *DB) turn(ctx context.Context) error {
	asking := time.NewTicker(askEvery)
	defer asking.Stop()
	waited := make(chan error, 1)
	go func() { waited <- wait(ctx, db.snapshots) }()
	for {
		db.ask()
		select {
		case err := <-waited:
			return err
		case <-asking.C:
		}
	}
}

// begin gives s a connection, and begins its transaction. It tries another connection if the
// first turns out to be broken.
func (db *DB) begin(ctx context.Context, s *snapshot) error {
	for try := 0; ; try++ {
		c, err := db.pool.acquire(ctx)
		if err != nil {
			return err
		}
		err = c.send("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;SELECT 1")
		if err == nil {
			s.mu.conn = c
			return nil
		}
		broken := c.pg.IsClosed()
		db.pool.release(c)
		if try > 0 || !broken {
			return readFailed(err)
		}
	}
}

// query runs a statement in the transaction. The caller holds mu.
func (s *snapshot) query(st statement, row func(values [][]byte) error, params ...[]byte) error {
	err := s.mu.conn.query(st, row, params...)
	if err == nil {
		return nil
	}
	s.mu.failed = readFailed(err)
	return s.mu.failed
}

// usable returns why the snapshot cannot be read, or nil. The caller holds mu.
func (s *snapshot) usable() error {
	if s.mu.conn == nil {
		return kv.ErrClosed
	}
	s.db.life.RLock()
	defer s.db.life.RUnlock()
	if s.db.closed {
		return kv.ErrClosed
	}
	return s.mu.failed
}

// Get implements kv.Snapshot.
func (s *snapshot) Get(key []byte) (value []byte, found bool, err error) {
	value, found, err = s.GetInto([]byte{}, key)
	if !found {
		value = nil
	}
	return value, found, err
}

// GetInto implements kv.Snapshot.
func (s *snapshot) GetInto(dst, key []byte) (value []byte, found bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(); err != nil {
		return dst, false, err
	}
	if len(key) == 0 {
		return dst, false, nil
	}
	if warm, ok := s.mu.warm[string(key)]; ok {
		return append(dst, warm.value...), warm.found, nil
	}
	value = dst
	err = s.query(getRow, func(row [][]byte) error {
		value, found = append(dst, row[0]...), true
		return nil
	}, key)
	if err != nil {
		return dst, false, err
	}
	return value, found, nil
}

// Warm implements kv.Snapshot.
func (s *snapshot) Warm(keys [][]byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(); err != nil {
		return err
	}
	cold := make([][]byte, 0, len(keys))
	for _, key := range keys {
		if _, warm := s.mu.warm[string(key)]; !warm && len(key) > 0 {
			cold = append(cold, key)
		}
	}
	if len(cold) > 0 && s.mu.warm == nil {
		s.mu.warm = make(map[string]warmValue, len(cold))
	}
	for len(cold) > 0 {
		some := cold[:min(len(cold), warmKeysMax)]
		cold = cold[len(some):]
		got := make(map[string][]byte, len(some))
		err := s.query(getRows, func(row [][]byte) error {
			got[string(row[0])] = bytes.Clone(row[1])
			return nil
		}, byteaArray(some))
		if err != nil {
			return err
		}
		for _, key := range some {
			value, found := got[string(key)]
			s.mu.warm[string(key)] = warmValue{value, found}
		}
	}
	return nil
}

// Scan implements kv.Snapshot. It reads in pages, so that reads of the loop's body find the
// connection free.
func (s *snapshot) Scan(lower, upper []byte, order kv.Order) iter.Seq2[kv.Entry, error] {
	nothing := upper != nil && bytes.Compare(lower, upper) >= 0
	lower, upper = nonNil(bytes.Clone(lower)), bytes.Clone(upper)
	return func(yield func(kv.Entry, error) bool) {
		if nothing {
			s.mu.Lock()
			err := s.usable()
			s.mu.Unlock()
			if err != nil {
				yield(kv.Entry{}, err)
			}
			return
		}
		p := page{lower: lower, upper: upper, order: order, rows: pageRowsFirst}
		for {
			if err := s.read(&p); err != nil {
				yield(kv.Entry{}, err)
				return
			}
			for _, e := range p.entries {
				if !yield(e, nil) {
					return
				}
			}
			if !p.next() {
				return
			}
		}
	}
}

// page is a part of a scan.
type page struct {
	lower, upper []byte // what is left of the scan; upper may be nil
	after        bool   // the scan goes on after lower
	order        kv.Order
	rows         int // asked for

	entries []kv.Entry
	data    []byte // the bytes of the entries
	full    bool   // there may be more
}

// next prepares the page after this one. It reports whether there is one.
func (p *page) next() bool {
	if !p.full {
		return false
	}
	last := bytes.Clone(p.entries[len(p.entries)-1].Key)
	if p.order == kv.Reverse {
		p.upper = last
	} else {
		p.lower, p.after = last, true
	}
	// Not more rows than fit, if they are as long as those of this page.
	fit := pageBytesMax / (len(p.data)/len(p.entries) + 1)
	p.rows = max(1, min(p.rows*pageRowsGrowth, pageRowsMax, fit))
	return true
}

// read reads the rows of a page.
func (s *snapshot) read(p *page) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(); err != nil {
		return err
	}
	kind := firstPage
	params := [][]byte{p.lower, bigint(int64(p.rows))}
	if p.after {
		kind += pageAfter
	}
	if p.upper != nil {
		kind += pageBounded
		params = append(params, p.upper)
	}
	if p.order == kv.Reverse {
		kind += pageReverse
	}
	// The caller may still hold entries of the page before: each page has memory of its own.
	p.entries, p.data, p.full = make([]kv.Entry, 0, min(p.rows, pageRowsFirst)), nil, false
	kept := true
	err := s.query(kind, func(row [][]byte) error {
		size := len(row[0]) + len(row[1])
		if kept = kept && (len(p.entries) == 0 || len(p.data)+size <= pageBytesMax); !kept {
			p.full = true
			return nil
		}
		p.add(row[0], row[1])
		return nil
	}, params...)
	if len(p.entries) == p.rows {
		p.full = true
	}
	return err
}

// add copies a row into the page. Entries keep memory that data has outgrown.
func (p *page) add(key, value []byte) {
	if cap(p.data)-len(p.data) < len(key)+len(value) {
		p.data = append(make([]byte, 0, max(2*cap(p.data), len(p.data)+len(key)+len(value), 1<<10)), p.data...)
	}
	start := len(p.data)
	p.data = append(append(p.data, key...), value...)
	mid, end := start+len(key), len(p.data)
	p.entries = append(p.entries, kv.Entry{Key: p.data[start:mid:mid], Value: p.data[mid:end:end]})
}

// Close implements kv.Snapshot. The caller does not wait for the server.
func (s *snapshot) Close() {
	s.mu.Lock()
	c, failed := s.mu.conn, s.mu.failed
	s.mu.conn, s.mu.warm = nil, nil
	s.mu.Unlock()
	if c == nil {
		return
	}
	db := s.db
	db.open.Lock()
	delete(db.open.snapshots, s)
	db.open.Unlock()
	end := func() {
		if failed == nil {
			_ = c.send("COMMIT") // a connection that is still in a transaction is closed
		}
		db.pool.release(c)
		<-db.snapshots
	}
	db.life.RLock()
	defer db.life.RUnlock()
	if db.closed {
		c.close()
		end()
		return
	}
	db.background.Go(end)
}

// keepAlive tells the server from time to time that the snapshots which are not used are still
// needed. The snapshots of a process that stops do not tell, and end.
func (db *DB) keepAlive() {
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	for {
		select {
		case <-db.stop:
			return
		case <-ticker.C:
			db.touchSnapshots()
		}
	}
}

// touchSnapshots sends something over the connection of each snapshot that nobody reads now.
func (db *DB) touchSnapshots() {
	db.open.Lock()
	open := make([]*snapshot, 0, len(db.open.snapshots))
	for s := range db.open.snapshots {
		open = append(open, s)
	}
	db.open.Unlock()
	for _, s := range open {
		if !s.mu.TryLock() {
			continue
		}
		if s.usable() == nil {
			if err := s.mu.conn.send("SELECT 1"); err != nil {
				s.mu.failed = readFailed(err)
				db.log.Warn("a snapshot is lost", "error", s.mu.failed.Error())
			}
		}
		s.mu.Unlock()
	}
}
