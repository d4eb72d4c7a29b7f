// SPDX-License-Identifier: MIT

package rest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// fuzzStatuses are all statuses that a client with the key may get from a healthy server:
// none from 500 on.
var fuzzStatuses = []int{200, 201, 204, 207, 304, 400, 401, 403, 404, 405, 409, 410, 412, 413, 449}

// fuzzHeaders parses "Name: value" lines into headers, as net/http would pass them.
func fuzzHeaders(lines string) http.Header {
	h := http.Header{}
	for line := range strings.SplitSeq(lines, "\n") {
		name, value, _ := strings.Cut(line, ":")
		h.Add(textproto.CanonicalMIMEHeaderKey(name), strings.Trim(value, " \t\r"))
	}
	return h
}

// FuzzRequest sends arbitrary requests with valid signatures: no panic, no internal
// error, one answer to each, in the service's form.
func FuzzRequest(f *testing.F) {
	const docs = "/dbs/d/colls/c/docs"
	const key = "x-ms-documentdb-partitionkey: [\"p\"]\n"
	for _, s := range []struct{ method, path, headers, body string }{
		{"GET", "/", "", ""},
		{"GET", "/dbs", "x-ms-max-item-count: 1\nx-ms-continuation: AQAAAA==", ""},
		{"POST", "/dbs", "x-ms-offer-throughput: 400", `{"id":"x"}`},
		{"GET", "/offers", "x-ms-max-item-count: 1", ""},
		{"POST", "/offers", "x-ms-documentdb-isquery: True", `{"query":"SELECT * FROM root r WHERE r.resource=@x","parameters":[{"name":"@x","value":"dbs/x/"}]}`},
		{"PUT", "/offers/AAAD/", "", `{"id":"AAAD","content":{"offerThroughput":500}}`},
		{"POST", "/dbs/d/colls", `x-ms-cosmos-offer-autopilot-settings: {"maxThroughput":4000}`, `{"id":"y","partitionKey":{"paths":["/a","/b"],"kind":"MultiHash","version":2},"defaultTtl":-1}`},
		{"PUT", "/dbs/d/colls/c", "If-Match: *", containerBody},
		{"DELETE", "/dbs/d/colls/c", "", ""},
		{"POST", docs, key, `{"id":"i","pk":"p","ttl":5}`},
		{"POST", docs, key + "x-ms-documentdb-is-upsert: True\nIf-Match: x\nPrefer: return=minimal", `{"id":"i","pk":"p"}`},
		{"PUT", docs + "/i", key, `{"id":"i","pk":"p","n":1e400}`},
		{"GET", docs + "/i", key + "x-ms-session-token: 0:-1#1", ""},
		{"GET", docs, "x-ms-documentdb-partitionkeyrangeid: 0\nx-ms-continuation: +RID:AQAAAIAAAAABAAAAAAAAAA==#RT:1\nx-ms-max-item-count: -1", ""},
		{"DELETE", docs + "/%00%2F%FF", `x-ms-documentdb-partitionkey: [1,"\ud800",{}]`, ""},
		{"GET", "/dbs/d/colls/c/pkranges/", "A-IM: Incremental Feed\nIf-None-Match: x", ""},
		{"GET", "/dbs/d/colls/c/docs", "A-IM: Incremental Feed\nIf-None-Match: \"0@1.2\"\nx-ms-start-epk: 00", ""},
		{"GET", "/dbs/d/colls/c/docs", "A-IM: Full-Fidelity Feed\nIf-None-Match: *\nIf-Modified-Since: x", ""},
		{"POST", docs, "content-type: application/query+json", `{"query":"SELECT 1"}`},
		{"POST", docs, key, "{\"id\":\"\\ud83d\\ude00\",\"pk\":\"p\",\"id\":1}\xff"},
		{"PATCH", docs + "/i", key, `[{"op":"add"}]`},
		{"PATCH", docs + "/i", key, `{"condition":"from c where c.n > 1","operations":[{"op":"move","from":"/a","path":"/b/-"}]}`},
		{"PATCH", docs + "/i", key + "x-ms-documentdb-pre-trigger-include: t,\nx-ms-documentdb-post-trigger-include: t", `[{"op":"set","path":"/n","value":1}]`},
		{"POST", "/dbs/d/colls/c/triggers", "", `{"id":"t","body":"function() {}","triggerType":"Pre","triggerOperation":"Update"}`},
		{"POST", docs, key + "x-ms-cosmos-is-batch-request: True\nx-ms-cosmos-batch-atomic: True", `[{"operationType":"Create","resourceBody":{"id":"i","pk":"p"}},{"operationType":"Read","id":"i"}]`},
		{"POST", docs, "x-ms-cosmos-is-batch-request: True\nx-ms-documentdb-partitionkeyrangeid: 0", `[{"operationType":"Patch","id":"i","partitionKey":"[\"p\"]","resourceBody":[{"op":"incr","path":"/n","value":1}]}]`},
		{"GET", "/_mayfly/health", "", ""},
		{"POST", "/_mayfly/clock", "Authorization: Bearer " + testKey, `{"advance":"1h"}`},
		{"QUERY", "//dbs//", "x-ms-consistency-level: Strong", "\x00"},
	} {
		f.Add(s.method, s.path, s.headers, []byte(s.body))
	}
	h := newContainer(f)
	f.Fuzz(func(t *testing.T, method, path, headers string, body []byte) {
		u, err := url.ParseRequestURI(path)
		if err != nil {
			return
		}
		r := &http.Request{Method: method, URL: u, Host: "localhost", Header: fuzzHeaders(headers)}
		r.Body, r.ContentLength = http.NoBody, 0
		if len(body) > 0 {
			r.Body, r.ContentLength = readCloser{bytes.NewReader(body)}, int64(len(body))
		}
		if rt, ok := parseRoute(u.EscapedPath()); ok && !strings.HasPrefix(u.Path, adminPrefix) {
			signRequest(t, r, rt.kind.Word(), rt.link)
		}
		checkFuzzAnswer(t, r, serve(h, r))
		// Restore what the next request needs.
		serve(h, signedRequest(t, "POST", "/dbs", []byte(`{"id":"d"}`), nil))
		serve(h, signedRequest(t, "POST", "/dbs/d/colls", []byte(containerBody), nil))
		call(t, h, "GET", "/dbs", "", nil, 200)
	})
}

type readCloser struct{ *bytes.Reader }

func (readCloser) Close() error { return nil }

func checkFuzzAnswer(t *testing.T, r *http.Request, a answer) {
	t.Helper()
	if !slices.Contains(fuzzStatuses, a.status) {
		t.Fatalf("%s %s: status %d: %s", r.Method, r.URL, a.status, a.body)
	}
	for name, values := range a.header {
		for _, v := range values {
			if !printable(v) {
				t.Errorf("the header %s is %q", name, v)
			}
		}
	}
	switch {
	case a.status >= 400 && r.Method != http.MethodHead:
		subStatus, _ := strconv.Atoi(a.header.Get("x-ms-substatus"))
		a.failureText(t, a.status, subStatus)
	case a.header.Get("Content-Type") == contentBinary:
	case len(a.body) > 0 && (!json.Valid(a.body) || !utf8.Valid(a.body)):
		t.Errorf("%s %s: the body is no JSON in UTF-8: %q", r.Method, r.URL, a.body)
	}
}
