// SPDX-License-Identifier: MIT

// ORDER BY RANK. No item has a full-text score by itself: it depends on how
// common the terms are among all items, and a fused rank depends on the scores of
// all rows. So ranking takes three steps: CountText over all items, AppendScores
// for every row, and Rank for all of them together.

package sql

import (
	"cmp"
	"math"
	"slices"

	"github.com/mayflydb/mayfly/internal/sql/datum"
	"github.com/mayflydb/mayfly/internal/sql/function"
	"github.com/mayflydb/mayfly/internal/sql/syntax"
)

// absentScore is the score of an item that has nothing to score.
const absentScore = -1

// Ranking is what ORDER BY RANK asks for.
type Ranking struct {
	components []rankScore
	items      []rankItem
}

// rankScore is one score.
type rankScore struct {
	call     *syntax.Call
	text     evaluator // of a full-text score
	origin   origin    // of that text
	terms    []datum.Value
	distance evaluator // of a vector
	closer   bool      // a greater distance is better
}

// rankItem is one item of the clause: a score, or a fusion of several. Scores are numbered
// through all items, so that a row's scores are one list.
type rankItem struct {
	components []int
	weights    []float64 // of a fusion, else nil
	weighted   bool      // the weights were written
}

// ranking compiles the clause.
func (c *compiler) ranking(q *syntax.Query, s *scope) (*Ranking, error) {
	r := &Ranking{}
	for _, sort := range q.OrderBy {
		call := sort.Expr.(*syntax.Call) // checkRank has seen to it
		if _, err := c.expr(call, s); err != nil {
			return nil, err
		}
		item := rankItem{}
		parts := []syntax.Expr{call}
		if function.Of(call).Name == function.RRF {
			var err error
			if parts, item.weights, err = c.fusion(q, call, s); err != nil {
				return nil, err
			}
			item.weighted = len(parts) < len(call.Args)
		}
		for _, part := range parts {
			x, err := c.component(q, part, s)
			if err != nil {
				return nil, err
			}
			item.components = append(item.components, len(r.components))
			r.components = append(r.components, x)
		}
		r.items = append(r.items, item)
	}
	return r, nil
}

// fusion takes a call of RRF apart: scores, and perhaps a list of weights.
func (c *compiler) fusion(q *syntax.Query, call *syntax.Call, s *scope) (scores []syntax.Expr, weights []float64, err error) {
	scores = call.Args
	final := scores[len(scores)-1]
	last, err := c.expr(final, s)
	if err != nil {
		return nil, nil, err
	}
	// An array can be nothing but weights, for no score is one.
	if last.constant && last.value.Kind() == datum.KindArray {
		scores = scores[:len(scores)-1]
		for v := range last.value.Elements {
			weight, ok := v.AsFloat()
			if !ok || !v.Finite() {
				return nil, nil, badWeights(q)
			}
			weights = append(weights, weight)
		}
		if len(weights) != len(scores) {
			return nil, nil, badWeights(q)
		}
	} else if _, list := final.(*syntax.ArrayLit); list {
		return nil, nil, badWeights(q)
	} else {
		weights = slices.Repeat([]float64{1}, len(scores))
	}
	if len(scores) < 2 {
		return nil, nil, NoScores(q)
	}
	return scores, weights, nil
}

// component compiles one score. The score of a text is not an expression: the runner asks
// for the text, and counts its terms itself.
func (c *compiler) component(q *syntax.Query, e syntax.Expr, s *scope) (rankScore, error) {
	call, ok := e.(*syntax.Call)
	if !ok || !isScore(call) {
		return rankScore{}, NoScores(q)
	}
	x, err := c.expr(call, s)
	if err != nil {
		return rankScore{}, err
	}
	switch function.Of(call).Name {
	case function.VectorDistance:
		return rankScore{call: call, distance: x.eval, closer: x.metric.HigherIsCloser()}, nil
	case function.RRF:
		return rankScore{}, NoScores(q)
	}
	parts, _, err := c.exprs(call.Args, s)
	if err != nil {
		return rankScore{}, err
	}
	score := rankScore{call: call, text: parts[0].eval, origin: parts[0].origin}
	for i, part := range parts[1:] {
		if !part.constant {
			return rankScore{}, syntax.Errorf(call.Args[i+1].Pos(), "SC2221", "The terms of the FullTextScore function must be constants.")
		}
		if part.value.Kind() != datum.KindArray {
			score.terms = append(score.terms, part.value)
			continue
		}
		for term := range part.value.Elements {
			score.terms = append(score.terms, term)
		}
	}
	return score, nil
}

