// SPDX-License-Identifier: MIT

package ru

import "sync"

// Cause is a reason for system work: work that no request asked for.
type Cause int

// The causes of system work.
const (
	// Sweep purges expired items with throughput that requests left over.
	Sweep Cause = iota
	// Assisted purges an expired item that is in the way of a write.
	Assisted
	// Forced purges expired items whether throughput was left over or not.
	Forced
	// Debt purges expired items that writes carry with them, since purge was too far
	// behind.
	Debt
	// DeadRead reads expired items on the way to live ones.
	DeadRead

	causes
)

// String returns the cause as a label of a metric.
func (c Cause) String() string {
	switch c {
	case Sweep:
		return "sweep"
	case Assisted:
		return "assisted"
	case Forced:
		return "forced"
	case Debt:
		return "debt"
	case DeadRead:
		return "dead_read"
	default:
		return "unknown"
	}
}

// Ledger adds up system work. Its cost is computed as for requests, but no request is
// charged for it. The zero value is empty. It is safe for concurrent use.
type Ledger struct {
	mu struct {
		sync.Mutex
		entries [causes]Entry
	}
}

// Entry is the work of one cause.
type Entry struct {
	Units        Units
	Items, Bytes int64
}

// Add records work on a number of items, with their bytes in all.
func (l *Ledger) Add(cause Cause, u Units, items, bytes int64) {
	l.mu.Lock()
	e := &l.mu.entries[cause]
	e.Units += u
	e.Items += items
	e.Bytes += bytes
	l.mu.Unlock()
}

// Total returns all work of a cause since the Ledger was made. It shows each Add
// completely or not at all.
func (l *Ledger) Total(cause Cause) Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.entries[cause]
}
