// SPDX-License-Identifier: MIT

package syntax

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

// TestParseExpressions reads expressions and prints them with all parentheses,
// which shows what binds tighter than what.
func TestParseExpressions(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		// Literals.
		{`null`, `null`}, {`TRUE`, `true`}, {`False`, `false`}, {`undefined`, `undefined`},
		{`0`, `0`}, {`42`, `42`}, {`1.50`, `1.5`}, {`.5`, `0.5`}, {`1E2`, `100`}, {`1.5e-3`, `0.0015`},
		{`0x1F`, `31`}, {`0XffffFFFFffffFFFF`, `1.8446744073709552e+19`},
		{`9223372036854775807`, `9223372036854775807`}, {`9223372036854775808`, `9.2233720368547758e+18`},
		{`-9223372036854775808`, `-9223372036854775808`},
		{`1e999`, `Infinity`}, {`-1e999`, `(- Infinity)`}, {`NaN`, `NaN`}, {`Infinity`, `Infinity`},
		{`'it''s'`, ``},
		{`'a"b'`, `"a\"b"`}, {`"it's"`, `"it's"`}, {`'\'\"\\\/\b\f\n\r\t'`, `"'\"\\/\b\f\n\r\t"`},
		{`'\u00e9\ud83d\ude00'`, `"é😀"`}, {`'\ud83d'`, `"�"`}, {`'a\d'`, ``}, {`'\u12g4'`, ``},
		{`[]`, `[]`}, {`[1, [2], 'x']`, `[1, [2], "x"]`}, {`{}`, `{}`},
		{`{a: 1, "b c": {d: @p}}`, `{"a": 1, "b c": {"d": @p}}`},

		// Paths and calls.
		{`c.a.b`, `c.a.b`}, {`c["a"]['b']`, `c["a"]["b"]`}, {`c[0].x`, `c[0].x`}, {`c[@i]`, `c[@i]`},
		{`{a: 1}.a`, `{"a": 1}.a`}, {`(1).x`, `(1).x`}, {`(-1)[0]`, `(-1)[0]`}, {`-1[0]`, `(- (1)[0])`},
		{`count(1)`, `count(1)`}, {`PI()`, `PI()`}, {`Left('abc', 2)`, `Left("abc", 2)`},
		{`udf.f(c, 1)`, `udf.f(c, 1)`}, {`UDF.f()`, `udf.f()`},
		{`all`, `all`}, {`first.last`, `first.last`}, {`all(1)`, `all(1)`}, {`rank`, `rank`}, {`let`, `let`},

		// Precedence, the tightest first.
		{`-a.b`, `(- a.b)`}, {`- -5`, `5`}, {`-(5)`, `-5`}, {`- -9223372036854775808`, `9.2233720368547758e+18`}, {`-'a'`, `(- "a")`}, {`~+a`, `(~ (+ a))`}, {`+5`, `5`}, {`NOT NOT a`, `(NOT (NOT a))`},
		{`-a * b`, `((- a) * b)`}, {`NOT a = b`, `((NOT a) = b)`}, {`NOT a IN (1)`, `((NOT a) IN (1))`},
		{`1 / 2 * 3 % 4`, `(((1 / 2) * 3) % 4)`}, {`1 + 2 * 3`, `(1 + (2 * 3))`}, {`1 - 2 - 3`, `((1 - 2) - 3)`},
		{`1 | 2 + 3`, `((1 | 2) + 3)`}, {`1 + 2 & 3 ^ 4`, `(((1 + 2) & 3) ^ 4)`},
		{`a || b + c`, `(a || (b + c))`}, {`a = b || c`, `(a = (b || c))`},
		{`a < b < c`, `((a < b) < c)`}, {`a << 1 = b`, `((a << 1) = b)`}, {`a >>> 1 >> 2`, `((a >>> 1) >> 2)`},
		{`a <> b != c`, `((a != b) != c)`}, {`1 & 3 = 1`, `((1 & 3) = 1)`},
		{`a = 1 IN (2, 3)`, `((a = 1) IN (2, 3))`}, {`a NOT IN (1)`, `(a NOT IN (1))`},
		{`a LIKE 'x%' AND b`, `((a LIKE "x%") AND b)`}, {`a NOT LIKE b || '%' ESCAPE '!'`, `(a NOT LIKE (b || "%") ESCAPE "!")`},
		{`a BETWEEN 1 AND 2`, `(a BETWEEN 1 AND 2)`}, {`a NOT BETWEEN 1 + 1 AND 3`, `(a NOT BETWEEN (1 + 1) AND 3)`},
		{`a BETWEEN 1 AND 2 AND b`, `((a BETWEEN 1 AND 2) AND b)`}, {`b OR a BETWEEN 1 AND 2`, `(b OR (a BETWEEN 1 AND 2))`},
		{`a OR b AND c`, `(a OR (b AND c))`}, {`a AND b OR c AND d`, `((a AND b) OR (c AND d))`},
		{`a OR b ?? c`, `((a OR b) ?? c)`}, {`a ?? b ?? c`, `(a ?? (b ?? c))`}, {`1 ?? 2 = 3`, `(1 ?? (2 = 3))`},
		{`a ?? b ? c : d`, `((a ?? b) ? c : d)`}, {`a ? b : c ? d : e`, `(a ? b : (c ? d : e))`},
		{`a ? b ? c : d : e`, `(a ? (b ? c : d) : e)`}, {`(a OR b) AND c`, `((a OR b) AND c)`},
		{`c ? {x: 1} : {x: 2}.x`, `(c ? {"x": 1} : {"x": 2}.x)`},

		// LET.
		{`(LET x = 1 IN x)`, `(LET x = 1 IN x)`}, {`(let x = a + 1 IN x > 2).y`, `(LET x = (a + 1) IN (x > 2)).y`},
		{`(LET x = a = 1 IN (LET y = x IN y || x))`, `(LET x = (a = 1) IN (LET y = x IN (y || x)))`},
		{`(LET x = (a ?? 1) IN (x AND b))`, `(LET x = (a ?? 1) IN (x AND b))`}, {`(let.x = 1)`, `(let.x = 1)`}, {`(let)`, `let`},
		{`LET x = 1 IN x`, ``}, {`(LET x = 1)`, ``}, {`(LET x IN x)`, ``}, {`(LET x = 1 IN x AND y)`, ``}, {`(LET 'x' = 1 IN 2)`, ``},

		// Comments and space.
		{"1 -- one\n + 2", `(1 + 2)`}, {`1 /* one */ + /**/ 2`, `(1 + 2)`}, {"\t1\r\n", `1`},
		{"1 -- one\r+ 2", `(1 + 2)`}, {"1\u00a0+\u202f2\u3000", `(1 + 2)`}, {"'\u00a0'", "\"\u00a0\""}, {"1 \u200b + 2", ``}, {"1 \xa0 + 2", ``},

		// What cannot stand.
		{`1 IN (1) IN (2)`, ``}, {`a AND b IN (1) = 2`, ``}, {`1 BETWEEN 2 AND 3 BETWEEN 4 AND 5`, ``},
		{`a LIKE b LIKE c`, ``}, {`a IN ()`, ``}, {`[1,]`, ``}, {`{a: 1,}`, ``}, {`{1: 2}`, ``}, {`f(1,)`, ``},
		{`c.group`, ``}, {`c.value`, ``}, {`order`, ``}, {`c.1`, ``}, {`12a`, ``}, {`007`, ``}, {`1.`, ``}, {`0.E`, ``},
		{`0x`, ``}, {`1 2`, ``}, {`@`, ``}, {`a ! b`, ``}, {`a == b`, ``}, {`'abc`, ``}, {`1 /* x`, ``}, {`é`, ``},
		{`(1`, ``}, {`1)`, ``}, {`ARRAY(1)`, ``}, {`EXISTS 1`, ``}, {`LEFT`, ``}, {`udf.f`, ``}, {`CASE WHEN a THEN b END`, ``},
		{`a IS NULL`, ``}, {`a ? b`, ``}, {`a LIKE b ESCAPE c`, ``}, {`a;`, ``},
	} {
		q, err := Parse("SELECT VALUE " + c.in)
		switch {
		case err != nil && c.want != "":
			t.Errorf("%s: %v", c.in, err)
		case err == nil && c.want == "":
			t.Errorf("%s is accepted, as %s", c.in, Print(q.Select.Value))
		case err == nil && Print(q.Select.Value) != c.want:
			t.Errorf("%s is %s, want %s", c.in, Print(q.Select.Value), c.want)
		}
	}
}

