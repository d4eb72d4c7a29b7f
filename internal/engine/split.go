// SPDX-License-Identifier: MIT

// Splits of partitions: begun by an operator or for a higher throughput (grow.go), copied in
// the background by the owner of the partition (store.Split), and ended by one commit of the
// catalog. A split that fails, or
// whose process ends, is abandoned when the partition is next opened.

package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/store"
)

const (
	// splitTries is how often a split begins again because the settings of its container
	// have changed.
	splitTries = 8
	// splitSpace is how much more free space a split needs than the items of the partition
	// take: for their other rows, and for what the storage engine has not removed yet.
	splitSpace = 4
)

// ErrSplitting: a range of the container is being split.
var ErrSplitting = catalog.ErrSplitting

// SplitState says where a split is.
type SplitState string

// The states of a split.
const (
	SplitCopying SplitState = "copying"
	SplitDone    SplitState = "done"
	SplitFailed  SplitState = "failed"
)

// SplitStatus is the last split of a container that a node has begun.
type SplitStatus struct {
	Database  string     `json:"database"`
	Container string     `json:"container"`
	Range     string     `json:"range"`
	Ranges    []string   `json:"ranges"` // that it becomes
	Cut       string     `json:"cut"`    // where the second of these begins
	State     SplitState `json:"state"`
	// Copied is how many of about Items were copied.
	Copied    int64     `json:"copied"`
	Items     int64     `json:"items"`
	StartedAt time.Time `json:"startedAt"`
	Seconds   float64   `json:"seconds"`
	// PausedSeconds is for how long writes waited at the end.
	PausedSeconds float64 `json:"pausedSeconds"`
	Node          string  `json:"node,omitempty"`
	Error         string  `json:"error,omitempty"`
}

// splitRun is a split of this node, under way or over. The engine's lock guards status and s.
type splitRun struct {
	id     partitionID
	done   chan struct{}
	status SplitStatus
	s      *store.Split // while it copies
}

// SplitRange begins to split a range of a container into two, and returns when the copying
// has begun.
func (e *Engine) SplitRange(ctx context.Context, c *catalog.Container, id string) (SplitStatus, error) {
	i, err := rangeIndex(c, id)
	if err != nil {
		return SplitStatus{}, err
	}
	if u := c.Split; u != nil && u.Range != c.Ranges[i].ID && c.PositionOf(u.Range) >= 0 {
		// If nobody is at it, it is abandoned when its partition is opened.
		if _, err := one(ctx, e, c, u.Range, opUsage, 0); err != nil {
			return SplitStatus{}, err
		}
	}
	status, err := one(ctx, e, c, c.Ranges[i].ID, opSplit, 0)
	if errors.Is(err, store.ErrClosed) { // it was there when the request came
		now, gone := e.catalog.Current(c.RID)
		switch {
		case gone != nil:
			return status, ErrOwnerNotFound
		case now.PositionOf(c.Ranges[i].ID) < 0:
			return status, ErrRangeGone
		}
	}
	return status, err
}

// one executes an operation in one partition, by its owner.
func one[A, R any](ctx context.Context, e *Engine, c *catalog.Container, id int, o *operation[A, R], args A) (result R, err error) {
	if e.node == nil {
		p, err := e.partition(c, id)
		if err != nil {
			return result, err
		}
		return o.here(ctx, e, c, id, p, args)
	}
	results, err := gatherThose(ctx, e, c, []int{id}, o, args)
	if err != nil {
		return result, err
	}
	return results[c.PositionOf(id)], nil
}

var opSplit = newOperation(operation[int, SplitStatus]{"split", func(ctx context.Context, e *Engine, c *catalog.Container, id int, p *store.Partition, _ int) (SplitStatus, error) {
	return e.beginSplit(ctx, c, id, p)
}, false})

// SplitStatus returns the last split of a container that any node has begun; false if there
// is none.
func (e *Engine) SplitStatus(ctx context.Context, c *catalog.Container) (last SplitStatus, found bool, err error) {
	all, _, err := askNodes(ctx, e, c, opSplitStatus, 0)
	for _, s := range all {
		if s.State != "" && s.StartedAt.After(last.StartedAt) {
			last, found = s, true
		}
	}
	return last, found, err
}

var opSplitStatus = newOperation(operation[int, SplitStatus]{"split status", func(_ context.Context, e *Engine, c *catalog.Container, _ int, _ *store.Partition, _ int) (SplitStatus, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	run := e.mu.splits[c.RID]
	if run == nil {
		return SplitStatus{}, nil
	}
	return run.look(), nil
}, false})

