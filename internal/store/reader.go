// SPDX-License-Identifier: MIT

// Reading for queries: a partition at one moment, live items only. The check for
// what is live sits here, below everything that a query does, so that nothing above
// can forget it: not a count that never looks at an item, nor a limit that counts
// what it passes by.

package store

import (
	"cmp"
	"iter"
	"slices"
	"sync"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/invariant"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/ru"
	"github.com/mayflydb/mayfly/internal/value"
)

// Reader reads a partition as it is at one moment. It is for one goroutine.
type Reader struct {
	p       *Partition
	v       *view
	cut     cuts
	expired Amount // expired items and index rows that were passed by
	stop    Stop   // asked now and then, by steps
	steps   int
	over    *tx        // whose changes it sees, or nil
	row     *rowBuffer // by the last Visit, nil before the first
	// keys is room for the keys of one call, of which most are short.
	keys [160]byte
}

// Stop tells a reader when to end.
type Stop struct {
	// Look says whether to end, and why: it is asked now and then, also by a reader that
	// passes by what has expired and shows nothing. The error is that of whatever is
	// under way. Nil is never.
	Look func() error
	// Done is closed when a reader that waits for another should end, or nil.
	Done <-chan struct{}
	// Every is how many rows pass between two looks; 0 is stopSteps.
	Every int
}

const (
	// stopSteps is how many rows pass between two looks.
	stopSteps = 1024
	// stepBytes is how much of an item is read in the time of a row, or looked at by
	// whoever asks for it.
	stepBytes = 8 << 10
)

// NewReader returns a reader as of nowMs. The caller closes it, soon.
func (p *Partition) NewReader(nowMs int64) (*Reader, error) {
	r := &Reader{}
	if err := r.open(p, nowMs); err != nil {
		return nil, err
	}
	return r, nil
}

// open makes the zero Reader ready.
func (r *Reader) open(p *Partition, nowMs int64) (err error) {
	if r.v, err = p.acquire(); err == nil {
		r.p, r.cut = p, r.v.rules.cutsAt(nowMs)
	}
	return err
}

// StopWith tells the reader when to end.
func (r *Reader) StopWith(s Stop) { r.stop = s }

func (r *Reader) step() error { return r.stepBy(1) }

// stepBy is so many steps at once.
func (r *Reader) stepBy(n int) error {
	if r.steps += n; r.steps < stopSteps && r.stop.Every == 0 {
		return nil
	}
	return r.checkStop()
}

// checkStop looks whether to end, if it is time to.
func (r *Reader) checkStop() error {
	if r.steps < cmp.Or(r.stop.Every, stopSteps) {
		return nil
	}
	r.steps = 0
	if r.stop.Look == nil {
		return nil
	}
	return r.stop.Look()
}

// checkedStop reports whether the last step was one with a look. Then a walk tells where it
// is, even if there is nothing to show.
func (r *Reader) checkedStop() bool { return r.steps == 0 }

// rowBuffer is memory for the row of an item. A reader has one, if it visits any, and
// leaves it for the next.
type rowBuffer struct {
	row []byte
}

// maxKeptRow is how many bytes a row has for which memory is kept.
const maxKeptRow = 64 << 10

// releaseRow leaves the memory of the last Visit. In test builds it is spoiled, so that
// whoever still looks at it is found out.
func (r *Reader) releaseRow() {
	if invariant.Enabled {
		for i := range r.row.row {
			r.row.row[i] = 0xdd
		}
	}
	if cap(r.row.row) <= maxKeptRow {
		r.p.rowBuffers.Put(r.row)
	}
	r.row = nil
}

// Close lets go of the partition, and of what the reader has returned.
func (r *Reader) Close() {
	if r.row != nil {
		r.releaseRow()
	}
	if r.expired.Items > 0 {
		r.p.ledger.Add(ru.DeadRead, ru.Read(int(r.expired.Bytes)), r.expired.Items, r.expired.Bytes)
	}
	r.p.release(r.v)
}

// LSN is that of the last write that the reader sees.
func (r *Reader) LSN() uint64 { return r.v.meta.LSN }

// Container is the container with its settings of the moment.
func (r *Reader) Container() *catalog.Container { return r.v.container }

// Items is how many there are, expired ones included: a cheap figure for planning.
func (r *Reader) Items() int64 { return r.v.meta.Items }

// Found is an item. Its slices are valid until the next step, and not to be
// changed.
type Found struct {
	Ordinal uint64
	EPK     []byte
	Body    []byte
}

// Scan returns all live items after an ordinal, in the order of their ordinals. One
// without a body is none: it tells how far the walk has come that shows nothing.
func (r *Reader) Scan(after uint64) iter.Seq2[Found, error] {
	return func(yield func(Found, error) bool) {
		_, upper := r.p.prefix.space(itemSpace)
		for e, err := range r.v.snap.Scan(r.p.prefix.appendItemKey(nil, after+1), upper, kv.Forward) {
			var f Found
			live := false
			if err == nil {
				err = r.step()
			}
			if err == nil {
				f, live, err = r.found(e.Key, e.Value)
			}
			if err != nil {
				yield(Found{}, err)
				return
			}
			if (live || r.checkedStop()) && !yield(f, nil) {
				return
			}
		}
	}
}

