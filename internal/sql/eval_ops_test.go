// SPDX-License-Identifier: MIT

package sql

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mayflydb/mayfly/internal/sql/datum"
	"github.com/mayflydb/mayfly/internal/sql/function"
	"github.com/mayflydb/mayfly/internal/sql/syntax"
)

func TestOperators(t *testing.T) {
	f := func(expression, want string) {
		t.Helper()
		if got := value1(t, expression); got != want {
			t.Errorf("%s = %s, want %s", expression, got, want)
		}
	}
	// Arithmetic.
	f(`1 + 2`, `3`)
	f(`0.1 + 0.2`, `0.30000000000000004`)
	f(`7 - 10`, `-3`)
	f(`6 * 7`, `42`)
	f(`7 / 2`, `3.5`)
	f(`-7 % 3`, `-1`)
	f(`7 % -3`, `1`)
	f(`5.5 % 2`, `1.5`)
	f(`-(3)`, `-3`)
	f(`+(3)`, `3`)
	f(`1 + "2"`, ``)
	f(`"a" + "b"`, ``)
	f(`1 + null`, ``)
	f(`1 + undefined`, ``)
	f(`-"1"`, ``)
	f(`-true`, ``)
	f(`IS_FINITE_NUMBER(1 / 0)`, `false`)
	f(`1 / 0 > 1`, `true`)
	// Bits.
	f(`5 & 3`, `1`)
	f(`5 | 3`, `7`)
	f(`5 ^ 3`, `6`)
	f(`~5`, `-6`)
	f(`1 << 31`, `-2147483648`)
	f(`1 << 32`, `1`)
	f(`-1 >> 1`, `-1`)
	f(`-1 >>> 0`, `4294967295`)
	f(`4294967297 & 3`, `1`)
	f(`-1.9 | 0`, `-1`)
	f(`NaN | 0`, `0`)
	f(`1e300 | 0`, `0`)
	f(`"1" | 1`, ``)
	// Strings.
	f(`"a" || "b"`, `"ab"`)
	f(`"a" || 1`, ``)
	// Equality.
	f(`1 = 1.0`, `true`)
	f(`1 = "1"`, `false`)
	f(`1 != "1"`, `true`)
	f(`null = null`, `true`)
	f(`null = undefined`, ``)
	f(`undefined = undefined`, ``)
	f(`undefined != 1`, ``)
	f(`[1, {"a": 2, "b": 3}] = [1.0, {"b": 3, "a": 2}]`, `true`)
	f(`[1, 2] != [2, 1]`, `true`)
	f(`NaN = NaN`, `false`)
	f(`NaN != NaN`, `true`)
	f(`"é" = "\u00e9"`, `true`)
	// Order.
	f(`1 < 2`, `true`)
	f(`2 <= 2`, `true`)
	f(`"a" < "b"`, `true`)
	f(`"Z" < "a"`, `true`)
	f(`"a" >= "aa"`, `false`)
	f(`false < true`, `true`)
	f(`null <= null`, `true`)
	f(`null < 1`, ``)
	f(`1 < "2"`, ``)
	f(`[1] < [2]`, ``)
	f(`{} >= {}`, ``)
	f(`1 < undefined`, ``)
	f(`NaN < 1`, `false`)
	f(`NaN >= NaN`, `false`)
	f(`1 < 2 < 3`, ``)
	// Conditions.
	f(`true ? 1 : 2`, `1`)
	f(`1 ? 1 : 2`, `2`)
	f(`undefined ? 1 : 2`, `2`)
	f(`undefined ?? 2`, `2`)
	f(`null ?? 2`, `null`)
	f(`undefined ?? undefined ?? 3`, `3`)
	// Sets and ranges.
	f(`2 IN (1, 2)`, `true`)
	f(`2 IN (1, "2")`, `false`)
	f(`2 NOT IN (1)`, `true`)
	f(`undefined IN (1)`, ``)
	f(`2 IN (2, undefined)`, `true`)
	f(`3 IN (2, undefined)`, ``)
	f(`[1] IN ([1], 2)`, `true`)
	f(`9 IN (1, 2, 3, 4, 5, 6, 7, 8, 9.0, 10)`, `true`)
	f(`11 IN (1, 2, 3, 4, 5, 6, 7, 8, 9.0, 10)`, `false`)
	f(`11 IN (1, 2, 3, 4, 5, 6, 7, 8, undefined, 10)`, ``)
	f(`"x" NOT IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)`, `true`)
	f(`2 BETWEEN 1 AND 2`, `true`)
	f(`3 BETWEEN 1 AND 2`, `false`)
	f(`"b" BETWEEN "a" AND "c"`, `true`)
	f(`2 BETWEEN "a" AND "c"`, ``)
	f(`0 BETWEEN 1 AND "c"`, `false`)
	f(`2 NOT BETWEEN 3 AND 4`, `true`)
	// Patterns.
	f(`"abc" LIKE "a%"`, `true`)
	f(`"abc" LIKE "a_"`, `false`)
	f(`"a%c" LIKE "a!%c" ESCAPE "!"`, `true`)
	f(`1 LIKE "1"`, ``)
	f(`"a" LIKE 1`, ``)
	f(`"abc" NOT LIKE "b%"`, `true`)
}

