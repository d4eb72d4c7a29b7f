// SPDX-License-Identifier: MIT

package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/kv/kvtest"
	"github.com/mayflydb/mayfly/internal/ru"
	"github.com/mayflydb/mayfly/internal/store"
)

const (
	secondMs = int64(1000)
	hourMs   = 3600 * secondMs
)

// wronged is a database on a machine whose clock is wrong, and the truth: what was
// written when, in real time.
type wronged struct {
	*rapid.T
	// machine guards the two times, since the clock also reads them in the background.
	machine sync.Mutex
	db      kv.DB
	e       *Engine
	realMs  int64
	leadMs  int64 // of the wall clock
	jumps   int
	// retention is the server's, which a rewind does not know.
	retention time.Duration
	items     map[string]truth
}

// truth is an item as it should be. Its life is in real time.
type truth struct {
	container, id string
	writtenMs     int64
	leadMs        int64 // of the wall clock, at the write
	ttlMs         int64 // 0 for no expiry
	atMs          int64 // the deadline that it names, by any clock; 0 for none
	n             int
}

// visible reports whether the database shows the item, by its wrong time, and live whether
// it should.
func (w *wronged) visible(i truth) bool {
	if i.atMs != 0 {
		return i.atMs > w.realMs+w.leadMs
	}
	return i.ttlMs == 0 || i.writtenMs+i.leadMs+i.ttlMs > w.realMs+w.leadMs
}
func (w *wronged) live(i truth) bool {
	if i.atMs != 0 {
		return i.atMs > w.realMs
	}
	return i.ttlMs == 0 || i.writtenMs+i.ttlMs > w.realMs
}

func (w *wronged) source() clock.Reading {
	w.machine.Lock()
	defer w.machine.Unlock()
	return clock.Reading{WallMs: w.realMs + w.leadMs, MonoMs: w.realMs - startMs}
}
func (w *wronged) boot() clock.Boot {
	return clock.Boot{ID: "only", Ms: w.source().MonoMs}
}

// turn advances real time, and changes the wall clock's lead.
func (w *wronged) turn(byMs, leadMs int64) {
	w.machine.Lock()
	defer w.machine.Unlock()
	w.realMs += byMs
	w.leadMs += leadMs
}

func (w *wronged) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatalf("%v", err)
	}
}

func (w *wronged) open() {
	w.Helper()
	e, err := Open(Options{DB: w.db, ClockSource: w.source, ClockBoot: w.boot, PurgePaused: true, Retention: w.retention})
	w.must(err)
	w.e = e
}

// wrongContainers are of every kind that matters to a rewind, with their default TTL.
var wrongContainers = map[string]struct {
	definition string
	partitions int
	ttlMs      int64
}{
	"own":  {`"defaultTtl":-1`, 1, 0},
	"many": {`"defaultTtl":100`, 3, 100 * secondMs},
	"log":  {`"defaultTtl":1000,"changeFeedPolicy":{"retentionDuration":1440}`, 1, 1000 * secondMs},
	"ends": {`"defaultTtl":100,"expireAtPath":"/at"`, 1, 100 * secondMs},
	"text": {`"defaultTtl":50,"fullTextPolicy":{"paths":[{"path":"/pk","language":"en-US"}]},"indexingPolicy":{"fullTextIndexes":[{"path":"/pk"}]}`, 1, 50 * secondMs},
}

func (w *wronged) create() {
	_, err := w.e.CreateDatabase(context.Background(), []byte(`{"id":"d"}`), catalog.Throughput{})
	w.must(err)
	for _, name := range slices.Sorted(maps.Keys(wrongContainers)) {
		c := wrongContainers[name]
		def := fmt.Appendf(nil, `{"id":%q,"partitionKey":{"paths":["/pk"],"version":2},%s}`, name, c.definition)
		_, err := w.e.CreateContainer(context.Background(), "d", def, partitions(c.partitions))
		w.must(err)
	}
}

func (w *wronged) drawKey(t *rapid.T) (container, id string) {
	container = rapid.SampledFrom(slices.Sorted(maps.Keys(wrongContainers))).Draw(t, "container")
	return container, fmt.Sprint(rapid.IntRange(0, 11).Draw(t, "id"))
}

