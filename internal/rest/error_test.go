// SPDX-License-Identifier: MIT

package rest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/api"
	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/engine"
	"github.com/mayflydb/mayfly/internal/store"
	"github.com/mayflydb/mayfly/internal/value"
)

// failWith is a handler that answers every request with one error.
type failWith struct {
	h   *Handler
	err error
}

func (f failWith) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := f.h.exchange(w, r)
	defer f.h.observe(x)
	x.writeError(f.err)
}

func errorRequest(t *testing.T) *http.Request {
	t.Helper()
	r, err := http.NewRequest("POST", "http://localhost/dbs/a%20b/colls/%22?x=y", nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// logged returns a handler without an engine, and its log.
func logged(t *testing.T) (*Handler, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	h, err := New(Options{
		Keys: []string{testKey}, Account: api.Account{Regions: []string{"Here"}, Consistency: "Session"},
		Logger: slog.New(slog.NewTextHandler(&log, nil)), Memory: testMemory(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	return h, &log
}

func TestFailuresAreRendered(t *testing.T) {
	h, log := logged(t)
	for _, f := range []struct {
		err error
		api.Failure
	}{
		{errNoRoute, *errNoRoute.(*api.Failure)},
		{errBodyTooBig, *errBodyTooBig.(*api.Failure)},
		{api.ErrBadAuthorization, *api.ErrBadAuthorization.(*api.Failure)},
		{store.ErrNotFound, api.Failure{Status: 404, Text: "Resource Not Found. Learn more: https://aka.ms/cosmosdb-tsg-not-found"}},
		{engine.ErrSession, api.Failure{Status: 404, SubStatus: 1002, Text: "The read session is not available for the input session token."}},
		{engine.ErrScriptsBusy, api.Failure{Status: 429, Text: "Too many scripts are running, or wait to run. No changes were made. Please retry this request later."}},
		{engine.ErrContended, api.Failure{Status: 449, Text: "Conflicting request to resource has been attempted. Retry to avoid conflicts."}},
	} {
		for _, err := range []error{f.err, fmt.Errorf("some detail: %w", f.err), errors.Join(io.EOF, f.err)} {
			r := errorRequest(t)
			r.Header.Set("x-ms-activity-id", "1e9df8a4-3f0e-4b5f-8f6c-000000000001")
			a := serve(failWith{h, err}, r)
			if got := a.failureText(t, f.Status, f.SubStatus); got != f.Text {
				t.Errorf("%v: the client is told %q, want %q", err, got, f.Text)
			}
			if got := a.header.Get("x-ms-activity-id"); got != "1e9df8a4-3f0e-4b5f-8f6c-000000000001" {
				t.Errorf("%v: activity %q, want the client's", err, got)
			}
			if !bytes.Contains(a.body, []byte(`Request URI: /dbs/a%20b/colls/%22,`)) {
				t.Errorf("%v: the path is not in %s", err, a.body)
			}
			if strings.Contains(string(a.body), "some detail") {
				t.Errorf("%v: the client is told of internals: %s", err, a.body)
			}
			if retry := a.header.Get("x-ms-retry-after-ms") != ""; retry != (f.Status == 449 || f.Status == 429) {
				t.Errorf("%v: a status %d with x-ms-retry-after-ms %v", err, f.Status, retry)
			}
		}
	}
	if text := log.String(); strings.Contains(text, "level=ERROR") || strings.Contains(text, "some detail") {
		t.Errorf("an error of a client is logged as the server's: %s", text)
	}
}

func TestTypedFailures(t *testing.T) {
	h, log := logged(t)
	_, syntax := value.ParseObject([]byte(`{"a":1,"a":2}`))
	for _, c := range []struct {
		err    error
		status int
		text   string
	}{
		{&catalog.InvalidError{Message: `a "quoted" thing`}, 400, `a "quoted" thing`},
		{&engine.InvalidError{Message: "broken: \xff\n\x00"}, 400, "broken: \ufffd\n\x00"},
		{&store.TTLError{Value: "0"}, 400, "The input ttl '0' is invalid. Ensure to provide a nonzero positive integer less than or equal to '2147483647', or '-1' which means never expire."},
		{syntax, 400, `not well-formed JSON: the property name "a" occurs twice in one object`},
		{api.Invalid("no such header"), 400, "no such header"},
	} {
		for _, err := range []error{c.err, fmt.Errorf("wrapped: %w", c.err)} {
			if got := serve(failWith{h, err}, errorRequest(t)).failureText(t, c.status, 0); !strings.Contains(got, c.text) {
				t.Errorf("%v: the client is told %q, want %q in it", err, got, c.text)
			}
		}
	}
	if text := log.String(); strings.Contains(text, "level=ERROR") || strings.Contains(text, "some detail") {
		t.Errorf("an error of a client is logged as the server's: %s", text)
	}
}

func TestUnknownErrorsAreInternal(t *testing.T) {
	h, log := logged(t)
	secret := errors.New("open /var/lib/secret: permission denied")
	a := serve(failWith{h, secret}, errorRequest(t))
	text := a.failureText(t, 500, 0)
	if strings.Contains(string(a.body), "secret") || text == "" {
		t.Errorf("the client is told %q", text)
	}
	for _, part := range []string{"level=ERROR", "secret", "method=POST", a.header.Get("x-ms-activity-id")} {
		if !strings.Contains(log.String(), part) {
			t.Errorf("the log lacks %q: %s", part, log)
		}
	}
	if n := strings.Count(log.String(), "level="); n != 1 {
		t.Errorf("%d lines are logged, want one: %s", n, log)
	}
}

// A panic ends one request, with an answer, and a stack in the log.
func TestPanicIsAnswered(t *testing.T) {
	h, log := logged(t) // has no engine
	r := signedRequest(t, "GET", "/dbs/d", nil, nil)
	a := serve(h, r)
	a.failureText(t, 500, 0)
	for _, part := range []string{"level=ERROR", "panic: ", "readResource"} {
		if !strings.Contains(log.String(), part) {
			t.Errorf("the log lacks %q: %s", part, log)
		}
	}
	if strings.Contains(string(a.body), "goroutine") || strings.Contains(string(a.body), "nil pointer") {
		t.Errorf("the client is told of internals: %s", a.body)
	}
	if a := serve(h, signedRequest(t, "GET", "/", nil, nil)); a.status != 200 {
		t.Errorf("after the panic: status %d", a.status)
	}
}

// panicWriter panics in the middle of an answer.
type panicWriter struct {
	onceRecorder
	with any
}

func (w *panicWriter) Write([]byte) (int, error) { panic(w.with) }

func TestPanicAfterTheStatus(t *testing.T) {
	h, log := logged(t)
	w := &panicWriter{with: "the pipe broke"}
	w.ResponseRecorder = httptest.NewRecorder()
	h.ServeHTTP(w, signedRequest(t, "GET", "/", nil, nil))
	if w.statuses != 1 || w.Code != 200 {
		t.Errorf("answered %d times, last with %d, want once with 200", w.statuses, w.Code)
	}
	if !strings.Contains(log.String(), "the pipe broke") {
		t.Errorf("the log lacks the panic: %s", log)
	}

	w = &panicWriter{with: http.ErrAbortHandler}
	w.ResponseRecorder = httptest.NewRecorder()
	defer func() {
		if p := recover(); p != http.ErrAbortHandler {
			t.Errorf("recovered %v, want ErrAbortHandler to pass", p)
		}
	}()
	h.ServeHTTP(w, signedRequest(t, "GET", "/", nil, nil))
}

func TestActivityID(t *testing.T) {
	h := newTestHandler(t)
	seen := map[string]bool{}
	for _, c := range []struct {
		sent   string
		echoed bool
	}{
		{"", false},
		{"", false},
		{"ae8d1b9e-6a5b-4b0e-9a55-5d5c3a7c1a11", true},
		{"anything printable", true},
		{strings.Repeat("x", 64), true},
		{strings.Repeat("x", 65), false},
		{"a\x01b", false},
		{"ü", false},
		{"\x7f", false},
	} {
		r := signedRequest(t, "GET", "/dbs", nil, nil)
		r.Header["X-Ms-Activity-Id"] = []string{c.sent}
		got := serve(h, r).header.Get("x-ms-activity-id")
		if (got == c.sent) != c.echoed {
			t.Errorf("%q comes back as %q", c.sent, got)
		}
		if c.echoed {
			continue
		}
		if seen[got] || len(got) != 36 || strings.Count(got, "-") != 4 || got[14] != '4' {
			t.Errorf("made the activity id %q, want a GUID of its own", got)
		}
		seen[got] = true
	}
}

// A closed handler answers, and passes nothing to the engine.
func TestClosedHandler(t *testing.T) {
	h, _ := logged(t)
	h.Close()
	for _, path := range []string{"/dbs", "/dbs/d/colls/c/docs/i", "/"} {
		if text := serve(h, signedRequest(t, "GET", path, nil, nil)).failureText(t, 503, 0); !strings.Contains(text, "stopping") {
			t.Errorf("GET %s: the client is told %q", path, text)
		}
	}
}

// Close waits for a request that is under way, here one that waits for its body.
func TestCloseWaitsForRequests(t *testing.T) {
	h := newContainer(t)
	body, send := io.Pipe()
	r := signedRequest(t, "POST", "/dbs/d/colls/c/docs", nil, pk("p"))
	r.Body, r.ContentLength = body, -1
	answered := make(chan answer, 1)
	go func() { answered <- serve(h, r) }()
	if _, err := send.Write([]byte(`{"id":"i",`)); err != nil { // the request is under way
		t.Fatal(err)
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		h.Close()
	}()
	for h.life.TryRLock() { // until Close waits for the lock
		h.life.RUnlock()
		runtime.Gosched()
	}
	if _, err := send.Write([]byte(`"pk":"p"}`)); err != nil {
		t.Fatal(err)
	}
	select {
	case <-closed:
		t.Fatal("Close has not waited")
	default:
	}
	if err := send.Close(); err != nil {
		t.Fatal(err)
	}
	if a := <-answered; a.status != 201 {
		t.Errorf("the request under way: status %d: %s", a.status, a.body)
	}
	<-closed
}

func TestCancelledRequest(t *testing.T) {
	h := newContainer(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct{ method, path, body string }{
		{"POST", "/dbs", `{"id":"e"}`},
		{"POST", "/dbs/d/colls", `{"id":"e","partitionKey":{"paths":["/pk"]}}`},
		{"DELETE", "/dbs/d", ""},
	} {
		a := serve(h, signedRequest(t, c.method, c.path, []byte(c.body), nil).WithContext(ctx))
		a.failureText(t, 449, 0)
	}
	if n := call(t, h, "GET", "/dbs", "", nil, 200).json(t)["_count"]; n != 1.0 {
		t.Errorf("%v databases after cancelled requests, want 1", n)
	}
	call(t, h, "POST", "/dbs/d/colls/c/docs", `{"id":"i","pk":"p"}`, pk("p"), 201)
}
