// SPDX-License-Identifier: MIT

package function

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/sql/datum"
	"github.com/mayflydb/mayfly/internal/sql/syntax"
	"github.com/mayflydb/mayfly/internal/value"
	"pgregory.net/rapid"
)

// testNowMs is 2023-11-14T22:13:20Z.
const testNowMs = 1_700_000_000_000

func testContext() *Context {
	return &Context{NowMs: testNowMs, Random: func() float64 { return 0.25 }}
}

// Compute evaluates an expression: it returns no row if the value is undefined. The package
// that compiles expressions stands above this one, so a test outside sets it.
var Compute func(expr string, cx *Context) ([]byte, error)

// calc returns the value of an expression as JSON, or the word undefined.
func calc(tb testing.TB, expr string) string {
	tb.Helper()
	row, err := Compute(expr, testContext())
	if err != nil {
		tb.Fatalf("%s: %v", expr, err)
	}
	if row == nil {
		return "undefined"
	}
	return string(row)
}

// invoke computes a call as a query does.
func invoke(f *Function, cx *Context, args []datum.Value) datum.Value {
	for i, k := range f.Types(len(args)) {
		if !k.Has(args[i]) {
			return datum.Undefined()
		}
	}
	return f.Eval(cx, args)
}

// sheet is a list of expressions and what they give, one a line: expr => value.
// Empty lines and lines that begin with # are skipped.
func sheet(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		expr, want, ok := strings.Cut(line, " => ")
		if !ok {
			t.Fatalf("no => in %q", line)
		}
		if got := calc(t, expr); got != want {
			t.Errorf("%s\n got %s\nwant %s", expr, got, want)
		}
	}
}

func TestSpellings(t *testing.T) {
	for spelling, f := range functions {
		for _, written := range []string{spelling, strings.ToLower(spelling)} {
			if found, ok := Lookup(written); !ok || found != f {
				t.Errorf("%s is not found", written)
			}
		}
		if f.Eval == nil && !f.RankOnly {
			t.Errorf("%s can be called and does nothing", spelling)
		}
	}
	for written, name := range map[string]string{
		"ArrayContains": "ARRAY_CONTAINS", "ContainsAnyCi": "CONTAINS_ANY_CI", "String_Equals": "STRINGEQUALS",
		"is_boolean": "IS_BOOL", "IntMultiply": "INTMUL", "FullText_Contains_All": "FULLTEXTCONTAINSALL",
		"object_to_array": "OBJECTTOARRAY", "String_To_Null": "STRINGTONULL",
	} {
		if f, ok := Lookup(written); !ok || f.Name != name {
			t.Errorf("%s is not %s", written, name)
		}
	}
	for _, name := range []string{"", "NOSUCH", "udf", "ABS ", "ABS("} {
		if _, ok := Lookup(name); ok {
			t.Errorf("%q is found", name)
		}
	}
}

func TestArity(t *testing.T) {
	for _, c := range []struct {
		name string
		n    int
		want string
	}{
		{"ABS", 1, ""},
		{"ABS", 0, "The ABS function requires 1 argument(s)."},
		{"ABS", 2, "The ABS function requires 1 argument(s)."},
		{"ROUND", 1, ""},
		{"ARRAY_SLICE", 3, ""},
		{"ARRAY_SLICE", 4, "The ARRAY_SLICE function requires 2 to 3 argument(s)."},
		{"CONCAT", 1, "The CONCAT function requires at least 2 argument(s)."},
		{"CONCAT", 99, ""},
		{"PI", 1, "The PI function requires 0 argument(s)."},
	} {
		f, _ := Lookup(c.name)
		if got := f.Arity(c.n); got != c.want {
			t.Errorf("%s with %d: got %q, want %q", c.name, c.n, got, c.want)
		}
	}
}

