// SPDX-License-Identifier: MIT

package rest

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/api"
)

func TestRoutes(t *testing.T) {
	long := strings.Repeat("x", 300)
	for _, c := range []struct {
		path string
		want route
	}{
		{"", route{}},
		{"/", route{}},
		{"///", route{}},
		{"/dbs", route{kind: api.Databases, feed: true}},
		{"/dbs/", route{kind: api.Databases, feed: true}},
		{"//dbs//", route{kind: api.Databases, feed: true}},
		{"dbs", route{kind: api.Databases, feed: true}},
		{"/dbs/d", route{kind: api.Databases, database: "d", id: "d", link: "dbs/d"}},
		{"/dbs/d/", route{kind: api.Databases, database: "d", id: "d", link: "dbs/d"}},
		{"/dbs/dbs", route{kind: api.Databases, database: "dbs", id: "dbs", link: "dbs/dbs"}},
		{"/dbs/a%20b", route{kind: api.Databases, database: "a b", id: "a b", link: "dbs/a b"}},
		{"/dbs/%C3%BC", route{kind: api.Databases, database: "ü", id: "ü", link: "dbs/ü"}},
		{"/dbs/%FF%00", route{kind: api.Databases, database: "\xff\x00", id: "\xff\x00", link: "dbs/\xff\x00"}},
		{"/dbs/a+b", route{kind: api.Databases, database: "a+b", id: "a+b", link: "dbs/a+b"}},
		{"/dbs/%25", route{kind: api.Databases, database: "%", id: "%", link: "dbs/%"}},
		{"/dbs/%2520", route{kind: api.Databases, database: "%20", id: "%20", link: "dbs/%20"}},
		{"/dbs/..", route{kind: api.Databases, database: "..", id: "..", link: "dbs/.."}},
		{"/dbs/" + long, route{kind: api.Databases, database: long, id: long, link: "dbs/" + long}},
		{"/%64bs/d", route{kind: api.Databases, database: "d", id: "d", link: "dbs/d"}},
		{"/dbs/d/colls", route{kind: api.Containers, feed: true, database: "d", link: "dbs/d"}},
		{"/dbs/colls/colls", route{kind: api.Containers, feed: true, database: "colls", link: "dbs/colls"}},
		{"/dbs/d/colls/c/", route{kind: api.Containers, database: "d", container: "c", id: "c", link: "dbs/d/colls/c"}},
		{"/dbs/d/colls/c/docs", route{kind: api.Items, feed: true, database: "d", container: "c", link: "dbs/d/colls/c"}},
		{"/dbs/d/colls/c/docs/i", route{kind: api.Items, database: "d", container: "c", id: "i", link: "dbs/d/colls/c/docs/i"}},
		{"/dbs/d/colls/c/docs/a%2Fb%2F", route{kind: api.Items, database: "d", container: "c", id: "a/b/", link: "dbs/d/colls/c/docs/a/b/"}},
		{"/dbs/d/colls/c/docs/%2F", route{kind: api.Items, database: "d", container: "c", id: "/", link: "dbs/d/colls/c/docs//"}},
		{"/dbs/d/colls/c/docs/docs", route{kind: api.Items, database: "d", container: "c", id: "docs", link: "dbs/d/colls/c/docs/docs"}},
		{"/dbs/d/colls/c/pkranges", route{kind: api.Ranges, feed: true, database: "d", container: "c", link: "dbs/d/colls/c"}},
		{"/dbs/d/colls/c/pkranges/0", route{kind: api.Ranges, database: "d", container: "c", id: "0", link: "dbs/d/colls/c/pkranges/0"}},
		{"/dbs/d/colls/c/sprocs/s", route{kind: api.Procedures, database: "d", container: "c", id: "s", link: "dbs/d/colls/c/sprocs/s"}},
		{"/dbs/d/users/u/permissions/p", route{kind: api.Permissions, database: "d", user: "u", id: "p", link: "dbs/d/users/u/permissions/p"}},
		{"/dbs/d/clientencryptionkeys/k", route{kind: api.EncryptionKeys, database: "d", id: "k", link: "dbs/d/clientencryptionkeys/k"}},
		{"/offers", route{kind: api.Offers, feed: true}},
		{"/offers/abcd/", route{kind: api.Offers, id: "abcd", link: "offers/abcd"}},
		{"/dbs/d/colls/c/operations/partitionkeydelete/", route{kind: api.PartitionKeys,
			database: "d", container: "c", id: "c", link: "dbs/d/colls/c"}},
	} {
		if got, ok := parseRoute(c.path); !ok || got != c.want {
			t.Errorf("%q is %+v, %v, want %+v", c.path, got, ok, c.want)
		}
	}
}

