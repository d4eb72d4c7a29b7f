// SPDX-License-Identifier: MIT

// Functions on strings.

package function

import (
	"math"
	"strings"
	"unicode"

	"github.com/mayflydb/mayfly/internal/sql/datum"
)

// maxReplicated is how many code units REPLICATE may make; the service documents
// this limit and answers undefined beyond it.
const maxReplicated = 10_000

func stringFunctions() []Function {
	return []Function{
		{Name: "CONCAT", Args: "ss*", Eval: concat},
		{Name: "CONTAINS", Args: "ss|b", Eval: compareWith(strings.Contains, containsFold)},
		{Name: "CONTAINS_ALL_CI", Also: "CONTAINSALLCI", Args: "s.*", Eval: containsTerms(allOf, containsFold)},
		{Name: "CONTAINS_ALL_CS", Also: "CONTAINSALLCS", Args: "s.*", Eval: containsTerms(allOf, strings.Contains)},
		{Name: "CONTAINS_ANY_CI", Also: "CONTAINSANYCI", Args: "s.*", Eval: containsTerms(anyOf, containsFold)},
		{Name: "CONTAINS_ANY_CS", Also: "CONTAINSANYCS", Args: "s.*", Eval: containsTerms(anyOf, strings.Contains)},
		{Name: "ENDSWITH", Args: "ss|b", Eval: compareWith(strings.HasSuffix, hasSuffixFold)},
		{Name: "INDEX_OF", Also: "INDEXOF", Args: "ss|i", Eval: indexOf},
		{Name: "LASTINDEXOF", Args: "ss|i", Eval: lastIndexOf},
		{Name: "LASTSUBSTRINGAFTER", Args: "ss", Eval: cutAt(strings.LastIndex, after)},
		{Name: "LASTSUBSTRINGBEFORE", Args: "ss", Eval: cutAt(strings.LastIndex, before)},
		{Name: "LEFT", Args: "si", Eval: left},
		{Name: "LENGTH", Args: "s", Eval: length},
		{Name: "LOWER", Args: "s", Eval: ofString(lower)},
		{Name: "LTRIM", Args: "s|s", Eval: trimWith(strings.TrimLeftFunc)},
		{Name: "REPLACE", Args: "sss", Eval: replace},
		{Name: "REPLICATE", Args: "sn", Eval: replicate},
		{Name: "REVERSE", Args: "s", Eval: ofString(reverse)},
		{Name: "RIGHT", Args: "si", Eval: right},
		{Name: "RTRIM", Args: "s|s", Eval: trimWith(strings.TrimRightFunc)},
		{Name: "STARTSWITH", Args: "ss|b", Eval: compareWith(strings.HasPrefix, hasPrefixFold)},
		{Name: "STRINGEQUALS", Also: "STRING_EQUALS", Args: "ss|b", Eval: compareWith(equalStrings, equalFold)},
		{Name: "STRINGJOIN", Also: "STRING_JOIN", Args: "as", Eval: joinStrings},
		{Name: "STRINGSPLIT", Also: "STRING_SPLIT", Args: "ss", Eval: splitString},
		{Name: "SUBSTRING", Args: "sii", Eval: substringFunction},
		{Name: "SUBSTRINGAFTER", Args: "ss", Eval: cutAt(strings.Index, after)},
		{Name: "SUBSTRINGBEFORE", Args: "ss", Eval: cutAt(strings.Index, before)},
		{Name: "TRIM", Args: "s|s", Eval: trimWith(strings.TrimFunc)},
		{Name: "UPPER", Args: "s", Eval: ofString(upper)},
	}
}

// The functions below that make an Eval are not inlined: stringFunctions is so large that
// the compiler would then inline next to nothing into the closures.

//go:noinline
func ofString(f func(string) string) func(*Context, []datum.Value) datum.Value {
	return func(_ *Context, args []datum.Value) datum.Value { return datum.Str(f(args[0].Text())) }
}

// equalStrings is the comparison of STRINGEQUALS that minds case.
func equalStrings(s, t string) bool { return s == t }

// compareWith makes a function whose third argument, if it is true, chooses the
// comparison that ignores case.
//
//go:noinline
func compareWith(exact, ignoringCase func(s, t string) bool) func(*Context, []datum.Value) datum.Value {
	return func(_ *Context, args []datum.Value) datum.Value {
		if len(args) == 3 && args[2].IsTrue() {
			return datum.Bool(ignoringCase(args[0].Text(), args[1].Text()))
		}
		return datum.Bool(exact(args[0].Text(), args[1].Text()))
	}
}

// containsTerms makes a function that looks for many terms. A term that is no
// string is unknown, and the others may still decide.
//
//go:noinline
func containsTerms(
	join func([]datum.Value, func(datum.Value) datum.Value) datum.Value, contains func(s, term string) bool,
) func(*Context, []datum.Value) datum.Value {
	return func(_ *Context, args []datum.Value) datum.Value {
		s := args[0].Text()
		return join(args[1:], func(v datum.Value) datum.Value {
			term, ok := v.AsString()
			if !ok {
				return datum.Undefined()
			}
			return datum.Bool(contains(s, term))
		})
	}
}

// concat adds up the sizes before it copies anything.
func concat(cx *Context, args []datum.Value) datum.Value {
	size := 0
	for _, a := range args {
		if size += a.Size(); size > MaxResultBytes {
			return cx.Fail(ErrResultTooLarge)
		}
	}
	var b strings.Builder
	b.Grow(size)
	for _, a := range args {
		b.WriteString(a.Text())
	}
	return datum.Str(b.String())
}

