// SPDX-License-Identifier: MIT

// The log of all versions, of containers whose change feed policy asks for it: a row for
// every create, replace, delete and expiry, in order, written in the same batch as the
// change itself.
//
// The bytes of a row:
//
//	0   1  version, 1
//	1   1  kind of change
//	2   8  atMs, the time of the change
//	10  8  lsn of the version before, 0 for a create
//	18  2  length of the identity
//	20  …  identity: {epk}{pk}{id}
//	…   …  image: the item that a create or replace wrote
//
// and of the row with the state of the log:
//
//	0   1  version, 1
//	1   8  lsn up to which nothing is kept
//	9  10  position in the feed, and
//	19 18  position in the expiry order, up to which all expiries are in the log
//
// Invariants:
//
// 1. Every expired item at or before those two positions has its row in the log. No other
//    expired item that is not purged has one.
// 2. Expired items stay expired (catalog.Definition.Final), so that no item is live again
//    whose expiry is in the log.

package store

import (
	"encoding/binary"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/kv"
)

const (
	logVersion    = 1
	logRowBytes   = 20
	logStateBytes = 1 + 8 + positionBytes + markBytes
	logKeyBytes   = prefixBytes + 1 + 8 + 4
)

// logKind is the kind of a change.
type logKind uint8

const (
	logCreate logKind = iota + 1
	logReplace
	logDelete
	logExpiry
)

// logState is the state of the log: which changes it has.
type logState struct {
	// From is the lsn up to which nothing is kept.
	From uint64
	// Logged are the marks up to which all expiries are in the log.
	Logged marks
}

func (s *logState) encode() []byte {
	b := append(make([]byte, 0, logStateBytes), logVersion)
	return s.Logged.append(binary.BigEndian.AppendUint64(b, s.From))
}

// logState returns the state of the log, if there is a log.
func (s stored) logState() (logState, bool, error) {
	return rowAt(s.snap, s.prefix.logStateKey(), func(e kv.Entry) (logState, error) {
		if len(e.Value) != logStateBytes || e.Value[0] != logVersion {
			return logState{}, corrupt(e.Key, "not the state of a log")
		}
		return logState{binary.BigEndian.Uint64(e.Value[1:]), decodeMarks(e.Value[9:])}, nil
	})
}

// hasExpiry reports whether the log already has the expiry of an item.
func (s *logState) hasExpiry(h *header) bool {
	return !s.Logged[h.kind()].before(h.mark())
}

// changeLog is the loop's copy of the log's state.
type changeLog struct {
	on    bool
	state logState
	dirty bool   // the state has to be written
	drop  bool   // the log has to be removed
	lsn   uint64 // of the last row
	n     uint32 // number of rows of that lsn
}

// adopt begins or ends the log, according to the container's settings.
func (l *changeLog) adopt(c *catalog.Container, m *meta) {
	on := c.AllVersions > 0
	switch {
	case on && !l.on:
		l.state, l.dirty = logState{m.LSN, m.Marks}, true
	case !on && l.on:
		l.drop = true
	}
	l.on = on
}

// flush adds a changed state of the log to the batch, or the removal of the log, whose last
// row is of lsn or earlier. A log that begins later has later rows.
func (l *changeLog) flush(b *kv.Batch, far bool, x *prefix, lsn uint64) {
	if l.drop {
		removeRange(b, far, x.appendLogKey(nil, 0, 0), x.appendLogKey(nil, lsn+1, 0))
		b.Delete(x.logStateKey(), logStateBytes)
		l.drop = false
	}
	if l.dirty && l.on {
		b.Set(x.logStateKey(), l.state.encode())
		l.dirty = false
	}
}

// logChange writes a row for a change of an item, at the present lsn, if there is a log.
func (w *writer) logChange(kind logKind, h *header, previous uint64, image []byte) {
	l := &w.log
	if !l.on {
		return
	}
	if l.lsn != w.meta.LSN {
		l.lsn, l.n = w.meta.LSN, 0
	}
	w.key = w.p.prefix.appendLogKey(w.key[:0], l.lsn, l.n)
	l.n++
	row := make([]byte, 0, logRowBytes+len(h.identity)+len(image))
	row = binary.BigEndian.AppendUint64(append(row, logVersion, byte(kind)), uint64(w.writeMs))
	row = binary.BigEndian.AppendUint64(row, previous)
	row = binary.BigEndian.AppendUint16(row, uint16(len(h.identity)))
	w.batch.Set(w.key, append(append(row, h.identity...), image...))
	w.soonestMs = min(w.soonestMs, w.writeMs+w.view.container.AllVersions.Milliseconds()+logPruneEveryMs)
}

// logExpired logs the expiry of an item, unless the log already has it.
func (w *writer) logExpired(h *header) {
	if w.log.on && !w.log.state.hasExpiry(h) {
		w.logChange(logExpiry, h, h.wroteAt().LSN, nil)
	}
}

// takeExpiryLSN gives the expiry of an item its own lsn, if it has to be logged. If a write
// replaces the expired item, the expiry has the lsn of the write instead.
func (w *writer) takeExpiryLSN(h *header) {
	if w.log.on && !w.log.state.hasExpiry(h) {
		w.meta.LSN++
	}
}

// logRow is a row of the log.
type logRow struct {
	lsn      uint64
	kind     logKind
	atMs     int64
	previous uint64
	identity []byte
	image    []byte
}

func parseLogRow(e kv.Entry) (logRow, error) {
	if len(e.Key) != logKeyBytes || len(e.Value) < logRowBytes || e.Value[0] != logVersion {
		return logRow{}, corrupt(e.Key, "not a row of the log")
	}
	r := logRow{
		lsn: binary.BigEndian.Uint64(e.Key[prefixBytes+1:]), kind: logKind(e.Value[1]),
		atMs: int64(binary.BigEndian.Uint64(e.Value[2:])), previous: binary.BigEndian.Uint64(e.Value[10:]),
	}
	end := logRowBytes + int(binary.BigEndian.Uint16(e.Value[18:]))
	if end > len(e.Value) || r.kind < logCreate || r.kind > logExpiry || len(e.Value) == end && (r.kind == logCreate || r.kind == logReplace) {
		return logRow{}, corrupt(e.Key, "a row of the log of the wrong form")
	}
	r.identity, r.image = e.Value[logRowBytes:end], e.Value[end:]
	return r, nil
}
