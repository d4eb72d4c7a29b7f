// SPDX-License-Identifier: MIT

// How long the log of all versions is kept. What is older than the container's
// policy says is refused at once, and its space is taken back with that of expired
// items.

package store

import (
	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/kv"
)

// logPruneEveryMs is how much time's changes leave the log at once, by one range
// delete.
const logPruneEveryMs = 60 * 1000

// logWalk finds rows of the log.
type logWalk struct {
	snap   kv.Snapshot
	prefix *prefix
}

// first returns the first row from an lsn on.
func (l logWalk) first(lsn uint64) (row logRow, found bool, err error) {
	_, upper := l.prefix.space(logSpace)
	return firstOf(scanRows(l.snap, l.prefix.appendLogKey(nil, lsn, 0), upper, parseLogRow))
}

// before returns the last lsn, of all up to the given one, before whatever happened at
// sinceMs or later.
func (l logWalk) before(lsn uint64, sinceMs int64) (uint64, error) {
	return lastBefore(lsn, sinceMs, func(lsn uint64) (uint64, int64, bool, error) {
		row, found, err := l.first(lsn)
		return row.lsn, row.atMs, found, err
	})
}

// floor returns the lsn up to which the log is too old to be read at nowMs.
func (l logWalk) floor(state *logState, lsn uint64, c *catalog.Container, nowMs int64) (uint64, error) {
	old, err := l.before(lsn, nowMs-c.AllVersions.Milliseconds()+1)
	return max(state.From, old), err
}

// planLog decides whether old rows of the log leave with a plan, and when to look
// again.
func (p *Partition) planLog(v *view, pl *plan, nowMs int64) (next int64, err error) {
	if v.container.AllVersions == 0 {
		return never, nil
	}
	walk := logWalk{v.snap, &p.prefix}
	next, err = walk.due(v.container)
	if err != nil || next > nowMs {
		return next, err
	}
	state, found, err := readLogState(v.snap, &p.prefix)
	if err != nil || !found {
		return never, err
	}
	pl.logTo, err = walk.floor(&state, v.meta.LSN, v.container, nowMs)
	return nowMs + logPruneEveryMs, err
}

// due returns when rows are to leave, never if there are none.
func (l logWalk) due(c *catalog.Container) (int64, error) {
	row, found, err := l.first(0)
	if err != nil || !found {
		return never, err
	}
	return row.atMs + c.AllVersions.Milliseconds() + logPruneEveryMs, nil
}

// pruneLog removes the rows of the log up to an lsn.
func (w *writer) pruneLog(lsn uint64) {
	if l := &w.log; l.on && lsn > l.state.From {
		w.batch.DeleteRange(w.p.prefix.appendLogKey(nil, 0, 0), w.p.prefix.appendLogKey(nil, lsn+1, 0))
		l.state.From, l.dirty = lsn, true
	}
}
