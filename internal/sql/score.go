// SPDX-License-Identifier: MIT

// What a query asks about texts, in a form that an index of words can answer without
// the texts: scores to order by, and the statistics that scores are made from.

package sql

import (
	"slices"

	"github.com/mayflydb/mayfly/internal/sql/datum"
	"github.com/mayflydb/mayfly/internal/sql/function"
)

// TextQuestion asks how often phrases occur in the text at a path.
type TextQuestion struct {
	Path    Path
	Phrases []function.Phrase
}

// textQuestion makes a question of a path and terms. An index has words by path, so that
// the path must lead to one text.
func textQuestion(text code, terms []datum.Value) (TextQuestion, bool) {
	phrases, ok := function.Phrases(terms)
	return TextQuestion{text.origin.path, phrases}, ok && text.origin.single() && len(text.origin.path) > 0
}

// TextScore is a score that rows are ordered by.
type TextScore struct {
	TextQuestion
	statistics function.TextStatistics
}

// Of returns the score of a text with so many words, in which the phrases occur so
// many times.
func (s *TextScore) Of(words int, occurrences []int) datum.Value {
	return datum.Float(s.statistics.Score(words, occurrences))
}

// textScore reads the arguments of a _FULLTEXTSCORE; nil if they are no such score.
func textScore(args []code) *TextScore {
	for _, x := range args[1:] {
		if !x.constant {
			return nil
		}
	}
	terms, statistics, ok := function.ScoreArguments(args[1].value, args[2].value, args[3].value, args[4].value)
	if !ok {
		return nil
	}
	q, ok := textQuestion(args[0], terms)
	if !ok {
		return nil
	}
	return &TextScore{q, statistics}
}

// Texts returns what a ranking asks about texts, one question for each score. It
// reports false if it asks for anything else.
func (r *Ranking) Texts() ([]TextQuestion, bool) {
	var questions []TextQuestion
	for i := range r.components {
		c := &r.components[i]
		if c.text == nil {
			return nil, false
		}
		q, ok := textQuestion(code{origin: c.origin}, c.terms)
		if !ok {
			return nil, false
		}
		questions = append(questions, q)
	}
	return questions, true
}

// Fused reports whether the rank of a row depends on the other rows. Then no row can be
// returned before all of them are known.
func (r *Ranking) Fused() bool {
	return slices.ContainsFunc(r.items, func(item rankItem) bool { return item.weights != nil })
}

// TextScores appends the scores of a row, given for each score the words of its text
// and the occurrences in it; nil if there is no text.
func (r *Ranking) TextScores(dst []float64, stats []function.TextStatistics, counts []*function.TextCount) []float64 {
	for i, c := range counts {
		if c == nil {
			dst = append(dst, absentScore)
		} else {
			dst = append(dst, stats[i].Score(c.Words, c.Occurrences))
		}
	}
	return dst
}

// CountPhrases answers a question from the text itself. It reports false if there
// is none.
func (q *TextQuestion) CountPhrases(item datum.Value) (function.TextCount, bool) {
	text, ok := follow(item, q.Path).AsString()
	if !ok {
		return function.TextCount{}, false
	}
	return (&function.Context{}).CountPhrases(text, q.Phrases), true
}

// TextAggregate is what an aggregate asks about texts.
type TextAggregate struct {
	// Path is that of the text; if it is empty, the aggregate counts all rows.
	Path Path
	// Phrase is to be contained by the texts that are counted; without, the words of
	// all texts are added up.
	Phrase *function.Phrase
}

// textAggregateOf returns what an aggregate of an expression asks about texts; nil if
// it asks for something else.
func textAggregateOf(op aggregateOp, x code) *TextAggregate {
	switch {
	case op == aggCount && x.constant && !x.value.IsUndefined():
		return &TextAggregate{}
	case op == aggSum && x.function == "_FULLTEXTWORDCOUNT":
		if q, ok := textQuestion(x.args[0], nil); ok {
			return &TextAggregate{Path: q.Path}
		}
	case op == aggCountIf && x.function == "FULLTEXTCONTAINS" && x.args[1].constant:
		if q, ok := textQuestion(x.args[0], []datum.Value{x.args[1].value}); ok {
			return &TextAggregate{Path: q.Path, Phrase: &q.Phrases[0]}
		}
	}
	return nil
}

// TextAggregates returns what the aggregates of a program ask about the texts of all
// items. It reports false if it asks for anything else.
func (p *Program) TextAggregates() ([]TextAggregate, bool) {
	if !p.Grouped() || p.HasGroupKeys() || !p.Plain() || len(p.main.where) > 0 {
		return nil, false
	}
	var list []TextAggregate
	texts := false
	for i := range p.main.grouping.aggregates {
		a := p.main.grouping.aggregates[i].text
		if a == nil {
			return nil, false
		}
		list = append(list, *a)
		texts = texts || len(a.Path) > 0
	}
	return list, texts
}

// SetTextAggregates gives a group the answers to its aggregates, one for each.
func (r *Runner) SetTextAggregates(g *Group, answers []int64) {
	for i, n := range answers {
		g.accumulators[i].count, g.accumulators[i].sum = n, float64(n)
	}
}
