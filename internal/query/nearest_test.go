// SPDX-License-Identifier: MIT

package query

import (
	"fmt"
	"slices"
	"testing"
)

const (
	withVectors   = `"vectorEmbeddingPolicy":{"vectorEmbeddings":[{"path":"/v","dataType":"float32","dimensions":2,"distanceFunction":"cosine"}]}`
	vectorIndexed = withVectors + `,"indexingPolicy":{"vectorIndexes":[{"path":"/v","type":"quantizedFlat"}]}`
)

// Expired items are not among the nearest, and take no place of those that are.
func TestNearestSeesNoExpiredItem(t *testing.T) {
	f := newFixture(t, `"defaultTtl":100,`+vectorIndexed)
	for i := range 20 {
		ttl := ""
		if i%2 == 1 {
			ttl = `,"ttl":10`
		}
		f.put("k", fmt.Sprint(i), fmt.Sprintf(`"x":%d,"v":[%d,0.1]%s`, i, i, ttl))
	}
	f.put("k", "none", `"x":-1`)
	f.must(f.clock.Set(startMs + 10_000))
	f.expectLiving([]liveCase{
		{`SELECT TOP 3 VALUE c.x FROM c ORDER BY VectorDistance(c.v, [7, 0.1], false, {"distanceFunction": "dotproduct"})`, "nearest /v descending by dotproduct, sort", "18 16 14"},
		{`SELECT TOP 3 VALUE c.x FROM c WHERE c.x > 7 ORDER BY VectorDistance(c.v, [7, 0.1], false, {"distanceFunction": "dotproduct"})`, "gather /x > 7, sort", "18 16 14"},
		{`SELECT VALUE c.x FROM c ORDER BY VectorDistance(c.v, [7, 0.1], true, {"distanceFunction": "euclidean"}) OFFSET 1 LIMIT 3`, "nearest /v by euclidean, sort", "6 8 4"},
	})
}

// Of many items a few are read: those that are among the nearest so far.
func TestNearestReadsFewItems(t *testing.T) {
	f := newFixture(t, vectorIndexed)
	f.fillWith(1000, func(i int) string { return fmt.Sprintf(`"x":%d,"even":%t,"v":[%d,%d]`, i, i%2 == 0, i*7919%1000, i) })
	for _, filter := range []string{"", " WHERE c.even != false"} {
		text := `SELECT TOP 5 VALUE c.x FROM c` + filter + ` ORDER BY VectorDistance(c.v, [500, 500], false, {"distanceFunction": "euclidean"})`
		page := f.page(f.request(text))
		if got, want := canonical(rowsOf(t, page)), f.naive(text, Scope{}, false); !slices.Equal(got, want) {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
		if page.Work.Items > 200 || page.Work.IndexRows != 1000 {
			t.Errorf("%s, by %s: read %+v", text, page.Plan(), page.Work)
		}
	}
}

// A new index has rows for all items when it is built, and answers until then come
// from the items.
func TestNearestWhileTheIndexIsBuilt(t *testing.T) {
	f := newFixture(t, withVectors)
	for i := range 30 {
		f.put("k", fmt.Sprint(i), fmt.Sprintf(`"x":%d,"v":[%d,1]`, i, i))
	}
	const text = `SELECT TOP 2 VALUE c.x FROM c ORDER BY VectorDistance(c.v, [9, 1], false, {"distanceFunction": "euclidean"})`
	f.expect(text, "9", "8")
	f.reconfigure(vectorIndexed)
	f.put("k", "new", `"x":99,"v":[9.2,1]`)
	for _, want := range []string{"scan, sort", "nearest /v by euclidean, sort"} {
		page := f.page(f.request(text))
		if got := string(page.Rows); got != "9,99" || page.Plan() != want {
			t.Errorf("got %s by %s, want 9,99 by %s", got, page.Plan(), want)
		}
		f.reindex(7)
	}
	f.checkRows()
}
