// SPDX-License-Identifier: MIT

// Splits: how the ranges of a container change. The ranges of a container that was never
// split follow from their number. Those of another one are in its record, which has a
// version of its own then, so that builds which know no splits refuse it instead of reading
// other partitions.

package catalog

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/value"
)

const (
	// splitVersion is the version of the record of a container of which a range was split.
	splitVersion = 2
	// maxRangeID bounds the ids of ranges: they are in the ordinals of items, whose last
	// ones are those of drafts.
	maxRangeID = 4000
)

var (
	// ErrNoRange: the container has no range with the id.
	ErrNoRange = errors.New("no such range")
	// ErrSplitting: a range of the container is being split.
	ErrSplitting = errors.New("a range of the container is being split")
	// ErrNotSplitting: the split is not under way any more.
	ErrNotSplitting = errors.New("the split is not under way any more")
)

// Split is a split that is under way: the range that is split, at which key, and the ids of
// the two ranges that it becomes. What is stored under those ids counts only when the split
// has ended.
type Split struct {
	Range    int    `json:"range"`
	Children [2]int `json:"children"`
	Cut      string `json:"cut"` // in hexadecimal
}

// rangeRecord is a range in the record of a container. Its end is the beginning of the next.
type rangeRecord struct {
	ID      int    `json:"id"`
	Min     string `json:"min"` // in hexadecimal
	Parents []int  `json:"parents,omitempty"`
}

func (r *containerRecord) version() int {
	if r.NextRange != 0 || len(r.Ranges) > 0 || r.Split != nil {
		return splitVersion
	}
	return recordVersion
}

// encodeRanges adds the ranges to the record, if they do not follow from their number.
func (ct *Container) encodeRanges(r *containerRecord) {
	if ct.nextRange == len(ct.Ranges) {
		return
	}
	r.NextRange, r.Split = ct.nextRange, ct.Split
	for i := range ct.Ranges {
		at := &ct.Ranges[i]
		r.Ranges = append(r.Ranges, rangeRecord{at.ID, hex.EncodeToString(at.Min), at.Parents})
	}
}

// decodeRanges is the inverse of encodeRanges.
func (ct *Container) decodeRanges(r *containerRecord) error {
	if r.version() == recordVersion {
		ct.Ranges, ct.nextRange = ct.PartitionKey.ranges(r.Partitions), r.Partitions
		return nil
	}
	ct.nextRange, ct.Split = r.NextRange, r.Split
	if len(r.Ranges) != r.Partitions || r.NextRange <= r.Partitions {
		return fmt.Errorf("it has %d ranges of %d", len(r.Ranges), r.Partitions)
	}
	for i, at := range r.Ranges {
		from, err := hex.DecodeString(at.Min)
		if err != nil || at.ID < 0 || at.ID >= r.NextRange || (i == 0) != (len(from) == 0) || ct.PositionOf(at.ID) >= 0 {
			return fmt.Errorf("it has a range %d from %q", at.ID, at.Min)
		}
		if len(from) == 0 {
			from = nil
		}
		ct.Ranges = append(ct.Ranges, Range{ID: at.ID, Min: from, Parents: at.Parents})
		if i > 0 {
			if slices.Compare(ct.Ranges[i-1].Min, from) >= 0 {
				return fmt.Errorf("its range %d is not after range %d", at.ID, ct.Ranges[i-1].ID)
			}
			ct.Ranges[i-1].Max = from
		}
	}
	if ct.Split != nil {
		if _, err := ct.Split.cut(); err != nil || ct.PositionOf(ct.Split.Range) < 0 {
			return fmt.Errorf("it has a split of range %d at %q", ct.Split.Range, ct.Split.Cut)
		}
	}
	return nil
}

func (s *Split) cut() ([]byte, error) { return hex.DecodeString(s.Cut) }

// Sides returns the ranges that a split makes of a range of the container.
func (ct *Container) Sides(s *Split) (low, high Range, err error) {
	i := ct.PositionOf(s.Range)
	cut, err := s.cut()
	if err != nil || i < 0 {
		return Range{}, Range{}, fmt.Errorf("%w: %d", ErrNoRange, s.Range)
	}
	was := &ct.Ranges[i]
	parents := append(slices.Clone(was.Parents), was.ID)
	return Range{s.Children[0], was.Min, cut, parents}, Range{s.Children[1], cut, was.Max, parents}, nil
}

// Within reports whether a key divides the range: it is in it, and not its beginning.
func (r *Range) Within(cut []byte) bool {
	return slices.Compare(r.Min, cut) < 0 && (r.Max == nil || slices.Compare(cut, r.Max) < 0)
}

