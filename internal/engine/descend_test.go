// SPDX-License-Identifier: MIT

package engine

import (
	"fmt"
	"testing"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/store"
)

// splitRanges is a container that began with ranges 0 and 1. Range 0 became 2 and 3, range 1
// became 4 and 5, and range 3 became 6 and 7.
func splitRanges() *catalog.Container {
	return &catalog.Container{
		RID: catalog.ContainerRID{Database: 1, Container: 2},
		Ranges: []catalog.Range{
			{ID: 2, Parents: []int{0}}, {ID: 6, Parents: []int{0, 3}}, {ID: 7, Parents: []int{0, 3}},
			{ID: 4, Parents: []int{1}}, {ID: 5, Parents: []int{1}},
		},
	}
}

func TestOrigins(t *testing.T) {
	c := splitRanges()
	for _, tt := range []struct {
		first, last, n int
		want           string
	}{
		{0, 4, 5, "[0 1 2 3 4] true"},
		{0, 4, 4, "[0 1 1 2 3] true"}, // before range 3 was split
		{0, 4, 3, "[0 1 1 2 2] true"}, // before range 1
		{0, 4, 2, "[0 0 0 1 1] true"},
		{0, 4, 1, "[] false"},
		{0, 4, 6, "[0 1 2 3 4] false"},
		{0, 2, 1, "[0 0 0] true"}, // keys that range 0 had
		{0, 2, 2, "[0 1 1] true"},
		{1, 3, 3, "[0 1 2] true"},
		{1, 3, 2, "[0 0 1] true"},
		{1, 2, 1, "[0 0] true"},
		{4, 4, 1, "[0] true"},
	} {
		of, ok := origins(c, tt.first, tt.last, tt.n)
		if got := fmt.Sprint(of, ok); got != tt.want {
			t.Errorf("%d to %d of %d: got %s, want %s", tt.first, tt.last, tt.n, got, tt.want)
		}
	}
}

// A position in the feed of ranges that were split goes on in all that they became, and the
// turn is with the first of those.
func TestPositionAfterSplit(t *testing.T) {
	c := splitRanges()
	for text, want := range map[string]string{
		"1@70-3.80": "3@70-3.70-3.70-3.80.80",
		"0@5.6.7":   "0@5.6.6.7.7",
	} {
		at, err := (&Request{Continuation: text}).position(c, 0, 4)
		if err != nil || at.encode() != want {
			t.Errorf("%s: got %s, %v, want %s", text, at.encode(), err, want)
		}
	}
	at, err := (&Request{Continuation: "0009"}).position(c, 0, 2)
	if err != nil || at.encode() != "0@9-3.9-3.9-3" {
		t.Errorf("one range: got %s, %v", at.encode(), err)
	}
}

// A continuation of a list goes on after its item in all ranges that its range became, and
// with those that follow at their beginning.
func TestContinuationAfterSplit(t *testing.T) {
	c := splitRanges()
	at := store.FirstOrdinal(0) + 9
	places, err := parseContinuation(c, continuation(c, at), 0, 4)
	if got := fmt.Sprint(places, err); got != "[{0 9} {1 9} {2 9}] <nil>" {
		t.Fatalf("got %s", got)
	}
	next := places.at(0, store.FirstOrdinal(2)+1)
	text := next.continuation(c, 0)
	if want := continuation(c, store.FirstOrdinal(2)+1) + "#PKR:2,6:9,7:9"; text != want {
		t.Errorf("got %s, want %s", text, want)
	}
	if again, err := parseContinuation(c, text, 0, 4); err != nil || fmt.Sprint(again) != fmt.Sprint(next) {
		t.Errorf("%s: got %v, %v, want %v", text, again, err, next)
	}
	for i, want := range map[int]string{
		1: continuation(c, 9) + "#PKR:6,7:9", 2: continuation(c, 9) + "#PKR:7", 3: continuation(c, 0) + "#PKR:4",
	} {
		if got := places.continuation(c, i); got != want {
			t.Errorf("at position %d: got %s, want %s", i, got, want)
		}
	}
}
