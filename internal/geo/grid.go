// SPDX-License-Identifier: MIT

// Package geo says where on the Earth a geometry may be, as cells of a grid, for
// spatial indexes. It knows nothing of what geometries mean to a query: whatever two
// geometries have in common, one cell of the one's covering is the same as, inside, or
// around one cell of the other's. So an index by cells finds all that may be meant, and
// whoever asks it looks again.
//
// The grid is a quadtree of longitude and latitude. A point has one cell, which is
// found without rounding. All else is covered by way of a cap, a circle on the sphere
// that has all of its corners, and therefore its edges and its inside. What no cap can
// be found for, such as a polygon that crosses itself, may be everywhere: it has the
// cell that is the whole Earth.
package geo

import (
	"math"
	"slices"
)

// Cell is a cell: two bits for each level of the path from the whole Earth, a bit that
// ends it, and zeros. Numbers of cells inside a cell are around its own.
type Cell uint64

const (
	// maxLevel is that of the smallest cells, of about 38 m at the equator.
	maxLevel = 20

	// Everywhere is the cell that is the whole Earth.
	Everywhere Cell = 1 << (2 * maxLevel)
)

// lowest is the lowest bit that is set, which ends the path.
func (c Cell) lowest() Cell { return c & -c }

// First and Last are the bounds of the numbers of all cells inside a cell, which is
// one of them.
func (c Cell) First() Cell { return c - (c.lowest() - 1) }

// Last is the greatest number of a cell inside.
func (c Cell) Last() Cell { return c + (c.lowest() - 1) }

// Around returns the cells that a cell is inside of, from the smallest to the largest.
func (c Cell) Around() []Cell {
	var list []Cell
	for low := c.lowest(); low < Everywhere; {
		low <<= 2
		c = c&^(low<<1-1) | low
		list = append(list, c)
	}
	return list
}

// box is a cell in degrees.
type box struct {
	id            Cell
	west, south   float64
	width, height float64
}

var earth = box{Everywhere, -180, -90, 360, 180}

// quarters returns the cells that a cell is made of, if it is not one of the smallest.
func (b *box) quarters() []box {
	low := b.id.lowest()
	if low == 1 {
		return nil
	}
	width, height := b.width/2, b.height/2
	first := b.id - low + low>>2
	list := make([]box, 0, 4)
	for i := range 4 {
		list = append(list, box{
			first + Cell(i)*(low>>1), b.west + float64(i&1)*width, b.south + float64(i>>1)*height, width, height,
		})
	}
	return list
}

// cellAt returns the smallest cell of a place. Halving degrees is exact, so that the
// same place has the same cell on every machine.
func cellAt(lon, lat float64) Cell {
	b := earth
	for b.id.lowest() > 1 {
		i := 0
		if lon >= b.west+b.width/2 {
			i++
		}
		if lat >= b.south+b.height/2 {
			i += 2
		}
		b = b.quarters()[i]
	}
	return b.id
}

// vector is a place as a direction from the middle of the Earth.
type vector [3]float64

func vectorAt(lon, lat float64) vector {
	sinLon, cosLon := math.Sincos(lon * math.Pi / 180)
	sinLat, cosLat := math.Sincos(lat * math.Pi / 180)
	return vector{cosLat * cosLon, cosLat * sinLon, sinLat}
}

func (v vector) dot(w vector) float64 { return v[0]*w[0] + v[1]*w[1] + v[2]*w[2] }

func (v vector) cross(w vector) vector {
	return vector{v[1]*w[2] - v[2]*w[1], v[2]*w[0] - v[0]*w[2], v[0]*w[1] - v[1]*w[0]}
}

func (v vector) norm() float64 { return math.Sqrt(v.dot(v)) }

// angle between two directions, in radians.
func (v vector) angle(w vector) float64 { return math.Atan2(v.cross(w).norm(), v.dot(w)) }

// middle returns the middle of a cell, and how far from it its farthest corner is. No
// other point of the cell is farther.
func (b *box) middle() (v vector, radius float64) {
	lon, lat := b.west+b.width/2, b.south+b.height/2
	v = vectorAt(lon, lat)
	if b.width > 180 {
		return v, math.Pi
	}
	south, north := vectorAt(b.west, b.south), vectorAt(b.west, b.south+b.height)
	return v, max(v.angle(south), v.angle(north))
}

// circle is a cap: all that is no farther than some angle from a place.
type circle struct {
	at     vector
	radius float64
}

// slack is added to what is compared, for what is lost in rounding: about a metre.
const slack = 2e-7

func (c *circle) meets(b *box) bool {
	middle, radius := b.middle()
	return c.at.angle(middle) <= c.radius+radius+slack
}

// cover returns at most so many cells that together have all of a circle.
func (c *circle) cover(most int) []Cell {
	cover := []box{earth}
	for {
		var next []box
		whole := true // no cell was divided
		for i := range cover {
			b := &cover[i]
			_, radius := b.middle()
			quarters := b.quarters()
			if quarters == nil || radius < c.radius/2 {
				next = append(next, *b)
				continue
			}
			whole = false
			for j := range quarters {
				if c.meets(&quarters[j]) {
					next = append(next, quarters[j])
				}
			}
		}
		if whole || len(next) > most {
			break
		}
		cover = next
	}
	list := make([]Cell, 0, len(cover))
	for i := range cover {
		list = append(list, cover[i].id)
	}
	slices.Sort(list)
	return list
}
