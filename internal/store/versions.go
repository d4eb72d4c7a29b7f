// SPDX-License-Identifier: MIT

// The log of all versions, of containers whose change feed policy asks for it: a row
// for every create, replace, delete and expiry, written in the same batch as the
// change itself, in the order of the changes.
//
// The bytes of a row:
//
//	0   1  version, 1
//	1   1  what happened
//	2   8  atMs, the moment of it
//	10  8  lsn of the version before, 0 for a create
//	18  2  length of the identity
//	20  …  identity: {epk}{pk}{id}
//	…   …  image: the item that a create or replace wrote
//
// and of the one that says how far the log goes:
//
//	0   1  version, 1
//	1   8  lsn up to which nothing is kept
//	9  10  position in the feed, and
//	19 18  position in the expiry order, up to which expired items are in the log
//
// Invariants:
//
//  1. Every expired item at or before those two positions has its row in the log,
//     and no other item that has expired but is still there.
//  2. What has expired stays so (catalog.Definition.Final), so that nothing comes
//     back to life that the log has told the end of.

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

// logKind is what happened to an item.
type logKind uint8

const (
	logCreate logKind = iota + 1
	logReplace
	logDelete
	logExpiry
)

// logState says how far the log goes.
type logState struct {
	// From is the lsn up to which nothing is kept.
	From uint64
	// Told is how far expired items were logged.
	Logged marks
}

func (s *logState) encode() []byte {
	b := append(make([]byte, 0, logStateBytes), logVersion)
	return s.Logged.append(binary.BigEndian.AppendUint64(b, s.From))
}

// logState returns how far the log goes, if there is one.
func (s stored) logState() (logState, bool, error) {
	return rowAt(s.snap, s.prefix.logStateKey(), func(e kv.Entry) (logState, error) {
		if len(e.Value) != logStateBytes || e.Value[0] != logVersion {
			return logState{}, corrupt(e.Key, "not the state of a log")
		}
		return logState{binary.BigEndian.Uint64(e.Value[1:]), decodeMarks(e.Value[9:])}, nil
	})
}

// hasExpiry reports whether the log has the expiry of an item already.
func (s *logState) hasExpiry(h *header) bool {
	return !s.Logged[kindOf(h.ttl)].before(h.mark())
}

// changeLog is what the loop knows of the log.
type changeLog struct {
	on    bool
	state logState
	dirty bool   // the state is to be written
	drop  bool   // the log is to be removed
	lsn   uint64 // of the last row
	n     uint32 // rows of that lsn
}

// adopt begins or ends the log, as the container's settings say.
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

// flush adds to the batch what has changed of the log itself.
func (l *changeLog) flush(b *kv.Batch, x *prefix) {
	if l.drop {
		lower, upper := x.space(logSpace)
		b.DeleteRange(lower, upper)
		b.Delete(x.logStateKey(), logStateBytes)
		l.drop = false
	}
	if l.dirty && l.on {
		b.Set(x.logStateKey(), l.state.encode())
		l.dirty = false
	}
}

// logChange writes what happened to an item, at the lsn that the loop has reached,
// if there is a log.
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

// logExpired writes that an item has expired, unless the log says so already.
func (w *writer) logExpired(h *header) {
	if w.log.on && !w.log.state.hasExpiry(h) {
		w.logChange(logExpiry, h, h.lsn, nil)
	}
}

// takeExpiryLSN gives the expiry of an item an lsn of its own, if it is to be logged.
// One that is found by a write which takes the item's place has that of the write.
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
