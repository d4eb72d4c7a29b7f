// SPDX-License-Identifier: MIT

// Words, numbers, strings and signs of a query text. A token is made only when the parser
// asks for it: a long text with a fault at its beginning is not taken apart to its end.

package syntax

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mayflydb/mayfly/internal/value"
)

// tokenKind is what a token is by its characters alone. Whether it may stand where it does is
// for the parser to say.
type tokenKind uint8

const (
	tokenEnd     tokenKind = iota
	tokenName              // an identifier
	tokenWord              // a reserved word; token.word is its upper case
	tokenSign              // an operator or bracket; token.word is it
	tokenString            // token.text is decoded
	tokenInteger           // digits, or 0x and hexadecimal digits
	tokenDouble            // a number with a fraction or an exponent
	tokenParam             // @name
	tokenBad               // nothing that the language knows
)

// token is a part of the text. It is copied and never shared, so that looking ahead needs no
// memory.
type token struct {
	kind  tokenKind
	op    Op    // of a word or sign that can stand between two operands
	level level // of op; 0 for any other token
	word  string
	text  string // as it stands in the query; of a string, what it means
	Span
}

// is reports whether the token is this reserved word or sign. Names and strings have no word,
// whatever their text is.
func (t token) is(word string) bool { return t.word == word }

// lexer hands out the tokens of a text from left to right. It is small and
// without pointers to itself: a copy of it looks ahead.
type lexer struct {
	text  string
	pos   int // in bytes
	units int // the same offset in UTF-16 code units
}

// next returns the next token; after the last one it returns tokenEnd for good.
func (l *lexer) next() token {
	before := l.pos
	l.skipSpace()
	l.countUnits(before)
	start, from := l.pos, l.units
	t := l.scan()
	if t.kind != tokenString {
		t.text = l.text[start:l.pos]
	}
	l.countUnits(start)
	t.Span = Span{from, l.units}
	return t
}

// countUnits brings units up to pos; it stood for from. Counting as the text is read keeps
// positions linear, where a count from the beginning for each token would not be.
func (l *lexer) countUnits(from int) {
	for i := from; i < l.pos; i++ {
		b := l.text[i]
		if b&0xC0 != 0x80 {
			l.units++
		}
		if b >= 0xF0 {
			l.units++
		}
	}
}

// skipSpace goes past space and comments. A comment that does not end is left where it is, for
// scan to refuse.
func (l *lexer) skipSpace() {
	for l.pos < len(l.text) {
		rest := l.text[l.pos:]
		switch space := spaceLength(rest); {
		case space > 0:
			l.pos += space
		case strings.HasPrefix(rest, "--"):
			end := strings.IndexAny(rest, "\r\n")
			if end < 0 {
				end = len(rest)
			}
			l.pos += end
		case strings.HasPrefix(rest, "/*"):
			end := strings.Index(rest[2:], "*/")
			if end < 0 {
				return
			}
			l.pos += 2 + end + 2
		default:
			return
		}
	}
}

// spaceLength returns how many bytes the space has that s begins with. The spaces
// that do not break are among those of queries copied from a page.
func spaceLength(s string) int {
	if s[0] < utf8.RuneSelf {
		if s[0] == ' ' || s[0] == '\t' || s[0] == '\r' || s[0] == '\n' {
			return 1
		}
		return 0
	}
	if r, n := utf8.DecodeRuneInString(s); unicode.IsSpace(r) {
		return n
	}
	return 0
}

// scan goes past one token. Its text and span are set by the caller.
func (l *lexer) scan() token {
	if l.pos == len(l.text) {
		return token{kind: tokenEnd}
	}
	rest := l.text[l.pos:]
	switch c := rest[0]; {
	case isNameStart(c):
		n := nameLength(rest)
		l.pos += n
		switch word := reserved(rest[:n]); word {
		case "":
			return token{kind: tokenName}
		case "AND":
			return token{kind: tokenWord, word: word, op: OpAnd, level: levelAnd}
		case "OR":
			return token{kind: tokenWord, word: word, op: OpOr, level: levelOr}
		default:
			return token{kind: tokenWord, word: word}
		}
	case isDigit(c), c == '.' && len(rest) > 1 && isDigit(rest[1]):
		return l.scanNumber(rest)
	case c == '"' || c == '\'':
		return l.scanString(rest)
	case c == '@' && len(rest) > 1 && isNameStart(rest[1]):
		l.pos += 1 + nameLength(rest[1:])
		return token{kind: tokenParam}
	}
	if sign := signAt(rest); sign != nil {
		l.pos += len(sign.text)
		return token{kind: tokenSign, word: sign.text, op: sign.op, level: sign.level}
	}
	_, n := utf8.DecodeRuneInString(rest)
	if strings.HasPrefix(rest, "/*") {
		n = len(rest)
	}
	l.pos += n
	return token{kind: tokenBad}
}

// sign is a token that is no word, and the operator that it is between two operands,
// if it is one.
type sign struct {
	text  string
	op    Op
	level level
}

