// SPDX-License-Identifier: MIT

// Events: which items expired, and when. Nothing runs at a deadline. An expired item that
// is not purged yet is found in the expiry orders, as purge finds it. When it is purged,
// the same batch writes a row with the key that its event had before.
//
//	gone row: {goneMs}{deadlineMs}{lsn}{n} -> ordinal 8, writtenMs 8, ttl of its life 4, identity
//
// The identity is removed when it is due to be erased (forget.go). Rows are removed when they
// are old, or too many.
//
// An item is gone at its deadline, or, if its deadline had passed already when the
// container's default TTL was changed, at that change.

package store

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"iter"
	"slices"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/value"
)

const (
	eventRowBytes = 20
	eventKeyBytes = prefixBytes + 1 + 8 + markBytes

	// KeptEvents is how many events of purged items a partition keeps at most, besides those
	// of one step of their count and of one moment.
	KeptEvents = 1_000_000
	// eventSteps is into how many steps their count is divided.
	eventSteps = 16
)

// EventKey orders events. As a cursor it means: after this event.
type EventKey struct {
	GoneMs, DeadlineMs int64
	LSN                uint64
	N                  uint16
}

func (a EventKey) compare(b EventKey) int {
	return cmp.Or(cmp.Compare(a.GoneMs, b.GoneMs), cmp.Compare(a.DeadlineMs, b.DeadlineMs),
		cmp.Compare(a.LSN, b.LSN), cmp.Compare(a.N, b.N))
}

// Event is the report that an item expired.
type Event struct {
	Key          EventKey
	PartitionKey value.PartitionKey
	ID           string
	Ordinal      uint64
	WrittenMs    int64
	TTL          catalog.TTL // the item's own, TTLAbsent if it inherited
	// Named reports that the item named its deadline itself. TTL is then absent.
	Named bool
	// Erased reports that the partition key and the id were erased.
	Erased bool
}

// setTTL sets what the event says about the item's ttl, from the ttl of its life.
func (e *Event) setTTL(ttl catalog.TTL) {
	if e.TTL, e.Named = ttl, ttl == ttlNamed; e.Named {
		e.TTL = catalog.TTLAbsent
	}
}

// eventKeyOf returns the key of an expired item's event. An item that is expired only
// because the settings made it final is reported once more, as of now.
func eventKeyOf(h *header, r *rules, changedMs, nowMs int64) EventKey {
	d := h.deadline(r.containerDefault)
	if d > nowMs {
		d = nowMs
	}
	return EventKey{max(d, changedMs), d, h.lsn, h.n}
}

// putEvent writes the row of an expired item that is being purged.
func (w *writer) putEvent(c *current) {
	var space [eventRowBytes + 128]byte
	h := &c.header
	at := eventKeyOf(h, &w.view.rules, w.meta.ChangedMs, w.nowMs)
	row := appendEventRow(space[:0], c)
	if at.GoneMs < w.p.forgottenMs.Load() {
		row = row[:eventRowBytes]
	}
	w.key = w.p.prefix.appendEventKey(w.key[:0], at)
	w.batch.Set(w.key, row)
	w.events = append(w.events, at)
	w.gone = w.gone.plus(eventStep{1, at.GoneMs})
}

func appendEventRow(dst []byte, c *current) []byte {
	dst = binary.BigEndian.AppendUint64(dst, c.ordinal)
	dst = binary.BigEndian.AppendUint64(dst, uint64(c.header.writtenMs))
	dst = binary.BigEndian.AppendUint32(dst, uint32(c.header.life().ttl))
	return append(dst, c.header.identity...)
}

// planPrune decides whether this plan removes old events, and when to look again.
func (p *Partition) planPrune(v *view, pl *plan, pruneMs, nowMs int64) (next int64, err error) {
	lower, upper := p.prefix.space(eventSpace)
	first, err := firstKey(v.snap, lower, upper)
	if err != nil || first == nil {
		return never, err
	}
	at, err := parseEventKey(first)
	if err != nil {
		return never, err
	}
	if at.GoneMs < pruneMs-pruneEveryMs {
		pl.pruneMs = pruneMs
	}
	pl.surplus = at.GoneMs < p.surplusBefore(eventStep{})
	return nowMs + pruneEveryMs, nil
}

