// SPDX-License-Identifier: MIT

package sql

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mayflydb/mayfly/internal/oracle"
	"github.com/mayflydb/mayfly/internal/sql/datum"
	"github.com/mayflydb/mayfly/internal/sql/function"
	"github.com/mayflydb/mayfly/internal/sql/syntax"
)

// evalAll runs a whole query over items and returns its rows.
func evalAll(query string, items ...string) ([]string, error) {
	return evalWith(query, CompileOptions{}, items...)
}

func evalWith(query string, o CompileOptions, items ...string) ([]string, error) {
	q, err := syntax.Parse(query)
	if err != nil {
		return nil, err
	}
	p, err := Compile(q, o)
	if err != nil {
		return nil, err
	}
	var texts [][]byte
	for _, item := range items {
		texts = append(texts, []byte(item))
	}
	rows, err := evaluateTwice(p, texts)
	if err != nil {
		return nil, err
	}
	result := []string{}
	for _, row := range rows {
		result = append(result, string(row))
	}
	return result, nil
}

// evaluateTwice runs a program twice at once, as programs may be: the race detector finds
// out those that are changed by being run.
func evaluateTwice(p *Program, items [][]byte) (rows [][]byte, err error) {
	var other sync.WaitGroup
	other.Go(func() { _, _ = Evaluate(p, items, &function.Context{NowMs: 1767225600000}) })
	rows, err = Evaluate(p, items, &function.Context{NowMs: 1767225600000})
	other.Wait()
	return rows, err
}

// expect fails the test unless a query over items has exactly these rows, which
// stand in one text with spaces between them.
func expect(t *testing.T, query, want string, items ...string) {
	t.Helper()
	rows, err := evalAll(query, items...)
	if err != nil {
		t.Errorf("%s: %v", query, err)
		return
	}
	if got := strings.Join(rows, " "); got != want {
		t.Errorf("%s\n got %s\nwant %s", query, got, want)
	}
	asksOracle(t, query, rows, items)
}

// asksOracle compares rows that are written by hand with the oracle's, so that they pin both.
func asksOracle(t *testing.T, query string, want, items []string) {
	t.Helper()
	q, err := syntax.Parse(query)
	if err != nil {
		t.Fatal(err)
	}
	var values []datum.Value
	for _, item := range items {
		values = append(values, datum.Raw([]byte(item)))
	}
	rows, err := oracle.Rows(q, values, &function.Context{NowMs: 1767225600000})
	if err != nil {
		t.Errorf("%s: %v", query, err)
		return
	}
	same := slices.EqualFunc(rows, want, func(row datum.Value, text string) bool {
		return datum.Equal(row, datum.Raw([]byte(text)))
	})
	if !same {
		t.Errorf("%s\n the oracle says %v\nwant %v", query, rows, want)
	}
}

// refuse fails the test unless a query is refused with this code and text.
func refuse(t *testing.T, query, code, message string, items ...string) {
	t.Helper()
	rows, err := evalAll(query, items...)
	var refused *syntax.Error
	if !errors.As(err, &refused) {
		t.Errorf("%s: %v, %v; want an Error", query, rows, err)
		return
	}
	if refused.Code != code || !strings.Contains(refused.Message, message) {
		t.Errorf("%s:\n got %s %q\nwant %s %q", query, refused.Code, refused.Message, code, message)
	}
}

// value1 evaluates one expression of no item: the JSON of its value, or nothing
// if it is undefined.
func value1(t *testing.T, expression string) string {
	t.Helper()
	rows, err := evalAll("SELECT VALUE " + expression)
	if err != nil {
		t.Errorf("%s: %v", expression, err)
	}
	return strings.Join(rows, " ")
}

const (
	ann  = `{"id":"ann","age":30,"city":"Graz","tags":["a","b"],"pets":[{"n":"x","w":3},{"n":"y","w":5}],"address":{"zip":"8010"}}`
	bob  = `{"id":"bob","age":25,"city":"Wien","tags":[],"pets":null,"nick":null}`
	cid  = `{"id":"cid","age":"old","city":"Graz","tags":["b","c","b"],"pets":[{"n":"z"}],"address":{"zip":"8020"}}`
	dora = `{"id":"dora","city":null}`
)

func people(t *testing.T, query, want string) {
	t.Helper()
	expect(t, query, want, ann, bob, cid, dora)
}

