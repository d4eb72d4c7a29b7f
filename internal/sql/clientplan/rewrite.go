// SPDX-License-Identifier: MIT

// Rewritten queries: the rows that clients merge carry what they are ordered,
// grouped and aggregated by, and the projection as their payload.

package clientplan

import (
	"slices"
	"strings"

	"github.com/mayflydb/mayfly/internal/sql"
	"github.com/mayflydb/mayfly/internal/sql/syntax"
)

// resumeFilter is where a client puts what keeps rows out that it has seen.
const resumeFilter = "({documentdb-formattableorderbyquery-filter})"

// errComposed is why an aggregate may be no part of something else: its parts
// from several ranges would have to be put together first.
const errComposed = "Compositions of aggregates and other expressions are not allowed."

// Short names for the nodes that rewritten queries are made of. They have no position in a
// text.

func countOf(n int64) syntax.Expr { return &syntax.Literal{Kind: syntax.LitInt, Int: n} }
func callOf(name string, args ...syntax.Expr) *syntax.Call {
	return &syntax.Call{Name: strings.ToUpper(name), Written: name, Args: args}
}
func prop(name string, x syntax.Expr) syntax.Property {
	return syntax.Property{Name: name, Value: x}
}
func objectOf(props ...syntax.Property) syntax.Expr { return &syntax.ObjectLit{Props: props} }
func arrayOf(items ...syntax.Expr) syntax.Expr      { return &syntax.ArrayLit{Items: items} }

// aliased is an item of a select list by the name that clients expect.
func aliased(x syntax.Expr, alias string) syntax.SelectItem {
	return syntax.SelectItem{Expr: x, Alias: alias, Name: alias, Aliased: true}
}

// wrapped returns [{"item": x}, …]: an undefined x leaves out the property, and not the
// element, so that every key stays at its index.
func wrapped(list []syntax.Expr) syntax.Expr {
	items := make([]syntax.Expr, len(list))
	for i, x := range list {
		items[i] = objectOf(prop("item", x))
	}
	return arrayOf(items...)
}

// payload returns what a query projects, as one expression: a row that is merged has its
// keys beside it.
func payload(q *syntax.Query) syntax.Expr {
	switch {
	case q.Select.Star:
		return &syntax.Ident{Name: q.From.Sources[0].Alias}
	case q.Select.Value != nil:
		return q.Select.Value
	}
	props := make([]syntax.Property, len(q.Select.Items))
	for i, item := range q.Select.Items {
		props[i] = prop(item.Name, item.Expr)
	}
	return objectOf(props...)
}

// ordered plans ORDER BY. The rows carry their keys and the id by which equal
// keys are ordered.
func (p *planner) ordered() {
	q, info := p.query, p.info
	keys := p.orderKeys()
	for _, key := range p.program.OrderBy() {
		info.OrderBy = append(info.OrderBy, sortOrder(key.Desc))
		if key.Call != nil { // no index has them in order
			info.NonStreamingOrderBy = true
			p.need(FeatureNonStreamingOrderBy)
		}
	}
	rewritten := p.limited(*q)
	if q.Distinct {
		p.need(FeatureDistinct)
		info.Distinct = distinctTypeOf(q)
		rewritten = unsliced(*q)
		rewritten.Distinct = false
	} else if rewritten.Top != nil {
		rewritten.Top = countOf(*p.top)
	}
	p.makeMergeable(&rewritten, keys, payload(q))
	rewritten.Where = resumable(q)
	p.rewrite(rewritten)
}

// orderKeys notes what the rows are ordered by, and returns it.
func (p *planner) orderKeys() []syntax.Expr {
	items := p.query.OrderBy
	p.need(FeatureOrderBy)
	if len(items) > 1 {
		p.need(FeatureMultipleOrderBy)
	}
	keys := make([]syntax.Expr, len(items))
	for i, item := range items {
		keys[i] = item.Expr
		p.info.OrderByExpressions = append(p.info.OrderByExpressions, syntax.Print(item.Expr))
	}
	return keys
}