// length counts code units, and not characters or bytes: see unitsIn.
func length(_ *Context, args []datum.Value) datum.Value {
	return datum.Int(int64(unitsIn(args[0].Text())))
}

// indexOf returns where the second string first begins in the first, at or after
// a start, or -1. A start before the string is its beginning.
func indexOf(_ *Context, args []datum.Value) datum.Value {
	s, t, from := args[0].Text(), args[1].Text(), 0
	if len(args) == 3 {
		start, split := integer(args[2]), false
		if start > int64(unitsIn(s)) {
			return datum.Int(-1)
		}
		if from, split = offsetOf(s, int(start)); split {
			from += astralBytes // what begins with half a character is not found
		}
	}
	at := strings.Index(s[from:], t)
	if at < 0 {
		return datum.Int(-1)
	}
	return datum.Int(int64(unitsIn(s[:from+at])))
}

// lastIndexOf returns where the second string last begins in the first, or -1. A
// third argument is the last position that the match may cover.
func lastIndexOf(_ *Context, args []datum.Value) datum.Value {
	s, t := args[0].Text(), args[1].Text()
	if len(args) == 3 {
		last := integer(args[2])
		if last < 0 {
			return datum.Int(-1)
		}
		if last < int64(len(s)) {
			to, _ := offsetOf(s, int(last)+1)
			s = s[:to]
		}
	}
	at := strings.LastIndex(s, t)
	if at < 0 {
		return datum.Int(-1)
	}
	return datum.Int(int64(unitsIn(s[:at])))
}

// substringFunction is SUBSTRING; its start counts from 0.
func substringFunction(_ *Context, args []datum.Value) datum.Value {
	return datum.Str(substring(args[0].Text(), integer(args[1]), integer(args[2])))
}

// left is the beginning, in code units.
func left(_ *Context, args []datum.Value) datum.Value {
	return datum.Str(substring(args[0].Text(), 0, integer(args[1])))
}

// right counts from the end, in code units: see unitsIn.
func right(_ *Context, args []datum.Value) datum.Value {
	s := args[0].Text()
	units := int64(unitsIn(s))
	return datum.Str(substring(s, max(units-max(integer(args[1]), 0), 0), units))
}

// trimWith makes a function that cuts off space, or the characters of the second
// argument in any order.
//
//go:noinline
func trimWith(trim func(string, func(rune) bool) string) func(*Context, []datum.Value) datum.Value {
	return func(_ *Context, args []datum.Value) datum.Value {
		cut := unicode.IsSpace
		if len(args) == 2 {
			cut = oneOf(args[1].Text())
		}
		return datum.Str(trim(args[0].Text(), cut))
	}
}

// maxScannedSet is the longest set of characters that is gone through for each
// character of a text.
const maxScannedSet = 32

// oneOf returns a test for the characters of a set.
func oneOf(set string) func(rune) bool {
	if len(set) <= maxScannedSet {
		return func(r rune) bool { return strings.ContainsRune(set, r) }
	}
	characters := make(map[rune]bool)
	for _, r := range set {
		characters[r] = true
	}
	return func(r rune) bool { return characters[r] }
}

// replace changes every occurrence. An empty string to look for has none that
// could be counted: the result is undefined, as in the service's own test engine.
func replace(cx *Context, args []datum.Value) datum.Value {
	s, find, with := args[0].Text(), args[1].Text(), args[2].Text()
	if find == "" {
		return datum.Undefined()
	}
	if grown := len(with) - len(find); grown > 0 && len(s)+grown*strings.Count(s, find) > MaxResultBytes {
		return cx.Fail(ErrResultTooLarge)
	}
	return datum.Str(strings.ReplaceAll(s, find, with))
}

// replicate repeats a string; a fraction in the count is dropped.
func replicate(_ *Context, args []datum.Value) datum.Value {
	s, count := args[0].Text(), args[1].Number()
	if !(count >= 0) || math.IsInf(count, 1) {
		return datum.Undefined()
	}
	if s == "" {
		return datum.Str("")
	}
	if math.Trunc(count)*float64(unitsIn(s)) > maxReplicated {
		return datum.Undefined()
	}
	return datum.Str(strings.Repeat(s, int(count)))
}

// splitString returns what lies between separators. An empty separator occurs
// nowhere.
func splitString(_ *Context, args []datum.Value) datum.Value {
	s, separator := args[0].Text(), args[1].Text()
	var b datum.ArrayBuilder
	if separator == "" {
		b.Add(datum.Str(s))
		return b.Value()
	}
	for part := range strings.SplitSeq(s, separator) {
		b.Add(datum.Str(part))
	}
	return b.Value()
}

// before and after are the sides of an occurrence, for cutAt.
func before(s string, at, _ int) string { return s[:at] }

func after(s string, at, size int) string { return s[at+size:] }

// cutAt makes a function that returns what is before or after an occurrence of
// the second argument. The service has these functions and does not document
// them; where there is no occurrence, the result is empty, as it is for the
// functions of XPath that have the same names.
//
//go:noinline
func cutAt(
	find func(s, t string) int, side func(s string, at, size int) string,
) func(*Context, []datum.Value) datum.Value {
	return func(_ *Context, args []datum.Value) datum.Value {
		s, t := args[0].Text(), args[1].Text()
		at := find(s, t)
		if at < 0 {
			return datum.Str("")
		}
		return datum.Str(side(s, at, len(t)))
	}
}
