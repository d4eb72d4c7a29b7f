// SPDX-License-Identifier: MIT

// Reading the rows of a partition, of all kinds.

package store

import (
	"iter"

	"github.com/mayflydb/mayfly/internal/kv"
)

// stored is a partition's rows in one snapshot.
type stored struct {
	snap   kv.Snapshot
	prefix *prefix
}

// rowAt returns the row with a key, parsed, if it exists.
func rowAt[T any](snap kv.Snapshot, key []byte, parse func(kv.Entry) (T, error)) (row T, found bool, err error) {
	raw, found, err := snap.Get(key)
	if err == nil && found {
		row, err = parse(kv.Entry{Key: key, Value: raw})
	}
	return row, found && err == nil, err
}

// scanRows returns the parsed rows of a range. It allocates a little, so code on hot paths
// calls Scan itself.
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

// firstOf returns the first of some rows, if there is any.
func firstOf[T any](rows iter.Seq2[T, error]) (row T, found bool, err error) {
	for row, err := range rows {
		return row, err == nil, err
	}
	return row, false, nil
}

// order returns the rows of an order from a mark on. k.parseRow parses them. The feed has
// items of all kinds.
func (s stored) order(k ttlKind, from mark) iter.Seq2[kv.Entry, error] {
	space := byte(feedSpace)
	if k == kindOwn {
		space = ownSpace
	}
	_, upper := s.prefix.space(space)
	return s.snap.Scan(s.prefix.appendOrderKey(nil, k, from), upper, kv.Forward)
}

// parseRow parses a row that order returned.
func (k ttlKind) parseRow(e kv.Entry, err error) (orderRow, error) {
	switch {
	case err != nil:
		return orderRow{}, err
	case k == kindOwn:
		return parseOwnRow(e)
	}
	return parseFeedRow(e)
}

// itemAt returns the item with an ordinal, if it exists.
func (s stored) itemAt(ordinal uint64) (c current, err error) {
	c, _, err = rowAt(s.snap, s.prefix.appendItemKey(nil, ordinal), itemOf)
	return c, err
}
