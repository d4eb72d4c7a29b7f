// SPDX-License-Identifier: MIT

// Deleting by partition key: all items of a logical partition, however many, in groups that
// delay other writes only briefly. A row records the delete first, so that a partition
// which was stopped in between continues when it is opened, before any request. Items
// written after the delete began are kept.
//
//	rm row: the lsn up to which items are deleted; eight bytes, big-endian

package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/memory"
	"github.com/mayflydb/mayfly/internal/ru"
)

const (
	removalRowBytes = 8
	// removalItems and removalBytes bound a group, for which other writes wait.
	removalItems = 64
	removalBytes = 1 << 20
	// removalPause is how long a removal waits while a shared engine cannot be reached.
	removalPause = 200 * time.Millisecond
)

// Removed is the result of a removal.
type Removed struct {
	// Amount is that of the live items.
	Amount
	Units ru.Units
	LSN   uint64
}

// removal is a delete by partition key, and its next step: its beginning, a group of items,
// or its end.
type removal struct {
	logical    []byte // {epk}{pk}, as it is in keys
	lsn        uint64
	begin, end bool
	identities [][]byte

	done Removed
}

// Remove deletes all items of a logical partition. Until it returns, some of them may still
// be read. Once begun, a removal is completed, by the next Open if the partition is closed
// in between.
func (p *Partition) Remove(ctx context.Context, l LogicalPartition) (Removed, error) {
	r := &removal{logical: l.appendPlace(nil), begin: true}
	if err := p.removeStep(ctx, r); err != nil {
		return Removed{}, err
	}
	for {
		err := p.removeAll(context.WithoutCancel(ctx), r)
		if !p.shared() || !errors.Is(err, kv.ErrUnavailable) {
			return r.done, err
		}
		select { // nothing is lost: it begins again with the items that are left
		case <-time.After(removalPause):
		case <-p.stop:
			return r.done, ErrClosed
		}
	}
}

func (p *Partition) removeStep(ctx context.Context, r *removal) error {
	was := r.done
	_, err := p.submit(ctx, &job{task: &task{do: r.step, awaited: true}})
	r.begin, r.identities = false, nil
	if err != nil {
		r.done, r.end = was, false
	}
	return err
}

// removeAll removes the items, group by group.
func (p *Partition) removeAll(ctx context.Context, r *removal) error {
	var after []byte
	for !r.end {
		var err error
		if r.identities, err = p.removable(r.logical, after); err != nil {
			return err
		}
		if len(r.identities) > 0 {
			after = r.identities[len(r.identities)-1]
		}
		r.end = len(r.identities) == 0
		if err := p.removeStep(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// removable returns the identities of the next group of a logical partition's items.
func (p *Partition) removable(logical, after []byte) ([][]byte, error) {
	v, err := p.acquire()
	if err != nil {
		return nil, err
	}
	defer p.release(v)
	lower := p.prefix.appendKey(nil, idSpace, logical)
	upper := kv.After(lower)
	if after != nil {
		lower = append(p.prefix.appendIDKey(nil, after), 0)
	}
	var found [][]byte
	size := 0
	for ordinal, err := range ahead(p, v, scanRows(v.snap, lower, upper, parseOrdinalRow), sameOrdinal) {
		if err != nil {
			return nil, err
		}
		h, _, err := p.item(v, ordinal)
		if err != nil {
			return nil, err
		}
		found = append(found, h.identity)
		if size += h.size; len(found) == removalItems || size >= removalBytes {
			break
		}
	}
	return found, nil
}

// step does a step of a removal, in the loop.
func (r *removal) step(w *writer) error {
	key := w.p.prefix.appendKey(nil, removalSpace, r.logical)
	if r.begin {
		r.lsn = w.meta.LSN
		w.batch.Set(key, binary.BigEndian.AppendUint64(nil, r.lsn))
		r.done.LSN = r.lsn
		return nil
	}
	var victims []current
	for _, identity := range r.identities {
		c, err := w.current(identity)
		if err != nil {
			return err
		}
		if !c.exists || c.header.wroteAt().LSN > r.lsn {
			continue
		}
		if err := w.prepareRemoval(&c, memory.Room{}); err != nil {
			return err
		}
		victims = append(victims, c)
	}
	for i := range victims {
		w.removeVictim(r, &victims[i])
	}
	r.done.LSN = w.meta.LSN
	if r.end {
		return w.endRemoval(r, key)
	}
	return nil
}

func (w *writer) removeVictim(r *removal, c *current) {
	if c.header.expired(&w.view.rules, w.nowMs) {
		w.takeExpiryLSN(&c.header)
		w.purgeItem(c)
		w.removeItem(c)
		return
	}
	work := w.delete(c)
	r.done.Units += work.Charge()
	r.done.Amount = r.done.Plus(c.header.amount(1))
}

// endRemoval deletes the row of the removal, unless a later removal of the same partition
// key has replaced it.
func (w *writer) endRemoval(r *removal, key []byte) error {
	under, found, err := rowAt(w.view.snap, key, parseRemoval)
	if found && under.lsn == r.lsn {
		w.batch.Delete(key, removalRowBytes)
	}
	return err
}

func parseRemoval(e kv.Entry) (*removal, error) {
	if len(e.Value) != removalRowBytes {
		return nil, corrupt(e.Key, "not a removal's row")
	}
	return &removal{logical: bytes.Clone(e.Key[prefixBytes+1:]), lsn: binary.BigEndian.Uint64(e.Value)}, nil
}

// resume completes the removals that were under way when the partition was last closed.
func (p *Partition) resume(under []*removal) error {
	for _, r := range under {
		if err := p.removeAll(context.Background(), r); err != nil {
			return fmt.Errorf("go on with a delete by partition key: %w", err)
		}
	}
	return nil
}

// removals returns the removals that are under way.
func (p *Partition) removals(snap kv.Snapshot) (under []*removal, err error) {
	lower, upper := p.prefix.space(removalSpace)
	for r, err := range scanRows(snap, lower, upper, parseRemoval) {
		if err != nil {
			return nil, err
		}
		under = append(under, r)
	}
	return under, nil
}

// removal checks the row of a removal.
func (k *checker) removal(_ kv.Entry, r *removal) error {
	if r.lsn > k.meta.LSN {
		k.report("a delete by partition key is about items up to lsn %d, beyond the last lsn %d", r.lsn, k.meta.LSN)
	}
	return nil
}
