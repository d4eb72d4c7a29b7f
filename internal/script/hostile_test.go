// SPDX-License-Identifier: MIT

package script

import (
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dlclark/regexp2/v2"
)

type hostileFunction struct{ name, body, want string }

// hostile are functions that set out to hang the server, to fill its memory, or to
// get at what they should not. Each must end soon; want is part of the error, or
// of the result, or one of several.
var hostile = []hostileFunction{
	{"loop", `for (;;);`, "too long"},
	{"loop that catches", `for (;;) try { for (;;); } catch (e) {}`, "too long"},
	{"loop in finally", `try { for (;;); } finally { for (;;); }`, "too long"},
	{"loop in a promise", `function f() { return Promise.resolve().then(f) } f(); return 1`, "too long"},
	{"loop in a getter", `return {get a() { for (;;); }}`, "too long"},
	{"loop in toJSON", `return {toJSON() { for (;;); }}`, "too long"},
	{"loop in the text of an exception", `throw {toString() { for (;;); }}`, "too long"},
	{"loop in a generator", `return [...(function*() { for (;;) yield 1 })()]`, "too "},
	{"loop in an iterator", `return [...{[Symbol.iterator]() { return {next() { return {value: 1, done: false} }} }}]`, "too "},
	{"loop in a comparison", `return [1,2,3].sort(() => { for (;;); })`, "too long"},

	{"recursion", `(function f() { return f() + 1 })()`, "too deep|too long"},
	{"recursion that catches", `(function f() { try { f() } catch (e) { f() } })(); return 1`, "too deep|too long"},
	{"recursion through a builtin", `(function f() { [1].forEach(f) })()`, ""},
	{"recursion through replace", `(function f() { "a".replace(/a/, f) })()`, ""},
	{"recursion through a getter", `const o = {get a() { return this.a }}; return o.a`, "too deep|too long"},
	{"recursion through toString", `const o = {toString() { return "" + this }}; return "" + o`, "too deep|too long"},
	{"recursion through toJSON", `const o = {toJSON() { return JSON.stringify(this) }}; return o`, ""},
	{"recursion through the constructor", `class A { constructor() { new A } } new A`, "too deep|too long"},

	{"text doubled", `let s = "x"; for (;;) s += s`, "too "},
	{"text repeated", `return "x".repeat(2 ** 30)`, "Invalid string length"},
	{"text repeated by infinity", `return "x".repeat(Infinity)`, "Invalid"},
	{"text repeated, length made up", `let n = 0; return "x".repeat({valueOf() { return n++ ? 2 ** 30 : 1 }})`, `"x"`},
	{"text padded", `return "x".padStart(2 ** 30) + "x".padEnd(2 ** 30, "ab")`, "Invalid string length"},
	{"text joined", `return new Array(2 ** 14).join("x".repeat(16e3))`, "Invalid string length"},
	{"text joined of a huge array", `return Array(2 ** 32 - 1).join("x")`, "Invalid array length"},
	{"text of a huge array", `return "" + new Array(2 ** 32 - 1)`, "Invalid array length"},
	{"text concatenated", `const s = "x".repeat(16e3); return s.concat(...Array(5e4).fill(s))`, "Invalid string length"},
	{"text replaced", `const s = "x".repeat(16e3); return s.replaceAll("x", s)`, "Invalid string length"},
	{"text replaced by a pattern", `const s = "x".repeat(16e3); return s.replace(/x/g, s)`, "Invalid string length|too "},
	{"text replaced by what is before", "return 'x'.repeat(16e3).replace(/x/g, '$`$`$`')", "Invalid string length|too "},
	{"text replaced by what looks ahead", `return "x".repeat(16e3).replace(/(?=(x*))/g, "$1$1")`, ""},
	{"text replaced by a function", `const s = "x".repeat(16e3); return s.replace(/x/g, () => s)`, "Invalid string length|too "},
	{"text, raw", `return String.raw({raw: {length: 2 ** 40}}, "x")`, "Invalid array length"},
	{"JSON of shared parts", `let o = []; for (let i = 0; i < 40; i++) o = [o, o]; return JSON.stringify(o)`, ""},
	{"result of shared parts", `let o = [1]; for (let i = 0; i < 40; i++) o = [o, o]; return o`, "too "},
	{"text of shared parts", `let o = []; for (let i = 0; i < 40; i++) o = [o, o]; return "" + o`, ""},
	{"local text of shared parts", `let o = []; for (let i = 0; i < 40; i++) o = [o, o]; return o.toLocaleString()`, ""},
	{"shared parts made flat", `let o = [1]; for (let i = 0; i < 40; i++) o = [o, o]; return o.flat(Infinity)`, "Invalid array length"},

	{"array pushed to", `const a = []; for (;;) a.push({})`, "too "},
	{"array of arrays", `const a = []; for (;;) a.push(new Array(1000).fill(0))`, "too "},
	{"array filled", `return new Array(2 ** 32 - 1).fill(0)`, "Invalid array length"},
	{"array set long and spread", `const a = []; a.length = 2 ** 32 - 1; return [...a].length`, "too "},
	{"array set long and passed", `const a = []; a.length = 2 ** 31; return Math.max(...a)`, "too "},
	{"array set long and in a set", `const a = []; a.length = 2 ** 32 - 1; return new Set(a).size`, "too "},
	{"array set long and returned", `const a = []; a.length = 2 ** 32 - 1; return a`, "Invalid array length"},
	{"array set long and searched", `const a = []; a.length = 2 ** 32 - 1; return a.indexOf(1)`, "Invalid array length"},
	{"array from a length", `return Array.from({length: 2 ** 53 - 1})`, "Invalid array length"},
	{"what is like an array", `return Array.prototype.indexOf.call({length: 2 ** 53 - 1}, 1)`, "Invalid array length"},
	{"what is like an array by heritage", `return Array.prototype.includes.call(Object.create({length: 2 ** 53 - 1}), 1)`, "Invalid array length"},
	{"what is like an array sometimes", `let n = 0; return Array.prototype.indexOf.call({get length() { return n++ ? 2 ** 53 - 1 : 1 }}, 1)`, "must not be computed"},
	{"what is like an array by its value", `let n = 0; return Array.prototype.reverse.call({length: {valueOf() { return n++ ? 2 ** 53 - 1 : 1 }}})`, "must be a number"},
	{"descriptors made up", `Object.prototype.value = 1; let n = 0; return Array.prototype.indexOf.call({get length() { return n++ ? 2 ** 53 - 1 : 1 }}, 1)`, "must not be computed"},
	{"arguments out of thin air", `return Math.max.apply(null, {length: 2 ** 31})`, "Invalid array length"},
	{"arguments by reflection", `return Reflect.apply(Math.max, null, {length: 2 ** 31}) + Reflect.construct(Array, {length: 2 ** 31})`, "Invalid array length"},
	{"the iterator of arguments", `const it = (function() { return arguments[Symbol.iterator] })(); return [...{[Symbol.iterator]: () => it.call({length: 2 ** 40})}]`, "too "},
	{"arrays joined", `const a = Array(16e3).fill(0); return [].concat(...Array(1000).fill(a))`, "Invalid array length"},
	{"map", `const m = new Map; for (let i = 0; ; i++) m.set(i, [i])`, "too "},
	{"closures", `let f = () => 0; for (;;) { const g = f; f = () => g }`, "too "},

	{"nested arrays as text", `let a = []; for (let i = 0; i < 1e5; i++) a = [a]; return "" + a`, ""},
	{"nested arrays made flat", `let a = []; for (let i = 0; i < 1e4; i++) a = [a]; return a.flat(Infinity)`, "call stack"},
	{"nested arrays as JSON", `let a = []; for (let i = 0; i < 1e4; i++) a = [a]; return JSON.stringify(a)`, "Invalid string length"},
	{"nested arrays as result", `let a = []; for (let i = 0; i < 1e4; i++) a = [a]; return a`, "too large"},
	{"nested JSON", `return JSON.parse("[".repeat(3e4) + "]".repeat(3e4))`, "nested too deep"},
	{"prototypes of prototypes", `let o = {}; for (;;) { o = Object.create(o); o.nothing }`, "too "},
	{"bound functions", `let f = () => 0; for (let i = 0; i < 2000; i++) f = f.bind(); return f()`, ""},
	{"a large result", `return Array(64).fill("x".repeat(1 << 16))`, "too large"},
	{"many large results", `return Array(100).fill("x".repeat(6e4))`, "too large"},

	{"pattern that goes back and forth", `return /^(a+)+\1$/.test("a".repeat(40) + "b")`, "too long"},
	{"pattern that looks ahead", `return /^(?=(a+)+$)x/.test("a".repeat(40) + "b")`, ""},
	{"pattern from an index", `const r = /(a+)+$/g; r.lastIndex = 1; return r.test("a".repeat(40) + "b")`, "too long"},
	{"pattern of brackets", `return new RegExp("(".repeat(3e4) + ")".repeat(3e4))`, "too long"},
	{"pattern by match", `return "x".match("(".repeat(3e4))`, "too long"},
	{"pattern by another's constructor", `return new (/x/.constructor)("(".repeat(3e4))`, "too long"},
	{"pattern with its own exec", `const r = /x/g; r.exec = RegExp.prototype.exec; return "y".repeat(64e3).split(r).length`, ""},
	{"split by a pattern", `return "a".repeat(64e3).split(/b/).length`, ""},

	{"eval", `return eval("1")`, "eval is not defined"},
	{"Function", `return Function("return 1")()`, "cannot be made of text"},
	{"constructor of functions", `return (() => 0).constructor("return 1")()`, "cannot be made of text"},
	{"constructor of generators", `return (function*() {}).constructor("yield 1")`, "cannot be made of text"},
	{"constructor of async functions", `return (async () => 0).constructor("1")`, "cannot be made of text"},
	{"constructor of a builtin", `return [].map.constructor("1")`, "cannot be made of text"},
	{"big integers", `return BigInt(2) ** BigInt(1e9)`, "BigInt is not defined"},
	{"buffers", `return new Uint8Array(2 ** 33)`, "Uint8Array is not defined"},
	{"proxies", `return new Proxy({}, {})`, "Proxy is not defined"},
	{"modules", `return require("fs")`, "require is not defined"},
	{"timers", `return setTimeout(() => 0, 0)`, "setTimeout is not defined"},
	{"the process", `return process.exit(1)`, "process is not defined"},
	{"Go's own", `return Object.getOwnPropertyNames(globalThis).filter(n => /^Go|reflect$/i.test(n))`, `["Reflect"]`},
	{"prototypes changed", `Object.prototype.toJSON = () => "x"; Array.prototype.join = () => "y"; String.prototype.toString = null; return {a: [1]}`, `"x"`},
	{"builtins deleted", `delete globalThis.JSON; delete Array.prototype.map; delete RegExp.prototype.exec; return {a: 1}`, `{"a":1}`},
	{"the global replaced", `globalThis.undefined = 1`, "TypeError"},
	{"RangeError replaced", `RangeError.prototype.constructor = null; globalThis.RangeError = null; return "x".repeat(2 ** 30)`, "Invalid string length"},
	{"RangeError spoilt", `Object.defineProperty(RangeError, "prototype", {value: null}); return "x".repeat(2 ** 30)`, ""},
}

