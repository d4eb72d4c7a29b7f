// SPDX-License-Identifier: MIT

// LET: a name for a value, inside an expression.

package sql

import "strings"

// Let is (LET Name = Value IN Body).
type Let struct {
	node
	Name        string
	Value, Body Expr
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

// let compiles a value that is computed once and has a slot while the body is.
func (c *compiler) let(e *Let, s *scope) (code, error) {
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
	return code{eval: func(f *frame) Value {
		f.slots[slot] = valueEval(f)
		return bodyEval(f)
	}}, nil
}
