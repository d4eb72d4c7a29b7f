// SPDX-License-Identifier: MIT

package rest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/api"
)

// journaled returns a handler with a container, and a function that returns the lines that
// its log got since the last call.
func journaled(t *testing.T) (*Handler, func() []map[string]any) {
	t.Helper()
	var log bytes.Buffer
	h := newTestHandlerWith(t, testHandlerOptions{logger: slog.New(slog.NewJSONHandler(&log, nil)), readOnlyKeys: []string{readOnlyKey}})
	call(t, h, "POST", "/dbs", `{"id":"d"}`, nil, 201)
	call(t, h, "POST", "/dbs/d/colls", `{"id":"c","partitionKey":{"paths":["/pk"]}}`, nil, 201)
	return h, func() (lines []map[string]any) {
		t.Helper()
		for d := json.NewDecoder(&log); d.More(); {
			line := map[string]any{}
			if err := d.Decode(&line); err != nil {
				t.Fatal(err)
			}
			lines = append(lines, line)
		}
		log.Reset()
		return lines
	}
}

// only returns the one line that the log got.
func only(t *testing.T, lines []map[string]any) map[string]any {
	t.Helper()
	if len(lines) != 1 {
		t.Fatalf("%d lines, want one: %v", len(lines), lines)
	}
	return lines[0]
}

func TestRefusalsAreLogged(t *testing.T) {
	h, lines := journaled(t)
	call(t, h, "GET", "/dbs/d/colls/c/docs/none", "", pk("p"), 404)
	if got := lines(); len(got) > 0 {
		t.Errorf("a request that is fine is logged: %v", got)
	}
	for _, c := range []struct {
		name   string
		status float64
		send   func(*http.Request)
	}{
		{"no credential", 401, func(r *http.Request) { r.Header.Del("Authorization") }},
		{"a wrong one", 401, func(r *http.Request) { r.Header.Set("Authorization", masterToken("AAAA")) }},
		{"an old date", 403, func(r *http.Request) {
			date := dateText(time.Now().Add(-time.Hour))
			r.Header.Set("x-ms-date", date)
			r.Header.Set("Authorization", masterToken(clientSignature(t, testKey, "GET", "docs", "dbs/d/colls/c/docs/i", date, "")))
		}},
	} {
		r := signedRequest(t, "GET", "/dbs/d/colls/c/docs/i", nil, pk("p"))
		r.Header.Set("x-ms-activity-id", "activity-1")
		r.RemoteAddr = "192.0.2.7:1234"
		c.send(r)
		if a := serve(h, r); float64(a.status) != c.status {
			t.Fatalf("%s: status %d: %s", c.name, a.status, a.body)
		}
		line := only(t, lines())
		for name, want := range map[string]any{
			"level": "WARN", "status": c.status, "activity": "activity-1", "client": "192.0.2.7:1234", "method": "GET", "path": "/dbs/d/colls/c/docs/…",
		} {
			if line[name] != want {
				t.Errorf("%s: %s is %v, want %v: %v", c.name, name, line[name], want, line)
			}
		}
	}
}

func TestSlowRequestsAreLogged(t *testing.T) {
	h, lines := journaled(t)
	h.service.Journal.Slow = time.Nanosecond
	call(t, h, "POST", "/dbs/d/colls/c/docs", `{"id":"i","pk":"p"}`, pk("p"), 201)
	if line := only(t, lines()); line["msg"] != "a request took long" || line["operation"] != "item_create" || line["ms"].(float64) <= 0 {
		t.Errorf("logged %v", line)
	}
	// Pages of Mayfly's own may take long.
	command(t, h, "GET", "/_mayfly/clock", "", 200)
	if got := lines(); len(got) > 0 {
		t.Errorf("logged %v", got)
	}
	h.service.Journal.Slow = time.Hour
	call(t, h, "GET", "/dbs/d/colls/c/docs/i", "", pk("p"), 200)
	if got := lines(); len(got) > 0 {
		t.Errorf("a request that took no hour is logged: %v", got)
	}
}

