// SPDX-License-Identifier: MIT

// Reading the rows of a partition, whatever they are of.

package store

import (
	"iter"

	"github.com/mayflydb/mayfly/internal/kv"
)

// stored is what a snapshot has of a partition.
type stored struct {
	snap   kv.Snapshot
	prefix *prefix
}

// rowAt returns the row with a key, taken apart, if there is one.
func rowAt[T any](snap kv.Snapshot, key []byte, parse func(kv.Entry) (T, error)) (row T, found bool, err error) {
	raw, found, err := snap.Get(key)
	if err == nil && found {
		row, err = parse(kv.Entry{Key: key, Value: raw})
	}
	return row, found && err == nil, err
}

// scanRows returns the rows of a range, each taken apart. It allocates a little: what runs
// all the time scans by itself.
func scanRows[T any](snap kv.Snapshot, lower, upper []byte, parse func(kv.Entry) (T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for e, err := range snap.Scan(lower, upper, kv.Forward) {
			var row T
			if err == nil {
				row, err = parse(e)
			}
			if !yield(row, err) || err != nil {
				return
			}
		}
	}
}

// firstOf returns the first of some rows, if there is one.
func firstOf[T any](rows iter.Seq2[T, error]) (row T, found bool, err error) {
	for row, err := range rows {
		return row, err == nil, err
	}
	return row, false, nil
}

// order returns the rows of an order from a place on, which k.row takes apart. The feed has
// items of all kinds.
func (s stored) order(k ttlKind, from mark) iter.Seq2[kv.Entry, error] {
	space := byte(feedSpace)
	if k == kindOwn {
		space = ownSpace
	}
	_, upper := s.prefix.space(space)
	return s.snap.Scan(s.prefix.appendOrderKey(nil, k, from), upper, kv.Forward)
}

// parseRow takes apart what order returns.
func (k ttlKind) parseRow(e kv.Entry, err error) (orderRow, error) {
	switch {
	case err != nil:
		return orderRow{}, err
	case k == kindOwn:
		return parseOwnRow(e)
	}
	return parseFeedRow(e)
}

// itemAt returns the item with an ordinal, if there is one.
func (s stored) itemAt(ordinal uint64) (c current, err error) {
	c, _, err = rowAt(s.snap, s.prefix.appendItemKey(nil, ordinal), itemOf)
	return c, err
}
