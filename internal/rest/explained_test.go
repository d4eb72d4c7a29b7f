// SPDX-License-Identifier: MIT

// Errors that say what to do next.

package rest

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/api"
)

// An answer with 404 names what is missing: the database, the container, or the item.
func TestMissingResourcesAreNamed(t *testing.T) {
	h := newContainer(t)
	call(t, h, "POST", "/dbs/d/users", `{"id":"ada"}`, nil, 201)
	query := map[string]string{"Content-Type": "application/query+json", "X-Ms-Documentdb-Isquery": "true", "X-Ms-Documentdb-Query-Enablecrosspartition": "true"}
	for _, c := range []struct {
		method, path, body string
		headers            map[string]string
		subStatus          int
		text               string
	}{
		{"GET", "/dbs/shop", "", nil, 0, "There is no database 'shop'."},
		{"GET", "/dbs/shop/colls/c", "", nil, 0, "There is no database 'shop'."},
		{"POST", "/dbs/shop/colls", `{"id":"c","partitionKey":{"paths":["/pk"]}}`, nil, 0, "There is no database 'shop'."},
		{"GET", "/dbs/shop/colls/c/docs/i", "", pk("p"), 1003, "There is no database 'shop'."},
		{"GET", "/dbs/d/colls/carts", "", nil, 0, "There is no container 'carts' in the database 'd'."},
		{"DELETE", "/dbs/d/colls/carts", "", nil, 0, "There is no container 'carts' in the database 'd'."},
		{"POST", "/dbs/d/colls/carts/docs", `{"id":"i","pk":"p"}`, pk("p"), 1003, "There is no container 'carts' in the database 'd'."},
		{"POST", "/dbs/d/colls/carts/docs", `{"query":"SELECT * FROM c"}`, query, 1003, "There is no container 'carts' in the database 'd'."},
		{"GET", "/dbs/d/colls/c/docs/i", "", pk("p"), 0, `There is no item 'i' with the partition key ["p"] in the container 'c': it was never written, was deleted, or has expired.`},
		{"DELETE", "/dbs/d/colls/c/docs/i", "", pk("p"), 0, `There is no item 'i' with the partition key ["p"] in the container 'c'`},
		{"GET", "/dbs/d/users/bob", "", nil, 0, "There is no user 'bob' in the database 'd'."},
		{"GET", "/dbs/d/users/bob/permissions/p", "", nil, 0, "There is no user 'bob' in the database 'd'."},
		{"GET", "/dbs/d/users/ada/permissions/p", "", nil, 0, "There is no permission 'p'."},
		{"GET", "/dbs/d/colls/c/sprocs/s", "", nil, 0, "There is no procedure 's'."},
	} {
		a := call(t, h, c.method, c.path, c.body, c.headers, 404)
		text := a.failureText(t, 404, c.subStatus)
		if !strings.Contains(text, "Learn more: https://aka.ms/cosmosdb-tsg-not-found. "+c.text) {
			t.Errorf("%s %s: the client is told %q, want %q in it", c.method, c.path, text, c.text)
		}
	}
	long := call(t, h, "GET", "/dbs/d/colls/c/docs/"+strings.Repeat("x", 900), "", pk("p"), 404).failureText(t, 404, 0)
	if len(long) > 700 {
		t.Errorf("a long id is quoted in %d bytes", len(long))
	}
}

// A wrong signature is answered with the text that the server has signed, as in the service,
// and with a hint if the client has the emulators' key where the server has another.
func TestWrongSignaturesAreExplained(t *testing.T) {
	const own = "YSBrZXkgb2Ygb3VyIG93biwgMzIgYnl0ZXMgbG9uZyEhISE="
	h := newTestHandlerWith(t, testHandlerOptions{keys: []string{own}})
	r := signedRequest(t, "GET", "/dbs/d/colls/c", nil, nil) // with the well-known key
	date := r.Header.Get("x-ms-date")
	text := serve(h, r).failureText(t, 401, 0)
	want := "Server used the following payload to sign: 'get\ncolls\ndbs/d/colls/c\n" + strings.ToLower(date) + "\n\n'"
	if !strings.HasPrefix(text, api.ErrBadAuthorization.Error()) || !strings.Contains(text, want) || !strings.Contains(text, "well-known key of the emulators") {
		t.Errorf("the client is told %q, want %q and the hint in it", text, want)
	}
	r.Header.Set("Authorization", masterToken(clientSignature(t, testKey, "POST", "colls", "dbs/d/colls/c", date, "")))
	if text := serve(h, r).failureText(t, 401, 0); !strings.Contains(text, want) || strings.Contains(text, "well-known") {
		t.Errorf("the client is told %q", text)
	}
	r = signedRequest(t, "GET", "/dbs/d/colls/c/docs/"+strings.Repeat("y", 5000), nil, nil)
	if text := serve(h, r).failureText(t, 401, 0); len(text) > 2000 {
		t.Errorf("a long path is quoted in %d bytes", len(text))
	}
	if n := scrapeOf(t, newTestHandler(t))[`mayfly_authentication_failures_total{reason="wrong"}`]; n != 0 {
		t.Errorf("%v failures are counted on a fresh server", n)
	}
}

// An order without its composite index is refused with that index, which can be taken as it
// is: with it the query is answered.
func TestMissingCompositeIndexIsNamed(t *testing.T) {
	h := newContainer(t)
	ask := func(status int) answer {
		t.Helper()
		return call(t, h, "POST", "/dbs/d/colls/c/docs", `{"query":"SELECT * FROM c ORDER BY c.a, c[\"b c\"].d DESC"}`, map[string]string{
			"Content-Type": "application/query+json", "X-Ms-Documentdb-Isquery": "true", "X-Ms-Documentdb-Partitionkey": `["p"]`,
		}, status)
	}
	text := ask(400).failureText(t, 400, 0)
	_, index, found := strings.Cut(text, "indexing policy: ")
	if !found || !json.Valid([]byte(index)) || !strings.Contains(text, "does not have a corresponding composite index") {
		t.Fatalf("the client is told %q", text)
	}
	call(t, h, "PUT", "/dbs/d/colls/c", `{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},"indexingPolicy":{"compositeIndexes":[`+index+`]}}`, nil, 200)
	ask(200)
}
