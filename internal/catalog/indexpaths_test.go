// SPDX-License-Identifier: MIT

package catalog

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mayflydb/mayfly/internal/value"
)

// policy returns an indexing policy with these paths.
func policy(included, excluded string) string {
	list := func(paths string) string {
		out := []byte("[")
		for i, p := range strings.Fields(paths) {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(value.AppendString(append(out, `{"path":`...), p), '}')
		}
		return string(append(out, ']'))
	}
	return `{"includedPaths":` + list(included) + `,"excludedPaths":` + list(excluded) + `}`
}

// at follows a path of properties and array steps through a tree.
func (x *IndexPaths) at(steps []indexStep) *IndexNode {
	n := x.Root()
	for _, s := range steps {
		switch {
		case n == nil:
			return nil
		case s.elements:
			n = n.Elements()
		default:
			n = n.Property([]byte(s.name))
		}
	}
	return n
}

func indexed(n *IndexNode) string {
	switch {
	case n == nil:
		return "nothing"
	case n == everything:
		return "everything"
	}
	return fmt.Sprintf("scalar %v, empty %v", n.Scalar(), n.Empty())
}

func TestIndexPaths(t *testing.T) {
	const (
		scalarOnly = "scalar true, empty false"
		noScalar   = "scalar false, empty true"
		within     = "scalar false, empty false"
		butForPart = "scalar true, empty true"
	)
	for _, c := range []struct {
		policy string
		want   map[string]string // by path
	}{
		{`{}`, map[string]string{"/a": "everything", "/id": "everything", "/ttl": "everything", "/_tsx": "everything", "/_x": "everything",
			"/_rid": "nothing", "/_self": "nothing", "/_etag": "nothing", "/_attachments": "nothing", "/_ts": "nothing", "/a/_ts": "everything"}},
		{`{"indexingMode":"lazy"}`, map[string]string{"/a": "everything", "/_ts": "nothing"}},
		{policy(``, `/*`), map[string]string{"/a": "nothing", "/a/b": "nothing", "/id": scalarOnly, "/_ts": "nothing"}},
		{policy(`/_ts/?`, `/* /id/?`), map[string]string{"/id": scalarOnly, "/_ts": "nothing"}},
		{policy(`/*`, `/a/?`), map[string]string{"/a": noScalar, "/a/b": "everything", "/a/[]": "everything", "/b": "everything"}},
		{policy(`/*`, `/a/*`), map[string]string{"/a": "nothing", "/a/b": "nothing", "/ab": "everything"}},
		{policy(`/*`, `/a`), map[string]string{"/a": "nothing", "/a/b": "nothing"}},
		{policy(`/a/?`, `/*`), map[string]string{"/a": scalarOnly, "/a/b": "nothing", "/a/[]": "nothing"}},
		{policy(`/a/*`, `/*`), map[string]string{"/a": "everything", "/a/b": "everything"}},
		{policy(`/a/b/?`, `/* /a/*`), map[string]string{"/a": within, "/a/b": scalarOnly, "/a/b/c": "nothing", "/a/c": "nothing"}},
		{policy(`/food/ingredients/nutrition/*`, `/* /food/ingredients/*`), map[string]string{
			"/food": within, "/food/ingredients": within, "/food/ingredients/nutrition": "everything", "/food/x": "nothing"}},
		{policy(`/* /a/?`, `/a/*`), map[string]string{"/a": scalarOnly, "/a/b": "nothing"}},
		{policy(`/* /a/*`, `/a/?`), map[string]string{"/a": noScalar, "/a/b": "everything"}},
		{policy(`/* /a/?`, `/a/?`), map[string]string{"/a": noScalar}},
		{policy(`/* /a/*`, `/a/*`), map[string]string{"/a": "nothing"}},
		{policy(`/a/[]/b/?`, `/*`), map[string]string{"/a": within, "/a/[]": within, "/a/[]/b": scalarOnly, "/a/b": "nothing", `/a/"[]"`: "nothing"}},
		{policy(`/*`, `/a/[]/*`), map[string]string{"/a": butForPart, "/a/[]": "nothing", "/a/b": "everything"}},
		{policy(`/"a/b"/? /'[]'/? /"\u0063"/?`, `/*`), map[string]string{`/"a/b"`: scalarOnly, `/"[]"`: scalarOnly, "/c": scalarOnly, "/[]": "nothing", "/a": "nothing"}},
		{policy(`/* /? /[]/?`, ``), map[string]string{"/a": "everything"}},
	} {
		d := parse(t, withIndexing(c.policy))
		for path, want := range c.want {
			p, err := parseIndexPath(path)
			if err != nil {
				t.Fatal(err)
			}
			if got := indexed(d.Index.at(p.steps)); got != want {
				t.Errorf("%s at %s: got %s, want %s", c.policy, path, got, want)
			}
		}
	}
}

