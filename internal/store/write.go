// SPDX-License-Identifier: MIT

// Writing an item. What does not depend on the item's present state is prepared on the
// caller's goroutine (prepare). The rest is plain sequential code in the loop (execute).

package store

import (
	"bytes"
	"context"
	"errors"
	"strconv"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/index"
	"github.com/mayflydb/mayfly/internal/memory"
	"github.com/mayflydb/mayfly/internal/ru"
	"github.com/mayflydb/mayfly/internal/value"
)

// Op is a kind of write.
type Op int

// The kinds of write.
const (
	Create Op = iota + 1
	Upsert
	Replace
	Delete
	// Update replaces an item with what Change returns for it.
	Update
	// Undelete brings back an expired item that is not purged, as what Change returns for
	// it.
	Undelete
	// Read changes nothing and returns the item. In a WriteAll it sees the writes
	// before it.
	Read
	// Verify changes nothing. With IfMatch it fails unless there is an item with the etag.
	// With IfNoneMatch it fails if there is one.
	Verify
	// touch restarts the countdown of an item, if that is still due.
	touch
	// Unchanged changes nothing. It fails with ErrChanged if an item with the partition key
	// was written or deleted after the lsn Since, or if that is not known.
	Unchanged
)

// Key identifies an item in its container: its partition key, the hash of that, and its id.
type Key struct {
	EPK          []byte
	PartitionKey value.PartitionKey
	ID           string
}

// Write is an operation on one item.
type Write struct {
	Op  Op
	Key Key
	// Item is the item to write, for Create, Upsert and Replace.
	Item *value.Object
	// NewID, for Replace, is the item's new id, which Item has too. If it is empty, the
	// item keeps the id of Key.
	NewID string
	// Change, for Update and Undelete, returns the new item for the body of the present one, as a read
	// returns it. It must be quick, since all other writes of the partition wait for it,
	// and it may be called several times.
	Change func(body []byte) (*value.Object, error)
	// Since is for Unchanged.
	Since uint64
	// Err, if set, makes the operation fail when its turn comes in a bundle.
	Err error
	// IfMatch and IfNoneMatch are etags, "*", or empty for no condition.
	IfMatch, IfNoneMatch string
	// Memory is what the request may take; nil is no limit. The write returns what it took
	// when it ends.
	Memory *memory.Share
}

// Result is the result of a write.
type Result struct {
	// Created reports that the item did not exist before.
	Created bool
	// NotModified reports that the item has the etag of IfNoneMatch.
	NotModified bool
	// Body is the item as a read returns it; nil if none was written or read.
	Body []byte
	ETag string
	LSN  uint64
	// Work is the work of the write, for its charge.
	Work ru.WriteWork
}

// maxPrepares bounds how often a write is prepared because the container's settings have
// changed meanwhile.
const maxPrepares = 16

// errStale tells Write to prepare again: the settings have changed.
var errStale = errors.New("prepared under earlier settings")

// Write changes one item, durably.
func (p *Partition) Write(ctx context.Context, r Write) (res Result, err error) {
	for t := p.attempts(memory.RoomIn(ctx, r.Memory)); ; {
		j := &job{}
		if j.write, err = prepare(r, p.Container(), t.room); err == nil {
			j.write.tallied = len(t.tallied) > 0
			res, err = p.submit(ctx, j)
		}
		if !t.retry(ctx, j, &err) {
			return res, err
		}
	}
}

// attempts counts how often a write was prepared.
type attempts struct {
	p       *Partition
	n       int
	room    memory.Room
	mark    int64    // of the room before the first attempt
	tallied [][]byte // logical partitions whose expired bytes were counted
}

func (p *Partition) attempts(room memory.Room) attempts {
	return attempts{p: p, room: room, mark: room.Mark()}
}

// retry ends an attempt, and reports whether the write must be prepared again: the settings
// have changed, or the expired bytes of a logical partition had to be counted, which
// happens here. It returns the memory that the attempt took.
func (t *attempts) retry(ctx context.Context, j *job, err *error) bool {
	t.room.Release(t.mark)
	switch {
	case errors.Is(*err, errTally):
		logical := j.failing(*err)
		if failed := t.p.tallyLogical(ctx, logical); failed != nil {
			*err = failed
			return false
		}
		t.tallied = append(t.tallied, logical)
	case !errors.Is(*err, errStale):
		return false
	}
	if t.n++; t.n == maxPrepares {
		*err = ErrBusy
	}
	return t.n < maxPrepares
}

