// SPDX-License-Identifier: MIT

// Purge removes expired items, a group at a time. It only frees space: clients see no
// difference.
//
// A group is planned outside of the loop, on a snapshot. Planning reads the two expiry
// orders, each from its mark on: the feed for the items that inherit the container's TTL,
// and the own rows for the others. The loop then removes each item that has not changed
// since, and moves the marks in the same batch. New settings make a plan void.

package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/index"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/memory"
	"github.com/mayflydb/mayfly/internal/ru"
	"github.com/mayflydb/mayfly/internal/value"
)

const (
	// planRows bounds the rows that a plan reads, since rows of live items are between
	// those of expired ones.
	planRows = 4096
	// rangeRun is the least number of adjacent items that are removed by one range delete.
	// Fewer are removed one by one, since an engine may have to flush for each range.
	rangeRun = 128
)

// Purge asks to purge a group of expired items.
type Purge struct {
	MaxItems int
	Cause    ru.Cause
	// PruneMs is the moment before which events need not be kept.
	PruneMs int64
}

// Purged is the result of a purge.
type Purged struct {
	Amount
	Units ru.Units
	// More reports that there is more to purge now.
	More bool
}

// plan is a group of items to purge.
type plan struct {
	under   *catalog.Container
	lsn     uint64 // the partition's, when the items were read
	cause   ru.Cause
	victims []victim
	stale   [][]byte // keys of rows without an item
	marks   marks
	moved   bool   // marks have moved
	pruneMs int64  // remove events before it; 0 for none
	surplus bool   // remove those that are too many
	logTo   uint64 // remove the log of all versions up to this lsn; 0 for none

	done Purged
}

// victim is an item of a plan. Until readVictims it is only its row in an expiry order.
type victim struct {
	current
	deadlineMs int64
	kind       ttlKind // of the order that has its row
	at         mark
	removed    bool
}

// PurgeDue returns when purge has work here: when the next item may be purged by the clock's
// horizon, or earlier. It returns Never if nothing expires.
func (p *Partition) PurgeDue() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.now.rules.inert() && p.mu.now.container.AllVersions == 0 {
		return never
	}
	return p.mu.soonestMs
}

// ExpiryDue returns when the next item expires that is not purged, or earlier: PurgeDue without
// the container's grace.
func (p *Partition) ExpiryDue() int64 {
	due := p.PurgeDue()
	if due == never {
		return never
	}
	return due - graceMs(p.Container())
}

// Never is the result of PurgeDue if nothing expires.
const Never = never

// Purge purges a group of items that have expired by the clock's horizon, and whose
// container's grace has passed.
func (p *Partition) Purge(ctx context.Context, q Purge) (Purged, error) {
	p.turn.Lock()
	defer p.turn.Unlock()
	pl, next, err := p.plan(q)
	if err != nil {
		return Purged{}, fmt.Errorf("plan a purge: %w", err)
	}
	if len(pl.victims) > 0 || len(pl.stale) > 0 || pl.pruneMs > 0 || pl.surplus || pl.logTo > 0 || pl.moved {
		_, err := p.submit(ctx, &job{task: &task{do: pl.purge, under: pl.under, awaited: q.Cause == ru.Forced}})
		if err != nil {
			p.dueBy(0)
			if errors.Is(err, errStale) {
				return Purged{More: true}, nil
			}
			return Purged{}, err
		}
	}
	p.dueBy(next)
	return pl.done, nil
}

// dueBy makes purge due at a moment or earlier. A plan clears soonestMs, so after a failed
// plan purge is due at once.
func (p *Partition) dueBy(ms int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.soonestMs = min(p.mu.soonestMs, ms)
}

// farBeyond reports whether a walk has moved the feed's mark so far that it is committed
// even if no item was found.
func (m *marks) farBeyond(durable marks) bool {
	return m[kindInherits].At.LSN > durable[kindInherits].At.LSN+planRows
}

// plan plans a group. next is when to plan again, by the clock's horizon.
func (p *Partition) plan(q Purge) (_ *plan, next int64, err error) {
	nowMs, doubtMs := p.horizon()
	p.mu.Lock()
	v, err := p.acquireLocked()
	from := p.mu.now.meta.Marks // may be ahead of the view's
	// Later writes lower it again by their deadlines; this plan finds those of earlier
	// ones.
	p.mu.soonestMs = never
	p.mu.Unlock()
	if err != nil {
		return nil, 0, err
	}
	defer p.release(v)
	defer func() {
		if err != nil {
			p.dueBy(0)
		}
	}()
	pl := &plan{under: v.container, lsn: v.meta.LSN, cause: q.Cause, marks: from}
	expiredNext, err := p.findExpired(v, pl, nowMs, doubtMs, q.MaxItems)
	if err != nil {
		return nil, 0, err
	}
	pl.moved = pl.marks != from
	pruneNext, err := p.planPrune(v, pl, q.PruneMs, nowMs)
	if err != nil {
		return nil, 0, err
	}
	logNext, err := p.planLog(v, pl, nowMs)
	next = min(expiredNext, pruneNext, logNext)
	if len(pl.victims) > 0 || next <= nowMs {
		pl.done.More = pl.done.More || len(pl.victims) > 0
		next = 0
	}
	return pl, next, err
}

