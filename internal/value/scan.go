// SPDX-License-Identifier: MIT

// The scanner: light passes over JSON that is known to be valid and compact, for items and
// queries alike. Nothing here checks grammar, and nothing reads beyond its input even so.

package value

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"
)

// view returns bytes as a string without copying them. They must not be written to while
// it is in use.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// shortString is how many bytes of a string are looked at one by one. The names of most
// properties end within them, and a search would take longer to begin.
const shortString = 16

// StringEnd returns what follows the string that begins at text[i].
func StringEnd(text string, i int) int {
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

// ValueEnd returns what follows the value that begins at text[i].
func ValueEnd(text string, i int) int {
	if i >= len(text) {
		return i
	}
	switch text[i] {
	case '"':
		return StringEnd(text, i)
	case '{', '[':
		return containerEnd(text, i)
	}
	return literalEnd(text, i)
}

// containerEnd returns what follows the array or object that begins at text[i].
func containerEnd(text string, i int) int {
	for depth := 0; i < len(text); i++ {
		switch marks[text[i]] {
		case markQuote:
			i = StringEnd(text, i) - 1
		case markOpens:
			depth++
		case markCloses:
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return i
}

// literalEnd returns what follows the number or word that begins at text[i].
func literalEnd(text string, i int) int {
	for i < len(text) && !endsLiteral[text[i]] {
		i++
	}
	return i
}

var endsLiteral = [256]bool{',': true, '}': true, ']': true, ' ': true, '\t': true, '\n': true, '\r': true}

// MemberAt returns where the value of an object's property begins, or -1 if text is no
// object or has no such property.
func MemberAt(text, name string) int {
	if text == "" || text[0] != '{' {
		return -1
	}
	for i := 1; i < len(text) && text[i] == '"'; {
		colon := StringEnd(text, i)
		// Comparing lengths first spares most names the look at their bytes.
		if colon-i == len(name)+2 && text[i+1:colon-1] == name && strings.IndexByte(name, '\\') < 0 ||
			colon-i > len(name)+2 && strings.IndexByte(text[i:colon], '\\') >= 0 && Unquote(text[i:colon]) == name {
			return colon + 1
		}
		i = ValueEnd(text, colon+1) + 1
	}
	return -1
}

// Digits returns how many decimal digits text begins with.
func Digits(text string) int {
	n := 0
	for n < len(text) && isDigit(text[n]) {
		n++
	}
	return n
}

func isDigit(b byte) bool { return '0' <= b && b <= '9' }

// NumberEnd returns what follows the longest number without a sign that begins at text[i],
// and whether it has a fraction and an exponent. A number begins with one zero at most; its
// digits before the point may be missing, which JSON does not allow and queries do.
func NumberEnd(text string, i int) (end int, fraction, exponent bool) {
	if end = i; end < len(text) && text[end] == '0' {
		end++
	} else {
		end += Digits(text[end:])
	}
	if end < len(text) && text[end] == '.' {
		if n := Digits(text[end+1:]); n > 0 {
			end, fraction = end+1+n, true
		}
	}
	if end < len(text) && text[end]|0x20 == 'e' {
		e := end + 1
		if e < len(text) && (text[e] == '+' || text[e] == '-') {
			e++
		}
		if n := Digits(text[e:]); n > 0 {
			end, exponent = e+n, true
		}
	}
	return end, fraction, exponent
}

// maxExactDigits is the longest run of digits that a float64 holds exactly.
const maxExactDigits = 15

// ParseNumber reads a number that is known to be one. One beyond float64 is infinite. Short
// integers, which most numbers are, need no strconv.
func ParseNumber(text string) float64 {
	digits := text
	if text[0] == '-' {
		digits = text[1:]
	}
	if len(digits) > maxExactDigits {
		return parseAnyNumber(text)
	}
	n := int64(0)
	for i := range len(digits) {
		d := digits[i] - '0'
		if d > 9 {
			return parseAnyNumber(text)
		}
		n = n*10 + int64(d)
	}
	if text[0] == '-' {
		n = -n
	}
	return float64(n)
}

func parseAnyNumber(text string) float64 {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil && !math.IsInf(f, 0) {
		panic("value: number was valid and is not: " + err.Error())
	}
	return f
}

// CutQuoted returns what stands in the quotation marks that text begins with, escapes and
// all, and what follows them. It reports false if the quotation does not end.
func CutQuoted(text string) (body, rest string, ok bool) {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case text[0]:
			return text[1:i], text[i+1:], true
		case '\\':
			i++
		}
	}
	return "", "", false
}

// Unquote decodes a valid JSON string with its quotes. It is a call, so that what asks for a
// string without escapes, as most are, is small enough to be inlined.
//
//go:noinline
func Unquote(quoted string) string {
	text, _ := Unescape(quoted[1 : len(quoted)-1])
	return text
}

// Unescape decodes the escapes of JSON, and \', which queries have too. It reports false
// for an escape that there is not.
func Unescape(body string) (text string, ok bool) {
	if strings.IndexByte(body, '\\') < 0 {
		return body, true
	}
	decoded, ok := appendUnescaped(make([]byte, 0, len(body)), body)
	return view(decoded), ok
}

// appendUnescaped is Unescape into memory of the caller's.
func appendUnescaped(dst []byte, body string) (_ []byte, ok bool) {
	for {
		i := strings.IndexByte(body, '\\')
		if i < 0 {
			return append(dst, body...), true
		}
		dst, body = append(dst, body[:i]...), body[i:]
		if len(body) < 2 {
			return dst, false
		}
		if body[1] != 'u' {
			c := escapes[body[1]]
			if c == 0 {
				return dst, false
			}
			dst, body = append(dst, c), body[2:]
			continue
		}
		r, size := escapedRune(body)
		if size == 0 {
			return dst, false
		}
		dst, body = utf8.AppendRune(dst, r), body[size:]
	}
}

// escapes has what a backslash and a character stand for, or 0 if they stand for nothing.
var escapes = [256]byte{
	'"': '"', '\'': '\'', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t',
}

// unicodeEscape is the length of \uXXXX.
const unicodeEscape = 6

// escapedRune reads \uXXXX, or two of them that make one character, and returns how long
// that was; 0 if there is none. Half of such a pair becomes U+FFFD: no item holds one.
func escapedRune(text string) (r rune, size int) {
	r, ok := escapedUnit(text)
	if !ok {
		return 0, 0
	}
	if low, ok := escapedUnit(text[unicodeEscape:]); ok && utf16.IsSurrogate(r) {
		if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
			return pair, 2 * unicodeEscape
		}
	}
	return r, unicodeEscape
}

func escapedUnit(text string) (unit rune, ok bool) {
	if len(text) < unicodeEscape || text[:2] != `\u` {
		return 0, false
	}
	n, err := strconv.ParseUint(text[2:unicodeEscape], 16, 16)
	return rune(n), err == nil
}
