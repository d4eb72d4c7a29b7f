// SPDX-License-Identifier: MIT

// The pattern of LIKE: % for any run of characters, _ for one, [abc], [a-f] and
// [^…] for one of a set. Characters are whole characters here, not code units.
//
// A pattern is cut at its % into pieces. The first is fixed to the beginning and
// the last to the end; the others are each taken where they first fit, which
// never spoils a later one.

package function

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mayflydb/mayfly/internal/sql/datum"
)

// LikePattern is a compiled pattern. It is immutable.
type LikePattern struct {
	pieces []likePiece // with a % between each two
	steps  int         // with every character of a text, at most
}

// likePiece matches a run of characters of a known length.
type likePiece struct {
	literal string    // if plain, all there is
	plain   bool      // every step is a literal character
	steps   []likeSet // else one step per character
	floor   int       // it matches no fewer bytes
}

// likeSet matches one character.
type likeSet struct {
	ranges  []likeRange
	negated bool // matches what is in no range
}

type likeRange struct{ low, high rune }

func (s likeSet) has(r rune) bool {
	in := slices.ContainsFunc(s.ranges, func(x likeRange) bool { return x.low <= r && r <= x.high })
	return in != s.negated
}

// likeAny is the set of _: what is not in no range.
var likeAny = likeSet{negated: true}

// maxFloating is how many characters a piece between two % may have if some of
// them are _ or a set: such a piece is tried everywhere in a text, and all else
// is linear in it.
const maxFloating = 256

// NoEscape as an escape character means that there is none.
const NoEscape rune = -1

// CompileLike reads a pattern. It reports false if the pattern ends with the
// escape character or exceeds maxFloating. A [ without its ] stands for itself.
func CompileLike(pattern string, escape rune) (*LikePattern, bool) {
	p := &LikePattern{}
	var steps []likeSet
	for i := 0; i < len(pattern); {
		r, size := utf8.DecodeRuneInString(pattern[i:])
		i += size
		switch {
		case r == escape:
			if i == len(pattern) {
				return nil, false
			}
			r, size = utf8.DecodeRuneInString(pattern[i:])
			i += size
			steps = append(steps, oneCharacter(r))
		case r == '%':
			p.pieces = append(p.pieces, newLikePiece(steps))
			steps = nil
		case r == '_':
			steps = append(steps, likeAny)
		case r == '[':
			set, after, ok := parseLikeSet(pattern, i, escape)
			if !ok {
				steps = append(steps, oneCharacter(r))
				continue
			}
			steps = append(steps, set)
			i = after
		default:
			steps = append(steps, oneCharacter(r))
		}
	}
	p.pieces = append(p.pieces, newLikePiece(steps))
	p.steps = 1
	if last := len(p.pieces) - 1; last > 1 {
		for _, piece := range p.pieces[1:last] {
			if len(piece.steps) > maxFloating {
				return nil, false
			}
			p.steps = max(p.steps, len(piece.steps))
		}
	}
	return p, true
}

// oneCharacter is the set that a character of the pattern is by itself.
func oneCharacter(r rune) likeSet { return likeSet{ranges: []likeRange{{r, r}}} }

// parseLikeSet reads a set after its [. It reports false if there is no ].
func parseLikeSet(pattern string, i int, escape rune) (set likeSet, after int, ok bool) {
	if strings.HasPrefix(pattern[i:], "^") {
		set.negated = true
		i++
	}
	first := true
	for i < len(pattern) {
		r, size := utf8.DecodeRuneInString(pattern[i:])
		i += size
		if r == ']' && !first {
			return set, i, true
		}
		first = false
		if r == escape && i < len(pattern) {
			r, size = utf8.DecodeRuneInString(pattern[i:])
			i += size
		}
		high := r
		if rest := pattern[i:]; len(rest) > 1 && rest[0] == '-' && rest[1] != ']' {
			high, size = utf8.DecodeRuneInString(rest[1:])
			i += 1 + size
		}
		set.ranges = append(set.ranges, likeRange{r, high})
	}
	return likeSet{}, 0, false
}

// newLikePiece makes a piece of steps. If all of them are single characters, the piece is a
// string, which the search functions of package strings find far faster.
func newLikePiece(steps []likeSet) likePiece {
	var b strings.Builder
	for _, step := range steps {
		if step.negated || len(step.ranges) != 1 || step.ranges[0].low != step.ranges[0].high {
			return likePiece{steps: steps, floor: len(steps)}
		}
		b.WriteRune(step.ranges[0].low)
	}
	return likePiece{literal: b.String(), plain: true, floor: b.Len()}
}

// Match tests a value, which has to be a string.
func (p *LikePattern) Match(cx *Context, v datum.Value) datum.Value {
	s, ok := v.AsString()
	if !ok || !cx.Read(len(s), p.steps) {
		return datum.Undefined()
	}
	return datum.Bool(p.match(s))
}

// match reports whether the whole of s fits the pattern.
func (p *LikePattern) match(s string) bool {
	last := len(p.pieces) - 1
	end, ok := p.pieces[0].at(s)
	if !ok {
		return false
	}
	if last == 0 {
		return end == len(s)
	}
	s = s[end:]
	for _, piece := range p.pieces[1:last] {
		if end, ok = piece.find(s); !ok {
			return false
		}
		s = s[end:]
	}
	return p.pieces[last].fitsEnd(s)
}

// at matches at the beginning of s and returns what follows.
func (p *likePiece) at(s string) (end int, ok bool) {
	if p.plain {
		return len(p.literal), strings.HasPrefix(s, p.literal)
	}
	i := 0
	for _, step := range p.steps {
		if i == len(s) {
			return 0, false
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if !step.has(r) {
			return 0, false
		}
		i += size
	}
	return i, true
}

// find matches as early in s as it can and returns what follows.
func (p *likePiece) find(s string) (end int, ok bool) {
	if p.plain {
		i := strings.Index(s, p.literal)
		return i + len(p.literal), i >= 0
	}
	for i := 0; i+p.floor <= len(s); {
		if end, ok := p.at(s[i:]); ok {
			return i + end, true
		}
		_, size := utf8.DecodeRuneInString(s[i:])
		i += size
	}
	return 0, false
}

// fitsEnd matches at the end of s.
func (p *likePiece) fitsEnd(s string) bool {
	if p.plain {
		return strings.HasSuffix(s, p.literal)
	}
	start := len(s)
	for range p.steps {
		if start == 0 {
			return false
		}
		_, size := utf8.DecodeLastRuneInString(s[:start])
		start -= size
	}
	_, ok := p.at(s[start:])
	return ok
}
