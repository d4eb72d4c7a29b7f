// SPDX-License-Identifier: MIT

package sql

import (
	"strings"
	"testing"
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
