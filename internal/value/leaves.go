// SPDX-License-Identifier: MIT

// Leaves: a walk through an object that takes it apart value by value, decodes
// only what it is asked for, and allocates nothing but room for strings with
// escapes in them.

package value

import "bytes"

// Cursor stands before a value in the text of an [Object], or before the name of
// a property. Its methods go forward and never back: before an object, the caller
// calls Enter, then Name and a method that reads the value, and then More, which reports
// whether there is another one.
type Cursor struct {
	src     []byte
	i       int
	scratch []byte
}

// Cursor returns a cursor before the object itself.
func (o *Object) Cursor() Cursor { return Cursor{src: o.text} }

// CursorAt returns a cursor before a value that was taken from an [Object].
func CursorAt(raw []byte) Cursor { return Cursor{src: raw} }

// Next returns the first byte of the value, by which its type is known: one of {, [, ",
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
func (c *Cursor) Skip() { c.i = ValueEnd(view(c.src), c.i) }

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
	c.i = StringEnd(view(c.src), start)
	body := c.src[start+1 : c.i-1]
	if bytes.IndexByte(body, '\\') < 0 {
		return body
	}
	c.scratch, _ = appendUnescaped(c.scratch[:0], view(body))
	return c.scratch
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
	return Number(c.Float())
}

// Float returns a number, and goes past it. It may be one that JSON has no spelling for, and
// that an expression has made.
func (c *Cursor) Float() float64 {
	start, text := c.i, view(c.src)
	c.i = literalEnd(text, start)
	return ParseNumber(text[start:c.i])
}
