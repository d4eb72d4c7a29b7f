// SPDX-License-Identifier: MIT

package rest

import (
	"net/http"

	"github.com/mayflydb/mayfly/internal/engine"
)

// deletePartitionKey deletes all items with the partition key in the header. The body
// is empty, or of no meaning.
func (x *exchange) deletePartitionKey(rt *route) error {
	t := x.target(rt)
	t.Container = rt.id
	res, err := x.h.engine.DeletePartitionKey(x.r.Context(), &engine.Request{Target: t})
	x.setItem(&res)
	if err != nil {
		return err
	}
	x.writeEmpty(http.StatusOK)
	return nil
}
