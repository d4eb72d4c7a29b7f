// SPDX-License-Identifier: MIT

// Erasure as the engine runs it: which keys have how much time, and what has to be removed
// before it can be erased.

package engine

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"slices"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/erase"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/purge"
	"github.com/mayflydb/mayfly/internal/store"
)

// errNoErasure refuses to erase on a shared storage engine.
var errNoErasure = invalid("Deleted data cannot be erased here: the storage engine is another server, which keeps old rows in its files, logs and backups for as long as it likes.")

// busyFor is how long after a request erasure still gives way.
const busyFor = 200 * time.Millisecond

// erasable is the engine as erasure sees it. Only one pass at a time uses its own fields.
type erasable struct {
	*Engine
	requests int64
	busyAt   time.Duration
}

// Spans returns a span for each container with a time of its own, and spans for all keys
// between these, with the server's time.
func (e *erasable) Spans() []erase.Span {
	if e.node != nil {
		return nil
	}
	var own []erase.Span
	for _, c := range e.AllContainers() {
		if c.EraseWithin != 0 {
			own = append(own, containerSpan(c, e.options.EraseWithin))
		}
	}
	slices.SortFunc(own, func(a, b erase.Span) int { return bytes.Compare(a.Lower, b.Lower) })
	var all []erase.Span
	var from []byte
	for _, s := range own {
		all = append(all, rest(from, s.Lower, e.options.EraseWithin), s)
		from = s.Upper
	}
	return append(all, rest(from, nil, e.options.EraseWithin))
}

func rest(lower, upper []byte, within time.Duration) erase.Span {
	return erase.Span{Range: kv.Range{Lower: lower, Upper: upper}, Name: "from " + hex.EncodeToString(lower), Within: within}
}

// containerSpan returns the span of a container's keys.
func containerSpan(c *catalog.Container, within time.Duration) erase.Span {
	if c.EraseWithin != 0 {
		within = max(c.EraseWithin, 0)
	}
	return erase.Span{Range: store.ContainerRange(c.RID), Name: c.RIDText, Within: within}
}

// Settle purges items that expired before the time, unless purge is paused there, and removes
// the identities from events of before.
func (e *erasable) Settle(ctx context.Context, spans []erase.Span, beforeMs int64) error {
	for _, c := range e.AllContainers() {
		if first := store.ContainerRange(c.RID).Lower; !slices.ContainsFunc(spans, func(s erase.Span) bool {
			return bytes.Compare(first, s.Lower) >= 0 && (s.Upper == nil || bytes.Compare(first, s.Upper) < 0)
		}) {
			continue
		}
		if err := e.settleAll(ctx, c, beforeMs); err != nil && !errors.Is(err, catalog.ErrNotFound) {
			return err
		}
	}
	return nil
}

