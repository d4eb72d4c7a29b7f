// SPDX-License-Identifier: MIT

// Debt: a bound for what expired items may take. Purge looks at the backlog of each
// partition that is due, a few times a second. While that is near the limit, writes carry
// purges with them (store/debt.go): the more, the nearer it is, up to two items for each
// item written, so that the backlog shrinks at any load. What the background purges counts
// as paid, so writes wait only if it does not keep up. While purge may not run, nobody
// pays.

package purge

import (
	"context"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/ru"
	"github.com/mayflydb/mayfly/internal/store"
)

const (
	// DefaultDebt is how many bytes the expired items of a container may take, if its live
	// items take less.
	DefaultDebt = 256 << 20
	// Writes begin to pay at payFrom of the limit, and pay mostPerWrite items for each item
	// written at the limit.
	payFrom      = 0.75
	mostPerWrite = 2
	// paidGroup is the most that is paid at once.
	paidGroup = 512

	// While the engine is behind, groups of writes that pay wait for delayPerRun for each
	// run above mostReadAmp, up to mostDelay: tombstones must not bring the engine to
	// refuse writes.
	delayPerRun = 2 * time.Millisecond
	mostDelay   = 20 * time.Millisecond

	// unseenAfter is after how long without a look at a partition its levy ends: nothing
	// is due there. calmAfter is for how long nobody must have paid for the log to say so.
	unseenAfter = 2 * time.Second
	calmAfter   = 10 * time.Second
)

// Debt is how far the expired items of a container exceed the space that they may take.
type Debt struct {
	// Limit is the size of the backlog from which on writes pay.
	Limit int64 `json:"limitBytes"`
	Bytes int64 `json:"bytes"`
	// ItemsPerWrite is how many expired items each item written takes with it: the most of
	// all partitions. PaidItems is how many were purged like that since the start.
	ItemsPerWrite float64 `json:"itemsPerWrite"`
	PaidItems     int64   `json:"paidItems"`
}

// account is what is known of the backlog of a partition. Only purge's goroutine uses it.
type account struct {
	target  Target
	at      time.Duration // of the last look
	backlog store.Backlog
	levy    store.Levy
	paidAt  time.Duration // when there was last a levy
	logged  bool          // that writes pay
	payer   chan struct{} // closed when its goroutine has ended; nil if there is none
}

// limitOf returns from which size of the backlog on writes pay in a partition, and at which
// they pay most.
func (p *Purger) limitOf(live int64, partitions int) (from, most int64) {
	most = max(live, p.o.Debt/int64(partitions), 1)
	return int64(payFrom * float64(most)), most
}

// DebtOf returns the debt of a container with the backlog of each of its partitions.
func (p *Purger) DebtOf(rid catalog.ContainerRID, usage []store.Usage) Debt {
	var d Debt
	for _, u := range usage {
		from, _ := p.limitOf(u.Live.Bytes, len(usage))
		d.Limit += from
		d.Bytes += max(0, u.Expired.Bytes-from)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.mu.containers[rid]; r != nil {
		d.PaidItems = r.paid
		for _, itemsPerWrite := range r.levies {
			d.ItemsPerWrite = max(d.ItemsPerWrite, itemsPerWrite)
		}
	}
	return d
}

// assess looks at the backlogs of the partitions that are due, for a quantum at most.
func (p *Purger) assess(ctx context.Context, targets []Target) {
	began := p.db.Elapsed()
	for _, t := range targets {
		a := p.accounts[t.Partition]
		if a == nil {
			a = &account{target: t}
			p.accounts[t.Partition] = a
		}
		now := p.db.Elapsed()
		if a.at > 0 && now-a.at < lookEvery {
			continue
		}
		b, err := t.Partition.Backlog()
		if err != nil {
			p.report(ctx, t, "expired items cannot be counted", err)
			continue
		}
		if a.at == 0 { // nothing was due here: all that is expired has died since
			a.backlog.Purged = b.Purged
		}
		p.pace.died(b.Expired.Items + b.Purged.Items - a.backlog.Expired.Items - a.backlog.Purged.Items)
		a.target, a.at, a.backlog = t, now, b
		p.charge(ctx, a, p.levyFor(a))
		if now-began > quantum {
			break
		}
	}
	for partition, a := range p.accounts {
		if now := p.db.Elapsed(); now-a.at > unseenAfter {
			p.charge(ctx, a, store.Levy{})
			if !a.logged {
				delete(p.accounts, partition)
			}
		}
	}
}

// levyFor returns what writes to a partition have to pay.
func (p *Purger) levyFor(a *account) store.Levy {
	t := a.target
	from, most := p.limitOf(a.backlog.Live.Bytes, len(t.Container.Ranges))
	above := a.backlog.Expired.Bytes - from
	if above <= 0 || p.forbidden(t) != None || p.hasLimit(t) {
		return store.Levy{}
	}
	share := min(1, float64(above)/float64(max(1, most-from)))
	return store.Levy{ItemsPerWrite: mostPerWrite * share, Delay: p.pace.delay()}
}

// hasLimit reports whether an operator has limited the rate in t's container: then the
// backlog is what the operator accepts.
func (p *Purger) hasLimit(t Target) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.settings.Containers[t.Container.RID.String()].ItemsPerSecond > 0
}

