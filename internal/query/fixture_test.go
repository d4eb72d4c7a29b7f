// SPDX-License-Identifier: MIT

package query

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/kv/pebblekv"
	"github.com/mayflydb/mayfly/internal/sql"
	"github.com/mayflydb/mayfly/internal/sql/syntax"
	"github.com/mayflydb/mayfly/internal/store"
	"github.com/mayflydb/mayfly/internal/value"
)

// startMs is when every test begins.
const startMs = 1_700_000_000_000

// fixture is one partition of one container, under a clock that stands still unless
// the test moves it.
type fixture struct {
	t         rapid.TB
	db        kv.DB
	clock     *clock.Clock
	catalog   *catalog.Catalog
	container *catalog.Container
	p         *store.Partition
}

// newFixture opens the partition of a container with these members of its
// definition: `"defaultTtl":-1`.
func newFixture(t testing.TB, members string) *fixture {
	t.Helper()
	f := newWorld(t, inMemory(t))
	f.create("c", members)
	t.Cleanup(func() { f.p.Close() })
	return f
}

func inMemory(t testing.TB) kv.DB {
	t.Helper()
	db, err := pebblekv.OpenMemory(pebblekv.Options{IsIndexKey: store.IsIndexKey, Logger: slog.New(slog.DiscardHandler)})
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

// newWorld is a fixture without a container.
func newWorld(t rapid.TB, db kv.DB) *fixture {
	t.Helper()
	f := &fixture{t: t, db: db}
	var err error
	f.clock, err = clock.Open(clock.Options{
		Test:   true,
		Save:   func(clock.State) error { return nil },
		Source: func() clock.Reading { return clock.Reading{WallMs: startMs} },
	})
	f.must(err)
	f.must(f.clock.Freeze())
	f.catalog, err = catalog.Open(db, catalog.Options{})
	f.must(err)
	f.keep(catalog.Write{Address: catalog.Address{Kind: catalog.Databases}, Body: []byte(`{"id":"db"}`)})
	return f
}

// keep writes a resource of the catalog.
func (f *fixture) keep(w catalog.Write) catalog.Any {
	f.t.Helper()
	w.NowMs = f.clock.Now()
	r, _, err := f.catalog.Write(context.Background(), w)
	if err != nil {
		f.t.Fatalf("%s: %v", w.Body, err)
	}
	return r
}

// embeddings names the paths that a policy may index vectors at.
const embeddings = `{"vectorEmbeddings":[` +
	`{"path":"/v","dataType":"float32","dimensions":2,"distanceFunction":"cosine"},` +
	`{"path":"/vec","dataType":"float32","dimensions":3,"distanceFunction":"cosine"},` +
	`{"path":"/arr","dataType":"float32","dimensions":3,"distanceFunction":"cosine"}]}`

func definition(id, members string) []byte {
	text := fmt.Sprintf(`{"id":%q`, id)
	if !strings.Contains(members, "partitionKey") {
		text += `,"partitionKey":{"paths":["/pk"],"version":2}`
	}
	if !strings.Contains(members, "vectorEmbeddingPolicy") {
		text += `,"vectorEmbeddingPolicy":` + embeddings
	}
	if members != "" {
		text += "," + members
	}
	return []byte(text + "}")
}

// create makes a container and opens its partition. The caller closes it.
func (f *fixture) create(id, members string) {
	f.t.Helper()
	at := catalog.Address{Kind: catalog.Containers, Database: "db"}
	f.container = f.keep(catalog.Write{Address: at, Body: definition(id, members)}).(*catalog.Container)
	f.open()
}

func (f *fixture) open() {
	f.t.Helper()
	var err error
	f.p, err = store.Open(store.Options{
		DB: f.db, Clock: f.clock, Container: f.container, Cache: store.NewCacheBudget(store.CacheSizes{IndexRows: 1 << 20, ItemRows: 1 << 20}),
		Failed: func(err error) { f.t.Errorf("a commit failed: %v", err) },
	})
	f.must(err)
}

func (f *fixture) reopen() {
	f.t.Helper()
	f.p.Close()
	f.open()
}

// reconfigure gives the container other settings.
func (f *fixture) reconfigure(members string) {
	f.t.Helper()
	at := catalog.Address{Kind: catalog.Containers, Database: "db", ID: f.container.ID}
	w := catalog.Write{Address: at, Mode: catalog.Replace, Body: definition(at.ID, members)}
	f.container = f.keep(w).(*catalog.Container)
	f.must(f.p.Reconfigure(context.Background(), f.container))
}

// reindex rebuilds the index to its end, a few items at a time.
func (f *fixture) reindex(most int) {
	f.t.Helper()
	for more := true; more; {
		var err error
		_, more, err = f.p.Reindex(context.Background(), most)
		f.must(err)
	}
}

func (f *fixture) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatalf("unexpected error: %v", err)
	}
}

func (f *fixture) advance(d time.Duration) {
	f.t.Helper()
	f.must(f.clock.Advance(d))
}

func (f *fixture) logical(pk string) *store.LogicalPartition {
	return f.under(value.PartitionKey{value.String(pk)})
}