func (w *wronged) put(t *rapid.T) {
	container, id := w.drawKey(t)
	i := truth{container: container, id: id, writtenMs: w.realMs, leadMs: w.leadMs, ttlMs: wrongContainers[container].ttlMs}
	i.n = w.items[container+id].n + 1
	properties := fmt.Sprintf(`"n":%d`, i.n)
	if ttl := rapid.SampledFrom([]int64{0, 2, 20, 200, 5000}).Draw(t, "ttl"); ttl > 0 {
		i.ttlMs = ttl * secondMs
		properties += fmt.Sprintf(`,"ttl":%d`, ttl)
	}
	if container == "ends" && rapid.Bool().Draw(t, "names its deadline") {
		in := rapid.SampledFrom([]int64{1, 20, 200, 5000, 80_000}).Draw(t, "in")
		i.atMs = ((w.realMs+w.leadMs)/secondMs + in) * secondMs
		properties += fmt.Sprintf(`,"at":%d`, i.atMs/secondMs)
	}
	_, err := w.e.WriteItem(context.Background(), &Request{Target: item(container, id, id), Op: store.Upsert, Body: body(id, id, properties)})
	w.must(err)
	w.items[container+id] = i
}

// touch reads an item and restarts its countdown.
func (w *wronged) touch(t *rapid.T) {
	container, id := w.drawKey(t)
	i, known := w.items[container+id]
	got, err := w.e.ReadItem(&Request{Target: item(container, id, id), SlidingTTL: "0"})
	if !known || !w.visible(i) {
		if !errors.Is(err, store.ErrNotFound) {
			t.Fatalf("read %s: %v, though it is not there", id, err)
		}
		return
	}
	w.must(err)
	if got.Charge > ru.Read(len(got.Body)) {
		i.writtenMs, i.leadMs = w.realMs, w.leadMs
		w.items[container+id] = i
	}
}

func (w *wronged) remove(t *rapid.T) {
	container, id := w.drawKey(t)
	i, known := w.items[container+id]
	_, err := w.e.WriteItem(context.Background(), &Request{Target: item(container, id, id), Op: store.Delete})
	if known && w.visible(i) {
		w.must(err)
		delete(w.items, container+id)
	} else if !errors.Is(err, store.ErrNotFound) { // hidden items stay
		t.Fatalf("delete %s: %v, though it is not there", id, err)
	}
}

func (w *wronged) pass(t *rapid.T) {
	w.turn(rapid.Int64Range(1, 40).Draw(t, "seconds")*secondMs, 0)
}

// jump jumps no more often than the clock remembers: forgotten jumps make lives longer.
func (w *wronged) jump(t *rapid.T) {
	if w.jumps++; w.jumps > clock.MaxJumps {
		return
	}
	w.e.Clock().Now()
	w.turn(0, rapid.SampledFrom([]int64{30 * secondMs, hourMs, 20 * hourMs}).Draw(t, "jump"))
	w.e.Clock().Now()
}

// tell purges, and reads the log: these cannot be undone.
func (w *wronged) tell(t *rapid.T) {
	_, err := w.e.PurgeNow(context.Background(), nil)
	w.must(err)
	for name := range wrongContainers {
		c, err := w.e.catalog.Container("d", name)
		w.must(err)
		for i := range c.Ranges {
			p, err := w.e.partition(c, i)
			w.must(err)
			w.must(p.LogExpired(context.Background(), w.e.Clock().Now()))
		}
	}
}

func (w *wronged) restart(*rapid.T) {
	w.must(w.e.Close())
	w.open()
}

// holds compares the database with the truth.
func (w *wronged) holds(shown func(truth) bool) {
	for key, i := range w.items {
		got, err := w.e.ReadItem(&Request{Target: item(i.container, i.id, i.id)})
		switch want := shown(i); {
		case want && err != nil:
			w.Fatalf("%s, %+v, in real time %d: %v", key, i, w.realMs, err)
		case !want && !errors.Is(err, store.ErrNotFound):
			w.Fatalf("%s, %+v, in real time %d is there: %v", key, i, w.realMs, err)
		case want && !bytes.Contains(got.Body, fmt.Appendf(nil, `"n":%d,`, i.n)):
			w.Fatalf("%s is %s, want version %d", key, got.Body, i.n)
		}
	}
}

// rowsIn returns all rows of a database.
func rowsIn(db kv.DB) (map[string]string, error) {
	snap, err := db.Snapshot()
	if err != nil {
		return nil, err
	}
	defer snap.Close()
	rows := map[string]string{}
	for e, err := range snap.Scan([]byte{0}, []byte{0xff}, kv.Forward) {
		if err != nil {
			return nil, err
		}
		rows[string(e.Key)] = string(e.Value)
	}
	return rows, nil
}

