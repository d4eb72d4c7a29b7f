// SPDX-License-Identifier: MIT

package value

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// ascending lists values in their order; no two are equal.
func ascending() []Scalar {
	return []Scalar{
		{}, Null(), Bool(false), Bool(true),
		Number(-math.MaxFloat64), Number(-1e300), Number(-9007199254740992), Number(-9007199254740991), Number(-2), Number(-1.5),
		Number(-1), Number(-0.5), Number(-math.SmallestNonzeroFloat64), Number(0), Number(math.SmallestNonzeroFloat64),
		Number(0.1), Number(0.5), Number(1), Number(1.5), Number(2), Number(10), Number(100),
		Number(9007199254740991), Number(9007199254740992), Number(1e300), Number(math.MaxFloat64),
		String(""), String("\x00"), String("\x00\x00"), String("\x00\x01"), String("\x00a"), String("\x01"), String("A"), String("AB"),
		String("a"), String("a\x00"), String("a\x00\x00"), String("a\x00b"), String("a\x01"), String("aa"), String("ab"), String("b"),
		String("\u00ff"), String("\uffff"), String("\U0001F600"),
	}
}

// anyScalar draws values that are likely to be near each other.
func anyScalar() *rapid.Generator[Scalar] {
	return rapid.OneOf(
		rapid.SampledFrom(ascending()),
		rapid.Map(rapid.Float64Range(-math.MaxFloat64, math.MaxFloat64), Number),
		rapid.Map(rapid.Int64Range(-1000, 1000), func(n int64) Scalar { return Number(float64(n)) }),
		rapid.Map(rapid.StringOf(rapid.RuneFrom([]rune("\x00\x01ab\"\\/é\uffff\U0001F600"))), String),
		rapid.Map(rapid.String(), String),
	)
}

func TestCompareIsTheOrder(t *testing.T) {
	values := ascending()
	for i, a := range values {
		for j, b := range values {
			want := 0
			if i < j {
				want = -1
			} else if i > j {
				want = 1
			}
			if got := Compare(a, b); got != want {
				t.Errorf("Compare(%v, %v) = %d, want %d", a, b, got, want)
			}
			if (a == b) != (want == 0) {
				t.Errorf("%v == %v is %v, and Compare gives %d", a, b, a == b, want)
			}
		}
	}
}

func TestMinusZeroIsZero(t *testing.T) {
	minus := Number(math.Copysign(0, -1))
	if minus != Number(0) || Compare(minus, Number(0)) != 0 {
		t.Error("-0 differs from 0")
	}
	if got := minus.String(); got != "0" {
		t.Errorf("-0 is written as %s", got)
	}
	parsed, ok := FromJSON([]byte("-0.0"))
	if !ok || string(AppendKey(nil, parsed)) != string(AppendKey(nil, Number(0))) {
		t.Errorf("FromJSON(-0.0) = %v, %v has another key than 0", parsed, ok)
	}
}

func TestNumberRefusesWhatHasNoOrder(t *testing.T) {
	for _, f := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("Number(%v) did not panic", f)
				}
			}()
			Number(f)
		}()
	}
}

func TestAccessorsTellTheKind(t *testing.T) {
	for _, v := range ascending() {
		_, isBool := v.Bool()
		_, isNumber := v.Number()
		_, isText := v.Text()
		if isBool != (v.Kind() == KindBool) || isNumber != (v.Kind() == KindNumber) || isText != (v.Kind() == KindString) ||
			v.Defined() != (v.Kind() != KindUndefined) {
			t.Errorf("%v of kind %v: Bool %v, Number %v, Text %v, Defined %v", v, v.Kind(), isBool, isNumber, isText, v.Defined())
		}
	}
	if b, _ := Bool(true).Bool(); !b {
		t.Error("Bool(true) is false")
	}
	if f, _ := Number(2.5).Number(); f != 2.5 {
		t.Errorf("Number(2.5) is %v", f)
	}
	if s, _ := String("x").Text(); s != "x" {
		t.Errorf("String(x) is %q", s)
	}
	if got := (Scalar{}).String(); got != "undefined" {
		t.Errorf("undefined is printed as %q", got)
	}
}

func TestFromJSON(t *testing.T) {
	f := func(raw string, want Scalar) {
		t.Helper()
		if got, ok := FromJSON([]byte(raw)); !ok || got != want {
			t.Errorf("FromJSON(%s) = %v, %v; want %v", raw, got, ok, want)
		}
	}
	f(`null`, Null())
	f(`true`, Bool(true))
	f(`false`, Bool(false))
	f(`0`, Number(0))
	f(`-12.50e+1`, Number(-125))
	f(`1E3`, Number(1000))
	f(`9007199254740993`, Number(9007199254740992))
	f(`1e-400`, Number(0))
	f(`""`, String(""))
	f(`"a\u0000\n\"\u00e9\ud83d\ude00é"`, String("a\x00\n\"é\U0001F600é"))
	f(`"`+strings.Repeat("x", 1000)+`"`, String(strings.Repeat("x", 1000)))

	for _, raw := range []string{
		``, ` `, ` 1`, `1 `, `nul`, `nulll`, `True`, `[]`, `{}`, `[1]`, `+1`, `01`, `-01`, `-`, `.5`, `5.`, `1e`, `1e+`, `0x10`, `1_000`,
		`NaN`, `Infinity`, `-Infinity`, `inf`, `1e309`, `-1e309`, `1,2`, `"`, `"a`, `a"`, `"a"b"`, `"\x"`, `"\ud800"`, "\"\xff\"", "\"\n\"", `'a'`,
	} {
		if got, ok := FromJSON([]byte(raw)); ok || got.Defined() {
			t.Errorf("FromJSON(%q) = %v, %v; want none", raw, got, ok)
		}
	}
}

func TestAppendJSON(t *testing.T) {
	f := func(v Scalar, want string) {
		t.Helper()
		if got := string(v.AppendJSON([]byte("x"))); got != "x"+want {
			t.Errorf("AppendJSON(%v) = %s, want x%s", v, got, want)
		}
	}
	f(Scalar{}, ``)
	f(Null(), `null`)
	f(Bool(true), `true`)
	f(Bool(false), `false`)
	f(Number(1), `1`)
	f(Number(-1.5), `-1.5`)
	f(Number(1e21), `1e+21`)
	f(Number(123456789012345680000), `123456789012345680000`)
	f(Number(5e-324), `5e-324`)
	f(String("a\"\\/\b\f\n\r\t\x00\x1f\x7fé\u2028\U0001F600"), `"a\"\\/\b\f\n\r\t\u0000\u001f`+"\x7fé\u2028\U0001F600"+`"`)
	f(String("a\xffb"), "\"a\uFFFDb\"")
	f(String("a\uFFFDb"), "\"a\uFFFDb\"")
}

func TestJSONRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := anyScalar().Draw(t, "v")
		text := v.AppendJSON(nil)
		if got, ok := FromJSON(text); ok != v.Defined() || got != v {
			t.Fatalf("%v is written as %s and read as %v, %v", v, text, got, ok)
		}
	})
}

// encoding/json reads what was written.
func TestQuotingRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(t, "s")
		want := string([]rune(s)) // one U+FFFD for each byte that is not UTF-8
		quoted := AppendString(nil, s)
		var got string
		if err := json.Unmarshal(quoted, &got); err != nil || got != want {
			t.Fatalf("%q is written as %s and read as %q (%v)", s, quoted, got, err)
		}
	})
}
