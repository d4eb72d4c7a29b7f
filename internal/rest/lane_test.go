// SPDX-License-Identifier: MIT

//go:build linux

package rest

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// FuzzLaneHead checks that a request which a lane accepts means the same to net/http: the
// method, the target, every header, and how long the body is.
func FuzzLaneHead(f *testing.F) {
	for _, text := range plainRequests {
		f.Add([]byte(text))
	}
	for _, text := range oddRequests {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		size := headEnd(b, 0)
		if size == 0 || !mayBecomePlain(b[:size]) {
			return
		}
		var h laneHead
		if h.parse(b[:size]) != nil {
			return
		}
		got := h.request(context.Background())
		want, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(b)))
		if err != nil {
			t.Fatalf("a lane accepts %q, net/http does not: %v", b[:size], err)
		}
		compareRequests(t, got, want)
		// The same head again, which reuses what is known of the last.
		if err := h.parse(b[:size]); err != nil {
			t.Fatalf("accepted once, not twice: %q", b[:size])
		}
		compareRequests(t, h.request(context.Background()), want)
	})
}

func compareRequests(t *testing.T, got, want *http.Request) {
	t.Helper()
	describe := func(r *http.Request) string {
		return fmt.Sprintf("%s %s %s %d %v %q %q %q %v", r.Method, r.RequestURI, r.Host, r.ContentLength, r.Header, r.URL.Path, r.URL.EscapedPath(), r.URL.RawQuery, r.Close || len(r.TransferEncoding) > 0)
	}
	if describe(got) != describe(want) {
		t.Errorf("a lane reads\n%s\nnet/http reads\n%s", describe(got), describe(want))
	}
}

// Requests that stay in a lane.
var plainRequests = []string{
	"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
	"GET /dbs/d/colls/c/docs/1 HTTP/1.1\r\nHost: 127.0.0.1:8081\r\nx-ms-date: Tue, 01 Nov 1994 08:12:31 GMT\r\n\r\n",
	"GET /dbs/d%20e/colls/c?a=b&c HTTP/1.1\r\nHost: [::1]:8081\r\nConnection: keep-alive\r\nX-Empty:\r\n\r\n",
	"POST /dbs/ HTTP/1.1\r\nhost: h\r\ncontent-length: 2\r\nX-Odd: \t a\tb \r\n\r\n{}",
	"DELETE //dbs//d// HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\nUser-Agent: \xc3\xa4\r\n\r\n",
	"PATCH /a:b;c=d@e HTTP/1.1\r\nHost: h\r\nA_b: c\r\n\r\n",
	"HEAD /dbs HTTP/1.1\r\nHost: h\r\n\r\n",
	"PUT /dbs HTTP/1.1\r\nHost: h\r\n\r\n",
}

// Requests that net/http has to read.
var oddRequests = []string{
	"GET /_mayfly/ttl HTTP/1.1\r\nHost: h\r\n\r\n",
	"OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n",
	"GET / HTTP/1.0\r\nHost: h\r\n\r\n",
	"GET http://other/dbs HTTP/1.1\r\nHost: h\r\n\r\n",
	"GET / HTTP/1.1\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a b\r\n\r\n",
	"GET /a b HTTP/1.1\r\nHost: h\r\n\r\n",
	"GET /a%zz HTTP/1.1\r\nHost: h\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: h\r\nA : b\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: h\r\nA: b\r\n c\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: h\r\nA: b\x00\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: h\r\nA: b\rc\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: h\r\nA: b\nC: d\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: h\r\nA: b\r\nA: c\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: h\r\nno colon\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na",
	"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: +1\r\n\r\na",
	"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\na",
	"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0x1\r\n\r\na",
	"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999999999999\r\n\r\na",
	"POST / HTTP/1.1\r\nHost: h\r\nContent-Length:\r\n\r\na",
	"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: h\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\na",
	"GET / HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: h\r\n" + strings.Repeat("A", 10) + ": b\r\n" + func() (many string) {
		for i := range maxLaneFields {
			many += fmt.Sprintf("A%d: b\r\n", i)
		}
		return many
	}() + "\r\n",
}