// settleAll settles the partitions of a container, and those that they have become meanwhile.
// While one is being split, its copies may have what was deleted since they were made, so the
// end of that comes first.
func (e *erasable) settleAll(ctx context.Context, c *catalog.Container, beforeMs int64) error {
	for {
		e.mu.RLock()
		run := e.mu.splits[c.RID]
		e.mu.RUnlock()
		if run != nil {
			select {
			case <-run.done:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		c, err := e.catalog.Current(c.RID)
		if err != nil {
			return err
		}
		for i := range c.Ranges {
			if err := e.settle(ctx, c, c.Ranges[i].ID, beforeMs); err != nil && !errors.Is(err, store.ErrClosed) {
				return err
			}
		}
		now, err := e.catalog.Current(c.RID)
		if err != nil || slices.EqualFunc(now.Ranges, c.Ranges, func(a, b catalog.Range) bool { return a.ID == b.ID }) {
			return err
		}
	}
}

func (e *erasable) settle(ctx context.Context, c *catalog.Container, index int, beforeMs int64) error {
	e.mu.RLock()
	p := e.mu.open[partitionID{c.RID, index}]
	e.mu.RUnlock()
	if p == nil {
		// Nothing has used it since the start. Purge opens it if something expires there.
		snap, err := e.db.Snapshot()
		if err != nil {
			return err
		}
		has, err := store.HasEvents(snap, c, index, beforeMs)
		snap.Close()
		if err != nil || !has {
			return err
		}
		if p, err = e.partition(c, index); err != nil {
			return err
		}
	}
	if !e.purger.Status(c.RID).Paused {
		oldestMs, found, err := p.Oldest(e.clock.Horizon())
		if err != nil {
			return err
		}
		if found && oldestMs < beforeMs {
			if _, err := e.purger.Force(ctx, []purge.Target{{Container: c, Index: index, Partition: p}}); err != nil {
				return err
			}
		}
	}
	return p.Forget(ctx, beforeMs)
}

// Renew lets go of the snapshots of all open partitions.
func (e *erasable) Renew() {
	e.mu.RLock()
	defer e.mu.RUnlock()
	for _, p := range e.mu.open {
		p.Renew()
	}
}

// Room returns why nothing can be rewritten: that needs space until it frees some.
func (e *erasable) Room() error { return e.writable() }

// Busy reports whether requests came within busyFor.
func (e *erasable) Busy() bool {
	now := e.Elapsed()
	if n := e.purger.Traffic.Requests(); n != e.requests {
		e.requests, e.busyAt = n, now
	}
	return now-e.busyAt < busyFor
}

// Elapsed returns real time.
func (e *erasable) Elapsed() time.Duration { return e.meters.elapsed() }

// ErasureStatus says what is left on disk of deleted data, in all containers whose data has to
// be erased in time.
type ErasureStatus struct {
	// WithinSeconds is the time that containers have which set none, null for any.
	WithinSeconds *float64 `json:"withinSeconds"`
	ErasureLeft
	// Working says that data is being erased now. The figures are then those of this work.
	Working bool `json:"working"`
	// Backup says that the work is done but for a backup that is being sent: it has links to
	// files that the store no longer has.
	Backup bool `json:"backup,omitempty"`
	// Failure is why it cannot be erased now.
	Failure string `json:"failure,omitempty"`
	// RewrittenBytes is the size of the tables that were rewritten since the start.
	RewrittenBytes uint64 `json:"rewrittenBytes"`
	// Containers are those that set a time of their own.
	Containers []ContainerErasure `json:"containers,omitempty"`
}

// ErasureLeft is what is left in some containers.
type ErasureLeft struct {
	// LagSeconds is how long ago the oldest data was deleted of which something is left, at
	// most, and OverdueSeconds by how much that exceeds its time.
	LagSeconds     float64 `json:"lagSeconds"`
	OverdueSeconds float64 `json:"overdueSeconds"`
	// LeftTables and LeftBytes are the tables to rewrite.
	LeftTables int    `json:"leftTables"`
	LeftBytes  uint64 `json:"leftBytes"`
}

// ContainerErasure is what is left in a container with a time of its own.
type ContainerErasure struct {
	Database      string  `json:"database"`
	Container     string  `json:"container"`
	WithinSeconds float64 `json:"withinSeconds"`
	ErasureLeft
}

func (l *ErasureLeft) add(s erase.SpanStatus) {
	l.LagSeconds = max(l.LagSeconds, s.Age.Seconds())
	l.OverdueSeconds = max(l.OverdueSeconds, (s.Age - s.Within).Seconds())
	l.LeftTables += s.Tables
	l.LeftBytes += s.Bytes
}

// Erasure reports what is left to erase.
func (e *Engine) Erasure() (ErasureStatus, error) {
	s, err := e.eraser.Status()
	if err != nil {
		return ErasureStatus{}, err
	}
	r := ErasureStatus{Working: s.Working, Failure: s.Failure, RewrittenBytes: s.ErasedBytes}
	if within := e.options.EraseWithin; within > 0 {
		seconds := within.Seconds()
		r.WithinSeconds = &seconds
	}
	named := map[string]*catalog.Container{}
	for _, c := range e.AllContainers() {
		named[c.RIDText] = c
	}
	for _, span := range s.Spans {
		r.add(span)
		if c := named[span.Name]; c != nil {
			one := ContainerErasure{Database: c.DatabaseID, Container: c.ID, WithinSeconds: span.Within.Seconds()}
			one.add(span)
			r.Containers = append(r.Containers, one)
		}
	}
	if s.Working {
		r.LeftTables, r.LeftBytes, r.Backup = s.Left.Tables, s.Left.Bytes, s.Left.InCheckpoint
	}
	return r, nil
}

// ErasureResult is the result of EraseNow.
type ErasureResult struct {
	RewrittenBytes uint64  `json:"rewrittenBytes"`
	Seconds        float64 `json:"seconds"`
	// Paused are the containers in which purge is paused: their expired items are still there.
	Paused []string `json:"paused,omitempty"`
}

// EraseNow purges all expired items of a container or, if c is nil, of all, except where purge
// is paused, and erases all that was deleted or overwritten there. It returns when that is in
// no file of the data any more.
func (e *Engine) EraseNow(ctx context.Context, c *catalog.Container) (r ErasureResult, err error) {
	if e.node != nil {
		return r, errNoErasure
	}
	for _, one := range e.oneOrAll(c) {
		if e.purger.Status(one.RID).Paused {
			r.Paused = append(r.Paused, one.DatabaseID+"/"+one.ID)
		}
		// Items may have expired in partitions that are not open.
		if err := e.eachPartition(one, func(int, *store.Partition) error { return nil }); err != nil && (c != nil || !errors.Is(err, store.ErrClosed)) {
			return r, err
		}
	}
	spans := (&erasable{Engine: e}).Spans()
	if c != nil {
		spans = []erase.Span{containerSpan(c, e.options.EraseWithin)}
	}
	began := e.meters.elapsed()
	r.RewrittenBytes, err = e.eraser.Erase(ctx, spans)
	r.Seconds = (e.meters.elapsed() - began).Seconds()
	return r, err
}