// goodCalls has a call with valid arguments of every function that can be
// called. An argument after a * may be of any type.
const goodCalls = `
ARRAY_AVG([1])
ARRAY_CONCAT([1], [2], [3])
ARRAY_CONTAINS([1], *1)
ARRAY_CONTAINS_ALL([1], *1)
ARRAY_CONTAINS_ANY([1], *1)
ARRAY_LENGTH([1])
ARRAY_MAX([1])
ARRAY_MEDIAN([1])
ARRAY_MIN([1])
ARRAY_SLICE([1], 0, 1)
ARRAY_SUM([1])
CHOOSE(1, *2)
IIF(*true, *1, *2)
OBJECTTOARRAY({"a": 1}, 'x', 'y')
SETDIFFERENCE([1], [2])
SETEQUAL([1], [2])
SETINTERSECT([1], [2])
SETUNION([1], [2])
DOCUMENTID({"_rid": "AAAAAAAAAIABAAAAAAAAAA=="})
HASH(*1, 7)
IS_ARRAY(*1)
IS_BOOL(*1)
IS_DATETIME(*1)
IS_DEFINED(*1)
IS_FINITE_NUMBER(*1)
IS_INTEGER(*1)
IS_NULL(*1)
IS_NUMBER(*1)
IS_OBJECT(*1)
IS_PRIMITIVE(*1)
IS_STRING(*1)
ABS(1)
ACOS(1)
ASIN(1)
ATAN(1)
ATN2(1, 1)
CEILING(1)
COS(1)
COT(1)
DEGREES(1)
EXP(1)
FLOOR(1)
LOG(2, 2)
LOG10(1)
NUMBERBIN(1, 1)
PI()
POWER(1, 1)
RADIANS(1)
RAND()
ROUND(1)
SIGN(1)
SIN(1)
SQRT(1)
SQUARE(1)
TAN(1)
TRUNC(1)
INTADD(1, 1)
INTBITAND(1, 1)
INTBITLEFTSHIFT(1, 1)
INTBITNOT(1)
INTBITOR(1, 1)
INTBITRIGHTSHIFT(1, 1)
INTBITXOR(1, 1)
INTDIV(1, 1)
INTMOD(1, 1)
INTMUL(1, 1)
INTSUB(1, 1)
CONCAT('a', 'b', 'c')
CONTAINS('a', 'b', true)
CONTAINS_ALL_CI('a', 'a')
CONTAINS_ALL_CS('a', 'a')
CONTAINS_ANY_CI('a', 'b')
CONTAINS_ANY_CS('a', 'b')
ENDSWITH('a', 'b', true)
INDEX_OF('a', 'b', 0)
LASTINDEXOF('a', 'b', 0)
LASTSUBSTRINGAFTER('a', 'b')
LASTSUBSTRINGBEFORE('a', 'b')
LEFT('a', 1)
LENGTH('a')
LOWER('a')
LTRIM('a', 'b')
REPLACE('a', 'b', 'c')
REPLICATE('a', 1)
REVERSE('a')
RIGHT('a', 1)
RTRIM('a', 'b')
STARTSWITH('a', 'b', true)
STRINGEQUALS('a', 'b', true)
STRINGJOIN(['a'], 'b')
STRINGSPLIT('a', 'b')
SUBSTRING('a', 0, 1)
SUBSTRINGAFTER('a', 'b')
SUBSTRINGBEFORE('a', 'b')
TRIM('a', 'b')
UPPER('a')
STRINGTOARRAY('[]')
STRINGTOBOOLEAN('true')
STRINGTONULL('null')
STRINGTONUMBER('1')
STRINGTOOBJECT('{}')
REGEXEXTRACT('a', 'a', 'i', 0)
REGEXEXTRACTALL('a', 'a', 'i', [0])
REGEXMATCH('a', 'a', 'i')
AGO('day', 1)
DATETIMEADD('day', 1, '2020-01-01')
DATETIMEBIN('2020-01-01', 'day', 1, '1970-01-01')
DATETIMEDIFF('day', '2020-01-01', '2020-01-02')
DATETIMEFORMAT('2020-01-01', 'yyyy')
DATETIMEFROMPARTS(2020, 1, 1, 0, 0, 0, 0)
DATETIMEPART('day', '2020-01-01')
DATETIMETOTICKS('2020-01-01')
DATETIMETOTIMESTAMP('2020-01-01')
DAY('2020-01-01')
GETCURRENTDATETIME()
GETCURRENTDATETIMESTATIC()
GETCURRENTTICKS()
GETCURRENTTICKSSTATIC()
GETCURRENTTIMESTAMP()
GETCURRENTTIMESTAMPSTATIC()
MONTH('2020-01-01')
NOW('day', 1)
TICKSTODATETIME(0)
TIMESTAMPTODATETIME(0)
YEAR('2020-01-01')
ST_AREA({"type": "Point", "coordinates": [1, 2]})
ST_DISTANCE({"type": "Point", "coordinates": [1, 2]}, {"type": "Point", "coordinates": [1, 2]})
ST_INTERSECTS({"type": "Point", "coordinates": [1, 2]}, {"type": "Point", "coordinates": [1, 2]})
ST_ISVALID(*{"type": "Point", "coordinates": [1, 2]})
ST_ISVALIDDETAILED(*{"type": "Point", "coordinates": [1, 2]})
ST_WITHIN({"type": "Point", "coordinates": [1, 2]}, {"type": "Point", "coordinates": [1, 2]})
VECTORDISTANCE([1], [1], false)
_VECTORSCORE([1], [1], false)
FULLTEXTCONTAINS('a', 'bird')
FULLTEXTCONTAINSALL('bird', 'bird')
FULLTEXTCONTAINSANY('a', 'bird')
_FULLTEXTSCORE('bird', ['bird'], 1, 1, [1])
_FULLTEXTWORDCOUNT('bird')
TOSTRING(*1)
`

