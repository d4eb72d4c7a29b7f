// SPDX-License-Identifier: MIT

// The spatial functions. What is no valid geometry makes them undefined. Those
// that compare each corner of one geometry with the whole of another count their
// steps, so that they can be interrupted; what they return then is not used.

package sql

import (
	"cmp"
	"iter"
	"math"
	"slices"
)

func spatialFunctions() []Function {
	return []Function{
		{Name: "ST_AREA", Min: 1, Max: 1, Eval: stArea, Planar: flatAreaOf},
		{Name: "ST_DISTANCE", Min: 2, Max: 2, Eval: stDistance, Planar: ofFlat(func(cx *Context, a, b *flatGeometry) Value {
			if a.intersects(cx, b) {
				return Float(0)
			}
			return Float(a.distance(cx, b))
		})},
		{Name: "ST_INTERSECTS", Min: 2, Max: 2, Eval: stIntersects, Planar: ofFlat(func(cx *Context, a, b *flatGeometry) Value { return Bool(a.intersects(cx, b)) })},
		{Name: "ST_ISVALID", Min: 1, Max: 1, Eval: stIsValid(validity), Planar: stIsValid(flatValidity)},
		{Name: "ST_ISVALIDDETAILED", Min: 1, Max: 1, Eval: stIsValidDetailed(validity), Planar: stIsValidDetailed(flatValidity)},
		{Name: "ST_WITHIN", Min: 2, Max: 2, Eval: stWithin, Planar: ofFlat(func(cx *Context, a, b *flatGeometry) Value { return Bool(a.within(cx, b)) })},
	}
}

// twoGeometries reads the arguments of a function of two.
func twoGeometries(args []Value) (a, b geometry, ok bool) {
	a, reason := geometryOf(args[0])
	if reason != "" {
		return a, b, false
	}
	b, reason = geometryOf(args[1])
	return a, b, reason == ""
}

// ofFlat is a function of two geometries on a plane.
func ofFlat(eval func(cx *Context, a, b *flatGeometry) Value) func(*Context, []Value) Value {
	return func(cx *Context, args []Value) Value {
		a, reason := flatGeometryOf(args[0])
		if reason != "" {
			return Undefined()
		}
		b, reason := flatGeometryOf(args[1])
		if reason != "" {
			return Undefined()
		}
		return eval(cx, &a, &b)
	}
}

func flatAreaOf(_ *Context, args []Value) Value {
	g, reason := flatGeometryOf(args[0])
	if reason != "" {
		return Undefined()
	}
	area := 0.0
	for _, rings := range g.polygons {
		area += flatArea(rings)
	}
	return Float(area)
}

// stIsValid is false for everything that is no geometry, and undefined only if
// there is nothing to ask about.
func stIsValid(validity func(*Context, Value) string) func(*Context, []Value) Value {
	return func(cx *Context, args []Value) Value {
		if args[0].IsUndefined() {
			return Undefined()
		}
		return Bool(validity(cx, args[0]) == "")
	}
}

func stIsValidDetailed(validity func(*Context, Value) string) func(*Context, []Value) Value {
	return func(cx *Context, args []Value) Value {
		if args[0].IsUndefined() {
			return Undefined()
		}
		reason := validity(cx, args[0])
		var b ObjectBuilder
		b.Set("valid", Bool(reason == ""))
		if reason != "" {
			b.Set("reason", Str(reason))
		}
		return b.Value()
	}
}

// stArea is zero for points and lines.
func stArea(_ *Context, args []Value) Value {
	g, reason := geometryOf(args[0])
	if reason != "" {
		return Undefined()
	}
	area := 0.0
	for i := range g.polygons {
		area += g.polygons[i].area()
	}
	return Float(area)
}

func stDistance(cx *Context, args []Value) Value {
	a, b, ok := twoGeometries(args)
	switch {
	case !ok:
		return Undefined()
	case len(a.points) == 1 && len(b.points) == 1:
		return Float(pointDistance(a.points[0], b.points[0]))
	case intersect(cx, &a, &b):
		return Float(0)
	}
	return Float(distanceBetween(cx, &a, &b))
}

func stIntersects(cx *Context, args []Value) Value {
	a, b, ok := twoGeometries(args)
	if !ok {
		return Undefined()
	}
	return Bool(intersect(cx, &a, &b))
}

func stWithin(cx *Context, args []Value) Value {
	a, b, ok := twoGeometries(args)
	if !ok {
		return Undefined()
	}
	return Bool(within(cx, &a, &b))
}

// edges lists all edges of a geometry.
func (g *geometry) edges() []*edge {
	var list []*edge
	for i := range g.lines {
		for k := range g.lines[i].edges {
			list = append(list, &g.lines[i].edges[k])
		}
	}
	for i := range g.polygons {
		for j := range g.polygons[i].rings {
			r := &g.polygons[i].rings[j]
			for k := range r.edges {
				list = append(list, &r.edges[k])
			}
		}
	}
	return list
}

// corners lists all places that a geometry names.
func (g *geometry) corners() []place {
	list := slices.Clone(g.points)
	for i := range g.lines {
		list = append(list, g.lines[i].places...)
	}
	for i := range g.polygons {
		for j := range g.polygons[i].rings {
			list = append(list, g.polygons[i].rings[j].places...)
		}
	}
	return list
}

