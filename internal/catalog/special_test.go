// SPDX-License-Identifier: MIT

package catalog

import (
	"fmt"
	"testing"
)

func TestSpecialIndexes(t *testing.T) {
	parse := func(policy string) SpecialIndexes {
		t.Helper()
		d, err := ParseDefinition([]byte(withIndexing(policy)))
		if err != nil {
			t.Fatalf("%s: %v", policy, err)
		}
		return d.Special
	}
	for policy, want := range map[string]string{
		`{}`: `{[] [] []}`,
		`{"fullTextIndexes":[{"path":"/t"},{"path":"/o/\"a b\"/?"},{"path":"/t/*"}]}`:              `{[/o/a b /t] [] []}`,
		`{"fullTextIndexes":[{"path":"/list/[]/t"},{"path":"/_etag"},{"path":"/*"}]}`:              `{[] [] []}`,
		`{"vectorIndexes":[{"path":"/v","type":"diskANN"},{"path":"/a","type":"quantizedFlat"}]}`:  `{[] [/a /v] []}`,
		`{"spatialIndexes":[{"path":"/p/?","types":["Point"]},{"path":"/*","types":["Polygon"]}]}`: `{[] [] [{/p false} { true}]}`,
		`{"indexingMode":"none","automatic":false,"fullTextIndexes":[{"path":"/t"}]}`:              `{[] [] []}`,
	} {
		if got := fmt.Sprint(parse(policy)); got != want {
			t.Errorf("%s: got %s, want %s", policy, got, want)
		}
	}
	same := [][2]string{
		{`{"fullTextIndexes":[{"path":"/t"},{"path":"/u"}]}`, `{"fullTextIndexes":[{"path":"/u"},{"path":"/t"}]}`},
		{`{"vectorIndexes":[{"path":"/v","type":"flat"}]}`, `{"vectorIndexes":[{"path":"/v","type":"diskANN"}]}`},
	}
	for _, pair := range same {
		if a, b := parse(pair[0]), parse(pair[1]); !a.Equal(&b) {
			t.Errorf("%s and %s differ", pair[0], pair[1])
		}
	}
	other := []string{`{}`, `{"fullTextIndexes":[{"path":"/t"}]}`, `{"vectorIndexes":[{"path":"/t","type":"flat"}]}`,
		`{"spatialIndexes":[{"path":"/t/*","types":["Point"]}]}`, `{"spatialIndexes":[{"path":"/t/?","types":["Point"]}]}`}
	for i := range other {
		for j := range i {
			if a, b := parse(other[i]), parse(other[j]); a.Equal(&b) || b.Equal(&a) {
				t.Errorf("%s and %s are equal", other[i], other[j])
			}
		}
	}
}
