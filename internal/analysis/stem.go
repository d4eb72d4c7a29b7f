// SPDX-License-Identifier: MIT

// Porter's algorithm of 1980, which removes endings of English words, so that "connected"
// finds "connection". The steps have his numbers.

package analysis

import "strings"

// maxStemmed is the longest word whose ending is removed. English has no longer words, and
// the steps read all letters many times.
const maxStemmed = 64

// stem returns a word, in lower case, without its ending. A word with other characters than
// English letters is returned unchanged.
func stem(word string) string {
	if len(word) <= 2 || len(word) > maxStemmed {
		return word
	}
	for i := range len(word) {
		if word[i] < 'a' || word[i] > 'z' {
			return word
		}
	}
	word = stemPlural(word)
	word = stemPast(word)
	if base, ok := strings.CutSuffix(word, "y"); ok && hasVowel(base) {
		word = base + "i" // step 1c
	}
	word = replaceEnding(word, step2Endings)
	word = replaceEnding(word, step3Endings)
	word = dropEnding(word)
	return stemFinal(word)
}

// isConsonant reports whether the letter at i is a consonant. A y is one unless it follows a
// consonant.
func isConsonant(word string, i int) bool {
	switch word[i] {
	case 'a', 'e', 'i', 'o', 'u':
		return false
	case 'y':
		return i == 0 || !isConsonant(word, i-1)
	}
	return true
}

// measure counts how often a vowel is followed by a consonant.
func measure(word string) int {
	m := 0
	for i := 1; i < len(word); i++ {
		if isConsonant(word, i) && !isConsonant(word, i-1) {
			m++
		}
	}
	return m
}

func hasVowel(word string) bool {
	for i := range len(word) {
		if !isConsonant(word, i) {
			return true
		}
	}
	return false
}

func endsDouble(word string) bool {
	n := len(word)
	return n >= 2 && word[n-1] == word[n-2] && isConsonant(word, n-1)
}

// endsShort reports whether a word ends like "hop": a consonant, a vowel, and a consonant
// other than w, x and y.
func endsShort(word string) bool {
	n := len(word)
	return n >= 3 && isConsonant(word, n-3) && !isConsonant(word, n-2) && isConsonant(word, n-1) &&
		!strings.ContainsRune("wxy", rune(word[n-1]))
}

// stemPlural is step 1a.
func stemPlural(word string) string {
	switch {
	case strings.HasSuffix(word, "sses"), strings.HasSuffix(word, "ies"):
		return word[:len(word)-2]
	case strings.HasSuffix(word, "ss"):
		return word
	}
	return strings.TrimSuffix(word, "s")
}

// stemPast is step 1b.
func stemPast(word string) string {
	if base, ok := strings.CutSuffix(word, "eed"); ok {
		if measure(base) > 0 {
			return base + "ee"
		}
		return word
	}
	base, ok := strings.CutSuffix(word, "ed")
	if !ok {
		base, ok = strings.CutSuffix(word, "ing")
	}
	switch {
	case !ok || !hasVowel(base):
		return word
	case strings.HasSuffix(base, "at"), strings.HasSuffix(base, "bl"), strings.HasSuffix(base, "iz"):
		return base + "e"
	case endsDouble(base) && !strings.ContainsRune("lsz", rune(base[len(base)-1])):
		return base[:len(base)-1]
	case measure(base) == 1 && endsShort(base):
		return base + "e"
	}
	return base
}

type ending struct{ from, to string }

// The endings of steps 2, 3 and 4. If one is the end of another, the longer comes first.
var (
	step2Endings = []ending{
		{"ational", "ate"}, {"tional", "tion"}, {"enci", "ence"}, {"anci", "ance"}, {"izer", "ize"},
		{"abli", "able"}, {"alli", "al"}, {"entli", "ent"}, {"eli", "e"}, {"ousli", "ous"},
		{"ization", "ize"}, {"ation", "ate"}, {"ator", "ate"}, {"alism", "al"}, {"iveness", "ive"},
		{"fulness", "ful"}, {"ousness", "ous"}, {"aliti", "al"}, {"iviti", "ive"}, {"biliti", "ble"},
	}
	step3Endings = []ending{
		{"icate", "ic"}, {"ative", ""}, {"alize", "al"}, {"iciti", "ic"}, {"ical", "ic"}, {"ful", ""}, {"ness", ""},
	}
	step4Endings = []ending{
		{"al", ""}, {"ance", ""}, {"ence", ""}, {"er", ""}, {"ic", ""}, {"able", ""}, {"ible", ""}, {"ant", ""},
		{"ement", ""}, {"ment", ""}, {"ent", ""}, {"sion", "s"}, {"tion", "t"}, {"ou", ""}, {"ism", ""},
		{"ate", ""}, {"iti", ""}, {"ous", ""}, {"ive", ""}, {"ize", ""},
	}
)

// replaceEnding is steps 2 and 3: it replaces the first ending that fits, if the measure of
// the rest is above 0.
func replaceEnding(word string, endings []ending) string {
	for _, e := range endings {
		if base, ok := strings.CutSuffix(word, e.from); ok {
			if measure(base) > 0 {
				return base + e.to
			}
			return word
		}
	}
	return word
}

// dropEnding is step 4: it removes the first ending that fits, if the measure of the rest is
// above 1.
func dropEnding(word string) string {
	for _, e := range step4Endings {
		if base, ok := strings.CutSuffix(word, e.from); ok {
			if measure(base+e.to) > 1 {
				return base + e.to
			}
			return word
		}
	}
	return word
}

// stemFinal is step 5.
func stemFinal(word string) string {
	if base, ok := strings.CutSuffix(word, "e"); ok {
		if m := measure(base); m > 1 || m == 1 && !endsShort(base) {
			word = base
		}
	}
	if measure(word) > 1 && strings.HasSuffix(word, "ll") {
		word = word[:len(word)-1]
	}
	return word
}