// makeMergeable gives a query the select list of rows that are merged by their keys.
func (p *planner) makeMergeable(q *syntax.Query, keys []syntax.Expr, payload syntax.Expr) {
	from, item := p.itemized(q)
	q.From = from
	q.Select = syntax.Select{Items: []syntax.SelectItem{
		{Expr: &syntax.Member{Of: &syntax.Ident{Name: item}, Name: "_rid"}, Name: "_rid"},
		aliased(wrapped(keys), "orderByItems"),
		aliased(payload, "payload"),
	}}
}

// itemized returns FROM with a name for the item, which the id of a row is taken from, and
// that name. Where rows come from a subquery, that is made to run over the item by that
// name: FROM (SELECT … FROM c) s becomes FROM root AS item JOIN (SELECT … FROM item AS c) s.
func (p *planner) itemized(q *syntax.Query) (*syntax.From, string) {
	first := q.From.Sources[0]
	if first.Query == nil || p.program.Input() != nil {
		return q.From, first.Alias
	}
	name := "item"
	for text := q.String(); strings.Contains(text, name); {
		name += "_"
	}
	from := *q.From
	from.Sources = append([]syntax.Source{{Root: "root", Alias: name, Aliased: true}}, q.From.Sources...)
	from.Sources[1].Query = over(name, first.Query)
	return &from, name
}

// over returns a query whose first source, or that of the subquery that it is, is what a
// name stands for, in place of the container.
func over(name string, q *syntax.Query) *syntax.Query {
	of, from := *q, *q.From
	from.Sources = slices.Clone(from.Sources)
	of.From = &from
	first := &from.Sources[0]
	if first.Query != nil {
		first.Query = over(name, first.Query)
	} else {
		first.Root, first.Aliased = name, first.Alias != ""
	}
	return &of
}

// resumable returns the filter of rows that are merged by their keys. Rows
// without a value are left out here: the client would count their payload.
func resumable(q *syntax.Query) syntax.Expr {
	var filter syntax.Expr = &syntax.Verbatim{Text: resumeFilter}
	if q.Where != nil {
		filter = &syntax.Binary{Op: syntax.OpAnd, X: q.Where, Y: filter}
	}
	if q.Select.Value != nil {
		filter = &syntax.Binary{Op: syntax.OpAnd, X: filter, Y: callOf("IS_DEFINED", q.Select.Value)}
	}
	return filter
}

// distinctTypeOf returns how equal rows of an ordered query come: one after
// another, if they are what the first items of ORDER BY are.
func distinctTypeOf(q *syntax.Query) DistinctType {
	var selected []string
	for x := range q.Selected {
		selected = append(selected, syntax.Print(x))
	}
	if len(selected) == 0 || len(selected) > len(q.OrderBy) {
		return DistinctUnordered
	}
	for _, item := range q.OrderBy[:len(selected)] {
		if !slices.Contains(selected, syntax.Print(item.Expr)) {
			return DistinctUnordered
		}
	}
	return DistinctOrdered
}

// grouped plans GROUP BY and aggregates.
func (p *planner) grouped() error {
	q, info := p.query, p.info
	if q.Distinct {
		p.need(FeatureDistinct)
		info.Distinct = DistinctUnordered
	}
	var merged syntax.Expr
	var err error
	if q.Select.Value != nil {
		merged, err = p.groupedValue()
	} else {
		merged, err = p.groupedItems()
	}
	if err != nil {
		return err
	}
	rewritten := unsliced(*q)
	rewritten.Distinct = false
	switch {
	case q.GroupBy != nil:
		p.need(FeatureGroupBy)
		for _, x := range q.GroupBy {
			info.GroupByExpressions = append(info.GroupByExpressions, syntax.Print(x))
		}
		if q.OrderBy != nil {
			p.orderedGroups(&rewritten, merged)
			break
		}
		rewritten.Select = syntax.Select{Items: []syntax.SelectItem{
			aliased(wrapped(q.GroupBy), "groupByItems"), aliased(merged, "payload")}}
	case q.Select.Value != nil:
		rewritten.Select = syntax.Select{Value: merged}
	default:
		rewritten.Select = syntax.Select{Items: []syntax.SelectItem{aliased(merged, "payload")}}
	}
	p.rewrite(rewritten)
	return nil
}

