// SPDX-License-Identifier: MIT

// Functions on numbers. All but the integer family compute with float64 and may
// return what JSON cannot say, NaN or an infinity, as operators may.

package function

import (
	"math"
	"math/bits"

	"github.com/mayflydb/mayfly/internal/sql/datum"
)

func mathFunctions() []Function {
	list := []Function{
		{Name: "ATN2", Min: 2, Max: 2, Eval: ofNumbers(math.Atan2)},
		{Name: "LOG", Min: 1, Max: 2, Eval: logarithm},
		{Name: "NUMBERBIN", Min: 1, Max: 2, Eval: numberBin},
		{Name: "PI", Min: 0, Max: 0, Eval: func(*Context, []datum.Value) datum.Value { return datum.Float(math.Pi) }},
		{Name: "POWER", Min: 2, Max: 2, Eval: ofNumbers(math.Pow)},
		{Name: "RAND", Min: 0, Max: 0, Eval: random, NonDeterministic: true},
	}
	for name, f := range map[string]func(float64) float64{
		"ABS":     math.Abs,
		"ACOS":    math.Acos,
		"ASIN":    math.Asin,
		"ATAN":    math.Atan,
		"CEILING": math.Ceil,
		"COS":     cosine,
		"COT":     func(x float64) float64 { return 1 / tangent(x) },
		"DEGREES": func(x float64) float64 { return 180 / math.Pi * x },
		"EXP":     math.Exp,
		"FLOOR":   math.Floor,
		"LOG10":   math.Log10,
		"RADIANS": func(x float64) float64 { return math.Pi * x / 180 },
		"ROUND":   math.Round, // halves go away from zero
		"SIGN":    sign,
		"SIN":     sine,
		"SQRT":    math.Sqrt,
		"SQUARE":  func(x float64) float64 { return x * x },
		"TAN":     tangent,
		"TRUNC":   math.Trunc,
	} {
		list = append(list, Function{Name: name, Min: 1, Max: 1, Eval: ofNumber(f)})
	}
	return list
}

func ofNumber(f func(float64) float64) func(*Context, []datum.Value) datum.Value {
	return func(_ *Context, args []datum.Value) datum.Value {
		x, ok := args[0].AsFloat()
		if !ok {
			return datum.Undefined()
		}
		return datum.Float(f(x))
	}
}

func ofNumbers(f func(x, y float64) float64) func(*Context, []datum.Value) datum.Value {
	return func(_ *Context, args []datum.Value) datum.Value {
		x, okX := args[0].AsFloat()
		y, okY := args[1].AsFloat()
		if !okX || !okY {
			return datum.Undefined()
		}
		return datum.Float(f(x, y))
	}
}

// A quarter turn as a sum of three float64, which together have three times the
// digits of one.
const (
	quarter1 = 0x1.921fb54442d18p+00
	quarter2 = 0x1.1a62633145c07p-54
	quarter3 = -0x1.f1976b7ed8fbcp-110
)

// maxTurned is the greatest angle that turn reduces; math does it beyond.
const maxTurned = 1 << 20

// turn takes whole quarter turns off an angle. Package math does so with fewer
// digits, which leaves TAN(PI()/2) with twelve right ones.
func turn(x float64) (rest float64, quarters int) {
	n := math.Round(x * (2 / math.Pi))
	rest = math.FMA(-n, quarter1, x)
	rest = math.FMA(-n, quarter2, rest)
	return math.FMA(-n, quarter3, rest), int(n) & 3
}

func sine(x float64) float64 {
	if !(math.Abs(x) < maxTurned) {
		return math.Sin(x)
	}
	rest, quarters := turn(x)
	return sineOf(rest, quarters)
}

func cosine(x float64) float64 {
	if !(math.Abs(x) < maxTurned) {
		return math.Cos(x)
	}
	rest, quarters := turn(x)
	return sineOf(rest, quarters+1)
}

func sineOf(rest float64, quarters int) float64 {
	switch quarters & 3 {
	case 1:
		return math.Cos(rest)
	case 2:
		return -math.Sin(rest)
	case 3:
		return -math.Cos(rest)
	}
	return math.Sin(rest)
}

