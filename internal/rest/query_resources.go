// SPDX-License-Identifier: MIT

package rest

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/mayflydb/mayfly/internal/engine"
	"github.com/mayflydb/mayfly/internal/sql"
)

// resourceRows begins the continuation of a query over resources, which goes on with
// how many rows were told.
const resourceRows = "rows:"

// queryResources answers a query over databases, containers, offers or functions: there are few
// of them, and all are in memory, so that each page makes all rows anew.
func (x *exchange) queryResources(owner, kind string, bodies [][]byte) error {
	q, err := x.query()
	if err != nil {
		return err
	}
	most, err := x.maxItems()
	if err != nil {
		return err
	}
	if most <= 0 || most > maxFeedItems {
		most = maxFeedItems
	}
	told := uint64(0)
	if token := x.header(headerContinuation); token != "" {
		text, ok := strings.CutPrefix(token, resourceRows)
		if told, err = strconv.ParseUint(text, 10, 32); err != nil || !ok {
			return engine.ErrContinuation
		}
	}
	parsed, err := sql.Parse(q.Text)
	if err != nil {
		return err
	}
	look := x.h.engine.Watch(x.r.Context())
	p, err := sql.Compile(parsed, sql.CompileOptions{Params: q.Params, Interrupted: look})
	if err != nil {
		return err
	}
	cx := &sql.Context{NowMs: x.h.engine.Clock().Now(), Interrupted: look}
	rows, err := sql.Naive(p, bodies, cx)
	if err != nil {
		return err
	}
	first := min(int(told), len(rows))
	last := min(first+most, len(rows))
	if last < len(rows) {
		x.set(headerContinuation, resourceRows+strconv.Itoa(last))
	}
	x.writeList(owner, kind, bytes.Join(rows[first:last], []byte(",")), last-first)
	return nil
}
