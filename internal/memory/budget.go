// SPDX-License-Identifier: MIT

// Package memory finds out how much memory there is, and divides it between the caches,
// the storage engine, and all requests under way together. It measures nothing itself:
// code that is about to take much memory takes it from a share first.
//
//  1. A request holds a [Share]. All shares together hold no more than the budget, with
//     one exception: a share that is the only one may have what it needs.
//  2. No share waits for ever: every wait has a limit, and if waiting shares keep the
//     oldest of them from going on, the youngest is refused.
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
	// FreeBytes is what every request may take without the budget: the number of
	// requests under way bounds the sum.
	FreeBytes = 16 << 10
	// chunkBytes is how much a share takes from the budget at a time, so that it does
	// not lock the budget for every row.
	chunkBytes = 64 << 10
)

// ErrFull: the requests under way hold all memory that requests may have.
var ErrFull = errors.New("the requests under way hold all memory that requests may have")

// Budget is the memory that the requests under way share.
type Budget struct {
	// Wait is how long a share may wait: MaxWait, unless it is set before the first share.
	Wait time.Duration

	total int64

	mu struct {
		sync.Mutex
		held    int64
		resting int64     // held by shares that wait, for memory or for their clients
		born    uint64    // the place of the youngest share
		waiting []*waiter // the oldest share first
		refused uint64
	}
}

// Use is how much of a budget is held, and how many shares wait for memory.
type Use struct {
	Total, Held int64
	Waiting     int
	Refused     uint64 // since the start
}

// NewBudget returns a budget of so many bytes.
func NewBudget(bytes int64) *Budget { return &Budget{Wait: MaxWait, total: bytes} }

// Share returns the share of a new request; its Close gives everything back. A nil budget
// has no bounds.
func (b *Budget) Share() Share { return Share{budget: b} }

// Use returns the present use of the budget.
func (b *Budget) Use() Use {
	if b == nil {
		return Use{}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return Use{b.total, b.mu.held, len(b.mu.waiting), b.mu.refused}
}

// Reserve takes memory for work that is not a request, and waits for it as a request
// does. The caller calls release once.
func (b *Budget) Reserve(ctx context.Context, bytes int64) (release func(), err error) {
	s := b.Share()
	if err := s.Take(ctx, bytes); err != nil {
		return nil, err
	}
	return s.Close, nil
}

// Share is the memory that one request holds. One goroutine uses it at a time. A nil
// share and the zero value have no bounds.
type Share struct {
	budget *Budget
	used   int64  // by the request
	held   int64  // of the budget; written under its lock
	born   uint64 // its place among the shares, older ones lower; 0 before its first take
	// idle says that the share waits for its client, waits that it waits for memory.
	// Written under the budget's lock while the share holds memory.
	idle, waits bool
}

// Used returns how much the request has taken and not given back.
func (s *Share) Used() int64 {
	if s == nil {
		return 0
	}
	return s.used
}

// Most returns the most that one request should hold: half of the budget, so that a
// single request does not keep all others out.
func (s *Share) Most() int64 {
	if s == nil || s.budget == nil {
		return 1 << 62
	}
	return s.budget.total / 2
}

// Take takes memory. If other shares hold it, Take waits, no longer than the budget's Wait
// and ctx allow. The error is ErrFull, or the context's.
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

// TryTake is Take for callers that cannot wait.
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

// MustTake takes memory that is in use already and cannot be freed, such as the answer to
// a write. It may overdraw the budget: then other shares get nothing until memory is given
// back.
func (s *Share) MustTake(bytes int64) {
	if want := s.want(bytes); want > 0 {
		b := s.budget
		b.mu.Lock()
		defer b.mu.Unlock()
		b.age(s)
		b.hold(s, want)
	}
}

// want counts bytes as used, and returns how much more the share has to hold for them.
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
	// A chunk stays in the share, so that taking and giving by turns does not lock the
	// budget each time.
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
	s.used, s.idle = 0, false
}

// AwaitClient records whether the request waits for its client from now on, to send or to
// receive: then its memory may not come back for long.
func (s *Share) AwaitClient(awaits bool) {
	if s == nil || s.budget == nil || s.idle == awaits {
		return
	}
	if s.held == 0 { // it does not count in the budget
		s.idle = awaits
		return
	}
	b := s.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rest(s, awaits, s.waits)
	b.settle()
}
