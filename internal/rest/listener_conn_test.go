// SPDX-License-Identifier: MIT

package rest

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// acceptPair returns both ends of a connection through a Splitter. The client's
// end has sent first.
func acceptPair(t testing.TB, first string) (client *net.TCPConn, server net.Conn) {
	t.Helper()
	split := Split(listenLoopback(t), nil, SplitOptions{})
	t.Cleanup(func() { _ = split.Close() })
	s := &splitServer{addr: split.Addr().String()}
	client = s.dial(t, first).(*net.TCPConn)
	server, err := split.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return client, server
}

// Whatever the first byte and however the stream is cut into reads, the server
// reads what the client wrote.
func TestSplitConnReadsWhatWasWritten(t *testing.T) {
	split := Split(listenLoopback(t), &tls.Config{}, SplitOptions{})
	defer func() { _ = split.Close() }()
	addr := split.Addr().String()
	rapid.Check(t, func(t *rapid.T) {
		sent := rapid.SliceOfN(rapid.Byte(), 1, 2000).Draw(t, "sent")
		if rapid.Bool().Draw(t, "tls") {
			sent[0] = tlsHandshake
		}
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		_, err = conn.Write(sent)
		if err := errors.Join(err, conn.Close()); err != nil {
			t.Fatal(err)
		}
		accepted, err := split.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if _, secure := accepted.(*tls.Conn); secure != (sent[0] == tlsHandshake) {
			t.Fatalf("the first byte is %#x, and Accept returns a %T", sent[0], accepted)
		}
		server := underlying(accepted)
		defer func() { _ = server.Close() }()

		var got []byte
		for err == nil {
			p := make([]byte, rapid.IntRange(0, 700).Draw(t, "read"))
			var n int
			n, err = server.Read(p)
			got = append(got, p[:n]...)
		}
		if !errors.Is(err, io.EOF) || !bytes.Equal(got, sent) {
			t.Fatalf("read %d bytes, %v; sent %d", len(got), err, len(sent))
		}
	})
}

func TestSplitConnKeepsAddresses(t *testing.T) {
	client, server := acceptPair(t, "x")
	if got, want := server.RemoteAddr().String(), client.LocalAddr().String(); got != want {
		t.Errorf("RemoteAddr = %s, want %s", got, want)
	}
	if got, want := server.LocalAddr().String(), client.RemoteAddr().String(); got != want {
		t.Errorf("LocalAddr = %s, want %s", got, want)
	}
}

func TestSplitConnClosed(t *testing.T) {
	_, server := acceptPair(t, "x")
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	if n, err := server.Read(make([]byte, 1)); n != 0 || !errors.Is(err, net.ErrClosed) {
		t.Errorf("Read after Close = %d, %v, want %v", n, err, net.ErrClosed)
	}
	if err := server.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("second Close = %v, want %v", err, net.ErrClosed)
	}
	if open := server.(*splitConn).splitter.openConns(); open != 0 {
		t.Errorf("%d connections open after two Closes, want 0", open)
	}
}

// pipeListener accepts connections in memory, whose deadlines follow the time of a
// synctest bubble.
type pipeListener struct {
	conns chan net.Conn
	done  chan struct{}
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), done: make(chan struct{})}
}

// dial returns once the other end is accepted, and then sends first, if there is
// any.
func (l *pipeListener) dial(first string) net.Conn {
	client, server := net.Pipe()
	l.conns <- server
	if first != "" {
		_, _ = io.WriteString(client, first)
	}
	return client
}

func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }
func (l *pipeListener) Close() error   { close(l.done); return nil }

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func TestSplitConnDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := newPipeListener()
		split := Split(root, nil, SplitOptions{FirstByteTimeout: time.Minute})
		defer func() { _ = split.Close() }()

		begin := time.Now()
		if err := closedByServer(root.dial("")); err != nil {
			t.Error(err)
		}
		if took := time.Since(begin); took != time.Minute {
			t.Errorf("a silent connection was closed after %v, want a minute", took)
		}

		// The deadline of the first byte ends with it.
		client := root.dial("G")
		defer func() { _ = client.Close() }()
		go func() {
			time.Sleep(time.Hour)
			_, _ = io.WriteString(client, "ET")
		}()
		server, err := split.Accept()
		if err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 3)
		if _, err := io.ReadFull(server, got); err != nil || string(got) != "GET" {
			t.Errorf("read %q, %v an hour later", got, err)
		}

		// A deadline that the owner sets is kept.
		_ = server.SetReadDeadline(time.Now().Add(time.Second))
		if _, err := server.Read(got); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("Read past its deadline = %v, want %v", err, os.ErrDeadlineExceeded)
		}
	})
}

