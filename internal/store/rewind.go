// SPDX-License-Identifier: MIT

// Rewinding a partition at rest, after the database's clock has followed a wrong one:
// every time in it that was taken from that clock goes back, by a function that keeps
// their order. An item keeps its lsn, its place in the feed and the life that it has
// left; its _ts and its etag, which has the second of the write in it, change.
//
// The rows go in four passes, each a group of rows at a time, and each group in one
// batch with a mark that says how far it is: what is interrupted goes on there, and no
// row is done twice.
//
//	log     the moments, and the images of what was written
//	feed    the items, with all their rows
//	gone    the events
//	meta    what was made final, and how far purge has come in the expiry order
//
// The log comes first: items that have expired where it has already passed are added to
// its end.

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
	// RewindRows is how many rows a group has at most, and rewindBytes how long they are.
	RewindRows  = 512
	rewindBytes = 4 << 20
)

// Rewind says how times go back.
type Rewind struct {
	// Back returns where a time goes: not forward, and no time before an earlier one.
	Back func(ms int64) int64
	// FromMs is the first time that goes elsewhere.
	FromMs int64
	// Rows is how many rows a group has at most.
	Rows int
	// Mark is the row of the mark, whose value is Owner and then Rewound.Mark.
	Mark, Owner []byte
}

// Rewound is what a group of a rewind has done.
type Rewound struct {
	// Mark is where the next begins.
	Mark  []byte
	Items int
	Done  bool
}

// rewindPass is the first byte of a mark; the last key that was done follows.
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

// rewoundRow is a row of the log or an event. An event has another key then.
type rewoundRow struct{ oldKey, key, value []byte }

// HasLog reports whether a partition keeps a log of all versions.
func HasLog(snap kv.Snapshot, c *catalog.Container, index int) (bool, error) {
	x := partitionPrefix(c.RID, index)
	_, found, err := stored{snap, &x}.logState()
	return found, err
}

// Rewind does a group of a rewind from a mark on, nil at the beginning. Nobody else may
// use the partition, and its clock stands where the rewind goes to.
func (p *Partition) Rewind(ctx context.Context, r Rewind, mark []byte) (Rewound, error) {
	if len(mark) > 0 && rewindPass(mark[0]) >= rewindDone { // it was interrupted after this
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
	return p.prefix.appendFeedKey(nil, lsn+1, 0), err
}

func (p *Partition) rewindLogFrom(v *view, fromMs int64) ([]byte, error) {
	lsn, err := v.loggedBefore(v.meta.LSN, fromMs)
	return p.prefix.appendLogKey(nil, lsn+1, 0), err
}

// rewindFeedRow plans an item.
func (p *Partition) rewindFeedRow(v *view, pl *rewindPlan, e kv.Entry) error {
	f, err := parseFeedRow(e)
	if err != nil {
		return err
	}
	var i rewoundItem
	if i.old, err = v.itemAt(f.ordinal); err != nil || !i.old.exists {
		return err // purge takes the row away
	}
	h := &i.old.header
	ms := pl.Back(h.writtenMs)
	if h.at() != f.At || ms == h.writtenMs {
		return nil
	}
	i.row = slices.Concat(make([]byte, headerBytes), h.identity, i.old.body)
	i.next = current{exists: true, ordinal: f.ordinal, header: *h, body: i.row[headerBytes+len(h.identity):]}
	i.next.header.writtenMs = ms
	i.next.header.put(i.row)
	if err := restamp(i.next.body, ms); err != nil {
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

// afterETag is what stands between the etag and the time in an item, both of which have
// places of fixed width (write.render).
const afterETag = `\"","_attachments":"attachments/","_ts":`

// restamp puts another second into an item's _ts and etag.
func restamp(body []byte, ms int64) error {
	tsAt := len(body) - 1 - len(blankTS)
	etagAt := tsAt - len(afterETag) - len(blankETag)
	if etagAt < 0 || string(body[tsAt-len(afterETag):tsAt]) != afterETag {
		return fmt.Errorf("an item that does not end with its _ts")
	}
	copy(body[tsAt:], blankTS)
	strconv.AppendInt(body[tsAt:tsAt], ms/1000, 10)
	copy(body[etagAt:], fmt.Sprintf("%08x", uint32(ms/1000))) // header.etagText
	return nil
}

// rewindLogRow plans a row of the log. What a create or a replace has written says when;
// a delete's image is that of an earlier version, and stays as it was.
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

// rewindEvent plans an event: it keeps its distance from the write, and is not in the
// future.
func (p *Partition) rewindEvent(_ *view, pl *rewindPlan, e kv.Entry) error {
	ev, err := parseEventRow(e)
	if err != nil {
		return err
	}
	nowMs, ms := pl.Back(math.MaxInt64), pl.Back(ev.WrittenMs)
	to := ev.Key
	to.DeadlineMs = min(to.DeadlineMs-(ev.WrittenMs-ms), nowMs)
	to.GoneMs = min(to.GoneMs-(ev.WrittenMs-ms), nowMs)
	if to == ev.Key && ms == ev.WrittenMs {
		return nil
	}
	row := bytes.Clone(e.Value)
	binary.BigEndian.PutUint64(row[8:], uint64(ms))
	pl.rows = append(pl.rows, rewoundRow{bytes.Clone(e.Key), p.prefix.appendEventKey(nil, to), row})
	pl.bytes += len(row)
	return nil
}

// write does what was planned.
func (pl *rewindPlan) write(w *writer) error {
	for i := range pl.items { // nothing is written before all of this has succeeded
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
		w.removeIndex(&i.old, &i.next.entries)
	}
	w.putIndex(&i.next)
	w.removeVersion(&i.old)
	w.putVersion(&i.next, i.row)
	w.changes = append(w.changes, change{i.old.ordinal, i.old.entries, i.next.entries})
	// The log has passed where the item is now: it has expired, and nobody would tell.
	if h := &i.next.header; w.log.on && kindOf(h.ttl) == kindOwn && w.log.state.hasExpiry(h) && !w.log.state.hasExpiry(&i.old.header) {
		w.meta.LSN++
		w.logChange(logExpiry, h, h.lsn, nil)
	}
}

// rewindMeta takes back what was made final at a wrong time, and lets purge begin anew
// where items may have gone to.
func (w *writer) rewindMeta(pl *rewindPlan) {
	m := &w.meta
	was := m.Final[kindOwn]
	m.Final = cuts{max(0, m.Final[kindInherits]-(was-pl.Back(was))), pl.Back(was)}
	m.ChangedMs = pl.Back(m.ChangedMs)
	if back := (mark{ExpiryMs: pl.Back(pl.FromMs)}); back.before(m.Marks[kindOwn]) {
		m.Marks[kindOwn] = back
	}
}