// write is a prepared Write. Its row is rendered, with blanks of fixed width for the values
// that only the loop knows.
type write struct {
	op                   Op
	ifMatch, ifNoneMatch string
	epoch                uint64
	ttl                  catalog.TTL
	at                   namedDeadline
	identity             []byte        // of the present item
	next                 []byte        // of the item to write: another one if the id changes
	logical              int           // length of {epk}{pk}, with which both begin
	unique               [][]byte      // of the item to write
	entries              index.Entries // of the item to write
	tallied              bool          // the expired bytes of its logical partition were counted
	revives              bool          // it brings back the expired item that it replaces
	percent              int           // of a touch: how much of its life an item must have used up
	row                  []byte        // header | identity | body; nil if there is no item to write
	offsets              offsets
	more                 *unprepared
	share                *memory.Share
}

// unprepared has what only some operations need.
type unprepared struct {
	asked Write
	err   error // why preparing failed
}

// offsets are where in the row the loop's values go.
type offsets struct {
	body, rid, self, etag, ts int
}

func prepare(r Write, c *catalog.Container, m memory.Room) (*write, error) {
	w := &write{op: r.Op, ifMatch: r.IfMatch, ifNoneMatch: r.IfNoneMatch, epoch: c.Epoch, share: r.Memory}
	if r.Item == nil {
		w.identity = appendIdentity(nil, r.Key.EPK, r.Key.PartitionKey, r.Key.ID)
		w.logical = len(w.identity) - len(r.Key.ID)
		if r.Op != Delete {
			w.more = &unprepared{asked: r}
		}
		return w, nil
	}
	var err error
	if w.ttl, err = itemTTL(r.Item, c); err != nil {
		return nil, err
	}
	if w.at, err = itemDeadline(r.Item, c); err != nil {
		return nil, err
	}
	if len(c.UniqueKeys) > 0 {
		w.unique = uniqueKeys(c, r.Key.PartitionKey, r.Item)
	}
	if w.entries, err = index.Append(index.Entries{}, &c.Definition, r.Item, m); err != nil {
		return nil, err
	}
	w.render(r, c)
	return w, m.Take(w.batchBytes())
}

// bytes is about what the write adds to a group.
func (w *write) bytes() int { return len(w.row) + rowBytes(&w.entries) }

// render lays out the row. The client's properties keep their order; the system properties
// follow.
func (w *write) render(r Write, c *catalog.Container) {
	const room = 400 // system properties, epk and escapes
	id := r.Key.ID
	if r.NewID != "" {
		id = r.NewID
	}
	fixed := (&header{atMs: w.at.ms}).bytes()
	row := make([]byte, fixed, fixed+room+2*len(id)+len(r.Item.Bytes()))
	row = appendIdentity(row, r.Key.EPK, r.Key.PartitionKey, id)
	w.offsets.body = len(row)
	row = r.Item.AppendMembers(append(row, '{'), catalog.SystemProperty)
	row = append(row, `,"_rid":"`...)
	w.offsets.rid = len(row)
	row = append(row, blankRID...)
	row = append(row, `","_self":"`...)
	row = append(row, c.ItemLinks...)
	w.offsets.self = len(row)
	row = append(row, blankRID...)
	row = append(row, `/","_etag":"\"`...)
	w.offsets.etag = len(row)
	row = append(row, blankETag...)
	row = append(row, `\"","_attachments":"attachments/","_ts":`...)
	w.offsets.ts = len(row)
	w.row = append(row, blankTS+"}"...)
	w.next = w.row[fixed:w.offsets.body:w.offsets.body]
	w.logical = len(w.next) - len(id)
	w.identity = w.next
	if id != r.Key.ID {
		w.identity = append(w.next[:w.logical:w.logical], r.Key.ID...)
	}
}

// place returns the {epk}{pk} of the item, as it is in keys.
func (w *write) place() []byte { return placed(w.identity[:w.logical:w.logical]) }

// renames reports whether the write changes the item's id.
func (w *write) renames() bool { return w.next != nil && !bytes.Equal(w.identity, w.next) }

const (
	blankRID  = "________________________"
	blankETag = "00000000-0000-0000-0000-000000000000"
	// blankTS is as wide as _ts is up to the year 2286. It has spaces, since _ts is shorter
	// on a machine whose clock was never set.
	blankTS = "          "
)

// complete writes the header and the loop's values into the row.
func (w *write) complete(c *current, container *catalog.Container) (body []byte, etag string) {
	row := w.row
	c.header.put(row)
	c.entries.Stamp(c.header.writtenMs)
	container.RID.PutItemRID(row[w.offsets.rid:], c.ordinal)
	copy(row[w.offsets.self:], row[w.offsets.rid:w.offsets.rid+catalog.ItemRIDChars])
	etag = c.header.etagText(c.ordinal)
	copy(row[w.offsets.etag:], etag[1:len(etag)-1])
	strconv.AppendInt(row[w.offsets.ts:w.offsets.ts], c.header.writtenMs/1000, 10)
	return row[w.offsets.body:], etag
}

