// SPDX-License-Identifier: MIT

// One port for HTTP, HTTPS and direct mode. The first bytes of a connection tell which: a
// TLS client begins with a handshake record, and no HTTP request begins with its first
// byte. A client of direct mode begins with a frame that has zeros where no HTTP request
// has them, beneath TLS or, as no SDK does, without.
//
//  1. A connection is in the table from before its first byte is read until it is
//     closed. The table is bounded. One more connection may be open: the one that waits
//     for its place.
//  2. A connection belongs to the Splitter until Accept returns it, and to the caller of
//     Accept from then on, which reports when the connection is busy and when it is
//     idle. If it lingers after the caller has closed it, it is the Splitter's again.
//  3. The Splitter closes connections that are not busy: the one that has been idle
//     longest for a new one, and all of them when it stops. It never closes a busy one.
//     When it stops, it leaves those of HTTP/2 to http.Server, which says goodbye. While
//     the server waits for a client without a valid credential, its connection is not busy.
//  4. Once Close has returned, no goroutine of the Splitter is left.

package rest

import (
	"bufio"
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/api"
	"github.com/mayflydb/mayfly/internal/rntbd"
)

const (
	// tlsHandshake is the content type of the record that opens every TLS
	// connection (RFC 8446, section 5.1).
	tlsHandshake = 0x16

	// defaultMaxConns also bounds the requests under way: HTTP/1.1 has one on each
	// connection. HTTP/2 has a bound of its own.
	defaultMaxConns         = 4096
	defaultFirstByteTimeout = 10 * time.Second

	// A failed Accept is tried again, since what it lacks (descriptors, memory) is freed
	// when a connection closes. After maxAcceptFailures in a row, about ten minutes, the
	// listener gives up.
	minAcceptDelay    = 5 * time.Millisecond
	maxAcceptDelay    = time.Second
	maxAcceptFailures = 600

	// minIdle is how long a connection must be idle before it is closed for another.
	// Otherwise, in a small table, a new connection would be closed before its client
	// could send anything.
	minIdle = time.Second
)

// SplitOptions are the options of Split. The zero value is ready to use.
type SplitOptions struct {
	// MaxConns is how many connections may be open. At the limit, the one that has been
	// idle longest is closed for a new one. If all are busy, new ones wait in the
	// operating system's queue. Default 4,096.
	MaxConns int
	// FirstByteTimeout is how long a new connection may stay silent before it is closed.
	// Default ten seconds.
	FirstByteTimeout time.Duration
	// Logger gets failed accepts, and the limit the first time it is reached. Default
	// slog.Default.
	Logger *slog.Logger
	// Direct serves a connection of direct mode from then on, in a goroutine of its own.
	// Nil if there is no direct mode: such connections are taken for HTTP.
	Direct func(*Channel)
	// Lane serves a connection of HTTP/1.1, until it returns whether Accept should return
	// the connection. Nil to accept all. The Splitter does not wait for it.
	Lane func(net.Conn, *splitConn) (accept bool)
}

// Splitter is the listener of all protocols. It must be served or closed: a connection
// that is not accepted keeps its place.
type Splitter struct {
	root        net.Listener
	config      *tls.Config
	options     SplitOptions
	conns       chan net.Conn // for Accept
	born        time.Time     // idleSince counts from here
	room        chan struct{} // holds a value after a connection has left the table
	limitLogged sync.Once
	distrust    api.LineLimit
	wg          sync.WaitGroup

	stopOnce        sync.Once
	done            chan struct{} // closed by stop
	cause, closeErr error         // set before done is closed

	mu struct {
		sync.Mutex
		stopped bool
		table   map[*splitConn]struct{} // the open connections
	}
}

// Split starts to accept connections from root, which belongs to the Splitter until
// Close. The config is for connections that begin with TLS.
func Split(root net.Listener, config *tls.Config, options SplitOptions) *Splitter {
	s := &Splitter{
		root:   root,
		config: config,
		options: SplitOptions{
			MaxConns:         cmp.Or(options.MaxConns, defaultMaxConns),
			FirstByteTimeout: cmp.Or(options.FirstByteTimeout, defaultFirstByteTimeout),
			Logger:           cmp.Or(options.Logger, slog.Default()),
			Direct:           options.Direct,
			Lane:             options.Lane,
		},
		conns: make(chan net.Conn),
		born:  time.Now(),
		room:  make(chan struct{}, 1),
		done:  make(chan struct{}),
	}
	s.mu.table = map[*splitConn]struct{}{}
	s.wg.Go(s.acceptAll)
	return s
}

