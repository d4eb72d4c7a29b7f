// SPDX-License-Identifier: MIT

package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/memory"
)

// A write is visible only once it is durable, though every new snapshot of the engine has
// it: while the partition has a view, after it was idle before the write, and when
// ReleaseIdle is called meanwhile.
func TestReadersSeeOnlyWhatIsDurable(t *testing.T) {
	for name, before := range map[string]func(f *fixture){
		"in use": func(f *fixture) { _, err := f.read("a"); f.must(err) },
		"idle": func(f *fixture) {
			f.p.ReleaseIdle()
			f.p.ReleaseIdle()
			f.check(f.db.open.Load() == 0, "the partition is not idle")
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, withTTL("null"))
			f.put("a", `"v":1`)
			before(f)
			g := f.db.holdAfterApplying()
			replaced := f.start(f.item(Replace, "a", `"v":2`))
			<-g.entered
			f.mustSee(`"v":1`, "during the commit")
			for range 3 {
				f.p.ReleaseIdle()
			}
			f.mustSee(`"v":1`, "after the release of what is idle")
			g.open <- struct{}{}
			if a := <-replaced; a.err != nil || a.result.LSN != 2 {
				t.Errorf("got %+v, want lsn 2", a)
			}
			f.mustSee(`"v":2`, "after the commit")

			deleted := f.start(Write{Op: Delete, Key: f.key("k", "a")})
			<-g.entered
			f.mustSee(`"v":2`, "during the commit of a delete")
			g.open <- struct{}{}
			<-deleted
			if _, err := f.read("a"); !errors.Is(err, ErrNotFound) {
				t.Errorf("after the delete: got %v, want ErrNotFound", err)
			}
		})
	}
}

// The snapshot is released after two calls without a use between them, and the next read
// takes a new one.
func TestReleaseIdle(t *testing.T) {
	f := newFixture(t, withTTL("null"))
	snapshots := func(want int64, when string) {
		t.Helper()
		if got := f.db.open.Load(); got != want {
			t.Errorf("%s: %d snapshots are open, want %d", when, got, want)
		}
	}
	snapshots(0, "after open")
	f.put("a", `"v":1`)
	snapshots(1, "after a write")
	f.p.ReleaseIdle()
	snapshots(1, "after the first call")
	f.mustSee(`"v":1`, "between two calls")
	f.p.ReleaseIdle()
	snapshots(1, "after a use and one call")
	f.p.ReleaseIdle()
	snapshots(0, "after two calls without a use")
	f.p.ReleaseIdle()
	f.mustSee(`"v":1`, "when it was idle")
	snapshots(1, "after the next use")

	v, err := f.p.acquire()
	f.must(err)
	f.p.ReleaseIdle()
	f.p.ReleaseIdle()
	snapshots(1, "while a reader holds on to it")
	f.put("a", `"v":2`)
	snapshots(2, "with a reader in the past")
	if _, body, err := f.p.item(v, 1); err != nil || property(body, "v") != "1" {
		t.Errorf("the reader in the past sees %s, %v, want v 1", body, err)
	}
	f.p.release(v)
	snapshots(1, "after that reader")
}

// inQueue puts a job into the loop's queue behind n others.
func (f *fixture) inQueue(n int, start func()) {
	f.queued(n)
	start()
	f.queued(n + 1)
}

// New settings are ordered among the writes: those before them use the old ones. Those
// behind were prepared under the old ones, and are prepared again.
func TestReconfigureOrdersWithWrites(t *testing.T) {
	f := newFixture(t, withTTL("null"))
	g := f.db.holdAfterApplying()
	first := f.start(f.item(Create, "first", ""))
	<-g.entered
	var front, behind, refused <-chan answered
	reconfigured := make(chan error, 1)
	f.inQueue(0, func() { front = f.start(f.item(Create, "front", `"ttl":0`)) })
	f.inQueue(1, func() {
		c := f.redefine(withTTL("-1"))
		go func() { reconfigured <- f.p.Reconfigure(context.Background(), c) }()
	})
	f.inQueue(2, func() { refused = f.start(f.item(Create, "refused", `"ttl":0`)) })
	f.inQueue(3, func() { behind = f.start(f.item(Create, "behind", `"ttl":5`)) })
	if got := f.p.Container().DefaultTTL; got != 0 {
		t.Errorf("settings are %d before their turn", got)
	}
	f.db.stopPlaying()
	g.open <- struct{}{}

	if a := <-first; a.err != nil || a.result.LSN != 1 {
		t.Errorf("first: got %+v", a)
	}
	if a := <-front; a.err != nil || a.result.LSN != 2 {
		t.Errorf("in front of the settings an invalid ttl is inert: got %+v", a)
	}
	f.must(<-reconfigured)
	var bad *TTLError
	if a := <-refused; !errors.As(a.err, &bad) {
		t.Errorf("behind the settings it is refused: got %+v", a)
	}
	if a := <-behind; a.err != nil || a.result.LSN != 3 {
		t.Errorf("behind: got %+v", a)
	}
	f.advance(5 * time.Second)
	for id, want := range map[string]error{"first": nil, "front": nil, "behind": ErrNotFound} {
		if _, err := f.read(id); !errors.Is(err, want) {
			t.Errorf("item %s 5 s later: got %v, want %v", id, err, want)
		}
	}
	f.checkClean()
}

