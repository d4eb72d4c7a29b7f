// SPDX-License-Identifier: MIT

// Package value holds what items are made of: JSON texts, the scalar values
// inside them with one more, undefined, for what is absent, the total order
// over those scalars, and their encoding as bytes that sort in that order.
//
// It never does I/O, never reads a clock, and knows nothing of containers,
// requests or storage layouts.
//
// The one invariant: whatever has passed a parser of this package is well
// formed for good. An [Object] is strict JSON, a [Scalar] is finite and
// normalised, so that equal values have equal bytes, and no later step checks
// again.
package value

import (
	"cmp"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Kind is the type of a [Scalar]. Kinds are numbered in the order in which
// their values sort.
type Kind uint8

const (
	KindUndefined Kind = iota
	KindNull
	KindBool
	KindNumber
	KindString
)

var kindNames = [...]string{
	KindUndefined: "undefined", KindNull: "null", KindBool: "boolean", KindNumber: "number", KindString: "string",
}

// String returns the kind's name as query functions and messages spell it.
func (k Kind) String() string { return kindNames[k] }

// Scalar is one scalar, normalised: a number is a finite float64 without minus zero, a
// string is decoded, and neither keeps the spelling it came with. The zero Scalar is
// undefined: no value at all, which is not null. Scalars are comparable with ==, and
// a == b exactly when Compare(a, b) is 0.
type Scalar struct {
	kind Kind
	num  float64 // of a number; of a boolean 0 or 1
	str  string
}

// Null returns the JSON null.
func Null() Scalar { return Scalar{kind: KindNull} }

// Bool returns the JSON boolean b.
func Bool(b bool) Scalar {
	if b {
		return Scalar{kind: KindBool, num: 1}
	}
	return Scalar{kind: KindBool}
}

// Number returns the JSON number f, which must be finite: JSON has no NaN or
// infinity, and an order with NaN in it is none. It panics otherwise, for every
// number from outside comes through a parser that refuses them. Minus zero
// becomes zero.
func Number(f float64) Scalar {
	if !finite(f) {
		panic("value: number is not finite: " + strconv.FormatFloat(f, 'g', -1, 64))
	}
	// Adding zero turns -0 into 0 and changes nothing else.
	return Scalar{kind: KindNumber, num: f + 0}
}

// String returns the JSON string s, which is expected to be valid UTF-8.
func String(s string) Scalar { return Scalar{kind: KindString, str: s} }

// Kind returns v's type.
func (v Scalar) Kind() Kind { return v.kind }

// Defined reports whether v is anything but undefined.
func (v Scalar) Defined() bool { return v.kind != KindUndefined }

// Bool returns v's boolean; ok is false when v is of another kind.
func (v Scalar) Bool() (b, ok bool) { return v.num != 0, v.kind == KindBool }

// Number returns v's number; ok is false when v is of another kind.
func (v Scalar) Number() (f float64, ok bool) { return v.num, v.kind == KindNumber }

// Text returns v's string; ok is false when v is of another kind.
func (v Scalar) Text() (s string, ok bool) { return v.str, v.kind == KindString }

// String returns v as JSON, or the word undefined, for messages and tests.
func (v Scalar) String() string {
	if !v.Defined() {
		return v.kind.String()
	}
	return string(v.AppendJSON(nil))
}

// Compare orders all values: undefined < null < false < true < numbers <
// strings, numbers by size and strings by their UTF-8 bytes. It returns -1, 0
// or +1.
func Compare(a, b Scalar) int {
	if c := cmp.Compare(a.kind, b.kind); c != 0 {
		return c
	}
	if a.kind == KindString {
		return strings.Compare(a.str, b.str)
	}
	return cmp.Compare(a.num, b.num)
}

// FromJSON reads one scalar JSON text without space around it. It returns false
// for an array, an object, a number beyond float64, and anything that is not
// strict JSON.
func FromJSON(raw []byte) (Scalar, bool) {
	switch string(raw) {
	case "":
		return Scalar{}, false
	case "null":
		return Null(), true
	case "true":
		return Bool(true), true
	case "false":
		return Bool(false), true
	}
	if raw[0] == '"' {
		return stringFromJSON(raw)
	}
	return numberFromJSON(raw)
}

func stringFromJSON(raw []byte) (Scalar, bool) {
	if last := len(raw) - 1; last > 0 && raw[last] == '"' && isPlain(raw[1:last]) {
		return String(string(raw[1:last])), true
	}
	var scratch [128]byte
	s, err := jsontext.AppendUnquote(scratch[:0], raw)
	if err != nil {
		return Scalar{}, false
	}
	return String(string(s)), true
}

// isPlain reports whether a string that is spelled so is valid and has no escapes. Most have
// ASCII alone, so the others need not be found here.
func isPlain(body []byte) bool {
	for _, b := range body {
		if b < ' ' || b >= utf8.RuneSelf || b == '"' || b == '\\' {
			return false
		}
	}
	return true
}

func numberFromJSON(raw []byte) (Scalar, bool) {
	// strconv alone would also take hexadecimal, underscores, leading zeros and words.
	text, start := view(raw), 0
	if text[0] == '-' {
		start = 1
	}
	end, _, _ := NumberEnd(text, start)
	if start == len(text) || !isDigit(text[start]) || end != len(text) {
		return Scalar{}, false
	}
	f := ParseNumber(text)
	if !finite(f) {
		return Scalar{}, false
	}
	return Number(f), true
}

// AppendJSON appends v as JSON. Numbers are written as JavaScript writes them.
// For undefined, which JSON cannot say, it appends nothing.
func (v Scalar) AppendJSON(dst []byte) []byte {
	switch v.kind {
	case KindNull:
		return append(dst, "null"...)
	case KindBool:
		return strconv.AppendBool(dst, v.num != 0)
	case KindNumber:
		return jsontext.AppendFloat(dst, v.num, 64)
	case KindString:
		return AppendString(dst, v.str)
	}
	return dst
}

func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }
