// SPDX-License-Identifier: MIT

// Walking over sets in the order of ordinals. The rows of one value are in that
// order; those of several are merged, and what several sets have in common is found
// by letting each go to where the others are.

package query

import (
	"container/heap"
	"iter"
	"slices"

	"github.com/mayflydb/mayfly/internal/index"
	"github.com/mayflydb/mayfly/internal/store"
)

// skipRows is how many rows are passed over before it is better to look up the one
// that is wanted.
const skipRows = 8

// cursor is a walk over a set.
type cursor interface {
	// seek returns the first ordinal that is not less than the one given, which is
	// not less than at the call before; 0 after the last.
	seek(ordinal uint64) (uint64, error)
	close()
}

// open returns a cursor over a set.
func (x *execution) open(s *set) cursor {
	var parts []cursor
	for _, v := range s.ranges {
		parts = append(parts, &rowCursor{x: x, of: s, values: v})
	}
	for _, part := range s.any {
		parts = append(parts, x.open(part))
	}
	if s.all != nil {
		all := &commonCursor{}
		for _, part := range s.all {
			all.parts = append(all.parts, x.open(part))
		}
		return all
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return &mergedCursor{unopened: parts}
}

// rowCursor walks over the rows of one value.
type rowCursor struct {
	x      *execution
	of     *set
	values index.ValueRange
	next   func() (store.Hit, error, bool)
	stop   func()
	at     uint64 // the last row's, 0 before the first
	ended  bool
}

func (c *rowCursor) seek(ordinal uint64) (uint64, error) {
	wanted := ordinal // by all that are walked over: nothing is in the set before it
	for passed := 0; c.at < ordinal && !c.ended; passed++ {
		if c.next == nil || passed == skipRows {
			c.reopen(ordinal)
			passed = 0
		}
		hit, err, ok := c.next()
		if err != nil {
			return 0, err
		}
		if c.ended = !ok; c.ended {
			break
		}
		ends, err := c.x.passBy(wanted, index.Value{})
		if err == nil && ends {
			err = errPageEnds
		}
		if err != nil {
			return 0, err
		}
		if hit.EPK == nil { // a place, and no row
			passed--
			continue
		}
		c.x.page.Work.IndexRows++
		c.at = hit.Ordinal
		if c.at >= ordinal && !c.x.inScope(hit.EPK) {
			ordinal, passed = c.at+1, 0
		}
	}
	if c.ended {
		return 0, nil
	}
	return c.at, nil
}

// reopen goes on from an ordinal.
func (c *rowCursor) reopen(ordinal uint64) {
	c.close()
	scan := c.of.rowsAfter(c.values, ordinal-1)
	scan.Places = c.x.places
	c.next, c.stop = iter.Pull2(c.x.r.Index(scan))
}

func (c *rowCursor) close() {
	if c.stop != nil {
		c.stop()
	}
}

// mergedCursor walks over what is in any of several sets.
type mergedCursor struct {
	unopened []cursor
	heads    headHeap
}

// head is a set with the ordinal at which its cursor is.
type head struct {
	cursor
	at uint64
}

func (c *mergedCursor) seek(ordinal uint64) (uint64, error) {
	for len(c.unopened) > 0 {
		part := c.unopened[0]
		at, err := part.seek(ordinal)
		if err != nil {
			return 0, err
		}
		c.unopened = c.unopened[1:]
		if at == 0 {
			part.close()
			continue
		}
		heap.Push(&c.heads, head{part, at})
	}
	for len(c.heads) > 0 && c.heads[0].at < ordinal {
		at, err := c.heads[0].seek(ordinal)
		if err != nil {
			return 0, err
		}
		if at == 0 {
			heap.Pop(&c.heads).(head).close()
			continue
		}
		c.heads[0].at = at
		heap.Fix(&c.heads, 0)
	}
	if len(c.heads) == 0 {
		return 0, nil
	}
	return c.heads[0].at, nil
}

func (c *mergedCursor) close() {
	for _, part := range c.unopened {
		part.close()
	}
	for _, h := range c.heads {
		h.close()
	}
}

// commonCursor walks over what is in all of several sets.
type commonCursor struct{ parts []cursor }

func (c *commonCursor) seek(ordinal uint64) (uint64, error) {
	for agreed := 0; agreed < len(c.parts); {
		for _, part := range c.parts {
			at, err := part.seek(ordinal)
			if err != nil || at == 0 {
				return 0, err
			}
			if at > ordinal {
				ordinal, agreed = at, 0
			}
			if agreed++; agreed == len(c.parts) {
				break
			}
		}
	}
	return ordinal, nil
}

func (c *commonCursor) close() {
	for _, part := range c.parts {
		part.close()
	}
}

// headHeap has the least ordinal first.
type headHeap []head

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (h headHeap) Len() int           { return len(h) }
func (h headHeap) Less(i, j int) bool { return h[i].at < h[j].at }
func (h headHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *headHeap) Push(v any)        { *h = append(*h, v.(head)) }
func (h *headHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = slices.Delete(*h, len(*h)-1, len(*h))
	return last
}
