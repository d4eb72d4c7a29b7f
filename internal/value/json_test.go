// SPDX-License-Identifier: MIT

package value

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"
)

func mustParse(t testing.TB, src string) *Object {
	t.Helper()
	o, err := ParseObject([]byte(src))
	if err != nil {
		t.Fatalf("ParseObject(%q): %v", src, err)
	}
	return o
}

func TestParseObjectCompacts(t *testing.T) {
	f := func(src, want string) {
		t.Helper()
		if got := string(mustParse(t, src).Bytes()); got != want {
			t.Errorf("ParseObject(%q).Bytes() = %q, want %q", src, got, want)
		}
	}
	f(`{}`, `{}`)
	f(" \t\r\n{ \n} \n", `{}`)
	f(`{"a":1}`, `{"a":1}`)
	f("\n{ \"a\" : 1 , \"b\" : [ 1 , 2 ] }\n", `{"a":1,"b":[1,2]}`)
	f(`{"a b" : "c  d\n" }`, `{"a b":"c  d\n"}`)
	f(`{"\u0061":"\/\u00e9"}`, `{"\u0061":"\/\u00e9"}`)
	f(`{"n": [ 1.0, 1E5, -0, 1e-400, 10000000000000000000001 ] }`, `{"n":[1.0,1E5,-0,1e-400,10000000000000000000001]}`)
	f(`{"q":"\\\" { } [ ] , : \\\\" , "r":null}`, `{"q":"\\\" { } [ ] , : \\\\","r":null}`)
	f(`{"":{"":{}}}`, `{"":{"":{}}}`)
	f(`{"pair":"\ud83d\ude00","é":"😀"}`, `{"pair":"\ud83d\ude00","é":"😀"}`)
}

func TestParseObjectRefuses(t *testing.T) {
	deep := func(open, end string, n int) string {
		return `{"a":` + strings.Repeat(open, n) + strings.Repeat(end, n) + `}`
	}
	f := func(src string, offset int, words string) {
		t.Helper()
		o, err := ParseObject([]byte(src))
		var syntax *SyntaxError
		if !errors.As(err, &syntax) || o != nil {
			t.Fatalf("ParseObject(%.60q) = %v, %v, want a *SyntaxError", src, o, err)
		}
		if want := fmt.Sprintf("%s (at byte %d)", syntax.Msg, offset); err.Error() != want {
			t.Errorf("ParseObject(%.60q): %q, want %q", src, err, want)
		}
		if syntax.Offset != offset || !strings.Contains(syntax.Msg, words) {
			t.Errorf("ParseObject(%.60q): offset %d, %q; want offset %d and the words %q",
				src, syntax.Offset, syntax.Msg, offset, words)
		}
	}
	f(``, 0, "empty")
	f(" \n", 2, "empty")
	f(`[]`, 0, "not a JSON object")
	f(` "a"`, 1, "not a JSON object")
	f("\x00", 0, "not a JSON object")
	f("\uFEFF{}", 0, "not a JSON object")
	f(`{`, 1, "ends too early")
	f(`{"a":"b`, 7, "ends too early")
	f(`{"a" 1}`, 5, "malformed")
	f(`{"a":1,}`, 6, "malformed")
	f(`{"a":01}`, 6, "malformed")
	f(`{"a":+1}`, 5, "malformed")
	f(`{"a":NaN}`, 5, "malformed")
	f(`{'a':1}`, 1, "malformed")
	f(`{"a":1 /* no */}`, 7, "malformed")
	f("{\"a\":\"\n\"}", 6, "malformed")
	f("{\"a\":\"\xff\"}", 6, "UTF-8")
	f(`{"a":"\ud800"}`, 6, "malformed")
	f(`{"a":"\ude00\ud83d"}`, 6, "malformed")
	f(`{"\udc00":1}`, 2, "malformed")
	f(`{"a":1}{"b":2}`, 7, "more than one")
	f(`{"a":1} x`, 8, "more than one")
	f(`{"a":1,"a":2}`, 7, `"a" occurs twice`)
	f(`{"a":1,"\u0061":2}`, 7, `"a" occurs twice`)
	f(`{"x":[{"y":{"k":1,"l":2,"k":3}}]}`, 24, `"k" occurs twice`)
	f(`{"a":1e309}`, 5, "too large")
	f(`{"a":[0,-1E+999 ]}`, 8, "too large")
	f(`{"a":`+strings.Repeat("9", 309)+`}`, 5, "too large")
	f(deep("[", "]", MaxNesting), 5+MaxNesting-1, "nested more than 128")
	f(deep(`{"a":`, "0", MaxNesting), 5+5*(MaxNesting-1), "nested more than 128")
	f(deep("[", "]", 20_000), 5+MaxNesting-1, "nested more than 128")
}

