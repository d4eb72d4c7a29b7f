// SPDX-License-Identifier: MIT

// Compiling and calling JavaScript in a worker.

package script

import (
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/dop251/goja"
	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/parser"

	"github.com/mayflydb/mayfly/internal/value"
)

const (
	// maxCallDepth bounds nested calls, as in other engines. Unwinding nested calls that go
	// through builtins and getters takes time quadratic in their number: the limit of time
	// ends those.
	maxCallDepth = 10_000
	// strict says that functions are compiled in strict mode, as in the service.
	strict = true
)

//go:embed errors.js
var errorsText string

var numberedErrors = sync.OnceValue(func() *goja.Program { return goja.MustCompile("errors.js", errorsText, strict) })

// function returns a function that the server has defined, and compiles it if that is needed.
func (w *worker) function(n uint64) (*goja.Program, error) {
	c := w.functions[n]
	if c == nil {
		c = &compiled{}
		c.program, c.err = compile(w.texts[n])
		w.functions[n] = c
	}
	return c.program, c.err
}

// compile compiles a function without running it. The parser panics on some incomplete texts,
// like function([.
func compile(f Function) (program *goja.Program, err error) {
	defer func() {
		if p := recover(); p != nil {
			program, err = nil, &CompileError{value.Clip(fmt.Sprintf("SyntaxError: the parser gave up: %v", p))}
		}
	}()
	// A function may end with a semicolon, though an expression may not.
	text := strings.TrimRight(f.Text, "; \t\r\n")
	tree, err := parse(f.Name, "("+text+"\n)")
	if err == nil && !isFunction(tree) {
		err = errors.New("SyntaxError: the body must be one function")
	}
	if err != nil {
		method, again := parse(f.Name, "({"+text+"\n})")
		if again != nil || !isMethod(method) {
			return nil, &CompileError{err.Error()}
		}
		tree = method
	}
	if program, err = goja.CompileAST(tree, strict); err != nil {
		return nil, &CompileError{err.Error()}
	}
	return program, nil
}

// parse parses a text. Source maps are off: the parser would read them from any file that the
// text names.
func parse(name, text string) (*ast.Program, error) {
	return goja.Parse(name, text, parser.WithDisableSourceMaps)
}

// isFunction reports whether a program is one function, and not a text that closes the
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

// onlyExpression returns the expression that a program consists of, nil if there is more.
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

// machine is a JavaScript runtime, with the functions that were called in it.
type machine struct {
	*goja.Runtime
	w         *worker
	functions map[uint64]goja.Callable
	numbered  bool // Error takes a number
	// JSON.parse and JSON.stringify, as they were before any script.
	parse, stringify goja.Callable
}

func newMachine(w *worker, nowMs int64) *machine {
	r := goja.New()
	r.SetMaxCallStackSize(maxCallDepth)
	r.SetParserOptions(parser.WithDisableSourceMaps) // for eval
	began := time.Now()
	r.SetTimeSource(func() time.Time { return time.UnixMilli(nowMs).Add(time.Since(began)) })
	must(r.GlobalObject().Delete("GoError")) // it is not part of the language
	json := r.GlobalObject().Get("JSON").(*goja.Object)
	m := &machine{Runtime: r, w: w, functions: map[uint64]goja.Callable{}}
	m.parse, _ = goja.AssertFunction(json.Get("parse"))
	m.stringify, _ = goja.AssertFunction(json.Get("stringify"))
	return m
}

// numberErrors makes Error accept a number. That takes 10 µs, so it is done only for functions
// that may need it.
func (m *machine) numberErrors() error {
	if m.numbered {
		return nil
	}
	m.numbered = true
	_, err := m.RunProgram(numberedErrors())
	return err
}

// must panics on an error that is impossible in a new runtime.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// protect calls do, and turns a panic of the runtime into an error.
func (m *machine) protect(do func() error) (err error) {
	defer func() {
		var deep *goja.StackOverflowError
		if p := recover(); p != nil {
			err = &ThrownError{Text: value.Clip(fmt.Sprintf("InternalError: %v", p))}
		} else if errors.As(err, &deep) {
			err = ErrDepth
		}
	}()
	return do()
}

// call calls a function and returns its result as JSON, nil if it is undefined.
func (m *machine) call(function uint64, args [][]byte) ([]byte, error) {
	v, err := m.invoke(function, args)
	if err != nil {
		return nil, err
	}
	return m.encode(v)
}

