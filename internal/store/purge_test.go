// SPDX-License-Identifier: MIT

package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/kv/kvtest"
	"github.com/mayflydb/mayfly/internal/ru"
)

// rowsOf counts the partition's rows of each kind.
func (f *fixture) rowsOf() map[byte]int {
	f.t.Helper()
	n := map[byte]int{}
	for key := range f.rows() {
		n[key[prefixBytes]]++
	}
	return n
}

// Of a purged item, only the row of its event is left.
func TestPurgeLeavesNothing(t *testing.T) {
	f := newFixture(t, strings.Replace(withUniqueKeys, `"defaultTtl":2`, `"defaultTtl":100`, 1))
	f.put("a", `"a":1,"b":[1,2,{"c":3}]`)
	f.put("b", `"a":2,"b":2,"ttl":3`)
	if rows := f.rowsOf(); rows[itemSpace] != 2 || rows[ownSpace] != 1 || rows[indexSpace] == 0 || rows[uniqueSpace] != 4 || rows[partSpace] != 1 {
		t.Fatalf("before: %v", rows)
	}
	f.advance(100 * time.Second)
	done, err := f.p.Purge(context.Background(), Purge{MaxItems: 10, Cause: ru.Sweep})
	f.must(err)
	work := f.ledger.Total(ru.Sweep)
	if done.Items != 2 || done.Units <= 0 || work.Units != done.Units || work.Items != 2 || work.Bytes != done.Bytes {
		t.Errorf("got %+v, the ledger %+v; want two items, and the same work in both", done, work)
	}
	if rows := f.rowsOf(); len(rows) != 2 || rows[eventSpace] != 2 || rows[metaSpace] != 1 {
		t.Errorf("after a purge there are rows %v, want two events and the meta row", rows)
	}
	if done, err := f.p.Purge(context.Background(), Purge{MaxItems: 10}); err != nil || done != (Purged{}) {
		t.Errorf("a purge of nothing: got %+v, %v", done, err)
	}
	if due := f.p.PurgeDue(); due < f.clock.Now()+pruneEveryMs {
		t.Errorf("with nothing but events there, purge is due at %d", due)
	}
	f.checkClean()
}

// The items that expired first are purged first, in whichever order they are found, and no
// more than asked for.
func TestPurgeTakesTheOldestFirst(t *testing.T) {
	f := newFixture(t, withTTL("100"))
	for i, ttl := range []string{"", `"ttl":103`, "", `"ttl":101`, `"ttl":-1`, `"ttl":500`} {
		f.put(fmt.Sprint(i), ttl)
		f.advance(time.Second)
	}
	// They expire at 100, 104, 102, 104, never and 505 s; it is 6 s now.
	all := []string{"0", "1", "2", "3", "4", "5"}
	for _, c := range []struct {
		seconds int
		most    int
		left    int // item rows
		more    bool
	}{
		{93, 9, 6, false}, {1, 1, 5, true}, {0, 1, 5, false}, {1, 9, 5, false}, {1, 9, 4, true}, {2, 1, 3, true}, {0, 9, 2, true}, {1000, 9, 1, true}, {0, 9, 1, false},
	} {
		if c.seconds > 0 {
			f.advance(time.Duration(c.seconds) * time.Second)
		}
		before := f.liveAmong(all...)
		if due := f.p.PurgeDue(); due > f.clock.Now() && c.more {
			t.Errorf("%d ms after the start purge is due at %d", f.clock.Now()-startMs, due-startMs)
		}
		done, err := f.p.Purge(context.Background(), Purge{MaxItems: c.most})
		f.must(err)
		if got := f.rowsOf()[itemSpace]; got != c.left || done.More != c.more || done.Items > int64(c.most) {
			t.Errorf("%d ms after the start: %d items are left, %+v; want %d, more %v", f.clock.Now()-startMs, got, done, c.left, c.more)
		}
		if after := f.liveAmong(all...); after != before {
			t.Errorf("purge has changed what lives from %q to %q", before, after)
		}
	}
	f.checkClean()
}

// While TTL is off, purge reads no row and commits nothing: it only looks for events to
// remove.
func TestPurgeWithoutTTLReadsNothing(t *testing.T) {
	f := newFixture(t, withTTL("null"))
	f.put("a", `"ttl":1`)
	f.advance(time.Hour)
	commits := f.db.countCommits()
	before := 1 + f.db.gets.Load() + f.db.scans.Load() + f.db.scanned.Load()
	done, err := f.p.Purge(context.Background(), Purge{MaxItems: 10})
	f.must(err)
	if read := f.db.gets.Load() + f.db.scans.Load() + f.db.scanned.Load() - before; read > 0 || commits.Load() != 0 || done != (Purged{}) {
		t.Errorf("got %+v, %d reads, %d commits, want none", done, read, commits.Load())
	}
	if f.p.PurgeDue() != Never {
		t.Errorf("purge is due at %d", f.p.PurgeDue())
	}
}

