// SPDX-License-Identifier: MIT

// Rewinding a partition at rest, after the database's clock has followed a wrong one: all
// times in it that came from that clock go back, by a function that keeps their order. An
// item keeps its lsn, its position in the feed and its remaining time to live. Its _ts
// changes, and so does its etag, which contains the second of the write.
//
// There are four passes. Each goes through its rows group by group, and commits each group
// in one batch with a mark of its progress: an interrupted rewind resumes there, and no row
// is rewound twice.
//
//	log     the times, and the images of creates and replaces
//	feed    the items, with all their rows
//	gone    the events
//	meta    the final cuts, and purge's mark in the expiry order
//
// The log comes first, because the pass of the items appends to it: an item may now be
// expired before the mark up to which the log has all expiries.

package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/memory"
)

const (
	// RewindRows is the most rows in a group, and rewindBytes about the most bytes.
	RewindRows  = 512
	rewindBytes = 4 << 20
)

// Rewind is how times go back.
type Rewind struct {
	// Back returns the new time. It never returns a later time than ms, and keeps the order
	// of times.
	Back func(ms int64) int64
	// FromMs is the first time that changes.
	FromMs int64
	// Rows is the most rows in a group.
	Rows int
	// Mark is the key of the mark's row. Its value is Owner followed by Rewound.Mark.
	Mark, Owner []byte
}

// Rewound is the result of one group.
type Rewound struct {
	// Mark is where the next group begins.
	Mark  []byte
	Items int
	Done  bool
}

// rewindPass is the first byte of a mark. The last key that was rewound follows.
type rewindPass byte

const (
	rewindLog rewindPass = iota
	rewindFeed
	rewindEvents
	rewindMeta
	rewindDone
)

// rewindPlan is a group.
type rewindPlan struct {
	Rewind
	pass  rewindPass
	items []rewoundItem
	rows  []rewoundRow
	bytes int
	mark  []byte
}

type rewoundItem struct {
	old, next current
	row       []byte
}

// rewoundRow is a row of the log, or an event, whose key changes too.
type rewoundRow struct{ oldKey, key, value []byte }

// HasLog reports whether a partition keeps a log of all versions.
func HasLog(snap kv.Snapshot, c *catalog.Container, index int) (bool, error) {
	x := partitionPrefix(c.RID, index)
	_, found, err := stored{snap, &x}.logState()
	return found, err
}

// Rewind rewinds one group from a mark on, nil at the beginning. Nothing else may use the
// partition meanwhile, and its clock must be at the time that the rewind goes back to.
func (p *Partition) Rewind(ctx context.Context, r Rewind, mark []byte) (Rewound, error) {
	if len(mark) > 0 && rewindPass(mark[0]) >= rewindDone { // it was interrupted after the last group
		return Rewound{Mark: mark, Done: true}, nil
	}
	pl, err := p.planRewind(r, mark)
	if err != nil {
		return Rewound{}, fmt.Errorf("plan a rewind: %w", err)
	}
	if _, err := p.submit(ctx, &job{task: &task{do: pl.write}}); err != nil {
		return Rewound{}, err
	}
	return Rewound{Mark: pl.mark, Items: len(pl.items), Done: rewindPass(pl.mark[0]) == rewindDone}, nil
}

func (p *Partition) planRewind(r Rewind, mark []byte) (*rewindPlan, error) {
	v, err := p.acquire()
	if err != nil {
		return nil, err
	}
	defer p.release(v)
	pl := &rewindPlan{Rewind: r}
	var after []byte
	if len(mark) > 0 {
		pl.pass, after = rewindPass(mark[0]), mark[1:]
	}
	pass := map[rewindPass]struct {
		space byte
		row   func(*view, *rewindPlan, kv.Entry) error
		start func(*view, int64) ([]byte, error)
	}{
		rewindLog:    {logSpace, p.rewindLogRow, p.rewindLogFrom},
		rewindFeed:   {feedSpace, p.rewindFeedRow, p.rewindFeedFrom},
		rewindEvents: {eventSpace, p.rewindEvent, nil},
	}[pl.pass]
	if pass.row == nil {
		pl.mark = []byte{byte(pl.pass) + 1}
		return pl, nil
	}
	lower, upper := p.prefix.space(pass.space)
	switch {
	case len(after) > 0:
		lower = append(bytes.Clone(after), 0)
	case pass.start != nil:
		if lower, err = pass.start(v, r.FromMs); err != nil {
			return nil, err
		}
	}
	rows := 0
	for e, err := range v.snap.Scan(lower, upper, kv.Forward) {
		if err != nil {
			return nil, err
		}
		if rows++; rows > r.Rows || pl.bytes > rewindBytes {
			return pl, nil
		}
		pl.mark = append([]byte{byte(pl.pass)}, e.Key...)
		if err := pass.row(v, pl, e); err != nil {
			return nil, err
		}
	}
	pl.mark = []byte{byte(pl.pass) + 1}
	return pl, nil
}

