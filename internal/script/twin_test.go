// SPDX-License-Identifier: MIT

package script

import (
	"testing"

	"github.com/dop251/goja"
	"pgregory.net/rapid"

	"github.com/mayflydb/mayfly/internal/value"
)

// What was put in place of builtins does what they did: every expression has the
// value that it has in a runtime that nobody has touched.
func TestBuiltinsAreAsTheyWere(t *testing.T) {
	s := NewSandbox(Options{})
	for _, expression := range []string{
		// Arrays.
		`[1,[2,[3,[4]]]].flat()`, `[1,[2,[3,[4]]]].flat(2)`, `[1,[2,[3]]].flat(Infinity)`, `[[1,,2]].flat()`, `[[1]].flat(0)`, `[[1]].flat("1")`,
		`[1,2,3].join()`, `[1,null,undefined,[2,[3]]].join("-")`, `[].join()`, `[1].join("x")`, `[,1,,].join()`, `[1,2].join(0)`, `["é","😀"].join("ü")`,
		`Array.prototype.join.call({length: 3, 0: "a", 2: "b"}, "+")`, `Array.prototype.join.call("abc", "+")`, `Array.prototype.join.call(arguments, "+")`,
		`String([1,[2,{}],null])`, `[1,2].toString()`, `[[1],[2]] + ""`, `[1.5,2].toLocaleString()`,
		`[1,2].concat(3,[4,[5]],"x")`, `[].concat([],[[]])`, `Array.prototype.concat.call(1,2)`, `[3,1,2].sort()`, `[3,1,2].sort((a,b)=>b-a)`, `[1,2,3].reverse()`,
		`[1,2,3,4].splice(1,2)`, `[1,2,3].slice(-2)`, `[1,2,3].indexOf(2)`, `[1,2,3].lastIndexOf(3)`, `[NaN].includes(NaN)`, `[1,2,3].fill(0,1)`, `[1,2,3,4,5].copyWithin(0,3)`,
		`[1,2,3].map(x=>x*2)`, `[1,2,3].filter(x=>x>1)`, `[1,2,3].reduce((a,b)=>a+b)`, `[1,2].flatMap(x=>[x,x*2])`, `[1,2,3].find(x=>x>1)`, `[1,2,3].findIndex(x=>x>1)`, `[1,2].every(x=>x)`,
		`(a=>{a.push(2,3); a.unshift(0); a.pop(); a.shift(); return a})([1])`, `Array.from("abc")`, `Array.from({length:3},(_, i)=>i)`, `Array.from(new Set([1,1,2]))`, `Array.of(1,2)`,
		`[...[1,2],...new Set([3])]`, `Math.max(...[1,5,2])`, `[...[1,2].entries()]`, `[...[1,2].keys()]`, `Object.keys([1,2])`, `[1,2].at(-1)`, `(([a,...b])=>b)([1,2,3])`,
		`[].map.name + [].map.length + [].join.name + [].join.length + "".repeat.name`, `Object.keys(Array.prototype).length + Object.keys(String.prototype).length`,
		// Calls.
		`Math.max.apply(null,[1,2])`, `Reflect.apply(Math.max,null,[1,2])`, `Reflect.construct(Date,[0]).getTime()`, `(function(){return this.x}).call({x:1})`, `(function(a,b){return a+b}).bind(null,1)(2)`,
		`(()=>0) instanceof Function`, `typeof Function.prototype`, `(function*(){yield 1})().next()`,
		// Texts.
		`"ab".repeat(3)`, `"ab".repeat(0)`, `"".repeat(5)`, `"a".padStart(3)`, `"a".padEnd(4,"xy")`, `"a".padStart("3","0")`, `"a".concat(1,null,[2])`, `"a-b-c".split("-")`, `"abc".split("")`, `"a,b".split(",",1)`,
		`"aXbX".replace("X","$&$&")`, `"aXbX".replaceAll("X","[$&]")`, "'abc'.replace('b','$`$\\'')", `"abc".replace("b","$$")`, `"abc".replace("b","$1")`, `"abc".replace("b",(m,i,s)=>m+i+s)`, `"abc".replace("x","y")`, `"abc".replace("","_")`,
		`"aXbX".replace(undefined, "y")`, `"a".replace("a")`, `"abc".at(-1)`, `"abc".slice(1)`, `"ABC".toLowerCase()`, `" a ".trim()`, `"abc".includes("b")`, `"abc".startsWith("b",1)`, `"a\u0301".normalize("NFC")`,
		`String.raw` + "`a${1}\\n${2}`", `String.raw({raw:"abc"},1,2,3)`, `"😀".codePointAt(0)`, `[..."a😀"]`, `"b".localeCompare("a")`, `String.prototype.toUpperCase.call(true)`, `"abc".substr(-2,1)`, `"x".concat()`,
		// Regular expressions.
		`"a1b22".replace(/\d+/g,"<$&>")`, `"john smith".replace(/(\w+)\s(\w+)/,"$2, $1")`, `"abc".replace(/(?<x>b)/,"[$<x>]")`, `"abc".replace(/(b)(x)?/,"[$1$2$3$10]")`, `"aaa".replace(/a/g,(m,i)=>i)`, `"aaa".replace(/a/y,"b")`,
		`"2020-01-02".match(/(\d+)-(\d+)/)`, `"a1b2".match(/\d/g)`, `"abc".match(/x/)`, `"abc".match("b")`, `"abc".match()`, `[..."a1b2".matchAll(/\d/g)].map(m=>m[0]+m.index)`, `"abc".search(/c/)`, `"abc".search("c")`, `"a1b2c".split(/\d/)`, `"a1b".split(/(\d)/)`,
		`"".split(/x/)`, `"abc".split(/(?:)/)`, `/a(b)?/.exec("a")`, `(r=>[r.exec("aa").index,r.lastIndex,r.exec("aa").index])(/a/g)`, `/a/.test("cat")`, `new RegExp("a+","gi").flags`, `new RegExp(/x/g).flags`, `new RegExp(/x/g,"i").flags`, `RegExp("[").x`,
		`/x/.constructor === RegExp`, `/x/ instanceof RegExp`, `class_`, `new (class R extends RegExp { get z() { return 1 } })("a").z`, `String(/a\/b/g)`, `/(?<=a)b/.test("ab")`, `/(a)\1/.test("aa")`, `"ÄÖ".replace(/ö/i,"x")`, `/\u{1F600}/u.test("😀")`, `new RegExp("").source`,
		`RegExp.prototype.toString.call(/a/g)`, `"a.b".split(".")`, `"x".replace(/x/, {toString: () => "$&y"})`, `"abcabc".lastIndexOf("c")`,
		// JSON.
		`JSON.stringify({a:[1,{b:null}],c:"x",d:undefined,e(){}})`, `JSON.stringify([undefined,()=>0,Symbol()])`, `JSON.stringify({a:[1,2],b:{}},null,2)`, `JSON.stringify([[],{}],null,"--")`, `JSON.stringify({a:1,b:2,c:{a:3,d:4}},["a","c"])`,
		`JSON.stringify({a:1,b:"x"},(k,v)=>typeof v==="number"?v+1:v)`, `JSON.stringify(undefined)`, `JSON.stringify("\u2028\n\"")`, `JSON.stringify(new Date(0))`, `JSON.stringify(1e21)`, `JSON.stringify(-0)`, `JSON.stringify(NaN)`, `JSON.stringify(new Number(3))`,
		`JSON.stringify({toJSON(k){return "k"+k}})`, `JSON.stringify({a:{toJSON(k){return k}}})`, `JSON.stringify([1],null,20)`, `JSON.stringify({},null,"")`, `JSON.stringify(Object.create({a:1}))`, `JSON.stringify([new Boolean(false),Object("s")])`, `JSON.stringify({[Symbol()]:1})`,
		`JSON.parse("[1,{\"a\":null}]")`, `JSON.parse("1")`, `JSON.parse("{\"a\":[1,2]}",(k,v)=>Array.isArray(v)?v.length:v)`, `JSON.parse("{")`, `JSON.parse("\"[[[\"")`, `JSON.parse()`,
	} {
		agree(t, s, expression)
	}
}

