// SPDX-License-Identifier: MIT

// How long the log of all versions is kept. Reads refuse at once what is older than the
// container's policy allows. Purge frees its space later.

package store

import "github.com/mayflydb/mayfly/internal/catalog"

// logPruneEveryMs is the least time of changes that one range delete removes.
const logPruneEveryMs = 60 * 1000

// firstLogged returns the first row of the log from an lsn on.
func (s stored) firstLogged(lsn uint64) (row logRow, found bool, err error) {
	_, upper := s.prefix.space(logSpace)
	return firstOf(scanRows(s.snap, s.prefix.appendLogKey(nil, lsn, 0), upper, parseLogRow))
}

// loggedBefore returns the last lsn, of those up to the given one, before the first change
// at sinceMs or later.
func (s stored) loggedBefore(lsn uint64, sinceMs int64) (uint64, error) {
	return lastBefore(lsn, sinceMs, func(lsn uint64) (uint64, int64, bool, error) {
		row, found, err := s.firstLogged(lsn)
		return row.lsn, row.atMs, found, err
	})
}

// logFloor returns the lsn up to which changes are too old to be read at nowMs.
func (s stored) logFloor(state *logState, lsn uint64, c *catalog.Container, nowMs int64) (uint64, error) {
	old, err := s.loggedBefore(lsn, nowMs-c.AllVersions.Milliseconds()+1)
	return max(state.From, old), err
}

// planLog decides whether a plan removes old rows of the log, and when to look again.
func (p *Partition) planLog(v *view, pl *plan, nowMs int64) (next int64, err error) {
	if v.container.AllVersions == 0 {
		return never, nil
	}
	next, err = v.logDue(v.container)
	if err != nil || next > nowMs {
		return next, err
	}
	state, found, err := v.logState()
	if err != nil || !found {
		return never, err
	}
	pl.logTo, err = v.logFloor(&state, v.meta.LSN, v.container, nowMs)
	return nowMs + logPruneEveryMs, err
}

// logDue returns when the first rows are to be removed, never if there are none.
func (s stored) logDue(c *catalog.Container) (int64, error) {
	row, found, err := s.firstLogged(0)
	if err != nil || !found {
		return never, err
	}
	return row.atMs + c.AllVersions.Milliseconds() + logPruneEveryMs, nil
}

// pruneLog removes the rows of the log up to an lsn.
func (w *writer) pruneLog(lsn uint64) {
	if l := &w.log; l.on && lsn > l.state.From {
		removeRange(w.batch, w.p.far, w.p.prefix.appendLogKey(nil, 0, 0), w.p.prefix.appendLogKey(nil, lsn+1, 0))
		l.state.From, l.dirty = lsn, true
	}
}