// keptEvents knows about how many events are kept. It counts those that were written since the
// partition was opened, in steps. So what was there before is no part of the count, and is
// removed when there are as many new ones.
type keptEvents struct {
	most  int64 // KeptEvents, but in tests
	steps []eventStep
}

// eventStep is some events that were written one after the other, and the first moment among
// them: a write may purge its item before those that expired earlier.
type eventStep struct{ events, goneMs int64 }

func (s eventStep) plus(o eventStep) eventStep {
	switch {
	case s.events == 0:
		return o
	case o.events == 0:
		return s
	}
	return eventStep{s.events + o.events, min(s.goneMs, o.goneMs)}
}

// add counts events. The oldest steps go when the others are enough.
func (k *keptEvents) add(s eventStep) {
	if s.events == 0 {
		return
	}
	if last := len(k.steps) - 1; last >= 0 && k.steps[last].events < k.most/eventSteps {
		k.steps[last] = k.steps[last].plus(s)
	} else {
		k.steps = append(k.steps, s)
	}
	for all := k.all().events; all-k.steps[0].events >= k.most; {
		all -= k.steps[0].events
		k.steps = k.steps[1:]
	}
}

func (k *keptEvents) all() (all eventStep) {
	for _, s := range k.steps {
		all = all.plus(s)
	}
	return all
}

// surplusBefore returns the moment before which there are more events than are kept, given
// those that are being written; 0 if there are not.
func (p *Partition) surplusBefore(written eventStep) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.mu.kept.all().plus(written)
	if all.events < p.mu.kept.most {
		return 0
	}
	return all.goneMs
}

// pruneEveryMs is the least time of events that one range delete removes.
const pruneEveryMs = 10 * 60 * 1000

// prune removes the old events of a plan, and those that are too many.
func (w *writer) prune(pl *plan) {
	beforeMs := pl.pruneMs
	if pl.surplus {
		beforeMs = max(beforeMs, w.p.surplusBefore(w.gone))
	}
	if beforeMs > 0 {
		lower, _ := w.p.prefix.space(eventSpace)
		removeRange(w.batch, w.p.far, lower, w.p.prefix.appendEventKey(nil, EventKey{GoneMs: beforeMs}))
		w.meta.PrunedMs = max(w.meta.PrunedMs, beforeMs)
	}
}

func parseEventKey(key []byte) (EventKey, error) {
	if len(key) != eventKeyBytes {
		return EventKey{}, corrupt(key, "not an event's key")
	}
	k := key[prefixBytes+1:]
	m := decodeMark(k[8:])
	return EventKey{int64(binary.BigEndian.Uint64(k)), m.ExpiryMs, m.At.LSN, m.At.N}, nil
}

func parseEventRow(e kv.Entry) (Event, error) {
	at, err := parseEventKey(e.Key)
	if err != nil {
		return Event{}, err
	}
	if len(e.Value) < eventRowBytes {
		return Event{}, corrupt(e.Key, "not an event")
	}
	ev := Event{
		Key:       at,
		Ordinal:   binary.BigEndian.Uint64(e.Value),
		WrittenMs: int64(binary.BigEndian.Uint64(e.Value[8:])),
	}
	ev.setTTL(catalog.TTL(binary.BigEndian.Uint32(e.Value[16:])))
	if ev.Erased = len(e.Value) == eventRowBytes; ev.Erased {
		return ev, nil
	}
	i, err := parseIdentity(e.Value[eventRowBytes:])
	if err != nil {
		return Event{}, corrupt(e.Key, err.Error())
	}
	ev.PartitionKey, ev.ID = i.pk, i.id
	return ev, nil
}

// EventPage is a page of a partition's events.
type EventPage struct {
	Events []Event
	// Next is where the next page begins. All events before it have been returned.
	Next EventKey
	// More reports that there are more events now.
	More bool
	// Missed reports that events after the key have been removed.
	Missed bool
}

