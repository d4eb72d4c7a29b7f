// SPDX-License-Identifier: MIT

package store

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/kv/kvtest"
	"github.com/mayflydb/mayfly/internal/kv/pebblekv"
	"github.com/mayflydb/mayfly/internal/ru"
	"github.com/mayflydb/mayfly/internal/value"
)

// startMs is when every test begins.
const startMs = 1_700_000_000_000

// testRowBytes is the budget for cached index rows.
const testRowBytes = 1 << 20

// fixture is one partition of one container, on an engine whose commits the test can hold
// or fail, under a clock that only the test moves.
type fixture struct {
	t         rapid.TB
	db        *scriptedDB
	clock     *clock.Clock
	catalog   *catalog.Catalog
	container *catalog.Container
	index     int
	failures  atomic.Int64 // calls of Failed
	expected  int64        // how many of them the test causes
	p         *Partition
	budget    *CacheBudget
	quotas    Quotas
	ledger    ru.Ledger
}

// newFixture opens the first partition of a container with this definition. At the end of
// the test it is closed, and no goroutine of it may still run.
func newFixture(t *testing.T, definition string) *fixture {
	t.Helper()
	return newFixtureOn(t, kvtest.NewModel(), definition)
}

func newFixtureOn(t *testing.T, db kv.DB, definition string) *fixture {
	t.Helper()
	running := goleak.IgnoreCurrent()
	// The engine is closed later: it may still be waiting for a flush, as after a range
	// delete, or for a compaction.
	engine := []goleak.Option{
		goleak.IgnoreTopFunction("github.com/cockroachdb/pebble/v2.(*DB).maybeScheduleDelayedFlush.func1"),
		goleak.IgnoreAnyFunction("github.com/cockroachdb/pebble/v2.(*DB).compact"),
		goleak.IgnoreAnyFunction("github.com/cockroachdb/pebble/v2.(*DB).flush"),
		goleak.IgnoreAnyFunction("github.com/cockroachdb/pebble/v2/sstable.(*RawColumnWriter).drainWriteQueue"),
	}
	t.Cleanup(func() { goleak.VerifyNone(t, append(engine, running)...) })
	f := makeFixture(t, db, setup{definition: definition, nowMs: startMs})
	t.Cleanup(func() {
		f.p.Close()
		f.check(f.failures.Load() == f.expected, "Failed was called %d times, want %d", f.failures.Load(), f.expected)
		f.check(f.db.open.Load() == 0, "%d snapshots are left open", f.db.open.Load())
	})
	return f
}