func TestPathsThatAddressNothing(t *testing.T) {
	h := newTestHandler(t)
	for _, path := range []string{
		"/nosuch", "/DBS", "/dbs/d/docs", "/dbs/d/nosuch", "/dbs/d/dbs/e", "/colls", "/docs/i", "/colls/c/docs",
		"/dbs//colls", "/dbs/d//colls", "/dbs/d/colls//docs", "/dbs/d/colls/c//docs",
		"/dbs/d/colls/c/docs/i/attachments", "/dbs/d/colls/c/docs/i/docs/j",
		"/dbs/d/colls/c/docs/i/j/k/l/m/n/o/p/q/r/s/t", "/dbs/d/colls/c/operations",
		"/dbs/d/colls/c/operations/nosuch", "/dbs/d/colls/c/operations/partitionkeydelete/x", "/operations/dtc",
		"/offers/a/b", "/dbs/" + strings.Repeat("x", maxPathBytes), "/media/x", "/addresses/x", "/_mayfly/nosuch", "/_mayfly/",
		"/dbs%2Fd", "/%2E%2E/dbs", "/.", "/*",
		"/" + strings.Repeat("dbs/d/", 1000),
	} {
		r, err := http.NewRequest("GET", "http://localhost"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		text := serve(h, r).failureText(t, 404, 0)
		if !strings.Contains(text, "Resource Not Found") {
			t.Errorf("%.100s: the client is told %q", path, text)
		}
	}
	// net/http refuses malformed escapes, but another server may pass them to the
	// handler.
	for _, path := range []string{"/dbs/%", "/dbs/%4", "/dbs/%zz", "/dbs/a%2", "%", "/dbs/d/colls/%G0"} {
		if rt, ok := parseRoute(path); ok {
			t.Errorf("%q is %+v, want nothing", path, rt)
		}
	}
}

// naiveRoute does what parseRoute does, without its care for speed.
func naiveRoute(escaped string) (route, bool) {
	path := strings.Trim(escaped, "/")
	if path == "" {
		return route{}, true
	}
	segments := strings.Split(path, "/")
	if len(path) > maxPathBytes || len(segments) > maxPathSegments {
		return route{}, false
	}
	var r route
	operation := false
	for i, s := range segments {
		s, err := url.PathUnescape(s)
		if err != nil || s == "" {
			return route{}, false
		}
		segments[i] = s
	}
	if n := len(segments); n == 6 && segments[2] == "colls" && segments[4] == "operations" {
		if segments[5] != "partitionkeydelete" {
			return route{}, false
		}
		segments, operation = segments[:4], true
	}
	for i := 0; i < len(segments); i += 2 {
		below := slices.IndexFunc(children[r.kind], func(kind api.Resource) bool { return kind.Word() == segments[i] })
		if below < 0 {
			return route{}, false
		}
		r.kind, r.id, r.feed = children[r.kind][below], "", true
		if i+1 < len(segments) {
			r.id, r.feed = segments[i+1], false
		}
		switch r.kind {
		case api.Databases:
			r.database = r.id
		case api.Containers:
			r.container = r.id
		case api.Users:
			r.user = r.id
		}
	}
	if r.feed {
		segments = segments[:len(segments)-1]
	}
	r.link = strings.Join(segments, "/")
	if operation {
		r.kind = api.PartitionKeys
	}
	return r, true
}

func FuzzRoute(f *testing.F) {
	for _, path := range []string{
		"", "/", "/dbs", "/dbs/d/", "//dbs//d", "/dbs/a%20b%2F%C3%BC/colls/c/docs", "/dbs/%", "/dbs/%00", "/offers/x/",
		"/dbs/d/users/u/permissions/p", "/dbs/d/colls/c/operations/partitionkeydelete", "/dbs/d/colls/c/operations/x",
		"/dbs/d/colls/c/pkranges/", "/a/b/c/d/e/f/g", "/dbs/\xff", "/%64%62%73/x", "/dbs/d/colls/docs/docs",
	} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		got, ok := parseRoute(path)
		want, wantOK := naiveRoute(path)
		if ok != wantOK || ok && got != want {
			t.Fatalf("%q is %+v, %v, want %+v, %v", path, got, ok, want, wantOK)
		}
		if !ok {
			return
		}
		again, ok := parseRoute("/" + path + "/")
		if !ok || again != got {
			t.Errorf("%q with slashes around it is %+v, %v, want %+v", path, again, ok, got)
		}
		if got.kind != api.AccountResource && got.feed != (got.id == "") {
			t.Errorf("%q: feed %v with the id %q", path, got.feed, got.id)
		}
	})
}

