// SPDX-License-Identifier: MIT

package datum

import (
	"bytes"
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/mayflydb/mayfly/internal/value"
)

func TestRaw(t *testing.T) {
	f := func(text string, kind Kind) {
		t.Helper()
		v := Raw([]byte(text))
		if v.Kind() != kind {
			t.Errorf("Raw(%s) is of kind %v, want %v", text, v.Kind(), kind)
		}
		if got := string(v.AppendJSON(nil)); got != text {
			t.Errorf("Raw(%s) is written as %s", text, got)
		}
	}
	if got := Raw([]byte(`-1.50e3`)).String(); got != "-1500" {
		t.Errorf("-1.50e3 is written as %s", got)
	}
	f(``, KindUndefined)
	f(`null`, KindNull)
	f(`true`, KindBool)
	f(`false`, KindBool)
	f(`0`, KindNumber)
	f(`-1.5`, KindNumber)
	f(`""`, KindString)
	f(`"a\"b"`, KindString)
	f(`[]`, KindArray)
	f(`[1,"]",{"a":[2]}]`, KindArray)
	f(`{}`, KindObject)
	f(`{"a":{"b":"}"}}`, KindObject)
}

func TestAsInt(t *testing.T) {
	f := func(v Value, want int64, ok bool) {
		t.Helper()
		if got, is := v.AsInt(); got != want || is != ok {
			t.Errorf("AsInt(%v) = %d, %v; want %d, %v", v, got, is, want, ok)
		}
	}
	f(Int(math.MaxInt64), math.MaxInt64, true)
	f(Raw([]byte("9223372036854775807")), math.MaxInt64, true)
	f(Raw([]byte("9223372036854775808")), 0, false)
	f(Raw([]byte("-9223372036854775808")), math.MinInt64, true)
	f(Raw([]byte("-9223372036854775809")), 0, false)
	f(Raw([]byte("1e3")), 1000, true)
	f(Raw([]byte("1.0")), 1, true)
	f(Raw([]byte("1.5")), 0, false)
	f(Raw([]byte("1e300")), 0, false)
	f(Float(-3), -3, true)
	f(Float(0x1p63), 0, false)
	f(Float(-0x1p63), math.MinInt64, true)
	f(Float(math.NaN()), 0, false)
	f(Float(math.Inf(1)), 0, false)
	f(Str("1"), 0, false)
	f(Undefined(), 0, false)
}

func TestMember(t *testing.T) {
	v := Raw([]byte(`{"a":1,"b\"c":2,"":3,"é":4,"nested":{"a":"x","deep":[{"q":5}]},"\u0061b":6,"back\\slash":7}`))
	f := func(name, want string) {
		t.Helper()
		if got := v.Member(name).String(); got != want {
			t.Errorf("Member(%q) = %s, want %s", name, got, want)
		}
	}
	f("a", "1")
	f(`b"c`, "2")
	f(`b\"c`, "undefined")
	f("", "3")
	f("é", "4")
	f("ab", "6")
	f(`back\slash`, "7")
	f("missing", "undefined")
	f("deep", "undefined")
	if got := v.Member("nested").Member("deep").Index(0).Member("q").String(); got != "5" {
		t.Errorf("nested.deep[0].q = %s, want 5", got)
	}
	for _, other := range []string{`null`, `"a"`, `[{"a":1}]`, `1`, ``} {
		if got := Raw([]byte(other)).Member("a"); !got.IsUndefined() {
			t.Errorf("%s has a member a: %v", other, got)
		}
	}
}

func TestIndexAndLen(t *testing.T) {
	v := Raw([]byte(`[1,"a,b",[2,[]],{"c":[3]},null]`))
	for i, want := range []string{`1`, `"a,b"`, `[2,[]]`, `{"c":[3]}`, `null`, `undefined`} {
		if got := v.Index(i).String(); got != want {
			t.Errorf("Index(%d) = %s, want %s", i, got, want)
		}
	}
	if got := v.Index(-1); !got.IsUndefined() {
		t.Errorf("Index(-1) = %v", got)
	}
	for text, want := range map[string]int{
		`[]`: 0, `{}`: 0, `[[]]`: 1, `[1,2]`: 2, `{"a":[1,2],"b":{}}`: 2, `"ab"`: -1, `null`: -1, ``: -1,
	} {
		if got := Raw([]byte(text)).Len(); got != want {
			t.Errorf("Len(%s) = %d, want %d", text, got, want)
		}
	}
}

