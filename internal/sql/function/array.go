// SPDX-License-Identifier: MIT

// Functions on arrays, sets and objects, and the choice between arguments.

package function

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/mayflydb/mayfly/internal/sql/datum"
)

func arrayFunctions() []Function {
	return []Function{
		{Name: "ARRAY_AVG", Also: "ARRAYAVG", Args: "a", Eval: arrayAvg},
		{Name: "ARRAY_CONCAT", Also: "ARRAYCONCAT", Args: "aa*", Eval: arrayConcat},
		{Name: "ARRAY_CONTAINS", Also: "_TRY_ARRAY_CONTAINS ARRAYCONTAINS", Args: "a!|.", Eval: arrayContains},
		{Name: "ARRAY_CONTAINS_ALL", Also: "ARRAYCONTAINSALL", Args: "a.*", Eval: arrayContainsAll},
		{Name: "ARRAY_CONTAINS_ANY", Also: "ARRAYCONTAINSANY", Args: "a.*", Eval: arrayContainsAny},
		{Name: "ARRAY_LENGTH", Also: "ARRAYLENGTH", Args: "a", Eval: arrayLength},
		{Name: "ARRAY_MAX", Also: "ARRAYMAX", Args: "a", Eval: arrayMax},
		{Name: "ARRAY_MEDIAN", Also: "ARRAYMEDIAN", Args: "a", Eval: arrayMedian},
		{Name: "ARRAY_MIN", Also: "ARRAYMIN", Args: "a", Eval: arrayMin},
		{Name: "ARRAY_SLICE", Also: "ARRAYSLICE", Args: "ai|i", Eval: arraySlice},
		{Name: "ARRAY_SUM", Also: "ARRAYSUM", Args: "a", Eval: arraySum},
		{Name: "CHOOSE", Args: "i.*", Eval: choose},
		{Name: "IIF", Args: "...", Eval: iif},
		{Name: "OBJECTTOARRAY", Also: "OBJECT_TO_ARRAY", Args: "o|ss", Eval: objectToArray},
		{Name: "SETDIFFERENCE", Also: "SET_DIFFERENCE", Args: "aa", Eval: setDifference},
		{Name: "SETEQUAL", Also: "SET_EQUAL", Args: "aa", Eval: setEqual},
		{Name: "SETINTERSECT", Also: "SET_INTERSECT", Args: "aa", Eval: setIntersect},
		{Name: "SETUNION", Also: "SET_UNION", Args: "aa", Eval: setUnion},
	}
}

// arrayConcat adds up the sizes before it copies anything.
func arrayConcat(cx *Context, args []datum.Value) datum.Value {
	size := 0
	for _, a := range args {
		if size += a.Size(); size > MaxResultBytes {
			return cx.Fail(ErrResultTooLarge)
		}
	}
	var b datum.ArrayBuilder
	for _, a := range args {
		for element := range a.Elements {
			b.Add(element)
		}
	}
	return b.Value()
}

// arrayContains looks for the second argument. With true as the third, an object
// also matches one that has more properties: see partOf. An undefined third
// argument counts as false.
func arrayContains(_ *Context, args []datum.Value) datum.Value {
	array, needle, partial := args[0], args[1], optional(args, 2)
	if !partial.IsUndefined() && partial.Kind() != datum.KindBool {
		return datum.Undefined()
	}
	matches := datum.Equal
	if partial.IsTrue() {
		matches = partOf
	}
	for element := range array.Elements {
		if matches(needle, element) {
			return datum.Bool(true)
		}
	}
	return datum.Bool(false)
}

// partOf reports whether a is b or a part of it: objects may have more
// properties in b, at any depth; arrays must have the same length.
func partOf(a, b datum.Value) bool {
	switch {
	case a.Kind() != b.Kind():
		return false
	case a.Kind() == datum.KindObject:
		return objectPartOf(a, b)
	case a.Kind() == datum.KindArray:
		return datum.EqualArrays(a, b, partOf)
	}
	return datum.Equal(a, b)
}

