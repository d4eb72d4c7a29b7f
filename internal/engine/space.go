// SPDX-License-Identifier: MIT

// What may be written when the disk is nearly full, and how space is freed. DESIGN.md
// gives the reasons for the limits.

package engine

import (
	"context"
	"time"

	"github.com/mayflydb/mayfly/internal/ru"
	"github.com/mayflydb/mayfly/internal/store"
)

// LeastFreeBytes is how much space must be free on the disk for writes that add data.
const LeastFreeBytes = 128 << 20

const (
	// spaceInterval is how often the free space is read.
	spaceInterval = 100 * time.Millisecond
	// reservedBytes is the free space below which nothing is added.
	reservedBytes = LeastFreeBytes
	// lastReserveBytes is the free space below which nothing is deleted either: a delete
	// is also a write, until compactions free what it deletes. The rest is for
	// compactions and flushes.
	lastReserveBytes = 64 << 20

	// reclaimInterval is how often to check whether there is space to free.
	reclaimInterval = 2 * time.Second
	// If a reclaim left more than reclaimLeastBytes, since there was no room for it or a
	// reader held the data, it is repeated after reclaimAgain.
	reclaimAgain      = 10 * time.Second
	reclaimLeastBytes = 1 << 20
)

// space is how much disk space is left.
type space int32

const (
	spaceEnough space = iota
	spaceLow          // nothing may be added
	spaceNone         // nothing may be deleted
)

func spaceOf(freeBytes uint64) space {
	switch {
	case freeBytes >= reservedBytes:
		return spaceEnough
	case freeBytes >= lastReserveBytes:
		return spaceLow
	}
	return spaceNone
}

// watchSpace reads the free space, and logs changes of what may be written.
func (e *Engine) watchSpace() {
	if e.options.FreeBytes == nil {
		return
	}
	free, err := e.options.FreeBytes()
	if err != nil {
		e.logger.Warn("cannot read the free disk space", "err", err)
		return
	}
	now := spaceOf(free)
	if now == space(e.space.Swap(int32(now))) {
		return
	}
	switch now {
	case spaceEnough:
		e.logger.Info("there is space again: writes are accepted", "freeBytes", free)
	case spaceLow:
		e.logger.Error("the disk is almost full: until there is space, nothing but deletes is accepted", "freeBytes", free, "reservedBytes", int64(reservedBytes))
	case spaceNone:
		e.logger.Error("the disk is full: until there is space, deletes are refused too", "freeBytes", free, "reservedBytes", int64(lastReserveBytes))
	}
}

// writable returns why nothing can be added; nil if it can.
func (e *Engine) writable() error {
	if err := e.removable(); err != nil {
		return err
	}
	if space(e.space.Load()) != spaceEnough {
		return ErrDiskFull
	}
	return nil
}

// removable returns why nothing can be deleted; nil if it can.
func (e *Engine) removable() error {
	if e.failed.Load() != nil {
		return store.ErrFailed
	}
	if space(e.space.Load()) == spaceNone {
		return ErrDiskSpent
	}
	return nil
}

// admits returns why a write of this kind is refused; nil if it is not.
func (e *Engine) admits(op store.Op) error {
	if op == store.Delete {
		return e.removable()
	}
	return e.writable()
}

// removed records a delete, so that its space is freed. What purge deletes is in the
// ledger.
func (e *Engine) removed() { e.removals.Add(1) }

// reclaim frees space while the disk is nearly full: at once, after deletes, and every
// reclaimAgain. The storage engine does so too, but later.
func (e *Engine) reclaim(ctx context.Context) {
	tick := time.NewTicker(reclaimInterval)
	defer tick.Stop()
	seen, waited := int64(-1), time.Duration(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if e.options.Reclaim == nil || space(e.space.Load()) == spaceEnough {
			seen = -1
			continue
		}
		waited += reclaimInterval
		again := waited >= reclaimAgain && e.Health().GarbageBytes >= reclaimLeastBytes
		removals := e.removals.Load() + e.ledger.Total(ru.Sweep).Items + e.ledger.Total(ru.Forced).Items
		if removals == seen && !again {
			continue
		}
		seen, waited = removals, 0
		if err := e.options.Reclaim(ctx); err != nil && ctx.Err() == nil {
			e.logger.Warn("cannot free space yet", "err", err.Error())
		}
		e.watchSpace()
	}
}