// orderedGroups plans ORDER BY with GROUP BY. Clients merge the rows by their keys,
// and then put the payloads of those together that are of one group, in the order
// in which they meet the groups.
func (p *planner) orderedGroups(rewritten *syntax.Query, merged syntax.Expr) {
	q := p.query
	keys := p.orderKeys()
	for _, item := range q.OrderBy {
		p.info.OrderBy = append(p.info.OrderBy, sortOrder(item.Desc))
	}
	p.makeMergeable(rewritten, keys, objectOf(
		prop("groupByItems", wrapped(q.GroupBy)), prop("payload", merged)))
	first := &rewritten.Select.Items[0]
	*first = aliased(callOf("MIN", first.Expr), first.Name)
	rewritten.Where = resumable(&syntax.Query{Where: q.Where})
}

// groupedValue plans SELECT VALUE of an aggregate or of a group's key. Clients expect the parts
// of an aggregate in an array of one.
func (p *planner) groupedValue() (syntax.Expr, error) {
	x := p.query.Select.Value
	aggregate, parts, err := p.aggregate(x)
	if err != nil || aggregate == "" {
		return x, err
	}
	p.need(FeatureAggregate)
	p.info.Aggregates = append(p.info.Aggregates, aggregate)
	return arrayOf(parts), nil
}

// groupedItems plans a select list with aggregates: an object with the parts of each, which the
// client puts together by its alias.
func (p *planner) groupedItems() (syntax.Expr, error) {
	q, found := p.query, 0
	props := make([]syntax.Property, len(q.Select.Items))
	for i, item := range q.Select.Items {
		aggregate, parts, err := p.aggregate(item.Expr)
		if err != nil {
			return nil, err
		}
		if aggregate != "" {
			found++
		}
		props[i] = prop(item.Name, parts)
		p.info.GroupByAliases = append(p.info.GroupByAliases, item.Name)
		p.info.AliasAggregates = append(p.info.AliasAggregates, AliasAggregate{item.Name, aggregate})
	}
	if found > 0 && q.GroupBy == nil {
		p.need(FeatureNonValueAggregate)
	}
	if found > 1 {
		p.need(FeatureMultipleAggregates)
	}
	return objectOf(props...), nil
}

// clientNames are the names that clients know aggregates by.
var clientNames = map[string]string{
	"AVG": "Average", "MIN": "Min", "MAX": "Max", "COUNT": "Count", "COUNTIF": "CountIf", "SUM": "Sum",
	"MAKELIST": "MakeList", "MAKESET": "MakeSet",
}

// aggregate returns the name that clients know an aggregate by, and the parts of
// it that they put together; for another expression, no name and the expression
// itself.
func (p *planner) aggregate(x syntax.Expr) (name string, parts syntax.Expr, err error) {
	if !sql.IsAggregate(x) {
		if syntax.Contains(x, sql.IsAggregate) {
			return "", nil, syntax.Errorf(x.Pos(), "", errComposed)
		}
		return "", x, nil
	}
	c := x.(*syntax.Call)
	props := []syntax.Property{prop("item", c)}
	switch c.Name {
	case "AVG":
		props[0].Value = objectOf(prop("sum", callOf("SUM", c.Args...)), prop("count", callOf("COUNT", c.Args...)))
	case "MIN", "MAX":
		// The count shows whether there was no value, or only values that have no least one.
		props = append(props, prop("item2", objectOf(prop(strings.ToLower(c.Name), c), prop("count", callOf("COUNT", c.Args...)))))
	case "COUNTIF":
		p.need(FeatureCountIf)
	}
	return clientNames[c.Name], objectOf(props...), nil
}
