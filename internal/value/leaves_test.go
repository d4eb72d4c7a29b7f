// SPDX-License-Identifier: MIT

package value

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// leavesOf lists the leaves of what a cursor is before, each with its path.
func leavesOf(c *Cursor, path string) []string {
	var leaves []string
	switch c.Next() {
	case '{':
		if !c.Enter() {
			return []string{path + " = {}"}
		}
		for {
			name := fmt.Sprintf("%s/%q", path, c.Name())
			leaves = append(leaves, leavesOf(c, name)...)
			if !c.More() {
				return leaves
			}
		}
	case '[':
		if !c.Enter() {
			return []string{path + " = []"}
		}
		for {
			leaves = append(leaves, leavesOf(c, path+"/[]")...)
			if !c.More() {
				return leaves
			}
		}
	case '"':
		return []string{path + " = " + String(string(c.Text())).String()}
	}
	return []string{path + " = " + c.Literal().String()}
}

// naiveLeaves does the same with encoding/json.
func naiveLeaves(v any, path string) []string {
	var leaves []string
	switch v := v.(type) {
	case nil:
		return []string{path + " = null"}
	case bool:
		return []string{path + " = " + Bool(v).String()}
	case float64:
		return []string{path + " = " + Number(v).String()}
	case string:
		return []string{path + " = " + String(v).String()}
	case []any:
		if len(v) == 0 {
			return []string{path + " = []"}
		}
		for _, e := range v {
			leaves = append(leaves, naiveLeaves(e, path+"/[]")...)
		}
	case map[string]any:
		if len(v) == 0 {
			return []string{path + " = {}"}
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			leaves = append(leaves, naiveLeaves(v[name], fmt.Sprintf("%s/%q", path, name))...)
		}
	}
	return leaves
}

func checkLeaves(t *testing.T, o *Object) {
	t.Helper()
	c := o.Cursor()
	got := leavesOf(&c, "")
	if c.i != len(o.text) {
		t.Errorf("%s: the cursor ends at byte %d, want %d", o.text, c.i, len(o.text))
	}
	var v any
	if err := json.Unmarshal(o.text, &v); err != nil {
		t.Fatal(err)
	}
	want := naiveLeaves(v, "")
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s:\ngot  %q\nwant %q", o.text, got, want)
	}
}

var leafTexts = []string{
	`{}`, `{"a":{}}`, `{"a":[]}`, `{"a":[[],{}]}`, `{"a":null,"b":true,"c":false}`,
	`{"a":[0,-0,-0.0,1,-1,12345678901234567890,999999999999999,-999999999999999,9007199254740993,0.1,1e3,1E-400,1.7976931348623157e308]}`,
	`{"a\u0062":"\u0000\"\\\n","é":"\ud83d\ude00","":""}`, `{"a":{"b":{"c":[{"d":[1,"x"]}]}},"e":[2,{"f":3}]}`,
	`{"quote\"":"}{][,:","b":"\\"}`, ` { "a" : [ 1 , 2 ] , "b" : { } } `,
}

func TestCursorFindsTheLeaves(t *testing.T) {
	for _, text := range leafTexts {
		checkLeaves(t, mustParse(t, text))
	}
	deepest := strings.Repeat(`{"a":`, MaxNesting-1) + "[]" + strings.Repeat("}", MaxNesting-1)
	checkLeaves(t, mustParse(t, deepest))
}

// Strings of all lengths, with an escape at every offset or none.
func TestCursorReadsStrings(t *testing.T) {
	const characters = "abcdefgh\u00e9!#[]\u0080ijklmnop"
	for length := range 64 {
		text := strings.ToValidUTF8(strings.Repeat(characters, 5)[:length], "?")
		for escape := -1; escape <= len(text); escape++ {
			want := text
			if escape >= 0 {
				want = strings.ToValidUTF8(text[:escape]+`"\`+text[escape:], "?")
			}
			o := mustParse(t, `{"a":`+string(AppendString(nil, want))+`}`)
			c := o.Cursor()
			c.Enter()
			c.Name()
			if got := string(c.Text()); got != want || c.More() {
				t.Fatalf("%s: got %q, want %q", o.text, got, want)
			}
		}
	}
}

func TestCursorSkips(t *testing.T) {
	for _, text := range leafTexts {
		o := mustParse(t, `{"skipped":`+text+`,"next":1}`)
		c := o.Cursor()
		c.Enter()
		c.Name()
		c.Skip()
		if !c.More() || string(c.Name()) != "next" || c.Literal() != Number(1) || c.More() {
			t.Errorf("%s: the property after the skipped one was not found", o.text)
		}
	}
}

func TestAppendStringKey(t *testing.T) {
	for _, s := range []string{"", "a", "\x00", "a\x00b\x00\x00", strings.Repeat("é", 300)} {
		if got, want := AppendStringKey([]byte("x"), []byte(s)), AppendKey([]byte("x"), String(s)); !bytes.Equal(got, want) {
			t.Errorf("%q: got %x, want %x", s, got, want)
		}
	}
}

func FuzzCursor(f *testing.F) {
	for _, text := range leafTexts {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		if o, err := ParseObject(src); err == nil {
			checkLeaves(t, o)
		}
	})
}

func TestCursorRaw(t *testing.T) {
	o, err := ParseObject([]byte(`{"a": [1, {"b": "]"}], "c": "x\"y", "d": {}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"a": `[1,{"b":"]"}]`, "c": `"x\"y"`, "d": `{}`}
	c := o.Cursor()
	for more := c.Enter(); more; more = c.More() {
		name := string(c.Name())
		if got := string(c.Raw()); got != want[name] {
			t.Errorf("%s: got %s, want %s", name, got, want[name])
		}
	}
	inner := CursorAt([]byte(want["a"]))
	if !inner.Enter() || string(inner.Raw()) != "1" || !inner.More() || string(inner.Raw()) != `{"b":"]"}` || inner.More() {
		t.Error("a cursor before a part of an object goes astray")
	}
}
