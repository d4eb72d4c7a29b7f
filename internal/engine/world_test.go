// SPDX-License-Identifier: MIT

package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/cluster"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/kv/kvtest"
	"github.com/mayflydb/mayfly/internal/kv/pebblekv"
	"github.com/mayflydb/mayfly/internal/kv/pgkv"
	"github.com/mayflydb/mayfly/internal/kv/pgkv/pgtest"
	"github.com/mayflydb/mayfly/internal/store"
	"github.com/mayflydb/mayfly/internal/value"
)

// startMs is when every test begins: a whole second, so that _ts gives the millisecond of
// a write while the clock moves by whole seconds.
const startMs = 1_700_000_000_000

// scriptTime is how long scripts may run: long enough for a busy machine.
const scriptTime = time.Minute

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// atStart reads clocks that stand at startMs: only a test moves the time.
func atStart() clock.Reading { return clock.Reading{WallMs: startMs} }

// world is an engine on a store in memory, with a clock that stands still.
type world struct {
	t      testing.TB
	db     kv.DB
	e      *Engine
	booted time.Time // in a bubble
}

// newWorld opens an empty world. At the end of the test it is checked and closed, and no
// goroutine may be left.
func newWorld(t testing.TB) *world {
	t.Helper()
	running := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, append(moreRunning, running)...) })
	w := &world{t: t, db: newDB(t)}
	w.open(Options{})
	t.Cleanup(w.close)
	return w
}

// close closes the world, unless it is closed.
func (w *world) close() {
	w.t.Helper()
	if w.db == nil {
		return
	}
	w.must(w.e.Close())
	w.checkClean()
	if err := w.db.Close(); err != nil && os.Getenv(lane) != "model" {
		w.t.Error(err)
	}
	w.db = nil
}

// lane is the environment variable that has the worlds of all tests be nodes of a shared
// engine: "model" for that of package kvtest, "postgres" for a server.
const lane = "MAYFLY_TEST_ENGINE"

// moreLanes open stores on engines of other modules, and moreRunning ignores what their clients
// leave running. A module adds a file to this package when it runs the tests.
var (
	moreLanes   = map[string]func(t testing.TB) (kv.DB, error){}
	moreRunning []goleak.Option
)

// newDB returns an empty store of the lane.
func newDB(t testing.TB) kv.DB {
	t.Helper()
	var db kv.DB
	var err error
	switch os.Getenv(lane) {
	case "model":
		db = standing{kvtest.NewModel()}
	case "postgres":
		db, err = pgkv.Open(t.Context(), pgkv.Options{URL: pgtest.New(t), Logger: quiet()})
		db = standing{db}
	default:
		if open := moreLanes[os.Getenv(lane)]; open != nil {
			db, err = open(t)
			db = standing{db}
			break
		}
		db, err = pebblekv.OpenMemory(pebblekv.Options{Logger: quiet()})
	}
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// standing is a store whose clock stands at startMs, less the ten milliseconds ahead of it
// at which a shared clock is frozen.
type standing struct{ kv.DB }

func (s standing) Look(ctx context.Context, keys ...[]byte) ([][]byte, int64, error) {
	values, _, err := s.DB.Look(ctx, keys...)
	return values, startMs - 10, err
}

// alone skips a test that is about an engine of its own, or that needs a bubble, in the other
// lanes.
func alone(t testing.TB) {
	t.Helper()
	if os.Getenv(lane) != "" {
		t.Skip("not on a shared engine")
	}
}

func (w *world) open(o Options) {
	w.t.Helper()
	o.DB, o.TestClock, o.ClockSource, o.Explain = w.db, true, atStart, testExplain
	if os.Getenv(lane) != "" {
		o.Cluster = &cluster.Options{Name: "a", Address: "http://a"}
	}
	o.ScriptTime = cmp.Or(o.ScriptTime, scriptTime)
	var err error
	w.e, err = Open(o)
	w.must(err)
	w.must(w.e.Clock().Freeze())
}

func (w *world) reopen(o Options) {
	w.t.Helper()
	w.must(w.e.Close())
	w.open(o)
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatalf("unexpected error: %v", err)
	}
}

// checkClean checks all rows.
func (w *world) checkClean() {
	w.t.Helper()
	_, err := Check(w.db, nil, func(problem string) { w.t.Errorf("check: %s", problem) })
	w.must(err)
}

func (w *world) advance(d time.Duration) {
	w.t.Helper()
	w.must(w.e.Clock().Advance(d))
}

