// SPDX-License-Identifier: MIT

package rest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
)

func TestItemIDsInPaths(t *testing.T) {
	h := newEngineHandler(t)
	pk := map[string]string{headerPartitionKey: `["a"]`}
	for _, c := range []struct {
		id     string
		routed int // what the routing gateway answers
	}{
		{"plain", 200}, {" Test", 200}, {"a b", 200}, {"a?b", 200}, {"a+b", 200}, {"100%", 200}, {"鱀", 200},
		{"Test ", 401}, {"a%20", 401}, {"%E9%B1%80", 401}, {`a\b`, 401}, {"a#b", 401},
		{"a\rb", 400}, {"a\tb", 400}, {"a\nb", 400},
	} {
		body, _ := json.Marshal(map[string]string{"id": c.id, "pk": "a"})
		h.routingGateway = false
		call(t, h, "POST", "/dbs/d/colls/c/docs", string(body), pk, 201)
		path := "/dbs/d/colls/c/docs/" + url.PathEscape(c.id)
		call(t, h, "GET", path, "", pk, 200)
		h.routingGateway = true
		call(t, h, "GET", path, "", pk, c.routed)
	}
}

// The JavaScript SDK does not escape a question mark.
func TestQuestionMarkInItemID(t *testing.T) {
	h := newEngineHandler(t)
	pk := map[string]string{headerPartitionKey: `["a"]`}
	call(t, h, "POST", "/dbs/d/colls/c/docs", `{"id":"a?b c","pk":"a"}`, pk, 201)
	r := httptest.NewRequest(http.MethodGet, "http://localhost/dbs/d/colls/c/docs/a?b%20c", nil)
	signRequest(t, r, "docs", "dbs/d/colls/c/docs/a?b c")
	r.Header.Set(headerPartitionKey, `["a"]`)
	if a := serve(h, r); a.status != 200 {
		t.Errorf("status %d: %s", a.status, a.body)
	}
	// Elsewhere a query string means nothing.
	r = httptest.NewRequest(http.MethodGet, "http://localhost/dbs/d/colls?x=y", nil)
	signRequest(t, r, "colls", "dbs/d")
	if a := serve(h, r); a.status != 200 {
		t.Errorf("a list with a query string: status %d: %s", a.status, a.body)
	}
}