func TestSelect(t *testing.T) {
	expect(t, `SELECT * FROM c`, `{"id":"dora","city":null}`, dora)
	expect(t, `SELECT VALUE c FROM c`, `{"id":"dora","city":null}`, dora)
	people(t, `SELECT VALUE c.id FROM c`, `"ann" "bob" "cid" "dora"`)
	people(t, `SELECT c.id, c.age FROM c`, `{"id":"ann","age":30} {"id":"bob","age":25} {"id":"cid","age":"old"} {"id":"dora"}`)
	people(t, `SELECT VALUE c.age FROM c`, `30 25 "old"`)
	people(t, `SELECT c.missing FROM c`, `{} {} {} {}`)
	people(t, `SELECT VALUE c.missing FROM c`, ``)
	expect(t, `SELECT c["id"], c.address.zip, 1+1, c.age AS years, c.age*2, {"a": c.city} FROM c`,
		`{"id":"ann","zip":"8010","$1":2,"years":30,"$2":60,"$3":{"a":"Graz"}}`, ann)
	expect(t, `SELECT VALUE [c.id, c.missing, null, {a: c.missing, b: c.pets[1].n}] FROM c`, `["ann",null,{"b":"y"}]`, ann)
	expect(t, `SELECT 1 AS "two words", c.id AS "" FROM c`, `{"two words":1,"":"dora"}`, dora)
}

func TestWithoutFrom(t *testing.T) {
	people(t, `SELECT 1 AS a, 'x' AS b`, `{"a":1,"b":"x"}`)
	people(t, `SELECT VALUE 1 WHERE false`, ``)
	people(t, `SELECT VALUE COUNT(1)`, `1`)
	people(t, `SELECT VALUE {a: COUNT(1)}`, `{"a":1}`)
	expect(t, `SELECT VALUE undefined`, ``)
	expect(t, `SELECT undefined`, `{}`)
}

func TestPaths(t *testing.T) {
	f := func(path, want string) {
		t.Helper()
		expect(t, `SELECT VALUE `+path+` FROM c`, want, ann)
	}
	f(`c.pets[0].n`, `"x"`)
	f(`c["pets"][1]["w"]`, `5`)
	f(`c.pets[2]`, ``)
	f(`c.pets[-1]`, ``)
	f(`c.pets[0.5]`, ``)
	f(`c.pets["0"]`, ``)
	f(`c.pets[1.0].n`, `"y"`)
	f(`c.address[0]`, ``)
	f(`c.id.x`, ``)
	f(`c.id[0]`, ``)
	f(`c["ci" || "ty"]`, `"Graz"`)
	f(`c.pets[null]`, ``)
	f(`{a: {b: [1, 2]}}.a.b[1]`, `2`)
	f(`[c.id, c.city][1]`, `"Graz"`)
}

func TestFrom(t *testing.T) {
	people(t, `SELECT VALUE p.id FROM c AS p WHERE p.age = 25`, `"bob"`)
	people(t, `SELECT VALUE root.id FROM root`, `"ann" "bob" "cid" "dora"`)
	people(t, `SELECT * FROM c.address`, `{"zip":"8010"} {"zip":"8020"}`)
	people(t, `SELECT VALUE zip FROM c.address.zip`, `"8010" "8020"`)
	people(t, `SELECT VALUE a.zip FROM c.address a`, `"8010" "8020"`)
	people(t, `SELECT VALUE p.n FROM c.pets[0] p`, `"x" "z"`)
	people(t, `SELECT VALUE t FROM t IN c.tags`, `"a" "b" "b" "c" "b"`)
	people(t, `SELECT * FROM p IN c.pets`, `{"n":"x","w":3} {"n":"y","w":5} {"n":"z"}`)
	people(t, `SELECT VALUE x FROM (SELECT VALUE c.city FROM c WHERE c.age > 0) x`, `"Graz" "Wien"`)
	people(t, `SELECT VALUE x.id FROM (SELECT c.id, c.age FROM c) AS x WHERE x.age = "old"`, `"cid"`)
	people(t, `SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.city FROM c) AS x`, `3`)
	people(t, `SELECT VALUE x.n FROM (SELECT c.city, COUNT(1) AS n FROM c GROUP BY c.city) x WHERE x.city = "Graz"`, `2`)
	people(t, `SELECT VALUE SUM(x) FROM (SELECT VALUE COUNT(1) FROM c) x`, `4`)
	people(t, `SELECT VALUE x FROM (SELECT VALUE 7) x`, `7`)
}

