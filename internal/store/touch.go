// SPDX-License-Identifier: MIT

// Sliding expiry: a read restarts the countdown of an item that has used up a share of its
// life. That is a touch: a write of the item's header alone. The item keeps its body, its
// etag, its _ts and its last write. It gets a new moment from which its countdown runs
// (header.baseMs), in all rows that have it, and a new place in the order in which items
// expire. The touch has an lsn of its own, since caches and plans go by it.
//
// The change feed shows the item at its last write, as before, unless the container says
// that it shows touches. The log of all versions has none.

package store

import (
	"slices"
	"sync"

	"github.com/mayflydb/mayfly/internal/memory"
	"github.com/mayflydb/mayfly/internal/ru"
)

// touchWork is the work of a touch: that of the smallest write.
var touchWork = ru.WriteWork{Bytes: touchedBytes}

// touches are those under way, by the identity of their item. Many readers of one item have
// one touch.
type touches struct {
	mu  sync.Mutex
	now map[string]*job
}

// Slide restarts the countdown of an item that was read at nowMs, if the item has used up
// so many percent of its life, and returns the charge. The read does not depend on it:
// without room in the loop's queue, or if the touch fails, nothing changes. When Slide
// returns, the new deadline is durable, unless another read has begun the touch: then Slide
// waits for it, and costs nothing.
func (p *Partition) Slide(item *Item, k Key, percent int, nowMs int64) ru.Units {
	nowMs = p.notBefore(nowMs)
	if item.at == nil || !item.life.slides(item.at.rules.containerDefault, percent, nowMs) {
		return 0
	}
	identity := appendIdentity(nil, k.EPK, k.PartitionKey, k.ID)
	j := &job{
		write: &write{op: touch, epoch: item.at.container.Epoch, identity: identity, logical: len(identity) - len(k.ID), percent: percent},
		done:  make(chan struct{}),
	}
	if under, joined := p.touches.join(j); joined {
		_, _ = p.await(under)
		return 0
	}
	defer p.touches.leave(j)
	select {
	case p.queue <- j:
	default:
		close(j.done)
		return 0
	}
	done, err := p.await(j)
	if err != nil {
		return 0
	}
	return done.Work.Charge()
}

// join returns the touch of the same item that is under way, or else adds this one.
func (t *touches) join(j *job) (under *job, joined bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if under, joined = t.now[string(j.write.identity)]; joined {
		return under, true
	}
	if t.now == nil {
		t.now = map[string]*job{}
	}
	t.now[string(j.write.identity)] = j
	return nil, false
}

func (t *touches) leave(j *job) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.now, string(j.write.identity))
}

// touch restarts the countdown of an item. It decides again: the item may have been written,
// touched or removed since it was read, and it may have expired.
func (w *writer) touch(r *write, old *current) (Result, error) {
	res := Result{LSN: w.meta.LSN}
	if !old.live || !old.header.life().slides(w.view.rules.containerDefault, r.percent, w.nowMs) {
		return res, nil
	}
	if err := old.derive(w.view.container, memory.Room{}); err != nil {
		return res, err
	}
	if old.overfull && w.meta.IndexedTo != indexedAll {
		return res, nil // the rebuild of the index has to count it first
	}
	next := *old
	h := &next.header
	h.lsn, h.n = w.nextLSN()
	h.baseMs, h.touched = w.writeMs, touched{old.header.wroteAt(), w.view.container.SlidingInFeed}
	for _, c := range []*current{old, &next} {
		if err := w.loadBuckets(&c.header); err != nil {
			return res, err
		}
	}
	w.takeLSN()
	row := slices.Concat(make([]byte, h.bytes()), h.identity, old.body)
	h.put(row)
	h.identity, next.body = row[h.bytes():h.bodyAt():h.bodyAt()], row[h.bodyAt():]
	w.putIndex(&next)
	w.removeTimes(old)
	w.addToBuckets(-1, &old.header)
	w.putTimes(&next, row)
	w.addToBuckets(1, h)
	w.changes = append(w.changes, change{next.ordinal, old.entries, next.entries})
	w.setItem(&next)
	return Result{LSN: w.meta.LSN, Work: touchWork}, nil
}
