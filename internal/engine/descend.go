// SPDX-License-Identifier: MIT

// Positions of clients in containers whose ranges were split meanwhile: continuations, places
// in the change feed, cursors and rids. What a position says of a range holds for each of
// the ranges that were made from it, since they have its items with the same ordinals, lsns
// and times.

package engine

import (
	"cmp"
	"slices"

	"github.com/mayflydb/mayfly/internal/catalog"
)

// descendants returns the positions, among those from first to last, of the range with the id
// and of the ranges that were made from it.
func descendants(c *catalog.Container, id, first, last int) (positions []int) {
	for i := first; i <= last; i++ {
		if c.Ranges[i].DescendsFrom(id) {
			positions = append(positions, i)
		}
	}
	return positions
}

// origins returns, for each range from first to last, which of n ranges it was part of, when
// the scope that these cover now had n ranges. It takes back one split after the other, the
// last one first: a container has one at a time, so ids grow with the splits. It returns
// false if the scope never had n ranges.
func origins(c *catalog.Container, first, last, n int) ([]int, bool) {
	lines := make([][]int, last-first+1) // the ids of each range and of its parents
	for i := range lines {
		r := &c.Ranges[first+i]
		lines[i] = append(slices.Clone(r.Parents), r.ID)
	}
	of := make([]int, len(lines))
	for {
		groups := 0
		for i := range lines {
			if i > 0 && lines[i][len(lines[i])-1] != lines[i-1][len(lines[i-1])-1] {
				groups++
			}
			of[i] = groups
		}
		if groups+1 <= n {
			return of, groups+1 == n
		}
		line := slices.MaxFunc(lines, func(a, b []int) int { // that of the last split
			return cmp.Or(cmp.Compare(min(len(a), 2), min(len(b), 2)), cmp.Compare(a[len(a)-1], b[len(b)-1]))
		})
		if len(line) == 1 {
			return nil, false // these are the ranges that the container began with
		}
		parent := line[len(line)-2]
		for i, l := range lines {
			if len(l) > 1 && l[len(l)-2] == parent {
				lines[i] = l[:len(l)-1]
			}
		}
	}
}
