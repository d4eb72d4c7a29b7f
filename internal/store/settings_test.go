// SPDX-License-Identifier: MIT

package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/kv/kvtest"
)

// withFinality is withTTL with ttlFinality.
func withFinality(ttl string) string {
	return strings.TrimSuffix(withTTL(ttl), "}") + `,"ttlFinality":true}`
}

// liveAmong returns which of the items can be read, in the given order.
func (f *fixture) liveAmong(ids ...string) string {
	var live []string
	for _, id := range ids {
		if _, err := f.read(id); err == nil {
			live = append(live, id)
		}
	}
	return strings.Join(live, " ")
}

// purgeAll purges until there is no more, and returns how many items were purged.
func (f *fixture) purgeAll() int64 {
	f.t.Helper()
	items := int64(0)
	for {
		done, err := f.p.Purge(context.Background(), Purge{MaxItems: 100})
		f.must(err)
		items += done.Items
		if !done.More {
			return items
		}
	}
}

// Scenarios 28 to 31 and 34: expired items that are not purged when the default changes,
// with ttlFinality and without. At the beginning the default is 60, and 100 s have passed.
func TestScenario28To34DefaultChangesOverExpiredItems(t *testing.T) {
	const all = "inherits forever own"
	for _, c := range []struct {
		name  string
		to    []string // defaults, one after the other
		live  string
		final string // the same with ttlFinality
	}{
		{"28: raised", []string{"3600"}, "inherits forever", "forever"},
		{"29: removed", []string{"null"}, all, "forever"},
		{"30: removed, then -1", []string{"null", "-1"}, "inherits forever", "forever"},
		{"30: removed, then as before", []string{"null", "60"}, "forever", "forever"},
		{"lowered", []string{"1"}, "forever", "forever"},
		{"-1", []string{"-1"}, "inherits forever", "forever"},
		{"lowered, then raised", []string{"1", "3600"}, "inherits forever", "forever"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for kind, define := range map[string]func(string) string{"": withTTL, "31, finality: ": withFinality} {
				f := newFixture(t, define("60"))
				f.put("inherits", "")
				f.put("forever", `"ttl":-1`)
				f.put("own", `"ttl":50`)
				f.advance(100 * time.Second)
				if got := f.liveAmong("inherits", "forever", "own"); got != "forever" {
					t.Fatalf("%sat first: live are %q", kind, got)
				}
				lsn := f.p.LSN()
				want := c.live
				if kind != "" {
					want = c.final
				}
				for _, to := range c.to {
					f.reconfigure(define(to))
				}
				for _, when := range []string{"at once", "after a restart"} {
					if got := f.liveAmong("inherits", "forever", "own"); got != want || f.p.LSN() != lsn {
						t.Errorf("%s%s: live are %q at lsn %d, want %q at %d", kind, when, got, f.p.LSN(), want, lsn)
					}
					f.reopen()
				}
				// Purge uses the same cuts.
				if got, expired := f.purgeAll(), int64(3-len(strings.Fields(want))); got != expired {
					t.Errorf("%spurge took %d items away, want %d", kind, got, expired)
				}
				if got := f.liveAmong("inherits", "forever", "own"); got != want {
					t.Errorf("%safter a purge: live are %q, want %q", kind, got, want)
				}
				f.checkClean()
			}
		})
	}
	// Scenario 34: without defaultTtl in its definition, a container has no default.
	f := newFixture(t, withTTL("60"))
	f.put("a", "")
	f.advance(100 * time.Second)
	f.reconfigure(`{"id":"c","partitionKey":{"paths":["/pk"],"version":2}}`)
	if got := f.liveAmong("a"); got != "a" {
		t.Error("without defaultTtl an item is gone")
	}
	if got := f.purgeAll(); got != 0 {
		t.Errorf("with TTL off, purge took %d items away", got)
	}
}

// Finality holds for the items that had expired, not for items that are written later.
func TestFinalityHoldsForExpiredItems(t *testing.T) {
	f := newFixture(t, withFinality("10"))
	f.put("old", "")
	f.advance(9 * time.Second)
	f.put("young", "")
	f.advance(time.Second)
	f.reconfigure(withFinality("1000"))
	f.put("new", "")
	if got := f.liveAmong("old", "young", "new"); got != "young new" {
		t.Errorf("live are %q, want young and new", got)
	}
	expiry, err := f.p.ItemExpiry(f.key("k", "old"), f.clock.Now())
	f.must(err)
	if !expiry.Expired || !expiry.Final || expiry.DeadlineMs != startMs+1_000_000 {
		t.Errorf("the expiry of the final item: got %+v, want it final", expiry)
	}
	// Its id can be used again, and the new item is live.
	if r := f.put("old", ""); !r.Created {
		t.Error("an upsert over an expired item did not create")
	}
	if got := f.liveAmong("old", "young", "new"); got != "old young new" {
		t.Errorf("live are %q, want all", got)
	}
	// Without finality no item stays expired.
	f.advance(1000 * time.Second)
	f.reconfigure(withTTL("5000"))
	if got := f.liveAmong("old", "young", "new"); got != "old young new" {
		t.Errorf("without finality live are %q, want all", got)
	}
}

