// SPDX-License-Identifier: MIT

// Package oracle answers queries in the most naive way there is, for tests to compare with:
// it walks the tree for every row, looks names up one by one, keeps everything in memory and
// sorts it. No production code imports it, and it imports none that compiles or runs queries.
//
// It shares the parser, the values and the built-in functions with the rest, whose tests pin
// them one by one. What it does not share is all that puts them together: names and scopes,
// three-valued logic, groups and aggregates, order, ranks, slices.
package oracle

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/mayflydb/mayfly/internal/sql/datum"
	"github.com/mayflydb/mayfly/internal/sql/function"
	"github.com/mayflydb/mayfly/internal/sql/syntax"
)

// Rows returns the rows of a query over items, in order. Without ORDER BY they come as the
// items do. Vectors are compared as queries do without a policy of the container.
func Rows(q *syntax.Query, items []datum.Value, cx *function.Context) (rows []datum.Value, err error) {
	defer func() {
		if refused, ok := recover().(refusal); ok {
			err = refused
		}
	}()
	o := &oracle{cx: cx, items: items}
	rows = o.run(q, nil)
	return rows, cx.Err()
}

// refusal is why a query has no answer. The oracle panics with it.
type refusal struct{ error }

func refuse(format string, args ...any) { panic(refusal{fmt.Errorf(format, args...)}) }

type oracle struct {
	cx    *function.Context
	items []datum.Value
}

// scope is a name and its value, and those around it.
type scope struct {
	name  string
	value datum.Value
	outer *scope
}

func (s *scope) find(name string) (datum.Value, bool) {
	for ; s != nil; s = s.outer {
		if s.name == name {
			return s.value, true
		}
	}
	return datum.Value{}, false
}

// group is rows that an expression is about: one, or all those of a group, of which the
// first stands for all.
type group struct {
	first   *scope
	rows    []*scope
	grouped bool
}

// result is a row of the answer, with what it is ordered by.
type result struct {
	value datum.Value
	keys  []datum.Value
	of    *scope
}

// run returns the rows of a query inside the scope of another.
func (o *oracle) run(q *syntax.Query, outer *scope) []datum.Value {
	scopes := o.from(q.From, outer)
	scopes = slices.DeleteFunc(scopes, func(s *scope) bool {
		return q.Where != nil && !o.value(q.Where, group{first: s}).IsTrue()
	})
	var results []result
	for _, g := range o.groups(q, scopes, outer) {
		r := result{value: o.selected(q, g), of: g.first}
		if r.value.IsUndefined() {
			continue
		}
		if !q.Rank && (len(q.GroupBy) > 0 || !g.grouped) {
			for _, item := range q.OrderBy {
				r.keys = append(r.keys, o.value(item.Expr, g))
			}
		}
		results = append(results, r)
	}
	if q.Rank {
		o.rank(q, results)
	} else {
		slices.SortStableFunc(results, func(a, b result) int { return compareKeys(q, a.keys, b.keys) })
	}
	var rows []datum.Value
	for _, r := range results {
		if !q.Distinct || !slices.ContainsFunc(rows, func(v datum.Value) bool { return datum.Equal(v, r.value) }) {
			rows = append(rows, r.value)
		}
	}
	return o.slice(q, rows)
}

func (o *oracle) slice(q *syntax.Query, rows []datum.Value) []datum.Value {
	count := func(e syntax.Expr) int {
		n, _ := o.value(e, group{}).AsInt()
		return min(int(n), len(rows))
	}
	if q.Offset != nil {
		rows = rows[count(q.Offset):]
	}
	if q.Limit != nil {
		rows = rows[:count(q.Limit)]
	}
	if q.Top != nil {
		rows = rows[:count(q.Top)]
	}
	return rows
}

func compareKeys(q *syntax.Query, a, b []datum.Value) int {
	for i := range a {
		c := datum.Compare(a[i], b[i])
		if descends(q.OrderBy[i]) {
			c = -c
		}
		if c != 0 {
			return c
		}
	}
	return 0
}

// descends reports the direction of a key. Without one, the nearest vectors come first.
func descends(item syntax.SortItem) bool {
	call, ok := item.Expr.(*syntax.Call)
	if !ok || item.Explicit || call.Name != "VECTORDISTANCE" && call.Name != "_VECTORSCORE" {
		return item.Desc
	}
	if len(call.Args) < 4 {
		return true
	}
	for _, p := range call.Args[3].(*syntax.ObjectLit).Props {
		if name, ok := p.Value.(*syntax.Literal); ok && p.Name == "distanceFunction" {
			return name.Text != "euclidean"
		}
	}
	return true
}

// from returns a scope for each row that the sources make.
func (o *oracle) from(f *syntax.From, outer *scope) []*scope {
	if f == nil {
		return []*scope{outer}
	}
	scopes := []*scope{outer}
	for i := range f.Sources {
		var joined []*scope
		for _, s := range scopes {
			for _, v := range o.source(&f.Sources[i], s) {
				joined = append(joined, &scope{f.Sources[i].Alias, v, s})
			}
		}
		scopes = joined
	}
	return scopes
}