func TestJoin(t *testing.T) {
	people(t, `SELECT c.id, t FROM c JOIN t IN c.tags`,
		`{"id":"ann","t":"a"} {"id":"ann","t":"b"} {"id":"cid","t":"b"} {"id":"cid","t":"c"} {"id":"cid","t":"b"}`)
	people(t, `SELECT VALUE p.n || t FROM c JOIN p IN c.pets JOIN t IN c.tags WHERE t != "b"`, `"xa" "ya" "zc"`)
	people(t, `SELECT VALUE p.n FROM c JOIN p IN c.pets JOIN t IN c.tags WHERE p.w > 4 AND t = "a"`, `"y"`)
	people(t, `SELECT VALUE a.zip FROM c JOIN a IN c.address`, ``)
	people(t, `SELECT VALUE c.id FROM c JOIN c.address`, `"ann" "cid"`)
	people(t, `SELECT VALUE s FROM c JOIN (SELECT VALUE t FROM t IN c.tags WHERE t > "a") s`, `"b" "b" "c" "b"`)
	people(t, `SELECT VALUE s FROM c JOIN s IN (SELECT VALUE t FROM t IN c.tags WHERE t = "a")`, `"a"`)
	people(t, `SELECT VALUE s FROM c JOIN s IN (SELECT VALUE ARRAY(SELECT VALUE t FROM t IN c.tags WHERE t = "b"))`, `"b" "b" "b"`)
	people(t, `SELECT VALUE n FROM c JOIN (SELECT VALUE COUNT(1) FROM t IN c.tags) n`, `2 0 3 0`)
	people(t, `SELECT VALUE s FROM c JOIN (SELECT DISTINCT VALUE t FROM t IN c.tags) s WHERE c.id = "cid"`, `"b" "c"`)
	people(t, `SELECT VALUE x.t FROM c JOIN (SELECT t, COUNT(1) AS n FROM t IN c.tags GROUP BY t) x WHERE x.n > 1`, `"b"`)
}

func TestWhereKeepsOnlyTrue(t *testing.T) {
	for filter, want := range map[string]string{
		`true`: `"ann" "bob" "cid" "dora"`, `false`: ``, `1`: ``, `"true"`: ``, `null`: ``, `undefined`: ``, `c.missing`: ``,
		`c.age > 26`: `"ann"`, `c.age >= 25`: `"ann" "bob"`, `c.age < "p"`: `"cid"`,
		`c.nick = null`: `"bob"`, `c.city != "Graz"`: `"bob" "dora"`, `NOT (c.city = "Graz")`: `"bob" "dora"`,
		`NOT IS_DEFINED(c.age)`:                   `"dora"`,
		`c.age = 30 OR c.missing = 1`:             `"ann"`,
		`c.city IN ("Wien", null)`:                `"bob" "dora"`,
		`c.city NOT IN ("Graz")`:                  `"bob" "dora"`,
		`c.age BETWEEN 25 AND 29`:                 `"bob"`,
		`c.age NOT BETWEEN 25 AND 29`:             `"ann"`,
		`c.city LIKE "G%"`:                        `"ann" "cid"`,
		`c.city NOT LIKE "G%"`:                    `"bob"`,
		`c.tags = ["b", "c", "b"]`:                `"cid"`,
		`c.address = {"zip": "8020"}`:             `"cid"`,
		`EXISTS(SELECT VALUE t FROM t IN c.tags)`: `"ann" "cid"`,
		`ARRAY_CONTAINS(c.tags, "c")`:             `"cid"`,
	} {
		people(t, `SELECT VALUE c.id FROM c WHERE `+filter, want)
	}
}

