// SPDX-License-Identifier: MIT

// Package clientplan is how a client runs a query over several ranges of partition
// keys: which of them, the query that it sends to each, and what it does with the rows
// itself. It never runs anything.
//
// The one invariant: what a rewritten query's rows become in a client is what the
// query would give over all items at once. The features that this takes are those that
// the client said it has.
package clientplan

import (
	"math"
	"strings"

	"github.com/mayflydb/mayfly/internal/sql"
	"github.com/mayflydb/mayfly/internal/sql/syntax"
	"github.com/mayflydb/mayfly/internal/value"
)

// FeatureSet is what a client can do with the answers of several ranges.
type FeatureSet uint32

// The features, by the names that clients give them.
const (
	FeatureAggregate FeatureSet = 1 << iota
	FeatureNonValueAggregate
	FeatureMultipleAggregates
	FeatureCountIf
	FeatureDCount
	FeatureDistinct
	FeatureGroupBy
	FeatureTop
	FeatureOffsetAndLimit
	FeatureOrderBy
	FeatureMultipleOrderBy
	FeatureNonStreamingOrderBy
	FeatureHybridSearch
	FeatureWeightedRankFusion
)

// featureNames is in the order of the features' bits.
var featureNames = [...]string{
	"Aggregate", "NonValueAggregate", "MultipleAggregates", "CountIf", "DCount",
	"Distinct", "GroupBy", "Top", "OffsetAndLimit", "OrderBy", "MultipleOrderBy", "NonStreamingOrderBy",
	"HybridSearch", "WeightedRankFusion",
}

// ParseFeatures reads the list that a client sends, with commas between. Names
// that no plan asks for are passed over.
func ParseFeatures(list string) FeatureSet {
	var set FeatureSet
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		for bit, known := range featureNames {
			if strings.EqualFold(name, known) {
				set |= 1 << bit
			}
		}
	}
	return set
}

