// SPDX-License-Identifier: MIT

// GeoJSON, as far as its places go. What queries take for a geometry has a covering
// here; what they do not may have one too.

package geo

import (
	"math"
	"slices"
	"strings"

	"github.com/mayflydb/mayfly/internal/value"
)

const (
	// itemCells and queryCells are how many cells a covering has at most: an item has a
	// row for each, and a query looks for each.
	itemCells  = 8
	queryCells = 24

	// maxPlaces is how many places of a geometry are looked at. One with more may be
	// everywhere.
	maxPlaces = 1 << 16

	// shortestRadius is the least by which the Earth is curved, in metres: no two
	// places are nearer to each other than the angle between them times this.
	shortestRadius = 6335000

	// maxCap is the radius of the largest cap, in radians: all below a right angle are
	// such that the shortest way between two places in one is in it too.
	maxCap = 1.4

	// CoverBudget bounds how many pairs of edges of an item are looked at.
	CoverBudget = 1 << 20
)

// places are the corners of a geometry, part by part.
type places struct {
	corners []vector
	only    [2]float64 // longitude and latitude, if there is one
	// outer are the first rings of polygons, each from one corner to another.
	outer [][2]int
}

// ItemCells returns the cells of a geometry of an item, given its type and coordinates as
// JSON; none if it is no geometry. It takes what it does from the budget, and if that
// is spent, the geometry may be everywhere.
func ItemCells(kind string, coordinates []byte, budget *int) []Cell {
	p, ok := read(kind, coordinates)
	switch {
	case !ok && p.full():
		return []Cell{Everywhere}
	case !ok:
		return nil
	case kind == "Point":
		return []Cell{cellAt(p.only[0], p.only[1])}
	}
	c, ok := p.circle(budget)
	if !ok {
		return []Cell{Everywhere}
	}
	return c.cover(itemCells)
}

// QueryCells returns the cells of all that is no farther than so many metres from a
// geometry, which is JSON; none if it is no geometry.
func QueryCells(geometry []byte, metres float64) []Cell {
	kind, coordinates, found, odd := Members(geometry)
	switch {
	case odd:
		return []Cell{Everywhere}
	case !found:
		return nil
	}
	p, ok := read(kind, coordinates)
	switch {
	case !ok && p.full():
		return []Cell{Everywhere}
	case !ok:
		return nil
	}
	budget := CoverBudget
	c, ok := p.circle(&budget)
	angle := metres / shortestRadius
	if !ok || !(angle < math.Pi) {
		return []Cell{Everywhere}
	}
	c.radius += max(0, angle)
	return c.cover(queryCells)
}

// Members returns the type and the coordinates of a geometry, which is a JSON object or
// a string that holds one. What is odd may be a geometry all the same.
func Members(raw []byte) (kind string, coordinates []byte, found, odd bool) {
	if len(raw) > 0 && raw[0] == '"' {
		v, _ := value.FromJSON(raw)
		text, _ := v.Text()
		text = strings.Trim(text, " \t\r\n")
		if text == "" || text[0] != '{' {
			return "", nil, false, false
		}
		raw = []byte(text)
	}
	if len(raw) == 0 || raw[0] != '{' {
		return "", nil, false, false
	}
	o, err := value.ParseObject(raw)
	if err != nil {
		return "", nil, false, true
	}
	member, _ := o.Lookup("type")
	v, _ := value.FromJSON(member)
	kind, ok := v.Text()
	coordinates, _ = o.Lookup("coordinates")
	return kind, coordinates, ok && len(coordinates) > 0 && coordinates[0] == '[', false
}

// depths are how many arrays the places of each type are inside of.
var depths = map[string]int{"Point": 0, "LineString": 1, "Polygon": 2, "MultiPolygon": 3}

func read(kind string, coordinates []byte) (places, bool) {
	depth, ok := depths[kind]
	if !ok || len(coordinates) == 0 || coordinates[0] != '[' {
		return places{}, false
	}
	var p places
	c := value.CursorAt(coordinates)
	ok = p.read(&c, depth)
	return p, ok && len(p.corners) > 0
}

// full reports whether there are more places than are looked at.
func (p *places) full() bool { return len(p.corners) > maxPlaces }

// read reads what is so many arrays above its places.
func (p *places) read(c *value.Cursor, depth int) bool {
	if c.Next() != '[' {
		return false
	}
	if depth == 0 {
		return p.place(c)
	}
	first := len(p.corners)
	if !c.Enter() {
		return false
	}
	for ring := 0; ; ring++ {
		if !p.read(c, depth-1) || p.full() {
			return false
		}
		if depth == 2 && ring == 0 {
			p.outer = append(p.outer, [2]int{first, len(p.corners)})
		}
		if !c.More() {
			return true
		}
	}
}

