// SPDX-License-Identifier: MIT

// Plans of ORDER BY RANK. A client runs one query for the statistics that the
// scores of texts depend on, puts them into one query per score, and merges the
// rows of those by their ranks.

package clientplan

import (
	"math"
	"strconv"

	"github.com/mayflydb/mayfly/internal/sql"
	"github.com/mayflydb/mayfly/internal/sql/datum"
	"github.com/mayflydb/mayfly/internal/sql/function"
	"github.com/mayflydb/mayfly/internal/sql/syntax"
)

// Functions that only rewritten queries call. The score of a text comes with
// the statistics of all ranges; the score of a vector is greater for what is
// nearer, whatever its distance function.
const (
	fnTextScore   = "_FullTextScore"
	fnWordCount   = "_FullTextWordCount"
	fnVectorScore = "_VectorScore"
)

// What a client puts numbers in place of; the latter two take the position of
// the score among those of texts.
const (
	totalItemsPlaceholder = "{documentdb-formattablehybridsearchquery-totaldocumentcount}"
	totalWordsPlaceholder = "{documentdb-formattablehybridsearchquery-totalwordcount-"
	hitCountsPlaceholder  = "{documentdb-formattablehybridsearchquery-hitcountsarray-"
)

const (
	// rankSurplus is how many times as many rows as are asked for every score
	// returns: ranks of the others would be missing.
	rankSurplus = 2
	// minFusedRows is how many rows every one of several scores returns at least.
	minFusedRows = 120
)

// missingScore ranks rows without a score behind all others.
const missingScore = -1

// HybridInfo is what a client does for ORDER BY RANK.
type HybridInfo struct {
	Statistics string // the query for them, empty if no text has a score
	Components []*QueryInfo
	Weights    []float64 // of the components, or nil if they are alike
	Skip, Take *int64
}

// component is one score that rows are ranked by.
type component struct {
	score syntax.Expr
	// path and terms are those of a text.
	path  syntax.Expr
	terms []syntax.Expr
}

// hybrid plans ORDER BY RANK: one query for the statistics, and one for each score.
func (p *planner) hybrid() (*HybridInfo, error) {
	p.need(FeatureHybridSearch)
	scores, weights, ok := p.program.Scores()
	if !ok {
		return nil, sql.NoScores(p.query)
	}
	info := &HybridInfo{Weights: weights, Skip: p.offset, Take: p.limit}
	if p.top != nil {
		info.Take = p.top
	}
	if weights != nil {
		p.need(FeatureWeightedRankFusion)
	}
	var components []component
	texts := 0
	for _, c := range scores {
		part := p.component(c, texts)
		if part.path != nil {
			texts++
		}
		components = append(components, part)
	}
	if texts > 0 {
		info.Statistics = p.statistics(components)
	}
	for i := range components {
		worstFirst := weights != nil && weights[i] < 0
		order := syntax.SortItem{Expr: components[i].score, Desc: !worstFirst, Explicit: true}
		info.Components = append(info.Components, p.componentInfo(components, order))
	}
	return info, nil
}

// component makes the score that rewritten queries order by; texts is how many
// scores of texts there are before it.
func (p *planner) component(c *syntax.Call, texts int) component {
	if function.Of(c).Name == function.VectorDistance {
		return component{score: callOf(fnVectorScore, c.Args...)}
	}
	at := strconv.Itoa(texts) + "}"
	terms := p.terms(c.Args[1:])
	return component{
		score: callOf(fnTextScore, c.Args[0], arrayOf(terms...),
			&syntax.Verbatim{Text: totalItemsPlaceholder},
			&syntax.Verbatim{Text: totalWordsPlaceholder + at},
			&syntax.Verbatim{Text: hitCountsPlaceholder + at}),
		path:  c.Args[0],
		terms: terms,
	}
}

// terms returns the terms that a text is scored by, of which some may come as
// an array.
func (p *planner) terms(args []syntax.Expr) []syntax.Expr {
	var terms []syntax.Expr
	for _, x := range args {
		if list, ok := x.(*syntax.ArrayLit); ok {
			terms = append(terms, list.Items...)
			continue
		}
		v, ok := sql.Constant(x, p.program.Params())
		if !ok || v.Kind() != datum.KindArray {
			terms = append(terms, x)
			continue
		}
		for term := range v.Elements {
			terms = append(terms, literalOf(term))
		}
	}
	return terms
}

