// SPDX-License-Identifier: MIT

package function

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mayflydb/mayfly/internal/analysis"
	"github.com/mayflydb/mayfly/internal/sql/datum"
)

func TestFullTextContains(t *testing.T) {
	sheet(t, `
FULLTEXTCONTAINS("I like to swim", "swim") => true
FULLTEXTCONTAINS("I like to swim", "SWIMMING") => true
FULLTEXTCONTAINS("I like to swim", "wim") => false
FULLTEXTCONTAINS("red mountain bicycle", "mountain bicycle") => true
FULLTEXTCONTAINS("red mountain bicycle", "red bicycle") => false
FULLTEXTCONTAINS("the bank of England", "Bank England") => true
FULLTEXTCONTAINS("the end", "the") => false
FULLTEXTCONTAINS("", "x1") => false
FULLTEXTCONTAINS("bird", "") => false
FULLTEXTCONTAINS(["bird"], "bird") => undefined
FULLTEXTCONTAINS("bird", ["bird"]) => undefined
FULLTEXTCONTAINS("a bycycle", {"term": "bicycle", "distance": 1}) => true
FULLTEXTCONTAINS("a bysycle", {"term": "bicycle", "distance": 1}) => false
FULLTEXTCONTAINS("a bysycle", {"term": "bicycle", "distance": 2}) => true
FULLTEXTCONTAINS("bicycle", {"term": "bicycle", "distance": 0}) => true
FULLTEXTCONTAINS("bicycle", {"term": "bicycle", "distance": 3}) => undefined
FULLTEXTCONTAINS("bicycle", {"term": "bicycle"}) => undefined
FULLTEXTCONTAINSALL("swim and run", "run", "swim") => true
FULLTEXTCONTAINSALL("swim and run", "run", "fly") => false
FULLTEXTCONTAINSALL("swim and run", undefined, "fly") => false
FULLTEXTCONTAINSALL("swim and run", undefined, "run") => undefined
FULLTEXTCONTAINSANY("swim and run", "run", "fly") => true
FULLTEXTCONTAINSANY("swim and run", "sleep", "fly") => false
FULLTEXTCONTAINSANY("swim and run", undefined, "run") => true
FULLTEXTCONTAINSANY("swim and run", undefined, "fly") => undefined
_FULLTEXTWORDCOUNT("the quick brown fox") => 3
_FULLTEXTWORDCOUNT("") => 0
_FULLTEXTSCORE("quick fox", ["bird"], 10, 20, [1]) => 0
_FULLTEXTSCORE("bird", ["bird"], 0, 0, [0]) => 0
_FULLTEXTSCORE("bird", [1], 1, 1, [1]) => undefined
_FULLTEXTSCORE("bird", ["bird"], 1, 1, ["1"]) => undefined
`)
}

// TestScore has values worked out by hand from the formula of BM25.
func TestScore(t *testing.T) {
	stats := TextStatistics{Items: 10, Words: 50, Hits: []int64{1, 5}}
	rare, common := math.Log(1+9.5/1.5), math.Log(1+1.0) // (10 - 5 + 0.5) / (5 + 0.5) is 1
	for _, c := range []struct {
		words       int
		occurrences []int
		want        float64
	}{
		{5, []int{0, 0}, 0},
		{5, []int{1, 0}, rare},                         // a text of mean length: 1·2.2/(1+1.2)
		{5, []int{0, 1}, common},                       //
		{5, []int{1, 1}, rare + common},                //
		{5, []int{2, 0}, rare * 4.4 / 3.2},             //
		{10, []int{1, 0}, rare * 2.2 / (1 + 1.2*1.75)}, // twice as long
		{5, []int{1}, rare},
		{5, []int{0, 0, 3}, 0}, // a term without statistics
	} {
		if got := stats.Score(c.words, c.occurrences); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%d words, %v: got %v, want %v", c.words, c.occurrences, got, c.want)
		}
	}
	long := strings.Repeat("bird ", maxPhrase)
	if _, ok := testContext().CountTerms(long, []datum.Value{datum.Str(long)}); !ok {
		t.Error("the longest term is refused")
	}
	if _, ok := testContext().CountTerms(long, []datum.Value{datum.Str(long + "bird")}); ok {
		t.Error("a longer term is taken")
	}
	count, ok := testContext().CountTerms("Birds of a feather: bird, bird house", []datum.Value{datum.Str("bird"), datum.Str("bird house"), datum.Str("fox")})
	if !ok || count.Words != 5 || !slices.Equal(count.Occurrences, []int{3, 1, 0}) {
		t.Errorf("counted %d words, %v", count.Words, count.Occurrences)
	}
}

// editTwin is the distance of two words by its definition.
func editTwin(a, b []rune) int {
	if len(a) == 0 || len(b) == 0 {
		return len(a) + len(b)
	}
	if a[0] == b[0] {
		return editTwin(a[1:], b[1:])
	}
	return 1 + min(editTwin(a[1:], b), editTwin(a, b[1:]), editTwin(a[1:], b[1:]))
}

func TestAlike(t *testing.T) {
	word := rapid.StringOfN(rapid.SampledFrom([]rune("abé")), 0, 5, -1)
	rapid.Check(t, func(t *rapid.T) {
		a, b, edits := word.Draw(t, "a"), word.Draw(t, "b"), rapid.IntRange(0, maxEdits).Draw(t, "edits")
		if got, want := alike(a, b, edits), editTwin([]rune(a), []rune(b)) <= edits; got != want {
			t.Fatalf("%q and %q within %d: got %v", a, b, edits, got)
		}
	})
}

func FuzzWords(f *testing.F) {
	for _, seed := range []string{"", "a'b", "1,2,", "’s", "x\xff", "\u0301", "東京タワー", "the 's"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		words := analysis.Words(text)
		if len(words) > len(text) {
			t.Errorf("%q has %d words", text, len(words))
		}
		if len(words) > 0 && len(words) <= maxPhrase && !testContext().contains(text) {
			t.Errorf("%q does not contain itself", text)
		}
	})
}

// contains reports whether a text contains itself.
func (cx *Context) contains(text string) bool {
	return fullTextContains(allOf)(cx, []datum.Value{datum.Str(text), datum.Str(text)}).IsTrue()
}
