// SPDX-License-Identifier: MIT

package rest

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// Applications and the SDKs' diagnostics read how long the server took. Every answer of a
// partition has it, errors included.
func TestRequestDuration(t *testing.T) {
	h := newContainer(t)
	const items = "/dbs/d/colls/c/docs"
	query := with(pk("p"), "Content-Type", "application/query+json")
	for _, c := range []struct {
		method, path, body string
		headers            map[string]string
		status             int
	}{
		{"POST", items, `{"id":"i","pk":"p"}`, pk("p"), 201},
		{"GET", items + "/i", "", pk("p"), 200},
		{"GET", items + "/nosuch", "", pk("p"), 404},
		{"POST", items, `{"id":"i","pk":"p"}`, pk("p"), 409},
		{"POST", items, `{"query":"SELECT * FROM c"}`, query, 200},
		{"GET", items, "", nil, 200},
		{"GET", items, "", map[string]string{"A-IM": "Incremental feed"}, 200},
		{"DELETE", items + "/i", "", pk("p"), 204},
	} {
		a := call(t, h, c.method, c.path, c.body, c.headers, c.status)
		ms, err := strconv.ParseFloat(a.header.Get("x-ms-request-duration-ms"), 64)
		if err != nil || ms <= 0 || ms > 60_000 {
			t.Errorf("%s %s took %q ms", c.method, c.path, a.header.Get("x-ms-request-duration-ms"))
		}
	}
}

// A client learns the position from a read that finds nothing, also in a container that
// was never written to.
func TestNotFoundTellsThePosition(t *testing.T) {
	h := newContainer(t)
	for _, method := range []string{"GET", "DELETE"} {
		a := call(t, h, method, "/dbs/d/colls/c/docs/i", "", pk("p"), 404)
		for name, want := range map[string]string{"x-ms-session-token": "0:-1#0", "lsn": "0", "x-ms-documentdb-partitionkeyrangeid": "0"} {
			if got := a.header.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", method, name, got, want)
			}
		}
	}
	// An answer that no partition gave has no position.
	a := call(t, h, "GET", "/dbs/d/colls/c/docs/i", "", nil, 400)
	if got := a.header.Get("x-ms-session-token"); got != "" {
		t.Errorf("a read without a partition key tells the session token %q", got)
	}
}

// Answers with the account and other metadata have their address. The account has a quota
// for attachments, which the JavaScript SDK shows.
func TestGatewayHeaders(t *testing.T) {
	h := newContainer(t)
	call(t, h, "POST", udfs, udfBody("f", "x => x"), nil, 201)
	for path, want := range map[string]string{
		"/": "http://localhost/", "/dbs/d": "http://localhost/dbs/d", "/dbs/d/colls/c/": "http://localhost/dbs/d/colls/c/",
		udfs + "/f": "http://localhost" + udfs + "/f",
	} {
		if got := call(t, h, "GET", path, "", nil, 200).header.Get("Content-Location"); got != want {
			t.Errorf("%s has the Content-Location %q, want %q", path, got, want)
		}
	}
	account := call(t, h, "GET", "/", "", nil, 200).header
	for name, want := range map[string]string{"x-ms-max-media-storage-usage-mb": "10240", "x-ms-media-storage-usage-mb": "0"} {
		if got := account.Get(name); got != want {
			t.Errorf("the account's %s is %q, want %q", name, got, want)
		}
	}
}