// nextExpired returns the first expired items of a kind, and when there may be more. It
// moves the plan's mark past items of other kinds.
func (s stored) nextExpired(r *rules, k ttlKind, cutMs int64, pl *plan, most int) (expired []victim, next int64, err error) {
	if cutMs == noCut && !r.expires(k) {
		return nil, never, nil
	}
	from := pl.marks[k]
	from.At = from.At.next()
	rows := 0
	for e, err := range s.order(k, from) {
		row, err := k.parseRow(e, err)
		if err != nil {
			return nil, 0, err
		}
		if row.ms > cutMs {
			if !r.expires(k) {
				return expired, never, nil
			}
			return expired, r.expiresAt(k, row.ms), nil
		}
		if rows++; rows > planRows || len(expired) == most {
			pl.done.More = true
			return expired, 0, nil
		}
		if row.kind == k {
			expired = append(expired, victim{current: current{ordinal: row.ordinal}, deadlineMs: r.expiresAt(k, row.ms), kind: k, at: row.mark})
		} else if len(expired) == 0 {
			pl.marks[k] = row.mark
		}
	}
	return expired, never, nil
}

// findExpired finds the first items after the plan's marks that have expired by the clock's
// horizon, and reads them. next is when there may be more.
func (p *Partition) findExpired(v *view, pl *plan, nowMs, doubtMs int64, most int) (next int64, err error) {
	rules, cut := v.purgeable(nowMs, doubtMs)
	next = never
	for k := range expiring {
		expired, more, err := v.nextExpired(&rules, k, cut[k], pl, most)
		if err != nil {
			return 0, err
		}
		pl.victims, next = append(pl.victims, expired...), min(next, more)
	}
	pl.choose(most)
	if next > 0 { // 0 is at once
		next = purgeableFrom(next, graceMs(v.container))
	}
	return next, p.readVictims(v, pl)
}

// purgeable returns the rules that purge goes by, and the cuts up to which items may be
// purged.
func (v *view) purgeable(horizonMs, doubtMs int64) (rules, cuts) {
	horizonMs -= graceMs(v.container)
	r := v.rules.atHorizon(horizonMs, doubtMs)
	return r, r.cutsAt(horizonMs)
}

// choose keeps, of the items found in both orders, those that expired first.
func (pl *plan) choose(most int) {
	slices.SortStableFunc(pl.victims, func(a, b victim) int { return cmp.Compare(a.deadlineMs, b.deadlineMs) })
	if len(pl.victims) > most {
		pl.victims, pl.done.More = pl.victims[:most], true
	}
	for i := range pl.victims {
		pl.marks[pl.victims[i].kind] = pl.victims[i].at
	}
}

// readVictims reads the items, and computes their derived rows.
func (p *Partition) readVictims(v *view, pl *plan) error {
	var space index.Entries
	if p.far {
		if err := p.readFarVictims(v, pl.victims, &space); err != nil {
			return err
		}
	}
	for from := 0; from < len(pl.victims) && !p.far; {
		to := from + 1
		for to < len(pl.victims) && isNear(&pl.victims[to-1], &pl.victims[to]) {
			to++
		}
		if err := v.readRun(pl.victims[from:to], &space); err != nil {
			return err
		}
		from = to
	}
	pl.victims = slices.DeleteFunc(pl.victims, func(c victim) bool {
		if stale := !c.exists; stale {
			pl.stale = append(pl.stale, p.prefix.appendOrderKey(nil, c.kind, c.at))
		}
		return !c.exists
	})
	return nil
}

// nearItems is how far apart two items may be for a walk from one to the other to be
// cheaper than finding the second.
const nearItems = 4

// isNear reports whether b is a little after a among the items.
func isNear(a, b *victim) bool { return a.ordinal < b.ordinal && b.ordinal-a.ordinal <= nearItems }