// source returns the values that a source has in a scope.
func (o *oracle) source(src *syntax.Source, s *scope) []datum.Value {
	var values []datum.Value
	switch bound, ok := s.find(src.Root); {
	case src.Query != nil:
		values = o.run(src.Query, s)
	case src.Expr != nil:
		values = []datum.Value{o.value(src.Expr, group{first: s})}
	case ok:
		values = []datum.Value{bound}
	default:
		values = o.items
	}
	var found []datum.Value
	for _, v := range values {
		for _, step := range src.Path {
			v = at(v, step)
		}
		switch {
		case !src.Iterate:
			found = append(found, v)
		case v.Kind() == datum.KindArray:
			found = slices.AppendSeq(found, v.Elements)
		case src.Query != nil: // rows that are no arrays are there themselves
			found = append(found, v)
		}
	}
	return slices.DeleteFunc(found, datum.Value.IsUndefined)
}

func at(v datum.Value, s syntax.Step) datum.Value {
	if s.Element {
		return v.Index(int(s.Index))
	}
	return v.Member(s.Name)
}

// groups returns what the select list is computed for: groups, or single rows.
func (o *oracle) groups(q *syntax.Query, scopes []*scope, outer *scope) []group {
	var groups []group
	if len(q.GroupBy) == 0 && !aggregates(q) {
		for _, s := range scopes {
			groups = append(groups, group{first: s})
		}
		return groups
	}
	keys := map[string]int{}
	if len(q.GroupBy) == 0 { // one group, even of no rows
		keys[""] = 0
		groups = append(groups, group{first: outer, grouped: true})
	}
	for _, s := range scopes {
		var key []byte
		for _, e := range q.GroupBy {
			key = append(o.value(e, group{first: s}).AppendCanonical(key), '\n')
		}
		n, ok := keys[string(key)]
		if !ok {
			n = len(groups)
			keys[string(key)] = n
			groups = append(groups, group{first: s, grouped: true})
		}
		groups[n].rows = append(groups[n].rows, s)
		groups[n].first = groups[n].rows[0]
	}
	return groups
}

func aggregates(q *syntax.Query) bool {
	for e := range q.Selected {
		if syntax.Contains(e, isAggregate) {
			return true
		}
	}
	return false
}

// selected returns what a row is in the answer.
func (o *oracle) selected(q *syntax.Query, g group) datum.Value {
	switch {
	case q.Select.Star:
		return g.first.value
	case q.Select.Value != nil:
		return o.value(q.Select.Value, g)
	}
	var b datum.ObjectBuilder
	for _, item := range q.Select.Items {
		b.Set(item.Name, o.value(item.Expr, g))
	}
	return b.Value()
}

// rank orders results by ORDER BY RANK, the best first.
func (o *oracle) rank(q *syntax.Query, results []result) {
	keys := make([][]float64, len(q.OrderBy)) // of the results, by each item of the clause
	place := make(map[*scope]int, len(results))
	for i, r := range results {
		place[r.of] = i
	}
	for i, item := range q.OrderBy {
		call := item.Expr.(*syntax.Call)
		if call.Name != "RRF" {
			keys[i] = o.scores(q, call, results)
			continue
		}
		keys[i] = make([]float64, len(results))
		scores, weights := call.Args, slices.Repeat([]float64{1}, len(call.Args))
		if list, ok := scores[len(scores)-1].(*syntax.ArrayLit); ok {
			scores = scores[:len(scores)-1]
			for j, w := range list.Items {
				weights[j], _ = o.value(w, group{}).AsFloat()
			}
		}
		for j, e := range scores {
			by := o.scores(q, e.(*syntax.Call), results)
			for r, score := range by {
				better := map[float64]bool{}
				for _, other := range by {
					if other > score {
						better[other] = true
					}
				}
				keys[i][r] += weights[j] / float64(60+1+len(better))
			}
		}
	}
	slices.SortStableFunc(results, func(a, b result) int {
		for i := range keys {
			if c := cmp.Compare(keys[i][place[b.of]], keys[i][place[a.of]]); c != 0 {
				return c
			}
		}
		return 0
	})
}

// scores returns the score of each result. That of a text depends on all items.
func (o *oracle) scores(q *syntax.Query, call *syntax.Call, results []result) []float64 {
	if call.Name == "VECTORDISTANCE" {
		return o.nearness(call, results)
	}
	var terms []datum.Value
	for _, e := range call.Args[1:] {
		v := o.value(e, group{})
		if v.Kind() == datum.KindArray {
			terms = slices.AppendSeq(terms, v.Elements)
		} else {
			terms = append(terms, v)
		}
	}
	count := func(s *scope) *function.TextCount {
		text, ok := o.value(call.Args[0], group{first: s}).AsString()
		if !ok {
			return nil
		}
		c, ok := o.cx.CountTerms(text, terms)
		if !ok {
			return nil
		}
		return &c
	}
	stats := function.TextStatistics{Hits: make([]int64, len(terms))}
	for _, s := range o.from(q.From, nil) {
		stats.Add(count(s))
	}
	scores := make([]float64, len(results))
	for i, r := range results {
		scores[i] = -1 // of a row without a text
		if c := count(r.of); c != nil {
			scores[i] = stats.Score(c.Words, c.Occurrences)
		}
	}
	return scores
}

// nearness returns the scores of vectors, the nearest the greatest.
func (o *oracle) nearness(call *syntax.Call, results []result) []float64 {
	scores := make([]float64, len(results))
	for i, r := range results {
		distance, ok := o.value(call, group{first: r.of}).AsFloat()
		switch {
		case !ok:
			scores[i] = math.Inf(-1)
		case descends(syntax.SortItem{Expr: call}):
			scores[i] = distance
		default:
			scores[i] = -distance
		}
	}
	return scores
}
