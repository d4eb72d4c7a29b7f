// SPDX-License-Identifier: MIT

// The parser: queries and their clauses. Expressions are in parse_expr.go.
//
// It is a recursive descent with one token of lookahead. Limits on what a query may have are
// enforced while it is read, so that no text makes a tree that is too large to walk.

package syntax

import (
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/mayflydb/mayfly/internal/value"
)

// What a query may have at most. Cosmos DB documents the first three.
const (
	// MaxTextBytes is how long a query text may be.
	MaxTextBytes = 512 << 10

	maxJoins    = 10
	maxUDFCalls = 10

	// maxHeight bounds the recursion of everything that walks the tree. A long
	// chain of operators counts like parentheses; a thousand pairs of id and
	// partition key, as clients send them to read many items, are far below.
	maxHeight = 8192

	// maxDepth bounds the recursion of the parser. The printer puts a chain of
	// operators in parentheses, and some of these cost two levels: a tree of
	// maxHeight can be read again.
	maxDepth = 2*maxHeight + 2

	// maxSubqueryDepth bounds subqueries in subqueries.
	maxSubqueryDepth = 64
)

// Parse reads a query. The error is an *[Error].
func Parse(text string) (*Query, error) {
	p := &parser{lex: lexer{text: text}}
	if len(text) > MaxTextBytes {
		return nil, Errorf(Span{}, "SC3001",
			"The SQL query text exceeded the maximum limit of %d characters.", MaxTextBytes)
	}
	if !utf8.ValidString(text) {
		return nil, Errorf(Span{}, "SC1001", "Syntax error, the query text is not valid UTF-8.")
	}
	p.advance()
	p.advance()
	q := p.query()
	if p.tok.kind != tokenEnd {
		p.failHere()
	}
	if p.udfCalls > maxUDFCalls {
		p.fail(q.Span, "SC3005",
			"The SQL query exceeded the maximum number of user-defined function calls. The allowed limit is %d.", maxUDFCalls)
	}
	if p.err != nil {
		return nil, p.err
	}
	return q, nil
}

// parser goes through the tokens once. After the first error it sees the end of
// the text, so that every loop ends, and what it returns is of no use.
type parser struct {
	lex   lexer
	tok   token // the one to look at
	ahead token // the one after it
	end   int   // where the last token that was taken ends
	err   *Error

	depth      int // levels of recursion that are under way
	subqueries int // queries that are under way, the outermost left out
	udfCalls   int
}

// advance goes on by one token. After an error there are no more, so that a loop over a list
// needs no check of its own.
func (p *parser) advance() {
	p.end = p.tok.End
	p.tok = p.ahead
	if p.err == nil {
		p.ahead = p.lex.next()
	}
}

// fail keeps the first error.
func (p *parser) fail(s Span, code, format string, args ...any) {
	if p.err == nil {
		p.err = Errorf(s, code, format, args...)
	}
	p.tok, p.ahead = token{}, token{}
}

// failHere says that the token to look at cannot stand where it does. The text is the
// service's, and quotes no more of the query than a message should have.
func (p *parser) failHere() {
	if p.err != nil {
		return
	}
	if p.tok.kind == tokenEnd {
		p.fail(p.tok.Span, "SC1002", "Syntax error, unexpected end-of-file.")
		return
	}
	near := p.tok.text
	if p.tok.kind == tokenString {
		near = string(value.AppendString(nil, near))
	}
	p.fail(p.tok.Span, "SC1001", "Syntax error, incorrect syntax near '%s'.", value.Clip(near))
}

// take goes past a reserved word or sign if it is there.
func (p *parser) take(word string) bool {
	if !p.tok.is(word) {
		return false
	}
	p.advance()
	return true
}

// expect goes past a reserved word or sign that must be there.
func (p *parser) expect(word string) {
	if !p.take(word) {
		p.failHere()
	}
}

// name goes past an identifier that must be there. A reserved word is none, although the
// name of a function may be one: see word.
func (p *parser) name() string {
	text := p.tok.text
	if p.tok.kind != tokenName {
		p.failHere()
		return ""
	}
	p.advance()
	return text
}

// label goes past the name of a property, bare or in quotes, that must be there. Quotes allow
// any name, which JSON does too.
func (p *parser) label() string {
	text := p.tok.text
	if p.tok.kind != tokenName && p.tok.kind != tokenString {
		p.failHere()
	}
	p.advance()
	return text
}

