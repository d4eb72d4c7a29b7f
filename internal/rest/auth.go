// SPDX-License-Identifier: MIT

// Authentication: where the credential of a request is, and what follows a failure.

package rest

import (
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mayflydb/mayfly/internal/api"
)

// authorize verifies the credential of a request. One that came by way of the explorer has
// the rights of its session, and nothing else.
func (x *exchange) authorize(rt *route) (api.Grant, error) {
	if x.signedIn {
		return api.Grant{By: x.by}, nil
	}
	g, err := x.h.authorize(x.r, rt, x.came())
	if err == api.ErrNoAuthorization && x.h.emulator && rt.kind == api.AccountResource {
		// This is how programs wait for the service's emulators.
		return api.Grant{By: api.ByReadOnlyKey}, nil
	}
	return g, err
}

// bearer verifies the key of a request for a page under /_mayfly/, or takes the rights of the
// explorer's session.
func (x *exchange) bearer() (api.Credential, error) {
	if x.signedIn {
		return x.by, nil
	}
	return x.h.bearer(x.r)
}

// authorize verifies the credential of a request.
func (h *Handler) authorize(r *http.Request, rt *route, now time.Time) (api.Grant, error) {
	p := api.Proof{
		Authorization: headerOf(r, headerAuthorization), Method: r.Method, Resource: rt.kind, Link: rt.link, MsDate: headerOf(r, "X-Ms-Date"),
	}
	if p.MsDate == "" {
		p.Date = headerOf(r, "Date")
	}
	return h.service.Keys.Authorize(&p, now)
}

// bearer verifies a key that is sent as a bearer token, for the pages under /_mayfly/.
func (h *Handler) bearer(r *http.Request) (api.Credential, error) {
	header := headerOf(r, headerAuthorization)
	if header == "" {
		return 0, api.ErrNoAuthorization
	}
	text, ok := strings.CutPrefix(header, "Bearer ")
	if !ok {
		return 0, api.ErrBadAuthorization
	}
	return h.service.Keys.Key(text)
}

func newFailureCounter() *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "mayfly_authentication_failures_total", Help: "Requests that were refused because their credential was missing or wrong.",
	}, []string{"reason"})
	for _, reason := range api.AuthenticationFailures() {
		c.WithLabelValues(reason) // so that the counter exists with value 0
	}
	return c
}

// unauthenticated counts a refused request, and delays its answer if there were many on
// its connection. It returns err.
func (x *exchange) unauthenticated(err error) error {
	x.h.Unauthenticated(err)
	conn := connOf(x.r)
	if conn == nil {
		return err // not served by a Splitter
	}
	wait := conn.failures.Add(time.Now())
	if wait > 0 && isStream(x.r) {
		wait = min(wait, maxStreamPause)
		x.w.Header()["Connection"] = []string{"close"} // once its streams have ended
	}
	if wait > 0 {
		x.spare()
		x.pause(wait)
	}
	return err
}

// spare lets the connection go for another one while it waits for a client that has shown no
// valid credential.
func (x *exchange) spare() {
	if x.known {
		return
	}
	if conn := soleConn(x.r); conn != nil {
		conn.spare()
	}
}

// Unauthenticated counts a request that was refused for its credential, on any transport.
func (h *Handler) Unauthenticated(err error) {
	h.metrics.failures.WithLabelValues(api.AuthenticationFailure(err)).Inc()
}
