// SPDX-License-Identifier: MIT

// Package syntax reads queries and prints them: a text becomes a tree, and a tree a
// text that means the same. It knows what a query says, and nothing of what that
// means: neither which functions there are, nor what a name stands for.
//
// The one invariant: nothing changes a tree that [Parse] has returned, so that any
// number of goroutines may read it. A rewrite builds new nodes and shares the rest.
package syntax

import "math"

// Span is where something stands in the query text: offsets in UTF-16 code
// units, as clients count characters, the end exclusive. Errors carry it to clients,
// which show the part of the text that is wrong.
type Span struct{ Start, End int }

// Query is one SELECT with its clauses, the whole text or a subquery.
type Query struct {
	Span
	Distinct bool
	Top      Expr // a *Literal, a *Param, or nil
	Select   Select
	From     *From // nil if left out
	Where    Expr  // nil if left out
	GroupBy  []Expr
	OrderBy  []SortItem
	Rank     bool // ORDER BY RANK: all items of OrderBy are calls
	Offset   Expr // like Top; both or neither of Offset and Limit are set
	Limit    Expr

	// Where clauses stand that may be refused, if they are there.
	StarAt, TopAt, OrderAt, LimitAt Span

	height int
}

// Select is what a query projects: exactly one of its fields is set. SELECT VALUE makes rows
// of any kind, the other two make objects.
type Select struct {
	Star  bool
	Value Expr
	Items []SelectItem
}

// SelectItem is one item of a select list.
type SelectItem struct {
	Expr  Expr
	Alias string // as given, or empty: see Aliased
	Name  string // the property it becomes: the alias, the last name of a path, or $1, $2, …

	// Aliased is whether there is an alias: "" can be one.
	Aliased bool
}

// From is the first source and those that are joined to it.
type From struct{ Sources []Source }

// Source is one input set: a path from the container or from an earlier alias,
// a subquery, or a call. One of Root, Query and Expr is set.
type Source struct {
	Span
	Iterate bool   // "x IN …": the elements instead of the value
	Alias   string // the name it is known by, or empty if it has none
	Aliased bool   // the alias was written, and not taken from the path
	SetAt   Span   // what stands before or after the alias

	Root  string // empty with a subquery or an expression
	Path  []Step
	Query *Query
	Expr  Expr // "x IN F(…)": a function call in place of a path
}

// Step goes one level down a path: to a property, or to an element. Bracket makes no
// difference to what is meant; the printer keeps it, since clients see printed queries.
type Step struct {
	Name    string // if it is no element
	Index   int64
	Element bool
	Bracket bool // a property written ["name"]
}

// SortItem is one item of ORDER BY. ASC that was written is kept apart from ASC that was
// not, because some clauses refuse the former.
type SortItem struct {
	Expr     Expr
	Desc     bool
	Explicit bool // ASC or DESC was written
}

// Expr is a scalar expression: one of the node types below.
type Expr interface {
	// Pos returns where the expression stands, or the zero Span for one that a
	// rewrite has made.
	Pos() Span
	exprNode() *node
}

// node is what all expressions have.
type node struct {
	Span
	height int // levels below and including this one, at most maxHeight
}

func (n *node) Pos() Span       { return n.Span }
func (n *node) exprNode() *node { return n }

// Height returns how many levels a parsed expression has. It is kept in each node, so that
// to ask for it costs nothing, however large the tree.
func Height(x Expr) int { return x.exprNode().height }

// Literal is a constant. A sign before a number is part of it: -1 is no operation.
type Literal struct {
	node
	Kind  LiteralKind
	True  bool    // of LitBool
	Int   int64   // of LitInt
	Float float64 // of LitFloat, perhaps NaN or infinite
	Text  string  // of LitString, what it means
}

// LiteralKind is the type of a constant, and the field that holds it.
type LiteralKind uint8

// The kinds of literals.
const (
	LitUndefined LiteralKind = iota
	LitNull
	LitBool
	LitInt   // an integer of 64 bits, with all its digits
	LitFloat // any other number
	LitString
)

// AsInt returns the integer that a literal is, in either form of numbers: 1.0 and 1e3 are
// integers too.
func (l *Literal) AsInt() (n int64, ok bool) {
	switch f := l.Float; {
	case l.Kind == LitInt:
		return l.Int, true
	// 2^63 itself is a float64 and no int64.
	case l.Kind != LitFloat, f != math.Trunc(f), f < math.MinInt64, f >= -math.MinInt64:
		return 0, false
	default:
		return int64(f), true
	}
}