func TestPlainRequests(t *testing.T) {
	for _, text := range plainRequests {
		if err := new(laneHead).parse([]byte(text)[:headEnd([]byte(text), 0)]); err != nil || !mayBecomePlain([]byte(text)) {
			t.Errorf("%q is not plain", text)
		}
	}
	for _, text := range oddRequests {
		b := []byte(text)
		if n := headEnd(b, 0); n > 0 && new(laneHead).parse(b[:n]) == nil {
			t.Errorf("%q is plain", text)
		}
	}
}

// A connection may change its headers from one request to the next.
func TestLaneHeadIsUsedAgain(t *testing.T) {
	var h laneHead
	for i, text := range append(plainRequests, plainRequests...) {
		if err := h.parse([]byte(text)[:headEnd([]byte(text), 0)]); err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
		want, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
		if err != nil {
			t.Fatal(err)
		}
		compareRequests(t, h.request(t.Context()), want)
	}
}

// laneServer serves h with direct mode, so that TLS is sniffed as in the real server. It
// returns ways to connect, and a function that reports how many requests were in lanes.
func laneServer(t *testing.T, h http.HandlerFunc) (dial map[string]func() net.Conn, inLanes func() int, stop func(context.Context) error) {
	t.Helper()
	pair, err := tls.X509KeyPair(testCertificate(t))
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	seen := 0
	counted := func(w http.ResponseWriter, r *http.Request) {
		if _, ok := w.(*laneAnswer); ok {
			mu.Lock()
			seen++
			mu.Unlock()
		}
		h(w, r)
	}
	s, l := NewServer(http.HandlerFunc(counted), pair, func(c *Channel) { _ = c.Close() }, slog.New(slog.DiscardHandler)), listenLoopback(t)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		_ = s.Shutdown(t.Context()) // ctx has ended, so open connections are closed
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	connect := func(dial func() (net.Conn, error)) func() net.Conn {
		return func() net.Conn {
			c, err := dial()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
			_ = c.SetDeadline(time.Now().Add(time.Minute))
			return c
		}
	}
	addr := l.Addr().String()
	return map[string]func() net.Conn{
			"plain": connect(func() (net.Conn, error) { return net.Dial("tcp", addr) }),
			"TLS": connect(func() (net.Conn, error) {
				return tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
			}),
		}, func() int {
			mu.Lock()
			defer mu.Unlock()
			return seen
		}, s.Shutdown
}

// echo answers with the method, the path and the body.
func echo(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	text := r.Method + " " + r.URL.Path + " " + string(b)
	if lane, ok := w.(*laneAnswer); ok {
		lane.announce(len(text))
	}
	_, _ = io.WriteString(w, text)
}

// A connection has many requests, several of them sent at once, in pieces, or with large
// bodies. An odd one goes to net/http with all that follow it, and nothing is lost.
func TestLaneThenNetHTTP(t *testing.T) {
	large := strings.Repeat("b", 3*laneBuffer)
	dial, inLanes, _ := laneServer(t, echo)
	for name, dial := range dial {
		before := inLanes()
		conn := dial()
		r := bufio.NewReader(conn)
		read := func(want string) {
			t.Helper()
			a, err := http.ReadResponse(r, nil)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			defer a.Body.Close()
			if got, err := io.ReadAll(a.Body); string(got) != want || err != nil || a.Close {
				t.Fatalf("%s: got %.100q, %v, want %.100q", name, got, err, want)
			}
		}
		send := func(parts ...string) {
			t.Helper()
			for _, part := range parts {
				if _, err := io.WriteString(conn, part); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
			}
		}
		get := "GET /a HTTP/1.1\r\nHost: h\r\n\r\n"
		post := fmt.Sprintf("POST /b HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n", len(large))
		send(get, get[:5], get[5:20], get[20:])
		read("GET /a ")
		read("GET /a ")
		send(get + post + large + get)
		read("GET /a ")
		read("POST /b " + large)
		read("GET /a ")
		if n := inLanes() - before; n != 5 {
			t.Errorf("%s: %d requests in a lane, want 5", name, n)
		}
		send(get + "POST /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n" + get)
		read("GET /a ")
		read("POST /c hi")
		read("GET /a ")
		if n := inLanes() - before; n != 6 {
			t.Errorf("%s: %d requests in a lane, want 6", name, n)
		}
	}
}

