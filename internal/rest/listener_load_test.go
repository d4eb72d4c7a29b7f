// SPDX-License-Identifier: MIT

// The Splitter under load, at its limit, while it stops, and when accepting fails.

package rest

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func TestSplitManyConnections(t *testing.T) {
	const connections = 200
	s := startSplit(t, SplitOptions{}, http.HandlerFunc(describeRequest))
	request := func(scheme string, i int) error {
		client := s.client(t)
		defer client.CloseIdleConnections()
		want := fmt.Sprintf("%s-%d", scheme, i)
		got, err := postText(client, scheme+"://"+s.addr+"/", want)
		if err == nil && !(strings.HasPrefix(got, scheme+" ") && strings.HasSuffix(got, " "+want)) {
			err = fmt.Errorf("got %q, want %q", got, want)
		}
		return err
	}
	var wg sync.WaitGroup
	for i := range connections {
		wg.Go(func() {
			var err error
			switch i % 5 {
			case 0, 1:
				err = request("http", i)
			case 2, 3:
				err = request("https", i)
			case 4: // connects, sends nothing or a byte, and leaves
				var conn net.Conn
				if conn, err = net.Dial("tcp", s.addr); err == nil {
					_, _ = io.WriteString(conn, []string{"", "\x16", "\x00"}[i%3])
					err = conn.Close()
				}
			}
			if err != nil {
				t.Errorf("connection %d: %v", i, err)
			}
		})
	}
	wg.Wait()
}

// busyServer answers requests when the test says so, and counts its connections.
type busyServer struct {
	*splitServer
	arrived, finish chan struct{}
	most            atomic.Int64
}

func startBusy(t *testing.T, options SplitOptions) *busyServer {
	s := &busyServer{arrived: make(chan struct{}), finish: make(chan struct{})}
	ready := make(chan struct{})
	s.splitServer = startSplit(t, options, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-ready
		for open := int64(s.split.openConns()); ; {
			seen := s.most.Load()
			if open <= seen || s.most.CompareAndSwap(seen, open) {
				break
			}
		}
		s.arrived <- struct{}{}
		<-s.finish
		describeRequest(w, r)
	}))
	close(ready)
	return s
}

// With every connection busy, new ones wait, and none of the busy ones is closed.
func TestSplitLimit(t *testing.T) {
	const limit, others = 2, 10
	logger, full := waitForLog("limit reached")
	s := startBusy(t, SplitOptions{MaxConns: limit, Logger: logger})
	var clients sync.WaitGroup
	for i := range limit + others {
		client := s.client(t)
		clients.Go(func() {
			defer client.CloseIdleConnections()
			if _, err := postText(client, "http://"+s.addr+"/", ""); err != nil {
				t.Errorf("client %d: %v", i, err)
			}
		})
	}
	for range limit {
		<-s.arrived
	}
	<-full
	if open := s.split.openConns(); open != limit {
		t.Errorf("%d connections are open at the limit, want %d", open, limit)
	}
	for range others {
		s.finish <- struct{}{}
		<-s.arrived
	}
	for range limit {
		s.finish <- struct{}{}
	}
	clients.Wait()
	if s.most.Load() != limit {
		t.Errorf("%d connections were open at once, want %d", s.most.Load(), limit)
	}
}

