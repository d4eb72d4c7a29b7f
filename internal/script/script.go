// SPDX-License-Identifier: MIT

// Package script runs the functions that clients write in JavaScript: JSON goes in,
// JSON comes out. It never reads a clock, a file or an item, and knows nothing of
// where a function is kept or why it is called.
//
// The one invariant: a function reaches the language and its arguments, and nothing
// else; and each of its calls ends, within limits of time, depth and size that
// [Sandbox] names. What a function leaves behind lives as long as its sandbox.
package script

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dop251/goja"
	"github.com/dop251/goja/ast"
)

const (
	// MaxBodyBytes is the longest text of a function.
	MaxBodyBytes = 256 << 10
	// The parser is recursive and takes up to 4 KiB of stack for a bracket. It takes
	// a time that grows with the square of arrows within arrows, and as much memory
	// for labels within labels. A text that has more of any than these is not read
	// at all.
	maxBrackets = 32 << 10
	maxArrows   = 500
	maxLabels   = 1000
	// maxParse is about how long the parser may take.
	maxParse = 2 * time.Second
	// maxHeight bounds how deep the parts of a function are nested: the compiler is
	// recursive too.
	maxHeight = 1000
	// maxPatternBytes is the longest regular expression.
	maxPatternBytes = 4 << 10
)

var (
	// ErrTime: the call took too long, or all calls in the sandbox together did.
	ErrTime = errors.New("the function took too long")
	// ErrMemory: the memory in use grew too much during the call.
	ErrMemory = errors.New("the function used too much memory")
	// ErrDepth: the function called itself too often.
	ErrDepth = errors.New("the function's calls were nested too deep")
	// ErrResult: the result is too large, or nested too deep.
	ErrResult = errors.New("the function's result was too large")
)

// CompileError says why a text is not a function that can be called.
type CompileError struct {
	Reason string
}

func (e *CompileError) Error() string { return e.Reason }

// ThrownError is an exception that a function did not catch.
type ThrownError struct {
	Text string // like "TypeError: x is not a function"
	// Number is what the exception has as that, 0 if it has none; Object that it is
	// more than a text.
	Number int
	Object bool
}

func (e *ThrownError) Error() string { return e.Text }

// Function is a function, compiled. It is immutable, and may be called in many
// sandboxes at once.
type Function struct {
	name    string
	program *goja.Program
}

// Name returns the name that the function was compiled with.
func (f *Function) Name() string { return f.name }

// Compile reads a function: the text is one expression, function(…){…} or an arrow
// function, or a method as it stands in an object, name(…){…}. It runs none of it.
// The error is a *[CompileError].
func Compile(name, body string) (*Function, error) {
	if err := checkText(body); err != nil {
		return nil, err
	}
	// A function may end with a semicolon, though an expression may not.
	text := strings.TrimRight(body, "; \t\r\n")
	tree, err := parse(name, "("+text+"\n)", maxParse)
	if err == nil && !isFunction(tree) {
		err = refused("SyntaxError: the body must be one function")
	}
	if err != nil {
		method, again := parse(name, "({"+text+"\n})", maxParse)
		if again != nil || !isMethod(method) {
			return nil, &CompileError{err.Error()}
		}
		tree = method
	}
	if err := checkTree(tree); err != nil {
		return nil, err
	}
	boundMatching()
	p, err := goja.CompileAST(tree, strict)
	if err != nil {
		return nil, &CompileError{err.Error()}
	}
	return &Function{name, p}, nil
}

// strict is how functions are read, as the service does.
const strict = true

func refused(format string, args ...any) *CompileError {
	return &CompileError{fmt.Sprintf(format, args...)}
}

// checkText looks at the text before the parser does.
func checkText(body string) error {
	if len(body) > MaxBodyBytes {
		return refused("the body has more than %d bytes", MaxBodyBytes)
	}
	if !utf8.ValidString(body) {
		return refused("SyntaxError: the body is not valid UTF-8")
	}
	brackets, arrows, labels := 0, 0, 0
	for i := 1; i < len(body); i++ {
		switch body[i] {
		case '(', '[', '{':
			brackets++
		case '>':
			if body[i-1] == '=' {
				arrows++
			}
		case ':':
			// What a colon follows so closely is no label, wherever it stands.
			if !strings.ContainsRune("\"'`])", rune(body[i-1])) {
				labels++
			}
		}
	}
	switch {
	case brackets > maxBrackets:
		return refused("the body has more than %d brackets", maxBrackets)
	case arrows > maxArrows:
		return refused("the body has more than %d arrows", maxArrows)
	case labels > maxLabels:
		return refused("the body has more than %d names before colons: quote those of properties", maxLabels)
	}
	return nil
}

// isFunction reports whether a program is one function, and no text that ends the
// brackets around it and goes on.
func isFunction(tree *ast.Program) bool {
	switch onlyExpression(tree).(type) {
	case *ast.FunctionLiteral, *ast.ArrowFunctionLiteral:
		return true
	}
	return false
}

// isMethod reports whether a program is an object with one method.
func isMethod(tree *ast.Program) bool {
	o, ok := onlyExpression(tree).(*ast.ObjectLiteral)
	if !ok || len(o.Value) != 1 {
		return false
	}
	method, ok := o.Value[0].(*ast.PropertyKeyed)
	return ok && method.Kind == ast.PropertyKindMethod && !method.Computed
}

// onlyExpression returns the expression that a program is, nil if it is more.
func onlyExpression(tree *ast.Program) ast.Expression {
	if len(tree.Body) != 1 {
		return nil
	}
	statement, ok := tree.Body[0].(*ast.ExpressionStatement)
	if !ok {
		return nil
	}
	return statement.Expression
}