// look returns the present status; the engine's lock is held.
func (r *splitRun) look() SplitStatus {
	s := r.status
	if r.s != nil {
		s.Copied, s.Items = r.s.Progress()
		s.Seconds = time.Since(s.StartedAt).Seconds()
	}
	return s
}

// over reports whether a split has ended.
func (r *splitRun) over() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// beginSplit begins a split of a partition of this node.
func (e *Engine) beginSplit(ctx context.Context, c *catalog.Container, id int, p *store.Partition) (SplitStatus, error) {
	if err := e.roomToSplit(p); err != nil {
		return SplitStatus{}, err
	}
	cut, err := p.SplitKey(c.RangeOf(id))
	if err != nil {
		return SplitStatus{}, err
	}
	if cut == nil {
		cut = c.Middle(c.RangeOf(id))
	}
	if cut == nil {
		return SplitStatus{}, invalid("Range %d of the container cannot be divided: it has too few keys.", id)
	}
	run := &splitRun{id: partitionID{c.RID, id}, done: make(chan struct{})}
	e.mu.Lock()
	if err := e.openableLocked(run.id); err != nil {
		e.mu.Unlock()
		return SplitStatus{}, err
	}
	if was := e.mu.splits[c.RID]; was != nil && !was.over() {
		e.mu.Unlock()
		return SplitStatus{}, fmt.Errorf("%w: range %d", ErrSplitting, was.id.index)
	}
	was := e.mu.splits[c.RID]
	e.mu.splits[c.RID] = run
	e.mu.Unlock()
	fail := func(err error) (SplitStatus, error) {
		close(run.done)
		e.mu.Lock()
		e.mu.splits[c.RID] = was
		e.mu.Unlock()
		return SplitStatus{}, err
	}
	now, err := e.catalog.BeginSplit(ctx, c.RID, id, cut)
	if errors.Is(err, catalog.ErrNoRange) || errors.Is(err, catalog.ErrNotFound) {
		return fail(store.ErrClosed) // it was split or dropped since
	}
	if err = e.changed(err); err != nil {
		return fail(err)
	}
	s, err := p.BeginSplit(now.Split.Children, cut)
	if err != nil {
		e.abandonSplit(ctx, now)
		return fail(err)
	}
	e.mu.Lock()
	run.s = s
	run.status = SplitStatus{
		Database: c.DatabaseID, Container: c.ID, Range: catalog.RangeID(id), State: SplitCopying, StartedAt: time.Now(),
	}
	run.status.show(now.Split)
	if e.node != nil {
		run.status.Node = e.node.Name()
	}
	status := run.look()
	e.mu.Unlock()
	e.logger.Info("splitting a partition", "container", c.Path, "range", id, "into", status.Ranges, "items", status.Items)
	e.background.Go(func() { e.split(run, now, p, cut) })
	return status, nil
}

func (s *SplitStatus) show(u *catalog.Split) {
	s.Ranges, s.Cut = []string{catalog.RangeID(u.Children[0]), catalog.RangeID(u.Children[1])}, u.Cut
}

// roomToSplit returns why there is no space for the copy of a partition; nil if there is.
func (e *Engine) roomToSplit(p *store.Partition) error {
	if err := e.writable(); err != nil || e.options.FreeBytes == nil {
		return err
	}
	free, err := e.options.FreeBytes()
	if err != nil {
		return err
	}
	u, err := p.Usage(e.clock.Now())
	if err != nil {
		return err
	}
	if need := splitSpace * uint64(u.Live.Bytes+u.Expired.Bytes); free < need+reservedBytes {
		return fmt.Errorf("%w: a split of the partition needs about %d MiB, and %d MiB are free", ErrDiskFull, (need+reservedBytes)>>20, free>>20)
	}
	return nil
}

// split copies the partition and ends the split. If that fails, the split is abandoned: on a
// shared engine when the partition is next opened, under a claim that no commit of the split
// that is still under way can meet.
func (e *Engine) split(run *splitRun, c *catalog.Container, p *store.Partition, cut []byte) {
	c, err := e.trySplit(run, c, p, cut)
	e.mu.Lock()
	run.status = run.look()
	run.s = nil
	if run.status.State = SplitDone; err != nil {
		run.status.State, run.status.Error = SplitFailed, err.Error()
	}
	status := run.status
	if err != nil && e.node != nil && e.mu.open[run.id] == p {
		delete(e.mu.open, run.id)
	}
	e.mu.Unlock()
	if err == nil || e.node != nil {
		p.Close()
	} else if failed := e.abandonSplit(context.Background(), c); failed != nil {
		err = errors.Join(err, failed) // the next start does it
	}
	close(run.done)
	e.wakeGrowing()
	if err != nil {
		e.logger.Error("a partition could not be split; it serves on as it was", "container", c.Path, "range", status.Range, "err", err)
		return
	}
	e.removed()
	e.meters.follow(c.RID.Database)
	e.logger.Info("split a partition", "container", c.Path, "range", status.Range, "into", status.Ranges, "items", status.Items, "seconds", status.Seconds, "pausedSeconds", status.PausedSeconds)
}

