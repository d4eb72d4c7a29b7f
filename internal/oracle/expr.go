// SPDX-License-Identifier: MIT

package oracle

import (
	"math"
	"slices"
	"unicode/utf8"

	"github.com/mayflydb/mayfly/internal/sql/datum"
	"github.com/mayflydb/mayfly/internal/sql/function"
	"github.com/mayflydb/mayfly/internal/sql/syntax"
)

// value computes an expression for a row or a group.
func (o *oracle) value(e syntax.Expr, g group) datum.Value {
	switch e := e.(type) {
	case *syntax.Literal:
		return literal(e)
	case *syntax.Ident:
		v, ok := g.first.find(e.Name)
		if !ok {
			refuse("%s stands for nothing", e.Name)
		}
		return v
	case *syntax.Member:
		return o.value(e.Of, g).Member(e.Name)
	case *syntax.Index:
		of, sub := o.value(e.Of, g), o.value(e.At, g)
		if name, ok := sub.AsString(); ok {
			return of.Member(name)
		}
		if n, ok := sub.AsInt(); ok {
			return of.Index(int(n))
		}
		return datum.Value{}
	case *syntax.Unary:
		return unary(e.Op, o.value(e.X, g))
	case *syntax.Binary:
		return binary(e.Op, o.value(e.X, g), o.value(e.Y, g))
	case *syntax.Ternary:
		if o.value(e.Cond, g).IsTrue() {
			return o.value(e.Then, g)
		}
		return o.value(e.Else, g)
	case *syntax.Coalesce:
		if v := o.value(e.X, g); !v.IsUndefined() {
			return v
		}
		return o.value(e.Y, g)
	case *syntax.Between:
		x := o.value(e.X, g)
		in := and(binary(syntax.OpGe, x, o.value(e.Low, g)), binary(syntax.OpLe, x, o.value(e.High, g)))
		return negatedIf(e.Not, in)
	case *syntax.In:
		found := datum.Bool(false)
		for _, item := range e.List {
			found = or(found, binary(syntax.OpEq, o.value(e.X, g), o.value(item, g)))
		}
		return negatedIf(e.Not, found)
	case *syntax.Like:
		return negatedIf(e.Not, o.like(e, g))
	case *syntax.Call:
		return o.call(e, g)
	}
	return o.made(e, g)
}

// made computes an expression that makes a value of others.
func (o *oracle) made(e syntax.Expr, g group) datum.Value {
	switch e := e.(type) {
	case *syntax.ArrayLit:
		var b datum.ArrayBuilder
		for _, item := range e.Items {
			b.Add(o.value(item, g))
		}
		return b.Value()
	case *syntax.ObjectLit:
		var b datum.ObjectBuilder
		for _, p := range e.Props {
			b.Set(p.Name, o.value(p.Value, g))
		}
		return b.Value()
	case *syntax.Let:
		return o.value(e.Body, group{first: &scope{e.Name, o.value(e.Value, g), g.first}})
	case *syntax.Subquery:
		return o.subquery(e, o.run(e.Query, g.first), g)
	}
	refuse("the oracle does not know %T", e)
	return datum.Value{}
}

func literal(l *syntax.Literal) datum.Value {
	switch l.Kind {
	case syntax.LitNull:
		return datum.Null()
	case syntax.LitBool:
		return datum.Bool(l.True)
	case syntax.LitInt:
		return datum.Int(l.Int)
	case syntax.LitFloat:
		return datum.Float(l.Float)
	case syntax.LitString:
		return datum.Str(l.Text)
	}
	return datum.Value{}
}

func (o *oracle) subquery(e *syntax.Subquery, rows []datum.Value, g group) datum.Value {
	switch e.Kind {
	case syntax.Exists:
		return datum.Bool(len(rows) > 0)
	case syntax.Array:
		var b datum.ArrayBuilder
		for _, row := range rows {
			b.Add(row)
		}
		return b.Value()
	case syntax.All: // no row of the sources for which the filter is false
		for _, s := range o.from(e.Query.From, g.first) {
			if e.Query.Where != nil && o.value(e.Query.Where, group{first: s}).IsFalse() {
				return datum.Bool(false)
			}
		}
		return datum.Bool(true)
	case syntax.Last:
		slices.Reverse(rows)
	case syntax.Scalar:
		if len(rows) > 1 {
			refuse("a subquery has %d rows", len(rows))
		}
	}
	if len(rows) == 0 {
		return datum.Value{}
	}
	return rows[0]
}

func unary(op syntax.Op, v datum.Value) datum.Value {
	if op == syntax.OpNot {
		b, ok := v.AsBool()
		return boolIf(ok, !b)
	}
	x, ok := v.AsFloat()
	switch {
	case !ok:
		return datum.Value{}
	case op == syntax.OpNeg:
		return datum.Float(-x)
	case op == syntax.OpBitNot:
		return datum.Float(float64(^int32(int64(x))))
	}
	return v
}

// boolIf returns a boolean if it is known.
func boolIf(known, b bool) datum.Value {
	if !known {
		return datum.Value{}
	}
	return datum.Bool(b)
}

func negatedIf(not bool, v datum.Value) datum.Value {
	if not {
		return unary(syntax.OpNot, v)
	}
	return v
}

func and(a, b datum.Value) datum.Value {
	if a.IsFalse() || b.IsFalse() {
		return datum.Bool(false)
	}
	return boolIf(a.IsTrue() && b.IsTrue(), true)
}

