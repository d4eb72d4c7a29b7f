// SPDX-License-Identifier: MIT

package ru

import "sync"

// Cause is why the database worked without being asked to.
type Cause int

// The causes of system work.
const (
	// Sweep takes expired items away with throughput that was left over.
	Sweep Cause = iota
	// Assisted takes away an expired item that stands in the way of a write.
	Assisted
	// Forced takes expired items away although nothing was left over.
	Forced
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
	case DeadRead:
		return "dead_read"
	default:
		return "unknown"
	}
}

// Ledger adds up system work, which costs what a request's work costs and is
// charged to nobody. Its zero value is empty. It is safe for concurrent use.
type Ledger struct {
	mu struct {
		sync.Mutex
		entries [causes]Entry
	}
}

// Entry is the work that one cause has led to.
type Entry struct {
	Units        Units
	Items, Bytes int64
}

// Add notes work on a number of items of some bytes in all.
func (l *Ledger) Add(cause Cause, u Units, items, bytes int64) {
	l.mu.Lock()
	e := &l.mu.entries[cause]
	e.Units += u
	e.Items += items
	e.Bytes += bytes
	l.mu.Unlock()
}

// Total returns all work of a cause since the Ledger was made. It shows all of an
// Add or nothing of it.
func (l *Ledger) Total(cause Cause) Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.entries[cause]
}
