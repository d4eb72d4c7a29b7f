// SPDX-License-Identifier: MIT

package script

import (
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

type hostileFunction struct{ name, body, want string }

// escapes are functions that guards within the server's process did not stop: each kept
// builtins busy that cannot be interrupted, or took memory faster than it was checked.
var escapes = []hostileFunction{
	{"an iterator whose next is native, spread", endless + `return [...o].length`, "too "},
	{"an iterator whose next is native, destructured", endless + `const [...all] = o; return all.length`, "too "},
	{"an iterator whose next is native, in Array.from", endless + `return Array.from(o).length`, "too "},
	{"an iterator whose next is native, in a set", endless + `return new Set(o).size`, "too "},
	{"an iterator whose next is native, in Promise.all", endless + `return Promise.all(o)`, "too "},
	{"a loop of native promises", `const o = {}; o.then = Map.prototype.forEach.bind(new Map([[1, o]])); Promise.resolve(o); return 1`, "too long"},
	{"yield* a million deep", `let it = (function*() { yield 1 })();
		for (let i = 0; i < 1e6; i++) { const inner = it; it = (function*() { yield* inner })(); } return [...it].length`, "too deep|too much memory"},
	{"entries of a long text", long + `return Object.entries(s).length`, "too "},
	{"a long text assigned", long + `return Object.keys(Object.assign({}, s)).length`, "too "},
	{"descriptors of a long text", long + `return Object.getOwnPropertyDescriptors(s) && 1`, "too "},
	{"a text made many times longer", `let s = "\ufdfa".repeat(1 << 20); return s.normalize("NFKD").length + s.normalize("NFKD").normalize("NFKD").length`, ""},
	{"ropes", `let all = []; for (;;) { let s = "x".repeat(1 << 16); for (let i = 0; i < 16; i++) s += s; all.push(s + "y"); s.indexOf("z") }`, "too "},
}

const (
	endless = `const next = Reflect.get.bind(null, {r: {value: 1, done: false}}, "r"); const o = {[Symbol.iterator]: () => ({next})}; `
	long    = `let s = "x".repeat(1 << 20); for (let i = 0; i < 4; i++) s += s; `
)

// hostile are functions that try to hang the server, to fill its memory, or to reach what
// they must not. Each must end soon; want is a part of the error or of the result, or one
// of several.
var hostile = []hostileFunction{
	{"loop", `for (;;);`, "too long"},
	{"loop that catches", `for (;;) try { for (;;); } catch (e) {}`, "too long"},
	{"loop in finally", `try { for (;;); } finally { for (;;); }`, "too long"},
	{"loop in a getter", `return {get a() { for (;;); }}`, "too long"},
	{"loop in toJSON", `return {toJSON() { for (;;); }}`, "too long"},
	{"loop in the text of an exception", `throw {toString() { for (;;); }}`, "too long"},
	{"loop in a generator", `return [...(function*() { for (;;) yield 1 })()]`, "too "},
	{"loop in a comparison", `return [1,2,3].sort(() => { for (;;); })`, "too long"},
	{"loop in a proxy", `return new Proxy({}, {ownKeys() { for (;;); }})`, "too long"},
	{"loop in eval", `return eval("for (;;);")`, "too long"},

	{"recursion", `(function f() { return f() + 1 })()`, "too deep"},
	{"recursion that catches", `(function f() { try { f() } catch (e) { f() } })(); return 1`, "too deep|too long"},
	{"recursion through a builtin", `(function f() { [1].forEach(f) })()`, "too "},
	{"recursion through replace", `(function f() { "a".replace(/a/, f) })()`, "too "},
	{"recursion through a getter", `const o = {get a() { return this.a }}; return o.a`, "too "},
	{"recursion through toJSON", `const o = {toJSON() { return JSON.stringify(this) }}; return o`, "too "},
	{"recursion through a proxy", `const h = {}, p = new Proxy({}, h); Object.setPrototypeOf(p, Object.create(p)); return p.x`, ""},
	{"recursion through eval", `return eval("(".repeat(1e5))`, ""},

	{"text doubled", `let s = "x"; for (;;) s += s`, "too "},
	{"text repeated", `return "x".repeat(2 ** 30)`, "too much memory"},
	{"text repeated by infinity", `return "x".repeat(Infinity)`, "RangeError"},
	{"text padded", `return "x".padStart(2 ** 30) + "x".padEnd(2 ** 30, "ab")`, "too much memory"},
	{"text of a huge array", `return "" + new Array(2 ** 32 - 1)`, "too "},
	{"text replaced", `const s = "x".repeat(16e3); return s.replaceAll("x", s)`, "too "},
	{"text replaced between characters", `return "x".replaceAll("", "y")`, ""},
	{"text replaced by a function", `const s = "x".repeat(16e3); return s.replace(/x/g, () => s)`, "too "},
	{"text, raw", `return String.raw({raw: {length: 2 ** 40}}, "x")`, "too "},
	{"JSON of shared parts", `let o = []; for (let i = 0; i < 40; i++) o = [o, o]; return JSON.stringify(o)`, "too "},
	{"result of shared parts", `let o = [1]; for (let i = 0; i < 40; i++) o = [o, o]; return o`, "too "},
	{"text of shared parts", `let o = []; for (let i = 0; i < 40; i++) o = [o, o]; return "" + o`, "too "},
	{"shared parts made flat", `let o = [1]; for (let i = 0; i < 40; i++) o = [o, o]; return o.flat(Infinity)`, "too "},

	{"array pushed to", `const a = []; for (;;) a.push({})`, "too "},
	{"array filled", `return new Array(2 ** 32 - 1).fill(0)`, "too "},
	{"array set long and spread", `const a = []; a.length = 2 ** 32 - 1; return [...a].length`, "too "},
	{"array set long and searched", `const a = []; a.length = 2 ** 32 - 1; return a.indexOf(1)`, ""},
	{"array set long and returned", `const a = []; a.length = 2 ** 32 - 1; return a`, "too "},
	{"what is like an array", `return Array.prototype.indexOf.call({length: 2 ** 53 - 1}, 1)`, "too long"},
	{"arguments out of thin air", `return Math.max.apply(null, {length: 2 ** 31})`, "too "},
	{"map", `const m = new Map; for (let i = 0; ; i++) m.set(i, [i])`, "too "},
	{"closures", `let f = () => 0; for (;;) { const g = f; f = () => g }`, "too "},
	{"buffers", `const all = []; for (;;) all.push(new Uint8Array(1 << 20).fill(1))`, "too "},
	{"one buffer", `return new Uint8Array(2 ** 33)`, ""},
	{"big integers", `return String(2n ** (2n ** 32n))`, "too "},
	{"nested arrays as text", `let a = []; for (let i = 0; i < 1e5; i++) a = [a]; return "" + a`, ""},
	{"nested arrays as JSON", `let a = []; for (let i = 0; i < 1e5; i++) a = [a]; return JSON.stringify(a)`, ""},
	{"nested arrays as result", `let a = []; for (let i = 0; i < 1e3; i++) a = [a]; return a`, "too large"},
	{"nested JSON", `return JSON.parse("[".repeat(3e6) + "]".repeat(3e6))`, ""},
	{"prototypes of prototypes", `let o = {}; for (;;) { o = Object.create(o); o.nothing }`, "too "},
	{"bound functions", `let f = () => 0; for (let i = 0; i < 1e6; i++) f = f.bind(); return f()`, ""},
	{"a large result", `return Array(100).fill("x".repeat(6e4))`, "too large"},
	{"a large text", `return "\u20ac".repeat(2e6)`, "too large"},

	{"pattern that goes back and forth", `return /^(a+)+\1$/.test("a".repeat(40) + "b")`, "too long"},
	{"pattern from an index", `const r = /(a+)+$/g; r.lastIndex = 1; return r.test("a".repeat(40) + "b")`, "too long"},
	{"pattern of brackets", `return new RegExp("(".repeat(3e5) + ")".repeat(3e5))`, ""},

	{"modules", `return require("fs")`, "require is not defined"},
	{"timers", `return setTimeout(() => 0, 0)`, "setTimeout is not defined"},
	{"the process", `return process.exit(1)`, "process is not defined"},
	{"Go's own", `return Object.getOwnPropertyNames(globalThis).filter(n => /^Go|reflect$/i.test(n))`, `["Reflect"]`},
	{"a file, as source map", `return eval("1\n//# sourceMappingURL=/no/such/file.map\n")`, "1"},
	{"prototypes changed", `Object.prototype.toJSON = () => "x"; Array.prototype.join = () => "y"; String.prototype.toString = null; return {a: [1]}`, `"x"`},
	{"builtins deleted", `delete globalThis.JSON; delete Array.prototype.map; delete RegExp.prototype.exec; return {a: 1}`, `{"a":1}`},
	{"the global replaced", `globalThis.undefined = 1`, "TypeError"},
}

const (
	// soon is the limit of time of hostile functions that the limit of memory does not end.
	soon = 10 * tick
	// smallMemory is a limit that is reached soon.
	smallMemory = 40 << 20
	// longest is how long a function may take on a slow machine. Without a bound hostile
	// functions would take hours.
	longest = time.Minute
)

func TestScriptsCannotEscape(t *testing.T) { testHostile(t, escapes) }

func TestHostileFunctions(t *testing.T) { testHostile(t, hostile) }

func testHostile(t *testing.T, list []hostileFunction) {
	o := testPool()
	o.Memory = smallMemory
	p := NewPool(o)
	defer p.Close()
	for _, h := range list {
		t.Run(h.name, func(t *testing.T) {
			s := enter(t, p)
			limit := longest // another limit ends the function
			if h.want == "" || h.want == "too " || strings.Contains(h.want, "too long") {
				limit = soon
			}
			began := time.Now()
			got, err := s.sandbox(Options{CallTime: limit}).Call(t.Context(), &Function{"f", "function() {" + h.body + "\n}"})
			took := time.Since(began)
			answer := string(got)
			if err != nil {
				answer = err.Error()
				checkKind(t, err)
			}
			expected := func(want string) bool { return strings.Contains(answer, want) }
			if !slices.ContainsFunc(strings.Split(h.want, "|"), expected) {
				t.Errorf("got %s; want %q", short(answer), h.want)
			}
			if took > longest {
				t.Errorf("it took %v", took)
			}
			checkNext(t, s)
		})
	}
	checkHeap(t)
}

// checkNext checks that another function still runs.
func checkNext(t *testing.T, s *Seat) {
	t.Helper()
	got, err := s.sandbox(Options{}).Call(t.Context(), &Function{"f", "function(a) { return [a].concat(a).join() }"}, []byte(`"ok"`))
	if err != nil || string(got) != `"ok,ok"` {
		t.Errorf("the next call: %s, %v", got, err)
	}
}

// checkHeap checks that scripts took no memory of this process.
func checkHeap(t *testing.T) {
	t.Helper()
	const bound = 64 << 20
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if m.HeapAlloc > bound {
		t.Errorf("the process that runs no script has %d MiB", m.HeapAlloc>>20)
	}
}

func checkKind(t *testing.T, err error) {
	t.Helper()
	if err != nil && !Refused(err) || errors.Is(err, ErrEnded) {
		t.Errorf("the error is none of ours: %v", err)
	}
}

// No text crashes the process, or takes for ever to compile.
func TestHostileTexts(t *testing.T) {
	units := []string{
		"(", "[", "{", "{a:", "!", "a=", "x=>", "(x)=>", "async x=>", "a?a:", "if(a)", "a**", "new ", "`${", "function f(){", "class A{m(){", "?.a", "a:", "/(/", "[...", "(a=", "do ",
		"if(a);else ", "try{", "switch(a){case ", "yield ", "await ", "var a=", "\\u0061", "/*", "([", "({a:[", "(()=>", "var[a=", "({a=(", "`", "\n", "1_", "\"", "#x in ", "☃", "@", "\x00", "\u2028", "\xdc", "\U0001f600",
	}
	s := enter(t, pool)
	for _, unit := range units {
		for _, prefix := range []string{"function(a){return ", "function(", "function*(a){"} {
			read(t, s, prefix+strings.Repeat(unit, (3<<10)/len(unit)))
		}
	}
	for _, unit := range []string{"!", "do ", "(", "[", "a=>", "(a=", "a:"} {
		read(t, s, "function(a){return "+strings.Repeat(unit, (MaxBodyBytes-100)/len(unit)))
	}
	// An arrow function among the parameters of another doubles the parser's work.
	read(t, s, "function(a){return "+strings.Repeat("(a=", 40)+"1"+strings.Repeat(")=>1", 40)+"}")
}

// read compiles a text, and checks that it is accepted or refused in time.
func read(t *testing.T, s *Seat, body string) {
	t.Helper()
	began := time.Now()
	err := s.compile(t.Context(), &Function{"f", body}, soon)
	var refused *CompileError
	if err != nil && !errors.As(err, &refused) {
		t.Errorf("%s: %v", short(body), err)
	}
	if took := time.Since(began); took > longest {
		t.Errorf("%s took %v", short(body), took)
	}
}
