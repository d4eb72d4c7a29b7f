// SPDX-License-Identifier: MIT

// Package sql is what queries mean: it checks them, and computes their expressions,
// functions and aggregates for one item at a time. Package syntax reads and prints
// them, and package clientplan says how a client runs them over several partitions.
// Which items, from which index and how many at once is decided elsewhere.
//
// It never does I/O, never reads a clock, starts no goroutine, and keeps nothing
// between two executions.
//
// The one invariant: undefined is a value like any other until something leaves the
// package. Every expression has a value for every item; what is undefined is left
// out of arrays, objects and results, and is never written.
package sql

// Compilation: from a syntax tree to closures over the slots of a frame. Names,
// functions and parameters are resolved here, once per query; nothing is looked
// up by name per row.

import (
	"errors"
	"math"

	"github.com/mayflydb/mayfly/internal/sql/datum"
	"github.com/mayflydb/mayfly/internal/sql/function"
	"github.com/mayflydb/mayfly/internal/sql/syntax"
	"github.com/mayflydb/mayfly/internal/value"
)

// CompileOptions is what the meaning of a query depends on besides its text.
type CompileOptions struct {
	// Params are the values of the query's parameters, by name with the @. One that is
	// not there is undefined.
	Params map[string]datum.Value
	// Computed are the container's computed properties.
	Computed []Computed
	// Vectors are the paths of the container's vector policy.
	Vectors []Vector
	// Planar says that geometries lie on a plane, and not on the globe.
	Planar bool
	// Interrupted, if set, is called every so many steps; an error ends the compilation.
	// Functions of constants, and regular expressions, may take long.
	Interrupted func() error
}

// Vector says how the vectors at a path are compared.
type Vector struct {
	Path     value.Path
	Metric   function.Metric
	DataType string // as the policy spells it; empty for float32
}

// Computed is a computed property: a name at the root of every item, and the
// query that defines it, SELECT VALUE expression FROM alias.
type Computed struct {
	Name  string
	Query *syntax.Query
}

// Program is a compiled query. It is immutable: any number of goroutines may
// run it at once, each with a [Runner] of its own.
type Program struct {
	query  *syntax.Query
	params map[string]datum.Value
	main   *block
	input  *Program // whose rows are this one's items, or nil
	slots  int
	rowed  bool // runs over items; otherwise once, without any
	planar bool // geometries lie on a plane
	slice  Slice

	condition *Condition
	udfs      []string
	computed  []string // the names of the computed properties that hide stored ones

	template *Template  // nil if there is none
	args     []argument // what parameters stand for that are arguments
	few      [2]argument
}

// block is one SELECT, of the whole query or of a subquery.
type block struct {
	sources  []source
	where    []conjunct
	grouping *grouping // nil if rows are projected one by one
	project  projection
	distinct bool
	order    []SortKey
	ranking  *Ranking

	condition *Condition
	origin    origin // of the rows, if SELECT VALUE takes them from the item
	tested    []Path // by the function that SELECT VALUE is
}

// source is one input set of FROM.
type source struct {
	slot  int
	kind  sourceKind
	from  evaluator // the value, or the array, with a path
	query *block    // with a subquery
}

// conjunct is a part of the filter that must be true. It is tested as soon as
// the sources are bound that it needs.
type conjunct struct {
	reach int
	eval  evaluator
}

// projection is the select list: a value, or properties of an object.
type projection struct {
	value evaluator // nil if there are items
	items []projected
}

type projected struct {
	name  string
	label []byte // "name": in JSON
	eval  evaluator
}

// Slice is the part of the result that TOP, OFFSET and LIMIT leave.
type Slice struct {
	Offset int64
	Limit  int64 // no more rows than this after Offset; [NoLimit] if all
}

// NoLimit is a limit that is none.
const NoLimit int64 = math.MaxInt64

// SortKey is one item of ORDER BY.
type SortKey struct {
	Path Path // the property that is ordered by, if it is one
	// Call is the function of the item that is ordered by instead: a distance or a
	// score.
	Call *syntax.Call
	// Text is set if it is the score of a text that an index may know.
	Text *TextScore
	// Vector is set if it is the distance of a vector that an index may know.
	Vector *VectorScore
	Desc   bool
	// Explicit is whether ASC or DESC was written.
	Explicit bool

	eval evaluator
}

