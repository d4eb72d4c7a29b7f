// SPDX-License-Identifier: MIT

// Package direct is the transport of direct mode: frames of package rntbd on channels that
// carry many requests at a time. Like package rest it decides nothing about data: it fills
// a request from a frame, package api answers it, and the answer becomes a frame.
//
//  1. A channel has one reader. A request is read, verified and admitted by it, and
//     executed in a goroutine of its own. Nothing of a payload is kept before the
//     credential of its request is verified.
//  2. A channel has at most one writer at a time: the goroutine whose answer finds none.
//     It writes all answers that wait, each on its own and all with one system call.
//  3. What a channel holds is bounded: by maxInFlight requests, from the first byte of a
//     request to the last of its answer, by maxQueuedBytes of answers that wait, and, with
//     all other requests, by the memory budget.
package direct

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mayflydb/mayfly/internal/api"
	"github.com/mayflydb/mayfly/internal/memory"
)

const (
	// maxInFlight is how many requests of a channel may be under way. SDKs have 30 and
	// then open another channel.
	maxInFlight = 64
	// maxExecuting is how many requests of all channels may be executing, as over HTTP,
	// where the number of connections bounds them.
	maxExecuting = 4096
	// maxQueuedBytes is how many bytes of answers may wait in a channel before it is read
	// again: its client reads too slowly.
	maxQueuedBytes = 1 << 20
	// maxDroppedBytes is how much of a refused payload is read and dropped, to find the
	// next frame. A channel with a longer one is closed.
	maxDroppedBytes = 64 << 20

	// idleTimeout is how long a channel may be silent, and frameTimeout how long a frame
	// may take from its first byte to its last.
	idleTimeout  = 30 * time.Minute
	frameTimeout = time.Minute
	// writeTimeout is how long the client may take to receive what is written at once.
	writeTimeout = 30 * time.Second
	// drainTime is how long a channel that is drained must be silent. Requests that were
	// sent before its client could know are answered, not lost.
	drainTime = 100 * time.Millisecond
	// authTimeout is told to clients, which ignore it.
	authTimeout = 10 * time.Second
)

// Conn is a connection of direct mode.
type Conn interface {
	net.Conn
	// Begin records that requests are under way. It returns false if the connection was
	// closed before. Idle records that there are none.
	Begin() bool
	Idle()
	// BeforeRead has f called before each read that may wait for the client. It is called
	// before the first read.
	BeforeRead(f func())
	// Hold keeps back what is written, until Flush.
	Hold()
	Flush() error
}

// Options are the parameters of New.
type Options struct {
	Service *api.Service
	// Memory is the budget of all requests under way; nil for no limit.
	Memory *memory.Budget
	// Unauthenticated counts a refused credential, and Observe an answer.
	Unauthenticated func(error)
	Observe         func(c *api.Call, status int)
	Logger          *slog.Logger
}

// Server serves channels.
type Server struct {
	Options
	quota     func() string
	executing chan struct{} // holds a value for each request that is executing
	exchanges sync.Pool     // of *exchange
	running   sync.WaitGroup
	draining  atomic.Bool

	mu struct {
		sync.Mutex
		channels map[*channel]struct{}
		closed   bool
	}
}

// New returns a server.
func New(o Options) *Server {
	s := &Server{Options: o, executing: make(chan struct{}, maxExecuting)}
	if s.Logger == nil {
		s.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	s.quota = sync.OnceValue(func() string { return api.QuotaText(o.Service.Engine.ContainerQuota()) })
	s.mu.channels = map[*channel]struct{}{}
	return s
}

// Serve serves a channel, in a goroutine of its own.
func (s *Server) Serve(conn Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed || s.draining.Load() {
		_ = conn.Close()
		return
	}
	ch := newChannel(s, conn)
	s.mu.channels[ch] = struct{}{}
	s.running.Go(func() {
		ch.serve()
		s.mu.Lock()
		delete(s.mu.channels, ch)
		s.mu.Unlock()
	})
}

// Drain begins to stop: a request that arrives from now on is answered with 410, with
// which clients look for another address. A channel is closed once it has no request under
// way, and none has arrived for drainTime.
func (s *Server) Drain() {
	s.draining.Store(true)
	s.mu.Lock()
	defer s.mu.Unlock()
	for ch := range s.mu.channels {
		ch.drain()
	}
}

// Shutdown drains, waits for the requests under way until ctx ends, and then closes the
// remaining channels.
func (s *Server) Shutdown(ctx context.Context) error {
	s.Drain()
	done := make(chan struct{})
	go func() {
		s.running.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		s.Close()
		<-done
		return ctx.Err()
	}
}

// Close closes all channels and waits for the requests under way. After it, the engine can
// be closed.
func (s *Server) Close() {
	s.mu.Lock()
	s.mu.closed = true
	for ch := range s.mu.channels {
		ch.abort()
	}
	s.mu.Unlock()
	s.running.Wait()
}

// protocolError is why a channel is closed: its client does not speak the protocol.
type protocolError struct{ text string }

func (e *protocolError) Error() string { return e.text }

func malformed(format string, args ...any) error {
	return &protocolError{fmt.Sprintf(format, args...)}
}
