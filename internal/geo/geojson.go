// SPDX-License-Identifier: MIT

// GeoJSON: reading the coordinates of a geometry as they are written. Nothing here
// decides whether they make a geometry.

package geo

import (
	"bytes"
	"slices"
	"strings"

	"github.com/mayflydb/mayfly/internal/value"
)

// Kind is the type of a geometry. The zero Kind is one that is not supported.
type Kind int

const (
	Point Kind = iota + 1
	LineString
	Polygon
	MultiPolygon
)

var kindNames = [...]string{Point: "Point", LineString: "LineString", Polygon: "Polygon", MultiPolygon: "MultiPolygon"}

// KindOf returns the kind that GeoJSON calls so.
func KindOf(name []byte) Kind {
	if len(name) == 0 {
		return 0
	}
	return Kind(max(0, slices.Index(kindNames[:], string(name))))
}

// Members returns the type and the coordinates of a geometry, which is a JSON object, or
// a string that holds one. Coordinates are nil if there is no type or no array of
// coordinates. Members reports false if a string holds an object that cannot be read.
// The JSON itself has been checked and has no space around its parts.
func Members(raw []byte) (kind Kind, coordinates []byte, ok bool) {
	if len(raw) > 0 && raw[0] == '"' {
		v, _ := value.FromJSON(raw)
		text, _ := v.Text()
		if text = strings.Trim(text, " \t\r\n"); text == "" || text[0] != '{' {
			return 0, nil, true
		}
		o, err := value.ParseObject([]byte(text))
		if err != nil {
			return 0, nil, false
		}
		raw = o.Bytes()
	}
	if len(raw) == 0 || raw[0] != '{' {
		return 0, nil, true
	}
	typed := false
	c := value.CursorAt(raw)
	for more := c.Enter(); more; more = c.More() {
		switch name := c.Name(); {
		case string(name) == "type" && c.Next() == '"':
			kind, typed = KindOf(c.Text()), true
		case string(name) == "coordinates" && c.Next() == '[':
			coordinates = c.Raw()
		default:
			c.Skip()
		}
	}
	if !typed {
		coordinates = nil
	}
	return kind, coordinates, true
}

// maxPositions is how many positions of a geometry are read. It is more than functions accept.
// To an index, a geometry with more may be everywhere.
const maxPositions = 1 << 16

// shape is the coordinates of a geometry as they are written.
type shape struct {
	positions []position
	rings     []int // how many positions there are up to the end of each
	polygons  []int // how many rings there are up to the end of each
	// broken is set if an array is missing or empty, or a position is none. What follows
	// the innermost array with such a fault is not read.
	broken bool
}

// position is a point as GeoJSON has it: an array that begins with two numbers.
type position struct {
	x, y   float64
	length int // of the array; 0 if it does not begin with two numbers
}

// read reads coordinates, which are an array.
func (s *shape) read(kind Kind, coordinates []byte) {
	s.positions = make([]position, 0, min(bytes.Count(coordinates, []byte{']'}), maxPositions+1))
	c := value.CursorAt(coordinates)
	s.list(&c, int(kind-Point))
}

// full reports whether there are more positions than are read.
func (s *shape) full() bool { return len(s.positions) > maxPositions }

// list reads what is so many arrays above its positions. Positions beside a faulty one
// are read, because their number is checked first.
func (s *shape) list(c *value.Cursor, depth int) {
	if depth == 0 {
		p := readPosition(c)
		s.positions = append(s.positions, p)
		s.broken = s.broken || p.length == 0
		return
	}
	more := c.Next() == '[' && c.Enter()
	s.broken = s.broken || !more
	for more {
		s.list(c, depth-1)
		if s.full() || s.broken && depth > 1 {
			break
		}
		more = c.More()
	}
	switch depth {
	case 1:
		s.rings = append(s.rings, len(s.positions))
	case 2:
		s.polygons = append(s.polygons, len(s.rings))
	}
}

func readPosition(c *value.Cursor) (p position) {
	if c.Next() != '[' {
		c.Skip()
		return position{}
	}
	numbers := true
	for more := c.Enter(); more; more = c.More() {
		ok := true
		switch p.length {
		case 0:
			p.x, ok = number(c)
		case 1:
			p.y, ok = number(c)
		default:
			c.Skip()
		}
		numbers = numbers && ok
		p.length++
	}
	if !numbers || p.length < 2 {
		return position{}
	}
	return p
}

// number reads a number. Expressions may have made one that JSON has no spelling for.
func number(c *value.Cursor) (f float64, ok bool) {
	switch c.Next() {
	case '{', '[', '"', 't', 'f', 'n':
		c.Skip()
		return 0, false
	}
	if f = c.Float(); f == 0 {
		f = 0 // and not minus zero
	}
	return f, true
}

// ring returns the positions of a ring.
func (s *shape) ring(i int) []position { return s.positions[before(s.rings, i):s.rings[i]] }

// before returns where something begins, given where each ends.
func before(ends []int, i int) int {
	if i == 0 {
		return 0
	}
	return ends[i-1]
}
