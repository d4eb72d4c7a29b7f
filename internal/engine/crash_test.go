// SPDX-License-Identifier: MIT

// Crashes of the machine under an engine. Clients write, an operator creates, replaces
// and drops containers, and the time moves, while the file system is cloned as a crash at
// that moment may leave it. crash_recovery_test.go opens the clones. Purge is paused:
// with TTL off, expired items are visible again, and can be compared.

package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/kv/kvtest"
	"github.com/mayflydb/mayfly/internal/kv/pebblekv"
	"github.com/mayflydb/mayfly/internal/store"
)

const (
	crashRuns    = 10
	crashClones  = 3 // of each run: 30 crashes, times MAYFLY_LONG
	crashWriters = 4
	crashWrites  = 40 // of each writer
	crashChanges = 12 // of the operator
	crashMoves   = 10 // of the clock
)

func TestCrash(t *testing.T) {
	for seed := range uint64(crashRuns * kvtest.LongFactor(t)) {
		r := &crashRun{seed: seed, started: make(chan struct{})}
		if err := r.run(t.Context()); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// crashRun is one database with its users. Every action takes a number from one sequence
// when it begins and when it is acknowledged.
type crashRun struct {
	seed    uint64
	fs      *vfs.MemFS
	e       *Engine
	keys    []string // a partition key for each of the containers' partitions
	clock   atomic.Int64
	started chan struct{} // gets a value for each action that begins

	writes  [crashWriters][]crashWrite
	changes []crashChange
	moves   []crashMove
	crashes []crash
}

type span struct{ begin, end int64 }

// crashWrite is a write that was acknowledged in the end.
type crashWrite struct {
	span
	container catalog.ContainerRID
	partition int
	lsn       uint64
	item      crashItem
	deleted   bool
	body      string
	etag, rid string
	ttl       catalog.TTL
	ts        int64
}

type crashItem struct{ pk, id string }

// crashChange is a change of the catalog, and all containers after it.
type crashChange struct {
	span
	containers map[catalog.ContainerRID]string
}

// crashMove is a move of the clock to a time.
type crashMove struct {
	span
	ms int64
}

// crash is a copy of the disk, taken at some moment of the span.
type crash struct {
	span
	disk *vfs.MemFS
}

func (r *crashRun) options(fs vfs.FS) pebblekv.Options {
	return pebblekv.Options{Dir: "data", FS: fs, Logger: quiet(), CacheBytes: 1 << 20}
}

func (r *crashRun) rng(client uint64) *rand.Rand { return rand.New(rand.NewPCG(r.seed, client)) }

func (r *crashRun) run(ctx context.Context) error {
	r.fs = vfs.NewCrashableMem()
	db, err := pebblekv.Open(r.options(r.fs))
	if err != nil {
		return err
	}
	if r.e, err = Open(Options{DB: db, TestClock: true, ClockSource: atStart, PurgePaused: true}); err != nil {
		return err
	}
	if err := r.prepare(ctx); err != nil {
		return err
	}
	var wg sync.WaitGroup
	errs := make([]error, crashWriters+2)
	for w := range crashWriters {
		wg.Go(func() { errs[w] = r.write(ctx, w) })
	}
	wg.Go(func() { errs[crashWriters] = r.change(ctx) })
	wg.Go(func() { errs[crashWriters+1] = r.move() })
	go func() {
		wg.Wait()
		close(r.started)
	}()
	r.crashNowAndThen()
	errs = append(errs, r.e.Close(), db.Close())
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return r.recoverAll(ctx)
}

// prepare creates the state before the first crash.
func (r *crashRun) prepare(ctx context.Context) error {
	if err := r.e.Clock().Freeze(); err != nil {
		return err
	}
	if _, err := r.e.CreateDatabase(ctx, []byte(`{"id":"d"}`), catalog.Throughput{}); err != nil {
		return err
	}
	c, err := r.e.CreateContainer(ctx, "d", definition("stays", "3"), partitions(2))
	if err != nil {
		return err
	}
	r.keys = spread(c)
	r.moves = []crashMove{{ms: r.e.Clock().Now()}}
	return r.noteContainers(span{})
}

// begins and ends number an action's beginning and end.
func (r *crashRun) begins() int64 {
	r.started <- struct{}{}
	return r.clock.Add(1)
}

func (r *crashRun) ends() int64 { return r.clock.Add(1) }

// write is the loop of one client.
func (r *crashRun) write(ctx context.Context, writer int) error {
	rng := r.rng(uint64(writer))
	var etag string // the last one that it saw
	for n := range crashWrites {
		it := crashItem{r.keys[rng.IntN(len(r.keys))], string("abc"[rng.IntN(3)])}
		w := &Request{
			Target: item([]string{"stays", "stays", "comes and goes"}[rng.IntN(3)], it.pk, it.id),
			Op:     []store.Op{store.Create, store.Upsert, store.Upsert, store.Replace, store.Delete}[rng.IntN(5)],
		}
		if rng.IntN(8) == 0 {
			w.IfMatch = etag
		}
		ttl := []catalog.TTL{catalog.TTLAbsent, catalog.TTLForever, 1, 2, 5}[rng.IntN(5)]
		if w.Op != store.Delete {
			more := fmt.Sprintf(`"writer":%d,"n":%d,"pad":%q`, writer, n, strings.Repeat("x", []int{0, 100, 4000, 20_000}[rng.IntN(4)]))
			if ttl != catalog.TTLAbsent {
				more += fmt.Sprintf(`,"ttl":%d`, ttl)
			}
			w.Body = body(it.pk, it.id, more)
		}
		begin := r.begins()
		res, err := again(func() (Answer, error) { return r.e.WriteItem(ctx, w) })
		switch {
		case err == nil:
			done := crashWrite{
				span: span{begin, r.ends()}, container: res.Container.RID, partition: res.Partition, lsn: res.LSN, item: it,
				deleted: w.Op == store.Delete, body: string(res.Body), etag: res.ETag, ttl: ttl,
			}
			if !done.deleted {
				done.rid, done.ts = systemProperties(res.Body)
				etag = res.ETag
			}
			r.writes[writer] = append(r.writes[writer], done)
		case !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrExists) && !errors.Is(err, store.ErrPrecondition) && !errors.Is(err, ErrOwnerNotFound):
			return fmt.Errorf("writer %d, write %d: %w", writer, n, err)
		}
	}
	return nil
}

// change is the loop of the operator.
func (r *crashRun) change(ctx context.Context) error {
	rng := r.rng(100)
	there := false // whether the second container exists
	for n := range crashChanges {
		ttl := []string{"null", "-1", "1", "3", "4"}[rng.IntN(5)]
		begin := r.begins()
		var err error
		switch what := rng.IntN(3); {
		case what == 0:
			_, err = r.e.ReplaceContainer(ctx, "d", "stays", definition("stays", ttl), "")
		case !there:
			_, err = r.e.CreateContainer(ctx, "d", definition("comes and goes", ttl), partitions(2))
			there = true
		case what == 1:
			_, err = r.e.ReplaceContainer(ctx, "d", "comes and goes", definition("comes and goes", ttl), "")
		default:
			err = r.e.DeleteContainer(ctx, "d", "comes and goes", "")
			there = false
		}
		if err == nil {
			err = r.noteContainers(span{begin, r.ends()})
		}
		if err != nil {
			return fmt.Errorf("change %d: %w", n, err)
		}
	}
	return nil
}

func (r *crashRun) noteContainers(s span) error {
	_, containers, err := r.e.Containers("d")
	if err != nil {
		return err
	}
	c := crashChange{span: s, containers: map[catalog.ContainerRID]string{}}
	for _, ct := range containers {
		c.containers[ct.RID] = string(ct.Body)
	}
	r.changes = append(r.changes, c)
	return nil
}

// move advances the time, a second or two at a time.
func (r *crashRun) move() error {
	rng := r.rng(200)
	for range crashMoves {
		ms := r.moves[len(r.moves)-1].ms + 1000*(1+rng.Int64N(2))
		begin := r.begins()
		if err := r.e.Clock().Advance(time.Duration(ms-r.moves[len(r.moves)-1].ms) * time.Millisecond); err != nil {
			return err
		}
		r.moves = append(r.moves, crashMove{span{begin, r.ends()}, ms})
	}
	return nil
}

// crashNowAndThen clones the disk at random points while all users go on.
func (r *crashRun) crashNowAndThen() {
	rng := r.rng(300)
	points := map[int]bool{}
	for len(points) < crashClones {
		points[rng.IntN(crashWriters*crashWrites+crashChanges+crashMoves)] = true
	}
	begun := 0
	for range r.started {
		if points[begun] {
			c := crash{span: span{begin: r.clock.Add(1)}}
			c.disk = r.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: []int{0, 30, 70, 100}[rng.IntN(4)], RNG: rng})
			c.end = r.clock.Add(1)
			r.crashes = append(r.crashes, c)
		}
		begun++
	}
}

