// SPDX-License-Identifier: MIT

package sql

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mayflydb/mayfly/internal/sql/datum"
)

func TestAggregates(t *testing.T) {
	f := func(values string, want string) {
		t.Helper()
		var items []string
		for _, v := range strings.Fields(values) {
			if v == "undefined" {
				items = append(items, `{}`)
			} else {
				items = append(items, `{"v":`+v+`}`)
			}
		}
		expect(t, `SELECT COUNT(c.v) AS n, SUM(c.v) AS s, AVG(c.v) AS a, MIN(c.v) AS lo, MAX(c.v) AS hi FROM c`, want, items...)
	}
	f(``, `{"n":0,"s":0}`)
	f(`undefined undefined`, `{"n":0,"s":0}`)
	f(`1 2 3.5`, `{"n":3,"s":6.5,"a":2.1666666666666665,"lo":1,"hi":3.5}`)
	f(`1 undefined 3`, `{"n":2,"s":4,"a":2,"lo":1,"hi":3}`)
	f(`1 null`, `{"n":2,"lo":null,"hi":1}`)
	f(`true false 7`, `{"n":3,"lo":false,"hi":7}`)
	f(`"b" "a" 1`, `{"n":3,"lo":1,"hi":"b"}`)
	f(`1 [2]`, `{"n":2}`)
	f(`1 {}`, `{"n":2}`)
	f(`null`, `{"n":1,"lo":null,"hi":null}`)
}

func TestAggregatesOfRows(t *testing.T) {
	people(t, `SELECT VALUE COUNT(1) FROM c`, `4`)
	people(t, `SELECT VALUE COUNT(c.missing) FROM c`, `0`)
	people(t, `SELECT VALUE SUM(c.age) FROM c`, ``)
	people(t, `SELECT VALUE AVG(c.missing) FROM c`, ``)
	people(t, `SELECT AVG(c.missing) FROM c`, `{}`)
	people(t, `SELECT VALUE SUM(c.age) FROM c WHERE IS_NUMBER(c.age)`, `55`)
	people(t, `SELECT COUNT(1) AS n, MAX(c.age) FROM c WHERE false`, `{"n":0}`)
	people(t, `SELECT VALUE COUNTIF(c.city = "Graz") FROM c`, `2`)
	people(t, `SELECT VALUE COUNTIF(c.age) FROM c`, `0`)
	people(t, `SELECT VALUE MAKELIST(c.city) FROM c`, `["Graz","Wien","Graz",null]`)
	people(t, `SELECT VALUE MAKESET(c.city) FROM c`, `["Graz","Wien",null]`)
	people(t, `SELECT VALUE MAKESET(c.missing) FROM c`, `[]`)
	people(t, `SELECT VALUE {"s": [SUM(p.w), MIN(p.w) / 2]} FROM c JOIN p IN c.pets`, `{"s":[8,1.5]}`)
	people(t, `SELECT TOP 0 VALUE COUNT(1) FROM c`, ``)
	people(t, `SELECT VALUE MAX(c.age) FROM c ORDER BY c.id`, `"old"`)
}

// Rows divided among groups and merged give what all rows give in one group.
func TestMergedGroups(t *testing.T) {
	p := mustCompile(t, `SELECT COUNT(c.v) AS n, SUM(c.v) AS s, AVG(c.v) AS a, MIN(c.v) AS lo, MAX(c.v) AS hi, `+
		`COUNTIF(c.v > 1) AS i, MAKELIST(c.v) AS l, MAKESET(c.v) AS u FROM c`, nil)
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOf(rapid.SampledFrom([]string{`1`, `1.0`, `2`, `-3`, `null`, `"x"`, `[1]`, `true`, ``})).Draw(t, "values")
		cut := rapid.IntRange(0, len(values)).Draw(t, "cut")
		r := p.NewRunner(&Context{})
		var groups [3]*Group
		for i := range groups {
			var err error
			if groups[i], err = r.NewGroup(); err != nil {
				t.Fatal(err)
			}
		}
		for i, v := range values {
			item := `{}`
			if v != "" {
				item = `{"v":` + v + `}`
			}
			part := 0
			if i >= cut {
				part = 1
			}
			err := r.Rows(datum.Raw([]byte(item)), func() bool {
				return r.AddToGroup(groups[part]) == nil && r.AddToGroup(groups[2]) == nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := r.MergeGroups(groups[0], groups[1]); err != nil {
			t.Fatal(err)
		}
		got, err := r.ProjectGroup(groups[0])
		if err != nil {
			t.Fatal(err)
		}
		want, err := r.ProjectGroup(groups[2])
		if err != nil || got.String() != want.String() {
			t.Fatalf("%q cut at %d: %v, want %v, %v", values, cut, got, want, err)
		}
	})
}
