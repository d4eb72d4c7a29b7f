// SPDX-License-Identifier: MIT

// Ways through the tree, for readers that care for few of its nodes.

package syntax

import "iter"

// Operands yields the expressions that e is made of, one level down. The query of
// a subquery is not among them.
func Operands(e Expr) iter.Seq[Expr] {
	return func(yield func(Expr) bool) { eachOperand(e, yield) }
}

// eachOperand calls yield for the operands of e and reports whether yield wants more. It is
// the one list of what each node is made of: whatever walks the tree goes through it.
func eachOperand(e Expr, yield func(Expr) bool) bool {
	switch e := e.(type) {
	case *Member:
		return yield(e.Of)
	case *Index:
		return yield(e.Of) && yield(e.At)
	case *Unary:
		return yield(e.X)
	case *Binary:
		return yield(e.X) && yield(e.Y)
	case *Ternary:
		return yield(e.Cond) && yield(e.Then) && yield(e.Else)
	case *Coalesce:
		return yield(e.X) && yield(e.Y)
	case *Between:
		return yield(e.X) && yield(e.Low) && yield(e.High)
	case *In:
		return yield(e.X) && eachOf(e.List, yield)
	case *Like:
		return yield(e.X) && yield(e.Pattern)
	case *Let:
		return yield(e.Value) && yield(e.Body)
	case *Call:
		return eachOf(e.Args, yield)
	case *ArrayLit:
		return eachOf(e.Items, yield)
	case *ObjectLit:
		for i := range e.Props {
			if !yield(e.Props[i].Value) {
				return false
			}
		}
	}
	return true
}

func eachOf(list []Expr, yield func(Expr) bool) bool {
	for _, e := range list {
		if !yield(e) {
			return false
		}
	}
	return true
}

// Contains reports whether e, or an expression in it outside of subqueries, is
// what is looked for.
func Contains(e Expr, is func(Expr) bool) bool {
	return is(e) || !eachOperand(e, func(part Expr) bool { return !Contains(part, is) })
}

// Selected yields the expressions of the select list. SELECT * has none.
func (q *Query) Selected(yield func(Expr) bool) {
	if q.Select.Value != nil {
		yield(q.Select.Value)
		return
	}
	for i := range q.Select.Items {
		if !yield(q.Select.Items[i].Expr) {
			return
		}
	}
}

// EachClause calls f for the expressions of a query's clauses, and inner for the
// subqueries that are sources. Numbers of TOP, OFFSET and LIMIT are left out: they have
// nothing inside them.
func (q *Query) EachClause(f func(Expr), inner func(*Query)) {
	if q.From != nil {
		for i := range q.From.Sources {
			if src := &q.From.Sources[i]; src.Query != nil {
				inner(src.Query)
			} else if src.Expr != nil {
				f(src.Expr)
			}
		}
	}
	for x := range q.Selected {
		f(x)
	}
	if q.Where != nil {
		f(q.Where)
	}
	for _, x := range q.GroupBy {
		f(x)
	}
	for _, item := range q.OrderBy {
		f(item.Expr)
	}
}
