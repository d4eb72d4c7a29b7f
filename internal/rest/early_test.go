// SPDX-License-Identifier: MIT

// Answers that come before the client has sent its request. A client may send all of it
// before it reads, as .NET and Python do, and must get the answer then.

package rest

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// bodyStyles are the ways in which a client sends a body of n bytes after its headers.
var bodyStyles = map[string]func(w io.Writer, head string, n int) error{
	"announced": func(w io.Writer, head string, n int) error {
		_, err := fmt.Fprintf(w, "%sContent-Length: %d\r\n\r\n", head, n)
		return firstOf(err, func() error { return sendBytes(w, n) })
	},
	"announced, closing": func(w io.Writer, head string, n int) error {
		_, err := fmt.Fprintf(w, "%sConnection: close\r\nContent-Length: %d\r\n\r\n", head, n)
		return firstOf(err, func() error { return sendBytes(w, n) })
	},
	// A client that does not wait for "100 Continue", or not for long.
	"expecting": func(w io.Writer, head string, n int) error {
		_, err := fmt.Fprintf(w, "%sExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", head, n)
		return firstOf(err, func() error { return sendBytes(w, n) })
	},
	"chunked": func(w io.Writer, head string, n int) error {
		if _, err := fmt.Fprintf(w, "%sTransfer-Encoding: chunked\r\n\r\n", head); err != nil {
			return err
		}
		for chunk := 64 << 10; n > 0; n -= chunk {
			chunk = min(chunk, n)
			if _, err := fmt.Fprintf(w, "%x\r\n%s\r\n", chunk, strings.Repeat("x", chunk)); err != nil {
				return err
			}
		}
		_, err := io.WriteString(w, "0\r\n\r\n")
		return err
	},
}

func firstOf(err error, next func() error) error {
	if err != nil {
		return err
	}
	return next()
}

func sendBytes(w io.Writer, n int) error {
	block := []byte(strings.Repeat("x", 64<<10))
	for n > 0 {
		k := min(n, len(block))
		if _, err := w.Write(block[:k]); err != nil {
			return err
		}
		n -= k
	}
	return nil
}

// dialServer connects by http or https.
func dialServer(t *testing.T, scheme, addr string) net.Conn {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, splitWait)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if scheme == "https" {
		conn = tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
	}
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	return conn
}

// TestEarlyAnswers: a refusal of any kind reaches a client that reads only after it has
// sent all.
func TestEarlyAnswers(t *testing.T) {
	h := newTestHandlerWith(t, testHandlerOptions{publicKey: true})
	call(t, h, "POST", "/dbs", `{"id":"d"}`, nil, 201)
	call(t, h, "POST", "/dbs/d/colls", containerBody, nil, 201)
	addr := startServer(t, h, func(*http.Server) {})
	items := "/dbs/d/colls/c/docs"
	good := rawRequest(t, "POST", items, pk("p"))
	const large, huge = 6 << 20, 50 << 20
	for _, c := range []struct {
		head string
		size int
		want int
	}{
		{good, large, 413},
		{good, huge, 413},
		{strings.Replace(good, "sig", "gis", 1), large, 401},
		{rawRequest(t, "POST", items, map[string]string{"Authorization": "nonsense"}), 300 << 10, 401},
		{strings.Replace(good, "Host: localhost", "Host: evil.example", 1), large, 403},
		{strings.Replace(good, items, "/nonsense", 1), large, 404},
		{rawRequest(t, "PATCH", items, nil), large, 405},
		{strings.Replace(good, items, "/_mayfly/health", 1), large, 405},
	} {
		for style, send := range bodyStyles {
			for _, scheme := range []string{"http", "https"} {
				if c.size == huge && style != "announced" {
					continue
				}
				t.Run(fmt.Sprintf("%d %s %s %d", c.want, scheme, style, c.size), func(t *testing.T) {
					t.Parallel() // each waits for half a second
					conn := dialServer(t, scheme, addr)
					if err := send(conn, c.head, c.size); err != nil {
						t.Fatalf("the client cannot send its request: %v", err)
					}
					a := readAnswer(t, bufio.NewReader(conn))
					a.failureText(t, c.want, 0)
				})
			}
		}
	}
}