// The patterns of LIKE, and the lists of IN, may come from the item.
func TestOperatorsWithOperandsOfTheItem(t *testing.T) {
	expect(t, `SELECT VALUE c.a LIKE c.p FROM c`, `true false`, `{"a":"abc","p":"%c"}`, `{"a":"abc","p":"%b"}`, `{"a":"abc"}`, `{"a":1,"p":"%"}`)
	expect(t, `SELECT VALUE c.a IN (c.b, 3) FROM c`, `true true false`, `{"a":1,"b":1}`, `{"a":3}`, `{"a":4}`, `{"a":4,"b":5}`, `{}`)
	expect(t, `SELECT VALUE c.a BETWEEN c.b AND 9 FROM c`, `true false`, `{"a":5,"b":1}`, `{"a":5,"b":6}`, `{"a":5}`)
}

// logic is an expression of three-valued logic and its value by the definition:
// +1 for true, -1 for false, 0 for unknown. AND is the minimum, OR the maximum,
// NOT the negation.
type logic struct {
	text  string
	value int
}

func anyLogic(depth int) *rapid.Generator[logic] {
	leaf := rapid.SampledFrom([]logic{
		{`true`, 1}, {`c.t`, 1}, {`(1 < 2)`, 1}, {`(c.one = 1)`, 1}, {`(c.s IN ("x", "y"))`, 1}, {`(c.one BETWEEN 0 AND 2)`, 1},
		{`false`, -1}, {`c.f`, -1}, {`(c.one != 1)`, -1}, {`(c.s = 1)`, -1}, {`(c.s LIKE "y%")`, -1}, {`IS_DEFINED(c.none)`, -1},
		{`undefined`, 0}, {`c.none`, 0}, {`null`, 0}, {`1`, 0}, {`c.s`, 0}, {`(c.none = 1)`, 0}, {`(c.s < 1)`, 0}, {`(c.none IN (1))`, 0},
	})
	if depth == 0 {
		return leaf
	}
	inner := anyLogic(depth - 1)
	return rapid.OneOf(leaf, rapid.Custom(func(t *rapid.T) logic {
		x, y := inner.Draw(t, "x"), inner.Draw(t, "y")
		switch rapid.IntRange(0, 2).Draw(t, "operator") {
		case 0:
			return logic{"(" + x.text + " AND " + y.text + ")", min(x.value, y.value)}
		case 1:
			return logic{"(" + x.text + " OR " + y.text + ")", max(x.value, y.value)}
		}
		return logic{"(NOT " + x.text + ")", -x.value}
	}))
}

func TestThreeValuedLogic(t *testing.T) {
	const item = `{"t":true,"f":false,"one":1,"s":"x"}`
	rapid.Check(t, func(t *rapid.T) {
		l := anyLogic(4).Draw(t, "expression")
		filtered, err := evalAll(`SELECT VALUE 1 FROM c WHERE `+l.text, item)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := len(filtered) == 1, l.value > 0; got != want {
			t.Fatalf("WHERE %s lets the item pass: %v, want %v", l.text, got, want)
		}
		negated, err := evalAll(`SELECT VALUE 1 FROM c WHERE NOT `+l.text, item)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := len(negated) == 1, l.value < 0; got != want {
			t.Fatalf("WHERE NOT %s lets the item pass: %v, want %v", l.text, got, want)
		}
	})
}