// TestParseQueries reads queries and prints them.
func TestParseQueries(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`select * from c`, "SELECT *\nFROM c"},
		{`SELECT DISTINCT TOP 3 c.a x, c.b AS y, 1 'z w' FROM root c`,
			"SELECT DISTINCT TOP 3 c.a AS x, c.b AS y, 1 AS \"z w\"\nFROM root AS c"},
		{`SELECT TOP @n VALUE c FROM c`, "SELECT TOP @n VALUE c\nFROM c"},
		{`SELECT 1 AS "select"`, "SELECT 1 AS \"select\""},
		{`SELECT * FROM c.a["b c"][0] AS x`, "SELECT *\nFROM c.a[\"b c\"][0] AS x"},
		{`SELECT * FROM x IN c.list JOIN y IN x.z JOIN c.w v`, "SELECT *\nFROM x IN c.list\nJOIN y IN x.z\nJOIN c.w AS v"},
		{`SELECT * FROM p JOIN kv IN ObjectToArray(p.o)`, "SELECT *\nFROM p\nJOIN kv IN ObjectToArray(p.o)"},
		{`SELECT VALUE t FROM (SELECT VALUE c FROM c WHERE c.x) t JOIN u IN (SELECT VALUE 1)`,
			"SELECT VALUE t\nFROM (\n    SELECT VALUE c\n    FROM c\n    WHERE c.x\n) AS t\nJOIN u IN (\n    SELECT VALUE 1\n)"},
		{`SELECT VALUE EXISTS(SELECT 1) AND ARRAY(SELECT 2)[0] = ALL(SELECT 3) OR first(SELECT 4) = LAST(SELECT 5)`,
			"SELECT VALUE ((EXISTS(\n    SELECT 1\n) AND (ARRAY(\n    SELECT 2\n)[0] = ALL(\n    SELECT 3\n))) OR (FIRST(\n    SELECT 4\n) = LAST(\n    SELECT 5\n)))"},
		{`SELECT (SELECT VALUE (SELECT VALUE 1)) AS x`,
			"SELECT (\n    SELECT VALUE (\n        SELECT VALUE 1\n    )\n) AS x"},
		{`SELECT c.a, COUNT(1) FROM c WHERE c.b GROUP BY c.a, c.d + 1 OFFSET 1 LIMIT @l`,
			"SELECT c.a, COUNT(1)\nFROM c\nWHERE c.b\nGROUP BY c.a, (c.d + 1)\nOFFSET 1 LIMIT @l"},
		{`SELECT * FROM c ORDER BY c.a, c.b ASC, c.d DESC`, "SELECT *\nFROM c\nORDER BY c.a, c.b ASC, c.d DESC"},
		{`SELECT * FROM rank ORDER BY rank.x, RANK`, "SELECT *\nFROM rank\nORDER BY rank.x, RANK"},
		{`SELECT * FROM c ORDER BY rank RRF(F(c.a), G(c.b)), H(c.d) DESC`,
			"SELECT *\nFROM c\nORDER BY RANK RRF(F(c.a), G(c.b)), H(c.d) DESC"},
	} {
		q, err := Parse(c.in)
		if err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		if got := q.String(); got != c.want {
			t.Errorf("%s is printed as\n%s\nwant\n%s", c.in, got, c.want)
		}
	}
}

