// SPDX-License-Identifier: MIT

// Package memory decides how much memory there is and what may take how much of it: the
// caches, the storage engine, and all requests under way together. It measures nothing
// itself: whatever is about to take much says so.
//
//  1. A request holds a [Share]. What all shares hold is never more than the budget, but
//     for one that is alone: it may have what it needs.
//  2. Nothing waits for ever: every wait has a limit, and if the shares that wait keep
//     the oldest of them from going on, the youngest is refused.
package memory

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	// MaxWait is how long a share waits for memory.
	MaxWait = 10 * time.Second
	// FreeBytes is what every request may take without asking: with the number of
	// connections that is bounded too.
	FreeBytes = 16 << 10
	// chunkBytes is how much a share takes of the budget at a time, so that it need not
	// ask for every row.
	chunkBytes = 64 << 10
)

// ErrFull: the requests under way need the memory that there is.
var ErrFull = errors.New("the requests under way need the memory that there is")

// Budget is the memory that the requests under way share.
type Budget struct {
	// Wait is how long a share may wait, if that is not MaxWait. It is set before there
	// are any.
	Wait time.Duration

	total int64

	mu struct {
		sync.Mutex
		held    int64
		resting int64     // what shares hold that wait, for memory or for their clients
		born    uint64    // how many shares there were that held something
		waiting []*waiter // the oldest share first
		refused uint64
	}
}

// Use tells what is taken of a budget.
type Use struct {
	Total, Held int64
	Waiting     int
	Refused     uint64 // since the start
}

// NewBudget returns a budget of so many bytes.
func NewBudget(bytes int64) *Budget { return &Budget{Wait: MaxWait, total: bytes} }

// Share returns the share of a request that has begun, which Close gives back. A nil
// budget has no bounds.
func (b *Budget) Share() Share { return Share{budget: b} }

// Use tells what is taken.
func (b *Budget) Use() Use {
	if b == nil {
		return Use{}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return Use{b.total, b.mu.held, len(b.mu.waiting), b.mu.refused}
}

// Reserve takes memory for something that is no request, and waits for it as a request
// does. The caller calls release once.
func (b *Budget) Reserve(ctx context.Context, bytes int64) (release func(), err error) {
	s := b.Share()
	if err := s.Take(ctx, bytes); err != nil {
		return nil, err
	}
	return s.Close, nil
}

// Share is what one request holds. One goroutine uses it at a time. A nil share, and the
// zero value, have no bounds.
type Share struct {
	budget *Budget
	used   int64  // by the request
	held   int64  // of the budget; written under its lock
	born   uint64 // its place among the shares; 0 before it held anything
	// idle: it waits for its client; waits: it waits for memory. Written under the lock.
	idle, waits bool
}

// Used returns how much the request has taken, and not given back.
func (s *Share) Used() int64 {
	if s == nil {
		return 0
	}
	return s.used
}

// Most is the most that one request should hold: half of what there is, so that one
// alone does not keep all others out.
func (s *Share) Most() int64 {
	if s == nil || s.budget == nil {
		return 1 << 62
	}
	return s.budget.total / 2
}

// Take takes memory, and waits for it if others have it: for a while, and for as
// long as ctx allows. The error is ErrFull, or the context's.
func (s *Share) Take(ctx context.Context, bytes int64) error {
	want := s.want(bytes)
	if want <= 0 {
		return nil
	}
	if err := s.budget.take(ctx, s, want); err != nil {
		s.used -= bytes
		return err
	}
	return nil
}

// TryTake is Take for those that cannot wait.
func (s *Share) TryTake(bytes int64) bool {
	want := s.want(bytes)
	if want <= 0 {
		return true
	}
	if !s.budget.tryTake(s, want) {
		s.used -= bytes
		return false
	}
	return true
}

// MustTake takes memory that is in use already and cannot be let go, such as the answer to
// a write. The budget may be overdrawn by it, and nobody gets anything until it is not.
func (s *Share) MustTake(bytes int64) {
	if want := s.want(bytes); want > 0 {
		b := s.budget
		b.mu.Lock()
		defer b.mu.Unlock()
		b.age(s)
		b.hold(s, want)
	}
}

// want counts bytes as used, and returns how many more the share has to hold for them.
func (s *Share) want(bytes int64) int64 {
	if s == nil || s.budget == nil {
		return 0
	}
	s.used += bytes
	if s.used <= max(s.held, FreeBytes) {
		return 0
	}
	return (s.used+chunkBytes-1)/chunkBytes*chunkBytes - s.held
}

// Give gives back memory that was taken.
func (s *Share) Give(bytes int64) {
	if s == nil || s.budget == nil {
		return
	}
	// A chunk is kept, so that one who takes and gives by turns does not ask each time.
	if s.used -= bytes; s.held-s.used >= 2*chunkBytes {
		spare := (s.held - s.used) / chunkBytes * chunkBytes
		s.budget.give(s, spare-chunkBytes)
	}
}

// Close gives everything back.
func (s *Share) Close() {
	if s == nil {
		return
	}
	if s.held > 0 {
		s.budget.give(s, s.held)
	}
	s.used, s.idle = 0, false // which now is nobody's business
}

// AwaitClient says whether the request waits for its client from now on, to send or to
// receive: what it holds may then not come back for long.
func (s *Share) AwaitClient(awaits bool) {
	if s == nil || s.budget == nil || s.idle == awaits {
		return
	}
	if s.held == 0 { // nobody looks
		s.idle = awaits
		return
	}
	b := s.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rest(s, awaits, s.waits)
	b.settle()
}
