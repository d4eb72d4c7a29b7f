// SPDX-License-Identifier: MIT

// How fast. Where throughput is enforced, a partition may spend a part of what its
// requests left over in the last second. Besides, whatever the mode: while requests
// come there is a rate, which is halved when they take longer or the engine falls
// behind, and grows slowly otherwise. When none come, only the engine's health
// counts.

package purge

import (
	"context"
	"math"
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mayflydb/mayfly/internal/store"
)

const (
	// leftoverShare is how much of what is left over may be used.
	leftoverShare = 0.8
	// itemUnits is about what taking an item away costs, to size a group by.
	itemUnits = 6

	// The rate while requests come, for each processor: where it begins, and what it
	// keeps though they take longer, for that has many causes. Only an engine that is
	// behind with its own work brings it down to leastRate.
	startRate  = 600
	politeRate = 600
	leastRate  = 100
	mostRate   = 50_000

	// lookEvery is how often the rate is reconsidered; each time it grows by this
	// much, or is halved.
	lookEvery  = 250 * time.Millisecond
	rateGrowth = 1.0125
	rateCut    = 0.5

	// idleAfter is how long no request must have come for nobody to be in the way.
	idleAfter = 200 * time.Millisecond
	// enoughSamples is how many requests it takes to judge their latency.
	enoughSamples = 50
	// slower is by which factor requests may take longer than they do without
	// purge, if that is more than tolerable.
	slower    = 1.3
	tolerable = 2 * time.Millisecond

	// The engine is behind when this many runs overlap in its first level.
	mostReadAmp = 16

	// What has waited for floorLag is taken away at floorRate in spite of enforced
	// throughput: nobody bought that capacity, and space must come back some day.
	floorLag  = 10 * time.Minute
	floorRate = 50
)

// Traffic counts the requests that have come since the start, and those that are over
// by how long they took.
type Traffic struct {
	requests atomic.Int64
	latency  [latencyBuckets]atomic.Int64
}

// latencyBuckets is how many classes of latency there are.
const latencyBuckets = 32

// latencies counts requests by how long they took: up to 2^i microseconds.
type latencies [latencyBuckets]int64

// Begin notes that a request has come.
func (t *Traffic) Begin() { t.requests.Add(1) }

// End notes how long a request took.
func (t *Traffic) End(took time.Duration) {
	t.latency[min(bits.Len64(uint64(max(0, took.Microseconds()))), latencyBuckets-1)].Add(1)
}

func (t *Traffic) latencies() (l latencies) {
	for i := range l {
		l[i] = t.latency[i].Load()
	}
	return l
}

// quantile returns the upper bound of the latency of a share of the requests since
// an earlier moment, and how many there were.
func (l *latencies) quantile(before *latencies, share float64) (time.Duration, int64) {
	var n int64
	for i := range l {
		n += l[i] - before[i]
	}
	rank := int64(math.Ceil(share * float64(n)))
	var seen int64
	for i := range l {
		if seen += l[i] - before[i]; seen >= rank && n > 0 {
			return time.Duration(1<<i) * time.Microsecond, n
		}
	}
	return 0, n
}

// pace is the state of the rates.
type pace struct {
	db      Database
	traffic *Traffic

	mu struct {
		sync.Mutex
		rate     float64
		tokens   float64
		filledAt time.Duration

		looked    time.Duration
		requests  int64         // that had come by then
		latencies latencies     // of then
		busyAt    time.Duration // when a request was last seen
		busy      bool
		behind    bool // the engine is
		stalls    int64
		slow      bool          // requests are
		baseline  time.Duration // what requests take without purge
		purged    int64         // since the last look
	}
}

func newPace(db Database, t *Traffic) *pace {
	p := &pace{db: db, traffic: t}
	p.mu.rate = startRate * float64(runtime.GOMAXPROCS(0))
	return p
}

// look reconsiders the rate.
func (p *pace) look(now time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := &p.mu
	if !m.busy && !m.behind { // the rate does not hold yet
		m.tokens, m.filledAt = 0, now
	}
	requests := p.traffic.requests.Load()
	if requests != m.requests {
		m.busyAt = now
	}
	m.busy = m.busyAt > 0 && now-m.busyAt < idleAfter
	if now-m.looked < lookEvery {
		return
	}
	m.looked, m.requests = now, requests
	p.judge()
	switch polite := politeRate * float64(runtime.GOMAXPROCS(0)); {
	case m.behind:
		m.rate = max(leastRate, m.rate*rateCut)
	case m.slow:
		m.rate = max(min(polite, m.rate), m.rate*rateCut)
	default:
		m.rate = min(mostRate, m.rate*rateGrowth)
	}
	m.purged = 0
}

