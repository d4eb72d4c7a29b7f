// SPDX-License-Identifier: MIT

// Regular expressions. They are matched in linear time, whatever the pattern:
// what that cannot do, like looking ahead or referring back to a group, is
// refused when the pattern is written in the query, and makes the result
// undefined when it comes from an item.
//
// Linear may be long: each character of the text may take as many steps as the
// pattern has states, of which a{1000} has a thousand. So a text for which that is
// very much is given to the matcher character by character, and ends where the
// execution must.

package function

import (
	"io"
	"regexp"
	regexsyntax "regexp/syntax"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mayflydb/mayfly/internal/sql/datum"
	"github.com/mayflydb/mayfly/internal/sql/syntax"
)

const (
	maxPatternBytes = 64 << 10
	maxRegexes      = 64     // that one execution remembers
	maxMatches      = 10_000 // that REGEXEXTRACTALL returns

	// maxMatchSteps is how many steps a match may take that cannot be interrupted: a
	// second's work at worst. The matcher is many times faster where it has the text
	// as a whole.
	maxMatchSteps = 1 << 27
)

// regex is a compiled pattern.
type regex struct {
	*regexp.Regexp
	states int // about how many there are
	// after finds a match that begins at the second character of a text, or later. The
	// first is there for what looks back at it, like \b.
	after *regexp.Regexp
}

func regexFunctions() []Function {
	return []Function{
		{Name: "REGEXEXTRACT", Args: "ss|si", Eval: regexExtract, Check: checkRegex},
		{Name: "REGEXEXTRACTALL", Args: "ss|sa", Eval: regexExtractAll, Check: checkRegex},
		{Name: "REGEXMATCH", Args: "ss|s", Eval: regexMatch, Check: checkRegex},
	}
}

// regexKey is what the compiled patterns of an execution are remembered by.
type regexKey struct{ pattern, modifiers string }

// regex returns the compiled pattern of a call, from the second and third
// argument. It is undefined (nil) for unknown modifiers and patterns that are none.
func (cx *Context) regex(args []datum.Value) *regex {
	pattern, modifiers := args[1].Text(), optional(args, 2).Text()
	key := regexKey{pattern, modifiers}
	if re, ok := cx.regexes[key]; ok {
		return re
	}
	re, err := compileRegex(pattern, modifiers)
	if err != nil {
		re = nil
	} else if !cx.Read(re.states, stateBytes) {
		return nil
	}
	if cx.regexes == nil || len(cx.regexes) >= maxRegexes {
		cx.regexes = make(map[regexKey]*regex)
	}
	key = regexKey{strings.Clone(pattern), strings.Clone(modifiers)} // an item's memory is not kept
	cx.regexes[key] = re
	return re
}

