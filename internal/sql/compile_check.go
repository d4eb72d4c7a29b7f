// SPDX-License-Identifier: MIT

// What the grammar allows and the language does not. These checks need the tree alone; those
// that need names or types are in the compiler.

package sql

import (
	"errors"
	"strconv"

	"github.com/mayflydb/mayfly/internal/sql/datum"
	"github.com/mayflydb/mayfly/internal/sql/function"
	"github.com/mayflydb/mayfly/internal/sql/syntax"
)

// IsAggregate reports whether an expression is a call of an aggregate.
func IsAggregate(e syntax.Expr) bool {
	call, ok := e.(*syntax.Call)
	if !ok || call.UDF {
		return false
	}
	_, ok = aggregateNamed(call.Name)
	return ok
}

// is reports whether an expression is a node of one type.
func is[T syntax.Expr](e syntax.Expr) bool {
	_, ok := e.(T)
	return ok
}

// HasAggregate reports whether the select list has an aggregate.
func HasAggregate(q *syntax.Query) bool {
	for e := range q.Selected {
		if syntax.Contains(e, IsAggregate) {
			return true
		}
	}
	return false
}

// checkQuery refuses clauses that do not go together, here and in all subqueries. The order
// of the checks is the service's: a client sees the first error, or the first list of them.
func checkQuery(q *syntax.Query) error {
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
func checkInner(q *syntax.Query, list *errorList) {
	nested := func(inner *syntax.Query) {
		// The clauses of a query whose subqueries are refused are not looked at: their errors
		// would be about something that is not there.
		before := len(list.errs)
		checkInner(inner, list)
		checkNested(inner, list)
		if len(list.errs) > before {
			return
		}
		var refused *syntax.Error
		if errors.As(checkClauses(inner), &refused) {
			list.add(refused)
		}
	}
	var visit func(e syntax.Expr)
	visit = func(e syntax.Expr) {
		if sub, ok := e.(*syntax.Subquery); ok {
			nested(sub.Query)
			return
		}
		for part := range syntax.Operands(e) {
			visit(part)
		}
	}
	q.EachClause(visit, nested)
}

// checkNested refuses what a subquery cannot have.
func checkNested(q *syntax.Query, list *errorList) {
	if q.Rank {
		list.add(syntax.Errorf(q.OrderAt, "SC2228", "The ORDER BY RANK clause is not supported in subqueries."))
	} else if q.OrderBy != nil {
		list.add(syntax.Errorf(q.OrderAt, "SC2202", "'ORDER BY' is not supported in subqueries."))
	}
	if q.Top != nil {
		list.add(syntax.Errorf(q.TopAt, "SC2203", "'TOP' is not supported in subqueries."))
	}
	if q.Limit != nil {
		list.add(syntax.Errorf(q.LimitAt, "SC2204", "'OFFSET LIMIT' clause is not supported in subqueries."))
	}
}

// checkClauses refuses clauses of one query that do not go together. Several of these reasons
// have no code in the service.
func checkClauses(q *syntax.Query) error {
	if q.Select.Star {
		switch {
		case q.From == nil:
			return syntax.Errorf(q.Span, "", "'SELECT *' is not valid if FROM clause is omitted.")
		case q.GroupBy != nil:
			return syntax.Errorf(q.StarAt, "SC2041", "'SELECT *' is not allowed with GROUP BY.")
		case len(q.From.Sources) > 1:
			return syntax.Errorf(q.Span, "", "'SELECT *' is only valid with a single input set.")
		}
	}
	if err := checkAliases(q.From); err != nil {
		return err
	}
	// Two properties of one name would make an object that is no JSON.
	seen := map[string]bool{}
	for _, item := range q.Select.Items {
		if seen[item.Name] {
			return duplicateProperty(item.Name, item.Expr.Pos())
		}
		seen[item.Name] = true
	}
	for _, e := range q.GroupBy {
		if syntax.Contains(e, is[*syntax.Subquery]) || syntax.Contains(e, IsAggregate) {
			return syntax.Errorf(e.Pos(), "", "A GROUP BY expression cannot contain an aggregate or a subquery.")
		}
	}
	if q.GroupBy != nil && q.Rank {
		return syntax.Errorf(q.OrderAt, "", "'ORDER BY RANK' is not supported with 'GROUP BY'.")
	}
	return nil
}

// checkAliases refuses sources that share a name, given or taken from a path: the later one
// would hide the earlier one, which is hardly meant.
func checkAliases(f *syntax.From) error {
	if f == nil {
		return nil
	}
	seen := map[string]bool{}
	for i := range f.Sources {
		src := &f.Sources[i]
		if src.Alias != "" && seen[src.Alias] {
			return syntax.Errorf(src.Span, "", "The input alias '%s' is specified more than once in the FROM clause.", src.Alias)
		}
		seen[src.Alias] = true
	}
	return nil
}

// checkRanked refuses what ORDER BY RANK does not go with. A rank is that of an item, so an
// item must have one row at most.
func checkRanked(q *syntax.Query, list *errorList) {
	if q.From == nil {
		return
	}
	sources := q.From.Sources
	if last := len(sources) - 1; last > 0 {
		list.add(syntax.Errorf(syntax.Span{Start: sources[0].Start, End: sources[last].End}, "SC2224",
			"The JOIN operator is not allowed with the ORDER BY RANK clause."))
	}
	for i := range sources {
		switch src := &sources[i]; {
		case src.Iterate:
			list.add(syntax.Errorf(src.Span, "SC2223", "The FROM clause with the IN operator is not allowed with the ORDER BY RANK clause."))
		case src.Query != nil:
			list.add(syntax.Errorf(src.SetAt, "SC2225", "Subqueries in the FROM clause are not allowed with the ORDER BY RANK clause."))
		}
	}
	for _, item := range q.OrderBy {
		if call, ok := item.Expr.(*syntax.Call); !ok || !isScore(call) {
			list.add(NoScores(q))
			return
		}
		if item.Explicit {
			list.add(syntax.Errorf(q.OrderAt, "", "Specifying a sort order (ASC or DESC) in the ORDER BY RANK clause is not allowed."))
			return
		}
	}
}

// NoScores is what ORDER BY RANK is refused with for anything but scores.
func NoScores(q *syntax.Query) *syntax.Error {
	return syntax.Errorf(q.OrderAt, "SC2221", "The ORDER BY RANK clause must be followed by a VectorDistance and/or a FullTextScore function call.")
}

// badWeights is what ORDER BY RANK is refused with for a list of weights.
func badWeights(q *syntax.Query) *syntax.Error {
	return syntax.Errorf(q.OrderAt, "SC2229", "The last parameter of the RRF function is an optional array of weights. When present, it must be "+
		"a literal array of numbers, one for each of the component scores used for the RRF function. "+
		"The length of this array must be the same as the number of the component scores.")
}

// checkArguments refuses a call that can never work: by the number of its arguments, by
// the clause it stands in, or by arguments that are already known.
func checkArguments(e *syntax.Call, fn *function.Function, parts []code, s *scope) error {
	if message := fn.Arity(len(e.Args)); message != "" {
		return syntax.Errorf(e.Span, "SC2050", "%s", message)
	}
	if fn.Name == function.RRF && !s.ranking {
		return unknownFunction(e)
	}
	if fn.RankOnly && !s.ranking {
		return syntax.Errorf(e.Span, "SC2240", "The %s function is only allowed in the ORDER BY RANK clause.", e.Written)
	}
	if fn.Check == nil {
		return nil
	}
	known := make([]datum.Value, len(parts))
	for i := range parts {
		if parts[i].constant {
			known[i] = parts[i].value
		}
	}
	refused := fn.Check(known)
	if refused == nil {
		return nil
	}
	refused.Span = e.Span
	if fn.CheckedArgument > 0 {
		refused.Span = e.Args[fn.CheckedArgument].Pos()
	}
	return refused
}

// CheckComputed refuses a query that is no definition of a computed property. The
// error is an *[syntax.Error].
func CheckComputed(q *syntax.Query) error {
	if err := checkComputed(q); err != nil {
		return err
	}
	_, err := Compile(q, CompileOptions{})
	return err
}

// checkComputed looks at the form of a definition only. A definition is compiled with every
// query that uses it, and this must be true of it each time.
func checkComputed(q *syntax.Query) error {
	refuse := func(at syntax.Span) error {
		return syntax.Errorf(at, "", "A computed property is defined by SELECT VALUE and a scalar expression FROM the container, without other clauses.")
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
	if syntax.Contains(q.Select.Value, is[*syntax.Subquery]) || syntax.Contains(q.Select.Value, IsAggregate) || syntax.Contains(q.Select.Value, isNonDeterministic) ||
		syntax.Contains(q.Select.Value, is[*syntax.Param]) {
		return refuse(q.Select.Value.Pos())
	}
	return nil
}

// isNonDeterministic reports whether an expression may have another value for the same item.
// A computed property may not: an index would keep one of them.
func isNonDeterministic(e syntax.Expr) bool {
	call, ok := e.(*syntax.Call)
	if !ok || call.UDF {
		return ok
	}
	fn := function.Of(call)
	return fn != nil && fn.NonDeterministic
}

// fingerprint returns a text that expressions share if they are written the same way
// about the same slots.
func fingerprint(e syntax.Expr, s *scope) string {
	return syntax.Canonical(e, func(name string) string {
		if bound, _ := s.lookup(name); bound != nil {
			return "$" + strconv.Itoa(bound.slot)
		}
		return name
	})
}