// callTime is short where the end of it is awaited, and long where something else
// should end the call first.
func (h *hostileFunction) callTime() time.Duration {
	if h.want == "" || strings.Contains(h.want, "too ") && h.want != "too large" && h.want != "nested too deep" {
		return 2 * tick
	}
	return maxTotalTime
}

// small are limits that are reached soon.
var small = limits{elements: 1 << 16, chars: 1 << 18, growth: 32 << 20}

// longest is how long a hostile call or text may take on a slow machine: without a
// bound each would take hours.
const longest = 30 * time.Second

func TestHostileFunctions(t *testing.T) {
	boundMatching()
	defer func(was time.Duration) { regexp2.DefaultMatchTimeout = was }(regexp2.DefaultMatchTimeout)
	regexp2.DefaultMatchTimeout = 3 * tick
	for _, h := range hostile {
		t.Run(h.name, func(t *testing.T) {
			f := compile(t, "function() {"+h.body+"\n}")
			s := NewSandbox(Options{CallTime: h.callTime(), limits: small})
			began := time.Now()
			got, err := s.Call(t.Context(), f)
			took := time.Since(began)
			answer := string(got)
			if err != nil {
				answer = err.Error()
				checkKind(t, err)
			}
			expected := func(want string) bool { return strings.Contains(answer, want) }
			if !slices.ContainsFunc(strings.Split(h.want, "|"), expected) {
				t.Errorf("got %s; want %q", clip(answer), h.want)
			}
			if strings.Contains(answer, "InternalError") {
				t.Errorf("the runtime failed: %s", answer)
			}
			if took > longest {
				t.Errorf("it took %v", took)
			}
			s.o.CallTime = longest
			if s.m != nil {
				s.m.watch.maxTicks = int(longest / tick)
			}
			after, err := s.Call(t.Context(), compile(t, "function(a) { return [a].concat(a).join() }"), []byte(`"ok"`))
			if err != nil || string(after) != `"ok,ok"` && !strings.Contains(h.name, "changed") {
				t.Errorf("the next call: %s, %v", after, err)
			}
		})
		runtime.GC() // so that one's garbage is not the next one's growth
	}
}

