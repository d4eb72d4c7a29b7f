// SPDX-License-Identifier: MIT

// Full-text search: when a text contains a phrase, and its score. A term of a query
// is taken apart into words as a text is; if it has more than one, they must follow
// each other.

package function

import (
	"math"
	"strings"

	"github.com/mayflydb/mayfly/internal/analysis"
	"github.com/mayflydb/mayfly/internal/sql/datum"
)

const (
	maxTerms       = 1000 // that an execution remembers taken apart
	maxPhrase      = 128  // words of a term
	maxEdits       = 2    // between words that are to be alike
	maxFuzzyLetter = 64   // of a word that is compared with edits
)

func fullTextFunctions() []Function {
	return []Function{
		{Name: "FULLTEXTCONTAINS", Also: "FULLTEXT_CONTAINS", Args: "s.", Eval: fullTextContains(allOf)},
		{Name: "FULLTEXTCONTAINSALL", Also: "FULLTEXT_CONTAINS_ALL", Args: "s.*", Eval: fullTextContains(allOf)},
		{Name: "FULLTEXTCONTAINSANY", Also: "FULLTEXT_CONTAINS_ANY", Args: "s.*", Eval: fullTextContains(anyOf)},
		{Name: "FULLTEXTSCORE", Args: "..*", RankOnly: true},
		{Name: "_FULLTEXTSCORE", Args: "saiia", Eval: fullTextScore},
		{Name: "_FULLTEXTWORDCOUNT", Args: "s", Eval: fullTextWordCount},
	}
}

// Phrase is a term of a query, taken apart.
type Phrase struct {
	Words []string // that follow each other
	Edits int      // by how many letters each word may differ
}

// Single reports whether the phrase occurs as often as one word does.
func (p Phrase) Single() bool { return len(p.Words) == 1 && p.Edits == 0 }

// Phrases takes terms apart. It reports false if one is no term.
func Phrases(terms []datum.Value) ([]Phrase, bool) { return (&Context{}).phrases(terms) }

// phrases is Phrases for one execution, which remembers terms: most come with every item.
func (cx *Context) phrases(terms []datum.Value) (phrases []Phrase, ok bool) {
	phrases = make([]Phrase, len(terms))
	for i, term := range terms {
		if phrases[i], ok = cx.phraseOf(term); !ok {
			return nil, false
		}
	}
	return phrases, true
}

// phraseOf takes a term apart: a string, or an object with a term and a distance
// for words that may be misspelled.
func (cx *Context) phraseOf(v datum.Value) (Phrase, bool) {
	edits := int64(0)
	if v.Kind() == datum.KindObject {
		var ok bool
		if edits, ok = v.Member("distance").AsInt(); !ok || edits < 0 || edits > maxEdits {
			return Phrase{}, false
		}
		v = v.Member("term")
	}
	term, ok := v.AsString()
	if !ok {
		return Phrase{}, false
	}
	words, known := cx.terms[term]
	if !known {
		if cx.terms == nil || len(cx.terms) >= maxTerms {
			cx.terms = make(map[string][]string)
		}
		words = analysis.Words(term)
		cx.terms[strings.Clone(term)] = words
	}
	return Phrase{words, int(edits)}, len(words) <= maxPhrase
}

// occurrences returns how often a phrase stands in a text, unless the execution must
// end. Words that may be misspelled are compared letter by letter.
func (cx *Context) occurrences(p Phrase, words []string) int {
	perWord := wordBytes
	if p.Edits > 0 {
		perWord *= maxFuzzyLetter
	}
	if !cx.Read(len(words), perWord) {
		return 0
	}
	return p.occurrences(words)
}

// wordBytes is about how much text could be read while a word is compared.
const wordBytes = 16

// occurrences returns how often a phrase stands in a text.
func (p Phrase) occurrences(words []string) int {
	if len(p.Words) == 0 {
		return 0
	}
	count := 0
	for i := 0; i+len(p.Words) <= len(words); i++ {
		if p.at(words[i:]) {
			count++
		}
	}
	return count
}

// at reports whether the words that follow are those of the phrase. There are enough of them.
func (p Phrase) at(words []string) bool {
	for i, word := range p.Words {
		if word != words[i] && (p.Edits == 0 || !alike(word, words[i], p.Edits)) {
			return false
		}
	}
	return true
}

