// SPDX-License-Identifier: MIT

// What functions ask of geometries, on any surface. Those that compare each corner of one
// geometry with the whole of another count their steps, so that they can be interrupted;
// what they return then is not used.

package geo

import (
	"fmt"
	"slices"
)

// Ticker counts steps of work. An error says that the work must end.
type Ticker interface{ Tick() error }

// Flaw returns why a geometry that could be read cannot be relied on, or "".
func (g *Geometry) Flaw(t Ticker) string {
	for _, p := range g.polygons {
		for i := range p {
			rest := Geometry{polygons: []polygon{p[i:]}}
			others := rest.edges()
			for k := range p[i].edges {
				e := &p[i].edges[k]
				if t.Tick() != nil {
					return ""
				}
				if slices.ContainsFunc(others, func(f *edge) bool { return g.on.crosses(e, f) }) {
					return fmt.Sprintf(crossingRing, i+1)
				}
			}
		}
	}
	return ""
}

// Area returns what polygons enclose: square metres on the globe. Points and lines have
// none.
func (g *Geometry) Area() float64 {
	area := 0.0
	for _, p := range g.polygons {
		area += g.on.area(p)
	}
	return area
}

// Distance returns the least distance of two geometries: metres on the globe.
func (g *Geometry) Distance(t Ticker, h *Geometry) float64 { return g.on.distance(t, g, h) }

// Intersects reports whether two geometries have a point in common.
func (g *Geometry) Intersects(t Ticker, h *Geometry) bool {
	others := h.edges()
	for _, e := range g.edges() {
		if t.Tick() != nil {
			return false
		}
		if slices.ContainsFunc(others, func(f *edge) bool { return meet(g.on, e, f) }) {
			return true
		}
	}
	// No edges meet: each connected part is wholly inside the other or outside, so one
	// corner of it tells.
	return slices.ContainsFunc(g.samples(), h.has) || slices.ContainsFunc(h.samples(), g.has)
}

// meet reports whether two edges have a point in common.
func meet(on Surface, e, f *edge) bool {
	return !e.apart(f) && (on.crosses(e, f) || on.has(e, f.a) || on.has(e, f.b) || on.has(f, e.a) || on.has(f, e.b))
}

// has reports whether a point lies in a geometry, edges and ends included.
func (g *Geometry) has(p vector) bool {
	if g.isPoint {
		return g.on.same(g.point, p)
	}
	for i := range g.lines {
		if touches(g.on, &g.lines[i], p) {
			return true
		}
	}
	return slices.ContainsFunc(g.polygons, func(q polygon) bool {
		inside, on := g.on.inside(q, p)
		return inside || on
	})
}

// touches reports whether a point is on an edge of a path.
func touches(on Surface, l *path, p vector) bool {
	for i := range l.edges {
		if on.has(&l.edges[i], p) {
			return true
		}
	}
	return false
}

// Within reports whether all of g lies in h, and not only on h's boundary.
func (g *Geometry) Within(t Ticker, h *Geometry) bool {
	switch {
	case len(h.polygons) > 0:
		return g.withinPolygons(t, h)
	case len(g.polygons) > 0:
		return false
	case len(h.lines) > 0:
		return g.withinLine(t, h)
	}
	return len(g.lines) == 0 && h.has(g.point)
}

// withinPolygons takes each part of g for itself: it must lie in one polygon.
func (g *Geometry) withinPolygons(t Ticker, h *Geometry) bool {
	parts := []Geometry{*g}
	if len(g.polygons) > 1 {
		parts = nil
		for i := range g.polygons {
			parts = append(parts, Geometry{on: g.on, polygons: g.polygons[i : i+1]})
		}
	}
	for i := range parts {
		if !slices.ContainsFunc(h.polygons, func(p polygon) bool { return p.contains(t, &parts[i]) }) {
			return false
		}
	}
	return true
}

// contains reports whether a polygon contains a geometry of one part. Corners and pieces
// of edges must be inside or on an edge, some of them inside, and no corner of the polygon
// may be inside the other.
func (g polygon) contains(t Ticker, part *Geometry) bool {
	whole := Geometry{on: part.on, polygons: []polygon{g}}
	edges, checks := whole.edges(), part.corners()
	for _, e := range part.edges() {
		var crossed bool
		if checks, crossed = part.on.pieces(checks, e, edges); crossed || t.Tick() != nil {
			return false
		}
	}
	some := len(part.polygons) > 0 // a polygon has an inside of its own
	for _, p := range checks {
		inside, on := part.on.inside(g, p)
		if !inside && !on || t.Tick() != nil {
			return false
		}
		some = some || inside
	}
	if !some {
		return false
	}
	for _, q := range part.polygons {
		for _, p := range whole.corners() {
			if inside, _ := part.on.inside(q, p); inside || t.Tick() != nil {
				return false
			}
		}
	}
	return true
}

// withinLine reports whether a point or line lies on a line, whose ends are its boundary.
func (g *Geometry) withinLine(t Ticker, h *Geometry) bool {
	l := &h.lines[0]
	first, last := l.corners[0].at, l.corners[len(l.corners)-1].at
	if g.isPoint {
		return h.has(g.point) && (first == last || g.point != first && g.point != last)
	}
	checks, edges := g.corners(), h.edges()
	for _, e := range g.edges() {
		if t.Tick() != nil {
			return false
		}
		checks, _ = g.on.pieces(checks, e, edges) // one that crosses itself has parts that cross
	}
	return !slices.ContainsFunc(checks, func(p vector) bool { return t.Tick() != nil || !h.has(p) })
}
