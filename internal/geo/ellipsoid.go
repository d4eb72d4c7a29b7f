// SPDX-License-Identifier: MIT

// Distances and areas on the ellipsoid WGS-84.
//
// The straight line between two points is an arc of the ellipse in which the
// plane through them and the Earth's centre cuts the ellipsoid. The lengths and
// areas that the service returns are those of such arcs, which on a map are the
// same curves as the arcs of great circles by which sides are decided. Over less
// than a quarter of the Earth they are as long as the shortest paths, but for a
// few parts in a million.

package geo

import (
	"cmp"
	"iter"
	"math"
	"slices"
)

// The ellipsoid: its radii in metres and what follows from them. The service has
// the polar one to the millimetre, which shows in the eleventh digit of what it
// returns.
const (
	equatorRadius = 6378137.0
	polarRadius   = 6356752.314
	flattening    = 1 - polarRadius/equatorRadius
	eccentricity2 = flattening * (2 - flattening) // squared
)

// arc is a straight line. Stretching the ellipsoid to a sphere along its axis
// makes a circle of it, of which start and ahead span the plane.
type arc struct {
	start, ahead vector // of unit length
	normal       vector // to the left
	angle        float64
}

func arcBetween(p, q vector) arc {
	a, b := p.stretched(), q.stretched()
	normal := a.plus(b).cross(b.minus(a))
	if normal.norm() < opposite && a.dot(b) < 0 {
		// Of all ellipses through opposite points, that by the pole is shortest.
		normal = a.cross(vector{0, 0, 1})
		if normal.norm() < opposite {
			normal = a.anyPerpendicular()
		}
	}
	normal = normal.unit()
	return arc{start: a, ahead: normal.cross(a), normal: normal, angle: a.angle(b)}
}

// opposite is how far from a straight angle points are when every plane through
// one of them is as good as another.
const opposite = 1e-12

// stretched returns where a point is on the sphere that the ellipsoid becomes.
func (a vector) stretched() vector {
	return vector{a.x, a.y, a.z * (1 - flattening)}.unit()
}

// The nodes and weights of Gauss's quadrature over [-1, 1] with eight points.
var (
	gaussNodes   = [4]float64{0.1834346424956498, 0.5255324099163290, 0.7966664774136267, 0.9602898564975363}
	gaussWeights = [4]float64{0.3626837833783620, 0.3137066458778873, 0.2223810344533745, 0.1012285362903763}
)

// quadratureStep is the greatest angle that one quadrature spans.
const quadratureStep = 0.08

// integrate adds up f along an arc, by angles from its start.
func (a *arc) integrate(f func(angle float64) float64) float64 {
	steps := math.Ceil(a.angle/quadratureStep) + 1
	half := a.angle / steps / 2
	sum := 0.0
	for i := range int(steps) {
		middle := half * float64(2*i+1)
		for k, node := range gaussNodes {
			sum += gaussWeights[k] * (f(middle-node*half) + f(middle+node*half))
		}
	}
	return sum * half
}

// metres returns the length of the straight line.
func metres(p, q vector) float64 {
	a := arcBetween(p, q)
	return equatorRadius * a.integrate(func(angle float64) float64 {
		sin, cos := math.Sincos(angle)
		rise := a.ahead.z*cos - a.start.z*sin
		return math.Sqrt(1 - eccentricity2*rise*rise)
	})
}

// nearAngle is how far apart two points are, seen from the centre, for which the
// service takes twice the tangent of half the angle for the angle: some six
// kilometres, of which that makes half a millimetre more.
const nearAngle = 1e-3

// pointDistance returns the distance of two points as the service does.
func pointDistance(p, q vector) float64 {
	angle := arcBetween(p, q).angle
	if angle == 0 || angle > nearAngle {
		return metres(p, q)
	}
	return metres(p, q) * math.Tan(angle/2) / (angle / 2)
}

const (
	goldenRatio   = 0.6180339887498949
	maxNarrowings = 60
)

// minimum returns where a function with one valley is least between low and
// high, and its value there.
func minimum(low, high float64, f func(float64) float64) (at, value float64) {
	a, b := high-goldenRatio*(high-low), low+goldenRatio*(high-low)
	fa, fb := f(a), f(b)
	for range maxNarrowings {
		if fa < fb {
			high, b, fb = b, a, fa
			a = high - goldenRatio*(high-low)
			fa = f(a)
		} else {
			low, a, fa = a, b, fb
			b = low + goldenRatio*(high-low)
			fb = f(b)
		}
	}
	if fa < fb {
		return a, fa
	}
	return b, fb
}

const (
	// candidateMargin is by how much an angle may exceed the least and still be
	// the least distance: the ellipsoid differs from a sphere by less.
	candidateMargin = 1.012
	// maxCandidates bounds how many pairs are measured on the ellipsoid.
	maxCandidates = 32
)

// approach is a corner of one geometry and the nearest point of another's edge.
type approach struct {
	from  vector
	to    *edge // nil if to a point
	point vector
	angle float64
	along float64
}

