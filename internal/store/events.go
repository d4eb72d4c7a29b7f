// SPDX-License-Identifier: MIT

// Events: who expired when. Nothing has to happen at a deadline for its event to
// exist: an item that is still there is found in the expiry orders, where purge
// finds it too, and one that has been taken away left a row, in the same batch, at
// the very place in the order of events where it was found before.
//
//	gone row: {goneMs}{deadlineMs}{lsn}{n} -> ordinal 8, writtenMs 8, ttl 4, identity
//
// An item is gone at its deadline, or, if its deadline had passed already when the
// container's default TTL was changed, at that change.

package store

import (
	"bytes"
	"cmp"
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
)

// EventKey is a place in the order of events: after this one.
type EventKey struct {
	GoneMs, DeadlineMs int64
	LSN                uint64
	N                  uint16
}

func (a EventKey) compare(b EventKey) int {
	return cmp.Or(cmp.Compare(a.GoneMs, b.GoneMs), cmp.Compare(a.DeadlineMs, b.DeadlineMs),
		cmp.Compare(a.LSN, b.LSN), cmp.Compare(a.N, b.N))
}

// Event tells that an item expired.
type Event struct {
	Key          EventKey
	PartitionKey value.PartitionKey
	ID           string
	Ordinal      uint64
	WrittenMs    int64
	TTL          catalog.TTL // the item's own, TTLAbsent if it inherited
}

// eventKeyOf returns where the event of an expired item stands. One that stays dead
// only since it was dead before the settings changed is told of once more, now.
func eventKeyOf(h *header, r *rules, changedMs, nowMs int64) EventKey {
	d := deadline(h.writtenMs, h.ttl, r.containerDefault)
	if d > nowMs {
		d = nowMs
	}
	return EventKey{max(d, changedMs), d, h.lsn, h.n}
}

// putEvent leaves a row for an expired item that is being taken away.
func (w *writer) putEvent(c *current) {
	var space [eventRowBytes + 128]byte
	h := &c.header
	w.key = w.p.prefix.appendEventKey(w.key[:0], eventKeyOf(h, &w.view.rules, w.meta.ChangedMs, w.nowMs))
	w.batch.Set(w.key, appendEventRow(space[:0], c))
}

func appendEventRow(dst []byte, c *current) []byte {
	dst = binary.BigEndian.AppendUint64(dst, c.ordinal)
	dst = binary.BigEndian.AppendUint64(dst, uint64(c.header.writtenMs))
	dst = binary.BigEndian.AppendUint32(dst, uint32(c.header.ttl))
	return append(dst, c.header.identity...)
}

// planPrune decides whether old events leave with this plan, and when to look
// again.
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
	return nowMs + pruneEveryMs, nil
}

// pruneEveryMs is how much time's events leave at once, by one range delete.
const pruneEveryMs = 10 * 60 * 1000

func (w *writer) prune(beforeMs int64) {
	if beforeMs > 0 {
		lower, _ := w.p.prefix.space(eventSpace)
		w.batch.DeleteRange(lower, w.p.prefix.appendEventKey(nil, EventKey{GoneMs: beforeMs}))
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
		TTL:       catalog.TTL(binary.BigEndian.Uint32(e.Value[16:])),
	}
	i, err := parseIdentity(e.Value[eventRowBytes:])
	if err != nil {
		return Event{}, corrupt(e.Key, err.Error())
	}
	ev.PartitionKey, ev.ID = i.pk, i.id
	return ev, nil
}

// EventPage is a part of the events of a partition.
type EventPage struct {
	Events []Event
	// Next is where to go on. All events before it have been told.
	Next EventKey
	// More says that there are more already.
	More bool
}

// Events returns the events after a place, in order, at most so many, up to the clock's
// horizon.
func (p *Partition) Events(after EventKey, most int) (EventPage, error) {
	p.mu.Lock()
	v, err := p.acquireLocked()
	// What is told must not be joined later by something that comes before it: the
	// present millisecond, and what a group under way is about to change, wait. So does
	// what is in doubt: it may have to be taken back.
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
	page := EventPage{Events: w.events, Next: after}
	if len(page.Events) > most {
		page.Events, w.full = page.Events[:most], true
	}
	page.More = w.full
	end := EventKey{GoneMs: untilMs - 1, DeadlineMs: never} // of all that is told
	switch n := len(page.Events); {
	case w.full:
		page.Next = page.Events[n-1].Key
	case end.compare(after) > 0:
		page.Next = end
	}
	return page, w.describe(page.Events)
}

// eventWalk collects events from the three places where they are.
type eventWalk struct {
	p                  *Partition
	v                  *view
	after              EventKey
	untilMs, changedMs int64 // untilMs is exclusive
	most               int
	full               bool
	events             []Event
}

// collect takes up the events that a walk finds, as many as a page has.
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

// ofPurged finds the items that were taken away.
func (w *eventWalk) ofPurged() iter.Seq2[Event, error] {
	x := &w.p.prefix
	lower := append(x.appendEventKey(nil, w.after), 0)
	upper := x.appendEventKey(nil, EventKey{GoneMs: w.untilMs})
	if bytes.Compare(lower, upper) >= 0 {
		lower = upper
	}
	return scanRows(w.v.snap, lower, upper, parseEventRow)
}

// fromMs returns the deadline from which items that are still there may have
// events to tell.
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

// ofPending finds the items of a kind that have expired and are still there.
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

// describe reads from the items what their rows in the expiry orders do not say.
func (w *eventWalk) describe(events []Event) error {
	for i := range events {
		e := &events[i]
		if e.ID != "" {
			continue
		}
		h, _, err := w.p.item(w.v, e.Ordinal)
		if err != nil {
			return err
		}
		id, err := parseIdentity(h.identity)
		if err != nil {
			return err
		}
		e.ID, e.PartitionKey, e.WrittenMs, e.TTL = id.id, id.pk, h.writtenMs, h.ttl
	}
	return nil
}

// Expiry is what is known of when an item expires.
type Expiry struct {
	WrittenMs int64
	// Own is the item's ttl, Default its container's.
	Own, Default catalog.TTL
	// DeadlineMs is when it expires, Never if it does not.
	DeadlineMs int64
	Expired    bool
	// Final says that it is expired only since it was so when the settings changed.
	Final bool
}

// ItemExpiry says when the item with the given key expires, expired or not, as of nowMs.
func (p *Partition) ItemExpiry(k Key, nowMs int64) (Expiry, error) {
	h, _, at, err := p.find(nil, k, nowMs)
	if err != nil {
		return Expiry{}, err
	}
	f := Expiry{
		WrittenMs: h.writtenMs, Own: h.ttl, Default: at.rules.containerDefault,
		DeadlineMs: deadline(h.writtenMs, h.ttl, at.rules.containerDefault),
		Expired:    h.expired(&at.rules, nowMs),
	}
	f.Final = f.Expired && f.DeadlineMs > nowMs
	return f, nil
}
