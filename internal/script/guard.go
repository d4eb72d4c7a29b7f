// SPDX-License-Identifier: MIT

// What is taken away from the language, and what is put in place of builtins whose
// work has no bound of its own.
//
// The runtime's interrupt stops JavaScript, and no builtin, for those are Go. So:
//
//  1. No code is made of text, and nothing is left whose arithmetic, size or
//     behaviour cannot be bounded: big integers, binary buffers, proxies.
//  2. A builtin that can be called over and over by another one, or that goes over
//     something whose length the function can choose, begins with [machine.enter].
//  3. A builtin that makes a text or an array larger than what it was given bounds
//     what it makes.
//
// The builtins as they were are reachable from Go alone.

package script

import (
	"slices"
	"strconv"
	"time"

	"github.com/dop251/goja"
)

const (
	// maxNested bounds builtins that call each other, as toString of an array does
	// for the arrays in it.
	maxNested = 500
	// maxPrototypes bounds the search for an inherited length.
	maxPrototypes = 100
)

// native is a builtin.
type native = func(goja.FunctionCall) goja.Value

// absent are the globals that are no part of the language of 2015, or that have no
// bounds.
var absent = []string{
	"eval", "GoError", "Proxy", "BigInt", "WeakRef", "FinalizationRegistry", "Atomics",
	"ArrayBuffer", "SharedArrayBuffer", "DataView", "BigInt64Array", "BigUint64Array",
	"Int8Array", "Uint8Array", "Uint8ClampedArray", "Int16Array", "Uint16Array", "Int32Array", "Uint32Array",
	"Float32Array", "Float64Array",
}

func newMachine(o *Options) *machine {
	r := goja.New()
	r.SetMaxCallStackSize(maxCallDepth)
	r.SetTimeSource(func() time.Time { return time.UnixMilli(o.NowMs) })
	if o.Random != nil {
		r.SetRandSource(o.Random)
	}
	m := &machine{
		Runtime: r, limits: o.limits, watch: newWatch(r, o.CallTime, o.limits.growth), functions: map[*Function]goja.Callable{}, undefined: goja.Undefined(),
	}
	for _, name := range absent {
		must(r.GlobalObject().Delete(name))
	}
	m.rangeErrors = m.object("RangeError")
	m.descriptor = nativeOf(m.object("Object").Get("getOwnPropertyDescriptor"))
	m.refuseCodeFromText()
	m.guardLists()
	m.guardCalls()
	m.guardText()
	m.guardPatterns()
	m.guardJSON()
	return m
}

// must is for what cannot fail in a runtime that nobody has used yet.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// object returns a global that is an object.
func (m *machine) object(name string) *goja.Object { return m.GlobalObject().Get(name).(*goja.Object) }

// prototype returns the prototype of what a global constructor makes.
func (m *machine) prototype(name string) *goja.Object {
	return m.object(name).Get("prototype").(*goja.Object)
}

func nativeOf(v goja.Value) native { return v.Export().(native) }

// callable returns what a value does when it is called, if it can be.
func callable(v goja.Value) (native, bool) {
	if _, ok := goja.AssertFunction(v); !ok {
		return nil, false
	}
	f, ok := v.Export().(native)
	return f, ok
}

// put defines a builtin method.
func (m *machine) put(o *goja.Object, name string, arity int, f native) *goja.Object {
	v := m.ToValue(f).(*goja.Object)
	must(v.DefineDataProperty("name", m.ToValue(name), goja.FLAG_FALSE, goja.FLAG_TRUE, goja.FLAG_FALSE))
	must(v.DefineDataProperty("length", m.ToValue(arity), goja.FLAG_FALSE, goja.FLAG_TRUE, goja.FLAG_FALSE))
	must(o.DefineDataProperty(name, v, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE))
	return v
}

// wrap puts a builtin in place of another, which it is given.
func (m *machine) wrap(o *goja.Object, name string, f func(call goja.FunctionCall, original native) goja.Value) {
	was := o.Get(name)
	original := nativeOf(was)
	m.put(o, name, int(was.(*goja.Object).Get("length").ToInteger()), func(call goja.FunctionCall) goja.Value {
		defer m.enter()()
		return f(call, original)
	})
}

// enter begins a builtin: it ends here if the call was stopped, and if too many are
// under way within each other. The caller calls what it returns at its end.
func (m *machine) enter() (leave func()) {
	m.checkStopped()
	if m.nested >= maxNested {
		panic(m.rangeError("Maximum call stack size exceeded"))
	}
	m.nested++
	return m.leave
}

func (m *machine) leave() { m.nested-- }

// checkStopped ends a builtin if the call was stopped.
func (m *machine) checkStopped() {
	if m.watch.stopped.Load() {
		panic(&goja.InterruptedError{})
	}
}

func (m *machine) rangeError(text string) *goja.Object {
	e, err := m.New(m.rangeErrors, m.ToValue(text))
	must(err)
	return e
}

// refuseCodeFromText replaces the constructors of functions, which compile text.
func (m *machine) refuseCodeFromText() {
	kinds := []string{"(function(){})", "(function*(){})", "(async function(){})"}
	for i, source := range kinds {
		v, err := m.RunString(source)
		must(err)
		proto := v.(*goja.Object).Prototype()
		constructor := m.ToValue(func(goja.ConstructorCall) *goja.Object {
			panic(m.NewTypeError("functions cannot be made of text here"))
		}).(*goja.Object)
		must(constructor.DefineDataProperty("prototype", proto, goja.FLAG_FALSE, goja.FLAG_FALSE, goja.FLAG_FALSE))
		must(proto.DefineDataProperty("constructor", constructor, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE))
		if i == 0 {
			must(m.GlobalObject().DefineDataProperty("Function", constructor, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE))
		}
	}
}