// What a condition says must be true of every item that passes; where it is
// exact, of no other.
func TestConditionsHoldForWhatPasses(t *testing.T) {
	items := []string{
		`{}`, `{"a":1}`, `{"a":2,"b":"xy"}`, `{"a":"x","b":null}`, `{"a":null,"b":"x"}`, `{"a":[1,2],"b":{"c":1}}`, `{"a":true,"b":3}`,
		`{"a":5,"b":"Xy"}`, `{"b":"yx","a":-1}`,
	}
	leaf := rapid.SampledFrom([]string{
		`c.a = 1`, `c.a != 1`, `c.a > 1`, `2 > c.a`, `c.a <= "x"`, `c.b = null`, `c.a IN (1, 5, "x")`, `c.b NOT IN ("x", 3)`, `c.a BETWEEN 1 AND 4`,
		`c.a NOT BETWEEN 1 AND 4`, `IS_DEFINED(c.a)`, `IS_STRING(c.b)`, `STARTSWITH(c.b, "x")`, `STARTSWITH(c.b, "X", true)`, `CONTAINS(c.b, "y")`,
		`ENDSWITH(c.b, "y")`, `STRINGEQUALS(c.b, "XY", true)`, `c.b LIKE "x%"`, `c.b LIKE "%y"`, `c.b LIKE "x"`, `ARRAY_CONTAINS(c.a, 2)`, `c.a = c.b`,
		`true`, `false`, `c.a`, `c.none = undefined`, `c.b.c = 1`, `UPPER(c.b) = "XY"`, `EXISTS(SELECT VALUE x FROM x IN c.a WHERE x = 2)`, `c.a[0] = 1`,
		`EXISTS(SELECT VALUE COUNT(1) FROM x IN c.a WHERE x = 2)`, `EXISTS(SELECT VALUE COUNT(1) FROM x IN c.a WHERE x = 2 GROUP BY x)`,
	})
	rapid.Check(t, func(t *rapid.T) {
		filter := leaf.Draw(t, "first")
		for range rapid.IntRange(0, 3).Draw(t, "more") {
			switch rapid.IntRange(0, 2).Draw(t, "operator") {
			case 0:
				filter = "(" + filter + ") AND (" + leaf.Draw(t, "leaf") + ")"
			case 1:
				filter = "(" + filter + ") OR (" + leaf.Draw(t, "leaf") + ")"
			case 2:
				filter = "NOT (" + filter + ")"
			}
		}
		q, err := syntax.Parse(`SELECT * FROM c WHERE ` + filter)
		if err != nil {
			t.Fatal(err)
		}
		p, err := Compile(q, CompileOptions{})
		if err != nil {
			t.Fatal(err)
		}
		r := p.NewRunner(&function.Context{})
		for _, item := range items {
			passes, err := r.Filter(datum.Raw([]byte(item)))
			if err != nil {
				t.Fatal(err)
			}
			condition := p.Condition()
			holds := conditionHolds(condition, datum.Raw([]byte(item)))
			if passes && !holds || condition.Exact && passes != holds {
				t.Fatalf("WHERE %s: item %s passes: %v; condition %+v holds: %v", filter, item, passes, condition, holds)
			}
		}
	})
}

// conditionHolds evaluates a condition by its definition.
func conditionHolds(c *Condition, item datum.Value) bool {
	switch c.Op {
	case CondNever:
		return false
	case CondAlways:
		return true
	case CondAnd:
		for _, part := range c.Of {
			if !conditionHolds(part, item) {
				return false
			}
		}
		return true
	case CondOr:
		for _, part := range c.Of {
			if conditionHolds(part, item) {
				return true
			}
		}
		return false
	}
	return leafHolds(c, valuesAt(item, c.Path))
}

// valuesAt returns what a path leads to, which is more than one value where it
// goes through any element.
func valuesAt(v datum.Value, path Path) []datum.Value {
	if len(path) == 0 {
		return []datum.Value{v}
	}
	if path[0].Element && path[0].Index == AnyElement {
		var all []datum.Value
		for e := range v.Elements {
			all = append(all, valuesAt(e, path[1:])...)
		}
		return all
	}
	return valuesAt(follow(v, path[:1]), path[1:])
}

func leafHolds(c *Condition, values []datum.Value) bool {
	for _, v := range values {
		if valueHolds(c, v) {
			return true
		}
	}
	return false
}

func valueHolds(c *Condition, v datum.Value) bool {
	equalsOne := func(v datum.Value) bool {
		for _, w := range c.Values {
			if datum.Equal(v, w) {
				return true
			}
		}
		return false
	}
	text, isText := v.AsString()
	fold := func(test func(s, t string) bool) bool {
		want, _ := c.Values[0].AsString()
		return isText && test(strings.ToLower(text), strings.ToLower(want))
	}
	plain := func(test func(s, t string) bool) bool {
		want, _ := c.Values[0].AsString()
		return isText && test(text, want)
	}
	switch c.Op {
	case CondEq:
		return equalsOne(v)
	case CondNe:
		return !v.IsUndefined() && !equalsOne(v)
	case CondLt, CondLe, CondGt, CondGe:
		op := map[CondOp]syntax.Op{CondLt: syntax.OpLt, CondLe: syntax.OpLe, CondGt: syntax.OpGt, CondGe: syntax.OpGe}[c.Op]
		return v.Kind() == c.Values[0].Kind() && holds(op, datum.Compare(v, c.Values[0]))
	case CondDefined:
		return !v.IsUndefined()
	case CondUndefined:
		return v.IsUndefined()
	case CondKind:
		return v.Kind() == c.Kind
	case CondPrefix:
		return plain(strings.HasPrefix)
	case CondSuffix:
		return plain(strings.HasSuffix)
	case CondContains:
		return plain(strings.Contains)
	case CondPrefixFold:
		return fold(strings.HasPrefix)
	case CondSuffixFold:
		return fold(strings.HasSuffix)
	case CondContainsFold:
		return fold(strings.Contains)
	case CondEqualFold:
		return fold(func(s, t string) bool { return s == t })
	case CondArrayContains:
		for e := range v.Elements {
			if equalsOne(e) {
				return true
			}
		}
		return false
	}
	panic("no leaf")
}
