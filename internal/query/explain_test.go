// SPDX-License-Identifier: MIT

package query

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mayflydb/mayfly/internal/analysis"
	"github.com/mayflydb/mayfly/internal/index"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/sql"
	"github.com/mayflydb/mayfly/internal/value"
)

// explain returns how a query would be answered.
func explain(q Request) (string, error) {
	r, err := q.Partition.NewReader(q.NowMs)
	if err != nil {
		return "", err
	}
	defer r.Close()
	x, err := newExecution(noContext, q, r)
	if err != nil {
		return "", err
	}
	defer x.letGo()
	return Page{path: x.path, program: q.Program}.Plan(), nil
}

// Plan tells how the rows were found.
func (p Page) Plan() string {
	e := explainer{p.program, conjuncts(p.program.Condition())}
	s := e.path(p.path)
	keys := p.program.OrderBy()
	switch p.path.(type) {
	case noItems:
		return s
	}
	if len(keys) > 0 && p.path.order() != byKeys && !p.program.Grouped() {
		s += ", sort"
	}
	return s
}

// explainer tells paths for people.
type explainer struct {
	program *sql.Program
	facts   []*sql.Condition
}

func (e *explainer) path(p path) string {
	switch p := p.(type) {
	case allItems:
		return "scan"
	case noSource:
		return "once"
	case noItems:
		return "nothing"
	case *keyPath:
		return fmt.Sprintf("keys %d", len(p.keys))
	case *setPath:
		var all []string
		for _, s := range p.members {
			all = append(all, e.set(s))
		}
		if len(all) > 1 {
			return "intersection of " + strings.Join(all, ", ")
		}
		return all[0]
	case *walkPath:
		return e.walk(p)
	case *countPath:
		switch {
		case p.all:
			return "total"
		case p.ofKey:
			return "count " + pathText(p.path) + " of the partition key"
		case p.composite != nil:
			return "composite count " + e.composite(p.composite)
		}
		return "count " + pathText(p.path) + e.said(p.path)
	case *textPath:
		return e.texts(p)
	case *nearestPath:
		return "nearest " + pathText(p.path) + direction(p.direction) + " by " + e.program.OrderBy()[0].Vector.String()
	}
	return fmt.Sprintf("%T", p)
}

func direction(o kv.Order) string {
	if o == kv.Reverse {
		return " descending"
	}
	return ""
}

func (e *explainer) walk(w *walkPath) string {
	name := map[bool]string{true: "ordered", false: "range"}[w.keyed]
	if w.composite == nil {
		return name + " " + pathText(w.path) + direction(w.direction) + e.said(w.path)
	}
	name = map[bool]string{true: "composite ordered ", false: "composite "}[w.keyed] + e.composite(w.composite)
	if w.direction == kv.Reverse {
		name += ", backwards"
	}
	return name
}

// said tells what the filter says of a path.
func (e *explainer) said(path index.Path) (s string) {
	for _, f := range e.facts {
		if _, ok := rangeOfFact(f); ok && slices.Equal(steps(f.Path, false), path) {
			s += " " + factText(f)
		}
	}
	return s
}

func factText(f *sql.Condition) string {
	if f.Op == sql.CondKind {
		return "is " + f.Kind.String()
	}
	return condText(f)
}

func (e *explainer) composite(p *compositePart) string {
	var all []string
	for i, path := range p.paths {
		at := pathOf(path.Path)
		s := pathText(at)
		if path.Descending {
			s += " desc"
		}
		if i < p.said {
			s += e.said(at)
			if e.said(at) == "" {
				s += " = partition key"
			}
		}
		all = append(all, s)
	}
	return strings.Join(all, ", ")
}

func (e *explainer) set(s *set) string {
	if s.composite != nil {
		return "composite gather " + e.composite(s.composite)
	}
	f := e.facts[s.fact]
	switch {
	case s.kind == index.Words:
		return "seek " + pathText(s.path) + " has " + strings.Join(wordsOf(s, f), " or ")
	case s.kind == index.Cells:
		return fmt.Sprintf("cells %s in %d cells", pathText(s.path), len(s.ranges))
	case s.spread:
		return "gather " + pathText(s.path) + e.said(s.path)
	}
	return seekText(s, f)
}

// seekText tells a set of values, of a condition or of a part of it.
func seekText(s *set, f *sql.Condition) string {
	if s.any != nil {
		var all []string
		for i, part := range s.any {
			if i == 3 && len(s.any) > 4 {
				all = append(all, "…")
				break
			}
			all = append(all, seekText(part, f.Of[i]))
		}
		return "union of " + strings.Join(all, ", ")
	}
	if f.Op == sql.CondAnd { // of which one was taken
		f = f.Of[slices.IndexFunc(f.Of, func(f *sql.Condition) bool { return slices.Equal(steps(f.Path, f.Op == sql.CondArrayContains), s.path) })]
	}
	text := "seek " + pathText(s.path) + " ="
	for i, v := range f.Values {
		if i == 3 {
			return text + fmt.Sprintf(" … %d values", len(f.Values))
		}
		text += " " + value.Clip(string(v.AppendJSON(nil)))
	}
	return text
}

// wordsOf returns which words of a condition a set is about.
func wordsOf(s *set, f *sql.Condition) (words []string) {
	for _, term := range f.Values {
		text, _ := term.AsString()
		for _, word := range analysis.Words(text) {
			place := index.Word(word).PlaceOf(0)
			if !slices.Contains(words, word) && slices.ContainsFunc(s.ranges, func(v index.ValueRange) bool { return v.PlaceOf(0).Value.Compare(place.Value) == 0 }) {
				words = append(words, word)
			}
		}
	}
	return words
}

func (e *explainer) texts(p *textPath) string {
	var all []string
	for _, q := range p.questions {
		for _, phrase := range q.Phrases {
			all = append(all, strings.Join(phrase.Words, " "))
		}
	}
	text := "for " + strings.Join(all, ", ")
	if len(all) == 0 {
		text = "for its length"
	}
	name := "rank "
	switch {
	case p.totals:
		name = "texts "
	case p.scores:
		name = "scores "
	}
	return name + pathText(p.path) + direction(p.direction) + " " + text
}

func pathText(path index.Path) string {
	var b strings.Builder
	for _, s := range path {
		b.WriteString("/" + s.String())
	}
	return b.String()
}

// condText writes what a condition says of its path.
func condText(f *sql.Condition) string {
	op := map[sql.CondOp]string{
		sql.CondEq: "=", sql.CondLt: "<", sql.CondLe: "<=", sql.CondGt: ">", sql.CondGe: ">=", sql.CondPrefix: "begins",
	}[f.Op]
	return op + " " + value.Clip(string(f.Values[0].AppendJSON(nil)))
}
