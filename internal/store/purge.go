// SPDX-License-Identifier: MIT

// Purge takes expired items away, a group at a time. It is only about space:
// nobody sees the difference.
//
// Finding a group happens outside the loop, on a snapshot, from two marks on: the
// feed, which is the expiry order of the items that inherit, and the own rows,
// which are that of the others. The loop then takes each item away if it is still
// as it was found, and moves the marks in the same batch. New settings make a plan
// void: it was made under the old ones.

package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/memory"
	"github.com/mayflydb/mayfly/internal/ru"
)

const (
	// planRows bounds how many rows a plan looks at: those of items that live on
	// lie between the dead.
	planRows = 4096
	// rangeRun is how many neighbours it takes for one range delete: fewer leave
	// one by one, since an engine may have to flush for each range.
	rangeRun = 128
)

// Purge asks for a group of expired items to be taken away.
type Purge struct {
	MaxItems int
	Cause    ru.Cause
	// PruneMs is the moment up to which events of expiry need not be kept.
	PruneMs int64
}

// Purged is what a purge has done.
type Purged struct {
	Amount
	Units ru.Units
	// More says that there is more to be taken away now.
	More bool
}

// plan is a group of items to be taken away.
type plan struct {
	epoch   uint64
	lsn     uint64 // the partition's, when the items were read
	cause   ru.Cause
	victims []victim
	stale   [][]byte // rows that lead to no item
	feed    position
	own     ownPosition
	moved   bool   // one of these marks
	pruneMs int64  // events before it go; 0 for none
	logTo   uint64 // the log of all versions goes up to this lsn; 0 for none of it

	done Purged
}

// victim is an item that is to leave, or a row of the feed or the expiry order on
// the way to it.
type victim struct {
	current
	deadMs  int64
	byOwn   bool // found by its own ttl
	at      position
	ownAt   ownPosition
	rowKey  []byte
	removed bool
}

// PurgeDue returns when purge has something to do: at the earliest when the next
// item expires by the clock's horizon, never if none does.
func (p *Partition) PurgeDue() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.now.rules.inert() && p.mu.now.container.AllVersions == 0 {
		return never
	}
	return p.mu.soonestMs
}

// Never is what PurgeDue returns if nothing expires.
const Never = never

