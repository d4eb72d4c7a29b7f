// SPDX-License-Identifier: MIT

// What a query that orders rows by their distance from a vector asks, in a form that
// an index of vectors can answer without the items.

package sql

import (
	"slices"

	"github.com/mayflydb/mayfly/internal/sql/datum"
	"github.com/mayflydb/mayfly/internal/sql/function"
)

// VectorScore is a distance from a constant vector, or a score made of one, that rows
// are ordered by. It is for one goroutine.
type VectorScore struct {
	// Path is that of the vectors that are compared.
	Path Path
	*function.Nearness
}

// Clone returns the same score, for another goroutine.
func (s *VectorScore) Clone() *VectorScore { return &VectorScore{s.Path, s.Nearness.Clone()} }

// vectorScoreOf reads the arguments of a function that compares vectors; nil if it
// does not compare a property with a constant.
func vectorScoreOf(name string, args []code) *VectorScore {
	at := slices.IndexFunc(args[:2], func(x code) bool { return x.origin.single() && len(x.origin.path) > 0 })
	if at < 0 || !args[1-at].constant {
		return nil
	}
	var rest []datum.Value
	for _, x := range args[2:] {
		if !x.constant {
			return nil
		}
		rest = append(rest, x.value)
	}
	nearness, ok := function.NewNearness(name, args[1-at].value, rest)
	if !ok {
		return nil
	}
	return &VectorScore{args[at].origin.path, nearness}
}
