// SPDX-License-Identifier: MIT

package geo

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mayflydb/mayfly/internal/value"
)

// inside reports whether one cell is inside another, or is it.
func inside(c, around Cell) bool { return around.First() <= c && c <= around.Last() }

// found reports whether an index by cells finds the one by the other.
func found(a, b []Cell) bool {
	return slices.ContainsFunc(a, func(c Cell) bool {
		return slices.ContainsFunc(b, func(d Cell) bool { return inside(c, d) || inside(d, c) })
	})
}

func TestCellsOfCells(t *testing.T) {
	if Everywhere.First() != 1 || Everywhere.Last() != 2*Everywhere-1 || len(Everywhere.Around()) != 0 {
		t.Errorf("the Earth is from %d to %d, in %v", Everywhere.First(), Everywhere.Last(), Everywhere.Around())
	}
	rapid.Check(t, func(t *rapid.T) {
		b := earth
		var path []Cell
		for range rapid.IntRange(0, maxLevel).Draw(t, "level") {
			path = append(path, b.id)
			quarters := b.quarters()
			for i, q := range quarters {
				if !inside(q.id, b.id) || i > 0 && quarters[i-1].id.Last() >= q.id.First() {
					t.Fatalf("%x is no quarter of %x", q.id, b.id)
				}
			}
			b = quarters[rapid.IntRange(0, 3).Draw(t, "quarter")]
		}
		slices.Reverse(path)
		if !slices.Equal(b.id.Around(), path) {
			t.Fatalf("around %x are %x, want %x", b.id, b.id.Around(), path)
		}
		lon, lat := b.west+b.width*rapid.Float64Range(0, 0.999).Draw(t, "x"), b.south+b.height*rapid.Float64Range(0, 0.999).Draw(t, "y")
		if got := cellAt(lon, lat); !inside(got, b.id) {
			t.Fatalf("%g, %g is in %x, want it in %x", lon, lat, got, b.id)
		}
		middle, radius := b.middle()
		if d := middle.angle(vectorAt(lon, lat)); d > radius+slack {
			t.Fatalf("%g, %g is %g from the middle of a cell of radius %g", lon, lat, d, radius)
		}
	})
}

var anywhere = rapid.Custom(func(t *rapid.T) [2]float64 {
	lon := rapid.OneOf(rapid.Float64Range(-180, 180), rapid.SampledFrom([]float64{-180, 180, 0, 90, -90})).Draw(t, "lon")
	lat := rapid.OneOf(rapid.Float64Range(-90, 90), rapid.SampledFrom([]float64{-90, 90, 0, 45})).Draw(t, "lat")
	return [2]float64{lon, lat}
})

// Whatever is in a circle is found by the circle's covering, and coverings are small.
func TestCoverings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, q := anywhere.Draw(t, "p"), anywhere.Draw(t, "q")
		if rapid.Bool().Draw(t, "near") {
			q = [2]float64{max(-180, min(180, p[0]+rapid.Float64Range(-1e-3, 1e-3).Draw(t, "dx"))), max(-90, min(90, p[1]+rapid.Float64Range(-1e-3, 1e-3).Draw(t, "dy")))}
		}
		angle := vectorAt(p[0], p[1]).angle(vectorAt(q[0], q[1]))
		metres := angle * shortestRadius * rapid.SampledFrom([]float64{1, 1.5, 10}).Draw(t, "more")
		query := QueryCells(fmt.Appendf(nil, `{"type":"Point","coordinates":[%g,%g]}`, p[0], p[1]), metres)
		budget := CoverBudget
		item := ItemCells(Point, fmt.Appendf(nil, `[%g,%g]`, q[0], q[1]), &budget)
		if len(query) > queryCells || len(item) != 1 || !found(query, item) {
			t.Fatalf("%v is %g m from %v: %x and %x do not meet", q, metres, p, item, query)
		}
	})
}

