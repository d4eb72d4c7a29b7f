// SPDX-License-Identifier: MIT

// Package ru says what work costs in request units, what may be spent in a
// second, and what is left over. It never asks for the time and never waits: the
// caller says what time it is, and what becomes of a request that is not admitted.
//
// A charge depends on the work alone, so that the same work always costs the same.
// What expired items cost the database is reckoned by the same rules, but in a
// Ledger of its own: it is never part of a request's charge.
package ru

import (
	"encoding/json"
	"math"
)

// Units is a charge in request units.
type Units float64

// MarshalJSON tells units as exactly as charges are told.
func (u Units) MarshalJSON() ([]byte, error) { return json.Marshal(float64(hundredths(u))) }

// chargeStep is what the service charges in: nearly all its charges are multiples of it.
const chargeStep = 4.0 / 21

const (
	kib = 1024

	// systemTerms is how many system properties the service indexes beside an item's
	// own, and stampTerms how many index rows it changes when it replaces an item:
	// that of the old _ts, and that of the new one.
	systemTerms, stampTerms = 4, 2

	// Refused is charged for a write that was refused.
	Refused Units = 6.5 * chargeStep
	// NotFound is charged for a read that found nothing.
	NotFound Units = 1
	// Metadata is charged for operations on databases and containers.
	Metadata Units = 1
	// ListBase is charged for a page of a list, beside what it read.
	ListBase Units = 1
)

// point is a known charge: for an item of so many KiB.
type point struct {
	kib    int
	charge Units
}

// What a read, and a write without an index, cost by size, as the service's page on
// how request units are consumed has it. Between two points the charge is on a line,
// and beyond the last it grows as before it.
var (
	readPoints = []point{
		{1, 1}, {2, 1.04}, {4, 1.14}, {8, 1.33}, {16, 1.67}, {32, 2.19}, {64, 4.76},
		{128, 9.95}, {256, 20.28}, {512, 40.95}, {1024, 145.90}, {2048, 291.80},
	}
	writePoints = []point{
		{1, 26 * chargeStep}, {2, 6.29}, {4, 6.67}, {8, 7.04}, {16, 9.52}, {32, 11.23}, {64, 22.67},
		{128, 48.19}, {256, 98.29}, {512, 184.57}, {1024, 625}, {2048, 1250},
	}
)

// bySize returns the charge for bytes, which count in whole KiB.
func bySize(points []point, bytes int) Units {
	n := max(1, (bytes+kib-1)/kib)
	last := len(points) - 2
	at := 0
	for at < last && points[at+1].kib < n {
		at++
	}
	a, b := points[at], points[at+1]
	return a.charge + (b.charge-a.charge)*Units(n-a.kib)/Units(b.kib-a.kib)
}

// Read returns the charge for reading bytes of items.
func Read(bytes int) Units { return hundredths(bySize(readPoints, bytes)) }

// WriteWork is what a write does: it puts a version of an item, with its index
// rows, in the place of another. A create has no old version, a delete and a purge
// have no new one, and a version that is not there has no bytes.
type WriteWork struct {
	Bytes, OldBytes int
	// IndexRows is how many index rows are written and removed. Those that both
	// versions have are neither.
	IndexRows int
	// Indexed says that the container has an index, which has system properties too.
	Indexed bool
}

// Charge returns what the work costs: each version by its size, and a step for each
// row of the index. More of anything never costs less. DESIGN.md has the known
// charges that it agrees with.
func (w WriteWork) Charge() Units {
	var charge Units
	rows := w.IndexRows
	if w.Bytes > 0 {
		charge += bySize(writePoints, w.Bytes)
	}
	if w.OldBytes > 0 {
		charge += bySize(writePoints, w.OldBytes)
	}
	switch {
	case !w.Indexed:
	case w.Bytes > 0 && w.OldBytes > 0:
		rows += stampTerms
	default:
		rows += systemTerms
	}
	return hundredths(charge + chargeStep*Units(rows))
}

// hundredths rounds a charge as it is told, so that the charge of a batch is the sum
// of those of its operations.
func hundredths(u Units) Units { return Units(math.Round(float64(u)*100) / 100) }

// QueryWork is what a page of a query took.
type QueryWork struct {
	IndexRows int64 // that were read
	Items     int64 // that were read
	Bytes     int64 // of those items
	RowBytes  int64 // of the result
}

// What a query costs: the service asks 2.3 for a trivial one, and 4,060 for one that
// reads 60,951 items of 400 MB.
const (
	queryBase        = 2.3
	queryPerIndexRow = 0.002
	queryPerItem     = 0.03
	queryPerKiB      = 0.0057
	queryPerRowKiB   = 0.05
)

// Charge returns what the work costs.
func (w QueryWork) Charge() Units {
	return queryBase + queryPerIndexRow*Units(w.IndexRows) + queryPerItem*Units(w.Items) +
		queryPerKiB*Units(w.Bytes)/kib + queryPerRowKiB*Units(w.RowBytes)/kib
}