func TestIndexPathsEmpty(t *testing.T) {
	var zero IndexPaths
	none := parse(t, withIndexing(`{"indexingMode":"none"}`)).Index
	if !zero.Empty() || !none.Empty() || !zero.Equal(&none) || zero.Root() != nil {
		t.Errorf("the zero value and mode none: got %+v and %+v, want both empty", zero, none)
	}
	if x := parse(t, with("")).Index; x.Empty() || x.Equal(&zero) || zero.Equal(&x) {
		t.Errorf("the default policy: got %+v, want it not empty", x)
	}
}

func TestIndexPathsEqual(t *testing.T) {
	groups := [][]string{ // equal within, different between
		{`{}`, policy(`/*`, ``), policy(`/* /a/? /b/*`, `/_ts/?`), `{"indexingMode":"lazy","automatic":false}`, policy(`/* /id/?`, `/?`)},
		{policy(`/*`, `/a/*`), policy(`/* /a/*`, `/a/* /a/b/? /a/[]/*`), policy(`/*`, `/"a"`)},
		{policy(`/*`, `/a/?`)},
		{policy(`/*`, `/b/?`)},
		{policy(`/*`, `/a/b/?`)},
		{policy(`/*`, `/a/[]/?`)},
		{policy(``, `/*`), policy(`/id/?`, `/*`), policy(``, `/* /id/* /c/?`)},
		{policy(`/a/?`, `/*`)},
		{policy(`/a/? /b/?`, `/*`)},
	}
	for i, a := range groups {
		for j, b := range groups {
			for _, pair := range slices.Concat([][2]string{{a[0], b[0]}}, [][2]string{{a[len(a)-1], b[len(b)/2]}}) {
				x, y := parse(t, withIndexing(pair[0])).Index, parse(t, withIndexing(pair[1])).Index
				if got := x.Equal(&y); got != (i == j) {
					t.Errorf("%s and %s: got equal %v, want %v", pair[0], pair[1], got, i == j)
				}
			}
		}
	}
}

// A rendered policy that is sent back indexes the same values.
func TestIndexPathsSurviveTheirRendering(t *testing.T) {
	for _, c := range validDefinitions {
		d := parse(t, c.body)
		if again := parse(t, render(d)); !again.Index.Equal(&d.Index) {
			t.Errorf("%s: rendered as %s it indexes something else", c.name, render(d))
		}
	}
}

