// SPDX-License-Identifier: MIT

// What a client does with the rows of several ranges, for a server that does it in place of
// one: texts for the ranges, the order of rows, groups, and ranks.

package clientplan

import (
	"slices"
	"strings"

	"github.com/mayflydb/mayfly/internal/sql/datum"
)

const (
	// groupBytes is about what a group takes beside its text, and partBytes what an aggregate
	// of it does.
	groupBytes = 240
	partBytes  = 160
)

// Text returns the query for each range, from its first row on.
func (i *QueryInfo) Text(original string) string {
	if i.Rewritten == "" {
		return original
	}
	return strings.ReplaceAll(i.Rewritten, resumeFilter, "true")
}

// Groups reports whether the rows of the ranges are parts of groups.
func (i *QueryInfo) Groups() bool {
	return i.Aggregates != nil || i.AliasAggregates != nil || i.GroupByExpressions != nil
}

// SortKeys returns what a row of an ordered query is merged by.
func (i *QueryInfo) SortKeys(row datum.Value) []datum.Value {
	keys := make([]datum.Value, len(i.OrderBy))
	items := row.Member("orderByItems")
	for n := range keys {
		keys[n] = items.Index(n).Member("item")
	}
	return keys
}

// CompareKeys orders the keys of two rows as the query asks.
func (i *QueryInfo) CompareKeys(a, b []datum.Value) int {
	for n, order := range i.OrderBy {
		c := datum.Compare(a[n], b[n])
		if order == Descending {
			c = -c
		}
		if c != 0 {
			return c
		}
	}
	return 0
}

// Payload returns what a row of an ordered query is to its reader, or to its group.
func Payload(row datum.Value) datum.Value { return row.Member("payload") }

// RID returns the id of the item that a row of an ordered query is of.
func RID(row datum.Value) string {
	rid, _ := row.Member("_rid").AsString()
	return rid
}

// Counted returns the row of a query for the number of distinct rows.
func (i *QueryInfo) Counted(n int64) datum.Value {
	total := datum.Int(n)
	if i.DistinctCountedAlias == "" {
		return total
	}
	var b datum.ObjectBuilder
	b.Set(i.DistinctCountedAlias, total)
	return b.Value()
}

// Window returns which rows of the result are asked for: those from the first number on, up
// to before the second. Without a bound there is none: last is -1.
func (i *QueryInfo) Window() (first, last int64) {
	last = -1
	if i.Limit != nil {
		first, last = *i.Offset, *i.Offset+*i.Limit
	}
	if i.Top != nil && (last < 0 || first+*i.Top < last) {
		last = first + *i.Top
	}
	return first, last
}

// Groups merges the parts of groups. The zero value is not ready: see NewGroups.
type Groups struct {
	info  *QueryInfo
	byKey map[string]*group
	met   []*group // in the order in which they were met
}

// group is a group in the making: the payload that it was met with, and a part for each of
// the aggregates.
type group struct {
	first datum.Value
	parts []part
}

// NewGroups returns groups without any rows.
func (i *QueryInfo) NewGroups() *Groups { return &Groups{info: i, byKey: map[string]*group{}} }

// Add takes in a row of a range, and returns about how many bytes are kept of it.
func (g *Groups) Add(row datum.Value) (kept int) {
	key, payload := "", row
	if g.info.GroupByExpressions != nil {
		key = string(row.Member("groupByItems").AppendCanonical(nil))
	}
	if g.info.GroupByExpressions != nil || !g.info.SelectValue {
		payload = Payload(row)
	}
	of := g.byKey[key]
	if of == nil {
		of = &group{first: payload.Detach(), parts: make([]part, max(len(g.info.Aggregates), len(g.info.AliasAggregates)))}
		g.byKey[key] = of
		g.met = append(g.met, of)
		kept = groupBytes + len(key) + payload.Size() + partBytes*len(of.parts)
	}
	if g.info.SelectValue {
		for n, name := range g.info.Aggregates {
			kept += of.parts[n].add(name, payload.Index(n))
		}
		return kept
	}
	for n, a := range g.info.AliasAggregates {
		if a.Aggregate != "" {
			kept += of.parts[n].add(a.Aggregate, payload.Member(a.Alias))
		}
	}
	return kept
}

// Rows yields the row of each group that has one.
func (g *Groups) Rows(yield func(row datum.Value) bool) {
	for _, of := range g.met {
		if row := g.row(of); !row.IsUndefined() && !yield(row) {
			return
		}
	}
}

func (g *Groups) row(of *group) datum.Value {
	switch {
	case g.info.SelectValue && g.info.Aggregates == nil:
		return of.first
	case g.info.SelectValue:
		return of.parts[0].result(g.info.Aggregates[0])
	}
	var b datum.ObjectBuilder
	for n, a := range g.info.AliasAggregates {
		v := of.first.Member(a.Alias)
		if a.Aggregate != "" {
			v = of.parts[n].result(a.Aggregate)
		}
		if !v.IsUndefined() {
			b.Set(a.Alias, v)
		}
	}
	return b.Value()
}

// part is an aggregate, put together of the parts that the ranges have of it.
type part struct {
	sum, count float64
	// spoiled is set by a part without a value: the whole has none either.
	spoiled bool
	best    datum.Value
	list    datum.ArrayBuilder
	seen    datum.Set
}