// agree compares the value of an expression, or that there is none, with that in a
// bare runtime.
func agree(t testing.TB, s *Sandbox, expression string) {
	t.Helper()
	f := compile(t, `function() { return [`+expression+`] }`)
	got, err := s.Call(t.Context(), f)
	bare := goja.New()
	v, wantErr := bare.RunString(`"use strict"; (function() { return JSON.stringify([` + expression + `]) })()`)
	switch {
	case (err == nil) != (wantErr == nil):
		t.Errorf("%s: %s, %v; a bare runtime has %v, %v", expression, got, err, v, wantErr)
	case err == nil && string(got) != v.String():
		t.Errorf("%s: %s; a bare runtime has %s", expression, got, v)
	}
}

// Replacements agree for any text, pattern and template.
func TestReplacementsAreAsTheyWere(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		text := rapid.StringMatching(`[ab1é]{0,8}`).Draw(r, "text")
		search := rapid.SampledFrom([]string{`"a"`, `""`, `/a/`, `/a/g`, `/(a)(b)?/g`, `/(?<x>[ab])1?/g`, `/x*/g`, `/(?=(b))/g`, `/(a)(b)(1)(é)?(.)?(.)?(.)?(.)?(.)?(a)?(b)?/g`}).Draw(r, "search")
		template := rapid.StringMatching("[$&`'<>x0129a-]{0,8}").Draw(r, "template")
		method := rapid.SampledFrom([]string{"replace", "replaceAll"}).Draw(r, "method")
		expression := quote(text) + "." + method + "(" + search + "," + quote(template) + ")"
		f, err := Compile("f", `function() { return `+expression+` }`)
		if err != nil {
			r.Fatal(err)
		}
		got, err := NewSandbox(Options{}).Call(t.Context(), f)
		if search == `""` && method == "replaceAll" { // for which a bare runtime takes all memory
			expression = quote(text) + ".replace(/(?:)/g," + quote(template) + ")"
		}
		v, wantErr := goja.New().RunString(`JSON.stringify(` + expression + `)`)
		if (err == nil) != (wantErr == nil) || err == nil && string(got) != v.String() {
			r.Fatalf("%s: %s, %v; a bare runtime has %v, %v", expression, got, err, v, wantErr)
		}
	})
}

func quote(s string) string { return string(value.AppendString(nil, s)) }
