// SPDX-License-Identifier: MIT

package store

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/kv/kvtest"
	"github.com/mayflydb/mayfly/internal/kv/pebblekv"
)

const (
	crashItems = 24
	crashGroup = 4 // items of a purge
)

// Scenario 62: the machine crashes before, in and after every commit of a purge. Unsynced
// data survives in whole, in part or not at all. No live item is lost, the rows agree, the
// marks have passed no item, and every event is returned once, before or after the crash.
func TestScenario62CrashAtEveryStepOfAPurge(t *testing.T) {
	for seed := range uint64(kvtest.LongFactor(t)) {
		s := newPurgeCrash(t, seed)
		s.run()
		if len(s.crashes) < 20 {
			t.Errorf("there were %d crashes only", len(s.crashes))
		}
		for i := range s.crashes {
			s.recover(i)
		}
	}
}

// purgeCrash is a partition that is purged while the file system is cloned as a crash at
// that moment may leave it.
type purgeCrash struct {
	t        *testing.T
	fs       *vfs.MemFS
	rng      *rand.Rand
	f        *fixture
	cursor   EventKey
	returned map[uint64]bool   // items whose events were returned, by ordinal
	expired  map[uint64]bool   // expired items, by ordinal
	live     map[string]string // bodies of live, durable items
	crashes  []purgeCrashAt
}

// purgeCrashAt is the state after a crash, and what was known when it happened.
type purgeCrashAt struct {
	disk     *vfs.MemFS
	when     string
	cursor   EventKey
	returned map[uint64]bool
	live     map[string]string
	nowMs    int64
}

func purgeCrashOptions(fs vfs.FS) pebblekv.Options {
	return pebblekv.Options{Dir: "data", FS: fs, IsIndexKey: IsIndexKey, Logger: slog.New(slog.DiscardHandler), CacheBytes: 1 << 20}
}

func newPurgeCrash(t *testing.T, seed uint64) *purgeCrash {
	t.Helper()
	s := &purgeCrash{
		t: t, fs: vfs.NewCrashableMem(), rng: rand.New(rand.NewPCG(seed, 62)),
		returned: map[uint64]bool{}, expired: map[uint64]bool{}, live: map[string]string{},
	}
	db, err := pebblekv.Open(purgeCrashOptions(s.fs))
	if err != nil {
		t.Fatal(err)
	}
	s.f = makeFixture(t, db, setup{definition: withTTL("10"), nowMs: startMs})
	return s
}

// run fills the partition, and purges it with writes in between.
func (s *purgeCrash) run() {
	f := s.f
	for i := range crashItems {
		properties := []string{`"x":1`, `"ttl":10`, `"ttl":-1`, `"x":2`}[i%4]
		r := f.put(fmt.Sprint(i), properties)
		if i%4 == 2 {
			s.live[fmt.Sprint(i)] = string(r.Body)
		} else {
			s.expired[uint64(i+1)] = true
		}
	}
	f.advance(11 * time.Second)
	s.crashAroundCommits()
	for n := 0; ; n++ {
		done, err := f.p.Purge(context.Background(), Purge{MaxItems: crashGroup})
		f.must(err)
		s.crash("after the purge")
		if !done.More {
			break
		}
		if n%2 == 0 {
			s.write(fmt.Sprint("new ", n))
		}
		s.poll(f.p, s.returned, &s.cursor, 3)
		s.crash("after events")
	}
	f.db.stopPlaying()
	f.p.Close()
	f.must(f.db.Close())
}

func (s *purgeCrash) crashAroundCommits() {
	s.f.db.play(func(commit func() error) error {
		s.crash("before the commit")
		err := commit()
		s.crash("after the commit")
		return err
	})
}

// write writes a live item, which makes everything before it durable.
func (s *purgeCrash) write(id string) {
	f := s.f
	f.db.stopPlaying()
	r, err := f.write(f.item(Create, id, `"ttl":-1`))
	f.must(err)
	next := maps.Clone(s.live)
	next[id] = string(r.Body)
	s.live = next
	s.crash("after a write")
	s.crashAroundCommits()
}

