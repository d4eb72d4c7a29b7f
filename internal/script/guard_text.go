// SPDX-License-Identifier: MIT

// Texts and regular expressions.

package script

import (
	"slices"
	"strings"
	"sync"

	"github.com/dlclark/regexp2/v2"
	"github.com/dop251/goja"
)

// text is a text in the making.
type text struct {
	m *machine
	b goja.StringBuilder
	n int
}

func (t *text) add(s goja.String) {
	t.m.checkStopped()
	t.n += s.Length()
	t.m.checkChars(t.n)
	t.b.WriteString(s)
}

func (m *machine) checkChars(n int) {
	if n > m.limits.chars {
		panic(m.rangeError("Invalid string length"))
	}
}

// chars turns a value into a text that is not too long.
func (m *machine) chars(v goja.Value) goja.String {
	if _, ok := v.(*goja.Symbol); ok {
		panic(m.NewTypeError("Cannot convert a Symbol value to a string"))
	}
	s, ok := v.ToString().(goja.String)
	if !ok { // a number stays what it is
		s = m.ToValue(v.String()).(goja.String)
	}
	m.checkChars(s.Length())
	return s
}

// guardText bounds the methods of strings. What is not a string is made one first,
// so that it cannot become another one later.
func (m *machine) guardText() {
	proto := m.prototype("String")
	for _, name := range proto.GetOwnPropertyNames() {
		switch name {
		case "constructor", "length", "toString", "valueOf":
			continue
		}
		check := m.textCheck(name)
		m.wrap(proto, name, func(call goja.FunctionCall, original native) goja.Value {
			if goja.IsUndefined(call.This) || goja.IsNull(call.This) {
				return original(call) // which refuses it
			}
			this := m.chars(call.This)
			args := slices.Clone(call.Arguments)
			for _, arg := range args {
				if s, ok := arg.(goja.String); ok {
					m.checkChars(s.Length())
				}
			}
			if check != nil {
				check(this, args)
			}
			return original(goja.FunctionCall{This: this, Arguments: args})
		})
	}
	m.put(m.object("String"), "raw", 1, m.raw)
}

// textCheck returns what is checked, or changed, of the arguments of a method.
func (m *machine) textCheck(name string) func(this goja.String, args []goja.Value) {
	switch name {
	case "repeat":
		return func(this goja.String, args []goja.Value) {
			if n := m.integer(args, 0); n > 0 && this.Length() > 0 {
				m.checkChars(int(min(n, int64(m.limits.chars)+1)) * this.Length())
			}
		}
	case "padStart", "padEnd":
		return func(_ goja.String, args []goja.Value) {
			m.checkChars(int(min(m.integer(args, 0), int64(m.limits.chars)+1)))
		}
	case "concat":
		return func(this goja.String, args []goja.Value) {
			n := this.Length()
			for i := range args {
				s := m.chars(args[i])
				args[i] = s
				n += s.Length()
				m.checkChars(n)
			}
		}
	case "match", "matchAll", "search":
		return func(_ goja.String, args []goja.Value) { m.pattern(args) }
	case "replace", "replaceAll":
		return func(_ goja.String, args []goja.Value) {
			if len(args) < 2 || isObject(args[0]) {
				return // a regular expression does it
			}
			search := m.chars(args[0])
			args[0] = search
			if search.Length() == 0 && name == "replaceAll" {
				args[0] = m.everywhere() // the builtin would find no end
				return
			}
			args[1] = m.replacement(args[1])
		}
	}
	return nil
}

// everywhere returns a regular expression that matches between any two characters.
func (m *machine) everywhere() goja.Value {
	r, err := m.New(m.patterns, m.ToValue("(?:)"), m.ToValue("g"))
	must(err)
	return r
}

// integer converts an argument for good and returns it.
func (m *machine) integer(args []goja.Value, i int) int64 {
	if i >= len(args) {
		return 0
	}
	args[i] = args[i].ToNumber()
	return args[i].ToInteger()
}

func isObject(v goja.Value) bool {
	_, ok := v.(*goja.Object)
	return ok
}

