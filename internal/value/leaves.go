// SPDX-License-Identifier: MIT

// Leaves: a walk through an object that takes it apart value by value, decodes
// only what it is asked for, and allocates nothing but room for strings with
// escapes in them.

package value

import (
	"bytes"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// maxExactDigits is the longest run of digits that a float64 holds exactly.
const maxExactDigits = 15

// Cursor stands before a value in the text of an [Object], or before the name of
// a property. Its methods go forward and never back: whoever is before an object
// calls Enter, then Name and what reads the value, and asks More whether there is
// another one.
type Cursor struct {
	src     []byte
	i       int
	scratch []byte
}

// Cursor returns a cursor before the object itself.
func (o *Object) Cursor() Cursor { return Cursor{src: o.text} }

// CursorAt returns a cursor before a value that was taken from an [Object].
func CursorAt(raw []byte) Cursor { return Cursor{src: raw} }

// Next returns the first byte of the value, which tells its type: one of {, [, ",
// t, f, n, or else that of a number.
func (c *Cursor) Next() byte { return c.src[c.i] }

// Enter goes into an object or array, to its first name or element. If there is
// none, it returns false and has gone past it.
func (c *Cursor) Enter() bool {
	c.i++
	if b := c.src[c.i]; b == '}' || b == ']' {
		c.i++
		return false
	}
	return true
}

// More goes on after a value inside an object or array, to the next name or
// element. If there is none, it returns false and has gone past the end.
func (c *Cursor) More() bool {
	c.i++
	return c.src[c.i-1] == ','
}

// Skip goes past a value without looking into it.
func (c *Cursor) Skip() { c.i = valueEnd(c.src, c.i) }

// Raw returns a value as it is written, and goes past it.
func (c *Cursor) Raw() []byte {
	start := c.i
	c.Skip()
	return c.src[start:c.i]
}

// Name returns a property's name, and goes to its value. It is valid until the
// next call of Name or Text, and must not be written to.
func (c *Cursor) Name() []byte {
	name := c.Text()
	c.i++ // the colon
	return name
}

// Text returns a string, and goes past it. It is valid until the next call of
// Name or Text, and must not be written to.
func (c *Cursor) Text() []byte {
	start := c.i
	c.i = stringEnd(c.src, start)
	quoted := c.src[start:c.i]
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1]
	}
	text, err := jsontext.AppendUnquote(c.scratch[:0], quoted)
	if err != nil {
		panic("value: string was valid and is not: " + err.Error())
	}
	c.scratch = text
	return text
}

// Literal returns a value that is no string, object or array, and goes past it.
func (c *Cursor) Literal() Scalar {
	switch c.src[c.i] {
	case 'n':
		c.i += len("null")
		return Null()
	case 't':
		c.i += len("true")
		return Bool(true)
	case 'f':
		c.i += len("false")
		return Bool(false)
	}
	start := c.i
	c.i = literalEnd(c.src, start)
	return Number(validNumber(c.src[start:c.i]))
}

// validNumber reads a number that is known to be one and to fit. Integers that
// are short enough, which most numbers are, need no strconv.
func validNumber(raw []byte) float64 {
	digits := raw
	if raw[0] == '-' {
		digits = raw[1:]
	}
	if len(digits) <= maxExactDigits {
		n := int64(0)
		for _, b := range digits {
			if b < '0' || b > '9' {
				return parsedNumber(raw)
			}
			n = n*10 + int64(b-'0')
		}
		if raw[0] == '-' {
			n = -n
		}
		return float64(n)
	}
	return parsedNumber(raw)
}

func parsedNumber(raw []byte) float64 {
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		panic("value: number was valid and is not: " + err.Error())
	}
	return f
}
