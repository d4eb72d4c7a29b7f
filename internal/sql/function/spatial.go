// SPDX-License-Identifier: MIT

// The spatial functions: package geo computes them, on the globe or on a plane. What is
// no valid geometry makes them undefined.

package function

import (
	"github.com/mayflydb/mayfly/internal/geo"
	"github.com/mayflydb/mayfly/internal/sql/datum"
)

func spatialFunctions() []Function {
	return []Function{
		{Name: "ST_AREA", Args: "!", Eval: stArea},
		{Name: "ST_DISTANCE", Args: "!!", Eval: ofGeometries(func(cx *Context, a, b *geo.Geometry) datum.Value { return datum.Float(a.Distance(cx, b)) })},
		{Name: "ST_INTERSECTS", Args: "!!", Eval: ofGeometries(func(cx *Context, a, b *geo.Geometry) datum.Value { return datum.Bool(a.Intersects(cx, b)) })},
		{Name: "ST_ISVALID", Args: "!", Eval: stIsValid},
		{Name: "ST_ISVALIDDETAILED", Args: "!", Eval: stIsValidDetailed},
		{Name: "ST_WITHIN", Args: "!!", Eval: ofGeometries(func(cx *Context, a, b *geo.Geometry) datum.Value { return datum.Bool(a.Within(cx, b)) })},
	}
}

// geometry reads a geometry on the surface that the container's geometries lie on. The reason
// is empty if it is one, but for what [geo.Geometry.Flaw] finds.
func (cx *Context) geometry(v datum.Value) (g geo.Geometry, reason string) {
	if cx.Planar {
		return geo.Read(geo.Plane{}, v.Shared())
	}
	return geo.Read(geo.Globe{}, v.Shared())
}

// ofGeometries is a function of two geometries. A ring that crosses itself is taken as it
// is: ST_ISVALID is there to find it.
func ofGeometries(eval func(cx *Context, a, b *geo.Geometry) datum.Value) func(*Context, []datum.Value) datum.Value {
	return func(cx *Context, args []datum.Value) datum.Value {
		a, reason := cx.geometry(args[0])
		if reason != "" {
			return datum.Undefined()
		}
		b, reason := cx.geometry(args[1])
		if reason != "" {
			return datum.Undefined()
		}
		return eval(cx, &a, &b)
	}
}

// stArea is in square metres on the globe. Points and lines have none.
func stArea(cx *Context, args []datum.Value) datum.Value {
	g, reason := cx.geometry(args[0])
	if reason != "" {
		return datum.Undefined()
	}
	return datum.Float(g.Area())
}

// stIsValid is false for everything that is no geometry.
func stIsValid(cx *Context, args []datum.Value) datum.Value {
	return datum.Bool(cx.flaw(args[0]) == "")
}

// stIsValidDetailed also says why a geometry is not valid.
func stIsValidDetailed(cx *Context, args []datum.Value) datum.Value {
	reason := cx.flaw(args[0])
	var b datum.ObjectBuilder
	b.Set("valid", datum.Bool(reason == ""))
	if reason != "" {
		b.Set("reason", datum.Str(reason))
	}
	return b.Value()
}

// flaw returns why a value is no valid geometry, or "".
func (cx *Context) flaw(v datum.Value) string {
	g, reason := cx.geometry(v)
	if reason == "" {
		reason = g.Flaw(cx)
	}
	return reason
}