func TestOrderAcrossTypes(t *testing.T) {
	ascending := []Value{
		Undefined(), Null(), Bool(false), Bool(true),
		Float(math.NaN()), Float(math.Inf(-1)), Float(-1), Int(0), Raw([]byte("1e-3")), Int(2), Raw([]byte("10")), Float(math.Inf(1)),
		Str(""), Str("A"), Raw([]byte(`"B"`)), Str("a"), Str("aa"), Str("é"), Str("😀"), Str("\uE000"), Str("\uFFFF"),
		Raw([]byte(`[]`)), Raw([]byte(`{}`)),
	}
	for i, a := range ascending {
		for j, b := range ascending {
			if got, want := Compare(a, b), cmp.Compare(i, j); got != want {
				t.Errorf("Compare(%v, %v) = %d, want %d", a, b, got, want)
			}
		}
	}
}

func TestEqual(t *testing.T) {
	f := func(a, b string, want bool) {
		t.Helper()
		if got := Equal(Raw([]byte(a)), Raw([]byte(b))); got != want {
			t.Errorf("Equal(%s, %s) = %v", a, b, got)
		}
		if got := Equal(Raw([]byte(b)), Raw([]byte(a))); got != want {
			t.Errorf("Equal(%s, %s) = %v", b, a, got)
		}
	}
	f(`1`, `1.0`, true)
	f(`100`, `1e2`, true)
	f(`1`, `"1"`, false)
	f(`9007199254740993`, `9007199254740992`, true)
	f(`"a"`, `"\u0061"`, true)
	f(`null`, `false`, false)
	f(`[1,[2]]`, `[1.0,[2]]`, true)
	f(`[1,2]`, `[2,1]`, false)
	f(`[1]`, `[1,1]`, false)
	f(`[]`, `{}`, false)
	f(`{"a":1,"b":[2]}`, `{"b":[2.0],"a":1}`, true)
	f(`{"a":1}`, `{"a":1,"b":1}`, false)
	f(`{"a":null}`, `{"b":null}`, false)
	nan := Float(math.NaN())
	var b ArrayBuilder
	b.Add(nan)
	if holder := b.Value(); Equal(nan, nan) || Equal(holder, holder) {
		t.Error("NaN equals NaN")
	}
}

// anyJSON draws compact JSON of few names and values, so that equal ones are
// drawn often, in different spellings.
func anyJSON(depth int) *rapid.Generator[string] {
	scalar := rapid.SampledFrom([]string{
		`null`, `true`, `false`, `0`, `-0`, `1`, `1.0`, `1e0`, `2`, `-1.5`, `1e20`, `100000000000000000000`,
		`""`, `"a"`, `"\u0061"`, `"b"`, `"a\"b"`, `"\n"`, `"\ud83d\ude00"`, `"😀"`, `"\\"`,
	})
	if depth == 0 {
		return scalar
	}
	inner := anyJSON(depth - 1)
	return rapid.OneOf(scalar, rapid.Custom(func(t *rapid.T) string {
		var b bytes.Buffer
		b.WriteByte('[')
		for i, e := range rapid.SliceOfN(inner, 0, 3).Draw(t, "elements") {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(e)
		}
		b.WriteByte(']')
		return b.String()
	}), rapid.Custom(func(t *rapid.T) string {
		names := rapid.Permutation([]string{`"a"`, `"b"`, `"\u0063"`}).Draw(t, "names")
		var b bytes.Buffer
		b.WriteByte('{')
		for i := range rapid.IntRange(0, 3).Draw(t, "count") {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(names[i] + ":" + inner.Draw(t, "member"))
		}
		b.WriteByte('}')
		return b.String()
	}))
}

