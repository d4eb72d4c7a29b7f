// SPDX-License-Identifier: MIT

// How fast purge works in the background. Where throughput is enforced, it may spend in a
// partition a part of what its requests left over in the last second. In addition, while
// requests come, there is a rate. It is at least the rate at which items have expired in
// the last seconds, so that purge keeps up. Above that it is halved while requests take
// longer with purge than without, and grows otherwise. An engine that is behind with
// compactions brakes it. While no requests come, only that brake holds.

package purge

import (
	"context"
	"math"
	"runtime"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/store"
)

const (
	// leftoverShare is the part of the units left over that purge may use.
	leftoverShare = 0.8
	// itemUnits is about what purging an item costs; it determines the size of a group.
	itemUnits = 6

	// The rates while requests come, in items a second. politeRate and mostKeepUp are for
	// each processor. The rate begins at politeRate, and slow requests lower it only to
	// that. An engine that is behind brakes it down to leastRate.
	politeRate = 600
	leastRate  = 100
	mostRate   = 50_000

	// Purge keeps up with what expires: keepUp times the rate of the last second or of the
	// last deathSeconds, whichever is higher, up to mostKeepUp. So a burst that expires at
	// once is purged within deathSeconds.
	keepUp       = 1.25
	deathSeconds = 10
	mostKeepUp   = 12_500

	// While requests come, purge works for workWindow and rests for restWindow, in turn.
	// After each rest the rate is adjusted: multiplied by rateCut if requests are slow with
	// purge, and by rateGrowth if they are not and the rate was used. While the rate follows
	// what expires, a comparison changes nothing at once, and purge works for followWindow.
	workWindow   = 800 * time.Millisecond
	followWindow = 5 * workWindow
	restWindow   = 200 * time.Millisecond
	rateGrowth   = 1.25
	rateCut      = 0.5

	// lookEvery is how often the engine and the deaths are looked at.
	lookEvery = 250 * time.Millisecond

	// idleAfter is how long after the last request the server counts as idle.
	idleAfter = 200 * time.Millisecond

	// mostReadAmp is how many runs may overlap in the engine's first level; with more, the
	// engine is behind.
	mostReadAmp = 16

	// While requests come, groups are small and frequent: groupEvery apart, if purge is
	// alone. On a slow disk, where a loop commits few groups a second, they grow to keep
	// the rate. While no requests come, they are larger.
	groupEvery    = 20 * time.Millisecond
	busyGroup     = 8
	mostBusyGroup = 256
	idleGroup     = 512

	// Items that have waited for floorLag are purged at floorRate even if requests leave
	// nothing over: otherwise their space might never come back.
	floorLag  = 10 * time.Minute
	floorRate = 50
)

// pace is the state of the rates.
type pace struct {
	db      Database
	traffic *Traffic

	mu struct {
		sync.Mutex
		rate     float64 // by comparison
		brake    float64 // the part of the rate that an engine which is behind leaves
		deaths   deaths
		tokens   float64
		filledAt time.Duration

		looked   time.Duration
		requests int64         // at the last look
		busyAt   time.Duration // when a request was last seen
		busy     bool
		readAmp  int // of the engine
		behind   bool
		stalls   int64

		resting    bool
		windowAt   time.Duration // when the window began
		windowEnds time.Duration
		latencies  latencies // when the window began
		purged     int64     // in the window
		used       float64   // items a second, in the last working window
		paid       bool      // writes paid in the window: it compares nothing
		comparison comparison
		slow       bool
	}
}

func newPace(db Database, t *Traffic) *pace {
	p := &pace{db: db, traffic: t}
	p.mu.rate, p.mu.brake = perProcessor(politeRate), 1
	return p
}

func perProcessor(rate float64) float64 { return rate * processors }

// processors is how many the program began with: a server adds some for background work.
var processors = float64(runtime.GOMAXPROCS(0))

// deaths counts the items that expired in the last seconds, second s at s%deathSeconds.
type deaths struct {
	seconds [deathSeconds]int64
	last    int64 // the second that was last counted in
}

// count adds items to a second's count.
func (d *deaths) count(second, items int64) {
	for ; d.last < second; d.last++ {
		if second-d.last > deathSeconds {
			d.last = second - deathSeconds
		}
		d.seconds[(d.last+1)%deathSeconds] = 0
	}
	d.seconds[second%deathSeconds] += items
}

// rate returns how many items expire in a second, by the last ones.
func (d *deaths) rate() float64 {
	var sum, most int64
	for _, n := range d.seconds {
		sum += n
	}
	for _, s := range [2]int64{d.last, d.last + deathSeconds - 1} { // this second and the last
		most = max(most, d.seconds[s%deathSeconds])
	}
	return max(float64(sum)/deathSeconds, float64(most))
}

// died records that items have expired.
func (p *pace) died(items int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.deaths.count(int64(p.db.Elapsed()/time.Second), max(0, items))
}

// target returns the rate while requests come; the lock is held.
func (p *pace) target() float64 {
	m := &p.mu
	r := max(m.rate, p.keepUpRate())
	return max(min(r, leastRate), r*m.brake)
}

