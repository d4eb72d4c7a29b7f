// SPDX-License-Identifier: MIT

package function

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/mayflydb/mayfly/internal/sql/datum"
)

func TestArrayFunctions(t *testing.T) {
	sheet(t, `
ARRAY_CONCAT([1, 2], ["b"]) => [1,2,"b"]
ARRAY_CONCAT([], []) => []
ARRAY_CONCAT([1], [], [[2]], [null]) => [1,[2],null]

ARRAY_CONTAINS(["oak", "elm"], "elm") => true
ARRAY_CONTAINS(["oak", "elm"], "ELM") => false
ARRAY_CONTAINS([], null) => false
ARRAY_CONTAINS([1.0], 1) => true
ARRAY_CONTAINS([[1, 2]], [1, 2]) => true
ARRAY_CONTAINS([{"a": 1, "b": 2}], {"b": 2, "a": 1}) => true
ARRAY_CONTAINS([{"a": 1, "b": 2}], {"a": 1}) => false
ARRAY_CONTAINS([{"a": 1, "b": 2}], {"a": 1}, false) => false
ARRAY_CONTAINS([{"a": 1, "b": 2}], {"a": 1}, undefined) => false
ARRAY_CONTAINS([{"a": 1, "b": 2}], {"a": 1}, null) => undefined
ARRAY_CONTAINS([{"a": 1, "b": 2}], {"a": 1}, "true") => undefined
ARRAY_CONTAINS([{"a": 1, "b": 2}], {"a": 1}, true) => true
ARRAY_CONTAINS([{"a": 1, "b": 2}], {"a": 2}, true) => false
ARRAY_CONTAINS([{"a": 1, "b": 2}], {}, true) => true
ARRAY_CONTAINS([{"a": {"b": 1, "c": 2}}], {"a": {"c": 2}}, true) => true
ARRAY_CONTAINS([[1, 2]], [1], true) => false
ARRAY_CONTAINS([[{"a": 1, "b": 2}, 3]], [{"b": 2}, 3], true) => true
ARRAY_CONTAINS([1, 2], 2, true) => true
ARRAY_CONTAINS([1], undefined) => undefined

ARRAY_CONTAINS_ANY([1, true, "3"], 5, "3") => true
ARRAY_CONTAINS_ANY([1, 2], 3, 4) => false
ARRAY_CONTAINS_ANY([1, 2], undefined, 2) => true
ARRAY_CONTAINS_ANY([1, 2], undefined, 3) => undefined
ARRAY_CONTAINS_ANY([], 1) => false
ARRAY_CONTAINS_ANY([1], [1]) => false
ARRAY_CONTAINS_ALL([1, 2, 3], 3, 1) => true
ARRAY_CONTAINS_ALL([1, 2], 1, 3) => false
ARRAY_CONTAINS_ALL([1, 2], undefined, 3) => false
ARRAY_CONTAINS_ALL([1, 2], undefined, 1) => undefined
ARRAY_CONTAINS_ALL([], 1) => false
ARRAY_CONTAINS_ALL([1, {"a": 1, "b": 2}], 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1.0, {"b": 2, "a": 1}) => true
ARRAY_CONTAINS_ANY([0, 1], 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, "1") => false
ARRAY_CONTAINS_ANY([0/0], 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 0/0) => false

ARRAY_LENGTH([]) => 0
ARRAY_LENGTH([1, [2, 3], {"a": 4}]) => 3
ARRAY_LENGTH([undefined]) => 0

ARRAY_SLICE([1, 2, 3, 4], 1) => [2,3,4]
ARRAY_SLICE([1, 2, 3, 4], 1, 2) => [2,3]
ARRAY_SLICE([1, 2, 3, 4], -3, 2) => [2,3]
ARRAY_SLICE([1, 2, 3, 4], -9, 2) => [1,2]
ARRAY_SLICE([1, 2, 3, 4], 4) => []
ARRAY_SLICE([1, 2, 3, 4], 2, 99) => [3,4]
ARRAY_SLICE([1, 2, 3, 4], 0, 0) => []
ARRAY_SLICE([1, 2, 3, 4], 0, -1) => []
ARRAY_SLICE([1, 2], 9223372036854775807, 9223372036854775807) => []
ARRAY_SLICE([1, 2], -9223372036854775808) => [1,2]
ARRAY_SLICE([1, 2], 0.5) => undefined
ARRAY_SLICE([1, 2], 0, 0.5) => undefined
ARRAY_SLICE([1, 2], 0, undefined) => undefined

ARRAY_SUM([1, 2, 3.5]) => 6.5
ARRAY_SUM([]) => 0
ARRAY_SUM([1, undefined, 2]) => 3
ARRAY_SUM([1, null]) => undefined
ARRAY_AVG([1, 2]) => 1.5
ARRAY_AVG([]) => undefined
ARRAY_AVG([1, "2"]) => undefined
ARRAY_MEDIAN([9, 1, 5]) => 5
ARRAY_MEDIAN([4, 1, 3, 2]) => 2.5
ARRAY_MEDIAN([]) => undefined
ARRAY_MEDIAN([true]) => undefined

ARRAY_MIN([3, "a", true, null]) => null
ARRAY_MIN([3, 1.5, 2]) => 1.5
ARRAY_MIN(["b", "B", "a"]) => "B"
ARRAY_MAX([3, "a", true, null]) => "a"
ARRAY_MAX([false, true]) => true
ARRAY_MAX([]) => undefined
ARRAY_MAX([1, [2]]) => undefined
ARRAY_MAX([1, {}]) => undefined
`)
}

