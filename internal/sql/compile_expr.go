// SPDX-License-Identifier: MIT

// Expressions to closures. What depends on no row is computed here.

package sql

import (
	"slices"

	"github.com/mayflydb/mayfly/internal/sql/datum"
	"github.com/mayflydb/mayfly/internal/sql/function"
	"github.com/mayflydb/mayfly/internal/sql/syntax"
)

// evaluator computes a compiled expression for the row that a frame holds.
type evaluator func(f *frame) datum.Value

// code is a compiled expression and what is known about it.
type code struct {
	eval     evaluator
	constant bool
	value    datum.Value // if it is constant
	origin   origin

	// compares is whether it is a call that compares vectors, by this metric.
	compares bool
	metric   function.Metric

	// param is the parameter that it is, if it is one; argument is whether it is an
	// argument.
	param    string
	argument bool

	// function and args are the call that it is, if it is one.
	function string
	args     []code

	// bare is whether it is a path, which as a filter stands for itself: only true is
	// true.
	bare bool
	// yes is what an index knows about the rows for which the expression is true, and no
	// about those for which it is false; nil if nothing, or if it is bare.
	yes, no *Condition
}

// constantCode is an expression that has the same value for every row.
func constantCode(v datum.Value) code {
	return code{constant: true, value: v, eval: func(*frame) datum.Value { return v }}
}

// whenTrue returns what is known where the expression is true.
func (x code) whenTrue() *Condition { return x.when(true, x.yes) }

// whenFalse returns what is known where the expression is false.
func (x code) whenFalse() *Condition { return x.when(false, x.no) }

// when completes what is known of an expression that has one value, true or false. A bare
// path passes a filter only where the property is exactly that boolean.
func (x code) when(b bool, known *Condition) *Condition {
	switch {
	case x.constant:
		is, ok := x.value.AsBool()
		return constantCondition(ok && is == b)
	case x.bare:
		return at(x, CondEq, datum.Bool(b)).orUnknown()
	}
	return known.orUnknown()
}

// slotEval reads a slot. Values that are small, which nearly all are, cost no call.
func slotEval(slot int) evaluator {
	return func(f *frame) datum.Value {
		if v := f.slots[slot]; v.Size() < function.TickBytes {
			return v
		}
		return f.open(slot)
	}
}

// expr compiles one expression.
func (c *compiler) expr(e syntax.Expr, s *scope) (code, error) {
	// In a group, an expression that is one of its keys has the key's value, whatever it is
	// made of: its parts have no one value there.
	if slot, ok := s.keySlot(e); ok {
		return code{eval: slotEval(slot)}, nil
	}
	switch e := e.(type) {
	case *syntax.Literal:
		return constantCode(literalValue(e)), nil
	case *syntax.Param:
		c.constants++
		x := constantCode(c.opts.Params[e.Name].Sent()) // undefined, if it was not given
		x.param = e.Name
		return x, nil
	case *syntax.Ident, *syntax.Member, *syntax.Index:
		return c.path(e, s)
	case *syntax.Unary:
		return c.unary(e, s)
	case *syntax.Binary:
		return c.binary(e, s)
	case *syntax.Ternary:
		return c.ternary(e, s)
	case *syntax.Coalesce:
		return c.coalesce(e, s)
	case *syntax.Between:
		return c.between(e, s)
	case *syntax.In:
		return c.in(e, s)
	case *syntax.Like:
		return c.like(e, s)
	case *syntax.Call:
		return c.call(e, s)
	case *syntax.ArrayLit:
		return c.array(e, s)
	case *syntax.ObjectLit:
		return c.object(e, s)
	case *syntax.Subquery:
		return c.subquery(e, s)
	case *syntax.Let:
		return c.let(e, s)
	}
	return code{}, syntax.Errorf(e.Pos(), "SC1001", "Syntax error, incorrect syntax near '%s'.", syntax.Print(e))
}

// literalValue returns what a literal means.
// literalValue makes a value of a literal, once for all rows.
func literalValue(l *syntax.Literal) datum.Value {
	switch l.Kind {
	case syntax.LitNull:
		return datum.Null()
	case syntax.LitBool:
		return datum.Bool(l.True)
	case syntax.LitInt:
		return datum.Int(l.Int)
	case syntax.LitFloat:
		return datum.Float(l.Float)
	case syntax.LitString:
		return datum.Str(l.Text)
	}
	return datum.Undefined()
}

// exprs compiles several expressions, and says whether all are constant.
func (c *compiler) exprs(list []syntax.Expr, s *scope) (parts []code, constant bool, err error) {
	constant = true
	parts = make([]code, 0, len(list))
	for _, e := range list {
		part, err := c.expr(e, s)
		if err != nil {
			return nil, false, err
		}
		parts = append(parts, part)
		constant = constant && part.constant
	}
	return parts, constant, nil
}

