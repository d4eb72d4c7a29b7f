// SPDX-License-Identifier: MIT

package script

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// silent is a host that accepts every operation and has no items.
func silent() *Host {
	return &Host{
		SelfLink: "dbs/a/colls/b/", AltLink: "dbs/d/colls/c", HasResponse: true,
		Operate: func(context.Context, string, string) string { return `{"resource":[]}` },
		Full:    func() bool { return false },
	}
}

// runProcedure runs a procedure in a sandbox of its own.
func runProcedure(t testing.TB, o Options, body string, h *Host, args ...[]byte) (Outcome, error) {
	t.Helper()
	s, err := pool.Enter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Leave()
	return s.sandbox(o).Run(t.Context(), &Function{"f", body}, h, args...)
}

func TestRun(t *testing.T) {
	f := func(body, want string) {
		t.Helper()
		out, err := runProcedure(t, Options{}, "function(a) {"+body+"}", silent(), []byte(`{"n":1}`))
		if err != nil || out.Response != want {
			t.Errorf("%s: %s, %v; want %s", body, out.Response, err, want)
		}
	}
	f(`__.response.setBody(a.n)`, `1`)
	f(`return 1`, ``)
	f(`getContext().getResponse().setBody([getContext().getCollection().getSelfLink(), __.getAltLink()])`, `["dbs/a/colls/b/","dbs/d/colls/c"]`)
	// Callbacks are called after the function has returned, in order.
	f(`let s = ""; const add = c => () => { s += c; __.response.setBody(s) };
		__.readDocument("x", add("2")); __.readDocument("x", add("3")); s += "1"`, `"123"`)
	f(`let n = 0; const next = () => { if (++n < 3000) __.readDocument("x", next); else __.response.setBody(n) }; next()`, `3000`)
	// A rejected promise without a handler is ignored.
	f(`__.response.setBody(1); (async () => { throw new Error("unseen") })()`, `1`)
	// A script may change builtins: that affects only itself.
	f(`JSON.stringify = () => "x"; JSON.parse = null; Array.prototype.map = null; __.response.setBody({a: 1})`, `{"a":1}`)
	f(`const e = new Error(409, "m"); __.response.setBody([e.number, e.body, e.message, e instanceof Error, String(Error("x")), new Error().message])`,
		`[409,"m","m",true,"Error: x",""]`)
	f(`try { null.x } catch (e) { __.response.setBody([e instanceof TypeError, e instanceof Error]) }`, `[true,true]`)
}

// Bodies that a script does not set stay as they were.
func TestBodiesAreKept(t *testing.T) {
	h := silent()
	h.Request, h.Response = `{"a":"\ud83d\ude00\u00e9é😀","n":[1.0,1e2]}`, `{"b":"\/"}`
	out, err := runProcedure(t, Options{}, `function() {}`, h)
	if err != nil || out.Request != h.Request || out.Response != h.Response {
		t.Errorf("%+v, %v; want %s and %s", out, err, h.Request, h.Response)
	}
}

// Operations get the arguments as they were at the call, even if the script changes them
// later.
func TestOperationsAreKeptAsCalled(t *testing.T) {
	var got []string
	h := silent()
	h.Operate = func(_ context.Context, name, args string) string {
		got = append(got, name+" "+args)
		return `{"resource":{"id":"x"},"options":{}}`
	}
	_, err := runProcedure(t, Options{}, `function() {
		const item = {id: "1"};
		__.createDocument("l", item);
		item.id = "2";
		__.replaceDocument("m", item, {etag: "e"});
		__.deleteDocument("n", (err, options) => __.queryDocuments("l", {query: "q", parameters: []}, {pageSize: 5}));
	}`, h)
	want := `create {"link":"l","body":{"id":"1"},"options":{}}|replace {"link":"m","body":{"id":"2"},"options":{"etag":"e"}}|` +
		`delete {"link":"n","options":{}}|query {"link":"l","query":{"query":"q","parameters":[]},"options":{"pageSize":5}}`
	if err != nil || strings.Join(got, "|") != want {
		t.Errorf("%s, %v; want %s", strings.Join(got, "|"), err, want)
	}
}

// Near the end of a script's time no more operations are accepted, so that it can end
// properly.
func TestAcceptsUntilTimeRunsLow(t *testing.T) {
	out, err := runProcedure(t, Options{CallTime: 5 * tick, grace: longest}, `function() {
		let n = 0;
		const next = () => { n++; if (!__.readDocument("x", next)) __.response.setBody(n > 0) };
		next();
	}`, silent())
	if err != nil || out.Response != "true" {
		t.Errorf("%s, %v", out.Response, err)
	}
	h := silent()
	h.Full = func() bool { return true }
	out, err = runProcedure(t, Options{}, `function() { __.response.setBody([__.createDocument("x", {}), __.filter(x => x).isAccepted]) }`, h)
	if err != nil || out.Response != "[false,false]" {
		t.Errorf("%s, %v", out.Response, err)
	}
}

// Hostile procedures end, as hostile functions do.
func TestHostileProcedures(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{`__.readDocument("x", () => { for (;;); })`, "too long"},
		{`for (;;) __.readDocument("x", () => 0)`, "too "},
		{`const f = () => { Promise.resolve().then(f) }; f()`, "too long"},
		{`(function f() { __.readDocument("x", f); f() })()`, "too "},
		{`const a = []; for (;;) a.push(new Error(400, "x"))`, "too "},
		{`__.readDocument("x", () => { throw {toString() { for (;;); }} })`, "too long"},
		{`__.readDocument("x", () => { throw {get number() { for (;;); }} })`, "too long"},
		{`for (;;) console.log("x".repeat(1000))`, "too long"},
		{`console.log({toJSON() { for (;;); }})`, "too long"},
		{`__.response.setBody({toJSON() { for (;;); }})`, "too long"},
		{`for (;;) __.response.appendBody("x".repeat(1000))`, "too "},
		{`__.filter(() => { for (;;); }); __.chain().map(x => x).value()`, ""},
		{`__.readDocument("x", () => /^(a+)+$/.test("a".repeat(40) + "b"))`, ""},
		{`__.readDocument("x", () => { let s = "x"; for (;;) s += s })`, "too "},
		{`__.readDocument("x", function f() { f() })`, "too "},
		{`__.createDocument({toJSON() { for (;;); }}, {})`, "too long"},
		{`Object.prototype.then = 1; Object.defineProperty(Object.prototype, "status", {get() { for (;;); }}); __.readDocument("x", () => 0)`, "too long"},
	} {
		began := time.Now()
		out, err := runProcedure(t, Options{CallTime: soon}, "function() {"+c.body+"}", silent())
		answer := ""
		if err != nil {
			answer = err.Error()
			checkKind(t, err)
		}
		found := false
		for _, want := range strings.Split(c.want, "|") {
			found = found || strings.Contains(answer, want)
		}
		if !found || len(out.Log) > maxLogBytes {
			t.Errorf("%s: got %q, want %q", c.body, short(answer), c.want)
		}
		if took := time.Since(began); took > longest {
			t.Errorf("%s took %v", c.body, took)
		}
	}
}

func TestCancelledProcedure(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := enter(t, pool).sandbox(Options{})
	if _, err := s.Run(ctx, &Function{"f", `function() { for (;;); }`}, silent()); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
