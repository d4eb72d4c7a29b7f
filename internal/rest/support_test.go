// SPDX-License-Identifier: MIT

// Helpers of the handler's tests: a database in memory, an independent implementation of
// the client's signature, and readers of answers.

package rest

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/api"
	"github.com/mayflydb/mayfly/internal/engine"
	"github.com/mayflydb/mayfly/internal/kv/pebblekv"
	"github.com/mayflydb/mayfly/internal/memory"
	"github.com/mayflydb/mayfly/internal/value"
)

// testKey is the key of the service's emulators.
const testKey = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="

// testHandlerOptions are the options of a test's handler.
type testHandlerOptions struct {
	keys         []string // nil for testKey
	readOnlyKeys []string
	publicKey    bool
	allowHosts   []string
	account      api.Account // filled in where it is empty
	logger       *slog.Logger
}

// newTestHandler returns a handler over an empty database in memory.
func newTestHandler(t testing.TB) *Handler {
	t.Helper()
	return newTestHandlerWith(t, testHandlerOptions{})
}

func newTestHandlerWith(t testing.TB, o testHandlerOptions) *Handler {
	t.Helper()
	db, err := pebblekv.OpenMemory(pebblekv.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.Open(engine.Options{DB: db, TestClock: true, ScriptTime: time.Minute, Explain: api.Explain})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	if o.keys == nil {
		o.keys = []string{testKey}
	}
	if o.account.Regions == nil {
		o.account.Regions = []string{"Here"}
	}
	if o.account.Consistency == "" {
		o.account.Consistency = "Session"
	}
	h, err := New(Options{Engine: e, Keys: o.keys, ReadOnlyKeys: o.readOnlyKeys, Account: o.account, Logger: o.logger, Memory: testMemory(t), PublicKey: o.publicKey, AllowHosts: o.allowHosts})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// testMemoryBytes is the memory budget of a test's requests.
const testMemoryBytes = 64 << 20

// testMemory returns a budget, and checks at the end of the test that nothing is held.
func testMemory(t testing.TB) *memory.Budget {
	b := memory.NewBudget(testMemoryBytes)
	t.Cleanup(func() {
		if use := b.Use(); use.Held != 0 || use.Waiting != 0 {
			t.Errorf("memory is held after the last request: %+v", use)
		}
	})
	return b
}

// takeAll takes all memory of the requests' budget until the caller closes the share.
func takeAll(t testing.TB, h *Handler) *memory.Share {
	t.Helper()
	s := h.memory.Share()
	if use := h.memory.Use(); use.Held != 0 || !s.TryTake(use.Total) {
		t.Fatalf("the memory is not free: %+v", use)
	}
	return &s
}

// clientSignature returns the base64 signature over the five lines of the protocol. It is
// implemented again here so that the server is not tested against itself.
func clientSignature(t testing.TB, key, verb, kind, link, msDate, date string) string {
	t.Helper()
	raw, err := base64.StdEncoding.DecodeString(key)
	if err != nil {
		t.Fatal(err)
	}
	mac := hmac.New(sha256.New, raw)
	mac.Write([]byte(strings.ToLower(verb) + "\n" + strings.ToLower(kind) + "\n" + link + "\n" +
		strings.ToLower(msDate) + "\n" + strings.ToLower(date) + "\n"))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// masterToken is the value of an Authorization header, not yet encoded.
func masterToken(signature string) string { return "type=master&ver=1.0&sig=" + signature }

// dateText is a date as SDKs write it.
func dateText(t time.Time) string { return t.UTC().Format(http.TimeFormat) }

// signedRequest returns a request as an SDK would send it. The path must be one
// that the protocol knows.
func signedRequest(t testing.TB, method, path string, body []byte, headers map[string]string) *http.Request {
	t.Helper()
	r, err := http.NewRequest(method, "http://localhost"+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	rt, ok := parseRoute(r.URL.EscapedPath())
	if !ok {
		t.Fatalf("%s addresses nothing", path)
	}
	signRequest(t, r, rt.kind.Word(), rt.link)
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	return r
}

// signRequest signs a request with testKey for now.
func signRequest(t testing.TB, r *http.Request, kind, link string) {
	t.Helper()
	date := dateText(time.Now())
	r.Header.Set("Authorization", url.QueryEscape(masterToken(clientSignature(t, testKey, r.Method, kind, link, date, ""))))
	r.Header.Set("X-Ms-Date", date)
}

// sink is a ResponseWriter that keeps only the status.
type sink struct {
	header http.Header
	status int
	bytes  int
}

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) Write(b []byte) (int, error) { s.bytes += len(b); return len(b), nil }
func (s *sink) WriteHeader(status int)      { s.status = status }

// serveOnce sends a request to the handler and checks the status.
func serveOnce(t testing.TB, h *Handler, r *http.Request, want int) {
	t.Helper()
	s := &sink{header: http.Header{}}
	h.ServeHTTP(s, r)
	if s.status != want {
		t.Fatalf("%s %s: status %d, want %d", r.Method, r.URL, s.status, want)
	}
}

// answer is a response that was read to its end.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// onceRecorder counts how often a status is sent.
type onceRecorder struct {
	*httptest.ResponseRecorder
	statuses int
}

func (w *onceRecorder) WriteHeader(status int) {
	w.statuses++
	w.ResponseRecorder.WriteHeader(status)
}

// serve passes a request to the handler. It panics if there is not exactly one answer, or
// its body has another length than announced.
func serve(h http.Handler, r *http.Request) answer {
	w := &onceRecorder{ResponseRecorder: httptest.NewRecorder()}
	h.ServeHTTP(w, r)
	if w.statuses != 1 {
		panic(fmt.Sprintf("%s %s was answered %d times", r.Method, r.URL, w.statuses))
	}
	if n := w.Header().Get("Content-Length"); n != "" && n != strconv.Itoa(w.Body.Len()) && r.Method != http.MethodHead {
		panic(fmt.Sprintf("%s %s: %s bytes announced, %d sent", r.Method, r.URL, n, w.Body.Len()))
	}
	return answer{w.Code, received(w.Header()), w.Body.Bytes()}
}

// received returns headers as a client's net/http spells them.
func received(sent http.Header) http.Header {
	h := http.Header{}
	for name, values := range sent {
		h[http.CanonicalHeaderKey(name)] = values
	}
	return h
}

// call signs a request, serves it and checks the status.
func call(t testing.TB, h *Handler, method, path, body string, headers map[string]string, want int) answer {
	t.Helper()
	a := serve(h, signedRequest(t, method, path, []byte(body), headers))
	if a.status != want {
		t.Fatalf("%s %s %.200s: status %d, want %d: %s", method, path, body, a.status, want, a.body)
	}
	return a
}

// json decodes the body.
func (a answer) json(t testing.TB) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(a.body, &v); err != nil {
		t.Fatalf("the body is no JSON object: %v: %.500s", err, a.body)
	}
	return v
}

// failureText checks that an answer is an error in the service's form, with the given
// code and sub-status, and returns its message.
func (a answer) failureText(t testing.TB, status, subStatus int) string {
	t.Helper()
	if a.status != status {
		t.Fatalf("status %d, want %d: %.500s", a.status, status, a.body)
	}
	if got, want := a.header.Get("x-ms-substatus"), subStatusText(subStatus); got != want {
		t.Errorf("sub-status %q, want %q", got, want)
	}
	if got := a.header.Get("Content-Type"); got != "application/json" {
		t.Errorf("content type %q", got)
	}
	if charge, err := strconv.ParseFloat(a.header.Get("x-ms-request-charge"), 64); err != nil || (charge > 0) != (status != http.StatusTooManyRequests) {
		t.Errorf("request charge %q of an error, want more than 0, and 0 for 429", a.header.Get("x-ms-request-charge"))
	}
	var body struct{ Code, Message string }
	if err := json.Unmarshal(a.body, &body); err != nil {
		t.Fatalf("the body is no JSON: %v: %.500s", err, a.body)
	}
	if f := (api.Failure{Status: status}); body.Code != f.Code() {
		t.Errorf("code %q, want %q", body.Code, f.Code())
	}
	rest, ok := strings.CutPrefix(body.Message, "Message: ")
	inner, trailer, ok2 := strings.Cut(rest, "\r\n")
	var errs struct{ Errors []string }
	if err := json.Unmarshal([]byte(inner), &errs); !ok || !ok2 || err != nil || len(errs.Errors) != 1 || errs.Errors[0] == "" {
		t.Fatalf("the message is not in the service's form: %q", body.Message)
	}
	if id := a.header.Get("x-ms-activity-id"); id == "" || !strings.HasPrefix(trailer, "ActivityId: "+id+", Request URI: ") {
		t.Errorf("the trailer %q does not name the activity %q and the path", trailer, id)
	}
	return errs.Errors[0]
}

func subStatusText(subStatus int) string {
	if subStatus == 0 {
		return ""
	}
	return strconv.Itoa(subStatus)
}

const containerBody = `{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}`

// newContainer returns a handler with the container dbs/d/colls/c, partitioned
// by /pk.
func newContainer(t testing.TB) *Handler {
	t.Helper()
	h := newTestHandler(t)
	call(t, h, "POST", "/dbs", `{"id":"d"}`, nil, 201)
	call(t, h, "POST", "/dbs/d/colls", containerBody, nil, 201)
	return h
}

// pk is the header of a partition key of one string.
func pk(value string) map[string]string {
	return map[string]string{headerPartitionKey: `["` + value + `"]`}
}

// decode reads the body into a T.
func decode[T any](t testing.TB, a answer) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(a.body, &v); err != nil {
		t.Fatalf("the body does not fit %T: %v: %.500s", v, err, a.body)
	}
	return v
}

// quoted returns s as a JSON string.
func quoted(s string) string { return string(value.AppendString(nil, s)) }
