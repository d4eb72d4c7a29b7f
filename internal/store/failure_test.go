// SPDX-License-Identifier: MIT

package store

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

// failing makes the next commit fail, after it was held at the gate. apply decides whether
// its rows are in the engine by then.
func (db *scriptedDB) failing(apply func(commit func() error)) *gate {
	g := newGate()
	db.play(func(commit func() error) error {
		apply(commit)
		g.wait()
		return errBroken
	})
	return g
}

// A commit has an unknown outcome. No job of its group succeeds, no job behind it is
// executed, and readers keep their state, though a new snapshot of the engine may have the
// failed commit's rows.
func TestFailedCommit(t *testing.T) {
	for name, apply := range map[string]func(commit func() error){
		"that did nothing":     func(func() error) {},
		"that did all of it":   func(commit func() error) { _ = commit() },
		"after idle snapshots": func(commit func() error) { _ = commit() },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, withTTL("null"))
			f.expected = 1
			f.put("a", `"v":1`)
			if name == "after idle snapshots" {
				f.p.ReleaseIdle()
				f.p.ReleaseIdle()
			}
			g := f.db.failing(apply)
			first := f.start(f.item(Upsert, "a", `"v":2`))
			<-g.entered
			var behind []<-chan answered
			for i := range 5 {
				behind = append(behind, f.start(f.item(Create, fmt.Sprint("b", i), "")))
			}
			f.queued(5)
			f.mustSee(`"v":1`, "while the commit is under way")
			g.open <- struct{}{}

			if a := <-first; !errors.Is(a.err, ErrFailed) || !errors.Is(a.err, errBroken) || a.result.Body != nil {
				t.Errorf("the write that failed: got %+v, want ErrFailed with its cause", a)
			}
			for _, b := range behind {
				if a := <-b; !errors.Is(a.err, ErrFailed) || a.result.Body != nil {
					t.Errorf("a write behind it: got %+v, want ErrFailed", a)
				}
			}
			f.db.stopPlaying()
			for range 3 {
				if _, err := f.write(f.item(Upsert, "a", "")); !errors.Is(err, ErrFailed) && !errors.Is(err, ErrClosed) {
					t.Errorf("a later write: got %v, want ErrFailed or ErrClosed", err)
				}
				if err := f.p.Reconfigure(context.Background(), f.container); !errors.Is(err, ErrFailed) && !errors.Is(err, ErrClosed) {
					t.Errorf("later settings: got %v, want ErrFailed or ErrClosed", err)
				}
			}
			for range 3 {
				f.mustSee(`"v":1`, "after the failure")
				f.p.ReleaseIdle()
				f.p.ReleaseIdle()
			}
			f.p.Close()
			if _, err := f.read("a"); !errors.Is(err, ErrClosed) {
				t.Errorf("read after close: got %v, want ErrClosed", err)
			}
			f.open()
			f.checkClean()
			f.put("a", `"v":3`)
			f.mustSee(`"v":3`, "opened again")
		})
	}
}

// mustSee checks what a read, a list and a list of its partition key return of the one item
// "a".
func (f *fixture) mustSee(property, when string) {
	f.t.Helper()
	want := `{"id":"a","pk":"k",` + property + `,"_rid"`
	shows := func(what string, body []byte, err error) {
		f.t.Helper()
		f.check(err == nil && len(body) > len(want) && string(body[:len(want)]) == want, "%s %s: got %s, %v, want %s", what, when, body, err, property)
	}
	item, err := f.read("a")
	shows("read", item.Body, err)
	k := f.key("k", "")
	for what, within := range map[string]*LogicalPartition{"list": nil, "list of a partition key": {EPK: k.EPK, PartitionKey: k.PartitionKey}} {
		page, err := f.p.List(context.Background(), List{Within: within, MaxItems: 10, MaxBytes: 10_000}, f.clock.Now())
		shows(what, page.Items, err)
		f.check(page.Count == 1 && page.LSN == item.LSN, "%s %s: got %d items at lsn %d, want 1 at %d", what, when, page.Count, page.LSN, item.LSN)
	}
}

// A commit that cannot be published is durable, but readers do not see it.
func TestFailedPublish(t *testing.T) {
	f := newFixture(t, withTTL("null"))
	f.expected = 1
	f.put("a", `"v":1`)
	f.db.noSnapshots.Store(true)
	if _, err := f.write(f.item(Upsert, "a", `"v":2`)); !errors.Is(err, ErrFailed) {
		t.Errorf("got %v, want ErrFailed", err)
	}
	f.mustSee(`"v":1`, "after the failure")
	f.db.noSnapshots.Store(false)
	f.reopen()
	f.mustSee(`"v":2`, "opened again")
	f.checkClean()
}