// Purge takes a group of items away that have expired by the clock's horizon.
func (p *Partition) Purge(ctx context.Context, q Purge) (Purged, error) {
	p.purging.Lock()
	defer p.purging.Unlock()
	pl, next, err := p.plan(q)
	if err != nil {
		return Purged{}, fmt.Errorf("plan a purge: %w", err)
	}
	if len(pl.victims) > 0 || len(pl.stale) > 0 || pl.pruneMs > 0 || pl.logTo > 0 || pl.moved {
		_, err := p.submit(ctx, &job{purge: pl, done: make(chan struct{})})
		if err != nil {
			p.dueAtOnce()
		}
		if errors.Is(err, errStale) {
			return Purged{More: true}, nil
		}
		if err != nil {
			return Purged{}, err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.soonestMs = min(p.mu.soonestMs, next)
	return pl.done, nil
}

// dueAtOnce makes up for what a plan that came to nothing forgot.
func (p *Partition) dueAtOnce() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.soonestMs = 0
}

// farBeyond reports whether the feed was walked so far without a victim that the mark
// should be made durable all the same.
func (p position) farBeyond(durable position) bool { return p.LSN > durable.LSN+planRows }

// plan finds a group. next is when to look again, by the clock's horizon.
func (p *Partition) plan(q Purge) (_ *plan, next int64, err error) {
	nowMs, doubtMs := p.horizon()
	p.mu.Lock()
	v, err := p.acquireLocked()
	marks := p.mu.now.meta // which may be ahead of the view's
	// Writes from here on tell their deadlines; this finds those before.
	p.mu.soonestMs = never
	p.mu.Unlock()
	if err != nil {
		return nil, 0, err
	}
	defer p.release(v)
	defer func() {
		if err != nil {
			p.dueAtOnce()
		}
	}()
	pl := &plan{epoch: v.container.Epoch, lsn: v.meta.LSN, cause: q.Cause, feed: marks.FeedMark, own: marks.OwnMark}
	surely := v.rules.surely(nowMs, doubtMs)
	walk := deathWalk{v.snap, &p.prefix, &surely}
	cut := surely.cutsAt(nowMs)
	feed, feedNext, err := walk.feed(cut, pl, q.MaxItems)
	if err != nil {
		return nil, 0, err
	}
	own, ownNext, err := walk.own(cut, pl, q.MaxItems)
	if err != nil {
		return nil, 0, err
	}
	pl.choose(feed, own, q.MaxItems)
	pl.moved = pl.feed != marks.FeedMark || pl.own != marks.OwnMark
	if err := p.readVictims(v, pl); err != nil {
		return nil, 0, err
	}
	pruneNext, err := p.planPrune(v, pl, q.PruneMs, nowMs)
	if err != nil {
		return nil, 0, err
	}
	logNext, err := p.planLog(v, pl, nowMs)
	next = min(feedNext, ownNext, pruneNext, logNext)
	if len(pl.victims) > 0 || next <= nowMs {
		pl.done.More = pl.done.More || len(pl.victims) > 0
		next = 0
	}
	return pl, next, err
}

// deathWalk finds the dead in the two expiry orders.
type deathWalk struct {
	snap   kv.Snapshot
	prefix *prefix
	rules  *rules
}

// feed returns the first dead items that inherit, and when there may be more. It
// moves the plan's mark past what lives on by a ttl of its own.
func (d deathWalk) feed(cut cuts, pl *plan, most int) (dead []victim, next int64, err error) {
	if cut.inheritMs == noCut && d.rules.containerDefault <= 0 {
		return nil, never, nil
	}
	lower := d.prefix.appendFeedKey(nil, pl.feed.LSN, pl.feed.N)
	if pl.feed != (position{}) {
		lower = append(lower, 0)
	}
	_, upper := d.prefix.space(feedSpace)
	rows := 0
	for e, err := range d.snap.Scan(lower, upper, kv.Forward) {
		if err != nil {
			return nil, 0, err
		}
		f, err := parseFeedRow(e)
		if err != nil {
			return nil, 0, err
		}
		if f.writtenMs > cut.inheritMs {
			return dead, deadline(f.writtenMs, catalog.TTLAbsent, d.rules.containerDefault), nil
		}
		if rows++; rows > planRows || len(dead) == most {
			pl.done.More = true
			return dead, 0, nil
		}
		if f.kind == kindInherits {
			dead = append(dead, victim{
				current: current{ordinal: f.ordinal}, at: f.at, rowKey: bytes.Clone(e.Key),
				deadMs: deadline(f.writtenMs, catalog.TTLAbsent, d.rules.containerDefault),
			})
		} else if len(dead) == 0 {
			pl.feed = f.at
		}
	}
	return dead, never, nil
}

// own returns the first dead items that have a ttl of their own.
func (d deathWalk) own(cut cuts, pl *plan, most int) (dead []victim, next int64, err error) {
	if cut.ownMs == noCut {
		return nil, never, nil
	}
	lower := d.prefix.appendOwnKey(nil, pl.own.ExpiryMs, pl.own.At.LSN, pl.own.At.N)
	if pl.own != (ownPosition{}) {
		lower = append(lower, 0)
	}
	_, upper := d.prefix.space(ownSpace)
	for e, err := range d.snap.Scan(lower, upper, kv.Forward) {
		if err != nil {
			return nil, 0, err
		}
		o, err := parseOwnRow(e)
		if err != nil {
			return nil, 0, err
		}
		if o.at.ExpiryMs > cut.ownMs {
			if d.rules.containerDefault == catalog.TTLAbsent {
				return dead, never, nil
			}
			return dead, o.at.ExpiryMs, nil
		}
		if len(dead) == most {
			pl.done.More = true
			return dead, 0, nil
		}
		dead = append(dead, victim{
			current: current{ordinal: o.ordinal}, at: o.at.At, ownAt: o.at, byOwn: true, rowKey: bytes.Clone(e.Key),
			deadMs: o.at.ExpiryMs,
		})
	}
	return dead, never, nil
}

// choose merges both by the time of death, and takes the first.
func (pl *plan) choose(feed, own []victim, most int) {
	f, o := 0, 0
	for f+o < most && (f < len(feed) || o < len(own)) {
		if o == len(own) || f < len(feed) && feed[f].deadMs <= own[o].deadMs {
			pl.victims = append(pl.victims, feed[f])
			pl.feed = feed[f].at
			f++
		} else {
			pl.victims = append(pl.victims, own[o])
			pl.own = own[o].ownAt
			o++
		}
	}
	pl.done.More = pl.done.More || f < len(feed) || o < len(own)
}

// readVictims reads the items, and works out the rows that leave with them.
func (p *Partition) readVictims(v *view, pl *plan) error {
	kept := pl.victims[:0]
	for i := range pl.victims {
		c := &pl.victims[i]
		key := p.prefix.appendItemKey(nil, c.ordinal)
		row, found, err := v.snap.Get(key)
		if err != nil {
			return err
		}
		if found {
			if c.header, c.body, err = parseItem(key, row); err != nil {
				return err
			}
		}
		if !found || c.header.lsn != c.at.LSN || c.header.n != c.at.N {
			pl.stale = append(pl.stale, c.rowKey)
			continue
		}
		c.exists = true
		if err := c.derive(v.container, memory.Room{}); err != nil {
			return err
		}
		kept = append(kept, *c)
	}
	pl.victims = kept
	return nil
}

// purge takes the items of a plan away, as far as they are still as they were.
func (w *writer) purge(pl *plan) error {
	if pl.epoch != w.view.container.Epoch {
		return errStale
	}
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
	w.prune(pl.pruneMs)
	w.pruneLog(pl.logTo)
	w.meta.FeedMark, w.meta.OwnMark = pl.feed, pl.own
	if w.batch.Len() == 0 && w.meta.FeedMark.farBeyond(w.marked) { // the marks alone are worth a commit
		w.batch.Set(w.p.prefix.metaKey(), w.meta.encode())
	}
	return nil
}

// unchanged reports whether an item is as it was read when the partition's lsn was
// the given one.
func (w *writer) unchanged(lsn uint64, c *current) (bool, error) {
	if _, changed := w.changed(c.header.identity); changed {
		return false, nil
	}
	if w.view.meta.LSN == lsn {
		return true, nil
	}
	// Its row in the feed is at its latest write.
	w.key = w.p.prefix.appendFeedKey(w.key[:0], c.header.lsn, c.header.n)
	_, found, err := w.view.snap.Get(w.key)
	return found, err
}

// removeVictims takes the items away: what lies together in long runs by range,
// all else row by row.
func (w *writer) removeVictims(pl *plan) {
	for from := 0; from < len(pl.victims); {
		to := from + 1
		for to < len(pl.victims) && follows(&pl.victims[to-1], &pl.victims[to]) {
			to++
		}
		run := pl.victims[from:to]
		if len(run) >= rangeRun {
			w.removeRun(run)
		}
		for i := range run {
			c := &run[i].current
			w.stepExpired(&c.header)
			w.record(c)
			if len(run) >= rangeRun {
				w.removeScattered(c)
			} else {
				w.removeRows(c)
			}
			pl.done.Units += c.removal().Charge()
			pl.done.Amount = pl.done.Plus(Amount{1, int64(c.header.size)})
		}
		from = to
	}
	if pl.done.Items > 0 {
		w.p.ledger.Add(pl.cause, pl.done.Units, pl.done.Items, pl.done.Bytes)
	}
}

// follows reports whether b was created and last written right after a, so that
// nothing lies between them in either order: writes of which several share an lsn
// have another n.
func follows(a, b *victim) bool {
	return b.ordinal == a.ordinal+1 && b.header.lsn == a.header.lsn+1 && a.header.n == 0 && b.header.n == 0
}

// removeRun removes the items' own rows, and those in the feed, of a run.
func (w *writer) removeRun(run []victim) {
	x, first, last := &w.p.prefix, &run[0], &run[len(run)-1]
	w.batch.DeleteRange(x.appendItemKey(nil, first.ordinal), x.appendItemKey(nil, last.ordinal+1))
	w.batch.DeleteRange(x.appendFeedKey(nil, first.header.lsn, 0), x.appendFeedKey(nil, last.header.lsn+1, 0))
}

// bury removes an expired item that stands in the way of a write.
func (w *writer) bury(c *current) {
	w.record(c)
	w.removeRows(c)
	w.assisted.Amount = w.assisted.Plus(Amount{1, int64(c.header.size)})
	w.assisted.units += c.removal().Charge()
}

// record notes that an expired item leaves.
func (w *writer) record(c *current) {
	w.putEvent(c)
	w.logExpired(&c.header)
	w.buried = w.buried.Plus(Amount{1, int64(c.header.size)})
	w.burials = append(w.burials, burial{c.logical, int64(c.header.size)})
}

// Oldest returns when the oldest item expired that is still there, and whether
// there is one, as of nowMs.
func (p *Partition) Oldest(nowMs int64) (deadMs int64, found bool, err error) {
	v, err := p.acquire()
	if err != nil {
		return 0, false, err
	}
	defer p.release(v)
	d := deathWalk{v.snap, &p.prefix, &v.rules}
	deadMs, found, err = d.first(&v.meta, v.rules.cutsAt(nowMs))
	if !found || err != nil {
		return 0, false, err
	}
	changedMs := v.meta.ChangedMs
	if deadMs > nowMs { // dead for good only: it was so when the default changed
		return changedMs, true, nil
	}
	return max(deadMs, changedMs), true, nil
}

// first returns the deadline of the first of the dead, and whether there is one.
func (d deathWalk) first(m *meta, cut cuts) (deadMs int64, found bool, err error) {
	pl := &plan{feed: m.FeedMark, own: m.OwnMark}
	deadMs = never
	for {
		pl.done.More = false
		feed, _, err := d.feed(cut, pl, 1)
		if err != nil {
			return 0, false, err
		}
		if len(feed) > 0 {
			deadMs, found = feed[0].deadMs, true
		}
		if found || !pl.done.More {
			break
		}
	}
	own, _, err := d.own(cut, pl, 1)
	if err == nil && len(own) > 0 {
		deadMs, found = min(deadMs, own[0].deadMs), true
	}
	return deadMs, found, err
}

// DueOf returns when purge has something to do in a partition that is not open, as
// far as can be told from a few rows: at that time or later.
func DueOf(snap kv.Snapshot, c *catalog.Container, index int) (int64, error) {
	x := partitionPrefix(c.RID, index)
	m, found, err := readMeta(snap, &x, index)
	if err != nil {
		return 0, err
	}
	if !found {
		return never, nil // nothing was ever written
	}
	if m.Epoch != c.Epoch {
		return 0, nil
	}
	if m.IndexedTo != indexedAll {
		return 0, nil // whoever looks after purge looks after the index too
	}
	r := m.rules()
	logNext := int64(never)
	if c.AllVersions > 0 {
		if logNext, err = (logWalk{snap, &x}).due(c); err != nil {
			return 0, err
		}
	}
	if r.inert() {
		return logNext, nil
	}
	d := deathWalk{snap, &x, &r}
	pl := &plan{feed: m.FeedMark, own: m.OwnMark}
	if r.finalInheritMs > 0 || r.finalOwnMs > 0 {
		return 0, nil
	}
	feedNext := int64(never)
	if r.containerDefault > 0 {
		// Before the beginning of time nothing is dead, so this is the first to die.
		if _, feedNext, err = d.feed(cuts{inheritMs: 1}, pl, 1); err != nil {
			return 0, err
		}
	}
	_, ownNext, err := d.own(cuts{ownMs: 1}, pl, 1)
	return min(feedNext, ownNext, logNext), err
}
