// SPDX-License-Identifier: MIT

// Package analysis splits texts into words, for full-text search. Queries and indexes must do
// so alike, or an index would not find what a query asks for; so both use this package. The
// language is English.
//
// A word is a run of letters and digits, in lower case, without its ending. Stop words, which
// are too common, are left out.
package analysis

import (
	"strings"
	"unicode"
)

// Words returns the words of a text in their order, each as often as it occurs. They may
// share memory with the text.
func Words(text string) []string {
	var words []string
	ignored := stopWords()
	for start := 0; start < len(text); {
		size := wordAt(text[start:])
		if size == 0 {
			start += runeSize(text[start:])
			continue
		}
		word := strings.ToLower(text[start : start+size])
		word = strings.TrimSuffix(strings.ReplaceAll(word, "’", "'"), "'s")
		if !ignored[word] {
			words = append(words, stem(word))
		}
		start += size
	}
	return words
}

func runeSize(s string) int {
	for i := range s {
		if i > 0 {
			return i
		}
	}
	return len(s)
}

// wordAt returns the length of the word that s begins with, 0 if there is none. An apostrophe
// between letters, and a point or comma between digits, are part of a word.
func wordAt(s string) int {
	var before rune // the last character of the word
	joint := false  // the last character is an apostrophe, point or comma
	end := 0
	for i, r := range s {
		isLetter := unicode.IsLetter(r) || r == '_' || r > unicode.MaxLatin1 && unicode.Is(unicode.Mn, r)
		switch {
		case isLetter && (!joint || unicode.IsLetter(before)), unicode.IsDigit(r) && (!joint || unicode.IsDigit(before)):
			before, joint, end = r, false, i+len(string(r))
		case !joint && (r == '\'' || r == '’') && unicode.IsLetter(before),
			!joint && (r == '.' || r == ',') && unicode.IsDigit(before):
			joint = true
		default:
			return end
		}
	}
	return end
}