func TestChoice(t *testing.T) {
	sheet(t, `
CHOOSE(1, "a", "b") => "a"
CHOOSE(2, "a", "b") => "b"
CHOOSE(2.0, "a", "b") => "b"
CHOOSE(0, "a", "b") => undefined
CHOOSE(-1, "a", "b") => undefined
CHOOSE(3, "a", "b") => undefined
CHOOSE(1.5, "a", "b") => undefined
CHOOSE(1, undefined, "b") => undefined
IIF(true, 1, 2) => 1
IIF(false, 1, 2) => 2
IIF(null, 1, 2) => 2
IIF(undefined, 1, 2) => 2
IIF(1, 1, 2) => 2
IIF("true", 1, 2) => 2
IIF(true, undefined, 2) => undefined
`)
}

func TestSetFunctions(t *testing.T) {
	sheet(t, `
SETUNION([1, 2, 2], [2, 3, 1.0]) => [1,2,3]
SETUNION([], []) => []
SETUNION([{"a": 1, "b": 2}], [{"b": 2, "a": 1}]) => [{"a":1,"b":2}]
SETUNION([1], ["1"]) => [1,"1"]
SETINTERSECT([3, 1, 1, 2], [1, 3, 1]) => [1,3]
SETINTERSECT([1, 2, "A", "B"], ["A", 1]) => ["A",1]
SETINTERSECT([1], []) => []
SETINTERSECT([null, [1]], [[1], null]) => [[1],null]
SETDIFFERENCE([1, 2, 2, 3], [3]) => [1,2]
SETDIFFERENCE([1], [1.0]) => []
SETDIFFERENCE([], [1]) => []
SETEQUAL([1, 2, 2], [2, 1]) => true
SETEQUAL([], []) => true
SETEQUAL([1], [1, 2]) => false
SETEQUAL([1, 2], [1, 3]) => false
OBJECTTOARRAY({"a": 1, "b": [2]}) => [{"k":"a","v":1},{"k":"b","v":[2]}]
OBJECTTOARRAY({}) => []
OBJECTTOARRAY({"a": 1}, "name") => [{"name":"a","v":1}]
OBJECTTOARRAY({"a": 1}, "name", "value") => [{"name":"a","value":1}]
OBJECTTOARRAY({"a": 1}, "x", "x") => undefined
OBJECTTOARRAY([1]) => undefined
`)
}

