// SPDX-License-Identifier: MIT

// Ids of items in paths, where the service's two gateways differ. The older one,
// which routes requests, takes a path apart before it verifies the signature, and
// so refuses many ids that can be created. The newer one, which computes, serves
// them all, and is what Mayfly is like unless it is told otherwise.

package rest

import (
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/mayflydb/mayfly/internal/api"
)

// parseURL reads what a request is for. The protocol has no query strings; the
// JavaScript SDK leaves a question mark in an item's id as it is.
func parseURL(u *url.URL) (route, bool) {
	path := u.EscapedPath()
	rt, ok := parseRoute(path)
	if u.RawQuery == "" || !ok || rt.kind != api.Items || rt.feed {
		return rt, ok
	}
	return parseRoute(path + "?" + u.RawQuery)
}

var percentTriplet = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)

// routed answers as the routing gateway does if it refuses the id, and reports
// whether it does not. Control characters it never gets to see: what is below it
// answers them, and not in JSON.
func (x *exchange) routed(rt *route) bool {
	switch {
	case rt.kind != api.Items || rt.feed:
		return true
	case strings.ContainsAny(rt.id, "\r\n\t"):
		const page = "<h2>Bad Request - Invalid URL</h2>"
		x.set(headerContentType, "text/html")
		x.set(headerContentLength, strconv.Itoa(len(page)))
		x.begin(http.StatusBadRequest)
		_, _ = x.w.Write([]byte(page))
		return false
	case strings.HasSuffix(rt.id, " "), strings.ContainsAny(rt.id, `/\#`), percentTriplet.MatchString(rt.id):
		x.writeError(errBadAuthorization)
		return false
	}
	return true
}