func TestSubqueries(t *testing.T) {
	people(t, `SELECT c.id, (SELECT VALUE COUNT(1) FROM t IN c.tags WHERE t = "b") AS n FROM c`,
		`{"id":"ann","n":1} {"id":"bob","n":0} {"id":"cid","n":2} {"id":"dora","n":0}`)
	people(t, `SELECT VALUE ARRAY(SELECT VALUE p.n FROM p IN c.pets) FROM c`, `["x","y"] [] ["z"] []`)
	people(t, `SELECT VALUE ARRAY(SELECT p.n, p.w FROM p IN c.pets) FROM c WHERE c.id = "cid"`, `[{"n":"z"}]`)
	people(t, `SELECT VALUE (SELECT VALUE p.n FROM p IN c.pets WHERE p.w = 5) FROM c`, `"y"`)
	people(t, `SELECT VALUE FIRST(SELECT VALUE t FROM t IN c.tags) FROM c`, `"a" "b"`)
	people(t, `SELECT VALUE LAST(SELECT VALUE t FROM t IN c.tags) FROM c`, `"b" "b"`)
	people(t, `SELECT VALUE c.id FROM c WHERE ALL(SELECT VALUE t FROM t IN c.tags WHERE t != "c")`, `"ann" "bob" "dora"`)
	people(t, `SELECT VALUE ARRAY(SELECT VALUE ARRAY(SELECT VALUE t || p.n FROM t IN c.tags) FROM p IN c.pets) FROM c WHERE c.id = "ann"`,
		`[["ax","bx"],["ay","by"]]`)
	people(t, `SELECT VALUE (SELECT VALUE MAX(p.w) FROM p IN c.pets) FROM c`, `5`)
	people(t, `SELECT VALUE (SELECT MAX(p.w) AS m FROM p IN c.pets) FROM c`, `{"m":5} {} {} {}`)
	people(t, `SELECT VALUE ARRAY(SELECT DISTINCT VALUE t FROM t IN c.tags) FROM c`, `["a","b"] [] ["b","c"] []`)
	people(t, `SELECT VALUE ARRAY(SELECT t, COUNT(1) AS n FROM t IN c.tags GROUP BY t) FROM c WHERE c.id = "cid"`,
		`[{"t":"b","n":2},{"t":"c","n":1}]`)
	people(t, `SELECT VALUE (SELECT VALUE c.id) FROM c WHERE c.age = 25`, `"bob"`)
	expect(t, `SELECT VALUE EXISTS(SELECT VALUE undefined)`, `false`)
	expect(t, `SELECT VALUE EXISTS(SELECT undefined)`, `true`)
	refuse(t, `SELECT (SELECT VALUE t FROM t IN c.tags) FROM c`, "", "The cardinality of a scalar subquery", ann)
}

func TestOrderBy(t *testing.T) {
	people(t, `SELECT VALUE c.id FROM c ORDER BY c.age`, `"dora" "bob" "ann" "cid"`)
	people(t, `SELECT VALUE c.id FROM c ORDER BY c.age DESC`, `"cid" "ann" "bob" "dora"`)
	people(t, `SELECT VALUE c.id FROM c ORDER BY c.city, c.id DESC`, `"dora" "cid" "ann" "bob"`)
	people(t, `SELECT VALUE c.id FROM c ORDER BY c.address.zip DESC, c.id`, `"cid" "ann" "bob" "dora"`)
	people(t, `SELECT VALUE c.id FROM c JOIN t IN c.tags ORDER BY c.id DESC`, `"cid" "cid" "cid" "ann" "ann"`)
	people(t, `SELECT TOP 2 VALUE c.id FROM c ORDER BY c.id DESC`, `"dora" "cid"`)
	people(t, `SELECT VALUE c.id FROM c ORDER BY c.id OFFSET 1 LIMIT 2`, `"bob" "cid"`)
	people(t, `SELECT VALUE c.id FROM c OFFSET 9 LIMIT 2`, ``)
	people(t, `SELECT TOP 0 * FROM c`, ``)
}

func TestDistinct(t *testing.T) {
	people(t, `SELECT DISTINCT VALUE c.city FROM c`, `"Graz" "Wien" null`)
	people(t, `SELECT DISTINCT c.nick FROM c`, `{} {"nick":null}`)
	people(t, `SELECT DISTINCT TOP 2 VALUE t FROM c JOIN t IN c.tags`, `"a" "b"`)
	expect(t, `SELECT DISTINCT VALUE c.v FROM c`, `1 {"a":1,"b":2} [1] "1"`,
		`{"v":1}`, `{"v":1.0}`, `{"v":{"a":1,"b":2}}`, `{"v":{"b":2.0,"a":1}}`, `{"v":[1]}`, `{"v":"1"}`, `{}`, `{"v":"\u0031"}`)
	people(t, `SELECT DISTINCT VALUE c.city FROM c ORDER BY c.city DESC`, `"Wien" "Graz" null`)
}

