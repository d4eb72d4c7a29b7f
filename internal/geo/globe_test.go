// SPDX-License-Identifier: MIT

package geo

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// unhurried is never interrupted.
type unhurried struct{}

func (unhurried) Tick() error { return nil }

// geometryOf reads a geometry that is one.
func geometryOf(t *testing.T, on Surface, text string) *Geometry {
	t.Helper()
	g, reason := Read(on, []byte(text))
	if reason != "" {
		t.Fatalf("%s: %s", text, reason)
	}
	return &g
}

// A point that a clockwise ring surrounds is outside of it.
func TestDistanceToRing(t *testing.T) {
	clockwise := geometryOf(t, Globe{}, `{"type":"Polygon","coordinates":[[[0,0],[0,4],[4,4],[4,0],[0,0]]]}`)
	p := geometryOf(t, Globe{}, `{"type":"Point","coordinates":[2,2]}`)
	if got, want := p.Distance(unhurried{}, clockwise), distanceToEdge(2, 2); math.Abs(got-want) > 1e-7*want {
		t.Errorf("got %.9g, want %.9g", got, want)
	}
}

// distanceToEdge is how far a point in the box is from its nearest side, by
// trying many points of it.
func distanceToEdge(lon, lat float64) float64 {
	p := cornerAt(lon, lat).at
	least := math.Inf(1)
	for i := range 4001 {
		at := float64(i) / 1000
		top := arcEdge(cornerAt(4, 4).at, cornerAt(0, 4).at)
		for _, q := range []vector{cornerAt(at, 0).at, cornerAt(0, at).at, cornerAt(4, at).at, top.point(at / 4)} {
			least = min(least, metres(p, q))
		}
	}
	return least
}

func TestAreaAroundPole(t *testing.T) {
	// A coarse outline of Antarctica, worked out with thirty digits.
	outline := [][2]float64{
		{-58, -63.1}, {-74, -72.9}, {-102, -71.9}, {-102, -74.9}, {-131, -74.3}, {-163, -77.5}, {163, -77.4}, {172, -71.7}, {140, -65.9},
		{113, -65.7}, {88, -66.6}, {59, -66.9}, {25, -69.8}, {-4, -70.0}, {-14, -71.0}, {-33, -77.3}, {-46, -77.9}, {-61, -74.7},
	}
	var ring []corner
	for _, p := range outline {
		ring = append(ring, cornerAt(p[0], p[1]))
	}
	if got, want := areaLeftOf(ring, 4*math.Pi*hemisphere, areaUnder), 13663158800775.9; math.Abs(got-want) > 1e-10*want {
		t.Errorf("got %.1f, want %.1f", got, want)
	}
}

// starRing draws a ring around the origin, small enough to be flat, and returns
// its corners in degrees.
func starRing(t *rapid.T) (path, [][2]float64) {
	n := rapid.IntRange(3, 12).Draw(t, "corners")
	var r path
	var flat [][2]float64
	for i := range n {
		angle := 2 * math.Pi * float64(i) / float64(n)
		radius := float64(rapid.IntRange(2, 10).Draw(t, "radius")) * 1e-4
		flat = append(flat, [2]float64{radius * math.Cos(angle), radius * math.Sin(angle)})
		r.corners = append(r.corners, cornerAt(flat[i][0], flat[i][1]))
	}
	for i := range n {
		r.edges = append(r.edges, arcEdge(r.corners[i].at, r.corners[(i+1)%n].at))
	}
	return r, flat
}

// flatHas counts the sides that a ray crosses.
func flatHas(corners [][2]float64, x, y float64) bool {
	inside := false
	for i, p := range corners {
		q := corners[(i+1)%len(corners)]
		if (p[1] > y) != (q[1] > y) && x < p[0]+(y-p[1])/(q[1]-p[1])*(q[0]-p[0]) {
			inside = !inside
		}
	}
	return inside
}

// TestRingModel compares small rings with the same on paper, and turned round.
func TestRingModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, flat := starRing(t)
		x := float64(rapid.IntRange(-1100, 1100).Draw(t, "x")) * 1e-6
		y := float64(rapid.IntRange(-1100, 1100).Draw(t, "y")) * 1e-6
		p := cornerAt(x, y).at
		for i := range r.edges {
			if angle, _ := r.edges[i].angleTo(p); angle < 1e-12 {
				t.Skip("too near to an edge to tell")
			}
		}
		if got, want := r.leftHas(p), flatHas(flat, x, y); got != want {
			t.Fatalf("(%v, %v) in %v: got %v", x, y, flat, got)
		}
		var turned path
		for i := len(r.edges) - 1; i >= 0; i-- {
			turned.edges = append(turned.edges, arcEdge(r.edges[i].b, r.edges[i].a))
		}
		if turned.leftHas(p) == r.leftHas(p) {
			t.Fatalf("(%v, %v) is on the same side of %v both ways round", x, y, flat)
		}
	})
}

// TestDistanceLaws holds distances to what they are by definition: the length of
// many short chords along the line, which is the same in both directions.
func TestDistanceLaws(t *testing.T) {
	anywhere := rapid.Custom(func(t *rapid.T) vector {
		return cornerAt(rapid.Float64Range(-180, 180).Draw(t, "lon"), rapid.Float64Range(-90, 90).Draw(t, "lat")).at
	})
	inSpace := func(p vector) vector {
		at := p.stretched()
		return vector{equatorRadius * at.x, equatorRadius * at.y, polarRadius * at.z}
	}
	rapid.Check(t, func(t *rapid.T) {
		p, q := anywhere.Draw(t, "p"), anywhere.Draw(t, "q")
		pq := metres(p, q)
		if back := metres(q, p); math.Abs(back-pq) > 1e-3 {
			t.Fatalf("there %v, back %v", pq, back)
		}
		if angle := p.angle(q); angle < 1e-6 || angle > 3.1 {
			return
		}
		const chords = 4000
		e := arcEdge(p, q)
		sum, last := 0.0, inSpace(p)
		for i := range chords {
			next := inSpace(e.point(float64(i+1) / chords))
			sum += next.minus(last).norm()
			last = next
		}
		if math.Abs(sum-pq) > 1e-6*pq {
			t.Fatalf("by chords %v, by the arc %v", sum, pq)
		}
	})
}
