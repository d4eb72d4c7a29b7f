// SPDX-License-Identifier: MIT

package geo

import (
	"math"
	"slices"
)

// Plane is what geometries of containers lie on whose geospatialConfig is Geometry:
// coordinates are any numbers, edges are straight, and distances have their unit.
type Plane struct{}

// flatTolerance is by how much, relative to the lengths, a point may be beside a line
// that it lies on.
const flatTolerance = 1e-12

func (Plane) corner(x, y float64) (corner, string) {
	if math.IsInf(x, 0) || math.IsInf(y, 0) {
		return corner{}, notPosition
	}
	return corner{at: vector{x: x, y: y}}, ""
}

func (Plane) edges(corners []corner) []edge {
	edges := make([]edge, 0, len(corners)-1)
	for i := range corners[1:] {
		if a, b := corners[i].at, corners[i+1].at; a != b {
			low, high := vector{x: min(a.x, b.x), y: min(a.y, b.y)}, vector{x: max(a.x, b.x), y: max(a.y, b.y)}
			edges = append(edges, edge{a: a, b: b, low: low, high: high})
		}
	}
	return edges
}

func (Plane) encloses(*path, bool) bool { return true }

func (Plane) same(p, q vector) bool { return p == q }

// turn is positive if c lies to the left of the line from a to b, negative to the
// right of it, and zero on it.
func turn(a, b, c vector) float64 {
	left, right := (b.x-a.x)*(c.y-a.y), (b.y-a.y)*(c.x-a.x)
	if turn := left - right; math.Abs(turn) > flatTolerance*(math.Abs(left)+math.Abs(right)) {
		return turn
	}
	return 0
}

func (Plane) has(e *edge, p vector) bool {
	return p.x >= e.low.x && p.x <= e.high.x && p.y >= e.low.y && p.y <= e.high.y && turn(e.a, e.b, p) == 0
}

func (Plane) crosses(e, f *edge) bool {
	return turn(e.a, e.b, f.a)*turn(e.a, e.b, f.b) < 0 && turn(f.a, f.b, e.a)*turn(f.a, f.b, e.b) < 0
}

// part returns the point a part of the way along the edge.
func (e *edge) part(part float64) vector {
	return vector{x: e.a.x + part*(e.b.x-e.a.x), y: e.a.y + part*(e.b.y-e.a.y)}
}

// along returns how far along the edge the point is that is nearest to p: 0 to 1.
func (e *edge) along(p vector) float64 {
	dx, dy := e.b.x-e.a.x, e.b.y-e.a.y
	length := dx*dx + dy*dy
	if length == 0 {
		return 0
	}
	return min(max(((p.x-e.a.x)*dx+(p.y-e.a.y)*dy)/length, 0), 1)
}

// pieces appends the middles of the parts that other edges cut an edge into.
func (s Plane) pieces(list []vector, e *edge, others []*edge) ([]vector, bool) {
	cuts := []float64{0, 1}
	for _, f := range others {
		if across := turn(f.a, f.b, e.a) - turn(f.a, f.b, e.b); s.crosses(e, f) && across != 0 {
			cuts = append(cuts, turn(f.a, f.b, e.a)/across)
		}
		for _, p := range []vector{f.a, f.b} {
			if s.has(e, p) {
				cuts = append(cuts, e.along(p))
			}
		}
	}
	slices.Sort(cuts)
	for i := range cuts[1:] {
		if cuts[i+1]-cuts[i] > flatTolerance {
			list = append(list, e.part((cuts[i]+cuts[i+1])/2))
		}
	}
	return list, false
}

// inside counts: an odd number of edges is to the right of what is inside, those of holes
// included.
func (s Plane) inside(g polygon, p vector) (inside, on bool) {
	for i := range g {
		for k := range g[i].edges {
			e := &g[i].edges[k]
			if s.has(e, p) {
				return false, true
			}
			if (e.a.y > p.y) != (e.b.y > p.y) && p.x < e.a.x+(p.y-e.a.y)/(e.b.y-e.a.y)*(e.b.x-e.a.x) {
				inside = !inside
			}
		}
	}
	return inside, false
}

func (Plane) distance(t Ticker, g, h *Geometry) float64 {
	if g.Intersects(t, h) {
		return 0
	}
	least := math.Inf(1)
	for _, pair := range [2][2]*Geometry{{g, h}, {h, g}} {
		edges := pair[1].edges()
		for _, p := range pair[0].corners() {
			if t.Tick() != nil {
				return least
			}
			if q := pair[1].point; pair[1].isPoint {
				least = min(least, math.Hypot(p.x-q.x, p.y-q.y))
			}
			for _, e := range edges {
				q := e.part(e.along(p))
				least = min(least, math.Hypot(p.x-q.x, p.y-q.y))
			}
		}
	}
	return least
}

func (Plane) area(g polygon) float64 {
	area := 0.0
	for i := range g {
		twice, corners := 0.0, g[i].corners
		first := corners[0].at
		for j := range corners[1:] {
			// From the first corner on: coordinates may be far from zero.
			a, b := corners[j].at.minus(first), corners[j+1].at.minus(first)
			twice += a.x*b.y - b.x*a.y
		}
		if i == 0 {
			area = math.Abs(twice) / 2
		} else {
			area -= math.Abs(twice) / 2
		}
	}
	return area
}