// history returns all writes to one partition in the order of their LSNs, which are
// dense.
func (r *crashRun) history(c catalog.ContainerRID, partition int) ([]crashWrite, error) {
	var all []crashWrite
	for _, writes := range r.writes {
		for _, w := range writes {
			if w.container == c && w.partition == partition {
				all = append(all, w)
			}
		}
	}
	slices.SortFunc(all, func(a, b crashWrite) int { return int(int64(a.lsn - b.lsn)) })
	for i, w := range all {
		if w.lsn != uint64(i)+1 {
			return nil, fmt.Errorf("partition %d of %s: a write has lsn %d, and the one before it %d", partition, c, w.lsn, i)
		}
	}
	return all, nil
}

// recoverAll opens the disks that the crashes left.
func (r *crashRun) recoverAll(ctx context.Context) error {
	for i, c := range r.crashes {
		if err := r.recover(ctx, c); err != nil {
			return fmt.Errorf("crash %d, between %d and %d: %w", i, c.begin, c.end, err)
		}
	}
	return nil
}

// at returns which states a crash may show of a sequence of actions: those after the n-th
// for n from least to most.
func at[T any](c crash, happened []T, spanOf func(T) span) (least, most int) {
	for i, h := range happened {
		if s := spanOf(h); s.end < c.begin {
			least = i
		}
		if spanOf(h).begin < c.end {
			most = i
		}
	}
	return least, most
}
