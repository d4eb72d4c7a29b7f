// SPDX-License-Identifier: MIT

// Sides, crossings and containment on the sphere. Edges are the shorter arcs of
// great circles between two points. A ring has its inside on its left, so that
// one that runs clockwise encloses everything but what it surrounds, as the
// service documents.

package geo

import (
	"math"
	"slices"
)

// Globe is the Earth: coordinates are longitude and latitude in degrees.
type Globe struct{}

// onEdgeTolerance is how far beside an edge a point may lie and still be on it:
// in radians, less than a tenth of a micrometre on the Earth.
const onEdgeTolerance = 1e-14

func cornerAt(lonDegrees, latDegrees float64) corner {
	p := corner{lon: lonDegrees * (math.Pi / 180), lat: latDegrees * (math.Pi / 180)}
	p.at = direction(p.lon, p.lat)
	return p
}

func (Globe) corner(lon, lat float64) (corner, string) {
	switch {
	case !(lat >= -90 && lat <= 90):
		return corner{}, notLatitude
	case !(lon >= -180 && lon <= 180):
		return corner{}, notLongitude
	}
	return cornerAt(lon, lat), ""
}

func arcEdge(a, b vector) edge {
	// The same direction as a × b, and precise for points that are close.
	normal := a.plus(b).cross(b.minus(a)).unit()
	e := edge{a: a, b: b, normal: normal, middle: a.plus(b).unit()}
	// An arc rises above its chord by no more than its own length squared.
	chord := b.minus(a)
	slack := chord.dot(chord)/4 + onEdgeTolerance
	e.low = vector{min(a.x, b.x) - slack, min(a.y, b.y) - slack, min(a.z, b.z) - slack}
	e.high = vector{max(a.x, b.x) + slack, max(a.y, b.y) + slack, max(a.z, b.z) + slack}
	return e
}

// edges has none between points that are one, however they are written: a pole is at
// every longitude, and the date line at two. Its direction would be chance.
func (Globe) edges(corners []corner) []edge {
	edges := make([]edge, 0, len(corners)-1)
	from := corners[0].at
	for _, p := range corners[1:] {
		if p.at.minus(from).norm() > onEdgeTolerance {
			edges = append(edges, arcEdge(from, p.at))
			from = p.at
		}
	}
	return edges
}

func (Globe) encloses(r *path, hole bool) bool {
	if last := len(r.edges) - 1; last >= 0 && r.edges[last].b != r.edges[0].a {
		r.edges[last] = arcEdge(r.edges[last].a, r.edges[0].a) // ends where it began, to the last digit
	}
	r.reversed = hole && leftIsSmaller(r.corners)
	return len(r.corners) >= 3 && len(r.edges) >= 2
}

func (Globe) same(p, q vector) bool { return p.angle(q) <= onEdgeTolerance }

// side is positive to the left of the edge, as a distance in radians.
func (e *edge) side(p vector) float64 { return e.normal.dot(p) }

func (Globe) has(e *edge, p vector) bool {
	if math.Abs(e.side(p)) > onEdgeTolerance {
		return false
	}
	return e.a.cross(p).dot(e.normal) >= -onEdgeTolerance && p.cross(e.b).dot(e.normal) >= -onEdgeTolerance
}

func (Globe) crosses(e, f *edge) bool {
	if e.apart(f) {
		return false
	}
	c, d := e.side(f.a), e.side(f.b)
	a, b := f.side(e.a), f.side(e.b)
	const tolerance = onEdgeTolerance
	// One way or the other round: each edge's ends on different sides of the
	// other, in an order that the crossing on the other side of the Earth does not have.
	return c < -tolerance && d > tolerance && b < -tolerance && a > tolerance ||
		c > tolerance && d < -tolerance && b > tolerance && a < -tolerance
}

// pieces takes an edge that nothing crosses for one piece.
func (s Globe) pieces(list []vector, e *edge, others []*edge) ([]vector, bool) {
	crossed := slices.ContainsFunc(others, func(f *edge) bool { return s.crosses(e, f) })
	return append(list, e.middle), crossed
}

// angleTo returns the angle between p and the nearest point of the edge, and how
// far along the edge that is, from 0 to 1.
func (e *edge) angleTo(p vector) (angle, along float64) {
	fromA, toB := e.a.cross(p).dot(e.normal), p.cross(e.b).dot(e.normal)
	if fromA > 0 && toB > 0 {
		foot := p.minus(e.normal.times(e.side(p))).unit()
		return math.Abs(math.Asin(max(-1, min(1, e.side(p))))), e.a.angle(foot) / e.a.angle(e.b)
	}
	a, b := p.angle(e.a), p.angle(e.b)
	if a <= b {
		return a, 0
	}
	return b, 1
}

// point returns the point some way along the edge.
func (e *edge) point(along float64) vector {
	angle := e.a.angle(e.b)
	ahead := e.normal.cross(e.a)
	sin, cos := math.Sincos(angle * along)
	return e.a.times(cos).plus(ahead.times(sin)).unit()
}

// wideEnough is how far beside an edge a point must lie for the edge to tell
// which side it is on.
const wideEnough = 1e-10

// leftHas reports whether p, which is not on the ring, is to its left.
//
// A way from p to the middle of some edge arrives there from one side; every
// crossing of the ring on the way has changed sides.
func (r *path) leftHas(p vector) bool {
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
	way := arcEdge(p, r.edges[target].middle)
	left := r.edges[target].side(p) > 0
	for i := range r.edges {
		if i != target && way.passes(&r.edges[i]) {
			left = !left
		}
	}
	return left
}

// passes reports whether a way crosses an edge. An edge that ends on the way
// counts as ending on its left, so that a corner is crossed once or not at all.
func (e *edge) passes(f *edge) bool {
	c, d := e.side(f.a) >= 0, e.side(f.b) >= 0
	if c == d {
		return false
	}
	a, b := f.side(e.a) > 0, f.side(e.b) > 0
	return a != b && a == d
}

func (s Globe) inside(g polygon, p vector) (inside, on bool) {
	for i := range g {
		if touches(s, &g[i], p) {
			return false, true
		}
	}
	for i := range g {
		if g[i].leftHas(p) == g[i].reversed {
			return false, false
		}
	}
	return true, false
}