// The log outlives what is erased: no line names an item, unless the operator wants all
// requests to be logged.
func TestLinesNameNoItem(t *testing.T) {
	h, lines := journaled(t)
	const item = "/dbs/d/colls/c/docs/Erased-1"
	provoke := func(want int) string {
		t.Helper()
		for _, c := range []struct {
			status int
			send   func(*http.Request)
		}{
			{404, func(*http.Request) {}}, // slow
			{401, func(r *http.Request) { r.Header.Set("Authorization", masterToken(strings.Repeat("AAAA", 11))) }},
			{403, func(r *http.Request) {
				date := dateText(time.Now().Add(-time.Hour))
				r.Header.Set("x-ms-date", date)
				r.Header.Set("Authorization", masterToken(clientSignature(t, testKey, "GET", "docs", item[1:], date, "")))
			}},
		} {
			r := signedRequest(t, "GET", item, nil, pk("Erased-2"))
			c.send(r)
			if a := serve(h, r); a.status != c.status || c.status == 401 && !strings.Contains(string(a.body), `payload to sign: 'get\\ndocs\\ndbs/d/colls/c/docs/Erased-1`) {
				t.Fatalf("status %d, want %d: %s", a.status, c.status, a.body)
			}
		}
		call(t, h, "POST", "/dbs/d/colls/c/docs", `{"id":"Erased-1","pk":"Erased-3"}`, pk("Erased-2"), 400) // slow
		command(t, h, "POST", "/_mayfly/ttl/undelete?database=d&container=c&id=Erased-1&partitionKey=Erased-2&ttl=1h", "", 404)
		got := lines()
		if len(got) != want {
			t.Errorf("%d lines, want %d: %v", len(got), want, got)
		}
		return strings.ToLower(fmt.Sprint(got))
	}
	h.service.Journal.Slow = time.Nanosecond
	log := provoke(5)
	if strings.Contains(log, "erased-") {
		t.Errorf("the log names an item: %s", log)
	}
	for _, want := range []string{"/dbs/d/colls/c/docs/…", "check the key being used", "15 minutes from the server's", "ttl/undelete database=d&container=c&id=…&partitionkey=…&ttl=1h"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log has no %q: %s", want, log)
		}
	}
	h.service.Journal.All = true
	log = provoke(6) // one more for the page of Mayfly's own
	for _, want := range []string{"/dbs/d/colls/c/docs/erased-1", "payload to sign", "id=erased-1&partitionkey=erased-2"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log of all requests has no %q: %s", want, log)
		}
	}
}

func TestPathsWithoutItems(t *testing.T) {
	for path, want := range map[string]string{
		"/dbs/d/colls/c/docs/i":               "/dbs/d/colls/c/docs/…",
		"dbs/d/colls/c/docs/i":                "dbs/d/colls/c/docs/…", // as direct mode has it
		"//dbs/d/colls/c/DOCS/i/attachments/": "//dbs/d/colls/c/DOCS/…",
		"/dbs/docs/colls/docs/docs/i":         "/dbs/docs/colls/docs/docs/…",
		"/dbs/docs/colls/docs/docs":           "/dbs/docs/colls/docs/docs",
		"/dbs/docs/colls/docs/sprocs/docs":    "/dbs/docs/colls/docs/sprocs/docs",
		"/dbs/d/colls/c/docs/":                "/dbs/d/colls/c/docs/",
		"/dbs/d/users/u/permissions/p":        "/dbs/d/users/u/permissions/p",
		"/":                                   "/",
		"":                                    "",
	} {
		if got := api.PathWithoutItem(path); got != want {
			t.Errorf("%s: logged as %s, want %s", path, got, want)
		}
	}
	if got := api.QueryWithoutItem("a=1&i%64=x&partitionKey=y&%zz=1"); got != "a=1&i%64=…&partitionKey=…&%zz=…" {
		t.Errorf("logged %s", got)
	}
}

