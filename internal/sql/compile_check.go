// SPDX-License-Identifier: MIT

// What the grammar allows and the language does not.

package sql

import (
	"errors"
	"strconv"
)

// eachOperand calls f for the expressions that e is made of, one level down. The
// query of a subquery is not among them.
func eachOperand(e Expr, f func(Expr)) {
	switch e := e.(type) {
	case *Member:
		f(e.Of)
	case *Index:
		f(e.Of)
		f(e.At)
	case *Unary:
		f(e.X)
	case *Binary:
		f(e.X)
		f(e.Y)
	case *Ternary:
		f(e.Cond)
		f(e.Then)
		f(e.Else)
	case *Coalesce:
		f(e.X)
		f(e.Y)
	case *Between:
		f(e.X)
		f(e.Low)
		f(e.High)
	case *In:
		f(e.X)
		eachOf(e.List, f)
	case *Like:
		f(e.X)
		f(e.Pattern)
	case *Call:
		eachOf(e.Args, f)
	case *ArrayLit:
		eachOf(e.Items, f)
	case *ObjectLit:
		for _, p := range e.Props {
			f(p.Value)
		}
	}
}

func eachOf(list []Expr, f func(Expr)) {
	for _, e := range list {
		f(e)
	}
}

// eachClause calls f for the expressions of a query's clauses, and inner for the
// subqueries that are sources.
func eachClause(q *Query, f func(Expr), inner func(*Query)) {
	if q.From != nil {
		for i := range q.From.Sources {
			if src := &q.From.Sources[i]; src.Query != nil {
				inner(src.Query)
			} else if src.Expr != nil {
				f(src.Expr)
			}
		}
	}
	eachSelected(q, f)
	if q.Where != nil {
		f(q.Where)
	}
	eachOf(q.GroupBy, f)
	for _, item := range q.OrderBy {
		f(item.Expr)
	}
}

func eachSelected(q *Query, f func(Expr)) {
	if q.Select.Value != nil {
		f(q.Select.Value)
	}
	for _, item := range q.Select.Items {
		f(item.Expr)
	}
}

// contains reports whether e, or an expression in it outside of subqueries, is
// what is looked for.
func contains(e Expr, is func(Expr) bool) bool {
	found := is(e)
	eachOperand(e, func(part Expr) { found = found || contains(part, is) })
	return found
}

func isAggregate(e Expr) bool {
	call, ok := e.(*Call)
	if !ok || call.UDF {
		return false
	}
	_, ok = aggregateNamed(call.Name)
	return ok
}

func isSubquery(e Expr) bool {
	_, ok := e.(*Subquery)
	return ok
}

// hasAggregate reports whether the select list has an aggregate.
func hasAggregate(q *Query) bool {
	found := false
	eachSelected(q, func(e Expr) { found = found || contains(e, isAggregate) })
	return found
}

// checkQuery refuses clauses that do not go together, here and in all subqueries.
func checkQuery(q *Query) error {
	if err := checkInner(q); err != nil {
		return err
	}
	return checkClauses(q)
}

// checkInner checks the subqueries of a query, the innermost first, as the
// service does.
func checkInner(q *Query) (err error) {
	nested := func(inner *Query) {
		if err == nil {
			err = checkInner(inner)
		}
		if err == nil {
			err = checkNested(inner)
		}
	}
	var visit func(e Expr)
	visit = func(e Expr) {
		if sub, ok := e.(*Subquery); ok {
			nested(sub.Query)
			return
		}
		eachOperand(e, visit)
	}
	eachClause(q, visit, nested)
	return err
}

// checkNested refuses what a subquery cannot have.
func checkNested(q *Query) error {
	switch {
	case q.OrderBy != nil && q.Rank:
		return errorAt(q.Span, "SC2228", "'ORDER BY RANK' is not supported in subqueries.")
	case q.OrderBy != nil:
		return errorAt(q.Span, "SC2202", "'ORDER BY' is not supported in subqueries.")
	case q.Top != nil:
		return errorAt(q.Span, "SC2203", "'TOP' is not supported in subqueries.")
	case q.Limit != nil:
		return errorAt(q.Span, "SC2204", "'OFFSET LIMIT' clause is not supported in subqueries.")
	}
	return checkClauses(q)
}

func checkClauses(q *Query) error {
	if q.Select.Star {
		switch {
		case q.From == nil:
			return errorAt(q.Span, "", "'SELECT *' is not valid if FROM clause is omitted.")
		case q.GroupBy != nil:
			return errorAt(q.Span, "SC2041", "'SELECT *' is not allowed with GROUP BY.")
		case len(q.From.Sources) > 1:
			return errorAt(q.Span, "", "'SELECT *' is only valid with a single input set.")
		}
	}
	seen := map[string]bool{}
	for _, item := range q.Select.Items {
		if seen[item.Name] {
			return duplicateProperty(item.Name, item.Expr.Pos())
		}
		seen[item.Name] = true
	}
	for _, e := range q.GroupBy {
		if contains(e, isSubquery) || contains(e, isAggregate) {
			return errorAt(e.Pos(), "", "A GROUP BY expression cannot contain an aggregate or a subquery.")
		}
	}
	if q.GroupBy != nil && q.OrderBy != nil {
		return errorAt(q.OrderBy[0].Expr.Pos(), "", "'ORDER BY' is not supported with 'GROUP BY'.")
	}
	if q.Rank {
		return checkRank(q)
	}
	return nil
}

