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
		spatialFunction("ST_AREA", 1, stArea),
		spatialFunction("ST_DISTANCE", 2, ofGeometries(func(cx *Context, a, b *geo.Geometry) datum.Value { return datum.Float(a.Distance(cx, b)) })),
		spatialFunction("ST_INTERSECTS", 2, ofGeometries(func(cx *Context, a, b *geo.Geometry) datum.Value { return datum.Bool(a.Intersects(cx, b)) })),
		spatialFunction("ST_ISVALID", 1, stIsValid),
		spatialFunction("ST_ISVALIDDETAILED", 1, stIsValidDetailed),
		spatialFunction("ST_WITHIN", 2, ofGeometries(func(cx *Context, a, b *geo.Geometry) datum.Value { return datum.Bool(a.Within(cx, b)) })),
	}
}

// spatialFunction is a function of so many arguments on both surfaces.
func spatialFunction(name string, args int, eval func(geo.Surface, *Context, []datum.Value) datum.Value) Function {
	return Function{
		Name: name, Min: args, Max: args,
		Eval:   func(cx *Context, args []datum.Value) datum.Value { return eval(geo.Globe{}, cx, args) },
		Planar: func(cx *Context, args []datum.Value) datum.Value { return eval(geo.Plane{}, cx, args) },
	}
}

// ofGeometries is a function of two geometries.
func ofGeometries(eval func(cx *Context, a, b *geo.Geometry) datum.Value) func(geo.Surface, *Context, []datum.Value) datum.Value {
	return func(on geo.Surface, cx *Context, args []datum.Value) datum.Value {
		a, reason := geo.Read(on, args[0].Shared())
		if reason != "" {
			return datum.Undefined()
		}
		b, reason := geo.Read(on, args[1].Shared())
		if reason != "" {
			return datum.Undefined()
		}
		return eval(cx, &a, &b)
	}
}

func stArea(on geo.Surface, _ *Context, args []datum.Value) datum.Value {
	g, reason := geo.Read(on, args[0].Shared())
	if reason != "" {
		return datum.Undefined()
	}
	return datum.Float(g.Area())
}

// stIsValid is false for everything that is no geometry, and undefined only if
// there is nothing to ask about.
func stIsValid(on geo.Surface, cx *Context, args []datum.Value) datum.Value {
	if args[0].IsUndefined() {
		return datum.Undefined()
	}
	return datum.Bool(flaw(on, cx, args[0]) == "")
}

func stIsValidDetailed(on geo.Surface, cx *Context, args []datum.Value) datum.Value {
	if args[0].IsUndefined() {
		return datum.Undefined()
	}
	reason := flaw(on, cx, args[0])
	var b datum.ObjectBuilder
	b.Set("valid", datum.Bool(reason == ""))
	if reason != "" {
		b.Set("reason", datum.Str(reason))
	}
	return b.Value()
}

// flaw returns why a value is no valid geometry, or "".
func flaw(on geo.Surface, cx *Context, v datum.Value) string {
	g, reason := geo.Read(on, v.Shared())
	if reason == "" {
		reason = g.Flaw(cx)
	}
	return reason
}