// TestWrongTypes puts a value of every other type, and undefined, in place of
// every argument.
func TestWrongTypes(t *testing.T) {
	probes := []datum.Value{datum.Undefined(), datum.Null(), datum.Bool(true), datum.Float(1), datum.Str("x"), datum.Raw([]byte("[]")), datum.Raw([]byte("{}"))}
	tested := map[string]bool{}
	for line := range strings.Lines(goodCalls) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		q, err := syntax.Parse("SELECT VALUE " + strings.ReplaceAll(line, "*", ""))
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		call := q.Select.Value.(*syntax.Call)
		f, ok := Lookup(call.Name)
		if !ok {
			t.Fatalf("%s: no such function", line)
		}
		tested[f.Name] = true
		args := make([]datum.Value, len(call.Args))
		for i, arg := range call.Args {
			args[i] = datum.Raw([]byte(calc(t, syntax.Print(arg))))
		}
		if v := invoke(f, testContext(), args); v.IsUndefined() {
			t.Errorf("%s is undefined", line)
		}
		free := freeArguments(line)
		for i := range args {
			if free[i] {
				continue
			}
			for _, probe := range probes {
				if probe.Kind() == args[i].Kind() {
					continue
				}
				wrong := slices.Clone(args)
				wrong[i] = probe
				if v := invoke(f, testContext(), wrong); !v.IsUndefined() {
					t.Errorf("%s with %s as argument %d: got %s", line, probe, i+1, v)
				}
			}
		}
	}
	for _, f := range functions {
		if f.Eval != nil && !tested[f.Name] {
			t.Errorf("%s is not among the calls", f.Name)
		}
	}
}

// freeArguments returns which arguments of a line have a *. Only the last ones
// follow commas that are not their own.
func freeArguments(line string) map[int]bool {
	free := map[int]bool{}
	depth, i := 0, 0
	for _, r := range line[strings.IndexByte(line, '(')+1:] {
		switch r {
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		case ',':
			if depth == 0 {
				i++
			}
		case '*':
			free[i] = true
		}
	}
	return free
}

// anyValue draws a value, often one that functions take for good.
func anyValue() *rapid.Generator[datum.Value] {
	texts := []string{
		"", "a", "É", "😀x", "\u0000", "2020-02-29", "2020-01-02T03:04:05.6789Z", "day", "ns", "(a)(b)?", "[a-", "%_[", "i", "true",
		`{"a":[1]}`, "-1e5", "the bird", "yyyy-MM-dd", strings.Repeat("ab ", 300),
	}
	jsons := []string{
		"[]", "{}", "[1,2,3]", `["a","b"]`, `[null,true,{"a":[]}]`, `{"a":1,"b":{"c":[2]}}`, `[[1]]`, "1", "-0", "1e308", "9223372036854775807",
		"-9223372036854775808", "0.5", "-3", "10000000000000000000000", `"q\"uote"`,
		`{"type":"Point","coordinates":[1,2]}`, `{"type":"LineString","coordinates":[[0,0],[180,0],[-90,90]]}`,
		`{"type":"Polygon","coordinates":[[[0,0],[1,0],[1,1],[0,0]]]}`,
		`{"type":"Polygon","coordinates":[[[0,-90],[0,90],[1,1],[0,-90]],[[0,0],[0,0],[1,1],[0,0]]]}`,
		`{"type":"MultiPolygon","coordinates":[[[[0,0],[0,1],[1,1],[0,0]]]]}`, `{"_rid":"AAAAAAAAAIABAAAAAAAAAA=="}`,
		`{"term":"bird","distance":2}`, `{"distanceFunction":"euclidean","dataType":"Float16"}`,
	}
	return rapid.OneOf(
		rapid.Just(datum.Undefined()), rapid.Just(datum.Null()), rapid.Map(rapid.Bool(), datum.Bool),
		rapid.Map(rapid.Float64(), datum.Float), rapid.Map(rapid.Int64(), datum.Int), rapid.Map(rapid.Int64Range(-3, 40), datum.Int),
		rapid.Map(rapid.String(), datum.Str), rapid.Map(rapid.SampledFrom(texts), datum.Str),
		rapid.Map(rapid.SampledFrom(jsons), func(s string) datum.Value { return datum.Raw([]byte(s)) }),
	)
}