// or is not (not a and not b).
func or(a, b datum.Value) datum.Value {
	return unary(syntax.OpNot, and(unary(syntax.OpNot, a), unary(syntax.OpNot, b)))
}

// arithmetic has the operators on numbers.
var arithmetic = map[syntax.Op]func(x, y float64) float64{
	syntax.OpAdd: func(x, y float64) float64 { return x + y }, syntax.OpSub: func(x, y float64) float64 { return x - y },
	syntax.OpMul: func(x, y float64) float64 { return x * y }, syntax.OpDiv: func(x, y float64) float64 { return x / y },
	syntax.OpMod: math.Mod,
}

// orders has the comparisons, by the result of comparing.
var orders = map[syntax.Op]func(c int) bool{
	syntax.OpLt: func(c int) bool { return c < 0 }, syntax.OpLe: func(c int) bool { return c <= 0 },
	syntax.OpGt: func(c int) bool { return c > 0 }, syntax.OpGe: func(c int) bool { return c >= 0 },
}

func binary(op syntax.Op, a, b datum.Value) datum.Value {
	defined := !a.IsUndefined() && !b.IsUndefined()
	switch op {
	case syntax.OpAnd:
		return and(a, b)
	case syntax.OpOr:
		return or(a, b)
	case syntax.OpEq:
		return boolIf(defined, datum.Equal(a, b))
	case syntax.OpNe:
		return boolIf(defined, !datum.Equal(a, b))
	case syntax.OpConcat:
		s, ok := a.AsString()
		t, too := b.AsString()
		if !ok || !too {
			return datum.Value{}
		}
		return datum.Str(s + t)
	}
	if holds := orders[op]; holds != nil {
		return boolIf(a.Kind() == b.Kind() && defined && a.Kind() < datum.KindArray, holds(datum.Compare(a, b)))
	}
	f := arithmetic[op]
	if f == nil {
		refuse("the oracle has no operator %s", op)
	}
	x, ok := a.AsFloat()
	y, too := b.AsFloat()
	if !ok || !too {
		return datum.Value{}
	}
	return datum.Float(f(x, y))
}

func (o *oracle) like(e *syntax.Like, g group) datum.Value {
	escape := function.NoEscape
	if e.Escape != nil {
		escape, _ = utf8.DecodeRuneInString(e.Escape.Text)
	}
	pattern, ok := o.value(e.Pattern, g).AsString()
	if !ok {
		return datum.Value{}
	}
	compiled, ok := function.CompileLike(pattern, escape)
	if !ok {
		return datum.Value{}
	}
	return compiled.Match(o.cx, o.value(e.X, g))
}

func isAggregate(e syntax.Expr) bool {
	call, ok := e.(*syntax.Call)
	if !ok || call.UDF {
		return false
	}
	switch call.Name {
	case "COUNT", "COUNTIF", "SUM", "AVG", "MIN", "MAX", "MAKELIST", "MAKESET":
		return true
	}
	return false
}

func (o *oracle) call(e *syntax.Call, g group) datum.Value {
	if isAggregate(e) {
		return o.aggregate(e, g)
	}
	fn := function.Of(e)
	if fn == nil {
		refuse("there is no function %s", e.Name)
	}
	args := make([]datum.Value, len(e.Args))
	fit := true
	for i, k := range fn.Types(len(args)) {
		args[i] = o.value(e.Args[i], g)
		fit = fit && k.Has(args[i])
	}
	if !fit {
		return datum.Value{}
	}
	return fn.Eval(o.cx, args)
}

// aggregate computes an aggregate from all values of a group that are defined.
func (o *oracle) aggregate(e *syntax.Call, g group) datum.Value {
	var values []datum.Value
	for _, s := range g.rows {
		if v := o.value(e.Args[0], group{first: s}); !v.IsUndefined() {
			values = append(values, v)
		}
	}
	all := func(is func(datum.Value) bool) bool {
		return !slices.ContainsFunc(values, func(v datum.Value) bool { return !is(v) })
	}
	switch e.Name {
	case "COUNT":
		return datum.Int(int64(len(values)))
	case "COUNTIF":
		return datum.Int(int64(len(slices.DeleteFunc(values, func(v datum.Value) bool { return !v.IsTrue() }))))
	case "SUM", "AVG":
		total := 0.0
		for _, v := range values {
			x, _ := v.AsFloat()
			total += x
		}
		switch {
		case !all(func(v datum.Value) bool { return v.Kind() == datum.KindNumber }):
			return datum.Value{}
		case e.Name == "SUM":
			return datum.Float(total)
		case len(values) == 0:
			return datum.Value{}
		}
		return datum.Float(total / float64(len(values)))
	case "MIN", "MAX":
		if len(values) == 0 || !all(func(v datum.Value) bool { return v.Kind() < datum.KindArray }) {
			return datum.Value{}
		}
		if e.Name == "MIN" {
			return slices.MinFunc(values, datum.Compare)
		}
		return slices.MaxFunc(values, datum.Compare)
	}
	var b datum.ArrayBuilder
	for i, v := range values {
		if e.Name == "MAKELIST" || !slices.ContainsFunc(values[:i], func(w datum.Value) bool { return datum.Equal(v, w) }) {
			b.Add(v)
		}
	}
	return b.Value()
}