// Answers about a script name its container, and how many scripts of its kind there are
// and may be.
func TestScriptQuota(t *testing.T) {
	h := newContainer(t)
	container := call(t, h, "GET", "/dbs/d/colls/c", "", nil, 200).json(t)["_rid"]
	for _, c := range []struct{ path, body, kind, quota string }{
		{udfs, udfBody("f", "x => x"), "functions", "50"},
		{"/dbs/d/colls/c/sprocs", udfBody("f", "x => x"), "storedProcedures", "100"},
		{"/dbs/d/colls/c/triggers", `{"id":"f","body":"x => x","triggerType":"Pre","triggerOperation":"All"}`, "triggers", "50"},
	} {
		for _, a := range []struct {
			answer
			used string
		}{
			{call(t, h, "POST", c.path, c.body, nil, 201), "1"},
			{call(t, h, "POST", c.path, strings.Replace(c.body, `"f"`, `"g"`, 1), nil, 201), "2"},
			{call(t, h, "GET", c.path+"/f", "", nil, 200), "2"},
			{call(t, h, "PUT", c.path+"/f", c.body, nil, 200), "2"},
		} {
			got := a.header
			if got.Get("x-ms-content-path") != container || got.Get("x-ms-alt-content-path") != "dbs/d/colls/c" {
				t.Errorf("%s: content path %q, %q", c.path, got.Get("x-ms-content-path"), got.Get("x-ms-alt-content-path"))
			}
			if used := got.Get("x-ms-resource-usage"); used != c.kind+"="+a.used+";" {
				t.Errorf("%s: usage %q, want %s", c.path, used, a.used)
			}
			if quota := got.Get("x-ms-resource-quota"); quota != c.kind+"="+c.quota+";" {
				t.Errorf("%s: quota %q", c.path, quota)
			}
		}
	}
}

// Answers about an item have the usage and quota of its partition. They have at most
// fourteen headers: the map of a fifteenth is larger, and costly.
func TestItemQuota(t *testing.T) {
	h := newContainer(t)
	const items = "/dbs/d/colls/c/docs"
	pad := strings.Repeat("x", 1500)
	for _, c := range []struct {
		method, path, body string
		status, count, kib int
	}{
		{"POST", items, `{"id":"i","pk":"p","pad":"` + pad + `"}`, 201, 1, 2},
		{"POST", items, `{"id":"j","pk":"p","pad":"` + pad + `"}`, 201, 2, 4},
		{"GET", items + "/i", "", 200, 2, 4},
		{"PUT", items + "/j", `{"id":"j","pk":"p"}`, 200, 2, 2},
		{"PATCH", items + "/j", `[{"op":"add","path":"/n","value":1}]`, 200, 2, 2},
		{"DELETE", items + "/i", "", 204, 1, 1},
		{"GET", items + "/j", "", 200, 1, 1},
	} {
		got := call(t, h, c.method, c.path, c.body, pk("p"), c.status).header
		if quota := got.Get("x-ms-resource-quota"); quota != "documentSize=10240;documentsSize=10485760;documentsCount=-1;collectionSize=10485760;" {
			t.Errorf("%s %s: quota %q", c.method, c.path, quota)
		}
		want := fmt.Sprintf("documentSize=0;documentsSize=%d;documentsCount=%d;collectionSize=%d;", c.kib, c.count, c.kib)
		if usage := got.Get("x-ms-resource-usage"); usage != want {
			t.Errorf("%s %s: usage %q, want %q", c.method, c.path, usage, want)
		}
		if len(got) > 14 {
			t.Errorf("%s %s has %d headers: %v", c.method, c.path, len(got), got)
		}
	}
}

// A page of no items is empty and the last one, and errors of the request are still
// reported. A change feed would skip the items that it leaves out.
func TestPageOfNoItems(t *testing.T) {
	h := newContainer(t)
	const items = "/dbs/d/colls/c/docs"
	for _, id := range []string{"a", "b"} {
		call(t, h, "POST", items, `{"id":"`+id+`","pk":"p"}`, pk("p"), 201)
	}
	none := map[string]string{"x-ms-max-item-count": "0"}
	query := with(with(pk("p"), "Content-Type", "application/query+json"), "x-ms-max-item-count", "0")
	for _, c := range []struct {
		method, path, body, kind string
		headers                  map[string]string
	}{
		{"GET", items, "", "Documents", none},
		{"POST", items, `{"query":"SELECT * FROM c ORDER BY c.id"}`, "Documents", query},
		{"GET", "/dbs/d/colls", "", "DocumentCollections", none},
		{"POST", "/dbs", `{"query":"SELECT * FROM c"}`, "Databases", query},
	} {
		a := call(t, h, c.method, c.path, c.body, c.headers, 200)
		rows, ok := a.json(t)[c.kind].([]any)
		if !ok || len(rows) > 0 || a.json(t)["_count"] != 0.0 || a.header.Get("x-ms-item-count") != "0" || a.header.Get("x-ms-continuation") != "" {
			t.Errorf("%s %s: %s, continuation %q", c.method, c.path, a.body, a.header.Get("x-ms-continuation"))
		}
	}
	call(t, h, "POST", items, `{"query":"SELECT"}`, query, 400)
	call(t, h, "GET", items, "", with(none, "A-IM", "Incremental feed"), 400)
}

