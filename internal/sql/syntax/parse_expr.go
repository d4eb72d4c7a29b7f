// SPDX-License-Identifier: MIT

// The parser: expressions, by precedence climbing.

package syntax

import (
	"math"
	"slices"
	"strings"
)

// level is how tight a binary operator binds; 0 is none. The loosest comes first. Comparisons
// and shifts are one level, and so are addition and the bitwise operators; NOT binds
// tighter than all of them, like any sign. Predicates do not chain. This is the service's
// grammar, and not that of SQL or C.
type level uint8

const (
	levelOr level = iota + 1
	levelAnd
	levelPredicate // IN, LIKE, BETWEEN
	levelCompare
	levelConcat
	levelAdd
	levelMultiply
)

// node makes what all expressions have, for one that starts at start, ends with
// the last token and has the given parts, of which any may be nil.
func (p *parser) node(start int, parts ...Expr) node {
	height := 0
	for _, x := range parts {
		if x != nil {
			height = max(height, Height(x))
		}
	}
	if height++; height > maxHeight {
		p.failTooDeep()
	}
	return node{Span: p.spanFrom(start), height: height}
}

// exprList reads expressions with commas between, at least one. Callers that allow none look
// for the closing bracket first.
func (p *parser) exprList() []Expr {
	list := []Expr{p.expr()}
	for p.take(",") {
		list = append(list, p.expr())
	}
	return list
}

// expr reads a whole expression: x ?? y, then c ? a : b, both from the right.
func (p *parser) expr() Expr {
	p.enter()
	defer p.leave()
	start := p.tok.Start
	x := p.coalesce()
	if !p.take("?") {
		return x
	}
	then := p.expr()
	p.expect(":")
	otherwise := p.expr()
	return &Ternary{node: p.node(start, x, then, otherwise), Cond: x, Then: then, Else: otherwise}
}

// coalesce reads x ?? y, which groups from the right, below the operators and above ? and :.
func (p *parser) coalesce() Expr {
	start := p.tok.Start
	x := p.binary(levelOr)
	if !p.take("??") {
		return x
	}
	p.enter()
	y := p.coalesce()
	p.leave()
	return &Coalesce{node: p.node(start, x, y), X: x, Y: y}
}

// binary reads operators of the given level and tighter ones. After an operator
// none that binds tighter may follow: its operand has taken them all, or they
// cannot stand there.
func (p *parser) binary(loosest level) Expr {
	start := p.tok.Start
	x := p.unary()
	for ceiling := levelMultiply; ; {
		if p.atPredicate() && loosest <= levelPredicate && ceiling >= levelPredicate {
			x = p.predicate(start, x)
			ceiling = levelPredicate - 1
			continue
		}
		op := p.tok
		if op.level < loosest || op.level > ceiling {
			return x
		}
		p.advance()
		y := p.binary(op.level + 1)
		x = &Binary{node: p.node(start, x, y), Op: op.op, X: x, Y: y}
		ceiling = op.level
	}
}

// atPredicate looks ahead: NOT before IN, LIKE or BETWEEN belongs to them, and anywhere else
// before an operand.
func (p *parser) atPredicate() bool {
	t := p.tok
	if t.is("NOT") {
		t = p.ahead
	}
	return t.is("IN") || t.is("LIKE") || t.is("BETWEEN")
}

// predicate reads what follows the operand of IN, LIKE or BETWEEN. AND belongs to BETWEEN
// there, so its bounds take in nothing looser than a comparison.
func (p *parser) predicate(start int, x Expr) Expr {
	not := p.take("NOT")
	switch {
	case p.take("IN"):
		p.expect("(")
		list := p.exprList()
		p.expect(")")
		return &In{node: p.node(start, append([]Expr{x}, list...)...), Not: not, X: x, List: list}
	case p.take("LIKE"):
		like := &Like{Not: not, X: x, Pattern: p.binary(levelCompare)}
		if p.take("ESCAPE") {
			if p.tok.kind != tokenString {
				p.failHere()
			}
			like.Escape = p.literal(Literal{Kind: LitString, Text: p.tok.text})
		}
		like.node = p.node(start, x, like.Pattern)
		return like
	}
	p.expect("BETWEEN")
	low := p.binary(levelCompare)
	p.expect("AND")
	high := p.binary(levelCompare)
	return &Between{node: p.node(start, x, low, high), Not: not, X: x, Low: low, High: high}
}

