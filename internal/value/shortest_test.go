// SPDX-License-Identifier: MIT

package value

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
)

func TestAppendShortest(t *testing.T) {
	f := func(json, want string) {
		t.Helper()
		if got := string(AppendShortest([]byte("x"), json)); got != "x"+want {
			t.Errorf("%s: got %s, want %s", json, got[1:], want)
		}
	}
	for json, want := range map[string]string{
		"1": "1", "-7": "-7", "0": "0", "-0": "-0",
		"1.0": "1", "-2.50": "-2.5", "1E2": "100", "1e2": "100", "1e+2": "100", "1.50e1": "15", "120e-1": "12",
		"0.0": "0", "-0.0": "-0", "0e5": "0", "10.25": "10.25", "129.5": "129.5", "0.1": "0.1",
		"1e300": "1e+300", "1E-7": "1e-7", "0.0000001": "1e-7", "0.000001": "0.000001", "-0.00000012": "-1.2e-7", "1e21": "1e+21", "1e20": "100000000000000000000",
		"0.30000000000000004": "0.30000000000000004", "0.1000000000000000055511151231257827": "0.1", "1e-400": "0", "5e-324": "5e-324",
		"9007199254740993": "9007199254740993", "9007199254740993.0": "9007199254740992", "123456789012345678901234567890": "123456789012345678901234567890",
	} {
		f(json, want)
		f("["+json+"]", "["+want+"]")
		f("["+json+","+json+",true,false,null]", "["+want+","+want+",true,false,null]")
		f(`{"e1.0":"1.0","\"2.0":`+json+`,"e":{"e":[`+json+`]}}`, `{"e1.0":"1.0","\"2.0":`+want+`,"e":{"e":[`+want+`]}}`)
	}
	f("true", "true")
	f(`"1.0\\"`, `"1.0\\"`)
	f("{}", "{}")
}

// Numbers mean the same in both forms, and the shortest form of the shortest form is itself.
func FuzzAppendShortest(f *testing.F) {
	for _, seed := range []string{`{"a":[1.0,2e5,"1.0\"",true]}`, `-0.0`, `[1e-7,123456789012345.5]`, `{"e":1E+2,"é.5":false}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		o, err := ParseObject([]byte(`{"v":` + text + `}`))
		if err != nil {
			return
		}
		raw := string(o.Bytes())
		short := AppendShortest(nil, raw)
		if end, shortest := ShortestEnd(raw, 0); end != len(raw) || shortest && string(short) != raw {
			t.Fatalf("%s: ends at %d, is the shortest: %v", raw, end, shortest)
		}
		var was, is any
		if err := json.Unmarshal([]byte(raw), &was); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(short, &is); err != nil {
			t.Fatalf("%s: %s: %v", raw, short, err)
		}
		if !reflect.DeepEqual(was, is) {
			t.Fatalf("%s is not the same as %s", short, raw)
		}
		if again := AppendShortest(nil, string(short)); string(again) != string(short) {
			t.Fatalf("%s becomes %s", short, again)
		}
	})
}

// What is taken for the shortest form without a look at its value is.
func TestIsShortest(t *testing.T) {
	for _, sign := range []string{"", "-"} {
		for digits := 2; digits <= maxExactDigits; digits++ {
			for point := 1; point < digits; point++ {
				for _, of := range []string{"123456789123456", "987654321987654", "900000000000001", "100000000000009", "000000000000001"} {
					number := sign + of[:point] + "." + of[point:digits]
					end, shortest := fractionEnd(number, strings.IndexByte(number, '.'))
					if strings.HasPrefix(of, "0") && point > 1 || !shortest {
						continue
					}
					if end != len(number) {
						t.Errorf("%s: its fraction ends at %d", number, end)
					}
					var f float64
					if _, err := fmt.Sscan(number, &f); err != nil || math.IsInf(f, 0) {
						t.Fatal(number, err)
					}
					if got := string(appendNumber(nil, number)); got != number {
						t.Errorf("%s is taken for the shortest form of %s", number, got)
					}
				}
			}
		}
	}
}