// compiler holds what grows while a query is compiled.
type compiler struct {
	opts     CompileOptions
	slots    int
	udfs     []string
	computed map[string]*code // nil while being compiled
	raw      bool             // computed properties are not seen

	args      []parameter // parameters that are arguments
	constants int         // how many times a parameter is a constant instead

	stopped error // by what was interrupted
}

// Compile checks what a query means and makes a program of it. The error is an
// *[syntax.Error], or that of Interrupted.
func Compile(q *syntax.Query, o CompileOptions) (*Program, error) {
	if err := checkQuery(q); err != nil {
		return nil, err
	}
	c := &compiler{opts: o, slots: itemSlot + 1}
	p := &Program{query: q, params: o.Params, rowed: q.From != nil, planar: o.Planar}
	s := &scope{container: true}
	if inner := blockingInput(q); inner != nil {
		input, err := Compile(inner, o)
		if err != nil {
			return nil, err
		}
		p.input, p.rowed = input, true
	}
	for _, property := range o.Computed {
		p.computed = append(p.computed, property.Name)
	}
	main, err := c.block(q, s, p.input != nil)
	if c.stopped != nil {
		return nil, c.stopped
	}
	if err != nil {
		return nil, err
	}
	if p.slice, err = sliceOf(q, o.Params); err != nil {
		return nil, err
	}
	p.main, p.slots = main, c.slots
	p.condition, p.udfs = main.condition, c.udfs
	if p.input != nil {
		p.condition = constantCondition(true).inexact()
		p.udfs = append(p.udfs, p.input.udfs...)
	}
	return c.bound(p), nil
}

// interrupted returns why the compilation must end, or nil.
func (c *compiler) interrupted() error {
	if c.stopped == nil && c.opts.Interrupted != nil {
		c.stopped = c.opts.Interrupted()
	}
	return c.stopped
}

// bound gives a program the values of its arguments, and its template, if it has one. A
// parameter that became a constant, and a subquery that is a program of its own, hold values
// that another request does not have: such a program has no template.
func (c *compiler) bound(p *Program) *Program {
	params := p.params
	p.params = nil
	t := &Template{program: *p, params: c.args}
	if c.constants == 0 && p.input == nil {
		t.program.template = t
	}
	program, ok := t.Bind(params)
	if !ok {
		panic("sql: the parameters that a query was compiled with are not its own")
	}
	return program
}

// blockingInput returns the subquery that is the first source, if it must have
// seen all items before its first row: then it is a program of its own.
func blockingInput(q *syntax.Query) *syntax.Query {
	if q.From == nil {
		return nil
	}
	inner := q.From.Sources[0].Query
	for at := inner; at != nil; at = at.From.Sources[0].Query {
		if at.Distinct || at.GroupBy != nil || HasAggregate(at) || at.From == nil {
			return inner
		}
	}
	return nil
}

// block compiles one SELECT. With fed set, the rows of its first source come in
// as items.
func (c *compiler) block(q *syntax.Query, s *scope, fed bool) (*block, error) {
	b := &block{distinct: q.Distinct, condition: constantCondition(true)}
	if err := c.from(q, s, b, fed); err != nil {
		return nil, err
	}
	if err := c.where(q, s, b); err != nil {
		return nil, err
	}
	if err := c.groupBy(q, s, b); err != nil {
		return nil, err
	}
	if err := c.selection(q, s, b); err != nil {
		return nil, err
	}
	return b, c.orderBy(q, s, b)
}

// newSlot returns a slot that nothing else has. Slots are not used again, so that a value
// stays where a closure expects it for the whole row.
func (c *compiler) newSlot() int {
	c.slots++
	return c.slots - 1
}

// from compiles the sources in the order of the text: each may begin with the name of one
// before it.
func (c *compiler) from(q *syntax.Query, s *scope, b *block, fed bool) error {
	if q.From == nil {
		return nil
	}
	for i := range q.From.Sources {
		src := &q.From.Sources[i]
		if fed && i == 0 {
			s.bind(binding{name: src.Alias, slot: itemSlot, kind: sourceQuery, derived: true})
			b.sources = append(b.sources, source{slot: itemSlot, kind: sourceItem})
			continue
		}
		if err := c.source(src, s, b); err != nil {
			return err
		}
	}
	return nil
}