// decode gives Go's own view of JSON, in which equality is ==, deeply.
func decode(t *rapid.T, text string) any {
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestEqualAgreesWithDecodedJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyJSON(2).Draw(t, "a"), anyJSON(2).Draw(t, "b")
		x, y := Raw([]byte(a)), Raw([]byte(b))
		wantA, _ := json.Marshal(decode(t, a))
		wantB, _ := json.Marshal(decode(t, b))
		// Go writes -0 as it is; it is zero all the same.
		want := bytes.Equal(bytes.ReplaceAll(wantA, []byte("-0"), []byte("0")), bytes.ReplaceAll(wantB, []byte("-0"), []byte("0")))
		if got := Equal(x, y); got != want {
			t.Fatalf("Equal(%s, %s) = %v", a, b, got)
		}
		if got := bytes.Equal(x.AppendCanonical(nil), y.AppendCanonical(nil)); got != want {
			t.Fatalf("canonical texts of %s and %s: %s, %s", a, b, x.AppendCanonical(nil), y.AppendCanonical(nil))
		}
		if got := Compare(x, y); (got == 0) != want || got != -Compare(y, x) {
			t.Fatalf("Compare(%s, %s) = %d", a, b, got)
		}
	})
}

func TestWideObjectsAreEqualInAnyOrder(t *testing.T) {
	var forth, back ObjectBuilder
	for i := range 3 * maxLookups {
		forth.Set(strconv.Itoa(i), Int(int64(i)))
		back.Set(strconv.Itoa(3*maxLookups-1-i), Int(int64(3*maxLookups-1-i)))
	}
	if a, b := forth.Value(), back.Value(); !Equal(a, b) {
		t.Errorf("%v and %v differ", a, b)
	}
}

func TestBuilders(t *testing.T) {
	var a ArrayBuilder
	if got := a.Snapshot().String(); got != `[]` {
		t.Errorf("empty array = %s", got)
	}
	a.Add(Int(1))
	a.Add(Undefined())
	first := a.Snapshot()
	a.Add(Str("x\n"))
	var o ObjectBuilder
	o.Set("a\"", a.Value())
	o.Set("u", Undefined())
	o.Set("n", Null())
	if got, want := o.Value().String(), `{"a\"":[1,"x\n"],"n":null}`; got != want {
		t.Errorf("object = %s, want %s", got, want)
	}
	if got := first.String(); got != `[1]` {
		t.Errorf("snapshot = %s, want [1]", got)
	}
}

func TestFinite(t *testing.T) {
	var a ArrayBuilder
	a.Add(Float(math.Inf(-1)))
	var o ObjectBuilder
	o.Set("a", a.Value())
	for _, v := range []Value{Float(math.NaN()), Float(math.Inf(1)), o.Value(), o.Value().Member("a"), o.Value().Member("a").Index(0)} {
		if v.Finite() {
			t.Errorf("%v is finite", v)
		}
	}
	for _, v := range []Value{Float(1), Int(1), Raw([]byte("1")), Str("NaN"), Null(), Undefined(), Raw([]byte(`["NaN"]`))} {
		if !v.Finite() {
			t.Errorf("%v is not finite", v)
		}
	}
	if got := o.Value().Member("a").Index(0); !Equal(got, Float(math.Inf(-1))) {
		t.Errorf("-Infinity inside an array = %v", got)
	}
}

func TestStringsCompareAsUTF16(t *testing.T) {
	text := rapid.StringOf(rapid.SampledFrom([]rune{'a', 'b', 'é', '\uD7FF', '\uE000', '\uFFFD', '\U00010000', '\U0010FFFF'}))
	rapid.Check(t, func(t *rapid.T) {
		a, b := text.Draw(t, "a"), text.Draw(t, "b")
		want := slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
		if got := compareStrings(a, b); got != want {
			t.Fatalf("compareStrings(%q, %q) = %d, want %d", a, b, got, want)
		}
	})
}

