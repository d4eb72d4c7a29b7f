// SPDX-License-Identifier: MIT

// Rewinding the clock of a database at rest: partition by partition, in the order of
// their numbers. One row says which one is under way and how far it is (store.Rewind);
// it goes when the clock's state says that the rewind is over, in the same batch. As
// long as that state says that it is not, the database cannot be opened.

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

// RewindOptions say what to rewind.
type RewindOptions struct {
	DB kv.DB
	// Force rewinds although not every write time can be told right from wrong.
	Force bool
	// ClockSource and ClockBoot read the machine's clocks; nil means the real ones.
	ClockSource func() clock.Reading
	ClockBoot   func() clock.Boot
	// Progress is told of each group: of which container it was, and how many items
	// were rewound in all.
	Progress func(c *catalog.Container, items int)
	Logger   *slog.Logger

	rows int // in tests, in place of store.RewindRows
}

// RewindResult is what a rewind has done.
type RewindResult struct {
	// FromMs and ToMs are the database's time before and after.
	FromMs, ToMs int64
	// Items is how many had been written at a wrong time.
	Items int
}

// Rewind sets a database's clock back to the wall clock, and the times of all that was
// written while it was ahead. One that was interrupted goes on.
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

// rewinder is a rewind under way.
type rewinder struct {
	o      *RewindOptions
	back   func(int64) int64
	fromMs int64
	clock  *clock.Clock // stands where the rewind goes to
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
			at := slices.Compare(rewindOwner(c, i), owner)
			if at < 0 {
				continue // it is done
			}
			if at > 0 {
				mark = nil
			}
			if err := r.partition(ctx, c, i, mark); err != nil {
				return fmt.Errorf("rewind partition %d of container %q: %w", i, c.ID, err)
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

// rewindOwner names a partition in the row of the mark.
func rewindOwner(c *catalog.Container, index int) []byte {
	b := binary.BigEndian.AppendUint32(make([]byte, 0, ownerBytes), uint32(c.RID.Database))
	return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint32(b, c.RID.Container), uint16(index))
}

// underWay returns which partition an interrupted rewind was at, and where in it.
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

// logged returns the container as one that keeps all versions, if the partition has them:
// whether it does may be the server's to say, which is not there.
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
	kept.AllVersions = time.Hour // nothing is pruned meanwhile
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