func TestAllRequestsAreLogged(t *testing.T) {
	h, lines := journaled(t)
	h.service.Journal.All = true
	const n = 100
	for range n {
		call(t, h, "GET", "/dbs/d", "", nil, 200)
	}
	got := lines()
	if len(got) != n {
		t.Fatalf("%d lines for %d requests", len(got), n)
	}
	if got[0]["msg"] != "request" || got[0]["level"] != "INFO" || got[0]["operation"] != "database_read" {
		t.Errorf("logged %v", got[0])
	}
	r := signedRequest(t, "GET", "/dbs/d", nil, nil)
	r.Header.Del("Authorization")
	serve(h, r)
	if line := only(t, lines()); line["status"] != 401.0 {
		t.Errorf("logged %v", line)
	}
}

// A client cannot fill the disk of the log.
func TestLinesAreLimited(t *testing.T) {
	h, lines := journaled(t)
	began, n := time.Now(), 500
	for range n {
		r := signedRequest(t, "GET", "/dbs/d", nil, nil)
		r.Header.Del("Authorization")
		serve(h, r)
	}
	most := 20 + int(time.Since(began)/time.Second) + 1
	if got := len(lines()); got == 0 || got > most {
		t.Errorf("%d lines for %d refusals, want 1 to %d", got, n, most)
	}

	var limit api.LineLimit
	now := time.Unix(0, 0)
	wrote := 0
	for range 1000 {
		if _, ok := limit.Take(now); ok {
			wrote++
		}
	}
	if omitted, ok := limit.Take(now.Add(time.Second)); !ok || omitted != 1000-wrote || wrote != 20 {
		t.Errorf("%d of 1000 lines at once, then %v with %d omitted", wrote, ok, omitted)
	}
}

func TestCommandsAreAudited(t *testing.T) {
	h, lines := journaled(t)
	for _, c := range []struct {
		method, path, body string
		status             int
		what, operation    string
	}{
		{"POST", "/dbs/d/users", `{"id":"ada"}`, 201, "ada", "user_create"},
		{"POST", "/dbs/d/users/ada/permissions", `{"id":"reads","permissionMode":"Read","resource":"dbs/d/colls/c"}`, 201, "reads Read dbs/d/colls/c", "permission_create"},
		{"DELETE", "/dbs/d/users/ada/permissions/reads", "", 204, "reads", "permission_delete"},
		{"POST", "/_mayfly/clock", `{"advance":"90s"}`, 200, `clock {"advance":"90s"}`, ""},
		{"POST", "/_mayfly/ttl/purge?database=d&container=c", "", 200, "ttl/purge database=d&container=c", ""},
		{"POST", "/_mayfly/ttl/erase", "", 200, "ttl/erase", ""},
		{"POST", "/_mayfly/ttl/pause", "", 200, "ttl/pause", ""},
		{"GET", "/_mayfly/pprof/goroutine", "", 200, "pprof goroutine", ""},
	} {
		if strings.HasPrefix(c.path, "/_mayfly/") {
			command(t, h, c.method, c.path, c.body, c.status)
		} else {
			call(t, h, c.method, c.path, c.body, nil, c.status)
		}
		line := only(t, lines())
		if line["msg"] != "audit" || line["by"] != "key" || line["what"] != c.what || line["status"] != float64(c.status) || fmt.Sprint(line["operation"]) != c.operation && c.operation != "" {
			t.Errorf("%s %s: logged %v", c.method, c.path, line)
		}
	}
	// What only reads, or is about items, is not.
	call(t, h, "GET", "/dbs/d/users/ada", "", nil, 200)
	call(t, h, "POST", "/dbs/d/colls/c/docs", `{"id":"i","pk":"p"}`, pk("p"), 201)
	command(t, h, "GET", "/_mayfly/clock", "", 200)
	if got := lines(); len(got) > 0 {
		t.Errorf("logged %v", got)
	}
}

// command sends a request for one of Mayfly's own pages.
func command(t *testing.T, h *Handler, method, path, body string, want int) {
	t.Helper()
	r, err := http.NewRequest(method, "http://localhost"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+testKey)
	if a := serve(h, r); a.status != want {
		t.Fatalf("%s %s: status %d: %s", method, path, a.status, a.body)
	}
}