// checkRegex refuses a pattern that is written in the query and can never match.
func checkRegex(args []datum.Value) *syntax.Error {
	pattern, ok := optional(args, 1).AsString()
	if !ok {
		return nil
	}
	modifiers := optional(args, 2).Text()
	if _, flags := modifierFlags(modifiers); !flags {
		return nil // undefined in the service's language, and no fault of the pattern
	}
	if _, err := compileRegex(pattern, modifiers); err != nil {
		return &syntax.Error{Message: "The regular expression is not supported: " + err.Error()}
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

// stateBytes is about how much text could be read while a state of a pattern is made.
const stateBytes = 256

// compileRegex reads a pattern with its modifiers. Patterns may come from items, so their
// length is bounded before any work is done.
func compileRegex(pattern, modifiers string) (*regex, error) {
	flags, ok := modifierFlags(modifiers)
	if !ok {
		return nil, &syntax.Error{Message: "unknown modifier in '" + modifiers + "'"}
	}
	if len(pattern) > maxPatternBytes {
		return nil, &syntax.Error{Message: "the pattern is too long"}
	}
	if strings.ContainsRune(modifiers, 'x') {
		pattern = withoutSpace(pattern)
	}
	if flags != "" {
		pattern = "(?" + flags + ")" + pattern
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, err
	}
	return &regex{Regexp: re, states: statesOf(pattern)}, nil
}

// statesOf returns about how many states a pattern has. Without counted repetitions
// there are no more than characters.
func statesOf(pattern string) int {
	if !strings.Contains(pattern, "{") {
		return len(pattern)
	}
	parsed, err := regexsyntax.Parse(pattern, regexsyntax.Perl)
	if err != nil {
		return len(pattern)
	}
	program, err := regexsyntax.Compile(parsed.Simplify())
	if err != nil {
		return len(pattern)
	}
	return len(program.Inst)
}

// watched is a text that ends where the execution must.
type watched struct {
	cx   *Context
	rest string
	// states is how many steps each character may take.
	states int
}

// ReadRune implements io.RuneReader.
func (w *watched) ReadRune() (r rune, size int, err error) {
	if w.rest == "" || w.cx.spend(1+w.states/tickStates) != nil {
		return 0, 0, io.EOF
	}
	r, size = utf8.DecodeRuneInString(w.rest)
	w.rest = w.rest[size:]
	return r, size, nil
}

// tickStates is how many states of a pattern are looked at in a step of work.
const tickStates = 64

// long reports whether to match a text takes so long that it is watched. It is
// counted either way.
func (re *regex) long(cx *Context, s string) bool {
	if len(s)*re.states <= maxMatchSteps {
		cx.Read(len(s), min(re.states, TickBytes))
		return false
	}
	return true
}

// match reports whether a text has a match. What it returns when the execution must
// end is not used.
func (re *regex) match(cx *Context, s string) bool {
	if re.long(cx, s) {
		return re.MatchReader(&watched{cx, s, re.states})
	}
	return re.MatchString(s)
}

// find returns where the first match and its groups are.
func (re *regex) find(cx *Context, s string) []int {
	if re.long(cx, s) {
		return re.FindReaderSubmatchIndex(&watched{cx, s, re.states})
	}
	return re.FindStringSubmatchIndex(s)
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

// regexMatch looks for a match anywhere in the text, as a pattern without anchors does.
func regexMatch(cx *Context, args []datum.Value) datum.Value {
	s, re := args[0].Text(), cx.regex(args)
	if re == nil {
		return datum.Undefined()
	}
	return datum.Bool(re.match(cx, s))
}

// findAll returns where all matches and their groups are, or maxMatches and one more.
// There is a search for each, and all of them may read the text to its end.
func (re *regex) findAll(cx *Context, s string) [][]int {
	if len(s)*re.states <= maxMatchSteps/maxMatches {
		return re.FindAllStringSubmatchIndex(s, maxMatches+1)
	}
	if re.after == nil {
		var err error
		if re.after, err = regexp.Compile("(?s:.)(?:" + re.String() + ")"); err != nil {
			cx.Fail(err)
		}
	}
	var all [][]int
	end := -1 // of the last match
	for at := 0; at <= len(s) && len(all) <= maxMatches && cx.Err() == nil; {
		match := re.findFrom(cx, s, at)
		if match == nil {
			break
		}
		if match[1] > at || match[0] != end { // else it is empty, and touches the last
			all = append(all, match)
		}
		if end = match[1]; end > at {
			at = end
			continue
		}
		_, size := utf8.DecodeRuneInString(s[at:])
		at += max(size, 1)
	}
	return all
}

// findFrom returns the first match that begins at a byte or later.
func (re *regex) findFrom(cx *Context, s string, at int) []int {
	if at == 0 {
		return re.find(cx, s)
	}
	_, size := utf8.DecodeLastRuneInString(s[:at])
	from := at - size
	match := (&regex{Regexp: re.after, states: re.states}).find(cx, s[from:])
	if match == nil {
		return nil
	}
	for i := range match {
		if match[i] >= 0 {
			match[i] += from
		}
	}
	_, size = utf8.DecodeRuneInString(s[match[0]:])
	match[0] += size
	return match
}

// regexExtract returns the first match, or one group of it.
func regexExtract(cx *Context, args []datum.Value) datum.Value {
	s, re := args[0].Text(), cx.regex(args)
	if re == nil {
		return datum.Undefined()
	}
	group := integer(optional(args, 3))
	if group < 0 || group > int64(re.NumSubexp()) {
		return datum.Undefined()
	}
	return groupOf(s, re.find(cx, s), int(group))
}

// groupOf returns a group of a match, undefined if it took no part in it.
func groupOf(s string, match []int, group int) datum.Value {
	if match == nil || match[2*group] < 0 {
		return datum.Undefined()
	}
	return datum.Str(s[match[2*group]:match[2*group+1]])
}

// regexExtractAll returns an array for each match, with the groups that the
// fourth argument lists, or the whole match.
func regexExtractAll(cx *Context, args []datum.Value) datum.Value {
	s, re := args[0].Text(), cx.regex(args)
	if re == nil {
		return datum.Undefined()
	}
	groups, ok := groupList(args, re.NumSubexp())
	if !ok {
		return datum.Undefined()
	}
	matches := re.findAll(cx, s)
	if len(matches) > maxMatches {
		return cx.Fail(ErrResultTooLarge)
	}
	var all datum.ArrayBuilder
	for _, match := range matches {
		var b datum.ArrayBuilder
		for _, group := range groups {
			b.Add(groupOf(s, match, group))
		}
		all.Add(b.Value())
		if all.Size() > MaxResultBytes {
			return cx.Fail(ErrResultTooLarge)
		}
	}
	return all.Value()
}

// groupList reads the numbers of the groups that are wanted. One that the pattern does not
// have makes the call undefined.
func groupList(args []datum.Value, last int) (groups []int, ok bool) {
	if len(args) < 4 {
		return []int{0}, true
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
