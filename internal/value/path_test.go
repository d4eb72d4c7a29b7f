// SPDX-License-Identifier: MIT

package value

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParsePath(t *testing.T) {
	f := func(s string, want ...string) {
		t.Helper()
		if got, err := ParsePath(s); err != nil || !slices.Equal(got, want) {
			t.Errorf("ParsePath(%q) = %q, %v; want %q", s, got, err, want)
		}
	}
	f("/a", "a")
	f("/a/b/c", "a", "b", "c")
	f("/_partitionKey", "_partitionKey")
	f("/my-prop/@type/$x.y:z", "my-prop", "@type", "$x.y:z")
	f("/a b/it's/é", "a b", "it's", "é")
	f(`/"a b"/c`, "a b", "c")
	f(`/"a/b"/c`, "a/b", "c")
	f(`/"*"/"?"/"[]"`, "*", "?", "[]")
	f(`/"a\"b\\c\u00e9\n"/d`, "a\"b\\cé\n", "d")
	f(`/'a b'/'c/d'`, "a b", "c/d")
	f(`/'a\'b"c\"d\\'`, `a'b"c"d\`)
	f(`/"'"`, "'")
	f("/"+strings.Repeat("a/", MaxPathSegments-1)+"a", slices.Repeat([]string{"a"}, MaxPathSegments)...)
}

func TestParsePathRefuses(t *testing.T) {
	f := func(s string, want, other error) {
		t.Helper()
		if p, err := ParsePath(s); !errors.Is(err, want) || errors.Is(err, other) || p != nil {
			t.Errorf("ParsePath(%q) = %q, %v; want %v", s, p, err, want)
		}
	}
	for _, s := range []string{"", "id", "a/b", ` /a`, `"a"`, "*"} {
		f(s, ErrPathSlash, ErrPathSyntax)
	}
	for _, s := range []string{
		"/", "//", "/a/", "/a//b", `/"a"/`, "/*", "/a/*", "/a/?", "/a/[]", "/a/[]/b", "/a[0]", "/a*", "/a?", `/""`, `/''`,
		`/"a`, `/'a`, `/"a"b`, `/"a" /b`, `/"a\"`, `/"\x"`, `/"\ud800"`, `/a"b`, `/a\b`, "/a\n", "/a\x7f", "/ a", "/a ", "/a /b", "/\xff", "/\"\xff\"",
		"/" + strings.Repeat("a/", MaxPathSegments) + "a",
	} {
		f(s, ErrPathSyntax, ErrPathSlash)
	}
}

func TestPathString(t *testing.T) {
	f := func(want string, p ...string) {
		t.Helper()
		if got := Path(p).String(); got != want {
			t.Errorf("%q is written as %s, want %s", p, got, want)
		}
	}
	f("")
	f("/a/b", "a", "b")
	f(`/a b/"/"/"*"`, "a b", "/", "*")
	f(`/"'a'"/it's/" a"`, "'a'", "it's", " a")
	f(`/"a\"b"/"a\\b"/"\n"`, `a"b`, `a\b`, "\n")
}

func TestPathRoundTrip(t *testing.T) {
	segment := rapid.StringOfN(rapid.RuneFrom([]rune("ab/\"'\\*?[] \t\x00é\U0001F600")), 1, 6, -1)
	rapid.Check(t, func(t *rapid.T) {
		p := Path(rapid.SliceOfN(segment, 1, 5).Draw(t, "p"))
		if got, err := ParsePath(p.String()); err != nil || !slices.Equal(got, p) {
			t.Fatalf("%q is written as %s and read as %q, %v", p, p.String(), got, err)
		}
	})
}

func FuzzPath(f *testing.F) {
	for _, seed := range []string{"/a/b", `/"a b"/c`, `/'x'/"y\u00e9"`, "/", "//", "/a/", "/*", "/a/?", "/a/[]", "a", `/"\`, `/'\\\'"'`, "/a\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := ParsePath(s)
		if err != nil {
			if errors.Is(err, ErrPathSlash) == errors.Is(err, ErrPathSyntax) || errors.Is(err, ErrPathSlash) == strings.HasPrefix(s, "/") {
				t.Fatalf("ParsePath(%q): %v", s, err)
			}
			return
		}
		if len(p) == 0 || len(p) > MaxPathSegments || slices.Contains(p, "") {
			t.Fatalf("ParsePath(%q) = %q", s, p)
		}
		if again, err := ParsePath(p.String()); err != nil || !slices.Equal(again, p) {
			t.Fatalf("ParsePath(%q) = %q, written as %s and read as %q, %v", s, p, p.String(), again, err)
		}
	})
}
