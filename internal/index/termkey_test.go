// SPDX-License-Identifier: MIT

package index

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"pgregory.net/rapid"

	"github.com/mayflydb/mayfly/internal/value"
)

func named(name string) step { return step{name: name} }

var elements = step{elements: true}

func appendTermValue(dst []byte, v value.Scalar) []byte {
	if s, ok := v.Text(); ok {
		return appendTermString(dst, []byte(s))
	}
	return value.AppendKey(dst, v)
}

// termText renders a term for messages: /a/[]/b = 5.
func termText(p termPath, v termValue) string {
	var b strings.Builder
	for _, s := range p.steps {
		if s.elements {
			b.WriteString("/[]")
		} else {
			b.WriteString(nameText(s.name))
		}
	}
	if p.isCut {
		fmt.Fprintf(&b, "/…%x", p.hash)
	}
	b.WriteString(" = ")
	switch v.kind {
	case termScalar:
		b.WriteString(v.scalar.String())
	case termCutString:
		first, _ := v.scalar.Text()
		fmt.Fprintf(&b, "%q…%x", first, v.hash)
	case termEmptyArray:
		b.WriteString("[]")
	case termEmptyObject:
		b.WriteString("{}")
	}
	return b.String()
}

// nameText renders a name as in a policy, and an empty name, which no policy has, as "".
func nameText(name string) string {
	if name == "" {
		return `/""`
	}
	return value.Path{name}.String()
}

// Terms are on disk: these bytes must not change without a new format.
func TestTermBytes(t *testing.T) {
	sum := func(s string) string { h := sha256.Sum256([]byte(s)); return string(h[:]) }
	a256, zeros := strings.Repeat("a", 256), strings.Repeat("\x00\xff", 128)
	long := strings.Repeat("n", 300)
	for _, c := range []struct {
		name string
		got  []byte
		want string
	}{
		{"the item", appendTermPath(nil), "\x01"},
		{"a property", appendTermPath(nil, named("ab")), "\x03ab\x00\x01\x01"},
		{"a zero byte", appendTermPath(nil, named("a\x00b")), "\x03a\x00\xffb\x00\x01\x01"},
		{"elements", appendTermPath([]byte("x"), named("a"), elements, elements, named("b")), "x\x03a\x00\x01\x02\x02\x03b\x00\x01\x01"},
		{"the longest path", appendTermPath(nil, named(long[:253])), "\x03" + long[:253] + "\x00\x01\x01"},
		{"a path that is cut", appendTermPath(nil, named("a"), named(long)),
			"\x03a\x00\x01\x04" + sum(strings.Repeat("\x00", 32) + "\x03" + long + "\x00\x01")[:16]},
		{"and one below it", appendTermPath(nil, named("a"), named(long), elements),
			"\x03a\x00\x01\x04" + sum(sum(strings.Repeat("\x00", 32)+"\x03"+long+"\x00\x01") + "\x02")[:16]},
		{"a string", appendTermString(nil, []byte("a\x00")), "\x50a\x00\xff\x00\x01"},
		{"the ends of the private use area and of all", appendTermString(nil, []byte("\ud7ff\ue000\uffff\U00010000\U0010ffff")),
			"\x50\xed\x9f\xbf\xf5\x80\x80\xf6\xbf\xbf\xf0\x90\x80\x80\xf4\x8f\xbf\xbf\x00\x01"},
		{"the longest string", appendTermString(nil, []byte(a256)), "\x50" + a256 + "\x00\x01"},
		{"a string that is cut", appendTermString([]byte("x"), []byte(a256+"b")), "x\x50" + a256 + "\x00\x02" + sum(a256 + "b")[:16]},
		{"zero bytes that fit", appendTermString(nil, make([]byte, 128)), "\x50" + zeros + "\x00\x01"},
		{"zero bytes that do not", appendTermString(nil, make([]byte, 129)), "\x50" + zeros + "\x00\x02" + sum(strings.Repeat("\x00", 129))[:16]},
		{"an escape at the end", appendTermString(nil, []byte(a256[:255]+"\x00")), "\x50" + a256[:255] + "\x00\x02" + sum(a256[:255] + "\x00")[:16]},
	} {
		if string(c.got) != c.want {
			t.Errorf("%s: got %x, want %x", c.name, c.got, c.want)
		}
	}
	if tag := value.AppendKey(nil, value.String("\xff"))[0]; tag >= tagEmptyArray || tagEmptyArray >= tagEmptyObject {
		t.Errorf("strings have tag %#x, want it below those of empty arrays and objects", tag)
	}
}

