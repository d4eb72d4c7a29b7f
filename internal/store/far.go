// SPDX-License-Identifier: MIT

// Engines that are far away: a Get is a round trip. Code that is about to read many rows
// gathers their keys and warms them, so that their Gets come from memory. None of this has
// an effect on what is read: a row that was not warmed is read by its Get, and an error of
// Warm is that of the Gets that follow.

package store

import (
	"iter"
	"slices"

	"github.com/mayflydb/mayfly/internal/index"
	"github.com/mayflydb/mayfly/internal/kv"
)

const (
	// gatherItems is how many items are gathered, and gatherBytes about how many bytes of
	// them.
	gatherItems = 64
	gatherBytes = 4 << 20
	// firstGather is how many items a walk gathers first, since it may end soon.
	firstGather = 16
	// gatherKeys is how many other rows are gathered: they are short.
	gatherKeys = 4096
)

// gatherable returns how many items of the view are gathered at a time.
func (v *view) gatherable() int {
	average := v.meta.Bytes / max(v.meta.Items, 1)
	return int(min(max(gatherBytes/max(average, 1), 1), gatherItems))
}

// warmItems warms the rows of the first of some items, and returns how many those are: all,
// unless the engine is far.
func (p *Partition) warmItems(v *view, ordinals []uint64) int {
	if !p.far || len(ordinals) < 2 {
		return len(ordinals)
	}
	ordinals = ordinals[:min(len(ordinals), v.gatherable())]
	g := gathering{p: p, v: v}
	for _, o := range ordinals {
		g.item(o)
	}
	g.warm()
	return len(ordinals)
}

// gathering is keys that are about to be read.
type gathering struct {
	p    *Partition
	v    *view
	keys [][]byte
	row  []byte // reused
}

func (g *gathering) add(key []byte) {
	if len(g.keys) < gatherKeys {
		g.keys = append(g.keys, key)
	}
}

// item adds the row of an item, unless it is in memory.
func (g *gathering) item(ordinal uint64) {
	if k, ok := g.p.rows.key(ordinal); ok {
		var found bool
		if g.row, found = g.p.rows.get(g.row[:0], k, g.v.meta.LSN); found {
			return
		}
	}
	g.add(g.p.prefix.appendItemKey(nil, ordinal))
}

// warm reads the rows. A single one is read by its Get.
func (g *gathering) warm() {
	if len(g.keys) > 1 {
		_ = g.v.snap.Warm(g.keys)
	}
	g.keys = g.keys[:0]
}

// ahead returns rows with the items that they lead to warmed. Their memory must be their own.
func ahead[T any](p *Partition, v *view, rows iter.Seq2[T, error], ordinal func(*T) uint64) iter.Seq2[T, error] {
	if !p.far {
		return rows
	}
	return func(yield func(T, error) bool) {
		c := chunk[T]{p: p, v: v, ordinal: ordinal, yield: yield, most: firstGather}
		c.walk(rows)
	}
}

// chunk is rows whose items are warmed together, before they are handed on.
type chunk[T any] struct {
	p       *Partition
	v       *view
	ordinal func(*T) uint64
	yield   func(T, error) bool
	rows    []T
	most    int
	ended   bool // yield wants no more
}

// walk hands all rows on.
func (c *chunk[T]) walk(rows iter.Seq2[T, error]) {
	for row, err := range rows {
		if err != nil {
			if c.flush() {
				c.yield(row, err)
			}
			return
		}
		c.rows = append(c.rows, row)
		if len(c.rows) >= min(c.most, c.v.gatherable()) && !c.flush() {
			return
		}
	}
	c.flush()
}

// flush hands on what was gathered. It reports whether more is wanted.
func (c *chunk[T]) flush() bool {
	g := gathering{p: c.p, v: c.v}
	for i := range c.rows {
		g.item(c.ordinal(&c.rows[i]))
	}
	g.warm()
	for i := 0; i < len(c.rows) && !c.ended; i++ {
		c.ended = !c.yield(c.rows[i], nil)
	}
	c.rows, c.most = c.rows[:0], gatherItems
	return !c.ended
}

