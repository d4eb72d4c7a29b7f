// SPDX-License-Identifier: MIT

// Templates: programs for any values of their parameters.
//
//  1. A parameter is a constant, of which anything may be made: it can be folded, be
//     part of a path or of a regular expression. A program of which that is true of any
//     parameter is for its values alone.
//  2. Compared with something that each row has its own of, also by a function that
//     looks for it there, a parameter is an argument: the program reads the value when
//     it runs, and its condition holds a mark instead of it, until a program is bound.
//     What is made of it depends on its kind only. What TOP, OFFSET and LIMIT say is
//     worked out when a program is bound.
//  3. So a program whose parameters are arguments wherever they stand serves all
//     values of the same kinds.

package sql

import (
	"slices"

	"github.com/mayflydb/mayfly/internal/sql/datum"
	"github.com/mayflydb/mayfly/internal/sql/syntax"
)

// maxArguments is how many arguments a program has. Other parameters are constants.
const maxArguments = 64

// Template is a program without the values of its parameters.
type Template struct {
	program Program // its condition has marks
	params  []parameter
}

// parameter is what a template demands of an argument.
type parameter struct {
	name string
	kind datum.Kind
}

// argument is the value of a parameter, made ready for comparisons.
type argument struct {
	value  datum.Value
	text   string  // of a string
	number float64 // of a number
}

// Template returns what the program has in common with those for other values of its
// parameters, or nil if it depends on the values.
func (p *Program) Template() *Template { return p.template }

// Bind returns the program for the values of parameters, or false if it takes another
// one: then the query has to be compiled.
func (t *Template) Bind(params map[string]datum.Value) (*Program, bool) {
	if len(t.params) == 0 && len(params) == 0 {
		return &t.program, true
	}
	p := t.program
	p.params = params
	p.args = p.few[:0]
	for _, want := range t.params {
		v := params[want.name]
		if v.Kind() != want.kind {
			return nil, false
		}
		a := argument{value: v}
		a.text, _ = v.AsString()
		a.number, _ = v.AsFloat()
		p.args = append(p.args, a)
	}
	p.condition = p.condition.bind(p.args)
	var err error
	p.slice, err = sliceOf(p.query, params)
	return &p, err == nil
}

// argument makes a parameter an argument, which is a constant that is not known yet:
// its value is a mark. Any other code, and a parameter too many, stays as it is.
func (c *compiler) argument(x code) code {
	if x.param == "" {
		return x
	}
	slot := slices.IndexFunc(c.args, func(p parameter) bool { return p.name == x.param })
	if slot < 0 {
		if slot = len(c.args); slot == maxArguments {
			return x
		}
		c.args = append(c.args, parameter{x.param, x.value.Kind()})
	}
	c.constants-- // as which it was counted
	return code{
		constant: true,
		argument: true,
		value:    datum.Argument(x.value.Kind(), slot),
		eval:     func(f *frame) datum.Value { return f.args[slot].value },
	}
}

// compareArgument is comparison with an argument.
func compareArgument(op syntax.Op, x evaluator, y datum.Value) evaluator {
	slot, _ := y.AsArgument()
	switch {
	case y.Kind() == datum.KindString && op == syntax.OpEq:
		return func(f *frame) datum.Value { return equalsText(x(f), f.args[slot].text) }
	case y.Kind() == datum.KindNumber:
		return func(f *frame) datum.Value { return compareWithNumber(op, x(f), f.args[slot].number) }
	}
	return func(f *frame) datum.Value { return compareValues(op, x(f), f.args[slot].value) }
}

// comparesArguments reports whether a function of two values is a comparison too: what is
// known where it is true depends on the kind of the second value only.
func comparesArguments(name string) bool {
	switch name {
	case "STARTSWITH", "ENDSWITH", "CONTAINS", "STRINGEQUALS", "ARRAY_CONTAINS":
		return true
	}
	return false
}

// bind returns the condition with values in place of its marks. What has none is shared.
func (c *Condition) bind(args []argument) *Condition {
	if c.Op != CondAnd && c.Op != CondOr {
		return c.bindValues(args)
	}
	of := c.Of
	for i, part := range c.Of {
		bound := part.bind(args)
		if bound == part {
			continue
		}
		if &of[0] == &c.Of[0] {
			of = slices.Clone(c.Of)
		}
		of[i] = bound
	}
	if &of[0] == &c.Of[0] {
		return c
	}
	bound := *c
	bound.Of = of
	return &bound
}

func isArgument(v datum.Value) bool {
	_, ok := v.AsArgument()
	return ok
}

func (c *Condition) bindValues(args []argument) *Condition {
	if !slices.ContainsFunc(c.Values, isArgument) {
		return c
	}
	bound := struct {
		Condition
		few [1]datum.Value // room for Values
	}{Condition: *c}
	bound.Values = append(bound.few[:0], c.Values...)
	for i, v := range bound.Values {
		if slot, ok := v.AsArgument(); ok {
			bound.Values[i] = args[slot].value
		}
	}
	return &bound.Condition
}
