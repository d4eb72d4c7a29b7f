// SPDX-License-Identifier: MIT

// Questions about the type of a value. They are never undefined: what is not
// there is of no type.

package function

import (
	"encoding/base64"
	"encoding/binary"
	"hash/fnv"
	"strings"

	"github.com/mayflydb/mayfly/internal/sql/datum"
)

// KindTests are the functions that ask whether a value is of a kind.
var KindTests = map[string]datum.Kind{
	"IS_NULL": datum.KindNull, "IS_BOOL": datum.KindBool, "IS_NUMBER": datum.KindNumber,
	"IS_STRING": datum.KindString, "IS_ARRAY": datum.KindArray, "IS_OBJECT": datum.KindObject,
}

// typeFunctions lists the tests of kinds from [KindTests], which conditions use too: a filter
// by kind is answered by an index where there is one.
func typeFunctions() []Function {
	list := []Function{
		{Name: "DOCUMENTID", Args: "o", Eval: itemOrdinal},
		{Name: "HASH", Args: "!|i", Eval: hash},
	}
	add := func(name, also string, test func(datum.Value) bool) {
		list = append(list, Function{
			Name: name, Also: also, Args: ".",
			Eval: func(_ *Context, args []datum.Value) datum.Value { return datum.Bool(test(args[0])) },
		})
	}
	for name, kind := range KindTests {
		also := strings.Replace(name, "_", "", 1)
		if kind == datum.KindBool {
			also += " IS_BOOLEAN"
		}
		add(name, also, func(v datum.Value) bool { return v.Kind() == kind })
	}
	add("IS_DATETIME", "ISDATETIME", isDateTime)
	add("IS_DEFINED", "ISDEFINED", func(v datum.Value) bool { return !v.IsUndefined() })
	add("IS_FINITE_NUMBER", "ISFINITENUMBER", func(v datum.Value) bool { return v.Kind() == datum.KindNumber && v.Finite() })
	add("IS_INTEGER", "ISINTEGER", isInteger)
	add("IS_PRIMITIVE", "ISPRIMITIVE", isPrimitive)
	return list
}

// isPrimitive reports whether a value is neither an array nor an object, nor undefined.
func isPrimitive(v datum.Value) bool {
	return v.Kind() >= datum.KindNull && v.Kind() <= datum.KindString
}

func isInteger(v datum.Value) bool {
	_, ok := v.AsInt()
	return ok
}

// isDateTime accepts what the functions of date and time accept, and nothing else.
func isDateTime(v datum.Value) bool {
	_, ok := pointOf(v)
	return ok
}

// How an item's _rid is laid out: eight bytes of its container, then its own
// number, little-endian. The text is base64 with '-' for '/'.
const (
	ridBytes     = 16
	ridContainer = 8
	ridAlphabet  = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-"
)

var ridEncoding = base64.NewEncoding(ridAlphabet)

// itemOrdinal returns the number of the item in its container, from its _rid.
func itemOrdinal(_ *Context, args []datum.Value) datum.Value {
	rid, _ := args[0].Member("_rid").AsString()
	raw, err := ridEncoding.DecodeString(rid)
	if err != nil || len(raw) != ridBytes {
		return datum.Undefined()
	}
	ordinal := binary.LittleEndian.Uint64(raw[ridContainer:])
	if ordinal > 1<<63-1 {
		return datum.Undefined()
	}
	return datum.Int(int64(ordinal))
}

// hashBits is how much of a hash is shown: an integer that every JSON reader
// keeps exactly.
const hashBits = 53

// hash returns a number that is the same for equal values. The service does not
// say which hash it takes; this is FNV-1a over the canonical text.
func hash(_ *Context, args []datum.Value) datum.Value {
	h := fnv.New64a()
	h.Write(args[0].AppendCanonical(nil))
	n := int64(h.Sum64() >> (64 - hashBits))
	if len(args) == 1 {
		return datum.Int(n)
	}
	modulus := integer(args[1])
	if modulus <= 0 {
		return datum.Undefined()
	}
	return datum.Int(n % modulus)
}