// Items that expired only because of a jump of the wall clock are hidden and not purged,
// and neither are items that settings made final at such a time. All others are purged.
func TestPurgeGoesByTheHorizon(t *testing.T) {
	f := newFixture(t, `{"id":"c","partitionKey":{"paths":["/pk"],"version":2},"defaultTtl":1000,"ttlFinality":true}`)
	f.put("expired", `"ttl":5`)
	f.put("hidden", `"ttl":3600`)
	f.put("final", "")
	f.p.Close()
	reading := clock.Reading{WallMs: startMs + 30*24*3_600_000} // a month later, after a reboot
	var err error
	f.clock, err = clock.Open(clock.Options{
		State:  clock.State{FloorMs: startMs + 6000},
		Save:   func(clock.State) error { return nil },
		Source: func() clock.Reading { return reading },
	})
	f.must(err)
	f.open()
	f.reconfigure(`{"id":"c","partitionKey":{"paths":["/pk"],"version":2},"defaultTtl":-1,"ttlFinality":true}`)
	if done, err := f.p.Purge(context.Background(), Purge{MaxItems: 9}); err != nil || done.Items != 1 {
		t.Errorf("after a jump: got %+v, %v, want one item gone", done, err)
	}
	for _, id := range []string{"expired", "hidden", "final"} {
		if _, err := f.read(id); !errors.Is(err, ErrNotFound) {
			t.Errorf("after a jump %s is not hidden: %v", id, err)
		}
	}
	if rows := f.rowsOf(); rows[itemSpace] != 2 {
		t.Errorf("there are %d items, want 2", rows[itemSpace])
	}
	for range 25 { // hours
		reading.WallMs += 3_600_000
		reading.MonoMs += 3_600_000
		f.clock.Now()
	}
	if done, err := f.p.Purge(context.Background(), Purge{MaxItems: 9}); err != nil || done.Items != 2 {
		t.Errorf("a day later: got %+v, %v, want all gone", done, err)
	}
	f.must(f.clock.Close())
}

// Scenario 64: an item that is rewritten has one row in each order, and purge removes rows
// without an item.
func TestScenario64StaleRows(t *testing.T) {
	f := newFixture(t, withTTL("1000"))
	for i := range 100 {
		f.put("own", fmt.Sprintf(`"ttl":%d`, 10+i))
		f.put("inherits", fmt.Sprintf(`"n":%d`, i))
		f.advance(time.Millisecond)
	}
	if rows := f.rowsOf(); rows[feedSpace] != 2 || rows[ownSpace] != 1 || rows[itemSpace] != 2 {
		t.Errorf("after 100 rewrites there are rows %v", rows)
	}
	f.checkClean()
	x := partitionPrefix(f.container.RID, 0)
	stale := [][]byte{
		x.appendOrderKey(nil, kindOwn, mark{startMs + 11_000, position{LSN: 3}}), // of an earlier version
		x.appendOrderKey(nil, kindOwn, mark{startMs + 12_000, position{LSN: 1 << 40}}),
		x.appendFeedKey(nil, position{LSN: 5}),
	}
	var b kv.Batch
	b.Set(stale[0], appendOwnRow(nil, &current{ordinal: 1, header: header{size: 1}}))
	b.Set(stale[1], appendOwnRow(nil, &current{ordinal: 77, header: header{size: 1}}))
	b.Set(stale[2], feedRowOf(&current{ordinal: 2, header: header{writtenMs: startMs}}))
	f.must(f.db.Commit(context.Background(), &b))
	f.reopen() // so that the partition reads them
	f.advance(1050 * time.Second)
	f.put("own", `"ttl":10`)
	f.put("inherits", "")
	if got := f.purgeAll(); got != 0 {
		t.Errorf("purge took %d items away", got)
	}
	rows := f.rows()
	for _, key := range stale {
		if _, found := rows[string(key)]; found {
			t.Errorf("stale row %x is still there", key)
		}
	}
	if got := f.liveAmong("own", "inherits"); got != "own inherits" {
		t.Errorf("live are %q", got)
	}
	f.checkClean()
}

