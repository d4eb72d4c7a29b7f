// SPDX-License-Identifier: MIT

// When a group of writes begins. A commit costs a sync, several system calls and wake-ups,
// whatever its size. Where many clients write at moments of their own and the server is far
// from busy, each group would have one write or two. So a small group waits for others, as
// long as the log was synced for: a sync is under way half of the time at most.
//
// Clients that wait for each answer before they write again lose nothing by that: what they
// write while a group is synced is one group instead of two. A client that is alone is never
// kept waiting, and neither is a group that is not small.

package store

import "time"

const (
	// smallGroup is the least number of writes that are a group at once.
	smallGroup = 6
	// mostWait bounds how long a group waits, where syncs are slow.
	mostWait = 2 * time.Millisecond
	// leastWait is the shortest wait that is worth a timer. Where commits take less, as
	// without syncs, no group waits.
	leastWait = 200 * time.Microsecond
)

// rhythm is what the loop knows of its last group of requests.
type rhythm struct {
	jobs  int
	took  time.Duration
	ended time.Time
}

// wait returns how long a group waits that has n jobs now.
func (r *rhythm) wait(n int, now time.Time) time.Duration {
	if n >= smallGroup || n == 1 && r.jobs <= 1 {
		return 0
	}
	d := min(r.took, mostWait) - now.Sub(r.ended)
	if d < leastWait {
		return 0
	}
	return d
}

// note records a group of requests that has been committed.
func (r *rhythm) note(jobs int, began, ended time.Time) {
	*r = rhythm{jobs, ended.Sub(began), ended}
}