func TestGeometries(t *testing.T) {
	const box = `[[0,0],[1,0],[1,1],[0,1],[0,0]]`
	for _, c := range []struct {
		kind, coordinates string
		cells             int // -1 is everywhere, 0 none
	}{
		{"Point", `[0.5,0.5]`, 1},
		{"Point", `[0.5,0.5,7]`, 1},
		{"Point", `[0.5]`, 0},
		{"Point", `[]`, 0},
		{"Point", `[181,0]`, 0},
		{"Point", `["0",0]`, 0},
		{"Point", `[[0,0]]`, 0},
		{"LineString", `[[0,0],[1,1]]`, 8},
		{"LineString", `[[0,0],[180,0]]`, -1},
		{"LineString", `[0,0]`, 0},
		{"Polygon", `[` + box + `]`, 8},
		{"Polygon", `[[[0,0],[0,1],[1,1],[1,0],[0,0]]]`, -1}, // all but a box
		{"Polygon", `[[[0,0],[1,0],[0,1],[1,1],[0,0]]]`, -1}, // crosses itself
		{"Polygon", `[[[0,0],[2,0],[1,0],[0,0]]]`, -1},       // has no inside
		{"Polygon", `[]`, 0},
		{"MultiPolygon", `[[` + box + `],[` + box + `]]`, 8},
		{"MultiPolygon", `[[` + box + `],[[[0,0],[0,1],[1,1],[1,0],[0,0]]]]`, -1},
		{"MultiPolygon", `[` + box + `]`, 0},
		{"GeometryCollection", `[]`, 0},
	} {
		budget := CoverBudget
		got := ItemCells(KindOf([]byte(c.kind)), []byte(c.coordinates), &budget)
		switch {
		case c.cells < 0 && !slices.Equal(got, []Cell{Everywhere}), c.cells == 0 && got != nil,
			c.cells > 0 && (len(got) == 0 || len(got) > c.cells || got[0] == Everywhere):
			t.Errorf("%s %s: got %x", c.kind, c.coordinates, got)
		}
	}
	for geometry, want := range map[string]bool{
		`{"type":"Point","coordinates":[1,2]}`:           true,
		`"{\"type\":\"Point\",\"coordinates\":[1,2]}"`:   true,
		`" {\"type\":\"Point\",\"coordinates\":[1,2]} "`: true,
		`"{\"type\":\"Point\",\"type\":\"Point\"}"`:      true, // odd: it may be one
		`"point"`:          false,
		`""`:               false,
		`{"type":"Point"}`: false,
		`null`:             false,
		``:                 false,
	} {
		if got := QueryCells([]byte(geometry), 10); (got != nil) != want {
			t.Errorf("%s: got %x", geometry, got)
		}
	}
	if got := QueryCells([]byte(`{"type":"Point","coordinates":[1,2]}`), math.Inf(1)); !slices.Equal(got, []Cell{Everywhere}) {
		t.Errorf("without a bound: got %x", got)
	}
}

// However large a geometry is, what is done for it is bounded.
func TestHostileGeometries(t *testing.T) {
	ring := make([]string, 16_000)
	for i := range ring {
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / float64(len(ring)))
		ring[i] = fmt.Sprintf("[%.6f,%.6f]", cos, sin)
	}
	ring = append(ring, ring[0])
	circle := "[[" + strings.Join(ring, ",") + "]]"
	budget := CoverBudget
	if got := ItemCells(Polygon, []byte(circle), &budget); !slices.Equal(got, []Cell{Everywhere}) || budget >= 0 {
		t.Errorf("got %x, and %d are left", got, budget)
	}
	if got := ItemCells(LineString, []byte("["+strings.Repeat("[1,1],", 1<<17)+"[1,1]]"), &budget); !slices.Equal(got, []Cell{Everywhere}) {
		t.Errorf("a line of so many points is in %x", got)
	}
	if got := ItemCells(Polygon, []byte(strings.Repeat("[", 5000)+strings.Repeat("]", 5000)), &budget); got != nil {
		t.Errorf("arrays of arrays are in %x", got)
	}
}

func FuzzQueryCells(f *testing.F) {
	for _, seed := range []string{`{"type":"Point","coordinates":[1,2]}`, `"{\"type\":\"Polygon\",\"coordinates\":[[[0,0],[1,0],[1,1],[0,0]]]}"`, `{"type":"MultiPolygon","coordinates":[[[[]]]]}`, `{`, `"`} {
		f.Add([]byte(seed), 10.0)
	}
	f.Fuzz(func(t *testing.T, geometry []byte, metres float64) {
		// As a string, in which anything may be; and as it is, if it is JSON.
		texts := [][]byte{value.AppendString(nil, strings.ToValidUTF8(string(geometry), ""))}
		if compact, ok := value.Compact(geometry); ok {
			texts = append(texts, compact)
		}
		for _, text := range texts {
			got := QueryCells(text, metres)
			if len(got) > queryCells || !slices.IsSorted(got) {
				t.Errorf("%s: %x", text, got)
			}
		}
	})
}
