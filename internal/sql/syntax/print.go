// SPDX-License-Identifier: MIT

// The printer. It writes a tree as Cosmos DB writes the queries that it gives
// back to clients: one clause a line, subqueries indented, every operator in
// parentheses, strings in double quotes. What it prints parses to the same tree.

package syntax

import (
	"math"
	"strconv"

	"github.com/mayflydb/mayfly/internal/value"
)

// String returns the query's text.
func (q *Query) String() string {
	var p printer
	p.query(q)
	return string(p.dst)
}

// Print returns an expression's text.
func Print(x Expr) string {
	var p printer
	p.expr(x)
	return string(p.dst)
}

// Canonical returns a text that expressions share if they are written the same way,
// but for space, brackets, the case of functions, and the names of what they refer to,
// for which others are given. A subquery and LET have names of their own: there,
// everything counts.
func Canonical(x Expr, name func(string) string) string {
	p := printer{name: name}
	p.expr(x)
	return string(p.dst)
}

// printer appends to one text. Its name is set for a canonical text, and is nil inside of
// what has names of its own.
type printer struct {
	dst    []byte
	indent int                 // subqueries around the line
	name   func(string) string // nil unless the text is canonical
}

// put writes texts, expressions, and lists of expressions: a line of the printer looks like
// the line of the grammar that it prints.
func (p *printer) put(parts ...any) {
	for _, part := range parts {
		switch part := part.(type) {
		case string:
			p.dst = append(p.dst, part...)
		case Expr:
			p.expr(part)
		case []Expr:
			for i, x := range part {
				p.separate(i)
				p.expr(x)
			}
		}
	}
}

// separate writes what stands before the item of a list.
func (p *printer) separate(item int) {
	if item > 0 {
		p.put(", ")
	}
}

// line starts a line, indented by four spaces for each subquery around it.
func (p *printer) line() {
	p.put("\n")
	for range p.indent {
		p.put("    ")
	}
}

// clause starts a line.
func (p *printer) clause(parts ...any) {
	p.line()
	p.put(parts...)
}

// query prints the clauses, one a line, as the service does in rewritten queries.
func (p *printer) query(q *Query) {
	p.put("SELECT ")
	if q.Distinct {
		p.put("DISTINCT ")
	}
	if q.Top != nil {
		p.put("TOP ", q.Top, " ")
	}
	p.selection(q.Select)
	if q.From != nil {
		word := "FROM "
		for i := range q.From.Sources {
			p.clause(word)
			p.source(&q.From.Sources[i])
			word = "JOIN "
		}
	}
	if q.Where != nil {
		p.clause("WHERE ", q.Where)
	}
	if q.GroupBy != nil {
		p.clause("GROUP BY ", q.GroupBy)
	}
	if q.OrderBy != nil {
		p.orderBy(q)
	}
	if q.Limit != nil {
		p.clause("OFFSET ", q.Offset, " LIMIT ", q.Limit)
	}
}

// selection prints an alias only where one was written: the parser names items without one
// the same way again.
func (p *printer) selection(s Select) {
	switch {
	case s.Star:
		p.put("*")
	case s.Value != nil:
		p.put("VALUE ", s.Value)
	}
	for i, item := range s.Items {
		p.separate(i)
		p.put(item.Expr)
		if item.Aliased {
			p.put(" AS ")
			p.alias(item.Alias)
		}
	}
}

// alias prints a name bare if it can stand so.
func (p *printer) alias(name string) {
	if isName(name) {
		p.put(name)
		return
	}
	p.quote(name)
}

// isName reports whether the lexer reads a text as one name.
func isName(s string) bool {
	return s != "" && isNameStart(s[0]) && nameLength(s) == len(s) && reserved(s) == ""
}

// quote prints a string as JSON, whichever quotes it was written in.
func (p *printer) quote(s string) { p.dst = value.AppendString(p.dst, s) }

// source prints an alias only where one was written: the one taken from a path is taken again.
func (p *printer) source(s *Source) {
	if s.Iterate {
		p.put(s.Alias, " IN ")
	}
	switch {
	case s.Query != nil:
		p.subquery(s.Query)
	case s.Expr != nil:
		p.put(s.Expr)
	default:
		p.put(s.Root)
		for _, step := range s.Path {
			p.step(step)
		}
	}
	if s.Aliased && !s.Iterate {
		p.put(" AS ", s.Alias)
	}
}

// step prints a step as it was written.
func (p *printer) step(s Step) {
	if !s.Element && !s.Bracket {
		p.put(".", s.Name)
		return
	}
	p.put("[")
	if s.Element {
		p.dst = strconv.AppendInt(p.dst, s.Index, 10)
	} else {
		p.quote(s.Name)
	}
	p.put("]")
}

// orderBy prints ASC only where it was written: clients compare these texts.
func (p *printer) orderBy(q *Query) {
	p.clause("ORDER BY ")
	if q.Rank {
		p.put("RANK ")
	}
	for i, item := range q.OrderBy {
		p.separate(i)
		p.put(item.Expr)
		switch {
		case item.Desc:
			p.put(" DESC")
		case item.Explicit:
			p.put(" ASC")
		}
	}
}

