// SPDX-License-Identifier: MIT

package direct_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/binaryjson"
	"github.com/mayflydb/mayfly/internal/direct/directclient"
	"github.com/mayflydb/mayfly/internal/rntbd"
)

// refused sends a request, and wants an error and a part of its text.
func (s *testServer) refused(c *directclient.Channel, r *directclient.Request, status, subStatus int, text string) directclient.Response {
	s.t.Helper()
	a := s.do(c, r, status)
	if got := a.Number(rntbd.ResponseSubStatus); got != int64(subStatus) {
		s.t.Errorf("%d/%d %s, want %d/%d", status, got, a.Body, status, subStatus)
	}
	if !strings.Contains(string(a.Body), text) {
		s.t.Errorf("%d: %s, want %q", status, a.Body, text)
	}
	return a
}

// with adds a text to a request.
func with(r *directclient.Request, id rntbd.Token, text string) *directclient.Request {
	r.Tokens = rntbd.AppendText(r.Tokens, id, text)
	return r
}

// positioned checks that an error names its partition: a client that reads in a session
// takes it for another replica's otherwise.
func positioned(t *testing.T, a *directclient.Response) {
	t.Helper()
	if a.Text(rntbd.ResponseSessionToken) == "" || a.Text(rntbd.ResponsePartitionKeyRangeID) != "0" {
		t.Errorf("the error %d has no position", a.Status)
	}
	if _, final := a.Token(rntbd.ResponseRequestValidationFailure); final {
		t.Errorf("the error %d has a position, and is marked as one of the request", a.Status)
	}
}

func TestErrorsOfItems(t *testing.T) {
	s := newContainer(t, mayfly.Options{})
	c := s.dial()
	missing := s.refused(c, s.item(rntbd.Read, "a", "p", ""), 404, 0, "Resource Not Found")
	positioned(t, &missing) // the container was never written to
	created := s.do(c, s.item(rntbd.Create, "", "p", `{"id":"a","pk":"p"}`), 201)
	etag := created.Text(rntbd.ResponseETag)
	for _, a := range []directclient.Response{
		s.refused(c, s.item(rntbd.Read, "b", "p", ""), 404, 0, "Resource Not Found"),
		s.refused(c, s.item(rntbd.Create, "", "p", `{"id":"a","pk":"p"}`), 409, 0, "already exists"),
		s.refused(c, with(s.item(rntbd.Replace, "a", "p", `{"id":"a","pk":"p"}`), rntbd.RequestMatch, `"no"`), 412, 0, "pre-condition"),
		s.refused(c, with(s.item(rntbd.Read, "a", "p", ""), rntbd.RequestSessionToken, "0:-1#1000"), 404, 1002, "read session"),
	} {
		positioned(t, &a)
	}
	if a := s.do(c, with(s.item(rntbd.Read, "a", "p", ""), rntbd.RequestMatch, etag), 304); a.Text(rntbd.ResponseETag) != etag || len(a.Body) > 0 {
		t.Errorf("304 with etag %q and %s", a.Text(rntbd.ResponseETag), a.Body)
	}
	s.refused(c, s.item(rntbd.Create, "", "p", `{"id":`), 400, 0, "JSON")
	s.refused(c, s.item(rntbd.Create, "", "q", `{"id":"b","pk":"p"}`), 400, 1001, "PartitionKey")
	s.refused(c, s.item(rntbd.Read, "a", "", ""), 400, 0, "PartitionKey")
	s.refused(c, s.item(rntbd.Create, "", "p", `{"id":"b","pk":"p","x":"`+strings.Repeat("x", 2<<20)+`"}`), 413, 0, "too large")
	s.refused(c, with(s.item(rntbd.Query, "", "", `{"query":"SELECT * FROM c"}`), rntbd.RequestPartitionKeyRangeID, "7"), 410, 1002, "range")
	s.refused(c, s.item(rntbd.Query, "", "p", `{"query":"SELECT FROM"}`), 400, 0, "errors")
	s.refused(c, with(s.item(rntbd.Read, "a", "p", ""), rntbd.RequestSessionToken, "nonsense"), 400, 0, "session token")
	s.refused(c, s.item(rntbd.Head, "a", "p", ""), 405, 0, "verb")
	s.do(c, s.item(rntbd.Read, "a", "p", ""), 200) // the channel goes on
}

