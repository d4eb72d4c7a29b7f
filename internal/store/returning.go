// SPDX-License-Identifier: MIT

// When a group of writes begins. A commit costs a sync, several system calls and wake-ups,
// whatever its size. While one is under way, the writes of other clients wait, and would be
// the next group at once; the clients of the first would write again during that one. So
// there would be two groups by turns, with half of the clients each, and twice as many syncs
// as need be. Where clients write at moments of their own, each group would have one write
// or two.
//
// So the loop waits for as many writes as it has answered, for a moment. It goes by what
// comes: a wait that gains nothing is followed by groups that do not wait, twice as many each
// time. A client that is alone is never kept waiting.

package store

import (
	"sync/atomic"
	"time"
)

const (
	// returnTime is how long writes are awaited after the last answer. The runtime's timers
	// are no finer.
	returnTime = time.Millisecond
	// worthSharing is the least time of a commit for which others are awaited. Without syncs,
	// commits take less.
	worthSharing = 150 * time.Microsecond
	// firstSkip and mostSkip bound how many groups do not wait after a wait without gain.
	firstSkip, mostSkip = 4, 256
)

// returning knows which writes may come soon. The loop uses it, and callers tell it what they
// have queued.
type returning struct {
	began    time.Time // of the last commit
	expected int       // writes that will wait when most of those that were answered have come back
	until    time.Time // how long they are awaited
	skip     int       // groups that are not to wait
	penalty  int       // groups that will not wait if the next wait gains nothing
	timer    *time.Timer

	target  atomic.Int64  // while the loop waits, how many jobs it waits for in the queue
	reached chan struct{} // there are so many
}

// answers records that a group of requests is about to be answered, when others wait
// already. Of the clients that are answered, a quarter may be slower or write no more.
func (r *returning) answers(group, waiting int, now time.Time) {
	r.expected = 0
	if now.Sub(r.began) >= worthSharing {
		r.expected = min(waiting+group-group/4, groupJobs)
		r.until = now.Add(returnTime)
	}
}

// queued tells a loop that waits that there are n jobs in its queue.
func (r *returning) queued(n int) {
	if t := r.target.Load(); t > 0 && int64(n) >= t {
		select {
		case r.reached <- struct{}{}:
		default:
		}
	}
}

// wait returns for how long a group waits that has n writes now; 0 is not at all.
func (r *returning) wait(n int, now time.Time) time.Duration {
	switch {
	case n >= r.expected:
		return 0
	case r.skip > 0:
		r.skip--
		return 0
	}
	return r.until.Sub(now)
}

// gained records a wait during which a group has grown from one size to another.
func (r *returning) gained(from, to int) {
	if to >= r.expected || 2*(to-from) >= from {
		r.penalty /= 2
		return
	}
	r.penalty = min(max(2*r.penalty, firstSkip), mostSkip)
	r.skip = r.penalty
}

// awaitReturning waits for writes, after the loop has taken the first one from its queue.
func (p *Partition) awaitReturning() {
	r, from := &p.returning, 1+len(p.queue)
	d := r.wait(from, time.Now())
	if d <= 0 {
		return
	}
	r.timer.Reset(d)
	target := r.expected - 1
	r.target.Store(int64(target))
	if len(p.queue) < target {
		select {
		case <-r.reached:
		case <-r.timer.C:
		case <-p.stop:
		}
	}
	r.target.Store(0)
	r.timer.Stop()
	select {
	case <-r.reached: // by a caller that was late
	default:
	}
	r.gained(from, 1+len(p.queue))
}

// init makes r ready for use.
func (r *returning) init() {
	r.timer = time.NewTimer(time.Hour)
	r.timer.Stop()
	r.reached = make(chan struct{}, 1)
}
