// SPDX-License-Identifier: MIT

package index

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/memory"
)

func TestVectorEntries(t *testing.T) {
	long := "[" + strings.Repeat("1,", maxVectorNumbers-1) + "1]"
	for vector, want := range map[string]string{
		``:                           `[] false false`,
		`1`:                          `[] false false`,
		`[]`:                         `[] false false`,
		`{"0":1}`:                    `[] false false`,
		`[1,"2"]`:                    `[] false false`,
		`[1,[2]]`:                    `[] false false`,
		`[null]`:                     `[] false false`,
		`[1,-2.5,0]`:                 `[1 -2.5 0] false false`,
		`[0.1,1]`:                    `[0.1 1] true false`,
		`[16777217]`:                 `[1.6777216e+07] true false`,
		`[1e39]`:                     `[] false true`,
		`[1e-50]`:                    `[0] true false`,
		long:                         fmt.Sprint(slices.Repeat([]float32{1}, maxVectorNumbers), false, false),
		long[:len(long)-1] + ",1]":   `[] false true`,
		long[:len(long)-1] + `,"1"]`: `[] false false`,
	} {
		item := `{"v":` + vector + `}`
		if vector == "" {
			item = `{}`
		}
		made, err := Append(Entries{}, policyOf(t, `{"excludedPaths":[{"path":"/*"}],"vectorIndexes":[{"path":"/v","type":"flat"}]}`), objectOf(t, item), memory.Room{})
		if err != nil || made.Len() != 1 {
			t.Fatalf("%.40s: %d entries, %v", item, made.Len(), err)
		}
		v, err := DecodeVector(made.Carried(0), nil)
		if got := fmt.Sprint(v.Numbers, v.Rounded, v.OnItem); got != want || err != nil {
			t.Errorf("%.40s: got %.60s, %v, want %.60s", item, got, err, want)
		}
	}
	for _, carried := range [][]byte{{0}, {1}, {0, 1}, {2, 0, 0, 0, 0}, {3, 0, 0, 0, 0}, {9}} {
		if v, err := DecodeVector(carried, nil); err == nil {
			t.Errorf("%x is the vector %v", carried, v)
		}
	}
}
