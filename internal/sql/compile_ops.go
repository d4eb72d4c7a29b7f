// SPDX-License-Identifier: MIT

// Operators and calls to closures, with what an index can know about them. Each compiles
// its operands first, and is folded if all of them are constant.

package sql

import (
	"slices"
	"unicode/utf8"

	"github.com/mayflydb/mayfly/internal/sql/datum"
	"github.com/mayflydb/mayfly/internal/sql/function"
	"github.com/mayflydb/mayfly/internal/sql/syntax"
)

// unary compiles an operator before its operand. NOT swaps what is known where the operand is
// true and where it is false, so that no condition has a negation in it.
func (c *compiler) unary(e *syntax.Unary, s *scope) (code, error) {
	operand, err := c.expr(e.X, s)
	if err != nil {
		return code{}, err
	}
	op, x := e.Op, operand.eval
	result := code{eval: func(f *frame) datum.Value { return unaryValue(op, x(f)) }}
	if op == syntax.OpNot {
		result.yes, result.no = operand.whenFalse(), operand.whenTrue()
	}
	return c.folded(result, operand.constant), nil
}

// binary compiles an operator between two operands. Both are compiled before the operator is
// looked at, so that the errors of an expression come in the order of its text.
func (c *compiler) binary(e *syntax.Binary, s *scope) (code, error) {
	left, err := c.expr(e.X, s)
	if err != nil {
		return code{}, err
	}
	right, err := c.expr(e.Y, s)
	if err != nil {
		return code{}, err
	}
	x, y, op := left.eval, right.eval, e.Op
	var result code
	switch op {
	case syntax.OpAnd:
		result.eval = func(f *frame) datum.Value { return evalAnd(f, x, y) }
		result.yes = and(left.whenTrue(), right.whenTrue())
		result.no = or(left.whenFalse(), right.whenFalse())
	case syntax.OpOr:
		result.eval = func(f *frame) datum.Value { return evalOr(f, x, y) }
		result.yes = or(left.whenTrue(), right.whenTrue())
		result.no = and(left.whenFalse(), right.whenFalse())
	case syntax.OpEq, syntax.OpNe, syntax.OpLt, syntax.OpLe, syntax.OpGt, syntax.OpGe:
		// A constant compared with a parameter is folded, and needs the value.
		if !left.constant {
			right = c.argument(right)
		}
		result.eval = comparison(op, left, right)
		result.yes, result.no = comparisonConditions(op, left, right)
	case syntax.OpConcat:
		result.eval = func(f *frame) datum.Value {
			a, b := x(f), y(f)
			if !f.cx.Read(a.Size()+b.Size(), 1) {
				return datum.Value{}
			}
			return binaryValue(op, a, b)
		}
	default:
		result.eval = func(f *frame) datum.Value { return binaryValue(op, x(f), y(f)) }
	}
	return c.folded(result, left.constant && right.constant), nil
}

// comparison compiles an operator between values. Most of them compare with a
// constant, whose kind is looked at here once instead of for every row.
func comparison(op syntax.Op, left, right code) evaluator {
	x, y := left.eval, right.eval
	if right.argument {
		return compareArgument(op, x, right.value)
	}
	if right.constant {
		if text, ok := right.value.AsString(); ok && op == syntax.OpEq {
			return func(f *frame) datum.Value { return equalsText(x(f), text) }
		}
		if number, ok := right.value.AsFloat(); ok {
			return func(f *frame) datum.Value { return compareWithNumber(op, x(f), number) }
		}
	}
	return func(f *frame) datum.Value { return compareValues(op, x(f), y(f)) }
}

