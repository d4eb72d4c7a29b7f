// SPDX-License-Identifier: MIT

// Conversion between strings and other values. A text becomes a value only if an item could
// hold it, so that what was converted can be stored and read again.

package function

import (
	"strconv"
	"strings"

	"github.com/mayflydb/mayfly/internal/sql/datum"
	"github.com/mayflydb/mayfly/internal/value"
)

func conversionFunctions() []Function {
	return []Function{
		{Name: "STRINGTOARRAY", Also: "STRING_TO_ARRAY", Args: "s", Eval: ofText(datum.KindArray)},
		{Name: "STRINGTOBOOLEAN", Also: "STRING_TO_BOOLEAN", Args: "s", Eval: ofText(datum.KindBool)},
		{Name: "STRINGTONULL", Also: "STRING_TO_NULL", Args: "s", Eval: ofText(datum.KindNull)},
		{Name: "STRINGTONUMBER", Also: "STRING_TO_NUMBER", Args: "s", Eval: ofText(datum.KindNumber)},
		{Name: "STRINGTOOBJECT", Also: "STRING_TO_OBJECT", Args: "s", Eval: ofText(datum.KindObject)},
		{Name: "TOSTRING", Also: "TO_STRING", Args: "!", Eval: toString},
	}
}

// ofText makes a function that reads a string as JSON of one kind. Space may
// stand around it; all else is as strict as in an item.
func ofText(kind datum.Kind) func(*Context, []datum.Value) datum.Value {
	return func(_ *Context, args []datum.Value) datum.Value {
		s := strings.Trim(args[0].Text(), " \t\r\n")
		if s == "" || kindBy(s[0]) != kind {
			return datum.Undefined()
		}
		v, ok := parseJSON(s)
		if !ok {
			return datum.Undefined()
		}
		return v
	}
}

// kindBy returns the kind of which a JSON text with this first byte might be.
func kindBy(first byte) datum.Kind {
	switch first {
	case '{':
		return datum.KindObject
	case '[':
		return datum.KindArray
	case '"':
		return datum.KindString
	case 'n':
		return datum.KindNull
	case 't', 'f':
		return datum.KindBool
	}
	return datum.KindNumber
}

// parseJSON reads a JSON text without space around it. A scalar is checked alone, which
// needs no copy of an object.
func parseJSON(text string) (datum.Value, bool) {
	switch text[0] {
	case '{', '[':
		// As a property of an object it passes the check that items pass.
		object, err := value.ParseObject([]byte(`{"v":` + text + `}`))
		if err != nil || len(object.Members()) != 1 {
			return datum.Value{}, false
		}
		return datum.Raw(object.Members()[0].Raw).Sent(), true
	}
	if _, ok := value.FromJSON([]byte(text)); !ok {
		return datum.Value{}, false
	}
	return datum.Raw([]byte(text)), true
}

// toString returns strings as they are and other values as JSON, but for
// numbers: see appendNumberText.
func toString(_ *Context, args []datum.Value) datum.Value {
	switch args[0].Kind() {
	case datum.KindString:
		return args[0]
	case datum.KindNumber:
		return datum.Str(string(appendNumberText(nil, args[0])))
	}
	return datum.Str(string(args[0].AppendJSON(nil)))
}

// Between these decimal exponents a number is written without one.
const (
	leastPlainExponent  = -4
	beyondPlainExponent = 17
	beyondPlain         = 100_000_000_000_000_000
)

// appendNumberText appends a number as the service's TOSTRING writes it: with the
// fewest digits that no other number has, and an exponent of at least three, as in
// 2.0495371758495027e+018.
func appendNumberText(dst []byte, v datum.Value) []byte {
	f := v.Number()
	if f-f != 0 {
		return datum.Float(f).AppendJSON(dst)
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
