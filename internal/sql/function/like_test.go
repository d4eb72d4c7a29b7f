// SPDX-License-Identifier: MIT

package function

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestLike(t *testing.T) {
	sheet(t, `
"river" LIKE "river" => true
"river" LIKE "rive" => false
"river" LIKE "RIVER" => false
"river" LIKE "r%" => true
"river" LIKE "%r" => true
"river" LIKE "%ve%" => true
"river" LIKE "%" => true
"" LIKE "%" => true
"" LIKE "" => true
"" LIKE "_" => false
"river" LIKE "" => false
"river" LIKE "r_v_r" => true
"river" LIKE "____" => false
"river" LIKE "r%v%r" => true
"river" LIKE "%i%i%" => false
"abab" LIKE "%ab" => true
"aab" LIKE "a%ab" => true
"ab" LIKE "ab%ab" => false
"cat" LIKE "[bc]at" => true
"cat" LIKE "[a-c]at" => true
"cat" LIKE "[^a-c]at" => false
"dat" LIKE "[^a-c]at" => true
"-at" LIKE "[a-]at" => true
"]at" LIKE "[]]at" => true
"50%" LIKE "50[%]" => true
"505" LIKE "50[%]" => false
"a_b" LIKE "a[_]b" => true
"a[b" LIKE "a[[]b" => true
"a[b" LIKE "a[b" => true
"50%" LIKE "50!%" ESCAPE "!" => true
"505" LIKE "50!%" ESCAPE "!" => false
"a!b" LIKE "a!!b" ESCAPE "!" => true
"a]b" LIKE "a[!]]b" ESCAPE "!" => true
"é" LIKE "_" => true
"😀" LIKE "_" => true
"a😀b" LIKE "a[😀-😂]b" => true
"river" NOT LIKE "r%" => false
1 LIKE "1" => undefined
"1" LIKE 1 => undefined
undefined LIKE "%" => undefined
`)
	if _, ok := CompileLike("a!", '!'); ok {
		t.Error("a pattern may end with the escape character")
	}
	for pattern, want := range map[string]bool{
		strings.Repeat("_", 5000) + "%":                         true,
		"%" + strings.Repeat("_", 5000):                         true,
		"%" + strings.Repeat("x", 5000) + "%":                   true,
		"%" + strings.Repeat("_", maxFloating) + "%":            true,
		"%" + strings.Repeat("_", maxFloating+1) + "%":          false,
		"%a%" + strings.Repeat("x", maxFloating) + "[ab]" + "%": false,
	} {
		if _, ok := CompileLike(pattern, NoEscape); ok != want {
			t.Errorf("a pattern of %d bytes, %.5q…: got %v", len(pattern), pattern, ok)
		}
	}
}

// likeTwin matches by trying everything.
func likeTwin(pattern, s []rune) bool {
	if len(pattern) == 0 {
		return len(s) == 0
	}
	switch pattern[0] {
	case '%':
		return likeTwin(pattern[1:], s) || len(s) > 0 && likeTwin(pattern, s[1:])
	case '_':
		return len(s) > 0 && likeTwin(pattern[1:], s[1:])
	}
	return len(s) > 0 && s[0] == pattern[0] && likeTwin(pattern[1:], s[1:])
}

func TestLikeModel(t *testing.T) {
	letters := rapid.SampledFrom([]rune("aab%_é"))
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.StringOfN(letters, 0, 8, -1).Draw(t, "pattern")
		s := rapid.StringOfN(letters, 0, 12, -1).Draw(t, "s")
		p, ok := CompileLike(pattern, NoEscape)
		if !ok {
			t.Fatalf("%q is refused", pattern)
		}
		if got, want := p.match(s), likeTwin([]rune(pattern), []rune(s)); got != want {
			t.Fatalf("%q LIKE %q: got %v", s, pattern, got)
		}
	})
}

func FuzzLike(f *testing.F) {
	for _, seed := range []struct{ pattern, s, escape string }{
		{"a%b", "ab", ""}, {"[a-", "[a-", ""}, {"[^]]%", "x", ""}, {"!", "!", "!"}, {"[!", "[!", "!"}, {"_\xff", "a\xff", ""}, {"[\xff-😀]", "é", ""},
	} {
		f.Add(seed.pattern, seed.s, seed.escape)
	}
	f.Fuzz(func(t *testing.T, pattern, s, escape string) {
		by := NoEscape
		for _, r := range escape {
			by = r
			break
		}
		p, ok := CompileLike(pattern, by)
		if !ok {
			return
		}
		matched := p.match(s)
		within, ok := CompileLike("%"+pattern+"%", by)
		if ok && by != '%' && matched && !within.match("x"+s+"y") {
			t.Errorf("%q LIKE %q ESCAPE %q, but not in the middle", s, pattern, escape)
		}
	})
}

func BenchmarkLike(b *testing.B) {
	text := "Mountain bike with a carbon frame, 29 inch wheels and hydraulic brakes"
	for name, pattern := range map[string]string{
		"Prefix": "Mountain%", "Middle": "%hydraulic%", "Sets": "%[0-9][0-9] inch%", "Gaps": "%b_ke%br_kes",
	} {
		b.Run(name, func(b *testing.B) {
			p, _ := CompileLike(pattern, NoEscape)
			b.ReportAllocs()
			for b.Loop() {
				if !p.match(text) {
					b.Fatal("no match")
				}
			}
		})
	}
}
