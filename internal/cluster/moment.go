// SPDX-License-Identifier: MIT

package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/kv"
)

// Moment is what a node saw at one look at the engine, begun after it was asked for.
type Moment struct {
	NowMs    int64  // the time
	Sequence []byte // the catalog's sequence row; nil if there is none
}

// flight is a moment that several requests wait for.
type flight struct {
	done   chan struct{}
	moment Moment
	sight  sight
	err    error
}

// sight is what one look showed of a live incarnation.
type sight struct {
	incarnation uint64
	state       State
	row         clock.Shared
	engineMs    int64
	timeMs      int64 // of the row at the engine's time
	watchMs     int64
	sequence    []byte
}

// Moment takes a moment (rule 2). While one is under way, all that ask share the next, never
// the one under way: its look may have been before the request came. The error is
// ErrNotAlive, ErrReplaced, ErrNewerData or ErrLeft if this node may not answer.
func (n *Node) Moment(ctx context.Context) (Moment, error) {
	f, err := n.moment(ctx)
	if err != nil {
		return Moment{}, err
	}
	return f.moment, nil
}

func (n *Node) moment(ctx context.Context) (*flight, error) {
	f := n.board()
	select {
	case <-f.done:
		return f, f.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// board returns a moment that has not begun.
func (n *Node) board() *flight {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.mu.flight == nil {
		n.mu.flight = &flight{done: make(chan struct{})}
		go n.fly(n.mu.flight)
		return n.mu.flight
	}
	if n.mu.next == nil {
		n.mu.next = &flight{done: make(chan struct{})}
	}
	return n.mu.next
}

// fly takes one moment after the other while requests wait. So looks do not overlap, and
// the engine's times come in order.
func (n *Node) fly(f *flight) {
	for f != nil {
		f.moment, f.sight, f.err = n.take(n.ctx)
		close(f.done)
		n.mu.Lock()
		f = n.mu.next
		n.mu.flight, n.mu.next = f, nil
		n.mu.Unlock()
	}
}

// take takes a moment.
func (n *Node) take(ctx context.Context) (Moment, sight, error) {
	s, err := n.look(ctx)
	if err != nil {
		return Moment{}, s, err
	}
	for range rowTries {
		nowMs, ok, err := n.use(s)
		if err != nil {
			return Moment{}, s, err
		}
		if ok {
			return Moment{nowMs, s.sequence}, s, nil
		}
		if err := n.save(ctx, s); err != nil { // rule 5: the floor is saved before the time is used
			return Moment{}, s, err
		}
	}
	return Moment{}, s, ErrContended
}

// use makes the time of a look that of the node, unless it is above the floor.
func (n *Node) use(s sight) (nowMs int64, ok bool, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.readyLocked(); err != nil {
		return 0, false, err
	}
	if n.mu.row.incarnation != s.incarnation { // registered anew since the look
		return 0, false, ErrNotAlive
	}
	nowMs = max(s.timeMs, n.mu.lastMs)
	if nowMs > n.mu.floorMs { // rule 5
		return 0, false, nil
	}
	n.mu.lastMs = nowMs
	n.mu.trail = s.row.Trail(s.engineMs, s.watchMs)
	n.clock.Reach(s.row, s.engineMs, nowMs)
	return nowMs, true, nil
}

// look looks at the engine until nothing has to be written about its time first.
func (n *Node) look(ctx context.Context) (sight, error) {
	for range rowTries {
		n.mu.Lock()
		incarnation, trail, err := n.mu.row.incarnation, n.mu.trail, n.readyLocked()
		n.mu.Unlock()
		if err != nil {
			return sight{}, err
		}
		values, ms, err := n.lookAt(ctx, n.key, catalog.TimeKey, catalog.SequenceKey)
		if err != nil {
			return sight{}, err
		}
		own, alive, err := n.isAlive(values[0], incarnation)
		if err != nil {
			return sight{}, err
		}
		if !alive { // rule 2: a dead incarnation answers nothing
			return sight{}, n.drop(incarnation, values[0], own)
		}
		row, err := clock.DecodeShared(values[1])
		if err != nil {
			return sight{}, err
		}
		if row.Test && !n.o.TestClock {
			return sight{}, clock.ErrTestData
		}
		watchMs := n.o.Watch()
		judged := row.Judge(ms, watchMs, trail)
		if judged == row {
			return sight{incarnation, own.state, row, ms, row.At(ms), watchMs, values[2]}, nil
		}
		if err := n.replace(ctx, catalog.TimeKey, values[1], judged.Encode()); err != nil && !errors.Is(err, kv.ErrConflict) {
			return sight{}, fmt.Errorf("write what the engine's clock did: %w", err)
		}
	}
	return sight{}, ErrContended
}

// passed waits until the time is at least ms, for at most limit. A time that stands still
// is not waited for.
func (n *Node) passed(ctx context.Context, ms int64, limit time.Duration) (nowMs int64, err error) {
	until := time.Now().Add(limit)
	for {
		f, err := n.moment(ctx)
		if err != nil {
			return 0, err
		}
		nowMs := f.moment.NowMs
		left := min(time.Duration(ms-nowMs)*time.Millisecond, time.Until(until))
		if left <= 0 || f.sight.row.Frozen(nowMs) {
			return nowMs, nil
		}
		if err := sleep(ctx, left); err != nil {
			return 0, err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
