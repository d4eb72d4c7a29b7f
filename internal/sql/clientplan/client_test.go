// SPDX-License-Identifier: MIT

package clientplan

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mayflydb/mayfly/internal/oracle"
	"github.com/mayflydb/mayfly/internal/sql"
	"github.com/mayflydb/mayfly/internal/sql/datum"
	"github.com/mayflydb/mayfly/internal/sql/function"
	"github.com/mayflydb/mayfly/internal/sql/syntax"
)

// TestClientsMergeToTheSameAnswer runs plans as a client does, over items in
// two ranges, and compares with the query over all items in one.
func TestClientsMergeToTheSameAnswer(t *testing.T) {
	queries := []string{
		`SELECT * FROM c ORDER BY c.a, c.n`,
		`SELECT TOP 3 c.n, c.b FROM c WHERE IS_DEFINED(c.b) ORDER BY c.n DESC`,
		`SELECT VALUE c.a FROM c ORDER BY c.b DESC, c.n`,
		`SELECT c.n FROM c ORDER BY c.a DESC, c.n DESC OFFSET 2 LIMIT 4`,
		`SELECT VALUE {n: c.n, x: x} FROM c JOIN x IN c.list ORDER BY c.n`,
		`SELECT DISTINCT VALUE c.a FROM c ORDER BY c.a`,
		`SELECT DISTINCT TOP 2 c.a FROM c ORDER BY c.a DESC`,
		`SELECT DISTINCT c.b FROM c ORDER BY c.b OFFSET 1 LIMIT 2`,
		`SELECT DISTINCT c.b FROM c ORDER BY c.a, c.b`,
		`SELECT VALUE COUNT(1) FROM c`,
		`SELECT VALUE COUNT(c.a) FROM c WHERE c.n > 3`,
		`SELECT VALUE SUM(c.a) FROM c`,
		`SELECT VALUE AVG(c.n) FROM c WHERE c.b = 1`,
		`SELECT VALUE MIN(c.a) FROM c`,
		`SELECT VALUE MAX(c.n) FROM c WHERE c.n > 5`,
		`SELECT VALUE COUNTIF(c.a = 1) FROM c`,
		`SELECT COUNT(1), SUM(c.n) AS s, AVG(c.n) m, MIN(c.a), MAX(c.b) x FROM c`,
		`SELECT c.a, COUNT(1) AS n, AVG(c.n) FROM c GROUP BY c.a ORDER BY c.a`,
		`SELECT TOP 3 c.b, c.a, MAX(c.n) FROM c WHERE c.n > 1 GROUP BY c.a, c.b ORDER BY c.b DESC, c.a`,
		`SELECT VALUE c.b FROM c GROUP BY c.b ORDER BY c.b DESC OFFSET 1 LIMIT 2`,
		`SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.a FROM c) s`,
		`SELECT COUNT(1) AS n FROM (SELECT DISTINCT c.a, c.b FROM c) s`,
	}
	unordered := []string{
		`SELECT c.n FROM c WHERE c.a = 1`,
		`SELECT DISTINCT c.a, c.b FROM c`,
		`SELECT DISTINCT VALUE c.a FROM c`,
		`SELECT VALUE c.a FROM c GROUP BY c.a`,
		`SELECT c.a, COUNT(1) AS n, MAX(c.n) AS x, AVG(c.n) FROM c GROUP BY c.a`,
		`SELECT c.a, c.b, SUM(c.n) s FROM c WHERE c.n != 2 GROUP BY c.a, c.b`,
		`SELECT VALUE MIN(c.n) FROM c GROUP BY c.b`,
	}
	rapid.Check(t, func(t *rapid.T) {
		var all [][]byte
		var ranges [2][][]byte
		for n := range rapid.IntRange(0, 9).Draw(t, "items") {
			item := drawItem(t, n)
			all = append(all, item)
			at := rapid.IntRange(0, 1).Draw(t, "range")
			ranges[at] = append(ranges[at], item)
		}
		for _, text := range queries {
			compareAnswers(t, text, direct(t, text, all), merge(t, text, ranges[:]))
			compareAnswers(t, text, direct(t, text, all), mergeHere(t, text, ranges[:]))
		}
		for _, text := range unordered {
			want, got, here := direct(t, text, all), merge(t, text, ranges[:]), mergeHere(t, text, ranges[:])
			slices.Sort(want)
			slices.Sort(got)
			slices.Sort(here)
			compareAnswers(t, text, want, got)
			compareAnswers(t, text, want, here)
		}
	})
}