// At the limit, the connection that has been idle longest is closed, whatever it was
// doing, and busy ones stay.
func TestSplitLetsTheIdlestGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := newPipeListener()
		split := Split(root, nil, SplitOptions{MaxConns: 4, FirstByteTimeout: time.Hour, Logger: slog.New(slog.DiscardHandler)})
		accept := func() net.Conn {
			c, err := split.Accept()
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		type pair struct {
			client net.Conn
			server net.Conn
		}
		silent := root.dial("")
		time.Sleep(time.Minute)
		active := pair{root.dial("a"), accept()}
		track(active.server, http.StateActive)
		time.Sleep(time.Minute)
		fresh := pair{root.dial("f"), accept()}
		time.Sleep(time.Minute)
		served := pair{root.dial("s"), accept()}
		track(served.server, http.StateActive)
		time.Sleep(time.Minute)
		track(served.server, http.StateIdle)
		synctest.Wait()

		open := func(c net.Conn) bool {
			_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
			_, err := c.Read(make([]byte, 1))
			return errors.Is(err, os.ErrDeadlineExceeded)
		}
		newcomer := func(want time.Duration) net.Conn {
			t.Helper()
			begin := time.Now()
			c := root.dial("n")
			track(accept(), http.StateActive)
			if took := time.Since(begin); took != want {
				t.Errorf("a new connection waited for %v, want %v", took, want)
			}
			return c
		}
		newcomer(0)
		if open(silent) || !open(fresh.client) || !open(served.client) || !open(active.client) {
			t.Error("the one that never said anything was idle longest")
		}
		newcomer(0)
		if open(fresh.client) || !open(served.client) || !open(active.client) {
			t.Error("the one that never made a request was idle longest")
		}
		// The last one was idle at two attempts, and is safe for a second.
		newcomer(minIdle - 5*time.Millisecond)
		if open(served.client) || !open(active.client) {
			t.Error("the one between requests was idle longest")
		}
		if got := split.openConns(); got != 4 {
			t.Errorf("%d connections are open, want 4", got)
		}
		// All are busy now.
		go func() {
			time.Sleep(time.Hour)
			track(active.server, http.StateIdle)
		}()
		newcomer(time.Hour + minIdle)
		if err := split.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Clients without a valid credential cannot keep others out: they are closed for them,
// whatever they have the server wait for.
func TestStrangersMakeRoom(t *testing.T) {
	h := newTestHandler(t)
	pair, err := tls.X509KeyPair(testCertificate(t))
	if err != nil {
		t.Fatal(err)
	}
	const most = 4
	for name, request := range map[string]string{
		"a body that does not come":           "POST /dbs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n",
		"a chunk that does not come":          "POST /dbs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n10\r\n",
		"a body for a path that is none":      "POST /none HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n",
		"a body of a sign-in":                 "POST /_explorer/session HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\nX-Mayfly-Explorer: 1\r\nContent-Length: 100\r\n\r\n",
		"refusals that wait":                  strings.Repeat("GET /dbs HTTP/1.1\r\nHost: localhost\r\n\r\n", 40),
		"refusals that wait, not in the lane": strings.Repeat("GET /dbs HTTP/1.1\r\nHost: localhost\r\nPragma: a\r\n\r\n", 40),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, l := NewServer(h, pair, func(c *Channel) { _ = c.Close() }, slog.New(slog.DiscardHandler)), listenLoopback(t)
			s.most = most
			served := make(chan error, 1)
			go func() { served <- s.Serve(l) }()
			defer func() {
				_ = s.Shutdown(t.Context())
				if err := <-served; err != nil {
					t.Error(err)
				}
			}()
			dial := func(text string) net.Conn {
				c, err := net.Dial("tcp", l.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = c.Close() })
				_ = c.SetDeadline(time.Now().Add(8 * time.Second))
				if _, err := io.WriteString(c, text); err != nil {
					t.Fatal(err)
				}
				return c
			}
			for range most {
				dial(request)
			}
			time.Sleep(100 * time.Millisecond)
			c := dial(rawRequest(t, "GET", "/dbs", nil) + "\r\n")
			a, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Fatal(err)
			}
			if _ = a.Body.Close(); a.StatusCode != 200 {
				t.Errorf("answered with %d", a.StatusCode)
			}
		})
	}
}

// A request that arrives while its connection is closed is not executed: the client could
// not get the answer.
func TestSplitNothingForTheGone(t *testing.T) {
	conn := &splitConn{}
	conn.idleSince.Store(1)
	conn.idleSince.Store(dropped)
	track(conn, http.StateActive)
	h := onConn(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the request was carried out") }), &streams{})
	defer func() {
		if p := recover(); p != http.ErrAbortHandler {
			t.Errorf("panic %v, want %v", p, http.ErrAbortHandler)
		}
	}()
	h.ServeHTTP(nil, (&http.Request{}).WithContext(withConn(t.Context(), conn)))
}

func TestSplitShutdown(t *testing.T) {
	arrived, finish := make(chan struct{}), make(chan struct{})
	s := startSplit(t, SplitOptions{FirstByteTimeout: time.Hour}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-finish
		describeRequest(w, r)
	}))
	silent := s.dial(t, "")
	var under sync.WaitGroup
	for _, scheme := range []string{"http", "https"} {
		client := s.client(t)
		under.Go(func() {
			if got, err := postText(client, scheme+"://"+s.addr+"/", "under way"); err != nil || !strings.HasSuffix(got, "under way") {
				t.Errorf("%s request under way at shutdown: %q, %v", scheme, got, err)
			}
		})
	}
	<-arrived
	<-arrived

	ctx, cancel := context.WithTimeout(t.Context(), splitWait)
	defer cancel()
	var stopping sync.WaitGroup
	stopping.Go(func() {
		if err := s.http.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown = %v", err)
		}
	})
	// The listener is closed now, though requests are still under way.
	if err := closedByServer(silent); err != nil {
		t.Error(err)
	}
	<-s.split.done
	if conn, err := net.Dial("tcp", s.addr); err == nil {
		_ = conn.Close()
		t.Error("a connection was accepted during shutdown")
	}
	close(finish)
	under.Wait()
	stopping.Wait()
	if err := s.split.Close(); err != nil {
		t.Errorf("Close = %v", err)
	}
	if open := s.split.openConns(); open != 0 {
		t.Errorf("%d connections are open after shutdown", open)
	}
}

