// SPDX-License-Identifier: MIT

// Package purge takes back the space of expired items, in the background, with
// what requests leave over: of their container's throughput where that is enforced,
// and of the machine always. It decides when and how fast. What may be taken away,
// and that nothing else is, the store sees to: slow, stopped or absent, purge is
// never a wrong answer.
//
// The one invariant: nothing that it does is charged to a request, or makes one
// wait in line.
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
	// tick is how often it is looked whether there is something to do.
	tick = 100 * time.Millisecond
	// quantum is how long one partition is worked on before the next has its turn.
	quantum = 5 * time.Millisecond
	// While requests come, groups are small: one holds the partition's loop for
	// less than half a millisecond. When the disk is slow, so that loops take few
	// groups in a second, they grow, to keep the rate up; what they add is little
	// beside such a disk. Otherwise they are large enough for range deletes.
	busyGroup     = 8
	mostBusyGroup = 32
	idleGroup     = 512
)

// Target is a partition in which something may have expired.
type Target struct {
	Container *catalog.Container
	Index     int
	Partition *store.Partition
}

// Database is what purge has to know of the database that it works in.
type Database interface {
	// Due returns the partitions that have something to do at the given moment.
	Due(nowMs int64) []Target
	// Unindexed returns the partitions whose items wait for index rows.
	Unindexed() []Target
	// Meter returns the meter of a partition's requests; nil where throughput is not
	// enforced, and all is left over.
	Meter(Target) *ru.Meter
	// Room returns why there is no space for what deletes write, nil if there is.
	Room() error
	// Health tells how the engine below is.
	Health() kv.Health
	// Elapsed is real time, which never goes back.
	Elapsed() time.Duration
}

// Options say what to work on, and what with.
type Options struct {
	Database Database
	// Rows keeps the settings.
	Rows  kv.DB
	Clock *clock.Clock
	// Retention is how long events of expiry are kept.
	Retention time.Duration
	// Paused begins with purge paused everywhere, whatever was set before.
	Paused bool
	Logger *slog.Logger
}

// Purger works in the background until its context ends.
type Purger struct {
	// Traffic is told of requests by those who serve them.
	Traffic Traffic

	o     Options
	db    Database
	pace  *pace
	turns sync.Mutex // held for each group, from asking whether it may be to its end

	mu struct {
		sync.Mutex
		settings   Settings
		containers map[catalog.ContainerRID]*record
		throttled  map[Cause]time.Duration
		samples    []sample
	}
}

// New returns a purger that has not begun, with the settings of the last run.
func New(o Options) (*Purger, error) {
	p := &Purger{o: o, db: o.Database}
	p.pace = newPace(p.db, &p.Traffic)
	p.mu.containers = map[catalog.ContainerRID]*record{}
	p.mu.throttled = map[Cause]time.Duration{}
	for _, cause := range causes {
		p.mu.throttled[cause] = 0
	}
	var err error
	p.mu.settings, err = loadSettings(o.Rows)
	p.mu.settings.Paused = p.mu.settings.Paused || o.Paused
	return p, err
}

// Run works until ctx ends.
func (p *Purger) Run(ctx context.Context) {
	t := time.NewTicker(tick)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			p.round(ctx)
		}
	}
}

// round works until nothing is due, or nothing may be done for now.
func (p *Purger) round(ctx context.Context) {
	p.sample()
	for ctx.Err() == nil {
		p.pace.look(p.db.Elapsed())
		targets := p.due()
		worked := false
		for _, t := range targets {
			if ctx.Err() != nil {
				return
			}
			did, err := p.turn(ctx, t)
			p.report(ctx, t, "expired items cannot be taken away", err)
			worked = worked || did
		}
		if p.reindex(ctx) || worked {
			continue
		}
		return
	}
}

// reindex gives a group of each partition that waits for them their index rows. It
// is paced like purge, and not limited by throughput: queries wait for it.
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

// report logs what went wrong, unless that is the end of the partition, or known.
func (p *Purger) report(ctx context.Context, t Target, message string, err error) {
	if err != nil && ctx.Err() == nil && !errors.Is(err, store.ErrClosed) && !errors.Is(err, store.ErrFailed) {
		p.o.Logger.Error(message, "container", t.Container.ID, "database", t.Container.DatabaseID, "partition", t.Index, "err", err)
	}
}

// due returns what there is to do, what has waited longest first. Purge goes by the
// clock's horizon, which is the time unless that is in doubt: then it is noted that
// what is due by the time alone waits for the clock.
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

// turn works on one partition for a quantum. It reports whether it did anything,
// so that it is worth coming back at once.
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

// group takes one group away, unless something holds that back.
func (p *Purger) group(ctx context.Context, t Target) (store.Purged, Cause, error) {
	p.turns.Lock()
	defer p.turns.Unlock()
	items, cause := p.allowance(t)
	if cause != None {
		return store.Purged{}, cause, nil
	}
	took, why, err := p.pace.wait(ctx, items)
	if err != nil {
		return store.Purged{}, None, err
	}
	done, err := t.Partition.Purge(ctx, store.Purge{MaxItems: items, Cause: ru.Sweep, PruneMs: p.pruneMs()})
	if err == nil {
		p.did(t, done)
		p.slowed(t, why, took)
	}
	return done, None, err
}

// Force takes everything away that has expired in the given partitions, whatever
// is left over, and although purge may be paused. It returns what it took.
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

// sample is what the clock's horizon was at a moment of real time.
type sample struct {
	at    time.Duration
	nowMs int64
}

// sampleEvery is how often a sample is taken.
const sampleEvery = time.Minute

// sample remembers the time. A test may move the database's clock by days: events
// are kept for their time in real time too, so that nobody who follows them misses
// what happened in a moment.
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

// pruneMs returns the moment up to which events need not be kept; 0 if that is not
// known yet.
func (p *Purger) pruneMs() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.mu.samples) == 0 || p.db.Elapsed()-p.mu.samples[0].at < p.o.Retention {
		return 0
	}
	return min(p.mu.samples[0].nowMs, p.o.Clock.Horizon()-p.o.Retention.Milliseconds())
}
