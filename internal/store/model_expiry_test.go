// SPDX-License-Identifier: MIT

package store

import (
	"context"
	"errors"
	"slices"

	"pgregory.net/rapid"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/kv"
)

// modelDefaults are the default TTLs that histories use. The first is none.
var modelDefaults = []int64{0, -1, 1, 2, 5, 2147483647}

// changeSettings changes the default TTL, and sometimes another setting with it.
func (h *history) changeSettings(t *rapid.T) {
	s := h.drawSettings(t)
	h.f.reconfigure(h.kind.definition(s))
	h.twin.configure(s)
}

func (h *history) drawSettings(t *rapid.T) twinSettings {
	s := h.twin.settings
	s.inFeed = rapid.Bool().Draw(t, "touches in the feed")
	switch rapid.IntRange(0, 5).Draw(t, "setting") {
	case 0:
		s.policy = rapid.SampledFrom([]string{
			"", `{"includedPaths":[{"path":"/more/?"}],"excludedPaths":[{"path":"/*"}]}`, `{"excludedPaths":[{"path":"/u/?"}]}`,
		}).Draw(t, "policy")
	case 1:
		s.finality = !s.finality
	case 2:
		s.finality = !s.finality
		fallthrough
	default:
		s.ttl = rapid.SampledFrom(modelDefaults).Draw(t, "default")
	}
	s.expireAt, s.grace = "", 0
	if s.ttl != 0 && !s.finality && rapid.Bool().Draw(t, "with a grace") {
		s.grace = rapid.Int64Range(1, 3).Draw(t, "grace")
	}
	if s.ttl != 0 {
		s.expireAt = rapid.SampledFrom([]string{"", "reject", "accept"}).Draw(t, "expire at")
	}
	return s
}

// restartUnderNewSettings crashes between the two steps of a change: the catalog has the
// new settings, and the partition adopts them when it is opened.
func (h *history) restartUnderNewSettings(t *rapid.T) {
	s := h.drawSettings(t)
	h.f.redefine(h.kind.definition(s))
	h.restart(t)
	h.twin.configure(s)
}

// purge purges a few items, and determines which.
func (h *history) purge(t *rapid.T) {
	most := rapid.IntRange(1, 5).Draw(t, "most")
	done, err := h.f.p.Purge(context.Background(), Purge{MaxItems: most})
	h.account(t, most, done, err)
}

// purgeAll purges until there is no more: then no expired item is left.
func (h *history) purgeAll(t *rapid.T) {
	const most, calls = 3, 100
	more := true
	for n := 0; more; n++ {
		done, err := h.f.p.Purge(context.Background(), Purge{MaxItems: most})
		h.account(t, most, done, err)
		if more = done.More; n == calls {
			t.Fatalf("there is more to purge after %d calls", n)
		}
	}
	for _, i := range h.twin.items {
		if h.twin.purgeable(i) {
			t.Fatalf("%s/%s, lsn %d, is left after a purge", i.pk, i.id, i.lsn)
		}
	}
}

// account removes from the twin the items that were purged, if they had expired.
func (h *history) account(t *rapid.T, most int, done Purged, err error) {
	if err != nil {
		t.Fatalf("purge: %v", err)
	}
	there := h.ordinals(t)
	var gone Amount
	for _, i := range h.twin.sorted("", 0) {
		if slices.Contains(there, i.ordinal) {
			continue
		}
		if !h.twin.purgeable(i) {
			t.Fatalf("purge has removed %s/%s, lsn %d, which lives or is kept", i.pk, i.id, i.lsn)
		}
		gone = gone.Plus(i.amount())
		h.twin.lose(i)
	}
	if done.Amount != gone || gone.Items > int64(most) || (done.Units > 0) != (gone.Items > 0) {
		t.Fatalf("purge of at most %d: got %+v, but %+v are gone", most, done, gone)
	}
}

// ordinals are those of all stored items.
func (h *history) ordinals(t *rapid.T) []uint64 {
	snap, err := h.f.db.Snapshot()
	h.f.must(err)
	defer snap.Close()
	x := partitionPrefix(h.f.container.RID, h.f.index)
	lower, upper := x.space(itemSpace)
	var found []uint64
	for e, err := range snap.Scan(lower, upper, kv.Forward) {
		h.f.must(err)
		ordinal, err := ordinalOf(e.Key)
		h.f.must(err)
		found = append(found, ordinal)
	}
	return found
}

// purgeBesideWrites plans a purge before a group of writes, and executes it with them.
func (h *history) purgeBesideWrites(t *rapid.T) {
	const most = 4
	var done Purged
	var err error
	h.writeBeside(t, func() func() {
		over := make(chan struct{})
		go func() {
			defer close(over)
			done, err = h.f.p.Purge(context.Background(), Purge{MaxItems: most})
		}()
		return func() { <-over }
	})
	h.account(t, most, done, err)
}

// poll reads the next events.
func (h *history) poll(t *rapid.T) {
	h.pollOnce(t, rapid.IntRange(1, 4).Draw(t, "most"))
}

