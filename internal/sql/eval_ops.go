// SPDX-License-Identifier: MIT

// What operators do with values. Whatever an operator is not made for gives
// undefined.

package sql

import (
	"cmp"
	"math"

	"github.com/mayflydb/mayfly/internal/sql/syntax"
)

// unaryValue applies an operator to its operand.
func unaryValue(op syntax.Op, v Value) Value {
	if op == syntax.OpNot {
		if b, ok := v.AsBool(); ok {
			return Bool(!b)
		}
		return Value{}
	}
	x, ok := v.AsFloat()
	if !ok {
		return Value{}
	}
	switch op {
	case syntax.OpNeg:
		return Float(-x)
	case syntax.OpBitNot:
		return Float(float64(^toInt32(x)))
	}
	return v
}

// evalAnd is three-valued: false with anything is false, and what is no boolean
// is unknown.
func evalAnd(f *frame, x, y evaluator) Value {
	a := x(f)
	if a.isFalse() {
		return a
	}
	return bothTrue(a, y(f))
}

func bothTrue(a, b Value) Value {
	switch {
	case a.isFalse() || b.isFalse():
		return Bool(false)
	case a.IsTrue() && b.IsTrue():
		return a
	}
	return Value{}
}

// evalOr is three-valued: true with anything is true.
func evalOr(f *frame, x, y evaluator) Value {
	a := x(f)
	if a.IsTrue() {
		return a
	}
	b := y(f)
	switch {
	case b.IsTrue():
		return b
	case a.isFalse() && b.isFalse():
		return a
	}
	return Value{}
}

func (v Value) isFalse() bool { return v.kind == KindBool && v.bits == 0 }

// falseUnless returns false, or undefined if something is unknown.
func falseUnless(unknown bool) Value {
	if unknown {
		return Value{}
	}
	return Bool(false)
}

// inList searches a short list.
func inList(v Value, list []Value) Value {
	if v.IsUndefined() {
		return v
	}
	unknown := false
	for i := range list {
		if Equal(v, list[i]) {
			return Bool(true)
		}
		unknown = unknown || list[i].IsUndefined()
	}
	return falseUnless(unknown)
}

// compareValues applies a comparison. Equality holds between all values that are
// defined; order only between two of one primitive type.
func compareValues(op syntax.Op, a, b Value) Value {
	if a.kind == KindUndefined || b.kind == KindUndefined {
		return Value{}
	}
	switch op {
	case syntax.OpEq:
		return Bool(Equal(a, b))
	case syntax.OpNe:
		return Bool(!Equal(a, b))
	}
	if a.kind != b.kind || a.kind >= KindArray {
		return Value{}
	}
	if a.kind == KindNumber {
		y, _ := b.AsFloat()
		return compareWithNumber(op, a, y)
	}
	return Bool(holds(op, Compare(a, b)))
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

// compareWithNumber is compareValues with a number on the right. NaN is neither
// less nor equal nor greater.
func compareWithNumber(op syntax.Op, v Value, y float64) Value {
	x, ok := v.AsFloat()
	if !ok {
		if v.kind == KindUndefined || op != syntax.OpEq && op != syntax.OpNe {
			return Value{}
		}
		return Bool(op == syntax.OpNe)
	}
	if x != x || y != y {
		return Bool(op == syntax.OpNe)
	}
	return Bool(holds(op, cmp.Compare(x, y)))
}

// equalsText is OpEq with a string on the right.
func equalsText(v Value, text string) Value {
	if v.kind == KindUndefined {
		return v
	}
	s, ok := v.AsString()
	return Bool(ok && s == text)
}

// binaryValue applies an arithmetic, bitwise or string operator.
func binaryValue(op syntax.Op, a, b Value) Value {
	if op == syntax.OpConcat {
		x, ok := a.AsString()
		y, too := b.AsString()
		if !ok || !too || len(x)+len(y) > maxResultBytes {
			return Value{}
		}
		return Str(x + y)
	}
	x, ok := a.AsFloat()
	y, too := b.AsFloat()
	if !ok || !too {
		return Value{}
	}
	switch op {
	case syntax.OpAdd:
		return Float(x + y)
	case syntax.OpSub:
		return Float(x - y)
	case syntax.OpMul:
		return Float(x * y)
	case syntax.OpDiv:
		return Float(x / y)
	case syntax.OpMod:
		return Float(math.Mod(x, y))
	}
	return Float(bitwise(op, toInt32(x), toInt32(y)))
}

// shiftMask keeps the bits of a shift count that count.
const shiftMask = 31

// bitwise applies an operator on 32-bit integers, as JavaScript has them.
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