// A client that is still sending a refused body gets the answer. That needs CloseWrite,
// since closing with unread input resets the connection.
func TestSplitConnHalfCloses(t *testing.T) {
	client, server := acceptPair(t, "x")
	if err := server.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if n, err := client.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("client read %d, %v after CloseWrite, want EOF", n, err)
	}
	_, _ = io.WriteString(client, "y")
	_ = client.CloseWrite()
	if got, err := io.ReadAll(server); err != nil || string(got) != "xy" {
		t.Errorf("server read %q, %v, want %q", got, err, "xy")
	}
}

// Answers of all sizes arrive whole, one after the other on one connection, in
// both protocols.
func TestAnswersOfAllSizes(t *testing.T) {
	sizes := []int{0, 1, 3 << 10, 4<<10 - 1, 4 << 10, 4<<10 + 1, 5 << 10, 12 << 10, 100 << 10, 4 << 20}
	handler := newTestHandler(t)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.URL.Query().Get("n"))
		x := handler.exchange(w, r)
		defer x.End()
		x.write(http.StatusOK, []byte(strings.Repeat("x", n/2)), []byte(strings.Repeat("y", n-n/2)))
	})
	addr := startServer(t, h, func(*http.Server) {})
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	for _, scheme := range []string{"http", "https"} {
		for _, n := range sizes {
			for _, method := range []string{http.MethodHead, http.MethodGet} {
				r, err := http.NewRequest(method, fmt.Sprintf("%s://%s/?n=%d", scheme, addr, n), nil)
				if err != nil {
					t.Fatal(err)
				}
				answer, err := client.Do(r)
				if err != nil {
					t.Fatalf("%s of %d bytes over %s: %v", method, n, scheme, err)
				}
				body, err := io.ReadAll(answer.Body)
				_ = answer.Body.Close()
				want := strings.Repeat("x", n/2) + strings.Repeat("y", n-n/2)
				if method == http.MethodHead {
					want = ""
				}
				if err != nil || string(body) != want {
					t.Errorf("%s of %d bytes over %s: %d bytes, %v", method, n, scheme, len(body), err)
				}
			}
		}
	}
}

// BenchmarkRequests compares requests through a Splitter with requests to a server with
// its own listener.
func BenchmarkRequests(b *testing.B) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	direct := func(b *testing.B) string {
		l := listenLoopback(b)
		server := &http.Server{Handler: handler}
		go func() { _ = server.Serve(l) }()
		b.Cleanup(func() { _ = server.Close() })
		return l.Addr().String()
	}
	split := func(b *testing.B) string { return startSplit(b, SplitOptions{}, handler).addr }
	for _, c := range []struct {
		name  string
		start func(*testing.B) string
	}{{"direct", direct}, {"split", split}} {
		b.Run("keep-alive/"+c.name, func(b *testing.B) {
			conn, err := net.Dial("tcp", c.start(b))
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			answers := bufio.NewReader(conn)
			b.ReportAllocs()
			for b.Loop() {
				benchmarkRequest(b, conn, answers)
			}
		})
		b.Run("connect/"+c.name, func(b *testing.B) {
			addr := c.start(b)
			b.ReportAllocs()
			for b.Loop() {
				conn, err := net.Dial("tcp", addr)
				if err != nil {
					b.Fatal(err)
				}
				benchmarkRequest(b, conn, bufio.NewReader(conn))
				_ = conn.Close()
			}
		})
	}
}

func benchmarkRequest(b *testing.B, conn net.Conn, answers *bufio.Reader) {
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		b.Fatal(err)
	}
	for {
		line, err := answers.ReadString('\n')
		if err != nil {
			b.Fatal(err)
		}
		if strings.TrimSpace(line) == "" {
			return
		}
	}
}