// folded computes a constant expression now. The functions that need more than
// their arguments are never folded.
func (c *compiler) folded(x code, constant bool) code {
	if !constant {
		return x
	}
	f := &frame{cx: &function.Context{Interrupted: c.opts.Interrupted, Planar: c.opts.Planar}}
	v := x.eval(f)
	if f.cx.Err() != nil {
		_ = c.interrupted() // was it that? c itself would be on the heap if f asked it
		return x            // to fail again when it is run
	}
	return constantCode(v)
}

// path compiles an alias, or a path from one or from another expression.
func (c *compiler) path(e syntax.Expr, s *scope) (code, error) {
	steps, base, err := c.steps(e, s)
	if err != nil {
		return code{}, err
	}
	if slot, ok := s.keySlot(base); ok {
		return code{eval: func(f *frame) datum.Value { return follow(f.slots[slot], steps) }}, nil
	}
	id, ok := base.(*syntax.Ident)
	if !ok {
		of, err := c.expr(base, s)
		if err != nil {
			return code{}, err
		}
		eval := of.eval
		x := code{eval: func(f *frame) datum.Value { return follow(eval(f), steps) }, origin: of.origin.with(steps...)}
		return c.folded(x, of.constant), nil
	}
	bound, home := s.lookup(id.Name)
	if bound == nil {
		return code{}, unresolved(id.Name, id.Span)
	}
	home.reach = max(home.reach, bound.source)
	if home.grouping != nil {
		return code{}, syntax.Errorf(e.Pos(), codeUngrouped, "Property reference '%s' is invalid in the select list because it is not contained "+
			"in either an aggregate function or the GROUP BY clause.", syntax.Print(e))
	}
	x, ok, err := c.computedPath(bound, steps)
	if err != nil {
		return code{}, err
	}
	if !ok {
		x = c.walk(bound, steps)
	}
	x.bare = true
	return x, nil
}

// steps takes a path apart, down to where it starts. A subscript that each row has
// its own of is refused, as the service does.
func (c *compiler) steps(e syntax.Expr, s *scope) (steps []syntax.Step, base syntax.Expr, err error) {
	for base = e; ; {
		switch at := base.(type) {
		case *syntax.Member:
			steps = append(steps, syntax.Step{Name: at.Name})
			base = at.Of
		case *syntax.Index:
			sub, err := c.expr(at.At, s)
			if err != nil {
				return nil, nil, err
			}
			step, ok := constantStep(sub)
			if !ok {
				return nil, nil, syntax.Errorf(at.Span, "SC2990", "The specified query includes 'member indexer' which is currently not supported.")
			}
			steps = append(steps, step)
			base = at.Of
		default:
			slices.Reverse(steps)
			return steps, base, nil
		}
		if _, ok := s.keySlot(base); ok {
			slices.Reverse(steps)
			return steps, base, nil
		}
	}
}

// noElement is the index of an element that no array has.
const noElement int64 = -2

// constantStep turns a constant subscript into a step. One that is neither a
// name nor an index leads nowhere.
func constantStep(sub code) (step syntax.Step, ok bool) {
	if !sub.constant {
		return syntax.Step{}, false
	}
	if name, ok := sub.value.AsString(); ok {
		return syntax.Step{Name: name}, true
	}
	if n, ok := sub.value.AsInt(); ok && n >= 0 {
		return syntax.Step{Element: true, Index: n}, true
	}
	return syntax.Step{Element: true, Index: noElement}, true
}

// walk compiles a path from a slot.
func (c *compiler) walk(from *binding, steps []syntax.Step) code {
	slot := from.slot
	x := code{origin: from.origin.with(steps...)}
	switch {
	case len(steps) == 0:
		x.eval = slotEval(slot)
	case len(steps) == 1 && !steps[0].Element:
		name := steps[0].Name
		x.eval = func(f *frame) datum.Value { return f.open(slot).Member(name) }
	default:
		x.eval = func(f *frame) datum.Value { return follow(f.open(slot), steps) }
	}
	return x
}

// follow goes down a path.
func follow(v datum.Value, steps []syntax.Step) datum.Value {
	for i := range steps {
		if steps[i].Element {
			v = v.Index(int(steps[i].Index))
		} else {
			v = v.Member(steps[i].Name)
		}
	}
	return v
}

// computedPath compiles a path that begins with a computed property.
func (c *compiler) computedPath(bound *binding, steps []syntax.Step) (x code, ok bool, err error) {
	if c.raw || bound.kind != sourceItem || bound.derived || len(steps) == 0 || steps[0].Element {
		return code{}, false, nil
	}
	for _, p := range c.opts.Computed {
		if p.Name != steps[0].Name {
			continue
		}
		whole, err := c.computedProperty(p)
		if err != nil {
			return code{}, false, err
		}
		eval := whole.eval // which other paths share
		if rest := steps[1:]; len(rest) > 0 {
			eval = func(f *frame) datum.Value { return follow(whole.eval(f), rest) }
		}
		return code{eval: eval, origin: bound.origin.with(steps...)}, true, nil
	}
	return code{}, false, nil
}

