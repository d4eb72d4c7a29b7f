// SPDX-License-Identifier: MIT

package direct_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/direct/directclient"
	"github.com/mayflydb/mayfly/internal/rntbd"
)

// waitLimit bounds every wait for something that must happen.
const waitLimit = time.Minute

// testServer is a whole server on loopback.
type testServer struct {
	*mayfly.Server
	t      testing.TB
	addr   string
	served chan error
	// masterKey is the server's key, in base64, and pid its process if it is another.
	masterKey string
	pid       int
}

func serveTest(t testing.TB, o mayfly.Options) *testServer {
	t.Helper()
	leaks := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, leaks) })
	o.Memory = o.Dir == ""
	s, err := mayfly.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ts := &testServer{Server: s, t: t, addr: l.Addr().String(), served: make(chan error, 1), masterKey: s.Key()}
	go func() { ts.served <- s.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown = %v", err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
		if err := <-ts.served; err != nil {
			t.Errorf("Serve = %v", err)
		}
	})
	return ts
}

func (s *testServer) key() []byte {
	key, err := base64.StdEncoding.DecodeString(s.masterKey)
	if err != nil {
		s.t.Fatal(err)
	}
	return key
}

// http sends a request over HTTP, and wants a status.
func (s *testServer) http(method, path, kind, link, body string, headers map[string]string, want int) []byte {
	s.t.Helper()
	r, err := http.NewRequest(method, "http://"+s.addr+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	s.sign(r, kind, link)
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: waitLimit}
	res, err := client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	if res.StatusCode != want {
		s.t.Fatalf("%s %s = %d %s, want %d", method, path, res.StatusCode, got, want)
	}
	return got
}

// sign signs a request over HTTP.
func (s *testServer) sign(r *http.Request, kind, link string) {
	date := time.Now().UTC().Format(http.TimeFormat)
	mac := hmac.New(sha256.New, s.key())
	fmt.Fprintf(mac, "%s\n%s\n%s\n%s\n\n", strings.ToLower(r.Method), kind, link, strings.ToLower(date))
	r.Header.Set("Authorization", "type=master&ver=1.0&sig="+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	r.Header.Set("x-ms-date", date)
}

func (s *testServer) database(name string) {
	s.t.Helper()
	s.http("POST", "/dbs", "dbs", "", `{"id":"`+name+`"}`, nil, 201)
}

func (s *testServer) container(database, name string, paths ...string) {
	s.t.Helper()
	list, err := json.Marshal(paths)
	if err != nil {
		s.t.Fatal(err)
	}
	kind := "Hash"
	if len(paths) > 1 {
		kind = "MultiHash"
	}
	s.http("POST", "/dbs/"+database+"/colls", "colls", "dbs/"+database,
		`{"id":"`+name+`","partitionKey":{"paths":`+string(list)+`,"kind":"`+kind+`","version":2}}`, nil, 201)
}

// dial opens a channel.
func (s *testServer) dial() *directclient.Channel {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := conn.SetDeadline(time.Now().Add(waitLimit)); err != nil {
		s.t.Fatal(err)
	}
	c, err := directclient.Open(conn)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close() })
	return c
}

// item makes a request for an item, or for the items of container c in database d.
func (s *testServer) item(op rntbd.Operation, id, partitionKey, body string) *directclient.Request {
	link := "dbs/d/colls/c"
	if !op.OnFeed() {
		link += "/docs/" + id
	}
	b := directclient.AppendSignature(nil, s.key(), op.Method(), "docs", link)
	b = rntbd.AppendText(b, rntbd.RequestDatabaseName, "d")
	b = rntbd.AppendText(b, rntbd.RequestCollectionName, "c")
	if !op.OnFeed() {
		b = rntbd.AppendText(b, rntbd.RequestDocumentName, id)
	}
	b = rntbd.AppendText(b, rntbd.RequestReplicaPath, "/apps/x/services/y/partitions/z/replicas/1p")
	if partitionKey != "" {
		b = rntbd.AppendText(b, rntbd.RequestPartitionKey, `["`+partitionKey+`"]`)
	}
	r := &directclient.Request{Resource: rntbd.Document, Operation: op, Activity: rntbd.GUID{7}, Tokens: b}
	if body != "" {
		r.Body = []byte(body)
	}
	return r
}