// Accept implements net.Listener. It returns a *tls.Conn, or a *sniffedTLS around one, for
// a client that speaks TLS.
func (s *Splitter) Accept() (net.Conn, error) {
	select {
	case c := <-s.conns:
		return c, nil
	case <-s.done:
		return nil, s.cause
	}
}

// Addr implements net.Listener.
func (s *Splitter) Addr() net.Addr { return s.root.Addr() }

// Close closes the root listener and every connection that is not busy, and waits until
// that is done. http.Server holds its own lock meanwhile, so Close must not need it.
func (s *Splitter) Close() error {
	s.stop(net.ErrClosed)
	s.wg.Wait()
	return s.closeErr
}

// stop is Close without the wait. Accept returns the cause from then on.
func (s *Splitter) stop(cause error) {
	s.stopOnce.Do(func() {
		if err := s.root.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			s.closeErr = fmt.Errorf("close listener %s: %w", s.root.Addr(), err)
		}
		s.cause = cause
		close(s.done)

		s.mu.Lock()
		defer s.mu.Unlock()
		s.mu.stopped = true
		for c := range s.mu.table {
			if since := c.idleSince.Load(); since > 0 && !c.shared.Load() {
				s.dropLocked(c, since)
			}
		}
	})
}

func (s *Splitter) acceptAll() {
	failures := 0
	for {
		conn, err := s.root.Accept()
		if err == nil {
			failures = 0
			c := &splitConn{Conn: conn, splitter: s}
			c.idle()
			if !s.admit(c) {
				_ = conn.Close()
				return
			}
			s.wg.Go(func() { s.sort(c) })
			continue
		}
		if errors.Is(err, net.ErrClosed) {
			s.stop(net.ErrClosed)
			return
		}
		if failures++; failures == maxAcceptFailures {
			s.stop(fmt.Errorf("accept on %s, %d times in a row: %w", s.root.Addr(), failures, err))
			return
		}
		delay := acceptDelay(failures)
		s.options.Logger.Warn("cannot accept connections, trying again", "error", err, "delay", delay)
		s.mu.Lock()
		s.dropIdlestLocked()
		s.mu.Unlock()
		if !s.pause(nil, delay) {
			return
		}
	}
}

// admit gives c a place in the table, and waits while all connections there are busy. It
// returns false once the Splitter has stopped.
func (s *Splitter) admit(c *splitConn) bool {
	for wait := s.tryAdmit(c); wait > 0; wait = s.tryAdmit(c) {
		if !s.pause(s.room, wait) {
			return false
		}
	}
	return true
}

// tryAdmit is admit without the wait. It returns how long to wait at most, or 0 if c has
// its place.
func (s *Splitter) tryAdmit(c *splitConn) (wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.stopped {
		return minIdle // pause returns at once
	}
	if len(s.mu.table) >= s.options.MaxConns {
		s.limitLogged.Do(func() {
			s.options.Logger.Warn("connection limit reached: the connections that have been idle longest are closed for new ones, and new ones wait if all are busy", "limit", s.options.MaxConns)
		})
		if wait := s.dropIdlestLocked(); wait > 0 {
			return wait
		}
	}
	s.mu.table[c] = struct{}{}
	return 0
}

// dropIdlestLocked closes the connection that has been idle longest. If none has been
// idle for minIdle, it returns when there may be one. It looks at all connections, some
// 100 us for 4,096, so that requests need not keep an order.
func (s *Splitter) dropIdlestLocked() (wait time.Duration) {
	var idlest *splitConn
	var first int64
	for c := range s.mu.table {
		if since := c.idleSince.Load(); since > 0 && (idlest == nil || since < first) {
			idlest, first = c, since
		}
	}
	if idlest == nil {
		return minIdle
	}
	if wait := minIdle - (time.Since(s.born) - time.Duration(first)); wait > 0 {
		return wait
	}
	if !s.dropLocked(idlest, first) {
		return minIdle // the connection became busy
	}
	return 0
}

