// SPDX-License-Identifier: MIT

package function

import (
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/sql/datum"
)

func TestVectorDistance(t *testing.T) {
	sheet(t, `
VECTORDISTANCE([3, 4], [3, 4]) => 1
VECTORDISTANCE([1, 0], [0, 1]) => 0
VECTORDISTANCE([1, 0], [-2, 0]) => -1
VECTORDISTANCE([1, 2], [3, 4], false, {"distanceFunction": "dotproduct"}) => 11
VECTORDISTANCE([1, 2], [4, 6], true, {"distanceFunction": "Euclidean"}) => 5
VECTORDISTANCE([1, 2], [4, 6], true, {"distanceFunction": "COSINE", "dataType": "Int8"}) = VECTORDISTANCE([1, 2], [4, 6]) => true
_VECTORSCORE([1, 2], [4, 6], true, {"distanceFunction": "euclidean"}) => -5
_VECTORSCORE([1, 2], [3, 4], false, {"distanceFunction": "dotproduct"}) => 11

# Elements have the precision of their type.
VECTORDISTANCE([16777217], [1], false, {"distanceFunction": "dotproduct"}) => 16777216
VECTORDISTANCE([2049], [1], false, {"distanceFunction": "dotproduct", "dataType": "float16"}) => 2048
VECTORDISTANCE([0.5], [4], false, {"distanceFunction": "dotproduct", "dataType": "float16"}) => 2
VECTORDISTANCE([70000], [1], false, {"dataType": "float16"}) => undefined
VECTORDISTANCE([127], [-128], false, {"distanceFunction": "dotproduct", "dataType": "int8"}) => -16256
VECTORDISTANCE([128], [1], false, {"dataType": "int8"}) => undefined
VECTORDISTANCE([1.5], [1], false, {"dataType": "int8"}) => undefined
VECTORDISTANCE([255], [2], false, {"distanceFunction": "dotproduct", "dataType": "uint8"}) => 510
VECTORDISTANCE([-1], [2], false, {"dataType": "uint8"}) => undefined
VECTORDISTANCE([1e300], [1]) => undefined

VECTORDISTANCE([1, 2], [1]) => undefined
VECTORDISTANCE([1], [1, 2]) => undefined
VECTORDISTANCE([], []) => undefined
VECTORDISTANCE([0, 0], [1, 1]) => undefined
VECTORDISTANCE([[1]], [[1]]) => undefined
VECTORDISTANCE([1, "2"], [1, 2]) => undefined
VECTORDISTANCE([1], [1], null) => undefined
VECTORDISTANCE([1], [1], false, "cosine") => undefined
`)
	ones := func(n int) datum.Value { return datum.Raw([]byte("[" + strings.Repeat("1,", n-1) + "1]")) }
	cx := &Context{Metric: MetricEuclidean}
	for n, want := range map[int]string{maxDimensions: "0", maxDimensions + 1: "undefined"} {
		if got := vectorDistance(cx, []datum.Value{ones(n), ones(n)}).String(); got != want {
			t.Errorf("%d dimensions: got %s, want %s", n, got, want)
		}
	}
}

// TestVectorsAreReadAgain runs many calls in one execution, of which the items'
// side reuses its memory.
func TestVectorsAreReadAgain(t *testing.T) {
	cx := &Context{Metric: MetricDotProduct}
	item := []byte("[0,1]")
	for i := range 50 {
		item[1] = byte('0' + i%7)
		query, factor := datum.Raw([]byte("[2,3]")), 2
		if i%10 == 9 {
			query, factor = datum.Raw([]byte("[5,3]")), 5
		}
		want := float64(factor*(i%7) + 3)
		if got, _ := vectorDistance(cx, []datum.Value{datum.Raw(item), query}).AsFloat(); got != want {
			t.Fatalf("call %d: got %v, want %v", i, got, want)
		}
		half := datum.Raw([]byte(`{"dataType":"int8"}`))
		if v := vectorDistance(cx, []datum.Value{datum.Raw([]byte("[0.5]")), datum.Raw([]byte("[1]")), datum.Bool(false), half}); !v.IsUndefined() {
			t.Fatalf("call %d: half a number is kept as %s", i, v)
		}
	}
}

func TestVectorOptionsAreChecked(t *testing.T) {
	f, _ := Lookup("VECTORDISTANCE")
	for options, ok := range map[string]bool{
		`{}`: true,
		`{"distanceFunction":"cosine","dataType":"float32","searchListSizeMultiplier":100,"filterPriority":0.5}`: true,
		`{"searchListSizeMultiplier":0}`:        false,
		`{"searchListSizeMultiplier":101}`:      false,
		`{"searchListSizeMultiplier":"5"}`:      false,
		`{"quantizedVectorListMultiplier":0.5}`: false,
		`{"distanceFunction":"manhattan"}`:      false,
		`{"dataType":"float64"}`:                false,
	} {
		refused := f.Check([]datum.Value{datum.Undefined(), datum.Undefined(), datum.Undefined(), datum.Raw([]byte(options))})
		if (refused == nil) != ok || refused != nil && refused.Code != "SC2213" {
			t.Errorf("%s: got %v", options, refused)
		}
	}
}

func TestMetrics(t *testing.T) {
	for name, higher := range map[string]bool{"cosine": true, "DotProduct": true, "euclidean": false} {
		m, ok := ParseMetric(name)
		if !ok || m.HigherIsCloser() != higher {
			t.Errorf("%s: got %v, %v", name, m, ok)
		}
	}
	if _, ok := ParseMetric("manhattan"); ok {
		t.Error("manhattan is a metric")
	}
}

func BenchmarkVectorDistance(b *testing.B) {
	numbers := "[" + strings.Repeat("0.0123456789,", 767) + "1]"
	items := []datum.Value{datum.Raw([]byte(numbers)), datum.Raw([]byte(strings.Replace(numbers, "1", "2", 1)))}
	query := datum.Raw([]byte(numbers))
	cx := testContext()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if vectorDistance(cx, []datum.Value{items[i%2], query}).IsUndefined() {
			b.Fatal("undefined")
		}
	}
}