// newBusyFixture is newFixture on an engine that can hold many rows, and may still be
// compacting them at the end of the test.
func newBusyFixture(t *testing.T, definition string) *fixture {
	t.Helper()
	f := makeFixture(t, inMemory(t), setup{definition: definition, nowMs: startMs})
	t.Cleanup(func() {
		f.p.Close()
		f.check(f.failures.Load() == 0, "Failed was called %d times", f.failures.Load())
		f.check(f.db.open.Load() == 0, "%d snapshots are left open", f.db.open.Load())
	})
	return f
}

// manyClients is how many goroutines createMany has.
const manyClients = 64

// createMany creates items from several goroutines, in any order.
func (f *fixture) createMany(from, to int, properties string) {
	f.t.Helper()
	var wg sync.WaitGroup
	var failed atomic.Pointer[error]
	for c := range manyClients {
		wg.Go(func() {
			for i := from + c; i < to; i += manyClients {
				if _, err := f.write(f.item(Create, fmt.Sprint(i), properties)); err != nil {
					failed.Store(&err)
				}
			}
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		f.t.Fatalf("create: %v", *err)
	}
}

// Scenario 65: many live items at the head of the feed are scanned once, and not again, not
// even after a restart.
func TestScenario65SurvivorsAreWalkedOnce(t *testing.T) {
	survivors := 4*planRows + 100
	if kvtest.LongFactor(t) > 1 {
		survivors = 500_000
	}
	f := newBusyFixture(t, withTTL("10"))
	f.createMany(0, survivors, `"ttl":-1`)
	f.advance(time.Second)
	f.put("expires", "")
	f.advance(10 * time.Second)
	first := f.scanned(func() {
		if got := f.purgeAll(); got != 1 {
			t.Errorf("purge took %d items away, want 1", got)
		}
	})
	if first < int64(survivors) {
		t.Errorf("the first walk looked at %d rows, and there are %d", first, survivors)
	}
	f.put("expires too", "")
	f.advance(10 * time.Second)
	var took time.Duration
	again := f.scanned(func() {
		begin := time.Now()
		done, err := f.p.Purge(context.Background(), Purge{MaxItems: 10})
		took = time.Since(begin)
		if err != nil || done.Items != 1 {
			t.Errorf("the next purge: got %+v, %v, want 1 item", done, err)
		}
	})
	if again > 10 {
		t.Errorf("the next purge looked at %d rows", again)
	}
	t.Logf("%d survivors: %d rows at first, then %d in %v", survivors, first, again, took)
	f.put("expires last", "")
	f.advance(10 * time.Second)
	f.reopen()
	if again := f.scanned(func() {
		if got := f.purgeAll(); got != 1 {
			t.Errorf("after a restart purge took %d items away, want 1", got)
		}
	}); again > 10 {
		t.Errorf("after a restart the next purge looked at %d rows", again)
	}
}

// A walk over live items alone makes its marks durable too.
func TestMarksOfAWalkWithoutVictims(t *testing.T) {
	const survivors = 4*planRows + 100
	f := newBusyFixture(t, withTTL("10"))
	f.createMany(0, survivors, `"ttl":-1`)
	f.advance(time.Minute)
	if got := f.purgeAll(); got != 0 {
		t.Errorf("purge took %d items away", got)
	}
	f.reopen()
	if again := f.scanned(func() { f.purgeAll() }); again > 2*planRows+10 {
		t.Errorf("after a restart %d rows are walked over again", again)
	}
}

// scanned returns how many rows a function scans.
func (f *fixture) scanned(do func()) int64 {
	before := f.db.scanned.Load()
	do()
	return f.db.scanned.Load() - before
}

// Long runs are removed by range, short ones row by row, and live items between them stay.
func TestRangeDeletes(t *testing.T) {
	for _, c := range []struct {
		name      string
		items     int
		survivors []int
		ranges    int // of items, and as many of the feed
	}{
		{"a long run", 2 * rangeRun, nil, 1},
		{"just long enough", rangeRun, nil, 1},
		{"too short", rangeRun - 1, nil, 0},
		{"two long runs", 2*rangeRun + 1, []int{rangeRun}, 2},
		{"a long and a short one", 2 * rangeRun, []int{rangeRun + 10}, 1},
		{"many short ones", 3 * rangeRun, []int{50, 100, 150, 200, 250, 300, 350}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t, withTTL("10"))
			lives := map[int]bool{}
			for _, i := range c.survivors {
				lives[i] = true
			}
			for i := range c.items {
				properties := ""
				if lives[i] {
					properties = `"ttl":-1`
				}
				f.put(fmt.Sprint(i), properties)
			}
			f.put("rewritten", "")
			f.advance(9 * time.Second)
			f.put("rewritten", "")
			f.advance(time.Second)
			ranges := map[byte]int{}
			look := func(b *kv.Batch) {
				for op := range b.Ops {
					if op.Kind == kv.OpDeleteRange {
						ranges[op.Key[prefixBytes]]++
					}
				}
			}
			f.db.onBatch.Store(&look)
			done, err := f.p.Purge(context.Background(), Purge{MaxItems: 10 * rangeRun})
			f.must(err)
			if want := int64(c.items - len(c.survivors)); done.Items != want {
				t.Errorf("purge took %d items away, want %d", done.Items, want)
			}
			common := c.ranges // all items have the same partition key
			if want := (map[byte]int{itemSpace: c.ranges, feedSpace: c.ranges, indexSpace: common}); c.ranges > 0 && !maps.Equal(ranges, want) || c.ranges == 0 && len(ranges) > 0 {
				t.Errorf("ranges by kind: got %v, want %v", ranges, want)
			}
			for i := range c.items {
				if _, err := f.read(fmt.Sprint(i)); (err == nil) != lives[i] {
					t.Errorf("item %d: got %v, want live %v", i, err, lives[i])
				}
			}
			if got := f.liveAmong("rewritten"); got == "" {
				t.Error("the item that was rewritten is gone")
			}
			f.checkClean()
		})
	}
}