// unary reads signs before an operand. They bind tighter than any operator between two.
func (p *parser) unary() Expr {
	start := p.tok.Start
	var op Op
	switch p.tok.word {
	case "-":
		op = OpNeg
	case "+":
		op = OpPlus
	case "~":
		op = OpBitNot
	case "NOT":
		op = OpNot
	default:
		return p.postfix()
	}
	p.advance()
	p.enter()
	x := p.unary()
	p.leave()
	// The literal was made by this parser just now, so that it may be changed.
	if number, ok := x.(*Literal); ok && number.sign(op) {
		number.node = p.node(start)
		return number
	}
	return &Unary{node: p.node(start, x), Op: op, X: x}
}

// sign makes a sign a part of the number that it is before, if they are these. The least
// int64 can only be written so: without its sign it is beyond an int64, and a float.
func (l *Literal) sign(op Op) bool {
	if l.Kind != LitInt && l.Kind != LitFloat || op != OpPlus && op != OpNeg {
		return false
	}
	if op == OpPlus {
		return true
	}
	switch n, integer := l.AsInt(); {
	case integer && n == math.MinInt64:
		l.Kind, l.Float = LitFloat, -math.MinInt64
	case integer:
		l.Kind, l.Int = LitInt, -n
	case l.Float == -math.MinInt64:
		l.Kind, l.Int = LitInt, math.MinInt64
	default:
		l.Float = -l.Float
	}
	return true
}

// postfix reads a path. A name in brackets is the same property as one behind a dot, and a
// flag says how it was written.
func (p *parser) postfix() Expr {
	start := p.tok.Start
	x := p.primary()
	for {
		switch {
		case p.take("."):
			name := p.name()
			x = &Member{node: p.node(start, x), Of: x, Name: name}
		case p.take("["):
			at := p.expr()
			p.expect("]")
			if name, ok := at.(*Literal); ok && name.Kind == LitString {
				x = &Member{node: p.node(start, x), Of: x, Name: name.Text, Bracket: true}
			} else {
				x = &Index{node: p.node(start, x, at), Of: x, At: at}
			}
		default:
			return x
		}
	}
}

// literal goes past the token that means v.
func (p *parser) literal(v Literal) *Literal {
	start := p.tok.Start
	p.advance()
	v.node = p.node(start)
	return &v
}

// primary reads what no operator takes apart.
func (p *parser) primary() Expr {
	start := p.tok.Start
	switch p.tok.kind {
	case tokenString:
		return p.literal(Literal{Kind: LitString, Text: p.tok.text})
	case tokenInteger, tokenDouble:
		return p.literal(p.tok.number())
	case tokenParam:
		name := p.tok.text
		p.advance()
		return &Param{node: p.node(start), Name: name}
	case tokenName:
		return p.named()
	case tokenWord:
		return p.word()
	}
	switch {
	case p.take("("):
		if p.tok.is("SELECT") {
			return p.inQuery(start, Scalar)
		}
		x := p.parenthesized()
		p.expect(")")
		return x
	case p.take("["):
		return p.array(start)
	case p.take("{"):
		return p.object(start)
	}
	return p.nothing()
}

// parenthesized reads what stands between parentheses, the only position where LET may be.
func (p *parser) parenthesized() Expr {
	if p.atLet() {
		return p.let()
	}
	return p.expr()
}

// atLet reports whether LET is next. It is no reserved word: before anything but a
// name it is one itself.
func (p *parser) atLet() bool {
	return p.tok.kind == tokenName && p.ahead.kind == tokenName && strings.EqualFold(p.tok.text, "LET")
}

// let reads what is between the parentheses. Neither part takes in what binds looser
// than a comparison.
func (p *parser) let() Expr {
	p.enter()
	defer p.leave()
	start := p.tok.Start
	p.advance()
	name := p.tok.text
	p.advance()
	p.expect("=")
	value := p.binary(levelCompare)
	p.expect("IN")
	body := p.binary(levelCompare)
	return &Let{node: p.node(start, value, body), Name: name, Value: value, Body: body}
}

