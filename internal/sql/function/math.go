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
		{Name: "ATN2", Args: "nn", Eval: ofNumbers(math.Atan2)},
		{Name: "LOG", Args: "n|n", Eval: logarithm},
		{Name: "NUMBERBIN", Args: "n|n", Eval: numberBin},
		{Name: "PI", Eval: func(*Context, []datum.Value) datum.Value { return datum.Float(math.Pi) }},
		{Name: "POWER", Args: "nn", Eval: ofNumbers(math.Pow)},
		{Name: "RAND", Eval: random, NonDeterministic: true},
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
		list = append(list, Function{Name: name, Args: "n", Eval: ofNumber(f)})
	}
	return list
}

// ofNumber is a function of one number. A result that is not finite stays a value: the query
// fails only if it is part of a row.
func ofNumber(f func(float64) float64) func(*Context, []datum.Value) datum.Value {
	return func(_ *Context, args []datum.Value) datum.Value { return datum.Float(f(args[0].Number())) }
}

// ofNumbers is a function of two numbers.
func ofNumbers(f func(x, y float64) float64) func(*Context, []datum.Value) datum.Value {
	return func(_ *Context, args []datum.Value) datum.Value {
		return datum.Float(f(args[0].Number(), args[1].Number()))
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

// sine and cosine are as exact as the service's for every angle that queries have.
func sine(x float64) float64   { return sineOf(x, 0, math.Sin) }
func cosine(x float64) float64 { return sineOf(x, 1, math.Cos) }

// sineOf returns the sine of an angle and so many quarter turns; large asks math for it.
func sineOf(x float64, quarters int, large func(float64) float64) float64 {
	if !(math.Abs(x) < maxTurned) {
		return large(x)
	}
	rest, turned := turn(x)
	switch (quarters + turned) & 3 {
	case 1:
		return math.Cos(rest)
	case 2:
		return -math.Sin(rest)
	case 3:
		return -math.Cos(rest)
	}
	return math.Sin(rest)
}

// tangent is infinite at an odd number of quarter turns; near there, a small error of the
// angle is a large one of the result.
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

// sign keeps zero and NaN as they are, with their sign.
func sign(x float64) float64 {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return x // zero, or NaN
}

// logarithm is natural, unless the second argument is its base.
func logarithm(_ *Context, args []datum.Value) datum.Value {
	log := math.Log(args[0].Number())
	if len(args) == 2 {
		log /= math.Log(args[1].Number())
	}
	return datum.Float(log)
}

// numberBin rounds down to a multiple of the bin's size, which is 1 unless given.
// A negative size makes it round up.
func numberBin(_ *Context, args []datum.Value) datum.Value {
	x, size := args[0].Number(), 1.0
	if len(args) == 2 {
		size = args[1].Number()
	}
	if size == 0 {
		return datum.Undefined()
	}
	return datum.Float(math.Floor(x/size) * size)
}

// random asks the context, so that tests have the same numbers each time.
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
	not := func(_ *Context, args []datum.Value) datum.Value { return datum.Int(^integer(args[0])) }
	list := []Function{{Name: "INTBITNOT", Also: "INTBITWISENOT", Args: "i", Eval: not}}
	for _, two := range []struct {
		name, also string
		eval       func(a, b int64) (int64, bool)
	}{
		{"INTADD", "", intAdd},
		{"INTBITAND", "INTBITWISEAND", func(a, b int64) (int64, bool) { return a & b, true }},
		{"INTBITLEFTSHIFT", "INTBITWISELEFTSHIFT", func(a, b int64) (int64, bool) { return a << uint64(b), b >= 0 }},
		{"INTBITOR", "INTBITWISEOR", func(a, b int64) (int64, bool) { return a | b, true }},
		{"INTBITRIGHTSHIFT", "INTBITWISERIGHTSHIFT", func(a, b int64) (int64, bool) { return a >> uint64(b), b >= 0 }},
		{"INTBITXOR", "INTBITWISEXOR", func(a, b int64) (int64, bool) { return a ^ b, true }},
		{"INTDIV", "", intDiv},
		{"INTMOD", "", intMod},
		{"INTMUL", "INTMULTIPLY", intMul},
		{"INTSUB", "", intSub},
	} {
		list = append(list, Function{Name: two.name, Also: two.also, Args: "ii", Eval: ofIntegers(two.eval)})
	}
	return list
}

// ofIntegers is a function of two integers that reports whether its result is one.
func ofIntegers(f func(a, b int64) (int64, bool)) func(*Context, []datum.Value) datum.Value {
	return func(_ *Context, args []datum.Value) datum.Value {
		n, ok := f(integer(args[0]), integer(args[1]))
		if !ok {
			return datum.Undefined()
		}
		return datum.Int(n)
	}
}

// The sum has wrapped around unless it moved in the direction of b. intSub is the same for
// the difference.
func intAdd(a, b int64) (int64, bool) {
	c := a + b
	return c, (c > a) == (b > 0)
}

func intSub(a, b int64) (int64, bool) {
	c := a - b
	return c, (c < a) == (b > 0)
}

// intMul multiplies magnitudes in 128 bits: the least int64 has a magnitude that no other has.
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

// intDiv rounds towards zero. The least int64 divided by -1 is the one quotient that no int64
// holds.
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