// trySplit tries to split, and returns the container as it was in the last attempt.
func (e *Engine) trySplit(run *splitRun, c *catalog.Container, p *store.Partition, cut []byte) (*catalog.Container, error) {
	s := run.s
	defer func() { s.Abandon() }()
	for try := 1; ; try++ {
		err := s.Copy(e.looksOn)
		if err == nil {
			err = e.finishSplit(run, c, p, s)
		}
		if !errors.Is(err, store.ErrSplitStale) || try == splitTries {
			return c, err
		}
		// The settings have changed: the copies are of the old ones.
		s.Abandon()
		if err := e.abandonSplit(e.running, c); err != nil {
			return c, err
		}
		next, err := e.catalog.BeginSplit(e.running, c.RID, run.id.index, cut)
		if err = e.changed(err); err != nil {
			return c, err
		}
		c = next
		again, err := p.BeginSplit(c.Split.Children, cut)
		if err != nil {
			return c, err
		}
		s = again
		e.mu.Lock()
		run.s = s
		run.status.show(c.Split)
		e.mu.Unlock()
	}
}

// looksOn returns why a split must end; nil if it goes on.
func (e *Engine) looksOn() error {
	if err := e.running.Err(); err != nil {
		return ErrStopping
	}
	if e.node != nil && e.node.Draining() {
		return ErrDraining
	}
	return e.writable()
}

// finishSplit ends a split: one commit replaces the partition by its children.
func (e *Engine) finishSplit(run *splitRun, c *catalog.Container, p *store.Partition, s *store.Split) error {
	began := time.Now()
	return s.Finish(e.running, func() error {
		adopted := func(bool) {}
		// It is not ended by the engine's end: it takes a moment, and its outcome must be known.
		_, err := e.catalog.EndSplit(context.Background(), c.RID, c.Split, s.Epoch(), func(b *kv.Batch) (err error) {
			store.RemovePartition(b, e.db.Far(), c.RID, run.id.index)
			if e.node != nil {
				adopted, err = e.adopt(b, run.id, p.Fence(), c.Split.Children)
			}
			return err
		})
		adopted(err == nil)
		switch err = e.changed(err); {
		case errors.Is(err, catalog.ErrNotSplitting), errors.Is(err, catalog.ErrNotFound):
			return fmt.Errorf("%w: %w", store.ErrSplitStale, err)
		case err != nil:
			return err
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		run.status.PausedSeconds = time.Since(began).Seconds()
		delete(e.mu.open, run.id)
		return nil
	})
}

// adopt makes this node the owner of the children of a partition, in the commit that removes
// it. fence is the partition's owner row.
func (e *Engine) adopt(b *kv.Batch, parent partitionID, fence []byte, children [2]int) (adopted func(bool), err error) {
	var keys [][]byte
	e.mu.Lock()
	for _, child := range children {
		id := partitionID{parent.container, child}
		key := store.OwnerKey(id.container, id.index)
		keys, e.mu.keys[string(key)] = append(keys, key), id
	}
	e.mu.Unlock()
	adopted, err = e.node.Adopt(b, store.OwnerKey(parent.container, parent.index), fence, keys)
	if err != nil {
		return func(bool) {}, err
	}
	return adopted, nil
}

// abandonSplit forgets a split of a container that was not finished, and removes what was
// copied. Nothing may write that any more.
func (e *Engine) abandonSplit(ctx context.Context, c *catalog.Container) error {
	_, err := e.catalog.AbandonSplit(ctx, c.RID, c.Split, func(b *kv.Batch) error {
		for _, child := range c.Split.Children {
			store.RemovePartition(b, e.db.Far(), c.RID, child)
		}
		return nil
	})
	if errors.Is(err, catalog.ErrNotSplitting) || errors.Is(err, catalog.ErrNotFound) {
		return nil
	}
	return e.changed(err)
}
