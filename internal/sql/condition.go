// SPDX-License-Identifier: MIT

// Conditions: what a filter says about the values at paths of an item, in a form
// that an index can answer. They are a by-product of compilation.
//
//  1. Where the filter is true, its condition holds. The converse is true only
//     of a condition that is Exact.
//  2. CondAlways that is not Exact means that nothing is known.
//  3. Negation has been pushed down to the comparisons. NOT (a = 1) is a != 1, and
//     both need a to be defined, as three-valued logic has it.
//  4. A condition is part of one other only, which may take over its slices; that
//     keeps long chains of AND and OR linear.
//  5. A path may begin with the name of a computed property.

package sql

import (
	"slices"
	"strings"

	"github.com/mayflydb/mayfly/internal/sql/datum"
	"github.com/mayflydb/mayfly/internal/sql/function"
	"github.com/mayflydb/mayfly/internal/sql/syntax"
)

// CondOp is what a condition says.
type CondOp uint8

const (
	CondNever  CondOp = iota // nothing passes
	CondAlways               // everything passes; if not Exact, nothing is known
	CondAnd                  // all of Of hold
	CondOr                   // one of Of holds
	CondEq                   // the value is one of Values
	CondNe                   // the value is defined and none of Values
	CondLt                   // the value is of the type of Values[0], and less
	CondLe
	CondGt
	CondGe
	CondDefined       // there is a value
	CondUndefined     // there is none
	CondKind          // the value is of kind Kind
	CondPrefix        // the value is a string that begins with Values[0]
	CondSuffix        // the value is a string that ends with Values[0]
	CondContains      // the value is a string that contains Values[0]
	CondEqualFold     // the value is the string Values[0], in any case
	CondPrefixFold    // as CondPrefix, in any case
	CondSuffixFold    // as CondSuffix, in any case
	CondContainsFold  // as CondContains, in any case
	CondArrayContains // the value is an array with an element equal to one of Values
	CondFullText      // the value is a text with all of the terms Values
	CondFullTextAny   // the value is a text with one of the terms Values
	CondNear          // the value is a geometry, at most Values[1] metres from the geometry Values[0]
)

// Condition is a statement about an item.
type Condition struct {
	Op     CondOp
	Path   Path
	Values []datum.Value
	Kind   datum.Kind
	Of     []*Condition
	// Exact is whether an item passes this part of the filter if the condition
	// holds.
	Exact bool
}

// orUnknown returns, for nil, what is said of a filter that no index can tell
// anything about.
func (c *Condition) orUnknown() *Condition {
	if c == nil {
		return &Condition{Op: CondAlways}
	}
	return c
}

// and joins two conditions that must both hold; nil is one that is unknown.
func and(a, b *Condition) *Condition {
	a, b = a.orUnknown(), b.orUnknown()
	switch {
	case a.Op == CondNever:
		return a
	case b.Op == CondNever:
		return b
	case a.Op == CondAlways && a.Exact:
		return b
	case b.Op == CondAlways && b.Exact:
		return a
	case a.Op == CondAlways:
		return b.inexact()
	case b.Op == CondAlways:
		return a.inexact()
	}
	return joined(CondAnd, a, b)
}

// or joins two conditions of which one must hold; nil is one that is unknown.
func or(a, b *Condition) *Condition {
	a, b = a.orUnknown(), b.orUnknown()
	switch {
	case a.Op == CondNever:
		return b
	case b.Op == CondNever:
		return a
	case a.Op == CondAlways && a.Exact:
		return a
	case b.Op == CondAlways && b.Exact:
		return b
	case a.Op == CondAlways || b.Op == CondAlways:
		return &Condition{Op: CondAlways}
	case a.Op == CondEq && b.Op == CondEq && slices.Equal(a.Path, b.Path):
		return &Condition{Op: CondEq, Path: a.Path, Values: append(a.Values, b.Values...), Exact: a.Exact && b.Exact}
	}
	return joined(CondOr, a, b)
}

// joined puts two conditions together, of which neither decides alone.
func joined(op CondOp, a, b *Condition) *Condition {
	return &Condition{Op: op, Of: append(a.operands(op), b.operands(op)...), Exact: a.Exact && b.Exact}
}

// operands returns the parts of a condition that is joined in the same way, so that a chain
// of AND or OR is one list and not a tower.
func (c *Condition) operands(op CondOp) []*Condition {
	if c.Op == op {
		return c.Of
	}
	return []*Condition{c}
}

