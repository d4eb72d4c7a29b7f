// SPDX-License-Identifier: MIT

package function

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/mayflydb/mayfly/internal/sql/datum"
)

func TestMathFunctions(t *testing.T) {
	sheet(t, `
ABS(-2.5) => 2.5
ABS(0) => 0
ACOS(1) => 0
ACOS(-1) => 3.141592653589793
ASIN(1) => 1.5707963267948966
ASIN(0) => 0
ATAN(1) => 0.7853981633974483
ATN2(1, 0) => 1.5707963267948966
ATN2(0, 1) => 0
ATN2(-1, -1) => -2.356194490192345
CEILING(1.2) => 2
CEILING(-1.2) => -1
CEILING(3) => 3
COS(0) => 1
COS(PI()) => -1
COS(PI()/2) => 6.123233995736766e-17
COT(PI()/2) => 6.123233995736766e-17
DEGREES(PI()) => 180
DEGREES(0) => 0
EXP(0) => 1
EXP(1) => 2.718281828459045
FLOOR(1.8) => 1
FLOOR(-1.2) => -2
LOG(1) => 0
LOG(8, 2) => 3
LOG(100, 10) => 2
LOG10(1000) => 3
PI() => 3.141592653589793
POWER(2, 10) => 1024
POWER(2, -1) => 0.5
POWER(-8, 2) => 64
POWER(0, 0) => 1
RADIANS(180) => 3.141592653589793
RADIANS(0) => 0
RAND() => 0.25
ROUND(2.5) => 3
ROUND(-2.5) => -3
ROUND(2.4999) => 2
SIGN(-7) => -1
SIGN(0) => 0
SIGN(7.5) => 1
SIN(0) => 0
SIN(PI()/2) => 1
SQRT(9) => 3
SQRT(2) => 1.4142135623730951
SQUARE(-3) => 9
TAN(0) => 0
TAN(1) => 1.557407724654902
TAN(PI()/2) => 16331239353195370
TRUNC(2.9) => 2
TRUNC(-2.9) => -2

NUMBERBIN(17) => 17
NUMBERBIN(17.9) => 17
NUMBERBIN(17, 5) => 15
NUMBERBIN(-17, 5) => -20
NUMBERBIN(17, -5) => 20
NUMBERBIN(17, 0.25) => 17
NUMBERBIN(17, 0) => undefined

TOSTRING(SQRT(-1)) => "NaN"
TOSTRING(LOG(0)) => "-Infinity"
TOSTRING(EXP(1000)) => "Infinity"
TOSTRING(ACOS(2)) => "NaN"
TOSTRING(POWER(-8, 0.5)) => "NaN"
`)
}

func TestTrigonometryIsPrecise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.Float64Range(-maxTurned, maxTurned).Draw(t, "x")
		for _, c := range []struct{ got, want float64 }{
			{sine(x), math.Sin(x)}, {cosine(x), math.Cos(x)}, {sine(x)/cosine(x) - tangent(x), 0},
		} {
			if scale := math.Max(1, math.Abs(tangent(x))); math.Abs(c.got-c.want) > 1e-9*scale {
				t.Fatalf("of %v: got %v, want %v", x, c.got, c.want)
			}
		}
		if one := sine(x)*sine(x) + cosine(x)*cosine(x); math.Abs(one-1) > 1e-15 {
			t.Fatalf("of %v: squares add up to %v", x, one)
		}
	})
	for _, f := range []func(float64) float64{sine, cosine, tangent} {
		if !math.IsNaN(f(math.Inf(1))) || !math.IsNaN(f(math.NaN())) {
			t.Error("an infinite angle has a value")
		}
	}
}

func TestIntegerFunctions(t *testing.T) {
	sheet(t, `
INTADD(9223372036854775806, 1) => 9223372036854775807
INTADD(9223372036854775807, 1) => undefined
INTADD(-9223372036854775808, -1) => undefined
INTADD(1.0, 2) => 3
INTADD(1.5, 2) => undefined
INTSUB(-9223372036854775807, 1) => -9223372036854775808
INTSUB(-9223372036854775808, 1) => undefined
INTSUB(5, 8) => -3
INTMUL(3037000500, 3037000499) => 9223372033963249500
INTMUL(3037000500, 3037000500) => undefined
INTMUL(-4611686018427387904, 2) => -9223372036854775808
INTMUL(4611686018427387904, 2) => undefined
INTMUL(-7, 6) => -42
INTDIV(7, 2) => 3
INTDIV(-7, 2) => -3
INTDIV(7, 0) => undefined
INTDIV(-9223372036854775808, -1) => undefined
INTMOD(7, 3) => 1
INTMOD(-7, 3) => -1
INTMOD(7, -3) => 1
INTMOD(7, 0) => undefined
INTMOD(-9223372036854775808, -1) => 0
INTBITAND(12, 10) => 8
INTBITOR(12, 10) => 14
INTBITXOR(12, 10) => 6
INTBITNOT(0) => -1
INTBITNOT(-1) => 0
INTBITNOT(1.5) => undefined
INTBITLEFTSHIFT(1, 40) => 1099511627776
INTBITLEFTSHIFT(1, 64) => 0
INTBITLEFTSHIFT(1, -1) => undefined
INTBITRIGHTSHIFT(-16, 2) => -4
INTBITRIGHTSHIFT(16, 99) => 0
INTBITRIGHTSHIFT(16, -2) => undefined
INTBITRIGHTSHIFT(16, 0.5) => undefined
`)
}

// TestIntegerModel compares the integer family with numbers that have no bounds.
func TestIntegerModel(t *testing.T) {
	edge := rapid.OneOf(rapid.Int64(), rapid.SampledFrom([]int64{0, 1, -1, math.MaxInt64, math.MinInt64, 1 << 31, 1 << 32, -1 << 32}))
	rapid.Check(t, func(t *rapid.T) {
		a, b := edge.Draw(t, "a"), edge.Draw(t, "b")
		x, y := big.NewInt(a), big.NewInt(b)
		results := map[string]*big.Int{
			"INTADD": new(big.Int).Add(x, y),
			"INTSUB": new(big.Int).Sub(x, y),
			"INTMUL": new(big.Int).Mul(x, y),
		}
		if b != 0 {
			results["INTDIV"], results["INTMOD"] = new(big.Int).QuoRem(x, y, new(big.Int))
		}
		for name, want := range results {
			v := invoke(functions[name], testContext(), []datum.Value{datum.Int(a), datum.Int(b)})
			got, ok := v.AsInt()
			if ok != want.IsInt64() || ok && got != want.Int64() {
				t.Fatalf("%s(%d, %d): got %s, want %s", name, a, b, v, want)
			}
		}
	})
}
