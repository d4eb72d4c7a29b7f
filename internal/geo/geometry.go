// SPDX-License-Identifier: MIT

// Package geo is about geometries: it reads GeoJSON, compares and measures them on the
// globe and on a plane for functions of queries, and says in which cells of a grid a
// geometry may be for spatial indexes.
//
// It knows nothing of items, paths and rows, and it does no I/O.
//
// The one invariant: whatever two geometries have in common on the globe, one cell of
// the one's covering is the same as, inside, or around one cell of the other's. So an
// index by cells finds all that may be meant, and a query that asks it looks again.
package geo

import (
	"fmt"
	"slices"

	"github.com/mayflydb/mayfly/internal/value"
)

// maxRingPoints is how many points a polygon may have in the service.
const maxRingPoints = 4096

// maxLinePoints bounds lines, and all polygons of one geometry together.
const maxLinePoints = 4 * maxRingPoints

// Why a value is no geometry, on the globe or on a plane, as the service words it where
// that is known.
const (
	notGeoJSON      = "The input is not a valid GeoJSON object: it must have the members \"type\" and \"coordinates\"."
	notGeometry     = "The type of the GeoJSON object must be Point, LineString, Polygon or MultiPolygon."
	notPosition     = "The position must be an array of two or three numbers."
	notLatitude     = "Latitude values must be between -90 and 90 degrees."
	notLongitude    = "Longitude values must be between -180 and 180 degrees."
	shortLine       = "The LineString input is not valid because it does not have enough points. A LineString must have at least two points."
	longLine        = "The LineString input is not valid because it has more than 16384 points."
	lineOfOnePoint  = "The LineString input is not valid because it does not have enough distinct points."
	noPolygon       = "The MultiPolygon input is not valid because it has no polygon."
	noRing          = "The Polygon input is not valid because it has no ring."
	tooManyPoints   = "The Polygon input is not valid because it has more than 4096 points."
	tooManyPolygons = "The MultiPolygon input is not valid because it has more than 16384 points."
	openRing        = "The Polygon input is not valid because the start and end points of the ring number %d are not the same. " +
		"Each ring of a Polygon must have the same start and end points."
	shortRing = "The Polygon input is not valid because the ring number %d does not have enough points. " +
		"Each ring of a Polygon must contain at least four points."
	crossingRing = "The Polygon input is not valid because the ring number %d crosses itself or another ring."
)

// Geometry is a geometry on a surface: a point, or one of its lists has elements.
type Geometry struct {
	on       Surface
	isPoint  bool
	point    vector
	lines    []path
	polygons []polygon
}

// Surface is what geometries lie on: a [Globe] or a [Plane].
type Surface interface {
	// corner returns the point with these coordinates, or why there is none.
	corner(x, y float64) (p corner, reason string)
	// edges returns the edges from each point to the next that differs.
	edges(corners []corner) []edge
	// encloses completes a ring and reports whether it has enough corners.
	encloses(ring *path, hole bool) bool

	// same reports whether two points are one.
	same(p, q vector) bool
	// has reports whether a point lies on an edge, ends included.
	has(e *edge, p vector) bool
	// crosses reports whether two edges go through each other, and do not only touch.
	crosses(e, f *edge) bool
	// pieces appends points on an edge, at least one of each part of it that the other
	// edges may have on another side. It reports whether another edge crosses it, if that
	// has not become a part of its own.
	pieces(list []vector, e *edge, others []*edge) (points []vector, crossed bool)
	// inside reports whether a point is inside of a polygon, or else on one of its edges.
	inside(g polygon, p vector) (inside, on bool)

	area(g polygon) float64
	distance(t Ticker, g, h *Geometry) float64
}

// corner is a point that a geometry names. On the globe it has its coordinates too, in radians.
type corner struct {
	at       vector
	lon, lat float64
}

// edge is the straight way from a to b.
type edge struct {
	a, b      vector
	low, high vector // the least and greatest coordinates
	// The globe has the plane's unit normal as well, which points to the left.
	normal, middle vector
}

// apart reports whether the boxes around two edges do not meet.
func (e *edge) apart(f *edge) bool {
	return e.low.x > f.high.x || f.low.x > e.high.x ||
		e.low.y > f.high.y || f.low.y > e.high.y ||
		e.low.z > f.high.z || f.low.z > e.high.z
}

// path is a line, or a ring, whose first point is not repeated at its end.
type path struct {
	corners  []corner
	edges    []edge
	reversed bool // on the globe: a hole with the smaller part on its left
}

// polygon is a ring, perhaps with holes, which take away what they surround, whichever
// way round they run.
type polygon []path