// Middle returns a key that divides a range about in the middle of its keys; nil if the range
// is too small.
func (ct *Container) Middle(r *Range) []byte {
	const finest = 1 << 16
	for n := 2 * len(ct.Ranges); n <= finest; n *= 2 {
		var within [][]byte
		for _, cut := range ct.PartitionKey.boundaries(n) {
			if r.Within(cut) {
				within = append(within, cut)
			}
		}
		if len(within) > 2 { // those at the ends may be there by rounding
			return within[len(within)/2]
		}
	}
	return nil
}

// BeginSplit records that a range of a container is split at a key, and gives the ids of the
// ranges that it will become: no range had them before, nor an earlier attempt.
func (c *Catalog) BeginSplit(ctx context.Context, rid ContainerRID, id int, cut []byte) (now *Container, err error) {
	return c.changeRanges(ctx, rid, nil, func(ct *Container) error {
		i := ct.PositionOf(id)
		switch {
		case i < 0:
			return fmt.Errorf("%w: %d", ErrNoRange, id)
		case ct.Split != nil:
			return fmt.Errorf("%w: range %d", ErrSplitting, ct.Split.Range)
		case len(ct.Ranges) == MaxPartitions:
			return invalid("The container has %d physical partitions, and cannot have more.", MaxPartitions)
		case ct.nextRange+2 > maxRangeID:
			return invalid("The container's partitions were split too often: there are no ids for further ranges.")
		case !ct.Ranges[i].Within(cut):
			return invalid("The key %s does not divide range %d.", value.EPKText(cut), id)
		}
		ct.Split = &Split{id, [2]int{ct.nextRange, ct.nextRange + 1}, hex.EncodeToString(cut)}
		ct.nextRange += 2
		return nil
	})
}

// EndSplit replaces the range that is split by the two that it becomes. add adds the changes
// of other rows to the same commit. The error is ErrNotSplitting if that split is not under
// way in the container of the given epoch.
func (c *Catalog) EndSplit(ctx context.Context, rid ContainerRID, s *Split, epoch uint64, add func(*kv.Batch) error) (now *Container, err error) {
	return c.changeRanges(ctx, rid, add, func(ct *Container) error {
		if ct.Split == nil || *ct.Split != *s || ct.Epoch != epoch {
			return ErrNotSplitting
		}
		low, high, err := ct.Sides(s)
		if err != nil {
			return err
		}
		i := ct.PositionOf(s.Range)
		ct.Ranges, ct.Split = slices.Replace(slices.Clone(ct.Ranges), i, i+1, low, high), nil
		return nil
	})
}

// AbandonSplit forgets a split that is under way. add adds the removal of what was stored for
// it to the same commit.
func (c *Catalog) AbandonSplit(ctx context.Context, rid ContainerRID, s *Split, add func(*kv.Batch) error) (now *Container, err error) {
	return c.changeRanges(ctx, rid, add, func(ct *Container) error {
		if ct.Split == nil || *ct.Split != *s {
			return ErrNotSplitting
		}
		ct.Split = nil
		return nil
	})
}

// Growing reports whether ranges of the container are to be split, until they carry its
// throughput.
func (ct *Container) Growing() bool { return ct.Wanted > len(ct.Ranges) }

// Largest returns the range to split so that a container grows: one that comes from the fewest
// splits, since each halves what a range has. Of several it is the last, since clients learn best
// that the last range is gone (engine/part.go).
func (ct *Container) Largest() *Range {
	least := &ct.Ranges[0]
	for i := range ct.Ranges {
		if len(ct.Ranges[i].Parents) <= len(least.Parents) {
			least = &ct.Ranges[i]
		}
	}
	return least
}

// followThroughput has the container grow if its ranges do not carry its throughput. They
// never become fewer.
func (ct *Container) followThroughput() {
	if ct.Wanted = ct.Throughput.carriers(); !ct.Growing() {
		ct.Wanted = 0
	}
}

// StopGrowing gives up growing: the container keeps the ranges that it has until its throughput
// is replaced again.
func (c *Catalog) StopGrowing(ctx context.Context, rid ContainerRID) error {
	_, err := c.changeRanges(ctx, rid, nil, func(ct *Container) error {
		ct.Wanted = 0
		return nil
	})
	return err
}

// changeRanges changes the ranges of a container. Its definition, epoch and etag stay.
func (c *Catalog) changeRanges(ctx context.Context, rid ContainerRID, add func(*kv.Batch) error, do func(*Container) error) (now *Container, err error) {
	err = c.change(func() error {
		old := c.state.Load()
		next, b := *old, kv.Batch{}
		now, _ = next.altered(Containers, path{uint64(rid.Database), uint64(rid.Container)}).(*Container)
		if now == nil {
			return ErrNotFound
		}
		if err := do(now); err != nil {
			return err
		}
		now.setRows(&b, false, now.record())
		if add != nil {
			if err := add(&b); err != nil {
				return err
			}
		}
		return c.commit(ctx, &b, old, &next)
	})
	if err != nil {
		return nil, err
	}
	return now, nil
}