// TestParseErrors checks the codes, positions and texts that clients see.
func TestParseErrors(t *testing.T) {
	near := func(x string) string { return "Syntax error, incorrect syntax near '" + x + "'." }
	const end = "Syntax error, unexpected end-of-file."
	for _, c := range []struct {
		in, code   string
		start, end int
		message    string
	}{
		{``, "SC1002", 0, 0, end},
		{`SELECT`, "SC1002", 6, 6, end},
		{`SELECT * FROM`, "SC1002", 13, 13, end},
		{`SELECT VALUE [`, "SC1002", 14, 14, end},
		{`SELEC * FROM c`, "SC1001", 0, 5, near("SELEC")},
		{`SELECT * FORM c`, "SC1001", 9, 13, near("FORM")},
		{`SELECT VALUE 1, 2`, "SC1001", 14, 15, near(",")},
		{`SELECT *, 1`, "SC1001", 8, 9, near(",")},
		{`SELECT VALUE *`, "SC1001", 13, 14, near("*")},
		{`SELECT 1,`, "SC1002", 9, 9, end},
		{`SELECT 'é😀' 5`, "SC1001", 13, 14, near("5")},
		{`SELECT 1 AS Value`, "SC1001", 12, 17, near("Value")},
		{`SELECT c.Group FROM c`, "SC1001", 9, 14, near("Group")},
		{`SELECT 'abc`, "SC1001", 7, 11, near("'abc")},
		{`SELECT * FROM c LIMIT 10`, "SC1001", 16, 21, near("LIMIT")},
		{`SELECT * FROM c OFFSET 5`, "SC1002", 24, 24, end},
		{`SELECT * FROM c OFFSET 3.14 LIMIT 10`, "SC1001", 23, 27, near("3.14")},
		{`SELECT * FROM c OFFSET -1 LIMIT 10`, "SC1001", 23, 24, near("-")},
		{`SELECT TOP 'x' *`, "SC1001", 11, 14, near(`"x"`)},
		{`SELECT TOP -1 *`, "SC1001", 11, 12, near("-")},
		{`SELECT TOP 1.5 *`, "SC2060", 11, 14, "The count value provided for a TOP clause must be an integer."},
		{`SELECT TOP 4294967296 *`, "SC2060", 11, 21, "The count value provided for a TOP clause must be an integer."},
		{`SELECT * FROM c OFFSET 0 LIMIT 4294967296`, "SC2061", 31, 41, "The LIMIT count value exceeds the maximum allowed value."},
		{`SELECT * FROM c OFFSET 99999999999999999999 LIMIT 1`, "SC2062", 23, 43, "The OFFSET count value exceeds the maximum allowed value."},
		{`SELECT * FROM c HAVING 1`, "SC1001", 16, 22, near("HAVING")},
		{`SELECT * FROM c JOIN d ON 1`, "SC1001", 23, 25, near("ON")},
		{`SELECT * FROM c[@p]`, "SC1001", 16, 18, near("@p")},
		{`SELECT * FROM x IN 5`, "SC1001", 19, 20, near("5")},
		{`SELECT * FROM c ORDER BY RANK c.score`, "SC1001", 31, 32, near(".")},
		{`SELECT * FROM c ORDER BY RANK udf.f()`, "SC1001", 30, 33, near("udf")},
		{`SELECT * FROM c ORDER BY RANK 1`, "SC1001", 30, 31, near("1")},
		{`SELECT 1 FROM c GROUP c.a`, "SC1001", 22, 23, near("c")},
		{"SELECT \xff", "SC1001", 0, 0, "Syntax error, the query text is not valid UTF-8."},
	} {
		_, err := Parse(c.in)
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%q: error %v, want an *Error", c.in, err)
			continue
		}
		if want := (Error{Code: c.code, Message: c.message, Span: Span{c.start, c.end}}); !reflect.DeepEqual(*e, want) {
			t.Errorf("%q: error %+v, want %+v", c.in, *e, want)
		}
	}
}

