// SPDX-License-Identifier: MIT

// Items over the protocol: the headers that SDKs depend on, conditions, sessions, and
// pages.

package rest

import (
	"bytes"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// with returns headers plus one more.
func with(headers map[string]string, name, value string) map[string]string {
	headers = maps.Clone(headers)
	headers[name] = value
	return headers
}

// TestItemHeaders: create, upsert, replace, read and delete have the headers that clients
// need.
func TestItemHeaders(t *testing.T) {
	h := newContainer(t)
	rid := call(t, h, "GET", "/dbs/d/colls/c", "", nil, 200).json(t)["_rid"].(string)
	const item = "/dbs/d/colls/c/docs/i"
	lsn := 0
	for _, c := range []struct {
		method, path, body string
		upsert             string
		status             int
	}{
		{"POST", "/dbs/d/colls/c/docs", `{"id":"i","pk":"p"}`, "", 201},
		{"GET", item, "", "", 200},
		{"POST", "/dbs/d/colls/c/docs/", `{"id":"i","pk":"p","n":1}`, "True", 200},
		{"POST", "/dbs/d/colls/c/docs", `{"id":"j","pk":"p","n":1}`, "true", 201},
		{"PUT", item, `{"id":"i","pk":"p","n":2}`, "", 200},
		{"GET", item + "/", "", "", 200},
		{"DELETE", item, "", "", 204},
	} {
		headers := pk("p")
		headers["x-ms-activity-id"] = "0f0e0d0c-aaaa-4bbb-8ccc-123456789abc"
		if c.upsert != "" {
			headers["x-ms-documentdb-is-upsert"] = c.upsert
		}
		a := call(t, h, c.method, c.path, c.body, headers, c.status)
		if c.method != "GET" {
			lsn++
		}
		version, location := "version=2.14.0.0", ""
		if c.method == "GET" {
			version, location = "", "http://localhost"+c.path
		}
		for name, want := range map[string]string{
			"Content-Location":                    location,
			"x-ms-activity-id":                    "0f0e0d0c-aaaa-4bbb-8ccc-123456789abc",
			"x-ms-session-token":                  fmt.Sprintf("0:-1#%d", lsn),
			"lsn":                                 strconv.Itoa(lsn),
			"x-ms-alt-content-path":               "dbs/d/colls/c",
			"x-ms-content-path":                   rid,
			"x-ms-documentdb-partitionkeyrangeid": "0",
			"x-ms-serviceversion":                 version,
			"x-ms-substatus":                      "",
		} {
			if got := a.header.Get(name); got != want {
				t.Errorf("%s %s: %s is %q, want %q", c.method, c.path, name, got, want)
			}
		}
		if charge, err := strconv.ParseFloat(a.header.Get("x-ms-request-charge"), 64); err != nil || charge < 1 {
			t.Errorf("%s %s: charge %q", c.method, c.path, a.header.Get("x-ms-request-charge"))
		}
		if raw := ridBytes(t, a.header.Get("x-ms-content-path")); len(raw) != 8 {
			t.Errorf("%s %s: x-ms-content-path has %d bytes, want 8", c.method, c.path, len(raw))
		}
		if c.status == 204 {
			if len(a.body) > 0 {
				t.Errorf("a delete answers with %s", a.body)
			}
			continue
		}
		read := a.json(t)
		if read["_etag"] != a.header.Get("etag") || a.header.Get("etag") == "" {
			t.Errorf("%s %s: etag %q, in the body %v", c.method, c.path, a.header.Get("etag"), read["_etag"])
		}
		itemRID := read["_rid"].(string)
		if len(ridBytes(t, itemRID)) != 16 || read["_self"] != "dbs/"+dbRID(t, h)+"/colls/"+rid+"/docs/"+itemRID+"/" || read["_attachments"] != "attachments/" {
			t.Errorf("%s %s: %v", c.method, c.path, read)
		}
	}
}

func dbRID(t *testing.T, h *Handler) string {
	t.Helper()
	return call(t, h, "GET", "/dbs/d", "", nil, 200).json(t)["_rid"].(string)
}

// An error has the headers too, as far as they are known.
func TestItemErrorHeaders(t *testing.T) {
	h := newContainer(t)
	call(t, h, "POST", "/dbs/d/colls/c/docs", `{"id":"i","pk":"p"}`, pk("p"), 201)
	a := call(t, h, "GET", "/dbs/d/colls/c/docs/nosuch", "", pk("p"), 404)
	if text := a.failureText(t, 404, 0); !strings.Contains(text, "Resource Not Found") || !strings.Contains(text, "https://aka.ms/cosmosdb-tsg-not-found") {
		t.Errorf("the client is told %q", text)
	}
	if a.header.Get("x-ms-session-token") != "0:-1#1" || a.header.Get("lsn") != "1" {
		t.Errorf("session token %q, lsn %q of a read that found nothing", a.header.Get("x-ms-session-token"), a.header.Get("lsn"))
	}
	for _, c := range []struct {
		method, path, body string
		status, subStatus  int
		text               string
	}{
		{"POST", "/dbs/d/colls/c/docs", `{"id":"i","pk":"p"}`, 409, 0, "already exists"},
		{"PUT", "/dbs/d/colls/c/docs/j", `{"id":"j","pk":"p"}`, 404, 0, "Resource Not Found"},
		{"PUT", "/dbs/d/colls/c/docs/j", `{"id":"k","pk":"p"}`, 404, 0, "Resource Not Found"},
		{"DELETE", "/dbs/d/colls/c/docs/j", "", 404, 0, "Resource Not Found"},
		{"POST", "/dbs/d/colls/c/docs", `{"id":"i","pk":"q"}`, 400, 1001, "PartitionKey extracted from document doesn't match"},
		{"POST", "/dbs/d/colls/c/docs", `{"id":"i"}`, 400, 1001, "PartitionKey extracted from document doesn't match"},
		{"POST", "/dbs/d/colls/nosuch/docs", `{"id":"i","pk":"p"}`, 404, 1003, "Owner resource does not exist"},
		{"GET", "/dbs/nosuch/colls/c/docs/i", "", 404, 1003, "Owner resource does not exist"},
		{"GET", "/dbs/nosuch/colls/c/docs", "", 404, 1003, "Owner resource does not exist"},
	} {
		a := call(t, h, c.method, c.path, c.body, pk("p"), c.status)
		if text := a.failureText(t, c.status, c.subStatus); !strings.Contains(text, c.text) {
			t.Errorf("%s %s: the client is told %q, want %q in it", c.method, c.path, text, c.text)
		}
	}
}

func TestItemConditions(t *testing.T) {
	h := newContainer(t)
	const item = "/dbs/d/colls/c/docs/i"
	etag := call(t, h, "POST", "/dbs/d/colls/c/docs", `{"id":"i","pk":"p"}`, pk("p"), 201).header.Get("etag")
	upsert := with(pk("p"), "x-ms-documentdb-is-upsert", "true")
	for _, stale := range []string{`"00000000-0000-0000-0000-000000000000"`, "garbage", `"`, `""`, "\xff\xfe", strings.Repeat("e", 3000), etag + "," + etag, "W/" + etag} {
		for _, c := range []struct {
			method, path, body string
			headers            map[string]string
		}{
			{"PUT", item, `{"id":"i","pk":"p","n":1}`, pk("p")},
			{"DELETE", item, "", pk("p")},
			{"POST", "/dbs/d/colls/c/docs", `{"id":"i","pk":"p","n":1}`, upsert},
		} {
			text := call(t, h, c.method, c.path, c.body, with(c.headers, "If-Match", stale), 412).failureText(t, 412, 0)
			if text != "One of the specified pre-condition is not met. Learn more: https://aka.ms/CosmosDB/sql/errors/precondition-failed" {
				t.Errorf("%s if %.20q: the client is told %q", c.method, stale, text)
			}
		}
	}
	if got := call(t, h, "GET", item, "", pk("p"), 200).header.Get("etag"); got != etag {
		t.Fatalf("the item has changed: etag %s, was %s", got, etag)
	}
	a := call(t, h, "PUT", item, `{"id":"i","pk":"p","n":1}`, with(pk("p"), "If-Match", strings.Trim(etag, `"`)), 200)
	a = call(t, h, "POST", "/dbs/d/colls/c/docs", `{"id":"i","pk":"p","n":2}`, with(upsert, "If-Match", a.header.Get("etag")), 200)
	call(t, h, "POST", "/dbs/d/colls/c/docs", `{"id":"i","pk":"p","n":3}`, with(upsert, "If-None-Match", "*"), 412)
	call(t, h, "POST", "/dbs/d/colls/c/docs", `{"id":"new","pk":"p"}`, with(upsert, "If-Match", `"ignored"`), 201)
	call(t, h, "DELETE", item, "", with(pk("p"), "If-Match", a.header.Get("etag")), 204)
}

func TestMinimalResponses(t *testing.T) {
	h := newContainer(t)
	for i, headers := range []map[string]string{
		with(pk("p"), "Prefer", "return=minimal"),
		with(pk("p"), "Prefer", "Return=Minimal"),
		with(pk("p"), "x-ms-cosmos-populate-content-response-on-write", "False"),
	} {
		a := call(t, h, "POST", "/dbs/d/colls/c/docs", fmt.Sprintf(`{"id":"i%d","pk":"p"}`, i), headers, 201)
		if len(a.body) > 0 || a.header.Get("etag") == "" || a.header.Get("x-ms-session-token") == "" || a.header.Get("x-ms-request-charge") == "" {
			t.Errorf("%v: %d bytes, headers %v", headers, len(a.body), a.header)
		}
	}
	for _, headers := range []map[string]string{pk("p"), with(pk("p"), "Prefer", "return=representation")} {
		if a := call(t, h, "PUT", "/dbs/d/colls/c/docs/i0", `{"id":"i0","pk":"p"}`, headers, 200); len(a.body) == 0 {
			t.Errorf("%v: no body", headers)
		}
	}
	// The option is for items only.
	if a := call(t, h, "POST", "/dbs", `{"id":"e"}`, map[string]string{"Prefer": "return=minimal"}, 201); len(a.body) == 0 {
		t.Error("a database without a body")
	}
}

func TestSessionTokens(t *testing.T) {
	h := newContainer(t)
	for i := range 3 {
		call(t, h, "POST", "/dbs/d/colls/c/docs", fmt.Sprintf(`{"id":"i%d","pk":"p"}`, i), pk("p"), 201)
	}
	for token, want := range map[string]int{
		"0:-1#3": 200, "0:-1#1": 200, "0:-1#0": 200, "0:3": 200, "0:-1#3#1=7#2=9": 200, "5:-1#999": 200,
		"0:-1#1,1:-1#99": 200, "0:-1#1, 0:-1#3": 200,
		"0:-1#4": 404, "0:0#1": 404, "0:0#1#12=-1": 404, "0:-1#18446744073709551615": 404, "0:-1#1,0:-1#4": 404,
		"0": 400, "": 200, ":": 400, "0:": 400, "0:#": 400, "0:-1#": 400, "0:-1#x": 400, "x:-1#1": 400, "-1:-1#1": 400,
		"0:-1#-1": 400, "0:-1#18446744073709551616": 400, "0:99999999999999999999#1": 400, ",": 400, "0:-1#1,": 400,
		"\xff:\xff": 400, "null": 400, `{"0":1}`: 400,
		strings.Repeat("0:-1#1,", 2000) + "0:-1#1": 400,
	} {
		for _, path := range []string{"/dbs/d/colls/c/docs/i1", "/dbs/d/colls/c/docs"} {
			a := serve(h, signedRequest(t, "GET", path, nil, with(pk("p"), "x-ms-session-token", token)))
			switch {
			case a.status != want:
				t.Errorf("GET %s with the token %.40q: status %d, want %d: %.300s", path, token, a.status, want, a.body)
			case want == 404:
				a.failureText(t, 404, 1002)
			case want == 400:
				if text := a.failureText(t, 400, 0); !strings.Contains(text, "session token") || len(text) > 1000 {
					t.Errorf("token %.40q: the client is told %.1000q", token, text)
				}
			}
		}
	}
}

// Ids that must be escaped in a URL can be written, read and listed.
func TestItemIDs(t *testing.T) {
	h := newContainer(t)
	ids := []string{
		"a", "with space", " leading", "trailing ", "ü", "日本語", "😀", "a/b", "/", "//", `a\b`, "a?b", "a#b", "%", "%20", "%2F", "a%", "+",
		"a+b", "..", ".", "\t", "\r\n", "\x00", `"`, "'", "<>", "&=", ";", ":", "~", "_rid", "docs", "null", "-1", strings.Repeat("x", 1023),
		strings.Repeat("ü", 511), "\u2028", "\ufeff", "\ufffd", "e\u0301",
	}
	for _, id := range ids {
		path := "/dbs/d/colls/c/docs/" + url.PathEscape(id)
		made := call(t, h, "POST", "/dbs/d/colls/c/docs", `{"id":`+quoted(id)+`,"pk":"p"}`, pk("p"), 201)
		read := call(t, h, "GET", path, "", pk("p"), 200)
		if !bytes.Equal(made.body, read.body) || read.json(t)["id"] != id {
			t.Errorf("%.40q: made %s, read %s", id, made.body, read.body)
		}
		call(t, h, "PUT", path, `{"id":`+quoted(id)+`,"pk":"p","n":1}`, pk("p"), 200)
	}
	if got := pageThrough(t, h, "/dbs/d/colls/c/docs", "Documents", "7"); !slices.Equal(got, ids) {
		t.Errorf("listed %q, want %q", got, ids)
	}
	for _, id := range ids {
		call(t, h, "DELETE", "/dbs/d/colls/c/docs/"+url.PathEscape(id), "", pk("p"), 204)
	}
}

func TestListScopes(t *testing.T) {
	h := newContainer(t)
	for i := range 12 {
		key := fmt.Sprintf("p%d", i%3)
		call(t, h, "POST", "/dbs/d/colls/c/docs", fmt.Sprintf(`{"id":"i%02d","pk":"%s"}`, i, key), pk(key), 201)
	}
	if got := pageThrough(t, h, "/dbs/d/colls/c/docs", "Documents", "5"); len(got) != 12 || !slices.IsSorted(got) {
		t.Errorf("all: %v", got)
	}
	a := call(t, h, "GET", "/dbs/d/colls/c/docs", "", pk("p1"), 200)
	if got, want := feedIDs(t, a, "Documents"), []string{"i01", "i04", "i07", "i10"}; !slices.Equal(got, want) {
		t.Errorf("of p1: %v, want %v", got, want)
	}
	for name, want := range map[string]string{
		"x-ms-session-token": "0:-1#12", "x-ms-item-count": "4", "x-ms-alt-content-path": "dbs/d/colls/c", "lsn": "12",
	} {
		if got := a.header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	none := call(t, h, "GET", "/dbs/d/colls/c/docs", "", pk("unused"), 200)
	if none.json(t)["_count"] != 0.0 || none.header.Get("x-ms-continuation") != "" {
		t.Errorf("of an unused key: %s", none.body)
	}
}

func TestIntendedContainer(t *testing.T) {
	h := newContainer(t)
	rid := call(t, h, "GET", "/dbs/d/colls/c", "", nil, 200).json(t)["_rid"].(string)
	call(t, h, "POST", "/dbs/d/colls/c/docs", `{"id":"i","pk":"p"}`, with(pk("p"), "x-ms-cosmos-intended-collection-rid", rid), 201)
	call(t, h, "DELETE", "/dbs/d/colls/c", "", nil, 204)
	call(t, h, "POST", "/dbs/d/colls", containerBody, nil, 201)
	for _, intended := range []string{rid, "x", strings.ToLower(rid)} {
		headers := with(pk("p"), "x-ms-cosmos-intended-collection-rid", intended)
		call(t, h, "GET", "/dbs/d/colls/c/docs/i", "", headers, 400).failureText(t, 400, 1024)
		call(t, h, "POST", "/dbs/d/colls/c/docs", `{"id":"i","pk":"p"}`, headers, 400).failureText(t, 400, 1024)
		call(t, h, "GET", "/dbs/d/colls/c/docs", "", headers, 400).failureText(t, 400, 1024)
	}
}
