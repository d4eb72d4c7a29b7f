// SPDX-License-Identifier: MIT

// Looking into arrays and objects: light passes over JSON text that is known to
// be valid and compact. Nothing here checks grammar, and nothing reads beyond
// its input even so.

package datum

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Member returns an object's property, or undefined if there is none or v is no
// object.
func (v Value) Member(name string) Value {
	if v.kind != KindObject {
		return Value{}
	}
	text := v.text
	for i := 1; i < len(text) && text[i] == '"'; {
		colon := stringEnd(text, i)
		start := colon + 1
		// Comparing lengths first spares most names the look at their bytes.
		if colon-i == len(name)+2 && text[i+1:colon-1] == name && strings.IndexByte(name, '\\') < 0 ||
			colon-i > len(name)+2 && isEscapedName(text[i:colon], name) {
			return v.projected(start)
		}
		i = valueEnd(text, start) + 1
	}
	return Value{}
}

// isEscapedName compares a quoted name, which may have escapes in it, with a
// name.
func isEscapedName(quoted, name string) bool {
	return strings.IndexByte(quoted, '\\') >= 0 && unquote(quoted) == name
}

// Index returns the element of an array, counted from zero, or undefined if
// there is none or v is no array.
func (v Value) Index(i int) Value {
	if i < 0 {
		return Value{}
	}
	for element := range v.Elements {
		if i == 0 {
			return element
		}
		i--
	}
	return Value{}
}

// Len returns how many elements an array or properties an object has, and -1
// for every other value.
func (v Value) Len() int {
	n := 0
	switch v.kind {
	case KindArray:
		for i := 1; i < len(v.text)-1; n++ {
			i = valueEnd(v.text, i) + 1
		}
	case KindObject:
		for i := 1; i < len(v.text)-1; n++ {
			i = valueEnd(v.text, stringEnd(v.text, i)+1) + 1
		}
	default:
		return -1
	}
	return n
}

// Elements calls yield for the elements of an array, in order, until it returns
// false. Other values have none.
func (v Value) Elements(yield func(Value) bool) {
	if v.kind != KindArray {
		return
	}
	for i := 1; i < len(v.text)-1; {
		end := valueEnd(v.text, i)
		if !yield(v.part(v.text[i:end])) {
			return
		}
		i = end + 1
	}
}

// Properties calls yield for the properties of an object, in the order they are
// written, until it returns false. Other values have none.
func (v Value) Properties(yield func(name string, property Value) bool) {
	if v.kind != KindObject {
		return
	}
	for i := 1; i < len(v.text)-1; {
		colon := stringEnd(v.text, i)
		end := valueEnd(v.text, colon+1)
		name, _ := fromText(v.text[i:colon]).AsString()
		if !yield(name, v.part(v.text[colon+1:end])) {
			return
		}
		i = end + 1
	}
}

// part returns a value inside v. Where v holds a number that is not finite, an
// array or object inside it might.
func (v Value) part(text string) Value {
	p := fromText(text)
	if p.kind == KindArray || p.kind == KindObject {
		p.form = formSent
		if v.form == formInfinite {
			p.form = formInfinite
		}
	}
	return p
}

// projected returns the part that begins at v.text[i]. Most paths lead to what is put into
// a result: whether its numbers have to be written anew is seen on the way to its end, at
// little cost, and not when it is written.
func (v Value) projected(i int) Value {
	if i < len(v.text) && (v.text[i] == '{' || v.text[i] == '[') {
		end, spelled := partEnd(v.text, i)
		p := v.part(v.text[i:end])
		if p.form == formSent && !spelled {
			p.form = formPlain
		}
		return p
	}
	return fromText(v.text[i:valueEnd(v.text, i)])
}

// shortString is how many bytes of a string are looked at one by one, which for
// that many is faster than a search.
const shortString = 24