// alike reports whether one word becomes the other by so many insertions,
// deletions and changes of a letter.
func alike(a, b string, edits int) bool {
	s, t := []rune(a), []rune(b)
	if len(s) > maxFuzzyLetter || len(t) > maxFuzzyLetter || max(len(s), len(t))-min(len(s), len(t)) > edits {
		return false
	}
	var row [maxFuzzyLetter + 1]int
	for j := range len(t) + 1 {
		row[j] = j
	}
	for i := range s {
		diagonal := row[0]
		row[0] = i + 1
		for j := range t {
			cost := diagonal
			if s[i] != t[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(t)] <= edits
}

// fullTextContains makes a function that looks for phrases. The text is taken apart once for
// all of them.
func fullTextContains(join func([]datum.Value, func(datum.Value) datum.Value) datum.Value) func(*Context, []datum.Value) datum.Value {
	return func(cx *Context, args []datum.Value) datum.Value {
		words := analysis.Words(args[0].Text())
		return join(args[1:], func(term datum.Value) datum.Value {
			p, ok := cx.phraseOf(term)
			if !ok {
				return datum.Undefined()
			}
			return datum.Bool(cx.occurrences(p, words) > 0)
		})
	}
}

// fullTextWordCount is what the statistics of a container are summed from.
func fullTextWordCount(_ *Context, args []datum.Value) datum.Value {
	return datum.Int(int64(len(analysis.Words(args[0].Text()))))
}

// The parameters of BM25: how soon more occurrences count for less, and how much
// the length of a text matters.
const (
	saturation      = 1.2
	lengthInfluence = 0.75
)

// TextStatistics is what the score of a text depends on besides the text.
type TextStatistics struct {
	Items int64   // how many there are
	Words int64   // in all of them
	Hits  []int64 // how many contain each term
}

// Score returns the BM25 score of a text with so many words, in which the terms
// of the statistics occur so many times.
func (s *TextStatistics) Score(words int, occurrences []int) float64 {
	if s.Items <= 0 || s.Words <= 0 {
		return 0
	}
	mean := float64(s.Words) / float64(s.Items)
	norm := saturation * (1 - lengthInfluence + lengthInfluence*float64(words)/mean)
	score := 0.0
	for i, n := range occurrences {
		if i >= len(s.Hits) || n == 0 {
			continue
		}
		hits := float64(s.Hits[i])
		rarity := math.Log(1 + (float64(s.Items)-hits+0.5)/(hits+0.5))
		score += rarity * float64(n) * (saturation + 1) / (float64(n) + norm)
	}
	return score
}

// TextCount is what a score asks about one text.
type TextCount struct {
	Words       int
	Occurrences []int // of each term
}

// Add takes in an item, with what is to be known of its text; nil if it has none.
func (s *TextStatistics) Add(count *TextCount) {
	s.Items++
	if count == nil {
		return
	}
	s.Words += int64(count.Words)
	for i, n := range count.Occurrences {
		if n > 0 {
			s.Hits[i]++
		}
	}
}

// CountTerms counts terms in a text. They are strings, or objects with a term and a
// distance; it reports false if one is neither.
func (cx *Context) CountTerms(text string, terms []datum.Value) (count TextCount, ok bool) {
	phrases, ok := cx.phrases(terms)
	if !ok {
		return TextCount{}, false
	}
	return cx.CountPhrases(text, phrases), true
}

// CountPhrases counts phrases in a text. A score needs the number of words too: long texts
// have more occurrences by chance.
func (cx *Context) CountPhrases(text string, phrases []Phrase) TextCount {
	words := analysis.Words(text)
	count := TextCount{Words: len(words), Occurrences: make([]int, len(phrases))}
	for i, p := range phrases {
		count.Occurrences[i] = cx.occurrences(p, words)
	}
	return count
}

// fullTextScore is what a FULLTEXTSCORE becomes in the queries that clients run
// for the parts of a ranking: a text, the terms, and the statistics.
func fullTextScore(cx *Context, args []datum.Value) datum.Value {
	terms, stats, ok := ScoreArguments(args[1], args[2], args[3], args[4])
	if !ok {
		return datum.Undefined()
	}
	count, ok := cx.CountTerms(args[0].Text(), terms)
	if !ok {
		return datum.Undefined()
	}
	return datum.Float(stats.Score(count.Words, count.Occurrences))
}

// ScoreArguments reads what a score is made from beside the text.
func ScoreArguments(list, items, words, hits datum.Value) (terms []datum.Value, stats TextStatistics, ok bool) {
	var okItems, okWords bool
	stats.Items, okItems = items.AsInt()
	stats.Words, okWords = words.AsInt()
	if !okItems || !okWords || list.Kind() != datum.KindArray || hits.Kind() != datum.KindArray {
		return nil, stats, false
	}
	for element := range hits.Elements {
		n, ok := element.AsInt()
		if !ok {
			return nil, stats, false
		}
		stats.Hits = append(stats.Hits, n)
	}
	return elementsOf(list, maxTerms), stats, true
}

// elementsOf returns an array's elements, at most limit and one more.
func elementsOf(v datum.Value, limit int) []datum.Value {
	var list []datum.Value
	for element := range v.Elements {
		if list = append(list, element); len(list) > limit {
			break
		}
	}
	return list
}
