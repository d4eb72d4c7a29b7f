// SPDX-License-Identifier: MIT

// The pages under /_mayfly/: Mayfly's own, beside the protocol.

package rest

import (
	"io"
	"net/http"
)

func (h *Handler) serveAdmin(w http.ResponseWriter, r *http.Request, path string) {
	switch path {
	case "health", "ready":
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"status":"ok"}`+"\n")
	default:
		http.NotFound(w, r)
	}
}
