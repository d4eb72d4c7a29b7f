// SPDX-License-Identifier: MIT

// The change feed in its mode of all versions and deletes: the rows of the log. A position
// is an lsn, as in the other mode.

package store

import (
	"errors"
	"strconv"

	"github.com/mayflydb/mayfly/internal/value"
)

var (
	// ErrNoVersions: the container does not keep all versions.
	ErrNoVersions = errors.New("the container does not keep all versions")
	// ErrRetention: changes after the position may have been removed already.
	ErrRetention = errors.New("all versions are not kept for so long")
)

// allVersions fills a page of all versions and deletes, which begins at a position, or now.
// It includes the expiries that have been logged (LogExpired).
func (w *changeWalk) allVersions(q Changes, nowMs int64) error {
	if err := w.begin(q); err != nil {
		return err
	}
	switch {
	case w.v.container.AllVersions == 0:
		return ErrNoVersions
	case q.Start.SinceMs > 0, q.Start.Beginning:
		return ErrRetention
	}
	state, found, err := w.v.logState()
	if err != nil {
		return err
	}
	if !found { // no write has begun the log yet
		state.From = w.v.meta.LSN
	}
	floor, err := w.v.logFloor(&state, w.v.meta.LSN, w.v.container, nowMs)
	switch {
	case err != nil:
		return err
	case w.page.Position < floor:
		return ErrRetention
	case q.MaxItems == 0:
		w.page.More = true
		return nil
	}
	return w.log()
}

// log walks along the log from the page's position on.
func (w *changeWalk) log() error {
	x := &w.p.prefix
	_, upper := x.space(logSpace)
	for row, err := range scanRows(w.v.snap, x.appendLogKey(nil, w.page.Position+1, 0), upper, parseLogRow) {
		if err == nil {
			err = w.step()
		}
		if err != nil || w.ends(row.lsn, int64(len(row.image))) {
			return err
		}
		w.page.Position = row.lsn
		wanted, err := w.wants(row.identity)
		if err != nil {
			return err
		}
		if !wanted {
			w.passed += int64(len(row.image))
			continue
		}
		if err := w.appendChange(&row); err != nil {
			return err
		}
	}
	w.page.Position = max(w.page.Position, w.v.meta.LSN)
	return nil
}

// appendChange adds a row of the log to the page.
func (w *changeWalk) appendChange(row *logRow) error {
	dst := w.page.Items
	if w.page.Count > 0 {
		dst = append(dst, ',')
	}
	switch row.kind {
	case logCreate:
		dst = appendMetadata(appendCurrent(dst, row.image, `"operationType":"create",`), row.lsn, row.atMs)
	case logReplace:
		dst = appendMetadata(appendCurrent(dst, row.image, `"operationType":"replace",`), row.lsn, row.atMs)
	default:
		dst = appendMetadata(append(dst, `{"current":{},"metadata":{"operationType":"delete",`...), row.lsn, row.atMs)
	}
	if row.kind != logCreate {
		dst = strconv.AppendUint(append(dst, `,"previousImageLSN":`...), row.previous, 10)
	}
	if row.kind == logDelete || row.kind == logExpiry {
		i, err := parseIdentity(row.identity)
		if err != nil {
			return err
		}
		dst = strconv.AppendBool(append(dst, `,"timeToLiveExpired":`...), row.kind == logExpiry)
		dst = value.AppendString(append(dst, `,"id":`...), i.id)
		dst = appendKeyObject(append(dst, `,"partitionKey":`...), w.v.container.PartitionKey.Paths, i.pk)
	}
	w.page.Items = append(dst, "}}"...)
	w.page.Count++
	return nil
}

func appendCurrent(dst, image []byte, operation string) []byte {
	dst = append(append(dst, `{"current":`...), image...)
	return append(append(dst, `,"metadata":{`...), operation...)
}

// appendKeyObject appends a partition key as an object with the names of its properties. An
// undefined level is left out.
func appendKeyObject(dst []byte, paths []value.Path, pk value.PartitionKey) []byte {
	dst = append(dst, '{')
	first := true
	for i, v := range pk {
		if !v.Defined() || i >= len(paths) {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		name := paths[i][len(paths[i])-1]
		dst = v.AppendJSON(append(value.AppendString(dst, name), ':'))
	}
	return append(dst, '}')
}
