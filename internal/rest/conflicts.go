// SPDX-License-Identifier: MIT

package rest

import (
	"net/http"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/engine"
)

// serveConflicts answers for the conflicts of a container. Writes go to one place,
// so that there are none: the list is empty, and no conflict is found.
func (x *exchange) serveConflicts(rt *route) error {
	c, err := x.h.engine.Catalog().Container(rt.database, rt.container)
	if err != nil {
		return engine.ErrOwnerNotFound
	}
	x.setOwner(c)
	switch method := x.r.Method; {
	case rt.feed && method == http.MethodGet:
		if _, err := x.maxItems(); err != nil {
			return err
		}
		x.writeList(c.RIDText, "Conflicts", nil, 0)
		return nil
	case rt.feed && method == http.MethodPost && x.isQuery():
		if x.header(headerPartitionKey) == "" && x.header(headerRange) == "" && !x.flag(headerCrossPartition) {
			return engine.ErrCrossPartition
		}
		return x.queryResources(c.RIDText, "Conflicts", nil)
	case !rt.feed && (method == http.MethodGet || method == http.MethodDelete):
		return catalog.ErrNotFound
	}
	return errMethod
}