// subquery prints a query in parentheses on lines of its own. It is never canonical inside:
// its sources have names of their own.
func (p *printer) subquery(q *Query) {
	// Through a copy, so that a canonical text and its indentation are as before behind it.
	inner := printer{dst: append(p.dst, '('), indent: p.indent + 1}
	inner.line()
	inner.query(q)
	p.dst = inner.dst
	p.clause(")")
}

// expr prints an expression. Operators stand in parentheses, whether they need them or not:
// the printer need not know how tight they bind.
func (p *printer) expr(x Expr) {
	switch x := x.(type) {
	case *Literal:
		p.literal(x)
	case *Param:
		p.put(x.Name)
	case *Ident:
		p.ident(x.Name)
	case *Member:
		p.base(x.Of)
		p.step(Step{Name: x.Name, Bracket: x.Bracket || p.name != nil})
	case *Index:
		p.base(x.Of)
		p.put("[", x.At, "]")
	case *Call:
		p.call(x)
	case *ArrayLit:
		p.put("[", x.Items, "]")
	case *ObjectLit:
		p.object(x)
	case *Subquery:
		p.put(subqueryWords[x.Kind])
		p.subquery(x.Query)
	case *Let:
		outer := p.name
		p.name = nil
		p.put("(LET ", x.Name, " = ", x.Value, " IN ", x.Body, ")")
		p.name = outer
	case *Verbatim:
		p.put(x.Text)
	default:
		p.put("(")
		p.operation(x)
		p.put(")")
	}
}

// ident prints an alias, or in a canonical text what stands for it.
func (p *printer) ident(name string) {
	if p.name != nil {
		name = p.name(name)
	}
	p.put(name)
}

// call prints a function as it was written, or in a canonical text by its one name.
func (p *printer) call(x *Call) {
	name := x.Written
	if x.UDF {
		p.put("udf.")
	} else if p.name != nil {
		name = x.Name
	}
	p.put(name, "(", x.Args, ")")
}

// base prints what a property or element is taken of. A number needs
// parentheses there: a sign before it would come last, and a dot after it would
// be its own.
func (p *printer) base(x Expr) {
	if lit, ok := x.(*Literal); ok && (lit.Kind == LitInt || lit.Kind == LitFloat) {
		p.put("(", x, ")")
		return
	}
	p.expr(x)
}

// subqueryWords has the word before a subquery of each kind.
var subqueryWords = [...]string{Scalar: "", Exists: "EXISTS", Array: "ARRAY", All: "ALL", First: "FIRST", Last: "LAST"}

// operation prints an expression that stands in parentheses.
func (p *printer) operation(x Expr) {
	switch x := x.(type) {
	case *Unary:
		p.put(x.Op.String(), " ", x.X)
	case *Binary:
		p.put(x.X, " ", x.Op.String(), " ", x.Y)
	case *Coalesce:
		p.put(x.X, " ?? ", x.Y)
	case *Ternary:
		p.put(x.Cond, " ? ", x.Then, " : ", x.Else)
	case *Between:
		p.put(x.X, negation(x.Not), " BETWEEN ", x.Low, " AND ", x.High)
	case *In:
		p.put(x.X, negation(x.Not), " IN (", x.List, ")")
	case *Like:
		p.put(x.X, negation(x.Not), " LIKE ", x.Pattern)
		if x.Escape != nil {
			p.put(" ESCAPE ", x.Escape)
		}
	}
}

// negation is the NOT of IN, LIKE and BETWEEN, which stands behind the operand.
func negation(not bool) string {
	if not {
		return " NOT"
	}
	return ""
}

// object prints names in quotes, whether they had them or not.
func (p *printer) object(x *ObjectLit) {
	p.put("{")
	for i, prop := range x.Props {
		p.separate(i)
		p.quote(prop.Name)
		p.put(": ", prop.Value)
	}
	p.put("}")
}

// literal prints a constant. Those that JSON has no word for have one here.
func (p *printer) literal(l *Literal) {
	switch l.Kind {
	case LitUndefined:
		p.put("undefined")
	case LitNull:
		p.put("null")
	case LitBool:
		p.dst = strconv.AppendBool(p.dst, l.True)
	case LitInt:
		p.dst = strconv.AppendInt(p.dst, l.Int, 10)
	case LitFloat:
		p.float(l)
	case LitString:
		p.quote(l.Text)
	}
}

// float prints a number with more digits than it needs, as the service does, but for integers.
func (p *printer) float(l *Literal) {
	_, integer := l.AsInt()
	switch f := l.Float; {
	case math.IsNaN(f):
		p.put("NaN")
	case math.IsInf(f, 1):
		p.put("Infinity")
	case math.IsInf(f, -1):
		p.put("(- Infinity)")
	case integer:
		p.dst = value.Number(f).AppendJSON(p.dst)
	default:
		p.dst = strconv.AppendFloat(p.dst, f, 'g', printedDigits, 64)
	}
}

// printedDigits are those that the service writes a number with, more than it takes for
// no two numbers to be written alike.
const printedDigits = 17
