// SPDX-License-Identifier: MIT

// The spatial functions on a plane, for containers whose geospatialConfig is Geometry:
// coordinates are any numbers, lines are straight, and distances have their unit.

package sql

import (
	"fmt"
	"math"
	"slices"
)

// flatPoint is a place on the plane.
type flatPoint struct{ x, y float64 }

// flatEdge is a straight line from one place to another.
type flatEdge struct{ a, b flatPoint }

// flatGeometry is what a value describes: one of its lists has elements. The rings of a
// polygon are closed.
type flatGeometry struct {
	points   []flatPoint
	lines    [][]flatPoint
	polygons [][][]flatPoint
}

// flatTolerance is by how much, relative to the lengths, a place may be beside a line
// that it lies on.
const flatTolerance = 1e-12

// flatGeometryOf reads a geometry, or returns a reason why it cannot.
func flatGeometryOf(v Value) (g flatGeometry, reason string) {
	kind, coordinates, ok := geoJSON(v)
	if !ok {
		return g, notGeoJSON
	}
	switch kind {
	case "Point":
		g.points, reason = readFlatPoints([]Value{coordinates})
	case "LineString":
		var l []flatPoint
		if l, reason = readFlatLine(coordinates); reason == "" {
			g.lines = [][]flatPoint{l}
		}
	case "Polygon":
		var p [][]flatPoint
		p, reason = readFlatPolygon(coordinates)
		g.polygons = [][][]flatPoint{p}
	case "MultiPolygon":
		g.polygons, reason = readFlatPolygons(coordinates)
	default:
		reason = notGeometry
	}
	return g, reason
}

func readFlatPoints(positions []Value) (points []flatPoint, reason string) {
	for _, position := range positions {
		x, okX := position.Index(0).AsFloat()
		y, okY := position.Index(1).AsFloat()
		if !okX || !okY || position.Len() > 3 || math.IsInf(x, 0) || math.IsInf(y, 0) {
			return nil, notPosition
		}
		points = append(points, flatPoint{x, y})
	}
	return points, ""
}

func readFlatLine(v Value) (l []flatPoint, reason string) {
	positions := elementsOf(v, maxLinePoints)
	if reason := lineLength(len(positions)); reason != "" {
		return nil, reason
	}
	if l, reason = readFlatPoints(positions); reason != "" {
		return nil, reason
	}
	if !slices.ContainsFunc(l, func(p flatPoint) bool { return p != l[0] }) {
		return nil, lineOfOnePoint
	}
	return l, ""
}

func readFlatPolygons(v Value) (polygons [][][]flatPoint, reason string) {
	points := 0
	for element := range v.Elements {
		p, reason := readFlatPolygon(element)
		if reason != "" {
			return nil, reason
		}
		for _, ring := range p {
			points += len(ring)
		}
		if points > maxLinePoints {
			return nil, tooManyPolygons
		}
		polygons = append(polygons, p)
	}
	if len(polygons) == 0 {
		return nil, noPolygon
	}
	return polygons, ""
}

func readFlatPolygon(v Value) (rings [][]flatPoint, reason string) {
	points := 0
	for element := range v.Elements {
		positions := elementsOf(element, maxRingPoints)
		if points += len(positions); points > maxRingPoints {
			return nil, tooManyPoints
		}
		ring, reason := readFlatPoints(positions)
		switch number := len(rings) + 1; {
		case reason != "":
			return nil, reason
		case len(ring) == 0 || ring[0] != ring[len(ring)-1]:
			return nil, fmt.Sprintf(openRing, number)
		case len(ring) < 4:
			return nil, fmt.Sprintf(shortRing, number)
		}
		rings = append(rings, ring)
	}
	if len(rings) == 0 {
		return nil, noRing
	}
	return rings, ""
}

// flatTurn is positive if c lies to the left of the line from a to b, negative to the
// right of it, and zero on it.
func flatTurn(a, b, c flatPoint) float64 {
	left, right := (b.x-a.x)*(c.y-a.y), (b.y-a.y)*(c.x-a.x)
	if turn := left - right; math.Abs(turn) > flatTolerance*(math.Abs(left)+math.Abs(right)) {
		return turn
	}
	return 0
}

// has reports whether a place lies on the edge, ends included.
func (e flatEdge) has(p flatPoint) bool {
	return flatTurn(e.a, e.b, p) == 0 && p.x >= min(e.a.x, e.b.x) && p.x <= max(e.a.x, e.b.x) && p.y >= min(e.a.y, e.b.y) && p.y <= max(e.a.y, e.b.y)
}