func (w *world) database(name string) *catalog.Database {
	w.t.Helper()
	d, err := w.e.CreateDatabase(context.Background(), fmt.Appendf(nil, `{"id":%q}`, name), catalog.Throughput{})
	w.must(err)
	return d
}

// definition returns a container with partition key /pk; ttl is JSON.
func definition(name, ttl string) []byte {
	return fmt.Appendf(nil, `{"id":%q,"partitionKey":{"paths":["/pk"],"version":2},"defaultTtl":%s}`, name, ttl)
}

// partitions returns the throughput that makes this many.
func partitions(n int) catalog.Throughput {
	if n == 1 {
		return catalog.Throughput{}
	}
	return catalog.Throughput{Manual: n * 6_000}
}

// container creates a container in database "d", and the database if necessary.
func (w *world) container(name, ttl string, n int) *catalog.Container {
	w.t.Helper()
	if _, err := w.e.catalog.Database("d"); err != nil {
		w.database("d")
	}
	c, err := w.e.CreateContainer(context.Background(), "d", definition(name, ttl), partitions(n))
	w.must(err)
	if len(c.Ranges) != n {
		w.t.Fatalf("container %s has %d partitions, want %d", name, len(c.Ranges), n)
	}
	return c
}

func (w *world) replace(name, ttl string) *catalog.Container {
	w.t.Helper()
	c, err := w.e.ReplaceContainer(context.Background(), "d", name, definition(name, ttl), "")
	w.must(err)
	return c
}

// item returns the target of an item of a container of database "d".
func item(container, pk, id string) Target {
	key, err := json.Marshal([]string{pk})
	if err != nil {
		panic(err)
	}
	return Target{Database: "d", Container: container, ID: id, PartitionKey: string(key)}
}

// body returns an item with more properties, such as `"ttl":5`.
func body(pk, id, properties string) []byte {
	b := fmt.Appendf(nil, `{"id":%q,"pk":%q`, id, pk)
	if properties != "" {
		b = append(append(b, ','), properties...)
	}
	return append(b, '}')
}

func (w *world) write(op store.Op, container, pk, id, properties string) (Answer, error) {
	r := &Request{Target: item(container, pk, id), Op: op}
	if op != store.Delete {
		r.Body = body(pk, id, properties)
	}
	return again(func() (Answer, error) { return w.e.WriteItem(context.Background(), r) })
}

// again repeats a request as package api does.
func again(do func() (Answer, error)) (Answer, error) {
	for attempts := (Attempts{}); ; {
		a, err := do()
		if !attempts.Again(&err) {
			return a, err
		}
	}
}

// put upserts an item.
func (w *world) put(container, pk, id, properties string) Answer {
	w.t.Helper()
	r, err := w.write(store.Upsert, container, pk, id, properties)
	w.must(err)
	return r
}

func (w *world) read(container, pk, id string) (Answer, error) {
	return again(func() (Answer, error) { return w.e.ReadItem(&Request{Target: item(container, pk, id)}) })
}

func (w *world) list(container string, most int) (Answer, error) {
	return again(func() (Answer, error) {
		return w.e.ListItems(context.Background(), &Request{Target: Target{Database: "d", Container: container}, MaxItems: most})
	})
}

// spread returns a partition key for each of a container's partitions, in their order.
func spread(c *catalog.Container) []string {
	keys := make([]string, len(c.Ranges))
	for i, missing := 0, len(keys); missing > 0; i++ {
		pk := fmt.Sprint("key ", i)
		if p := c.Partition(c.PartitionKey.AppendEPK(nil, value.PartitionKey{value.String(pk)})); keys[p] == "" {
			keys[p] = pk
			missing--
		}
	}
	return keys
}

// partitionRows counts the rows of partitions, by the rid of their container.
func (w *world) partitionRows() map[string]int {
	w.t.Helper()
	snap, err := w.db.Snapshot()
	w.must(err)
	defer snap.Close()
	rows := map[string]int{}
	for e, err := range snap.Scan([]byte("p"), []byte("q"), kv.Forward) {
		w.must(err)
		rows[string(e.Key[1:9])]++
	}
	return rows
}

// rowsOf returns how many rows a container has.
func (w *world) rowsOf(c *catalog.Container) int {
	w.t.Helper()
	rid := []byte{
		0, 0, byte(c.RID.Database >> 8), byte(c.RID.Database), 0, 0, byte(c.RID.Container >> 8), byte(c.RID.Container),
	}
	if w.db.Far() {
		_, err := w.e.sweep(context.Background())
		w.must(err)
	}
	return w.partitionRows()[string(rid)]
}