// execute does one operation in the present transaction.
func (w *writer) execute(r *write) (Result, error) {
	if r.epoch != w.view.container.Epoch {
		return Result{}, errStale
	}
	old, err := w.current(r.identity)
	if err != nil {
		return Result{}, err
	}
	old.live = old.exists && !old.header.expired(&w.view.rules, w.nowMs)
	if r.op == touch {
		return w.touch(r, &old)
	}
	if r.op > Undelete {
		return w.readOnly(r, &old)
	}
	if err := w.admit(r, &old); err != nil {
		return Result{}, err
	}
	if r.op == Update || r.op == Undelete {
		if r, err = w.change(r, &old); err != nil {
			return Result{}, err
		}
	}
	if old.exists {
		if err := w.prepareRemoval(&old, memory.RoomNow(r.share)); err != nil {
			return Result{}, err
		}
	}
	if r.op == Delete {
		work := w.delete(&old)
		return Result{LSN: w.meta.LSN, Work: work}, nil
	}
	return w.put(r, &old)
}

// delete removes a live item. prepareRemoval was called.
func (w *writer) delete(old *current) ru.WriteWork {
	w.takeLSN()
	w.removeRows(old)
	w.logChange(logDelete, &old.header, old.header.wroteAt().LSN, nil)
	w.removeItem(old)
	return old.removal()
}

// removal returns the work of removing an item whose entries are known.
func (c *current) removal() ru.WriteWork {
	return ru.WriteWork{OldBytes: c.header.size, IndexRows: c.entries.Len(), Indexed: c.entries.Len() > 0}
}

// prepareRemoval computes and loads all that removing an item needs, so that the removal
// itself cannot fail half-way.
func (w *writer) prepareRemoval(c *current, m memory.Room) error {
	if err := c.derive(w.view.container, m); err != nil {
		return err
	}
	if err := m.Take(batchBytes(&c.entries)); err != nil {
		return err
	}
	return w.loadCounts(c)
}

// put writes an item, in place of a live one or as a new one. An expired one that is not
// purged yet is purged in the same batch.
func (w *writer) put(r *write, old *current) (Result, error) {
	atMs, err := r.at.from(w.nowMs, w.view.container)
	if err != nil {
		return Result{}, err
	}
	next := current{
		exists: true, ordinal: w.meta.NextOrdinal, logical: r.place(), unique: r.unique, entries: r.entries,
		header: header{
			writtenMs: w.writeMs, ttl: r.ttl, atMs: atMs, size: len(r.row) - r.offsets.body, identity: r.next,
		},
		derived: true, body: r.row[r.offsets.body:],
	}
	next.header.lsn, next.header.n = w.nextLSN()
	work := ru.WriteWork{Bytes: next.header.size, IndexRows: next.entries.Len(), Indexed: next.entries.Len() > 0}
	if old.live || r.revives {
		next.ordinal = old.ordinal
	}
	expired, err := w.claim(r, old)
	if err != nil {
		return Result{}, err
	}
	if err := w.loadCounts(&next); err != nil {
		return Result{}, err
	}
	if err := w.checkQuotas(&next, old, r); err != nil {
		return Result{}, err
	}
	w.takeLSN()
	for i := range expired {
		w.purgeHolder(&expired[i])
	}
	body, etag := r.complete(&next, w.view.container)
	if old.live || r.revives {
		work.OldBytes, work.IndexRows = old.header.size, w.updateRows(old, &next, r.row)
	} else {
		if old.exists {
			w.purgeItem(old)
		}
		w.meta.NextOrdinal++
		w.insertRows(&next, r.row)
	}
	if r.revives {
		w.discountExpired(old)
	}
	if r.renames() {
		w.removeItem(old)
	}
	w.setItem(&next)
	return Result{Created: !old.live && !r.revives, Body: body, ETag: etag, LSN: w.meta.LSN, Work: work}, nil
}

// admit decides whether the write may happen. An item that does not exist or has expired
// fails every condition, except that it does not exist.
func (w *writer) admit(r *write, old *current) error {
	switch {
	case r.op == Undelete:
		return w.admitUndelete(old)
	case !old.live && (r.op == Replace || r.op == Delete || r.op == Update):
		return ErrNotFound
	case !old.live:
		return nil
	case r.op == Create:
		return ErrExists
	case r.ifMatch == "" && r.ifNoneMatch == "":
		return nil
	}
	etag := old.header.etagText(old.ordinal)
	if !catalog.Matches(r.ifMatch, etag) || r.ifNoneMatch != "" && catalog.Matches(r.ifNoneMatch, etag) {
		return ErrPrecondition
	}
	return nil
}
