// SPDX-License-Identifier: MIT

// Ids of items in paths, where the service's two gateways differ. The older routing
// gateway parses a path before it verifies the signature, and so refuses many ids that
// can be created. The newer compute gateway serves them all. Mayfly behaves like the
// newer one unless RoutingGateway is set.

package rest

import (
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/mayflydb/mayfly/internal/api"
)

// parseURL parses the path of a request. The protocol has no query strings, but the
// JavaScript SDK does not escape a question mark in an item's id.
func parseURL(u *url.URL) (route, bool) {
	path := u.EscapedPath()
	rt, ok := parseRoute(path)
	if u.RawQuery == "" || !ok || rt.kind != api.Items || rt.feed {
		return rt, ok
	}
	return parseRoute(path + "?" + u.RawQuery)
}

var percentTriplet = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)

var errInvalidURL = api.Refuse(400, 0, "Invalid URL")

// routed refuses an id that the routing gateway would not serve. Control characters never
// reach that gateway: the layer in front of it refuses them, and not in JSON.
func (x *exchange) routed(rt *route) error {
	switch {
	case rt.kind != api.Items || rt.feed:
		return nil
	case strings.ContainsAny(rt.id, "\r\n\t"):
		const page = "<h2>Bad Request - Invalid URL</h2>"
		x.set(headerContentType, "text/html")
		x.set(headerContentLength, strconv.Itoa(len(page)))
		x.begin(http.StatusBadRequest)
		_, _ = x.w.Write([]byte(page))
		return errInvalidURL
	case strings.HasSuffix(rt.id, " "), strings.ContainsAny(rt.id, `/\#`), percentTriplet.MatchString(rt.id):
		return api.ErrBadAuthorization
	}
	return nil
}