// between compiles BETWEEN as two comparisons of one value, which is computed once.
func (c *compiler) between(e *syntax.Between, s *scope) (code, error) {
	parts, constant, err := c.exprs([]syntax.Expr{e.X, e.Low, e.High}, s)
	if err != nil {
		return code{}, err
	}
	if !parts[0].constant {
		parts[1], parts[2] = c.argument(parts[1]), c.argument(parts[2])
	}
	x, low, high, not := parts[0].eval, parts[1].eval, parts[2].eval, e.Not
	result := code{eval: func(f *frame) datum.Value {
		v := x(f)
		inside := bothTrue(compareValues(syntax.OpGe, v, low(f)), compareValues(syntax.OpLe, v, high(f)))
		if not {
			return unaryValue(syntax.OpNot, inside)
		}
		return inside
	}}
	above, below := comparisonConditions(syntax.OpGe, parts[0], parts[1])
	atMost, over := comparisonConditions(syntax.OpLe, parts[0], parts[2])
	result.yes, result.no = and(above, atMost), or(below, over)
	if not {
		result.yes, result.no = result.no, result.yes
	}
	return c.folded(result, constant), nil
}

// in compiles IN. What is undefined in the list leaves open whether the value is there, unless
// another element is equal: as OR between comparisons would.
func (c *compiler) in(e *syntax.In, s *scope) (code, error) {
	needle, err := c.expr(e.X, s)
	if err != nil {
		return code{}, err
	}
	parts, constant, err := c.exprs(e.List, s)
	if err != nil {
		return code{}, err
	}
	// A long list is hashed, which takes the values of its parameters.
	if !needle.constant && len(parts) <= maxScannedList {
		for i := range parts {
			parts[i] = c.argument(parts[i])
		}
	}
	x, not := needle.eval, e.Not
	found := inAny(x, parts)
	if constant && len(parts) > maxScannedList {
		found = inConstants(x, parts)
	}
	result := code{eval: found}
	if not {
		result.eval = func(f *frame) datum.Value { return unaryValue(syntax.OpNot, found(f)) }
	}
	result.yes, result.no = inConditions(needle, parts)
	if not {
		result.yes, result.no = result.no, result.yes
	}
	return c.folded(result, constant && needle.constant), nil
}

// maxScannedList is the longest list of constants that is searched one by one;
// longer ones are hashed.
const maxScannedList = 8

// inConstants compiles IN with a long list of constants: the row's value is looked up by
// its canonical text. NaN and infinities are left out, for they equal nothing that an item
// can have.
func inConstants(x evaluator, parts []code) evaluator {
	set := make(datum.Set, len(parts))
	unknown := false
	for i := range parts {
		v := parts[i].value
		unknown = unknown || v.IsUndefined()
		if !v.IsUndefined() && v.Finite() {
			set.Add(v)
		}
	}
	return func(f *frame) datum.Value {
		v := x(f)
		if v.IsUndefined() {
			return datum.Value{}
		}
		f.scratch = v.AppendCanonical(f.scratch[:0])
		if set[string(f.scratch)] {
			return datum.Bool(true)
		}
		return falseUnless(unknown)
	}
}

// inAny compiles IN with a list that is searched one by one. Constants are put in a list of
// their own: a call for each would cost as much as the comparison.
func inAny(x evaluator, parts []code) evaluator {
	open := slices.ContainsFunc(parts, func(p code) bool { return !p.constant || p.argument })
	list := make([]datum.Value, len(parts))
	for i := range parts {
		list[i] = parts[i].value
	}
	return func(f *frame) datum.Value {
		v := x(f)
		if v.IsUndefined() {
			return datum.Value{}
		}
		unknown := false
		for i := range list {
			item := list[i]
			if open {
				item = parts[i].eval(f)
			}
			if datum.Equal(v, item) {
				return datum.Bool(true)
			}
			unknown = unknown || item.IsUndefined()
		}
		return falseUnless(unknown)
	}
}