// raw is String.raw.
func (m *machine) raw(call goja.FunctionCall) goja.Value {
	defer m.enter()()
	parts := call.Argument(0).ToObject(m.Runtime).Get("raw")
	if parts == nil {
		parts = m.undefined
	}
	o := parts.ToObject(m.Runtime)
	t := text{m: m}
	n := m.lengthOf(o)
	for i := range n {
		t.add(m.chars(element(o, i)))
		if i < n-1 && i+1 < len(call.Arguments) {
			t.add(m.chars(call.Arguments[i+1]))
		}
	}
	return t.b.String()
}

// boundMatching makes regular expressions that go back and forth give up. The
// library has one setting for all, which an expression takes over when it is made:
// with the function that has it, or while that runs.
var boundMatching = sync.OnceFunc(func() { regexp2.DefaultMatchTimeout = maxCallTime })

// guardPatterns bounds regular expressions. Since exec is not the builtin any more,
// all methods ask it for one match after the other, as the language says.
func (m *machine) guardPatterns() {
	boundMatching()
	original := m.object("RegExp")
	m.patterns = original
	proto := m.prototype("RegExp")
	construct := nativeOf(m.object("Reflect").Get("construct"))
	constructor := m.ToValue(func(call goja.ConstructorCall) *goja.Object {
		defer m.enter()()
		args := slices.Clone(call.Arguments)
		m.pattern(args)
		target := goja.Value(original)
		if call.NewTarget != nil {
			target = call.NewTarget
		}
		list := make([]any, len(args))
		for i := range args {
			list[i] = args[i]
		}
		return construct(goja.FunctionCall{This: m.undefined, Arguments: []goja.Value{original, m.NewArray(list...), target}}).(*goja.Object)
	}).(*goja.Object)
	must(constructor.DefineDataProperty("prototype", proto, goja.FLAG_FALSE, goja.FLAG_FALSE, goja.FLAG_FALSE))
	must(constructor.DefineDataProperty("name", m.ToValue("RegExp"), goja.FLAG_FALSE, goja.FLAG_TRUE, goja.FLAG_FALSE))
	must(proto.DefineDataProperty("constructor", constructor, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE))
	must(m.GlobalObject().DefineDataProperty("RegExp", constructor, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE))
	must(proto.Delete("compile"))
	m.wrap(proto, "exec", func(call goja.FunctionCall, original native) goja.Value {
		return original(goja.FunctionCall{This: call.This, Arguments: []goja.Value{m.chars(call.Argument(0))}})
	})
	replace := nativeOf(proto.GetSymbol(goja.SymReplace))
	must(proto.DefineDataPropertySymbol(goja.SymReplace, m.ToValue(func(call goja.FunctionCall) goja.Value {
		defer m.enter()()
		with := m.replacement(call.Argument(1))
		return replace(goja.FunctionCall{This: call.This, Arguments: []goja.Value{m.chars(call.Argument(0)), with}})
	}), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE))
}

// pattern converts and checks the first argument, if it is to become a regular
// expression.
func (m *machine) pattern(args []goja.Value) {
	if len(args) == 0 || goja.IsUndefined(args[0]) {
		return
	}
	if o, ok := args[0].(*goja.Object); ok && o.ClassName() == "RegExp" {
		return
	}
	s := m.chars(args[0])
	if s.Length() > maxPatternBytes {
		panic(m.rangeError("Invalid regular expression: it is too long"))
	}
	args[0] = s
}

// replacement returns a function that replaces matches as v does, a function or a
// text with places like $1, and bounds what they become together.
func (m *machine) replacement(v goja.Value) goja.Value {
	total := 0
	count := func(s goja.String) goja.Value {
		total += s.Length()
		m.checkChars(total)
		return s
	}
	if f, ok := callable(v); ok {
		return m.ToValue(func(call goja.FunctionCall) goja.Value {
			defer m.enter()()
			return count(m.chars(f(call)))
		})
	}
	template := m.chars(v)
	if !strings.Contains(template.String(), "$") {
		return m.ToValue(func(goja.FunctionCall) goja.Value {
			m.checkStopped()
			return count(template)
		})
	}
	return m.ToValue(func(call goja.FunctionCall) goja.Value {
		return count(m.substitute(template, call.Arguments))
	})
}
