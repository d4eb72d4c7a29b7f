// SPDX-License-Identifier: MIT

// Objects that a client sent: compact text, and where its properties lie in it.

package value

import (
	"bytes"
	"math"
	"slices"
	"strings"
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
		all    = view(src)
		from   = 0     // src[from:] has not been copied yet
		depth  = 0     // of open objects and arrays
		naming = false // the next string is a name of the root's
	)
	for i := 0; i < len(src); {
		switch b := src[i]; b {
		case '"':
			end := StringEnd(all, i)
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
			start := i
			if b == '-' {
				i++
			}
			end, _, exponent := NumberEnd(all, i)
			if (exponent || end-start > maxPlainDigits) && math.IsInf(ParseNumber(all[start:end]), 0) {
				return nil, nil, &SyntaxError{Offset: start, Msg: "a number is too large for a 64-bit floating point value"}
			}
			i = end
		}
	}
	return append(text, src[from:]...), marks, nil
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
	names.WriteString(Unquote(view(quoted)))
}

// memberOf finds a property in a value that is compact JSON.
func memberOf(raw []byte, name string) (value []byte, ok bool) {
	text := view(raw)
	i := MemberAt(text, name)
	if i < 0 {
		return nil, false
	}
	end := ValueEnd(text, i)
	return raw[i:end:end], true
}

// Elements returns the elements of an array, whose text is a part of an
// [Object]. It reports false if raw is no array.
func Elements(raw []byte) (elements [][]byte, ok bool) {
	if len(raw) < 2 || raw[0] != '[' {
		return nil, false
	}
	c := CursorAt(raw)
	for more := c.Enter(); more; more = c.More() {
		elements = append(elements, slices.Clip(c.Raw()))
	}
	return elements, true
}

// Members returns the properties of an object, whose text is a part of an
// [Object]. It reports false if raw is no object.
func Members(raw []byte) (members []Member, ok bool) {
	if len(raw) < 2 || raw[0] != '{' {
		return nil, false
	}
	c := CursorAt(raw)
	for more := c.Enter(); more; more = c.More() {
		start := c.i
		name := string(c.Name())
		members = append(members, Member{Name: name, Raw: slices.Clip(c.Raw()), text: raw[start:c.i:c.i]})
	}
	return members, true
}
