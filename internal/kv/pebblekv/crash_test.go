// SPDX-License-Identifier: MIT

package pebblekv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/kv/kvtest"
)

// This file simulates crashes of the machine: writers commit, the file system is cloned as a
// crash at that moment may leave it, and the clone is opened. It must have every commit that
// had returned, and for each writer exactly the work of its first so many commits.

const (
	crashWriters = 4
	crashSteps   = 40
	crashClones  = 4
	crashRuns    = 10
)

func TestCrash(t *testing.T) {
	for _, mode := range []struct {
		name   string
		noSync bool
		erases bool // deleted rows are erased all the time
	}{{"sync", false, false}, {"no sync", true, false}, {"sync and erase", false, true}} {
		t.Run(mode.name, func(t *testing.T) {
			for seed := range uint64(crashRuns * kvtest.LongFactor(t)) {
				c := newCrashRun(seed, Options{NoSync: mode.noSync, tune: smallTables})
				c.erases = mode.erases
				if err := c.run(); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
			}
		})
	}
}

// work is the work of a test's writer: its commits are a function of the seed, so that the
// result of any number of them is known.
type work struct {
	seed   uint64
	writer int
}

func (w work) prefix() string { return fmt.Sprintf("%d/", w.writer) }
func (w work) counter() []byte {
	return []byte(w.prefix() + "n")
}

// fill fills the batch of commit n, from 1. It counts up, every other time under a Require
// of the old count, writes rows of very different sizes, and deletes old ones singly and by
// range.
func (w work) fill(b *kv.Batch, n int) {
	r := rand.New(rand.NewPCG(w.seed, uint64(w.writer)<<32|uint64(n)))
	row := func(i int) []byte { return fmt.Appendf(nil, "%srow-%06d", w.prefix(), i) }
	if n%2 == 0 {
		b.Require(w.counter(), strconv.AppendInt(nil, int64(n-1), 10))
	}
	if n%7 == 0 {
		b.DeleteRange(row(0), row(n-4))
	}
	b.Set(w.counter(), strconv.AppendInt(nil, int64(n), 10))
	for i := range 1 + r.IntN(3) {
		size := []int{0, 40, 1300, 9000}[r.IntN(4)]
		b.Set(row(n+i), bytes.Repeat([]byte{byte('a' + n%26)}, size))
	}
	b.Delete(row(n-2), r.IntN(2)*1300)
}

// done reads how many commits of w the snapshot shows, and checks that it shows
// the work of exactly those.
func (w work) done(s kv.Snapshot) (int, error) {
	value, found, err := s.Get(w.counter())
	if err != nil {
		return 0, err
	}
	n := 0
	if found {
		if n, err = strconv.Atoi(string(value)); err != nil {
			return 0, err
		}
	}
	twin := kvtest.NewModel()
	for i := 1; i <= n; i++ {
		var b kv.Batch
		w.fill(&b, i)
		if err := twin.Commit(context.Background(), &b); err != nil {
			return 0, err
		}
	}
	want, err := twin.Snapshot()
	if err != nil {
		return 0, err
	}
	return n, sameRows(s, want, w.prefix())
}

func sameRows(got, want kv.Snapshot, prefix string) error {
	rows := func(s kv.Snapshot) (map[string]string, error) {
		m := map[string]string{}
		for e, err := range s.Scan([]byte(prefix), []byte(prefix+"\xff"), kv.Forward) {
			if err != nil {
				return nil, err
			}
			m[string(e.Key)] = string(e.Value)
		}
		return m, nil
	}
	gotRows, err := rows(got)
	if err != nil {
		return err
	}
	wantRows, err := rows(want)
	if err != nil {
		return err
	}
	for key, value := range wantRows {
		if v, found := gotRows[key]; !found || v != value {
			return fmt.Errorf("%s: found %v, %d bytes, want %d bytes", key, found, len(v), len(value))
		}
		delete(gotRows, key)
	}
	for key := range gotRows {
		return fmt.Errorf("%s must not be there", key)
	}
	return nil
}

// crashRun is one store with its writers.
type crashRun struct {
	seed    uint64
	options Options
	fs      *vfs.MemFS
	rng     *rand.Rand // used by the crashing goroutine alone
	erases  bool

	begun, returned [crashWriters]atomic.Int64
	started         chan struct{} // gets a value for each commit that begins
	crashes         []crash
}

// crash is the content of the disk at one moment, and the least and the most commits of each
// writer that it may have.
type crash struct {
	at          int
	disk        *vfs.MemFS
	least, most [crashWriters]int64
}

func newCrashRun(seed uint64, o Options) *crashRun {
	fs := vfs.NewCrashableMem()
	o.Dir, o.FS, o.Logger = "data", fs, quiet()
	return &crashRun{
		seed: seed, options: o, fs: fs,
		rng:     rand.New(rand.NewPCG(seed, 1)),
		started: make(chan struct{}),
	}
}