// TestSetLaws holds the set functions to the laws of sets.
func TestSetLaws(t *testing.T) {
	array := rapid.Custom(func(t *rapid.T) datum.Value {
		var b datum.ArrayBuilder
		for _, v := range rapid.SliceOfN(anyValue(), 0, 6).Draw(t, "elements") {
			if v.Finite() {
				b.Add(v)
			}
		}
		return b.Value()
	})
	cx := testContext()
	rapid.Check(t, func(t *rapid.T) {
		a, b := array.Draw(t, "a"), array.Draw(t, "b")
		pair := []datum.Value{a, b}
		union, both, left := setUnion(cx, pair), setIntersect(cx, pair), setDifference(cx, pair)
		if !setEqual(cx, []datum.Value{union, setUnion(cx, []datum.Value{b, a})}).IsTrue() {
			t.Fatalf("the union of %s and %s depends on their order", a, b)
		}
		if !setEqual(cx, []datum.Value{a, setUnion(cx, []datum.Value{both, left})}).IsTrue() {
			t.Fatalf("%s is not what it shares with %s and what not", a, b)
		}
		if union.Len() != both.Len()+left.Len()+setDifference(cx, []datum.Value{b, a}).Len() {
			t.Fatalf("the sizes of %s and %s do not add up", a, b)
		}
		for element := range union.Elements {
			inA := arrayContains(cx, []datum.Value{a, element}).IsTrue()
			inB := arrayContains(cx, []datum.Value{b, element}).IsTrue()
			if !inA && !inB || inA && inB != arrayContains(cx, []datum.Value{both, element}).IsTrue() {
				t.Fatalf("%s is in the union of %s and %s", element, a, b)
			}
		}
	})
}

func TestTypeFunctions(t *testing.T) {
	kinds := []string{"undefined", "null", "true", "1", "'s'", "[]", "{}"}
	for name, want := range map[string]string{
		"IS_DEFINED":       "0111111",
		"IS_NULL":          "0100000",
		"IS_BOOL":          "0010000",
		"IS_NUMBER":        "0001000",
		"IS_STRING":        "0000100",
		"IS_ARRAY":         "0000010",
		"IS_OBJECT":        "0000001",
		"IS_PRIMITIVE":     "0111100",
		"IS_INTEGER":       "0001000",
		"IS_FINITE_NUMBER": "0001000",
		"IS_DATETIME":      "0000000",
	} {
		for i, kind := range kinds {
			expected := map[byte]string{'0': "false", '1': "true"}[want[i]]
			if got := calc(t, name+"("+kind+")"); got != expected {
				t.Errorf("%s(%s): got %s", name, kind, got)
			}
		}
	}
	sheet(t, `
IS_INTEGER(1.0) => true
IS_INTEGER(-1.5) => false
IS_INTEGER(1e18) => true
IS_INTEGER(9223372036854775807) => true
IS_INTEGER(-9223372036854775808) => true
IS_INTEGER(9223372036854775808) => false
IS_INTEGER(1/0) => false
IS_NUMBER(1/0) => true
IS_FINITE_NUMBER(-1/0) => false
IS_FINITE_NUMBER(0/0) => false
IS_FINITE_NUMBER(1e308) => true
`)
}

func TestItemFunctions(t *testing.T) {
	sheet(t, `
# The last eight bytes are 01 02 00 …, little-endian.
DOCUMENTID({"_rid": "AAAAAAAAAIABAgAAAAAAAA=="}) => 513
# '-' stands for '/' in the text.
DOCUMENTID({"_rid": "AAAAAAAAAID-AAAAAAAAAA=="}) => 255
DOCUMENTID({"_rid": "AAAA"}) => undefined
DOCUMENTID({"_rid": "not a rid"}) => undefined
DOCUMENTID({"_rid": 7}) => undefined
DOCUMENTID({}) => undefined
DOCUMENTID("x") => undefined
HASH("a") = HASH("a") => true
HASH("a") = HASH("b") => false
HASH(1) = HASH(1.0) => true
HASH({"a": 1, "b": 2}) = HASH({"b": 2, "a": 1}) => true
HASH(null) >= 0 AND IS_INTEGER(HASH(null)) => true
HASH("a", 10) = HASH("a") % 10 => true
HASH("a", 1) => 0
HASH("a", 0) => undefined
HASH("a", -5) => undefined
HASH("a", 1.5) => undefined
HASH(undefined) => undefined
`)
}
