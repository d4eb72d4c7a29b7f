// SPDX-License-Identifier: MIT

// Reading for queries: a partition at one moment, live items only. Expiry is checked here,
// below all code of queries, so that none of that code can forget it: neither a count that
// never reads items, nor a limit that counts rows.

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
	expired Amount // expired items and index rows that were passed over
	stop    Stop   // checked after a number of steps
	steps   int
	over    *tx        // the transaction whose changes it sees, or nil
	row     *rowBuffer // of the last Visit, nil before the first
	// keys is memory for the keys of one call. Most are short.
	keys [160]byte
}

// Stop ends a reader early.
type Stop struct {
	// Look returns an error if the reader should end. The reader calls it every so many
	// rows, also while it passes over expired items and returns nothing, and returns its
	// error. Nil never ends the reader.
	Look func() error
	// Done, if not nil, is closed when a reader that waits for another should end.
	Done <-chan struct{}
	// Every is how many rows the reader passes between two calls of Look; 0 is stopSteps.
	Every int
}

const (
	// stopSteps is the default of Stop.Every.
	stopSteps = 1024
	// stepBytes is how many bytes of an item count as one row, since reading them, and
	// evaluating them in the query, takes as long.
	stepBytes = 8 << 10
)

// NewReader returns a reader as of nowMs. The caller closes it soon, since it holds a
// snapshot.
func (p *Partition) NewReader(nowMs int64) (*Reader, error) {
	r := &Reader{}
	if err := r.open(p, nowMs); err != nil {
		return nil, err
	}
	return r, nil
}

// open initialises the zero Reader.
func (r *Reader) open(p *Partition, nowMs int64) (err error) {
	if r.v, err = p.acquire(); err == nil {
		r.p, r.cut = p, r.v.rules.cutsAt(p.notBefore(nowMs))
	}
	return err
}

// StopWith sets when the reader ends early.
func (r *Reader) StopWith(s Stop) { r.stop = s }

func (r *Reader) step() error { return r.stepBy(1) }

// stepBy counts n rows.
func (r *Reader) stepBy(n int) error {
	if r.steps += n; r.steps < stopSteps && r.stop.Every == 0 {
		return nil
	}
	return r.checkStop()
}

// checkStop calls Stop.Look if enough rows have passed.
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

// checkedStop reports whether the last step called Stop.Look. Then walks report how far
// they are, even if they have nothing to return.
func (r *Reader) checkedStop() bool { return r.steps == 0 }

// rowBuffer is memory for the row of an item. A reader takes one from the pool at its first
// Visit, and puts it back when it is closed.
type rowBuffer struct {
	row []byte
}

// maxKeptRow is the capacity above which a buffer does not go back to the pool.
const maxKeptRow = 64 << 10

// releaseRow puts the buffer back. In test builds it is overwritten first, so that tests
// find code that still uses it.
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

// Close releases the partition and the memory of what the reader has returned.
func (r *Reader) Close() {
	if r.row != nil {
		r.releaseRow()
	}
	if r.expired.Items > 0 {
		r.p.ledger.Add(ru.DeadRead, ru.Read(int(r.expired.Bytes)), r.expired.Items, r.expired.Bytes)
	}
	r.p.release(r.v)
}

// LSN returns that of the last write that the reader sees.
func (r *Reader) LSN() uint64 { return r.v.meta.LSN }

// Container returns the container with its settings at the moment of the reader.
func (r *Reader) Container() *catalog.Container { return r.v.container }

// Items returns how many items there are, expired ones included. It is cheap, for planning.
func (r *Reader) Items() int64 { return r.v.meta.Items }

// Found is an item. Its slices are valid until the next step, and must not be changed.
type Found struct {
	Ordinal uint64
	EPK     []byte
	Body    []byte
}

// Scan returns all live items after an ordinal, in the order of their ordinals. A Found
// without a body is no item: it reports how far a walk has come that has nothing to return.
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

// found parses an item's row, and reports whether the item is live.
func (r *Reader) found(key, row []byte) (f Found, live bool, err error) {
	if f.Ordinal, err = ordinalOf(key); err != nil {
		return Found{}, false, err
	}
	h, body, err := parseItem(key, row)
	if err != nil {
		return Found{}, false, err
	}
	if r.cut.expired(h.life()) {
		r.expired = r.expired.Plus(h.amount(1))
		return f, false, nil
	}
	f.EPK, _, err = value.DecodeBytesKey(h.identity)
	f.Body = body
	return f, true, err
}

// Get returns the item with an ordinal, if it exists and is live.
func (r *Reader) Get(ordinal uint64) (f Found, live bool, err error) {
	if r.over != nil {
		if c, known := r.over.changedAt(ordinal); known {
			return c.found()
		}
	}
	f, live, _, err = r.stored(nil, ordinal)
	return f, live, err
}

// Warm prepares visits of items: of the first of them, as many as it returns. If the engine
// is far, they are read together.
func (r *Reader) Warm(ordinals []uint64) int {
	if r.over != nil {
		return len(ordinals)
	}
	return r.p.warmItems(r.v, ordinals)
}

// Visit is Get for one item after another: its result is valid until the next Visit, or
// until the reader is closed.
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

// stored reads an item into room, as it is in the view.
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

// found returns an item that a transaction wrote, which is live if it exists.
func (c *current) found() (f Found, live bool, err error) {
	if !c.exists {
		return Found{}, false, nil
	}
	epk, _, err := value.DecodeBytesKey(c.header.identity)
	return Found{Ordinal: c.ordinal, EPK: epk, Body: c.body}, true, err
}

// Find returns the item with the given key, if it exists and is live.
func (r *Reader) Find(k Key) (f Found, live bool, err error) {
	var space [160]byte
	identity := appendIdentity(space[:0], k.EPK, k.PartitionKey, k.ID)
	if r.over != nil {
		if c, known := r.over.changed(identity); known {
			return c.found()
		}
	}
	ordinal, found, err := rowAt(r.v.snap, r.p.prefix.appendIDKey(r.keys[:0], identity), parseOrdinalRow)
	if err != nil || !found {
		return Found{}, false, err
	}
	return r.Get(ordinal)
}

// Logical returns the ordinals of a logical partition's items above after, in ascending
// order, expired ones included, and whether there are more.
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

// countedParts is how many partition keys with a common prefix LogicalItems counts.
const countedParts = 1000

// LogicalItems returns how many items a logical partition has, expired ones included. With
// Prefix it counts the first countedParts keys only.
func (r *Reader) LogicalItems(l LogicalPartition) (items int64, err error) {
	key := l.appendPlace(r.p.prefix.appendKey(r.keys[:0], partSpace, nil))
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

// itemsUnder sums up the logical partitions whose keys have one beginning.
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

// logicalSizes caches how many items logical partitions have in a view. Queries need the
// same ones again and again, and in large containers reading them takes a tenth of a
// query's time.
type logicalSizes struct {
	mu    sync.RWMutex
	items map[string]int64 // by the key of the part row
}

// keptSizes bounds the cache; a full one is emptied.
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

// Live returns how many live items there are.
func (r *Reader) Live() (int64, error) {
	expired, err := r.v.expiredBy(r.cut)
	return r.v.meta.Items - expired.Items, err
}
