// SPDX-License-Identifier: MIT

// Light passes over JSON that is known to be valid. Every function here relies
// on that and checks no grammar; none reads beyond its input even so.

package value

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// maxPlainDigits is the longest number without an exponent that is certainly
// finite: the greatest float64 has 309 digits.
const maxPlainDigits = 308

// mark holds the offsets of one member of the root in the compact text: of its
// opening quote, of its colon, and of what follows its value.
type mark struct{ start, colon, end int }

// compact copies a valid object without its spaces, appends to marks where the
// root's members lie in the copy, and checks the limits that are not grammar.
// It is one loop over local variables because it runs for every item written.
func compact(src []byte, marks []mark) (text []byte, _ []mark, err error) {
	text = make([]byte, 0, len(src))
	var (
		from   = 0     // src[from:] has not been copied yet
		depth  = 0     // of open objects and arrays
		naming = false // the next string is a name of the root's
	)
	for i := 0; i < len(src); {
		switch b := src[i]; b {
		case '"':
			end := stringEnd(src, i)
			if naming {
				moved := len(text) - from
				marks = append(marks, mark{start: i + moved, colon: end + moved})
				naming = false
			}
			i = end
		case ':':
			i++
		case ',', '}', ']':
			if depth == 1 && len(marks) > 0 {
				marks[len(marks)-1].end = len(text) - from + i
			}
			if b == ',' {
				naming = depth == 1
			} else {
				depth--
			}
			i++
		case '{', '[':
			if depth == MaxNesting {
				return nil, nil, tooDeep(i)
			}
			naming = depth == 0
			depth++
			i++
		case ' ', '\n', '\r', '\t':
			text = append(text, src[from:i]...)
			from = len(src) - len(skipSpace(src[i:]))
			i = from
		case 't', 'n':
			i += len("true")
		case 'f':
			i += len("false")
		default:
			end, ok := numberEnd(src, i)
			if !ok {
				return nil, nil, &SyntaxError{Offset: i, Msg: "a number is too large for a 64-bit floating point value"}
			}
			i = end
		}
	}
	return append(text, src[from:]...), marks, nil
}

// numberEnd returns what follows the number that begins at src[i], and whether
// a float64 holds the number. Only an exponent or very many digits can make it
// too large.
func numberEnd(src []byte, i int) (end int, ok bool) {
	exponent := false
	for end = i; end < len(src); end++ {
		switch b := src[end]; {
		case b >= '0' && b <= '9' || b == '.' || b == '-' || b == '+':
			continue
		case b == 'e' || b == 'E':
			exponent = true
			continue
		}
		break
	}
	if !exponent && end-i <= maxPlainDigits {
		return end, true
	}
	_, err := strconv.ParseFloat(string(src[i:end]), 64)
	return end, err == nil
}

// membersOf turns marks in a compact text into members. All names share one
// allocation.
func membersOf(text []byte, marks []mark) []Member {
	size := 0
	for _, m := range marks {
		size += m.colon - m.start
	}
	var names strings.Builder
	names.Grow(size)
	members := make([]Member, len(marks))
	for i, m := range marks {
		from := names.Len()
		writeName(&names, text[m.start:m.colon])
		members[i] = Member{
			Name: names.String()[from:],
			Raw:  text[m.colon+1 : m.end : m.end],
			text: text[m.start:m.end:m.end],
		}
	}
	return members
}

// writeName writes a quoted name without its quotes and escapes.
func writeName(names *strings.Builder, quoted []byte) {
	if bytes.IndexByte(quoted, '\\') < 0 {
		names.Write(quoted[1 : len(quoted)-1])
		return
	}
	names.Write(unquoteValid(quoted))
}

// unquoteValid decodes a JSON string with escapes in it.
func unquoteValid(quoted []byte) []byte {
	name, err := jsontext.AppendUnquote(nil, quoted)
	if err != nil {
		panic("value: string was valid and is not: " + err.Error())
	}
	return name
}

// stringEnd returns what follows the string that begins at src[i].
func stringEnd(src []byte, i int) int {
	for i++; i < len(src); {
		quote := bytes.IndexByte(src[i:], '"')
		if quote < 0 {
			break
		}
		quote += i
		backslashes := 0
		for quote-backslashes > i && src[quote-backslashes-1] == '\\' {
			backslashes++
		}
		i = quote + 1
		if backslashes%2 == 0 {
			return i
		}
	}
	return len(src)
}

// literalEnd returns what follows the number or word that begins at src[i].
func literalEnd(src []byte, i int) int {
	for i < len(src) {
		switch src[i] {
		case ',', '}', ']', ' ', '\n', '\r', '\t':
			return i
		}
		i++
	}
	return i
}

// valueEnd returns what follows the value that begins at src[i], without space
// before it.
func valueEnd(src []byte, i int) int {
	for depth := 0; i < len(src); {
		switch src[i] {
		case '"':
			i = stringEnd(src, i)
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
		case ',', ':':
			i++
			continue
		default:
			i = literalEnd(src, i)
		}
		if depth == 0 {
			return i
		}
	}
	return i
}

// memberOf finds a property in a value that is compact JSON.
func memberOf(raw []byte, name string) (value []byte, ok bool) {
	if len(raw) == 0 || raw[0] != '{' {
		return nil, false
	}
	for i := 1; i < len(raw) && raw[i] == '"'; {
		colon := stringEnd(raw, i)
		end := valueEnd(raw, colon+1)
		if nameIs(raw[i:colon], name) {
			return raw[colon+1 : end : end], true
		}
		i = end + 1
	}
	return nil, false
}

// nameIs compares a quoted name with a name.
func nameIs(quoted []byte, name string) bool {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1:len(quoted)-1]) == name
	}
	return string(unquoteValid(quoted)) == name
}

// Elements returns the elements of an array, whose text is a part of an
// [Object]. It reports false if raw is no array.
func Elements(raw []byte) (elements [][]byte, ok bool) {
	if len(raw) < 2 || raw[0] != '[' {
		return nil, false
	}
	for i := 1; i < len(raw)-1; {
		end := valueEnd(raw, i)
		elements = append(elements, raw[i:end:end])
		i = end + 1
	}
	return elements, true
}

// Members returns the properties of an object, whose text is a part of an
// [Object]. It reports false if raw is no object.
func Members(raw []byte) (members []Member, ok bool) {
	if len(raw) < 2 || raw[0] != '{' {
		return nil, false
	}
	for i := 1; i < len(raw)-1; {
		colon := stringEnd(raw, i)
		end := valueEnd(raw, colon+1)
		members = append(members, Member{
			Name: string(unquoteValid(raw[i:colon])), Raw: raw[colon+1 : end : end], text: raw[i:end:end],
		})
		i = end + 1
	}
	return members, true
}