// place reads a place: an array that begins with longitude and latitude.
func (p *places) place(c *value.Cursor) bool {
	if !c.Enter() {
		return false
	}
	for n := 0; ; n++ {
		if n < 2 {
			if b := c.Next(); b != '-' && (b < '0' || b > '9') {
				return false
			}
			p.only[n], _ = c.Literal().Number()
		} else {
			c.Skip()
		}
		if !c.More() {
			if n == 0 || math.Abs(p.only[0]) > 180 || math.Abs(p.only[1]) > 90 {
				return false
			}
			p.corners = append(p.corners, vectorAt(p.only[0], p.only[1]))
			return true
		}
	}
}

// circle returns a cap that has all of a geometry, if there is one that certainly has.
func (p *places) circle(budget *int) (circle, bool) {
	var c circle
	for _, v := range p.corners {
		for i := range v {
			c.at[i] += v[i]
		}
	}
	norm := c.at.norm()
	if norm < 1e-6*float64(len(p.corners)) {
		return circle{}, false
	}
	for i := range c.at {
		c.at[i] /= norm
	}
	for _, v := range p.corners {
		c.radius = max(c.radius, c.at.angle(v))
	}
	if c.radius > maxCap {
		return circle{}, false
	}
	for _, r := range p.outer {
		if !c.hasInside(p.corners[r[0]:r[1]], budget) {
			return circle{}, false
		}
	}
	return c, true
}

// hasInside reports whether what a ring has on its left is in the cap, and not what is
// outside of it: whether it runs the one way round, and does not touch itself. Seen from
// the middle of the Earth on a plane, its edges are straight.
func (c *circle) hasInside(ring []vector, budget *int) bool {
	flat := c.project(ring)
	if *budget -= len(flat) * len(flat); *budget < 0 || len(flat) < 3 {
		return false
	}
	area := 0.0
	for i, a := range flat {
		b := flat[(i+1)%len(flat)]
		area += a[0]*b[1] - a[1]*b[0]
	}
	if !(area > 0) {
		return false
	}
	for i := range flat {
		for j := range i {
			if touch(flat, i, j) {
				return false
			}
		}
	}
	return true
}

// project returns the corners of a ring on a plane, without the last, which is the
// first, and without repetitions.
func (c *circle) project(ring []vector) [][2]float64 {
	east := vector{0, 0, 1}.cross(c.at)
	if east.norm() < 1e-3 {
		east = vector{0, 1, 0}.cross(c.at)
	}
	length := east.norm()
	for i := range east {
		east[i] /= length
	}
	north := c.at.cross(east)
	flat := make([][2]float64, 0, len(ring))
	for _, v := range ring {
		d := v.dot(c.at)
		flat = append(flat, [2]float64{v.dot(east) / d, v.dot(north) / d})
	}
	flat = slices.Compact(flat)
	if n := len(flat); n > 1 && flat[0] == flat[n-1] {
		flat = flat[:n-1]
	}
	return flat
}

// touch reports whether two edges of a ring have a point in common that is no corner of
// theirs, or may have.
func touch(flat [][2]float64, i, j int) bool {
	n := len(flat)
	a, b := flat[i], flat[(i+1)%n]
	p, q := flat[j], flat[(j+1)%n]
	switch {
	case (i+1)%n == j:
		return side(a, b, q) == 0 && turnsBack(a, b, q)
	case (j+1)%n == i:
		return side(p, q, b) == 0 && turnsBack(p, q, b)
	}
	if max(a[0], b[0]) < min(p[0], q[0]) || max(p[0], q[0]) < min(a[0], b[0]) ||
		max(a[1], b[1]) < min(p[1], q[1]) || max(p[1], q[1]) < min(a[1], b[1]) {
		return false
	}
	return side(a, b, p)*side(a, b, q) <= 0 && side(p, q, a)*side(p, q, b) <= 0
}

// turnsBack reports whether the way from a over b to c goes back where it came from.
func turnsBack(a, b, c [2]float64) bool {
	return (a[0]-b[0])*(c[0]-b[0])+(a[1]-b[1])*(c[1]-b[1]) > 0
}

// flatness is how little beside a line a place may be for it to count as on it.
const flatness = 1e-15

// side is 1 to the left of the line through a and b, -1 to its right, 0 on it.
func side(a, b, p [2]float64) int {
	switch s := (b[0]-a[0])*(p[1]-a[1]) - (b[1]-a[1])*(p[0]-a[0]); {
	case s > flatness:
		return 1
	case s < -flatness:
		return -1
	}
	return 0
}
