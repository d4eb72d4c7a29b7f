// SPDX-License-Identifier: MIT

// User-defined functions as clients keep them. Queries call them.

package rest

import (
	"net/http"

	"github.com/mayflydb/mayfly/internal/catalog"
)

const udfFeed = "UserDefinedFunctions"

func (x *exchange) serveUDFs(rt *route) error {
	switch {
	case rt.feed && x.r.Method == http.MethodGet:
		return x.listUDFs(rt)
	case rt.feed && x.r.Method == http.MethodPost && x.isQuery():
		return x.queryUDFs(rt)
	case rt.feed && x.r.Method == http.MethodPost:
		return x.writeUDF(http.StatusCreated, func(body []byte) (*catalog.UDF, error) {
			return x.h.engine.CreateUDF(x.r.Context(), rt.database, rt.container, body)
		})
	case !rt.feed && x.r.Method == http.MethodGet:
		u, err := x.h.engine.UDF(rt.database, rt.container, rt.id)
		if err != nil {
			return err
		}
		x.writeIfModified(u.ETag, u.Body)
		return nil
	case !rt.feed && x.r.Method == http.MethodPut:
		return x.writeUDF(http.StatusOK, func(body []byte) (*catalog.UDF, error) {
			return x.h.engine.ReplaceUDF(x.r.Context(), rt.database, rt.container, rt.id, body, x.header("If-Match"))
		})
	case !rt.feed && x.r.Method == http.MethodDelete:
		if err := x.h.engine.DeleteUDF(x.r.Context(), rt.database, rt.container, rt.id, x.header("If-Match")); err != nil {
			return err
		}
		x.writeEmpty(http.StatusNoContent)
		return nil
	}
	return errMethod
}

// writeUDF passes the body to write and answers with what came of it.
func (x *exchange) writeUDF(status int, write func(body []byte) (*catalog.UDF, error)) error {
	body, done, err := x.body()
	defer done()
	if err != nil {
		return err
	}
	u, err := write(body)
	if err != nil {
		return err
	}
	x.writeResource(status, u.ETag, u.Body)
	return nil
}

func (x *exchange) listUDFs(rt *route) error {
	c, all, err := x.h.engine.UDFs(rt.database, rt.container)
	if err != nil {
		return err
	}
	return x.writeFeed(&feed{
		owner: c.RIDText, kind: udfFeed, n: len(all),
		resource: func(i int) (rid string, body []byte) { return all[i].RID, all[i].Body },
		after:    func(rid string) (int, bool) { return catalog.FirstUDFAfter(all, rid) },
	})
}

func (x *exchange) queryUDFs(rt *route) error {
	c, all, err := x.h.engine.UDFs(rt.database, rt.container)
	if err != nil {
		return err
	}
	bodies := make([][]byte, len(all))
	for i, u := range all {
		bodies[i] = u.Body
	}
	return x.queryResources(c.RIDText, udfFeed, bodies)
}
