// SPDX-License-Identifier: MIT

// What a query that orders rows by their distance from a vector asks, in a form that
// an index of vectors can answer without the items.

package sql

import (
	"github.com/mayflydb/mayfly/internal/sql/datum"
	"slices"
)

// VectorScore is a distance from a constant vector, or a score made of one, that rows
// are ordered by.
type VectorScore struct {
	// Path is that of the vectors that are compared.
	Path    Path
	numbers []float64
	options vectorOptions
	negated bool
	kept    []float64 // memory
}

// vectorScoreOf reads the arguments of a function that compares vectors; nil if it
// does not compare a property with a constant.
func vectorScoreOf(function string, args []code) *VectorScore {
	at := slices.IndexFunc(args[:2], func(x code) bool { return x.origin.single() && len(x.origin.path) > 0 })
	if at < 0 || slices.ContainsFunc(args[2:], func(x code) bool { return !x.constant }) {
		return nil
	}
	other := args[1-at]
	values := make([]datum.Value, len(args))
	for i, x := range args[2:] {
		values[i+2] = x.value
	}
	if len(args) > 2 {
		if _, ok := values[2].AsBool(); !ok {
			return nil
		}
	}
	options, ok := vectorOptions{}.with(optional(values, vectorOptionsAt))
	if !ok || !other.constant {
		return nil
	}
	var reader vectorReader
	numbers, ok := reader.read(other.value, options.element)
	if !ok {
		return nil
	}
	return &VectorScore{
		Path: args[at].origin.path, numbers: slices.Clone(numbers), options: options,
		negated: function == fnVectorScoreOf && !options.metric.HigherIsCloser(),
	}
}

// String tells how vectors are compared.
func (s *VectorScore) String() string { return s.options.metric.String() }

// Clone returns the same score, for another goroutine.
func (s *VectorScore) Clone() *VectorScore {
	c := *s
	c.kept = nil
	return &c
}

// Rounds reports whether numbers are rounded more than to float32: then what was
// rounded to that before is not what they are compared by.
func (s *VectorScore) Rounds() bool { return s.options.element != elementFloat32 }

// Of returns the score of a vector. No numbers are no vector. It is for one goroutine.
func (s *VectorScore) Of(vector []float32) datum.Value {
	if len(vector) != len(s.numbers) {
		return datum.Undefined()
	}
	s.kept = s.kept[:0]
	for _, f := range vector {
		kept, ok := s.options.element.keep(float64(f))
		if !ok {
			return datum.Undefined()
		}
		s.kept = append(s.kept, kept)
	}
	v := sumsOf(s.kept, s.numbers).value(s.options.metric)
	if f, ok := v.AsFloat(); ok && s.negated {
		return datum.Float(-f)
	}
	return v
}
