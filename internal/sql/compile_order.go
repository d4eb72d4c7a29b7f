// SPDX-License-Identifier: MIT

// ORDER BY. The service orders by paths and by scores, and refuses other expressions, since
// an index has no order for them.

package sql

import (
	"slices"

	"github.com/mayflydb/mayfly/internal/sql/datum"
	"github.com/mayflydb/mayfly/internal/sql/function"
	"github.com/mayflydb/mayfly/internal/sql/syntax"
)

// isScore reports whether a call is one that ORDER BY RANK takes.
func isScore(call *syntax.Call) bool {
	fn := function.Of(call)
	return fn != nil && (fn.RankOnly || fn.Name == function.VectorDistance)
}

// isSortable reports whether a call is one that ORDER BY takes in place of a
// path: a distance, or one of the scores of which rewritten queries make use.
func isSortable(call *syntax.Call) bool {
	return isScore(call) || !call.UDF && len(call.Name) > 0 && call.Name[0] == '_'
}

// orderBy compiles ORDER BY. All items are checked for what the service refuses before one is
// compiled, because the refusal comes before any other.
func (c *compiler) orderBy(q *syntax.Query, s *scope, b *block) error {
	s.ranking = q.Rank
	defer func() { s.ranking = false }()
	if q.Rank {
		ranking, err := c.ranking(q, s)
		b.ranking = ranking
		return err
	}
	if len(q.GroupBy) > 0 {
		return c.groupOrder(q, s, b)
	}
	for _, item := range q.OrderBy {
		if call, ok := item.Expr.(*syntax.Call); !isPath(item.Expr) && (!ok || !isSortable(call)) {
			if _, err := c.expr(item.Expr, s); err != nil {
				return err
			}
			return unsupportedOrder(item.Expr)
		}
	}
	for _, item := range q.OrderBy {
		// It is compiled all the same: it may name something that there is not.
		if b.grouping != nil && isPath(item.Expr) { // one row needs no order
			if _, err := c.expr(item.Expr, s); err != nil {
				return err
			}
			continue
		}
		key, err := c.sortKey(item, s)
		if err != nil {
			return err
		}
		if b.grouping == nil {
			b.order = append(b.order, key)
		}
	}
	return nil
}

// groupOrder compiles the ORDER BY of groups. What is not one of their keys has no
// one value in them.
func (c *compiler) groupOrder(q *syntax.Query, s *scope, b *block) error {
	s.grouping = b.grouping
	defer func() { s.grouping = nil }()
	for _, item := range q.OrderBy {
		slot, ok := s.keySlot(item.Expr)
		if !ok {
			if _, err := c.expr(item.Expr, s); err != nil {
				return err
			}
			return unsupportedOrder(item.Expr)
		}
		key := slices.IndexFunc(b.grouping.keys, func(k groupKey) bool { return k.slot == slot })
		b.grouping.order = append(b.grouping.order, groupOrder{key: key, desc: item.Desc})
	}
	return nil
}

// sortKey compiles one item of ORDER BY: a path, which an index may have in order, or a score.
func (c *compiler) sortKey(item syntax.SortItem, s *scope) (SortKey, error) {
	key := SortKey{Desc: item.Desc, Explicit: item.Explicit}
	call, _ := item.Expr.(*syntax.Call)
	x, err := c.expr(item.Expr, s)
	switch {
	case err != nil:
		return SortKey{}, err
	case call != nil && !call.UDF && call.Name == function.VectorDistance && item.Explicit:
		return SortKey{}, syntax.Errorf(item.Expr.Pos(), "", "Specifying a sorting order (ASC or DESC) with VectorDistance function is not supported.")
	case call != nil && isSortable(call):
		key.Call = call
		switch {
		case x.function == function.TextScoreOf:
			key.Text = textScore(x.args)
		case x.compares && !x.constant:
			key.Vector = vectorScoreOf(x.function, x.args)
		}
		if x.compares && !item.Explicit {
			// The nearest come first, whatever the metric.
			key.Desc = x.metric.HigherIsCloser()
		}
	default:
		if err := c.checkSortPath(item.Expr, x, s); err != nil {
			return SortKey{}, err
		}
		key.Path = x.origin.path
	}
	key.eval = x.eval
	return key, nil
}

