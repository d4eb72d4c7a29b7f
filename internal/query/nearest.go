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

// nearestPath is all items, of which those are read whose vector is among the nearest.
type nearestPath struct {
	asCreated
	path      index.Path
	direction kv.Order
}

func (p *nearestPath) name() string { return "nearest" }

// byVector finds an index of the vectors whose distances are ordered by.
func (pl *planner) byVector() *nearestPath {
	keys := pl.program.OrderBy()
	if len(keys) != 1 || keys[0].Vector == nil || !pl.program.Plain() {
		return nil
	}
	path, ok := pl.specialPath(keys[0].Vector.Path, pl.container.Special.Vectors)
	if !ok {
		return nil
	}
	found := &nearestPath{path: path}
	if keys[0].Desc {
		found.direction = kv.Reverse
	}
	return found
}

// find finds the items that a page may show. The rows are read in the direction in which
// equal distances are shown, so that they are not read in vain.
func (p *nearestPath) find(x *execution, yield visitor) error {
	score := x.q.Program.OrderBy()[0].Vector.Clone()
	var memory []float32
	for hit, err := range x.r.Index(store.IndexScan{Kind: index.Vectors, Path: p.path, Values: index.EveryItem(), Order: p.direction}) {
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
		if known && !x.sorting.wants(&row) {
			continue
		}
		if more, err := x.visit(row.ordinal, index.Value{}, yield); err != nil || !more {
			return err
		}
	}
	return nil
}