func TestErrorJSON(t *testing.T) {
	for _, c := range []struct {
		err  Error
		want string
	}{
		{Error{Code: "SC1001", Message: `near '"'`, Span: Span{7, 10}},
			`{"errors":[{"severity":"Error","location":{"start":7,"end":10},"code":"SC1001","message":"near '\"'"}]}`},
		{Error{Code: "2206", Message: "Unsupported", Span: Span{3, 4}},
			`{"errors":[{"severity":"Error","code":2206,"message":"Unsupported"}]}`},
		{Error{Message: "No code", Span: Span{1, 2}}, `{"Errors":["No code"]}`},
		{Error{Code: "SC1", Message: "a", More: []*Error{{Code: "SC2", Message: "b", Span: Span{1, 2}}}},
			`{"errors":[{"severity":"Error","location":{"start":0,"end":0},"code":"SC1","message":"a"},` +
				`{"severity":"Error","location":{"start":1,"end":2},"code":"SC2","message":"b"}]}`},
	} {
		if got := string(c.err.JSON()); got != c.want {
			t.Errorf("%+v: %s, want %s", c.err, got, c.want)
		}
	}
}

// TestSelectNames checks the properties that select items become.
func TestSelectNames(t *testing.T) {
	q, err := Parse(`SELECT c, c.a.b, c["x y"], c[0], 1 + 1, c.z AS n, MAX(c.q) m, COUNT(1), @p FROM c`)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, item := range q.Select.Items {
		names = append(names, item.Name)
	}
	if got, want := strings.Join(names, ","), "c,b,x y,$1,$2,n,m,$3,$4"; got != want {
		t.Errorf("names %s, want %s", got, want)
	}
}

