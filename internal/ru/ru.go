// SPDX-License-Identifier: MIT

// Package ru computes what work costs in request units, what may be spent in a second,
// and what is left over. It never reads a clock and never waits: the caller passes the
// time, and decides what to do with a request that is not admitted.
//
// A charge depends on the work alone, so that the same work always costs the same. What
// expired items cost the database is computed by the same rules, but in a Ledger of its
// own: it is never part of a request's charge.
package ru

import (
	"encoding/json"
	"math"
)

// Units is a charge in request units.
type Units float64

// MarshalJSON writes units rounded to hundredths, as charges are.
func (u Units) MarshalJSON() ([]byte, error) { return json.Marshal(float64(hundredths(u))) }

// chargeStep is the service's unit of charging: nearly all its charges are multiples of it.
const chargeStep = 4.0 / 21

const (
	kib = 1024

	// systemTerms is how many system properties the service indexes beside the properties
	// of an item, and stampTerms how many of their index rows a replace changes: that of
	// the old _ts, and that of the new one.
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

// point is a known charge for an item of so many KiB.
type point struct {
	kib    int
	charge Units
}

// The charges of a read, and of a write without an index, by size, from the service's page
// on how request units are consumed. Between two points the charge is interpolated linearly;
// beyond the last it grows as between the last two.
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

// bySize returns the charge for bytes, rounded up to whole KiB.
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

// WriteWork is the work of a write: it replaces a version of an item and its index rows by
// another. A create has no old version, a delete and a purge have no new one; a missing
// version has no bytes.
type WriteWork struct {
	Bytes, OldBytes int
	// IndexRows is how many index rows are written and removed. Rows that both versions
	// have do not count.
	IndexRows int
	// Indexed says that the container has an index, which includes system properties.
	Indexed bool
}

// Charge returns what the work costs: each version by its size, and a step for each index
// row. More work never costs less. DESIGN.md lists the known charges that it agrees with.
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

// hundredths rounds a charge as clients see it, so that the charge of a batch is the sum of
// the charges of its operations.
func hundredths(u Units) Units { return Units(math.Round(float64(u)*100) / 100) }

// QueryWork is the work of one page of a query.
type QueryWork struct {
	IndexRows int64 // read
	Items     int64 // read
	Bytes     int64 // of those items
	RowBytes  int64 // of the result
}

// What a query costs: the service charges 2.3 for a trivial one, and 4,060 for one that
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