// crash clones the disk.
func (s *purgeCrash) crash(when string) {
	for _, percent := range []int{0, 50, 100} {
		s.crashes = append(s.crashes, purgeCrashAt{
			disk:   s.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: s.rng}),
			when:   fmt.Sprintf("%s, with %d%% of what was not synced", when, percent),
			cursor: s.cursor, returned: maps.Clone(s.returned), live: s.live, nowMs: s.f.clock.Now(),
		})
	}
}

// poll reads a page of events, and records their items.
func (s *purgeCrash) poll(p *Partition, returned map[uint64]bool, cursor *EventKey, most int) (more bool) {
	page, err := p.Events(*cursor, most)
	s.f.must(err)
	for _, e := range page.Events {
		if returned[e.Ordinal] || !s.expired[e.Ordinal] {
			s.t.Errorf("an event of item %d, %q, which was returned %v, is expired %v", e.Ordinal, e.ID, returned[e.Ordinal], s.expired[e.Ordinal])
		}
		returned[e.Ordinal] = true
	}
	*cursor = page.Next
	return page.More
}

// recover opens the data after a crash.
func (s *purgeCrash) recover(n int) {
	c := &s.crashes[n]
	bad := func(format string, args ...any) {
		s.t.Helper()
		s.t.Errorf("crash %d, %s: %s", n, c.when, fmt.Sprintf(format, args...))
	}
	db, err := pebblekv.Open(purgeCrashOptions(c.disk))
	if err != nil {
		s.t.Fatalf("crash %d: %v", n, err)
	}
	defer func() { s.f.must(db.Close()) }()
	f := s.reopened(db, c.nowMs)
	defer func() { f.p.Close() }()
	if found := f.problems(); len(found) > 0 {
		bad("check finds %q", found)
	}
	for id, body := range c.live {
		if item, err := f.read(id); err != nil || string(item.Body) != body {
			bad("live item %s: got %s, %v", id, item.Body, err)
		}
	}
	page, err := f.p.List(context.Background(), List{MaxItems: 100, MaxBytes: 1 << 20}, f.clock.Now())
	if err != nil || page.Count != len(c.live) {
		bad("list: got %d items, %v, want %d", page.Count, err, len(c.live))
	}
	// The reader of events continues while the items are purged.
	returned, cursor := maps.Clone(c.returned), c.cursor
	for more := true; more; {
		s.poll(f.p, returned, &cursor, 5)
		done, err := f.p.Purge(context.Background(), Purge{MaxItems: crashGroup})
		f.must(err)
		more = done.More
	}
	for s.poll(f.p, returned, &cursor, 5) {
	}
	if len(returned) != len(s.expired) {
		bad("%d events were returned, want %d", len(returned), len(s.expired))
	}
	if rows := f.rowsOf(); rows[itemSpace] != len(c.live) || rows[feedSpace] != len(c.live) || rows[ownSpace] != 0 {
		bad("after the purge there are rows %v, want %d items", rows, len(c.live))
	}
	f.checkClean()
}

// reopened is the partition after a crash, as a new process opens it.
func (s *purgeCrash) reopened(db kv.DB, nowMs int64) *fixture {
	f := &fixture{t: s.t, db: &scriptedDB{DB: db}}
	var err error
	f.clock, err = clock.Open(clock.Options{
		Test: true, Save: func(clock.State) error { return nil },
		Source: func() clock.Reading { return clock.Reading{WallMs: nowMs} },
	})
	f.must(err)
	f.must(f.clock.Freeze())
	f.catalog, err = catalog.Open(db, catalog.Options{})
	f.must(err)
	f.container, err = f.catalog.Container("db", "c")
	f.must(err)
	f.open()
	return f
}