// computedProperty compiles the definition of a computed property. Definitions
// see the item as it is stored, and not each other.
func (c *compiler) computedProperty(p Computed) (*code, error) {
	if done := c.computed[p.Name]; done != nil {
		return done, nil
	}
	if err := checkComputed(p.Query); err != nil {
		return nil, err
	}
	// While a definition is compiled, names stand for stored properties: a computed property
	// may hide one of its own name and use it.
	c.raw = true
	defer func() { c.raw = false }()
	s := &scope{container: true}
	s.bind(binding{name: p.Query.From.Sources[0].Alias, slot: itemSlot, kind: sourceItem, origin: origin{known: true}})
	x, err := c.expr(p.Query.Select.Value, s)
	if err != nil {
		return nil, err
	}
	if c.computed == nil {
		c.computed = map[string]*code{}
	}
	c.computed[p.Name] = &x
	return &x, nil
}

// ternary computes only the branch that is chosen: what the other would fail with does not
// matter.
func (c *compiler) ternary(e *syntax.Ternary, s *scope) (code, error) {
	parts, constant, err := c.exprs([]syntax.Expr{e.Cond, e.Then, e.Else}, s)
	if err != nil {
		return code{}, err
	}
	cond, then, otherwise := parts[0].eval, parts[1].eval, parts[2].eval
	return c.folded(code{eval: func(f *frame) datum.Value {
		if cond(f).IsTrue() {
			return then(f)
		}
		return otherwise(f)
	}}, constant), nil
}

// coalesce computes the right side only where the left is undefined. Null is a value.
func (c *compiler) coalesce(e *syntax.Coalesce, s *scope) (code, error) {
	parts, constant, err := c.exprs([]syntax.Expr{e.X, e.Y}, s)
	if err != nil {
		return code{}, err
	}
	x, y := parts[0].eval, parts[1].eval
	return c.folded(code{eval: func(f *frame) datum.Value {
		if v := x(f); !v.IsUndefined() {
			return v
		}
		return y(f)
	}}, constant), nil
}

// let compiles a value that is computed once and has a slot while the body is.
func (c *compiler) let(e *syntax.Let, s *scope) (code, error) {
	value, err := c.expr(e.Value, s)
	if err != nil {
		return code{}, err
	}
	slot := c.newSlot()
	inner := &scope{outer: s}
	inner.bind(binding{name: e.Name, slot: slot, kind: sourceQuery, derived: true})
	body, err := c.expr(e.Body, inner)
	if err != nil {
		return code{}, err
	}
	valueEval, bodyEval := value.eval, body.eval
	return code{eval: func(f *frame) datum.Value {
		f.slots[slot] = valueEval(f)
		return bodyEval(f)
	}}, nil
}

// array builds an array for every row. Its size is checked while it grows, because an array of
// arrays can be far larger than the item.
func (c *compiler) array(e *syntax.ArrayLit, s *scope) (code, error) {
	parts, constant, err := c.exprs(e.Items, s)
	if err != nil {
		return code{}, err
	}
	return c.folded(code{eval: func(f *frame) datum.Value {
		var b datum.ArrayBuilder
		for i := range parts {
			b.Add(parts[i].eval(f))
			if !f.fits(b.Size()) {
				return datum.Undefined()
			}
		}
		return b.Value()
	}}, constant), nil
}

// object builds an object for every row, with a check of its size as for arrays.
func (c *compiler) object(e *syntax.ObjectLit, s *scope) (code, error) {
	values := make([]syntax.Expr, len(e.Props))
	seen := make(map[string]bool, len(e.Props))
	for i, p := range e.Props {
		if seen[p.Name] {
			return code{}, duplicateProperty(p.Name, p.Value.Pos())
		}
		seen[p.Name] = true
		values[i] = p.Value
	}
	parts, constant, err := c.exprs(values, s)
	if err != nil {
		return code{}, err
	}
	// A query around this one may order by a property that is built here of the item's.
	var built origin
	for i := range parts {
		built.addMember(s, e.Props[i].Name, parts[i])
	}
	return c.folded(code{origin: built, eval: func(f *frame) datum.Value {
		var b datum.ObjectBuilder
		for i := range parts {
			b.Set(e.Props[i].Name, parts[i].eval(f))
			if !f.fits(b.Size()) {
				return datum.Undefined()
			}
		}
		return b.Value()
	}}, constant), nil
}

// duplicateProperty is the error for two properties of one name, in an object or in the
// select list.
func duplicateProperty(name string, at syntax.Span) *syntax.Error {
	return syntax.Errorf(at, "", "The property name '%s' is specified more than once.", name)
}
