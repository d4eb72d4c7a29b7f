// SPDX-License-Identifier: MIT

package index

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mayflydb/mayfly/internal/value"
)

// namedRange is a range with the values that are meant to be in it.
type namedRange struct {
	name string
	ValueRange
	holds func(w value.Scalar) bool
}

// rangesOf returns every range that can be made of a value.
func rangesOf(v value.Scalar) []namedRange {
	alike := func(holds func(order int) bool) func(value.Scalar) bool {
		return func(w value.Scalar) bool { return w.Kind() == v.Kind() && holds(compareUTF16(w, v)) }
	}
	ranges := []namedRange{
		{"=", Exactly(v), alike(func(order int) bool { return order == 0 })},
		{"<", Below(v), alike(func(order int) bool { return order < 0 })},
		{"<=", AtMost(v), alike(func(order int) bool { return order <= 0 })},
		{">", Above(v), alike(func(order int) bool { return order > 0 })},
		{">=", AtLeast(v), alike(func(order int) bool { return order >= 0 })},
		{"all", AllValues(), func(value.Scalar) bool { return true }},
		{"numbers", Numbers(), func(w value.Scalar) bool { return w.Kind() == value.KindNumber }},
		{"strings", Strings(), func(w value.Scalar) bool { return w.Kind() == value.KindString }},
	}
	if s, ok := v.Text(); ok {
		ranges = append(ranges, namedRange{"begins", BeginningWith(s), func(w value.Scalar) bool {
			text, isString := w.Text()
			return isString && strings.HasPrefix(text, s)
		}})
	}
	return ranges
}

// A range contains the values that it should, at any ordinal; others only if it is not
// exact, and none of another kind.
func TestValueRangesHoldWhatTheySay(t *testing.T) {
	edges := []string{"\x00", "\xff\xff\xff\xff\xff\xff\xff\xff"}
	rapid.Check(t, func(t *rapid.T) {
		v, w := anyScalar().Draw(t, "v"), anyScalar().Draw(t, "w")
		if rapid.Bool().Draw(t, "alike") {
			if s, ok := v.Text(); ok {
				w = value.String(s + edgeString().Draw(t, "more"))
			}
		}
		for _, r := range rangesOf(v) {
			for _, tail := range edges {
				row := append(appendTermValue([]byte("start"), w), tail...)
				lower, upper := r.Bounds([]byte("start"))
				got := bytes.Compare(lower, row) <= 0 && bytes.Compare(row, upper) < 0
				want := r.holds(w)
				if want && !got || got && !want && r.Exact() || got && w.Kind() != v.Kind() && r.name != "all" && r.name != "numbers" && r.name != "strings" {
					t.Errorf("%v %s %v: got %v, want %v; exact %v", w, r.name, v, got, want, r.Exact())
				}
			}
		}
	})
}

// An intersection contains exactly the rows that are in both ranges.
func TestValueRangesIntersect(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.SampledFrom(rangesOf(anyScalar().Draw(t, "a"))).Draw(t, "first")
		b := rapid.SampledFrom(rangesOf(anyScalar().Draw(t, "b"))).Draw(t, "second")
		both := a.And(b.ValueRange)
		row := append(appendTermValue(nil, anyScalar().Draw(t, "w")), "ordinal!"...)
		in := func(r ValueRange) bool {
			lower, upper := r.Bounds(nil)
			return bytes.Compare(lower, row) <= 0 && bytes.Compare(row, upper) < 0
		}
		if got, want := in(both), in(a.ValueRange) && in(b.ValueRange); got != want {
			t.Errorf("%x in %s and %s: got %v, want %v", row, a.name, b.name, got, want)
		}
		if both.Empty() && in(both) {
			t.Errorf("an empty range contains %x", row)
		}
		if both.Exact() != (a.Exact() && b.Exact()) {
			t.Errorf("exact: got %v of %v and %v", both.Exact(), a.Exact(), b.Exact())
		}
	})
}

// The rows of one value are one range, with its ordinals in order.
func TestTheRangeOfOneValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v, w := anyScalar().Draw(t, "v"), anyScalar().Draw(t, "w")
		if got, want := Exactly(v).PlaceOf(0).Value.Compare(Exactly(w).PlaceOf(0).Value) == 0, v == w; got != want {
			t.Errorf("%v and %v have one range: got %v, want %v", v, w, got, want)
		}
		p := Exactly(v).PlaceOf(7)
		if !bytes.Equal(p.Value.Bytes(), appendTermValue(nil, v)) || p.Ordinal != 7 {
			t.Errorf("the place of 7 in %v: got %+v", v, p)
		}
		s, isString := v.Text()
		_, isCut := kept(s)
		if p.Value.Cut() != (isString && isCut) {
			t.Errorf("%v is cut: got %v, want %v", v, p.Value.Cut(), isString && isCut)
		}
		text, _ := w.Text()
		first, _ := kept(s)
		other, otherCut := kept(text)
		if got, want := p.Value.Alike(Exactly(w).PlaceOf(8).Value), isCut && otherCut && first == other; got != want {
			t.Errorf("%v and %v are cut alike: got %v, want %v", v, w, got, want)
		}
	})
}
