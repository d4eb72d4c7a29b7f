// SPDX-License-Identifier: MIT

// Logging expiries for the log of all versions. Purge logs an item's expiry when it removes
// the item, but readers must not depend on purge: before the log is read, all items that
// have expired by then are logged.

package store

import (
	"context"
	"errors"
	"fmt"
)

const (
	// logGroup is how many expired items a group logs, and logGroups how many groups one
	// reader waits for. The next reader logs the rest.
	logGroup  = 128
	logGroups = 32
)

// LogExpired logs the items that have expired at nowMs, or as many as a reader can wait
// for. Items that have expired only past the clock's horizon are not logged, since the log
// is not taken back.
func (p *Partition) LogExpired(ctx context.Context, nowMs int64) error {
	horizonMs, doubtMs := p.horizon()
	nowMs = min(nowMs, horizonMs)
	for range logGroups {
		pl, logged, err := p.planExpired(nowMs, doubtMs)
		if err != nil {
			return fmt.Errorf("find what has expired: %w", err)
		}
		if pl == nil || len(pl.victims) == 0 && !pl.marks.farBeyond(logged) {
			return nil
		}
		_, err = p.submit(ctx, &job{task: &task{do: pl.logExpired, under: pl.under}})
		switch {
		case errors.Is(err, errStale): // the next plan uses the new settings
		case err != nil:
			return err
		case !pl.done.More:
			return nil
		}
	}
	return nil
}

// planExpired finds expired items that are not in the log. It returns nil if there is no
// log.
func (p *Partition) planExpired(nowMs, doubtMs int64) (pl *plan, logged marks, err error) {
	v, err := p.acquire()
	if err != nil {
		return nil, logged, err
	}
	defer p.release(v)
	if v.container.AllVersions == 0 {
		return nil, logged, nil
	}
	state, found, err := v.logState()
	if err != nil || !found {
		return nil, logged, err
	}
	pl = &plan{under: v.container, lsn: v.meta.LSN, marks: state.Logged}
	_, err = p.findExpired(v, pl, nowMs, doubtMs, logGroup)
	return pl, state.Logged, err
}

// logExpired logs the items of a plan that have not changed since.
func (pl *plan) logExpired(w *writer) error {
	l := &w.log
	if !l.on {
		return nil
	}
	for i := range pl.victims { // this may fail; what follows cannot
		c := &pl.victims[i].current
		same, err := w.unchanged(pl.lsn, c)
		if err != nil {
			return err
		}
		c.live = !same || !c.header.expired(&w.view.rules, w.nowMs)
	}
	for i := range pl.victims {
		if c := &pl.victims[i].current; !c.live {
			w.takeExpiryLSN(&c.header)
			w.logExpired(&c.header)
		}
	}
	for k := range expiring {
		if l.state.Logged[k].before(pl.marks[k]) {
			l.state.Logged[k], l.dirty = pl.marks[k], true
		}
	}
	if l.dirty && w.batch.Len() == 0 { // the state alone is worth a commit
		l.flush(w.batch, w.p.far, &w.p.prefix, w.meta.LSN)
	}
	return nil
}
