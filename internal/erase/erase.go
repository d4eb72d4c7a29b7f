// SPDX-License-Identifier: MIT

// Package erase sees to it that the bytes of deleted data leave the disk in time: those of
// expired, deleted and overwritten items. It decides when. The storage engine knows what is
// left of deleted data, and erases it.
//
// The one invariant: erasing changes no answer. It may be late, early or repeated.
package erase

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/kv"
)

const (
	// Shortest is the shortest time in which data can be erased: each time, the engine has to
	// write out what it holds in memory.
	Shortest = 10 * time.Second

	// Work begins when the oldest remains have used up three quarters of their time: the later,
	// the more deaths share a rewrite. The rest is for settleAt and lookAt, and an eighth of the
	// time for the work itself. If workSpare times the last pass is more than that, or if there
	// was none yet, work begins earlier, but never before half of the time.
	workSpare = 2
	// settleAt is the part of the time, from its begin, that purge gets by itself, and that
	// events keep their identities: an item counts from when purge may take it.
	settleAt = 16
	// lookAt is the part of the time that passes between two looks.
	lookAt = 16
	// A pass takes with it the spans that have used up half of their time.
	joinAt = 2
	// tick is how often Run checks whether a look is due.
	tick = 250 * time.Millisecond
	// retryAfter is the pause after a failure.
	retryAfter = 10 * time.Second
	// reportAge is how old figures of Status may be, in real time.
	reportAge = 10 * time.Second
	// mostPause bounds how long a piece of work waits for requests.
	mostPause = 2 * time.Second
)

// Span is a range of keys and the time in which deleted data there has to be erased; 0 for
// any. Name identifies it across restarts.
type Span struct {
	kv.Range
	Name   string
	Within time.Duration
}

// Database is what erasing needs from the database that it works in.
type Database interface {
	// Spans returns all spans, which do not overlap.
	Spans() []Span
	// Settle removes from the spans what has to be removed before it can be erased: items
	// that expired before the time and that purge may take, and identities in events of
	// before.
	Settle(ctx context.Context, spans []Span, beforeMs int64) error
	// Renew lets go of snapshots, as far as nothing uses them.
	Renew()
	// Room returns why nothing can be rewritten; nil if it can.
	Room() error
	// Busy reports whether requests came lately.
	Busy() bool
	// Elapsed is real time, which never goes back.
	Elapsed() time.Duration
}

// Options are the parameters of New.
type Options struct {
	Database Database
	Rows     kv.DB
	Clock    *clock.Clock
	Logger   *slog.Logger
}

// Eraser works in the background until its context ends.
type Eraser struct {
	o  Options
	db Database
	// passes is held while data is erased.
	passes chan struct{}

	mu struct {
		sync.Mutex
		state  state
		status Status
		known  time.Duration // when status was derived
		nextMs int64
		paused time.Duration // until then, after a failure
		took   time.Duration // by the last pass in the background, 0 if there was none
	}
}

// New returns an eraser with the saved state. Run starts it.
func New(o Options) (*Eraser, error) {
	e := &Eraser{o: o, db: o.Database, passes: make(chan struct{}, 1)}
	var err error
	e.mu.state, err = loadState(o.Rows, o.Clock.Now())
	e.mu.known = -reportAge
	return e, err
}

// Run works until ctx ends.
func (e *Eraser) Run(ctx context.Context) {
	t := time.NewTicker(tick)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			e.Turn(ctx)
		}
	}
}

// Turn looks, if that is due, and erases what is due. Run calls it again and again.
func (e *Eraser) Turn(ctx context.Context) {
	nowMs, elapsed := e.o.Clock.Now(), e.db.Elapsed()
	e.mu.Lock()
	waits := nowMs < e.mu.nextMs || elapsed < e.mu.paused
	e.mu.Unlock()
	if waits {
		return
	}
	err := e.work(ctx)
	if err == nil || ctx.Err() != nil || errors.Is(err, kv.ErrClosed) {
		return
	}
	e.mu.Lock()
	first := e.mu.status.Failure != err.Error()
	e.mu.status.Failure = err.Error()
	e.mu.paused = e.db.Elapsed() + retryAfter
	e.mu.Unlock()
	if first {
		e.o.Logger.Warn("deleted data cannot be erased now; it will be tried again", "err", err)
	}
}

// work derives what is left, takes a sample, and erases the spans that are due.
func (e *Eraser) work(ctx context.Context) error {
	due, err := e.look(true)
	if err != nil || len(due) == 0 {
		return err
	}
	_, err = e.pass(ctx, due, e.o.Clock.Now(), true)
	return err
}

