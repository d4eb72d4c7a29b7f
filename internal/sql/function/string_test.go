// SPDX-License-Identifier: MIT

package function

import (
	"strings"
	"testing"
	"unicode/utf16"

	"pgregory.net/rapid"

	"github.com/mayflydb/mayfly/internal/sql/datum"
)

func TestStringFunctions(t *testing.T) {
	sheet(t, `
CONCAT("a", "b") => "ab"
CONCAT("", "") => ""
CONCAT("a", "\"", "é", "😀") => "a\"é😀"
CONCAT("a", 1) => undefined

CONTAINS("river", "ive") => true
CONTAINS("river", "IVE") => false
CONTAINS("river", "IVE", false) => false
CONTAINS("river", "IVE", true) => true
CONTAINS("river", "") => true
CONTAINS("", "a") => false
CONTAINS("RIVER", "", true) => true
CONTAINS("ÉTÉ", "té", true) => true
CONTAINS("river", "r", undefined) => undefined
STARTSWITH("river", "ri") => true
STARTSWITH("river", "RI") => false
STARTSWITH("river", "RI", true) => true
STARTSWITH("ri", "river", true) => false
STARTSWITH("Éa", "éA", true) => true
STARTSWITH("river", "") => true
ENDSWITH("river", "ver") => true
ENDSWITH("river", "VER") => false
ENDSWITH("river", "VER", true) => true
ENDSWITH("er", "river", true) => false
ENDSWITH("caFÉ", "fé", true) => true
STRINGEQUALS("a", "a") => true
STRINGEQUALS("a", "A") => false
STRINGEQUALS("a", "A", true) => true
STRINGEQUALS("a", "AB", true) => false
STRINGEQUALS("é", "É", true) => true

CONTAINS_ANY_CS("one two", "TWO", "three") => false
CONTAINS_ANY_CI("one two", "TWO", "three") => true
CONTAINS_ANY_CI("one two", undefined, "two") => true
CONTAINS_ANY_CI("one two", undefined, "three") => undefined
CONTAINS_ANY_CI("one two", 7, "three") => undefined
CONTAINS_ALL_CS("one two", "one", "two") => true
CONTAINS_ALL_CS("one two", "one", "TWO") => false
CONTAINS_ALL_CI("one two", "one", "TWO") => true
CONTAINS_ALL_CI("one two", undefined, "three") => false
CONTAINS_ALL_CI("one two", undefined, "two") => undefined

INDEX_OF("banana", "an") => 1
INDEX_OF("banana", "an", 2) => 3
INDEX_OF("banana", "an", 4) => -1
INDEX_OF("banana", "x") => -1
INDEX_OF("banana", "") => 0
INDEX_OF("banana", "", 6) => 6
INDEX_OF("banana", "", 7) => -1
INDEX_OF("banana", "b", -5) => 0
INDEX_OF("banana", "b", 0.5) => undefined
INDEX_OF("😀é!", "!") => 3
INDEX_OF("😀é!", "!", 3) => 3
INDEX_OF("😀😀", "😀", 1) => 2
LASTINDEXOF("banana", "an") => 3
LASTINDEXOF("banana", "an", 4) => 3
LASTINDEXOF("banana", "an", 3) => 1
LASTINDEXOF("banana", "an", 0) => -1
LASTINDEXOF("banana", "an", -1) => -1
LASTINDEXOF("banana", "an", 99) => 3
LASTINDEXOF("banana", "x") => -1
LASTINDEXOF("é😀!😀", "😀") => 4
LASTINDEXOF("banana", "a", 1.5) => undefined

LEFT("river", 2) => "ri"
LEFT("river", 0) => ""
LEFT("river", -1) => ""
LEFT("river", 99) => "river"
LEFT("river", 2.5) => undefined
LEFT("é😀!", 3) => "é😀"
RIGHT("river", 2) => "er"
RIGHT("river", 0) => ""
RIGHT("river", -1) => ""
RIGHT("river", 99) => "river"
RIGHT("river", 9223372036854775807) => "river"
RIGHT("river", -9223372036854775808) => ""
RIGHT("é😀!", 3) => "😀!"
SUBSTRING("river", 1, 3) => "ive"
SUBSTRING("river", 0, 99) => "river"
SUBSTRING("river", 4, 9223372036854775807) => "r"
SUBSTRING("river", 5, 1) => ""
SUBSTRING("river", -1, 3) => ""
SUBSTRING("river", 1, 0) => ""
SUBSTRING("river", 1, -2) => ""
SUBSTRING("river", 1.5, 2) => undefined
SUBSTRING("é😀!", 1, 2) => "😀"
SUBSTRING("é😀!", 1, 1) => "�"
SUBSTRING("é😀!", 2, 2) => "�!"

LENGTH("river") => 5
LENGTH("") => 0
LENGTH("é") => 1
LENGTH("😀") => 2
LENGTH("a\u0000b") => 3
LOWER("ÀBC1") => "àbc1"
UPPER("àbc1") => "ÀBC1"
UPPER("straße") => "STRAßE"
UPPER("µ") => "µ"
UPPER("ıſ") => "ıſ"
UPPER("μςσ") => "ΜΣΣ"
LOWER("İΣ") => "İσ"
STRINGEQUALS("µ", "μ", true) => false
STRINGEQUALS("ς", "σ", true) => true
REVERSE("abc") => "cba"
REVERSE("") => ""
REVERSE("é😀!") => "!😀é"

LTRIM("  a ") => "a "
RTRIM("  a ") => "  a"
TRIM("\t\n a \r") => "a"
TRIM("") => ""
LTRIM("xyxa", "yx") => "a"
RTRIM("axyx", "yx") => "a"
TRIM("xyaxb", "xyb") => "a"
TRIM("xax", "") => "xax"
TRIM(" a ", "x") => " a "
TRIM("éaé", "é") => "a"
TRIM("zébéz", "0123456789abcdefghijklmnopqrstuvwxyzé") => ""
TRIM("zéBéz", "0123456789abcdefghijklmnopqrstuvwxyzé") => "B"

REPLACE("banana", "an", "-") => "b--a"
REPLACE("banana", "x", "-") => "banana"
REPLACE("banana", "a", "") => "bnn"
REPLACE("banana", "", "-") => undefined
REPLICATE("ab", 3) => "ababab"
REPLICATE("ab", 2.9) => "abab"
REPLICATE("ab", 0) => ""
REPLICATE("ab", -1) => undefined
REPLICATE("ab", 1/0) => undefined
REPLICATE("ab", 0/0) => undefined
LENGTH(REPLICATE("ab", 5000)) => 10000
REPLICATE("ab", 5001) => undefined
REPLICATE("", 9e15) => ""
REPLICATE("a", 1e300) => undefined

STRINGJOIN(["a", "b", "c"], ", ") => "a, b, c"
STRINGJOIN(["a"], "-") => "a"
STRINGJOIN([], "-") => ""
STRINGJOIN(["a", 1], "-") => undefined
STRINGSPLIT("a,b,,c", ",") => ["a","b","","c"]
STRINGSPLIT("abc", "") => ["abc"]
STRINGSPLIT("", ",") => [""]
STRINGSPLIT("a--b", "--") => ["a","b"]
STRINGSPLIT("abc", "x") => ["abc"]

SUBSTRINGBEFORE("a.b.c", ".") => "a"
SUBSTRINGBEFORE("abc", ".") => ""
SUBSTRINGAFTER("a.b.c", ".") => "b.c"
SUBSTRINGAFTER("abc", ".") => ""
LASTSUBSTRINGBEFORE("a.b.c", ".") => "a.b"
LASTSUBSTRINGAFTER("a.b.c", ".") => "c"
LASTSUBSTRINGAFTER("abc", ".") => ""
`)
}

