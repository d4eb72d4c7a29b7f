// SPDX-License-Identifier: MIT

// Package query runs compiled queries over one partition: it chooses an access path to
// the items, and makes pages of the rows, each resumable from its token. It knows nothing
// of HTTP, of how rows are laid out, and of what expressions mean. It never sees an
// expired item: the reader below it shows none.
package query

import (
	"bytes"
	"math"
	"slices"

	"github.com/mayflydb/mayfly/internal/index"
	"github.com/mayflydb/mayfly/internal/sql"
	"github.com/mayflydb/mayfly/internal/sql/datum"
	"github.com/mayflydb/mayfly/internal/store"
)

// path is a way to find the items that may have rows. It is made from a query and its
// container alone: nothing is read before open.
type path interface {
	// name is how a token names the path.
	name() string
	// order is the order in which the path finds items.
	order() order
	// open reports whether finding the items costs no more than so many index rows. What
	// it reads to know that, it keeps for find.
	open(x *execution, most int64) (ok bool, err error)
	// find calls yield with the items, from the position where the page begins. The item
	// at that position is among them: some of its rows may still be to come.
	find(x *execution, yield visitor) error
}

// visitor takes an item, and reports whether to go on.
type visitor = func(candidate) (more bool, err error)

// order is an order of items, and so what a position in it is.
type order int

const (
	byOrdinal order = iota // the order of creation
	byValue                // the order of an index
	byKeys                 // the order of ORDER BY, which is that of an index
)

// unlimited is a cost that nothing exceeds.
const unlimited = math.MaxInt64

// candidate is an item that may have rows. Its slices are valid until the next.
type candidate struct {
	store.Found
	value index.Value // of its row in the index that is walked
	// keys are what the item is ordered by, if the index does not have all of that.
	keys []datum.Value
}

// asCreated is what paths have in common that find items in the order of creation and are
// always open.
type asCreated struct{}

func (asCreated) order() order                         { return byOrdinal }
func (asCreated) open(*execution, int64) (bool, error) { return true, nil }

// allItems is all items of the scope.
type allItems struct{ asCreated }

func (allItems) name() string { return "all" }

func (allItems) find(x *execution, yield visitor) error {
	if x.q.Scope.Logical != nil {
		return x.logical(yield)
	}
	for f, err := range x.r.Scan(x.from()) {
		if err != nil {
			return err
		}
		if f.Body == nil || !x.inScope(f.EPK) {
			if ends, err := x.passBy(f.Ordinal, index.Value{}); err != nil || ends {
				return err
			}
			continue
		}
		if more, err := x.found(candidate{Found: f}, yield); err != nil || !more {
			return err
		}
	}
	return nil
}

// logical finds all items of a logical partition.
func (x *execution) logical(yield visitor) error {
	for after := x.from(); ; {
		ordinals, more, err := x.r.Logical(*x.q.Scope.Logical, after)
		if err != nil {
			return err
		}
		warm := 0
		for i, ordinal := range ordinals {
			if i == warm {
				warm += x.r.Warm(ordinals[i:])
			}
			after = ordinal
			if more, err := x.visit(ordinal, index.Value{}, yield); err != nil || !more {
				return err
			}
		}
		if !more {
			return nil
		}
	}
}

// noItems is none: the filter cannot hold.
type noItems struct{ asCreated }

func (noItems) name() string                   { return "none" }
func (noItems) find(*execution, visitor) error { return nil }

// noSource is what a query without FROM is about: one row, of no item.
type noSource struct{ asCreated }

func (noSource) name() string { return "once" }

func (noSource) find(_ *execution, yield visitor) error {
	_, err := yield(candidate{})
	return err
}

// from returns the ordinal after which to go on in the order of creation.
func (x *execution) from() uint64 {
	if !x.at.position.started() {
		return 0
	}
	return x.at.Ordinal - 1 // the item itself again: perhaps not all its rows are done
}

// visit reads an item that an index or a list has named, and hands it on. An item that is
// no longer live is passed by, and the page may end there. The value is that of its row in
// an index that is walked.
func (x *execution) visit(ordinal uint64, value index.Value, yield visitor) (more bool, err error) {
	f, live, err := x.r.Visit(ordinal)
	if err != nil {
		return false, err
	}
	if !live {
		ends, err := x.passBy(ordinal, value)
		return err == nil && !ends, err
	}
	return x.found(candidate{Found: f, value: value}, yield)
}

// visitAll reads the items of those ordinals, which are in order, that are still to
// come.
func (x *execution) visitAll(ordinals []uint64, yield visitor) error {
	done, _ := slices.BinarySearch(ordinals, x.from()+1)
	ordinals = ordinals[done:]
	if c := x.q.Program.Condition(); c.Exact && c.Op != sql.CondAnd {
		x.expected = int64(len(ordinals)) // the filter says no more than that
	}
	warm := 0
	for i, ordinal := range ordinals {
		if i == warm {
			warm += x.r.Warm(ordinals[i:])
		}
		if more, err := x.visit(ordinal, index.Value{}, yield); err != nil || !more {
			return err
		}
	}
	return nil
}

// found hands an item on.
func (x *execution) found(c candidate, yield visitor) (bool, error) {
	x.took(&x.page.Times.Load)
	x.read(&c.Found)
	if err := x.input(len(c.Body)); err != nil {
		return false, err
	}
	x.matched = false
	more, err := yield(c)
	if x.matched {
		x.page.Work.Matched++
	}
	x.took(&x.page.Times.Run)
	return more, err
}

// input takes memory for an item that is looked at, unless it has been for a larger one.
func (x *execution) input(bytes int) error {
	if bytes <= x.largest {
		return nil
	}
	if err := x.q.Memory.Take(x.ctx, int64(bytes-x.largest)); err != nil {
		return err
	}
	x.largest = bytes
	return nil
}

// read counts an item that was read.
func (x *execution) read(f *store.Found) {
	x.page.Work.Items++
	x.page.Work.Bytes += int64(len(f.Body))
}

// Scope is the part of a partition that a query is about.
type Scope struct {
	// Name tells the scope apart from those of other containers and requests: tokens
	// of one are refused in another.
	Name string
	// Logical, if it is set, is the one logical partition, or those with one prefix.
	Logical *store.LogicalPartition
	// MinEPK and MaxEPK bound the effective partition keys: from MinEPK, inclusive,
	// to MaxEPK, exclusive; nil is no bound.
	MinEPK, MaxEPK []byte
}

func (s *Scope) whole() bool { return s.Logical == nil && s.MinEPK == nil && s.MaxEPK == nil }

// oneKey reports whether the scope is one partition key, and not a prefix of several.
func (s *Scope) oneKey() bool { return s.Logical != nil && !s.Logical.Prefix }

func (x *execution) inScope(epk []byte) bool { return x.q.Scope.holds(epk) }

// holds reports whether an effective partition key is one that was asked for.
func (s *Scope) holds(epk []byte) bool {
	if s.Logical != nil {
		return s.Logical.Holds(epk)
	}
	return (s.MinEPK == nil || bytes.Compare(epk, s.MinEPK) >= 0) && (s.MaxEPK == nil || bytes.Compare(epk, s.MaxEPK) < 0)
}
