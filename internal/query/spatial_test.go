// SPDX-License-Identifier: MIT

package query

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

const placesIndexed = `"indexingPolicy":{"spatialIndexes":[{"path":"/p/*","types":["Point","LineString","Polygon","MultiPolygon"]}]}`

// Expired items are nowhere, whether they are still there or not.
func TestPlacesSeeNoExpiredItem(t *testing.T) {
	f := newFixture(t, `"defaultTtl":100,`+placesIndexed)
	for i := range 20 {
		ttl := ""
		if i%2 == 1 {
			ttl = `,"ttl":10`
		}
		f.put("k", fmt.Sprint(i), fmt.Sprintf(`"x":%d,"p":{"type":"Point","coordinates":[%g,45]}%s`, i, float64(i)/100, ttl))
	}
	f.must(f.clock.Set(startMs + 10_000))
	const here = `{"type":"Point","coordinates":[0.1,45]}`
	const box = `{"type":"Polygon","coordinates":[[[0.035,44],[0.085,44],[0.085,46],[0.035,46],[0.035,44]]]}`
	const plan = "cells /p in…"
	f.expectLiving([]liveCase{
		{"SELECT VALUE c.x FROM c WHERE ST_DISTANCE(c.p, " + here + ") < 2000", plan, "8 10 12"},
		{"SELECT VALUE c.x FROM c WHERE ST_WITHIN(c.p, " + box + ")", plan, "4 6 8"},
		{"SELECT VALUE COUNT(1) FROM c WHERE ST_INTERSECTS(" + box + ", c.p)", plan, "3"},
		{"SELECT TOP 2 VALUE c.x FROM c WHERE ST_WITHIN(c.p, " + box + ") ORDER BY c.x DESC", plan, "8 6"},
		{"SELECT VALUE c.x FROM c WHERE ST_WITHIN(c.p, " + box + ") OFFSET 1 LIMIT 1", plan, "6"},
	})
}

// Of many places, those that are read are about those that are meant.
func TestPlacesReadFewItems(t *testing.T) {
	f := newFixture(t, placesIndexed)
	f.fillWith(2500, func(i int) string {
		return fmt.Sprintf(`"x":%d,"p":{"type":"Point","coordinates":[%g,%g]}`, i, float64(i%50)-25, float64(i/50)-25)
	})
	for text, most := range map[string]int64{
		`SELECT VALUE c.x FROM c WHERE ST_DISTANCE(c.p, {"type":"Point","coordinates":[3,4]}) < 1000`:                                    1,
		`SELECT VALUE c.x FROM c WHERE ST_DISTANCE(c.p, {"type":"Point","coordinates":[3.4,4.4]}) < 120000`:                              16,
		`SELECT VALUE c.x FROM c WHERE ST_WITHIN(c.p, {"type":"Polygon","coordinates":[[[0.5,0.5],[2.5,0.5],[2.5,2.5],[0.5,0.5]]]})`:     30,
		`SELECT VALUE c.x FROM c WHERE ST_INTERSECTS(c.p, {"type":"LineString","coordinates":[[0,0],[2,0]]})`:                            20,
		`SELECT VALUE c.x FROM c WHERE ST_DISTANCE(c.p, {"type":"Point","coordinates":[3,4]}) BETWEEN 1000 AND 112000 ORDER BY c.x DESC`: 16,
	} {
		page := f.page(f.request(text))
		want := f.naive(text, Scope{}, strings.HasSuffix(text, "DESC"))
		if got := canonical(rowsOf(t, page)); !slices.Equal(got, want) || len(got) == 0 {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
		if page.Work.Items > most {
			t.Errorf("%s, by %s: read %+v, want at most %d items", text, page.Plan(), page.Work, most)
		}
	}
}