// manyLookups is how many values are looked up one by one; for more, a table is made first.
const manyLookups = 16

// objectPartOf reports whether b has all properties of a, each with at least its parts.
func objectPartOf(a, b datum.Value) bool {
	member := b.Member
	if a.Len() > manyLookups {
		// One pass over b instead of one for each property.
		properties := make(map[string]datum.Value)
		for name, property := range b.Properties {
			properties[name] = property
		}
		member = func(name string) datum.Value { return properties[name] }
	}
	for name, property := range a.Properties {
		if !partOf(property, member(name)) {
			return false
		}
	}
	return true
}

// arrayContainsAny and arrayContainsAll take their needles as arguments, and one that is
// undefined leaves the result open unless the others decide.
func arrayContainsAny(_ *Context, args []datum.Value) datum.Value {
	return anyOf(args[1:], inArray(args[0], len(args)-1))
}

func arrayContainsAll(_ *Context, args []datum.Value) datum.Value {
	return allOf(args[1:], inArray(args[0], len(args)-1))
}

// inArray returns a test for so many needles. If they are many, one pass over the
// array does for all of them.
func inArray(array datum.Value, needles int) func(datum.Value) datum.Value {
	var elements datum.Set
	if needles > manyLookups {
		elements = datum.SetOf(array)
	}
	return func(needle datum.Value) datum.Value {
		if needle.IsUndefined() {
			return needle
		}
		if elements != nil && needle.Finite() {
			return datum.Bool(elements.Has(needle))
		}
		for element := range array.Elements {
			if datum.Equal(element, needle) {
				return datum.Bool(true)
			}
		}
		return datum.Bool(false)
	}
}

// arrayLength counts the elements on the way over the text: nothing is parsed for it.
func arrayLength(_ *Context, args []datum.Value) datum.Value {
	return datum.Int(int64(args[0].Len()))
}

// arraySlice returns the elements from a position on, which counts from the end
// if it is negative.
func arraySlice(_ *Context, args []datum.Value) datum.Value {
	start, count := integer(args[1]), int64(math.MaxInt64)
	if len(args) == 3 {
		count = integer(args[2])
	}
	if start < 0 {
		start = max(start+int64(args[0].Len()), 0)
	}
	var b datum.ArrayBuilder
	at := int64(0)
	for element := range args[0].Elements {
		if at-start >= count {
			break
		}
		if at >= start {
			b.Add(element)
		}
		at++
	}
	return b.Value()
}

// numbersOf returns an array's elements if all are numbers.
func numbersOf(array datum.Value) (numbers []float64, ok bool) {
	for element := range array.Elements {
		f, ok := element.AsFloat()
		if !ok {
			return nil, false
		}
		numbers = append(numbers, f)
	}
	return numbers, true
}

// sum adds up from the first on, as the aggregates do: another order would round differently.
func sum(numbers []float64) float64 {
	total := 0.0
	for _, f := range numbers {
		total += f
	}
	return total
}

// arraySum is undefined if an element is no number; of nothing it is 0.
func arraySum(_ *Context, args []datum.Value) datum.Value {
	numbers, ok := numbersOf(args[0])
	if !ok {
		return datum.Undefined()
	}
	return datum.Float(sum(numbers))
}

// arrayAvg has no value for an empty array: there is nothing to divide by.
func arrayAvg(_ *Context, args []datum.Value) datum.Value {
	numbers, ok := numbersOf(args[0])
	if !ok || len(numbers) == 0 {
		return datum.Undefined()
	}
	return datum.Float(sum(numbers) / float64(len(numbers)))
}

// arrayMedian of an even number is the mean of the two in the middle.
func arrayMedian(_ *Context, args []datum.Value) datum.Value {
	numbers, ok := numbersOf(args[0])
	if !ok || len(numbers) == 0 {
		return datum.Undefined()
	}
	slices.Sort(numbers)
	middle := len(numbers) / 2
	if len(numbers)%2 == 1 {
		return datum.Float(numbers[middle])
	}
	return datum.Float((numbers[middle-1] + numbers[middle]) / 2)
}