// enter counts a level of recursion; its caller must call leave. The bound keeps a text of
// nothing but parentheses from taking the whole stack.
func (p *parser) enter() {
	if p.depth++; p.depth > maxDepth {
		p.failTooDeep()
	}
}

func (p *parser) leave() { p.depth-- }

// failTooDeep is for the height of the tree and for the parser's own recursion: to a client
// they are one limit.
func (p *parser) failTooDeep() {
	p.fail(p.tok.Span, "", "The SQL query is nested too deeply. The allowed limit is %d levels.", maxHeight)
}

// spanFrom returns what stands between an offset and the end of the last token.
func (p *parser) spanFrom(start int) Span { return Span{start, p.end} }

// query reads the clauses in the only order that the grammar has. Where each stands is kept for
// those that may be refused later.
func (p *parser) query() *Query {
	p.enter()
	defer p.leave()
	q := &Query{}
	start := p.tok.Start
	p.expect("SELECT")
	q.Distinct = p.take("DISTINCT")
	if at := p.tok.Start; p.take("TOP") {
		q.Top = p.top()
		q.TopAt = p.spanFrom(at)
	}
	at := p.tok.Start
	if q.Select = p.selection(); q.Select.Star {
		q.StarAt = p.spanFrom(at)
	}
	if p.take("FROM") {
		q.From = p.from()
	}
	if p.take("WHERE") {
		q.Where = p.expr()
	}
	if p.take("GROUP") {
		p.expect("BY")
		q.GroupBy = p.exprList()
	}
	if at := p.tok.Start; p.take("ORDER") {
		p.expect("BY")
		p.orderBy(q)
		q.OrderAt = p.spanFrom(at)
	}
	if at := p.tok.Start; p.take("OFFSET") {
		q.Offset = p.count("SC2062", "OFFSET")
		p.expect("LIMIT")
		q.Limit = p.count("SC2061", "LIMIT")
		q.LimitAt = p.spanFrom(at)
	}
	q.Span = p.spanFrom(start)
	q.height = heightOf(q)
	return q
}

// subquery reads a query inside another one, without its parentheses. The depth of
// subqueries has a bound of its own: each level runs once for every row of the one around it.
func (p *parser) subquery() *Query {
	if p.subqueries++; p.subqueries > maxSubqueryDepth {
		p.fail(p.tok.Span, "", "The SQL query has too many nested subqueries. The allowed limit is %d.", maxSubqueryDepth)
	}
	q := p.query()
	p.subqueries--
	return q
}

// selection reads the select list, and names its items when all are known.
func (p *parser) selection() Select {
	if p.take("*") {
		return Select{Star: true}
	}
	if p.take("VALUE") {
		return Select{Value: p.expr()}
	}
	items := []SelectItem{p.selectItem()}
	for p.take(",") {
		items = append(items, p.selectItem())
	}
	nameItems(items)
	return Select{Items: items}
}

// selectItem reads an expression and its alias, with or without AS. Behind an expression
// nothing else can begin with a name, so that AS is not missed.
func (p *parser) selectItem() SelectItem {
	item := SelectItem{Expr: p.expr()}
	if p.take("AS") || p.tok.kind == tokenName || p.tok.kind == tokenString {
		item.Alias, item.Aliased = p.label(), true
	}
	return item
}

// nameItems gives every item the name of its property. Only items without a
// name of their own count for $1, $2, and so on.
func nameItems(items []SelectItem) {
	unnamed := 0
	for i := range items {
		item := &items[i]
		if item.Aliased {
			item.Name = item.Alias
			continue
		}
		switch x := item.Expr.(type) {
		case *Ident:
			item.Name = x.Name
		case *Member:
			item.Name = x.Name
		default:
			unnamed++
			item.Name = "$" + strconv.Itoa(unnamed)
		}
	}
}

// from reads the sources. Their number is bounded, as in the service: each multiplies rows.
func (p *parser) from() *From {
	f := &From{Sources: []Source{p.source()}}
	for p.take("JOIN") {
		f.Sources = append(f.Sources, p.source())
		if len(f.Sources)-1 > maxJoins {
			p.fail(p.spanFrom(0), "SC3002",
				"The SQL query exceeded the maximum number of joins. The allowed limit is %d.", maxJoins)
		}
	}
	return f
}

// source reads one source, in one of its two forms: alias IN collection, or collection AS alias.
func (p *parser) source() Source {
	s := Source{}
	start := p.tok.Start
	if p.tok.kind == tokenName && p.ahead.is("IN") {
		s.Iterate, s.Aliased, s.Alias = true, true, p.name()
		p.advance()
		p.collection(&s)
	} else {
		p.collection(&s)
		if p.take("AS") || p.tok.kind == tokenName {
			s.Aliased, s.Alias = true, p.name()
		}
	}
	s.Span = p.spanFrom(start)
	return s
}

