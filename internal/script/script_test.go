// SPDX-License-Identifier: MIT

package script

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// pool has the workers of all tests that do not need their own pool.
var pool *Pool

func TestMain(m *testing.M) {
	RunWorker()
	pool = NewPool(testPool())
	status := m.Run()
	pool.Close()
	os.Exit(status)
}

// testPool returns options with such long waits and times that only a test's own limits
// apply.
func testPool() PoolOptions {
	return PoolOptions{Time: longest, Gate: GateOptions{Slots: MaxAtOnce, Queue: MaxWaiting, Wait: time.Hour}}
}

// enter takes a slot until the test ends.
func enter(t testing.TB, p *Pool) *Seat {
	t.Helper()
	s, err := p.Enter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Leave)
	return s
}

// sandbox returns a sandbox. On a busy machine a call may take long, so only tests of the
// limit have a short one.
func (s *Seat) sandbox(o Options) *Sandbox {
	if o.CallTime == 0 {
		o.CallTime = longest
	}
	return s.NewSandbox(o)
}

// call calls a function in a sandbox of its own.
func call(t testing.TB, o Options, f *Function, args ...[]byte) ([]byte, error) {
	t.Helper()
	s, err := pool.Enter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Leave()
	return s.sandbox(o).Call(t.Context(), f, args...)
}

// function checks a function.
func function(t testing.TB, body string) *Function {
	t.Helper()
	s, err := pool.Enter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Leave()
	f := &Function{"f", body}
	if err := s.Compile(t.Context(), f); err != nil {
		t.Fatalf("%s: %v", short(body), err)
	}
	return f
}

// short shortens a text for a message.
func short(s string) string {
	if len(s) > 200 {
		return s[:200] + "…"
	}
	return s
}

func args(texts ...string) [][]byte {
	list := make([][]byte, len(texts))
	for i, text := range texts {
		list[i] = []byte(text)
	}
	return list
}

func TestCalls(t *testing.T) {
	f := func(body string, in [][]byte, want string) {
		t.Helper()
		got, err := call(t, Options{NowMs: 4102444800000}, function(t, body), in...)
		if err != nil || string(got) != want {
			t.Errorf("%s of %q: %s, %v; want %s", body, in, got, err, want)
		}
	}
	// Forms of functions.
	f(`function(a, b) { return a + b; }`, args("1", "2"), `3`)
	f(`function named(n) { return n < 2 ? 1 : n * named(n - 1); };`, args("5"), `120`)
	f("\n // before\n function (x) {\n return x; /* within */ } ; \n", args(`"é😀"`), `"é😀"`)
	f(`x => x.length`, args(`[1,2,3]`), `3`)
	f(`function() { return arguments.length }`, args("1", "", "null"), `3`)
	f(`function() { return this === undefined }`, nil, `true`)
	// Arguments.
	f(`function(a, b, c) { return [typeof a, typeof b, b === null, typeof c] }`, args("", "null"), `["undefined","object",true,"undefined"]`)
	f(`function(o) { return o["__proto__"] + Object.keys(o).join() + (o.x === undefined) }`, args(`{"__proto__":"p","constructor":1}`), `"p__proto__,constructortrue"`)
	f(`function(a) { return a }`, args(`{"a":[1,-2.5,1e21,true,null,"x\"\\\n",{}],"b":{"":[]}}`), `{"a":[1,-2.5,1e+21,true,null,"x\"\\\n",{}],"b":{"":[]}}`)
	f(`function(a) { return a }`, args(`"\ud83d\ude00\u0000"`), `"😀\u0000"`)
	// Results.
	f(`function() {}`, nil, ``)
	f(`function() { return undefined }`, nil, ``)
	f(`function() { return null }`, nil, `null`)
	f(`function() { return function(){} }`, nil, ``)
	f(`function() { return Symbol("s") }`, nil, ``)
	f(`function() { return [undefined, function(){}, NaN, 1/0, -0] }`, nil, `[null,null,null,null,0]`)
	f(`function() { return {a: undefined, b: 1, c: function(){}} }`, nil, `{"b":1}`)
	f(`function() { return {toJSON() { return [this.n] }, n: 1} }`, nil, `[1]`)
	f(`function() { return [new Number(1), new String("s"), new Boolean(false)] }`, nil, `[1,"s",false]`)
	f(`function() { return new Date(0) }`, nil, `"1970-01-01T00:00:00.000Z"`)
	f(`function() { return "\ud800" }`, nil, `"�"`)
	f(`function() { class A { constructor() { this.x = 1 } get y() { return 2 } } return new A }`, nil, `{"x":1}`)
	// The time is the caller's.
	f(`function() { return [Math.floor(Date.now() / 1e6), new Date().toISOString().slice(0, 10), Math.random() < 1] }`, nil, `[4102444,"2100-01-01",true]`)
	// Functions from the service's documentation.
	f(`function (input, pattern) { return input.match(pattern) !== null; }`, args(`"item42"`, `"[0-9]+$"`), `true`)
	f(`function tax(income) { if (income == undefined) throw 'no input'; if (income < 1000) return income * 0.1; return income * 0.4; }`, args("100"), `10`)
}