// distance is measured from a corner of one of the geometries, if they do not meet. Which
// corners are nearest is decided on the sphere, and the distance of those on the
// ellipsoid.
func (Globe) distance(t Ticker, g, h *Geometry) float64 {
	switch {
	case g.isPoint && h.isPoint:
		return pointDistance(g.point, h.point)
	case g.Intersects(t, h):
		return 0
	}
	nearest := math.Inf(1)
	for x := range approaches(t, g, h) {
		nearest = min(nearest, x.angle)
	}
	var list []approach
	for x := range approaches(t, g, h) {
		if x.angle <= nearest*candidateMargin {
			list = append(list, x)
		}
	}
	slices.SortFunc(list, func(x, y approach) int { return cmp.Compare(x.angle, y.angle) })
	least := math.Inf(1)
	for _, x := range list[:min(len(list), maxCandidates)] {
		least = min(least, x.metres())
	}
	return least
}

// approaches yields each corner of one geometry with each edge, or the point, of
// the other.
func approaches(t Ticker, g, h *Geometry) iter.Seq[approach] {
	return func(yield func(approach) bool) {
		for _, pair := range [2][2]*Geometry{{g, h}, {h, g}} {
			edges := pair[1].edges()
			for _, p := range pair[0].corners() {
				if t.Tick() != nil {
					return
				}
				if q := pair[1].point; pair[1].isPoint && !yield(approach{from: p, point: q, angle: p.angle(q)}) {
					return
				}
				for _, e := range edges {
					angle, along := e.angleTo(p)
					if !yield(approach{from: p, to: e, angle: angle, along: along}) {
						return
					}
				}
			}
		}
	}
}

// alongMargin is how far around the nearest point on the sphere the nearest on
// the ellipsoid is looked for, as a part of the edge.
const alongMargin = 0.05

func (x *approach) metres() float64 {
	if x.to == nil {
		return metres(x.from, x.point)
	}
	low, high := max(0, x.along-alongMargin), min(1, x.along+alongMargin)
	at := func(along float64) float64 { return metres(x.from, x.to.point(along)) }
	_, least := minimum(low, high, at)
	return min(least, at(low), at(high))
}

// belt returns the area between the equator and a latitude, for one radian of
// longitude, in square metres.
func belt(sinLat float64) float64 {
	e := math.Sqrt(eccentricity2)
	return polarRadius * polarRadius / 2 * (sinLat/(1-eccentricity2*sinLat*sinLat) + math.Atanh(e*sinLat)/e)
}

// hemisphere is the belt that ends at the pole; the Earth has 4π of it.
var hemisphere = belt(1)

// areaUnder returns the area between a straight line and the equator, positive
// if the line is in the north and goes east.
//
// It is the pole's belt for the whole turn in longitude less what lies between
// line and pole: near a pole the longitude turns fast, and that part vanishes.
func areaUnder(p, q corner) float64 {
	turn := p.turnTo(q)
	pole := math.Copysign(hemisphere, p.lat+q.lat)
	if turn == 0 {
		return 0
	}
	a := arcBetween(p.at, q.at)
	return pole*turn - a.integrate(func(angle float64) float64 {
		sin, cos := math.Sincos(angle)
		at := a.start.times(cos).plus(a.ahead.times(sin))
		fromAxis2 := at.x*at.x + at.y*at.y
		if fromAxis2 < onEdgeTolerance {
			return 0
		}
		sinLat := at.z / math.Hypot(at.z, (1-flattening)*math.Sqrt(fromAxis2))
		return (pole - belt(sinLat)) * a.normal.z / fromAxis2
	})
}

// turnTo returns by how much the longitude turns on the shorter way to another point.
func (p corner) turnTo(q corner) float64 { return math.Remainder(q.lon-p.lon, 2*math.Pi) }

// areaLeftOf returns the area to the left of a closed path, given that of the whole Earth
// and that under a line, as areaUnder returns it.
func areaLeftOf(ring []corner, earth float64, under func(p, q corner) float64) float64 {
	area, turns := 0.0, 0.0
	for i, p := range ring {
		q := ring[(i+1)%len(ring)]
		area -= under(p, q)
		turns += p.turnTo(q)
	}
	if math.Abs(turns) > math.Pi { // around a pole
		area += earth / 2
	}
	if area < 0 {
		area += earth
	}
	return area
}

// area is that of what is inside of the first ring, less what holes surround.
func (Globe) area(g polygon) float64 {
	area := 0.0
	earth := 4 * math.Pi * hemisphere
	for i := range g {
		left := areaLeftOf(g[i].corners, earth, areaUnder)
		if i > 0 {
			left = -min(left, earth-left)
		}
		area += left
	}
	return max(area, 0)
}

// leftIsSmaller reports whether less than half of the Earth is to the left of a
// closed path. It takes a sphere and chords of the map, which is enough for that.
func leftIsSmaller(ring []corner) bool {
	under := func(p, q corner) float64 { return p.turnTo(q) * (p.at.z + q.at.z) / 2 }
	return areaLeftOf(ring, 4*math.Pi, under) < 2*math.Pi
}