// Lines that end without a carriage return are answered at once, by net/http.
func TestLaneWithBareLineFeeds(t *testing.T) {
	dial, inLanes, _ := laneServer(t, echo)
	conn := dial["plain"]()
	if _, err := io.WriteString(conn, "GET /a HTTP/1.1\nHost: h\n\n"); err != nil {
		t.Fatal(err)
	}
	a, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || a.StatusCode != 200 || inLanes() != 0 {
		t.Errorf("%v, %v, %d in lanes", a, err, inLanes())
	}
}

// A body that the handler does not read is dropped if it is small. If it is large, the
// answer arrives, and the connection ends.
func TestLaneWithUnreadBodies(t *testing.T) {
	dial, _, _ := laneServer(t, func(w http.ResponseWriter, r *http.Request) {
		w.(*laneAnswer).announce(0)
		w.WriteHeader(http.StatusConflict)
	})
	for _, c := range []struct {
		size   int
		closes bool
	}{{10, false}, {2 * laneBuffer, false}, {maxLeftBody, false}, {maxLeftBody + 1, true}, {4 << 20, true}} {
		conn := dial["plain"]()
		go func() {
			_, _ = fmt.Fprintf(conn, "POST /b HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%s", c.size, strings.Repeat("b", c.size))
		}()
		a, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || a.StatusCode != http.StatusConflict || a.Close != c.closes {
			t.Errorf("%d bytes: %v, %v", c.size, a, err)
		}
	}
}

// Answers without a body are complete after their head, and the connection goes on.
func TestLaneAnswersWithoutBodies(t *testing.T) {
	dial, _, _ := laneServer(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/head":
			w.(*laneAnswer).announce(7)
			_, _ = io.WriteString(w, "unsaid!")
		case "/204":
			w.WriteHeader(http.StatusNoContent)
		case "/304":
			w.WriteHeader(http.StatusNotModified)
		}
	})
	conn := dial["plain"]()
	r := bufio.NewReader(conn)
	for _, c := range []struct {
		method, path string
		status       int
		length       int64
	}{{"HEAD", "/head", 200, 7}, {"GET", "/204", 204, 0}, {"GET", "/304", 304, 0}, {"GET", "/", 200, 0}, {"DELETE", "/204", 204, 0}} {
		if _, err := fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: h\r\n\r\n", c.method, c.path); err != nil {
			t.Fatal(err)
		}
		a, err := http.ReadResponse(r, &http.Request{Method: c.method})
		if err != nil || a.StatusCode != c.status || a.ContentLength != c.length || a.Close || a.Header.Get("Date") == "" {
			t.Errorf("%s %s: %v, %v", c.method, c.path, a, err)
		}
	}
}