// No caller accepts, so the connections are still the Splitter's to close, at once.
func TestSplitCloseEndsWhatNobodyAccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := newPipeListener()
		split := Split(root, &tls.Config{}, SplitOptions{})
		var conns []net.Conn
		for _, first := range []string{"G", "\x16", ""} {
			conns = append(conns, root.dial(first))
		}
		synctest.Wait()
		if open := split.openConns(); open != 3 {
			t.Errorf("%d connections are open, want 3", open)
		}
		begin := time.Now()
		if err := split.Close(); err != nil {
			t.Fatal(err)
		}
		for _, conn := range conns {
			if err := closedByServer(conn); err != nil {
				t.Error(err)
			}
		}
		if _, err := split.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Accept after Close = %v, want %v", err, net.ErrClosed)
		}
		if took := time.Since(begin); took != 0 {
			t.Errorf("closing waited for %v", took)
		}
		if open := split.openConns(); open != 0 {
			t.Errorf("%d connections are open after Close", open)
		}
		if err := split.Close(); err != nil {
			t.Errorf("second Close = %v", err)
		}
	})
}

// failingListener fails a number of times before each connection that it accepts.
type failingListener struct {
	net.Listener
	failures int
	failed   int
	total    atomic.Int64
}

func (l *failingListener) Accept() (net.Conn, error) {
	if l.failed < l.failures {
		l.failed++
		l.total.Add(1)
		return nil, syscall.EMFILE
	}
	l.failed = 0
	return l.Listener.Accept()
}

func TestSplitRetriesAccept(t *testing.T) {
	const connections = 3
	synctest.Test(t, func(t *testing.T) {
		root := newPipeListener()
		failing := &failingListener{Listener: root, failures: maxAcceptFailures - 1}
		split := Split(failing, nil, SplitOptions{MaxConns: 1, Logger: slog.New(slog.DiscardHandler)})
		defer func() { _ = split.Close() }()
		for range connections {
			client := root.dial("x")
			server, err := split.Accept()
			if err != nil {
				t.Fatal(err)
			}
			_, _ = client.Close(), server.Close()
		}
		if got, least := failing.total.Load(), int64(connections*(maxAcceptFailures-1)); got < least {
			t.Errorf("failures = %d, want at least %d", got, least)
		}
	})
}

func TestSplitGivesUpAccepting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		split := Split(&failingListener{Listener: newPipeListener(), failures: maxAcceptFailures}, nil,
			SplitOptions{Logger: slog.New(slog.DiscardHandler)})
		if _, err := split.Accept(); !errors.Is(err, syscall.EMFILE) {
			t.Errorf("Accept = %v, want %v", err, syscall.EMFILE)
		}
		if took := time.Since(begin); took < 9*time.Minute || took > 11*time.Minute {
			t.Errorf("gave up after %v, want about ten minutes", took)
		}
		if err := split.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
	})
}

func TestAcceptDelay(t *testing.T) {
	for failures, want := range map[int]time.Duration{
		1: 5 * time.Millisecond, 2: 10 * time.Millisecond, 8: 640 * time.Millisecond,
		9: time.Second, maxAcceptFailures: time.Second,
	} {
		if got := acceptDelay(failures); got != want {
			t.Errorf("acceptDelay(%d) = %v, want %v", failures, got, want)
		}
	}
}
