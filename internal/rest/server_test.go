// SPDX-License-Identifier: MIT

// The server's limits on what a connection may do.

package rest

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// startServer serves h with limits that change may set before it begins.
func startServer(t *testing.T, h http.Handler, change func(*http.Server)) (addr string) {
	t.Helper()
	l := listenLoopback(t)
	serveOn(t, l, h, change)
	return l.Addr().String()
}

// serveInMemory serves h in a bubble, on connections in memory.
func serveInMemory(t *testing.T, h http.Handler) *pipeListener {
	t.Helper()
	l := newPipeListener()
	serveOn(t, l, h, func(*http.Server) {})
	return l
}

// serveOn serves h until the test ends.
func serveOn(t *testing.T, l net.Listener, h http.Handler, change func(*http.Server)) {
	t.Helper()
	pair, err := tls.X509KeyPair(testCertificate(t))
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(h, pair, nil, slog.New(slog.DiscardHandler))
	change(&s.http)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		_ = s.Shutdown(t.Context()) // ctx has ended, so open connections are closed
		if err := <-served; err != nil {
			t.Errorf("Serve = %v", err)
		}
	})
}

func testCertificate(t *testing.T) (certPEM, keyPEM []byte) {
	t.Helper()
	certPEM, keyPEM, err := MakeCertificate(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return certPEM, keyPEM
}

// rawRequest is a signed request as bytes, without its last header and body.
func rawRequest(t *testing.T, method, path string, headers map[string]string) string {
	t.Helper()
	r := signedRequest(t, method, path, nil, headers)
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: localhost\r\n", method, path)
	if err := r.Header.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestServerHasLimits(t *testing.T) {
	s := NewServer(http.NotFoundHandler(), tls.Certificate{}, nil, slog.New(slog.DiscardHandler))
	h := &s.http
	if h.MaxHeaderBytes != 64<<10 {
		t.Errorf("headers may have %d bytes", h.MaxHeaderBytes)
	}
	for name, d := range map[string]time.Duration{
		"ReadHeaderTimeout": h.ReadHeaderTimeout, "ReadTimeout": h.ReadTimeout, "WriteTimeout": h.WriteTimeout, "IdleTimeout": h.IdleTimeout,
	} {
		if d <= 0 || d > 5*time.Minute {
			t.Errorf("%s is %v", name, d)
		}
	}
	if h.WriteTimeout <= h.ReadTimeout {
		t.Error("a request whose body came late could not be answered")
	}
	// What net/http keeps for each connection of HTTP/2, and for each stream.
	if c := h.HTTP2; c == nil || c.MaxConcurrentStreams != 100 || c.MaxReadFrameSize != 16<<10 || c.MaxReceiveBufferPerStream != 64<<10 || c.WriteByteTimeout <= 0 {
		t.Errorf("the limits of HTTP/2 are %+v", c)
	}
	if h.TLSConfig.MinVersion < tls.VersionTLS12 {
		t.Error("TLS before 1.2 is accepted")
	}
}

// A body that does not arrive gets an answer, and its memory is given back.
func TestSlowBody(t *testing.T) {
	h := newContainer(t)
	addr := startServer(t, h, func(s *http.Server) { s.ReadTimeout = time.Second })
	head := rawRequest(t, "POST", "/dbs/d/colls/c/docs", pk("p"))
	conns := map[string]net.Conn{}
	for _, rest := range []string{
		"Content-Length: 100\r\n\r\n",
		"Content-Length: 100\r\n\r\n{\"id\":\"i\",",
		"Content-Length: 2000000\r\n\r\n{\"id\":\"i\",",
		"Transfer-Encoding: chunked\r\n\r\n",
		"Transfer-Encoding: chunked\r\n\r\n5\r\n{\"id\"\r\n",
	} {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, head+rest); err != nil {
			t.Fatal(err)
		}
		conns[rest] = conn
	}
	for rest, conn := range conns {
		a := readAnswer(t, bufio.NewReader(conn))
		if text := a.failureText(t, 408, 0); !strings.Contains(text, "in time") {
			t.Errorf("%q: the client is told %q", rest, text)
		}
		if err := closedByServer(conn); err != nil {
			t.Errorf("%q: %v", rest, err)
		}
	}
	if n := call(t, h, "GET", "/dbs/d/colls/c/docs", "", nil, 200).json(t)["_count"]; n != 0.0 {
		t.Errorf("%v items, want none", n)
	}
}

// Headers that do not arrive end the connection.
func TestSlowHeaders(t *testing.T) {
	addr := startServer(t, newTestHandler(t), func(s *http.Server) { s.ReadHeaderTimeout = 100 * time.Millisecond })
	for _, start := range []string{"G", "GET / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nHost: x\r\nA: ", "\x16\x03\x01", "\x16"} {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, start); err != nil {
			t.Fatal(err)
		}
		_ = conn.SetReadDeadline(time.Now().Add(splitWait))
		if _, err := io.Copy(io.Discard, conn); err != nil {
			t.Errorf("%q: %v, want the end of the connection", start, err)
		}
		_ = conn.Close()
	}
}

