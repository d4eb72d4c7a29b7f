// SPDX-License-Identifier: MIT

// Databases and containers over the protocol: shapes, headers, conditions, paging.

package rest

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// ridBytes decodes a rid as SDKs do.
func ridBytes(t *testing.T, text string) []byte {
	t.Helper()
	raw, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(text, "-", "/"))
	if err != nil {
		t.Fatalf("the rid %q is no base64: %v", text, err)
	}
	return raw
}

func TestDatabaseResource(t *testing.T) {
	h := newTestHandler(t)
	a := call(t, h, "POST", "/dbs/", `{"id":"a ü"}`, nil, 201)
	db := a.json(t)
	rid := db["_rid"].(string)
	if db["id"] != "a ü" || db["_self"] != "dbs/"+rid+"/" || db["_colls"] != "colls/" || db["_users"] != "users/" || db["_ts"].(float64) < 1e9 {
		t.Errorf("the database is %v", db)
	}
	if len(db) != 7 || len(ridBytes(t, rid)) != 4 {
		t.Errorf("the database has %d properties, want 7, and the rid %s", len(db), rid)
	}
	if etag := a.header.Get("etag"); etag != db["_etag"] || !strings.HasPrefix(etag, `"`) {
		t.Errorf("etag %q in the header, %v in the body", etag, db["_etag"])
	}
	if a.header.Get("x-ms-session-token") != "" {
		t.Error("a session token with a database")
	}
	for _, path := range []string{"/dbs/a%20%C3%BC", "/dbs/" + rid, "/dbs/" + rid + "/"} {
		if got := call(t, h, "GET", path, "", nil, 200); !bytes.Equal(got.body, a.body) {
			t.Errorf("GET %s: %s, want %s", path, got.body, a.body)
		}
	}
	call(t, h, "POST", "/dbs", `{"id":"a ü"}`, nil, 409).failureText(t, 409, 0)
	call(t, h, "DELETE", "/dbs/"+rid, "", map[string]string{"If-Match": `"other"`}, 412).failureText(t, 412, 0)
	if gone := call(t, h, "DELETE", "/dbs/"+rid, "", map[string]string{"If-Match": a.header.Get("etag")}, 204); len(gone.body) > 0 {
		t.Errorf("204 with the body %s", gone.body)
	}
	for _, method := range []string{"GET", "DELETE"} {
		call(t, h, method, "/dbs/"+rid, "", nil, 404).failureText(t, 404, 0)
	}
}