// signs has longer ones before those that they begin with.
var signs = [...]sign{
	{">>>", OpZeroFillRightShift, levelCompare}, {"<<", OpLeftShift, levelCompare}, {">>", OpRightShift, levelCompare},
	{"<=", OpLe, levelCompare}, {">=", OpGe, levelCompare}, {"<>", OpNe, levelCompare}, {"!=", OpNe, levelCompare},
	{"||", OpConcat, levelConcat}, {text: "??"},
	{text: "("}, {text: ")"}, {text: "["}, {text: "]"}, {text: "{"}, {text: "}"}, {text: ","}, {text: "."}, {text: ":"}, {text: "?"},
	{"=", OpEq, levelCompare}, {"<", OpLt, levelCompare}, {">", OpGt, levelCompare},
	{"+", OpAdd, levelAdd}, {"-", OpSub, levelAdd}, {"&", OpBitAnd, levelAdd}, {"|", OpBitOr, levelAdd}, {"^", OpBitXor, levelAdd},
	{"*", OpMul, levelMultiply}, {"/", OpDiv, levelMultiply}, {"%", OpMod, levelMultiply}, {text: "~"},
}

// signAt returns the sign that s begins with, or nil. A comment that does not end is
// none: it would be read as a division, and the error would point behind it.
func signAt(s string) *sign {
	if strings.HasPrefix(s, "/*") {
		return nil
	}
	for i := range signs {
		if strings.HasPrefix(s, signs[i].text) {
			return &signs[i]
		}
	}
	return nil
}

// scanNumber takes what the service takes, and .5 besides. A name, a digit or a
// dot that follows without space makes it a mistake: 12a, 007, 1.
func (l *lexer) scanNumber(rest string) token {
	kind, n := tokenInteger, 0
	if len(rest) > 2 && rest[0] == '0' && (rest[1] == 'x' || rest[1] == 'X') && isHex(rest[2]) {
		for n = 2; n < len(rest) && isHex(rest[n]); n++ {
		}
	} else {
		var fraction, exponent bool
		if n, fraction, exponent = value.NumberEnd(rest, 0); fraction || exponent {
			kind = tokenDouble
		}
	}
	if n < len(rest) && (rest[n] == '.' || isNameStart(rest[n]) || isDigit(rest[n])) {
		kind = tokenBad
		n += max(1, nameLength(rest[n:]))
	}
	l.pos += n
	return token{kind: kind}
}

// scanString reads a string in either kind of quotes. One that does not end, or
// with an escape that there is not, is bad.
func (l *lexer) scanString(rest string) token {
	body, after, ok := value.CutQuoted(rest)
	l.pos += len(rest) - len(after)
	if !ok {
		return token{kind: tokenBad}
	}
	text, ok := value.Unescape(body)
	if !ok {
		return token{kind: tokenBad}
	}
	return token{kind: tokenString, text: text}
}

// number returns what a tokenInteger or tokenDouble means. Integers beyond 64
// bits become floating point, and what is beyond that, infinite.
func (t token) number() Literal {
	if t.kind == tokenInteger {
		digits, base := t.text, 10
		if len(digits) > 2 && digits[1]|0x20 == 'x' {
			digits, base = digits[2:], 16
		}
		if n, err := strconv.ParseInt(digits, base, 64); err == nil {
			return Literal{Kind: LitInt, Int: n}
		}
		if base == 16 {
			return floatLiteral("0x" + digits + "p0")
		}
	}
	return floatLiteral(t.text)
}

// floatLiteral reads a number that the scanner has taken. Beyond float64 it is infinite.
func floatLiteral(text string) Literal {
	f, _ := strconv.ParseFloat(text, 64) // the only error is the range, with f infinite
	return Literal{Kind: LitFloat, Float: f}
}

func isDigit(c byte) bool     { return '0' <= c && c <= '9' }
func isNameStart(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' || c == '_' }
func isHex(c byte) bool       { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }

// nameLength returns how long the name is that s begins with. Names are ASCII alone: other
// letters stand in quotes.
func nameLength(s string) int {
	n := 0
	for n < len(s) && (isNameStart(s[n]) || isDigit(s[n])) {
		n++
	}
	return n
}

// longestWord is the length of the longest reserved word, UNDEFINED.
const longestWord = 9

// reservedWords has every word by itself. Some of them have no meaning; they
// cannot be names all the same. It is never written to.
var reservedWords = wordSet(
	"AND", "ARRAY", "AS", "ASC", "BETWEEN", "BY", "CASE", "CAST", "CONVERT", "CROSS",
	"DESC", "DISTINCT", "ELSE", "END", "ESCAPE", "EXISTS", "FALSE", "FOR", "FROM", "GROUP",
	"HAVING", "IN", "INNER", "INSERT", "INTO", "IS", "JOIN", "LEFT", "LIKE", "LIMIT",
	"NOT", "NULL", "OFFSET", "ON", "OR", "ORDER", "OUTER", "OVER", "RIGHT", "SELECT",
	"SET", "THEN", "TOP", "TRUE", "UDF", "UNDEFINED", "UPDATE", "VALUE", "WHEN", "WHERE", "WITH",
)

// wordSet has each word as its own value, so that a lookup returns a string that does not
// keep the query text.
func wordSet(words ...string) map[string]string {
	set := make(map[string]string, len(words))
	for _, w := range words {
		set[w] = w
	}
	return set
}

// reserved returns a reserved word in upper case, or "" for any other name. The copy in
// upper case is on the stack: this runs for every name of a query.
func reserved(name string) string {
	if len(name) > longestWord {
		return ""
	}
	var upper [longestWord]byte
	for i := range len(name) {
		upper[i] = name[i]
		if 'a' <= name[i] && name[i] <= 'z' {
			upper[i] -= 'a' - 'A'
		}
	}
	return reservedWords[string(upper[:len(name)])]
}
