// SPDX-License-Identifier: MIT

// Coverings: the cells in which a geometry may be. What functions take for a geometry has
// a covering here; what they do not may have one too.

package geo

import (
	"math"
	"slices"
)

const (
	// itemCells and queryCells are how many cells a covering has at most: an item has a
	// row for each, and a query looks for each.
	itemCells  = 8
	queryCells = 24

	// shortestRadius is the least by which the Earth is curved, in metres: no two
	// points are nearer to each other than the angle between them times this.
	shortestRadius = 6335000

	// maxCap is the radius of the largest cap, in radians: all below a right angle are
	// such that the shortest way between two points in one is in it too.
	maxCap = 1.4

	// CoverBudget bounds how many pairs of edges of an item are looked at.
	CoverBudget = 1 << 20
)

// ItemCells returns the cells of a geometry of an item, given its coordinates as JSON;
// none if it is no geometry. It takes what it does from the budget, and if that is spent,
// the geometry may be everywhere.
func ItemCells(kind Kind, coordinates []byte, budget *int) []Cell {
	s, ok := readOnGlobe(kind, coordinates)
	switch {
	case !ok:
		return nil
	case kind == Point:
		return []Cell{cellAt(s.positions[0].x, s.positions[0].y)}
	}
	return s.cover(budget, 0, itemCells)
}

// QueryCells returns the cells of all that is no farther than so many metres from a
// geometry, which is JSON; none if it is no geometry.
func QueryCells(geometry []byte, metres float64) []Cell {
	kind, coordinates, ok := Members(geometry)
	if !ok {
		return []Cell{Everywhere}
	}
	s, ok := readOnGlobe(kind, coordinates)
	if !ok {
		return nil
	}
	budget := CoverBudget
	return s.cover(&budget, metres/shortestRadius, queryCells)
}

// readOnGlobe reports whether coordinates are those of points on the Earth, in arrays as
// their kind has them.
func readOnGlobe(kind Kind, coordinates []byte) (s shape, ok bool) {
	if kind == 0 || len(coordinates) == 0 || coordinates[0] != '[' {
		return s, false
	}
	s.read(kind, coordinates)
	return s, !s.broken && !slices.ContainsFunc(s.positions, func(p position) bool {
		return !(math.Abs(p.x) <= 180 && math.Abs(p.y) <= 90)
	})
}

// cover returns at most so many cells that have all that is within an angle of a shape.
func (s *shape) cover(budget *int, angle float64, most int) []Cell {
	c, ok := s.circle(budget)
	if !ok || !(angle < math.Pi) {
		return []Cell{Everywhere}
	}
	c.radius += max(0, angle)
	return c.cover(most)
}

// circle returns a cap that has all of a shape, if there is one that certainly has.
func (s *shape) circle(budget *int) (c circle, ok bool) {
	if s.full() {
		return c, false
	}
	corners := make([]vector, len(s.positions))
	for i, p := range s.positions {
		corners[i] = vectorAt(p.x, p.y)
		c.at = c.at.plus(corners[i])
	}
	norm := c.at.norm()
	if norm < 1e-6*float64(len(corners)) {
		return circle{}, false
	}
	c.at = c.at.over(norm)
	for _, v := range corners {
		c.radius = max(c.radius, c.at.angle(v))
	}
	if c.radius > maxCap {
		return circle{}, false
	}
	for i := range s.polygons {
		outer := before(s.polygons, i)
		if !c.hasInside(corners[before(s.rings, outer):s.rings[outer]], budget) {
			return circle{}, false
		}
	}
	return c, true
}

// hasInside reports whether what a ring has on its left is in the cap, and not what is
// outside of it: whether it runs the one way round, and does not touch itself. Seen from
// the middle of the Earth on a plane, its edges are straight.
func (c *circle) hasInside(ring []vector, budget *int) bool {
	flat := c.project(ring)
	if *budget -= len(flat) * len(flat); *budget < 0 || len(flat) < 3 {
		return false
	}
	area := 0.0
	for i, a := range flat {
		b := flat[(i+1)%len(flat)]
		area += a[0]*b[1] - a[1]*b[0]
	}
	if !(area > 0) {
		return false
	}
	for i := range flat {
		for j := range i {
			if touch(flat, i, j) {
				return false
			}
		}
	}
	return true
}

// project returns the corners of a ring on a plane, without the last, which is the
// first, and without repetitions.
func (c *circle) project(ring []vector) [][2]float64 {
	east := vector{0, 0, 1}.cross(c.at)
	if east.norm() < 1e-3 {
		east = vector{0, 1, 0}.cross(c.at)
	}
	east = east.over(east.norm())
	north := c.at.cross(east)
	flat := make([][2]float64, 0, len(ring))
	for _, v := range ring {
		d := v.dot(c.at)
		flat = append(flat, [2]float64{v.dot(east) / d, v.dot(north) / d})
	}
	flat = slices.Compact(flat)
	if n := len(flat); n > 1 && flat[0] == flat[n-1] {
		flat = flat[:n-1]
	}
	return flat
}

// touch reports whether two edges of a ring have a point in common that is no corner of
// theirs, or may have.
func touch(flat [][2]float64, i, j int) bool {
	n := len(flat)
	a, b := flat[i], flat[(i+1)%n]
	p, q := flat[j], flat[(j+1)%n]
	switch {
	case (i+1)%n == j:
		return side(a, b, q) == 0 && turnsBack(a, b, q)
	case (j+1)%n == i:
		return side(p, q, b) == 0 && turnsBack(p, q, b)
	}
	if max(a[0], b[0]) < min(p[0], q[0]) || max(p[0], q[0]) < min(a[0], b[0]) ||
		max(a[1], b[1]) < min(p[1], q[1]) || max(p[1], q[1]) < min(a[1], b[1]) {
		return false
	}
	return side(a, b, p)*side(a, b, q) <= 0 && side(p, q, a)*side(p, q, b) <= 0
}

// turnsBack reports whether the way from a over b to c goes back where it came from.
func turnsBack(a, b, c [2]float64) bool {
	return (a[0]-b[0])*(c[0]-b[0])+(a[1]-b[1])*(c[1]-b[1]) > 0
}

// flatness is how little beside a line a point may be for it to count as on it.
const flatness = 1e-15

// side is 1 to the left of the line through a and b, -1 to its right, 0 on it.
func side(a, b, p [2]float64) int {
	switch s := (b[0]-a[0])*(p[1]-a[1]) - (b[1]-a[1])*(p[0]-a[0]); {
	case s > flatness:
		return 1
	case s < -flatness:
		return -1
	}
	return 0
}
