// SPDX-License-Identifier: MIT

// Similarity of vectors.

package function

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/mayflydb/mayfly/internal/sql/datum"
	"github.com/mayflydb/mayfly/internal/sql/syntax"
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

var metricNames = [...]string{MetricCosine: "cosine", MetricDotProduct: "dotproduct", MetricEuclidean: "euclidean"}

// ParseMetric reads the name of a metric as policies and queries spell it; case
// does not matter.
func ParseMetric(name string) (Metric, bool) {
	at := slices.Index(metricNames[:], strings.ToLower(name))
	return Metric(max(at, 0)), at >= 0
}

// String returns what [ParseMetric] reads.
func (m Metric) String() string { return metricNames[m] }

// HigherIsCloser reports whether the greater number means the more alike.
func (m Metric) HigherIsCloser() bool { return m != MetricEuclidean }

// The names of the functions that rows can be ordered by.
const (
	VectorDistance = "VECTORDISTANCE"
	VectorScoreOf  = "_VECTORSCORE"
	TextScoreOf    = "_FULLTEXTSCORE"
	RRF            = "RRF"
)

func vectorFunctions() []Function {
	return []Function{
		{Name: "RRF", Args: ".*", RankOnly: true},
		{Name: "VECTORDISTANCE", Args: "aa|b.", Eval: vectorDistance, Check: checkVectorDistance, CheckedArgument: VectorOptionsAt},
		{Name: "_VECTORSCORE", Args: "aa|b.", Eval: vectorScore, Check: checkVectorDistance, CheckedArgument: VectorOptionsAt},
	}
}

// VectorOptionsAt is the position of the options among the arguments.
const VectorOptionsAt = 3

// elementType is what a vector's numbers are kept as.
type elementType uint8

const (
	elementFloat32 elementType = iota // the default
	elementFloat16
	elementInt8
	elementUint8
)

var elementNames = [...]string{elementFloat32: "float32", elementFloat16: "float16", elementInt8: "int8", elementUint8: "uint8"}

// keep returns what the type keeps of a number. It reports false if that is
// nothing.
func (t elementType) keep(f float64) (kept float64, ok bool) {
	switch t {
	case elementFloat16:
		return float16(f)
	case elementInt8:
		return f, f == math.Trunc(f) && f >= math.MinInt8 && f <= math.MaxInt8
	case elementUint8:
		return f, f == math.Trunc(f) && f >= 0 && f <= math.MaxUint8
	}
	kept = float64(float32(f))
	return kept, !math.IsInf(kept, 0)
}

// Half precision: eleven bits, and at most 65504.
const (
	halfBits     = 11
	halfMax      = 65504
	halfMinScale = -24 // the least step is 2 to this
)

// float16 rounds to the nearest number of half precision, ties to even.
func float16(f float64) (kept float64, ok bool) {
	_, exponent := math.Frexp(f)
	scale := max(exponent-halfBits, halfMinScale)
	kept = math.Ldexp(math.RoundToEven(math.Ldexp(f, -scale)), scale)
	return kept, math.Abs(kept) <= halfMax
}

// vectorOptions are what the fourth argument may say about the result. What it
// may say about the search only makes that faster or slower.
type vectorOptions struct {
	metric  Metric
	element elementType
}

// with reads options. What they do not name stays as it is.
func (o vectorOptions) with(v datum.Value) (vectorOptions, bool) {
	if v.IsUndefined() {
		return o, true
	}
	if v.Kind() != datum.KindObject {
		return o, false
	}
	ok := readOption(v, "distanceFunction", metricNames[:], &o.metric) && readOption(v, "dataType", elementNames[:], &o.element)
	return o, ok
}

// readOption reads an option that has one of several names. It reports false if it has
// another, and changes nothing if it is not there.
func readOption[T ~uint8](options datum.Value, option string, names []string, to *T) bool {
	v := options.Member(option)
	if v.IsUndefined() {
		return true
	}
	name, _ := v.AsString()
	at := slices.Index(names, strings.ToLower(name))
	*to = T(max(at, 0))
	return at >= 0
}

// vectorDistance compares two arrays of numbers of the same length. The metric
// is that of the options, else that of the container's policy.
func vectorDistance(cx *Context, args []datum.Value) datum.Value {
	v, _ := cx.compareVectors(args)
	return v
}

// vectorScore is vectorDistance with a sign by which a greater number is closer
// for every metric. Queries that clients run for the parts of a ranking call it.
func vectorScore(cx *Context, args []datum.Value) datum.Value {
	v, metric := cx.compareVectors(args)
	if f, ok := v.AsFloat(); ok && !metric.HigherIsCloser() {
		return datum.Float(-f)
	}
	return v
}

func (cx *Context) compareVectors(args []datum.Value) (datum.Value, Metric) {
	// The third argument, whether to search without an index, makes no difference here.
	options, ok := vectorOptions{metric: cx.Metric}.with(optional(args, VectorOptionsAt))
	if !ok {
		return datum.Undefined(), cx.Metric
	}
	a, okA := cx.vectors[0].read(args[0], options.element)
	b, okB := cx.vectors[1].read(args[1], options.element)
	if !okA || !okB || len(a) != len(b) {
		return datum.Undefined(), cx.Metric
	}
	return sumsOf(a, b).value(options.metric), options.metric
}

