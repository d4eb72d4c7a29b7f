// SPDX-License-Identifier: MIT

// Helpers for the tests of the whole server: a real server on a port of loopback, and a
// client that signs requests as an SDK does.

package mayfly

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// waitLimit bounds every wait for something that must happen.
const waitLimit = time.Minute

// testServer is a server on loopback, and a client of its own.
type testServer struct {
	*Server
	addr   string
	client *http.Client
	served chan error
}

// serveTest opens a database and serves it until the test ends. Then it stops the server
// and fails the test if that fails.
func serveTest(t testing.TB, o Options) *testServer {
	t.Helper()
	leaks := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, leaks) })
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ts := &testServer{
		Server: s, addr: l.Addr().String(), served: make(chan error, 1),
		client: &http.Client{Transport: &http.Transport{}, Timeout: waitLimit},
	}
	go func() { ts.served <- s.Serve(l) }()
	t.Cleanup(func() { ts.stop(t) })
	return ts
}

// stop shuts the server down and closes it. It may be called twice.
func (s *testServer) stop(t testing.TB) {
	t.Helper()
	s.client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Errorf("Shutdown = %v", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("Close = %v", err)
	}
	select {
	case err, first := <-s.served:
		if err != nil {
			t.Errorf("Serve = %v", err)
		}
		if first {
			close(s.served)
		}
	case <-ctx.Done():
		t.Error("Serve does not return")
	}
}

// signedHeaders are what an SDK sends with every request: the signature over the
// verb, the resource and the date.
func signedHeaders(t testing.TB, key, method, path string) http.Header {
	t.Helper()
	raw, err := base64.StdEncoding.DecodeString(key)
	if err != nil {
		t.Fatal(err)
	}
	// An operation on a container is signed as the container.
	kind, link := "", strings.Trim(strings.TrimSuffix(path, "/operations/partitionkeydelete"), "/")
	segments := strings.Split(link, "/")
	for i, s := range segments {
		if segments[i], err = url.PathUnescape(s); err != nil {
			t.Fatal(err)
		}
	}
	switch {
	case link == "":
	case len(segments)%2 == 1:
		kind, link = segments[len(segments)-1], strings.Join(segments[:len(segments)-1], "/")
	default:
		kind, link = segments[len(segments)-2], strings.Join(segments, "/")
	}
	date := time.Now().UTC().Format(http.TimeFormat)
	mac := hmac.New(sha256.New, raw)
	fmt.Fprintf(mac, "%s\n%s\n%s\n%s\n\n", strings.ToLower(method), kind, link, strings.ToLower(date))
	return http.Header{
		"Authorization": {url.QueryEscape("type=master&ver=1.0&sig=" + base64.StdEncoding.EncodeToString(mac.Sum(nil)))},
		"X-Ms-Date":     {date},
	}
}

// request makes a signed request. Headers are set unchanged, even with bytes that are not
// UTF-8.
func (s *testServer) request(t testing.TB, method, path string, body io.Reader, headers map[string]string) *http.Request {
	t.Helper()
	r, err := http.NewRequest(method, "http://"+s.addr+path, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header = signedHeaders(t, s.Key(), method, path)
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	return r
}

// reply is a response that was read to its end.
type reply struct {
	status int
	header http.Header
	body   []byte
}

func (s *testServer) do(r *http.Request) (reply, error) {
	res, err := s.client.Do(r)
	if err != nil {
		return reply{}, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return reply{res.StatusCode, res.Header, body}, err
}

// send signs, sends, and reads the answer.
func (s *testServer) send(t testing.TB, method, path, body string, headers map[string]string) reply {
	t.Helper()
	a, err := s.do(s.request(t, method, path, strings.NewReader(body), headers))
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return a
}

// must is send with a status that the answer must have.
func (s *testServer) must(t testing.TB, want int, method, path, body string, headers map[string]string) reply {
	t.Helper()
	a := s.send(t, method, path, body, headers)
	if a.status != want {
		t.Fatalf("%s %s %.200s: status %d, want %d: %.500s", method, path, body, a.status, want, a.body)
	}
	return a
}

// message returns the message of an error, and fails if the error is not in the service's
// form.
func (a reply) message(t testing.TB) string {
	t.Helper()
	var body struct{ Code, Message string }
	if err := json.Unmarshal(a.body, &body); err != nil || body.Code == "" {
		t.Fatalf("status %d with a body that is not an error: %v: %.300q", a.status, err, a.body)
	}
	inner, ok := strings.CutPrefix(body.Message, "Message: ")
	inner, _, ok2 := strings.Cut(inner, "\r\nActivityId: ")
	var errs struct{ Errors []string }
	if err := json.Unmarshal([]byte(inner), &errs); err != nil || !ok || !ok2 || len(errs.Errors) != 1 {
		t.Fatalf("status %d with a message that is not an error: %.300q", a.status, body.Message)
	}
	return errs.Errors[0]
}

// makeContainer makes dbs/d/colls/c, partitioned by /pk.
func (s *testServer) makeContainer(t testing.TB) {
	t.Helper()
	s.must(t, 201, "POST", "/dbs", `{"id":"d"}`, nil)
	s.must(t, 201, "POST", "/dbs/d/colls", `{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}`, nil)
}

// items is the path of the items of makeContainer's container.
const items = "/dbs/d/colls/c/docs"

func pk(value string) map[string]string {
	return map[string]string{"x-ms-documentdb-partitionkey": `["` + value + `"]`}
}

// dial opens a new connection.
func (s *testServer) dial(t testing.TB) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.SetDeadline(time.Now().Add(waitLimit)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// head is the start of a signed request as bytes: all but the headers of the body.
func (s *testServer) head(t testing.TB, method, path string, headers map[string]string) string {
	t.Helper()
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\n", method, path, s.addr)
	h := signedHeaders(t, s.Key(), method, path)
	for name, value := range headers {
		h.Set(name, value)
	}
	if err := h.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// readReply reads one response from a connection.
func readReply(t testing.TB, r *bufio.Reader) reply {
	t.Helper()
	res, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{res.StatusCode, res.Header, body}
}

// ended waits for the server to end the connection, in order or with a reset.
func ended(t testing.TB, conn net.Conn) {
	t.Helper()
	_, err := io.Copy(io.Discard, conn)
	var slow net.Error
	if errors.As(err, &slow) && slow.Timeout() {
		t.Error("the server does not end the connection")
	}
}
