// SPDX-License-Identifier: MIT

// Package datum is the values that queries compute with: JSON as it came, with
// undefined, NaN and the infinities besides; their order, their equality and their
// hash. It knows neither expressions nor functions.
//
// The one invariant: a value is immutable, and so is the text that it was made from.
// An array or object stays that text until something asks for a part of it.
package datum

import (
	"math"
	"strconv"
	"strings"
	"unsafe"

	"github.com/mayflydb/mayfly/internal/value"
)

// Kind is the type of a [Value]. Kinds are numbered in the order in which
// their values sort.
type Kind uint8

const (
	KindUndefined Kind = iota
	KindNull
	KindBool
	KindNumber
	KindString
	KindArray
	KindObject
)

var kindNames = [...]string{
	KindUndefined: "undefined", KindNull: "null", KindBool: "boolean", KindNumber: "number",
	KindString: "string", KindArray: "array", KindObject: "object",
}

// String returns the kind's name as messages spell it.
func (k Kind) String() string { return kindNames[k] }

// form says how a Value holds what it holds.
type form uint8

const (
	formPlain    form = iota // in bits or text: what the constructors make
	formInt                  // a number: bits are an int64
	formSpelled              // a number: text is its JSON
	formQuoted               // a string: text needs no escape when it is quoted
	formEscaped              // a string: text is its JSON, with quotes and escapes
	formSent                 // an array or object: numbers in text are spelled as the client did
	formInfinite             // an array or object: text holds NaN or an infinity
	formHashed               // an array or object: bits and text are the halves of its hash
	formArgument             // not known yet: bits are the position of an argument
)

// Value is one value of the query language. It is small, immutable and passed
// by value; the zero Value is undefined, which is no value at all and not null.
// Scalars are held as they are; arrays and objects stay the JSON text they came as,
// so that projecting a part of an item copies bytes and parses nothing but its numbers.
//
// A Value made by [Raw] shares memory with the text it was made from, and so do
// the values taken from it.
type Value struct {
	kind Kind
	form form
	bits uint64 // of a number: a float64 or an int64; of a boolean: 0 or 1
	text string
}

// Undefined returns the value of what is not there.
func Undefined() Value { return Value{} }

// Null returns the JSON null.
func Null() Value { return Value{kind: KindNull} }

// Bool returns the JSON boolean b.
func Bool(b bool) Value {
	if b {
		return Value{kind: KindBool, bits: 1}
	}
	return Value{kind: KindBool}
}

// Float returns a number. Inside an expression it may be NaN or infinite.
func Float(f float64) Value { return Value{kind: KindNumber, bits: math.Float64bits(f)} }

// Int returns a number that keeps all digits of an int64.
func Int(n int64) Value { return Value{kind: KindNumber, form: formInt, bits: uint64(n)} }

// Str returns a string, which is expected to be valid UTF-8.
func Str(s string) Value { return Value{kind: KindString, text: s} }

// Raw returns the value that a compact JSON text spells: no space outside
// strings, no name twice in an object, no number beyond float64. The text is
// shared: the caller must not write to it while the value is in use. The
// empty text is undefined.
func Raw(json []byte) Value {
	// A string, and not a slice, keeps a Value at 32 bytes.
	return fromText(unsafe.String(unsafe.SliceData(json), len(json)))
}

// Shared returns v as compact JSON that must not be written to. That of an array or
// object has its numbers as they are spelled, and is no copy.
func (v Value) Shared() []byte {
	if v.kind == KindArray || v.kind == KindObject {
		return unsafe.Slice(unsafe.StringData(v.text), len(v.text))
	}
	return v.AppendJSON(nil)
}

// fromText is Raw for a string.
func fromText(text string) Value {
	if text == "" {
		return Value{}
	}
	switch text[0] {
	case '{':
		return Value{kind: KindObject, text: text}
	case '[':
		return Value{kind: KindArray, text: text}
	case '"':
		if strings.IndexByte(text, '\\') >= 0 {
			return Value{kind: KindString, form: formEscaped, text: text}
		}
		return Value{kind: KindString, form: formQuoted, text: text[1 : len(text)-1]}
	case 'n':
		return Null()
	case 't':
		return Bool(true)
	case 'f':
		return Bool(false)
	case 'N':
		return Float(math.NaN())
	case 'I':
		return Float(math.Inf(1))
	}
	if text == spelledNegInf {
		return Float(math.Inf(-1))
	}
	return Value{kind: KindNumber, form: formSpelled, text: text}
}

// How numbers are spelled that JSON has no spelling for. They occur only in
// arrays and objects that an expression has built.
const (
	spelledNaN    = "NaN"
	spelledInf    = "Infinity"
	spelledNegInf = "-Infinity"
)

// Kind returns v's type.
func (v Value) Kind() Kind { return v.kind }

// IsUndefined reports whether there is no value.
func (v Value) IsUndefined() bool { return v.kind == KindUndefined }

// IsTrue reports whether v is the boolean true, the only value that a filter
// lets pass.
func (v Value) IsTrue() bool { return v.kind == KindBool && v.bits != 0 }

// IsFalse reports whether v is the boolean false.
func (v Value) IsFalse() bool { return v.kind == KindBool && v.bits == 0 }

// Size returns how many bytes of text v holds, which is about the work of reading it.
func (v Value) Size() int { return len(v.text) }

