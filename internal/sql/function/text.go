// SPDX-License-Identifier: MIT

// Positions in strings and the ignoring of case.
//
// Positions and lengths count UTF-16 code units, as the service does: a
// character beyond U+FFFF counts as two. Where a cut goes through such a
// character, each part has U+FFFD in place of its half, since UTF-8 cannot say
// half a character.

package function

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	firstAstral    = 0x10000 // from here on, a character has two code units
	astralBytes    = 4       // and four bytes
	halfACharacter = "\uFFFD"
)

// isASCII reports whether bytes, characters and code units are the same in s. Most texts are
// so, and all functions here have a faster way for them.
func isASCII(s string) bool {
	for i := asciiStart(s); i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// asciiStart returns how many bytes at the beginning of s are ASCII, in steps of eight: one
// test for as many is what makes functions of long texts fast.
func asciiStart(s string) int {
	n := 0
	for ; n+8 <= len(s); n += 8 {
		if b := s[n : n+8]; b[0]|b[1]|b[2]|b[3]|b[4]|b[5]|b[6]|b[7] >= utf8.RuneSelf {
			break
		}
	}
	return n
}

// unitsIn returns how many code units s has.
func unitsIn(s string) int {
	units := asciiStart(s)
	for i := units; i < len(s); i++ {
		switch b := s[i]; {
		case b < utf8.RuneSelf, b >= 0xC0 && b < 0xF0:
			units++
		case b >= 0xF0:
			units += 2
		}
	}
	return units
}

// offsetOf returns the byte at which the given code unit begins. If that is the
// second half of a character, it returns the character's offset and true. A unit
// beyond the end is the end.
func offsetOf(s string, unit int) (at int, split bool) {
	if unit <= 0 {
		return 0, false
	}
	units := 0
	for i, r := range s {
		if units == unit {
			return i, false
		}
		units++
		if r >= firstAstral {
			if units == unit {
				return i, true
			}
			units++
		}
	}
	return len(s), false
}

// substring returns count code units of s from the given one on, or what there
// is of them.
func substring(s string, start, count int64) string {
	if start < 0 || count <= 0 || start >= int64(len(s)) {
		return "" // there are never more units than bytes
	}
	count = min(count, int64(len(s))-start)
	if isASCII(s) {
		return s[start : start+count]
	}
	from, fromSplit := offsetOf(s, int(start))
	to, toSplit := offsetOf(s, int(start+count))
	if !fromSplit && !toSplit {
		return s[from:to]
	}
	var b strings.Builder
	if fromSplit {
		b.WriteString(halfACharacter)
		from += astralBytes
	}
	b.WriteString(s[from:max(from, to)])
	if toSplit {
		b.WriteString(halfACharacter)
	}
	return b.String()
}

// fold returns s as it is compared when case is ignored.
func fold(s string) string { return upper(s) }

// upper returns s with every character in upper case, one for one, in any culture
// the same. A character that is a mere variant of another, like the micro sign or
// the dotless i, has no upper case of its own and stays: in lower case again, it
// would be the other.
func upper(s string) string {
	if isASCII(s) {
		return strings.ToUpper(s)
	}
	return strings.Map(func(r rune) rune {
		u := unicode.ToUpper(r)
		if r != finalSigma && !unicode.IsTitle(r) && unicode.ToLower(u) != r {
			return r
		}
		return u
	}, s)
}

// lower is upper in the other direction. The dotted capital I stays.
func lower(s string) string {
	if isASCII(s) {
		return strings.ToLower(s)
	}
	return strings.Map(func(r rune) rune {
		if r == dottedI {
			return r
		}
		return unicode.ToLower(r)
	}, s)
}

const (
	finalSigma = '\u03C2' // has the upper case of the other sigma
	dottedI    = '\u0130' // has no lower case that is one character
)

// foldByte is fold for a byte of ASCII text.
func foldByte(b byte) byte {
	if 'a' <= b && b <= 'z' {
		return b - ('a' - 'A')
	}
	return b
}

// equalFold compares ignoring case.
func equalFold(s, t string) bool {
	if isASCII(s) && isASCII(t) {
		return len(s) == len(t) && hasPrefixASCII(s, t)
	}
	return fold(s) == fold(t)
}

// hasPrefixASCII compares, ignoring case, text of which one is no longer than
// the other.
func hasPrefixASCII(s, prefix string) bool {
	for i := range len(prefix) {
		if s[i] != prefix[i] && foldByte(s[i]) != foldByte(prefix[i]) {
			return false
		}
	}
	return true
}

// hasPrefixFold, hasSuffixFold and containsFold ignore case. ASCII is compared in place, other
// text in copies.
func hasPrefixFold(s, prefix string) bool {
	if isASCII(s) && isASCII(prefix) {
		return len(prefix) <= len(s) && hasPrefixASCII(s, prefix)
	}
	return strings.HasPrefix(fold(s), fold(prefix))
}

func hasSuffixFold(s, suffix string) bool {
	if isASCII(s) && isASCII(suffix) {
		return len(suffix) <= len(s) && hasPrefixASCII(s[len(s)-len(suffix):], suffix)
	}
	return strings.HasSuffix(fold(s), fold(suffix))
}

// maxScanned is the longest term that containsFold looks for at every position
// of a text; for longer ones it makes upper-case copies, whose search is linear.
const maxScanned = 32

func containsFold(s, term string) bool {
	if term == "" {
		return true
	}
	if len(term) > maxScanned || !isASCII(s) || !isASCII(term) {
		return strings.Contains(fold(s), fold(term))
	}
	upper := foldByte(term[0])
	lower := upper
	if 'A' <= upper && upper <= 'Z' {
		lower += 'a' - 'A'
	}
	for i := 0; i+len(term) <= len(s); i++ {
		if (s[i] == upper || s[i] == lower) && hasPrefixASCII(s[i+1:], term[1:]) {
			return true
		}
	}
	return false
}

// reverse turns characters around, and never the bytes of one.
func reverse(s string) string {
	out := make([]byte, len(s))
	if isASCII(s) {
		for i := range len(s) {
			out[len(s)-1-i] = s[i]
		}
		return string(out)
	}
	at := len(s)
	for i := 0; i < len(s); {
		_, size := utf8.DecodeRuneInString(s[i:])
		at -= size
		copy(out[at:], s[i:i+size])
		i += size
	}
	return string(out)
}
