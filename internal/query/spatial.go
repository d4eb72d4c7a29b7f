// SPDX-License-Identifier: MIT

// Queries about geometries. The index has the cells of each geometry's covering, and a
// query looks for those that its own geometry, and what is near it, may be in. What
// it finds is more than is meant, and is looked at.

package query

import (
	"slices"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/geo"
	"github.com/mayflydb/mayfly/internal/index"
	"github.com/mayflydb/mayfly/internal/sql"
)

// near returns the items with a geometry in one of the cells of a condition's, or nil.
func (pl *planner) near(f *sql.Condition) *set {
	path, ok := spatialPath(pl.container, f.Path)
	if !ok {
		return nil
	}
	metres, _ := f.Values[1].AsFloat()
	cells := index.CellRanges(geo.QueryCells(f.Values[0].AppendJSON(nil), metres))
	return pl.gathered(&set{kind: index.Cells, path: path, ranges: cells})
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
