// SPDX-License-Identifier: MIT

// Ids of items in paths, where the service's two gateways differ. The older one,
// which routes requests, takes a path apart before it verifies the signature, and
// so refuses many ids that can be created. The newer one, which computes, serves
// them all, and is what Mayfly is like unless it is told otherwise.

package rest

import (
	"net/url"
	"regexp"
	"strings"
)

// parseURL reads what a request is for. The protocol has no query strings; the
// JavaScript SDK leaves a question mark in an item's id as it is.
func parseURL(u *url.URL) (route, bool) {
	path := u.EscapedPath()
	rt, ok := parseRoute(path)
	if u.RawQuery == "" || !ok || rt.kind != typeItems || rt.feed {
		return rt, ok
	}
	return parseRoute(path + "?" + u.RawQuery)
}

var percentTriplet = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)

// admitRouted refuses an id as the routing gateway does.
func admitRouted(rt *route) error {
	switch {
	case rt.kind != typeItems || rt.feed:
		return nil
	case strings.ContainsAny(rt.id, "\r\n\t"):
		return &badRequestError{"The id in the path has a control character in it."}
	case strings.HasSuffix(rt.id, " "), strings.ContainsAny(rt.id, `/\#`), percentTriplet.MatchString(rt.id):
		return errBadAuthorization
	}
	return nil
}
