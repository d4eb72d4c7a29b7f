// SPDX-License-Identifier: MIT

// Queries about texts. The index of a path's words tells which items have a word and
// how often; and of every item how many words its text has. So the items that contain
// a term are looked up, and scores, and the statistics that they are made from, are
// reckoned without reading an item, but for long texts and for terms of several words.

package query

import (
	"slices"
	"strings"

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
	// maxWordsCompared is of how many words of a term, and for how many terms, it is
	// found out which of them the fewest items have.
	maxWordsCompared = 8
)

// fullText returns a path as the index has it, if there is a full-text index of it.
func (c *chooser) fullText(path sql.Path) (index.Path, bool) {
	return specialPath(c, path, c.r.Container().Special.FullText)
}

// specialPath returns a path as the index has it, if it is one of those.
func specialPath(c *chooser, path sql.Path, indexed []value.Path) (index.Path, bool) {
	if len(path) == 0 || hasElements(path) || isComputed(c.r.Container(), path[0].Name) {
		return nil, false
	}
	var found index.Path
	for _, s := range path {
		found = append(found, index.Property(s.Name))
	}
	return found, slices.ContainsFunc(indexed, path.Is)
}

// wordSeek finds the condition on a text that the fewest items meet.
func (c *chooser) wordSeek() (*plan, error) {
	var found []*plan
	for _, f := range c.facts {
		if f.Op != sql.CondFullText && f.Op != sql.CondFullTextAny {
			continue
		}
		path, ok := c.fullText(f.Path)
		if !ok {
			continue
		}
		words, err := c.wordsToSeek(path, f)
		if err != nil {
			return nil, err
		}
		if len(words) > maxSeeks {
			continue
		}
		s := &set{kind: index.Words, path: path, text: hasText(words)}
		for _, word := range words {
			s.ranges = append(s.ranges, index.Word(word))
		}
		if len(words) > 0 {
			s.ranges = append(s.ranges, index.LongTexts())
		}
		found = append(found, c.setPlan(s))
	}
	return c.fewest(found)
}

// fewest returns the plan that reads the fewest index rows, the first of several; nil
// if there is none. Where there is nothing to choose, nothing is counted.
func (c *chooser) fewest(plans []*plan) (*plan, error) {
	switch len(plans) {
	case 0:
		return nil, nil
	case 1:
		return plans[0], nil
	}
	var best *plan
	least := int64(fewHits)
	for _, p := range plans {
		rows, err := c.rows(p, least)
		if err != nil {
			return nil, err
		}
		if best == nil || rows < least {
			best, least = p, rows
		}
	}
	return best, nil
}

// wordsToSeek returns words of which each item that meets a condition has one; none
// if no item does.
func (c *chooser) wordsToSeek(path index.Path, f *sql.Condition) ([]string, error) {
	var all, any []string
	for _, term := range f.Values {
		text, _ := term.AsString()
		words := analysis.Words(text)
		if len(words) == 0 {
			if f.Op == sql.CondFullText {
				return nil, nil // a term without words is contained nowhere
			}
			continue
		}
		if f.Op == sql.CondFullText {
			all = append(all, words...)
			continue
		}
		if len(f.Values) > maxWordsCompared {
			any = append(any, words[0])
			continue
		}
		word, err := c.rarest(path, words)
		if err != nil {
			return nil, err
		}
		any = append(any, word)
	}
	if f.Op == sql.CondFullText {
		word, err := c.rarest(path, all)
		return []string{word}, err
	}
	slices.Sort(any)
	return slices.Compact(any), nil
}

// rarest returns the word that the fewest items have.
func (c *chooser) rarest(path index.Path, words []string) (string, error) {
	plans := make([]*plan, 0, maxWordsCompared)
	for _, word := range words[:min(len(words), maxWordsCompared)] {
		plans = append(plans, &plan{set: &set{kind: index.Words, path: path, ranges: []index.ValueRange{index.Word(word)}}})
	}
	best, err := c.fewest(plans)
	if err != nil {
		return "", err
	}
	return words[slices.Index(plans, best)], nil
}

func hasText(words []string) string {
	const shown = 3
	text := "has " + strings.Join(words[:min(len(words), shown)], " or ")
	if len(words) == 0 {
		return "has a term without words"
	}
	if len(words) > shown {
		text += " or …"
	}
	return value.Clip(text)
}

// orSpecial returns the best of an equality and conditions on texts and places: the
// one that the fewest items meet.
func (c *chooser) orSpecial(seek *plan) (*plan, error) {
	words, err := c.wordSeek()
	if err != nil {
		return nil, err
	}
	places, err := c.near()
	if err != nil {
		return nil, err
	}
	var found []*plan
	for _, p := range []*plan{seek, words, places} {
		if p != nil {
			found = append(found, p)
		}
	}
	return c.fewest(found)
}

// byText finds a way to answer a query about the texts of all items: statistics, a
// ranking, or an order by scores.
func (c *chooser) byText() *plan {
	if list, ok := c.p.TextAggregates(); ok {
		if found := c.answers(aggregateQuestions(list)); found != nil {
			found.method, found.sorted = textTotals, true
			return found
		}
		return nil
	}
	if ranking := c.p.Ranking(); ranking != nil {
		questions, ok := ranking.Texts()
		if !ok || !ranksByText(c.p) {
			return nil
		}
		if found := c.answers(questions); found != nil {
			found.method, found.sorted = textRank, true
			return found
		}
		return nil
	}
	if keys := c.p.OrderBy(); len(keys) == 1 && keys[0].Text != nil && c.p.Plain() {
		if found := c.answers([]sql.TextQuestion{keys[0].Text.TextQuestion}); found != nil {
			found.method = textScores
			if keys[0].Desc {
				found.order = kv.Reverse
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

// answers returns a plan by which questions are answered from the index, or nil.
func (c *chooser) answers(questions []sql.TextQuestion) *plan {
	p := &plan{questions: questions}
	words := 0
	for i, q := range questions {
		path, ok := c.fullText(q.Path)
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
	p.text = []string{questionsText(questions)}
	return p
}

func questionsText(questions []sql.TextQuestion) string {
	var all []string
	for _, q := range questions {
		for _, p := range q.Phrases {
			all = append(all, strings.Join(p.Words, " "))
		}
	}
	if len(all) == 0 {
		return "for its length"
	}
	return value.Clip("for " + strings.Join(all, ", "))
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
