// SPDX-License-Identifier: MIT

package clientplan

import (
	"slices"

	"github.com/mayflydb/mayfly/internal/sql"
	"github.com/mayflydb/mayfly/internal/sql/syntax"
)

// IsPart reports whether a query is what a plan has a client send to each range: its rows are for
// a client that merges those of several ranges. one says that one range has all rows: else a plan
// leaves OFFSET to the client.
func IsPart(p *sql.Program, one bool) bool {
	q := p.Query()
	aggregate := sql.HasAggregate(q)
	switch {
	case !Needed(q) || p.Slice().Offset > 0 && (!one || q.OrderBy != nil):
		return false
	case q.OrderBy != nil:
		return !q.Distinct && !q.Rank && selects(q, "_rid", "orderByItems", "payload")
	case q.GroupBy != nil:
		return selects(q, "groupByItems", "payload")
	case aggregate && q.Select.Value != nil:
		return isParts(q.Select.Value)
	case aggregate:
		return selects(q, "payload") || selects(q, "documentCount", "fullTextStatistics")
	}
	return !q.Distinct || q.Top == nil && q.Limit == nil
}

// PartOrder returns the order in which the rows of a part come, nil if they have none. It is as
// in the plan: a score that has its worst rows first has keys with the opposite sign.
func PartOrder(p *sql.Program) []SortOrder {
	var order []SortOrder
	for _, item := range p.Query().OrderBy {
		order = append(order, sortOrder(item.Desc))
	}
	keys, _ := p.Query().Select.Items[1].Expr.(*syntax.ArrayLit)
	for i, key := range p.OrderBy() {
		if order[i] = sortOrder(key.Desc); key.Call != nil && keys != nil && isNegative(keys.Items[i]) {
			order[i] = sortOrder(!key.Desc)
		}
	}
	return order
}

// isNegative reports whether a key is {"item": -…}.
func isNegative(key syntax.Expr) bool {
	o, ok := key.(*syntax.ObjectLit)
	if !ok || len(o.Props) == 0 {
		return false
	}
	x, ok := o.Props[0].Value.(*syntax.Unary)
	return ok && x.Op == syntax.OpNeg
}

// selects reports whether the select list has just these names.
func selects(q *syntax.Query, names ...string) bool {
	return slices.EqualFunc(q.Select.Items, names, func(item syntax.SelectItem, name string) bool { return item.Name == name })
}

// isParts reports whether an expression is the parts of one aggregate: [{"item": …}].
func isParts(x syntax.Expr) bool {
	list, ok := x.(*syntax.ArrayLit)
	if !ok || len(list.Items) != 1 {
		return false
	}
	parts, ok := list.Items[0].(*syntax.ObjectLit)
	return ok && len(parts.Props) > 0 && parts.Props[0].Name == "item"
}
