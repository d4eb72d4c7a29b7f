// SPDX-License-Identifier: MIT

package pebblekv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/mayflydb/mayfly/internal/kv"
)

const (
	// erasePieceBytes is about how much is rewritten between two calls of step.
	erasePieceBytes = 64 << 20
	// erasePoll is how long Erase waits between two looks at what it waits for.
	erasePoll = 20 * time.Millisecond
	// eraseRounds is how often tables are looked at again: a delete may have to be moved down
	// level by level, and a snapshot may have kept rows that a compaction should have dropped.
	eraseRounds = 32
	// rotateSpare is how many changes of the manifest, beyond those that are needed, Erase
	// makes to have a new one.
	rotateSpare = 16
)

// errNotErased: tables still held deleted rows after eraseRounds.
var errNotErased = errors.New("deleted rows are left in tables")

// Erase implements kv.DB.
//
//  1. Logs. The memtable is written out, and all logs up to then are removed.
//  2. Tables. Those that have something left are compacted down to the last level, piece by
//     piece, and looked at again, until none is left.
//  3. The manifest, which has keys of tables that are gone, is replaced.
//  4. Files that are no longer needed are removed by the engine when no reader uses them.
//  5. A checkpoint has links to such files. The last step waits until it is closed.
func (db *DB) Erase(ctx context.Context, ranges []kv.Range, step func(left kv.Remains) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case db.erasing <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-db.erasing }()
	e := &erasure{db: db, ranges: ranges, step: step}
	if err := e.alive(func() error { e.until = db.now(); return nil }); err != nil {
		return err
	}
	if err := step(e.left); err != nil {
		return err
	}
	for _, stage := range []func(context.Context) error{e.logs, e.snapshots, e.tables, e.manifest, e.files, e.checkpoint} {
		if err := stage(ctx); err != nil {
			return err
		}
	}
	return nil
}

// erasure is an Erase under way.
type erasure struct {
	db     *DB
	ranges []kv.Range
	until  uint64 // deletes of a lower position
	step   func(kv.Remains) error
	left   kv.Remains
}

// alive calls f unless the store is closed.
func (e *erasure) alive(f func() error) error {
	e.db.life.RLock()
	defer e.db.life.RUnlock()
	if e.db.closed.Load() {
		return kv.ErrClosed
	}
	return f()
}

