// SPDX-License-Identifier: MIT

// Package purge frees the space of expired items. It works in the background, as fast as
// items expire, and faster with what requests leave over: of their container's throughput
// where that is enforced, and of the machine always. It decides when and how fast. The
// store decides which items may be purged: answers are right even if purge is slow, stopped
// or absent.
//
// Invariants:
//
//  1. Nothing that purge does is charged to a request.
//  2. No read waits for purge, and no write does while expired items take less space than
//     they may. Near that limit (debt.go), each group of writes carries the purge of at
//     most two items for each item written, and waits for it.
//  3. While purge may not run, no write waits for it.
package purge

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/ru"
	"github.com/mayflydb/mayfly/internal/store"
)

const (
	// tick is how often Run checks whether there is work.
	tick = 100 * time.Millisecond
	// quantum is how long one partition is worked on before the next has its turn.
	quantum = 5 * time.Millisecond
)

// Target is a partition in which items may have expired.
type Target struct {
	Container *catalog.Container
	Index     int
	Partition *store.Partition
}

// Database is what purge needs from the database that it works in.
type Database interface {
	// Due returns the partitions that have work at the given time.
	Due(nowMs int64) []Target
	// Unindexed returns the partitions whose items wait for index rows.
	Unindexed() []Target
	// Meter returns the meter of a partition's requests; nil where throughput is not
	// enforced.
	Meter(Target) *ru.Meter
	// Room returns an error if the disk has no space for the rows that deletes write.
	Room() error
	// Health returns the health of the storage engine.
	Health() kv.Health
	// Elapsed is real time, which never goes back.
	Elapsed() time.Duration
}

// Options are the parameters of New.
type Options struct {
	Database Database
	// Saved keeps the settings: the catalog.
	Saved interface {
		PurgeSettings() []byte
		ChangePurge(ctx context.Context, change func(was []byte) ([]byte, error)) error
	}
	Clock *clock.Clock
	// Retention is how long events of expiry are kept.
	Retention time.Duration
	// Debt is how many bytes the expired items of a container may take, if its live items
	// take less; 0 means DefaultDebt.
	Debt int64
	// Paused starts with purge paused everywhere, whatever the saved settings are.
	Paused bool
	Logger *slog.Logger
}

// Purger works in the background until its context ends.
type Purger struct {
	// Traffic counts requests; the code that serves them reports them to it.
	Traffic Traffic

	o    Options
	db   Database
	pace *pace
	// turns is held for reading for each group, from the check of its allowance to its end.
	turns sync.RWMutex
	// accounts has the partitions that were due; only Run's goroutine uses it. payers are
	// the goroutines that purge what writes owe.
	accounts map[*store.Partition]*account
	payers   sync.WaitGroup

	mu struct {
		sync.Mutex
		settings   Settings
		started    bool // paused by Options.Paused, until the settings are changed
		containers map[catalog.ContainerRID]*record
		throttled  map[Cause]time.Duration
		samples    []sample
	}
}

// New returns a purger with the saved settings. Run starts it.
func New(o Options) (*Purger, error) {
	o.Debt = cmp.Or(o.Debt, DefaultDebt)
	p := &Purger{o: o, db: o.Database, accounts: map[*store.Partition]*account{}}
	p.pace = newPace(p.db, &p.Traffic)
	p.mu.containers = map[catalog.ContainerRID]*record{}
	p.mu.throttled = map[Cause]time.Duration{}
	for _, cause := range causes {
		p.mu.throttled[cause] = 0
	}
	p.mu.started = o.Paused
	return p, p.Follow()
}

// Run works until ctx ends.
func (p *Purger) Run(ctx context.Context) {
	t := time.NewTicker(tick)
	defer t.Stop()
	defer p.payers.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			p.round(ctx)
		}
	}
}

// round works until nothing is due, or something holds back all that is.
func (p *Purger) round(ctx context.Context) {
	p.sample()
	p.pace.begin()
	for ctx.Err() == nil {
		p.pace.look(p.db.Elapsed())
		targets := p.due()
		p.assess(ctx, targets)
		worked := false
		for _, t := range targets {
			if ctx.Err() != nil {
				return
			}
			did, err := p.turn(ctx, t)
			p.report(ctx, t, "expired items cannot be purged", err)
			worked = worked || did
		}
		if p.reindex(ctx) || worked {
			continue
		}
		return
	}
}

// reindex writes the index rows of one group of items in each partition that still needs
// some. It is paced like purge, but not limited by throughput, since queries wait for it.
func (p *Purger) reindex(ctx context.Context) (worked bool) {
	for _, t := range p.db.Unindexed() {
		items := p.pace.group()
		if _, _, err := p.pace.wait(ctx, items); err != nil {
			return false
		}
		n, _, err := t.Partition.Reindex(ctx, items)
		p.report(ctx, t, "items cannot be indexed", err)
		worked = worked || n > 0
	}
	return worked
}