// TestSourceAliases checks the names that sources are known by.
func TestSourceAliases(t *testing.T) {
	for in, want := range map[string]string{
		"c": "c", "c r": "r", "c AS r": "r", "c.a.b": "b", `c["x"]`: "x", "c.a[0]": "", "e IN c.list": "e",
		"(SELECT 1)": "", "(SELECT 1) s": "s",
	} {
		q, err := Parse("SELECT 1 FROM " + in)
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		if got := q.From.Sources[0].Alias; got != want {
			t.Errorf("FROM %s is known as %q, want %q", in, got, want)
		}
	}
}

// TestSpans checks that nodes know where they stand.
func TestSpans(t *testing.T) {
	const text = `SELECT VALUE 'é😀' || LOWER(c . x) FROM c`
	q, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := q.Span, (Span{0, 41}); got != want {
		t.Errorf("query at %v, want %v", got, want)
	}
	concat := q.Select.Value.(*Binary)
	lower := concat.Y.(*Call)
	for _, c := range []struct {
		x    Expr
		want Span
	}{
		{concat, Span{13, 34}}, {concat.X, Span{13, 18}}, {lower, Span{22, 34}}, {lower.Args[0], Span{28, 33}},
	} {
		if got := c.x.Pos(); got != c.want {
			t.Errorf("%s at %v, want %v", Print(c.x), got, c.want)
		}
	}
}

// TestCanonical compares expressions that are the same, and such as are not.
func TestCanonical(t *testing.T) {
	canonical := func(text string) string {
		q, err := Parse("SELECT VALUE " + text)
		if err != nil {
			t.Fatal(err)
		}
		return Canonical(q.Select.Value, func(name string) string { return "$" + strings.ToLower(name) })
	}
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{`c.a`, `C["a"]`, true}, {`lower(c.a) + 1`, `LOWER( c['a'] )+1.0`, true}, {`udf.f(c)`, `udf.F(c)`, false},
		{`c.a`, `c.b`, false}, {`1`, `'1'`, false}, {`c.a IN (1)`, `c.a NOT IN (1)`, false},
		{`c.a LIKE 'x'`, `c.a LIKE 'x' ESCAPE '!'`, false}, {`(LET x = c IN x.a)`, `(LET y = c IN y.a)`, false},
		{`ARRAY(SELECT VALUE c.a)`, `ARRAY(SELECT VALUE C.a)`, false}, {`[c.a, c]`, `[C["a"],C]`, true},
	} {
		if a, b := canonical(c.a), canonical(c.b); (a == b) != c.same {
			t.Errorf("%s is %s, and %s is %s", c.a, a, c.b, b)
		}
	}
}

// TestQueryLimits goes to what is allowed, and one beyond.
func TestQueryLimits(t *testing.T) {
	joins := func(n int) string { return "SELECT 1 FROM c" + strings.Repeat(" JOIN c.a", n) }
	udfs := func(n int) string { return "SELECT 1" + strings.Repeat(", udf.f()", n) }
	nested := func(n int) string { return strings.Repeat("SELECT (", n) + "SELECT 1" + strings.Repeat(")", n) }
	chain := func(n int) string { return "SELECT c" + strings.Repeat(" OR c", n) + " FROM c" }
	parens := func(n int) string { return "SELECT " + strings.Repeat("(", n) + "1" + strings.Repeat(")", n) }
	long := func(n int) string { return "SELECT '" + strings.Repeat("x", n-len("SELECT ''")) + "'" }
	for _, c := range []struct {
		name  string
		query func(n int) string
		most  int
		code  string
	}{
		{"joins", joins, maxJoins, "SC3002"},
		{"user-defined functions", udfs, maxUDFCalls, "SC3005"},
		{"nested subqueries", nested, maxSubqueryDepth, ""},
		{"chained operators", chain, maxHeight - 1, ""},
		{"parentheses", parens, maxDepth - 2, ""},
		{"text", long, MaxTextBytes, "SC3001"},
	} {
		if _, err := Parse(c.query(c.most)); err != nil {
			t.Errorf("%d %s: %v", c.most, c.name, err)
		}
		_, err := Parse(c.query(c.most + 1))
		var e *Error
		if !errors.As(err, &e) || e.Code != c.code {
			t.Errorf("%d %s: error %v, want one with code %q", c.most+1, c.name, err, c.code)
		}
	}
}