// like compiles LIKE. A pattern that is written in the query is compiled once; one that comes
// from the item, for every row.
func (c *compiler) like(e *syntax.Like, s *scope) (code, error) {
	parts, constant, err := c.exprs([]syntax.Expr{e.X, e.Pattern}, s)
	if err != nil {
		return code{}, err
	}
	escape := function.NoEscape
	if e.Escape != nil {
		r, size := utf8.DecodeRuneInString(e.Escape.Text)
		if size == 0 || size != len(e.Escape.Text) {
			return code{}, syntax.Errorf(e.Escape.Span, "", "The ESCAPE clause must be a single character.")
		}
		escape = r
	}
	x, pattern := parts[0].eval, parts[1].eval
	match := func(f *frame) datum.Value {
		with, ok := pattern(f).AsString()
		if !ok || !f.cx.Read(len(with), 1) {
			return datum.Value{}
		}
		compiled, ok := function.CompileLike(with, escape)
		if !ok {
			return datum.Value{}
		}
		return compiled.Match(f.cx, x(f))
	}
	if with, isText := parts[1].value.AsString(); parts[1].constant && isText {
		if compiled, ok := function.CompileLike(with, escape); ok {
			match = func(f *frame) datum.Value { return compiled.Match(f.cx, x(f)) }
		}
	}
	result := code{eval: match, yes: likeCondition(parts[0], parts[1], escape)}
	if e.Not {
		result = code{eval: func(f *frame) datum.Value { return unaryValue(syntax.OpNot, match(f)) }, no: result.yes}
	}
	return c.folded(result, constant), nil
}

// call compiles a function. Its arguments are computed and checked for their types here,
// once for all functions: see [function.Function.Types]. What it reads is counted before it
// runs, because a function over long texts cannot be interrupted.
func (c *compiler) call(e *syntax.Call, s *scope) (code, error) {
	if e.UDF {
		return c.udf(e, s)
	}
	if op, ok := aggregateNamed(e.Name); ok {
		return c.aggregateCall(op, e, s)
	}
	fn, ok := function.Lookup(e.Name)
	if !ok {
		return code{}, unknownFunction(e)
	}
	parts, constant, err := c.exprs(e.Args, s)
	if err == nil {
		err = c.interrupted()
	}
	if err != nil {
		return code{}, err
	}
	if err := checkArguments(e, fn, parts, s); err != nil {
		return code{}, err
	}
	// Vectors are compared by the metric of their path in the container's policy, which is put
	// among the arguments here: the functions know no container.
	compares := fn.Name == function.VectorDistance || fn.Name == function.VectorScoreOf
	var metric function.Metric
	if compares {
		parts, metric = c.vectorArguments(parts)
	}
	if comparesArguments(fn.Name) && len(parts) == 2 && !parts[0].constant {
		parts[1] = c.argument(parts[1])
	}
	if fn.Eval == nil {
		// A score that no item has by itself.
		return code{eval: func(*frame) datum.Value { return datum.Value{} }}, nil
	}
	types := fn.Types(len(parts))
	result := code{compares: compares, metric: metric, function: fn.Name, args: parts, eval: func(f *frame) datum.Value {
		// The arguments of calls inside each other lie on one stack, so that a call needs no
		// memory of its own.
		base, size, fit := len(f.stack), 0, true
		for i := range parts {
			v := parts[i].eval(f)
			fit = fit && types[i].Has(v)
			size += v.Size()
			f.stack = append(f.stack, v)
		}
		var v datum.Value
		if fit && f.cx.Read(size, 1) {
			v = fn.Eval(f.cx, f.stack[base:])
		}
		f.stack = f.stack[:base]
		return v
	}}
	result.yes, result.no = callConditions(fn.Name, parts)
	return c.folded(result, constant && !fn.NonDeterministic), nil
}

// udf compiles a call of a user-defined function. It is never folded: the function is a
// script, and may return something else each time.
func (c *compiler) udf(e *syntax.Call, s *scope) (code, error) {
	parts, _, err := c.exprs(e.Args, s)
	if err != nil {
		return code{}, err
	}
	// The caller loads the functions before the query runs.
	c.udfs = append(c.udfs, e.Name)
	name := e.Name
	return code{eval: func(f *frame) datum.Value {
		args := make([]datum.Value, len(parts))
		for i := range parts {
			args[i] = parts[i].eval(f)
		}
		return f.callUDF(name, args, e.Span)
	}}, nil
}

// unknownFunction is the error for a name that no function has. It points to the name, and
// not to the call.
func unknownFunction(e *syntax.Call) *syntax.Error {
	name := syntax.Span{Start: e.Start, End: e.Start + len(e.Written)}
	return syntax.Errorf(name, "SC2005", "'%s' is not a recognized built-in function name.", e.Written)
}