func (c *crashRun) run() error {
	db, err := Open(c.options)
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	errs := make([]error, crashWriters)
	for w := range crashWriters {
		wg.Go(func() { errs[w] = c.write(db, work{c.seed, w}) })
	}
	go func() {
		wg.Wait()
		close(c.started)
	}()
	ctx, stop := context.WithCancel(context.Background())
	erased := make(chan error, 1)
	go func() {
		var err error
		for c.erases && err == nil {
			err = db.Erase(ctx, everything(), goOn)
		}
		erased <- err
	}()
	c.crashNowAndThen()
	stop()
	if err := <-erased; err != nil && !errors.Is(err, context.Canceled) {
		errs = append(errs, err)
	}
	errs = append(errs, db.Close())
	for _, crash := range c.crashes {
		if err := c.recover(crash); err != nil {
			errs = append(errs, fmt.Errorf("crash at commit %d: %w", crash.at, err))
		}
	}
	return errors.Join(errs...)
}

func (c *crashRun) write(db *DB, w work) error {
	var b kv.Batch
	for n := 1; n <= crashSteps; n++ {
		b.Reset()
		w.fill(&b, n)
		c.begun[w.writer].Store(int64(n))
		c.started <- struct{}{}
		if err := db.Commit(context.Background(), &b); err != nil {
			return err
		}
		c.returned[w.writer].Store(int64(n))
	}
	return nil
}

// crashNowAndThen clones the disk at random points, while writers commit.
func (c *crashRun) crashNowAndThen() {
	points := map[int]bool{}
	for len(points) < crashClones {
		points[c.rng.IntN(crashWriters*crashSteps)] = true
	}
	begun := 0
	for range c.started {
		if points[begun] {
			c.crashes = append(c.crashes, c.crash(begun))
		}
		begun++
	}
}

func (c *crashRun) crash(at int) crash {
	result := crash{at: at}
	if !c.options.NoSync {
		for w := range crashWriters {
			result.least[w] = c.returned[w].Load()
		}
	}
	result.disk = c.fs.CrashClone(vfs.CrashCloneCfg{
		UnsyncedDataPercent: []int{0, 30, 70, 100}[c.rng.IntN(4)],
		RNG:                 c.rng,
	})
	for w := range crashWriters {
		result.most[w] = c.begun[w].Load()
	}
	return result
}

// recover opens what a crash left and checks it, twice: the first recovery writes what it
// found again, and a second crash must not lose it.
func (c *crashRun) recover(crash crash) error {
	again := crash
	err := c.open(crash, func(s kv.Snapshot) error {
		again.disk = crash.disk.CrashClone(vfs.CrashCloneCfg{})
		kept, err := c.check(s, crash)
		again.least, again.most = kept, kept
		return err
	})
	if err != nil {
		return err
	}
	return c.open(again, func(s kv.Snapshot) error {
		if _, err := c.check(s, again); err != nil {
			return fmt.Errorf("second recovery: %w", err)
		}
		return nil
	})
}

func (c *crashRun) open(crash crash, use func(kv.Snapshot) error) (err error) {
	o := c.options
	o.FS = crash.disk
	db, err := Open(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	s, err := db.Snapshot()
	if err != nil {
		return err
	}
	defer s.Close()
	return use(s)
}

// check returns how many commits of each writer there are.
func (c *crashRun) check(s kv.Snapshot, crash crash) (kept [crashWriters]int64, err error) {
	for w := range kept {
		n, err := work{c.seed, w}.done(s)
		if err != nil {
			return kept, fmt.Errorf("writer %d after %d commits: %w", w, n, err)
		}
		if kept[w] = int64(n); kept[w] < crash.least[w] || kept[w] > crash.most[w] {
			return kept, fmt.Errorf("writer %d: %d commits are kept, want %d to %d",
				w, n, crash.least[w], crash.most[w])
		}
	}
	return kept, nil
}

// TestCrashWhileOpening crashes before each disk operation of opening, for a new store and for
// one with a log to recover.
func TestCrashWhileOpening(t *testing.T) {
	c := newCrashRun(1, Options{tune: smallTables})
	old := c.fillAndCrash(t)
	full := c.crash(0)
	for name, start := range map[string]*vfs.MemFS{"new": vfs.NewCrashableMem(), "old": old} {
		for round := range int64(kvtest.LongFactor(t)) {
			for n := int64(1); ; n++ {
				percent := []int{0, 50}[(n+round)%2]
				disk := start.CrashClone(vfs.CrashCloneCfg{})
				after := full
				if name == "new" {
					after = crash{}
				}
				after.disk = crashAtOperation(t, c.options, disk, n, percent)
				if after.disk == nil {
					break
				}
				if err := c.recover(after); err != nil {
					t.Errorf("%s store, operation %d, %d%% of what is not synced: %v", name, n, percent, err)
				}
			}
		}
	}
}

// crashAtOperation opens and closes the store on disk, and returns what a crash
// before operation n leaves of it, or nil if there are fewer.
func crashAtOperation(t *testing.T, o Options, disk *vfs.MemFS, n int64, percent int) (left *vfs.MemFS) {
	var count atomic.Int64
	o.FS = errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && count.Add(1) == n {
			left = disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rand.New(rand.NewPCG(uint64(n), 1))})
		}
		return nil
	}))
	mustClose(t, mustOpen(t, o))
	return left
}