func TestParseObjectLimitsAreInclusive(t *testing.T) {
	levels := MaxNesting - 1 // the root is one
	mustParse(t, `{"a":`+strings.Repeat("[", levels)+strings.Repeat("]", levels)+`}`)
	mustParse(t, `{"a":1.7976931348623157e308}`)
	mustParse(t, `{"a":`+strings.Repeat("9", maxPlainDigits)+`}`)
}

func TestParseObjectKeepsNothingOfItsInput(t *testing.T) {
	src := []byte(`{"id":"one","n":{"x":1}}`)
	o, err := ParseObject(src)
	if err != nil {
		t.Fatal(err)
	}
	clear(src)
	if got, want := string(o.AppendMembers(nil, nil)), `"id":"one","n":{"x":1}`; got != want {
		t.Errorf("after the input was cleared: %q, want %q", got, want)
	}
	if _, ok := o.Lookup("id"); !ok {
		t.Error("after the input was cleared: id is not found")
	}
}

func TestMembers(t *testing.T) {
	o := mustParse(t, `{ "a" : [1, {"b" : 2}], "\u0062\"" : "x" , "" : true, "é":{} }`)
	want := []struct{ name, raw, text string }{
		{"a", `[1,{"b":2}]`, `"a":[1,{"b":2}]`},
		{`b"`, `"x"`, `"\u0062\"":"x"`},
		{"", `true`, `"":true`},
		{"é", `{}`, `"é":{}`},
	}
	if len(o.Members()) != len(want) {
		t.Fatalf("%d members, want %d", len(o.Members()), len(want))
	}
	for i, w := range want {
		m := o.Members()[i]
		if m.Name != w.name || string(m.Raw) != w.raw || string(m.text) != w.text {
			t.Errorf("member %d = %q, %s, %s; want %q, %s, %s", i, m.Name, m.Raw, m.text, w.name, w.raw, w.text)
		}
		if raw, ok := o.Lookup(w.name); !ok || string(raw) != w.raw {
			t.Errorf("Lookup(%q) = %s, %v; want %s", w.name, raw, ok, w.raw)
		}
	}
	if raw, ok := o.Lookup(`b`); ok {
		t.Errorf(`Lookup("b") = %s, want none`, raw)
	}
}

func TestManyMembers(t *testing.T) {
	const n = 5000
	var src []byte
	for i := range n {
		src = append(src, ",\n"...)
		src = AppendString(src, "name"+strconv.Itoa(i))
		src = append(src, " : "...)
		src = strconv.AppendInt(src, int64(i), 10)
	}
	src[0] = '{'
	o := mustParse(t, string(src)+"}")
	if len(o.Members()) != n {
		t.Fatalf("%d members, want %d", len(o.Members()), n)
	}
	for i, m := range o.Members() {
		if m.Name != "name"+strconv.Itoa(i) || string(m.Raw) != strconv.Itoa(i) {
			t.Fatalf("member %d = %q: %s", i, m.Name, m.Raw)
		}
	}
}

func TestAt(t *testing.T) {
	o := mustParse(t, `{"a":{"x":{"y":[1]},"b":{"c":"}\"{,","d":null}},"s":"t","\u0065":{"\u0066":7},"arr":[{"a":1}]}`)
	f := func(want string, p ...string) {
		t.Helper()
		raw, ok := o.At(p)
		if string(raw) != want || ok != (want != "") {
			t.Errorf("At(%v) = %s, %v; want %s", Path(p), raw, ok, want)
		}
	}
	f(string(o.Bytes()))
	f(`"t"`, "s")
	f(`{"c":"}\"{,","d":null}`, "a", "b")
	f(`"}\"{,"`, "a", "b", "c")
	f(`null`, "a", "b", "d")
	f(`7`, "e", "f")
	f(``, "missing")
	f(``, "a", "missing")
	f(``, "a", "b", "c", "d")
	f(``, "a", "b", "d", "x")
	f(``, "missing", "a")
	f(``, "arr", "a")
	f(``, "arr", "0")
}