// keepUpRate returns the rate at which purge keeps up with what expires; the lock is held.
func (p *pace) keepUpRate() float64 {
	return min(keepUp*p.mu.deaths.rate(), perProcessor(mostKeepUp))
}

// limited reports whether there is a rate; the lock is held.
func (p *pace) limited() bool { return p.mu.busy || p.mu.brake < 1 }

// look follows requests and the engine. It moves from window to window.
func (p *pace) look(now time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := &p.mu
	if !p.limited() { // there was no rate until now
		m.tokens, m.filledAt = 0, now
	}
	requests := p.traffic.requests.Load()
	if requests != m.requests {
		m.busyAt = now
	}
	m.busy = m.busyAt > 0 && now-m.busyAt < idleAfter
	if now >= m.windowEnds {
		p.turnWindow(now)
	}
	if now-m.looked < lookEvery {
		return
	}
	m.looked, m.requests = now, requests
	m.deaths.count(int64(now/time.Second), 0)
	health := p.db.Health()
	m.behind = health.Stalled || health.Stalls > m.stalls || health.ReadAmp > mostReadAmp
	m.readAmp, m.stalls = health.ReadAmp, health.Stalls
	if m.behind {
		m.brake *= rateCut
	} else {
		m.brake = min(1, m.brake/rateCut)
	}
	m.brake = max(m.brake, 1.0*leastRate/mostRate)
}

// turnWindow ends a window and begins the next; the lock is held.
func (p *pace) turnWindow(now time.Duration) {
	m := &p.mu
	l := p.traffic.latencies()
	switch {
	case m.paid || m.windowEnds == 0 || now-m.windowEnds > workWindow: // or nothing was looked at
	case m.purged > 0:
		m.comparison.with.add(&l, &m.latencies)
	default:
		m.comparison.without.add(&l, &m.latencies)
	}
	if m.resting {
		p.adjust()
	} else {
		m.used = float64(m.purged) / max(restWindow, now-m.windowAt).Seconds()
	}
	m.resting = m.busy && !m.resting && m.purged > 0
	m.latencies, m.purged, m.paid, m.windowAt = l, 0, false, now
	switch {
	case m.resting:
		m.windowEnds = now + restWindow
	case p.keepUpRate() > m.rate:
		m.windowEnds = now + followWindow
	default:
		m.windowEnds = now + workWindow
	}
}

// adjust adjusts the rate after a window with purge and one without; the lock is held.
func (p *pace) adjust() {
	m := &p.mu
	m.slow = m.comparison.slow()
	switch {
	case m.slow:
		m.rate = max(min(perProcessor(politeRate), m.rate), m.rate*rateCut)
	case m.used > m.rate/2:
		m.rate = min(mostRate, m.rate*rateGrowth)
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
	if !p.limited() {
		return 0
	}
	if m.busy && m.resting {
		return max(time.Millisecond, m.windowEnds-p.db.Elapsed())
	}
	p.fill()
	if m.tokens >= float64(n) {
		m.tokens -= float64(n)
		return 0
	}
	return max(time.Millisecond, time.Duration((float64(n)-m.tokens)/p.target()*float64(time.Second)))
}

// fill adds the tokens that the rate has given since the last fill; the lock is held. At
// most one group is saved up.
func (p *pace) fill() {
	m := &p.mu
	now := p.db.Elapsed()
	m.tokens = min(mostBusyGroup, m.tokens+p.target()*(now-m.filledAt).Seconds())
	m.filledAt = now
}

// begin begins a round: time in which nothing was due has saved nothing up.
func (p *pace) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.tokens, p.mu.filledAt = 0, p.db.Elapsed()
}

// refund gives back what was taken for items that were not there.
func (p *pace) refund(items int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.tokens += float64(max(0, items))
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
	if !p.limited() {
		return idleGroup
	}
	p.fill()
	return min(mostBusyGroup, max(busyGroup, int(p.target()*groupEvery.Seconds()), int(p.mu.tokens)))
}

// allowance returns how many items of a partition may be purged now, or what holds purge
// back.
func (p *Purger) allowance(t Target) (items int, held Cause) {
	items = p.pace.group()
	if held = p.forbidden(t); held != None {
		return 0, held
	}
	p.mu.Lock()
	limit := p.mu.settings.Containers[t.Container.RID.String()].ItemsPerSecond
	taken := float64(p.record(t.Container.RID).count(p.second(), 0)) // in this second
	p.mu.Unlock()
	if limit > 0 {
		if items = min(items, int(math.Ceil(float64(limit)-taken))); items <= 0 {
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

// forbidden returns what keeps purge from a partition altogether.
func (p *Purger) forbidden(t Target) Cause {
	p.mu.Lock()
	paused := p.mu.settings.Paused || p.mu.settings.Containers[t.Container.RID.String()].Paused
	p.mu.Unlock()
	switch {
	case paused:
		return Paused
	case p.db.Room() != nil:
		return Disk
	}
	return None
}

// starving reports whether an item has waited for so long that it is purged even if
// requests leave nothing over.
func (p *Purger) starving(t Target) bool {
	nowMs := p.o.Clock.Horizon()
	oldestMs, found, err := t.Partition.Oldest(nowMs)
	return err == nil && found && nowMs-oldestMs > floorLag.Milliseconds()
}