// A request ends when its client leaves, even if the client has sent more before.
func TestLaneClientLeaves(t *testing.T) {
	began, ended := make(chan struct{}), make(chan error)
	dial, _, _ := laneServer(t, func(w http.ResponseWriter, r *http.Request) {
		began <- struct{}{}
		<-r.Context().Done()
		ended <- r.Context().Err()
	})
	for name, dial := range dial {
		conn := dial()
		get := "GET /a HTTP/1.1\r\nHost: h\r\n\r\n"
		if _, err := io.WriteString(conn, get+get); err != nil {
			t.Fatal(err)
		}
		<-began
		_ = conn.Close()
		select {
		case err := <-ended:
			if err != context.Canceled {
				t.Errorf("%s: %v", name, err)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s: the request goes on", name)
		}
	}
}

// A server that stops finishes the request that is under way, and says that the connection
// ends. Connections without a request are closed.
func TestLaneStops(t *testing.T) {
	began, goOn := make(chan struct{}), make(chan struct{})
	dial, _, stop := laneServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			close(began)
			<-goOn
		}
		w.(*laneAnswer).announce(0)
		w.WriteHeader(http.StatusOK)
	})
	idle, slow := dial["plain"](), dial["plain"]()
	if _, err := io.WriteString(idle, "GET /a HTTP/1.1\r\nHost: h\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	idleReader := bufio.NewReader(idle)
	if _, err := http.ReadResponse(idleReader, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(slow, "GET /slow HTTP/1.1\r\nHost: h\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-began
	stopped := make(chan error)
	go func() { stopped <- stop(context.Background()) }()
	if _, err := idleReader.ReadByte(); err != io.EOF {
		t.Errorf("the idle connection: %v", err)
	}
	select {
	case err := <-stopped:
		t.Fatalf("stopped during a request: %v", err)
	default:
	}
	close(goOn)
	if a, err := http.ReadResponse(bufio.NewReader(slow), nil); err != nil || a.StatusCode != 200 || !a.Close {
		t.Errorf("%v, %v", a, err)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// A handler that panics, or writes less than it announced, ends its connection and no
// other. A client never takes a part for the whole.
func TestLaneHandlerFails(t *testing.T) {
	dial, _, _ := laneServer(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/panic":
			panic("on purpose")
		case "/abort":
			panic(http.ErrAbortHandler)
		case "/short":
			w.(*laneAnswer).announce(10)
			_, _ = io.WriteString(w, "five!")
		case "/long":
			w.(*laneAnswer).announce(1)
			if _, err := io.WriteString(w, "two"); err == nil {
				t.Errorf("more can be written than was announced")
			}
		case "/unannounced":
			_, _ = io.WriteString(w, strings.Repeat("x", 2*laneAnswerBytes))
		}
	})
	for path, want := range map[string]string{"/panic": "EOF", "/abort": "EOF", "/short": "unexpected EOF", "/long": "unexpected EOF", "/unannounced": ""} {
		conn := dial["plain"]()
		if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: h\r\n\r\n", path); err != nil {
			t.Fatal(err)
		}
		a, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err == nil {
			_, err = io.ReadAll(a.Body)
		}
		switch {
		case want == "" && err == nil && a.Close:
		case want != "" && err != nil && strings.HasSuffix(err.Error(), want):
		default:
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}

// A head that does not go on is given up, and so is a body.
func TestLaneTimeLimits(t *testing.T) {
	pair, err := tls.X509KeyPair(testCertificate(t))
	if err != nil {
		t.Fatal(err)
	}
	s, l := NewServer(http.HandlerFunc(echo), pair, nil, slog.New(slog.DiscardHandler)), listenLoopback(t)
	s.http.ReadHeaderTimeout, s.http.ReadTimeout = 50*time.Millisecond, 50*time.Millisecond
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	defer func() {
		_ = s.Shutdown(t.Context())
		<-served
	}()
	for _, text := range []string{"GET /a HTTP/1.1\r\nHost:", "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nabc"} {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, text); err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(time.Minute))
		if b, err := io.ReadAll(conn); len(b) > 0 || err != nil {
			t.Errorf("%q: %q, %v", text, b, err)
		}
		_ = conn.Close()
	}
}

// A body has the time of a body, also after a head that came in pieces, as that of every
// connection does whose first bytes tell its protocol.
func TestLaneBodyAfterHeadInPieces(t *testing.T) {
	pair, err := tls.X509KeyPair(testCertificate(t))
	if err != nil {
		t.Fatal(err)
	}
	s, l := NewServer(http.HandlerFunc(echo), pair, func(c *Channel) { _ = c.Close() }, slog.New(slog.DiscardHandler)), listenLoopback(t)
	s.http.ReadHeaderTimeout = 200 * time.Millisecond
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	defer func() {
		_ = s.Shutdown(t.Context())
		<-served
	}()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.WriteString(conn, "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nab"); err != nil {
		t.Fatal(err)
	}
	time.Sleep(3 * s.http.ReadHeaderTimeout)
	if _, err := io.WriteString(conn, "cde"); err != nil {
		t.Fatal(err)
	}
	a, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	if got, err := io.ReadAll(a.Body); string(got) != "POST /a abcde" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}
