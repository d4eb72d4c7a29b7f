// SPDX-License-Identifier: MIT

// Debt: what purge owes when it does not keep up with writes. While there is a levy, every
// item written adds to what is owed, and every item purged is subtracted, by whichever
// purge. Once a step is owed, Owed returns, and its caller purges that much. If the
// partition owes more than that, its groups of writes wait until a purge is ready, and
// carry it with them: so space is bounded at any load, and writes pay for it with latency.
//
// Steps are larger than groups of writes, since runs of items are removed by range.

package store

import (
	"context"
	"sync"
	"time"
)

const (
	// debtStep is how many items have to be owed before they are purged: two runs that can
	// be removed by range.
	debtStep = 2 * rangeRun
	// mostSteps is how many steps a partition may owe before its writes wait. It is more
	// than one, so that the next purge is planned while writes go on.
	mostSteps = 2
	// payWait bounds how long a group of writes waits for a purge: a purge that cannot be
	// planned, for whatever reason, must not stop writes.
	payWait = 100 * time.Millisecond
)

// Levy is what writes pay while purge is in debt. The zero value is nothing.
type Levy struct {
	// ItemsPerWrite is how many expired items are purged for each item written.
	ItemsPerWrite float64
	// Delay is how long each group of writes waits in addition, for a storage engine that
	// is behind with compactions.
	Delay time.Duration
}

// debt is what a partition owes.
type debt struct {
	// owes has a value if Owed has to look: a step is owed, or the levy has ended.
	owes chan struct{}
	// lifted has a value if the levy has ended since a group last waited.
	lifted chan struct{}

	mu struct {
		sync.Mutex
		levy Levy
		step float64 // debtStep, or less in tests
		owed float64 // in items
	}
}

// SetLevy changes the levy, from the next group of writes on. Without one nothing is owed.
func (p *Partition) SetLevy(l Levy) {
	d := &p.debt
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.levy = l
	if l.ItemsPerWrite == 0 {
		d.mu.owed = 0
		wake(d.owes)
		wake(d.lifted)
	}
}

// Owed waits until a step is owed, and returns how many items are. It returns 0 once there
// is no levy, or when ctx or the partition has ended.
func (p *Partition) Owed(ctx context.Context) int {
	d := &p.debt
	for {
		d.mu.Lock()
		levied, owed, step := d.mu.levy.ItemsPerWrite > 0, d.mu.owed, d.mu.step
		d.mu.Unlock()
		if !levied || owed >= step {
			return int(owed)
		}
		select {
		case <-d.owes:
		case <-ctx.Done():
			return 0
		case <-p.stop:
			return 0
		}
	}
}

// wake wakes the goroutine that waits for a value of c, now or next.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// settle adds what writes owe, and subtracts what was purged.
func (d *debt) settle(written int, purged int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.levy.ItemsPerWrite == 0 {
		return
	}
	owed := d.mu.owed + float64(written)*d.mu.levy.ItemsPerWrite - float64(purged)
	// What is owed beyond that is forgotten: purge was not able to run.
	d.mu.owed = min(max(owed, 0), 2*mostSteps*d.mu.step)
	if d.mu.owed >= d.mu.step {
		wake(d.owes)
	}
}

// due returns how long the next group of writes has to wait in any case, and whether it has
// to wait for a purge.
func (d *debt) due() (delay time.Duration, purge bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mu.levy.Delay, d.mu.levy.ItemsPerWrite > 0 && d.mu.owed >= mostSteps*d.mu.step
}

// carried returns the task that the next group of writes carries: one that is ready, if
// any. A group that has to pay waits for one.
func (p *Partition) carried() *job {
	delay, purge := p.debt.due()
	if delay > 0 {
		p.rest(delay)
	}
	select {
	case task := <-p.background:
		return task
	default:
	}
	if !purge {
		return nil
	}
	t := time.NewTimer(payWait)
	defer t.Stop()
	select {
	case task := <-p.background:
		return task
	case <-p.debt.lifted:
	case <-t.C:
	case <-p.stop:
	}
	return nil
}

// rest waits, unless the partition is closed.
func (p *Partition) rest(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-p.stop:
	}
}

// Backlog is what purge has to do in a partition. Unlike Usage it goes by the clock's
// horizon, as purge does: what is in doubt is not expired.
type Backlog struct {
	Usage
	// Purged is what was purged since the partition was opened. The changes of Purged and
	// Expired add up to what has expired.
	Purged Amount
}

// Backlog returns the partition's backlog.
func (p *Partition) Backlog() (Backlog, error) {
	v, err := p.acquire()
	if err != nil {
		return Backlog{}, err
	}
	defer p.release(v)
	_, cut := v.purgeable(p.horizon())
	u, err := p.usageUnder(v, cut)
	return Backlog{u, v.purged}, err
}
