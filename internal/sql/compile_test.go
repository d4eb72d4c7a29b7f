// SPDX-License-Identifier: MIT

package sql

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/sql/syntax"
)

func TestRefusedQueries(t *testing.T) {
	f := func(query, code, message string) {
		t.Helper()
		refuse(t, query, code, message)
	}
	f(`SELECT VALUE c.a`, "SC2001", "Identifier 'c' could not be resolved.")
	f(`SELECT VALUE d.a FROM c`, "SC2001", "Identifier 'd' could not be resolved.")
	f(`SELECT VALUE c.a FROM c AS d`, "SC2001", "Identifier 'c'")
	f(`SELECT c.a AS x FROM c WHERE x = 1`, "SC2001", "Identifier 'x'")
	f(`SELECT * FROM c JOIN t IN d.tags`, "", "'SELECT *' is only valid with a single input set.")
	f(`SELECT VALUE t FROM c JOIN t IN d.tags`, "SC2001", "Identifier 'd'")
	f(`SELECT VALUE ARRAY(SELECT VALUE x FROM d) FROM c`, "SC2001", "Identifier 'd'")
	f(`SELECT VALUE ARRAY(SELECT VALUE c FROM c)`, "SC2001", "Identifier 'c'")
	f(`SELECT VALUE t FROM t IN c.tags WHERE c.a = 1`, "SC2001", "Identifier 'c'")
	f(`SELECT *`, "", "'SELECT *' is not valid if FROM clause is omitted.")
	f(`SELECT * FROM c GROUP BY c.a`, "SC2041", "'SELECT *' is not allowed with GROUP BY.")
	f(`SELECT VALUE NOPE(1)`, "SC2005", "'NOPE' is not a recognized built-in function name.")
	f(`SELECT VALUE ABS()`, "SC2050", "requires 1 argument(s).")
	f(`SELECT VALUE COUNT()`, "SC2050", "requires 1 argument(s).")
	f(`SELECT VALUE COUNT(1, 2)`, "SC2050", "requires 1 argument(s).")
	f(`SELECT VALUE CONCAT("a")`, "SC2050", "at least 2 argument(s).")
	f(`SELECT VALUE MAX(MIN(c.a)) FROM c`, "SC2101", "containing an aggregate or a subquery")
	f(`SELECT VALUE MAX((SELECT VALUE 1)) FROM c`, "SC2101", "containing an aggregate or a subquery")
	f(`SELECT c.a, COUNT(1) FROM c`, "SC2102", "Property reference 'c.a' is invalid in the select list")
	f(`SELECT c.a FROM c GROUP BY c.b`, "SC2102", "'c.a'")
	f(`SELECT VALUE c FROM c GROUP BY c.b`, "SC2102", "'c'")
	f(`SELECT c.b, c.b.d, c.e[0] FROM c GROUP BY c.b`, "SC2102", "'c.e[0]'")
	f(`SELECT c.b, (SELECT VALUE c.a) FROM c GROUP BY c.b`, "SC2102", "'c.a'")
	f(`SELECT UPPER(c.a) FROM c GROUP BY LOWER(c.a)`, "SC2102", "'c.a'")
	f(`SELECT VALUE c.a FROM c WHERE COUNT(1) > 1`, "", "only allowed in the select list")
	f(`SELECT c.a FROM c GROUP BY COUNT(1)`, "", "GROUP BY")
	f(`SELECT VALUE 1 FROM c GROUP BY (SELECT VALUE 1)`, "", "GROUP BY")
	f(`SELECT c.a FROM c GROUP BY c.a ORDER BY c.b`, "SC2102", "'c.b'")
	f(`SELECT c.a, COUNT(1) AS n FROM c GROUP BY c.a ORDER BY n`, "SC2001", "Identifier 'n'")
	f(`SELECT c.a FROM c GROUP BY c.a ORDER BY COUNT(1)`, "2206", "document path")
	f(`SELECT c.a FROM c GROUP BY c.a ORDER BY UPPER(c.a)`, "2206", "document path")
	f(`SELECT c.a FROM c GROUP BY c.a ORDER BY RANK FullTextScore(c.a, "x")`, "", "'ORDER BY RANK' is not supported with 'GROUP BY'.")
	f(`SELECT c.a, d.a FROM c JOIN d IN c.list`, "", "'a' is specified more than once")
	f(`SELECT VALUE {"a": 1, "b": 2, "a": 3}`, "", "'a' is specified more than once")
	f(`SELECT VALUE (SELECT TOP 1 VALUE 1)`, "SC2203", "'TOP' is not supported in subqueries.")
	f(`SELECT VALUE x FROM (SELECT * FROM c ORDER BY c.a) x`, "SC2202", "'ORDER BY' is not supported in subqueries.")
	f(`SELECT VALUE c FROM c WHERE EXISTS(SELECT VALUE t FROM t IN c.tags OFFSET 0 LIMIT 1)`, "SC2204", "'OFFSET LIMIT' clause")
	f(`SELECT VALUE ARRAY(SELECT VALUE c ORDER BY RANK FullTextScore(c.a, "x")) FROM c`, "SC2228", "ORDER BY RANK")
	f(`SELECT VALUE x FROM (SELECT TOP 1 VALUE y FROM (SELECT * FROM c OFFSET 0 LIMIT 1) y) x`, "SC2204", "'OFFSET LIMIT'")
	f(`SELECT * FROM c ORDER BY LOWER(c.a)`, "2206", "could not be mapped to a document path")
	f(`SELECT * FROM c ORDER BY c.a + 1`, "2206", "document path")
	f(`SELECT VALUE x FROM (SELECT VALUE c.a + 1 FROM c) x ORDER BY x`, "2206", "document path")
	f(`SELECT VALUE x FROM (SELECT VALUE {"a": c.a, "n": c.a + 1} FROM c) x ORDER BY x.n`, "2206", "document path")
	f(`SELECT VALUE x FROM (SELECT VALUE {"a": c.a} FROM c) x ORDER BY x.b`, "2206", "document path")
	f(`SELECT VALUE x FROM (SELECT VALUE {"a": [c.a]} FROM c) x ORDER BY x.a[0]`, "2206", "document path")
	f(`SELECT VALUE x FROM (SELECT VALUE t FROM t IN c.tags) x ORDER BY x.b`, "2206", "document path")
	f(`SELECT VALUE x FROM (SELECT VALUE {"t": t} FROM c JOIN t IN c.tags) x ORDER BY x.t`, "2206", "document path")
	f(`SELECT VALUE x FROM (SELECT DISTINCT VALUE c FROM c) x ORDER BY x.b`, "2206", "document path")
	f(`SELECT VALUE x FROM (SELECT * FROM c) x ORDER BY x`, "2206", "document path")
	f(`SELECT VALUE x FROM x IN (SELECT VALUE c.tags FROM c) ORDER BY x.b`, "2206", "document path")
	f(`SELECT VALUE t FROM c JOIN t IN c.tags ORDER BY t.b`, "", "Order-by over correlated collections is not supported.")
	f(`SELECT VALUE c FROM c WHERE FullTextScore(c.a, "x") > 1`, "SC2240", "FullTextScore function is only allowed in the ORDER BY RANK clause.")
	f(`SELECT VALUE RRF(1, 2) FROM c`, "SC2005", "'RRF' is not a recognized")
	f(`SELECT VALUE c FROM c JOIN t IN c.a ORDER BY RANK FullTextScore(c.a, "x")`, "SC2224", "JOIN")
	f(`SELECT VALUE t FROM t IN c.a ORDER BY RANK FullTextScore(t.a, "x")`, "SC2223", "IN")
	f(`SELECT VALUE t FROM (SELECT * FROM c) t ORDER BY RANK FullTextScore(t.a, "x")`, "SC2225", "Subqueries in the FROM clause")
	f(`SELECT * FROM c ORDER BY RANK RRF()`, "SC2050", "at least 1 argument(s).")
	f(`SELECT * FROM c ORDER BY RANK FullTextScore()`, "SC2050", "at least 2 argument(s).")
	f(`SELECT * FROM c ORDER BY RANK RRF(VectorDistance(), [1])`, "SC2050", "2 to 4 argument(s).")
	f(`SELECT * FROM c ORDER BY RANK ABS(c.a)`, "SC2221", "ORDER BY RANK")
	f(`SELECT * FROM c ORDER BY RANK RRF(FullTextScore(c.a, "x"))`, "SC2221", "must be followed by a VectorDistance")
	f(`SELECT * FROM c ORDER BY RANK RRF(FullTextScore(c.a, "x"), FullTextScore(c.b, "x"), [1])`, "SC2229", "one for each of the component scores")
	f(`SELECT * FROM c ORDER BY RANK RRF(FullTextScore(c.a, "x"), FullTextScore(c.b, "x"), [1, c.a])`, "SC2229", "a literal array of numbers")
	f(`SELECT * FROM c ORDER BY RANK RRF(FullTextScore(c.a, "x"), ABS(c.b))`, "SC2221", "FullTextScore function call")
	f(`SELECT VALUE VectorDistance(c.a, [1], true, {"searchListSizeMultiplier": 101}) FROM c`, "SC2213", "between 1 and 100")
	f(`SELECT VALUE "a" LIKE "b" ESCAPE "xy"`, "", "ESCAPE")
	f(`SELECT VALUE LOG(0)`, "4001", "not finite")
	f(`SELECT VALUE [1, {"a": 1 / 0}]`, "4001", "not finite")
	f(`SELECT 1 / 0 AS a`, "4001", "not finite")
}

