// SPDX-License-Identifier: MIT

// Storage quotas. They limit live bytes: expired items that are not purged yet do not
// count. The totals that every write keeps include them, so the totals are a first, cheap
// check: if they are within the limit, so are the live bytes.

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

// errTally tells Write to add up the expired bytes of the logical partition, and to try
// again. The loop has no time for that.
var errTally = errors.New("the expired bytes of the logical partition have to be counted")

// Quotas limit live bytes; zero is no limit.
type Quotas struct {
	// PartitionBytes is the limit of this partition, LogicalBytes of all items with one
	// partition key.
	PartitionBytes, LogicalBytes int64
}

// tally is how many bytes of a logical partition were expired at a moment, less what was
// purged since.
type tally struct {
	bytes            int64
	epoch            uint64
	atMs             int64
	removedMeanwhile bool // items were purged during the count; bytes is what to subtract
}

// tallyMs is how long a tally may be used to refuse a write: the next one may find more
// expired bytes.
const tallyMs = 100

// maxTallies bounds the tallies that are kept.
const maxTallies = 1024

// checkQuotas refuses a write that would exceed a quota. A write that does not make an item
// larger is never refused.
func (w *writer) checkQuotas(next, old *current, r *write) error {
	q := &w.quotas
	// adds is the change of all bytes, grows the change of live bytes. They differ if the
	// item replaces an expired one.
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
		expired, err := w.expiredInPartition()
		if err != nil {
			return err
		}
		if w.meta.Bytes-expired+grows > q.PartitionBytes {
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
	expired, known := w.expiredInLogical(next.logical)
	switch {
	case total-expired+grows <= q.LogicalBytes:
		return nil
	case !known && !r.tallied:
		return errTally
	}
	return ErrLogicalFull
}

// expiredInPartition returns how many bytes are expired and not yet purged.
func (w *writer) expiredInPartition() (int64, error) {
	expired, err := w.view.expiredBy(w.view.rules.cutsAt(w.nowMs))
	return expired.Bytes - w.purged.Bytes, err
}

// expiredInLogical returns how many bytes of a logical partition the last tally found to be
// expired, and whether that is recent.
func (w *writer) expiredInLogical(logical []byte) (bytes int64, known bool) {
	w.p.mu.Lock()
	defer w.p.mu.Unlock()
	d, found := w.p.mu.tallies[string(logical)]
	if !found || d.epoch != w.view.container.Epoch {
		return 0, false
	}
	return d.bytes - w.purgedIn(logical), w.nowMs-d.atMs < tallyMs
}

// subtractPurged subtracts what a group has purged from the tallies; p.mu is held.
func (p *Partition) subtractPurged(purgedItems []purgedItem) {
	if len(p.mu.tallies) == 0 {
		return
	}
	for _, b := range purgedItems {
		if d, found := p.mu.tallies[string(b.logical)]; found {
			d.bytes -= b.bytes
			d.removedMeanwhile = true
			p.mu.tallies[string(b.logical)] = d
		}
	}
}

// tallyLogical adds up the expired bytes of a logical partition.
func (p *Partition) tallyLogical(ctx context.Context, logical []byte) error {
	p.mu.Lock()
	v, err := p.acquireLocked()
	if err != nil {
		p.mu.Unlock()
		return err
	}
	nowMs := p.time()
	if p.mu.tallies == nil || len(p.mu.tallies) >= maxTallies {
		p.mu.tallies = map[string]tally{}
	}
	p.mu.tallies[string(logical)] = tally{}
	p.mu.Unlock()
	defer p.release(v)

	cut := v.rules.cutsAt(nowMs)
	var expired int64
	lower := p.prefix.appendKey(nil, idSpace, logical)
	for ordinal, err := range ahead(p, v, scanRows(v.snap, lower, kv.After(lower), parseOrdinalRow), sameOrdinal) {
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
		if cut.expired(h.life()) {
			expired += int64(h.size)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if d := p.mu.tallies[string(logical)]; d.removedMeanwhile {
		expired += d.bytes // negative: purged during the count
	}
	p.mu.tallies[string(logical)] = tally{bytes: max(expired, 0), epoch: v.container.Epoch, atMs: nowMs}
	return nil
}
