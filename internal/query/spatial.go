// SPDX-License-Identifier: MIT

// Queries about places. The index has the cells of each geometry's covering, and a
// query looks for those that its own geometry, and what is near it, may be in. What
// it finds is more than is meant, and is looked at.

package query

import (
	"fmt"
	"slices"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/geo"
	"github.com/mayflydb/mayfly/internal/index"
	"github.com/mayflydb/mayfly/internal/sql"
	"github.com/mayflydb/mayfly/internal/store"
)

// near finds the condition on a geometry that the fewest items meet.
func (c *chooser) near() (*plan, error) {
	var found []*plan
	for _, f := range c.facts {
		if f.Op != sql.CondNear {
			continue
		}
		path, ok := spatialPath(c.r.Container(), f.Path)
		if !ok {
			continue
		}
		metres, _ := f.Values[1].AsFloat()
		covering := geo.QueryCells(f.Values[0].AppendJSON(nil), metres)
		found = append(found, c.unsorted(&plan{
			method: cellSeek, path: path, ranges: index.CellRanges(covering), text: []string{coveringText(covering)},
		}))
	}
	return c.fewest(found)
}

func coveringText(covering []geo.Cell) string {
	if slices.Contains(covering, geo.Everywhere) {
		return "everywhere"
	}
	return fmt.Sprintf("in %d cells", len(covering))
}

// spatialPath returns a path as the index has it, if geometries there are indexed. The
// index has cells of the globe, which say nothing of a plane.
func spatialPath(c *catalog.Container, path sql.Path) (index.Path, bool) {
	if c.Planar || len(path) == 0 || path[0].Element || catalog.SystemProperty(path[0].Name) || isComputed(c, path[0].Name) {
		return nil, false
	}
	return steps(path, false), slices.ContainsFunc(c.Special.Spatial, func(p catalog.SpatialPath) bool {
		if len(path) < len(p.Path) || len(path) > len(p.Path) && !p.Below {
			return false
		}
		return path[:len(p.Path)].Is(p.Path)
	})
}

// maxHeldOrdinals is how many items are held that were found and not yet read.
const maxHeldOrdinals = maxHeldBytes / 4 / 8

// inCells finds the items that have one of the plan's cells. Rows come in the order of
// cells, so that all are collected before the first item is read; if they are too many
// to hold, all items are looked at instead.
func (x *execution) inCells(yield func(candidate) (bool, error)) error {
	var ordinals []uint64
	after := x.from()
	for _, v := range x.plan.ranges {
		for hit, err := range x.r.Index(store.IndexScan{Kind: index.Cells, Path: x.plan.path, Values: v}) {
			if err != nil {
				return err
			}
			x.page.Work.IndexRows++
			if hit.Ordinal <= after || !x.inScope(hit.EPK) {
				continue
			}
			if len(ordinals) >= maxHeldOrdinals {
				return x.scan(yield)
			}
			ordinals = append(ordinals, hit.Ordinal)
		}
	}
	slices.Sort(ordinals)
	for _, ordinal := range slices.Compact(ordinals) {
		if more, err := x.visit(ordinal, index.Value{}, yield); err != nil || !more {
			return err
		}
	}
	return nil
}
