// SPDX-License-Identifier: MIT

// Package rest speaks the protocol: paths, headers, signatures, status codes
// and JSON envelopes. It decides nothing about data: a request is decoded here,
// decided in package engine, and its answer is encoded here. Every error that a
// client sees is made by one function, in error.go.
package rest

import (
	"net/http"
	"strings"
)

// Handler answers every request to the server.
type Handler struct{}

// ServeHTTP implements http.Handler. It is no ServeMux: that one redirects
// double slashes and refuses trailing ones, both of which SDKs send.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if path, ok := strings.CutPrefix(r.URL.Path, "/_mayfly/"); ok {
		h.serveAdmin(w, r, path)
		return
	}
	http.Error(w, "nothing is served here yet", http.StatusNotFound)
}