func TestAppendMembers(t *testing.T) {
	o := mustParse(t, `{"_ts":1,"id":"a","_etag":"x","n":[ 1 ],"_rid":2}`)
	f := func(want string, skip func(string) bool) {
		t.Helper()
		if got := string(o.AppendMembers([]byte("{"), skip)); got != "{"+want {
			t.Errorf("AppendMembers = %s, want {%s", got, want)
		}
	}
	f(`"_ts":1,"id":"a","_etag":"x","n":[1],"_rid":2`, nil)
	f(`"id":"a","n":[1]`, func(name string) bool { return strings.HasPrefix(name, "_") })
	f(`"_ts":1,"_etag":"x","_rid":2`, func(name string) bool { return name == "id" || name == "n" })
	f(``, func(string) bool { return true })

	room := make([]byte, 0, 200)
	skip := func(name string) bool { return name == "_ts" }
	if n := testing.AllocsPerRun(10, func() { o.AppendMembers(room, skip) }); n != 0 {
		t.Errorf("AppendMembers into room allocates %v times", n)
	}
}

// An item's parts may be handed on; growing one must not write over the next.
func TestPartsCannotGrowIntoEachOther(t *testing.T) {
	o := mustParse(t, ` {"a" : {"x" : 1,"y" : 2},"b" : 3} `)
	nested, _ := o.At(Path{"a", "x"})
	for _, part := range [][]byte{o.Bytes(), o.Members()[0].Raw, nested} {
		if cap(part) != len(part) {
			t.Errorf("%s has room for %d more bytes, which are not its own", part, cap(part)-len(part))
		}
	}
}

// naiveObject decides with encoding/json and plain loops what ParseObject
// should.
func naiveObject(src []byte) bool {
	if !json.Valid(src) || !utf8.Valid(src) || loneSurrogate(src) || !bytes.HasPrefix(bytes.TrimLeft(src, " \t\r\n"), []byte("{")) {
		return false
	}
	d := json.NewDecoder(bytes.NewReader(src))
	d.UseNumber()
	type level struct {
		names  map[string]bool // nil for an array
		inName bool
	}
	var levels []level
	for {
		token, err := d.Token()
		if err == io.EOF {
			return true
		}
		if err != nil {
			return false
		}
		if len(levels) > 0 {
			top := &levels[len(levels)-1]
			if name, ok := token.(string); ok && top.names != nil && top.inName {
				if top.names[name] {
					return false
				}
				top.names[name] = true
				top.inName = false
				continue
			}
			top.inName = top.names != nil
		}
		switch token := token.(type) {
		case json.Number:
			if _, err := token.Float64(); err != nil {
				return false
			}
		case json.Delim:
			switch token {
			case '{':
				levels = append(levels, level{names: map[string]bool{}, inName: true})
			case '[':
				levels = append(levels, level{})
			default:
				levels = levels[:len(levels)-1]
			}
			if len(levels) > MaxNesting {
				return false
			}
		}
	}
}

// loneSurrogate looks for half a pair among the escapes of valid JSON.
func loneSurrogate(src []byte) bool {
	unit := func(i int) rune {
		if i+6 > len(src) || src[i] != '\\' || src[i+1] != 'u' {
			return -1
		}
		n, _ := strconv.ParseUint(string(src[i+2:i+6]), 16, 16)
		return rune(n)
	}
	for i := 0; i < len(src); i++ {
		if src[i] != '\\' {
			continue
		}
		if r := unit(i); utf16.IsSurrogate(r) {
			if utf16.DecodeRune(r, unit(i+6)) == utf8.RuneError {
				return true
			}
			i += 6
		}
		i++
	}
	return false
}

