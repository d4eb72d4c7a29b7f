// SPDX-License-Identifier: MIT

package binaryjson

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Encode returns the document of a text. Strings are neither packed nor referred to:
// clients understand documents without either, and other clients of the same data read
// text.
func Encode(text []byte) ([]byte, error) {
	e := encoder{
		in:  jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)),
		out: append(make([]byte, 0, len(text)+len(text)/4), first),
	}
	if err := e.value(); err != nil {
		return nil, errors.Join(ErrMalformed, err)
	}
	if _, err := e.in.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, ErrMalformed
	}
	return e.out, nil
}

type encoder struct {
	in  *jsontext.Decoder
	out []byte
}

// value appends the next value of the text.
func (e *encoder) value() error {
	switch e.in.PeekKind() {
	case '0':
		raw, err := e.in.ReadValue()
		if err != nil {
			return err
		}
		return e.number(string(raw))
	case '[':
		return e.container(markArrayL, ']')
	case '{':
		return e.container(markObjectL, '}')
	}
	token, err := e.in.ReadToken()
	if err != nil {
		return err
	}
	switch token.Kind() {
	case 'n':
		e.out = append(e.out, markNull)
	case 'f':
		e.out = append(e.out, markFalse)
	case 't':
		e.out = append(e.out, markTrue)
	default:
		e.text(token.String())
	}
	return nil
}

// container appends an array or object. mark is the marker with a length of one byte. The
// length is known at the end only, so there is room for the longest. The few bytes of a
// short container are then moved; to move long ones too would take time for every level.
func (e *encoder) container(mark, end byte) error {
	const head, short = 1 + 4, 1 + 1
	start := len(e.out)
	e.out = append(e.out, mark+widths-1, 0, 0, 0, 0)
	if _, err := e.in.ReadToken(); err != nil {
		return err
	}
	for e.in.PeekKind() != jsontext.Kind(end) {
		if err := e.value(); err != nil { // an object's names are values of the text, too
			return err
		}
	}
	if _, err := e.in.ReadToken(); err != nil {
		return err
	}
	switch n := len(e.out) - start - head; {
	case n == 0:
		e.out = append(e.out[:start], mark-2)
	case n <= math.MaxUint8:
		e.out[start], e.out[start+1] = mark, byte(n)
		e.out = append(e.out[:start+short], e.out[start+head:]...)
	default:
		binary.LittleEndian.PutUint32(e.out[start+1:], uint32(n))
	}
	return nil
}

// number appends a number, in the fewest bytes if it is written as an integer.
func (e *encoder) number(raw string) error {
	n, err := strconv.ParseInt(raw, 10, 64)
	if err != nil || raw == "-0" {
		f, err := strconv.ParseFloat(raw, 64)
		if err != nil {
			return err
		}
		e.out = binary.LittleEndian.AppendUint64(append(e.out, markDouble), math.Float64bits(f))
		return nil
	}
	switch {
	case n >= 0 && n < markSystem-markLiteral:
		e.out = append(e.out, markLiteral+byte(n))
	case n >= 0 && n <= math.MaxUint8:
		e.out = append(e.out, markUint8, byte(n))
	case n >= math.MinInt16 && n <= math.MaxInt16:
		e.out = binary.LittleEndian.AppendUint16(append(e.out, markInt16), uint16(n))
	case n >= math.MinInt32 && n <= math.MaxInt32:
		e.out = binary.LittleEndian.AppendUint32(append(e.out, markInt32), uint32(n))
	default:
		e.out = binary.LittleEndian.AppendUint64(append(e.out, markInt64), uint64(n))
	}
	return nil
}

// text appends a string.
func (e *encoder) text(s string) {
	if mark, ok := systemMarks[s]; ok {
		e.out = append(e.out, mark)
		return
	}
	switch n := len(s); {
	case n < markTextL-markText:
		e.out = append(e.out, markText+byte(n))
	case n <= math.MaxUint8:
		e.out = append(e.out, markTextL, byte(n))
	case n <= math.MaxUint16:
		e.out = binary.LittleEndian.AppendUint16(append(e.out, markTextL+1), uint16(n))
	default:
		e.out = binary.LittleEndian.AppendUint32(append(e.out, markTextL+2), uint32(n))
	}
	e.out = append(e.out, s...)
}

// systemMarks are the markers of the names in system.
var systemMarks = func() map[string]byte {
	marks := map[string]byte{}
	for i, name := range system {
		marks[name] = markSystem + byte(i)
	}
	return marks
}()
