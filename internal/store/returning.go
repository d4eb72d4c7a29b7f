// SPDX-License-Identifier: MIT

// When a group of writes begins. A commit costs a sync, several system calls and wake-ups,
// whatever its size. While one is under way, the writes of other clients wait, and would be
// the next group at once; the clients of the first would write again during that one. So
// there would be two groups by turns, with half of the clients each, and twice as many syncs
// as need be. Where clients write at moments of their own, each group would have one write
// or two.
//
// So the loop waits for as many writes as it has answered, for a moment. And if there is more
// than one client, the next commit begins no sooner than a period after the last one, unless
// there are enough writes for it: so clients that write at moments of their own share commits,
// too. The loop goes by what comes: a wait that gains nothing is followed by groups that do
// not wait, twice as many each time. A client that is alone is never kept waiting.

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
	// period is from the beginning of a commit to that of the next, if there is more than one
	// client. A commit takes the processor as long as one or two writes do, so with enough
	// writes for one there is little left to share.
	period       = 1500 * time.Microsecond
	enoughWrites = 4
	// leastWait is the shortest wait. A timer takes a millisecond, whatever is asked of it.
	leastWait = 250 * time.Microsecond
	// aloneAfter is after how many groups of one write, with no other waiting, there is only
	// one client.
	aloneAfter = 64
	// firstSkip and mostSkip bound how many groups do not wait after a wait without gain.
	firstSkip, mostSkip = 4, 256
)

// returning knows which writes may come soon. The loop uses it, and callers tell it what they
// have queued.
type returning struct {
	began    time.Time // of the last commit
	expected int       // writes that will wait when most of those that were answered have come back
	until    time.Time // how long they are awaited
	others   int       // for how many groups there is more than one client
	// What waits have gained so far, for clients that were answered and for others.
	forClients, forOthers patience
	timer                 *time.Timer

	target  atomic.Int64  // while the loop waits, how many jobs it waits for in the queue
	reached chan struct{} // there are so many
}

// patience decides after waits without gain how many groups do not wait.
type patience struct {
	skip    int // groups that are not to wait
	penalty int // groups that will not wait if the next wait gains nothing
}

// lasts reports whether a group may wait.
func (p *patience) lasts() bool {
	if p.skip > 0 {
		p.skip--
		return false
	}
	return true
}

// gained records a wait for a number of writes, in which a group has grown.
func (p *patience) gained(from, to, target int) {
	if to >= target || 2*(to-from) >= from {
		p.penalty /= 2
		return
	}
	p.penalty = min(max(2*p.penalty, firstSkip), mostSkip)
	p.skip = p.penalty
}

// answers records that a group of requests is about to be answered, when others wait
// already. Of the clients that are answered, a quarter may be slower or write no more.
func (r *returning) answers(group, waiting int, now time.Time) {
	r.expected, r.others = 0, max(r.others-1, 0)
	if now.Sub(r.began) < worthSharing {
		return
	}
	r.expected = min(waiting+group-group/4, groupJobs)
	r.until = now.Add(returnTime)
	if group+waiting > 1 {
		r.others = aloneAfter
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

// A wait is for a group to grow to a number of writes, for a time; for none at all if it has
// no patience.
type wait struct {
	*patience
	target int
	d      time.Duration
}

// wait returns for what a group waits that has n writes now.
func (r *returning) wait(n int, now time.Time) wait {
	if d := r.until.Sub(now); n < r.expected && d > 0 && r.forClients.lasts() {
		return wait{&r.forClients, r.expected, d}
	}
	if d := r.began.Add(period).Sub(now); r.others > 0 && n < enoughWrites && d >= leastWait && r.forOthers.lasts() {
		return wait{&r.forOthers, enoughWrites, d}
	}
	return wait{}
}

// awaitReturning waits for writes, after the loop has taken the first one from its queue.
func (p *Partition) awaitReturning() {
	r, from := &p.returning, 1+len(p.queue)
	w := r.wait(from, time.Now())
	if w.patience == nil {
		return
	}
	r.timer.Reset(w.d)
	target := w.target - 1
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
	w.gained(from, 1+len(p.queue), w.target)
}

// init makes r ready for use.
func (r *returning) init() {
	r.timer = time.NewTimer(time.Hour)
	r.timer.Stop()
	r.reached = make(chan struct{}, 1)
}