func tangent(x float64) float64 {
	if !(math.Abs(x) < maxTurned) {
		return math.Tan(x)
	}
	rest, quarters := turn(x)
	if quarters&1 == 1 {
		return -1 / math.Tan(rest)
	}
	return math.Tan(rest)
}

func sign(x float64) float64 {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return x // zero, or NaN
}

func logarithm(cx *Context, args []datum.Value) datum.Value {
	if len(args) == 1 {
		return ofNumber(math.Log)(cx, args)
	}
	return ofNumbers(func(x, base float64) float64 { return math.Log(x) / math.Log(base) })(cx, args)
}

// numberBin rounds down to a multiple of the bin's size, which is 1 unless given.
// A negative size makes it round up.
func numberBin(_ *Context, args []datum.Value) datum.Value {
	x, ok := args[0].AsFloat()
	if !ok {
		return datum.Undefined()
	}
	size := 1.0
	if len(args) == 2 {
		if size, ok = args[1].AsFloat(); !ok || size == 0 {
			return datum.Undefined()
		}
	}
	return datum.Float(math.Floor(x/size) * size)
}

func random(cx *Context, _ []datum.Value) datum.Value {
	if cx.Random == nil {
		return datum.Undefined()
	}
	return datum.Float(cx.Random())
}

// integerFunctions compute with int64 and are undefined for a number that is
// none. So are results that an int64 cannot hold, which the service does not
// document.
func integerFunctions() []Function {
	list := []Function{
		{Name: "INTBITNOT", Min: 1, Max: 1, Eval: intBitNot},
	}
	for name, f := range map[string]func(a, b int64) (int64, bool){
		"INTADD":           intAdd,
		"INTBITAND":        func(a, b int64) (int64, bool) { return a & b, true },
		"INTBITLEFTSHIFT":  func(a, b int64) (int64, bool) { return a << uint64(b), b >= 0 },
		"INTBITOR":         func(a, b int64) (int64, bool) { return a | b, true },
		"INTBITRIGHTSHIFT": func(a, b int64) (int64, bool) { return a >> uint64(b), b >= 0 },
		"INTBITXOR":        func(a, b int64) (int64, bool) { return a ^ b, true },
		"INTDIV":           intDiv,
		"INTMOD":           intMod,
		"INTMUL":           intMul,
		"INTSUB":           intSub,
	} {
		list = append(list, Function{Name: name, Min: 2, Max: 2, Eval: ofIntegers(f)})
	}
	return list
}

func ofIntegers(f func(a, b int64) (int64, bool)) func(*Context, []datum.Value) datum.Value {
	return func(_ *Context, args []datum.Value) datum.Value {
		a, okA := args[0].AsInt()
		b, okB := args[1].AsInt()
		if !okA || !okB {
			return datum.Undefined()
		}
		n, ok := f(a, b)
		if !ok {
			return datum.Undefined()
		}
		return datum.Int(n)
	}
}

func intBitNot(_ *Context, args []datum.Value) datum.Value {
	n, ok := args[0].AsInt()
	if !ok {
		return datum.Undefined()
	}
	return datum.Int(^n)
}

func intAdd(a, b int64) (int64, bool) {
	c := a + b
	return c, (c > a) == (b > 0)
}

func intSub(a, b int64) (int64, bool) {
	c := a - b
	return c, (c < a) == (b > 0)
}

func intMul(a, b int64) (int64, bool) {
	high, low := bits.Mul64(magnitude(a), magnitude(b))
	negative := (a < 0) != (b < 0)
	if high != 0 || low > math.MaxInt64 && !(negative && low == 1<<63) {
		return 0, false
	}
	return a * b, true
}

func magnitude(n int64) uint64 {
	if n < 0 {
		return -uint64(n)
	}
	return uint64(n)
}

func intDiv(a, b int64) (int64, bool) {
	if b == 0 || a == math.MinInt64 && b == -1 {
		return 0, false
	}
	return a / b, true
}

// intMod has the sign of the dividend.
func intMod(a, b int64) (int64, bool) {
	switch b {
	case 0:
		return 0, false
	case -1:
		return 0, true
	}
	return a % b, true
}
