// SPDX-License-Identifier: MIT

// Sides, crossings and containment on the sphere. Edges are the shorter arcs of
// great circles between two places. A ring has its inside on its left, so that
// one that runs clockwise encloses everything but what it surrounds, as the
// service documents.

package sql

import "math"

// onEdgeTolerance is how far beside an edge a place may lie and still be on it:
// in radians, less than a tenth of a micrometre on the Earth.
const onEdgeTolerance = 1e-14

// edge is an arc, with the normal of its plane, which points to its left.
type edge struct {
	a, b   vector3
	normal vector3 // of unit length
	middle vector3
	low    vector3 // the least and greatest coordinates of the arc
	high   vector3
}

func edgeBetween(a, b vector3) edge {
	// The same direction as a × b, and precise for places that are close.
	normal := a.plus(b).cross(b.minus(a)).unit()
	e := edge{a: a, b: b, normal: normal, middle: a.plus(b).unit()}
	// An arc rises above its chord by no more than its own length squared.
	chord := b.minus(a)
	slack := chord.dot(chord)/4 + onEdgeTolerance
	e.low = vector3{min(a.x, b.x) - slack, min(a.y, b.y) - slack, min(a.z, b.z) - slack}
	e.high = vector3{max(a.x, b.x) + slack, max(a.y, b.y) + slack, max(a.z, b.z) + slack}
	return e
}

// edgesAlong returns the edges from each place to the next. There is none between
// places that are one, however they are written: a pole is at every longitude, and the
// date line at two. Its direction would be chance.
func edgesAlong(places []place) (edges []edge) {
	from := places[0].at
	for _, p := range places[1:] {
		if p.at.minus(from).norm() > onEdgeTolerance {
			edges = append(edges, edgeBetween(from, p.at))
			from = p.at
		}
	}
	return edges
}

// apart reports whether the boxes around two edges do not meet.
func (e *edge) apart(f *edge) bool {
	return e.low.x > f.high.x || f.low.x > e.high.x ||
		e.low.y > f.high.y || f.low.y > e.high.y ||
		e.low.z > f.high.z || f.low.z > e.high.z
}

// side is positive to the left of the edge, as a distance in radians.
func (e *edge) side(p vector3) float64 { return e.normal.dot(p) }

// has reports whether p lies on the edge, its ends included.
func (e *edge) has(p vector3) bool {
	if math.Abs(e.side(p)) > onEdgeTolerance {
		return false
	}
	return e.a.cross(p).dot(e.normal) >= -onEdgeTolerance && p.cross(e.b).dot(e.normal) >= -onEdgeTolerance
}

// crosses reports whether two edges cross in a point that is inside both.
func (e *edge) crosses(f *edge) bool {
	if e.apart(f) {
		return false
	}
	c, d := e.side(f.a), e.side(f.b)
	a, b := f.side(e.a), f.side(e.b)
	const tolerance = onEdgeTolerance
	// One way or the other round: each edge's ends on different sides of the
	// other, in an order that tells the crossing from the one opposite.
	return c < -tolerance && d > tolerance && b < -tolerance && a > tolerance ||
		c > tolerance && d < -tolerance && b > tolerance && a < -tolerance
}

// meets reports whether two edges have a point in common.
func (e *edge) meets(f *edge) bool {
	if e.apart(f) {
		return false
	}
	return e.crosses(f) || e.has(f.a) || e.has(f.b) || f.has(e.a) || f.has(e.b)
}

// angleTo returns the angle between p and the nearest point of the edge, and how
// far along the edge that is, from 0 to 1.
func (e *edge) angleTo(p vector3) (angle, along float64) {
	fromA, toB := e.a.cross(p).dot(e.normal), p.cross(e.b).dot(e.normal)
	if fromA > 0 && toB > 0 {
		foot := p.minus(e.normal.times(e.side(p))).unit()
		return math.Abs(math.Asin(max(-1, min(1, e.side(p))))), angleBetween(e.a, foot) / angleBetween(e.a, e.b)
	}
	a, b := angleBetween(p, e.a), angleBetween(p, e.b)
	if a <= b {
		return a, 0
	}
	return b, 1
}

// point returns the place some way along the edge.
func (e *edge) point(along float64) place {
	angle := angleBetween(e.a, e.b)
	ahead := e.normal.cross(e.a)
	sin, cos := math.Sincos(angle * along)
	return placeOf(e.a.times(cos).plus(ahead.times(sin)))
}

func angleBetween(a, b vector3) float64 { return math.Atan2(a.cross(b).norm(), a.dot(b)) }

// ring is a closed path.
type ring struct {
	places []place
	edges  []edge
	// hole is set for a ring inside another, which takes away what it surrounds,
	// whichever way round it runs.
	hole     bool
	reversed bool // a hole with the smaller part on its left
}

func (r *ring) touches(p vector3) bool {
	for i := range r.edges {
		if r.edges[i].has(p) {
			return true
		}
	}
	return false
}

// wideEnough is how far beside an edge a place must lie for the edge to tell
// which side it is on.
const wideEnough = 1e-10

// leftHas reports whether p, which is not on the ring, is to its left.
//
// A path from p to the middle of some edge arrives there from one side; every
// crossing of the ring on the way has changed sides.
func (r *ring) leftHas(p vector3) bool {
	target, nearness := -1, math.Inf(-1)
	for i := range r.edges {
		e := &r.edges[i]
		if near := e.middle.dot(p); near > nearness && math.Abs(e.side(p)) >= wideEnough {
			target, nearness = i, near
		}
	}
	if target < 0 {
		return false // the ring is a line
	}
	way := edgeBetween(p, r.edges[target].middle)
	left := r.edges[target].side(p) > 0
	for i := range r.edges {
		if i != target && way.passes(&r.edges[i]) {
			left = !left
		}
	}
	return left
}

// passes reports whether a path crosses an edge. An edge that ends on the path
// counts as ending on its left, so that a corner is crossed once or not at all.
func (e *edge) passes(f *edge) bool {
	c, d := e.side(f.a) >= 0, e.side(f.b) >= 0
	if c == d {
		return false
	}
	a, b := f.side(e.a) > 0, f.side(e.b) > 0
	return a != b && a == d
}

// insideHas reports whether p is in what the ring bounds, its edges not
// included.
func (r *ring) insideHas(p vector3) bool { return r.leftHas(p) != r.reversed }

// polygon is a ring, perhaps with holes.
type polygon struct{ rings []ring }

func (g *polygon) touches(p vector3) bool {
	for i := range g.rings {
		if g.rings[i].touches(p) {
			return true
		}
	}
	return false
}

// has reports whether p is inside; on is set if it is on an edge, and so not.
func (g *polygon) has(p vector3) (inside, on bool) {
	if g.touches(p) {
		return false, true
	}
	for i := range g.rings {
		if !g.rings[i].insideHas(p) {
			return false, false
		}
	}
	return true, false
}

// area in square metres.
func (g *polygon) area() float64 {
	area := 0.0
	earth := 4 * math.Pi * hemisphere
	for i := range g.rings {
		left := areaLeftOf(g.rings[i].places)
		if g.rings[i].hole {
			left = -min(left, earth-left)
		}
		area += left
	}
	return max(area, 0)
}