// dropLocked closes a connection that has been idle since the given moment, unless it has
// become busy.
func (s *Splitter) dropLocked(c *splitConn, since int64) bool {
	if !c.idleSince.CompareAndSwap(since, dropped) {
		return false
	}
	_ = c.Conn.Close()
	delete(s.mu.table, c)
	return true
}

// leave removes a closed connection from the table.
func (s *Splitter) leave(c *splitConn) {
	s.mu.Lock()
	delete(s.mu.table, c)
	s.mu.Unlock()
	select {
	case s.room <- struct{}{}:
	default: // a value is already there
	}
}

// acceptDelay returns the pause after this many failures in a row, at least one.
func acceptDelay(failures int) time.Duration {
	const doublings = 8 // enough to exceed maxAcceptDelay
	return min(minAcceptDelay<<min(failures-1, doublings), maxAcceptDelay)
}

// pause waits for a value, at most for d. It returns false if the Splitter has stopped.
func (s *Splitter) pause(c <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-c:
	case <-s.done:
		return false
	}
	return true
}

// sort waits for the first bytes of c, which tell its protocol, and passes c on.
func (s *Splitter) sort(c *splitConn) {
	conn, err := s.sniff(c)
	if err != nil {
		_ = c.Close()
		return
	}
	if conn == nil {
		return // a channel, which is served already
	}
	if _, secure := conn.(*tls.Conn); secure || s.options.Lane == nil {
		s.pass(conn, c)
		return
	}
	go func() {
		if s.options.Lane(conn, c) {
			s.pass(conn, c)
		}
	}()
}

// pass passes a connection to Accept.
func (s *Splitter) pass(conn net.Conn, c *splitConn) {
	select {
	case s.conns <- conn:
	case <-s.done:
		_ = c.Close()
	}
}

// sniff returns the connection for HTTP, or nil if it is a channel of direct mode. The
// time limit is for all bytes that it needs. Closing c interrupts it.
func (s *Splitter) sniff(c *splitConn) (net.Conn, error) {
	if err := c.SetDeadline(time.Now().Add(s.options.FirstByteTimeout)); err != nil {
		return nil, err
	}
	first, err := c.first.peek(c.Conn, s.options.Direct != nil)
	if err != nil {
		return nil, err
	}
	switch {
	case s.options.Direct != nil && direct(first):
		return nil, s.channel(c, c)
	case first[0] != tlsHandshake:
		return c, c.SetDeadline(time.Time{})
	}
	secure := tls.Server(c, s.config)
	if s.options.Direct == nil {
		return secure, c.SetDeadline(time.Time{}) // net/http does the handshake
	}
	if err := secure.Handshake(); err != nil {
		s.handshakeFailed(c, err)
		return nil, err
	}
	protocol := secure.ConnectionState().NegotiatedProtocol
	if protocol == "h2" {
		return secure, c.SetDeadline(time.Time{})
	}
	sniffed := &sniffedTLS{Conn: secure}
	if protocol != "" { // direct mode negotiates none
		return sniffed, c.SetDeadline(time.Time{})
	}
	if first, err = sniffed.first.peek(secure, true); err != nil {
		return nil, err
	}
	if direct(first) {
		return nil, s.channel(sniffed, c)
	}
	return sniffed, c.SetDeadline(time.Time{})
}

// direct reports whether a stream with these first bytes is of direct mode.
func direct(first []byte) bool { return len(first) == rntbd.SniffBytes && rntbd.Sniff(first) }

// channel passes a connection of direct mode on. conn is c, or TLS above it.
func (s *Splitter) channel(conn net.Conn, c *splitConn) error {
	if err := c.SetDeadline(time.Time{}); err != nil {
		return err
	}
	c.cork, c.ahead = &cork{}, &ahead{from: c.Conn}
	if conn != net.Conn(c) {
		c.ahead.buffer = bufio.NewReaderSize(c.ahead, aheadBytes)
	}
	s.options.Direct(&Channel{conn, c})
	return nil
}