// lengthOf returns the length that a builtin will find. It must find the same: a
// length that is computed, and may be another one next time, is refused.
func (m *machine) lengthOf(v goja.Value) int {
	if s, ok := v.(goja.String); ok {
		return s.Length()
	}
	o, ok := v.(*goja.Object)
	if !ok {
		return 0
	}
	var length goja.Value
	if o.ClassName() == "Array" {
		length = o.Get("length")
	} else {
		length = m.plainLength(o)
	}
	if _, ok := length.(*goja.Object); ok {
		panic(m.NewTypeError("the length of a list must be a number"))
	}
	if length == nil {
		return 0
	}
	n := length.ToInteger()
	if n > int64(m.limits.elements) {
		panic(m.rangeError("Invalid array length"))
	}
	return int(max(n, 0))
}

// plainLength returns the length of an object that is no array.
func (m *machine) plainLength(o *goja.Object) goja.Value {
	name := m.ToValue("length")
	for range maxPrototypes {
		d, found := m.descriptor(goja.FunctionCall{This: m.undefined, Arguments: []goja.Value{o, name}}).(*goja.Object)
		if found {
			if !slices.Contains(d.Keys(), "value") {
				panic(m.NewTypeError("the length of a list must not be computed"))
			}
			return d.Get("value")
		}
		if o = o.Prototype(); o == nil {
			return nil
		}
	}
	panic(m.rangeError("too many prototypes"))
}

// guardLists bounds what arrays, and what is used like them, are put through.
func (m *machine) guardLists() {
	proto := m.prototype("Array")
	for _, name := range proto.GetOwnPropertyNames() {
		switch name {
		case "constructor", "length", "join", "flat", "toString", "keys", "values", "entries":
			continue
		}
		m.wrap(proto, name, func(call goja.FunctionCall, original native) goja.Value {
			n := m.lengthOf(call.This)
			if name == "concat" {
				m.checkConcat(n, call.Arguments)
			}
			return original(call)
		})
	}
	m.put(proto, "join", 1, m.join)
	m.put(proto, "flat", 0, m.flat)
	m.wrap(m.object("Array"), "from", func(call goja.FunctionCall, original native) goja.Value {
		m.lengthOf(call.Argument(0))
		return original(call)
	})
	// What goes over an array by itself, like [...a], asks its iterator for each
	// element.
	v, err := m.RunString("Object.getPrototypeOf([][Symbol.iterator]())")
	must(err)
	m.wrap(v.(*goja.Object), "next", func(call goja.FunctionCall, original native) goja.Value { return original(call) })
}

func (m *machine) checkConcat(n int, args []goja.Value) {
	for _, arg := range args {
		n += max(1, m.lengthOf(arg))
		if n > m.limits.elements {
			panic(m.rangeError("Invalid array length"))
		}
	}
}

// join is Array.prototype.join, and what toString calls.
func (m *machine) join(call goja.FunctionCall) goja.Value {
	defer m.enter()()
	o := call.This.ToObject(m.Runtime)
	if slices.Contains(m.joining, o) {
		return m.ToValue("") // an array in itself is empty, as in other engines
	}
	m.joining = append(m.joining, o)
	defer func() { m.joining = m.joining[:len(m.joining)-1] }()
	n := m.lengthOf(o)
	separator := m.ToValue(",").(goja.String)
	if s := call.Argument(0); !goja.IsUndefined(s) {
		separator = m.chars(s)
	}
	t := text{m: m}
	for i := range n {
		if i > 0 {
			t.add(separator)
		}
		if v := element(o, i); !goja.IsUndefined(v) && !goja.IsNull(v) {
			t.add(m.chars(v))
		}
	}
	return t.b.String()
}

// element returns an element of an array, undefined if there is none.
func element(o *goja.Object, i int) goja.Value {
	if v := o.Get(strconv.Itoa(i)); v != nil {
		return v
	}
	return goja.Undefined()
}

// flat is Array.prototype.flat.
func (m *machine) flat(call goja.FunctionCall) goja.Value {
	defer m.enter()()
	levels := int64(1)
	if v := call.Argument(0); !goja.IsUndefined(v) {
		levels = v.ToInteger()
	}
	var all []any
	var add func(o *goja.Object, level int64)
	add = func(o *goja.Object, level int64) {
		defer m.enter()()
		for i := range m.lengthOf(o) {
			m.checkStopped()
			v := o.Get(strconv.Itoa(i))
			inner, ok := v.(*goja.Object)
			switch {
			case v == nil: // a hole
			case ok && level > 0 && inner.ClassName() == "Array":
				add(inner, level-1)
			default:
				all = append(all, v)
			}
			if len(all) > m.limits.elements {
				panic(m.rangeError("Invalid array length"))
			}
		}
	}
	add(call.This.ToObject(m.Runtime), levels)
	return m.NewArray(all...)
}

// guardCalls bounds how many arguments a list can become.
func (m *machine) guardCalls() {
	at := func(i int) func(goja.FunctionCall, native) goja.Value {
		return func(call goja.FunctionCall, original native) goja.Value {
			m.lengthOf(call.Argument(i))
			return original(call)
		}
	}
	m.wrap(m.prototype("Function"), "apply", at(1))
	m.wrap(m.object("Reflect"), "apply", at(2))
	m.wrap(m.object("Reflect"), "construct", at(1))
}
