// SPDX-License-Identifier: MIT

package store

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
)

// events reads all events after a key, in pages, and returns their ids.
func (f *fixture) events(after *EventKey, most int) string {
	f.t.Helper()
	var ids []string
	for {
		page, err := f.p.Events(*after, most)
		f.must(err)
		for _, e := range page.Events {
			ids = append(ids, e.ID)
		}
		*after = page.Next
		if !page.More {
			return strings.Join(ids, " ")
		}
	}
}

// Events come in the order of the deadlines, whether the items are purged or not, in pages
// of any size, and each once.
func TestEventsInOrder(t *testing.T) {
	for purged := range 7 {
		for most := 1; most <= 7; most++ {
			f := newFixture(t, withTTL("10"))
			for i, properties := range []string{"", `"ttl":12`, "", `"ttl":5`, `"ttl":-1`, "", `"ttl":10`} {
				f.put(fmt.Sprint(i), properties)
				f.advance(time.Second)
			}
			// They expire at 10, 13, 12, 8, never, 15 and 16 s.
			f.advance(9 * time.Second)
			if purged > 0 {
				_, err := f.p.Purge(context.Background(), Purge{MaxItems: purged})
				f.must(err)
			}
			var after EventKey
			// The present millisecond has not ended, so the event at 16 s is in the next
			// page.
			if got, want := f.events(&after, most), "3 0 2 1 5"; got != want {
				t.Errorf("%d purged, pages of %d: got %q, want %q", purged, most, got, want)
			}
			if got := f.events(&after, most); got != "" {
				t.Errorf("%d purged, pages of %d: events again: %q", purged, most, got)
			}
			f.reopen()
			f.advance(time.Millisecond)
			if got := f.events(&after, most); got != "6" {
				t.Errorf("%d purged, pages of %d: a millisecond later got %q, want 6", purged, most, got)
			}
		}
	}
}

// An item that is deleted before its deadline has no event. One that is replaced after its
// deadline has.
func TestEventsOfExpiredItemsOnly(t *testing.T) {
	f := newFixture(t, withTTL("10"))
	for _, id := range []string{"deleted", "extended", "replaced by another", "expires"} {
		f.put(id, "")
	}
	f.advance(9999 * time.Millisecond)
	_, err := f.write(Write{Op: Delete, Key: f.key("k", "deleted")})
	f.must(err)
	f.put("extended", "")
	f.advance(time.Millisecond)
	f.put("replaced by another", "")
	f.advance(time.Second)
	var after EventKey
	if got, want := f.events(&after, 9), "replaced by another expires"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	f.purgeAll()
	f.advance(9 * time.Second)
	if got, want := f.events(&after, 9), "extended"; got != want {
		t.Errorf("later: got %q, want %q", got, want)
	}
	f.advance(time.Minute)
	if got, want := f.events(&after, 9), "replaced by another"; got != want {
		t.Errorf("in the end: got %q, want %q", got, want)
	}
}

// A write under way may extend an item whose deadline passes meanwhile: its event waits.
func TestEventsWaitForTheGroupUnderWay(t *testing.T) {
	f := newFixture(t, withTTL("10"))
	f.put("extended", "")
	f.put("expires", "")
	f.advance(9999 * time.Millisecond)
	g := f.db.holdAfterApplying()
	extended := f.start(f.item(Upsert, "extended", ""))
	<-g.entered
	f.advance(time.Second)
	var after EventKey
	if got := f.events(&after, 9); got != "" {
		t.Errorf("during the commit: got %q, want nothing yet", got)
	}
	f.db.stopPlaying()
	g.open <- struct{}{}
	if a := <-extended; a.err != nil || a.result.Created {
		t.Errorf("got %+v", a)
	}
	for f.writing() {
		runtime.Gosched()
	}
	if got, want := f.events(&after, 9), "expires"; got != want {
		t.Errorf("after it: got %q, want %q", got, want)
	}
}