// TestUnits compares cutting by code units with a twin that has them in a slice.
func TestUnits(t *testing.T) {
	text := rapid.StringOfN(rapid.SampledFrom([]rune("ab é€😀𝄞\u0000￿")), 0, 12, -1)
	rapid.Check(t, func(t *rapid.T) {
		s := text.Draw(t, "s")
		units := utf16.Encode([]rune(s))
		if got := unitsIn(s); got != len(units) {
			t.Fatalf("%q has %d units, got %d", s, len(units), got)
		}
		start := rapid.Int64Range(-2, 26).Draw(t, "start")
		count := rapid.Int64Range(-2, 26).Draw(t, "count")
		want := ""
		if start >= 0 && start < int64(len(units)) && count > 0 {
			// Decoding makes U+FFFD of half a character.
			want = string(utf16.Decode(units[start:min(start+count, int64(len(units)))]))
		}
		if got := substring(s, start, count); got != want {
			t.Fatalf("%q from %d, %d units: got %q, want %q", s, start, count, got, want)
		}
	})
}

// TestFold compares the ways to ignore case, which are fast for short ASCII, with
// upper-case copies.
func TestFold(t *testing.T) {
	text := rapid.StringOfN(rapid.SampledFrom([]rune("aAbBzZ{[é É")), 0, 8, -1)
	rapid.Check(t, func(t *rapid.T) {
		s, term := text.Draw(t, "s"), text.Draw(t, "term")
		if rapid.Bool().Draw(t, "long") {
			term = strings.Repeat(term, 9)
			s = s + strings.ToLower(term)
		}
		upperS, upperT := strings.ToUpper(s), strings.ToUpper(term)
		for name, c := range map[string]struct{ got, want bool }{
			"contains": {containsFold(s, term), strings.Contains(upperS, upperT)},
			"prefix":   {hasPrefixFold(s, term), strings.HasPrefix(upperS, upperT)},
			"suffix":   {hasSuffixFold(s, term), strings.HasSuffix(upperS, upperT)},
			"equal":    {equalFold(s, term), upperS == upperT},
		} {
			if c.got != c.want {
				t.Fatalf("%s of %q and %q: got %v", name, s, term, c.got)
			}
		}
	})
}