func TestErrorsSayWhere(t *testing.T) {
	for query, want := range map[string]string{
		`SELECT c.a FROM c WHERE dd.b = 1`:                                                         `dd`,
		`SELECT VALUE 1 + NOPE(2)`:                                                                 `NOPE`,
		`SELECT VALUE ABS(1, 2)`:                                                                   `ABS(1, 2)`,
		`SELECT COUNT(1), c.some.path FROM c`:                                                      `c.some.path`,
		`SELECT * FROM c ORDER BY UPPER(c.name)`:                                                   `UPPER(c.name)`,
		`SELECT  * FROM c GROUP BY c.a`:                                                            `*`,
		`SELECT VALUE (SELECT TOP 2 VALUE 1)`:                                                      `TOP 2`,
		`SELECT VALUE ARRAY(SELECT VALUE t FROM t IN c.l ORDER BY t.a DESC) FROM c`:                `ORDER BY t.a DESC`,
		`SELECT VALUE x FROM (SELECT * FROM c OFFSET 1 LIMIT 2) x`:                                 `OFFSET 1 LIMIT 2`,
		`SELECT * FROM c ORDER BY RANK ABS(c.a) OFFSET 0 LIMIT 1`:                                  `ORDER BY RANK ABS(c.a)`,
		`SELECT VALUE 1 FROM c JOIN t IN c.l ORDER BY RANK FullTextScore(c.a, "x")`:                `c JOIN t IN c.l`,
		`SELECT VALUE t FROM ( SELECT * FROM c ) t ORDER BY RANK FullTextScore(t.a, "x")`:          `( SELECT * FROM c )`,
		`SELECT VALUE VectorDistance(c.a, [1], true, {"searchListSizeMultiplier": 0}) FROM c`:      `{"searchListSizeMultiplier": 0}`,
		`SELECT * FROM c ORDER BY RANK RRF(FullTextScore(c.a, "x"), FullTextScore(c.b, "x"), [1])`: `ORDER BY RANK RRF(FullTextScore(c.a, "x"), FullTextScore(c.b, "x"), [1])`,
	} {
		q, err := syntax.Parse(query)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Compile(q, CompileOptions{})
		refused, ok := err.(*syntax.Error)
		if !ok || query[refused.Span.Start:refused.Span.End] != want {
			t.Errorf("%s: %v at %+v, want at %q", query, err, refused.Span, want)
		}
	}
}