// TestHighTreesCanBePrinted reads the highest trees of every kind again.
func TestHighTreesCanBePrinted(t *testing.T) {
	const n = maxHeight - 2
	for name, text := range map[string]string{
		"binary":  "SELECT c" + strings.Repeat("=c", n),
		"unary":   "SELECT " + strings.Repeat("~", n) + "c",
		"ternary": "SELECT " + strings.Repeat("c?c:", n) + "c",
		"default": "SELECT " + strings.Repeat("c??", n) + "c",
		"member":  "SELECT c" + strings.Repeat(".c", n),
		"array":   "SELECT " + strings.Repeat("[", n) + strings.Repeat("]", n),
	} {
		q, err := Parse(text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		again, err := Parse(q.String())
		if err != nil {
			t.Errorf("%s, printed: %v", name, err)
			continue
		}
		if again.String() != q.String() {
			t.Errorf("%s is printed in two ways", name)
		}
	}
}

// FuzzParse checks that nothing makes the parser panic, and that what is printed
// can be read and is then printed alike.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		``, `SELECT *`, `SELECT VALUE -1.5e3 FROM c`, `SELECT DISTINCT TOP 5 c.a, c["b"] AS "x y" FROM root c`,
		`SELECT * FROM x IN c.a[0].b JOIN (SELECT VALUE 1) y WHERE NOT x.a BETWEEN 1 AND 2`,
		`SELECT COUNT(1), AVG(c.x) m FROM c GROUP BY c.y OFFSET 1 LIMIT 2`,
		`SELECT VALUE MIN(c.x) FROM c WHERE c.k IN (1, 'a', null)`,
		`SELECT c.x, COUNT(1) FROM c WHERE (LET y = c.k + 1 IN y > 2) GROUP BY c.x ORDER BY c.x DESC`,
		`SELECT VALUE {a: [1, {}], 'b': @p ?? -0x1F} FROM c ORDER BY c.a DESC, c.b`,
		`SELECT (c.a LIKE '%\u00e9' ESCAPE '!') ? udf.f(1) : EXISTS(SELECT 1) FROM c -- end`,
		`SELECT TOP 3 * FROM c ORDER BY RANK RRF(FullTextScore(c.t, 'a', ['b']), VectorDistance(c.v, [1]), [1, -2])`,
		`SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.x FROM c) s`,
		`SELECT VALUE (-5).x[0]["y"] /* NaN */ || Infinity`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		q, err := Parse(text)
		if err != nil {
			return
		}
		printed := q.String()
		if len(printed) > MaxTextBytes {
			return
		}
		again, err := Parse(printed)
		if err != nil {
			t.Fatalf("%q is printed as %q: %v", text, printed, err)
		}
		if again.String() != printed {
			t.Fatalf("%q is printed as %q and then as %q", text, printed, again.String())
		}
	})
}

func BenchmarkParse(b *testing.B) {
	for _, c := range []struct{ name, text string }{
		{"point", `SELECT * FROM c WHERE c.id = @id AND c.pk = "tenant-1"`},
		{"page", `SELECT c.id, c.name, c.price FROM c WHERE c.state = 'open' AND c.price > 10 ORDER BY c.price DESC OFFSET 20 LIMIT 10`},
		{"many", `SELECT * FROM c WHERE ` + strings.Repeat(`(c.id = "item" AND c.pk = "key") OR `, 999) + `false`},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(c.text)))
			for b.Loop() {
				if _, err := Parse(c.text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