func TestParseIndexPath(t *testing.T) {
	deepest := strings.Repeat("/[]", value.MaxPathSegments)
	for text, want := range map[string]string{
		"/*": "[] false", "/?": "[] true", "/a": "[{a false}] false", "/a/?": "[{a false}] true", "/a/[]/b/*": "[{a false} { true} {b false}] false",
		`/"a/?"/?`: "[{a/? false}] true", `/"a\"/b"/c`: `[{a"/b false} {c false}] false`, `/'it\'s'/*`: "[{it's false}] false", `/"*"`: "[{* false}] false",
	} {
		p, err := parseIndexPath(text)
		if got := fmt.Sprint(p.steps, " ", p.scalar); err != nil || got != want {
			t.Errorf("%s: got %s, %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{deepest, deepest + "/?", deepest + "/*"} {
		if p, err := parseIndexPath(text); err != nil || len(p.steps) != value.MaxPathSegments {
			t.Errorf("the deepest path: got %d steps, %v", len(p.steps), err)
		}
	}
	for _, text := range []string{"", "a", "/", "//", "/a/", "/a//?", "/a/*/?", "/a/?/*", "/*/a", "/?/?", "/[]x", "/[", "/a[]", `/"a`, `/"a\"`, `/"a"b`, `/""/?`, `/'`, deepest + "/a"} {
		if p, err := parseIndexPath(text); err == nil {
			t.Errorf("%q: got %v, want a refusal", text, p)
		}
	}
}

// naiveIndexed searches all paths of a policy and lets the most precise one decide.
func naiveIndexed(included, excluded []string, path []indexStep, scalar bool) bool {
	if SystemProperty(path[0].name) {
		return false
	}
	if scalar && len(path) == 1 && path[0].name == "id" {
		return true
	}
	best, verdict := -1, false
	for i, text := range slices.Concat(included, excluded) {
		p, err := parseIndexPath(text)
		if err != nil {
			panic(err)
		}
		precision := 2 * len(p.steps)
		if p.scalar {
			precision++
			if !scalar || !slices.Equal(p.steps, path) {
				continue
			}
		} else if len(p.steps) > len(path) || !slices.Equal(p.steps, path[:len(p.steps)]) {
			continue
		}
		if precision >= best {
			best, verdict = precision, i < len(included)
		}
	}
	return verdict
}

// The tree agrees with a search through all paths, at every path.
func TestIndexPathsAgreeWithTheTwin(t *testing.T) {
	segment := rapid.SampledFrom([]string{"/a", "/b", "/[]", "/id", "/_ts", `/"a b"`})
	pathText := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(segment, 1, 4).Draw(t, "segments"), "")
	})
	ended := rapid.Custom(func(t *rapid.T) string {
		return pathText.Draw(t, "path") + rapid.SampledFrom([]string{"/?", "/*", ""}).Draw(t, "end")
	})
	rapid.Check(t, func(t *rapid.T) {
		included, excluded := rapid.SliceOfN(ended, 0, 6).Draw(t, "included"), rapid.SliceOfN(ended, 0, 6).Draw(t, "excluded")
		if rapid.Bool().Draw(t, "root included") {
			included = append(included, "/*")
		} else {
			excluded = append(excluded, "/*")
		}
		x, err := compileIndexPaths(included, excluded)
		if err != nil {
			t.Fatal(err)
		}
		p, err := parseIndexPath(pathText.Filter(func(s string) bool { return !strings.HasPrefix(s, "/[]") }).Draw(t, "path"))
		if err != nil {
			t.Fatal(err)
		}
		n := x.at(p.steps)
		if got, want := n != nil && n.Scalar(), naiveIndexed(included, excluded, p.steps, true); got != want {
			t.Errorf("%q without %q: scalar at %v: got %v, want %v", included, excluded, p.steps, got, want)
		}
		if got, want := n != nil && n.Empty(), naiveIndexed(included, excluded, p.steps, false); got != want {
			t.Errorf("%q without %q: empty value at %v: got %v, want %v", included, excluded, p.steps, got, want)
		}
	})
}

// An accepted path, written out again, is the same path.
func FuzzParseIndexPath(f *testing.F) {
	for _, text := range []string{"/*", "/?", "/a/b/?", "/a/[]/b/*", `/"a b"/'c\''`, `/"[]"/?`, "/a/*/?", "//", `/"\`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parseIndexPath(text)
		if err != nil {
			return
		}
		again := ""
		for _, s := range p.steps {
			if s.elements {
				again += "/[]"
			} else {
				again += value.Path{s.name}.String()
			}
		}
		if again += "/*"; p.scalar {
			again = strings.TrimSuffix(again, "/*") + "/?"
		}
		if q, err := parseIndexPath(again); err != nil || !slices.Equal(p.steps, q.steps) || p.scalar != q.scalar {
			t.Errorf("%q is %v, and spelled %q it is %v, %v", text, p, again, q, err)
		}
	})
}