// TestAllErrorsAreTold checks which errors are reported together, and in which order.
func TestAllErrorsAreTold(t *testing.T) {
	for query, want := range map[string]string{
		`SELECT VALUE x FROM (SELECT TOP 1 * FROM (SELECT * FROM c OFFSET 0 LIMIT 1) y ORDER BY y.a) x`: "SC2204 SC2202 SC2203",
		`SELECT (SELECT TOP 1 VALUE 1), EXISTS(SELECT TOP 1 VALUE 1)`:                                   "SC2203 SC2203",
		`SELECT VALUE 1 FROM c JOIN t IN c.l ORDER BY RANK FullTextScore(c.a, "x")`:                     "SC2224 SC2223",
		`SELECT VALUE x FROM (SELECT TOP 1 * FROM c) x ORDER BY RANK FullTextScore(x.a, "x")`:           "SC2225 SC2203",
		`SELECT c.a, c.b, c.d, COUNT(1) FROM c GROUP BY c.b`:                                            "SC2102 SC2102",
	} {
		q, err := syntax.Parse(query)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Compile(q, CompileOptions{})
		refused, ok := err.(*syntax.Error)
		if !ok {
			t.Errorf("%s: %v", query, err)
			continue
		}
		got := refused.Code
		for _, other := range refused.More {
			got += " " + other.Code
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", query, got, want)
		}
	}
}

