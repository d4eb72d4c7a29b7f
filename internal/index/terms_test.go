// SPDX-License-Identifier: MIT

package index

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/memory"
	"github.com/mayflydb/mayfly/internal/value"
)

// indexRule is one path of a policy.
type indexRule struct {
	path     []step
	scalar   bool // ends with /?
	excluded bool
}

func (r indexRule) text() string {
	var b strings.Builder
	for _, s := range r.path {
		if s.elements {
			b.WriteString("/[]")
		} else {
			b.WriteString(nameText(s.name))
		}
	}
	if r.scalar {
		return b.String() + "/?"
	}
	return b.String() + "/*"
}

var everyPath = []indexRule{{}}

// indexPolicy returns the policy with these rules.
func indexPolicy(rules []indexRule) string {
	lists := map[bool][]map[string]string{false: {}, true: {}}
	for _, r := range rules {
		lists[r.excluded] = append(lists[r.excluded], map[string]string{"path": r.text()})
	}
	included, err := json.Marshal(lists[false])
	if err != nil {
		panic(err)
	}
	excluded, err := json.Marshal(lists[true])
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf(`{"includedPaths":%s,"excludedPaths":%s}`, included, excluded)
}

type failer interface {
	Helper()
	Fatal(args ...any)
	Errorf(format string, args ...any)
}

func policyOf(t failer, policy string) *catalog.Definition {
	t.Helper()
	d, err := catalog.ParseDefinition([]byte(`{"id":"c","partitionKey":{"paths":["/pk"]},"indexingPolicy":` + policy + `}`))
	if err != nil {
		t.Fatal(policy, err)
	}
	return d
}