// Once Reconfigure has returned, the old settings are not used any more: a write that was
// prepared before is prepared again, up to a number of times.
func TestStaleEpochs(t *testing.T) {
	f := newFixture(t, withTTL("null"))
	f.put("a", "")
	stale, err := prepare(f.item(Create, "stale", `"ttl":0`), f.p.Container(), memory.Room{})
	f.must(err)
	f.reconfigure(withTTL("-1"))
	if _, err := f.p.submit(context.Background(), &job{write: stale}); !errors.Is(err, errStale) {
		t.Errorf("a write of the old settings: got %v, want errStale", err)
	}
	if _, err := f.read("stale"); !errors.Is(err, ErrNotFound) {
		t.Errorf("it was written: %v", err)
	}

	// The writers of this partition always find other settings than its loop.
	f.p.mu.Lock()
	other := *f.p.mu.now
	other.container = f.redefine(withTTL("7"))
	f.p.mu.now = &other
	f.p.mu.Unlock()
	if _, err := f.write(f.item(Create, "busy", "")); !errors.Is(err, ErrBusy) {
		t.Errorf("settings that keep changing: got %v, want ErrBusy", err)
	}
	f.must(f.p.Reconfigure(context.Background(), f.container))
	f.put("busy", "")
	f.checkClean()
}

// Writes that wait together are one commit, and each sees those before it.
func TestGroupSeesItself(t *testing.T) {
	f := newFixture(t, withTTL("10"))
	f.put("old", "")
	g := f.db.holdAfterApplying()
	first := f.start(f.item(Create, "first", ""))
	<-g.entered
	steps := []struct {
		w       Write
		want    error
		created bool
		lsn     uint64
	}{
		{f.item(Create, "a", ""), nil, true, 3},
		{f.item(Create, "a", ""), ErrExists, false, 0},
		{f.item(Replace, "a", `"ttl":5`), nil, false, 4},
		{f.item(Upsert, "a", `"ttl":-1`), nil, false, 5},
		{Write{Op: Delete, Key: f.key("k", "a")}, nil, false, 6},
		{Write{Op: Delete, Key: f.key("k", "a")}, ErrNotFound, false, 0},
		{f.item(Replace, "a", ""), ErrNotFound, false, 0},
		{f.item(Upsert, "a", `"ttl":7`), nil, true, 7},
		{Write{Op: Delete, Key: f.key("k", "old")}, nil, false, 8},
		{f.item(Create, "old", ""), nil, true, 9},
		{f.item(Upsert, "first", ""), nil, false, 10},
	}
	done := make([]<-chan answered, len(steps))
	for i, s := range steps {
		f.inQueue(i, func() { done[i] = f.start(s.w) })
	}
	commits := f.db.countCommits()
	g.open <- struct{}{}
	<-first
	rids := map[string]bool{}
	for i, s := range steps {
		a := <-done[i]
		if !errors.Is(a.err, s.want) || a.result.Created != s.created || a.result.LSN != s.lsn {
			t.Errorf("step %d: got %+v, %v, want %v, created %v, lsn %d", i, a.result, a.err, s.want, s.created, s.lsn)
		}
		if a.result.Created {
			rid := property(a.result.Body, "_rid")
			f.check(!rids[rid], "step %d: rid %s is given twice", i, rid)
			rids[rid] = true
		}
	}
	f.check(commits.Load() == 1, "the group took %d commits, want 1", commits.Load())
	f.checkClean()
}

// Groups are limited in jobs and bytes.
func TestGroupBounds(t *testing.T) {
	for _, c := range []struct {
		name       string
		properties string
		writers    int
		commits    int64
	}{
		{"jobs", "", 2*groupJobs + 1, 3},
		{"bytes", `"pad":"` + strings.Repeat("x", groupBytes/2) + `"`, 3, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t, withTTL("null"))
			g := f.db.holdAfterApplying()
			first := f.start(f.item(Create, "first", ""))
			<-g.entered
			done := make([]<-chan answered, c.writers)
			for i := range done {
				f.inQueue(i, func() { done[i] = f.start(f.item(Create, fmt.Sprint(i), c.properties)) })
			}
			commits := f.db.countCommits()
			g.open <- struct{}{}
			<-first
			for i, d := range done {
				if a := <-d; a.err != nil || a.result.LSN != uint64(i)+2 {
					t.Errorf("write %d: got lsn %d, %v", i, a.result.LSN, a.err)
				}
			}
			f.check(commits.Load() == c.commits, "%d writes took %d commits, want %d", c.writers, commits.Load(), c.commits)
			f.checkClean()
		})
	}
}