// stringEnd returns what follows the string that begins at text[i].
func stringEnd(text string, i int) int {
	i++
	for short := min(len(text), i+shortString); i < short; i++ {
		switch text[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
	}
	for i < len(text) {
		quote := strings.IndexByte(text[i:], '"')
		if quote < 0 {
			break
		}
		quote += i
		backslashes := 0
		for quote-backslashes > i && text[quote-backslashes-1] == '\\' {
			backslashes++
		}
		i = quote + 1
		if backslashes%2 == 0 {
			return i
		}
	}
	return len(text)
}

// valueEnd returns what follows the value that begins at text[i].
func valueEnd(text string, i int) int {
	if i >= len(text) {
		return i
	}
	switch text[i] {
	case '"':
		return stringEnd(text, i)
	case '{', '[':
		return containerEnd(text, i)
	}
	return literalEnd(text, i)
}

// containerEnd returns what follows the array or object that begins at text[i].
func containerEnd(text string, i int) int {
	for depth := 0; i < len(text); {
		switch text[i] {
		case '"':
			i = stringEnd(text, i)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
			if depth == 0 {
				return i + 1
			}
		}
		i++
	}
	return i
}

// partEnd is containerEnd, and tells whether there may be a number in between that is not
// in the shortest form: then the text is not copied into results as it is.
func partEnd(text string, i int) (end int, spelled bool) {
	for depth := 0; i < len(text); i++ {
		switch partBytes[text[i]] {
		case partString:
			i = stringEnd(text, i) - 1
		case partOpens:
			depth++
		case partCloses:
			if depth--; depth == 0 {
				return i + 1, spelled
			}
		case partPoint:
			n := fractionLen(text, i+1)
			spelled = spelled || n == 0 || i > maxPlainWhole && isDigit(text[i-maxPlainWhole])
			i += n
		case partExponent:
			spelled = spelled || isDigit(text[i-1]) // or else it is of true or false
		}
	}
	return i, spelled
}

// What partEnd does at a byte outside of strings.
const (
	partString = iota + 1
	partOpens
	partCloses
	partPoint
	partExponent
)

var partBytes = [256]byte{'"': partString, '{': partOpens, '[': partOpens, '}': partCloses, ']': partCloses,
	'.': partPoint, 'e': partExponent, 'E': partExponent}

// maxPlainWhole and maxPlainFraction are how many digits a number may have before its point
// and after it to be taken for the shortest form at a glance.
const (
	maxPlainWhole    = 9
	maxPlainFraction = 6
)

// fractionLen returns how long a fraction is that is as short as it can be, 0 for any other.
func fractionLen(text string, i int) int {
	n := 0
	for i+n < len(text) && isDigit(text[i+n]) {
		n++
	}
	if n == 0 || n > maxPlainFraction || text[i+n-1] == '0' {
		return 0
	}
	return n
}

// isPlainNumber reports whether a number is in the shortest form at a glance.
func isPlainNumber(text string) bool {
	for i := range len(text) {
		if text[i] == '.' {
			return i <= maxPlainWhole && i+1+fractionLen(text, i+1) == len(text)
		}
		if !isDigit(text[i]) && (i > 0 || text[i] != '-') {
			return false
		}
	}
	return true
}

// literalEnd returns what follows the number or word that begins at text[i].
func literalEnd(text string, i int) int {
	for i < len(text) && text[i] != ',' && text[i] != '}' && text[i] != ']' {
		i++
	}
	return i
}

// unquote decodes a valid JSON string with its quotes. Half of a surrogate pair,
// which no parser of ours lets in, becomes U+FFFD.
func unquote(quoted string) string {
	body := quoted[1 : len(quoted)-1]
	var b strings.Builder
	b.Grow(len(body))
	for {
		i := strings.IndexByte(body, '\\')
		if i < 0 || i+1 >= len(body) {
			b.WriteString(body)
			return b.String()
		}
		b.WriteString(body[:i])
		if body[i+1] == 'u' {
			r, size := unquoteRune(body[i:])
			b.WriteRune(r)
			body = body[i+size:]
			continue
		}
		b.WriteByte(unescape(body[i+1]))
		body = body[i+2:]
	}
}

// unescape returns the character that a backslash and c stand for.
func unescape(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c
}

// unicodeEscape is the length of \uXXXX.
const unicodeEscape = 6

// unquoteRune reads \uXXXX, or two of them that make a pair, and returns how
// long that was.
func unquoteRune(s string) (r rune, size int) {
	r, ok := hexRune(s)
	if !ok {
		return utf8.RuneError, min(len(s), unicodeEscape)
	}
	if !utf16.IsSurrogate(r) {
		return r, unicodeEscape
	}
	second, ok := hexRune(s[unicodeEscape:])
	if pair := utf16.DecodeRune(r, second); ok && pair != utf8.RuneError {
		return pair, 2 * unicodeEscape
	}
	return utf8.RuneError, unicodeEscape
}

func hexRune(s string) (r rune, ok bool) {
	if len(s) < unicodeEscape || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(s[2:unicodeEscape], 16, 32)
	return rune(n), err == nil
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