// arrayMin and arrayMax order their elements as ORDER BY does, also those of different
// types.
func arrayMin(_ *Context, args []datum.Value) datum.Value { return extreme(args[0], -1) }

func arrayMax(_ *Context, args []datum.Value) datum.Value { return extreme(args[0], +1) }

// extreme returns the element that Compare puts on the given side of all others.
// Arrays and objects have no rank among values.
func extreme(array datum.Value, side int) datum.Value {
	var found datum.Value
	for element := range array.Elements {
		if element.Kind() >= datum.KindArray {
			return datum.Undefined()
		}
		if found.IsUndefined() || datum.Compare(element, found) == side {
			found = element
		}
	}
	return found
}

// choose returns the argument after the first that the first counts to from 1.
func choose(_ *Context, args []datum.Value) datum.Value {
	i := integer(args[0])
	if i < 1 || i >= int64(len(args)) {
		return datum.Undefined()
	}
	return args[i]
}

// iif returns the second argument if the first is exactly true, and else the
// third, whatever the first is.
func iif(_ *Context, args []datum.Value) datum.Value {
	if args[0].IsTrue() {
		return args[1]
	}
	return args[2]
}

// objectToArray makes an array of objects with the name and the value of each property.
func objectToArray(_ *Context, args []datum.Value) datum.Value {
	names := [2]string{"k", "v"}
	for i, name := range args[1:] {
		names[i] = name.Text()
	}
	if names[0] == names[1] {
		return datum.Undefined() // an object cannot have both
	}
	var b datum.ArrayBuilder
	for name, property := range args[0].Properties {
		var pair datum.ObjectBuilder
		pair.Set(names[0], datum.Str(name))
		pair.Set(names[1], property)
		b.Add(pair.Value())
	}
	return b.Value()
}

// Sets keep the order in which their elements first come, as the service's do; an
// intersection keeps that of the second array.

// setUnion checks the size before it copies: both arrays may be a whole item.
func setUnion(cx *Context, args []datum.Value) datum.Value {
	if args[0].Size()+args[1].Size() > MaxResultBytes {
		return cx.Fail(ErrResultTooLarge)
	}
	seen := datum.Set{}
	var b datum.ArrayBuilder
	for _, array := range args {
		for element := range array.Elements {
			if seen.Add(element) > 0 {
				b.Add(element)
			}
		}
	}
	return b.Value()
}

// setIntersect returns the elements of the second array that the first has too.
func setIntersect(_ *Context, args []datum.Value) datum.Value {
	return subset(args[1], datum.SetOf(args[0]).Has)
}

// setDifference returns the elements of the first array that the second does not have.
func setDifference(_ *Context, args []datum.Value) datum.Value {
	other := datum.SetOf(args[1])
	return subset(args[0], func(v datum.Value) bool { return !other.Has(v) })
}

// subset returns the elements that are wanted, each once.
func subset(array datum.Value, wanted func(datum.Value) bool) datum.Value {
	seen := datum.Set{}
	var b datum.ArrayBuilder
	for element := range array.Elements {
		if wanted(element) && seen.Add(element) > 0 {
			b.Add(element)
		}
	}
	return b.Value()
}

// setEqual compares sets, so that neither order nor repetitions count.
func setEqual(_ *Context, args []datum.Value) datum.Value {
	return datum.Bool(maps.Equal(datum.SetOf(args[0]), datum.SetOf(args[1])))
}

// joinStrings returns an array's strings with a separator between them. It is undefined if
// an element is no string; nothing is converted.
func joinStrings(cx *Context, args []datum.Value) datum.Value {
	separator := args[1].Text()
	var parts []string
	size := 0
	for element := range args[0].Elements {
		s, ok := element.AsString()
		if !ok {
			return datum.Undefined()
		}
		parts = append(parts, s)
		if size += len(s) + len(separator); size > MaxResultBytes {
			return cx.Fail(ErrResultTooLarge)
		}
	}
	return datum.Str(strings.Join(parts, separator))
}