func BenchmarkStringFunctions(b *testing.B) {
	text := datum.Raw([]byte(`"Mountain bike with a carbon frame, 29 inch wheels and hydraulic brakes"`))
	for _, c := range []struct {
		name, function string
		args           []datum.Value
	}{
		{"Contains", "CONTAINS", []datum.Value{text, datum.Str("hydraulic")}},
		{"ContainsIgnoringCase", "CONTAINS", []datum.Value{text, datum.Str("HYDRAULIC"), datum.Bool(true)}},
		{"StartsWith", "STARTSWITH", []datum.Value{text, datum.Str("Mountain")}},
		{"StringEqualsIgnoringCase", "STRINGEQUALS", []datum.Value{text, text, datum.Bool(true)}},
		{"Length", "LENGTH", []datum.Value{text}},
		{"Substring", "SUBSTRING", []datum.Value{text, datum.Int(9), datum.Int(4)}},
		{"IndexOf", "INDEX_OF", []datum.Value{text, datum.Str("brakes")}},
		{"Lower", "LOWER", []datum.Value{text}},
		{"Concat", "CONCAT", []datum.Value{text, datum.Str("; "), text}},
		{"RegexMatch", "REGEXMATCH", []datum.Value{text, datum.Str("[0-9]+ inch")}},
		{"FullTextContains", "FULLTEXTCONTAINS", []datum.Value{text, datum.Str("hydraulic brake")}},
	} {
		b.Run(c.name, func(b *testing.B) {
			f, _ := Lookup(c.function)
			cx := testContext()
			b.ReportAllocs()
			for b.Loop() {
				if f.Eval(cx, c.args).IsUndefined() {
					b.Fatal("undefined")
				}
			}
		})
	}
}