// Items that expire because the default changes are gone at the change, and come after all
// earlier events.
func TestEventsOfAChange(t *testing.T) {
	f := newFixture(t, withTTL("null"))
	f.put("old", "")
	f.put("own", `"ttl":5`)
	f.advance(100 * time.Second)
	f.put("new", "")
	f.advance(time.Second)
	var after EventKey
	if got := f.events(&after, 9); got != "" {
		t.Errorf("with TTL off: got %q", got)
	}
	changeMs := f.clock.Now()
	f.reconfigure(withTTL("10"))
	if got := f.events(&after, 9); got != "" {
		t.Errorf("in the millisecond of the change: got %q, want nothing yet", got)
	}
	f.advance(time.Millisecond)
	page, err := f.p.Events(after, 1)
	f.must(err)
	if len(page.Events) != 1 || !page.More || page.Events[0].Key.GoneMs != changeMs || page.Events[0].Key.DeadlineMs != startMs+5000 {
		t.Errorf("after the change: got %+v, want own's event, and more", page)
	}
	after = page.Next
	f.purgeAll()
	f.reopen()
	if got, want := f.events(&after, 9), "old"; got != want {
		t.Errorf("then: got %q, want %q", got, want)
	}
	// The cursor is exactly at the change, or after it, and no event is missed.
	f.advance(9 * time.Second)
	if got, want := f.events(&after, 9), "new"; got != want {
		t.Errorf("at last: got %q, want %q", got, want)
	}
}

// Old events are removed, many at once, and not before there are enough.
func TestEventsAreForgotten(t *testing.T) {
	f := newFixture(t, withTTL("10"))
	f.put("first", "")
	f.advance(11 * time.Second)
	f.purgeAll()
	f.put("second", "")
	f.advance(20 * time.Minute)
	f.purgeAll()
	firstMs, secondMs := int64(startMs+10_000), int64(startMs+21_000)
	for _, c := range []struct {
		pruneMs int64
		want    int
	}{
		{0, 2}, {firstMs + pruneEveryMs, 2}, {firstMs + pruneEveryMs + 1, 0},
	} {
		_, err := f.p.Purge(context.Background(), Purge{MaxItems: 1, PruneMs: c.pruneMs})
		f.must(err)
		if got := f.rowsOf()[eventSpace]; got != c.want {
			t.Errorf("events up to %d, the second of which is of %d: %d are left, want %d", c.pruneMs, secondMs, got, c.want)
		}
	}
	f.put("third", "")
	f.advance(time.Hour)
	f.purgeAll()
	if _, err := f.p.Purge(context.Background(), Purge{MaxItems: 1, PruneMs: secondMs + pruneEveryMs}); err != nil {
		t.Error(err)
	}
	if got := f.rowsOf()[eventSpace]; got != 1 {
		t.Errorf("the third event: %d are left, want 1", got)
	}
	f.checkClean()
}

