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
		{Name: "CONCAT", Min: 2, Max: anyNumber, Eval: concat},
		{Name: "CONTAINS", Min: 2, Max: 3, Eval: compareWith(strings.Contains, containsFold)},
		{Name: "CONTAINS_ALL_CI", Min: 2, Max: anyNumber, Eval: containsTerms(allOf, containsFold)},
		{Name: "CONTAINS_ALL_CS", Min: 2, Max: anyNumber, Eval: containsTerms(allOf, strings.Contains)},
		{Name: "CONTAINS_ANY_CI", Min: 2, Max: anyNumber, Eval: containsTerms(anyOf, containsFold)},
		{Name: "CONTAINS_ANY_CS", Min: 2, Max: anyNumber, Eval: containsTerms(anyOf, strings.Contains)},
		{Name: "ENDSWITH", Min: 2, Max: 3, Eval: compareWith(strings.HasSuffix, hasSuffixFold)},
		{Name: "INDEX_OF", Min: 2, Max: 3, Eval: indexOf},
		{Name: "LASTINDEXOF", Min: 2, Max: 3, Eval: lastIndexOf},
		{Name: "LASTSUBSTRINGAFTER", Min: 2, Max: 2, Eval: cutAt(strings.LastIndex, after)},
		{Name: "LASTSUBSTRINGBEFORE", Min: 2, Max: 2, Eval: cutAt(strings.LastIndex, before)},
		{Name: "LEFT", Min: 2, Max: 2, Eval: left},
		{Name: "LENGTH", Min: 1, Max: 1, Eval: length},
		{Name: "LOWER", Min: 1, Max: 1, Eval: ofString(lower)},
		{Name: "LTRIM", Min: 1, Max: 2, Eval: trimWith(strings.TrimLeftFunc)},
		{Name: "REPLACE", Min: 3, Max: 3, Eval: replace},
		{Name: "REPLICATE", Min: 2, Max: 2, Eval: replicate},
		{Name: "REVERSE", Min: 1, Max: 1, Eval: ofString(reverse)},
		{Name: "RIGHT", Min: 2, Max: 2, Eval: right},
		{Name: "RTRIM", Min: 1, Max: 2, Eval: trimWith(strings.TrimRightFunc)},
		{Name: "STARTSWITH", Min: 2, Max: 3, Eval: compareWith(strings.HasPrefix, hasPrefixFold)},
		{Name: "STRINGEQUALS", Min: 2, Max: 3, Eval: compareWith(equalStrings, equalFold)},
		{Name: "STRINGJOIN", Min: 2, Max: 2, Eval: joinStrings},
		{Name: "STRINGSPLIT", Min: 2, Max: 2, Eval: splitString},
		{Name: "SUBSTRING", Min: 3, Max: 3, Eval: substringFunction},
		{Name: "SUBSTRINGAFTER", Min: 2, Max: 2, Eval: cutAt(strings.Index, after)},
		{Name: "SUBSTRINGBEFORE", Min: 2, Max: 2, Eval: cutAt(strings.Index, before)},
		{Name: "TRIM", Min: 1, Max: 2, Eval: trimWith(strings.TrimFunc)},
		{Name: "UPPER", Min: 1, Max: 1, Eval: ofString(upper)},
	}
}

func ofString(f func(string) string) func(*Context, []datum.Value) datum.Value {
	return func(_ *Context, args []datum.Value) datum.Value {
		s, ok := args[0].AsString()
		if !ok {
			return datum.Undefined()
		}
		return datum.Str(f(s))
	}
}

// twoStrings returns the first two arguments if both are strings.
func twoStrings(args []datum.Value) (s, t string, ok bool) {
	s, okS := args[0].AsString()
	t, okT := args[1].AsString()
	return s, t, okS && okT
}

func equalStrings(s, t string) bool { return s == t }

// compareWith makes a function whose third argument, if it is true, chooses the
// comparison that ignores case.
func compareWith(exact, ignoringCase func(s, t string) bool) func(*Context, []datum.Value) datum.Value {
	return func(_ *Context, args []datum.Value) datum.Value {
		s, t, ok := twoStrings(args)
		if !ok {
			return datum.Undefined()
		}
		if len(args) == 2 {
			return datum.Bool(exact(s, t))
		}
		ignore, ok := args[2].AsBool()
		if !ok {
			return datum.Undefined()
		}
		if ignore {
			return datum.Bool(ignoringCase(s, t))
		}
		return datum.Bool(exact(s, t))
	}
}

// containsTerms makes a function that looks for many terms. A term that is no
// string is unknown, and the others may still decide.
func containsTerms(
	join func([]datum.Value, func(datum.Value) truth) datum.Value, contains func(s, term string) bool,
) func(*Context, []datum.Value) datum.Value {
	return func(_ *Context, args []datum.Value) datum.Value {
		s, ok := args[0].AsString()
		if !ok {
			return datum.Undefined()
		}
		return join(args[1:], func(v datum.Value) truth {
			term, ok := v.AsString()
			if !ok {
				return unknown
			}
			return truthOf(contains(s, term))
		})
	}
}

