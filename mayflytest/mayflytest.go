// SPDX-License-Identifier: MIT

// Package mayflytest starts a database for a Go test in one line: a server on the loopback
// interface with its data in memory, its key, and its clock, which the test moves instead
// of sleeping.
//
//	func TestSessionsEnd(t *testing.T) {
//		s := mayflytest.Start(t)
//		client, err := azcosmos.NewClientFromConnectionString(s.ConnectionString(), nil)
//		…
//		s.Clock.Advance(time.Hour) // and every session is over
//	}
//
// Tests that run stored procedures, triggers or user-defined functions need a TestMain
// that begins with mayfly.RunScriptWorker:
//
//	func TestMain(m *testing.M) {
//		mayfly.RunScriptWorker()
//		os.Exit(m.Run())
//	}
//
// The server ends with the test, which fails if the server cannot be stopped cleanly.
// Otherwise it behaves like any other server.
package mayflytest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mayflydb/mayfly"
)

// stopTimeout is how long the end of a test waits for requests under way.
const stopTimeout = 10 * time.Second

// Server is a running database.
type Server struct {
	// Endpoint is where clients connect: http://127.0.0.1:PORT/.
	Endpoint string
	// HTTPSEndpoint is the same port over HTTPS; its certificate is signed by the
	// one that Certificate returns.
	HTTPSEndpoint string
	// Key is the master key.
	Key string
	// Clock is the database's time. It ticks until it is frozen.
	Clock *mayfly.Clock

	t       testing.TB
	server  *mayfly.Server
	address string
}

// Start starts a server for the test, and stops it when the test ends. Warnings of the
// server go to the test's log. The options are those of a database in memory with a test
// clock; each of change may alter them.
func Start(t testing.TB, change ...func(*mayfly.Options)) *Server {
	t.Helper()
	log := &testLog{t: t}
	o := mayfly.Options{
		Memory:    true,
		TestClock: true,
		Logger:    slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	for _, f := range change {
		f(&o)
	}
	server, err := mayfly.Open(o)
	if err != nil {
		t.Fatalf("open a database for the test: %v", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listen for the test's database: %v", errors.Join(err, server.Close()))
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		defer log.end()
		if err := stop(server, served); err != nil {
			t.Errorf("stop the test's database: %v", err)
		}
	})
	address := l.Addr().String()
	return &Server{
		Endpoint:      "http://" + address + "/",
		HTTPSEndpoint: "https://" + address + "/",
		Key:           server.Key(),
		Clock:         server.Clock(),
		t:             t, server: server, address: address,
	}
}

func stop(server *mayfly.Server, served <-chan error) error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	err := server.Shutdown(ctx)
	return errors.Join(err, <-served, server.Close())
}

// ConnectionString returns what an SDK takes to connect, over HTTP.
func (s *Server) ConnectionString() string { return s.server.ConnectionString(s.Endpoint) }

// Certificate returns the root certificate that clients of HTTPSEndpoint are to
// trust. It connects to the server to get it, and fails the test if that fails.
func (s *Server) Certificate() *x509.Certificate {
	s.t.Helper()
	// There is no certificate to verify the connection by yet.
	c, err := tls.Dial("tcp", s.address, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		s.t.Fatalf("ask the test's database for its certificate: %v", err)
	}
	chain := c.ConnectionState().PeerCertificates
	if err := c.Close(); err != nil {
		s.t.Fatalf("ask the test's database for its certificate: %v", err)
	}
	return chain[len(chain)-1]
}

// testLog writes to a test's log while the test runs: testing panics on a log entry after
// the end of a test.
type testLog struct {
	t  testing.TB
	mu struct {
		sync.Mutex
		ended bool
	}
}

func (l *testLog) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.mu.ended {
		l.t.Log("mayfly: " + strings.TrimSuffix(string(line), "\n"))
	}
	return len(line), nil
}

func (l *testLog) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.ended = true
}