func (w *wronged) copyOf(db kv.DB) kv.DB {
	rows, err := rowsIn(db)
	w.must(err)
	fresh := kvtest.NewModel()
	var b kv.Batch
	for key, value := range rows {
		b.Set([]byte(key), []byte(value))
	}
	w.must(fresh.Commit(context.Background(), &b))
	return fresh
}

// cutDB fails after some commits, as if it lost power.
type cutDB struct {
	kv.DB
	left int
}

var errCut = errors.New("the power is gone")

func (c *cutDB) Commit(ctx context.Context, b *kv.Batch) error {
	if c.left == 0 {
		return errCut
	}
	c.left--
	return c.DB.Commit(ctx, b)
}

func (w *wronged) rewind(db kv.DB) error {
	_, err := Rewind(context.Background(), RewindOptions{DB: db, ClockSource: w.source, ClockBoot: w.boot, rows: 3})
	return err
}

// interrupted interrupts a rewind, and runs it again.
func (w *wronged) interrupted(t *rapid.T, db kv.DB, want map[string]string) {
	cut := &cutDB{db, rapid.IntRange(0, 60).Draw(t, "commits")}
	for range 100 { // each continues where the one before stopped
		err := w.rewind(cut)
		if err == nil {
			break
		}
		if !errors.Is(err, errCut) && !errors.Is(err, store.ErrFailed) {
			t.Fatalf("rewind: %v", err)
		}
		if cut.left == 0 && rapid.Bool().Draw(t, "look") {
			if _, err := Check(db, nil, func(string) {}); err != nil && !errors.Is(err, clock.ErrRewinding) {
				t.Fatalf("check in the middle of a rewind: %v", err)
			}
		}
		cut.left = rapid.IntRange(1, 40).Draw(t, "more commits")
	}
	got, err := rowsIn(db)
	w.must(err)
	for key, value := range want {
		if got[key] != value {
			t.Fatalf("row %x is %x after interruptions, and %x without", key, got[key], value)
		}
	}
	if len(got) != len(want) {
		t.Fatalf("there are %d rows after interruptions, and %d without", len(got), len(want))
	}
}

// A rewind restores items that only the wrong time had hidden and no write replaced, and
// each item keeps the rest of its life. All rows are consistent afterwards, and
// interruptions make no difference.
func TestRewind(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &wronged{T: t, db: kvtest.NewModel(), realMs: startMs, items: map[string]truth{}}
		w.retention = rapid.SampledFrom([]time.Duration{0, 24 * time.Hour}).Draw(t, "retention")
		w.open()
		w.create()
		t.Repeat(map[string]func(*rapid.T){
			"":        func(*rapid.T) { w.holds(w.visible) },
			"put":     w.put,
			"put2":    w.put,
			"put3":    w.put,
			"remove":  w.remove,
			"touch":   w.touch,
			"touch2":  w.touch,
			"pass":    w.pass,
			"jump":    w.jump,
			"tell":    w.tell,
			"restart": w.restart,
		})
		w.must(w.e.Close())
		aheadMs := w.leadMs
		w.turn(500, -w.leadMs) // no deadline is at this moment
		before := w.copyOf(w.db)
		err := w.rewind(w.db)
		if aheadMs == 0 {
			if !errors.Is(err, clock.ErrNotAhead) {
				t.Fatalf("rewind of a clock that is right: %v", err)
			}
			return
		}
		w.must(err)
		want, err := rowsIn(w.db)
		w.must(err)
		w.interrupted(t, before, want)
		w.open()
		w.holds(w.live)
		for range 3 {
			w.pass(t)
			w.tell(t)
			w.holds(w.live)
		}
		w.must(w.e.Close())
		_, err = Check(w.db, nil, func(problem string) { t.Errorf("%s", problem) })
		w.must(err)
	})
}

// During a rewind the data cannot be opened, and the message says what to do.
func TestNothingOpensInTheMiddleOfARewind(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &wronged{T: t, db: kvtest.NewModel(), realMs: startMs, items: map[string]truth{}}
		w.open()
		w.create()
		w.put(t)
		w.jump(t)
		w.put(t)
		w.must(w.e.Close())
		w.turn(0, -w.leadMs)
		if err := w.rewind(&cutDB{w.db, rapid.IntRange(1, 10).Draw(t, "commits")}); err == nil {
			t.Fatal("it was not interrupted")
		}
		if _, err := Open(Options{DB: w.db, ClockSource: w.source, ClockBoot: w.boot}); !errors.Is(err, clock.ErrRewinding) {
			t.Fatalf("open: %v", err)
		}
		w.turn(hourMs, 0) // at any later time
		w.must(w.rewind(w.db))
		w.open()
		w.must(w.e.Close())
	})
}
