// SPDX-License-Identifier: MIT

package clientplan

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mayflydb/mayfly/internal/sql"
	"github.com/mayflydb/mayfly/internal/sql/datum"
	"github.com/mayflydb/mayfly/internal/sql/function"
	"github.com/mayflydb/mayfly/internal/sql/syntax"
	"github.com/mayflydb/mayfly/internal/value"
)

var planParams = map[string]datum.Value{
	"@n": datum.Int(7), "@neg": datum.Int(-1), "@terms": datum.Raw([]byte(`["a","b"]`)), "@v": datum.Raw([]byte(`[1,2]`)), "@k": datum.Str("k"),
}

// allFeatures is everything that a plan can ask for.
const allFeatures = FeatureWeightedRankFusion<<1 - 1

func planOf(t *testing.T, text string, o Options) (*Plan, error) {
	t.Helper()
	q, err := syntax.Parse(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	program, err := sql.Compile(q, sql.CompileOptions{
		Params:  planParams,
		Vectors: []sql.Vector{{Path: value.Path{"e"}, Metric: function.MetricEuclidean}},
	})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return New(program, o)
}

// filter stands for the client's filter in expected texts.
const filter = "({documentdb-formattableorderbyquery-filter})"

// planCases are queries on a container with the partition key /key, the fields
// of their plans that are not the default, and the rewritten queries.
var planCases = []struct{ in, fields, rewritten string }{
	{`SELECT * FROM c`, ``, ``},
	{`SELECT VALUE c.a FROM c WHERE c.b > 1`, `value`, ``},
	{`SELECT TOP 3 1`, ``, ``},
	{`SELECT TOP 3 * FROM c`, `top=3`, ``},
	{`SELECT TOP @n * FROM c`, `top=7`, ``},
	{`SELECT TOP 3 * FROM c WHERE c.key = 1`, `top=3`, ``},
	{`SELECT * FROM c OFFSET 2 LIMIT 3`, `offset=2 limit=3`, "SELECT *\nFROM c\nOFFSET 0 LIMIT 5"},
	{`SELECT * FROM c OFFSET @n LIMIT @n`, `offset=7 limit=7`, "SELECT *\nFROM c\nOFFSET 0 LIMIT 14"},
	{`SELECT * FROM c OFFSET 4294967295 LIMIT 4294967295`, `offset=4294967295 limit=4294967295`,
		"SELECT *\nFROM c\nOFFSET 0 LIMIT 4294967295"},
	{`SELECT * FROM c WHERE c.key = 1 OFFSET 2 LIMIT 3`, ``, ``},
	{`SELECT * FROM c WHERE c.key IN (1, 2) OFFSET 2 LIMIT 3`, `offset=2 limit=3`,
		"SELECT *\nFROM c\nWHERE (c.key IN (1, 2))\nOFFSET 0 LIMIT 5"},

	{`SELECT DISTINCT c.a FROM c`, `distinct=Unordered`, ``},
	{`SELECT DISTINCT TOP 2 VALUE c.a FROM c`, `distinct=Unordered top=2 value`, "SELECT DISTINCT VALUE c.a\nFROM c"},
	{`SELECT DISTINCT * FROM c WHERE c.key = 1 OFFSET 1 LIMIT 2`, `distinct=Unordered offset=1 limit=2`,
		"SELECT DISTINCT *\nFROM c\nWHERE (c.key = 1)"},
	{`SELECT DISTINCT TOP 2 VALUE c.a FROM c ORDER BY c.a`, `distinct=Ordered top=2 order=Ascending:c.a value`,
		"SELECT c._rid, [{\"item\": c.a}] AS orderByItems, c.a AS payload\nFROM c\nWHERE (" + filter + " AND IS_DEFINED(c.a))\nORDER BY c.a"},
	{`SELECT DISTINCT c.a FROM c ORDER BY c.a, c.b`, `distinct=Ordered order=Ascending:c.a,Ascending:c.b`,
		"SELECT c._rid, [{\"item\": c.a}, {\"item\": c.b}] AS orderByItems, {\"a\": c.a} AS payload\nFROM c\nWHERE " + filter + "\nORDER BY c.a, c.b"},
	{`SELECT DISTINCT c.b FROM c ORDER BY c.a, c.b`, `distinct=Unordered order=Ascending:c.a,Ascending:c.b`,
		"SELECT c._rid, [{\"item\": c.a}, {\"item\": c.b}] AS orderByItems, {\"b\": c.b} AS payload\nFROM c\nWHERE " + filter + "\nORDER BY c.a, c.b"},

	{`SELECT * FROM Root r ORDER BY r.x`, `order=Ascending:r.x`,
		"SELECT r._rid, [{\"item\": r.x}] AS orderByItems, r AS payload\nFROM Root AS r\nWHERE " + filter + "\nORDER BY r.x"},
	{`SELECT TOP @n c.a, c["b"], 1 FROM c WHERE c.p OR c.q ORDER BY c.x DESC, c.y ASC`,
		`top=7 order=Descending:c.x,Ascending:c.y`,
		"SELECT TOP 7 c._rid, [{\"item\": c.x}, {\"item\": c.y}] AS orderByItems, {\"a\": c.a, \"b\": c[\"b\"], \"$1\": 1} AS payload\n" +
			"FROM c\nWHERE ((c.p OR c.q) AND " + filter + ")\nORDER BY c.x DESC, c.y ASC"},
	{`SELECT VALUE c.a FROM c WHERE c.p = 'x' ORDER BY c.x OFFSET 1 LIMIT 2`, `offset=1 limit=2 order=Ascending:c.x value`,
		"SELECT c._rid, [{\"item\": c.x}] AS orderByItems, c.a AS payload\nFROM c\n" +
			"WHERE (((c.p = \"x\") AND " + filter + ") AND IS_DEFINED(c.a))\nORDER BY c.x\nOFFSET 0 LIMIT 3"},
	{`SELECT VALUE x FROM c JOIN x IN c.list ORDER BY c.x`, `order=Ascending:c.x value`,
		"SELECT c._rid, [{\"item\": c.x}] AS orderByItems, x AS payload\nFROM c\nJOIN x IN c.list\nWHERE (" + filter + " AND IS_DEFINED(x))\nORDER BY c.x"},
	{`SELECT VALUE s FROM (SELECT * FROM c WHERE c.p) s ORDER BY s["id"] OFFSET 1 LIMIT 2`, `offset=1 limit=2 order=Ascending:s["id"] value`,
		"SELECT item._rid, [{\"item\": s[\"id\"]}] AS orderByItems, s AS payload\nFROM root AS item\nJOIN (\n    SELECT *\n    FROM item AS c\n    WHERE c.p\n) AS s\n" +
			"WHERE (" + filter + " AND IS_DEFINED(s))\nORDER BY s[\"id\"]\nOFFSET 0 LIMIT 3"},
	{`SELECT r.F AS item FROM (SELECT t.g AS F FROM (SELECT VALUE {"g": x.a} FROM c.part AS x) AS t) r WHERE r.F > 1 ORDER BY r.F DESC`, `order=Descending:r.F`,
		"SELECT item_._rid, [{\"item\": r.F}] AS orderByItems, {\"item\": r.F} AS payload\nFROM root AS item_\n" +
			"JOIN (\n    SELECT t.g AS F\n    FROM (\n        SELECT VALUE {\"g\": x.a}\n        FROM item_.part AS x\n    ) AS t\n) AS r\n" +
			"WHERE ((r.F > 1) AND " + filter + ")\nORDER BY r.F DESC"},
	{`SELECT TOP 2 * FROM c ORDER BY VectorDistance(c.v, @v)`, `top=2 order=Descending:VectorDistance(c.v, @v) nonstreaming`,
		"SELECT TOP 2 c._rid, [{\"item\": VectorDistance(c.v, @v)}] AS orderByItems, c AS payload\nFROM c\nWHERE " + filter + "\nORDER BY VectorDistance(c.v, @v)"},
	{`SELECT TOP 2 * FROM c ORDER BY VectorDistance(c.e, @v)`, `top=2 order=Ascending:VectorDistance(c.e, @v) nonstreaming`,
		"SELECT TOP 2 c._rid, [{\"item\": VectorDistance(c.e, @v)}] AS orderByItems, c AS payload\nFROM c\nWHERE " + filter + "\nORDER BY VectorDistance(c.e, @v)"},
	{`SELECT TOP 2 * FROM c ORDER BY VectorDistance(c.v, @v, false, {distanceFunction: 'Euclidean'})`,
		`top=2 order=Ascending:VectorDistance(c.v, @v, false, {"distanceFunction": "Euclidean"}) nonstreaming`,
		"SELECT TOP 2 c._rid, [{\"item\": VectorDistance(c.v, @v, false, {\"distanceFunction\": \"Euclidean\"})}] AS orderByItems, c AS payload\n" +
			"FROM c\nWHERE " + filter + "\nORDER BY VectorDistance(c.v, @v, false, {\"distanceFunction\": \"Euclidean\"})"},

	{`SELECT VALUE COUNT(1) FROM c`, `aggregates=Count value`, "SELECT VALUE [{\"item\": COUNT(1)}]\nFROM c"},
	{`SELECT TOP 1 VALUE Sum(c.a + 1) FROM c WHERE c.key = 5`, `top=1 aggregates=Sum value`,
		"SELECT VALUE [{\"item\": Sum((c.a + 1))}]\nFROM c\nWHERE (c.key = 5)"},
	{`SELECT VALUE AVG(c.a) FROM c OFFSET 0 LIMIT 1`, `offset=0 limit=1 aggregates=Average value`,
		"SELECT VALUE [{\"item\": {\"sum\": SUM(c.a), \"count\": COUNT(c.a)}}]\nFROM c"},
	{`SELECT VALUE MIN(c.a) FROM c`, `aggregates=Min value`,
		"SELECT VALUE [{\"item\": MIN(c.a), \"item2\": {\"min\": MIN(c.a), \"count\": COUNT(c.a)}}]\nFROM c"},
	{`SELECT VALUE MAX(c.a) FROM c`, `aggregates=Max value`,
		"SELECT VALUE [{\"item\": MAX(c.a), \"item2\": {\"max\": MAX(c.a), \"count\": COUNT(c.a)}}]\nFROM c"},
	{`SELECT VALUE MAKESET(c.a) FROM c`, `aggregates=MakeSet value`, "SELECT VALUE [{\"item\": MAKESET(c.a)}]\nFROM c"},
	{`SELECT COUNTIF(c.a), MAKELIST(c.b) AS l FROM c`, `aliases=$1:CountIf,l:MakeList`,
		"SELECT {\"$1\": {\"item\": COUNTIF(c.a)}, \"l\": {\"item\": MAKELIST(c.b)}} AS payload\nFROM c"},
	{`SELECT VALUE c.a FROM c GROUP BY c.a`, `groups=c.a value`,
		"SELECT [{\"item\": c.a}] AS groupByItems, c.a AS payload\nFROM c\nGROUP BY c.a"},
	{`SELECT VALUE AVG(c.b) FROM c GROUP BY c.a`, `groups=c.a aggregates=Average value`,
		"SELECT [{\"item\": c.a}] AS groupByItems, [{\"item\": {\"sum\": SUM(c.b), \"count\": COUNT(c.b)}}] AS payload\nFROM c\nGROUP BY c.a"},
	{`SELECT TOP 4 c.a, COUNT(1) n, UPPER(c.b) FROM c WHERE c.w GROUP BY c.a, UPPER(c.b)`,
		`top=4 groups=c.a|UPPER(c.b) aliases=a:,n:Count,$1:`,
		"SELECT [{\"item\": c.a}, {\"item\": UPPER(c.b)}] AS groupByItems, {\"a\": c.a, \"n\": {\"item\": COUNT(1)}, \"$1\": UPPER(c.b)} AS payload\n" +
			"FROM c\nWHERE c.w\nGROUP BY c.a, UPPER(c.b)"},
	{`SELECT TOP 4 c.a, COUNT(1) n FROM c WHERE c.w GROUP BY c.a, c.b ORDER BY c.b DESC, c.a`,
		`top=4 order=Descending:c.b,Ascending:c.a groups=c.a|c.b aliases=a:,n:Count`,
		"SELECT MIN(c._rid) AS _rid, [{\"item\": c.b}, {\"item\": c.a}] AS orderByItems, " +
			"{\"groupByItems\": [{\"item\": c.a}, {\"item\": c.b}], \"payload\": {\"a\": c.a, \"n\": {\"item\": COUNT(1)}}} AS payload\n" +
			"FROM c\nWHERE (c.w AND " + filter + ")\nGROUP BY c.a, c.b\nORDER BY c.b DESC, c.a"},
	{`SELECT VALUE c.a FROM c GROUP BY c.a ORDER BY c.a`, `order=Ascending:c.a groups=c.a value`,
		"SELECT MIN(c._rid) AS _rid, [{\"item\": c.a}] AS orderByItems, {\"groupByItems\": [{\"item\": c.a}], \"payload\": c.a} AS payload\n" +
			"FROM c\nWHERE " + filter + "\nGROUP BY c.a\nORDER BY c.a"},
	{`SELECT VALUE (SELECT VALUE COUNT(1) FROM x IN c.list) FROM c`, `value`, ``},

	{`SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.a FROM c) s`, `distinct=Unordered value dcount=`,
		"SELECT DISTINCT VALUE c.a\nFROM c"},
	{`SELECT COUNT(1) AS n FROM (SELECT DISTINCT c.a FROM c WHERE c.b) s`, `distinct=Unordered dcount=n`,
		"SELECT DISTINCT c.a\nFROM c\nWHERE c.b"},
	{`SELECT VALUE COUNT(s) FROM (SELECT VALUE c.a FROM c) s`, `aggregates=Count value`,
		"SELECT VALUE [{\"item\": COUNT(s)}]\nFROM (\n    SELECT VALUE c.a\n    FROM c\n) AS s"},
}

func TestPlans(t *testing.T) {
	for _, c := range planCases {
		plan, err := planOf(t, c.in, Options{Features: allFeatures, PartitionKey: []value.Path{{"key"}}})
		if err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		if got := describe(plan.Query); got != c.fields {
			t.Errorf("%s:\n got %s\nwant %s", c.in, got, c.fields)
		}
		if got := plan.Query.Rewritten; got != c.rewritten {
			t.Errorf("%s is rewritten as\n%s\nwant\n%s", c.in, got, c.rewritten)
		}
	}
}

// describe lists the fields of a plan that are not the default.
func describe(i *QueryInfo) string {
	var fields []string
	add := func(format string, args ...any) { fields = append(fields, fmt.Sprintf(format, args...)) }
	if i.Distinct != DistinctNone {
		add("distinct=%s", i.Distinct)
	}
	for _, n := range []struct {
		name  string
		count *int64
	}{{"top", i.Top}, {"offset", i.Offset}, {"limit", i.Limit}} {
		if n.count != nil {
			add("%s=%d", n.name, *n.count)
		}
	}
	var orders []string
	for n, order := range i.OrderBy {
		orders = append(orders, string(order)+":"+i.OrderByExpressions[n])
	}
	if orders != nil {
		add("order=%s", strings.Join(orders, ","))
	}
	if i.GroupByExpressions != nil {
		add("groups=%s", strings.Join(i.GroupByExpressions, "|"))
	}
	if i.Aggregates != nil {
		add("aggregates=%s", strings.Join(i.Aggregates, ","))
	}
	var aliases []string
	for n, a := range i.AliasAggregates {
		aliases = append(aliases, i.GroupByAliases[n]+":"+a.Aggregate)
	}
	if aliases != nil {
		add("aliases=%s", strings.Join(aliases, ","))
	}
	if i.SelectValue {
		add("value")
	}
	if i.NonStreamingOrderBy {
		add("nonstreaming")
	}
	if i.DistinctCount {
		add("dcount=%s", i.DistinctCountedAlias)
	}
	return strings.Join(fields, " ")
}

func TestPlanErrors(t *testing.T) {
	for _, in := range []string{`SELECT MIN(c.a) / 2 FROM c`, `SELECT VALUE {n: COUNT(1)} FROM c`} {
		_, err := planOf(t, in, Options{Features: allFeatures})
		var e *syntax.Error
		if !errors.As(err, &e) || e.Code != "" || e.Message != "Compositions of aggregates and other expressions are not allowed." {
			t.Errorf("%s: error %v", in, err)
		}
	}
	const unsupported = "Query contains the following features, which the calling client does not support: "
	for _, c := range []struct {
		in       string
		features FeatureSet
		message  string
	}{
		{`SELECT COUNT(1) FROM c`, allFeatures &^ FeatureNonValueAggregate, unsupported + "NonValueAggregate"},
		{`SELECT TOP 1 c.a, COUNT(1), MAX(c.b) FROM c GROUP BY c.a`, 0, unsupported + "MultipleAggregates, GroupBy, Top"},
		{`SELECT VALUE COUNTIF(c.a) FROM c`, FeatureAggregate, unsupported + "CountIf"},
		{`SELECT DISTINCT c.a FROM c OFFSET 0 LIMIT 1`, 0, unsupported + "Distinct, OffsetAndLimit"},
		{`SELECT * FROM c ORDER BY c.a, c.b`, FeatureOrderBy, unsupported + "MultipleOrderBy"},
		{`SELECT * FROM c ORDER BY VectorDistance(c.v, @v)`, FeatureOrderBy, unsupported + "NonStreamingOrderBy"},
		{`SELECT * FROM c ORDER BY RANK RRF(FullTextScore(c.a, 'x'), FullTextScore(c.b, 'y'), [1, 2])`, 0,
			unsupported + "HybridSearch, WeightedRankFusion"},
	} {
		_, err := planOf(t, c.in, Options{Features: c.features})
		var e *FeatureError
		if !errors.As(err, &e) || e.Error() != c.message {
			t.Errorf("%s: error %v, want %s", c.in, err, c.message)
		}
	}
}

// TestPlanWithoutDistinctCount checks that clients which cannot count distinct
// rows get a plan all the same.
func TestPlanWithoutDistinctCount(t *testing.T) {
	plan, err := planOf(t, `SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.a FROM c) s`,
		Options{Features: allFeatures &^ FeatureDCount})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := describe(plan.Query), "aggregates=Count value"; got != want {
		t.Errorf("plan %s, want %s", got, want)
	}
}

func TestFeatures(t *testing.T) {
	got := ParseFeatures("Aggregate,Distinct , orderby, CompositeAggregate,,None")
	if want := FeatureAggregate | FeatureDistinct | FeatureOrderBy; got != want {
		t.Errorf("features %v, want %v", got, want)
	}
	if again := ParseFeatures(allFeatures.String()); again != allFeatures {
		t.Errorf("all features are read as %v", again)
	}
}

func TestNeeded(t *testing.T) {
	for in, want := range map[string]bool{
		`SELECT * FROM c`:                         false,
		`SELECT TOP 1 1`:                          false,
		`SELECT COUNT(1)`:                         false,
		`SELECT (SELECT COUNT(1)) FROM c`:         false,
		`SELECT TOP 1 * FROM c`:                   true,
		`SELECT * FROM c OFFSET 0 LIMIT 1`:        true,
		`SELECT DISTINCT c.a FROM c`:              true,
		`SELECT * FROM c ORDER BY c.a`:            true,
		`SELECT c.a FROM c GROUP BY c.a`:          true,
		`SELECT MAX(c.a) FROM c`:                  true,
		`SELECT * FROM c ORDER BY RANK F(c.a, 1)`: true,
	} {
		q, err := syntax.Parse(in)
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		if got := Needed(q); got != want {
			t.Errorf("%s: %v, want %v", in, got, want)
		}
	}
}

// TestHybridPlan checks the queries that rank by several scores, as a client
// sends them first.
func TestHybridPlan(t *testing.T) {
	plan, err := planOf(t, `SELECT TOP 10 c.name FROM c WHERE c.x > 1 `+
		`ORDER BY RANK RRF(FullTextScore(c.a, 'p', @k), VectorDistance(c.v, @v), FullTextScore(c.b, @terms), [1, -2, 0.5])`,
		Options{Features: allFeatures})
	if err != nil {
		t.Fatal(err)
	}
	h := plan.Hybrid
	wantStatistics := `SELECT COUNT(1) AS documentCount, [` +
		`{"totalWordCount": SUM(_FullTextWordCount(c.a)), "hitCounts": [COUNTIF(FullTextContains(c.a, "p")), COUNTIF(FullTextContains(c.a, @k))]}, ` +
		`{"totalWordCount": SUM(_FullTextWordCount(c.b)), "hitCounts": [COUNTIF(FullTextContains(c.b, "a")), COUNTIF(FullTextContains(c.b, "b"))]}` +
		"] AS fullTextStatistics\nFROM c"
	if h.Statistics != wantStatistics {
		t.Errorf("statistics\n%s\nwant\n%s", h.Statistics, wantStatistics)
	}
	if h.Skip != nil || *h.Take != 10 || fmt.Sprint(h.Weights) != "[1 -2 0.5]" {
		t.Errorf("skip %v, take %v, weights %v", h.Skip, *h.Take, h.Weights)
	}
	// To the Java SDK a weight without a point is no number of its kind.
	if js, want := string(plan.AppendJSON(nil, nil)), `,"componentWeights":[1.0,-2.0,0.5],`; !strings.Contains(js, want) {
		t.Errorf("plan\n%s\nis without\n%s", js, want)
	}
	a := `_FullTextScore(c.a, ["p", @k], 10, 100, [1])`
	v := `_VectorScore(c.v, @v)`
	b := `_FullTextScore(c.b, ["a", "b"], 10, 100, [1])`
	for i, c := range []struct{ key, order string }{{a, a + " DESC"}, {"(- (" + v + " ?? -1))", v + " ASC"}, {b, b + " DESC"}} {
		want := `SELECT TOP 120 c._rid, [{"item": ` + c.key + `}] AS orderByItems, ` +
			`{"payload": {"name": c.name}, "componentScores": [(` + a + ` ?? -1), (` + v + ` ?? -1), (` + b + ` ?? -1)]} AS payload` +
			"\nFROM c\nWHERE ((c.x > 1) AND (true))\nORDER BY " + c.order
		if got := fillPlaceholders(h.Components[i].Rewritten); got != want {
			t.Errorf("component %d\n%s\nwant\n%s", i, got, want)
		}
		if got := h.Components[i].OrderBy; len(got) != 1 || got[0] != Descending {
			t.Errorf("component %d is ranked %v", i, got)
		}
	}
	for _, text := range plan.rewritten() {
		q, err := syntax.Parse(fillPlaceholders(text))
		if err == nil {
			_, err = sql.Compile(q, sql.CompileOptions{Params: planParams})
		}
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestHybridPlanOfOneScore(t *testing.T) {
	plan, err := planOf(t, `SELECT VALUE c FROM c ORDER BY RANK VectorDistance(c.v, @v) OFFSET 3 LIMIT 4`,
		Options{Features: allFeatures})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"partitionedQueryExecutionInfoVersion":2,"hybridSearchQueryInfo":{"globalStatisticsQuery":"","componentQueryInfos":[` +
		`{"distinctType":"None","top":null,"offset":0,"limit":14,"orderBy":["Descending"],"orderByExpressions":["_VectorScore(c.v, @v)"],` +
		`"groupByExpressions":[],"groupByAliases":[],"aggregates":[],"groupByAliasToAggregateType":{},` +
		`"rewrittenQuery":"SELECT c._rid, [{\"item\": _VectorScore(c.v, @v)}] AS orderByItems, {\"payload\": c, \"componentScores\": [(_VectorScore(c.v, @v) ?? -1)]} AS payload` +
		`\nFROM c\nWHERE (({documentdb-formattableorderbyquery-filter}) AND IS_DEFINED(c))\nORDER BY _VectorScore(c.v, @v) DESC\nOFFSET 0 LIMIT 14",` +
		`"hasSelectValue":true,"hasNonStreamingOrderBy":true,"dCountInfo":null}],"skip":3,"take":4,"requiresGlobalStatistics":false},"queryRanges":[]}`
	if got := string(plan.AppendJSON(nil, nil)); got != want {
		t.Errorf("plan\n%s\nwant\n%s", got, want)
	}
}

func TestPlanJSON(t *testing.T) {
	plan, err := planOf(t, `SELECT TOP 5 c.a, COUNT(1) AS "n\"" FROM c GROUP BY c.a`, Options{Features: allFeatures})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"partitionedQueryExecutionInfoVersion":2,"queryInfo":{"distinctType":"None","top":5,"offset":null,"limit":null,` +
		`"orderBy":[],"orderByExpressions":[],"groupByExpressions":["c.a"],"groupByAliases":["a","n\""],"aggregates":[],` +
		`"groupByAliasToAggregateType":{"a":null,"n\"":"Count"},` +
		`"rewrittenQuery":"SELECT [{\"item\": c.a}] AS groupByItems, {\"a\": c.a, \"n\\\"\": {\"item\": COUNT(1)}} AS payload\nFROM c\nGROUP BY c.a",` +
		`"hasSelectValue":false,"hasNonStreamingOrderBy":false,"dCountInfo":null},` +
		`"queryRanges":[{"min":"","max":"FF","isMinInclusive":true,"isMaxInclusive":false}]}`
	if got := string(plan.AppendJSON(nil, []Range{{Min: "", Max: "FF", MinInclusive: true}})); got != want {
		t.Errorf("plan\n%s\nwant\n%s", got, want)
	}
}

// TestScopeKeys checks the partition keys that filters leave, with the paths /a
// and /b/c.
func TestScopeKeys(t *testing.T) {
	paths := []value.Path{{"a"}, {"b", "c"}}
	for _, c := range []struct{ in, want string }{
		{`SELECT 1`, ``},
		{`SELECT * FROM c`, `all`},
		{`SELECT * FROM c WHERE c.a = 1`, `[1]`},
		{`SELECT * FROM c WHERE @k = c["a"]`, `["k"]`},
		{`SELECT * FROM c WHERE c.a = 1 AND c.b.c = 'x'`, `[1,"x"]`},
		{`SELECT * FROM c WHERE c.b.c = 'x'`, `all`},
		{`SELECT * FROM c WHERE c.a IN (1, 2) AND c.b.c IN ('x', 'y') AND c.d > 5`, `[1,"x"] [1,"y"] [2,"x"] [2,"y"]`},
		{`SELECT * FROM c WHERE c.a = 1 OR c.a = 2`, `[1] [2]`},
		{`SELECT * FROM c WHERE c.a = 1 OR c.d = 2`, `all`},
		{`SELECT * FROM c WHERE (c.a = 1 AND c.b.c = 2) OR c.a = 1`, `[1]`},
		{`SELECT * FROM c WHERE c.a = 1 AND c.a = 2`, ``},
		{`SELECT * FROM c WHERE c.a IN (1, 2, 3) AND c.a IN (3, 2, 4)`, `[2] [3]`},
		{`SELECT * FROM c WHERE false`, ``},
		{`SELECT * FROM c WHERE c.a = 1 AND true`, `[1]`},
		{`SELECT * FROM c WHERE IS_NULL(c.a)`, `[null]`},
		{`SELECT * FROM c WHERE IS_BOOL(c.a)`, `[false] [true]`},
		{`SELECT * FROM c WHERE NOT IS_DEFINED(c.a)`, `[{}]`},
		{`SELECT * FROM c WHERE c.a = CONCAT('x', 'y')`, `["xy"]`},
		{`SELECT * FROM c WHERE c.a > 1`, `all`},
		{`SELECT * FROM c WHERE c.a != 1`, `all`},
		{`SELECT * FROM c WHERE c.a NOT IN (1)`, `all`},
		{`SELECT * FROM c WHERE c.a = c.d`, `all`},
		{`SELECT * FROM c WHERE c.a = []`, `all`},
		{`SELECT * FROM c WHERE c.a = NaN`, `all`},
		{`SELECT * FROM c.a WHERE a = 1`, `[1]`},
		{`SELECT * FROM c.x WHERE x.a = 1`, `all`},
		{`SELECT * FROM a IN c.a WHERE a = 1`, `all`},
		{`SELECT VALUE x FROM c JOIN x IN c.list WHERE c.a = 1 AND x = 2`, `[1]`},
		{`SELECT * FROM (SELECT DISTINCT c.d FROM c WHERE c.a = 1) s WHERE s.d = 2`, `[1]`},
	} {
		plan, err := planOf(t, c.in, Options{Features: allFeatures, PartitionKey: paths})
		if err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		if got := scopeText(plan.Keys); got != c.want {
			t.Errorf("%s: keys %s, want %s", c.in, got, c.want)
		}
	}
}

func scopeText(s KeyScope) string {
	if s.All {
		return "all"
	}
	var keys []string
	for _, k := range s.Keys {
		keys = append(keys, k.String())
	}
	return strings.Join(keys, " ")
}

// TestScopeKeysIsSound makes filters at random and checks that no item passes
// one whose partition key is out of the filter's scope.
func TestScopeKeysIsSound(t *testing.T) {
	values := []string{`undefined`, `null`, `true`, `false`, `1`, `2`, `"x"`}
	atom := rapid.Custom(func(t *rapid.T) string {
		path := rapid.SampledFrom([]string{"c.a", "c.b.c", "c.d"}).Draw(t, "path")
		constant := rapid.SampledFrom(values)
		switch rapid.IntRange(0, 5).Draw(t, "kind") {
		case 0:
			return path
		case 1:
			return "IS_DEFINED(" + path + ")"
		case 2:
			return "IS_BOOL(" + path + ")"
		case 3:
			return path + " IN (" + strings.Join(rapid.SliceOfN(constant, 1, 3).Draw(t, "list"), ",") + ")"
		}
		op := rapid.SampledFrom([]string{"=", "!=", "<="}).Draw(t, "op")
		return path + op + constant.Draw(t, "constant")
	})
	var condition func(depth int) *rapid.Generator[string]
	condition = func(depth int) *rapid.Generator[string] {
		return rapid.Custom(func(t *rapid.T) string {
			if depth == 0 || rapid.Bool().Draw(t, "leaf") {
				return "(" + atom.Draw(t, "atom") + ")"
			}
			x, y := condition(depth-1).Draw(t, "x"), condition(depth-1).Draw(t, "y")
			op := rapid.SampledFrom([]string{" AND ", " OR ", " AND NOT "}).Draw(t, "op")
			return "(" + x + op + y + ")"
		})
	}
	paths := []value.Path{{"a"}, {"b", "c"}}
	rapid.Check(t, func(t *rapid.T) {
		text := "SELECT * FROM c WHERE " + condition(3).Draw(t, "filter")
		q, err := syntax.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		program, err := sql.Compile(q, sql.CompileOptions{})
		if err != nil {
			t.Fatal(err)
		}
		scope := ScopeKeys(program, paths)
		runner := program.NewRunner(&function.Context{})
		for _, a := range values {
			for _, b := range values {
				item, key := keyedItem(t, a, b)
				passes, err := runner.Filter(item)
				if err != nil {
					t.Fatal(err)
				}
				if passes && !scope.holds(key) {
					t.Fatalf("%s: an item with the key %s passes, the scope is %s", text, key, scopeText(scope))
				}
			}
		}
	})
}

// keyedItem makes an item of the values of its partition key.
func keyedItem(t *rapid.T, a, b string) (item datum.Value, key value.PartitionKey) {
	var props []string
	if a != "undefined" {
		props = append(props, `"a":`+a)
	}
	if b != "undefined" {
		props = append(props, `"b":{"c":`+b+`}`)
	}
	header := strings.ReplaceAll("["+a+","+b+"]", "undefined", "{}")
	key, err := value.ParsePartitionKey(header)
	if err != nil {
		t.Fatal(err)
	}
	return datum.Raw([]byte("{" + strings.Join(props, ",") + "}")), key
}

// holds reports whether a key, or a prefix of it, is in the scope.
func (s KeyScope) holds(key value.PartitionKey) bool {
	for _, k := range s.Keys {
		if key[:len(k)].Equal(k) {
			return true
		}
	}
	return s.All
}

// A computed property may have the name of the partition key; what is said of it does
// not say where items are.
func TestComputedPartitionKey(t *testing.T) {
	definition, err := syntax.Parse("SELECT VALUE c.n FROM c")
	if err != nil {
		t.Fatal(err)
	}
	q, err := syntax.Parse("SELECT * FROM c WHERE c.pk = 1")
	if err != nil {
		t.Fatal(err)
	}
	for name, all := range map[string]bool{"pk": true, "other": false} {
		p, err := sql.Compile(q, sql.CompileOptions{Computed: []sql.Computed{{Name: name, Query: definition}}})
		if err != nil {
			t.Fatal(err)
		}
		if scope := ScopeKeys(p, []value.Path{{"pk"}}); scope.All != all {
			t.Errorf("with the computed property %s: all is %v", name, scope.All)
		}
	}
}