// collection reads what a source is: a subquery, a call, or a path. Without an alias, the last
// name of a path is one.
func (p *parser) collection(s *Source) {
	start := p.tok.Start
	defer func() { s.SetAt = p.spanFrom(start) }()
	if p.take("(") {
		s.Query = p.subquery()
		p.expect(")")
		return
	}
	if s.Iterate && p.ahead.is("(") {
		s.Expr = p.primary()
		if _, ok := s.Expr.(*Call); !ok {
			p.failHere()
		}
		return
	}
	s.Root = p.name()
	alias := s.Root
	for p.tok.is(".") || p.tok.is("[") {
		step := p.step()
		s.Path = append(s.Path, step)
		alias = step.Name
	}
	if !s.Aliased {
		s.Alias = alias
	}
}

// step reads .name, ["name"] or [0] of a source's path, where no other expression may stand.
func (p *parser) step() Step {
	if p.take(".") {
		return Step{Name: p.name()}
	}
	p.expect("[")
	s := Step{}
	switch p.tok.kind {
	case tokenString:
		s.Name, s.Bracket = p.tok.text, true
	case tokenInteger:
		number := p.tok.number()
		n, ok := number.AsInt()
		if !ok {
			p.failHere()
		}
		s.Index, s.Element = n, true
	default:
		p.failHere()
	}
	p.advance()
	p.expect("]")
	return s
}

// orderBy reads the items of ORDER BY, or of ORDER BY RANK, which takes calls alone.
func (p *parser) orderBy(q *Query) {
	// RANK is no reserved word: it is one only with a name behind it.
	if p.tok.kind == tokenName && p.ahead.kind == tokenName && isRankWord(p.tok.text) {
		q.Rank = true
		p.advance()
	}
	operand := p.expr
	if q.Rank {
		operand = p.rankCall
	}
	q.OrderBy = append(q.OrderBy, p.sortItem(operand))
	for p.take(",") {
		q.OrderBy = append(q.OrderBy, p.sortItem(operand))
	}
}

// sortItem reads one item and its direction.
func (p *parser) sortItem(operand func() Expr) SortItem {
	item := SortItem{Expr: operand()}
	switch {
	case p.take("ASC"):
		item.Explicit = true
	case p.take("DESC"):
		item.Explicit, item.Desc = true, true
	}
	return item
}

// rankCall reads a score. The service blames the first token if it is none.
func (p *parser) rankCall() Expr {
	at := p.tok
	if p.tok.kind == tokenName && !p.ahead.is("(") {
		p.advance()
		p.failHere()
	}
	x := p.primary()
	if call, ok := x.(*Call); !ok || call.UDF {
		p.tok = at
		p.failHere()
	}
	return x
}

// top reads the number of a TOP clause. The grammar lets any number stand
// there, which is then found to be wrong.
func (p *parser) top() Expr {
	if n, ok := p.countValue(); p.tok.kind == tokenDouble || ok && n > math.MaxUint32 {
		p.fail(p.tok.Span, "SC2060", "The count value provided for a TOP clause must be an integer.")
	}
	return p.countExpr()
}

// count reads the number of OFFSET or LIMIT. One that is too large is refused here, where
// its position is known; a parameter is checked when it has a value.
func (p *parser) count(code, clause string) Expr {
	if n, ok := p.countValue(); ok && n > math.MaxUint32 {
		p.fail(p.tok.Span, code, "The %s count value exceeds the maximum allowed value.", clause)
	}
	return p.countExpr()
}

// countValue returns the integer that is there; one beyond int64 is as large as
// can be.
func (p *parser) countValue() (n int64, ok bool) {
	if p.tok.kind != tokenInteger {
		return 0, false
	}
	number := p.tok.number()
	if n, ok := number.AsInt(); ok {
		return n, true
	}
	return math.MaxInt64, true
}

// countExpr reads a number or a parameter, the only expressions that these clauses take.
func (p *parser) countExpr() Expr {
	switch p.tok.kind {
	case tokenInteger, tokenParam:
		return p.primary()
	}
	p.failHere()
	return nil
}

// heightOf returns the height of a query whose clauses are there.
func heightOf(q *Query) int {
	h := 0
	q.EachClause(func(x Expr) { h = max(h, Height(x)) }, func(inner *Query) { h = max(h, inner.height) })
	return h + 1
}