// report logs an error, unless ctx or the partition has ended, or the partition has
// failed, which is known already.
func (p *Purger) report(ctx context.Context, t Target, message string, err error) {
	if err != nil && ctx.Err() == nil && !errors.Is(err, store.ErrClosed) && !errors.Is(err, store.ErrFailed) {
		p.o.Logger.Error(message, "container", t.Container.ID, "database", t.Container.DatabaseID, "partition", t.Index, "err", err)
	}
}

// due returns the partitions with work, the one that has waited longest first. Purge goes
// by the clock's horizon, which is the time unless a jump is in doubt. Partitions that are
// due by the time but not by the horizon are recorded as held back by the clock.
func (p *Purger) due() []Target {
	horizonMs, nowMs := p.o.Clock.Horizon(), p.o.Clock.Now()
	targets := p.db.Due(nowMs)
	if nowMs > horizonMs {
		targets = slices.DeleteFunc(targets, func(t Target) bool {
			waits := t.Partition.PurgeDue() > horizonMs
			if waits {
				p.held(t, Clock)
			}
			return waits
		})
	}
	slices.SortStableFunc(targets, func(a, b Target) int {
		return cmp.Compare(a.Partition.PurgeDue(), b.Partition.PurgeDue())
	})
	return targets
}

// turn works on one partition for a quantum. It reports whether it purged anything, in
// which case another turn is due at once.
func (p *Purger) turn(ctx context.Context, t Target) (worked bool, err error) {
	began := p.db.Elapsed()
	for p.db.Elapsed()-began < quantum {
		done, cause, err := p.group(ctx, t)
		if cause != None {
			p.held(t, cause)
		}
		if err != nil || cause != None {
			return worked, err
		}
		worked = worked || done.Items > 0
		if !done.More {
			return worked, nil
		}
	}
	return true, nil
}

// group purges one group of items, unless something holds it back.
func (p *Purger) group(ctx context.Context, t Target) (store.Purged, Cause, error) {
	items, cause := p.allowance(t)
	if cause != None {
		return store.Purged{}, cause, nil
	}
	took, why, err := p.pace.wait(ctx, items)
	if err != nil {
		return store.Purged{}, None, err
	}
	p.turns.RLock()
	defer p.turns.RUnlock()
	done := store.Purged{}
	allowed, cause := p.allowance(t) // it may be less than before the wait
	if cause == None {
		done, err = t.Partition.Purge(ctx, store.Purge{MaxItems: min(items, allowed), Cause: ru.Sweep, PruneMs: p.pruneMs()})
	}
	p.pace.refund(int64(items) - done.Items)
	if err == nil && cause == None {
		p.did(t, done)
		p.slowed(t, why, took)
	}
	return done, cause, err
}

// Force purges everything that has expired in the given partitions, whatever requests left
// over, and even if purge is paused. It returns what it purged.
func (p *Purger) Force(ctx context.Context, targets []Target) (store.Amount, error) {
	var total store.Amount
	for _, t := range targets {
		for more := true; more; {
			if err := p.db.Room(); err != nil {
				return total, err
			}
			done, err := t.Partition.Purge(ctx, store.Purge{MaxItems: idleGroup, Cause: ru.Forced, PruneMs: p.pruneMs()})
			if err != nil {
				return total, err
			}
			p.did(t, done)
			total = total.Plus(done.Amount)
			more = done.More
		}
	}
	return total, nil
}

// sample is the clock's horizon at a moment of real time.
type sample struct {
	at    time.Duration
	nowMs int64
}

// sampleEvery is how often a sample is taken.
const sampleEvery = time.Minute

// sample records the horizon. A test may move the database's clock by days at once: events
// are therefore kept for their retention in real time too, so that clients which follow
// them miss nothing.
func (p *Purger) sample() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.db.Elapsed()
	s := p.mu.samples
	if n := len(s); n > 0 && now-s[n-1].at < sampleEvery {
		return
	}
	s = append(s, sample{now, p.o.Clock.Horizon()})
	for len(s) > 1 && now-s[1].at >= p.o.Retention {
		s = s[1:]
	}
	p.mu.samples = s
}

// pruneMs returns the time up to which events need not be kept; 0 if that is not known
// yet.
func (p *Purger) pruneMs() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.mu.samples) == 0 || p.db.Elapsed()-p.mu.samples[0].at < p.o.Retention {
		return 0
	}
	return min(p.mu.samples[0].nowMs, p.o.Clock.Horizon()-p.o.Retention.Milliseconds())
}