// A handshake that stalls does not delay other connections.
func TestSlowHandshakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := serveInMemory(t, http.HandlerFunc(describeRequest))
		begin := time.Now()
		slow := []net.Conn{root.dial("\x16"), root.dial("\x16\x03\x01")}
		client := tls.Client(root.dial(""), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
		if _, err := io.WriteString(client, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if got := client.ConnectionState().NegotiatedProtocol; got != "http/1.1" {
			t.Errorf("the protocol agreed on is %q", got)
		}
		if a := readAnswer(t, bufio.NewReader(client)); string(a.body) != "https HTTP/1.1 " {
			t.Errorf("the answer is %q", a.body)
		}
		if took := time.Since(begin); took != 0 {
			t.Errorf("the answer took %v", took)
		}
		for _, conn := range slow {
			_, _ = io.Copy(io.Discard, conn)
		}
		if took := time.Since(begin); took != readHeaderTimeout {
			t.Errorf("the slow ones were closed after %v, want %v", took, readHeaderTimeout)
		}
		_ = client.Close()
	})
}

// readAnswer reads one response from a connection.
func readAnswer(t testing.TB, r *bufio.Reader) answer {
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
	return answer{res.StatusCode, res.Header, body}
}

// With all memory taken, small requests are served. Large ones wait for memory, or until
// their client leaves.
func TestBodiesWaitForMemory(t *testing.T) {
	h := newContainer(t)
	taken := takeAll(t, h)
	call(t, h, "POST", "/dbs/d/colls/c/docs", `{"id":"small","pk":"p"}`, pk("p"), 201)
	large := []byte(`{"id":"large","pk":"p","pad":"` + strings.Repeat("x", 100_000) + `"}`)
	answered := make(chan answer, 1)
	go func() { answered <- serve(h, signedRequest(t, "POST", "/dbs/d/colls/c/docs", large, pk("p"))) }()
	call(t, h, "GET", "/dbs/d/colls/c/docs/small", "", pk("p"), 200)
	select {
	case a := <-answered:
		t.Fatalf("a large body found memory where there is none: %d", a.status)
	default:
	}
	taken.Close()
	if a := <-answered; a.status != 201 {
		t.Errorf("the large one: status %d: %.300s", a.status, a.body)
	}

	defer takeAll(t, h).Close()
	r := signedRequest(t, "POST", "/dbs/d/colls/c/docs", large, pk("p"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	serve(h, r.WithContext(ctx)).failureText(t, 449, 0)
}

// Clients that announce the largest item and then send almost nothing do not block
// others: bodies take memory as their bytes arrive.
func TestSlowBodiesHoldUpOnlyThemselves(t *testing.T) {
	synctest.Test(t, slowBodiesHoldUpOnlyThemselves)
}

func slowBodiesHoldUpOnlyThemselves(t *testing.T) {
	const (
		clients = 40
		sent    = 200 << 10 // by one of them
	)
	h := newContainer(t)
	root := serveInMemory(t, h)
	head := rawRequest(t, "POST", "/dbs/d/colls/c/docs", pk("p")) + "Content-Length: 2000000\r\nExpect: 100-continue\r\n\r\n"
	conns := make([]net.Conn, clients)
	for i := range conns {
		conns[i] = root.dial(head + "{")
		defer conns[i].Close()
	}
	for i, conn := range conns {
		// The server sends "100 Continue" when it is about to read the body.
		line, err := bufio.NewReader(conn).ReadString('\n')
		if err != nil || !strings.HasPrefix(line, "HTTP/1.1 100") {
			t.Fatalf("client %d: %q, %v", i, line, err)
		}
	}
	if use := h.memory.Use(); use.Held != 0 {
		t.Errorf("%d bodies of which a byte has come hold %d bytes", clients, use.Held)
	}
	item := `{"id":"%d","pk":"p","pad":"` + strings.Repeat("x", 20<<10) + `"}`
	for i := range 10 {
		call(t, h, "POST", "/dbs/d/colls/c/docs", fmt.Sprintf(item, i), pk("p"), 201)
	}
	if _, err := conns[0].Write(make([]byte, sent)); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	if use := h.memory.Use(); use.Held < sent || use.Held > 8*sent {
		t.Errorf("a body of which %d bytes have come holds %d", sent, use.Held)
	}
	call(t, h, "POST", "/dbs/d/colls/c/docs", fmt.Sprintf(item, clients), pk("p"), 201)
	for _, conn := range conns {
		_ = conn.Close()
	}
	synctest.Wait()
	if use := h.memory.Use(); use.Held != 0 {
		t.Errorf("%d bytes are held after the clients have left", use.Held)
	}
}