// A live item may be between expired ones in one order only: in the feed, if it was
// rewritten while they were created, or among the items, if they were all rewritten and it
// was not.
func TestRangeDeletesSpareWhatLiesBetween(t *testing.T) {
	const n = 3 * rangeRun
	for name, write := range map[string]func(f *fixture){
		"in the feed": func(f *fixture) {
			f.put("lives", `"ttl":-1`)
			for i := range n {
				if f.put(fmt.Sprint(i), ""); i == n/2 {
					f.put("lives", `"ttl":-1,"again":true`)
				}
			}
		},
		"among the items": func(f *fixture) {
			for i := range n {
				if f.put(fmt.Sprint(i), ""); i == n/2 {
					f.put("lives", `"ttl":-1`)
				}
			}
			for i := range n {
				f.put(fmt.Sprint(i), `"again":true`)
			}
		},
	} {
		f := newFixture(t, withTTL("10"))
		write(f)
		f.advance(10 * time.Second)
		ranges := 0
		look := func(b *kv.Batch) {
			for op := range b.Ops {
				if op.Kind == kv.OpDeleteRange && op.Key[prefixBytes] != indexSpace {
					ranges++
				}
			}
		}
		f.db.onBatch.Store(&look)
		done, err := f.p.Purge(context.Background(), Purge{MaxItems: 2 * n})
		f.must(err)
		if done.Items != n || ranges != 4 || f.liveAmong("lives") == "" {
			t.Errorf("%s: got %+v with %d ranges, live %q; want %d items purged with 4, and one live", name, done, ranges, f.liveAmong("lives"), n)
		}
		f.checkClean()
	}
}

// The index rows of values that many items of a run have are removed by range. Items with
// the same values before, between and after the runs keep theirs.
func TestRangeDeletesOfTerms(t *testing.T) {
	const n = 5 * rangeRun
	f := newFixture(t, withTTL("10"))
	live := func(i int) bool { return i == 0 || i == 2*rangeRun || i == n-1 }
	for i := range n {
		properties := fmt.Sprintf(`"kind":"session","state":%d,"tags":["a",{"b":[]}],"number":%d`, i%3, i)
		if live(i) {
			properties += `,"ttl":-1`
		}
		f.put(fmt.Sprint(i), properties)
	}
	f.advance(10 * time.Second)
	ranges, deletes := 0, 0
	look := func(b *kv.Batch) {
		for op := range b.Ops {
			switch {
			case !IsIndexKey(op.Key):
			case op.Kind == kv.OpDeleteRange:
				ranges++
			case op.Kind == kv.OpDelete:
				deletes++
			}
		}
	}
	f.db.onBatch.Store(&look)
	done, err := f.p.Purge(context.Background(), Purge{MaxItems: n})
	f.must(err)
	if done.Items != n-3 {
		t.Errorf("purge took %d items away, want %d", done.Items, n-3)
	}
	// In each of the two runs: the partition key, the kind, three states and two tags.
	if ranges != 2*7 {
		t.Errorf("%d ranges, want 14", ranges)
	}
	// Of each item: the id and the number.
	if deletes != 2*(n-3) {
		t.Errorf("%d deletes, want %d", deletes, 2*(n-3))
	}
	f.checkClean()
}

