// SPDX-License-Identifier: MIT

// Package ru says what work costs, in request units. A charge depends on the
// work alone, so that the same work always costs the same; what an expired item
// costs the database is never part of it.
package ru

// Units is a charge in request units.
type Units float64

// The service's known points: a read of 1 KiB costs 1 and of 100 KiB 10, a write
// of 1 KiB between 5 and 7 and of 100 KiB 50.
const (
	kib = 1024

	readBase, readPerKiB   = 1.0, 9.0 / 99
	writeBase, writePerKiB = 5.29, 44.71 / 99

	// Refused is charged for a write that was refused.
	Refused Units = 1.24
	// NotFound is charged for a read that found nothing.
	NotFound Units = 1
	// Metadata is charged for operations on databases and containers.
	Metadata Units = 1
	// ListBase is charged for a page of a list, beside what it read.
	ListBase Units = 1
)

// Read returns the charge for reading bytes of items.
func Read(bytes int) Units { return readBase + readPerKiB*beyondFirst(bytes) }

// Write returns the charge for writing, replacing or deleting an item of bytes.
func Write(bytes int) Units { return writeBase + writePerKiB*beyondFirst(bytes) }

// beyondFirst returns how many KiB there are beyond the first, in whole KiB.
func beyondFirst(bytes int) Units { return Units(max(0, (bytes-1)/kib)) }