// invoke calls a function.
func (m *machine) invoke(function uint64, args [][]byte) (goja.Value, error) {
	callee := m.functions[function]
	if callee == nil {
		program, err := m.w.function(function)
		if err != nil {
			return nil, err
		}
		if strings.Contains(m.w.texts[function].Text, "Error") {
			if err := m.numberErrors(); err != nil {
				return nil, m.thrown(err)
			}
		}
		v, err := m.RunProgram(program)
		if err != nil {
			return nil, err
		}
		if callee, _ = goja.AssertFunction(v); callee == nil { // it is an object with one method
			o := v.(*goja.Object)
			callee, _ = goja.AssertFunction(o.Get(o.Keys()[0]))
		}
		m.functions[function] = callee
	}
	values := make([]goja.Value, len(args))
	for i, raw := range args {
		v, err := m.decode(raw)
		if err != nil {
			return nil, m.thrown(err)
		}
		values[i] = v
	}
	v, err := callee(goja.Undefined(), values...)
	if err != nil {
		return nil, m.thrown(err)
	}
	return v, nil
}

// decode converts JSON into an argument; nothing is undefined.
func (m *machine) decode(raw []byte) (goja.Value, error) {
	if len(raw) == 0 {
		return goja.Undefined(), nil
	}
	switch raw[0] {
	case '{', '[':
		return m.parse(goja.Undefined(), m.ToValue(string(raw)))
	}
	v, _ := value.FromJSON(raw)
	switch v.Kind() {
	case value.KindBool:
		b, _ := v.Bool()
		return m.ToValue(b), nil
	case value.KindNumber:
		f, _ := v.Number()
		return m.ToValue(f), nil
	case value.KindString:
		text, _ := v.Text()
		return m.ToValue(text), nil
	}
	return goja.Null(), nil
}

// encode returns a result as JSON, nil if it is undefined.
func (m *machine) encode(v goja.Value) ([]byte, error) {
	if s, ok := v.(goja.String); ok {
		if s.Length() > maxResultBytes {
			return nil, ErrResult
		}
		return bounded(value.AppendString(nil, s.String()))
	}
	v, err := m.stringify(goja.Undefined(), v)
	if err != nil {
		return nil, m.thrown(err)
	}
	s, ok := v.(goja.String)
	if !ok {
		return nil, nil
	}
	if s.Length() > maxResultBytes {
		return nil, ErrResult
	}
	return bounded(wellFormed(s.String()))
}

func bounded(raw []byte) ([]byte, error) {
	if len(raw) > maxResultBytes {
		return nil, ErrResult
	}
	return raw, nil
}

// wellFormed replaces escapes of unpaired surrogates by U+FFFD.
func wellFormed(json string) []byte {
	dst := make([]byte, 0, len(json))
	for {
		i := strings.IndexByte(json, '\\')
		if i < 0 {
			return append(dst, json...)
		}
		dst = append(dst, json[:i]...)
		json = json[i:]
		n := min(len(`\n`), len(json))
		if half := escaped(json); utf16.IsSurrogate(half) {
			n = len(`\ud800`)
			if utf16.DecodeRune(half, escaped(json[n:])) == utf8.RuneError {
				dst = append(dst, "\uFFFD"...)
				json = json[n:]
				continue
			}
			n *= 2
		}
		dst = append(dst, json[:n]...)
		json = json[n:]
	}
}

// escaped returns the value of an escape like \u0000 at the beginning of a text, 0 if there is
// none.
func escaped(json string) rune {
	const digits = 4
	hex, ok := strings.CutPrefix(json, `\u`)
	if !ok || len(hex) < digits {
		return 0
	}
	r, err := strconv.ParseUint(hex[:digits], 16, 16)
	if err != nil {
		return 0
	}
	return rune(r)
}

// thrown turns an exception into a ThrownError. The function may have thrown any value, whose
// text is made by the function's own code.
func (m *machine) thrown(err error) error {
	var e *goja.Exception
	if !errors.As(err, &e) {
		return err
	}
	thrown := &ThrownError{Text: "an exception without text"}
	_ = m.Try(func() { // making the text may throw again: then the text above stays
		v := e.Value()
		o, isObject := v.(*goja.Object)
		thrown.Object = isObject
		thrown.Text = v.String()
		if len(thrown.Text) > maxThrownBytes {
			thrown.Text = value.Clip(thrown.Text)
		}
		if isObject {
			if n := o.Get("number"); n != nil {
				thrown.Number = int(n.ToInteger())
			}
		}
	})
	return thrown
}
