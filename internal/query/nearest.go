// SPDX-License-Identifier: MIT

// The nearest vectors. The index has the vectors of all items, so that an order by the
// distance from one is found by walking along it: an item is read when its vector is
// among the nearest so far.

package query

import (
	"github.com/mayflydb/mayfly/internal/index"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/sql/datum"
	"github.com/mayflydb/mayfly/internal/store"
)

// byVector finds an index of the vectors whose distances are ordered by.
func (c *chooser) byVector() *plan {
	keys := c.p.OrderBy()
	if len(keys) != 1 || keys[0].Vector == nil || !c.p.Plain() {
		return nil
	}
	path, ok := specialPath(c, keys[0].Vector.Path, c.r.Container().Special.Vectors)
	if !ok {
		return nil
	}
	found := &plan{method: nearest, path: path, text: []string{"by " + keys[0].Vector.String()}}
	if keys[0].Desc {
		found.order = kv.Reverse
	}
	return found
}

// nearest finds the items that a page may show. The rows are read in the direction in
// which equal distances are shown, so that they are not read in vain.
func (x *execution) nearest(h *rowHeap, most int, yield func(candidate) (bool, error)) error {
	score := x.q.Program.OrderBy()[0].Vector.Clone()
	var memory []float32
	for hit, err := range x.r.Index(store.IndexScan{Kind: index.Vectors, Path: x.plan.path, Values: index.EveryItem(), Order: x.plan.order}) {
		if err != nil {
			return err
		}
		x.page.Work.IndexRows++
		if !x.inScope(hit.EPK) {
			continue
		}
		v, err := index.DecodeVector(hit.Carried, memory)
		if err != nil {
			return hit.Corrupt(err)
		}
		memory = v.Numbers
		x.page.Work.Bytes += int64(4 * len(memory))
		row := sortedRow{keys: []datum.Value{score.Of(v.Numbers)}, ordinal: hit.Ordinal, n: 1}
		known := !v.OnItem && !(v.Rounded && score.Rounds())
		if known && !h.wants(&row, most) {
			continue
		}
		f, live, err := x.r.Get(row.ordinal)
		if err != nil || !live {
			return err
		}
		if more, err := x.found(candidate{Found: f}, yield); err != nil || !more {
			return err
		}
	}
	return nil
}
