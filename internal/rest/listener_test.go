// SPDX-License-Identifier: MIT

package rest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// splitWait bounds every wait for something that must happen.
const splitWait = time.Minute

// splitServer is a real server for both protocols on one port of loopback.
type splitServer struct {
	split *Splitter
	http  *http.Server
	addr  string
	roots *x509.CertPool
}

// startSplit serves handler until the test ends, and then checks that no
// goroutine is left.
func startSplit(t testing.TB, options SplitOptions, handler http.Handler) *splitServer {
	t.Helper()
	leaks := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, leaks) })

	certPEM, keyPEM, err := MakeCertificate(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2", "http/1.1"}}
	s := &splitServer{split: Split(listenLoopback(t), config, options), roots: x509.NewCertPool()}
	s.roots.AppendCertsFromPEM(certPEM)
	s.addr = s.split.Addr().String()
	quiet := log.New(io.Discard, "", 0) // the server's complaints about garbage
	s.http = &http.Server{Handler: handler, ErrorLog: quiet, ConnState: track, TLSConfig: config}

	var serving sync.WaitGroup
	serving.Go(func() { _ = s.http.Serve(s.split) })
	t.Cleanup(func() {
		_ = s.http.Close()
		if err := s.split.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
		serving.Wait()
	})
	return s
}

// openConns returns how many connections are in the table.
func (s *Splitter) openConns() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.mu.table)
}

func listenLoopback(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// describeRequest answers with what the server knows about the request.
func describeRequest(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	_, _ = fmt.Fprintf(w, "%s %s %s", scheme, r.Proto, body)
}

// client returns a client with its own connections. Its cleanup runs before the server's.
func (s *splitServer) client(t testing.TB) *http.Client {
	transport := &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: s.roots},
		ForceAttemptHTTP2: true,
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: splitWait}
}

// postText sends a request and returns the body of the answer.
func postText(c *http.Client, url, body string) (string, error) {
	resp, err := c.Post(url, "text/plain", strings.NewReader(body))
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	return string(answer), err
}

// dial opens a bare connection with a deadline and writes to it.
func (s *splitServer) dial(t testing.TB, write string) net.Conn {
	t.Helper()
	conn, err := net.DialTimeout("tcp", s.addr, splitWait)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(splitWait))
	if _, err := io.WriteString(conn, write); err != nil {
		t.Fatal(err)
	}
	return conn
}

// closedByServer returns an error unless conn ends before anything is answered.
func closedByServer(conn net.Conn) error {
	n, err := conn.Read(make([]byte, 1))
	var timeout net.Error
	if n != 0 || err == nil || (errors.As(err, &timeout) && timeout.Timeout()) {
		return fmt.Errorf("read %d bytes, %v from a connection that should be closed", n, err)
	}
	return nil
}

// waitForLog returns a logger, and a channel that closes when message is logged.
func waitForLog(message string) (*slog.Logger, <-chan struct{}) {
	h := &logWatcher{message: message, seen: make(chan struct{})}
	return slog.New(h), h.seen
}

type logWatcher struct {
	message string
	once    sync.Once
	seen    chan struct{}
}

func (h *logWatcher) Enabled(context.Context, slog.Level) bool { return true }
func (h *logWatcher) WithAttrs([]slog.Attr) slog.Handler       { return h }
func (h *logWatcher) WithGroup(string) slog.Handler            { return h }

func (h *logWatcher) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, h.message) {
		h.once.Do(func() { close(h.seen) })
	}
	return nil
}

func TestSplitServesBothProtocols(t *testing.T) {
	s := startSplit(t, SplitOptions{}, http.HandlerFunc(describeRequest))
	var one, two http.Protocols
	one.SetHTTP1(true)
	two.SetHTTP2(true)
	for _, c := range []struct {
		scheme    string
		protocols *http.Protocols
		want      string
	}{
		{"http", &one, "http HTTP/1.1 "},
		{"https", &one, "https HTTP/1.1 "},
		{"https", &two, "https HTTP/2.0 "},
	} {
		client := s.client(t)
		client.Transport.(*http.Transport).Protocols = c.protocols
		for _, body := range []string{"", "first", strings.Repeat("long", 100_000)} {
			got, err := postText(client, c.scheme+"://"+s.addr+"/", body)
			if err != nil || got != c.want+body {
				t.Errorf("%s: got %.40q, %v, want %.40q", c.scheme, got, err, c.want+body)
			}
		}
	}
}

func TestSplitGarbage(t *testing.T) {
	s := startSplit(t, SplitOptions{}, http.HandlerFunc(describeRequest))
	for _, c := range []struct {
		name, write, want string
	}{
		{"a zero byte", "\x00\x01\x02\r\n\r\n", "HTTP/1.1 400 Bad Request"},
		{"a line end", "\r\nnonsense\r\n\r\n", "HTTP/1.1 400 Bad Request"},
		{"an SSL 2 hello", "\x80\x2e\x01\x00\x02\r\n\r\n", "HTTP/1.1 400 Bad Request"},
		{"a TLS record of nonsense", "\x16\x03\x01\x00\x05hello", "\x15\x03"},
	} {
		answer, err := io.ReadAll(s.dial(t, c.write))
		if err != nil || !strings.HasPrefix(string(answer), c.want) {
			t.Errorf("%s: answer %.60q, %v, want %q", c.name, answer, err, c.want)
		}
	}
	if got, err := postText(s.client(t), "https://"+s.addr+"/", "still there"); err != nil || !strings.HasSuffix(got, "still there") {
		t.Errorf("after the garbage: %q, %v", got, err)
	}
}

func TestSplitClosesSilentConnections(t *testing.T) {
	const patience = 20 * time.Millisecond
	s := startSplit(t, SplitOptions{FirstByteTimeout: patience}, http.HandlerFunc(describeRequest))
	for range 3 {
		begin := time.Now()
		if err := closedByServer(s.dial(t, "")); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took < patience {
			t.Errorf("a silent connection was closed after %v, want %v", took, patience)
		}
	}
}

// With a single slot, one that is not freed would block everything.
func TestSplitFreesSlotOfClosedConnections(t *testing.T) {
	s := startSplit(t, SplitOptions{MaxConns: 1}, http.HandlerFunc(describeRequest))
	for range 20 {
		_ = s.dial(t, "").Close()
		_ = s.dial(t, "\x16").Close()
		_ = s.dial(t, "GET").Close()
	}
	for _, scheme := range []string{"http", "https"} {
		client := s.client(t)
		if got, err := postText(client, scheme+"://"+s.addr+"/", "x"); err != nil || !strings.HasSuffix(got, "x") {
			t.Errorf("%s: %q, %v", scheme, got, err)
		}
		client.CloseIdleConnections()
	}
}