// Argument returns a value of which the kind alone is known, and which argument of a query
// it will be.
func Argument(kind Kind, slot int) Value {
	return Value{kind: kind, form: formArgument, bits: uint64(slot)}
}

// AsArgument returns which argument v will be; ok is false when v is known.
func (v Value) AsArgument() (slot int, ok bool) { return int(v.bits), v.form == formArgument }

// AsBool returns v's boolean; ok is false when v is of another kind.
func (v Value) AsBool() (b, ok bool) { return v.bits != 0, v.kind == KindBool }

// AsFloat returns v's number; ok is false when v is of another kind.
func (v Value) AsFloat() (f float64, ok bool) {
	if v.kind != KindNumber {
		return 0, false
	}
	switch v.form {
	case formInt:
		return float64(int64(v.bits)), true
	case formSpelled:
		return value.ParseNumber(v.text), true
	}
	return math.Float64frombits(v.bits), true
}

// AsInt returns v's number if it is an integer that an int64 holds exactly:
// spelled without fraction or exponent, or computed and without fraction.
func (v Value) AsInt() (n int64, ok bool) {
	if v.kind != KindNumber {
		return 0, false
	}
	switch v.form {
	case formInt:
		return int64(v.bits), true
	case formSpelled:
		if n, err := strconv.ParseInt(v.text, 10, 64); err == nil {
			return n, true
		}
		if isDigits(v.text) {
			return 0, false // beyond int64; rounding must not bring it back
		}
	}
	f, _ := v.AsFloat()
	// 2^63 itself is a float64 and no int64.
	if f != math.Trunc(f) || f < math.MinInt64 || f >= -math.MinInt64 {
		return 0, false
	}
	return int64(f), true
}

// isDigits reports whether a number is spelled with nothing but a sign and
// digits.
func isDigits(text string) bool {
	text = strings.TrimPrefix(text, "-")
	return value.Digits(text) == len(text)
}

// AsString returns v's string; ok is false when v is of another kind.
func (v Value) AsString() (s string, ok bool) {
	if v.kind != KindString {
		return "", false
	}
	if v.form == formEscaped { // and not by Text, to be small enough to be inlined
		return value.Unquote(v.text), true
	}
	return v.text, true
}

// Text returns the string that v is known to be.
func (v Value) Text() string {
	if v.form == formEscaped {
		return value.Unquote(v.text)
	}
	return v.text
}

// Number returns the number that v is known to be.
func (v Value) Number() float64 {
	f, _ := v.AsFloat()
	return f
}

// IsInt reports whether v is an integer that an int64 holds: see AsInt.
func (v Value) IsInt() bool {
	if v.form == formInt {
		return true
	}
	_, ok := v.AsInt()
	return ok
}

// Finite reports whether v can be written as JSON: whether it is no number, and
// holds no number, that is NaN or infinite.
func (v Value) Finite() bool {
	if v.kind == KindNumber && v.form == formPlain {
		f := math.Float64frombits(v.bits)
		return f-f == 0
	}
	return v.form != formInfinite
}

// Detach returns v without shared memory, for keeping it after the text it came
// from is gone.
func (v Value) Detach() Value {
	v.text = strings.Clone(v.text)
	return v
}

// AppendJSON appends v as compact JSON. For undefined it appends nothing. A
// value that is not [Value.Finite] has no JSON: what is appended for it has the
// words NaN, Infinity and -Infinity in place of the numbers.
func (v Value) AppendJSON(dst []byte) []byte {
	if v.form == formPlain && v.kind > KindString { // an item, above all
		return append(dst, v.text...)
	}
	switch v.kind {
	case KindUndefined:
		return dst
	case KindNull:
		return append(dst, "null"...)
	case KindBool:
		return strconv.AppendBool(dst, v.bits != 0)
	case KindNumber:
		return v.appendNumber(dst)
	case KindString:
		switch v.form {
		case formPlain:
			return value.AppendString(dst, v.text)
		case formQuoted:
			dst = append(dst, '"')
			dst = append(dst, v.text...)
			return append(dst, '"')
		}
	}
	switch v.form {
	case formSent:
		return value.AppendShortest(dst, v.text)
	case formHashed:
		return v.AppendResume(dst) // for people: it is no JSON of the value
	}
	return append(dst, v.text...)
}

// Sent returns an array or object whose numbers are spelled as a client did, and not as
// results have them. An item as a whole is not of them: it is given back as it came.
func (v Value) Sent() Value {
	if v.form == formPlain && (v.kind == KindArray || v.kind == KindObject) {
		v.form = formSent
	}
	return v
}

func (v Value) appendNumber(dst []byte) []byte {
	switch v.form {
	case formInt:
		return strconv.AppendInt(dst, int64(v.bits), 10)
	case formSpelled:
		return value.AppendShortest(dst, v.text)
	}
	return appendFloat(dst, math.Float64frombits(v.bits))
}

func appendFloat(dst []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, spelledNaN...)
	case math.IsInf(f, 1):
		return append(dst, spelledInf...)
	case math.IsInf(f, -1):
		return append(dst, spelledNegInf...)
	}
	return value.Number(f).AppendJSON(dst)
}

// String returns v as JSON, or the word undefined, for messages and tests.
func (v Value) String() string {
	if v.kind == KindUndefined {
		return v.kind.String()
	}
	return string(v.AppendJSON(nil))
}