// crosses reports whether both edges go through each other, and do not only touch.
func (e flatEdge) crosses(f flatEdge) bool {
	return flatTurn(e.a, e.b, f.a)*flatTurn(e.a, e.b, f.b) < 0 && flatTurn(f.a, f.b, e.a)*flatTurn(f.a, f.b, e.b) < 0
}

// meets reports whether the edges have a place in common.
func (e flatEdge) meets(f flatEdge) bool {
	return e.crosses(f) || e.has(f.a) || e.has(f.b) || f.has(e.a) || f.has(e.b)
}

// at returns the place a part of the way along the edge.
func (e flatEdge) at(part float64) flatPoint {
	return flatPoint{e.a.x + part*(e.b.x-e.a.x), e.a.y + part*(e.b.y-e.a.y)}
}

// along returns how far along the edge the place is that is nearest to p: 0 to 1.
func (e flatEdge) along(p flatPoint) float64 {
	dx, dy := e.b.x-e.a.x, e.b.y-e.a.y
	length := dx*dx + dy*dy
	if length == 0 {
		return 0
	}
	return min(max(((p.x-e.a.x)*dx+(p.y-e.a.y)*dy)/length, 0), 1)
}

func (p flatPoint) distance(q flatPoint) float64 { return math.Hypot(p.x-q.x, p.y-q.y) }

func flatEdges(path []flatPoint) []flatEdge {
	var list []flatEdge
	for i := range path[1:] {
		if path[i] != path[i+1] {
			list = append(list, flatEdge{path[i], path[i+1]})
		}
	}
	return list
}

func (g *flatGeometry) paths() [][]flatPoint {
	return append(slices.Clone(g.lines), slices.Concat(g.polygons...)...)
}

func (g *flatGeometry) edges() []flatEdge {
	var list []flatEdge
	for _, path := range g.paths() {
		list = append(list, flatEdges(path)...)
	}
	return list
}

func (g *flatGeometry) corners() []flatPoint {
	return append(slices.Clone(g.points), slices.Concat(g.paths()...)...)
}

// flatInside reports whether a place is inside of a polygon, or on one of its edges. An
// odd number of edges is to the right of what is inside, those of holes included.
func flatInside(rings [][]flatPoint, p flatPoint) (inside, on bool) {
	for _, ring := range rings {
		for _, e := range flatEdges(ring) {
			if e.has(p) {
				return false, true
			}
			if (e.a.y > p.y) != (e.b.y > p.y) && p.x < e.a.x+(p.y-e.a.y)/(e.b.y-e.a.y)*(e.b.x-e.a.x) {
				inside = !inside
			}
		}
	}
	return inside, false
}

// has reports whether a place lies in the geometry, edges and ends included.
func (g *flatGeometry) has(p flatPoint) bool {
	return slices.Contains(g.points, p) ||
		slices.ContainsFunc(g.lines, func(l []flatPoint) bool {
			return slices.ContainsFunc(flatEdges(l), func(e flatEdge) bool { return e.has(p) })
		}) ||
		slices.ContainsFunc(g.polygons, func(rings [][]flatPoint) bool {
			inside, on := flatInside(rings, p)
			return inside || on
		})
}

// intersects reports whether two geometries have a place in common.
func (g *flatGeometry) intersects(cx *Context, h *flatGeometry) bool {
	others := h.edges()
	for _, e := range g.edges() {
		if cx.Tick() != nil {
			return false
		}
		if slices.ContainsFunc(others, e.meets) {
			return true
		}
	}
	// No edges meet: each connected part is wholly inside the other or outside.
	return slices.ContainsFunc(g.samples(), h.has) || slices.ContainsFunc(h.samples(), g.has)
}

func (g *flatGeometry) samples() []flatPoint {
	list := slices.Clone(g.points)
	for _, path := range g.paths() {
		list = append(list, path[0])
	}
	return list
}

// distance returns the least distance of geometries that do not meet.
func (g *flatGeometry) distance(cx *Context, h *flatGeometry) float64 {
	least := math.Inf(1)
	for _, pair := range [2][2]*flatGeometry{{g, h}, {h, g}} {
		edges := pair[1].edges()
		for _, p := range pair[0].corners() {
			if cx.Tick() != nil {
				return least
			}
			for _, q := range pair[1].points {
				least = min(least, p.distance(q))
			}
			for _, e := range edges {
				least = min(least, p.distance(e.at(e.along(p))))
			}
		}
	}
	return least
}

// pieces returns the middles of the parts that other edges cut an edge into.
func (e flatEdge) pieces(others []flatEdge) []flatPoint {
	cuts := []float64{0, 1}
	for _, f := range others {
		if turn := flatTurn(f.a, f.b, e.a) - flatTurn(f.a, f.b, e.b); e.crosses(f) && turn != 0 {
			cuts = append(cuts, flatTurn(f.a, f.b, e.a)/turn)
		}
		for _, p := range []flatPoint{f.a, f.b} {
			if e.has(p) {
				cuts = append(cuts, e.along(p))
			}
		}
	}
	slices.Sort(cuts)
	var middles []flatPoint
	for i := range cuts[1:] {
		if cuts[i+1]-cuts[i] > flatTolerance {
			middles = append(middles, e.at((cuts[i]+cuts[i+1])/2))
		}
	}
	return middles
}

// within reports whether all of g lies in h, and not only on its boundary.
func (g *flatGeometry) within(cx *Context, h *flatGeometry) bool {
	switch {
	case len(h.polygons) > 0:
		parts := []flatGeometry{*g}
		if len(g.polygons) > 0 {
			parts = nil
		}
		for i := range g.polygons {
			parts = append(parts, flatGeometry{polygons: g.polygons[i : i+1]})
		}
		return !slices.ContainsFunc(parts, func(part flatGeometry) bool {
			return !slices.ContainsFunc(h.polygons, func(rings [][]flatPoint) bool { return flatContains(cx, rings, &part) })
		})
	case len(g.polygons) > 0:
		return false
	case len(h.lines) > 0:
		return g.withinLine(cx, h)
	}
	return len(g.lines) == 0 && h.has(g.points[0])
}

// flatContains reports whether a polygon contains a geometry of one part.
func flatContains(cx *Context, rings [][]flatPoint, part *flatGeometry) bool {
	whole := flatGeometry{polygons: [][][]flatPoint{rings}}
	edges := whole.edges()
	checks := part.corners()
	for _, e := range part.edges() {
		if cx.Tick() != nil {
			return false
		}
		checks = append(checks, e.pieces(edges)...)
	}
	some := len(part.polygons) > 0 // a polygon has an inside of its own
	for _, p := range checks {
		inside, on := flatInside(rings, p)
		if !inside && !on || cx.Tick() != nil {
			return false
		}
		some = some || inside
	}
	for _, polygon := range part.polygons { // a hole of the one must not be in the other
		for _, p := range whole.corners() {
			if inside, _ := flatInside(polygon, p); inside || cx.Tick() != nil {
				return false
			}
		}
	}
	return some
}

// withinLine reports whether a point or line lies on a line, whose ends are its
// boundary.
func (g *flatGeometry) withinLine(cx *Context, h *flatGeometry) bool {
	l := h.lines[0]
	first, last := l[0], l[len(l)-1]
	if len(g.points) == 1 {
		p := g.points[0]
		return h.has(p) && (first == last || p != first && p != last)
	}
	checks := g.corners()
	for _, e := range g.edges() {
		checks = append(checks, e.pieces(h.edges())...)
	}
	return !slices.ContainsFunc(checks, func(p flatPoint) bool { return cx.Tick() != nil || !h.has(p) })
}

// flatValidity returns why a geometry cannot be used, or "".
func flatValidity(cx *Context, v Value) string {
	g, reason := flatGeometryOf(v)
	if reason != "" {
		return reason
	}
	for _, rings := range g.polygons {
		for i, ring := range rings {
			others := (&flatGeometry{polygons: [][][]flatPoint{rings[i:]}}).edges()
			for _, e := range flatEdges(ring) {
				if cx.Tick() == nil && slices.ContainsFunc(others, e.crosses) {
					return fmt.Sprintf(crossingRing, i+1)
				}
			}
		}
	}
	return ""
}

// flatArea is the area of a polygon without its holes.
func flatArea(rings [][]flatPoint) float64 {
	area := 0.0
	for i, ring := range rings {
		twice := 0.0
		for j := range ring[1:] {
			// From the first corner on: coordinates may be far from zero.
			a, b := ring[j], ring[j+1]
			twice += (a.x-ring[0].x)*(b.y-ring[0].y) - (b.x-ring[0].x)*(a.y-ring[0].y)
		}
		if i == 0 {
			area = math.Abs(twice) / 2
		} else {
			area -= math.Abs(twice) / 2
		}
	}
	return area
}
