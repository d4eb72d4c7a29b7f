// SPDX-License-Identifier: MIT

package index

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/memory"
	"github.com/mayflydb/mayfly/internal/value"
)

// specialEntries describes the entries of an item except terms.
func specialEntries(t *testing.T, policy, item string) []string {
	t.Helper()
	made, err := Append(Entries{}, policyOf(t, policy), objectOf(t, item), memory.Room{})
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for i := range made.Len() {
		kind := entryKind(made.At(i)[0])
		if kind == entryTerm {
			continue
		}
		path, rest, err := parseTermPath(made.At(i)[1:])
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, s := range path.steps {
			names = append(names, s.String())
		}
		text := fmt.Sprintf("%d %v %x", kind, names, rest)
		if kind == entryWord && rest[0] == tagString {
			v, after, err := value.DecodeKey(rest)
			if err != nil || len(after) > 0 {
				t.Fatalf("%x: %v", rest, err)
			}
			text = fmt.Sprintf("%d %v %s", kind, names, v)
		}
		if carried := made.Carried(i); len(carried) > 0 {
			text += fmt.Sprintf(": %x", carried)
		}
		list = append(list, text)
	}
	return list
}

const textPolicy = `{"fullTextIndexes":[{"path":"/t"},{"path":"/o/t"},{"path":"/_etag"}]}`

func TestTextEntries(t *testing.T) {
	for item, want := range map[string][]string{
		`{}`:                            {"4 [o t] 01", "4 [t] 01"},
		`{"t":7,"o":{"t":["red"]}}`:     {"4 [o t] 01", "4 [t] 01"},
		`{"t":""}`:                      {"4 [o t] 01", "4 [t] 01: 00"},
		`{"t":"The red, RED house"}`:    {`3 [t] "hous": 01`, `3 [t] "red": 02`, "4 [o t] 01", "4 [t] 01: 06"},
		`{"o":{"t":"r\u00e9d \"x2\""}}`: {`3 [o t] "réd": 01`, `3 [o t] "x2": 01`, "4 [o t] 01: 04", "4 [t] 01"},
	} {
		if got := specialEntries(t, textPolicy, item); !slices.Equal(got, want) {
			t.Errorf("%s:\ngot  %q\nwant %q", item, got, want)
		}
	}
	if got := specialEntries(t, `{"indexingMode":"none","automatic":false,"fullTextIndexes":[{"path":"/t"}]}`, `{"t":"red"}`); len(got) > 0 {
		t.Errorf("got %q with indexing off", got)
	}
}

// hostileTexts are texts of 2 MB that could have too many entries.
func hostileTexts() map[string]string {
	var many, letters strings.Builder
	for i := 0; many.Len() < 2<<20-10; i++ {
		fmt.Fprintf(&many, "%x ", i)
	}
	for i := 0; letters.Len() < 2<<20-10; i++ {
		letters.WriteString(string(rune(0x4e00+i%20_000)) + " ")
	}
	return map[string]string{
		"many words":         many.String(),
		"as many as letters": letters.String(),
		"one word":           strings.Repeat("y", 2<<20),
		"one word, often":    strings.Repeat("red ", 2<<18),
		"no word":            strings.Repeat(". ", 2<<19),
		"long words":         strings.Repeat(strings.Repeat("x", 300)+" ", 7000),
	}
}

// The entries of a text are bounded in number and in bytes.
func TestHostileTexts(t *testing.T) {
	d := policyOf(t, `{"includedPaths":[],"excludedPaths":[{"path":"/*"}],"fullTextIndexes":[{"path":"/a"},{"path":"/b"},{"path":"/c"}]}`)
	for name, text := range hostileTexts() {
		o := objectOf(t, fmt.Sprintf(`{"id":"x","a":%q,"b":%q}`, text[:len(text)/2], text[len(text)/2:]))
		made, err := Append(Entries{}, d, o, memory.Room{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if made.Len() > maxItemWords+10 || len(made.buf) > 8<<20 {
			t.Errorf("%s: %d entries of %d bytes", name, made.Len(), len(made.buf))
		}
	}
}