// bind adds a name for the next source. A source without one is there all the
// same.
func (s *scope) bind(b binding) {
	b.source = len(s.bindings)
	s.bindings = append(s.bindings, b)
}

// source compiles a path, or a call that makes an array, as a source. Only the first source
// of the query may name the container, which has no name of its own: any that is not known
// stands for it.
func (c *compiler) source(src *syntax.Source, s *scope, b *block) error {
	if src.Query != nil {
		return c.sourceQuery(src, s, b)
	}
	var (
		from code
		base = &binding{slot: itemSlot, kind: sourceItem, origin: origin{known: true}}
		err  error
	)
	if src.Expr != nil {
		if from, err = c.expr(src.Expr, s); err != nil {
			return err
		}
		base = &binding{derived: true}
	} else {
		found, _ := s.lookup(src.Root)
		switch {
		case found != nil:
			base = found
		case len(s.bindings) > 0 || !s.container:
			return unresolved(src.Root, src.Span)
		}
		from = c.walk(base, src.Path)
	}
	bound := binding{name: src.Alias, kind: sourcePath, origin: from.origin, derived: base.derived}
	switch {
	case src.Iterate:
		bound.kind = sourceElement
		bound.origin = from.origin.with(syntax.Step{Element: true, Index: AnyElement})
	case src.Expr == nil && len(src.Path) == 0:
		// Another name for what is in a slot already.
		bound.kind, bound.slot = base.kind, base.slot
		s.bind(bound)
		b.sources = append(b.sources, source{slot: base.slot, kind: sourceItem})
		return nil
	}
	// A row needs a value at the path, which the condition does not say.
	b.condition = b.condition.inexact()
	bound.slot = c.newSlot()
	s.bind(bound)
	b.sources = append(b.sources, source{slot: bound.slot, kind: bound.kind, from: from.eval})
	return nil
}

// sourceQuery compiles a subquery as a source. It sees the sources before it, and runs
// again for each of their rows.
func (c *compiler) sourceQuery(src *syntax.Source, s *scope, b *block) error {
	inner := &scope{outer: s, container: s.container && len(s.bindings) == 0}
	query, err := c.block(src.Query, inner, false)
	if err != nil {
		return err
	}
	bound := binding{name: src.Alias, slot: c.newSlot(), kind: sourceQuery, origin: query.origin, derived: true}
	kind := sourceQuery
	if src.Iterate {
		// "x IN (SELECT …)": the elements of rows that are arrays, and other rows
		// themselves.
		kind, bound.origin = sourceElement, origin{}
	}
	s.bind(bound)
	b.sources = append(b.sources, source{slot: bound.slot, kind: kind, query: query})
	b.condition = and(b.condition, query.whenAnyRow())
	return nil
}

// whenAnyRow returns what is known of an item for which a subquery has a row. One
// with aggregates and without GROUP BY always has.
func (b *block) whenAnyRow() *Condition {
	if b.grouping != nil && len(b.grouping.keys) == 0 {
		return nil
	}
	return b.condition.inexact()
}

// where compiles the filter in parts. Each is tested as soon as the sources are there that
// it needs, so that a row that fails opens none of the sources behind them.
func (c *compiler) where(q *syntax.Query, s *scope, b *block) error {
	if q.Where == nil {
		return nil
	}
	for _, e := range splitAnd(q.Where, nil) {
		s.reach = -1
		part, err := c.expr(e, s)
		if err != nil {
			return err
		}
		b.where = append(b.where, conjunct{reach: s.reach, eval: part.eval})
		b.condition = and(b.condition, part.whenTrue())
	}
	return nil
}

// splitAnd appends the operands of AND at the top of an expression.
func splitAnd(e syntax.Expr, dst []syntax.Expr) []syntax.Expr {
	if b, ok := e.(*syntax.Binary); ok && b.Op == syntax.OpAnd {
		return splitAnd(b.Y, splitAnd(b.X, dst))
	}
	return append(dst, e)
}

// groupBy compiles the keys of groups. An aggregate without GROUP BY makes one group of all
// rows.
func (c *compiler) groupBy(q *syntax.Query, s *scope, b *block) error {
	if q.GroupBy == nil && !HasAggregate(q) {
		return nil
	}
	b.grouping = &grouping{slots: map[string]int{}, heights: map[int]bool{}}
	for _, e := range q.GroupBy {
		key, err := c.expr(e, s)
		if err != nil {
			return err
		}
		b.grouping.addKey(e, s, groupKey{slot: c.newSlot(), eval: key.eval, origin: key.origin})
	}
	return nil
}

