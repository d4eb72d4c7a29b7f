// SPDX-License-Identifier: MIT

package rest

import (
	"bytes"

	"github.com/mayflydb/mayfly/internal/sql"
)

// queryResources answers a query over databases, containers, offers or functions: there are few
// of them, and all are in memory, so that one page has all rows.
func (x *exchange) queryResources(owner, kind string, bodies [][]byte) error {
	q, err := x.query()
	if err != nil {
		return err
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
	x.writeList(owner, kind, bytes.Join(rows, []byte(",")), len(rows))
	return nil
}
