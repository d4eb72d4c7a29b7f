// SPDX-License-Identifier: MIT

// Package ru says what work costs in request units, what may be spent in a
// second, and what is left over. It never asks for the time and never waits: the
// caller says what time it is, and what becomes of a request that is not admitted.
//
// A charge depends on the work alone, so that the same work always costs the same.
// What expired items cost the database is reckoned by the same rules, but in a
// Ledger of its own: it is never part of a request's charge.
package ru

// Units is a charge in request units.
type Units float64

// The service's known points: a read of 1 KiB costs 1 and of 100 KiB 10. A create
// of 1 KiB costs 5 with indexing off and 5.3 to 7 with it, of 100 KiB 50; a delete
// costs about as much, and a replace about 1.5 times as much.
const (
	kib = 1024

	readBase, readPerKiB   = 1.0, 9.0 / 99
	writeBase, writePerKiB = 5.0, 45.0 / 99
	blindBase, blindPerKiB = 5.29, 44.71 / 99

	// perRow is for an index row that is written, and perOldRow for one that is
	// deleted, which has no value to write and no term to extract.
	perRow, perOldRow = 0.12, 0.08

	// lesserShare is how much of the cheaper of the two versions of an item is
	// charged: both are touched by one commit.
	lesserShare = 0.5

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

// Write returns the charge for writing, replacing or deleting an item of bytes, when
// nothing else is known of the work.
func Write(bytes int) Units { return blindBase + blindPerKiB*beyondFirst(bytes) }

// WriteWork is what a write does: it puts a version of an item, with its index
// rows, in the place of another. A create has no old version, a delete and a purge
// have no new one, and a version that is not there has neither bytes nor rows.
type WriteWork struct {
	Bytes, IndexRows       int
	OldBytes, OldIndexRows int
}

// Charge returns what the work costs. More of anything never costs less: this is
// why the cheaper version is the one that is charged in part, whichever it is. Were
// it always the old one, deleting a large item would cost more than replacing it
// with a small one.
func (w WriteWork) Charge() Units {
	written := version(w.Bytes, w.IndexRows, perRow)
	removed := version(w.OldBytes, w.OldIndexRows, perOldRow)
	return max(written, removed) + lesserShare*min(written, removed)
}

// version returns the charge for one version of an item, and nothing for one that
// is not there.
func version(bytes, rows int, perRow Units) Units {
	if bytes <= 0 && rows <= 0 {
		return 0
	}
	return writeBase + writePerKiB*beyondFirst(bytes) + perRow*Units(max(0, rows))
}

// beyondFirst returns how many KiB there are beyond the first, in whole KiB.
func beyondFirst(bytes int) Units { return Units(max(0, (bytes-1)/kib)) }

// QueryWork is what a page of a query took.
type QueryWork struct {
	IndexRows int64 // that were read
	Items     int64 // that were read
	Bytes     int64 // of those items
	RowBytes  int64 // of the result
}

// What a query costs: the service asks 2.3 for a trivial one.
const (
	queryBase        = 2.3
	queryPerIndexRow = 0.002
	queryPerItem     = 0.03
	queryPerKiB      = 0.02
	queryPerRowKiB   = 0.05
)

// Charge returns what the work costs.
func (w QueryWork) Charge() Units {
	return queryBase + queryPerIndexRow*Units(w.IndexRows) + queryPerItem*Units(w.Items) +
		queryPerKiB*Units(w.Bytes)/kib + queryPerRowKiB*Units(w.RowBytes)/kib
}