// checkSortPath refuses a path that does not lead from the item to one property. It may
// lead through what a subquery makes of the item, but not to a computed property: the path
// has another value there than in an index.
func (c *compiler) checkSortPath(e syntax.Expr, x code, s *scope) error {
	bound, _ := s.lookup(rootOf(e))
	switch {
	case bound == nil:
		return unsupportedOrder(e)
	case bound.kind == sourceElement:
		return syntax.Errorf(e.Pos(), "", "Order-by over correlated collections is not supported.")
	case !x.origin.known, bound.derived && !c.isStored(x.origin):
		return unsupportedOrder(e)
	}
	return nil
}

// isStored reports whether a path leads to one value of the item as it is stored.
func (c *compiler) isStored(o origin) bool {
	return len(o.path) > 0 &&
		!slices.ContainsFunc(o.path, func(s syntax.Step) bool { return s.Element && s.Index == AnyElement }) &&
		!slices.ContainsFunc(c.opts.Computed, func(p Computed) bool { return p.Name == o.path[0].Name })
}

// unsupportedOrder is the error for an item of ORDER BY that leads to no property.
func unsupportedOrder(e syntax.Expr) *syntax.Error {
	return syntax.Errorf(e.Pos(), "2206", "Unsupported ORDER BY clause. ORDER BY item expression could not be mapped to a document path.")
}

// isPath reports whether an expression is an alias or leads from one.
func isPath(e syntax.Expr) bool { return rootOf(e) != "" }

// rootOf returns the alias that a path starts from.
func rootOf(e syntax.Expr) string {
	for {
		switch at := e.(type) {
		case *syntax.Ident:
			return at.Name
		case *syntax.Member:
			e = at.Of
		case *syntax.Index:
			e = at.Of
		default:
			return ""
		}
	}
}

// vectorArguments completes a call that compares vectors with what the
// container's policy says about their path, as if the query had said it.
func (c *compiler) vectorArguments(parts []code) ([]code, function.Metric) {
	var options datum.Value
	if len(parts) > function.VectorOptionsAt {
		if !parts[function.VectorOptionsAt].constant {
			return parts, function.MetricCosine
		}
		options = parts[function.VectorOptionsAt].value
	}
	if name, ok := options.Member("distanceFunction").AsString(); ok {
		metric, _ := function.ParseMetric(name)
		return parts, metric
	}
	policy := c.vectorPolicy(parts[0].origin)
	if policy == nil {
		policy = c.vectorPolicy(parts[1].origin)
	}
	if policy == nil {
		return parts, function.MetricCosine
	}
	var b datum.ObjectBuilder
	for name, v := range options.Properties {
		b.Set(name, v)
	}
	b.Set("distanceFunction", datum.Str(policy.Metric.String()))
	if policy.DataType != "" && options.Member("dataType").IsUndefined() {
		b.Set("dataType", datum.Str(policy.DataType))
	}
	full := append([]code{}, parts...)
	for len(full) < function.VectorOptionsAt {
		full = append(full, constantCode(datum.Bool(false)))
	}
	return append(full[:function.VectorOptionsAt], constantCode(b.Value())), policy.Metric
}

// vectorPolicy returns the container's policy for the vectors at a path, or nil if there is
// none.
func (c *compiler) vectorPolicy(o origin) *Vector {
	for i := range c.opts.Vectors {
		policy := &c.opts.Vectors[i]
		if o.known && o.path.Is(policy.Path) {
			return policy
		}
	}
	return nil
}