// readRun reads items that are near each other, in one walk. An item that has been written
// again, or removed, does not exist. The memory of space is used for each of them.
func (v *view) readRun(run []victim, space *index.Entries) error {
	last := run[len(run)-1].ordinal
	lower, upper := v.prefix.appendItemKey(nil, run[0].ordinal), v.prefix.appendItemKey(nil, last+1)
	for e, err := range v.snap.Scan(lower, upper, kv.Forward) {
		if err != nil {
			return err
		}
		ordinal, err := ordinalOf(e.Key)
		if err != nil {
			return err
		}
		for len(run) > 0 && run[0].ordinal < ordinal {
			run = run[1:]
		}
		if len(run) == 0 || run[0].ordinal != ordinal {
			continue
		}
		if err := run[0].read(v.container, e, space); err != nil {
			return err
		}
		if run = run[1:]; len(run)%yieldItems == 0 {
			runtime.Gosched()
		}
	}
	return nil
}

// yieldItems is after how many items a plan lets other goroutines run. Otherwise requests
// that are ready wait until the scheduler interrupts the plan, which takes 10 ms.
const yieldItems = 16

// read takes the item from its row, unless it was written after the victim was found. It
// keeps what a removal needs, which does not include the body.
func (c *victim) read(container *catalog.Container, e kv.Entry, space *index.Entries) error {
	item, err := itemOf(e)
	if err != nil || item.header.at() != c.at.At {
		return err
	}
	if item.derived = true; derives(container) {
		err = item.deriveFrom(container, value.ObjectOf(item.body), *space, memory.Room{})
		*space = item.entries
		item.entries = space.Clone()
	}
	item.header.identity, item.body = slices.Clone(item.header.identity), nil
	c.current = item
	return err
}

// purge removes the items of a plan that have not changed since.
func (pl *plan) purge(w *writer) error {
	w.warmRemovals(pl.victims)
	for i := range pl.victims {
		c := &pl.victims[i]
		same, err := w.unchanged(pl.lsn, &c.current)
		if err != nil {
			return err
		}
		if !same || !c.header.expired(&w.view.rules, w.nowMs) {
			continue
		}
		if err := w.prepareRemoval(&c.current, memory.Room{}); err != nil {
			return err
		}
		c.removed = true
	}
	pl.victims = slices.DeleteFunc(pl.victims, func(c victim) bool { return !c.removed })
	w.removeVictims(pl)
	for _, key := range pl.stale {
		w.batch.Delete(key, 0)
	}
	w.prune(pl)
	w.pruneLog(pl.logTo)
	w.meta.Marks = pl.marks
	if w.batch.Len() == 0 && pl.marks.farBeyond(w.marked) { // the marks alone are worth a commit
		w.batch.Set(w.p.prefix.metaKey(), w.meta.encode())
	}
	return nil
}

// unchanged reports whether an item has not changed since the partition was at the given
// lsn.
func (w *writer) unchanged(lsn uint64, c *current) (bool, error) {
	if _, changed := w.changed(c.header.identity); changed {
		return false, nil
	}
	if w.view.meta.LSN == lsn {
		return true, nil
	}
	// The item has changed unless its feed row is still there, since every write and touch
	// moves it. A touch that the change feed does not show leaves a row behind, which says so.
	w.key = w.p.prefix.appendFeedKey(w.key[:0], c.header.at())
	row, found, err := rowAt(w.view.snap, w.key, parseFeedRow)
	return found && row.kind != kindMoved, err
}

// removeVictims removes the items: long runs of adjacent ones by range, the others row by
// row.
func (w *writer) removeVictims(pl *plan) {
	for from := 0; from < len(pl.victims); {
		to := from + 1
		for to < len(pl.victims) && follows(&pl.victims[to-1], &pl.victims[to]) {
			to++
		}
		run := pl.victims[from:to]
		var ranged terms
		if len(run) >= rangeRun {
			ranged = w.removeRun(run)
		}
		for i := range run {
			c := &run[i].current
			w.takeExpiryLSN(&c.header)
			w.recordPurge(c)
			if len(run) >= rangeRun {
				w.removeScattered(c, ranged)
			} else {
				w.removeRows(c)
			}
			pl.done.Units += c.removal().Charge()
			pl.done.Amount = pl.done.Plus(c.header.amount(1))
		}
		from = to
	}
	if pl.done.Items > 0 {
		w.p.ledger.Add(pl.cause, pl.done.Units, pl.done.Items, pl.done.Bytes)
	}
}

// follows reports whether b was created and last written right after a, so that no other
// row is between theirs in the items and in the feed. Writes that share an lsn have an n,
// and do not count. Nor do items that were touched.
func follows(a, b *victim) bool {
	return b.ordinal == a.ordinal+1 && b.header.lsn == a.header.lsn+1 && a.header.n == 0 && b.header.n == 0 &&
		a.header.baseMs == 0 && b.header.baseMs == 0
}