func checkKind(t *testing.T, err error) {
	t.Helper()
	var thrown *ThrownError
	switch {
	case errors.As(err, &thrown), errors.Is(err, ErrTime), errors.Is(err, ErrMemory), errors.Is(err, ErrDepth), errors.Is(err, ErrResult):
	default:
		t.Errorf("the error is none of ours: %v", err)
	}
}

// No text brings down the compiler, or keeps it busy for long.
func TestHostileTexts(t *testing.T) {
	units := []string{
		"(", "[", "{", "{a:", "!", "-", "a=", "x=>", "(x)=>", "async x=>", "a?a:", "a?", "if(a)", "a**", "a+", "a,", "a&&", "a??", "new ", "`${",
		"function f(){", "function(){", "class A{m(){", "a.", ".a", "()", "[a]", "?.a", "a:", "a//b\n:", `\u{61}:`, "a:{", "/(/", "/a/,", "...", "[...", "(a=", "{a=", "for(;;)", "while(a)", "do ",
		"else ", "if(a);else ", "try{", "switch(a){case ", "yield ", "await ", "typeof ", "delete ", "void ", "'a'+", "var a=", "let a;", ";", "\\u0061", "/*", "//\n",
		"({", "[[", "([", "((a,", "({a:[", "(()=>", "(async()=>", "(function(){", "var[a=", "({a=(", "a=>{", "`", "\n", "1_", "0x", "\"", "#x in ", "☃", "@", "#", "\\", "\x00", "\u00a0", "\u2028", "\uffff", "\xdc", "\U0001f600", "\x7f",
	}
	for _, unit := range units {
		for _, prefix := range []string{"function(a){return ", "function(a){", "function(", "function*(a){"} {
			readInTime(t, prefix+strings.Repeat(unit, (3<<10)/len(unit)))
		}
	}
	for _, unit := range []string{"!", "do ", "("} {
		readInTime(t, "function(a){return "+strings.Repeat(unit, (MaxBodyBytes-100)/len(unit)))
	}
}