// A function may be written as a method.
func TestMethods(t *testing.T) {
	for _, body := range []string{`double(x) { return 2 * x }`, `"any name"(x) { return x + x }`, `async(x) { return 2 * x };`} {
		if got, err := call(t, Options{}, function(t, body), []byte("21")); err != nil || string(got) != "42" {
			t.Errorf("%s: %s, %v", body, got, err)
		}
	}
}

// Unpaired surrogates are replaced. Pairs of surrogates stay.
func TestWellFormed(t *testing.T) {
	for json, want := range map[string]string{
		`"\\ud83d"`: `"\\ud83d"`, `"\ud83d\ude00"`: `"\ud83d\ude00"`, `"\uD83D\uDE00\n"`: `"\uD83D\uDE00\n"`, `"\ud83d"`: `"�"`, `"\ude00\ud83d"`: `"��"`,
		`"\ud83d\u0041"`: `"�\u0041"`, `"\ud83dx"`: `"�x"`, `"\ud83d\\ude00"`: `"�\\ude00"`, `"\u00e9"`: `"\u00e9"`, `\`: `\`, `\ud8`: `\ud8`, `"x"`: `"x"`,
	} {
		if got := string(wellFormed(json)); got != want {
			t.Errorf("%s: got %s, want %s", json, got, want)
		}
	}
}

func TestThrown(t *testing.T) {
	f := func(body, want string) {
		t.Helper()
		_, err := call(t, Options{}, function(t, body))
		var thrown *ThrownError
		if !errors.As(err, &thrown) || thrown.Text != want {
			t.Errorf("%s: %v; want %s", body, err, want)
		}
	}
	f(`function() { throw new Error("no") }`, `Error: no`)
	f(`function() { throw "text" }`, `text`)
	f(`function() { throw {toString() { return "made" }} }`, `made`)
	f(`function() { throw {toString() { throw 1 }} }`, `an exception without text`)
	f(`function() { throw undefined }`, `undefined`)
	f(`function() { return nothing }`, `ReferenceError: nothing is not defined`)
	f(`function() { return {toJSON() { throw new TypeError("t") }} }`, `TypeError: t`)
	f(`function() { const a = []; a[0] = a; return a }`, `TypeError: Converting circular structure to JSON`)
	f(`function() { undeclared = 1 }`, `ReferenceError: undeclared is not defined`)
}

func TestCompileRefuses(t *testing.T) {
	s := enter(t, pool)
	for _, body := range []string{
		``, `;`, `1`, `"function(){}"`, `function`, `function(`, `function([`, `function(){`, `function(){}}`, `return 1`,
		`function(){}) (function(){}`, `function(){}, function(){}`, `function(){}); globalThis.x = 1; (function(){}`,
		`function a(){} function b(){}`, `(function(){ return function(){} })()`, `class A {}`, `[]`, `a(){}, b(){}`, `get a(){}`, `[1](){}`, `a: function(){}`, `...a`, `a(){}}), ({b(){}`, `x`,
		`function(){ with (a) {} }`, `function(){ return 010 }`, `function(a, a){}`, `function(){ import("x") }`,
		"function(){\x00}", "function(){ return \"\n\" }", `function(){ return /(/ }`,
		"function(){/*" + strings.Repeat(" ", MaxBodyBytes) + "*/}",
	} {
		var refused *CompileError
		if err := s.Compile(t.Context(), &Function{"f", body}); !errors.As(err, &refused) || refused.Reason == "" {
			t.Errorf("%s: %v; want a CompileError", short(body), err)
		}
	}
	function(t, "function(){/*"+strings.Repeat(" ", MaxBodyBytes-20)+"*/}")
}

// A text cannot make the compiler read files.
func TestSourceMapsAreNotRead(t *testing.T) {
	function(t, "function(){ return 1 }\n//# sourceMappingURL=/no/such/file.map\n")
}

// No sandbox sees the globals of another.
func TestSandboxesAreApart(t *testing.T) {
	f := function(t, `function() { globalThis.n = (globalThis.n || 0) + 1; Array.prototype.n = 1; return [n, [].n] }`)
	for range 3 {
		got, err := call(t, Options{}, f)
		if err != nil || string(got) != "[1,1]" {
			t.Errorf("%s, %v", got, err)
		}
	}
}

// A sandbox goes on after a call that failed, as a new one would.
func TestSandboxAfterFailure(t *testing.T) {
	seat := enter(t, pool)
	s := seat.sandbox(Options{CallTime: 3 * tick})
	poison := function(t, `function() { Array.prototype.map = null; for (;;); }`)
	if _, err := s.Call(t.Context(), poison); !errors.Is(err, ErrTime) {
		t.Fatal(err)
	}
	s.o.CallTime = longest
	got, err := s.Call(t.Context(), function(t, `function(a) { return a.map(x => x + 1) }`), []byte("[1]"))
	if err != nil || string(got) != "[2]" {
		t.Errorf("%s, %v", got, err)
	}
}

func TestCancelledCall(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := enter(t, pool).sandbox(Options{}).Call(ctx, function(t, `function() { for (;;); }`)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// All calls in a sandbox together have a limit of time.
func TestTotalTime(t *testing.T) {
	s := enter(t, pool).sandbox(Options{CallTime: time.Hour})
	s.spent = int(pool.share(totalShare)/tick) - 2
	if _, err := s.Call(t.Context(), function(t, `function() { for (;;); }`)); !errors.Is(err, ErrTime) {
		t.Error(err)
	}
}

// One function, compiled once, is called in many sandboxes at the same time.
func TestFunctionsAreShared(t *testing.T) {
	f := function(t, `function(s, n) { return s.replace(/(\d)(?=x)/g, "<$1>") + [n, n * 2].join("+") + JSON.stringify({n}) }`)
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			seat, err := pool.Enter(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			defer seat.Leave()
			s := seat.sandbox(Options{})
			for i := range 100 {
				n := g*1000 + i
				got, err := s.Call(t.Context(), f, []byte(`"1x2y"`), fmt.Append(nil, n))
				if want := fmt.Sprintf(`"<1>x2y%d+%d{\"n\":%d}"`, n, 2*n, n); err != nil || string(got) != want {
					t.Errorf("%s, %v; want %s", got, err, want)
					return
				}
			}
		})
	}
	all.Wait()
}

func FuzzCompile(f *testing.F) {
	for _, body := range []string{
		`function(a){return a}`, `x=>x`, `function(){`, "function(){return `${1}`}", `function(){return /(a)\1/g}`, `function(){return 1n}`,
		`function({a,...b}=[]){for(const x of b)yield}`, `async function*(){}`, `function(){class A extends B{#x=1;static{}}}`,
		"function(){}//# sourceMappingURL=x", `function(){label:for(;;)continue label}`, "\u2028function(){}", `function(){"use strict";eval("1")}`,
	} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		s := enter(t, pool)
		fn := &Function{"f", body}
		if err := s.Compile(t.Context(), fn); err != nil {
			var refused *CompileError
			if !errors.As(err, &refused) {
				t.Fatalf("%q: %v", body, err)
			}
			return
		}
		_, err := s.sandbox(Options{CallTime: 2 * tick}).Call(t.Context(), fn, []byte(`{"a":[1]}`))
		checkKind(t, err)
	})
}

func BenchmarkCall(b *testing.B) {
	for name, c := range map[string]struct{ body, arg string }{
		"number": {`function(a){return a*2}`, `21`},
		"object": {`function(o){return o.tags.length > 1 && o.name.startsWith("a")}`, `{"id":"1","name":"abc","tags":["x","y"],"n":{"a":1,"b":[1,2,3]}}`},
	} {
		b.Run(name, func(b *testing.B) {
			f, s := function(b, c.body), enter(b, pool).sandbox(Options{})
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Call(b.Context(), f, []byte(c.arg)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("sandbox", func(b *testing.B) {
		f := function(b, `function(a){return a*2}`)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := call(b, Options{}, f, []byte("21")); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("worker", func(b *testing.B) {
		f := &Function{"f", `function(a){return a*2}`}
		for b.Loop() {
			p := NewPool(testPool())
			s := enter(b, p)
			if _, err := s.NewSandbox(Options{}).Call(b.Context(), f, []byte("21")); err != nil {
				b.Fatal(err)
			}
			p.Close()
		}
	})
}