// methodsOf lists the methods of each resource; all others are refused.
var methodsOf = []struct {
	path    string
	allowed []string
}{
	{"/", []string{"GET"}},
	{"/dbs", []string{"GET", "POST"}},
	{"/dbs/d", []string{"GET", "DELETE"}},
	{"/dbs/d/colls", []string{"GET", "POST"}},
	{"/dbs/d/colls/c", []string{"GET", "PUT", "DELETE"}},
	{"/dbs/d/colls/c/docs", []string{"GET", "POST"}},
	{"/dbs/d/colls/c/docs/i", []string{"GET", "PUT", "DELETE", "PATCH"}},
	{"/dbs/d/colls/c/pkranges", []string{"GET"}},
	{"/dbs/d/colls/c/pkranges/0", nil},
	{"/dbs/d/colls/c/operations/partitionkeydelete", []string{"POST"}},
	{"/dbs/d/colls/c/conflicts", []string{"GET", "POST"}},
	{"/dbs/d/colls/c/conflicts/x", []string{"GET", "DELETE"}},
	{"/dbs/d/users", []string{"GET", "POST"}},
	{"/dbs/d/users/u", []string{"GET", "PUT", "DELETE"}},
	{"/dbs/d/users/u/permissions", []string{"GET", "POST"}},
	{"/dbs/d/users/u/permissions/p", []string{"GET", "PUT", "DELETE"}},
	{"/dbs/d/clientencryptionkeys", []string{"GET", "POST"}},
	{"/dbs/d/clientencryptionkeys/k", []string{"GET", "PUT"}},
	{"/offers", []string{"GET", "POST"}},
	{"/offers/x", []string{"GET", "PUT"}},
	{"/dbs/d/colls/c/udfs", []string{"GET", "POST"}},
	{"/dbs/d/colls/c/udfs/f", []string{"GET", "PUT", "DELETE"}},
	{"/dbs/d/colls/c/triggers", []string{"GET", "POST"}},
	{"/dbs/d/colls/c/triggers/t", []string{"GET", "PUT", "DELETE"}},
	{"/dbs/d/colls/c/sprocs", []string{"GET", "POST"}},
	{"/dbs/d/colls/c/sprocs/s", []string{"GET", "POST", "PUT", "DELETE"}},
}

func TestMethods(t *testing.T) {
	h := newContainer(t)
	for _, c := range methodsOf {
		for _, method := range []string{"GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE", "CONNECT", "QUERY", "get"} {
			if slices.Contains(c.allowed, method) {
				continue
			}
			a := serve(h, signedRequest(t, method, c.path, nil, pk("p")))
			if method == "HEAD" {
				if a.status != 405 || len(a.body) > 0 {
					t.Errorf("HEAD %s: status %d, %d bytes, want 405 and none", c.path, a.status, len(a.body))
				}
				continue
			}
			if text := a.failureText(t, 405, 0); !strings.Contains(text, "verb") {
				t.Errorf("%s %s: the client is told %q", method, c.path, text)
			}
		}
	}
}

// JavaScript sends the header for queries over all partition keys with every request, so
// it does not mark a query.
func TestCrossPartitionHeaderIsNoQuery(t *testing.T) {
	h := newContainer(t)
	headers := pk("p")
	headers["x-ms-documentdb-query-enablecrosspartition"] = "true"
	call(t, h, "POST", "/dbs/d/colls/c/docs", `{"id":"i","pk":"p"}`, headers, 201)
}
