// SPDX-License-Identifier: MIT

// Telling the log of all versions who has expired. Purge does so when it takes an
// item away, but nobody should have to wait for it: whoever reads the log has the
// items logged first that have expired by then.

package store

import (
	"context"
	"errors"
	"fmt"
)

const (
	// logGroup is how many expired items are logged at once, and logGroups how often
	// that is done for one reader: the others come with the next.
	logGroup  = 128
	logGroups = 32
)

// LogExpired makes sure that what has expired at nowMs is in the log of all versions,
// or as much of it as a reader can wait for. What is not surely expired, by the clock's
// horizon, is not told: what the log has told is not taken back.
func (p *Partition) LogExpired(ctx context.Context, nowMs int64) error {
	horizonMs, doubtMs := p.horizon()
	nowMs = min(nowMs, horizonMs)
	for range logGroups {
		pl, marks, err := p.planExpired(nowMs, doubtMs)
		if err != nil {
			return fmt.Errorf("find what has expired: %w", err)
		}
		if pl == nil || len(pl.victims) == 0 && !pl.feed.farBeyond(marks) {
			return nil
		}
		_, err = p.submit(ctx, &job{expired: pl, done: make(chan struct{})})
		switch {
		case errors.Is(err, errStale): // the next plan goes by the new settings
		case err != nil:
			return err
		case !pl.done.More:
			return nil
		}
	}
	return nil
}

// planExpired finds expired items that are not in the log. It returns nil if there is
// no log.
func (p *Partition) planExpired(nowMs, doubtMs int64) (pl *plan, marks position, err error) {
	v, err := p.acquire()
	if err != nil {
		return nil, position{}, err
	}
	defer p.release(v)
	if v.container.AllVersions == 0 {
		return nil, position{}, nil
	}
	state, found, err := readLogState(v.snap, &p.prefix)
	if err != nil || !found {
		return nil, position{}, err
	}
	pl = &plan{epoch: v.container.Epoch, lsn: v.meta.LSN, feed: state.Feed, own: state.Own}
	surely := v.rules.surely(nowMs, doubtMs)
	walk := deathWalk{v.snap, &p.prefix, &surely}
	cut := surely.cutsAt(nowMs)
	feed, _, err := walk.feed(cut, pl, logGroup)
	if err != nil {
		return nil, position{}, err
	}
	own, _, err := walk.own(cut, pl, logGroup)
	if err != nil {
		return nil, position{}, err
	}
	pl.choose(feed, own, logGroup)
	return pl, state.Feed, p.readVictims(v, pl)
}

// logExpiredItems logs the items of a plan, as far as they are still as they were.
func (w *writer) logExpiredItems(pl *plan) error {
	if pl.epoch != w.view.container.Epoch {
		return errStale
	}
	l := &w.log
	if !l.on {
		return nil
	}
	for i := range pl.victims { // nothing is written before all of this has succeeded
		c := &pl.victims[i].current
		same, err := w.unchanged(pl.lsn, c)
		if err != nil {
			return err
		}
		c.live = !same || !c.header.expired(&w.view.rules, w.nowMs)
	}
	for i := range pl.victims {
		if c := &pl.victims[i].current; !c.live {
			w.stepExpired(&c.header)
			w.logExpired(&c.header)
		}
	}
	if before(l.state.Feed, pl.feed) {
		l.state.Feed, l.dirty = pl.feed, true
	}
	if l.state.Own.before(pl.own) {
		l.state.Own, l.dirty = pl.own, true
	}
	if l.dirty && w.batch.Len() == 0 { // the state alone is worth a commit
		l.flush(w.batch, &w.p.prefix)
	}
	return nil
}
