// SPDX-License-Identifier: MIT

package geo

import (
	"math"
	"testing"
)

// Geometries on a plane, by pairs: their distance, whether they meet, and whether the
// first lies in the second. Distance and meeting do not depend on the order.
func TestPlanarPairs(t *testing.T) {
	shapes := map[string]string{
		"origin": `{"type":"Point","coordinates":[0,0]}`,
		"inside": `{"type":"Point","coordinates":[2,2]}`,
		"middle": `{"type":"Point","coordinates":[5,5]}`,
		"edge":   `{"type":"Point","coordinates":[10,5]}`,
		"far":    `{"type":"Point","coordinates":[13,14]}`,
		"square": `{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[0,10],[0,0]]]}`,
		"frame":  `{"type":"Polygon","coordinates":[[[0,0],[0,10],[10,10],[10,0],[0,0]],[[4,4],[6,4],[6,6],[4,6],[4,4]]]}`,
		"corner": `{"type":"Polygon","coordinates":[[[0,0],[3,0],[3,3],[0,3],[0,0]]]}`,
		"hook":   `{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[8,10],[8,2],[2,2],[2,10],[0,10],[0,0]]]}`,
		"across": `{"type":"LineString","coordinates":[[-5,5],[15,5]]}`,
		"bar":    `{"type":"LineString","coordinates":[[1,5],[9,5]]}`,
		"side":   `{"type":"LineString","coordinates":[[0,0],[10,0]]}`,
		"part":   `{"type":"LineString","coordinates":[[2,0],[4,0],[6,0]]}`,
		"two":    `{"type":"MultiPolygon","coordinates":[[[[0,0],[3,0],[3,3],[0,3],[0,0]]],[[[20,0],[23,0],[23,3],[20,0]]]]}`,
	}
	for _, c := range []struct {
		a, b     string
		distance float64
		within   bool
	}{
		{"inside", "square", 0, true}, {"origin", "square", 0, false}, {"edge", "square", 0, false},
		{"middle", "frame", 1, false}, {"inside", "frame", 0, true}, {"far", "square", 5, false},
		{"corner", "square", 0, true}, {"corner", "frame", 0, true}, {"square", "frame", 0, false}, {"frame", "square", 0, true}, {"square", "square", 0, true},
		{"across", "square", 0, false}, {"bar", "square", 0, true}, {"bar", "hook", 0, false}, {"bar", "frame", 0, false},
		{"side", "square", 0, false}, {"part", "side", 0, true}, {"side", "part", 0, false}, {"origin", "side", 0, false},
		{"inside", "bar", math.Hypot(0, 3), false}, {"middle", "hook", 3, false}, {"hook", "square", 0, true}, {"corner", "hook", 0, false},
		{"inside", "two", 0, true}, {"corner", "two", 0, true}, {"two", "square", 0, false}, {"far", "two", math.Hypot(10, 11), false},
		{"origin", "origin", 0, true}, {"origin", "inside", math.Hypot(2, 2), false},
	} {
		a, b := geometryOf(t, Plane{}, shapes[c.a]), geometryOf(t, Plane{}, shapes[c.b])
		if got := a.Within(unhurried{}, b); got != c.within {
			t.Errorf("%s within %s: got %v", c.a, c.b, got)
		}
		for _, pair := range [][2]*Geometry{{a, b}, {b, a}} {
			if got := pair[0].Intersects(unhurried{}, pair[1]); got != (c.distance == 0) {
				t.Errorf("%s intersects %s: got %v", c.a, c.b, got)
			}
			if got := pair[0].Distance(unhurried{}, pair[1]); math.Abs(got-c.distance) > 1e-12 {
				t.Errorf("%s to %s: got %g, want %g", c.a, c.b, got, c.distance)
			}
		}
	}
}
