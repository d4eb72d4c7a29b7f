// SPDX-License-Identifier: MIT

package erase

import (
	"time"

	"github.com/mayflydb/mayfly/internal/kv"
)

// Status is what is left to erase.
type Status struct {
	Spans []SpanStatus
	// Working says that data is being erased now, and Left what is left of that work.
	Working bool
	Left    kv.Remains
	// Failure is why the last attempt failed, "" if it did not.
	Failure string
	// ErasedBytes is the size of the tables that were rewritten since the start.
	ErasedBytes uint64
}

// SpanStatus is what is left in a span.
type SpanStatus struct {
	Span
	kv.Remains
	// Age is that of the oldest remains, at most; 0 if there are none.
	Age time.Duration
}

// Status returns what is left, as it was not long ago.
func (e *Eraser) Status() (Status, error) {
	e.mu.Lock()
	s, fresh := e.mu.status, e.mu.status.Working || e.db.Elapsed()-e.mu.known < reportAge
	e.mu.Unlock()
	if fresh {
		return s, nil
	}
	if _, err := e.look(false); err != nil {
		return s, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.mu.status, nil
}
