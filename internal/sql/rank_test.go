// SPDX-License-Identifier: MIT

package sql

import (
	"math"
	"slices"
	"testing"

	"github.com/mayflydb/mayfly/internal/sql/function"
	"github.com/mayflydb/mayfly/internal/sql/syntax"
)

func TestRanking(t *testing.T) {
	items := []string{
		`{"id":"a","t":"green tea and black tea","v":[1,0]}`,
		`{"id":"b","t":"coffee","v":[0,1]}`,
		`{"id":"c","t":"tea","v":[0.9,0.1]}`,
		`{"id":"d"}`,
		`{"id":"e","t":"one cup of tea with very much milk in a large blue bowl","v":[0.5,0.5]}`,
	}
	f := func(query, want string) {
		t.Helper()
		expect(t, query, want, items...)
	}
	f(`SELECT VALUE c.id FROM c ORDER BY RANK FullTextScore(c.t, "tea")`, `"c" "a" "e" "b" "d"`)
	f(`SELECT VALUE c.id FROM c ORDER BY RANK FullTextScore(c.t, "coffee", "milk")`, `"b" "e" "a" "c" "d"`)
	f(`SELECT TOP 1 VALUE c.id FROM c WHERE c.id != "c" ORDER BY RANK FullTextScore(c.t, ["tea"])`, `"a"`)
	f(`SELECT VALUE c.id FROM c ORDER BY RANK VectorDistance(c.v, [0, 1])`, `"b" "e" "c" "a" "d"`)
	// Ranks of a b c d e: by tea 2 4 1 5 3, by distance 4 1 3 5 2.
	f(`SELECT VALUE c.id FROM c ORDER BY RANK RRF(FullTextScore(c.t, "tea"), VectorDistance(c.v, [0, 1]))`, `"c" "b" "e" "a" "d"`)
	f(`SELECT VALUE c.id FROM c ORDER BY RANK RRF(FullTextScore(c.t, "tea"), VectorDistance(c.v, [0, 1]), [2, 1])`, `"c" "a" "e" "b" "d"`)
	f(`SELECT VALUE c.id FROM c ORDER BY RANK RRF(FullTextScore(c.t, "tea"), FullTextScore(c.t, "tea"), [-1, -1])`, `"d" "b" "e" "a" "c"`)
}

// A row's key is the sum of weight/(60+rank). The first of two rows has these ranks by two
// scores.
func TestFusedRanks(t *testing.T) {
	for _, c := range []struct {
		scores  [][]float64
		weights []float64
		want    float64
	}{
		{[][]float64{{2, 2}, {1, 1}}, []float64{1, 1}, 2.0 / 61},
		{[][]float64{{2, 1}, {1, 2}}, []float64{1, 1}, 1.0/61 + 1.0/62},
		{[][]float64{{2, 1}, {1, 2}}, []float64{2, 0.5}, 2.0/61 + 0.5/62},
		{[][]float64{{2, 1}, {1, 2}}, []float64{-1, 1}, 1.0/62 - 1.0/61},
		{[][]float64{{2, 2}, {2, 3}}, []float64{1, 1}, 1.0/61 + 1.0/62},
	} {
		item := rankItem{components: []int{0, 1}, weights: c.weights}
		if got := item.keys(c.scores)[0]; math.Abs(got-c.want) > 1e-15 {
			t.Errorf("%v with %v: got %v, want %v", c.scores, c.weights, got, c.want)
		}
	}
}

func TestOrderByDistance(t *testing.T) {
	items := [][]byte{[]byte(`{"id":"a","v":[1,0]}`), []byte(`{"id":"b","v":[3,0.1]}`), []byte(`{"id":"c","v":[0,1]}`)}
	f := func(query string, metric function.Metric, want string) {
		t.Helper()
		q, err := syntax.Parse(query)
		if err != nil {
			t.Fatal(err)
		}
		p, err := Compile(q, CompileOptions{Vectors: []Vector{{Path: []string{"v"}, Metric: metric}}})
		if err != nil {
			t.Fatal(err)
		}
		rows, err := evaluateTwice(p, items)
		if got := string(slices.Concat(rows...)); got != want || err != nil {
			t.Errorf("%s by metric %v: %s, %v; want %s", query, metric, got, err, want)
		}
	}
	f(`SELECT VALUE c.id FROM c ORDER BY VectorDistance(c.v, [1, 0])`, function.MetricCosine, `"a""b""c"`)
	f(`SELECT VALUE c.id FROM c ORDER BY VectorDistance(c.v, [1, 0])`, function.MetricDotProduct, `"b""a""c"`)
	f(`SELECT VALUE c.id FROM c ORDER BY VectorDistance(c.v, [1, 0])`, function.MetricEuclidean, `"a""c""b"`)
	f(`SELECT VALUE c.id FROM c ORDER BY VectorDistance(c.v, [1, 0], false, {"distanceFunction": "euclidean"})`, function.MetricCosine, `"a""c""b"`)
	f(`SELECT VALUE VectorDistance(c.v, [1, 0]) FROM c WHERE c.id = "c"`, function.MetricEuclidean, `1.4142135623730951`)
	f(`SELECT VALUE VectorDistance([1, 0], c.v, true) FROM c WHERE c.id = "b"`, function.MetricDotProduct, `3`)
}