func TestGroupBy(t *testing.T) {
	people(t, `SELECT c.city, COUNT(1) AS n FROM c GROUP BY c.city`, `{"city":"Graz","n":2} {"city":"Wien","n":1} {"city":null,"n":1}`)
	people(t, `SELECT c.city, COUNT(1) AS n FROM c GROUP BY c.city ORDER BY c.city`, `{"city":null,"n":1} {"city":"Graz","n":2} {"city":"Wien","n":1}`)
	people(t, `SELECT VALUE c.city FROM c GROUP BY c.city ORDER BY c.city DESC OFFSET 1 LIMIT 1`, `"Graz"`)
	people(t, `SELECT VALUE LENGTH(c.city) FROM c GROUP BY c.city, c.nick ORDER BY c.nick, c.city DESC`, `4 4`)
	people(t, `SELECT c.nick FROM c GROUP BY c.nick`, `{} {"nick":null}`)
	people(t, `SELECT VALUE c.nick FROM c GROUP BY c.nick`, `null`)
	people(t, `SELECT VALUE {"z": c.address.zip, "n": COUNT(c.age)} FROM c GROUP BY c.address`, `{"z":"8010","n":1} {"n":1} {"z":"8020","n":1}`)
	people(t, `SELECT c["city"] AS place, MIN(c.id) FROM c AS c GROUP BY c.city`,
		`{"place":"Graz","$1":"ann"} {"place":"Wien","$1":"bob"} {"place":null,"$1":"dora"}`)
	people(t, `SELECT UPPER(c.city) AS up, "x" AS x, COUNT(1) + 1 AS n FROM c GROUP BY UPPER(c.city)`,
		`{"up":"GRAZ","x":"x","n":3} {"up":"WIEN","x":"x","n":2} {"x":"x","n":2}`)
	people(t, `SELECT t, COUNT(1) AS n FROM c JOIN t IN c.tags GROUP BY t`, `{"t":"a","n":1} {"t":"b","n":3} {"t":"c","n":1}`)
	people(t, `SELECT c.city, c.age FROM c GROUP BY c.city, c.age`,
		`{"city":"Graz","age":30} {"city":"Wien","age":25} {"city":"Graz","age":"old"} {"city":null}`)
	people(t, `SELECT COUNT(1) AS n FROM c WHERE false GROUP BY c.city`, ``)
	people(t, `SELECT VALUE COUNT(1) FROM c GROUP BY c.city OFFSET 1 LIMIT 1`, `1`)
	people(t, `SELECT c.city, (SELECT VALUE c.city) AS again FROM c GROUP BY c.city OFFSET 0 LIMIT 1`, `{"city":"Graz","again":"Graz"}`)
}

func TestComputedProperties(t *testing.T) {
	define := func(name, query string) Computed {
		q, err := syntax.Parse(query)
		if err != nil {
			t.Fatal(err)
		}
		return Computed{Name: name, Query: q}
	}
	o := CompileOptions{Computed: []Computed{
		define("lower", `SELECT VALUE LOWER(x.city) FROM x`),
		define("zips", `SELECT VALUE {"all": [x.address.zip, x.lower]} FROM x`),
	}}
	f := func(query, want string) {
		t.Helper()
		rows, err := evalWith(query, o, ann, bob, dora)
		if got := strings.Join(rows, " "); got != want || err != nil {
			t.Errorf("%s: %s, %v; want %s", query, got, err, want)
		}
	}
	f(`SELECT VALUE p.lower FROM p`, `"graz" "wien"`)
	f(`SELECT VALUE c.id FROM c WHERE c.lower = "wien"`, `"bob"`)
	f(`SELECT VALUE c.id FROM c ORDER BY c.lower DESC`, `"bob" "ann" "dora"`)
	f(`SELECT VALUE c.zips.all[0] FROM c`, `"8010"`)
	f(`SELECT * FROM c WHERE c.id = "dora"`, dora)
	f(`SELECT c.lower, COUNT(1) AS n FROM c GROUP BY c.lower OFFSET 0 LIMIT 1`, `{"lower":"graz","n":1}`)
	f(`SELECT VALUE ARRAY(SELECT VALUE c.lower) FROM c WHERE c.id = "ann"`, `["graz"]`)

	for _, definition := range []string{
		`SELECT c.a FROM c`, `SELECT VALUE 1`, `SELECT VALUE c.a FROM c WHERE true`, `SELECT DISTINCT VALUE c.a FROM c`,
		`SELECT VALUE c.a FROM c JOIN t IN c.tags`, `SELECT VALUE t FROM t IN c.tags`, `SELECT VALUE ARRAY(SELECT VALUE 1) FROM c`,
		`SELECT VALUE COUNT(1) FROM c`, `SELECT VALUE GetCurrentTimestamp() FROM c`, `SELECT VALUE udf.f(c.a) FROM c`,
	} {
		q, err := syntax.Parse(`SELECT VALUE c.p FROM c`)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Compile(q, CompileOptions{Computed: []Computed{define("p", definition)}}); err == nil {
			t.Errorf("computed property %s was accepted", definition)
		}
	}
}