// After a purge whose context ends before the loop takes it, purge is due again at once.
func TestPurgeThatIsCalledOff(t *testing.T) {
	f := newFixture(t, withTTL("10"))
	f.put("a", "")
	f.advance(10 * time.Second)
	g := f.db.holdAfterApplying()
	busy := f.start(f.item(Create, "b", ""))
	<-g.entered
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := f.p.Purge(ctx, Purge{MaxItems: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	f.db.stopPlaying()
	g.open <- struct{}{}
	<-busy
	if f.p.PurgeDue() > f.clock.Now() {
		t.Errorf("purge is due at %d, and it is %d", f.p.PurgeDue(), f.clock.Now())
	}
	if got := f.purgeAll(); got != 1 {
		t.Errorf("the next purge took %d items away, want 1", got)
	}
}

const (
	raceItems   = 16
	raceRewrite = 2000 // by all clients together
)

// Scenario 63: purge races against extensions while time moves. An extension that commits
// first wins. One that comes too late is refused, and the item is created again.
func TestScenario63PurgeAgainstExtension(t *testing.T) {
	f := newBusyFixture(t, withTTL("-1"))
	stop := make(chan struct{})
	var others, writers sync.WaitGroup
	others.Go(func() {
		rng := rand.New(rand.NewPCG(63, 0))
		for {
			select {
			case <-stop:
				return
			default:
				if err := f.clock.Advance(time.Duration(1+rng.IntN(120)) * time.Millisecond); err != nil {
					t.Errorf("advance: %v", err)
				}
			}
		}
	})
	var purged atomic.Int64
	others.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				done, err := f.p.Purge(context.Background(), Purge{MaxItems: 5})
				if err != nil {
					t.Errorf("purge: %v", err)
				}
				purged.Add(done.Items)
			}
		}
	})
	rewrites := raceRewrite
	if n := kvtest.LongFactor(t); n > 1 {
		rewrites = 100_000
	}
	var late atomic.Int64
	for i := range raceItems {
		writers.Go(func() { late.Add(f.extend(t, fmt.Sprint(i), rewrites/raceItems)) })
	}
	writers.Wait()
	close(stop)
	others.Wait()
	t.Logf("%d rewrites, %d too late, %d items purged", rewrites, late.Load(), purged.Load())
	if late.Load() == 0 || late.Load() == int64(rewrites) {
		t.Errorf("%d of %d extensions came too late: there was no race", late.Load(), rewrites)
	}
	f.checkClean()
	f.advance(time.Minute)
	f.purgeAll()
	if rows := f.rowsOf(); rows[itemSpace] != 0 || rows[ownSpace] != 0 || rows[indexSpace] != 0 {
		t.Errorf("at the end there are rows %v", rows)
	}
}

// extend rewrites one item again and again, each time for a second, and returns how often
// it came too late. There are no other writes to the item.
func (f *fixture) extend(t *testing.T, id string, rewrites int) (late int64) {
	const ttlMs = 1000
	var firstMs, lastMs int64 // its deadline is between them
	var rid string
	for n := range rewrites {
		before := f.clock.Now()
		op := Replace
		if rid == "" {
			op = Upsert
		}
		r, err := f.write(f.item(op, id, fmt.Sprintf(`"ttl":1,"n":%d`, n)))
		after := f.clock.Now()
		switch {
		case errors.Is(err, ErrNotFound):
			late++
			if after < firstMs {
				t.Errorf("item %s, rewrite %d: not found up to %d, but it lives to %d at least", id, n, after, firstMs)
			}
			rid = ""
			continue
		case err != nil:
			t.Errorf("item %s, rewrite %d: %v", id, n, err)
			return late
		case op == Replace && (before >= lastMs || r.Created || property(r.Body, "_rid") != rid):
			t.Errorf("item %s, rewrite %d from %d on: got %s, but it expired by %d", id, n, before, r.Body, lastMs)
		}
		rid, firstMs, lastMs = property(r.Body, "_rid"), before+ttlMs, after+ttlMs
		item, err := f.p.Read(nil, f.key("k", id), "", f.clock.Now())
		// The item was live all the time only if its deadline has not passed by now.
		if now := f.clock.Now(); now < firstMs && (err != nil || item.ETag != r.ETag) {
			t.Errorf("item %s, rewrite %d: read by %d got %v, but it lives to %d at least", id, n, now, err, firstMs)
		}
	}
	return late
}