// inexact returns the condition as a part of something that says more.
func (c *Condition) inexact() *Condition {
	c = c.orUnknown()
	if !c.Exact || c.Op == CondNever {
		return c
	}
	weaker := *c
	weaker.Exact = false
	return &weaker
}

// constantCondition is about something that is the same for every item. With
// CondNever, no item has to be looked at.
func constantCondition(holds bool) *Condition {
	if holds {
		return &Condition{Op: CondAlways, Exact: true}
	}
	return &Condition{Op: CondNever, Exact: true}
}

// at makes a condition about the value of an expression, if that is a part of
// the item.
func at(x code, op CondOp, values ...datum.Value) *Condition {
	if !x.origin.known {
		return nil
	}
	// Clipped, for what is true and what is false of an expression share the values.
	return &Condition{Op: op, Path: x.origin.path, Values: slices.Clip(values), Exact: x.origin.single()}
}

// single reports whether a path leads to one value. An element of any index is
// there more than once, and not each time the same.
func (o origin) single() bool {
	return o.known && !slices.ContainsFunc(o.path, func(s syntax.Step) bool { return s.Element })
}

// comparisonConditions returns what is known where a comparison with a constant
// is true, and where it is false.
func comparisonConditions(op syntax.Op, left, right code) (yes, no *Condition) {
	if left.constant && !right.constant {
		left, right, op = right, left, comparisons[op].mirrored
	}
	if !right.constant || left.constant {
		return nil, nil
	}
	v := right.value
	if left.function == "ST_DISTANCE" {
		return distanceConditions(op, left.args, v)
	}
	equality := op == syntax.OpEq || op == syntax.OpNe
	if v.IsUndefined() || !equality && v.Kind() >= datum.KindArray {
		never := constantCondition(false)
		return never, never
	}
	values := []datum.Value{v}
	return at(left, comparisons[op].yes, values...), at(left, comparisons[op].no, values...)
}

// comparisons has what a comparison says where it is true and where it is false, and
// the one that says the same with its operands swapped.
var comparisons = [...]struct {
	yes, no  CondOp
	mirrored syntax.Op
}{
	syntax.OpEq: {CondEq, CondNe, syntax.OpEq},
	syntax.OpNe: {CondNe, CondEq, syntax.OpNe},
	syntax.OpLt: {CondLt, CondGe, syntax.OpGt},
	syntax.OpLe: {CondLe, CondGt, syntax.OpGe},
	syntax.OpGt: {CondGt, CondLe, syntax.OpLt},
	syntax.OpGe: {CondGe, CondLt, syntax.OpLe},
}

// inConditions is about a value that is in a list, or not. An undefined element leaves open
// whether the value is missing, so that nothing is certainly outside of such a list.
func inConditions(needle code, list []code) (yes, no *Condition) {
	var values []datum.Value
	unknown := false
	for _, x := range list {
		if !x.constant {
			return nil, nil
		}
		if x.value.IsUndefined() {
			unknown = true
			continue
		}
		values = append(values, x.value)
	}
	never := constantCondition(false)
	yes, no = at(needle, CondEq, values...), at(needle, CondNe, values...)
	if len(values) == 0 {
		yes = never
	}
	if unknown {
		no = never
	}
	return yes, no
}

// oneOfConditions is about a constant array that has a value in it, or not.
func oneOfConditions(needle code, array datum.Value) (yes, no *Condition) {
	if array.Kind() != datum.KindArray || !needle.origin.known {
		return nil, nil
	}
	var list []code
	for v := range array.Elements {
		list = append(list, constantCode(v))
	}
	if len(list) == 0 {
		return constantCondition(false), nil
	}
	return inConditions(needle, list)
}

// likeCondition returns what a pattern says about the beginning of a string.
func likeCondition(x, pattern code, escape rune) *Condition {
	text, ok := pattern.value.AsString()
	if !pattern.constant || !ok || !x.origin.known {
		return nil
	}
	start, rest := literalStart(text, escape)
	if rest == "" {
		return at(x, CondEq, datum.Str(start))
	}
	if start == "" {
		return nil
	}
	prefix := at(x, CondPrefix, datum.Str(start))
	prefix.Exact = prefix.Exact && rest == "%"
	return prefix
}