func TestParameters(t *testing.T) {
	o := CompileOptions{Params: map[string]datum.Value{
		"@city": datum.Str("Graz"), "@n": datum.Int(1), "@name": datum.Str("age"), "@list": datum.Raw([]byte(`["a",{"b":1}]`)), "@none": datum.Undefined(),
	}}
	f := func(query, want string) {
		t.Helper()
		rows, err := evalWith(query, o, ann, bob, cid, dora)
		if got := strings.Join(rows, " "); got != want || err != nil {
			t.Errorf("%s: %s, %v; want %s", query, got, err, want)
		}
	}
	f(`SELECT VALUE c.id FROM c WHERE c.city = @city`, `"ann" "cid"`)
	f(`SELECT VALUE c[@name] FROM c`, `30 25 "old"`)
	f(`SELECT VALUE @list[@n].b`, `1`)
	f(`SELECT VALUE [@list, @none]`, `[["a",{"b":1}]]`)
	f(`SELECT TOP @n VALUE c.id FROM c`, `"ann"`)
	f(`SELECT VALUE c.id FROM c OFFSET @n LIMIT @n`, `"bob"`)
	f(`SELECT VALUE c.id FROM c WHERE c.city = @none`, ``)
	f(`SELECT VALUE [@other, 1]`, `[1]`)
	f(`SELECT VALUE c.id FROM c WHERE c.city = @other OR NOT IS_DEFINED(@other) AND c.id = "bob"`, `"bob"`)
	for query, code := range map[string]string{
		`SELECT TOP @city * FROM c`:            "SC2060",
		`SELECT * FROM c OFFSET 0 LIMIT @x`:    "SC2061",
		`SELECT * FROM c OFFSET @city LIMIT 1`: "SC2062",
	} {
		var refused *syntax.Error
		if _, err := evalWith(query, o); !errors.As(err, &refused) || refused.Code != code {
			t.Errorf("%s: %v, want %s", query, err, code)
		}
	}
}

func TestUserDefinedFunctions(t *testing.T) {
	p := mustCompile(t, `SELECT VALUE udf.twice(c.age, 1) FROM c`, nil)
	if got := p.UDFs(); !slices.Equal(got, []string{"twice"}) {
		t.Errorf("UDFs = %v", got)
	}
	cx := &function.Context{UDF: func(name string, args []datum.Value) (datum.Value, error) {
		if args[0].IsUndefined() {
			return datum.Str("none"), nil
		}
		n, ok := args[0].AsFloat()
		if !ok {
			return datum.Value{}, errTest
		}
		return datum.Float(2 * n), nil
	}}
	rows, err := Evaluate(p, [][]byte{[]byte(dora), []byte(ann)}, cx)
	if got := string(bytes.Join(rows, []byte(" "))); err != nil || got != `"none" 60` {
		t.Errorf("rows %s, %v", got, err)
	}
	if _, err := Evaluate(p, [][]byte{[]byte(cid)}, cx); !errors.Is(err, errTest) {
		t.Errorf("the function's error came back as %v", err)
	}
	refuse(t, `SELECT VALUE udf.none(1)`, "", "does not exist")
}

var errTest = errors.New("test")
