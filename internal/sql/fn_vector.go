// SPDX-License-Identifier: MIT

// Similarity of vectors.

package sql

import (
	"math"
	"strings"
)

// maxDimensions is how many numbers a vector may have in the service.
const maxDimensions = 4096

// Metric is a way to measure how alike two vectors are.
type Metric uint8

const (
	MetricCosine Metric = iota // the default
	MetricDotProduct
	MetricEuclidean
)

// ParseMetric reads the name of a metric as policies and queries spell it; case
// does not matter.
func ParseMetric(name string) (Metric, bool) {
	switch strings.ToLower(name) {
	case "cosine":
		return MetricCosine, true
	case "dotproduct":
		return MetricDotProduct, true
	case "euclidean":
		return MetricEuclidean, true
	}
	return 0, false
}

// HigherIsCloser reports whether the greater number means the more alike.
func (m Metric) HigherIsCloser() bool { return m != MetricEuclidean }

func vectorFunctions() []Function {
	return []Function{
		{Name: "RRF", Min: 1, Max: anyNumber, RankOnly: true},
		{Name: "VECTORDISTANCE", Min: 2, Max: 4, Eval: vectorDistance, Check: checkVectorDistance},
		{Name: "_VECTORSCORE", Min: 2, Max: 4, Eval: vectorScore, Check: checkVectorDistance},
	}
}

// precision turns a number into what a vector's element type keeps of it. It
// reports false if that is nothing.
type precision func(float64) (float64, bool)

// vectorOptions are what the fourth argument may say about the result. What it
// may say about the search only makes that faster or slower.
type vectorOptions struct {
	metric    Metric
	precision precision
}

// with reads options. What they do not name stays as it is.
func (o vectorOptions) with(v Value) (vectorOptions, bool) {
	if v.IsUndefined() {
		return o, true
	}
	if v.Kind() != KindObject {
		return o, false
	}
	if named := v.Member("distanceFunction"); !named.IsUndefined() {
		name, _ := named.AsString()
		metric, ok := ParseMetric(name)
		if !ok {
			return o, false
		}
		o.metric = metric
	}
	if named := v.Member("dataType"); !named.IsUndefined() {
		name, _ := named.AsString()
		if o.precision = precisionOf(name); o.precision == nil {
			return o, false
		}
	}
	return o, true
}

func precisionOf(name string) precision {
	switch strings.ToLower(name) {
	case "float32":
		return float32Precision
	case "float16":
		return float16Precision
	case "int8":
		return integersIn(math.MinInt8, math.MaxInt8)
	case "uint8":
		return integersIn(0, math.MaxUint8)
	}
	return nil
}

func float32Precision(f float64) (float64, bool) {
	narrow := float64(float32(f))
	return narrow, !math.IsInf(narrow, 0)
}

// Half precision: eleven bits, and at most 65504.
const (
	halfBits     = 11
	halfMax      = 65504
	halfMinScale = -24 // the least step is 2 to this
)

func float16Precision(f float64) (float64, bool) {
	_, exponent := math.Frexp(f)
	scale := max(exponent-halfBits, halfMinScale)
	narrow := math.Ldexp(math.RoundToEven(math.Ldexp(f, -scale)), scale)
	return narrow, math.Abs(narrow) <= halfMax
}

func integersIn(low, high float64) precision {
	return func(f float64) (float64, bool) {
		return f, f == math.Trunc(f) && f >= low && f <= high
	}
}

// vectorDistance compares two arrays of numbers of the same length. The metric
// is that of the options, else that of the container's policy.
func vectorDistance(cx *Context, args []Value) Value {
	v, _ := cx.compareVectors(args)
	return v
}

// vectorScore is vectorDistance with a sign by which a greater number is closer
// for every metric. Queries that clients run for the parts of a ranking call it.
func vectorScore(cx *Context, args []Value) Value {
	v, metric := cx.compareVectors(args)
	if f, ok := v.AsFloat(); ok && !metric.HigherIsCloser() {
		return Float(-f)
	}
	return v
}

func (cx *Context) compareVectors(args []Value) (Value, Metric) {
	if len(args) > 2 {
		// Whether to search without an index makes no difference here.
		if _, ok := args[2].AsBool(); !ok {
			return Undefined(), cx.Metric
		}
	}
	options, ok := vectorOptions{cx.Metric, float32Precision}.with(optional(args, 3))
	if !ok || args[0].Kind() != KindArray || args[1].Kind() != KindArray {
		return Undefined(), cx.Metric
	}
	return compareVectors(args[0].text, args[1].text, options), options.metric
}

// sums is what all metrics are computed from.
type sums struct{ dot, normA, normB, gap float64 }

// compareVectors goes through two arrays side by side.
func compareVectors(a, b string, options vectorOptions) Value {
	var s sums
	i, j, count := 1, 1, 0
	for i < len(a)-1 && j < len(b)-1 {
		endA, endB := valueEnd(a, i), valueEnd(b, j)
		x, okX := fromText(a[i:endA]).AsFloat()
		y, okY := fromText(b[j:endB]).AsFloat()
		if !okX || !okY {
			return Undefined()
		}
		x, okX = options.precision(x)
		y, okY = options.precision(y)
		if count++; !okX || !okY || count > maxDimensions {
			return Undefined()
		}
		s.dot += x * y
		s.normA += x * x
		s.normB += y * y
		s.gap += (x - y) * (x - y)
		i, j = endA+1, endB+1
	}
	if count == 0 || i < len(a)-1 || j < len(b)-1 {
		return Undefined() // empty, or of different lengths
	}
	return s.value(options.metric)
}

func (s sums) value(metric Metric) Value {
	switch metric {
	case MetricDotProduct:
		return Float(s.dot)
	case MetricEuclidean:
		return Float(math.Sqrt(s.gap))
	}
	if s.normA == 0 || s.normB == 0 {
		return Undefined() // no direction
	}
	return Float(s.dot / math.Sqrt(s.normA*s.normB))
}

// The range of the multipliers among the options.
const (
	minMultiplier = 1
	maxMultiplier = 100
)

// checkVectorDistance refuses options that are written in the query and make no
// sense.
func checkVectorDistance(args []Value) error {
	options := optional(args, 3)
	if options.Kind() != KindObject {
		return nil
	}
	if _, ok := (vectorOptions{}).with(options); !ok {
		return &Error{Code: "SC2213", Message: "The VectorDistance function has an option with an invalid value."}
	}
	for _, name := range []string{"searchListSizeMultiplier", "quantizedVectorListMultiplier"} {
		option := options.Member(name)
		n, ok := option.AsFloat()
		if !option.IsUndefined() && (!ok || !(n >= minMultiplier && n <= maxMultiplier)) {
			return &Error{
				Code:    "SC2213",
				Message: "The VectorDistance option '" + name + "' must be a number between 1 and 100.",
			}
		}
	}
	return nil
}

// rankConstant is the constant of reciprocal rank fusion: it keeps the first
// ranks from deciding alone.
const rankConstant = 60

// FuseRanks returns the score of an item from its ranks by several scores, which
// count from 1 and are the same for equal scores. No weights mean 1 for each. A
// greater result is better.
func FuseRanks(ranks []int, weights []float64) float64 {
	fused := 0.0
	for i, rank := range ranks {
		weight := 1.0
		if i < len(weights) {
			weight = weights[i]
		}
		fused += weight / float64(rankConstant+rank)
	}
	return fused
}