// edgeString draws strings about as long as the limit, with zero bytes near the cut.
func edgeString() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		piece := rapid.SampledFrom([]string{"", "a", "a", "\x00", "é", "\ue000", "😀"}).Draw(t, "piece")
		n := rapid.OneOf(rapid.IntRange(0, 3), rapid.IntRange(125, 130), rapid.IntRange(250, 258), rapid.Just(400)).Draw(t, "n")
		tail := rapid.SliceOfN(rapid.SampledFrom([]string{"\x00", "\x01", "a", "b", "é", "\x7f", "\ud7ff", "\ue000", "\uffff", "\U00010000", "😀", "\U0010ffff"}), 0, 5).Draw(t, "tail")
		return strings.Repeat(piece, n) + strings.Join(tail, "")
	})
}

func anyScalar() *rapid.Generator[value.Scalar] {
	return rapid.OneOf(
		rapid.Map(edgeString(), value.String),
		rapid.Map(rapid.Float64Range(-1e9, 1e9), value.Number),
		rapid.SampledFrom([]value.Scalar{value.Null(), value.Bool(false), value.Bool(true), value.Number(0), value.Number(-1), value.String("")}),
	)
}

func anyPath() *rapid.Generator[[]step] {
	name := rapid.OneOf(rapid.SampledFrom([]string{"", "a", "b", "ab", "a\x00", "\x00", "\x01", "[]"}), edgeString())
	return rapid.SliceOfN(rapid.OneOf(rapid.Just(elements), rapid.Map(name, named)), 0, 6)
}

// kept returns the bytes of a string that remain in its term, and whether it is cut.
func kept(s string) (first string, isCut bool) {
	escaped := strings.ReplaceAll(s, "\x00", "\x00\xff")
	if len(escaped) <= maxTermValueBytes {
		return escaped, false
	}
	return strings.TrimSuffix(escaped[:maxTermValueBytes], "\x00"), true
}

// compareUTF16 is value.Compare with strings in the order of their UTF-16 code units.
func compareUTF16(a, b value.Scalar) int {
	aText, aOK := a.Text()
	bText, bOK := b.Text()
	if aOK && bOK {
		return slices.Compare(utf16.Encode([]rune(aText)), utf16.Encode([]rune(bText)))
	}
	return value.Compare(a, b)
}

// Terms of one path sort as their values, whatever ordinals follow. Terms of strings that
// are cut after the same bytes are only equal or different.
func TestTermsKeepTheOrderOfValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		path := anyPath().Draw(t, "path")
		a, b := anyScalar().Draw(t, "a"), anyScalar().Draw(t, "b")
		if rapid.Bool().Draw(t, "alike") {
			b = a
		}
		key := func(v value.Scalar, tail string) []byte {
			return append(appendTermValue(appendTermPath(nil, path...), v), tail...)
		}
		got, want := bytes.Compare(key(a, "\xff\xff"), key(b, "\x00\x00")), compareUTF16(a, b)
		if want == 0 {
			want = 1
		}
		aText, aOK := a.Text()
		bText, bOK := b.Text()
		if aOK && bOK && a != b {
			aFirst, aCut := kept(aText)
			bFirst, bCut := kept(bText)
			if aCut && bCut && aFirst == bFirst {
				if bytes.Equal(key(a, ""), key(b, "")) {
					t.Errorf("%v and %v have one term", a, b)
				}
				return
			}
		}
		if got != want {
			t.Errorf("terms of %v and %v: got order %d, want %d", a, b, got, want)
		}
		for _, tag := range []byte{tagEmptyArray, tagEmptyObject} {
			if bytes.Compare(key(a, "\xff"), append(appendTermPath(nil, path...), tag)) >= 0 {
				t.Errorf("the term of %v is not below that of an empty value", a)
			}
		}
	})
}

// Terms of a path lie together, those below it lie together after them, and no
// others lie among them.
func TestTermsOfAPathLieTogether(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, q := anyPath().Draw(t, "p"), anyPath().Draw(t, "q")
		if rapid.Bool().Draw(t, "related") {
			q = slices.Concat(p, q)
		}
		prefix, other := appendTermPath(nil, p...), appendTermValue(appendTermPath(nil, q...), anyScalar().Draw(t, "value"))
		if got, want := bytes.HasPrefix(other, prefix), slices.Equal(p, q); got != want {
			t.Errorf("the term of %+v begins with the path %+v: got %v, want %v", q, p, got, want)
		}
		lower, upper, ok := termsBelow(p...)
		if !ok {
			if prefix[len(prefix)-1-termHashBytes] != pathCut {
				t.Errorf("no range below %+v, which is not cut", p)
			}
			return
		}
		got := bytes.Compare(lower, other) <= 0 && bytes.Compare(other, upper) < 0
		if want := len(q) > len(p) && slices.Equal(p, q[:len(p)]); got != want {
			t.Errorf("the term of %+v is below %+v: got %v, want %v", q, p, got, want)
		}
		if bytes.Compare(append(bytes.Clone(prefix), tagEmptyObject, 0xff), lower) >= 0 {
			t.Errorf("the terms of %+v are not before those below it", p)
		}
	})
}