// sameOrdinal is for rows that are ordinals.
func sameOrdinal(o *uint64) uint64 { return *o }

// warm warms what the jobs of a group will read: in three steps, since an id row leads to an
// item, and the item to its counters.
func (w *writer) warm(group []*job) {
	if !w.p.far {
		return
	}
	var writes []*write
	for _, j := range group {
		switch {
		case j.write != nil:
			writes = append(writes, j.write)
		case j.bundle != nil:
			writes = append(writes, j.bundle.writes...)
		}
	}
	g := gathering{p: w.p, v: w.view}
	x := &w.p.prefix
	var leads [][]byte // keys of rows with an ordinal
	for _, r := range writes {
		if len(r.identity) == 0 { // it could not be prepared
			continue
		}
		leads = append(leads, x.appendIDKey(nil, r.identity))
		if r.renames() {
			leads = append(leads, x.appendIDKey(nil, r.next))
		}
		for _, key := range r.unique {
			leads = append(leads, x.appendKey(nil, uniqueSpace, key))
		}
		w.gatherPart(&g, r.place())
		if r.row != nil {
			w.gatherBuckets(&g, &header{writtenMs: w.writeMs, ttl: r.ttl, atMs: r.at.ms})
		}
	}
	leads = leads[:min(len(leads), gatherKeys)]
	g.keys = append(leads[:len(leads):len(leads)], g.keys...)
	g.warm()
	var items []uint64
	for _, key := range leads {
		if ordinal, found, err := rowAt(w.view.snap, key, parseOrdinalRow); err == nil && found {
			items = append(items, ordinal)
		}
	}
	slices.Sort(items)
	items = slices.Compact(items)
	items = items[:min(len(items), w.view.gatherable())]
	w.p.warmItems(w.view, items)
	for _, ordinal := range items {
		if h, _, err := w.p.item(w.view, ordinal); err == nil {
			w.gatherBuckets(&g, &h)
		}
	}
	g.warm()
}

// readFarVictims reads items that are to be purged, in chunks, as readRun does in walks.
func (p *Partition) readFarVictims(v *view, victims []victim, space *index.Entries) error {
	ordinals := make([]uint64, len(victims))
	for i := range victims {
		ordinals[i] = victims[i].ordinal
	}
	warm := 0
	for i := range victims {
		if i == warm {
			warm += p.warmItems(v, ordinals[i:])
		}
		key := p.prefix.appendItemKey(nil, ordinals[i])
		row, found, err := v.snap.Get(key)
		if err == nil && found {
			err = victims[i].read(v.container, kv.Entry{Key: key, Value: row}, space)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// warmRemovals warms the counts of items that are about to be removed.
func (w *writer) warmRemovals(victims []victim) {
	if !w.p.far {
		return
	}
	g := gathering{p: w.p, v: w.view}
	for i := range victims {
		c := &victims[i].current
		w.gatherBuckets(&g, &c.header)
		if logical, err := logicalOf(c.header.identity); err == nil {
			w.gatherPart(&g, logical)
		}
	}
	g.warm()
}

// gatherBuckets gathers the counters of an item that are not in memory.
func (w *writer) gatherBuckets(g *gathering, h *header) {
	keys, n := bucketsOf(h)
	for _, k := range keys[:n] {
		if _, known := w.bucket(k); !known {
			g.add(w.p.prefix.appendStatKey(nil, k))
		}
	}
}

// gatherPart gathers the totals of a logical partition, if they are not in memory.
func (w *writer) gatherPart(g *gathering, logical []byte) {
	if _, known := w.part(logical); !known {
		g.add(w.p.prefix.appendKey(nil, partSpace, logical))
	}
}