func objectOf(t failer, text string) *value.Object {
	t.Helper()
	o, err := value.ParseObject([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// termTexts renders terms, and checks that they are in order and without duplicates.
func termTexts(t failer, list *Entries) []string {
	t.Helper()
	const ordinal = "\x00\x00\x00\x00\x00\x00\x00\x07"
	var texts []string
	size := 0
	for i := range list.Len() {
		size += len(list.At(i))
		if i > 0 && bytes.Compare(list.At(i-1), list.At(i)) >= 0 {
			t.Errorf("terms %x and %x are not in order", list.At(i-1), list.At(i))
		}
		p, v, rest, err := parseTerm(append(list.At(i), ordinal...)[1:])
		if err != nil || string(rest) != ordinal {
			t.Errorf("term %x: got rest %x, %v", list.At(i), rest, err)
		}
		texts = append(texts, termText(p, v))
	}
	if size != len(list.buf) {
		t.Errorf("terms of %d bytes are in a buffer of %d, want nothing else in it", size, len(list.buf))
	}
	return texts
}

func TestTerms(t *testing.T) {
	const (
		all     = `{}`
		noA     = `{"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/a/*"}]}`
		noAItem = `{"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/a/?"}]}`
		onlyABC = `{"includedPaths":[{"path":"/a/b/?"},{"path":"/c/[]/d/?"}],"excludedPaths":[{"path":"/*"}]}`
		quoted  = `{"includedPaths":[{"path":"/\"a b\"/*"},{"path":"/\"[]\"/?"}],"excludedPaths":[{"path":"/*"}]}`
		deeper  = `{"includedPaths":[{"path":"/*"},{"path":"/a/b/*"}],"excludedPaths":[{"path":"/a/*"},{"path":"/a/b/c/?"}]}`
		noParts = `{"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/a/[]/*"}]}`
		none    = `{"indexingMode":"none"}`
	)
	for _, c := range []struct {
		policy, item string
		want         string // joined by spaces
	}{
		{all, `{"id":"1","ttl":5,"n":null,"t":true,"f":false,"tt":-0.5}`, `/f = false, /id = "1", /n = null, /t = true, /ttl = 5, /tt = -0.5`},
		{all, `{"_rid":"a","_self":"b","_etag":"c","_attachments":"d","_ts":1,"a":{"_ts":2},"_x":3}`, `/_x = 3, /a/_ts = 2`},
		{all, `{"a":[{"b":5},{"b":5,"c":[[]]},{}]}`, `/a/[] = {}, /a/[]/b = 5, /a/[]/c/[] = []`},
		{all, `{"a":[1,1,"1",[1],1.0,1e0]}`, `/a/[] = 1, /a/[] = "1", /a/[]/[] = 1`},
		{all, `{"a":{},"b":[],"c":{"d":{}}}`, `/a = {}, /b = [], /c/d = {}`},
		{all, `{"a":"x","b":{"a":"x"},"ab":"x"}`, `/a = "x", /ab = "x", /b/a = "x"`},
		{all, `{"":1,"a/b":2,"[]":3,"a":[4],"\u0061\u0000":"\u0000\""}`, `/"" = 1, /"[]" = 3, /a/[] = 4, /"a\u0000" = "\u0000\"", /"a/b" = 2`},
		{all, `{}`, ` = {}`},
		{noA, `{"id":"1","a":{"b":5,"c":[1,{"d":2}]},"b":"}"}`, `/b = "}", /id = "1"`},
		{noAItem, `{"id":"1","a":{"b":5}}`, `/a/b = 5, /id = "1"`},
		{noAItem, `{"id":"1","a":"x"}`, `/id = "1"`},
		{noAItem, `{"id":"1","a":["x",[]]}`, `/a/[] = [], /a/[] = "x", /id = "1"`},
		{noAItem, `{"id":"1","a":{}}`, `/a = {}, /id = "1"`},
		{onlyABC, `{"id":"1","a":{"b":5,"x":6},"b":7,"c":[{"d":8,"e":9},{"d":{}},10]}`, `/a/b = 5, /c/[]/d = 8, /id = "1"`},
		{onlyABC, `{"id":"1","a":[{"b":5}],"c":{"d":8}}`, `/id = "1"`},
		{onlyABC, `{"id":"1","a":{},"c":[]}`, `/id = "1"`},
		{quoted, `{"id":"1","a b":{"c":[1]},"[]":2,"a":3}`, `/"[]" = 2, /a b/c/[] = 1, /id = "1"`},
		{deeper, `{"id":"1","a":{"b":{"c":1,"d":2},"e":3}}`, `/a/b/d = 2, /id = "1"`},
		{deeper, `{"id":"1","a":{"b":{"c":{"d":4}}}}`, `/a/b/c/d = 4, /id = "1"`},
		{noParts, `{"a":[]}`, `/a = []`},
		{noParts, `{"a":[1,[]],"b":[2]}`, `/b/[] = 2`},
		{none, `{"id":"1","a":2}`, ``},
	} {
		list, err := Append(Entries{}, policyOf(t, c.policy), objectOf(t, c.item), memory.Room{})
		texts := termTexts(t, &list)
		want := strings.Split(c.want, ", ")
		if c.want == "" {
			want = nil
		}
		slices.Sort(texts)
		slices.Sort(want)
		if err != nil || !slices.Equal(texts, want) {
			t.Errorf("%s under %s:\ngot  %s, %v\nwant %s", c.item, c.policy, strings.Join(texts, ", "), err, strings.Join(want, ", "))
		}
	}
}

// naiveScalar renders a value as in a term.
func naiveScalar(v value.Scalar) string {
	s, ok := v.Text()
	escaped := strings.ReplaceAll(s, "\x00", "\x00\xff")
	if !ok || len(escaped) <= maxTermValueBytes {
		return v.String()
	}
	first := strings.TrimSuffix(escaped[:maxTermValueBytes], "\x00")
	sum := sha256.Sum256([]byte(s))
	return fmt.Sprintf("%q…%x", strings.ReplaceAll(first, "\x00\xff", "\x00"), sum[:16])
}

func naiveTermText(path []step, what string) string {
	text, size, isCut := "", 0, false
	chain := make([]byte, 32)
	for _, s := range path {
		encoded, spelled := "\x03"+strings.ReplaceAll(s.name, "\x00", "\x00\xff")+"\x00\x01", nameText(s.name)
		if s.elements {
			encoded, spelled = "\x02", "/[]"
		}
		if size += len(encoded); isCut || size > maxTermPathBytes {
			sum := sha256.Sum256([]byte(string(chain) + encoded))
			chain, isCut = sum[:], true
		} else {
			text += spelled
		}
	}
	if isCut {
		text += fmt.Sprintf("/…%x", chain[:16])
	}
	return text + " = " + what
}

// naiveIndexed applies the most precise of the rules.
func naiveIndexed(rules []indexRule, path []step, scalar bool) bool {
	if len(path) > 0 && slices.Contains([]string{"_rid", "_self", "_etag", "_attachments", "_ts"}, path[0].name) {
		return false
	}
	if scalar && len(path) == 1 && path[0].name == "id" {
		return true
	}
	best, indexed := -1, false
	for _, r := range rules {
		matches := !r.scalar && len(r.path) <= len(path) && slices.Equal(r.path, path[:len(r.path)]) || r.scalar && scalar && slices.Equal(r.path, path)
		precision := 4 * len(r.path)
		if r.scalar {
			precision += 2
		}
		if r.excluded {
			precision++
		}
		if matches && precision > best {
			best, indexed = precision, !r.excluded
		}
	}
	return indexed
}

func naiveTerms(rules []indexRule, path []step, v any, found map[string]bool) {
	leaf := func(text string, scalar bool) {
		if naiveIndexed(rules, path, scalar) {
			found[naiveTermText(path, text)] = true
		}
	}
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 {
			leaf("{}", false)
		}
		for name, inner := range v {
			naiveTerms(rules, append(slices.Clone(path), named(name)), inner, found)
		}
	case []any:
		if len(v) == 0 {
			leaf("[]", false)
		}
		for _, inner := range v {
			naiveTerms(rules, append(slices.Clone(path), elements), inner, found)
		}
	case nil:
		leaf("null", true)
	case bool:
		leaf(fmt.Sprint(v), true)
	case float64:
		leaf(naiveScalar(value.Number(v)), true)
	case string:
		leaf(naiveScalar(value.String(v)), true)
	}
}

// checkAgainstTwin compares an item's terms with those of the twin.
func checkAgainstTwin(t failer, into *Entries, x *catalog.Definition, rules []indexRule, o *value.Object) {
	t.Helper()
	var err error
	if *into, err = Append(*into, x, o, memory.Room{}); err != nil {
		t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal(o.Bytes(), &v); err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	naiveTerms(rules, nil, v, found)
	got := termTexts(t, into)
	if len(got) != len(found) {
		t.Errorf("%s: got %d terms, want %d", o.Bytes(), len(got), len(found))
	}
	for _, text := range got {
		if !found[text] {
			t.Errorf("%s: got %s, which is not among %v", o.Bytes(), text, found)
		}
	}
}

func anyJSON(depth int) *rapid.Generator[any] {
	scalar := rapid.OneOf(
		rapid.Map(rapid.SampledFrom([]string{"", "x", "y", "\x00", "<&>\"\\é\u2028", strings.Repeat("s", 256), strings.Repeat("s", 257), strings.Repeat("\x00", 129)}),
			func(s string) any { return s }),
		rapid.Map(rapid.IntRange(-3, 3), func(n int) any { return n }),
		rapid.Map(rapid.Float64Range(-1e300, 1e300), func(f float64) any { return f }),
		rapid.SampledFrom([]any{nil, true, false}),
	)
	if depth == 0 {
		return scalar
	}
	return rapid.OneOf(scalar,
		rapid.Map(rapid.SliceOfN(rapid.Deferred(func() *rapid.Generator[any] { return anyJSON(depth - 1) }), 0, 4), func(s []any) any { return s }),
		rapid.Map(anyMembers(depth-1), func(m map[string]any) any { return m }))
}

func anyMembers(depth int) *rapid.Generator[map[string]any] {
	name := rapid.SampledFrom([]string{"a", "b", "c d", "[]", "id", "_ts", "_etag", "", "é\x00", strings.Repeat("n", 130), strings.Repeat("n", 300)})
	return rapid.MapOfN(name, rapid.Deferred(func() *rapid.Generator[any] { return anyJSON(depth) }), 0, 5)
}

func TestTermsAgreeWithTheTwin(t *testing.T) {
	segment := rapid.Map(rapid.SampledFrom([]string{"a", "b", "c d", "id", "_ts", "elements"}), func(name string) step {
		if name == "elements" {
			return elements
		}
		return named(name)
	})
	rule := rapid.Custom(func(t *rapid.T) indexRule {
		return indexRule{rapid.SliceOfN(segment, 1, 3).Draw(t, "path"), rapid.Bool().Draw(t, "scalar"), rapid.Bool().Draw(t, "excluded")}
	})
	var list Entries // used for all items, as by a writer
	rapid.Check(t, func(t *rapid.T) {
		rules := append(rapid.SliceOfN(rule, 0, 8).Draw(t, "rules"), indexRule{excluded: rapid.Bool().Draw(t, "root excluded")})
		x := policyOf(t, indexPolicy(rules))
		for range 3 {
			text, err := json.Marshal(anyMembers(3).Draw(t, "item"))
			if err != nil {
				t.Fatal(err)
			}
			checkAgainstTwin(t, &list, x, rules, objectOf(t, string(text)))
		}
	})
}

func FuzzTerms(f *testing.F) {
	for _, text := range []string{
		`{}`, `{"id":"1","a":[1,2,{"b":null}],"_ts":5}`, `{"a":{},"b":[],"c":[[],{}]}`, `{"\u0000":"\u0000"}`,
		`{"` + strings.Repeat("n", 300) + `":{"a":["` + strings.Repeat("s", 300) + `"]}}`, `{"a":-0,"b":1e400}`,
	} {
		f.Add([]byte(text))
	}
	x := policyOf(f, `{}`)
	f.Fuzz(func(t *testing.T, text []byte) {
		if o, err := value.ParseObject(text); err == nil {
			checkAgainstTwin(t, &Entries{}, x, everyPath, o)
		}
	})
}

// maxHostileBytes bounds the total of all allocations for the terms of one item, not only
// the memory held at once. With the race detector slices grow with one copy more; without
// it two thirds are enough.
const maxHostileBytes = 12 * maxEntriesBytes

// termsWithin returns an item's terms, and checks how much memory they take.
func termsWithin(t *testing.T, text string) (Entries, error) {
	t.Helper()
	x, o := policyOf(t, `{}`), objectOf(t, text)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	list, err := Append(Entries{}, x, o, memory.Room{})
	runtime.ReadMemStats(&after)
	if spent := after.TotalAlloc - before.TotalAlloc; spent > maxHostileBytes {
		t.Errorf("terms of an item of %d bytes took %d bytes, want at most %d", len(text), spent, maxHostileBytes)
	}
	return list, err
}

// numbers returns an array of n numbers, each of them m times.
func numbers(n, m int) string {
	var b strings.Builder
	for i := range n * m {
		fmt.Fprintf(&b, ",%d", i%n)
	}
	return "[" + b.String()[1:] + "]"
}

func TestTermsOfLargeArrays(t *testing.T) {
	name := strings.Repeat("n", 200)
	for _, c := range []struct {
		text string
		want int
	}{
		{`{"a":` + numbers(300_000, 1) + `}`, 300_000},
		{`{"a":` + numbers(10, 100_000) + `}`, 10},
		{`{"` + name + `":` + numbers(10, 100_000) + `}`, 10},        // 200 MB if duplicates counted
		{`{"` + name + `":` + numbers(50_000, 7) + `}`, 50_000},      // reduced several times
		{`{"a":[` + strings.Repeat(`[],{},`, 300_000) + `null]}`, 3}, // only empty values
	} {
		list, err := termsWithin(t, c.text)
		if err != nil || list.Len() != c.want {
			t.Errorf("%.40s…: got %d terms, %v, want %d", c.text, list.Len(), err, c.want)
		}
	}
}

func TestTooManyTerms(t *testing.T) {
	deep := func(leaf string) string {
		const levels = value.MaxNesting - 2
		return strings.Repeat(`{"a":`, levels) + leaf + strings.Repeat("}", levels)
	}
	properties := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"%d":%d`, i, i)
		}
		return "{" + b.String()[1:] + "}"
	}
	name := strings.Repeat("n", 200)
	list, err := termsWithin(t, `{"`+name+`":`+numbers(75_000, 1)+`}`)
	if err != nil || list.Len() != 75_000 || len(list.buf) > maxEntriesBytes || len(list.buf) < maxEntriesBytes*9/10 {
		t.Errorf("a little below the limit: got %d terms of %d bytes, %v", list.Len(), len(list.buf), err)
	}
	for name, text := range map[string]string{
		"barely":     `{"` + name + `":` + numbers(85_000, 1) + `}`,
		"deep path":  deep(numbers(250_000, 1)),
		"long names": `{"` + strings.Repeat("n", 240) + `":` + properties(120_000) + `}`,
	} {
		list, err := termsWithin(t, text)
		if !errors.Is(err, ErrTooManyTerms) || list.Len() != 0 {
			t.Errorf("%s: got %d terms, %v, want ErrTooManyTerms", name, list.Len(), err)
		}
		// The memory can be used again.
		if list, err = Append(list, policyOf(t, `{}`), objectOf(t, `{"a":1}`), memory.Room{}); err != nil || list.Len() != 1 {
			t.Errorf("%s: the next item: got %d terms, %v, want 1", name, list.Len(), err)
		}
	}
	// A name is hashed once, not once for every property below it, which would be a
	// hundred gigabytes here.
	list, err = termsWithin(t, `{"`+strings.Repeat("n", 1<<20)+`":`+properties(100_000)+`}`)
	if err != nil || list.Len() != 100_000 {
		t.Errorf("below a very long name: got %d terms, %v, want 100000", list.Len(), err)
	}
}

const benchTermsItem = `{"id":"5f0c6e1d-7f0b-4a1e-9d5c-0a8f2f1b7c11","pk":"customer-1842","ttl":3600,"kind":"order","total":129.95,"count":3,"paid":true,` +
	`"created":"2024-05-01T12:00:00Z","address":{"street":"12 Long Lane","city":"Springfield","zip":"49007"},"notes":"`

func benchTermsObject(b testing.TB) *value.Object {
	return objectOf(b, benchTermsItem+strings.Repeat("x", 1024-len(benchTermsItem)-2)+`"}`)
}

// evenItem returns an item with ten properties of a hundred bytes each.
func evenItem() string {
	text := `{"id":"1"`
	for n := range 9 {
		text += fmt.Sprintf(`,"property%d":"%d%s"`, (n*7)%9, n, strings.Repeat("x", 97))
	}
	return text + "}"
}

func TestTermsAllocateLittle(t *testing.T) {
	x, o := policyOf(t, `{}`), benchTermsObject(t)
	var list Entries
	if n := testing.AllocsPerRun(100, func() { list, _ = Append(list, x, o, memory.Room{}) }); n > 0 || list.Len() != 12 {
		t.Errorf("in reused memory: got %d terms with %v allocations, want 12 with none", list.Len(), n)
	}
	if n := testing.AllocsPerRun(100, func() { list, _ = Append(Entries{}, x, o, memory.Room{}) }); n > 4 || list.Len() != 12 {
		t.Errorf("in new memory: got %d terms with %v allocations, want 12 with 2, or 4 under the race detector", list.Len(), n)
	}
}

func BenchmarkTerms(b *testing.B) {
	b.Run("1 KiB, new memory", func(b *testing.B) {
		x, o := policyOf(b, `{}`), objectOf(b, evenItem())
		b.ReportAllocs()
		for b.Loop() {
			if _, err := Append(Entries{}, x, o, memory.Room{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, c := range []struct {
		name, policy string
		item         *value.Object
	}{
		{"1 KiB, ten properties", `{}`, objectOf(b, evenItem())},
		{"1 KiB, a long text", `{}`, benchTermsObject(b)},
		{"1 KiB, a few paths", `{"includedPaths":[{"path":"/pk/?"},{"path":"/address/city/?"}],"excludedPaths":[{"path":"/*"}]}`, benchTermsObject(b)},
		{"1 KiB, all but the notes", `{"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/notes/?"}]}`, benchTermsObject(b)},
		{"300,000 numbers", `{}`, objectOf(b, `{"a":`+numbers(300_000, 1)+`}`)},
	} {
		b.Run(c.name, func(b *testing.B) {
			x := policyOf(b, c.policy)
			var list Entries
			b.SetBytes(int64(len(c.item.Bytes())))
			b.ReportAllocs()
			for b.Loop() {
				var err error
				if list, err = Append(list, x, c.item, memory.Room{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