func FuzzParseObject(f *testing.F) {
	for _, seed := range []string{
		`{}`, ` { "a" : [ 1 , {"b":null} ] , "c" : "d e" } `, `{"a":1,"a":2}`, `{"a":{"b":1,"\u0062":2}}`,
		`{"a":"\ud83d\ude00","b":"\ud83d"}`, `{"a":1e309,"b":-1E-5}`, `{"a":[[[[]]]],"b":[{},{}]}`, `[{}]`, `{"a":1}x`,
		`{"\"":"\\"}`, "{\"\xff\":1}", `{"a":tru}`, `{"a":"\u12"}`, "{\"a\":\"\x01\"}", `{"é":"😀","\\u0041":0.10}`,
		`{"a":` + strings.Repeat("[", 128) + strings.Repeat("]", 128) + `}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		o, err := ParseObject(src)
		if accepts := naiveObject(src); accepts != (err == nil) {
			t.Fatalf("ParseObject(%q): %v; encoding/json and plain loops accept it: %v", src, err, accepts)
		}
		if err != nil {
			var syntax *SyntaxError
			if !errors.As(err, &syntax) || syntax.Offset < 0 || syntax.Offset > len(src) || syntax.Msg == "" {
				t.Fatalf("ParseObject(%q): %#v is not a helpful error", src, err)
			}
			return
		}
		checkObject(t, o, src)
	})
}

// checkObject compares an accepted object with what encoding/json makes of it.
func checkObject(t *testing.T, o *Object, src []byte) {
	var compact bytes.Buffer
	if err := json.Compact(&compact, src); err != nil || !bytes.Equal(compact.Bytes(), o.Bytes()) {
		t.Fatalf("ParseObject(%q).Bytes() = %s, want %s (%v)", src, o.Bytes(), &compact, err)
	}
	if again := "{" + string(o.AppendMembers(nil, nil)) + "}"; again != string(o.Bytes()) {
		t.Fatalf("AppendMembers gives %s, want %s", again, o.Bytes())
	}
	second, err := ParseObject(o.Bytes())
	if err != nil {
		t.Fatalf("ParseObject(%s), which it wrote: %v", o.Bytes(), err)
	}
	same := func(a, b Member) bool { return a.Name == b.Name && bytes.Equal(a.Raw, b.Raw) }
	if !slices.EqualFunc(o.Members(), second.Members(), same) {
		t.Fatalf("members of %s change when parsed again", o.Bytes())
	}
	var naive map[string]json.RawMessage
	if err := json.Unmarshal(o.Bytes(), &naive); err != nil || len(naive) != len(o.Members()) {
		t.Fatalf("%d members in %s, want %d (%v)", len(o.Members()), o.Bytes(), len(naive), err)
	}
	for name, want := range naive {
		if raw, ok := o.Lookup(name); !ok || !bytes.Equal(raw, want) {
			t.Fatalf("Lookup(%q) in %s = %s, %v; want %s", name, o.Bytes(), raw, ok, want)
		}
		checkNested(t, o, Path{name}, want)
	}
}

// checkNested compares At with encoding/json on all objects inside raw.
func checkNested(t *testing.T, o *Object, p Path, raw []byte) {
	var naive map[string]json.RawMessage
	if raw[0] != '{' || json.Unmarshal(raw, &naive) != nil {
		return
	}
	for name, want := range naive {
		deeper := append(slices.Clone(p), name)
		if got, ok := o.At(deeper); !ok || !bytes.Equal(got, want) {
			t.Fatalf("At(%v) in %s = %s, %v; want %s", deeper, o.Bytes(), got, ok, want)
		}
		checkNested(t, o, deeper, want)
	}
}

func BenchmarkParseObject(b *testing.B) {
	flat := `{"id":"order-000000000001","pk":"customer-42","ttl":3600,"name":"A name of something","active":true,"payload":"` +
		strings.Repeat("abcdefgh ijklmno ", 54) + `"}`
	nested := `{"id":"order-000000000001","pk":"customer-42","ttl":3600,"tags":["one","two"],` +
		`"address":{"street":"1 Long Road","city":"Somewhere","geo":{"type":"Point","coordinates":[12.5,-7.25]}},"lines":[` +
		strings.Repeat(`{"sku":"A-1029","qty":3,"price":12.5,"note":"as agreed"},`, 14) + `{}]}`
	var indented bytes.Buffer
	if err := json.Indent(&indented, []byte(nested), "", "  "); err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct{ name, src string }{
		{"flat-1KiB", flat}, {"nested-1KiB", nested}, {"indented-2KiB", indented.String()},
		{"flat-64KiB", strings.Replace(flat, "ijklmno", strings.Repeat("ijklmno ", 1100), 7)},
	} {
		b.Run(c.name, func(b *testing.B) {
			src := []byte(c.src)
			b.SetBytes(int64(len(src)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := ParseObject(src); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkAppendMembers(b *testing.B) {
	o := mustParse(b, `{"id":"order-000000000001","pk":"customer-42","ttl":3600,"name":"x","active":true,"payload":"`+
		strings.Repeat("abcdefgh ijklmno ", 54)+`"}`)
	room := make([]byte, 0, 2048)
	skip := func(name string) bool { return name != "" && name[0] == '_' }
	b.ReportAllocs()
	for b.Loop() {
		o.AppendMembers(room, skip)
	}
}

func TestElements(t *testing.T) {
	f := func(in string, want ...string) {
		t.Helper()
		o, err := ParseObject([]byte(`{"a":` + in + `}`))
		if err != nil {
			t.Fatal(err)
		}
		raw, _ := o.Lookup("a")
		got, ok := Elements(raw)
		if !ok || len(got) != len(want) {
			t.Fatalf("Elements(%s) = %q, %v, want %q", in, got, ok, want)
		}
		for i := range want {
			if string(got[i]) != want[i] {
				t.Errorf("Elements(%s)[%d] = %s, want %s", in, i, got[i], want[i])
			}
		}
	}
	f(`[]`)
	f(`[ 1 ]`, `1`)
	f(`[1, "a,]\"", {"b": [2, 3]}, [], null]`, `1`, `"a,]\""`, `{"b":[2,3]}`, `[]`, `null`)
	if _, ok := Elements([]byte(`{"a":1}`)); ok {
		t.Error("an object has elements")
	}
}

func TestMembersOfAPart(t *testing.T) {
	o, err := ParseObject([]byte(`{"a": {"x": 1, "\u0079": "}", "": {"z": []}}, "e": {}}`))
	if err != nil {
		t.Fatal(err)
	}
	raw, _ := o.Lookup("a")
	got, ok := Members(raw)
	want := []string{"x", "1", "y", `"}"`, "", `{"z":[]}`}
	if !ok || len(got) != len(want)/2 {
		t.Fatalf("Members(%s) = %v, %v, want %q", raw, got, ok, want)
	}
	for i, m := range got {
		if m.Name != want[2*i] || string(m.Raw) != want[2*i+1] {
			t.Errorf("Members(%s)[%d] = %q: %s, want %q: %s", raw, i, m.Name, m.Raw, want[2*i], want[2*i+1])
		}
	}
	raw, _ = o.Lookup("e")
	if got, ok := Members(raw); !ok || len(got) != 0 {
		t.Errorf("Members({}) = %v, %v", got, ok)
	}
	if _, ok := Members([]byte(`[1]`)); ok {
		t.Error("an array has members")
	}
}

// An object made of the text of another has the same properties.
func TestObjectOf(t *testing.T) {
	for _, src := range []string{
		`{}`, `{"a":1}`, `{ "a" : [1, {"b":"}"}], "\u0062":{"c":{"d":"x\"y"}}, "":null, "e":"" }`,
	} {
		o, err := ParseObject([]byte(src))
		if err != nil {
			t.Fatal(err)
		}
		of := ObjectOf(o.Bytes())
		if got, want := of.AppendMembers(nil, nil), o.AppendMembers(nil, nil); !bytes.Equal(got, want) {
			t.Errorf("%s: members %s, want %s", src, got, want)
		}
		if got, want := len(of.Members()), len(o.Members()); got != want {
			t.Fatalf("%s: %d members, want %d", src, got, want)
		}
		for i, m := range of.Members() {
			if want := o.Members()[i]; m.Name != want.Name || !bytes.Equal(m.Raw, want.Raw) || !bytes.Equal(m.Head(), want.Head()) {
				t.Errorf("%s: member %d is %q, want %q", src, i, m, want)
			}
			if raw, ok := of.Lookup(m.Name); !ok || !bytes.Equal(raw, m.Raw) {
				t.Errorf("%s: Lookup(%q) = %s, %v", src, m.Name, raw, ok)
			}
		}
		for _, p := range []Path{nil, {"a"}, {"b", "c", "d"}, {"b", "x"}, {"x"}} {
			got, found := of.At(p)
			if want, ok := o.At(p); ok != found || !bytes.Equal(got, want) {
				t.Errorf("%s: At(%v) = %s, %v; want %s, %v", src, p, got, found, want, ok)
			}
		}
	}
}