func TestConditionOfAQuery(t *testing.T) {
	f := func(query, want string) {
		t.Helper()
		if got := describeCondition(mustCompile(t, query, nil).Condition()); got != want {
			t.Errorf("%s:\n got %s\nwant %s", query, got, want)
		}
	}
	// ! marks what is exact.
	f(`SELECT * FROM c`, `always!`)
	f(`SELECT * FROM c WHERE c.a = 1`, `/a=[1]!`)
	f(`SELECT * FROM c WHERE 1 = c.a AND c.b.d > "x"`, `(/a=[1]! and /b/d>["x"]!)!`)
	f(`SELECT * FROM c WHERE 1 < c.a`, `/a>[1]!`)
	f(`SELECT * FROM c WHERE c.a = 1 OR c.a = 2`, `/a=[1 2]!`)
	f(`SELECT * FROM c WHERE c.a = 1 OR c.b = 2`, `(/a=[1]! or /b=[2]!)!`)
	f(`SELECT * FROM c WHERE c.a = 1 OR ABS(c.b) = 2`, `always`)
	f(`SELECT * FROM c WHERE c.a = 1 AND ABS(c.b) = 2`, `/a=[1]`)
	f(`SELECT * FROM c WHERE NOT (c.a = 1 OR c.b >= 2)`, `(/a!=[1]! and /b<[2]!)!`)
	f(`SELECT * FROM c WHERE c.a IN (1, "x")`, `/a=[1 "x"]!`)
	f(`SELECT * FROM c WHERE (c.a BETWEEN 1 AND 2) AND true`, `(/a>=[1]! and /a<=[2]!)!`)
	f(`SELECT * FROM c WHERE c.a AND NOT c.b`, `(/a=[true]! and /b=[false]!)!`)
	f(`SELECT * FROM c WHERE c.a = 2 + 3`, `/a=[5]!`)
	f(`SELECT * FROM c WHERE c.a = 1 AND false`, `never!`)
	f(`SELECT * FROM c WHERE c.a = undefined`, `never!`)
	f(`SELECT * FROM c WHERE c.a > [1]`, `never!`)
	f(`SELECT * FROM c WHERE c.a = c.b`, `always`)
	f(`SELECT * FROM c WHERE IS_DEFINED(c.a) AND NOT IS_DEFINED(c.b)`, `(/a defined! and /b undefined!)!`)
	f(`SELECT * FROM c WHERE STARTSWITH(c.a, "x")`, `/a prefix["x"]!`)
	f(`SELECT * FROM c WHERE c.a LIKE "x%"`, `/a prefix["x"]!`)
	f(`SELECT * FROM c WHERE c.a LIKE "x%y"`, `/a prefix["x"]`)
	f(`SELECT * FROM c WHERE c.a LIKE "x!%y" ESCAPE "!"`, `/a=["x%y"]!`)
	f(`SELECT * FROM c WHERE c.a LIKE "x!_!!%" ESCAPE "!"`, `/a prefix["x_!"]!`)
	f(`SELECT * FROM c WHERE c.a LIKE "x!" ESCAPE "!"`, `always`)
	f(`SELECT * FROM c WHERE ARRAY_CONTAINS([1, "x"], c.a)`, `/a=[1 "x"]!`)
	f(`SELECT * FROM c WHERE NOT ARRAY_CONTAINS([1, "x"], c.a)`, `/a!=[1 "x"]!`)
	f(`SELECT * FROM c WHERE ARRAY_CONTAINS([], c.a)`, `never!`)
	f(`SELECT * FROM c WHERE ARRAY_CONTAINS([1], c.a, true)`, `always`)
	f(`SELECT * FROM c WHERE ARRAY_CONTAINS("x", c.a)`, `always`)
	f(`SELECT VALUE a FROM c.list a WHERE a.x = 1`, `/list/x=[1]`)
	f(`SELECT VALUE t FROM c JOIN t IN c.list WHERE t.x = 1 AND c.b = 2`, `(/list/[]/x=[1] and /b=[2]!)`)
	f(`SELECT * FROM c WHERE EXISTS(SELECT VALUE t FROM t IN c.list WHERE t = 1)`, `/list/[]=[1]`)
	f(`SELECT * FROM c WHERE EXISTS(SELECT VALUE COUNT(1) FROM t IN c.list WHERE t = 1)`, `always`)
	f(`SELECT VALUE x.a FROM (SELECT VALUE c.b FROM c WHERE c.d = 1) x WHERE x.e = 2`, `(/d=[1] and /b/e=[2]!)`)
	f(`SELECT VALUE COUNT(1) FROM c WHERE c.a = 1`, `/a=[1]!`)
	f(`SELECT VALUE x FROM (SELECT DISTINCT VALUE c.a FROM c WHERE c.a = 1) x WHERE x = 1`, `always`)
}