// Read reads a geometry, which is JSON. Else it returns a reason.
func Read(on Surface, raw []byte) (g Geometry, reason string) {
	g.on = on
	kind, coordinates, _ := Members(raw)
	if coordinates == nil {
		return g, notGeoJSON
	}
	if kind == 0 {
		return g, notGeometry
	}
	if kind == Point { // needs no list, and therefore no memory
		c := value.CursorAt(coordinates)
		p, reason := g.corner(readPosition(&c))
		g.isPoint, g.point = true, p.at
		return g, reason
	}
	var s shape
	s.read(kind, coordinates)
	if kind == LineString {
		reason = g.addLine(s.positions)
		return g, reason
	}
	reason = g.addPolygons(&s)
	return g, reason
}

func (g *Geometry) corner(p position) (corner, string) {
	if p.length < 2 || p.length > 3 {
		return corner{}, notPosition
	}
	return g.on.corner(p.x, p.y)
}

func (g *Geometry) readCorners(positions []position) (corners []corner, reason string) {
	corners = make([]corner, 0, len(positions))
	for _, p := range positions {
		at, reason := g.corner(p)
		if reason != "" {
			return nil, reason
		}
		corners = append(corners, at)
	}
	return corners, ""
}

func (g *Geometry) addLine(positions []position) (reason string) {
	switch {
	case len(positions) < 2:
		return shortLine
	case len(positions) > maxLinePoints:
		return longLine
	}
	var l path
	if l.corners, reason = g.readCorners(positions); reason != "" {
		return reason
	}
	if l.edges = g.on.edges(l.corners); len(l.edges) == 0 {
		return lineOfOnePoint
	}
	g.lines = []path{l}
	return ""
}

func (g *Geometry) addPolygons(s *shape) string {
	points := 0
	for i := range s.polygons {
		p, reason := g.polygon(s, before(s.polygons, i), s.polygons[i])
		if reason != "" {
			return reason
		}
		for _, r := range p {
			points += len(r.corners)
		}
		if points > maxLinePoints {
			return tooManyPolygons
		}
		g.polygons = append(g.polygons, p)
	}
	if len(g.polygons) == 0 {
		return noPolygon
	}
	return ""
}

// polygon returns the polygon of the rings from first to before end.
func (g *Geometry) polygon(s *shape, first, end int) (polygon, string) {
	if first == end {
		return nil, noRing
	}
	points := 0
	p := make(polygon, 0, end-first)
	for i := first; i < end; i++ {
		positions := s.ring(i)
		if points += len(positions); points > maxRingPoints {
			return nil, tooManyPoints
		}
		r, reason := g.ring(positions, len(p)+1)
		if reason != "" {
			return nil, reason
		}
		p = append(p, r)
	}
	return p, ""
}

// ring returns the ring with the given number, counted from 1. All but the first are
// holes.
func (g *Geometry) ring(positions []position, number int) (r path, reason string) {
	corners, reason := g.readCorners(positions)
	if reason != "" {
		return r, reason
	}
	if len(corners) == 0 || corners[0] != corners[len(corners)-1] {
		return r, fmt.Sprintf(openRing, number)
	}
	r.edges = g.on.edges(corners)
	r.corners = slices.Compact(corners)
	if last := len(r.corners) - 1; last > 0 {
		r.corners = r.corners[:last]
	}
	if len(positions) < 4 || !g.on.encloses(&r, number > 1) {
		return r, fmt.Sprintf(shortRing, number)
	}
	return r, ""
}

// paths yields the lines and rings of a geometry.
func (g *Geometry) paths(yield func(*path) bool) {
	for i := range g.lines {
		if !yield(&g.lines[i]) {
			return
		}
	}
	for _, p := range g.polygons {
		for i := range p {
			if !yield(&p[i]) {
				return
			}
		}
	}
}

// edges lists all edges of a geometry.
func (g *Geometry) edges() (list []*edge) {
	for p := range g.paths {
		for i := range p.edges {
			list = append(list, &p.edges[i])
		}
	}
	return list
}

// corners lists the points that a geometry names.
func (g *Geometry) corners() (list []vector) {
	if g.isPoint {
		list = append(list, g.point)
	}
	for p := range g.paths {
		for _, q := range p.corners {
			list = append(list, q.at)
		}
	}
	return list
}

// samples lists one point of each connected part of a geometry's edges, or the point.
func (g *Geometry) samples() (list []vector) {
	if g.isPoint {
		list = append(list, g.point)
	}
	for p := range g.paths {
		list = append(list, p.corners[0].at)
	}
	return list
}
