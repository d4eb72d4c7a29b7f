// SPDX-License-Identifier: MIT

// Rewinding the clock of a database at rest: partition by partition, in the order of
// their numbers. One row has the current partition and the position in it (store.Rewind).
// The batch that marks the rewind as complete in the clock's state also deletes that row.
// Until then, the database cannot be opened.

package engine

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/store"
)

// RewindOptions are the parameters of Rewind.
type RewindOptions struct {
	DB kv.DB
	// Force rewinds even if some write times cannot be told right from wrong.
	Force bool
	// ClockSource and ClockBoot read the machine's clocks; nil means the real ones.
	ClockSource func() clock.Reading
	ClockBoot   func() clock.Boot
	// Progress is called after each group, with its container and the number of items
	// rewound so far.
	Progress func(c *catalog.Container, items int)
	Logger   *slog.Logger

	rows int // replaces store.RewindRows in tests
}

// RewindResult is the result of a rewind.
type RewindResult struct {
	// FromMs and ToMs are the database's time before and after.
	FromMs, ToMs int64
	// Items is how many items had been written at a wrong time.
	Items int
}

// Rewind sets a database's clock back to the wall clock, and the times of everything that
// was written while it was ahead. It resumes an interrupted rewind.
func Rewind(ctx context.Context, o RewindOptions) (RewindResult, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if err := openFormat(o.DB, migrations[:], o.Logger); err != nil {
		return RewindResult{}, err
	}
	was, err := loadClock(o.DB)
	if err != nil {
		return RewindResult{}, err
	}
	state, err := clock.BeginRewind(clock.Options{State: was, Source: o.ClockSource, Boot: o.ClockBoot})
	if err != nil && !(o.Force && errors.Is(err, clock.ErrUnexplained)) {
		return RewindResult{}, err
	}
	if err := kv.Set(ctx, o.DB, catalog.ClockKey, state.Encode()); err != nil {
		return RewindResult{}, err
	}
	r := rewinder{o: &o, back: state.Back(), fromMs: state.ChangedFromMs()}
	if err := r.containers(ctx, state.RewindToMs); err != nil {
		return RewindResult{}, err
	}
	var b kv.Batch
	b.Set(catalog.ClockKey, state.Rewound().Encode())
	b.Delete(catalog.RewindKey, 0)
	return RewindResult{state.FloorMs, state.RewindToMs, r.items}, o.DB.Commit(ctx, &b)
}

// rewinder is a rewind in progress.
type rewinder struct {
	o      *RewindOptions
	back   func(int64) int64
	fromMs int64
	clock  *clock.Clock // stands at the target time
	items  int
}

func (r *rewinder) containers(ctx context.Context, toMs int64) (err error) {
	cat, err := catalog.Open(r.o.DB, catalog.Options{})
	if err != nil {
		return err
	}
	r.clock, err = clock.Open(clock.Options{
		State: clock.State{FloorMs: toMs, Test: true, Frozen: true}, Test: true, Save: func(clock.State) error { return nil },
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.clock.Close()) }()
	owner, mark, err := r.underWay()
	if err != nil {
		return err
	}
	for _, c := range inOrder(cat) {
		for i := range c.Ranges {
			id := c.Ranges[i].ID
			at := slices.Compare(rewindOwner(c, id), owner)
			if at < 0 {
				continue // already done
			}
			if at > 0 {
				mark = nil
			}
			if err := r.partition(ctx, c, id, mark); err != nil {
				return fmt.Errorf("rewind partition %d of container %q: %w", id, c.ID, err)
			}
		}
	}
	return nil
}

// inOrder returns all containers in the order of their numbers.
func inOrder(cat *catalog.Catalog) []*catalog.Container {
	all := containersOf(cat)
	slices.SortFunc(all, func(a, b *catalog.Container) int {
		return cmp.Or(cmp.Compare(a.RID.Database, b.RID.Database), cmp.Compare(a.RID.Container, b.RID.Container))
	})
	return all
}

const ownerBytes = 10

// rewindOwner identifies a partition in the row of the mark.
func rewindOwner(c *catalog.Container, index int) []byte {
	b := binary.BigEndian.AppendUint32(make([]byte, 0, ownerBytes), uint32(c.RID.Database))
	return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint32(b, c.RID.Container), uint16(index))
}

// underWay returns the partition at which an interrupted rewind stopped, and the
// position.
func (r *rewinder) underWay() (owner, mark []byte, err error) {
	raw, found, err := kv.Get(r.o.DB, catalog.RewindKey)
	if err != nil || !found {
		return nil, nil, err
	}
	if len(raw) <= ownerBytes {
		return nil, nil, fmt.Errorf("%w: mark of a rewind %x", kv.ErrCorrupt, raw)
	}
	return raw[:ownerBytes], raw[ownerBytes:], nil
}

// logged returns the container as one that keeps all versions, if the partition has any.
// Whether it keeps them may be an option of the server, which is not known here.
func (r *rewinder) logged(c *catalog.Container, index int) (*catalog.Container, error) {
	snap, err := r.o.DB.Snapshot()
	if err != nil {
		return nil, err
	}
	defer snap.Close()
	has, err := store.HasLog(snap, c, index)
	if err != nil || !has || c.AllVersions > 0 {
		return c, err
	}
	kept := *c
	kept.AllVersions = time.Hour // prevents pruning meanwhile
	return &kept, nil
}

func (r *rewinder) partition(ctx context.Context, c *catalog.Container, index int, mark []byte) error {
	c, err := r.logged(c, index)
	if err != nil {
		return err
	}
	p, err := store.Open(store.Options{DB: r.o.DB, Clock: r.clock, Container: c, Index: index})
	if err != nil {
		return err
	}
	defer p.Close()
	how := store.Rewind{Back: r.back, FromMs: r.fromMs, Rows: cmp.Or(r.o.rows, store.RewindRows), Mark: catalog.RewindKey, Owner: rewindOwner(c, index)}
	for {
		done, err := p.Rewind(ctx, how, mark)
		if err != nil {
			return err
		}
		mark = done.Mark
		r.items += done.Items
		if r.o.Progress != nil {
			r.o.Progress(c, r.items)
		}
		if done.Done {
			return nil
		}
	}
}