// under is the logical partition of a key, or all that begin with it.
func (f *fixture) under(k value.PartitionKey) *store.LogicalPartition {
	paths := f.container.PartitionKey.Paths
	return &store.LogicalPartition{EPK: f.container.PartitionKey.AppendEPK(nil, k), PartitionKey: k, Prefix: len(k) < len(paths)}
}

func (f *fixture) key(pk, id string) store.Key { return keyIn(f.logical(pk), id) }

func keyIn(l *store.LogicalPartition, id string) store.Key {
	return store.Key{EPK: l.EPK, PartitionKey: l.PartitionKey, ID: id}
}

// put writes an item with these members beside its partition key and id, and
// returns it as a read does.
func (f *fixture) put(pk, id, members string) []byte {
	f.t.Helper()
	return f.putAs(f.key(pk, id), itemText(pk, id, members))
}

// putAs writes an item under any key.
func (f *fixture) putAs(k store.Key, item []byte) []byte {
	f.t.Helper()
	o, err := value.ParseObject(item)
	f.must(err)
	r, err := f.p.Write(context.Background(), store.Write{Op: store.Upsert, Key: k, Item: o})
	f.must(err)
	return r.Body
}

// writers is how many write at once where a test needs many items.
const writers = 64

// fillWith writes many items with partition key k, whose members are given by number.
func (f *fixture) fillWith(items int, members func(i int) string) {
	f.t.Helper()
	f.fillUnder(func(int) string { return "k" }, items, members)
}

// fillUnder is fillWith under partition keys.
func (f *fixture) fillUnder(pk func(i int) string, items int, members func(i int) string) {
	f.t.Helper()
	var wait sync.WaitGroup
	for w := range writers {
		wait.Go(func() {
			for i := w; i < items; i += writers {
				f.put(pk(i), strconv.Itoa(i), members(i))
			}
		})
	}
	wait.Wait()
}

func itemText(pk, id, members string) []byte {
	text := fmt.Sprintf(`{"id":%q,"pk":%q`, id, pk)
	if members != "" {
		text += "," + members
	}
	return []byte(text + "}")
}

func (f *fixture) remove(pk, id string) {
	f.t.Helper()
	_, err := f.p.Write(context.Background(), store.Write{Op: store.Delete, Key: f.key(pk, id)})
	f.must(err)
}

// purge takes away all that has expired.
func (f *fixture) purge() {
	f.t.Helper()
	for more := true; more; {
		done, err := f.p.Purge(context.Background(), store.Purge{MaxItems: 100})
		f.must(err)
		more = done.More
	}
}

// checkRows compares all rows of the partition with its items.
func (f *fixture) checkRows() {
	f.t.Helper()
	snap, err := f.db.Snapshot()
	f.must(err)
	defer snap.Close()
	_, err = store.Check(snap, f.container, 0, func() {}, func(problem string) { f.t.Errorf("check: %s", problem) })
	f.must(err)
}

func compile(t rapid.TB, text string) *sql.Program {
	t.Helper()
	return compileWith(t, text, sql.CompileOptions{})
}

func compileWith(t rapid.TB, text string, o sql.CompileOptions) *sql.Program {
	t.Helper()
	q, err := syntax.Parse(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	p, err := sql.Compile(q, o)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return p
}

func noTime() time.Duration { return 0 }

func half() float64 { return 0.5 }

// request asks for the first page of a query, of any size.
func (f *fixture) request(text string) Request {
	f.t.Helper()
	return Request{
		Program: compile(f.t, text), Partition: f.p, NowMs: f.clock.Now(),
		MaxRows: 1000, MaxBytes: 4 << 20, Elapsed: noTime, Random: half,
	}
}

// page runs a request.
func (f *fixture) page(q Request) Page {
	f.t.Helper()
	page, err := Run(context.Background(), q)
	f.must(err)
	return page
}

// maxPages is more than any test needs.
const maxPages = 10_000

// all returns the rows of all pages.
func (f *fixture) all(q Request) []string {
	f.t.Helper()
	var rows []string
	for range maxPages {
		page := f.page(q)
		rows = append(rows, rowsOf(f.t, page)...)
		if q.Token = page.Token; q.Token == "" {
			return rows
		}
	}
	f.t.Fatalf("%s: more than %d pages", q.Program.Query(), maxPages)
	return nil
}

// query returns the rows of a query.
func (f *fixture) query(text string) []string {
	f.t.Helper()
	return f.all(f.request(text))
}

// rowsOf takes a page apart, and checks that it is one.
func rowsOf(t rapid.TB, page Page) []string {
	t.Helper()
	var raw []json.RawMessage
	if err := json.Unmarshal(slices.Concat([]byte("["), page.Rows, []byte("]")), &raw); err != nil {
		t.Fatalf("rows %s: %v", page.Rows, err)
	}
	if len(raw) != page.Count {
		t.Errorf("the page says that it has %d rows and has %d", page.Count, len(raw))
	}
	rows := make([]string, len(raw))
	for i, r := range raw {
		rows[i] = string(r)
	}
	return rows
}

func (f *fixture) expect(text string, want ...string) {
	f.t.Helper()
	if got := f.query(text); !slices.Equal(got, want) {
		f.t.Errorf("%s:\ngot  %q\nwant %q", text, got, want)
	}
}

func (f *fixture) context() context.Context { return noContext }

var noContext = context.Background()
