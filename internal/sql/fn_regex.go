// SPDX-License-Identifier: MIT

// Regular expressions. They are matched in linear time, whatever the pattern:
// what that cannot do, like looking ahead or referring back to a group, is
// refused when the pattern is written in the query, and makes the result
// undefined when it comes from an item.

package sql

import (
	"regexp"
	"strings"
	"unicode"
)

const (
	maxPatternBytes = 64 << 10
	maxRegexes      = 64     // that one execution remembers
	maxMatches      = 10_000 // that REGEXEXTRACTALL returns
)

func regexFunctions() []Function {
	return []Function{
		{Name: "REGEXEXTRACT", Min: 2, Max: 4, Eval: regexExtract, Check: checkRegex},
		{Name: "REGEXEXTRACTALL", Min: 2, Max: 4, Eval: regexExtractAll, Check: checkRegex},
		{Name: "REGEXMATCH", Min: 2, Max: 3, Eval: regexMatch, Check: checkRegex},
	}
}

type regexKey struct{ pattern, modifiers string }

// regex returns the compiled pattern of a call, from the second and third
// argument. It is undefined (nil) for wrong types, unknown modifiers and patterns
// that are none.
func (cx *Context) regex(args []Value) *regexp.Regexp {
	pattern, ok := args[1].AsString()
	if !ok {
		return nil
	}
	modifiers := ""
	if len(args) > 2 {
		if modifiers, ok = args[2].AsString(); !ok {
			return nil
		}
	}
	key := regexKey{pattern, modifiers}
	if re, ok := cx.regexes[key]; ok {
		return re
	}
	re, err := compileRegex(pattern, modifiers)
	if err != nil {
		re = nil
	}
	if cx.regexes == nil || len(cx.regexes) >= maxRegexes {
		cx.regexes = make(map[regexKey]*regexp.Regexp)
	}
	key = regexKey{strings.Clone(pattern), strings.Clone(modifiers)} // an item's memory is not kept
	cx.regexes[key] = re
	return re
}

// checkRegex refuses a pattern that is written in the query and can never match.
func checkRegex(args []Value) error {
	pattern, ok := optional(args, 1).AsString()
	if !ok {
		return nil
	}
	modifiers, _ := optional(args, 2).AsString()
	if _, flags := modifierFlags(modifiers); !flags {
		return nil // undefined in the service's language, and no fault of the pattern
	}
	if _, err := compileRegex(pattern, modifiers); err != nil {
		return &Error{Message: "The regular expression is not supported: " + err.Error()}
	}
	return nil
}

// modifierFlags translates i, m, s and x; x has no flag of its own.
func modifierFlags(modifiers string) (flags string, ok bool) {
	for _, m := range modifiers {
		switch m {
		case 'i', 'm', 's':
			flags += string(m)
		case 'x':
		default:
			return "", false
		}
	}
	return flags, true
}

func compileRegex(pattern, modifiers string) (*regexp.Regexp, error) {
	flags, ok := modifierFlags(modifiers)
	if !ok {
		return nil, &Error{Message: "unknown modifier in '" + modifiers + "'"}
	}
	if len(pattern) > maxPatternBytes {
		return nil, &Error{Message: "the pattern is too long"}
	}
	if strings.ContainsRune(modifiers, 'x') {
		pattern = withoutSpace(pattern)
	}
	if flags != "" {
		pattern = "(?" + flags + ")" + pattern
	}
	return regexp.Compile(pattern)
}

// withoutSpace drops the space and the comments that the modifier x allows in a
// pattern: all that is not escaped and not in a class.
func withoutSpace(pattern string) string {
	var b strings.Builder
	escaped, class, comment := false, false, false
	for _, r := range pattern {
		switch {
		case comment:
			comment = r != '\n'
			continue
		case escaped:
			escaped = false
		case r == '\\':
			escaped = true
		case class:
			class = r != ']'
		case r == '[':
			class = true
		case r == '#':
			comment = true
			continue
		case unicode.IsSpace(r):
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func regexMatch(cx *Context, args []Value) Value {
	s, ok := args[0].AsString()
	re := cx.regex(args)
	if !ok || re == nil {
		return Undefined()
	}
	return Bool(re.MatchString(s))
}

// regexExtract returns the first match, or one group of it.
func regexExtract(cx *Context, args []Value) Value {
	s, ok := args[0].AsString()
	re := cx.regex(args)
	if !ok || re == nil {
		return Undefined()
	}
	group := int64(0)
	if len(args) == 4 {
		if group, ok = args[3].AsInt(); !ok || group < 0 || group > int64(re.NumSubexp()) {
			return Undefined()
		}
	}
	return groupOf(s, re.FindStringSubmatchIndex(s), int(group))
}

// groupOf returns a group of a match, undefined if it took no part in it.
func groupOf(s string, match []int, group int) Value {
	if match == nil || match[2*group] < 0 {
		return Undefined()
	}
	return Str(s[match[2*group]:match[2*group+1]])
}

// regexExtractAll returns an array for each match, with the groups that the
// fourth argument lists, or the whole match.
func regexExtractAll(cx *Context, args []Value) Value {
	s, ok := args[0].AsString()
	re := cx.regex(args)
	if !ok || re == nil {
		return Undefined()
	}
	groups, ok := groupList(args, re.NumSubexp())
	if !ok {
		return Undefined()
	}
	matches := re.FindAllStringSubmatchIndex(s, maxMatches+1)
	if len(matches) > maxMatches {
		return cx.fail(ErrResultTooLarge)
	}
	var all ArrayBuilder
	for _, match := range matches {
		var b ArrayBuilder
		for _, group := range groups {
			b.Add(groupOf(s, match, group))
		}
		all.Add(b.Value())
		if all.Size() > maxResultBytes {
			return cx.fail(ErrResultTooLarge)
		}
	}
	return all.Value()
}

func groupList(args []Value, last int) (groups []int, ok bool) {
	if len(args) < 4 {
		return []int{0}, true
	}
	if args[3].Kind() != KindArray {
		return nil, false
	}
	for element := range args[3].Elements {
		group, ok := element.AsInt()
		if !ok || group < 0 || group > int64(last) {
			return nil, false
		}
		groups = append(groups, int(group))
	}
	return groups, true
}