// checkRank refuses what ORDER BY RANK does not go with.
func checkRank(q *Query) error {
	if q.From == nil {
		return nil
	}
	first := &q.From.Sources[0]
	switch {
	case len(q.From.Sources) > 1:
		return errorAt(q.Span, "SC2224", "The ORDER BY RANK clause is not supported with JOIN.")
	case first.Query != nil:
		return errorAt(first.Span, "SC2225", "The ORDER BY RANK clause is not supported with a subquery in the FROM clause.")
	case first.Iterate:
		return errorAt(first.Span, "SC2223", "The ORDER BY RANK clause is not supported with IN in the FROM clause.")
	}
	for _, item := range q.OrderBy {
		call, ok := item.Expr.(*Call)
		if !ok || !isScore(call) {
			return errorAt(item.Expr.Pos(), "SC2221", "The ORDER BY RANK clause only supports the VectorDistance, FullTextScore and RRF functions.")
		}
	}
	return nil
}

// checkArguments refuses a call that can never work.
func checkArguments(e *Call, fn *Function, parts []code, s *scope) error {
	if message := fn.Arity(len(e.Args)); message != "" {
		return errorAt(e.Span, "SC2050", "%s", message)
	}
	if fn.RankOnly && !s.ranking {
		return errorAt(e.Span, "SC2240", "The %s function is only allowed in the ORDER BY RANK clause.", e.Written)
	}
	if fn.Check == nil {
		return nil
	}
	known := make([]Value, len(parts))
	for i := range parts {
		if parts[i].constant {
			known[i] = parts[i].value
		}
	}
	err := fn.Check(known)
	var refused *Error
	if errors.As(err, &refused) {
		return errorAt(e.Span, refused.Code, "%s", refused.Message)
	}
	return err
}

// CheckComputed refuses a query that is no definition of a computed property. The
// error is an *[Error].
func CheckComputed(q *Query) error {
	if err := checkComputed(q); err != nil {
		return err
	}
	_, err := Compile(q, CompileOptions{})
	return err
}

// checkComputed looks at the form of a definition only.
func checkComputed(q *Query) error {
	refuse := func(at Span) error {
		return errorAt(at, "", "A computed property is defined by SELECT VALUE and a scalar expression FROM the container, without other clauses.")
	}
	switch {
	case q.Select.Value == nil, q.From == nil, q.Where != nil, q.GroupBy != nil, q.OrderBy != nil,
		q.Top != nil, q.Limit != nil, q.Distinct:
		return refuse(q.Span)
	}
	first := &q.From.Sources[0]
	if len(q.From.Sources) > 1 || first.Query != nil || first.Iterate || first.Expr != nil || len(first.Path) > 0 {
		return refuse(first.Span)
	}
	if contains(q.Select.Value, isSubquery) || contains(q.Select.Value, isAggregate) || contains(q.Select.Value, isNonDeterministic) {
		return refuse(q.Select.Value.Pos())
	}
	return nil
}

func isNonDeterministic(e Expr) bool {
	call, ok := e.(*Call)
	if !ok || call.UDF {
		return ok
	}
	fn, ok := lookupFunction(call.Name)
	return ok && fn.NonDeterministic
}

// fingerprint returns a text that expressions share if they are written the same
// way, but for space, brackets and the names of what they refer to.
func fingerprint(e Expr, s *scope) string { return string(appendFingerprint(nil, e, s)) }

func appendFingerprint(dst []byte, e Expr, s *scope) []byte {
	switch e := e.(type) {
	case *Ident:
		if bound, _ := s.lookup(e.Name); bound != nil {
			return strconv.AppendInt(append(dst, '$'), int64(bound.slot), 10)
		}
		return append(dst, e.Name...)
	case *Literal:
		return e.Value.AppendCanonical(dst)
	case *Param:
		return append(dst, e.Name...)
	case *Subquery:
		return append(dst, Print(e)...)
	case *Member:
		dst = Str(e.Name).AppendJSON(append(dst, '.'))
	case *Unary:
		dst = append(dst, e.Op.String()...)
	case *Binary:
		dst = append(dst, e.Op.String()...)
	case *Call:
		if e.UDF {
			dst = append(dst, "udf."...)
		}
		dst = append(dst, e.Name...)
	case *ObjectLit:
		for _, p := range e.Props {
			dst = Str(p.Name).AppendJSON(dst)
		}
	}
	dst = append(dst, nodeTag(e), '(')
	eachOperand(e, func(part Expr) { dst = append(appendFingerprint(dst, part, s), ',') })
	return append(dst, ')')
}

// nodeTag tells the node types apart in a fingerprint, and those that are
// negated.
func nodeTag(e Expr) byte {
	negated := func(not bool, tag byte) byte {
		if not {
			return tag + 'A' - 'a'
		}
		return tag
	}
	switch e := e.(type) {
	case *Index:
		return 'i'
	case *Ternary:
		return 't'
	case *Coalesce:
		return 'c'
	case *Between:
		return negated(e.Not, 'b')
	case *In:
		return negated(e.Not, 'n')
	case *Like:
		return negated(e.Not, 'l')
	case *ArrayLit:
		return 'a'
	case *ObjectLit:
		return 'o'
	}
	return ' '
}
