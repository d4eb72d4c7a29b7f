// SPDX-License-Identifier: MIT

package function

import (
	"github.com/mayflydb/mayfly/internal/sql/datum"
	"testing"
)

func TestConversion(t *testing.T) {
	sheet(t, `
TOSTRING(undefined) => undefined
TOSTRING(null) => "null"
TOSTRING(true) => "true"
TOSTRING("a\"b") => "a\"b"
TOSTRING([1, "a", {"b": null}]) => "[1,\"a\",{\"b\":null}]"
TOSTRING({}) => "{}"
TOSTRING(0) => "0"
TOSTRING(-12.50) => "-12.5"
TOSTRING(1.0) => "1"
TOSTRING(1e3) => "1000"
TOSTRING(9007199254740993) => "9007199254740993"
TOSTRING(99999999999999999) => "99999999999999999"
TOSTRING(100000000000000000) => "1e+017"
TOSTRING(1.5e300) => "1.5e+300"
TOSTRING(0.0001) => "0.0001"
TOSTRING(0.00001) => "1e-005"
TOSTRING(-2.5e-10) => "-2.5e-010"
TOSTRING(0.1 + 0.2) => "0.30000000000000004"
TOSTRING(0/0) => "NaN"
TOSTRING(1/0) => "Infinity"
TOSTRING(-1/0) => "-Infinity"

STRINGTONUMBER("12") => 12
STRINGTONUMBER(" -1.5e3\n") => -1500
STRINGTONUMBER("9007199254740993") => 9007199254740993
STRINGTONUMBER("") => undefined
STRINGTONUMBER("1 2") => undefined
STRINGTONUMBER("01") => undefined
STRINGTONUMBER("+1") => undefined
STRINGTONUMBER("0x1F") => undefined
STRINGTONUMBER("1e999") => undefined
STRINGTONUMBER("NaN") => undefined
STRINGTONUMBER("Infinity") => undefined
STRINGTONUMBER("\"1\"") => undefined
STRINGTOBOOLEAN("true") => true
STRINGTOBOOLEAN("\tfalse ") => false
STRINGTOBOOLEAN("True") => undefined
STRINGTOBOOLEAN("1") => undefined
STRINGTOBOOLEAN("tru") => undefined
STRINGTONULL(" null ") => null
STRINGTONULL("nul") => undefined
STRINGTONULL("NULL") => undefined
STRINGTOARRAY("[ 1, [ \"a\" ], { \"b\" : null } ]") => [1,["a"],{"b":null}]
STRINGTOARRAY("[]") => []
STRINGTOARRAY("[1,]") => undefined
STRINGTOARRAY("[1] [2]") => undefined
STRINGTOARRAY("[1],\"w\":[2]") => undefined
STRINGTOARRAY("{}") => undefined
STRINGTOARRAY("\"") => undefined
STRINGTOARRAY("['a']") => undefined
STRINGTOOBJECT("{ \"a\" : [ 1 ] }") => {"a":[1]}
STRINGTOOBJECT("{}") => {}
STRINGTOOBJECT("{\"a\":1,\"a\":2}") => undefined
STRINGTOOBJECT("{\"a\":1}}") => undefined
STRINGTOOBJECT("{a:1}") => undefined
STRINGTOOBJECT("[]") => undefined
`)
}

func FuzzStringToValue(f *testing.F) {
	for _, seed := range []string{"", "1", " [1, 2] ", `{"a":{}}`, `[1],"v":[2]`, "{}}", `"`, "nul", "-", "1e9", "\x00", "[\"\\ud800\"]"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, name := range []string{"STRINGTOARRAY", "STRINGTOBOOLEAN", "STRINGTONULL", "STRINGTONUMBER", "STRINGTOOBJECT"} {
			v := invoke(functions[name], testContext(), []datum.Value{datum.Str(text)})
			if v.IsUndefined() {
				continue
			}
			again := invoke(functions[name], testContext(), []datum.Value{datum.Str(v.String())})
			if !datum.Equal(v, again) {
				t.Errorf("%s(%q) is %s, and of that %s", name, text, v, again)
			}
		}
	})
}