// Events returns at most so many events after a key, in order, up to the clock's horizon.
func (p *Partition) Events(after EventKey, most int) (EventPage, error) {
	p.mu.Lock()
	v, err := p.acquireLocked()
	// No event may appear later before one that was returned. So the page ends before the
	// present millisecond, and before a group under way, which is about to change items. It
	// also ends before the time in doubt, whose events may have to be taken back.
	untilMs := min(p.clock.Horizon(), p.mu.groupMs)
	changedMs := p.mu.now.meta.ChangedMs
	p.mu.Unlock()
	if err != nil {
		return EventPage{}, err
	}
	defer p.release(v)
	w := &eventWalk{p: p, v: v, after: after, untilMs: untilMs, changedMs: changedMs, most: most}
	for _, walk := range []iter.Seq2[Event, error]{w.ofPurged(), w.ofPending(kindInherits), w.ofPending(kindOwn)} {
		if err := w.collect(walk); err != nil {
			return EventPage{}, err
		}
	}
	slices.SortFunc(w.events, func(a, b Event) int { return a.Key.compare(b.Key) })
	pruned := EventKey{GoneMs: v.meta.PrunedMs - 1, DeadlineMs: never}
	page := EventPage{Events: w.events, Next: after, Missed: after.compare(pruned) < 0}
	if len(page.Events) > most {
		page.Events, w.full = page.Events[:most], true
	}
	page.More = w.full
	end := EventKey{GoneMs: untilMs - 1, DeadlineMs: never} // of all events that may be returned
	switch n := len(page.Events); {
	case w.full:
		page.Next = page.Events[n-1].Key
	case end.compare(after) > 0:
		page.Next = end
	}
	return page, w.describe(page.Events)
}

// eventWalk collects events from gone rows and from both expiry orders.
type eventWalk struct {
	p                  *Partition
	v                  *view
	after              EventKey
	untilMs, changedMs int64 // untilMs is exclusive
	most               int
	full               bool
	events             []Event
}

// collect adds the events of a walk, up to the length of a page.
func (w *eventWalk) collect(walk iter.Seq2[Event, error]) error {
	found := 0
	for e, err := range walk {
		switch {
		case err != nil:
			return err
		case e.Key.compare(w.after) <= 0 || e.Key.GoneMs >= w.untilMs:
			continue
		case found == w.most:
			w.full = true
			return nil
		}
		found++
		w.events = append(w.events, e)
	}
	return nil
}

// ofPurged returns the events of items that were purged.
func (w *eventWalk) ofPurged() iter.Seq2[Event, error] {
	x := &w.p.prefix
	lower := append(x.appendEventKey(nil, w.after), 0)
	upper := x.appendEventKey(nil, EventKey{GoneMs: w.untilMs})
	if bytes.Compare(lower, upper) >= 0 {
		lower = upper
	}
	return scanRows(w.v.snap, lower, upper, parseEventRow)
}

// fromMs returns the deadline from which items that are not purged may have events to
// return.
func (w *eventWalk) fromMs() int64 {
	switch {
	case w.after.GoneMs > w.changedMs:
		return w.after.GoneMs
	case w.after.GoneMs == w.changedMs:
		return min(w.after.DeadlineMs, w.changedMs)
	default:
		return 0
	}
}

// ofPending returns the events of a kind of items that have expired and are not purged yet.
func (w *eventWalk) ofPending(k ttlKind) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		r := &w.v.rules
		if !r.expires(k) {
			return
		}
		second := max(0, (w.fromMs()-r.expiresAt(k, 0))/1000)
		lower := w.p.prefix.appendStatKey(nil, bucketKey{k.class(), levelSecond, second})
		upper := w.p.prefix.appendStatKey(nil, bucketKey{k.class(), levelSecond, endOfTimeSeconds})
		b, found, err := firstOf(scanRows(w.v.snap, lower, upper, parseBucket))
		if err != nil {
			yield(Event{}, err)
		}
		if !found {
			return
		}
		for e, err := range w.v.order(k, mark{1000 * b.start, position{LSN: b.firstLSN}}) {
			row, err := k.parseRow(e, err)
			deadlineMs := r.expiresAt(k, row.ms)
			if err == nil && deadlineMs >= w.untilMs {
				return
			}
			at := EventKey{max(deadlineMs, w.changedMs), deadlineMs, row.At.LSN, row.At.N}
			if (err != nil || row.kind == k) && !yield(Event{Key: at, Ordinal: row.ordinal}, err) {
				return
			}
		}
	}
}