// literalStart returns what all strings begin with that a pattern matches, and
// the pattern from its first wildcard on.
func literalStart(pattern string, escape rune) (start, rest string) {
	var b strings.Builder
	escaped := false
	for i, r := range pattern {
		switch {
		case escaped:
			escaped = false
		case r == escape:
			escaped = true
			continue
		case strings.ContainsRune("%_[", r):
			return b.String(), pattern[i:]
		}
		b.WriteRune(r)
	}
	if escaped { // by nothing: what that matches is for the matcher to say
		return "", pattern
	}
	return b.String(), ""
}

// callConditions returns what is known where a call is true, and where it is
// false. For most calls the latter is not known: there is no condition for "does not
// begin with".
func callConditions(name string, args []code) (yes, no *Condition) {
	if name == "ST_WITHIN" || name == "ST_INTERSECTS" {
		return nearCondition(args, datum.Int(0)), nil
	}
	if name == "ARRAY_CONTAINS" && len(args) == 2 && args[0].constant {
		return oneOfConditions(args[1], args[0].value)
	}
	if len(args) == 0 || !args[0].origin.known {
		return nil, nil
	}
	x := args[0]
	if kind, ok := function.KindTests[name]; ok {
		yes = at(x, CondKind)
		yes.Kind = kind
		return yes, nil
	}
	switch name {
	case "IS_DEFINED":
		return at(x, CondDefined), at(x, CondUndefined)
	case "STARTSWITH":
		return textCondition(args, CondPrefix, CondPrefixFold), nil
	case "ENDSWITH":
		return textCondition(args, CondSuffix, CondSuffixFold), nil
	case "CONTAINS":
		return textCondition(args, CondContains, CondContainsFold), nil
	case "STRINGEQUALS":
		return textCondition(args, CondEq, CondEqualFold), nil
	case "ARRAY_CONTAINS":
		if len(args) == 2 && args[1].constant && !args[1].value.IsUndefined() {
			return at(x, CondArrayContains, args[1].value), nil
		}
	case "FULLTEXTCONTAINS", "FULLTEXTCONTAINSALL":
		return termsCondition(args, CondFullText), nil
	case "FULLTEXTCONTAINSANY":
		return termsCondition(args, CondFullTextAny), nil
	}
	return nil, nil
}

// textCondition is about a function of a string, another string, and whether
// case is ignored.
func textCondition(args []code, exact, fold CondOp) *Condition {
	if len(args) < 2 || !args[1].constant || args[1].value.Kind() != datum.KindString {
		return nil
	}
	if len(args) == 2 {
		return at(args[0], exact, args[1].value)
	}
	if !args[2].constant {
		return nil
	}
	switch ignoreCase, ok := args[2].value.AsBool(); {
	case ok && ignoreCase:
		return at(args[0], fold, args[1].value)
	case ok || args[2].value.IsUndefined():
		return at(args[0], exact, args[1].value).inexact()
	}
	return nil
}

// termsCondition is about a text with terms. An index of words may find too much, such as
// words that do not follow each other, and each item is looked at again.
func termsCondition(args []code, op CondOp) *Condition {
	var terms []datum.Value
	for _, x := range args[1:] {
		if !x.constant || x.value.Kind() != datum.KindString {
			return nil
		}
		terms = append(terms, x.value)
	}
	return at(args[0], op, terms...).inexact()
}

// nearCondition is about a geometry of the item and one that is constant, in either
// order. It is never exact: cells of a grid are larger than what is in them.
func nearCondition(args []code, metres datum.Value) *Condition {
	x, other := args[0], args[1]
	if x.constant {
		x, other = other, x
	}
	if !other.constant || !x.origin.known || other.value.IsUndefined() {
		return nil
	}
	return at(x, CondNear, other.value, metres).inexact()
}

// distanceConditions returns what is known where the comparison of a distance with a
// number is true, and where it is false.
func distanceConditions(op syntax.Op, args []code, v datum.Value) (yes, no *Condition) {
	if v.Kind() != datum.KindNumber {
		return nil, nil
	}
	near := nearCondition(args, v)
	switch op {
	case syntax.OpLt, syntax.OpLe, syntax.OpEq:
		return near, nil
	case syntax.OpGt, syntax.OpGe, syntax.OpNe:
		return nil, near
	}
	return nil, nil
}