// readInTime compiles a text, or has it refused.
func readInTime(t *testing.T, body string) {
	t.Helper()
	began := time.Now()
	_, err := Compile("f", body)
	var refused *CompileError
	if err != nil && !errors.As(err, &refused) {
		t.Errorf("%s: %v", clip(body), err)
	}
	if took := time.Since(began); took > longest {
		t.Errorf("%s took %v", clip(body), took)
	}
}

// An arrow function among the parameters of another doubles the parser's work, and
// nothing hides that from the bound on it: neither comments nor quotes, nor errors
// that make the parser see a regular expression where there is a division.
func TestArrowsWithinArrows(t *testing.T) {
	const limit = 20 * time.Millisecond
	for _, c := range []struct{ prefix, open, closed string }{
		{"", "(a=", ")=>1"}, {"", "(a=[{b:", "}])=>1"}, {"", "async(a=", ")=>1"}, {"", "({a=", "})=>1"}, {"", "([a=", "])=>1"},
		{"", "(a/*)*/=", ")/*(*/=>1"}, {"", "(a=')'+", ")=>1"}, {"", "(a=`)`+", ")=>1"}, {"", "(a=/)/+", ")=>1"}, {"", "(a=`${1}`+", ")=>1"},
		{"if a/\"/ ", "(a=", ")=>1"}, {"x?y z/'/:", "(a/*)*/=", ")=>1"}, {"yield ", "(a=", ")=>1"}, {"", "(b,a=c?d e/)(/:", ")=>1"},
	} {
		for _, n := range []int{3, 40, 400} {
			text := "(function*(x){" + c.prefix + strings.Repeat(c.open, n) + "1" + strings.Repeat(c.closed, n) + "\n})"
			began := time.Now()
			_, _ = parse("f", text, limit)
			if took := time.Since(began); took > longest {
				t.Errorf("%d times %s took %v", n, c.open, took)
			}
		}
		deep := "(function(x){" + strings.Repeat(c.open, 100) + "1" + strings.Repeat(c.closed, 100) + "\n})"
		if _, err := parse("f", deep, limit); err == nil {
			t.Errorf("100 times %s was accepted", c.open)
		}
	}
	// Arrows that stand beside each other, or in bodies, are as many as one likes.
	for _, text := range []string{strings.Repeat("a.map((x)=>x+1);", maxArrows), strings.Repeat("((x)=>{", 100) + strings.Repeat("})", 100)} {
		if _, err := parse("f", "(function(a){"+text+"})", longest); err != nil {
			t.Errorf("%s: %v", clip(text), err)
		}
	}
}

// Texts at the bounds that hold for brackets and arrows are read in good time.
func TestTextsAtTheBounds(t *testing.T) {
	for _, c := range []struct {
		open, closed string
		n            int
	}{
		{"(", ")", maxBrackets - 3}, {"[", "]", maxBrackets - 3}, {"{", "}", maxBrackets - 3}, {"(a=", ")", maxBrackets - 3}, {"a[", "]", maxBrackets - 3},
		{"a(", ")", maxBrackets - 3}, {"{a:", "}", maxBrackets - 3}, {"a=>", "", maxArrows - 1}, {"(a)=>", "", maxArrows - 1},
		{"a=>{return ", "}", maxArrows - 1}, {"(a=>", ")", maxArrows - 1}, {"async(a)=>", "", maxArrows - 1}, {"`${", "}`", maxBrackets / 4},
	} {
		readInTime(t, "function(a){return "+strings.Repeat(c.open, c.n)+"1"+strings.Repeat(c.closed, c.n)+"}")
	}
}
