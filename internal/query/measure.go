// SPDX-License-Identifier: MIT

// How long the parts of a page took, for clients that ask: it costs a look at the clock
// for every step.

package query

import "time"

// Times is how long the parts of a page took.
type Times struct {
	Plan  time.Duration // choosing how to find the items
	Index time.Duration // reading indexes
	Load  time.Duration // reading items
	Run   time.Duration // filters and expressions
	Write time.Duration // writing rows
}

// Add adds the times of another page.
func (t *Times) Add(other Times) {
	t.Plan += other.Plan
	t.Index += other.Index
	t.Load += other.Load
	t.Run += other.Run
	t.Write += other.Write
}

// took adds the time since the last call to a part.
func (x *execution) took(part *time.Duration) {
	if !x.q.Measure {
		return
	}
	now := x.q.Elapsed()
	*part += now - x.measured
	x.measured = now
}