// describe completes events from their items, where the rows of the expiry orders have only
// the ordinal.
func (w *eventWalk) describe(events []Event) error {
	var ordinals []uint64
	for i := range events {
		if e := &events[i]; e.pending() {
			ordinals = append(ordinals, e.Ordinal)
		}
	}
	n, warm := 0, 0
	for i := range events {
		e := &events[i]
		if !e.pending() {
			continue
		}
		if n == warm {
			warm += w.p.warmItems(w.v, ordinals[n:])
		}
		n++
		h, _, err := w.p.item(w.v, e.Ordinal)
		if err != nil {
			return err
		}
		id, err := parseIdentity(h.identity)
		if err != nil {
			return err
		}
		e.ID, e.PartitionKey, e.WrittenMs = id.id, id.pk, h.writtenMs
		e.setTTL(h.life().ttl)
	}
	return nil
}

// pending reports whether the event is of an item that is not purged yet.
func (e *Event) pending() bool { return e.ID == "" && !e.Erased }

// LastEvent returns the latest event of an item with the given key that was purged, if it
// is among the latest KeptEvents, and still has its identity.
// Events are in the order of time, so this reads them one by one, the latest first.
func (p *Partition) LastEvent(ctx context.Context, k Key) (e Event, found bool, err error) {
	v, err := p.acquire()
	if err != nil {
		return Event{}, false, err
	}
	defer p.release(v)
	identity := appendIdentity(nil, k.EPK, k.PartitionKey, k.ID)
	lower, upper := p.prefix.space(eventSpace)
	searched := 0
	for row, err := range v.snap.Scan(lower, upper, kv.Reverse) {
		if err == nil && searched%eventsPerLook == 0 {
			err = ctx.Err()
		}
		if err != nil {
			return Event{}, false, err
		}
		if len(row.Value) > eventRowBytes && bytes.Equal(row.Value[eventRowBytes:], identity) {
			e, err := parseEventRow(row)
			return e, err == nil, err
		}
		if searched++; searched == KeptEvents {
			break
		}
	}
	return Event{}, false, nil
}

// eventsPerLook is how many events a search reads between looks at its context.
const eventsPerLook = 4096

// Expiry says when and why an item expires.
type Expiry struct {
	WrittenMs int64
	// TouchedMs is when a read last restarted its countdown, 0 if none did since the last
	// write.
	TouchedMs int64
	// Own is the item's ttl, Default its container's.
	Own, Default catalog.TTL
	// Named reports that the item names its deadline itself, which wins over both.
	Named bool
	// DeadlineMs is when it expires, Never if it does not.
	DeadlineMs int64
	Expired    bool
	// Final reports that the item is expired only because it was when the settings changed.
	Final bool
}

// ItemExpiry returns when the item with the given key expires, or expired, as of nowMs. The
// error is ErrNotFound if it does not exist or was purged.
func (p *Partition) ItemExpiry(k Key, nowMs int64) (Expiry, error) {
	nowMs = p.notBefore(nowMs)
	h, _, at, err := p.find(nil, k, nowMs)
	if err != nil {
		return Expiry{}, err
	}
	f := Expiry{
		WrittenMs: h.writtenMs, TouchedMs: h.baseMs, Own: h.ttl, Default: at.rules.containerDefault,
		DeadlineMs: h.deadline(at.rules.containerDefault), Named: h.atMs != 0,
		Expired: h.expired(&at.rules, nowMs),
	}
	f.Final = f.Expired && f.DeadlineMs > nowMs
	return f, nil
}
