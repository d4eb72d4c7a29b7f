// SPDX-License-Identifier: MIT

package function

import (
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/sql/datum"
	"pgregory.net/rapid"
)

func TestRegexFunctions(t *testing.T) {
	sheet(t, `
REGEXMATCH("river", "v.r") => true
REGEXMATCH("river", "^v") => false
REGEXMATCH("river", "RIV") => false
REGEXMATCH("river", "RIV", "i") => true
REGEXMATCH("river", "RIV", "") => false
REGEXMATCH("a\nb", "^b") => false
REGEXMATCH("a\nb", "^b", "m") => true
REGEXMATCH("a\nb", "a.b") => false
REGEXMATCH("a\nb", "a.b", "s") => true
REGEXMATCH("ab", "a b # both", "x") => true
REGEXMATCH("a b", "a\\ b", "x") => true
REGEXMATCH("a b", "a[ ]b", "x") => true
REGEXMATCH("A\nB", "a . b", "isx") => true
REGEXMATCH("a", "a", "g") => undefined
REGEXMATCH("", "") => true
REGEXMATCH("café", "^\\pL+$") => true

REGEXEXTRACT("id=42;id=43", "[0-9]+") => "42"
REGEXEXTRACT("id=42;id=43", "ID=([0-9]+)", "i", 1) => "42"
REGEXEXTRACT("id=42", "x") => undefined
REGEXEXTRACT("a", "(a)|(b)", "", 2) => undefined
REGEXEXTRACT("a", "(a)", "", 2) => undefined
REGEXEXTRACT("a", "(a)", "", -1) => undefined
REGEXEXTRACT("a", "(a)", "", 0.5) => undefined

REGEXEXTRACTALL("a1 b2", "[a-z][0-9]") => [["a1"],["b2"]]
REGEXEXTRACTALL("a1 b2", "([a-z])([0-9])", "", [2, 1]) => [["1","a"],["2","b"]]
REGEXEXTRACTALL("a1", "x") => []
REGEXEXTRACTALL("a", "(a)|(b)", "", [1, 2]) => [["a"]]
REGEXEXTRACTALL("a", "a", "", [1]) => undefined
REGEXEXTRACTALL("a", "a", "", ["0"]) => undefined
`)
}

func TestRegexFromItems(t *testing.T) {
	cx := testContext()
	for pattern, want := range map[string]string{
		"a+":                                   "true",
		"a++":                                  "undefined",
		"(?=a)":                                "undefined",
		`(a)\1`:                                "undefined",
		"[":                                    "undefined",
		"(a{1000}){99}":                        "undefined",
		strings.Repeat("a", maxPatternBytes+1): "undefined",
	} {
		for range 2 { // the second time from memory
			got := regexMatch(cx, []datum.Value{datum.Str("aa"), datum.Str(pattern)}).String()
			if got != want {
				t.Errorf("%.20q: got %s, want %s", pattern, got, want)
			}
		}
	}
	for i := range 3 * maxRegexes {
		regexMatch(cx, []datum.Value{datum.Str("aa"), datum.Str(strings.Repeat("a", i))})
		if len(cx.regexes) > maxRegexes {
			t.Fatalf("%d patterns are remembered", len(cx.regexes))
		}
	}
}

// Matches that are searched for one after the other are those that are found at once.
func TestMatchesOneByOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.StringOfN(rapid.SampledFrom([]rune(`ab\b^$.*?|()é+`)), 1, 8, -1).Draw(t, "pattern")
		if rapid.Bool().Draw(t, "lines") {
			pattern = "(?m)" + pattern
		}
		compiled, err := regexp.Compile(pattern)
		if err != nil {
			return
		}
		s := rapid.StringOfN(rapid.SampledFrom([]rune("abé\n ")), 0, 12, -1).Draw(t, "text")
		re := &regex{Regexp: compiled, states: maxMatchSteps} // as if it had very many
		got, want := re.findAll(&Context{}, s), compiled.FindAllStringSubmatchIndex(s, -1)
		if len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
			t.Fatalf("%q in %q: got %v, want %v", pattern, s, got, want)
		}
	})
}