// nothing fails: there should be an expression. It returns one all the same, so that no
// caller meets nil.
func (p *parser) nothing() Expr {
	p.failHere()
	return &Literal{}
}

// named reads what begins with a name: a source, a call, a constant of the
// numbers, or one of the words that are reserved before a subquery only.
func (p *parser) named() Expr {
	start, name := p.tok.Start, p.tok.text
	p.advance()
	if p.take("(") {
		if kind, ok := wordBeforeSubquery(name); ok && p.tok.is("SELECT") {
			return p.inQuery(start, kind)
		}
		return p.call(start, name)
	}
	switch name {
	case "NaN":
		return &Literal{node: p.node(start), Kind: LitFloat, Float: math.NaN()}
	case "Infinity":
		return &Literal{node: p.node(start), Kind: LitFloat, Float: math.Inf(1)}
	}
	return &Ident{node: p.node(start), Name: name}
}

// wordBeforeSubquery finds the words that are names before anything else.
func wordBeforeSubquery(name string) (kind SubqueryKind, ok bool) {
	kind = SubqueryKind(slices.Index(subqueryWords[:], strings.ToUpper(name)))
	return kind, kind == All || kind == First || kind == Last
}

// isRankWord reports whether a name is RANK.
func isRankWord(name string) bool { return strings.EqualFold(name, "RANK") }

// word reads an expression that begins with a reserved word. LEFT and RIGHT are reserved, and
// functions all the same.
func (p *parser) word() Expr {
	start, text := p.tok.Start, p.tok.text
	switch p.tok.word {
	case "TRUE":
		return p.literal(Literal{Kind: LitBool, True: true})
	case "FALSE":
		return p.literal(Literal{Kind: LitBool})
	case "NULL":
		return p.literal(Literal{Kind: LitNull})
	case "UNDEFINED":
		return p.literal(Literal{})
	case "EXISTS":
		p.advance()
		p.expect("(")
		return p.inQuery(start, Exists)
	case "ARRAY":
		p.advance()
		p.expect("(")
		return p.inQuery(start, Array)
	case "LEFT", "RIGHT":
		p.advance()
		p.expect("(")
		return p.call(start, text)
	case "UDF":
		return p.udf(start)
	}
	return p.nothing()
}

// inQuery reads a subquery behind its opening parenthesis, and the closing one. Its height
// counts for the expression around it, because walks go on into it.
func (p *parser) inQuery(start int, kind SubqueryKind) Expr {
	q := p.subquery()
	p.expect(")")
	x := &Subquery{node: p.node(start), Kind: kind, Query: q}
	if x.height += q.height; x.height > maxHeight {
		p.failTooDeep()
	}
	return x
}

// udf reads a call of a user-defined function. The service bounds how many there are, so they
// are counted.
func (p *parser) udf(start int) Expr {
	p.advance()
	p.expect(".")
	name := p.name()
	p.expect("(")
	x := p.call(start, name)
	x.UDF, x.Name = true, name
	p.udfCalls++
	return x
}

// call reads arguments behind the opening parenthesis, and the closing one. Functions are
// found by their name in upper case, and printed as they were written.
func (p *parser) call(start int, name string) *Call {
	var args []Expr
	if !p.tok.is(")") {
		args = p.exprList()
	}
	p.expect(")")
	return &Call{node: p.node(start, args...), Name: strings.ToUpper(name), Written: name, Args: args}
}

// array reads the elements behind the opening bracket, and the closing one.
func (p *parser) array(start int) Expr {
	var items []Expr
	if !p.tok.is("]") {
		items = p.exprList()
	}
	p.expect("]")
	return &ArrayLit{node: p.node(start, items...), Items: items}
}

// object reads the properties of an object. That a name comes twice is for the compiler to
// refuse: the grammar has no objection.
func (p *parser) object(start int) Expr {
	x := &ObjectLit{}
	var values []Expr
	if !p.tok.is("}") {
		for {
			prop := p.property()
			x.Props, values = append(x.Props, prop), append(values, prop.Value)
			if !p.take(",") {
				break
			}
		}
	}
	p.expect("}")
	x.node = p.node(start, values...)
	return x
}

// property reads a name, with or without quotes, and its value.
func (p *parser) property() Property {
	name := p.label()
	p.expect(":")
	return Property{Name: name, Value: p.expr()}
}