func TestParseTermGivesBackWhatWasEncoded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		path, v := anyPath().Draw(t, "path"), anyScalar().Draw(t, "value")
		raw := append(appendTermValue(appendTermPath(nil, path...), v), "ordinal!"...)
		p, got, rest, err := parseTerm(raw)
		if err != nil || string(rest) != "ordinal!" {
			t.Fatalf("%+v = %v: got rest %q, %v", path, v, rest, err)
		}
		if text := termText(p, got); text != naiveTermText(path, naiveScalar(v)) {
			t.Errorf("got %s, want %s", text, naiveTermText(path, naiveScalar(v)))
		}
		for cut := range len(raw) - len("ordinal!") {
			if _, _, _, err := parseTerm(raw[:cut]); !errors.Is(err, value.ErrKey) {
				t.Errorf("the first %d bytes of %x: got %v, want ErrKey", cut, raw, err)
			}
		}
	})
}

func TestParseTermRefuses(t *testing.T) {
	a256 := strings.Repeat("a", 256)
	for name, raw := range map[string]string{
		"nothing": "", "no such step": "\x05\x20", "step zero": "\x00", "undefined": "\x01\x10", "unknown tag": "\x01\x61",
		"path too long": "\x03" + a256[:254] + "\x00\x01\x01\x20", "too many steps": strings.Repeat("\x02", 257) + "\x01\x20",
		"hash cut short": "\x04" + a256[:15], "string too long": "\x01\x50" + a256 + "a\x00\x01",
		"cut too early": "\x01\x50" + a256[:254] + "\x00\x02" + a256[:16], "cut too late": "\x01\x50" + a256 + "a\x00\x02" + a256[:16],
		"cut after an escape":                 "\x01\x50" + a256[:255] + "\x00\xff\x00\x02" + a256[:16],
		"a first byte that is written higher": "\x01\x50\xee\x80\x80\x00\x01", "and one of a cut string": "\x01\x50\xef" + a256[:255] + "\x00\x02" + a256[:16],
		"a cut number": "\x01\x40" + a256 + "\x00\x02" + a256[:15],
	} {
		p, v, _, err := parseTerm([]byte(raw))
		// The number is not a cut string: it is a number with more bytes behind it.
		if number := name == "a cut number"; number && (err != nil || v.scalar.Kind() != value.KindNumber) || !number && !errors.Is(err, value.ErrKey) {
			t.Errorf("%s: got %s, %v, want ErrKey", name, termText(p, v), err)
		}
	}
}

// Bytes that parseTerm accepts are the only encoding of the term that it returns.
func FuzzParseTerm(f *testing.F) {
	f.Add(appendTermValue(appendTermPath(nil, named("a"), elements, named("b\x00")), value.Number(5)))
	f.Add(appendTermString(appendTermPath(nil, named(strings.Repeat("n", 300)), named("x")), []byte(strings.Repeat("s", 300))))
	f.Add(append(appendTermPath(nil, named("e")), tagEmptyObject, 1, 2, 3))
	f.Add(appendTermString(appendTermPath(nil), make([]byte, 129)))
	f.Add(appendTermString(appendTermPath(nil), []byte(strings.Repeat("a", 255)+"\x00")))
	f.Add([]byte("\x01\x10"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		p, v, rest, err := parseTerm(raw)
		if err != nil {
			if !errors.Is(err, value.ErrKey) {
				t.Errorf("%x: got %v, want ErrKey", raw, err)
			}
			return
		}
		again := appendTermPath(nil, p.steps...)
		if p.isCut {
			again = append(append(again[:len(again)-1], pathCut), p.hash[:]...)
		}
		switch v.kind {
		case termScalar:
			again = appendTermValue(again, v.scalar)
		case termCutString:
			from := len(again)
			again = value.AppendKey(again, v.scalar)
			raiseLeads(again[from:])
			again = append(append(again[:len(again)-2], escape, escapedCut), v.hash[:]...)
		case termEmptyArray:
			again = append(again, tagEmptyArray)
		case termEmptyObject:
			again = append(again, tagEmptyObject)
		}
		if again = append(again, rest...); !bytes.Equal(again, raw) {
			t.Errorf("%s, %q behind it:\ngot  %s\nwant %s", raw, rest, hex.EncodeToString(again), hex.EncodeToString(raw))
		}
	})
}