// vectorReader reads the vectors that are one argument of the calls of an
// execution. One of the two arguments is most often the same in all of them, and
// then it is read once.
type vectorReader struct {
	last    datum.Value // that numbers were read from, or undefined after too many misses
	element elementType
	numbers []float64
	misses  int
}

// maxMisses is how often a text may be another than the last before it is not
// kept any more.
const maxMisses = 4

// read returns the numbers of a vector, which are valid until the next call. It
// reports false if v is none.
func (r *vectorReader) read(v datum.Value, element elementType) ([]float64, bool) {
	if v.Kind() != datum.KindArray {
		return nil, false
	}
	if v == r.last && element == r.element {
		return r.numbers, true
	}
	r.last, r.numbers = datum.Value{}, r.numbers[:0]
	for number := range v.Elements {
		f, ok := number.AsFloat()
		if !ok || len(r.numbers) == maxDimensions {
			return nil, false
		}
		if f, ok = element.keep(f); !ok {
			return nil, false
		}
		r.numbers = append(r.numbers, f)
	}
	if r.misses < maxMisses && len(r.numbers) > 0 {
		r.misses++
		r.last, r.element = v.Detach(), element // an item's memory is not kept
	}
	return r.numbers, len(r.numbers) > 0
}

// sums is what all metrics are computed from.
type sums struct{ dot, normA, normB, gap float64 }

// sumsOf compares vectors of the same length.
func sumsOf(a, b []float64) (s sums) {
	for i, x := range a {
		y := b[i]
		s.dot += x * y
		s.normA += x * x
		s.normB += y * y
		s.gap += (x - y) * (x - y)
	}
	return s
}

// value is undefined for the cosine of a vector without a direction.
func (s sums) value(metric Metric) datum.Value {
	switch metric {
	case MetricDotProduct:
		return datum.Float(s.dot)
	case MetricEuclidean:
		return datum.Float(math.Sqrt(s.gap))
	}
	if s.normA == 0 || s.normB == 0 {
		return datum.Undefined() // no direction
	}
	return datum.Float(s.dot / math.Sqrt(s.normA*s.normB))
}

// The range of the multipliers among the options.
const (
	minMultiplier = 1
	maxMultiplier = 100
)

// checkVectorDistance refuses options that are written in the query and make no
// sense.
func checkVectorDistance(args []datum.Value) *syntax.Error {
	options := optional(args, 3)
	if options.Kind() != datum.KindObject {
		return nil
	}
	if _, ok := (vectorOptions{}).with(options); !ok {
		return &syntax.Error{Code: "SC2213", Message: "The VectorDistance function has an option with an invalid value."}
	}
	for _, name := range []string{"searchListSizeMultiplier", "quantizedVectorListMultiplier"} {
		option := options.Member(name)
		n, ok := option.AsFloat()
		if !option.IsUndefined() && (!ok || !(n >= minMultiplier && n <= maxMultiplier)) {
			return &syntax.Error{Code: "SC2213", Message: fmt.Sprintf("The '%s' value %s specified in the "+
				"VectorDistance function is outside the supported range. The value must be between %d and %d.",
				name, option, minMultiplier, maxMultiplier)}
		}
	}
	return nil
}

// Nearness is how near vectors are to a constant one. It is for one goroutine.
type Nearness struct {
	options vectorOptions
	negated bool      // so that a greater number is nearer
	numbers []float64 // of the constant vector
	kept    []float64 // memory
}

// NewNearness reads the arguments of VECTORDISTANCE or _VECTORSCORE behind the vectors, and
// the vector that others are compared with. It reports false if they make no call of it.
func NewNearness(name string, vector datum.Value, arguments []datum.Value) (*Nearness, bool) {
	if len(arguments) > 0 && arguments[0].Kind() != datum.KindBool {
		return nil, false
	}
	options, ok := vectorOptions{}.with(optional(arguments, VectorOptionsAt-2))
	if !ok {
		return nil, false
	}
	var reader vectorReader
	numbers, ok := reader.read(vector, options.element)
	negated := name == VectorScoreOf && !options.metric.HigherIsCloser()
	return &Nearness{options: options, negated: negated, numbers: slices.Clone(numbers)}, ok
}

// String returns the name of the metric.
func (n *Nearness) String() string { return n.options.metric.String() }

// Clone returns the same for another goroutine.
func (n *Nearness) Clone() *Nearness {
	c := *n
	c.kept = nil
	return &c
}

// Rounds reports whether numbers are rounded more than to float32: then what was
// rounded to that before is not what they are compared by.
func (n *Nearness) Rounds() bool { return n.options.element != elementFloat32 }

// Of returns the distance or score of a vector. No numbers are no vector.
func (n *Nearness) Of(vector []float32) datum.Value {
	if len(vector) != len(n.numbers) {
		return datum.Undefined()
	}
	n.kept = n.kept[:0]
	for _, f := range vector {
		kept, ok := n.options.element.keep(float64(f))
		if !ok {
			return datum.Undefined()
		}
		n.kept = append(n.kept, kept)
	}
	v := sumsOf(n.kept, n.numbers).value(n.options.metric)
	if f, ok := v.AsFloat(); ok && n.negated {
		return datum.Float(-f)
	}
	return v
}
