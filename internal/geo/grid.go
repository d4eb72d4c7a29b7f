// SPDX-License-Identifier: MIT

// The grid of spatial indexes: a quadtree of longitude and latitude. A point has one cell,
// which is found without rounding. All else is covered by way of a cap, a circle on the
// sphere that has all of its corners, and therefore its edges and its inside. What no cap
// can be found for, such as a polygon that crosses itself, may be everywhere: it has the
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

func (b *box) smallest() bool { return b.id.lowest() == 1 }

// quarters returns the cells that a cell is made of, which is not one of the smallest.
func (b *box) quarters() (list [4]box) {
	low := b.id.lowest()
	width, height := b.width/2, b.height/2
	first := b.id - low + low>>2
	for i := range list {
		list[i] = box{
			first + Cell(i)*(low>>1), b.west + float64(i&1)*width, b.south + float64(i>>1)*height, width, height,
		}
	}
	return list
}

// cellAt returns the smallest cell of a point. Halving degrees is exact, so that the
// same point has the same cell on every machine.
func cellAt(lon, lat float64) Cell {
	b := earth
	for !b.smallest() {
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

// vectorAt returns the direction of a point in degrees. Rows of indexes depend on the
// last bit of it: degrees are multiplied first.
func vectorAt(lon, lat float64) vector { return direction(lon*math.Pi/180, lat*math.Pi/180) }

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

// circle is a cap: all that is no farther than some angle from its middle.
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
			if b.smallest() || radius < c.radius/2 {
				next = append(next, *b)
				continue
			}
			whole = false
			for _, quarter := range b.quarters() {
				if c.meets(&quarter) {
					next = append(next, quarter)
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
