// SPDX-License-Identifier: MIT

// JSON: how results leave, and what functions see as JSON.parse and JSON.stringify.
// The builtin writer would follow shared parts of a value as often as they are
// reached, which a function of a few lines makes a billion times.

package script

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dop251/goja"

	"github.com/mayflydb/mayfly/internal/value"
)

const (
	// maxResultBytes is the longest result.
	maxResultBytes = 4 << 20
	// maxIndent is how much the language indents at most.
	maxIndent = 10
)

// encode writes a result; nothing if it is undefined.
func (m *machine) encode(v goja.Value) ([]byte, error) {
	w := writer{m: m, maxBytes: maxResultBytes, maxDepth: value.MaxNesting}
	holder := m.NewObject()
	if !w.value(holder, "", v) {
		return nil, nil
	}
	if w.overflow {
		return nil, ErrResult
	}
	return w.dst, nil
}

func (m *machine) guardJSON() {
	o := m.object("JSON")
	m.parse = nativeOf(o.Get("parse"))
	m.wrap(o, "parse", func(call goja.FunctionCall, original native) goja.Value {
		s := m.chars(call.Argument(0))
		if tooDeep(s.String()) {
			panic(m.rangeError("JSON is nested too deep"))
		}
		return original(goja.FunctionCall{This: call.This, Arguments: []goja.Value{s, call.Argument(1)}})
	})
	m.wrap(o, "stringify", func(call goja.FunctionCall, _ native) goja.Value { return m.stringify(call) })
}

// tooDeep reports whether arrays and objects are nested deeper than maxNested.
func tooDeep(text string) bool {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			if depth++; depth > maxNested {
				return true
			}
		case c == ']' || c == '}':
			depth--
		}
	}
	return false
}

func (m *machine) stringify(call goja.FunctionCall) goja.Value {
	w := writer{m: m, maxBytes: m.limits.chars, maxDepth: maxNested, gap: gapOf(call.Argument(2))}
	if o, ok := call.Argument(1).(*goja.Object); ok {
		if f, ok := callable(o); ok {
			w.replacer = f
		} else if o.ClassName() == "Array" {
			w.only = m.names(o)
		}
	}
	holder := m.NewObject()
	must(holder.DefineDataProperty("", call.Argument(0), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_TRUE))
	written := w.value(holder, "", call.Argument(0))
	switch {
	case w.overflow:
		panic(m.rangeError("Invalid string length"))
	case !written:
		return m.undefined
	}
	return m.ToValue(string(w.dst))
}