// selection compiles the select list. With groups it is computed once per group, from the
// slots of the keys and aggregates, because a path has no one value there.
func (c *compiler) selection(q *syntax.Query, s *scope, b *block) error {
	s.grouping = b.grouping
	defer func() { s.grouping = nil }()
	switch {
	case q.Select.Star:
		only := s.bindings[0]
		slot := only.slot
		b.project.value, b.origin = func(f *frame) datum.Value { return f.slots[slot] }, only.origin
	case q.Select.Value != nil:
		v, err := c.expr(q.Select.Value, s)
		if err != nil {
			return err
		}
		b.project.value, b.origin = v.eval, v.origin
		if v.function != "" && v.yes != nil && len(v.yes.Path) > 0 {
			b.tested = []Path{v.yes.Path}
		}
	default:
		ungrouped := &errorList{} // the service reports all of them
		for _, item := range q.Select.Items {
			v, err := c.expr(item.Expr, s)
			var refused *syntax.Error
			if errors.As(err, &refused) && refused.Code == codeUngrouped {
				ungrouped.add(refused)
				continue
			}
			if err != nil {
				return err
			}
			label := append(datum.Str(item.Name).AppendJSON(nil), ':')
			b.project.items = append(b.project.items, projected{name: item.Name, label: label, eval: v.eval})
			b.origin.addMember(s, item.Name, v)
		}
		if err := ungrouped.err(); err != nil {
			return err
		}
	}
	if b.grouping != nil {
		b.origin = origin{}
	}
	return nil
}

// sliceOf evaluates TOP, OFFSET and LIMIT.
func sliceOf(q *syntax.Query, params map[string]datum.Value) (Slice, error) {
	if q.Top == nil && q.Limit == nil { // as in most queries, which are bound for every request
		return Slice{Limit: NoLimit}, nil
	}
	top, err := count{q.Top, NoLimit, "SC2060", "The count value provided for a TOP clause must be an integer."}.in(params)
	if err != nil {
		return Slice{}, err
	}
	limit, err := count{q.Limit, NoLimit, "SC2061", "The LIMIT count value exceeds the maximum allowed value."}.in(params)
	if err != nil {
		return Slice{}, err
	}
	offset, err := count{q.Offset, 0, "SC2062", "The OFFSET count value exceeds the maximum allowed value."}.in(params)
	return Slice{Offset: offset, Limit: min(top, limit)}, err
}

// count is a clause that says how many.
type count struct {
	of            syntax.Expr // a literal or a parameter; nil if the clause is absent
	absent        int64
	code, message string
}

// in evaluates the clause with the values of parameters.
func (c count) in(params map[string]datum.Value) (int64, error) {
	if c.of == nil {
		return c.absent, nil
	}
	v, _ := Constant(c.of, params)
	n, ok := v.AsInt()
	if !ok || n < 0 || n > math.MaxUint32 {
		return 0, syntax.Errorf(c.of.Pos(), c.code, "%s", c.message)
	}
	return n, nil
}

// Constant returns the value of a literal, at any depth, or of a parameter. It is for
// callers that read the tree without a program; the compiler folds far more.
func Constant(x syntax.Expr, params map[string]datum.Value) (v datum.Value, ok bool) {
	switch x := x.(type) {
	case *syntax.Literal:
		return literalValue(x), true
	case *syntax.Param:
		return params[x.Name], true // undefined, if it was not given
	case *syntax.ArrayLit:
		var b datum.ArrayBuilder
		for _, item := range x.Items {
			v, ok := Constant(item, params)
			if !ok {
				return datum.Value{}, false
			}
			b.Add(v)
		}
		return b.Value(), true
	case *syntax.ObjectLit:
		var b datum.ObjectBuilder
		for _, prop := range x.Props {
			v, ok := Constant(prop.Value, params)
			if !ok {
				return datum.Value{}, false
			}
			b.Set(prop.Name, v)
		}
		return b.Value(), true
	}
	return datum.Value{}, false
}

// unresolved is the error for a name that stands for no source.
func unresolved(name string, at syntax.Span) *syntax.Error {
	return syntax.Errorf(at, "SC2001", "Identifier '%s' could not be resolved.", name)
}