// The last event of an item is found by its name, of several lives the latest, until the
// name is erased from it.
func TestLastEvent(t *testing.T) {
	f := newFixture(t, withTTL("10"))
	for range 2 {
		f.put("twice", "")
		f.put("other", `"ttl":3`)
		f.advance(11 * time.Second)
		f.purgeAll()
	}
	last := func(id string) (Event, bool) {
		t.Helper()
		e, found, err := f.p.LastEvent(t.Context(), f.key("k", id))
		f.must(err)
		return e, found
	}
	if e, found := last("twice"); !found || e.ID != "twice" || e.Key.DeadlineMs != startMs+21_000 || e.WrittenMs != startMs+11_000 || e.TTL != catalog.TTLAbsent {
		t.Errorf("got %+v, %v", e, found)
	}
	if e, found := last("other"); !found || e.Key.DeadlineMs != startMs+14_000 || e.TTL != 3 {
		t.Errorf("got %+v, %v", e, found)
	}
	if e, found := last("none"); found {
		t.Errorf("got %+v", e)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := f.p.LastEvent(ended, f.key("k", "none")); !errors.Is(err, context.Canceled) {
		t.Errorf("a client that has gone: %v", err)
	}
	f.must(f.p.Forget(t.Context(), startMs+21_000)) // up to the last event of the other
	if e, found := last("other"); found {
		t.Errorf("its name is erased, and it is found: %+v", e)
	}
	if _, found := last("twice"); !found {
		t.Error("an event is not found, though its name is not erased")
	}
	f.checkClean()
}

// Of more events than are kept, the latest are, whatever their time. A reader that has missed
// one is told so, also after a restart and in what the partition was split into.
func TestEventsAreNotTooMany(t *testing.T) {
	f := newFixture(t, withTTL("10"))
	const most = 2 * eventSteps
	f.p.mu.kept.most = most
	next := 0
	expire := func(n int) {
		t.Helper()
		for range n {
			f.put(fmt.Sprint(next), "")
			next++
			f.advance(time.Second)
		}
		f.advance(10 * time.Second)
		f.purgeAll()
	}
	missed := func(after EventKey) bool {
		t.Helper()
		page, err := f.p.Events(after, 1)
		f.must(err)
		return page.Missed
	}
	expire(most / 2)
	var first, all EventKey
	f.events(&first, 9)
	expire(most / 2)
	if ids := strings.Fields(f.events(&all, 9)); len(ids) != most {
		t.Errorf("%d events, want %d", len(ids), most)
	}
	for range 4 * most {
		expire(1)
	}
	kept := EventKey{}
	ids := strings.Fields(f.events(&kept, 9))
	if n := len(ids); n < most || n > most+most/eventSteps+1 || ids[n-1] != fmt.Sprint(next-1) || ids[0] != fmt.Sprint(next-n) {
		t.Errorf("%d events, want the latest %d: %q", n, most, ids)
	}
	oldest, err := f.p.Events(EventKey{}, 1)
	f.must(err)
	for _, when := range []string{"", "after a restart: "} {
		if !missed(EventKey{}) || !missed(first) {
			t.Errorf("%sa reader that has missed events is not told", when)
		}
		if missed(oldest.Events[0].Key) || missed(kept) {
			t.Errorf("%sa reader is told that it has missed events", when)
		}
		f.reopen()
	}

	// What expires in one moment stays together.
	f.p.mu.kept.most = most
	for range 3 * most {
		f.put(fmt.Sprint(next), "")
		next++
	}
	f.advance(11 * time.Second)
	f.purgeAll()
	if n := len(strings.Fields(f.events(&kept, 9))); n != 3*most || missed(EventKey{GoneMs: kept.GoneMs - 1000, DeadlineMs: never}) {
		t.Errorf("%d events of one moment, want %d", n, 3*most)
	}
}

// An event of an item that was replaced long before purge came to those that expired before it
// says nothing about how many events there are after theirs.
func TestEventsOutOfOrderAreKept(t *testing.T) {
	for _, grace := range []string{"", `,"undeleteGraceSeconds":30`} {
		f := newFixture(t, strings.TrimSuffix(withTTL("10"), "}")+grace+"}")
		const most, items = 2 * eventSteps, 5 * eventSteps
		f.p.mu.kept.most = most
		for i := range items {
			f.put(fmt.Sprint(i), "")
			f.advance(time.Second)
		}
		f.advance(9 * time.Second)
		last := fmt.Sprint(items - 1)
		f.put(last, `"ttl":-1`) // which purges the expired one
		for range 30 {
			f.advance(time.Second)
			for {
				done, err := f.p.Purge(context.Background(), Purge{MaxItems: 1})
				f.must(err)
				if !done.More {
					break
				}
			}
		}
		var after EventKey
		ids := strings.Fields(f.events(&after, 9))
		if n := len(ids); n < most || n > most+most/eventSteps+2 || ids[n-1] != last || ids[0] != fmt.Sprint(items-n) {
			t.Errorf("grace %q: %d events, want the latest %d: %q", grace, n, most, ids)
		}
		f.checkClean()
	}
}