// Ranking returns what ORDER BY RANK asks for, or nil if there is none. One row, of
// aggregates, needs no order.
func (p *Program) Ranking() *Ranking {
	if p.Grouped() {
		return nil
	}
	return p.main.ranking
}

// Scores returns the calls that ORDER BY RANK orders by, and the weights that are written for
// them; nil if there are none. It reports false for a fusion beside other scores, which no
// client merges.
func (p *Program) Scores() (calls []*syntax.Call, weights []float64, ok bool) {
	r := p.main.ranking
	for i := range r.components {
		calls = append(calls, r.components[i].call)
	}
	if r.items[0].weighted {
		weights = r.items[0].weights
	}
	return calls, weights, len(r.items) == 1 || !r.Fused()
}

// NewStatistics returns what [Runner.CountText] counts in, one for each score.
func (r *Ranking) NewStatistics() []function.TextStatistics {
	stats := make([]function.TextStatistics, len(r.components))
	for i := range r.components {
		stats[i].Hits = make([]int64, len(r.components[i].terms))
	}
	return stats
}

// CountText takes an item into the statistics. It is called for all items, also
// for those that have no row.
func (r *Runner) CountText(stats []function.TextStatistics, item datum.Value) error {
	r.f.slots[itemSlot] = item
	for i := range r.p.main.ranking.components {
		stats[i].Add(r.countText(i))
	}
	return r.f.cx.Err()
}

// countText counts in the text that a score is about; nil if there is none. A vector's
// distance is a score without a text.
func (r *Runner) countText(i int) *function.TextCount {
	c := &r.p.main.ranking.components[i]
	if c.text == nil {
		return nil
	}
	text, ok := c.text(&r.f).AsString()
	if !ok {
		return nil
	}
	count, ok := r.f.cx.CountTerms(text, c.terms)
	if !ok {
		return nil
	}
	return &count
}

// AppendScores appends the scores of this row. Greater ones are better: distances that are
// better when they are less change their sign.
func (r *Runner) AppendScores(dst []float64, stats []function.TextStatistics) ([]float64, error) {
	for i := range r.p.main.ranking.components {
		c := &r.p.main.ranking.components[i]
		score := float64(absentScore)
		if c.text != nil {
			if count := r.countText(i); count != nil {
				score = stats[i].Score(count.Words, count.Occurrences)
			}
		} else if distance, ok := c.distance(&r.f).AsFloat(); !ok {
			score = math.Inf(-1)
		} else if score = distance; !c.closer {
			score = -distance
		}
		dst = append(dst, score)
	}
	return dst, r.f.cx.Err()
}

// Rank returns the order of rows, the best first, given what AppendScores has
// appended for each. Rows that are equally good stay as they are.
func (r *Ranking) Rank(scores [][]float64) []int {
	order := make([]int, len(scores))
	for i := range order {
		order[i] = i
	}
	keys := make([][]float64, len(r.items))
	for i := range r.items {
		keys[i] = r.items[i].keys(scores)
	}
	slices.SortStableFunc(order, func(a, b int) int {
		for i := range r.items {
			if c := cmp.Compare(keys[i][b], keys[i][a]); c != 0 {
				return c
			}
		}
		return 0
	})
	return order
}

// rankConstant is the constant of reciprocal rank fusion: it keeps the first
// ranks from deciding alone.
const rankConstant = 60

// keys returns one number for each row, by which rows are ordered. A fused number is made of
// ranks alone, since scores of different kinds cannot be added.
func (item *rankItem) keys(scores [][]float64) []float64 {
	keys := make([]float64, len(scores))
	if item.weights == nil {
		for row := range scores {
			keys[row] = scores[row][item.components[0]]
		}
		return keys
	}
	for i, c := range item.components {
		for row, rank := range denseRanks(scores, c) {
			keys[row] += item.weights[i] / float64(rankConstant+rank)
		}
	}
	return keys
}

// denseRanks counts from 1 for the best; equal scores have the same rank, and no
// rank is left out.
func denseRanks(scores [][]float64, c int) []int {
	order := make([]int, len(scores))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(scores[b][c], scores[a][c]) })
	ranks := make([]int, len(scores))
	rank := 1
	for i, row := range order {
		if i > 0 && scores[row][c] < scores[order[i-1]][c] {
			rank++
		}
		ranks[row] = rank
	}
	return ranks
}