// do sends a request and wants a status.
func (s *testServer) do(c *directclient.Channel, r *directclient.Request, want int) directclient.Response {
	s.t.Helper()
	a, err := c.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	if a.Status != want {
		s.t.Fatalf("%d %s, want %d", a.Status, a.Body, want)
	}
	if !bytes.Equal(a.Activity[:], r.Activity[:]) {
		s.t.Errorf("the activity is %s, want %s", a.Activity, r.Activity)
	}
	checkAnswer(s.t, fmt.Sprintf("operation %#x", r.Operation), &a)
	return a
}

// checkAnswer checks what SDKs need in every answer, or else ask again, wait or break.
func checkAnswer(t testing.TB, name string, a *directclient.Response) {
	t.Helper()
	for _, id := range []rntbd.Token{
		rntbd.ResponsePayloadPresent, rntbd.ResponseTransportRequestID, rntbd.ResponseRequestCharge, rntbd.ResponseLSN, rntbd.ResponseQuorumAckedLSN,
		rntbd.ResponseGlobalCommittedLSN, rntbd.ResponseLocalLSN, rntbd.ResponseQuorumAckedLocalLSN, rntbd.ResponseNumberOfReadRegions,
		rntbd.ResponseCurrentWriteQuorum, rntbd.ResponseCurrentReplicaSetSize,
	} {
		if _, ok := a.Token(id); !ok {
			t.Errorf("%s: the answer %d has no token %#x", name, a.Status, id)
		}
	}
	lsn := a.Number(rntbd.ResponseLSN)
	if lsn < 1 {
		t.Errorf("%s: the LSN is %d, with which clients wait", name, lsn)
	}
	for _, id := range []rntbd.Token{rntbd.ResponseQuorumAckedLSN, rntbd.ResponseGlobalCommittedLSN, rntbd.ResponseLocalLSN, rntbd.ResponseQuorumAckedLocalLSN} {
		if got := a.Number(id); got != lsn {
			t.Errorf("%s: token %#x is %d, and the LSN %d", name, id, got, lsn)
		}
	}
	if a.Number(rntbd.ResponseCurrentWriteQuorum) != 1 || a.Number(rntbd.ResponseCurrentReplicaSetSize) != 1 || a.Number(rntbd.ResponseNumberOfReadRegions) != 0 {
		t.Errorf("%s: wrong numbers of replicas or regions", name)
	}
	_, session := a.Token(rntbd.ResponseSessionToken)
	_, ranged := a.Token(rntbd.ResponsePartitionKeyRangeID)
	if session != ranged {
		t.Errorf("%s: of session token and range there is one", name)
	}
	if session && (strings.Contains(a.Text(rntbd.ResponseSessionToken), ":") || !strings.HasPrefix(a.Text(rntbd.ResponseSessionToken), "-1#")) {
		t.Errorf("%s: the session token is %q", name, a.Text(rntbd.ResponseSessionToken))
	}
	if a.Status < 400 {
		return
	}
	if _, at := a.Token(rntbd.ResponseRequestValidationFailure); !session && !at && a.Status != 410 && a.Status != 449 {
		t.Errorf("%s: the error %d has no position, and does not say that it is final: clients ask for seconds", name, a.Status)
	}
	var refusal map[string]json.RawMessage
	if err := json.Unmarshal(a.Body, &refusal); err != nil || len(refusal) != 1 || refusal["Errors"] == nil && refusal["errors"] == nil {
		t.Errorf("%s: the error is %s", name, a.Body)
	}
}