// add takes in the part of a range, by the name that clients know the aggregate by.
func (p *part) add(name string, of datum.Value) (kept int) {
	item := of.Member("item")
	switch name {
	case "Min", "Max":
		return p.takeBest(name, of.Member("item2"))
	case "MakeList", "MakeSet":
		return p.collect(name, item)
	case "Average":
		n, _ := item.Member("count").AsFloat()
		p.count += n
		item = item.Member("sum")
	}
	x, ok := item.AsFloat()
	p.sum += x
	p.spoiled = p.spoiled || !ok
	return 0
}

// takeBest takes in the least or the greatest value of a range. A range with values, none of
// which is that, has values that have no order.
func (p *part) takeBest(name string, of datum.Value) (kept int) {
	if n, _ := of.Member("count").AsFloat(); n == 0 {
		return 0
	}
	x := of.Member(strings.ToLower(name))
	if x.IsUndefined() {
		p.spoiled = true
		return 0
	}
	if c := datum.Compare(x, p.best); p.best.IsUndefined() || name == "Min" && c < 0 || name == "Max" && c > 0 {
		kept = x.Size() - p.best.Size()
		p.best = x.Detach()
	}
	return kept
}

// collect takes in the elements of a list or a set.
func (p *part) collect(name string, list datum.Value) (kept int) {
	if name == "MakeSet" && p.seen == nil {
		p.seen = datum.Set{}
	}
	before := p.list.Size()
	for v := range list.Elements {
		if name == "MakeSet" {
			new := p.seen.Add(v)
			if new == 0 {
				continue
			}
			kept += new + groupBytes
		}
		p.list.Add(v)
	}
	return kept + 2*(p.list.Size()-before) // with the room to grow
}

func (p *part) result(name string) datum.Value {
	switch {
	case p.spoiled:
		return datum.Undefined()
	case name == "Min" || name == "Max":
		return p.best
	case name == "MakeList" || name == "MakeSet":
		return p.list.Snapshot()
	case name == "Average" && p.count == 0:
		return datum.Undefined()
	case name == "Average":
		return datum.Float(p.sum / p.count)
	}
	return datum.Float(p.sum)
}

// rankConstant is the constant of reciprocal rank fusion.
const rankConstant = 60

// Filled returns the query of a score, with the sums of what the ranges said of all texts.
// Without texts there are no such rows.
func (h *HybridInfo) Filled(component int, statistics []datum.Value) *QueryInfo {
	info := *h.Components[component]
	if len(statistics) == 0 {
		return &info
	}
	sum := func(of func(datum.Value) datum.Value) string {
		total := 0.0
		for _, row := range statistics {
			x, _ := of(row).AsFloat()
			total += x
		}
		return string(datum.Float(total).AppendJSON(nil))
	}
	pairs := []string{totalItemsPlaceholder, sum(func(r datum.Value) datum.Value { return r.Member("documentCount") })}
	texts := statistics[0].Member("fullTextStatistics")
	for i := range texts.Len() {
		text := func(r datum.Value) datum.Value { return r.Member("fullTextStatistics").Index(i) }
		var hits []string
		for n := range texts.Index(i).Member("hitCounts").Len() {
			hits = append(hits, sum(func(r datum.Value) datum.Value { return text(r).Member("hitCounts").Index(n) }))
		}
		at := string(datum.Int(int64(i)).AppendJSON(nil)) + "}"
		pairs = append(pairs,
			totalWordsPlaceholder+at, sum(func(r datum.Value) datum.Value { return text(r).Member("totalWordCount") }),
			hitCountsPlaceholder+at, "["+strings.Join(hits, ",")+"]")
	}
	info.Rewritten = strings.NewReplacer(pairs...).Replace(info.Rewritten)
	return &info
}

// Window returns which rows of the result are asked for, as that of QueryInfo does.
func (h *HybridInfo) Window() (first, last int64) {
	last = -1
	if h.Skip != nil {
		first = *h.Skip
	}
	if h.Take != nil {
		last = first + *h.Take
	}
	return first, last
}

// Fused orders the payloads of the rows that any score has found by the sum of the reciprocals
// of their ranks by each score, and returns what they are to their reader. Rows with the same
// score have the same rank.
func (h *HybridInfo) Fused(payloads []datum.Value) []datum.Value {
	type ranked struct {
		row   datum.Value
		total float64
	}
	all := make([]ranked, len(payloads))
	for i, p := range payloads {
		all[i].row = Payload(p)
	}
	for c, info := range h.Components {
		weight := 1.0
		if h.Weights != nil {
			weight = h.Weights[c]
		}
		scores := make([]float64, len(payloads))
		for i, p := range payloads {
			scores[i], _ = p.Member("componentScores").Index(c).AsFloat()
		}
		best := slices.Clone(scores)
		slices.Sort(best)
		best = slices.Compact(best)
		for i, score := range scores {
			better, _ := slices.BinarySearch(best, score)
			if info.OrderBy[0] == Descending {
				better = len(best) - 1 - better
			}
			all[i].total += weight / float64(rankConstant+1+better)
		}
	}
	slices.SortStableFunc(all, func(a, b ranked) int {
		switch {
		case a.total > b.total:
			return -1
		case a.total < b.total:
			return 1
		}
		return 0
	})
	rows := make([]datum.Value, len(all))
	for i := range all {
		rows[i] = all[i].row
	}
	return rows
}