func drawItem(t *rapid.T, n int) []byte {
	values := rapid.SampledFrom([]string{"", "null", "false", "1", "2", `"x"`, "[1]"})
	item := fmt.Sprintf(`{"id":"%d","_rid":"r%d","n":%d,"list":[1,2]`, n, n, n)
	for _, name := range []string{"a", "b"} {
		if v := values.Draw(t, name); v != "" {
			item += fmt.Sprintf(`,"%s":%s`, name, v)
		}
	}
	return []byte(item + "}")
}

func compareAnswers(t *rapid.T, text string, want, got []string) {
	if !slices.Equal(want, got) {
		t.Fatalf("%s\n merged %v\n direct %v", text, got, want)
	}
}

func compiled(t *rapid.T, text string) *sql.Program {
	q, err := syntax.Parse(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	p, err := sql.Compile(q, sql.CompileOptions{})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return p
}

// direct is the answer of the oracle over all items.
func direct(t *rapid.T, text string, items [][]byte) []string {
	q, err := syntax.Parse(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	var values []datum.Value
	for _, item := range items {
		values = append(values, datum.Raw(item))
	}
	rows, err := oracle.Rows(q, values, &function.Context{})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	var canonical []string
	for _, row := range rows {
		canonical = append(canonical, string(row.AppendCanonical(nil)))
	}
	return canonical
}

// answer runs a query and returns its rows in canonical form.
func answer(t *rapid.T, text string, items [][]byte) []string {
	rows, err := sql.Evaluate(compiled(t, text), items, &function.Context{})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	var canonical []string
	for _, row := range rows {
		canonical = append(canonical, string(datum.Raw(row).AppendCanonical(nil)))
	}
	return canonical
}

// merge does what a client does with the rows of several ranges.
func merge(t *rapid.T, text string, ranges [][][]byte) []string {
	plan, err := New(compiled(t, text), Options{Features: allFeatures})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	info := plan.Query
	if info.Rewritten != "" {
		text = fillPlaceholders(info.Rewritten)
	}
	var rows []datum.Value
	for _, items := range ranges {
		for _, row := range answer(t, text, items) {
			rows = append(rows, datum.Raw([]byte(row)))
		}
	}
	if info.OrderBy != nil {
		rows = mergeSorted(info, rows)
	}
	if info.Aggregates != nil || info.AliasAggregates != nil || info.GroupByExpressions != nil {
		rows = mergeGroups(t, info, rows)
	}
	if info.Distinct != DistinctNone {
		rows = mergeDistinct(info, rows)
	}
	return mergeSlice(info, rows)
}

// mergeHere is merge by what a server has that does it for its clients.
func mergeHere(t *rapid.T, text string, ranges [][][]byte) []string {
	plan, err := New(compiled(t, text), Options{Features: allFeatures})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	info := plan.Query
	var rows []datum.Value
	for _, items := range ranges {
		for _, row := range answer(t, info.Text(text), items) {
			rows = append(rows, datum.Raw([]byte(row)))
		}
	}
	if info.OrderBy != nil {
		slices.SortStableFunc(rows, func(x, y datum.Value) int { return info.CompareKeys(info.SortKeys(x), info.SortKeys(y)) })
		for i := range rows {
			rows[i] = Payload(rows[i])
		}
	}
	if info.Groups() {
		groups := info.NewGroups()
		for _, row := range rows {
			groups.Add(row)
		}
		rows = slices.Collect(groups.Rows)
	}
	if info.Distinct != DistinctNone {
		rows = mergeDistinct(info, rows)
	}
	if info.DistinctCount {
		rows = []datum.Value{info.Counted(int64(len(rows)))}
	}
	first, last := info.Window()
	rows = rows[min(int(first), len(rows)):]
	if last >= 0 {
		rows = rows[:min(int(last-first), len(rows))]
	}
	var texts []string
	for _, row := range rows {
		texts = append(texts, string(row.AppendCanonical(nil)))
	}
	return texts
}

func mergeSorted(info *QueryInfo, rows []datum.Value) []datum.Value {
	slices.SortStableFunc(rows, func(x, y datum.Value) int {
		for i, order := range info.OrderBy {
			key := func(row datum.Value) datum.Value { return row.Member("orderByItems").Index(i).Member("item") }
			c := datum.Compare(key(x), key(y))
			if order == Descending {
				c = -c
			}
			if c != 0 {
				return c
			}
		}
		return 0
	})
	for i := range rows {
		rows[i] = rows[i].Member("payload")
	}
	return rows
}

func mergeDistinct(info *QueryInfo, rows []datum.Value) []datum.Value {
	var distinct []datum.Value
	seen := map[string]bool{}
	for _, row := range rows {
		key := string(row.AppendCanonical(nil))
		if info.Distinct == DistinctOrdered && !seen[key] {
			clear(seen)
		}
		if !seen[key] {
			seen[key] = true
			distinct = append(distinct, row)
		}
	}
	return distinct
}

func mergeSlice(info *QueryInfo, rows []datum.Value) []string {
	if info.DistinctCount {
		total := datum.Int(int64(len(rows)))
		if info.DistinctCountedAlias != "" {
			var b datum.ObjectBuilder
			b.Set(info.DistinctCountedAlias, total)
			total = b.Value()
		}
		rows = []datum.Value{total}
	}
	if info.Limit != nil {
		rows = rows[min(int(*info.Offset), len(rows)):]
		rows = rows[:min(int(*info.Limit), len(rows))]
	}
	if info.Top != nil {
		rows = rows[:min(int(*info.Top), len(rows))]
	}
	var texts []string
	for _, row := range rows {
		texts = append(texts, string(row.AppendCanonical(nil)))
	}
	return texts
}

func mergeGroups(t *rapid.T, info *QueryInfo, rows []datum.Value) []datum.Value {
	groups := map[string][]datum.Value{}
	var keys []string
	for _, row := range rows {
		key, payload := "", row
		if info.GroupByExpressions != nil {
			key = string(row.Member("groupByItems").AppendCanonical(nil))
		}
		if info.GroupByExpressions != nil || !info.SelectValue {
			payload = row.Member("payload")
		}
		if _, ok := groups[key]; !ok {
			keys = append(keys, key)
		}
		groups[key] = append(groups[key], payload)
	}
	var merged []datum.Value
	for _, key := range keys {
		if row := mergeGroup(t, info, groups[key]); !row.IsUndefined() {
			merged = append(merged, row)
		}
	}
	return merged
}

func mergeGroup(t *rapid.T, info *QueryInfo, payloads []datum.Value) datum.Value {
	parts := func(of func(datum.Value) datum.Value) []datum.Value {
		var list []datum.Value
		for _, p := range payloads {
			list = append(list, of(p))
		}
		return list
	}
	if info.SelectValue {
		if info.Aggregates == nil {
			return payloads[0]
		}
		return mergeAggregate(t, info.Aggregates[0], parts(func(p datum.Value) datum.Value { return p.Index(0) }))
	}
	var b datum.ObjectBuilder
	for _, a := range info.AliasAggregates {
		values := parts(func(p datum.Value) datum.Value { return p.Member(a.Alias) })
		if a.Aggregate == "" {
			b.Set(a.Alias, values[0])
			continue
		}
		b.Set(a.Alias, mergeAggregate(t, a.Aggregate, values))
	}
	return b.Value()
}

// mergeAggregate puts the parts of an aggregate from several ranges together.
func mergeAggregate(t *rapid.T, name string, parts []datum.Value) datum.Value {
	sum, count := 0.0, 0.0
	var best datum.Value
	for _, part := range parts {
		switch name {
		case "Count", "CountIf", "Sum":
			x, ok := part.Member("item").AsFloat()
			if !ok {
				return datum.Undefined()
			}
			sum += x
		case "Average":
			n, _ := part.Member("item").Member("count").AsFloat()
			x, ok := part.Member("item").Member("sum").AsFloat()
			if !ok {
				return datum.Undefined()
			}
			sum, count = sum+x, count+n
		case "Min", "Max":
			detail := part.Member("item2")
			if n, _ := detail.Member("count").AsFloat(); n == 0 {
				continue
			}
			x := detail.Member(strings.ToLower(name))
			if x.IsUndefined() {
				return x
			}
			if c := datum.Compare(x, best); best.IsUndefined() || c < 0 && name == "Min" || c > 0 && name == "Max" {
				best = x
			}
		default:
			t.Fatalf("aggregate %s", name)
		}
	}
	switch {
	case name == "Min" || name == "Max":
		return best
	case name == "Average" && count == 0:
		return datum.Undefined()
	case name == "Average":
		return datum.Float(sum / count)
	}
	return datum.Float(sum)
}

// TestPlansAreJSON checks that every plan is well formed.
func TestPlansAreJSON(t *testing.T) {
	for _, text := range []string{
		`SELECT * FROM c ORDER BY c.a`,
		`SELECT COUNT(1) AS "\u0001\"" FROM c`,
		`SELECT * FROM c ORDER BY RANK RRF(FullTextScore(c.t, "\\"), FullTextScore(c.u, 'x'), [1, 0.5])`,
	} {
		plan, err := planOf(t, text, Options{Features: allFeatures})
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if js := plan.AppendJSON(nil, []Range{{Max: "FF"}, {Min: "A", Max: "A", MinInclusive: true, MaxInclusive: true}}); !json.Valid(js) {
			t.Errorf("%s: plan %s", text, js)
		}
	}
}