// SDKs in direct mode look up replicas. The answer tells the user what to set.
func TestAddresses(t *testing.T) {
	h := newTestHandler(t)
	for _, path := range []string{
		"/addresses", "/addresses/", "//addresses/?$resolveFor=dbs%2fd%2fcolls%2fc%2fdocs&$filter=protocol%20eq%20rntbd&$partitionKeyRangeIds=0",
	} {
		r, err := http.NewRequest("GET", "http://localhost"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		text := serve(h, r).failureText(t, 400, 0)
		for _, setting := range []string{"gatewayMode()", "GatewayConnectionConfig", "ConnectionMode.Gateway"} {
			if !strings.Contains(text, setting) {
				t.Errorf("%s: the client is told %q", path, text)
			}
		}
	}
}

// Before version 2018-06-18 a session token had only the LSN, and clients of that time
// parse it as a number. The server understands both forms.
func TestOldSessionTokens(t *testing.T) {
	h := newContainer(t)
	const items = "/dbs/d/colls/c/docs"
	for n, c := range []struct{ version, want string }{
		{"2017-11-15", "0:1"}, {"2018-06-18", "0:-1#2"}, {"2020-07-15", "0:-1#3"}, {"", "0:-1#4"}, {"2015-12-16", "0:5"},
	} {
		headers := pk("p")
		if c.version != "" {
			headers["x-ms-version"] = c.version
		}
		got := call(t, h, "POST", items, fmt.Sprintf(`{"id":"%d","pk":"p"}`, n), headers, 201).header.Get("x-ms-session-token")
		if got != c.want {
			t.Errorf("version %q has the session token %q, want %q", c.version, got, c.want)
		}
		read := call(t, h, "GET", items+fmt.Sprintf("/%d", n), "", with(headers, "x-ms-session-token", got), 200).header.Get("x-ms-session-token")
		if read != c.want {
			t.Errorf("version %q reads the session token %q, want %q", c.version, read, c.want)
		}
	}
	call(t, h, "GET", items+"/1", "", with(pk("p"), "x-ms-session-token", "0:6"), 404)
}

// A client may ask for items without the system properties that nothing depends on.
func TestExcludedSystemProperties(t *testing.T) {
	h := newContainer(t)
	const items = "/dbs/d/colls/c/docs"
	without := with(pk("p"), "x-ms-exclude-system-properties", "True")
	check := func(a answer, want bool) {
		t.Helper()
		got := a.json(t)
		for _, name := range []string{"_self", "_attachments"} {
			if _, found := got[name]; found != want {
				t.Errorf("%s: %s is there: %v", a.body, name, found)
			}
		}
		for _, name := range []string{"id", "pk", "_rid", "_etag", "_ts"} {
			if _, found := got[name]; !found {
				t.Errorf("%s: there is no %s", a.body, name)
			}
		}
	}
	check(call(t, h, "POST", items, `{"id":"i","pk":"p","o":{"_self":1}}`, without, 201), false)
	check(call(t, h, "GET", items+"/i", "", without, 200), false)
	check(call(t, h, "GET", items+"/i", "", with(without, "x-ms-exclude-system-properties", "False"), 200), true)
	check(call(t, h, "GET", items+"/i", "", pk("p"), 200), true)
	check(call(t, h, "PUT", items+"/i", `{"id":"i","pk":"p"}`, without, 200), false)
	check(call(t, h, "PATCH", items+"/i", `[{"op":"set","path":"/n","value":1}]`, without, 200), false)
}
