// SPDX-License-Identifier: MIT

// Queries about texts. The index of a path's words tells which items have a word and
// how often; and of every item how many words its text has. So the items that contain
// a term are looked up, and scores, and the statistics that they are made from, are
// reckoned without reading an item, but for long texts and for terms of several words.

package query

import (
	"slices"

	"github.com/mayflydb/mayfly/internal/analysis"
	"github.com/mayflydb/mayfly/internal/index"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/sql"
	"github.com/mayflydb/mayfly/internal/sql/function"
	"github.com/mayflydb/mayfly/internal/value"
)

const (
	// maxWordStreams is how many words are looked up side by side. Questions about
	// more are answered from the items.
	maxWordStreams = 64
	// maxWordsCompared is of how many words of a condition it is found out which of them
	// the fewest items have.
	maxWordsCompared = 8
)

// fullText returns a path as the index has it, if there is a full-text index of it.
func (pl *planner) fullText(path sql.Path) (index.Path, bool) {
	return pl.specialPath(path, pl.container.Special.FullText)
}

// specialPath returns a path as the index has it, if it is one of those.
func (pl *planner) specialPath(path sql.Path, indexed []value.Path) (index.Path, bool) {
	if len(path) == 0 || hasElements(path) || isComputed(pl.container, path[0].Name) {
		return nil, false
	}
	return steps(path, false), slices.ContainsFunc(indexed, path.Is)
}

// appendWordSets appends the items that may meet a condition on a text: a set for each of
// its words if it demands all terms, or one for all terms of which it demands any.
func (pl *planner) appendWordSets(list []*set, fact int, f *sql.Condition) []*set {
	path, ok := pl.fullText(f.Path)
	if !ok || len(f.Values) > maxSeeks {
		return list
	}
	var all, any []string
	for _, term := range f.Values {
		text, _ := term.AsString()
		words := analysis.Words(text)
		if len(words) == 0 {
			if f.Op == sql.CondFullText {
				return append(list, &set{fact: fact, kind: index.Words, path: path}) // such a term is contained nowhere
			}
			continue
		}
		all = append(all, words...)
		any = append(any, slices.MaxFunc(words, func(a, b string) int { return len(a) - len(b) }))
	}
	if f.Op == sql.CondFullTextAny {
		slices.Sort(any)
		return append(list, wordSet(fact, path, slices.Compact(any)))
	}
	for _, word := range all[:min(len(all), maxWordsCompared)] {
		list = append(list, wordSet(fact, path, []string{word}))
	}
	return list
}

// wordSet returns the items with one of several words in a text, and those whose texts are
// too long for their words to have rows.
func wordSet(fact int, path index.Path, words []string) *set {
	s := &set{fact: fact, kind: index.Words, path: path}
	for _, word := range words {
		s.ranges = append(s.ranges, index.Word(word))
	}
	if len(words) > 0 {
		s.ranges = append(s.ranges, index.LongTexts())
	}
	return s
}

// textPath is all items, with what the index knows of the words in their texts: for
// statistics, for a ranking, or to read those alone whose scores are among the best.
type textPath struct {
	asCreated
	path      index.Path // of the first question
	questions []sql.TextQuestion
	totals    bool // of statistics
	scores    bool // of an order by scores
	direction kv.Order
}

func (p *textPath) name() string { return "text" }

// byText finds a way to answer a query about the texts of all items: statistics, a
// ranking, or an order by scores.
func (pl *planner) byText() *textPath {
	if list, ok := pl.program.TextAggregates(); ok {
		if found := pl.answers(aggregateQuestions(list)); found != nil {
			found.totals = true
			return found
		}
		return nil
	}
	if ranking := pl.program.Ranking(); ranking != nil {
		if questions, ok := ranking.Texts(); ok && ranksByText(pl.program) {
			return pl.answers(questions)
		}
		return nil
	}
	if keys := pl.program.OrderBy(); len(keys) == 1 && keys[0].Text != nil && pl.program.Plain() {
		if found := pl.answers([]sql.TextQuestion{keys[0].Text.TextQuestion}); found != nil {
			found.scores = true
			if keys[0].Desc {
				found.direction = kv.Reverse
			}
			return found
		}
	}
	return nil
}

// ranksByText reports whether a ranking of all items is one of its rows.
func ranksByText(p *sql.Program) bool {
	all := p.Condition()
	return p.Plain() && all.Op == sql.CondAlways && all.Exact && !p.Distinct() && !(p.SelectsValue() && p.Ranking().Fused())
}

// answers returns a path by which questions are answered from the index, or nil.
func (pl *planner) answers(questions []sql.TextQuestion) *textPath {
	p := &textPath{questions: questions}
	words := 0
	for i, q := range questions {
		path, ok := pl.fullText(q.Path)
		if !ok {
			return nil
		}
		if i == 0 {
			p.path = path
		}
		for _, phrase := range q.Phrases {
			if phrase.Edits > 0 {
				return nil
			}
			words += len(phrase.Words)
		}
	}
	if len(questions) == 0 || words+len(questions) > maxWordStreams {
		return nil
	}
	return p
}

// aggregateQuestions returns one question for each aggregate that is about a text.
func aggregateQuestions(list []sql.TextAggregate) []sql.TextQuestion {
	var questions []sql.TextQuestion
	for _, a := range list {
		if len(a.Path) == 0 {
			continue
		}
		q := sql.TextQuestion{Path: a.Path}
		if a.Phrase != nil {
			q.Phrases = []function.Phrase{*a.Phrase}
		}
		questions = append(questions, q)
	}
	return questions
}