// TestEarlyAnswersOfHTTP: the same for requests that net/http itself refuses.
func TestEarlyAnswersOfHTTP(t *testing.T) {
	addr := startServer(t, newTestHandler(t), func(*http.Server) {})
	for name, c := range map[string]struct {
		request string
		want    int
	}{
		"headers":  {"GET / HTTP/1.1\r\nHost: localhost\r\nCookie: " + strings.Repeat("x", 6<<20) + "\r\n\r\n", 431},
		"nonsense": {"GET / HTTP/1.1\r\nHost: localhost\r\n" + strings.Repeat("nonsense\r\n", 600_000), 400},
		"encoding": {"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: nonsense\r\n\r\n" + strings.Repeat("x", 6<<20), 501},
	} {
		for _, scheme := range []string{"http", "https"} {
			t.Run(name+" "+scheme, func(t *testing.T) {
				t.Parallel()
				conn := dialServer(t, scheme, addr)
				if err := firstOf(nil, func() error { _, err := io.WriteString(conn, c.request); return err }); err != nil {
					t.Fatalf("the client cannot send its request: %v", err)
				}
				if a := readAnswer(t, bufio.NewReader(conn)); a.status != c.want {
					t.Errorf("status %d, want %d: %s", a.status, c.want, a.body)
				}
			})
		}
	}
}

// TestLingerLimits: a client that goes on sending after its answer holds its connection
// for a limited time, however it sends.
func TestLingerLimits(t *testing.T) {
	const refused = "HTTP/1.1 413"
	every := func(pause time.Duration) func(net.Conn) {
		return func(c net.Conn) {
			for err := error(nil); err == nil; time.Sleep(pause) {
				_, err = io.WriteString(c, "x")
			}
		}
	}
	const httpPause = 500 * time.Millisecond // net/http's own
	for name, c := range map[string]struct {
		send        func(net.Conn)
		least, most time.Duration
	}{
		"silent":      {func(c net.Conn) {}, lingerPause, lingerPause},
		"in drops":    {every(lingerPause - time.Second), lingerTime, lingerTime},
		"without end": {func(c net.Conn) { _ = sendBytes(c, lingerBytes+1<<20) }, 0, 0},
		"leaving":     {func(c net.Conn) { _ = c.Close() }, 0, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			root := serveInMemory(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(413) }))
			client := root.dial("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000000\r\n\r\n")
			begin := time.Now()
			answer := make([]byte, len(refused))
			if _, err := io.ReadFull(client, answer); err != nil || string(answer) != refused {
				t.Errorf("%s: answer %q, %v", name, answer, err)
			}
			var sending sync.WaitGroup
			sending.Go(func() { c.send(client) })
			_, _ = io.Copy(io.Discard, client)
			took := time.Since(begin) - httpPause
			if name == "leaving" {
				took += httpPause // the client does not wait for the server
			}
			if took < c.least || took > c.most {
				t.Errorf("%s: the connection was held for %v, want from %v to %v", name, took, c.least, c.most)
			}
			_ = client.Close()
			sending.Wait()
			time.Sleep(httpPause) // where the client has not waited for it
		})
	}
}

// TestLingerEndsWithServer: a server that stops does not wait for clients that were
// already answered.
func TestLingerEndsWithServer(t *testing.T) {
	h := newContainer(t)
	pair, err := tls.X509KeyPair(testCertificate(t))
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(h, pair, nil, slog.New(slog.DiscardHandler))
	l := listenLoopback(t)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	conn := dialServer(t, "http", l.Addr().String())
	if _, err := io.WriteString(conn, rawRequest(t, "POST", "/dbs/d/colls/c/docs", pk("p"))+"Content-Length: 6000000\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	readAnswer(t, bufio.NewReader(conn)).failureText(t, 413, 0)
	if _, err := io.Copy(io.Discard, conn); err != nil { // the server's half is closed
		t.Fatal(err)
	}
	begin := time.Now()
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	if took := time.Since(begin); took >= lingerPause {
		t.Errorf("the stop took %v", took)
	}
}