// found reads an item's row.
func (r *Reader) found(key, row []byte) (f Found, live bool, err error) {
	if f.Ordinal, err = ordinalOf(key); err != nil {
		return Found{}, false, err
	}
	h, body, err := parseItem(key, row)
	if err != nil {
		return Found{}, false, err
	}
	if r.cut.expired(h.writtenMs, h.ttl) {
		r.expired = r.expired.Plus(h.amount(1))
		return f, false, nil
	}
	f.EPK, _, err = value.DecodeBytesKey(h.identity)
	f.Body = body
	return f, true, err
}

// Get returns the item with an ordinal, if there is one and it is live.
func (r *Reader) Get(ordinal uint64) (f Found, live bool, err error) {
	if r.over != nil {
		if c, known := r.over.changedAt(ordinal); known {
			return c.found()
		}
	}
	f, live, _, err = r.stored(nil, ordinal)
	return f, live, err
}

// Visit is Get for one item after another: what it returns is valid until the next
// Visit, or until the reader is closed.
func (r *Reader) Visit(ordinal uint64) (f Found, live bool, err error) {
	if r.over != nil {
		return r.Get(ordinal)
	}
	if r.row == nil {
		if r.row, _ = r.p.rowBuffers.Get().(*rowBuffer); r.row == nil {
			r.row = &rowBuffer{}
		}
	}
	f, live, r.row.row, err = r.stored(r.row.row[:0], ordinal)
	return f, live, err
}

// stored reads an item into memory, as it is in the view.
func (r *Reader) stored(room []byte, ordinal uint64) (f Found, live bool, row []byte, err error) {
	key := r.p.prefix.appendItemKey(r.keys[:0], ordinal)
	row, found, err := r.p.readRow(r.v, room, key, ordinal, true)
	if err == nil {
		err = r.stepBy(1 + len(row)/stepBytes)
	}
	if err != nil || !found {
		return Found{}, false, row, err
	}
	f, live, err = r.found(key, row)
	return f, live, row, err
}

// found returns the item of a transaction, which is live if it exists.
func (c *current) found() (f Found, live bool, err error) {
	if !c.exists {
		return Found{}, false, nil
	}
	epk, _, err := value.DecodeBytesKey(c.header.identity)
	return Found{Ordinal: c.ordinal, EPK: epk, Body: c.body}, true, err
}

// Find returns the item with the given key, if there is one and it is live.
func (r *Reader) Find(k Key) (f Found, live bool, err error) {
	key := appendIdentity(r.p.prefix.appendKey(r.keys[:0], idSpace, nil), k.EPK, k.PartitionKey, k.ID)
	if r.over != nil {
		if c, known := r.over.changed(key[prefixBytes+1:]); known {
			return c.found()
		}
	}
	ordinal, found, err := rowAt(r.v.snap, key, parseOrdinalRow)
	if err != nil || !found {
		return Found{}, false, err
	}
	return r.Get(ordinal)
}

// Logical returns the ordinals of a logical partition's items after one, in order,
// at most so many, expired ones included, and whether there are more.
func (r *Reader) Logical(l LogicalPartition, after uint64) (ordinals []uint64, more bool, err error) {
	ordinals, more, err = r.oldest(&l, after)
	if err == nil && r.over != nil {
		ordinals = slices.DeleteFunc(ordinals, func(o uint64) bool {
			c, known := r.over.changedAt(o)
			return known && !c.exists
		})
		for o := max(draftOrdinals, after+1); o < r.over.meta.NextOrdinal && !more; o++ {
			ordinals = append(ordinals, o)
		}
	}
	return ordinals, more, err
}

// countedParts is how many partition keys with the same beginning are counted.
const countedParts = 1000

// LogicalItems is how many items a logical partition has, expired ones included. Of
// the keys with one beginning it counts the first only, if there are very many.
func (r *Reader) LogicalItems(l LogicalPartition) (items int64, err error) {
	key := l.appendKey(r.p.prefix.appendKey(r.keys[:0], partSpace, nil))
	if l.Prefix {
		return r.itemsUnder(key)
	}
	if items, known := r.v.sizes.get(key); known {
		return items, nil
	}
	part, _, err := rowAt(r.v.snap, key, decodePart)
	if err != nil {
		return 0, err
	}
	r.v.sizes.put(key, part.Items)
	return part.Items, nil
}

// itemsUnder adds up the logical partitions whose keys have one beginning.
func (r *Reader) itemsUnder(beginning []byte) (items int64, err error) {
	parts := 0
	for part, err := range scanRows(r.v.snap, beginning, kv.After(beginning), decodePart) {
		if err != nil {
			return 0, err
		}
		if parts++; parts > countedParts {
			break
		}
		items += part.Items
	}
	return items, nil
}

// logicalSizes keeps how many items logical partitions have in a view. Queries ask for
// the same ones again and again, and where there are many items it takes a tenth of
// their time.
type logicalSizes struct {
	mu    sync.RWMutex
	items map[string]int64 // by the key of the row
}

// keptSizes bounds how many are kept; beyond it they are forgotten.
const keptSizes = 1024

func (s *logicalSizes) get(key []byte) (items int64, known bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	items, known = s.items[string(key)]
	return items, known
}

func (s *logicalSizes) put(key []byte, items int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.items == nil || len(s.items) == keptSizes {
		s.items = map[string]int64{}
	}
	s.items[string(key)] = items
}

// Live is how many live items there are.
func (r *Reader) Live() (int64, error) {
	expired, err := r.v.expiredBy(r.cut)
	return r.v.meta.Items - expired.Items, err
}