// TestLatestCommittedReads: a client that asks for the latest committed version names a
// level, too, which may be stronger than the account's.
func TestLatestCommittedReads(t *testing.T) {
	s := newContainer(t, mayfly.Options{Consistency: "Session"})
	c := s.dial()
	s.do(c, s.item(rntbd.Create, "", "p", `{"id":"a","pk":"p"}`), 201)
	reading := func(level byte, strategy ...byte) *directclient.Request {
		r := s.item(rntbd.Read, "a", "p", "")
		for _, b := range strategy {
			r.Tokens = rntbd.AppendByte(r.Tokens, rntbd.RequestReadConsistencyStrategy, b)
		}
		r.Tokens = rntbd.AppendByte(r.Tokens, rntbd.RequestConsistencyLevel, level)
		return r
	}
	s.do(c, reading(rntbd.BoundedStaleness, rntbd.ReadLatestCommitted), 200)
	s.do(c, reading(rntbd.Session, rntbd.ReadSession), 200)
	s.do(c, reading(rntbd.Eventual, rntbd.ReadEventual), 200)
	s.refused(c, reading(rntbd.BoundedStaleness), 400, 0, "stronger")
	s.refused(c, reading(rntbd.Strong, rntbd.ReadGlobalStrong), 400, 0, "stronger")
	s.refused(c, reading(rntbd.Strong, rntbd.ReadLatestCommitted), 400, 0, "stronger")
}

