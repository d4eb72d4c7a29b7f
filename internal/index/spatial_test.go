// SPDX-License-Identifier: MIT

package index

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/geo"
	"github.com/mayflydb/mayfly/internal/memory"
	"github.com/mayflydb/mayfly/internal/value"
)

func point(lon, lat float64) string {
	return fmt.Sprintf(`{"type":"Point","coordinates":[%g,%g]}`, lon, lat)
}

func TestSpatialEntries(t *testing.T) {
	cell := func(lon, lat float64) string {
		budget := geo.CoverBudget
		return fmt.Sprintf("%016x", uint64(geo.ItemCells(geo.Point, fmt.Appendf(nil, "[%g,%g]", lon, lat), &budget)[0]))
	}
	everywhere := fmt.Sprintf("%016x", uint64(geo.Everywhere))
	at, exact, all := "/p/*", "/p/?", "/*"
	for _, c := range []struct {
		path, item string
		want       []string
	}{
		{at, `{}`, nil},
		{at, `{"p":7,"q":` + point(1, 2) + `}`, nil},
		{at, `{"p":` + point(1, 2) + `}`, []string{"5 [p] " + cell(1, 2)}},
		{exact, `{"p":` + point(1, 2) + `}`, []string{"5 [p] " + cell(1, 2)}},
		{all, `{"p":` + point(1, 2) + `}`, []string{"5 [p] " + cell(1, 2)}},
		{all, `{"_rid":` + point(1, 2) + `,"_ts":[` + point(1, 2) + `]}`, nil},
		{at, `{"p":{"coordinates":[1,2],"type":"Point"}}`, []string{"5 [p] " + cell(1, 2)}},
		{at, `{"p":{"type":"Feature","geometry":` + point(1, 2) + `}}`, []string{"5 [p geometry] " + cell(1, 2)}},
		{exact, `{"p":{"type":"Feature","geometry":` + point(1, 2) + `}}`, nil},
		{exact, `{"p":[` + point(1, 2) + `]}`, nil},
		{at, `{"p":[` + point(1, 2) + `,` + point(1, 2) + `,[` + point(3, 4) + `]]}`, []string{"5 [p [] []] " + cell(3, 4), "5 [p []] " + cell(1, 2)}},
		{at, `{"p":{"type":"Point","coordinates":[1,2],"q":` + point(3, 4) + `}}`, []string{"5 [p] " + cell(1, 2), "5 [p q] " + cell(3, 4)}},
		{at, `{"p":{"coordinates":[` + point(3, 4) + `],"type":"Point"}}`, []string{"5 [p coordinates []] " + cell(3, 4)}},
		{exact, `{"p":" {\"type\":\"Point\",\"coordinates\":[1,2]}"}`, []string{"5 [p] " + cell(1, 2)}},
		{exact, `{"p":"{\"type\":"}`, []string{"5 [p] " + everywhere}},
		{exact, `{"p":"text"}`, nil},
		{at, `{"p":{"type":"Point","coordinates":[1]}}`, nil},
		{at, `{"p":{"type":1,"coordinates":[1,2]}}`, nil},
	} {
		policy := fmt.Sprintf(`{"spatialIndexes":[{"path":%q,"types":["Point"]}]}`, c.path)
		got := specialEntries(t, policy, c.item)
		slices.Sort(got)
		slices.Sort(c.want)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s, %s:\ngot  %q\nwant %q", c.path, c.item, got, c.want)
		}
	}
}

// Of an item with very many geometries, the first have entries of their own, and all
// others at a path share one.
func TestHostilePlaces(t *testing.T) {
	list := make([]string, 20_000)
	for i := range list {
		list[i] = point(float64(i%360-180), float64(i/360))
	}
	d := policyOf(t, `{"excludedPaths":[{"path":"/*"}],"spatialIndexes":[{"path":"/p/*","types":["Point"]}]}`)
	made, err := Append(Entries{}, d, objectOf(t, `{"p":[`+strings.Join(list, ",")+`]}`), memory.Room{})
	if err != nil || made.Len() > maxItemGeometries+1 {
		t.Errorf("%d entries, %v", made.Len(), err)
	}
	deep := strings.Repeat(`{"type":"Polygon","coordinates":[`, value.MaxNesting/2-2) + strings.Repeat(`]}`, value.MaxNesting/2-2)
	if _, err := Append(Entries{}, d, objectOf(t, `{"p":`+deep+`}`), memory.Room{}); err != nil {
		t.Error(err)
	}
}