// rewindFeedFrom and rewindLogFrom return the key of the first row that has to change.
func (p *Partition) rewindFeedFrom(v *view, fromMs int64) ([]byte, error) {
	lsn, err := p.feedBefore(v, fromMs)
	return p.prefix.appendFeedKey(nil, position{LSN: lsn + 1}), err
}

func (p *Partition) rewindLogFrom(v *view, fromMs int64) ([]byte, error) {
	lsn, err := v.loggedBefore(v.meta.LSN, fromMs)
	return p.prefix.appendLogKey(nil, lsn+1, 0), err
}

// rewindFeedRow plans the item of a feed row.
func (p *Partition) rewindFeedRow(v *view, pl *rewindPlan, e kv.Entry) error {
	f, err := parseFeedRow(e)
	if err != nil {
		return err
	}
	var i rewoundItem
	if i.old, err = v.itemAt(f.ordinal); err != nil || !i.old.exists {
		return err // purge removes the row
	}
	h := &i.old.header
	next := h.rewound(pl.Back)
	if h.at() != f.At || next.writtenMs == h.writtenMs && next.baseMs == h.baseMs {
		return nil // also at the write of an item that was touched since: the row of the touch comes later
	}
	i.next = current{exists: true, ordinal: f.ordinal, header: next}
	i.row = slices.Concat(make([]byte, h.bytes()), h.identity, i.old.body)
	i.next.body = i.row[h.bodyAt():]
	i.next.header.put(i.row)
	if err := restamp(i.next.body, next.writtenMs); err != nil {
		return corrupt(p.prefix.appendItemKey(nil, f.ordinal), err.Error())
	}
	for _, c := range []*current{&i.old, &i.next} {
		if err := c.derive(v.container, memory.Room{}); err != nil {
			return err
		}
	}
	pl.items = append(pl.items, i)
	pl.bytes += 2*len(i.row) + rowBytes(&i.old.entries) + rowBytes(&i.next.entries)
	return nil
}

// afterETag is the text between the etag and the time in an item's body. All three have a
// fixed width (write.render).
const afterETag = `\"","_attachments":"attachments/","_ts":`

// stampsIn returns where in an item's body its etag and its _ts begin.
func stampsIn(body []byte) (etagAt, tsAt int, err error) {
	tsAt = len(body) - 1 - len(blankTS)
	etagAt = tsAt - len(afterETag) - len(blankETag)
	if etagAt < 0 || string(body[tsAt-len(afterETag):tsAt]) != afterETag {
		return 0, 0, fmt.Errorf("%w: an item that does not end with its _ts", kv.ErrCorrupt)
	}
	return etagAt, tsAt, nil
}

// etagIn returns the etag in an item's body.
func etagIn(body []byte) (string, error) {
	at, _, err := stampsIn(body)
	if err != nil {
		return "", err
	}
	return `"` + string(body[at:at+len(blankETag)]) + `"`, nil
}

// restamp puts another second into the _ts and the etag of an item's body.
func restamp(body []byte, ms int64) error {
	etagAt, tsAt, err := stampsIn(body)
	if err != nil {
		return err
	}
	copy(body[tsAt:], blankTS)
	strconv.AppendInt(body[tsAt:tsAt], ms/1000, 10)
	copy(body[etagAt:], fmt.Sprintf("%08x", uint32(ms/1000))) // header.etagText
	return nil
}