// look derives what is left, and returns the spans that are due, with those that are about to
// be. If sampled is set, it records the position.
func (e *Eraser) look(sampled bool) (due []Span, err error) {
	spans := slices.DeleteFunc(e.db.Spans(), func(s Span) bool { return s.Within <= 0 })
	if len(spans) == 0 {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.mu.status = Status{}
		e.mu.known = e.db.Elapsed()
		e.mu.nextMs = e.o.Clock.Now() + tick.Milliseconds()
		return nil, nil
	}
	nowMs := e.o.Clock.Now() // before the position is read
	ranges := make([]kv.Range, len(spans))
	least := spans[0].Within
	for i, s := range spans {
		ranges[i] = s.Range
		least = min(least, s.Within)
	}
	position, left, err := e.o.Rows.Remains(ranges)
	if err != nil {
		return nil, err
	}

	e.mu.Lock()
	defer e.mu.Unlock()
	s := Status{Failure: e.mu.status.Failure, ErasedBytes: e.mu.status.ErasedBytes, Working: e.mu.status.Working, Left: e.mu.status.Left}
	begins := false
	oldest := position
	for i, span := range spans {
		age := e.mu.state.age(span, left[i].Oldest, nowMs)
		r := SpanStatus{Span: span, Remains: left[i], Age: age}
		s.Spans = append(s.Spans, r)
		if left[i].Oldest == 0 {
			continue
		}
		oldest = min(oldest, max(left[i].Oldest, e.mu.state.Erased[span.Name]))
		begins = begins || age >= beginAfter(span.Within, e.mu.took)
		if age >= span.Within/joinAt {
			due = append(due, span)
		}
	}
	e.mu.status, e.mu.known = s, e.db.Elapsed()
	if sampled {
		e.mu.nextMs = nowMs + max(least/lookAt, tick).Milliseconds()
		err = e.mu.state.sample(e.o.Rows, nowMs, position, oldest)
	}
	if !begins {
		return nil, err
	}
	return due, err
}

// beginAfter returns how old remains are when work begins, by their time and by how long the
// last pass took.
func beginAfter(within, took time.Duration) time.Duration {
	if took <= 0 {
		return within / 2
	}
	spare := within/settleAt + within/lookAt + max(within/8, workSpare*took)
	return max(within-spare, within/2)
}

// Erase erases all that is deleted in the spans, and first removes what purge may take. It
// returns the size of the tables that were rewritten.
func (e *Eraser) Erase(ctx context.Context, spans []Span) (rewritten uint64, err error) {
	return e.pass(ctx, spans, e.o.Clock.Now()+1, false)
}

// pass erases what is deleted in the spans. A polite one gives way to requests.
func (e *Eraser) pass(ctx context.Context, spans []Span, nowMs int64, polite bool) (rewritten uint64, err error) {
	select {
	case e.passes <- struct{}{}:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	defer func() { <-e.passes }()
	e.working(true)
	defer e.working(false)
	began := e.db.Elapsed()
	if err := e.settle(ctx, spans, nowMs, polite); err != nil {
		return 0, err
	}
	position, _, err := e.o.Rows.Remains(nil)
	if err != nil {
		return 0, err
	}
	ranges := make([]kv.Range, len(spans))
	for i, s := range spans {
		ranges[i] = s.Range
	}
	p := &pieces{e: e, polite: polite, last: e.db.Elapsed()}
	if err := e.o.Rows.Erase(ctx, ranges, func(left kv.Remains) error { return p.step(ctx, left) }); err != nil {
		return p.did, err
	}
	all := e.db.Spans()
	e.mu.Lock()
	err = e.mu.state.erased(e.o.Rows, spans, all, position)
	e.mu.status.Failure = ""
	e.mu.status.ErasedBytes += p.did
	e.mu.known = -reportAge
	e.mu.nextMs = 0
	if polite {
		e.mu.took = max(e.db.Elapsed()-began, 1)
	}
	e.mu.Unlock()
	e.o.Logger.Debug("deleted data was erased", "rewrittenBytes", p.did, "seconds", (e.db.Elapsed() - began).Seconds())
	return p.did, err
}

// settle removes from the spans what is due to be removed. Each has its own time.
func (e *Eraser) settle(ctx context.Context, spans []Span, nowMs int64, polite bool) error {
	for _, s := range spans {
		beforeMs := nowMs
		if polite {
			beforeMs -= (s.Within / settleAt).Milliseconds()
		}
		if err := e.db.Settle(ctx, []Span{s}, beforeMs); err != nil {
			return err
		}
	}
	return nil
}

func (e *Eraser) working(now bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mu.status.Working, e.mu.status.Left = now, kv.Remains{}
}

// pieces are the steps of a pass.
type pieces struct {
	e      *Eraser
	polite bool
	last   time.Duration // when the last step ended
	left   kv.Remains
	did    uint64 // bytes of tables
}

// step is called before each piece. While requests come, a polite pass rests for as long as it
// worked, so that it takes half a processor at most.
func (p *pieces) step(ctx context.Context, left kv.Remains) error {
	e := p.e
	if err := e.db.Room(); err != nil {
		return err
	}
	if p.left.Bytes > left.Bytes {
		p.did += p.left.Bytes - left.Bytes
	}
	p.left = left
	e.mu.Lock()
	e.mu.status.Left = left
	e.mu.Unlock()
	e.db.Renew()
	worked := e.db.Elapsed() - p.last
	if p.polite && e.db.Busy() && worked > 0 {
		select {
		case <-time.After(min(worked, mostPause)):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	p.last = e.db.Elapsed()
	return nil
}