// names reads the list of the properties that JSON.stringify is to write.
func (m *machine) names(o *goja.Object) []string {
	names := []string{}
	for i := range m.lengthOf(o) {
		v := element(o, i)
		if o, ok := v.(*goja.Object); ok && o.ClassName() != "String" && o.ClassName() != "Number" {
			continue
		}
		if name := v.String(); !goja.IsUndefined(v) && !goja.IsNull(v) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// gapOf reads how JSON.stringify is to indent.
func gapOf(v goja.Value) string {
	if o, ok := v.(*goja.Object); ok {
		switch o.ClassName() {
		case "Number":
			v = o.ToNumber()
		case "String":
			v = o.ToString()
		default:
			return ""
		}
	}
	switch x := v.Export().(type) {
	case int64:
		return strings.Repeat(" ", int(max(0, min(x, maxIndent))))
	case float64:
		return strings.Repeat(" ", int(max(0, min(x, maxIndent))))
	case string:
		if r := []rune(x); len(r) > maxIndent {
			return string(r[:maxIndent])
		}
		return x
	}
	return ""
}

// writer writes a value as JSON.
type writer struct {
	m                  *machine
	maxBytes, maxDepth int
	replacer           native
	only               []string // the properties to be written; nil for all
	gap, indent        string

	dst      []byte
	within   []*goja.Object
	overflow bool // it is too long, or too deep
}

// value writes a property's value, and reports false for one that JSON leaves out.
func (w *writer) value(holder *goja.Object, name string, v goja.Value) bool {
	w.m.checkStopped()
	if w.overflow {
		return true
	}
	if o, ok := v.(*goja.Object); ok {
		if f, ok := callable(o.Get("toJSON")); ok {
			v = f(goja.FunctionCall{This: o, Arguments: []goja.Value{w.m.ToValue(name)}})
		}
	}
	if w.replacer != nil {
		v = w.replacer(goja.FunctionCall{This: holder, Arguments: []goja.Value{w.m.ToValue(name), v}})
	}
	if o, ok := v.(*goja.Object); ok {
		return w.object(o)
	}
	return w.scalar(v)
}

func (w *writer) scalar(v goja.Value) bool {
	switch {
	case v == nil || goja.IsUndefined(v):
		return false
	case goja.IsNull(v):
		w.add("null")
		return true
	}
	switch x := v.(type) {
	case goja.String:
		if w.overflow = len(w.dst)+x.Length() > w.maxBytes; !w.overflow {
			w.add(string(value.AppendString(nil, x.String())))
		}
		return true
	case *goja.Symbol:
		return false
	}
	switch x := v.Export().(type) {
	case bool:
		w.add(strconv.FormatBool(x))
	case float64:
		if math.IsNaN(x) || math.IsInf(x, 0) {
			w.add("null")
		} else {
			w.add(v.String())
		}
	default:
		w.add(v.String()) // an integer
	}
	return true
}

func (w *writer) add(s string) {
	w.dst = append(w.dst, s...)
	w.overflow = w.overflow || len(w.dst) > w.maxBytes
}

func (w *writer) object(o *goja.Object) bool {
	switch o.ClassName() {
	case "Number":
		return w.scalar(o.ToNumber())
	case "String":
		return w.scalar(o.ToString())
	case "Boolean":
		b, _ := o.Export().(bool)
		return w.scalar(w.m.ToValue(b))
	}
	if _, ok := goja.AssertFunction(o); ok {
		return false
	}
	if slices.Contains(w.within, o) {
		panic(w.m.NewTypeError("Converting circular structure to JSON"))
	}
	if len(w.within) >= w.maxDepth {
		w.overflow = true
		return true
	}
	outer := w.indent
	w.within = append(w.within, o)
	w.indent += w.gap
	if o.ClassName() == "Array" {
		w.array(o, outer)
	} else {
		w.members(o, outer)
	}
	w.within = w.within[:len(w.within)-1]
	w.indent = outer
	return true
}

func (w *writer) array(o *goja.Object, outer string) {
	w.add("[")
	n := w.m.lengthOf(o)
	for i := range n {
		w.next(i)
		if !w.value(o, strconv.Itoa(i), element(o, i)) {
			w.add("null")
		}
	}
	w.close(n, outer, "]")
}

func (w *writer) members(o *goja.Object, outer string) {
	names := w.only
	if names == nil {
		names = o.Keys()
	}
	w.add("{")
	n := 0
	for _, name := range names {
		v := o.Get(name)
		if v == nil {
			continue
		}
		start := len(w.dst)
		w.next(n)
		w.dst = append(value.AppendString(w.dst, name), ':')
		if w.gap != "" {
			w.dst = append(w.dst, ' ')
		}
		if !w.value(o, name, v) {
			w.dst = w.dst[:start]
			continue
		}
		n++
	}
	w.close(n, outer, "}")
}

// next begins the i-th element or member.
func (w *writer) next(i int) {
	if i > 0 {
		w.add(",")
	}
	if w.gap != "" {
		w.add("\n" + w.indent)
	}
}

func (w *writer) close(n int, outer, bracket string) {
	if n > 0 && w.gap != "" {
		w.add("\n" + outer)
	}
	w.add(bracket)
}