// An idle partition stops if the engine cannot give it a snapshot.
func TestFailedSnapshot(t *testing.T) {
	f := newFixture(t, withTTL("null"))
	f.expected = 1
	f.db.noSnapshots.Store(true)
	if _, err := f.read("a"); !errors.Is(err, errBroken) {
		t.Errorf("read: got %v, want the engine's error", err)
	}
	if _, err := f.write(f.item(Create, "a", "")); !errors.Is(err, errBroken) {
		t.Errorf("write: got %v, want the engine's error", err)
	}
	f.db.noSnapshots.Store(false)
	if _, err := f.write(f.item(Create, "a", "")); !errors.Is(err, ErrClosed) {
		t.Errorf("later write: got %v, want ErrClosed", err)
	}
}

// Close answers all writes: those in a group with their outcome, and all others, in the
// queue or waiting for room in it, with ErrClosed. Acknowledged writes exist, and no
// others.
func TestCloseAnswersEveryone(t *testing.T) {
	const writers = queueJobs + groupJobs + 50
	f := newFixture(t, withTTL("null"))
	g := newGate()
	f.db.play(func(commit func() error) error {
		g.wait()
		return commit()
	})
	done := make([]<-chan answered, writers)
	for i := range done {
		done[i] = f.start(f.item(Create, fmt.Sprint(i), ""))
	}
	<-g.entered
	f.queued(queueJobs)
	closed := make(chan struct{})
	go func() {
		f.p.Close()
		close(closed)
	}()
	<-f.p.stop
	f.db.stopPlaying()
	g.open <- struct{}{}
	<-closed

	acknowledged := map[string]bool{}
	for i, d := range done {
		switch a := <-d; {
		case a.err == nil:
			acknowledged[fmt.Sprint(i)] = true
		case !errors.Is(a.err, ErrClosed):
			t.Errorf("writer %d: got %v, want nil or ErrClosed", i, a.err)
		}
	}
	if len(acknowledged) == 0 || len(acknowledged) == writers {
		t.Errorf("%d of %d writes are acknowledged, want some", len(acknowledged), writers)
	}
	f.open()
	f.checkClean()
	for i := range writers {
		if _, err := f.read(fmt.Sprint(i)); (err == nil) != acknowledged[fmt.Sprint(i)] {
			t.Errorf("item %d: got %v, but acknowledged is %v", i, err, acknowledged[fmt.Sprint(i)])
		}
	}
}

func TestClosedPartition(t *testing.T) {
	f := newFixture(t, withTTL("null"))
	f.put("a", "")
	f.p.Close()
	f.p.Close()
	if _, err := f.write(f.item(Upsert, "a", "")); !errors.Is(err, ErrClosed) {
		t.Errorf("write: got %v, want ErrClosed", err)
	}
	if _, err := f.read("a"); !errors.Is(err, ErrClosed) {
		t.Errorf("read: got %v, want ErrClosed", err)
	}
	if _, err := f.p.List(context.Background(), List{MaxItems: 1, MaxBytes: 1}, startMs); !errors.Is(err, ErrClosed) {
		t.Errorf("list: got %v, want ErrClosed", err)
	}
	if err := f.p.Reconfigure(context.Background(), f.container); !errors.Is(err, ErrClosed) {
		t.Errorf("reconfigure: got %v, want ErrClosed", err)
	}
	f.p.ReleaseIdle()
}

// A reader that began before Close can finish.
func TestReaderOutlivesClose(t *testing.T) {
	f := newFixture(t, withTTL("null"))
	f.put("a", "")
	v, err := f.p.acquire()
	f.must(err)
	f.p.Close()
	if _, _, err := f.p.item(v, 1); err != nil {
		t.Errorf("item after close: %v", err)
	}
	f.p.release(v)
}

// A request that ends while it waits for room in the queue was not done. Once it is in the
// queue it is done, and its outcome is returned.
func TestContextOfAWaitingWrite(t *testing.T) {
	f := newFixture(t, withTTL("null"))
	g := f.db.holdAfterApplying()
	first := f.start(f.item(Create, "first", ""))
	<-g.entered
	ctx, cancel := context.WithCancel(context.Background())
	inQueue := make(chan error, 1)
	go func() {
		_, err := f.p.Write(ctx, f.item(Create, "queued", ""))
		inQueue <- err
	}()
	f.queued(1)
	rest := make([]<-chan answered, queueJobs-1)
	for i := range rest {
		rest[i] = f.start(f.item(Upsert, "rest", ""))
	}
	f.queued(queueJobs)
	cancel()
	if _, err := f.p.Write(ctx, f.item(Create, "outside", "")); !errors.Is(err, context.Canceled) {
		t.Errorf("in front of the queue: got %v, want context.Canceled", err)
	}
	f.db.stopPlaying()
	g.open <- struct{}{}
	if err := <-inQueue; err != nil {
		t.Errorf("in the queue: got %v, want it done", err)
	}
	if a := <-first; a.err != nil {
		t.Error(a.err)
	}
	for _, r := range rest {
		if a := <-r; a.err != nil {
			t.Error(a.err)
		}
	}
	if _, err := f.read("queued"); err != nil {
		t.Errorf("the item of the queue: %v", err)
	}
	if _, err := f.read("outside"); !errors.Is(err, ErrNotFound) {
		t.Errorf("the item that stayed outside: got %v, want ErrNotFound", err)
	}
	f.checkClean()
}