// removeRun removes the item rows and the feed rows of a run, and the index rows of the terms
// that it returns. A run is all items between its first and its last, so that every row that
// a term has in between is of one of them.
func (w *writer) removeRun(run []victim) (ranged terms) {
	x, first, last := &w.p.prefix, &run[0], &run[len(run)-1]
	w.batch.DeleteRange(x.appendItemKey(nil, first.ordinal), x.appendItemKey(nil, last.ordinal+1))
	w.batch.DeleteRange(x.appendFeedKey(nil, position{LSN: first.header.lsn}), x.appendFeedKey(nil, position{LSN: last.header.lsn + 1}))
	ranged = commonTerms(run)
	for term := range ranged {
		w.removeTerm([]byte(term), first.ordinal, last.ordinal)
	}
	return ranged
}

const (
	// termSample is how many items of a run are looked at for common terms: the first ones,
	// since values may come back in any rhythm.
	termSample = 64
	// commonTerm is how many of them have a common term. One range delete of its rows then
	// replaces dozens of deletes.
	commonTerm = 8
)

// commonTerms returns the terms that many items of a run have, such as those of a property
// with few values.
func commonTerms(run []victim) terms {
	counts := map[string]int{}
	common := terms{}
	for i := range min(len(run), termSample) {
		entries := &run[i].entries
		for e := range entries.Len() {
			entry := entries.At(e)
			if !index.IsTerm(entry) {
				continue
			}
			n := counts[string(entry)] + 1
			counts[string(entry)] = n
			if n == commonTerm {
				common[string(entry)] = struct{}{}
			}
		}
	}
	return common
}

// purgeItem purges an expired item that a write replaces or removes.
func (w *writer) purgeItem(c *current) {
	w.recordPurge(c)
	w.removeRows(c)
	w.assisted.Amount = w.assisted.Plus(c.header.amount(1))
	w.assisted.units += c.removal().Charge()
}

// recordPurge records that an expired item is removed: as an event, in the log and in the
// counts.
func (w *writer) recordPurge(c *current) {
	w.putEvent(c)
	w.logExpired(&c.header)
	w.purged = w.purged.Plus(c.header.amount(1))
	w.purgedItems = append(w.purgedItems, purgedItem{c.logical, int64(c.header.size)})
}

// Oldest returns when the first item expired that is not purged yet, as of nowMs, and
// whether there is one. An item counts as expired from the end of its container's grace on,
// since purge waits for that.
func (p *Partition) Oldest(nowMs int64) (expiredMs int64, found bool, err error) {
	nowMs = p.notBefore(nowMs)
	v, err := p.acquire()
	if err != nil {
		return 0, false, err
	}
	defer p.release(v)
	grace := graceMs(v.container)
	deadlineMs, found, err := v.firstExpired(v.rules.cutsAt(nowMs - grace))
	if !found || err != nil {
		return 0, false, err
	}
	deadlineMs = purgeableFrom(deadlineMs, grace)
	changedMs := v.meta.ChangedMs
	if deadlineMs > nowMs { // final: it had expired before the default changed
		return changedMs, true, nil
	}
	return max(deadlineMs, changedMs), true, nil
}

// firstExpired returns the deadline of the first expired item that is not purged yet, and
// whether there is one.
func (v *view) firstExpired(cut cuts) (deadlineMs int64, found bool, err error) {
	pl := &plan{marks: v.meta.Marks}
	deadlineMs = never
	for k := range expiring {
		for pl.done.More = true; pl.done.More; {
			pl.done.More = false
			expired, _, err := v.nextExpired(&v.rules, k, cut[k], pl, 1)
			if err != nil {
				return 0, false, err
			}
			if len(expired) > 0 {
				deadlineMs, found = min(deadlineMs, expired[0].deadlineMs), true
				break
			}
		}
	}
	return deadlineMs, found, nil
}

// DueOf returns when purge has work in a partition that is not open, or earlier. It reads
// only a few rows.
func DueOf(snap kv.Snapshot, c *catalog.Container, index int) (int64, error) {
	x := partitionPrefix(c.RID, index)
	s := stored{snap, &x}
	m, found, err := s.readMeta(index)
	if err != nil {
		return 0, err
	}
	if !found {
		return never, nil // nothing was written yet
	}
	if m.Epoch != c.Epoch {
		return 0, nil
	}
	if m.IndexedTo != indexedAll {
		return 0, nil // purge's caller also continues indexing
	}
	r := m.rules()
	logNext := int64(never)
	if c.AllVersions > 0 {
		if logNext, err = s.logDue(c); err != nil {
			return 0, err
		}
	}
	if r.inert() {
		return logNext, nil
	}
	if r.final != (cuts{}) {
		return 0, nil
	}
	next := logNext
	for k := range expiring {
		if r.expires(k) {
			// No item is expired by this cut, so next is when the first one expires.
			_, first, err := s.nextExpired(&r, k, 1, &plan{marks: m.Marks}, 1)
			if err != nil {
				return 0, err
			}
			next = min(next, purgeableFrom(first, graceMs(c)))
		}
	}
	return next, nil
}
