// SPDX-License-Identifier: MIT

package clientplan

import (
	"slices"
	"testing"

	"github.com/mayflydb/mayfly/internal/sql"
	"github.com/mayflydb/mayfly/internal/sql/function"
	"github.com/mayflydb/mayfly/internal/sql/syntax"
	"github.com/mayflydb/mayfly/internal/value"
)

// compiledPart compiles what a client sends to a range.
func compiledPart(t *testing.T, text string) *sql.Program {
	t.Helper()
	q, err := syntax.Parse(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	p, err := sql.Compile(q, sql.CompileOptions{Params: planParams, Vectors: []sql.Vector{{Path: value.Path{"e"}, Metric: function.MetricEuclidean}}})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return p
}

// What a plan sends to each range is a part, with the order that the plan has, and the query
// itself is none: unless that is what is sent, or nothing has to be merged.
func TestIsPart(t *testing.T) {
	for _, c := range planCases {
		plan, err := planOf(t, c.in, Options{Features: allFeatures, PartitionKey: []value.Path{{"key"}}})
		if err != nil {
			t.Fatal(err)
		}
		whole := compiledPart(t, c.in)
		text := plan.Query.Text(c.in)
		part := compiledPart(t, text)
		one := !plan.Keys.All && len(plan.Keys.Keys) <= 1
		if want := Needed(whole.Query()); IsPart(part, one) != want {
			t.Errorf("%s, sent as %s: %v, want %v", c.in, text, !want, want)
		}
		if text != c.in && IsPart(whole, one) {
			t.Errorf("%s is taken for a part", c.in)
		}
		if IsPart(part, one) && part.Query().OrderBy != nil && !slices.Equal(PartOrder(part), plan.Query.OrderBy) {
			t.Errorf("%s: the order is %v, want %v", c.in, PartOrder(part), plan.Query.OrderBy)
		}
	}
	for _, in := range []string{
		`SELECT TOP 3 * FROM c ORDER BY RANK RRF(FullTextScore(c.a, 'x'), VectorDistance(c.e, [1,2]), [-1, 2])`,
		`SELECT * FROM c ORDER BY RANK FullTextScore(c.a, 'x')`,
	} {
		plan, err := planOf(t, in, Options{Features: allFeatures})
		if err != nil {
			t.Fatal(err)
		}
		if plan.Hybrid.Statistics == "" || !IsPart(compiledPart(t, plan.Hybrid.Statistics), false) || IsPart(compiledPart(t, in), true) {
			t.Errorf("%s: what is a part of it?", in)
		}
		for i, info := range plan.Hybrid.Components {
			text := fillPlaceholders(info.Rewritten)
			part := compiledPart(t, text)
			if !IsPart(part, false) || !slices.Equal(PartOrder(part), info.OrderBy) {
				t.Errorf("%s: component %d, %s: a part is %v, its order %v", in, i, text, IsPart(part, false), PartOrder(part))
			}
		}
	}
}