// Param is a parameter. Its value is not part of the tree: one tree serves all requests that
// send the same text.
type Param struct {
	node
	Name string // with its @
}

// Ident is the alias of a source. Whether there is such a source is not known here.
type Ident struct {
	node
	Name string
}

// Member is .name or ["name"].
type Member struct {
	node
	Of      Expr
	Name    string
	Bracket bool // written ["name"]
}

// Index is [expr] for everything but a string literal, which makes a Member of it.
type Index struct {
	node
	Of Expr
	At Expr
}

// Unary is an operator before its operand: OpNeg, OpPlus, OpBitNot or OpNot.
type Unary struct {
	node
	Op Op
	X  Expr
}

// Binary is an operator between two operands.
type Binary struct {
	node
	Op   Op
	X, Y Expr
}

// Ternary is Cond ? Then : Else.
type Ternary struct {
	node
	Cond, Then, Else Expr
}

// Coalesce is X ?? Y.
type Coalesce struct {
	node
	X, Y Expr
}

// Between is X [NOT] BETWEEN Low AND High.
type Between struct {
	node
	Not          bool
	X, Low, High Expr
}

// In is X [NOT] IN (List); the list is not empty.
type In struct {
	node
	Not  bool
	X    Expr
	List []Expr
}

// Like is X [NOT] LIKE Pattern [ESCAPE Escape].
type Like struct {
	node
	Not        bool
	X, Pattern Expr
	Escape     *Literal // a string, or nil if left out
}

// Let is (LET Name = Value IN Body): Value is computed once, however often Body has its
// name.
type Let struct {
	node
	Name        string
	Value, Body Expr
}

// Call is a built-in function, an aggregate or a user-defined function. The grammar does not
// know which functions there are. Messages quote the name as it was written.
type Call struct {
	node
	Name    string // of a built-in in upper case, of a user-defined one as written
	Written string // as written, without udf.
	UDF     bool
	Args    []Expr
}

// ArrayLit is [a, b, …].
type ArrayLit struct {
	node
	Items []Expr
}

// ObjectLit is {"a": x, "b": y, …}, in the order of the text.
type ObjectLit struct {
	node
	Props []Property
}

// Property is one property of an ObjectLit.
type Property struct {
	Name  string
	Value Expr
}

// SubqueryKind is what an expression makes of the rows of a subquery.
type SubqueryKind uint8

// The kinds of subqueries in expressions.
const (
	Scalar SubqueryKind = iota // the only row, or undefined
	Exists                     // whether there is a row
	Array                      // an array of the rows
	All                        // whether the filter holds for every row
	First                      // the first row, or undefined
	Last                       // the last row, or undefined
)

// Subquery is a query in parentheses, behind the word that its kind asks for.
type Subquery struct {
	node
	Kind  SubqueryKind
	Query *Query
}

// Verbatim is text that only a rewritten query has, and that is printed as it
// stands: JSON, or what the client puts something else in place of before it sends
// the query back.
type Verbatim struct {
	node
	Text string
}

// Op is an operator.
type Op uint8

// The operators, from those that bind tightest to those that bind loosest. How tight is
// for the parser to know: the tree shows it by its form.
const (
	OpNeg Op = iota
	OpPlus
	OpBitNot
	OpNot

	OpMul
	OpDiv
	OpMod

	OpAdd
	OpSub
	OpBitAnd
	OpBitOr
	OpBitXor

	OpConcat

	OpEq
	OpNe
	OpLt
	OpLe
	OpGt
	OpGe
	OpLeftShift
	OpRightShift
	OpZeroFillRightShift

	OpAnd

	OpOr
)

// opNames is by operator: the same sign may be two, as - is before an operand and between two.
var opNames = [...]string{
	OpNeg: "-", OpPlus: "+", OpBitNot: "~", OpNot: "NOT",
	OpMul: "*", OpDiv: "/", OpMod: "%",
	OpAdd: "+", OpSub: "-", OpBitAnd: "&", OpBitOr: "|", OpBitXor: "^",
	OpConcat: "||",
	OpEq:     "=", OpNe: "!=", OpLt: "<", OpLe: "<=", OpGt: ">", OpGe: ">=",
	OpLeftShift: "<<", OpRightShift: ">>", OpZeroFillRightShift: ">>>",
	OpAnd: "AND", OpOr: "OR",
}

// String returns the operator as it is printed.
func (op Op) String() string { return opNames[op] }
