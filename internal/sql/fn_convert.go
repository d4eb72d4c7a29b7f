// SPDX-License-Identifier: MIT

// Conversion between strings and other values.

package sql

import (
	"strconv"
	"strings"

	"github.com/mayflydb/mayfly/internal/value"
)

func conversionFunctions() []Function {
	return []Function{
		{Name: "STRINGTOARRAY", Min: 1, Max: 1, Eval: ofText(KindArray)},
		{Name: "STRINGTOBOOLEAN", Min: 1, Max: 1, Eval: ofText(KindBool)},
		{Name: "STRINGTONULL", Min: 1, Max: 1, Eval: ofText(KindNull)},
		{Name: "STRINGTONUMBER", Min: 1, Max: 1, Eval: ofText(KindNumber)},
		{Name: "STRINGTOOBJECT", Min: 1, Max: 1, Eval: ofText(KindObject)},
		{Name: "TOSTRING", Min: 1, Max: 1, Eval: toString},
	}
}

// ofText makes a function that reads a string as JSON of one kind. Space may
// stand around it; all else is as strict as in an item.
func ofText(kind Kind) func(*Context, []Value) Value {
	return func(_ *Context, args []Value) Value {
		s, ok := args[0].AsString()
		if !ok {
			return Undefined()
		}
		s = strings.Trim(s, " \t\r\n")
		if s == "" || kindBy(s[0]) != kind {
			return Undefined()
		}
		v, ok := parseJSON(s)
		if !ok {
			return Undefined()
		}
		return v
	}
}

// kindBy returns the kind of which a JSON text with this first byte might be.
func kindBy(first byte) Kind {
	switch first {
	case '{':
		return KindObject
	case '[':
		return KindArray
	case '"':
		return KindString
	case 'n':
		return KindNull
	case 't', 'f':
		return KindBool
	}
	return KindNumber
}

// parseJSON reads a JSON text without space around it.
func parseJSON(text string) (Value, bool) {
	switch text[0] {
	case '{', '[':
		// As a property of an object it passes the check that items pass.
		object, err := value.ParseObject([]byte(`{"v":` + text + `}`))
		if err != nil || len(object.Members()) != 1 {
			return Value{}, false
		}
		return Raw(object.Members()[0].Raw).sent(), true
	}
	if _, ok := value.FromJSON([]byte(text)); !ok {
		return Value{}, false
	}
	return fromText(text), true
}

// toString returns strings as they are and other values as JSON, but for
// numbers: see appendNumberText.
func toString(_ *Context, args []Value) Value {
	switch args[0].Kind() {
	case KindUndefined, KindString:
		return args[0]
	case KindNumber:
		return Str(string(appendNumberText(nil, args[0])))
	}
	return Str(string(args[0].AppendJSON(nil)))
}

// Between these decimal exponents a number is written without one.
const (
	leastPlainExponent  = -4
	beyondPlainExponent = 17
	beyondPlain         = 100_000_000_000_000_000
)

// appendNumberText appends a number as the service's TOSTRING writes it: with as
// few digits as tell it from others, and an exponent of at least three, as in
// 2.0495371758495027e+018.
func appendNumberText(dst []byte, v Value) []byte {
	f, _ := v.AsFloat()
	if f-f != 0 {
		return appendFloat(dst, f)
	}
	if n, ok := v.AsInt(); ok && -beyondPlain < n && n < beyondPlain {
		return strconv.AppendInt(dst, n, 10)
	}
	text := strconv.FormatFloat(f, 'e', -1, 64)
	mantissa, exponent, _ := strings.Cut(text, "e")
	n, _ := strconv.Atoi(exponent)
	if n >= leastPlainExponent && n < beyondPlainExponent {
		return strconv.AppendFloat(dst, f, 'f', -1, 64)
	}
	dst = append(append(dst, mantissa...), 'e', exponent[0])
	digits := exponent[1:]
	for range 3 - len(digits) {
		dst = append(dst, '0')
	}
	return append(dst, digits...)
}