// wait calls step, and then waits a moment.
func (e *erasure) wait(ctx context.Context) error {
	if err := e.step(e.left); err != nil {
		return err
	}
	select {
	case <-time.After(erasePoll):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// logs begins a new log, and removes all others.
func (e *erasure) logs(ctx context.Context) error {
	db := e.db
	db.fs.newLogs.Store(true)
	defer db.fs.newLogs.Store(false)
	first := db.logged.Swap(0)
	err := db.flushNow(ctx)
	if err == nil && !db.withoutLog {
		err = db.removeSpareLogs()
	}
	if err != nil && first != 0 {
		db.logged.Store(first)
	}
	return err
}

// snapshots waits until none can see a row that was deleted before.
func (e *erasure) snapshots(ctx context.Context) error {
	for {
		var old bool
		err := e.alive(func() error {
			m := e.db.pebble.Metrics()
			old = m.Snapshots.Count > 0 && uint64(m.Snapshots.EarliestSeqNum) < e.until
			return nil
		})
		if err != nil || !old {
			return err
		}
		if err := e.wait(ctx); err != nil {
			return err
		}
	}
}

// tables compacts what is left, until nothing is.
func (e *erasure) tables(ctx context.Context) error {
	for range eraseRounds {
		pieces, err := e.pieces()
		if err != nil || len(pieces) == 0 {
			return err
		}
		for _, p := range pieces {
			if err := e.step(e.left); err != nil {
				return err
			}
			if p.last {
				if gone, err := e.nudge(ctx, p); err != nil {
					return err
				} else if gone {
					continue
				}
			}
			if err := e.db.Compact(ctx, p.lower, append(bytes.Clone(p.upper), 0)); err != nil {
				return err
			}
			e.left.Bytes -= min(e.left.Bytes, p.bytes)
			e.left.Tables -= min(e.left.Tables, p.tables)
		}
		if err := e.snapshots(ctx); err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: %d of %d bytes", errNotErased, e.left.Tables, e.left.Bytes)
}

// piece is a range to compact.
type piece struct {
	lower, upper []byte // both inclusive
	bytes        uint64
	tables       int
	last         bool   // its tables are in the last level
	first        uint64 // the number of its first table
}

// pieces returns what to compact: tables of the first level that has something left, so that
// what comes from there is rewritten with what is left below it.
func (e *erasure) pieces() (pieces []piece, err error) {
	var all []table
	if err := e.alive(func() error { all, err = e.db.tables(); return err }); err != nil {
		return nil, err
	}
	e.left = kv.Remains{}
	level, before := -1, 0 // before is where in all the last piece ends
	for i := range all {
		t := &all[i]
		if t.oldest == 0 || t.oldest >= e.until || !t.overlapsAny(e.ranges) {
			continue
		}
		e.left = e.left.Add(t.remains())
		if level < 0 {
			level = t.level
		}
		if t.level != level {
			continue
		}
		p := piece{lower: t.smallest, upper: t.largest, bytes: t.bytes, tables: 1, last: level == lastLevel, first: t.number}
		// Neighbours overlap the same tables of the next level.
		if n := len(pieces); n > 0 && level > 0 && before == i && pieces[n-1].bytes+p.bytes <= erasePieceBytes {
			pieces[n-1].join(p)
		} else {
			pieces = append(pieces, p)
		}
		before = i + 1
	}
	if level > 0 {
		return pieces, nil
	}
	return merged(pieces), nil
}

// join extends a piece by another one that begins after it.
func (p *piece) join(o piece) {
	if bytes.Compare(o.upper, p.upper) > 0 {
		p.upper = o.upper
	}
	p.bytes += o.bytes
	p.tables += o.tables
}

// merged joins pieces that overlap.
func merged(pieces []piece) []piece {
	slices.SortFunc(pieces, func(a, b piece) int { return bytes.Compare(a.lower, b.lower) })
	var out []piece
	for _, p := range pieces {
		if n := len(out); n > 0 && bytes.Compare(p.lower, out[n-1].upper) <= 0 {
			out[n-1].join(p)
		} else {
			out = append(out, p)
		}
	}
	return out
}

// nudge writes the first and the last key of a piece in the last level again, as they are: the
// engine's Compact rewrites tables of that level only with what comes from the level above.
// gone says that there is no such table any more.
func (e *erasure) nudge(ctx context.Context, p piece) (gone bool, err error) {
	err = e.alive(func() error {
		levels, err := e.db.pebble.SSTables()
		if err != nil {
			return translate(err)
		}
		if gone = !slices.ContainsFunc(levels[lastLevel], func(t pebble.SSTableInfo) bool { return uint64(t.BackingSSTNum) == p.first }); gone {
			return nil
		}
		return e.again(ctx, p.lower, p.upper)
	})
	return gone, err
}

// again deletes keys, and sets those that exist again, with their present values.
// The caller keeps the store open.
func (e *erasure) again(ctx context.Context, keys ...[]byte) error {
	db := e.db
	if err := db.admit(ctx); err != nil {
		return err
	}
	db.order.Lock() // no commit comes between the read and the write
	defer db.order.Unlock()
	b := db.pebble.NewBatch()
	for _, key := range keys {
		value, closer, err := db.pebble.Get(key)
		switch {
		case errors.Is(err, pebble.ErrNotFound):
			err = b.Delete(key, nil)
		case err == nil:
			err = errors.Join(b.Delete(key, nil), b.Set(key, value, nil), closer.Close())
		}
		if err != nil {
			return errors.Join(translate(err), b.Close())
		}
	}
	if err := db.pebble.Apply(b, pebble.NoSync); err != nil {
		return errors.Join(translate(err), b.Close())
	}
	db.notePosition(b, false)
	return b.Close()
}

// manifest has the engine begin a new manifest, and removes the old ones. The engine begins one
// when the tables that its edits have added and removed are more than the store has, so this
// adds and removes an empty table until it does.
func (e *erasure) manifest(ctx context.Context) error {
	if e.db.withoutLog {
		return nil
	}
	before, err := e.current()
	if err != nil {
		return err
	}
	tables := 0
	if err := e.alive(func() error {
		all, err := e.db.tables()
		tables = len(all)
		return err
	}); err != nil {
		return err
	}
	for n := 0; ; n++ {
		now, err := e.current()
		if err != nil {
			return err
		}
		if now.number != before.number {
			return e.removeManifests(now.number)
		}
		if n > tables+rotateSpare {
			return fmt.Errorf("%s is still in use after %d changes", manifestName(now.number), n)
		}
		if err := e.step(e.left); err != nil {
			return err
		}
		if err := e.alive(func() error { return e.again(ctx, []byte(firstKey)) }); err != nil {
			return err
		}
		if err := e.db.Compact(ctx, []byte(firstKey), []byte(firstKey+firstKey)); err != nil {
			return err
		}
	}
}

func (e *erasure) current() (m manifest, err error) {
	err = e.alive(func() error {
		files, err := e.db.fs.List(e.db.dir)
		if err == nil {
			m, err = readManifest(e.db.fs.FS, e.db.dir, files)
		}
		return err
	})
	return m, err
}

// removeManifests removes the manifests before the current one. The engine would keep one of
// them.
func (e *erasure) removeManifests(current uint64) error {
	// The engine may be about to sync the marker of the current one.
	if err := e.alive(func() error { return syncDir(e.db.fs, e.db.dir) }); err != nil {
		return err
	}
	return e.remove(func(name string) bool {
		digits, ok := strings.CutPrefix(name, manifestPrefix)
		n, err := strconv.ParseUint(digits, 10, 63)
		return ok && err == nil && n < current
	})
}

// remove removes files.
func (e *erasure) remove(which func(name string) bool) error {
	return e.alive(func() error {
		files, err := e.db.fs.List(e.db.dir)
		if err != nil {
			return err
		}
		for _, name := range files {
			if !which(name) {
				continue
			}
			if err := e.db.fs.Remove(e.db.fs.PathJoin(e.db.dir, name)); err != nil && !errors.Is(err, iofs.ErrNotExist) {
				return err
			}
		}
		return nil
	})
}

// files waits until the engine has removed the tables that it no longer needs, which it does
// when no reader uses them any more, and then makes that durable.
func (e *erasure) files(ctx context.Context) error {
	stale, err := e.stale()
	for ; err == nil && len(stale) > 0; err = e.still(&stale) {
		if err = e.wait(ctx); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	return e.alive(func() error { return syncDir(e.db.fs, e.db.dir) })
}

// stale returns the files of tables that are not in use now, or not yet.
func (e *erasure) stale() (names []string, err error) {
	err = e.alive(func() error {
		files, err := e.db.fs.List(e.db.dir)
		if err != nil {
			return err
		}
		used, err := e.used()
		if err != nil {
			return err
		}
		for _, name := range files {
			if strings.HasSuffix(name, tableSuffix) && !used[name] {
				names = append(names, name)
			}
		}
		return nil
	})
	return names, err
}

// used returns the names of the tables in use.
func (e *erasure) used() (map[string]bool, error) {
	levels, err := e.db.pebble.SSTables()
	if err != nil {
		return nil, translate(err)
	}
	used := map[string]bool{}
	for _, level := range levels {
		for i := range level {
			used[fmt.Sprintf("%06d%s", uint64(level[i].BackingSSTNum), tableSuffix)] = true
		}
	}
	return used, nil
}

// still keeps those of the names that are still files, and still not in use.
func (e *erasure) still(names *[]string) error {
	now, err := e.stale()
	if err != nil {
		return err
	}
	*names = slices.DeleteFunc(*names, func(name string) bool { return !slices.Contains(now, name) })
	return nil
}
