// SPDX-License-Identifier: MIT

// Walking over sets in the order of ordinals. The rows of one value are in that
// order; those of several are merged, and what several sets have in common is found
// by letting each go to where the others are.

package query

import (
	"errors"
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

// cursor returns a cursor over a set whose rows are in the order of ordinals.
func (x *execution) cursor(s *set) cursor {
	var parts []cursor
	for _, v := range s.ranges {
		parts = append(parts, &rowCursor{x: x, of: s, values: v})
	}
	for _, part := range s.any {
		parts = append(parts, x.cursor(part))
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return &mergedCursor{parts, make([]uint64, len(parts))}
}

// visitEach reads the items of ordinals that come in order.
func (x *execution) visitEach(ordinals iter.Seq2[uint64, error], yield visitor) error {
	for ordinal, err := range ordinals {
		if errors.Is(err, errPageEnds) {
			return nil
		}
		if err != nil {
			return err
		}
		x.took(&x.page.Times.Index)
		if more, err := x.visit(ordinal, index.Value{}, yield); err != nil || !more {
			return err
		}
	}
	return nil
}

// walked returns the ordinals of a cursor, after one.
func (x *execution) walked(c cursor, after uint64) iter.Seq2[uint64, error] {
	return func(yield func(uint64, error) bool) {
		defer c.close()
		for {
			ordinal, err := c.seek(after + 1)
			if err != nil {
				yield(0, err)
				return
			}
			if ordinal == 0 || !yield(ordinal, nil) {
				return
			}
			after = ordinal
		}
	}
}

// only returns the ordinals of one value.
func (x *execution) only(s *set, after uint64) iter.Seq2[uint64, error] {
	return func(yield func(uint64, error) bool) {
		scan := s.rowsAfter(s.ranges[0], after)
		scan.Within, scan.Places, scan.Visits = x.within(), x.endsAnywhere, true
		x.r.Index(scan)(func(hit store.Hit, err error) bool {
			if err != nil {
				yield(0, err)
				return false
			}
			if hit.EPK != nil {
				x.page.Work.IndexRows++
			}
			if hit.EPK != nil && x.inScope(hit.EPK) {
				return yield(hit.Ordinal, nil)
			}
			ends, err := x.passBy(hit.Ordinal, index.Value{})
			if err != nil {
				yield(0, err)
			}
			return err == nil && !ends
		})
	}
}

// listCursor walks over ordinals that have been gathered.
type listCursor struct{ ordinals []uint64 }

func (c *listCursor) seek(ordinal uint64) (uint64, error) {
	n, _ := slices.BinarySearch(c.ordinals, ordinal)
	if c.ordinals = c.ordinals[n:]; len(c.ordinals) == 0 {
		return 0, nil
	}
	return c.ordinals[0], nil
}

func (c *listCursor) close() {}

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
	scan.Places = c.x.endsAnywhere
	c.next, c.stop = iter.Pull2(c.x.r.Index(scan))
}

func (c *rowCursor) close() {
	if c.stop != nil {
		c.stop()
	}
}

// mergedCursor walks over what is in any of several sets.
type mergedCursor struct {
	parts []cursor
	at    []uint64 // where each of them is; 0 before its first and after its last
}

func (c *mergedCursor) seek(ordinal uint64) (least uint64, err error) {
	for i := 0; i < len(c.parts); i++ {
		if c.at[i] < ordinal {
			if c.at[i], err = c.parts[i].seek(ordinal); err != nil {
				return 0, err
			}
		}
		if c.at[i] == 0 { // it has no more
			c.parts[i].close()
			c.parts, c.at = slices.Delete(c.parts, i, i+1), slices.Delete(c.at, i, i+1)
			i--
			continue
		}
		if least == 0 || c.at[i] < least {
			least = c.at[i]
		}
	}
	return least, nil
}

func (c *mergedCursor) close() {
	for _, part := range c.parts {
		part.close()
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
