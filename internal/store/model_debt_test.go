// SPDX-License-Identifier: MIT

package store

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/kv/kvtest"
)

// Random histories of a partition that is in debt, under a clock that jumps: what writes
// carry with them has expired by the clock's horizon, and is no more than they owe.
func TestDebtAndDoubt(t *testing.T) {
	for range modelRounds * kvtest.LongFactor(t) {
		rapid.Check(t, func(t *rapid.T) { runDebt(t) })
	}
}

// debtor is a partition, and what is known of its items: when they expire, by ordinal.
type debtor struct {
	f       *fixture
	items   map[uint64]debtorItem
	written int // how many items were ever written

	mu      sync.Mutex // for reading
	reading clock.Reading
}

type debtorItem struct {
	deadlineMs int64
	Amount
}

func runDebt(t *rapid.T) {
	d := &debtor{items: map[uint64]debtorItem{}, reading: clock.Reading{WallMs: startMs}}
	d.f = makeFixture(t, kvtest.NewModel(), setup{definition: withTTL("5"), nowMs: startMs})
	d.f.p.Close()
	var err error
	d.f.clock, err = clock.Open(clock.Options{
		State: clock.State{FloorMs: startMs},
		Save:  func(clock.State) error { return nil },
		Source: func() clock.Reading {
			d.mu.Lock()
			defer d.mu.Unlock()
			return d.reading
		},
	})
	d.f.must(err)
	d.f.open()
	t.Repeat(map[string]func(*rapid.T){
		"pay":   d.pay,
		"again": d.pay,
		"pass":  func(t *rapid.T) { d.move(rapid.Int64Range(1, 4000).Draw(t, "ms"), 0) },
		"jump":  func(t *rapid.T) { d.move(0, rapid.Int64Range(1000, 20_000).Draw(t, "jump")) },
		"confirm": func(*rapid.T) {
			if d.f.clock.Horizon() < d.f.clock.Now() {
				d.f.must(d.f.clock.Confirm())
			}
		},
		"purge":   d.purgeAll,
		"restart": func(*rapid.T) { d.f.reopen() },
		"":        d.check,
	})
	d.purgeAll(t)
	d.f.p.Close()
	if found := d.f.problems(); len(found) > 0 || d.f.failures.Load() != 0 || d.f.db.open.Load() != 0 {
		t.Errorf("problems %q, %d failures, %d snapshots left open", found, d.f.failures.Load(), d.f.db.open.Load())
	}
	d.f.must(d.f.clock.Close())
}

// move lets time pass, or lets the wall clock jump ahead.
func (d *debtor) move(passMs, jumpMs int64) {
	d.mu.Lock()
	d.reading.WallMs += passMs + jumpMs
	d.reading.MonoMs += passMs
	d.mu.Unlock()
	d.f.clock.Now()
}

// pay writes items under a levy, while another goroutine pays.
func (d *debtor) pay(t *rapid.T) {
	itemsPerWrite := rapid.SampledFrom([]float64{0.25, 1, 2}).Draw(t, "levy")
	d.f.levy(itemsPerWrite, rapid.IntRange(1, 4).Draw(t, "step"))
	stop := d.f.payer()
	n := rapid.IntRange(1, 12).Draw(t, "writes")
	for range n {
		ttl := rapid.SampledFrom([]string{"", `"ttl":-1`, `"ttl":1`, `"ttl":3`, `"ttl":60`}).Draw(t, "ttl")
		d.written++
		id := fmt.Sprint(d.written)
		d.f.put(id, ttl)
		e, err := d.f.p.ItemExpiry(d.f.key("k", id), d.f.clock.Now())
		d.f.must(err)
		item, err := d.f.p.Read(nil, d.f.key("k", id), "", d.f.clock.Now())
		d.f.must(err)
		d.items[uint64(d.written)] = debtorItem{e.DeadlineMs, Amount{1, int64(len(item.Body))}}
	}
	paid := stop()
	if most := float64(n) * itemsPerWrite; float64(paid.Items) > most {
		t.Fatalf("%d writes under a levy of %v carried %d items", n, itemsPerWrite, paid.Items)
	}
	d.account(t, paid)
}

// purgeAll purges all that may be purged.
func (d *debtor) purgeAll(t *rapid.T) {
	var total Purged
	for more := true; more; {
		done, err := d.f.p.Purge(context.Background(), Purge{MaxItems: 3})
		d.f.must(err)
		total.Amount, more = total.Plus(done.Amount), done.More
	}
	d.account(t, total)
	for ordinal, i := range d.items {
		if i.deadlineMs <= d.f.clock.Horizon() {
			t.Fatalf("item %d, which expired at %d, is left after a purge at %d", ordinal, i.deadlineMs, d.f.clock.Horizon())
		}
	}
}

// account forgets the items that were purged, if they had expired by the horizon.
func (d *debtor) account(t *rapid.T, done Purged) {
	h := &history{f: d.f}
	there := map[uint64]bool{}
	for _, ordinal := range h.ordinals(t) {
		there[ordinal] = true
	}
	var gone Amount
	for ordinal, i := range d.items {
		if there[ordinal] {
			continue
		}
		if horizonMs := d.f.clock.Horizon(); i.deadlineMs > horizonMs {
			t.Fatalf("item %d, which expires at %d, was purged at the horizon %d", ordinal, i.deadlineMs, horizonMs)
		}
		gone = gone.Plus(i.Amount)
		delete(d.items, ordinal)
	}
	if done.Amount != gone {
		t.Fatalf("%+v were purged, but %+v are gone", done.Amount, gone)
	}
}

// check compares the backlog with the items.
func (d *debtor) check(t *rapid.T) {
	var want Usage
	for _, i := range d.items {
		if i.deadlineMs <= d.f.clock.Horizon() {
			want.Expired = want.Expired.Plus(i.Amount)
		} else {
			want.Live = want.Live.Plus(i.Amount)
		}
	}
	if got, err := d.f.p.Backlog(); err != nil || got.Usage != want {
		t.Fatalf("at the horizon %d the backlog is %+v, %v, want %+v", d.f.clock.Horizon(), got, err, want)
	}
}
