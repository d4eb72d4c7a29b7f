// SPDX-License-Identifier: MIT

// Storage quotas. They are about live bytes: what has expired and is still there
// counts for nobody. The totals that are kept at every write include it, so they
// are only a first, cheap answer: what is within the limit with the dead is so
// without them.

package store

import (
	"context"
	"errors"

	"github.com/mayflydb/mayfly/internal/kv"
)

var (
	// ErrLogicalFull: the logical partition would hold more live bytes than it may.
	ErrLogicalFull = errors.New("the logical partition is full")
	// ErrPartitionFull: the partition would hold more live bytes than it may.
	ErrPartitionFull = errors.New("the partition is full")
)

// errTally tells Write to add up what is dead in the logical partition, and to try
// again: that takes too long for the loop.
var errTally = errors.New("the dead of the logical partition are to be counted")

// Quotas bound live bytes; zero is no bound.
type Quotas struct {
	// PartitionBytes is for this partition, LogicalBytes for all items with one
	// partition key.
	PartitionBytes, LogicalBytes int64
}

// deadBytes is how much of a logical partition was expired at a moment. What is
// removed since is taken off.
type deadBytes struct {
	bytes   int64
	epoch   uint64
	atMs    int64
	rebuilt bool // while it was counted, something was removed: count again
}

// tallyMs is for how long a count of the dead is good enough to refuse a write: the
// next count may find more of them.
const tallyMs = 100

// maxTallies bounds how many full logical partitions are remembered.
const maxTallies = 1024

// makeRoom refuses a write that would exceed a quota. Writes that make an item no
// larger are never refused.
func (w *writer) makeRoom(next, old *current, r *write) error {
	q := &w.quotas
	// adds is what it adds to all that there is, grows what to the live: an expired
	// version that is replaced was nobody's.
	adds := int64(next.header.size)
	grows := adds
	if old.exists {
		adds -= int64(old.header.size)
	}
	if old.live {
		grows = adds
	}
	if grows <= 0 {
		return nil
	}
	if q.PartitionBytes > 0 && w.meta.Bytes+adds > q.PartitionBytes {
		dead, err := w.deadInPartition()
		if err != nil {
			return err
		}
		if w.meta.Bytes-dead+grows > q.PartitionBytes {
			return ErrPartitionFull
		}
	}
	if q.LogicalBytes <= 0 {
		return nil
	}
	logical, _ := w.part(next.logical)
	total := logical.Bytes
	if total+adds <= q.LogicalBytes {
		return nil
	}
	dead, known := w.deadInLogical(next.logical)
	switch {
	case total-dead+grows <= q.LogicalBytes:
		return nil
	case !known && !r.tallied:
		return errTally
	}
	return ErrLogicalFull
}

// deadInPartition returns how many bytes have expired and are still there.
func (w *writer) deadInPartition() (int64, error) {
	dead, err := w.view.deadBy(w.view.rules.cutsAt(w.nowMs))
	return dead.Bytes - w.buried.Bytes, err
}

// deadInLogical returns how many bytes of a logical partition are known to have
// expired, and whether that is of now.
func (w *writer) deadInLogical(logical []byte) (bytes int64, known bool) {
	w.p.mu.Lock()
	defer w.p.mu.Unlock()
	d, found := w.p.mu.dead[string(logical)]
	if !found || d.epoch != w.view.container.Epoch {
		return 0, false
	}
	return d.bytes - w.buriedIn(logical), w.nowMs-d.atMs < tallyMs
}

// undead takes what a group has removed off what is known to be dead; p.mu is held.
func (p *Partition) undead(burials []burial) {
	if len(p.mu.dead) == 0 {
		return
	}
	for _, b := range burials {
		if d, found := p.mu.dead[string(b.logical)]; found {
			d.bytes -= b.bytes
			d.rebuilt = true
			p.mu.dead[string(b.logical)] = d
		}
	}
}

// tallyLogical adds up what has expired in a logical partition.
func (p *Partition) tallyLogical(ctx context.Context, logical []byte) error {
	p.mu.Lock()
	v, err := p.acquireLocked()
	if err != nil {
		p.mu.Unlock()
		return err
	}
	nowMs := p.clock.Now()
	if p.mu.dead == nil || len(p.mu.dead) >= maxTallies {
		p.mu.dead = map[string]deadBytes{}
	}
	p.mu.dead[string(logical)] = deadBytes{}
	p.mu.Unlock()
	defer p.release(v)

	cut := v.rules.cutsAt(nowMs)
	var dead int64
	lower := p.prefix.appendKey(nil, idSpace, logical)
	for ordinal, err := range scanRows(v.snap, lower, kv.After(lower), pointed) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		h, _, err := p.item(v, ordinal)
		if err != nil {
			return err
		}
		if cut.gone(h.writtenMs, h.ttl) {
			dead += int64(h.size)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if d := p.mu.dead[string(logical)]; d.rebuilt {
		dead += d.bytes // negative: what was removed meanwhile
	}
	p.mu.dead[string(logical)] = deadBytes{bytes: max(dead, 0), epoch: v.container.Epoch, atMs: nowMs}
	return nil
}