// TestFunctionsHoldForAnything calls every function with anything: none may
// panic, and what they return is a value.
func TestFunctionsHoldForAnything(t *testing.T) {
	var names []string
	for name, f := range functions {
		if f.Eval != nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	rapid.Check(t, func(t *rapid.T) {
		f := functions[rapid.SampledFrom(names).Draw(t, "function")]
		most := f.max
		if most == anyNumber {
			most = f.min + 3
		}
		args := rapid.SliceOfN(anyValue(), f.min, most).Draw(t, "args")
		if f.Check != nil {
			_ = f.Check(args)
		}
		v := invoke(f, testContext(), args)
		if v.IsUndefined() || !v.Finite() {
			return
		}
		text := fmt.Sprintf(`{"v":%s}`, v.AppendJSON(nil))
		object, err := value.ParseObject([]byte(text))
		if err != nil {
			t.Fatalf("%s%v gives %s: %v", f.Name, args, v, err)
		}
		if string(object.Bytes()) != text {
			t.Fatalf("%s%v gives %s, which is not compact", f.Name, args, v)
		}
		if again := invoke(f, testContext(), args); !datum.Equal(v, again) {
			t.Fatalf("%s%v gives %s and then %s", f.Name, args, v, again)
		}
	})
}

func TestTooLargeStopsTheQuery(t *testing.T) {
	big := datum.Str(strings.Repeat("x", MaxResultBytes/2))
	array := func(v datum.Value) datum.Value {
		var b datum.ArrayBuilder
		b.Add(v)
		return b.Value()
	}
	for name, args := range map[string][]datum.Value{
		"CONCAT":       {big, big, datum.Str("x")},
		"REPLACE":      {datum.Str(strings.Repeat("x", 10)), datum.Str("x"), big},
		"STRINGJOIN":   {datum.Raw([]byte(`["a","b","c","d"]`)), big},
		"ARRAY_CONCAT": {array(big), array(big)},
		"SETUNION":     {array(big), array(big)},
	} {
		cx := testContext()
		f, _ := Lookup(name)
		if v := invoke(f, cx, args); !v.IsUndefined() || !errors.Is(cx.Err(), ErrResultTooLarge) || !errors.Is(cx.Tick(), ErrResultTooLarge) {
			t.Errorf("%s: got %d bytes and %v", name, v.Size(), cx.Err())
		}
	}
	cx := testContext()
	f, _ := Lookup("REGEXEXTRACTALL")
	invoke(f, cx, []datum.Value{big, datum.Str("x")})
	if !errors.Is(cx.Err(), ErrResultTooLarge) {
		t.Errorf("REGEXEXTRACTALL: got %v", cx.Err())
	}
}

func TestTick(t *testing.T) {
	stop := errors.New("stop")
	asked := 0
	cx := &Context{Interrupted: func() error {
		if asked++; asked == 3 {
			return stop
		}
		return nil
	}}
	ticks := 0
	for cx.Tick() == nil {
		ticks++
	}
	if ticks != 3*ticksPerCheck-1 || asked != 3 || !errors.Is(cx.Tick(), stop) {
		t.Errorf("stopped after %d ticks and %d questions", ticks, asked)
	}
}
