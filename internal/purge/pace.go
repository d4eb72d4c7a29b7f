// SPDX-License-Identifier: MIT

// How fast purge works. Where throughput is enforced, purge may spend in a partition a
// part of what its requests left over in the last second. In addition, while requests
// come, there is a rate, which is halved when they take longer or the engine falls behind,
// and grows slowly otherwise. While none come, the rate holds only if the engine is behind.

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
	// leftoverShare is the part of the units left over that purge may use.
	leftoverShare = 0.8
	// itemUnits is about what purging an item costs; it determines the size of a group.
	itemUnits = 6

	// The rates while requests come, in items a second. startRate and politeRate are for
	// each processor. The rate begins at startRate. Slow requests lower it only to
	// politeRate, since they may be slow for other reasons; an engine that is behind lowers
	// it to leastRate.
	startRate  = 600
	politeRate = 600
	leastRate  = 100
	mostRate   = 50_000

	// lookEvery is how often the rate is adjusted: multiplied by rateGrowth or rateCut.
	lookEvery  = 250 * time.Millisecond
	rateGrowth = 1.0125
	rateCut    = 0.5

	// idleAfter is how long after the last request the server counts as idle.
	idleAfter = 200 * time.Millisecond
	// enoughSamples is how many requests it takes to judge their latency.
	enoughSamples = 50
	// Requests are slow if their 99th percentile is above tolerable, and above slower
	// times what it is without purge.
	slower    = 1.3
	tolerable = 2 * time.Millisecond

	// mostReadAmp is how many runs may overlap in the engine's first level; with more, the
	// engine is behind.
	mostReadAmp = 16

	// Items that have waited for floorLag are purged at floorRate even if requests leave
	// nothing over: otherwise their space might never come back.
	floorLag  = 10 * time.Minute
	floorRate = 50
)

// Traffic counts the requests since the start, and their latencies once they have ended.
type Traffic struct {
	requests atomic.Int64
	latency  [latencyBuckets]atomic.Int64
}

// latencyBuckets is how many classes of latency there are.
const latencyBuckets = 32

// latencies counts requests by how long they took: element i those of up to 2^i
// microseconds.
type latencies [latencyBuckets]int64

// Begin records that a request has come.
func (t *Traffic) Begin() { t.requests.Add(1) }

// End records how long a request took.
func (t *Traffic) End(took time.Duration) {
	t.latency[min(bits.Len64(uint64(max(0, took.Microseconds()))), latencyBuckets-1)].Add(1)
}

func (t *Traffic) latencies() (l latencies) {
	for i := range l {
		l[i] = t.latency[i].Load()
	}
	return l
}

// quantile returns a latency that the given share of the requests since before did not
// exceed, and how many requests there were.
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
		requests  int64         // at the last look
		latencies latencies     // at the last look
		busyAt    time.Duration // when a request was last seen
		busy      bool
		behind    bool // the engine is behind
		stalls    int64
		slow      bool          // requests are slow
		baseline  time.Duration // what requests take without purge
		purged    int64         // since the last look
	}
}

func newPace(db Database, t *Traffic) *pace {
	p := &pace{db: db, traffic: t}
	p.mu.rate = startRate * float64(runtime.GOMAXPROCS(0))
	return p
}

// look adjusts the rate, at most every lookEvery.
func (p *pace) look(now time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := &p.mu
	if !m.busy && !m.behind { // there was no rate until now
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

// wait waits until the rate allows n items. It returns how long that took, and what kept
// the rate low, if anything did.
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

// take takes n items from the rate and returns 0, or returns how long to wait for them.
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

// fill adds the tokens that the rate has given since the last fill; the lock is held. At
// most one group is saved up.
func (p *pace) fill() {
	m := &p.mu
	now := p.db.Elapsed()
	m.tokens = min(mostBusyGroup, m.tokens+m.rate*(now-m.filledAt).Seconds())
	m.filledAt = now
}

// spent records what was purged.
func (p *pace) spent(t Target, done store.Purged) {
	if meter := p.db.Meter(t); meter != nil {
		meter.SpendLeftover(p.db.Elapsed(), done.Units)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.purged += done.Items
}

// group returns how many items to purge at once.
func (p *pace) group() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.busy || p.mu.behind {
		p.fill()
		return max(busyGroup, int(p.mu.tokens))
	}
	return idleGroup
}

// allowance returns how many items of a partition may be purged now, or what holds purge
// back.
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

// starving reports whether an item has waited for so long that it is purged even if
// requests leave nothing over.
func (p *Purger) starving(t Target) bool {
	nowMs := p.o.Clock.Horizon()
	oldestMs, found, err := t.Partition.Oldest(nowMs)
	return err == nil && found && nowMs-oldestMs > floorLag.Milliseconds()
}
