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
	case *Let:
		f(e.Value)
		f(e.Body)
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
	list := &errorList{}
	if q.Rank {
		checkRanked(q, list)
	}
	checkInner(q, list)
	if err := list.err(); err != nil {
		return err
	}
	return checkClauses(q)
}

// checkInner checks the subqueries of a query, the innermost first, as the
// service does.
func checkInner(q *Query, list *errorList) {
	nested := func(inner *Query) {
		before := len(list.errs)
		checkInner(inner, list)
		checkNested(inner, list)
		if len(list.errs) > before {
			return
		}
		var refused *Error
		if errors.As(checkClauses(inner), &refused) {
			list.add(refused)
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
}

// checkNested refuses what a subquery cannot have.
func checkNested(q *Query, list *errorList) {
	if q.Rank {
		list.add(errorAt(q.OrderAt, "SC2228", "The ORDER BY RANK clause is not supported in subqueries."))
	} else if q.OrderBy != nil {
		list.add(errorAt(q.OrderAt, "SC2202", "'ORDER BY' is not supported in subqueries."))
	}
	if q.Top != nil {
		list.add(errorAt(q.TopAt, "SC2203", "'TOP' is not supported in subqueries."))
	}
	if q.Limit != nil {
		list.add(errorAt(q.LimitAt, "SC2204", "'OFFSET LIMIT' clause is not supported in subqueries."))
	}
}

func checkClauses(q *Query) error {
	if q.Select.Star {
		switch {
		case q.From == nil:
			return errorAt(q.Span, "", "'SELECT *' is not valid if FROM clause is omitted.")
		case q.GroupBy != nil:
			return errorAt(q.StarAt, "SC2041", "'SELECT *' is not allowed with GROUP BY.")
		case len(q.From.Sources) > 1:
			return errorAt(q.Span, "", "'SELECT *' is only valid with a single input set.")
		}
	}
	if err := checkAliases(q.From); err != nil {
		return err
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
	if q.GroupBy != nil && q.Rank {
		return errorAt(q.OrderAt, "", "'ORDER BY RANK' is not supported with 'GROUP BY'.")
	}
	return nil
}

// checkAliases refuses sources that share a name, given or taken from a path.
func checkAliases(f *From) error {
	if f == nil {
		return nil
	}
	seen := map[string]bool{}
	for i := range f.Sources {
		src := &f.Sources[i]
		if src.Alias != "" && seen[src.Alias] {
			return errorAt(src.Span, "", "The input alias '%s' is specified more than once in the FROM clause.", src.Alias)
		}
		seen[src.Alias] = true
	}
	return nil
}

// checkRanked refuses what ORDER BY RANK does not go with.
func checkRanked(q *Query, list *errorList) {
	if q.From == nil {
		return
	}
	sources := q.From.Sources
	if last := len(sources) - 1; last > 0 {
		list.add(errorAt(Span{sources[0].Start, sources[last].End}, "SC2224",
			"The JOIN operator is not allowed with the ORDER BY RANK clause."))
	}
	for i := range sources {
		switch src := &sources[i]; {
		case src.Iterate:
			list.add(errorAt(src.Span, "SC2223", "The FROM clause with the IN operator is not allowed with the ORDER BY RANK clause."))
		case src.Query != nil:
			list.add(errorAt(src.SetAt, "SC2225", "Subqueries in the FROM clause are not allowed with the ORDER BY RANK clause."))
		}
	}
	for _, item := range q.OrderBy {
		if call, ok := item.Expr.(*Call); !ok || !isScore(call) {
			list.add(noScores(q))
			return
		}
		if item.Explicit {
			list.add(errorAt(q.OrderAt, "", "Specifying a sort order (ASC or DESC) in the ORDER BY RANK clause is not allowed."))
			return
		}
	}
}

// noScores is what ORDER BY RANK is refused with for anything but scores.
func noScores(q *Query) *Error {
	return errorAt(q.OrderAt, "SC2221", "The ORDER BY RANK clause must be followed by a VectorDistance and/or a FullTextScore function call.")
}

// badWeights is what ORDER BY RANK is refused with for a list of weights.
func badWeights(q *Query) *Error {
	return errorAt(q.OrderAt, "SC2229", "The last parameter of the RRF function is an optional array of weights. When present, it must be "+
		"a literal array of numbers, one for each of the component scores used for the RRF function. "+
		"The length of this array must be the same as the number of the component scores.")
}

// checkArguments refuses a call that can never work.
func checkArguments(e *Call, fn *Function, parts []code, s *scope) error {
	if message := fn.Arity(len(e.Args)); message != "" {
		return errorAt(e.Span, "SC2050", "%s", message)
	}
	if fn.Name == fnRRF && !s.ranking {
		return unknownFunction(e)
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
		at := e.Span
		if refused.argument > 0 {
			at = e.Args[refused.argument].Pos()
		}
		return errorAt(at, refused.Code, "%s", refused.Message)
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
	if contains(q.Select.Value, isSubquery) || contains(q.Select.Value, isAggregate) || contains(q.Select.Value, isNonDeterministic) ||
		contains(q.Select.Value, isParam) {
		return refuse(q.Select.Value.Pos())
	}
	return nil
}

func isParam(e Expr) bool {
	_, ok := e.(*Param)
	return ok
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
	case *Subquery, *Let: // which have names of their own
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