// Scenario 32: the TTL is raised while a purge is being planned. The plan is void once
// Reconfigure has returned.
func TestScenario32RaiseDuringAPlan(t *testing.T) {
	f := newFixture(t, withTTL("60"))
	f.put("a", "")
	f.put("b", `"ttl":50`)
	f.advance(100 * time.Second)
	raise := func() { f.reconfigure(withTTL("3600")) }
	f.db.onScan.Store(&raise) // while the purge is planned
	done, err := f.p.Purge(context.Background(), Purge{MaxItems: 10})
	f.must(err)
	if done.Items != 0 || !done.More {
		t.Errorf("a plan of the old settings: got %+v, want nothing done, and more", done)
	}
	if got := f.liveAmong("a", "b"); got != "a" {
		t.Errorf("live are %q, want a", got)
	}
	if f.p.PurgeDue() > f.clock.Now() {
		t.Error("b is expired, and purge is not due")
	}
	if got := f.purgeAll(); got != 1 {
		t.Errorf("the next purge took %d items away, want b alone", got)
	}
	f.checkClean()
}

// Scenario 32, later: new settings come while a purge is being committed. It ends before
// they hold, and what it removed had expired.
func TestScenario32RaiseDuringACommit(t *testing.T) {
	f := newFixture(t, withTTL("60"))
	f.put("a", "")
	f.advance(50 * time.Second)
	f.put("b", "")
	f.advance(20 * time.Second)
	g := f.db.holdAfterApplying()
	purged := make(chan Purged, 1)
	go func() {
		done, err := f.p.Purge(context.Background(), Purge{MaxItems: 10})
		f.check(err == nil, "purge: %v", err)
		purged <- done
	}()
	<-g.entered
	reconfigured := make(chan error, 1)
	c := f.redefine(withTTL("3600"))
	go func() { reconfigured <- f.p.Reconfigure(context.Background(), c) }()
	f.queued(1)
	select {
	case <-reconfigured:
		t.Error("Reconfigure returned while a purge of the old settings is being committed")
	default:
	}
	f.db.stopPlaying()
	g.open <- struct{}{}
	if done := <-purged; done.Items != 1 {
		t.Errorf("got %+v, want one item gone", done)
	}
	f.must(<-reconfigured)
	if got := f.liveAmong("a", "b"); got != "b" {
		t.Errorf("live are %q, want b", got)
	}
	f.checkClean()
}

const (
	flipItems = 40
	flips     = 60
)

// Scenario 33: the default changes back and forth under load. Every answer is right under
// one of the two settings, and the counters stay exact.
func TestScenario33FlipUnderLoad(t *testing.T) {
	f := newFixture(t, withTTL("null"))
	for i := range flipItems {
		f.put(fmt.Sprint("old ", i), "")
	}
	f.advance(time.Minute)
	stop := make(chan struct{})
	var load sync.WaitGroup
	for client := range 2 {
		var writes []Write
		for i := range 5 {
			writes = append(writes, f.item(Upsert, fmt.Sprintf("new %d %d", client, i), ""))
		}
		load.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				page, err := f.p.List(context.Background(), List{MaxItems: flipItems, MaxBytes: 1 << 20}, startMs+60_000)
				if err != nil || page.Count != flipItems && strings.Contains(string(page.Items), `"id":"old `) {
					t.Errorf("a list shows %d items, %v: want all that are old or none", page.Count, err)
				}
				if _, err := f.write(writes[n%len(writes)]); err != nil && !errors.Is(err, ErrBusy) {
					t.Errorf("write: %v", err)
				}
				u, err := f.p.Usage(startMs + 60_000)
				if err != nil || u.Expired.Items != 0 && u.Expired.Items != flipItems {
					t.Errorf("usage: got %+v, %v, want all or none of %d expired", u, err, flipItems)
				}
			}
		})
	}
	for n := range flips * kvtest.LongFactor(t) {
		f.reconfigure(withTTL([]string{"30", "null", "-1"}[n%3]))
	}
	close(stop)
	load.Wait()
	f.reconfigure(withTTL("null"))
	if got := f.liveAmong("old 0", "old 39"); got != "old 0 old 39" {
		t.Errorf("live are %q", got)
	}
	f.checkClean()
}
