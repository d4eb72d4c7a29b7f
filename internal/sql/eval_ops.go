// SPDX-License-Identifier: MIT

// What operators do with values. Whatever an operator is not made for gives
// undefined. Numbers are float64 here, as in JavaScript: integers keep all their digits
// only where they are copied.

package sql

import (
	"cmp"
	"math"

	"github.com/mayflydb/mayfly/internal/sql/datum"
	"github.com/mayflydb/mayfly/internal/sql/function"
	"github.com/mayflydb/mayfly/internal/sql/syntax"
)

// unaryValue applies an operator to its operand.
func unaryValue(op syntax.Op, v datum.Value) datum.Value {
	if op == syntax.OpNot {
		if b, ok := v.AsBool(); ok {
			return datum.Bool(!b)
		}
		return datum.Value{}
	}
	x, ok := v.AsFloat()
	if !ok {
		return datum.Value{}
	}
	switch op {
	case syntax.OpNeg:
		return datum.Float(-x)
	case syntax.OpBitNot:
		return datum.Float(float64(^toInt32(x)))
	}
	return v
}

// evalAnd is three-valued: false with anything is false, and what is no boolean
// is unknown.
func evalAnd(f *frame, x, y evaluator) datum.Value {
	a := x(f)
	if a.IsFalse() {
		return a
	}
	return bothTrue(a, y(f))
}

// bothTrue is AND of two values that are both there.
func bothTrue(a, b datum.Value) datum.Value {
	switch {
	case a.IsFalse() || b.IsFalse():
		return datum.Bool(false)
	case a.IsTrue() && b.IsTrue():
		return a
	}
	return datum.Value{}
}

// evalOr is three-valued: true with anything is true.
func evalOr(f *frame, x, y evaluator) datum.Value {
	a := x(f)
	if a.IsTrue() {
		return a
	}
	b := y(f)
	switch {
	case b.IsTrue():
		return b
	case a.IsFalse() && b.IsFalse():
		return a
	}
	return datum.Value{}
}

// falseUnless returns false, or undefined if something is unknown.
func falseUnless(unknown bool) datum.Value {
	if unknown {
		return datum.Value{}
	}
	return datum.Bool(false)
}

// compareValues applies a comparison. Equality holds between all values that are
// defined; order only between two of one primitive type.
func compareValues(op syntax.Op, a, b datum.Value) datum.Value {
	if a.Kind() == datum.KindUndefined || b.Kind() == datum.KindUndefined {
		return datum.Value{}
	}
	switch op {
	case syntax.OpEq:
		return datum.Bool(datum.Equal(a, b))
	case syntax.OpNe:
		return datum.Bool(!datum.Equal(a, b))
	}
	if a.Kind() != b.Kind() || a.Kind() >= datum.KindArray {
		return datum.Value{}
	}
	if a.Kind() == datum.KindNumber {
		return compareWithNumber(op, a, b.Number())
	}
	return datum.Bool(holds(op, datum.Compare(a, b)))
}

// holds reports whether an ordering satisfies a comparison.
func holds(op syntax.Op, order int) bool {
	switch op {
	case syntax.OpEq:
		return order == 0
	case syntax.OpNe:
		return order != 0
	case syntax.OpLt:
		return order < 0
	case syntax.OpLe:
		return order <= 0
	case syntax.OpGt:
		return order > 0
	}
	return order >= 0
}

// compareWithNumber is compareValues with a number on the right, which most filters
// have. NaN is neither less nor equal nor greater.
func compareWithNumber(op syntax.Op, v datum.Value, y float64) datum.Value {
	x, ok := v.AsFloat()
	if !ok {
		if v.Kind() == datum.KindUndefined || op != syntax.OpEq && op != syntax.OpNe {
			return datum.Value{}
		}
		return datum.Bool(op == syntax.OpNe)
	}
	if x != x || y != y {
		return datum.Bool(op == syntax.OpNe)
	}
	return datum.Bool(holds(op, cmp.Compare(x, y)))
}

// equalsText is OpEq with a string on the right: the most frequent filter of all, without
// the switch over kinds.
func equalsText(v datum.Value, text string) datum.Value {
	if v.Kind() == datum.KindUndefined {
		return v
	}
	s, ok := v.AsString()
	return datum.Bool(ok && s == text)
}

// binaryValue applies an arithmetic, bitwise or string operator.
func binaryValue(op syntax.Op, a, b datum.Value) datum.Value {
	if op == syntax.OpConcat {
		x, ok := a.AsString()
		y, too := b.AsString()
		if !ok || !too || len(x)+len(y) > function.MaxResultBytes {
			return datum.Value{}
		}
		return datum.Str(x + y)
	}
	x, ok := a.AsFloat()
	y, too := b.AsFloat()
	if !ok || !too {
		return datum.Value{}
	}
	switch op {
	case syntax.OpAdd:
		return datum.Float(x + y)
	case syntax.OpSub:
		return datum.Float(x - y)
	case syntax.OpMul:
		return datum.Float(x * y)
	case syntax.OpDiv:
		return datum.Float(x / y)
	case syntax.OpMod:
		return datum.Float(math.Mod(x, y))
	}
	return datum.Float(bitwise(op, toInt32(x), toInt32(y)))
}

// shiftMask keeps the bits of a shift count that count.
const shiftMask = 31

// bitwise applies an operator on 32-bit integers, as JavaScript has them: a shift counts
// modulo 32, and only the zero-filling shift to the right is without a sign.
func bitwise(op syntax.Op, x, y int32) float64 {
	switch op {
	case syntax.OpBitAnd:
		return float64(x & y)
	case syntax.OpBitOr:
		return float64(x | y)
	case syntax.OpBitXor:
		return float64(x ^ y)
	case syntax.OpLeftShift:
		return float64(x << (uint32(y) & shiftMask))
	case syntax.OpRightShift:
		return float64(x >> (uint32(y) & shiftMask))
	}
	return float64(uint32(x) >> (uint32(y) & shiftMask))
}

// toInt32 wraps a number to 32 bits, without its fraction. What is not finite is
// zero.
func toInt32(f float64) int32 {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return 0
	}
	return int32(uint32(int64(math.Mod(math.Trunc(f), 1<<32))))
}
