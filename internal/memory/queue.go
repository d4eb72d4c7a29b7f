// SPDX-License-Identifier: MIT

// Waiting for memory. The oldest share comes first, so that every request ends some time.
// Shares that hold memory and wait for more may block each other: then the youngest of
// them is refused, and its client tries again later.

package memory

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// waiter is a share that waits.
type waiter struct {
	share *Share
	bytes int64
	done  chan error // buffered, for the one result
}

func (b *Budget) tryTake(s *Share, bytes int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.age(s)
	taken := b.takeNow(s, bytes)
	if !taken {
		b.mu.refused++
	}
	return taken
}

func (b *Budget) take(ctx context.Context, s *Share, bytes int64) error {
	w, err := b.enqueue(ctx, s, bytes)
	if w == nil {
		return err
	}
	limit := time.NewTimer(b.Wait)
	defer limit.Stop()
	select {
	case err = <-w.done:
		return err
	case <-ctx.Done():
		err = ctx.Err()
	case <-limit.C:
		err = ErrFull
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case err := <-w.done: // decided before the lock was taken
		return err
	default:
	}
	b.mu.waiting = slices.DeleteFunc(b.mu.waiting, func(other *waiter) bool { return other == w })
	b.refuse(w, err)
	b.settle()
	return err
}

// enqueue takes the memory if it is free. Otherwise it returns a waiter for it.
func (b *Budget) enqueue(ctx context.Context, s *Share, bytes int64) (*waiter, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.age(s)
	if b.takeNow(s, bytes) {
		return nil, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w := &waiter{s, bytes, make(chan error, 1)}
	at, _ := slices.BinarySearchFunc(b.mu.waiting, w, func(a, b *waiter) int { return cmp.Compare(a.share.born, b.share.born) })
	b.mu.waiting = slices.Insert(b.mu.waiting, at, w)
	b.rest(s, s.idle, true)
	b.settle()
	return w, nil
}

// age gives a share its place among the others.
func (b *Budget) age(s *Share) {
	if s.born == 0 {
		b.mu.born++
		s.born = b.mu.born
	}
}

// takeNow takes memory if it is free and no older share waits.
func (b *Budget) takeNow(s *Share, bytes int64) bool {
	if len(b.mu.waiting) > 0 && b.mu.waiting[0].share.born < s.born || !b.fits(s, bytes) {
		return false
	}
	b.hold(s, bytes)
	return true
}

// fits reports whether the budget has so much left, or no other share holds anything.
func (b *Budget) fits(s *Share, bytes int64) bool {
	return b.mu.held+bytes <= b.total || b.mu.held == s.held
}

// hold changes how much a share holds by bytes, which may be negative.
func (b *Budget) hold(s *Share, bytes int64) {
	s.held += bytes
	b.mu.held += bytes
	if s.idle || s.waits {
		b.mu.resting += bytes
	}
}

// rest changes what a share waits for.
func (b *Budget) rest(s *Share, idle, waits bool) {
	if s.idle || s.waits {
		b.mu.resting -= s.held
	}
	if s.idle, s.waits = idle, waits; idle || waits {
		b.mu.resting += s.held
	}
}

func (b *Budget) give(s *Share, bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hold(s, -bytes)
	b.settle()
}

// settle serves waiting shares, the oldest first, as far as there is memory. If waiting
// shares hold so much that the oldest can never be served, it refuses the youngest.
func (b *Budget) settle() {
	for len(b.mu.waiting) > 0 {
		oldest := b.mu.waiting[0]
		if b.fits(oldest.share, oldest.bytes) {
			b.mu.waiting = slices.Delete(b.mu.waiting, 0, 1)
			b.rest(oldest.share, oldest.share.idle, false)
			b.hold(oldest.share, oldest.bytes)
			oldest.done <- nil
			continue
		}
		if b.mu.resting+oldest.bytes <= b.total || !b.refuseYoungest() {
			return
		}
	}
}

// refuseYoungest refuses the youngest share that holds memory and waits for more, but
// never the oldest that waits.
func (b *Budget) refuseYoungest() bool {
	for i := len(b.mu.waiting) - 1; i > 0; i-- {
		w := b.mu.waiting[i]
		if w.share.held > 0 {
			b.mu.waiting = slices.Delete(b.mu.waiting, i, i+1)
			b.refuse(w, ErrFull)
			return true
		}
	}
	return false
}

// refuse ends a wait with an error.
func (b *Budget) refuse(w *waiter, err error) {
	b.rest(w.share, w.share.idle, false)
	b.mu.refused++
	w.done <- err
}