// rewindLogRow plans a row of the log. The image of a create or replace contains the time.
// Other rows have no image to change.
func (p *Partition) rewindLogRow(_ *view, pl *rewindPlan, e kv.Entry) error {
	r, err := parseLogRow(e)
	if err != nil {
		return err
	}
	ms := pl.Back(r.atMs)
	if ms == r.atMs {
		return nil
	}
	row := bytes.Clone(e.Value)
	binary.BigEndian.PutUint64(row[2:], uint64(ms))
	if r.kind == logCreate || r.kind == logReplace {
		if err := restamp(row[len(row)-len(r.image):], ms); err != nil {
			return corrupt(e.Key, err.Error())
		}
	}
	pl.rows = append(pl.rows, rewoundRow{key: bytes.Clone(e.Key), value: row})
	pl.bytes += len(row)
	return nil
}

// rewindEvent plans an event. It keeps its distance from the write, unless the item named
// its deadline itself, and does not get into the future.
func (p *Partition) rewindEvent(_ *view, pl *rewindPlan, e kv.Entry) error {
	ev, err := parseEventRow(e)
	if err != nil {
		return err
	}
	nowMs, ms := pl.Back(math.MaxInt64), pl.Back(ev.WrittenMs)
	to, by := ev.Key, ev.WrittenMs-ms
	if ev.Named {
		by = 0
	}
	to.DeadlineMs = min(to.DeadlineMs-by, nowMs)
	to.GoneMs = min(to.GoneMs-by, nowMs)
	if to == ev.Key && ms == ev.WrittenMs {
		return nil
	}
	row := bytes.Clone(e.Value)
	binary.BigEndian.PutUint64(row[8:], uint64(ms))
	pl.rows = append(pl.rows, rewoundRow{bytes.Clone(e.Key), p.prefix.appendEventKey(nil, to), row})
	pl.bytes += len(row)
	return nil
}

// write executes the plan.
func (pl *rewindPlan) write(w *writer) error {
	for i := range pl.items { // this may fail; what follows cannot
		it := &pl.items[i]
		if err := w.prepareRemoval(&it.old, memory.Room{}); err != nil {
			return err
		}
		if err := w.loadCounts(&it.next); err != nil {
			return err
		}
	}
	for i := range pl.items {
		w.rewindItem(&pl.items[i])
	}
	for _, r := range pl.rows {
		if r.oldKey != nil {
			w.batch.Delete(r.oldKey, len(r.value))
		}
		w.batch.Set(r.key, r.value)
	}
	if pl.pass == rewindMeta {
		w.rewindMeta(pl)
	}
	w.batch.Set(pl.Mark, slices.Concat(pl.Owner, pl.mark))
	return nil
}

func (w *writer) rewindItem(i *rewoundItem) {
	if !i.old.overfull {
		w.removeIndex(&i.old, &i.next.entries, nil)
	}
	w.putIndex(&i.next)
	w.removeVersion(&i.old)
	w.putVersion(&i.next, i.row)
	w.changes = append(w.changes, change{i.old.ordinal, i.old.entries, i.next.entries})
	// The item is now before the mark up to which the log has all expiries, so no other
	// code would log its expiry.
	if h := &i.next.header; w.log.on && h.kind() == kindOwn && w.log.state.hasExpiry(h) && !w.log.state.hasExpiry(&i.old.header) {
		w.meta.LSN++
		w.logChange(logExpiry, h, h.wroteAt().LSN, nil)
	}
}

// rewindMeta moves the final cuts, the change of settings and the first moment of events back,
// and purge's mark to the first time that an item may have gone back to.
func (w *writer) rewindMeta(pl *rewindPlan) {
	m := &w.meta
	was := m.Final[kindOwn]
	m.Final = cuts{max(0, m.Final[kindInherits]-(was-pl.Back(was))), pl.Back(was)}
	m.ChangedMs, m.PrunedMs = pl.Back(m.ChangedMs), pl.Back(m.PrunedMs)
	if back := (mark{ExpiryMs: pl.Back(pl.FromMs)}); back.before(m.Marks[kindOwn]) {
		m.Marks[kindOwn] = back
	}
}