func (h *history) pollOnce(t *rapid.T, most int) (more bool) {
	page, err := h.f.p.Events(h.cursor, most)
	if err != nil {
		t.Fatalf("events after %+v: %v", h.cursor, err)
	}
	if len(page.Events) > most || page.More && len(page.Events) == 0 || page.Next.compare(h.cursor) < 0 {
		t.Fatalf("events after %+v, at most %d: got %+v", h.cursor, most, page)
	}
	for _, e := range page.Events {
		if e.Key.compare(h.cursor) <= 0 || e.Key.compare(page.Next) > 0 {
			t.Fatalf("events after %+v up to %+v: got one at %+v", h.cursor, page.Next, e.Key)
		}
		if err := h.twin.receive(e, h.lastEvent); err != nil {
			t.Fatalf("events after %+v: %v", h.cursor, err)
		}
		h.lastEvent = e.Key
	}
	h.cursor = page.Next
	if !page.More {
		if i := h.twin.unreported(); i != nil {
			t.Fatalf("at %d there is no event of %+v; the reader is at %+v, the default changed at %d", h.twin.nowMs, *i, h.cursor, h.twin.changedMs)
		}
	}
	return page.More
}

func (h *history) pollAll(t *rapid.T) {
	for h.pollOnce(t, 3) {
	}
}

// checkAll compares all answers with the twin.
func (h *history) checkAll(t *rapid.T) {
	h.twin.passTime()
	h.checkItems(t)
	h.checkUsage(t)
	h.checkPurge(t)
}

// checkItems compares every item, live or not.
func (h *history) checkItems(t *rapid.T) {
	for _, pk := range h.keys {
		for _, id := range append([]string{"head", "transient"}, modelIDs...) {
			i := h.twin.items[pk+"/"+id]
			item, err := h.f.p.Read(nil, h.f.key(pk, id), "", h.twin.nowMs)
			if live := h.twin.isLive(i); live && (err != nil || string(item.Body) != i.body) || !live && !errors.Is(err, ErrNotFound) {
				t.Fatalf("read of %s/%s: got %s, %v, want live %v", pk, id, item.Body, err, live)
			}
			expiry, err := h.f.p.ItemExpiry(h.f.key(pk, id), h.twin.nowMs)
			if i == nil && !errors.Is(err, ErrNotFound) || i != nil && (err != nil || expiry != h.twin.expiry(i)) {
				t.Fatalf("fate of %s/%s: got %+v, %v, want that of %+v", pk, id, expiry, err, i)
			}
		}
	}
	q := List{MaxItems: 100, MaxBytes: 1 << 20}
	page, err := h.f.p.List(context.Background(), q, h.twin.nowMs)
	if err == nil {
		err = h.twin.checkPage("", q, page)
	}
	if err != nil {
		t.Fatalf("list of all: %v", err)
	}
}

// checkUsage compares the sums over the counters with the twin: now, at a later moment, and
// under another default TTL.
func (h *history) checkUsage(t *rapid.T) {
	n := uint64(h.twin.nowMs) + h.twin.lsn // derived, so that histories stay short
	laterMs := h.twin.nowMs + int64(n*7919%9000)
	for _, ms := range []int64{h.twin.nowMs, laterMs} {
		if got, err := h.f.p.Usage(ms); err != nil || got != h.twin.usage(ms) {
			t.Fatalf("usage at %d: got %+v, %v, want %+v", ms, got, err, h.twin.usage(ms))
		}
	}
	other := modelDefaults[n%uint64(len(modelDefaults))]
	supposed := h.twin.supposed(other)
	got, err := h.f.p.WhatIf(catalog.TTL(other), h.twin.nowMs)
	if want := h.twin.change(supposed); err != nil || got != want {
		t.Fatalf("what if the default were %d: got %+v, %v, want %+v", other, got, err, want)
	}
	for _, twin := range []*twin{h.twin, supposed} {
		untilMs := []int64{h.twin.nowMs, h.twin.nowMs + 1000, laterMs + 1000, laterMs + 3_600_000}
		o, err := h.f.p.Outlook(context.Background(), catalog.TTL(twin.settings.ttl), h.twin.nowMs, untilMs)
		if err == nil {
			err = twin.checkOutlook(o, untilMs)
		}
		if err != nil {
			t.Fatalf("outlook at %d under a default of %d: %v", h.twin.nowMs, twin.settings.ttl, err)
		}
	}
}

// checkPurge checks that purge's marks never go back, and that purge is not due too late.
func (h *history) checkPurge(t *rapid.T) {
	goneMs, found, err := h.f.p.Oldest(h.twin.nowMs)
	wantMs, want, exact := h.twin.oldest()
	if err != nil || found != want || found && (goneMs > h.twin.nowMs || exact && goneMs != wantMs) {
		t.Fatalf("oldest at %d: got %d, %v, %v, want %d, %v, exactly %v", h.twin.nowMs, goneMs, found, err, wantMs, want, exact)
	}
	if due, first := h.f.p.PurgeDue(), h.twin.firstDeadline(); due > first {
		t.Fatalf("purge is due at %d, but an item expires at %d", due, first)
	}
	snap, err := h.f.db.Snapshot()
	h.f.must(err)
	defer snap.Close()
	x := partitionPrefix(h.f.container.RID, h.f.index)
	m, _, err := (stored{snap, &x}).readMeta(h.f.index)
	h.f.must(err)
	was := h.marks
	if m.Marks[kindInherits].before(was.Marks[kindInherits]) || m.Marks[kindOwn].before(was.Marks[kindOwn]) {
		t.Fatalf("marks went from %+v to %+v", was.Marks, m.Marks)
	}
	h.marks = m
}

// checkDue checks when purge has work in the closed partition.
func (h *history) checkDue(t *rapid.T) {
	snap, err := h.f.db.Snapshot()
	h.f.must(err)
	defer snap.Close()
	due, err := DueOf(snap, h.f.container, h.f.index)
	if first := h.twin.firstDeadline(); err != nil || due > first {
		t.Fatalf("purge of a closed partition is due at %d, %v, but an item expires at %d", due, err, first)
	}
}