// FuzzValue looks into arbitrary JSON in every way there is, and compares with
// what encoding/json finds there.
func FuzzValue(f *testing.F) {
	for _, seed := range []string{
		`{"a":[1,"x",{"b":null}],"c\n":"\u00e9\ud83d\ude00","d":-1.5e-3}`, `[[],{},""]`, `"\\\""`, `12345678901234567890`,
		`{"long":"0123456789012345678901234567890123456789\\","next":1}`, `{"":{"":{"":[]}}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		var compact bytes.Buffer
		if !utf8.Valid(src) || json.Compact(&compact, src) != nil {
			return
		}
		var want any
		d := json.NewDecoder(bytes.NewReader(src))
		d.UseNumber()
		if d.Decode(&want) != nil {
			return
		}
		v := Raw(compact.Bytes())
		sameAsDecoded(t, v, want)
		v.AppendCanonical(nil)
	})
}

func sameAsDecoded(t *testing.T, v Value, want any) {
	t.Helper()
	switch want := want.(type) {
	case nil:
		if v.Kind() != KindNull {
			t.Fatalf("%v is not null", v)
		}
	case bool:
		if got, ok := v.AsBool(); got != want || !ok {
			t.Fatalf("%v is not %v", v, want)
		}
	case json.Number:
		f, err := want.Float64()
		if got, ok := v.AsFloat(); err == nil && (got != f || !ok) {
			t.Fatalf("%v is not %v", v, want)
		}
	case string:
		if got, ok := v.AsString(); got != want || !ok {
			t.Fatalf("%v is %q, not %q", v, got, want)
		}
	case []any:
		i := 0
		for e := range v.Elements {
			sameAsDecoded(t, e, want[i])
			i++
		}
		if i != len(want) || v.Len() != len(want) {
			t.Fatalf("%v has %d elements, want %d", v, v.Len(), len(want))
		}
	case map[string]any:
		last := map[string]Value{}
		for name, p := range v.Properties {
			last[name] = p
		}
		if len(last) != len(want) {
			t.Fatalf("%v has the properties %v, want %v", v, last, want)
		}
		for name, p := range last {
			sameAsDecoded(t, p, want[name])
			if v.Member(name).IsUndefined() {
				t.Fatalf("%v has no member %q", v, name)
			}
		}
	}
}

// What is taken out of an item has its numbers in the shortest form, by whichever way it is
// taken, and by glances at short ones; the item as a whole is as it was sent.
func TestNumbersOfParts(t *testing.T) {
	digits := "120340560780910"
	numbers := []string{"0", "-0", "-0.0", "1e5", "1E5", "-1.5e+3", "0.0000001", "0.000001", "-0.0000012", "9007199254740993", "9007199254740993.5"}
	for whole := 1; whole < len(digits); whole++ {
		for fraction := 1; whole+fraction <= len(digits); fraction++ {
			number := digits[:whole] + "." + digits[whole:whole+fraction]
			numbers = append(numbers, number, "-"+number, number+"e2", "0."+digits[:fraction])
		}
	}
	for _, n := range numbers {
		item := `{"true":"e.0","a":[` + n + `,{"e":` + n + `,"t":true}],"n":` + n + `}`
		v := Raw([]byte(item))
		if got := v.String(); got != item {
			t.Errorf("%s is written as %s", item, got)
		}
		want := string(value.AppendShortest(nil, n))
		wantArray := `[` + want + `,{"e":` + want + `,"t":true}]`
		var properties ObjectBuilder
		for name, p := range v.Properties {
			properties.Set(name, p)
		}
		wantAll := `{"true":"e.0","a":` + wantArray + `,"n":` + want + `}`
		for got, want := range map[string]string{
			v.Member("n").String(): want, v.Member("a").String(): wantArray, properties.Value().String(): wantAll,
			v.Member("a").Index(0).String(): want, v.Member("a").Index(1).Member("e").String(): want,
		} {
			if got != want {
				t.Errorf("of %s: got %s, want %s", n, got, want)
			}
		}
	}
}