// judge decides whether the engine is behind and whether requests are slow; the
// lock is held.
func (p *pace) judge() {
	m := &p.mu
	health := p.db.Health()
	m.behind = health.Stalled || health.Stalls > m.stalls || health.ReadAmp > mostReadAmp
	m.stalls = health.Stalls
	latencies := p.traffic.latencies()
	p99, n := latencies.quantile(&m.latencies, 0.99)
	m.latencies, m.slow = latencies, false
	switch {
	case n < enoughSamples:
	case m.purged == 0:
		// A moving average over some seconds.
		m.baseline += (p99 - m.baseline) / 8
		if m.baseline == 0 {
			m.baseline = p99
		}
	case m.baseline > 0:
		m.slow = p99 > max(tolerable, time.Duration(slower*float64(m.baseline)))
	default:
		m.slow = p99 > tolerable
	}
}

// wait lets n items through at the present rate. It tells how long it took, and
// why it was no faster, if that was for a reason.
func (p *pace) wait(ctx context.Context, n int) (took time.Duration, why Cause, err error) {
	began := p.db.Elapsed()
	for {
		d := p.take(n)
		if d == 0 {
			return p.db.Elapsed() - began, p.why(), ctx.Err()
		}
		t := time.NewTimer(d)
		select {
		case <-ctx.Done():
			t.Stop()
			return p.db.Elapsed() - began, p.why(), ctx.Err()
		case <-t.C:
		}
		p.look(p.db.Elapsed())
	}
}

// why returns what keeps the rate from growing.
func (p *pace) why() Cause {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.mu.behind:
		return Engine
	case p.mu.busy && p.mu.slow:
		return Latency
	}
	return None
}

// take takes n items out of the rate, or says how long to wait.
func (p *pace) take(n int) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := &p.mu
	if !m.busy && !m.behind {
		return 0
	}
	p.fill()
	if m.tokens >= float64(n) {
		m.tokens -= float64(n)
		return 0
	}
	return max(time.Millisecond, time.Duration((float64(n)-m.tokens)/m.rate*float64(time.Second)))
}

// fill adds what the rate allows since it was last asked; the lock is held. Little
// is saved up: no more than a group.
func (p *pace) fill() {
	m := &p.mu
	now := p.db.Elapsed()
	m.tokens = min(mostBusyGroup, m.tokens+m.rate*(now-m.filledAt).Seconds())
	m.filledAt = now
}

// spent notes what was done.
func (p *pace) spent(t Target, done store.Purged) {
	if meter := p.db.Meter(t); meter != nil {
		meter.SpendLeftover(p.db.Elapsed(), done.Units)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.purged += done.Items
}

// group returns how many items to take at once.
func (p *pace) group() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.busy || p.mu.behind {
		p.fill()
		return max(busyGroup, int(p.mu.tokens))
	}
	return idleGroup
}

// allowance returns how many items of a partition may be taken away now, or what
// holds that back.
func (p *Purger) allowance(t Target) (items int, held Cause) {
	items = p.pace.group()
	p.mu.Lock()
	set := p.mu.settings.Containers[t.Container.RID.String()]
	paused := p.mu.settings.Paused || set.Paused
	taken := float64(p.record(t.Container.RID).count(p.second(), 0)) // in this second
	p.mu.Unlock()
	if paused {
		return 0, Paused
	}
	if p.db.Room() != nil {
		return 0, Disk
	}
	if set.ItemsPerSecond > 0 {
		if items = min(items, int(math.Ceil(float64(set.ItemsPerSecond)-taken))); items <= 0 {
			return 0, RateLimit
		}
	}
	meter := p.db.Meter(t)
	if meter == nil {
		return items, None
	}
	left := int(meter.Unspent(p.db.Elapsed(), leftoverShare) / itemUnits)
	if left <= 0 && p.starving(t) {
		left = int(floorRate - taken)
	}
	if left <= 0 {
		return 0, Throughput
	}
	return min(items, left), None
}

// starving reports whether something has waited for so long that it is taken away
// whatever requests leave over.
func (p *Purger) starving(t Target) bool {
	nowMs := p.o.Clock.Horizon()
	oldestMs, found, err := t.Partition.Oldest(nowMs)
	return err == nil && found && nowMs-oldestMs > floorLag.Milliseconds()
}