// describeCondition prints a condition.
func describeCondition(c *Condition) string {
	exact := ""
	if c.Exact {
		exact = "!"
	}
	join := func(word string) string {
		var parts []string
		for _, part := range c.Of {
			parts = append(parts, describeCondition(part))
		}
		return "(" + strings.Join(parts, word) + ")" + exact
	}
	switch c.Op {
	case CondNever:
		return "never" + exact
	case CondAlways:
		return "always" + exact
	case CondAnd:
		return join(" and ")
	case CondOr:
		return join(" or ")
	}
	op := map[CondOp]string{CondEq: "=", CondNe: "!=", CondLt: "<", CondLe: "<=", CondGt: ">", CondGe: ">=",
		CondDefined: " defined", CondUndefined: " undefined", CondPrefix: " prefix"}[c.Op]
	if c.Values != nil {
		op += fmt.Sprint(c.Values)
	}
	return pathText(c.Path) + op + exact
}

func pathText(p Path) string {
	text := ""
	for _, step := range p {
		switch {
		case !step.Element:
			text += "/" + step.Name
		case step.Index == AnyElement:
			text += "/[]"
		default:
			text += fmt.Sprintf("/[%d]", step.Index)
		}
	}
	return text
}

func TestRegexInQuery(t *testing.T) {
	for _, expr := range []string{`REGEXMATCH(c.a, "(?=x)")`, `REGEXEXTRACT(c.a, "(a)\\1")`, `REGEXEXTRACTALL(c.a, "[")`} {
		q, err := syntax.Parse("SELECT VALUE " + expr + " FROM c")
		if err != nil {
			t.Fatal(err)
		}
		var refused *syntax.Error
		if _, err = Compile(q, CompileOptions{}); !errors.As(err, &refused) {
			t.Errorf("%s: got %v", expr, err)
		}
	}
}