// safeLog is a log that a test reads while a server writes it.
type safeLog struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *safeLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *safeLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func TestErrorsOfCredentials(t *testing.T) {
	var log safeLog
	s := newContainer(t, mayfly.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	c := s.dial()
	r := s.item(rntbd.Read, "a", "p", "")
	r.Tokens = []byte(strings.Replace(string(r.Tokens), "master", "mastex", 1))
	s.refused(c, r, 401, 0, "authorization token")
	line := regexp.MustCompile(`level=WARN .*method=GET path=dbs/d/colls/c/docs/… status=401 activity=[-0-9a-f]{36} client=127.0.0.1:[0-9]+ operation=item_read`)
	if !line.MatchString(log.String()) {
		t.Errorf("the log lacks a line about the refusal: %s", log.String())
	}
	r = s.item(rntbd.Read, "a", "p", "")
	r.Operation = rntbd.Delete // another method than was signed
	s.refused(c, r, 401, 0, "authorization token")
	r = s.item(rntbd.Read, "a", "p", "")
	s.refused(c, with(r, rntbd.RequestDocumentName, "b"), 401, 0, "authorization token")
	r = &directclient.Request{Resource: rntbd.Document, Operation: rntbd.Create, Body: []byte(`{"id":"a"}`)}
	r.Tokens = rntbd.AppendText(rntbd.AppendText(nil, rntbd.RequestDatabaseName, "d"), rntbd.RequestCollectionName, "c")
	s.refused(c, r, 401, 0, "missing")
	// A client that fails often waits, and others do not.
	begun := time.Now()
	for range 8 {
		r := s.item(rntbd.Read, "a", "p", "")
		r.Operation = rntbd.Delete
		s.refused(c, r, 401, 0, "authorization token")
	}
	if took := time.Since(begun); took < time.Second {
		t.Errorf("12 failures took %v", took)
	}
	s.do(s.dial(), s.item(rntbd.Create, "", "p", `{"id":"a","pk":"p"}`), 201)
}

func TestErrorsOfContainers(t *testing.T) {
	s := newContainer(t, mayfly.Options{})
	c := s.dial()
	created := s.do(c, s.item(rntbd.Create, "", "p", `{"id":"a","pk":"p"}`), 201)
	rid := created.Text(rntbd.ResponseOwnerID)
	s.do(c, with(s.item(rntbd.Read, "a", "p", ""), rntbd.RequestCollectionRID, rid), 200)
	s.http("DELETE", "/dbs/d/colls/c", "colls", "dbs/d/colls/c", "", nil, 204)
	s.refused(c, with(s.item(rntbd.Read, "a", "p", ""), rntbd.RequestCollectionRID, rid), 404, 1003, "Owner resource")
	s.container("d", "c", "/pk")
	for _, r := range []*directclient.Request{
		s.item(rntbd.Read, "a", "p", ""), s.item(rntbd.Create, "", "p", `{"id":"a","pk":"p"}`),
		s.item(rntbd.Query, "", "p", `{"query":"SELECT * FROM c"}`), s.item(rntbd.ReadFeed, "", "p", ""),
	} {
		s.refused(c, with(r, rntbd.RequestCollectionRID, rid), 410, 1000, "created again")
	}
	s.refused(c, with(s.item(rntbd.Read, "a", "p", ""), rntbd.RequestIntendedCollectionRID, rid), 400, 1024, "deleted and created again")
}

func TestThrottledRequests(t *testing.T) {
	s := newContainer(t, mayfly.Options{Throughput: mayfly.ThroughputEnforce})
	c := s.dial()
	for i := range 2000 {
		a, err := c.Do(s.item(rntbd.Create, "", "p", fmt.Sprintf(`{"id":"%d","pk":"p"}`, i)))
		if err != nil {
			t.Fatal(err)
		}
		if a.Status != 429 {
			continue
		}
		checkAnswer(t, "throttled", &a)
		charge, _ := a.Token(rntbd.ResponseRequestCharge)
		if a.Number(rntbd.ResponseSubStatus) != 3200 || a.Number(rntbd.ResponseRetryAfterMilliseconds) <= 0 || charge.Double() != 0 {
			t.Errorf("429/%d after %d ms, %v RU", a.Number(rntbd.ResponseSubStatus), a.Number(rntbd.ResponseRetryAfterMilliseconds), charge.Double())
		}
		return
	}
	t.Error("nothing was throttled")
}

func TestUnknownRequests(t *testing.T) {
	s := newContainer(t, mayfly.Options{})
	c := s.dial()
	for _, r := range []*directclient.Request{
		{Resource: rntbd.Attachment, Operation: rntbd.Read},
		{Resource: 0x7777, Operation: rntbd.Read, Body: []byte("x")},
		{Resource: rntbd.Document, Operation: 0x30},
		{Resource: rntbd.Document, Operation: rntbd.Read},
		{Resource: rntbd.Document, Operation: rntbd.Read, Tokens: rntbd.AppendBytes(nil, rntbd.RequestResourceID, "abc")},
	} {
		s.refused(c, r, 400, 0, "not known in direct mode")
	}
	s.do(c, s.item(rntbd.Create, "", "p", `{"id":"a","pk":"p"}`), 201)
}

// A barrier asks for a position, and for nothing else.
func TestBarrier(t *testing.T) {
	s := newContainer(t, mayfly.Options{})
	c := s.dial()
	for i := range 3 {
		s.do(c, s.item(rntbd.Create, "", "p", fmt.Sprintf(`{"id":"%d","pk":"p"}`, i)), 201)
	}
	head := func(id rntbd.Token, text string) *directclient.Request {
		b := directclient.AppendSignature(nil, s.key(), "HEAD", "colls", "dbs/d/colls/c")
		b = rntbd.AppendText(b, rntbd.RequestDatabaseName, "d")
		b = rntbd.AppendText(b, rntbd.RequestCollectionName, "c")
		b = rntbd.AppendLongLong(b, rntbd.RequestTargetLSN, 3)
		return &directclient.Request{Resource: rntbd.Collection, Operation: rntbd.Head, Tokens: rntbd.AppendText(b, id, text)}
	}
	for _, r := range []*directclient.Request{head(rntbd.RequestPartitionKey, `["p"]`), head(rntbd.RequestPartitionKeyRangeID, "0")} {
		a := s.do(c, r, 200)
		if a.Number(rntbd.ResponseLSN) != 3 || a.Text(rntbd.ResponseSessionToken) != "-1#3" || len(a.Body) > 0 {
			t.Errorf("LSN %d, session %q, body %q", a.Number(rntbd.ResponseLSN), a.Text(rntbd.ResponseSessionToken), a.Body)
		}
	}
	s.refused(c, head(rntbd.RequestPartitionKeyRangeID, "9"), 410, 1002, "range")
	all := &directclient.Request{Resource: rntbd.Database, Operation: rntbd.HeadFeed, Tokens: directclient.AppendSignature(nil, s.key(), "HEAD", "dbs", "")}
	s.do(c, all, 200)
}

// Requests may name their resource by its rid alone.
func TestRequestsByRID(t *testing.T) {
	s := newContainer(t, mayfly.Options{})
	c := s.dial()
	created := s.do(c, s.item(rntbd.Create, "", "p", `{"id":"a","pk":"p"}`), 201)
	var item struct {
		RID string `json:"_rid"`
	}
	if err := json.Unmarshal(created.Body, &item); err != nil {
		t.Fatal(err)
	}
	raw := "\x00\x00\x00\x01\x80\x00\x00\x01\x01\x00\x00\x00\x00\x00\x00\x00"
	b := directclient.AppendSignature(nil, s.key(), "GET", "docs", strings.ToLower(item.RID))
	b = rntbd.AppendBytes(b, rntbd.RequestResourceID, raw)
	b = rntbd.AppendText(b, rntbd.RequestPartitionKey, `["p"]`)
	a := s.do(c, &directclient.Request{Resource: rntbd.Document, Operation: rntbd.Read, Tokens: b}, 200)
	if string(a.Body) != string(created.Body) {
		t.Errorf("read %s", a.Body)
	}
	b = directclient.AppendSignature(nil, s.key(), "GET", "docs", "aaaaayaaaae=")
	b = rntbd.AppendBytes(b, rntbd.RequestResourceID, raw[:8])
	b = rntbd.AppendText(b, rntbd.RequestPartitionKey, `["p"]`)
	a = s.do(c, &directclient.Request{Resource: rntbd.Document, Operation: rntbd.ReadFeed, Tokens: b}, 200)
	if a.Number(rntbd.ResponseItemCount) != 1 {
		t.Errorf("listed %s", a.Body)
	}
}

func TestBinaryJSON(t *testing.T) {
	s := newContainer(t, mayfly.Options{})
	c := s.dial()
	document, err := binaryjson.Encode([]byte(`{"id":"a","pk":"p","n":1}`))
	if err != nil {
		t.Fatal(err)
	}
	r := s.item(rntbd.Create, "", "p", string(document))
	r.Tokens = rntbd.AppendByte(r.Tokens, rntbd.RequestContentSerializationFormat, rntbd.BinaryContent)
	r.Tokens = rntbd.AppendByte(r.Tokens, rntbd.RequestSupportedSerializationFormats, rntbd.AcceptsBinary)
	a := s.do(c, r, 201)
	if text, err := binaryjson.Decode(a.Body, 1<<20); err != nil || !json.Valid(text) {
		t.Errorf("%x: %v", a.Body, err)
	}
	r = s.item(rntbd.Read, "a", "p", "")
	r.Tokens = rntbd.AppendByte(r.Tokens, rntbd.RequestSupportedSerializationFormats, rntbd.AcceptsBinary|rntbd.AcceptsText)
	if a := s.do(c, r, 200); !json.Valid(a.Body) {
		t.Errorf("a client that accepts both got %x", a.Body)
	}
}