// inMemory is an engine that can hold many rows.
func inMemory(t testing.TB) kv.DB {
	t.Helper()
	db, err := pebblekv.OpenMemory(pebblekv.Options{IsIndexKey: IsIndexKey, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// setup is the container to open, and how.
type setup struct {
	definition string
	nowMs      int64
	throughput catalog.Throughput
	index      int
	quotas     Quotas
}

// makeFixture is newFixture for tests that close it themselves.
func makeFixture(t rapid.TB, db kv.DB, s setup) *fixture {
	t.Helper()
	f := &fixture{t: t, db: &scriptedDB{DB: db}, index: s.index, quotas: s.quotas, budget: NewCacheBudget(CacheSizes{IndexRows: testRowBytes, ItemRows: testRowBytes})}
	var err error
	f.clock, err = clock.Open(clock.Options{
		Test:   true,
		Save:   func(clock.State) error { return nil },
		Source: func() clock.Reading { return clock.Reading{WallMs: s.nowMs} },
	})
	f.must(err)
	f.must(f.clock.Freeze())
	f.catalog, err = catalog.Open(db, catalog.Options{})
	f.must(err)
	f.keep(catalog.Write{Address: catalog.Address{Kind: catalog.Databases}, Body: []byte(`{"id":"db"}`), NowMs: s.nowMs})
	f.container = f.keep(catalog.Write{
		Address: catalog.Address{Kind: catalog.Containers, Database: "db"}, Body: []byte(s.definition), Throughput: s.throughput, NowMs: s.nowMs,
	}).(*catalog.Container)
	f.open()
	return f
}

func (f *fixture) keep(w catalog.Write) catalog.Any {
	f.t.Helper()
	r, _, err := f.catalog.Write(context.Background(), w)
	f.must(err)
	return r
}

func (f *fixture) open() {
	f.t.Helper()
	var err error
	f.p, err = Open(Options{
		DB: f.db, Clock: f.clock, Container: f.container, Index: f.index, Cache: f.budget,
		Quotas: f.quotas, Ledger: &f.ledger,
		Failed: func(error) { f.failures.Add(1) },
	})
	f.must(err)
}

func (f *fixture) reopen() {
	f.t.Helper()
	f.p.Close()
	f.open()
}

func (f *fixture) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatalf("unexpected error: %v", err)
	}
}

func (f *fixture) check(holds bool, format string, args ...any) {
	f.t.Helper()
	if !holds {
		f.t.Errorf(format, args...)
	}
}

// withTTL is the definition of a container with the given defaultTtl, in JSON;
// "null" switches it off.
func withTTL(ttl string) string {
	return fmt.Sprintf(`{"id":"c","partitionKey":{"paths":["/pk"],"version":2},"defaultTtl":%s}`, ttl)
}

// redefine returns the container with another definition, as the catalog has it.
func (f *fixture) redefine(definition string) *catalog.Container {
	f.t.Helper()
	at := catalog.Address{Kind: catalog.Containers, Database: "db", ID: f.container.ID}
	w := catalog.Write{Address: at, Mode: catalog.Replace, Body: []byte(definition), NowMs: f.clock.Now()}
	f.container = f.keep(w).(*catalog.Container)
	return f.container
}

func (f *fixture) reconfigure(definition string) {
	f.t.Helper()
	f.must(f.p.Reconfigure(context.Background(), f.redefine(definition)))
}

func (f *fixture) advance(d time.Duration) {
	f.t.Helper()
	f.must(f.clock.Advance(d))
}

// key is the key of the item with this partition key, which is a string, and id.
func (f *fixture) key(pk, id string) Key {
	k := value.PartitionKey{value.String(pk)}
	return Key{EPK: f.container.PartitionKey.AppendEPK(nil, k), PartitionKey: k, ID: id}
}

// item is the write of an item with partition key "k". properties come after its id and
// partition key: `"ttl":5`.
func (f *fixture) item(op Op, id, properties string) Write {
	f.t.Helper()
	text := fmt.Sprintf(`{"id":%q,"pk":"k"`, id)
	if properties != "" {
		text += "," + properties
	}
	o, err := value.ParseObject([]byte(text + "}"))
	f.must(err)
	return Write{Op: op, Key: f.key("k", id), Item: o}
}

func (f *fixture) write(w Write) (Result, error) {
	return f.p.Write(context.Background(), w)
}

// put upserts an item, and waits until its group has ended.
func (f *fixture) put(id, properties string) Result {
	f.t.Helper()
	r, err := f.write(f.item(Upsert, id, properties))
	f.must(err)
	for f.writing() {
		runtime.Gosched()
	}
	return r
}

// writing reports whether a group is under way.
func (f *fixture) writing() bool {
	f.p.mu.Lock()
	defer f.p.mu.Unlock()
	return f.p.mu.writing
}

func (f *fixture) read(id string) (Item, error) {
	return f.p.Read(nil, f.key("k", id), "", f.clock.Now())
}

// problems returns what a check reports.
func (f *fixture) problems() []string {
	f.t.Helper()
	snap, err := f.db.Snapshot()
	f.must(err)
	defer snap.Close()
	snap, err = WithoutSwept(snap)
	f.must(err)
	var found []string
	_, err = Check(snap, f.container, f.index, func() {}, func(problem string) { found = append(found, problem) })
	f.must(err)
	return found
}

func (f *fixture) checkClean() {
	f.t.Helper()
	if found := f.problems(); len(found) > 0 {
		f.t.Errorf("check: got %q, want no problem", found)
	}
}

// rows returns all rows of the partition.
func (f *fixture) rows() map[string]string {
	f.t.Helper()
	snap, err := f.db.Snapshot()
	f.must(err)
	defer snap.Close()
	rows := map[string]string{}
	prefix := partitionPrefix(f.container.RID, f.index)
	for e, err := range snap.Scan(prefix[:], kv.After(prefix[:]), kv.Forward) {
		f.must(err)
		rows[string(e.Key)] = string(e.Value)
	}
	return rows
}

// errBroken is the error of a scripted engine.
var errBroken = errors.New("the disk is on fire")

// scriptedDB is an engine whose commits do what the test's script says: it is given the
// real commit and returns its error, or another. The engine counts snapshots, gets and the
// rows of scans.
type scriptedDB struct {
	kv.DB
	script      atomic.Pointer[func(commit func() error) error]
	open        atomic.Int64 // snapshots
	noSnapshots atomic.Bool  // from now on
	gets        atomic.Int64 // rows read by Get
	scans       atomic.Int64
	scanned     atomic.Int64 // rows read by Scan
	onBatch     atomic.Pointer[func(*kv.Batch)]
	afterGet    atomic.Pointer[func()]
	onScan      atomic.Pointer[func()] // called once, at the first row of the next scan
}

func (db *scriptedDB) Snapshot() (kv.Snapshot, error) {
	if db.noSnapshots.Load() {
		return nil, errBroken
	}
	snap, err := db.DB.Snapshot()
	if err == nil {
		db.open.Add(1)
	}
	return &countedSnapshot{snap, db, sync.Once{}}, err
}

type countedSnapshot struct {
	kv.Snapshot
	db   *scriptedDB
	once sync.Once
}

// Get calls the test's function after a row was read and before it is returned.
func (s *countedSnapshot) Get(key []byte) ([]byte, bool, error) {
	s.db.gets.Add(1)
	row, found, err := s.Snapshot.Get(key)
	s.then()
	return row, found, err
}

func (s *countedSnapshot) GetInto(dst, key []byte) ([]byte, bool, error) {
	s.db.gets.Add(1)
	row, found, err := s.Snapshot.GetInto(dst, key)
	s.then()
	return row, found, err
}

func (s *countedSnapshot) then() {
	if then := s.db.afterGet.Swap(nil); then != nil {
		(*then)()
	}
}

// Scan counts the rows.
func (s *countedSnapshot) Scan(lower, upper []byte, o kv.Order) iter.Seq2[kv.Entry, error] {
	s.db.scans.Add(1)
	return func(yield func(kv.Entry, error) bool) {
		for e, err := range s.Snapshot.Scan(lower, upper, o) {
			s.db.scanned.Add(1)
			if then := s.db.onScan.Swap(nil); then != nil {
				(*then)()
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

func (s *countedSnapshot) Close() {
	s.once.Do(func() { s.db.open.Add(-1) })
	s.Snapshot.Close()
}

func (db *scriptedDB) Commit(ctx context.Context, b *kv.Batch) error {
	if look := db.onBatch.Load(); look != nil {
		(*look)(b)
	}
	commit := func() error { return db.DB.Commit(ctx, b) }
	if script := db.script.Load(); script != nil {
		return (*script)(commit)
	}
	return commit()
}

func (db *scriptedDB) play(script func(commit func() error) error) { db.script.Store(&script) }
func (db *scriptedDB) stopPlaying()                                { db.script.Store(nil) }

// gate holds commits.
type gate struct {
	entered chan struct{} // receives one for each commit that waits
	open    chan struct{} // each sent lets one commit continue
}

func newGate() *gate { return &gate{make(chan struct{}), make(chan struct{})} }

func (g *gate) wait() {
	g.entered <- struct{}{}
	<-g.open
}

// holdAfterApplying makes every commit wait with its rows in the engine already: a new
// snapshot has them, but they are not durable.
func (db *scriptedDB) holdAfterApplying() *gate {
	g := newGate()
	db.play(func(commit func() error) error {
		err := commit()
		g.wait()
		return err
	})
	return g
}

// answered is the outcome of a write that runs beside the test.
type answered struct {
	result Result
	err    error
}

// countCommits counts the commits that begin from now on.
func (db *scriptedDB) countCommits() *atomic.Int64 {
	n := new(atomic.Int64)
	db.play(func(commit func() error) error {
		n.Add(1)
		return commit()
	})
	return n
}

// queued waits until n jobs wait in the loop's queue.
func (f *fixture) queued(n int) {
	for len(f.p.queue) != n {
		runtime.Gosched()
	}
}

// start begins a write without waiting for it.
func (f *fixture) start(w Write) <-chan answered {
	done := make(chan answered, 1)
	go func() {
		r, err := f.write(w)
		done <- answered{r, err}
	}()
	return done
}

// bucketRow is the row of a counter.
func bucketRow(items, bytes int64, firstLSN uint64) []byte {
	b := bucket{Amount: Amount{items, bytes}, firstLSN: firstLSN, firstMs: 1, lastMs: 999}
	return b.append(nil)
}