// delay returns how long groups of writes that pay wait for the engine.
func (p *pace) delay() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return min(mostDelay, delayPerRun*time.Duration(max(0, p.mu.readAmp-mostReadAmp)))
}

// charge sets the levy of a partition, and sees to it that what is owed is paid.
func (p *Purger) charge(ctx context.Context, a *account, l store.Levy) {
	if l == (store.Levy{}) && a.levy == l && !a.logged {
		return
	}
	t := a.target
	t.Partition.SetLevy(l)
	a.levy = l
	p.mu.Lock()
	p.record(t.Container.RID).levied(t.Index, l.ItemsPerWrite)
	p.mu.Unlock()
	p.announce(a)
	if a.payer != nil {
		select {
		case <-a.payer: // it has ended
			a.payer = nil
		default:
		}
	}
	if l.ItemsPerWrite > 0 && a.payer == nil {
		ended := make(chan struct{})
		a.payer = ended
		p.payers.Go(func() {
			defer close(ended)
			p.pay(ctx, t)
		})
	}
}

// announce logs when writes begin to pay, and when they have not paid for a while.
func (p *Purger) announce(a *account) {
	now, t := p.db.Elapsed(), a.target
	log := p.o.Logger.With("container", t.Container.ID, "database", t.Container.DatabaseID, "partition", t.Index,
		"expiredBytes", a.backlog.Expired.Bytes, "liveBytes", a.backlog.Live.Bytes)
	switch {
	case a.levy.ItemsPerWrite > 0:
		a.paidAt = now
		if !a.logged {
			log.Warn("expired items take more space than they may: writes carry purges with them, and wait for them")
			a.logged = true
		}
	case a.logged && now-a.paidAt > calmAfter:
		log.Info("expired items take no more space than they may: writes carry no purges")
		a.logged = false
	}
}

// pay purges what writes to a partition owe, until they owe nothing.
func (p *Purger) pay(ctx context.Context, t Target) {
	for {
		owed := t.Partition.Owed(ctx)
		if owed == 0 {
			return
		}
		done, err := p.payOnce(ctx, t, min(owed, paidGroup))
		p.report(ctx, t, "expired items cannot be purged", err)
		if done.Items == 0 {
			// Writes must not wait for what does not come. The next look sets the levy again
			// if there is a reason.
			t.Partition.SetLevy(store.Levy{})
			return
		}
	}
}

// payOnce purges items that writes owe, unless something keeps purge from it.
func (p *Purger) payOnce(ctx context.Context, t Target, items int) (store.Purged, error) {
	p.turns.RLock()
	defer p.turns.RUnlock()
	if cause := p.forbidden(t); cause != None {
		p.held(t, cause)
		return store.Purged{}, nil
	}
	done, err := t.Partition.Purge(ctx, store.Purge{MaxItems: items, Cause: ru.Debt, PruneMs: p.pruneMs()})
	if err != nil {
		return done, err
	}
	p.did(t, done)
	p.pace.paid()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.record(t.Container.RID).paid += done.Items
	return done, nil
}

// paid records that writes paid: the window does not show what the background does to
// requests.
func (p *pace) paid() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.paid = true
}