// literalOf returns the expression of a value, for terms that are elements of a parameter.
func literalOf(v datum.Value) syntax.Expr {
	if s, ok := v.AsString(); ok {
		return &syntax.Literal{Kind: syntax.LitString, Text: s}
	}
	if n, ok := v.AsInt(); ok {
		return countOf(n)
	}
	if f, ok := v.AsFloat(); ok {
		return &syntax.Literal{Kind: syntax.LitFloat, Float: f}
	}
	return &syntax.Verbatim{Text: string(v.AppendJSON(nil))}
}

// statistics returns the query whose rows, one a range, the client adds up. The
// filter does not matter: scores depend on all items.
func (p *planner) statistics(components []component) string {
	var texts []syntax.Expr
	for _, c := range components {
		if c.path == nil {
			continue
		}
		hits := make([]syntax.Expr, len(c.terms))
		for i, term := range c.terms {
			hits[i] = callOf("COUNTIF", callOf("FullTextContains", c.path, term))
		}
		texts = append(texts, objectOf(
			prop("totalWordCount", callOf("SUM", callOf(fnWordCount, c.path))),
			prop("hitCounts", arrayOf(hits...))))
	}
	q := syntax.Query{From: p.query.From, Select: syntax.Select{Items: []syntax.SelectItem{
		aliased(callOf("COUNT", countOf(1)), "documentCount"),
		aliased(arrayOf(texts...), "fullTextStatistics"),
	}}}
	return q.String()
}

// componentInfo plans the query for one score. Its rows carry all scores, for
// the client to rank those that another score found.
//
// A client ranks by the direction in its plan and multiplies by the weight,
// sign and all: the best by a score must have the first rank by it also where its
// weight is negative, or the two would cancel out. But then the rows that matter
// are the worst ones. So each range returns those first, under keys that the
// client merges in the direction in its plan.
func (p *planner) componentInfo(components []component, order syntax.SortItem) *QueryInfo {
	q := p.query
	key := order.Expr
	if !order.Desc {
		key = &syntax.Unary{Op: syntax.OpNeg, X: &syntax.Coalesce{X: order.Expr, Y: countOf(missingScore)}}
	}
	info := &QueryInfo{
		Distinct:            DistinctNone,
		OrderBy:             []SortOrder{Descending},
		OrderByExpressions:  []string{syntax.Print(order.Expr)},
		SelectValue:         q.Select.Value != nil,
		NonStreamingOrderBy: true,
	}
	scores := make([]syntax.Expr, len(components))
	for i, c := range components {
		scores[i] = &syntax.Coalesce{X: c.score, Y: countOf(missingScore)}
	}
	rewritten := unsliced(*q)
	rewritten.Rank, rewritten.Distinct = false, false
	rewritten.OrderBy = []syntax.SortItem{order}
	rewritten.Where = resumable(q)
	p.makeMergeable(&rewritten, []syntax.Expr{key},
		objectOf(prop("payload", payload(q)), prop("componentScores", arrayOf(scores...))))
	p.sliceComponent(info, &rewritten, len(components))
	info.Rewritten = rewritten.String()
	return info
}

// sliceComponent has a score return enough rows for those that are asked for. A row that is
// good by two scores may be among the first of neither.
func (p *planner) sliceComponent(info *QueryInfo, q *syntax.Query, components int) {
	rows := func(n int64) *int64 {
		n *= rankSurplus
		if components > 1 {
			n = max(n, minFusedRows)
		}
		n = min(n, math.MaxInt32)
		return &n
	}
	switch {
	case p.limit != nil:
		zero := int64(0)
		info.Offset, info.Limit = &zero, rows(*p.offset+*p.limit)
		q.Offset, q.Limit = countOf(0), countOf(*info.Limit)
	case p.top != nil:
		info.Top = rows(*p.top)
		q.Top = countOf(*info.Top)
	}
}