func TestContainerResource(t *testing.T) {
	h := newTestHandler(t)
	call(t, h, "POST", "/dbs", `{"id":"d ä"}`, nil, 201)
	db := call(t, h, "GET", "/dbs/d%20%C3%A4", "", nil, 200).json(t)["_rid"].(string)
	a := call(t, h, "POST", "/dbs/d%20%C3%A4/colls", `{"id":"c c","defaultTtl":3600,"partitionKey":{"paths":["/pk"]},"vendor":{"x":[1]}}`, nil, 201)
	c := a.json(t)
	rid := c["_rid"].(string)
	raw := ridBytes(t, rid)
	if len(raw) != 8 || raw[4]&0x80 == 0 || !bytes.Equal(raw[:4], ridBytes(t, db)) {
		t.Errorf("the container's rid is %x, its database's %x", raw, ridBytes(t, db))
	}
	if c["_self"] != "dbs/"+db+"/colls/"+rid+"/" || c["defaultTtl"] != 3600.0 || c["_docs"] != "docs/" || c["vendor"] == nil {
		t.Errorf("the container is %v", c)
	}
	for name, want := range map[string]string{
		"etag": c["_etag"].(string), "x-ms-alt-content-path": "dbs/d%20%C3%A4", "x-ms-content-path": db,
		"x-ms-documentdb-collection-index-transformation-progress": "",
		"x-ms-resource-quota": "", "x-ms-session-token": "",
	} {
		if got := a.header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for _, path := range []string{"/dbs/d%20%C3%A4/colls/c%20c", "/dbs/" + db + "/colls/" + rid, "/dbs/" + db + "/colls/c%20c/"} {
		if got := call(t, h, "GET", path, "", nil, 200); !bytes.Equal(got.body, a.body) {
			t.Errorf("GET %s: %s, want %s", path, got.body, a.body)
		}
	}
	for _, on := range []string{"True", "true"} {
		quota := call(t, h, "GET", "/dbs/"+db+"/colls/"+rid, "", map[string]string{"x-ms-documentdb-populatequotainfo": on}, 200)
		if got := quota.header.Get("x-ms-resource-quota"); !strings.Contains(got, "collectionSize=10485760;") {
			t.Errorf("quota %q", got)
		}
		if got := quota.header.Get("x-ms-documentdb-collection-index-transformation-progress"); got != "100" {
			t.Errorf("index progress %q", got)
		}
	}
	// A rid of another kind, or of another database, finds nothing.
	item := call(t, h, "POST", "/dbs/"+db+"/colls/"+rid+"/docs", `{"id":"i","pk":"p"}`, pk("p"), 201).json(t)["_rid"].(string)
	for _, path := range []string{"/dbs/" + db + "/colls/" + db, "/dbs/" + rid, "/dbs/" + db + "/colls/" + item, "/dbs/AAAAAA==/colls/" + rid} {
		call(t, h, "GET", path, "", nil, 404).failureText(t, 404, 0)
	}
}

// TestNotModified: every resource answers 304 to a client that has its version.
func TestNotModified(t *testing.T) {
	h := newContainer(t)
	call(t, h, "POST", "/dbs/d/colls/c/docs", `{"id":"i","pk":"p"}`, pk("p"), 201)
	for _, path := range []string{"/dbs/d", "/dbs/d/colls/c", "/dbs/d/colls/c/docs/i"} {
		etag := call(t, h, "GET", path, "", pk("p"), 200).header.Get("etag")
		for given, want := range map[string]int{
			etag: 304, strings.Trim(etag, `"`): 304, "*": 304,
			`"` + strings.Repeat("0", 36) + `"`: 200, "garbage": 200, strings.ToUpper(etag) + "x": 200, "\xff": 200,
		} {
			headers := pk("p")
			headers["If-None-Match"] = given
			a := call(t, h, "GET", path, "", headers, want)
			if a.header.Get("etag") != etag || (want == 304) != (len(a.body) == 0) {
				t.Errorf("GET %s unless %q: etag %q, %d bytes", path, given, a.header.Get("etag"), len(a.body))
			}
			if a.header.Get("x-ms-request-charge") == "" || a.header.Get("x-ms-activity-id") == "" {
				t.Errorf("GET %s unless %q: headers %v", path, given, a.header)
			}
		}
	}
}

func TestReplaceContainerConditions(t *testing.T) {
	h := newContainer(t)
	etag := call(t, h, "GET", "/dbs/d/colls/c", "", nil, 200).header.Get("etag")
	body := `{"id":"c","defaultTtl":60,"partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}`
	for _, stale := range []string{`"x"`, "garbage", "\xfe", strings.Repeat("z", 3000)} {
		call(t, h, "PUT", "/dbs/d/colls/c", body, map[string]string{"If-Match": stale}, 412).failureText(t, 412, 0)
		call(t, h, "DELETE", "/dbs/d/colls/c", "", map[string]string{"If-Match": stale}, 412).failureText(t, 412, 0)
	}
	a := call(t, h, "PUT", "/dbs/d/colls/c", body, map[string]string{"If-Match": etag}, 200)
	if a.json(t)["defaultTtl"] != 60.0 || a.header.Get("etag") == etag {
		t.Errorf("replaced: %s, etag %s after %s", a.body, a.header.Get("etag"), etag)
	}
	call(t, h, "PUT", "/dbs/d/colls/c", body, map[string]string{"If-Match": etag}, 412)
	call(t, h, "PUT", "/dbs/d/colls/c", body, map[string]string{"If-Match": "*"}, 200)
	call(t, h, "PUT", "/dbs/d/colls/nosuch", body, nil, 404).failureText(t, 404, 0)
}

// TestFeedPages lists databases and containers in pages of each size, while others are
// created and deleted.
func TestFeedPages(t *testing.T) {
	h := newTestHandler(t)
	for i := range 7 {
		call(t, h, "POST", "/dbs", fmt.Sprintf(`{"id":"d%d"}`, i), nil, 201)
		call(t, h, "POST", "/dbs/d0/colls", fmt.Sprintf(`{"id":"c%d","partitionKey":{"paths":["/pk"]}}`, i), nil, 201)
	}
	for _, feed := range []struct{ path, kind, prefix string }{
		{"/dbs", "Databases", "d"},
		{"/dbs/d0/colls", "DocumentCollections", "c"},
	} {
		for _, size := range []string{"", "-1", "1", "2", "3", "6", "7", "8", "1000000"} {
			ids := pageThrough(t, h, feed.path, feed.kind, size)
			want := []string{}
			for i := range 7 {
				want = append(want, fmt.Sprintf("%s%d", feed.prefix, i))
			}
			if !slices.Equal(ids, want) {
				t.Errorf("%s in pages of %q: %v, want %v", feed.path, size, ids, want)
			}
		}
	}
	first := call(t, h, "GET", "/dbs", "", map[string]string{"x-ms-max-item-count": "3"}, 200)
	call(t, h, "DELETE", "/dbs/d2", "", nil, 204) // the last of the page
	call(t, h, "DELETE", "/dbs/d4", "", nil, 204)
	call(t, h, "POST", "/dbs", `{"id":"a new one"}`, nil, 201)
	rest := call(t, h, "GET", "/dbs", "", map[string]string{"x-ms-continuation": first.header.Get("x-ms-continuation")}, 200)
	if got, want := feedIDs(t, rest, "Databases"), []string{"d3", "d5", "d6", "a new one"}; !slices.Equal(got, want) {
		t.Errorf("the second page after changes: %v, want %v", got, want)
	}
	if rest.header.Get("x-ms-continuation") != "" {
		t.Errorf("a continuation %q after the last page", rest.header.Get("x-ms-continuation"))
	}
}

// pageThrough returns the ids of all pages of a feed.
func pageThrough(t *testing.T, h *Handler, path, kind, size string) []string {
	t.Helper()
	ids, headers := []string{}, map[string]string{}
	if size != "" {
		headers["x-ms-max-item-count"] = size
	}
	for range 100 {
		a := call(t, h, "GET", path, "", headers, 200)
		page := feedIDs(t, a, kind)
		if got := a.header.Get("x-ms-item-count"); got != fmt.Sprint(len(page)) {
			t.Errorf("x-ms-item-count %q of %d", got, len(page))
		}
		ids = append(ids, page...)
		next := a.header.Get("x-ms-continuation")
		if next == "" {
			return ids
		}
		if len(page) == 0 {
			t.Fatalf("%s: an empty page that goes on", path)
		}
		headers["x-ms-continuation"] = next
	}
	t.Fatalf("%s does not end", path)
	return nil
}

func feedIDs(t *testing.T, a answer, kind string) []string {
	t.Helper()
	body := a.json(t)
	ids := []string{}
	for _, r := range body[kind].([]any) {
		ids = append(ids, r.(map[string]any)["id"].(string))
	}
	if body["_count"] != float64(len(ids)) {
		t.Errorf("_count %v of %d", body["_count"], len(ids))
	}
	return ids
}

func TestEmptyFeeds(t *testing.T) {
	h := newTestHandler(t)
	if got := string(call(t, h, "GET", "/dbs", "", nil, 200).body); got != `{"_rid":"","Databases":[],"_count":0}` {
		t.Errorf("no databases: %s", got)
	}
	rid := call(t, h, "POST", "/dbs", `{"id":"d"}`, nil, 201).json(t)["_rid"].(string)
	if got, want := string(call(t, h, "GET", "/dbs/d/colls", "", nil, 200).body), `{"_rid":"`+rid+`","DocumentCollections":[],"_count":0}`; got != want {
		t.Errorf("no containers: %s, want %s", got, want)
	}
	call(t, h, "GET", "/dbs/nosuch/colls", "", nil, 404).failureText(t, 404, 0)
}

// Names of every kind go out in a header and can be decoded there.
func TestNamesInHeaders(t *testing.T) {
	h := newTestHandler(t)
	for _, name := range []string{"plain-1_a.b~", "with space", "ü", "日本", "100%", "%41", "a+b", "a\nb", "\x01", "a:b@c", `"`, "😀"} {
		body := quoted(name)
		call(t, h, "POST", "/dbs", `{"id":`+body+`}`, nil, 201)
		path := "/dbs/" + url.PathEscape(name)
		call(t, h, "POST", path+"/colls", `{"id":`+body+`,"partitionKey":{"paths":["/pk"]}}`, nil, 201)
		a := call(t, h, "POST", path+"/colls/"+url.PathEscape(name)+"/docs", `{"id":"i","pk":"p"}`, pk("p"), 201)
		sent := a.header.Get("x-ms-alt-content-path")
		got, err := url.PathUnescape(sent)
		if want := "dbs/" + name + "/colls/" + name; err != nil || got != want {
			t.Errorf("the path %q decodes to %q, %v, want %q", sent, got, err, want)
		}
		if !printable(sent) {
			t.Errorf("the header %q is not printable", sent)
		}
	}
}

// TestResourceQueriesPage: queries over databases, containers, offers, users, permissions
// and scripts come in pages of the requested length.
func TestResourceQueriesPage(t *testing.T) {
	h := newContainer(t)
	create := func(path string, body string, n int) {
		for i := range n {
			call(t, h, "POST", path, fmt.Sprintf(body, i), nil, 201)
		}
	}
	create("/dbs", `{"id":"x%d"}`, 4)
	create("/dbs/d/colls", `{"id":"x%d","partitionKey":{"paths":["/pk"]}}`, 4)
	create("/dbs/d/users", `{"id":"x%d"}`, 5)
	create("/dbs/d/users/x0/permissions", `{"id":"x%d","permissionMode":"Read","resource":"dbs/d/colls/x%[1]d"}`, 4)
	create("/dbs/d/colls/c/udfs", `{"id":"x%d","body":"function(){}"}`, 5)
	for path, kind := range map[string]string{
		"/dbs": "Databases", "/dbs/d/colls": "DocumentCollections", "/offers": "Offers", "/dbs/d/users": "Users",
		"/dbs/d/users/x0/permissions": "Permissions", "/dbs/d/colls/c/udfs": "UserDefinedFunctions",
	} {
		rows := func(most, token string) (ids []any, next string) {
			headers := map[string]string{"Content-Type": "application/query+json", "X-Ms-Documentdb-Isquery": "True", "X-Ms-Max-Item-Count": most}
			if token != "" {
				headers["X-Ms-Continuation"] = token
			}
			a := call(t, h, "POST", path, `{"query":"SELECT VALUE c.id FROM c ORDER BY c.id"}`, headers, 200)
			return a.json(t)[kind].([]any), a.header.Get("x-ms-continuation")
		}
		all, next := rows("-1", "")
		if next != "" || len(all) < 4 {
			t.Errorf("%s: %d rows, and then %q", path, len(all), next)
		}
		var paged []any
		for more := true; more; more = next != "" {
			var page []any
			if page, next = rows("2", next); len(page) == 0 || len(page) > 2 {
				t.Fatalf("%s: a page of %d rows", path, len(page))
			}
			paged = append(paged, page...)
		}
		if fmt.Sprint(paged) != fmt.Sprint(all) {
			t.Errorf("%s: got %v in pages, want %v", path, paged, all)
		}
		for _, token := range []string{"-tEGAI2wSgAoAAAAAAAAAA==#count3", "rows:", "rows:-1", "rows:x", "7"} {
			headers := map[string]string{"Content-Type": "application/query+json", "X-Ms-Continuation": token}
			call(t, h, "POST", path, `{"query":"SELECT * FROM c"}`, headers, 400).failureText(t, 400, 0)
		}
	}
}