// has reports whether p lies in a geometry, edges and ends included.
func (g *geometry) has(p vector3) bool {
	for _, q := range g.points {
		if angleBetween(q.at, p) <= onEdgeTolerance {
			return true
		}
	}
	for i := range g.lines {
		if slices.ContainsFunc(g.lines[i].edges, func(e edge) bool { return e.has(p) }) {
			return true
		}
	}
	return slices.ContainsFunc(g.polygons, func(q polygon) bool {
		inside, on := q.has(p)
		return inside || on
	})
}

// intersect reports whether two geometries have a point in common.
func intersect(cx *Context, a, b *geometry) bool {
	edgesB := b.edges()
	for _, e := range a.edges() {
		if cx.Tick() != nil {
			return false
		}
		if slices.ContainsFunc(edgesB, e.meets) {
			return true
		}
	}
	// No edges meet: each connected part is wholly inside the other or outside,
	// so one corner of it tells.
	return b.hasOneOf(a.samples()) || a.hasOneOf(b.samples())
}

func (g *geometry) hasOneOf(places []vector3) bool {
	return slices.ContainsFunc(places, g.has)
}

// samples returns one place of each connected part of a geometry's points and
// edges.
func (g *geometry) samples() []vector3 {
	var list []vector3
	for _, p := range g.points {
		list = append(list, p.at)
	}
	for i := range g.lines {
		list = append(list, g.lines[i].places[0].at)
	}
	for i := range g.polygons {
		for j := range g.polygons[i].rings {
			list = append(list, g.polygons[i].rings[j].places[0].at)
		}
	}
	return list
}

// within reports whether all of a lies in b and not only on b's boundary.
func within(cx *Context, a, b *geometry) bool {
	switch {
	case len(b.polygons) > 0:
		return withinPolygons(cx, a, b)
	case len(a.polygons) > 0:
		return false
	case len(b.lines) > 0:
		return withinLine(a, &b.lines[0])
	}
	return len(a.lines) == 0 && b.has(a.points[0].at)
}

// withinPolygons takes each part of a for itself: it must lie in one polygon.
func withinPolygons(cx *Context, a, b *geometry) bool {
	parts := make([]geometry, 0, 1)
	for i := range a.polygons {
		parts = append(parts, geometry{polygons: a.polygons[i : i+1]})
	}
	if len(parts) == 0 {
		parts = append(parts, *a)
	}
	for i := range parts {
		inOne := slices.ContainsFunc(b.polygons, func(p polygon) bool { return p.contains(cx, &parts[i]) })
		if !inOne {
			return false
		}
	}
	return true
}

// contains reports whether the polygon contains a geometry of one part. Corners
// and the middles of edges must be inside or on an edge, some of them inside; no
// edges may cross, and no corner of the polygon may be inside the other.
func (g *polygon) contains(cx *Context, part *geometry) bool {
	whole := geometry{polygons: []polygon{*g}}
	edges := whole.edges()
	checks := make([]vector3, 0, len(part.points))
	for _, p := range part.corners() {
		checks = append(checks, p.at)
	}
	for _, e := range part.edges() {
		if cx.Tick() != nil || slices.ContainsFunc(edges, e.crosses) {
			return false
		}
		checks = append(checks, e.middle)
	}
	inside := len(part.polygons) > 0 // a polygon has an inside of its own
	for _, p := range checks {
		in, on := g.has(p)
		if !in && !on || cx.Tick() != nil {
			return false
		}
		inside = inside || in
	}
	if !inside {
		return false
	}
	for i := range part.polygons {
		for _, p := range whole.corners() {
			if in, _ := part.polygons[i].has(p.at); in || cx.Tick() != nil {
				return false
			}
		}
	}
	return true
}

// withinLine reports whether a point or line lies on a line. The ends of a line
// are its boundary.
func withinLine(a *geometry, l *line) bool {
	whole := geometry{lines: []line{*l}}
	first, last := l.places[0].at, l.places[len(l.places)-1].at
	if len(a.points) == 1 {
		p := a.points[0].at
		return whole.has(p) && (first == last || p != first && p != last)
	}
	for _, p := range a.corners() {
		if !whole.has(p.at) {
			return false
		}
	}
	for _, e := range a.edges() {
		if !whole.has(e.middle) {
			return false
		}
	}
	return true
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
	from  place
	to    *edge // nil if to a point
	point place
	angle float64
	along float64
}

// distanceBetween returns the least distance of geometries that do not meet. It
// is measured from a corner of one of them. Which corners are nearest is decided
// on the sphere, and the distance of those on the ellipsoid.
func distanceBetween(cx *Context, a, b *geometry) float64 {
	nearest := math.Inf(1)
	for x := range approaches(cx, a, b) {
		nearest = min(nearest, x.angle)
	}
	var list []approach
	for x := range approaches(cx, a, b) {
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
func approaches(cx *Context, a, b *geometry) iter.Seq[approach] {
	return func(yield func(approach) bool) {
		for _, pair := range [2][2]*geometry{{a, b}, {b, a}} {
			edges := pair[1].edges()
			for _, p := range pair[0].corners() {
				if cx.Tick() != nil {
					return
				}
				for _, q := range pair[1].points {
					if !yield(approach{from: p, point: q, angle: angleBetween(p.at, q.at)}) {
						return
					}
				}
				for _, e := range edges {
					angle, along := e.angleTo(p.at)
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
		return distance(x.from, x.point)
	}
	low, high := max(0, x.along-alongMargin), min(1, x.along+alongMargin)
	at := func(along float64) float64 { return distance(x.from, x.to.point(along)) }
	_, least := minimum(low, high, at)
	return min(least, at(low), at(high))
}
