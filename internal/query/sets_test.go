// SPDX-License-Identifier: MIT

package query

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// setItems is enough that equalities over them are intersected.
const setItems = 300

// newSets returns items with properties that many of them share, a third of which
// expire after a second, in several partition keys.
func newSets(t testing.TB) *fixture {
	f := newFixture(t, `"defaultTtl":-1`)
	for i := range setItems {
		ttl := ""
		if i%3 == 0 {
			ttl = `,"ttl":1`
		}
		f.put(partitionKeys[i%len(partitionKeys)], fmt.Sprint("i", i),
			fmt.Sprintf(`"third":%d,"fifth":%d,"seventh":"s%d","tags":["t%d","u%d"],"i":%d%s`, i%3, i%5, i%7, i%4, i%6, i, ttl))
	}
	return f
}

// anyEquality draws a condition that names a set.
func anyEquality(t *random) string {
	number := func(n int) string { return fmt.Sprint(uniform(t.T, "number", n)) }
	switch pick(t.T, "equality", "third", "fifth", "fifth", "seventh", "tags", "id", "item", "item", "pk", "in", "none") {
	case "third":
		return "c.third = " + number(4)
	case "fifth":
		return "c.fifth = " + number(6)
	case "seventh":
		return "c.seventh = 's" + number(8) + "'"
	case "tags":
		return "ARRAY_CONTAINS(c.tags, '" + pick(t.T, "tag", "t", "u") + number(6) + "')"
	case "id":
		return "c.id = 'i" + number(setItems) + "'"
	case "item":
		return "(c.id = 'i" + number(setItems) + "' AND c.pk = '" + pick(t.T, "pk", "k", "l", "m") + "')"
	case "pk":
		return "c.pk = '" + pick(t.T, "pk", "k", "l", "m") + "'"
	case "in":
		return "c.i IN (" + number(setItems) + ", " + number(setItems) + ", " + number(setItems) + ", 'none')"
	}
	return "c.third = 'none'"
}

func anySetFilter(t *random, depth int) string {
	if depth == 0 || chance(t.T, "leaf", 20) {
		return anyEquality(t)
	}
	parts := make([]string, 2+uniform(t.T, "parts", 3))
	for i := range parts {
		parts[i] = anySetFilter(t, depth-1)
	}
	return "(" + strings.Join(parts, pick(t.T, "op", " AND ", " OR ")) + ")"
}

// Equalities, AND and OR of them find what the naive way finds, in pages, before and
// after some items have expired, in every scope.
func TestSetsAgreeWithTheNaiveWay(t *testing.T) {
	world := newSets(t)
	defer world.p.Close()
	methods := map[string]bool{}
	check := func(r *rapid.T) {
		f := *world
		f.t = r
		t := newRandom(r)
		q := &randomQuery{from: "c", limit: -1, selected: "VALUE c.i", where: anySetFilter(t, 2)}
		if chance(r, "ordered", 20) {
			q.orderedBy(t, "c.i")
		}
		s := f.anyScope(t)
		f.compareWithOracle(t, q, s)
		request := f.request(q.String())
		request.Scope = s
		plan, err := explain(request)
		f.must(err)
		kind, _, _ := strings.Cut(plan, " ")
		methods[kind] = true
	}
	const rounds = 4 // until every method has come up
	for range rounds {
		rapid.Check(t, check)
	}
	world.advance(2 * time.Second)
	for range rounds {
		rapid.Check(t, check)
	}
	for _, m := range []string{"keys", "seek", "union", "intersection"} {
		if !methods[m] {
			t.Errorf("no query was answered by %s", m)
		}
	}
}

// What several sets have in common is found without reading what only one of them has.
func TestIntersectionReadsNoMoreThanItMust(t *testing.T) {
	f := newSets(t)
	page := f.page(f.request("SELECT VALUE c.i FROM c WHERE c.seventh = 's3' AND c.fifth = 2"))
	if page.Count != 9 || page.Work.Items != 9 {
		t.Errorf("%s: %d rows of %d items, want 9 of 9", page.Plan(), page.Count, page.Work.Items)
	}
	if page.Work.IndexRows > setItems/5+setItems/7+2 {
		t.Errorf("%s: %d index rows were read", page.Plan(), page.Work.IndexRows)
	}
}

// Many items by partition key and id are looked up, and nothing else is read.
func TestManyItemsAreLookedUp(t *testing.T) {
	f := newSets(t)
	var named []string
	for i := range setItems {
		named = append(named, fmt.Sprintf("(c.id = 'i%d' AND c.pk = '%s')", i, partitionKeys[i%len(partitionKeys)]))
	}
	for _, text := range []string{
		"SELECT VALUE c.i FROM c WHERE (" + strings.Join(named, " OR ") + ")",
		"SELECT VALUE c.i FROM c WHERE " + strings.Join(named, " OR "),
	} {
		page := f.page(f.request(text))
		if page.Count != setItems || page.Work.Items != setItems || page.Work.IndexRows != 0 || page.Plan() != "keys 300" {
			t.Errorf("%d rows, %+v, plan %s", page.Count, page.Work, page.Plan())
		}
	}
}

// An item that has several of the values that are looked up is one item, in rows,
// groups and orders.
func TestAnItemWithSeveralValuesIsOne(t *testing.T) {
	f := newFixture(t, "")
	f.put("k", "a", `"x":1,"tags":[1,2,3]`)
	f.put("k", "b", `"x":2,"tags":[2]`)
	f.put("k", "c", `"x":4,"tags":[4]`)
	const either = " FROM c WHERE ARRAY_CONTAINS(c.tags, 1) OR ARRAY_CONTAINS(c.tags, 2) OR c.x = 1"
	f.expect("SELECT VALUE c.x"+either, "1", "2")
	f.expect("SELECT VALUE SUM(c.x)"+either, "3")
	f.expect("SELECT VALUE COUNT(1)"+either, "2")
	f.expect("SELECT VALUE c.x"+either+" ORDER BY c.missing", "1", "2")
}