func concat(cx *Context, args []datum.Value) datum.Value {
	size := 0
	for _, a := range args {
		if a.Kind() != datum.KindString {
			return datum.Undefined()
		}
		if size += a.Size(); size > MaxResultBytes {
			return cx.Fail(ErrResultTooLarge)
		}
	}
	var b strings.Builder
	b.Grow(size)
	for _, a := range args {
		s, _ := a.AsString()
		b.WriteString(s)
	}
	return datum.Str(b.String())
}

func length(_ *Context, args []datum.Value) datum.Value {
	s, ok := args[0].AsString()
	if !ok {
		return datum.Undefined()
	}
	return datum.Int(int64(unitsIn(s)))
}

// indexOf returns where the second string first begins in the first, at or after
// a start, or -1. A start before the string is its beginning.
func indexOf(_ *Context, args []datum.Value) datum.Value {
	s, t, ok := twoStrings(args)
	if !ok {
		return datum.Undefined()
	}
	start := int64(0)
	if len(args) == 3 {
		if start, ok = args[2].AsInt(); !ok {
			return datum.Undefined()
		}
	}
	if start > int64(unitsIn(s)) {
		return datum.Int(-1)
	}
	from, split := offsetOf(s, int(max(start, 0)))
	if split {
		from += astralBytes // what begins with half a character is not found
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
	s, t, ok := twoStrings(args)
	if !ok {
		return datum.Undefined()
	}
	if len(args) == 3 {
		last, ok := args[2].AsInt()
		if !ok {
			return datum.Undefined()
		}
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

func substringFunction(_ *Context, args []datum.Value) datum.Value {
	s, ok := args[0].AsString()
	start, okStart := args[1].AsInt()
	count, okCount := args[2].AsInt()
	if !ok || !okStart || !okCount {
		return datum.Undefined()
	}
	return datum.Str(substring(s, start, count))
}

func left(_ *Context, args []datum.Value) datum.Value {
	s, ok := args[0].AsString()
	count, okCount := args[1].AsInt()
	if !ok || !okCount {
		return datum.Undefined()
	}
	return datum.Str(substring(s, 0, count))
}

func right(_ *Context, args []datum.Value) datum.Value {
	s, ok := args[0].AsString()
	count, okCount := args[1].AsInt()
	if !ok || !okCount {
		return datum.Undefined()
	}
	units := int64(unitsIn(s))
	return datum.Str(substring(s, max(units-max(count, 0), 0), units))
}

// trimWith makes a function that cuts off space, or the characters of the second
// argument in any order.
func trimWith(trim func(string, func(rune) bool) string) func(*Context, []datum.Value) datum.Value {
	return func(_ *Context, args []datum.Value) datum.Value {
		s, ok := args[0].AsString()
		if !ok {
			return datum.Undefined()
		}
		if len(args) == 1 {
			return datum.Str(trim(s, unicode.IsSpace))
		}
		set, ok := args[1].AsString()
		if !ok {
			return datum.Undefined()
		}
		return datum.Str(trim(s, oneOf(set)))
	}
}

// maxScannedSet is the longest set of characters that is gone through for each
// character of a text.
const maxScannedSet = 32

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
	s, find, ok := twoStrings(args)
	with, okWith := args[2].AsString()
	if !ok || !okWith || find == "" {
		return datum.Undefined()
	}
	if grown := len(with) - len(find); grown > 0 && len(s)+grown*strings.Count(s, find) > MaxResultBytes {
		return cx.Fail(ErrResultTooLarge)
	}
	return datum.Str(strings.ReplaceAll(s, find, with))
}

// replicate repeats a string; a fraction in the count is dropped.
func replicate(_ *Context, args []datum.Value) datum.Value {
	s, ok := args[0].AsString()
	count, okCount := args[1].AsFloat()
	if !ok || !okCount || !(count >= 0) || math.IsInf(count, 1) {
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
	s, separator, ok := twoStrings(args)
	if !ok {
		return datum.Undefined()
	}
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

func before(s string, at, _ int) string { return s[:at] }

func after(s string, at, size int) string { return s[at+size:] }

// cutAt makes a function that returns what is before or after an occurrence of
// the second argument. The service has these functions and does not document
// them; where there is no occurrence, the result is empty, as it is for the
// functions of XPath that have the same names.
func cutAt(
	find func(s, t string) int, side func(s string, at, size int) string,
) func(*Context, []datum.Value) datum.Value {
	return func(_ *Context, args []datum.Value) datum.Value {
		s, t, ok := twoStrings(args)
		if !ok {
			return datum.Undefined()
		}
		at := find(s, t)
		if at < 0 {
			return datum.Str("")
		}
		return datum.Str(side(s, at, len(t)))
	}
}