// String lists the features as clients do.
func (s FeatureSet) String() string {
	var names []string
	for bit, name := range featureNames {
		if s&(1<<bit) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// Options is what a plan depends on besides the query.
type Options struct {
	// Features is what the client can do.
	Features FeatureSet
	// PartitionKey is the paths of the container's partition key.
	PartitionKey []value.Path
}

// Plan is a query plan.
type Plan struct {
	Query  *QueryInfo  // nil with Hybrid
	Hybrid *HybridInfo // nil with Query
	Keys   KeyScope
}

// QueryInfo is what a client does with the rows of several ranges.
type QueryInfo struct {
	Distinct             DistinctType
	Top, Offset, Limit   *int64
	OrderBy              []SortOrder
	OrderByExpressions   []string
	GroupByExpressions   []string
	GroupByAliases       []string
	Aggregates           []string         // of SELECT VALUE
	AliasAggregates      []AliasAggregate // of a select list
	Rewritten            string           // the query for each range, or empty for the original
	SelectValue          bool
	NonStreamingOrderBy  bool
	DistinctCount        bool   // the client counts distinct rows,
	DistinctCountedAlias string // and returns an object with this property, or the bare number
}

// AliasAggregate says what a property of a result is: an aggregate by the name
// that clients know it by, or a value of the group if that is empty.
type AliasAggregate struct{ Alias, Aggregate string }

// DistinctType is how a client recognises rows that it has seen.
type DistinctType string

// The distinct types.
const (
	DistinctNone      DistinctType = "None"
	DistinctOrdered   DistinctType = "Ordered" // equal rows come one after another
	DistinctUnordered DistinctType = "Unordered"
)

// SortOrder is the direction of an item of ORDER BY.
type SortOrder string

// The sort orders.
const (
	Ascending  SortOrder = "Ascending"
	Descending SortOrder = "Descending"
)

// sortOrder returns a direction by the name that clients have for it.
func sortOrder(desc bool) SortOrder {
	if desc {
		return Descending
	}
	return Ascending
}

// Needed reports whether the rows of several ranges are the answer only
// after the client has merged them. Without a plan, such a query is refused if
// it goes to more than one range.
func Needed(q *syntax.Query) bool {
	return q.From != nil &&
		(q.Distinct || q.Top != nil || q.Limit != nil || q.GroupBy != nil || q.OrderBy != nil || sql.HasAggregate(q))
}

// ListsAggregates reports whether a query has aggregates other than SELECT VALUE, and no
// groups. The service wants a plan for these as soon as a client allows several ranges,
// also if the filter leaves one: the Python SDK's tests count on its refusal.
func ListsAggregates(q *syntax.Query) bool {
	return q.From != nil && q.Select.Value == nil && q.GroupBy == nil && sql.HasAggregate(q)
}

// New makes the plan of a query. The error is an *[syntax.Error].
func New(program *sql.Program, o Options) (*Plan, error) {
	q := program.Query()
	p := &planner{program: program, query: q, opts: o}
	p.top, p.offset, p.limit = p.count(q.Top), p.count(q.Offset), p.count(q.Limit)
	plan := &Plan{Keys: ScopeKeys(program, o.PartitionKey)}
	p.single = !plan.Keys.All && len(plan.Keys.Keys) <= 1 && !plan.Keys.prefixOf(o.PartitionKey)
	var err error
	if q.Rank && q.From != nil {
		plan.Hybrid, err = p.hybrid()
	} else {
		p.info = &QueryInfo{Distinct: DistinctNone, SelectValue: q.Select.Value != nil}
		plan.Query, err = p.info, p.plain()
	}
	if err != nil {
		return nil, err
	}
	if missing := p.needed &^ o.Features; missing != 0 {
		return nil, &FeatureError{missing}
	}
	return plan, nil
}

// FeatureError refuses a plan that the client cannot carry out.
type FeatureError struct {
	Missing FeatureSet
}

func (e *FeatureError) Error() string {
	return "Query contains the following features, which the calling client does not support: " + e.Missing.String()
}

// planner holds a query while its plan is made.
type planner struct {
	program *sql.Program
	query   *syntax.Query
	opts    Options
	info    *QueryInfo
	needed  FeatureSet

	top, offset, limit *int64
	single             bool // one partition key, or none, has all rows
}

// need notes what the plan asks of the client.
func (p *planner) need(f FeatureSet) { p.needed |= f }

// count returns the value of TOP, OFFSET or LIMIT, which the compiler has checked, or
// nil if there is no such clause.
func (p *planner) count(x syntax.Expr) *int64 {
	if x == nil {
		return nil
	}
	v, _ := sql.Constant(x, p.program.Params())
	n, _ := v.AsInt()
	return &n
}

// plain plans a query without ORDER BY RANK.
func (p *planner) plain() error {
	q := p.query
	// Without FROM there is one row, whatever is in the container.
	if q.From == nil || p.distinctCount() {
		return nil
	}
	grouped := q.GroupBy != nil || sql.HasAggregate(q)
	if p.single && !grouped && q.OrderBy == nil && !q.Distinct {
		p.offset, p.limit = nil, nil // the one range cuts the rows itself
	}
	p.slice()
	switch {
	case grouped:
		return p.grouped()
	case q.OrderBy != nil:
		p.ordered()
	case q.Distinct:
		p.distinct()
	case p.limit != nil:
		p.rewrite(p.limited(*q))
	}
	return nil
}

// slice has the client cut the result: no range knows how many rows the others have.
func (p *planner) slice() {
	p.info.Top, p.info.Offset, p.info.Limit = p.top, p.offset, p.limit
	if p.top != nil {
		p.need(FeatureTop)
	}
	if p.limit != nil {
		p.need(FeatureOffsetAndLimit)
	}
}

// rewrite sets the query for each range; without a call, that is the client's own.
func (p *planner) rewrite(q syntax.Query) { p.info.Rewritten = q.String() }

// limited has every range return as many rows as the client may need of it.
func (p *planner) limited(q syntax.Query) syntax.Query {
	if p.limit == nil {
		return q
	}
	q.Top = nil
	q.Offset, q.Limit = countOf(0), countOf(min(*p.offset+*p.limit, math.MaxUint32))
	return q
}

// unsliced returns a query whose slice is left to the client.
func unsliced(q syntax.Query) syntax.Query {
	q.Top, q.Offset, q.Limit = nil, nil, nil
	return q
}

// distinct has the client leave out equal rows of several ranges. A range must not cut its rows
// before that.
func (p *planner) distinct() {
	p.need(FeatureDistinct)
	p.info.Distinct = DistinctUnordered
	if p.top != nil || p.limit != nil {
		p.rewrite(unsliced(*p.query))
	}
}

// distinctCount plans SELECT COUNT(1) FROM (SELECT DISTINCT …) as the inner
// query, whose distinct rows the client counts. Clients that cannot do that
// sum up the counts of the ranges.
func (p *planner) distinctCount() bool {
	q := p.query
	if p.opts.Features&FeatureDCount == 0 || len(q.From.Sources) != 1 || q.Distinct ||
		q.Where != nil || q.GroupBy != nil || q.OrderBy != nil || q.Limit != nil || q.Top != nil {
		return false
	}
	inner := q.From.Sources[0].Query
	if inner == nil || q.From.Sources[0].Iterate || !inner.Distinct || inner.From == nil ||
		inner.GroupBy != nil || sql.HasAggregate(inner) {
		return false
	}
	counted := q.Select.Value
	if len(q.Select.Items) == 1 {
		counted = q.Select.Items[0].Expr
		p.info.DistinctCountedAlias = q.Select.Items[0].Name
	}
	call, ok := counted.(*syntax.Call)
	if !ok || call.UDF || call.Name != "COUNT" || len(call.Args) != 1 || !isDefinedLiteral(call.Args[0]) {
		p.info.DistinctCountedAlias = ""
		return false
	}
	p.need(FeatureDCount | FeatureDistinct)
	p.info.DistinctCount = true
	p.info.Distinct = DistinctUnordered
	p.rewrite(*inner)
	return true
}

// isDefinedLiteral reports whether COUNT of an expression counts all rows.
func isDefinedLiteral(x syntax.Expr) bool {
	lit, ok := x.(*syntax.Literal)
	return ok && lit.Kind != syntax.LitUndefined
}
