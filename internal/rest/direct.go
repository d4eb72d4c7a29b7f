// SPDX-License-Identifier: MIT

// What direct mode needs of this package: what answers requests, and what counts them.

package rest

import "github.com/mayflydb/mayfly/internal/api"

// Service returns what answers requests, on this and other transports.
func (h *Handler) Service() *api.Service { return h.service }

// Observe counts a request that another transport has answered, and has the log get its line.
func (h *Handler) Observe(c *api.Call, status int) {
	op := opOther
	if c.Row != nil {
		op = c.Row.Number
	}
	h.ended(c, op, status)
}
