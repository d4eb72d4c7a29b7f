// SPDX-License-Identifier: MIT

// One port for HTTP and HTTPS: the first byte of a connection tells which. A TLS
// client begins with a handshake record, whose first byte no HTTP request has.
//
//  1. A connection is in the table from before its first byte is read until it is
//     closed, and the table has room for so many. One more may be open: the one that
//     waits for its place.
//  2. A connection belongs to the Splitter until Accept returns it, and to the caller
//     of Accept from then on, who says when it is busy and when it is idle. It is the
//     Splitter's again once the caller has closed it, if it lingers.
//  3. The Splitter closes a connection that is not busy whenever it has to: for a
//     newer one, the one that has been idle longest, and all of them when it stops.
//     It never closes one that is busy.
//  4. Once Close has returned, no goroutine of the Splitter is left.

package rest

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"
)

const (
	// tlsHandshake is the content type of the record that opens every TLS
	// connection (RFC 8446, section 5.1).
	tlsHandshake = 0x16

	// defaultMaxConns bounds the requests under way too: HTTP/1.1 has one on each.
	defaultMaxConns         = 4096
	defaultFirstByteTimeout = 10 * time.Second

	// An Accept that fails is tried again, for what it lacks (descriptors,
	// memory) comes back when a connection closes. After maxAcceptFailures in a
	// row, about ten minutes, the listener gives up.
	minAcceptDelay    = 5 * time.Millisecond
	maxAcceptDelay    = time.Second
	maxAcceptFailures = 600

	// minIdle is how long a connection has to be idle before it is closed for another:
	// if there is room for few only, one that has just come would else be closed before
	// it can say anything.
	minIdle = time.Second
)

// SplitOptions say how a port is shared. The zero value is ready to use.
type SplitOptions struct {
	// MaxConns is how many connections may be open at once. At the limit the one that
	// has been idle longest is closed for a new one. If all are busy, new ones wait in
	// the operating system's queue. Default 4,096.
	MaxConns int
	// FirstByteTimeout is how long a connection may stay silent before it is
	// closed. Default ten seconds.
	FirstByteTimeout time.Duration
	// Logger is told of failed accepts, and once of the limit. Default slog.Default.
	Logger *slog.Logger
}

// Splitter is the listener of both protocols. It must be served or closed: a connection
// that nobody accepts keeps its place.
type Splitter struct {
	root        net.Listener
	config      *tls.Config
	options     SplitOptions
	conns       chan net.Conn // those that Accept is to return
	born        time.Time     // what idle connections count from
	room        chan struct{} // holds a value when a connection has left the table
	limitLogged sync.Once
	wg          sync.WaitGroup

	stopOnce        sync.Once
	done            chan struct{} // closed by stop
	cause, closeErr error         // set before done is closed

	mu struct {
		sync.Mutex
		stopped bool
		table   map[*splitConn]struct{} // the connections that are open
	}
}

// Split starts to accept connections from root, which belongs to the Splitter
// from then on, until Close. The config is for those that begin with TLS.
func Split(root net.Listener, config *tls.Config, options SplitOptions) *Splitter {
	s := &Splitter{
		root:   root,
		config: config,
		options: SplitOptions{
			MaxConns:         cmp.Or(options.MaxConns, defaultMaxConns),
			FirstByteTimeout: cmp.Or(options.FirstByteTimeout, defaultFirstByteTimeout),
			Logger:           cmp.Or(options.Logger, slog.Default()),
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

// Accept implements net.Listener. It returns a *tls.Conn for a client that speaks TLS.
// The handshake is up to whoever accepts: a slow one holds up nobody else.
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
// that is done. http.Server holds its own lock meanwhile, so nothing here may want it.
func (s *Splitter) Close() error {
	s.stop(net.ErrClosed)
	s.wg.Wait()
	return s.closeErr
}

// stop is Close without the wait. The cause is what Accept returns from now on.
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
			if since := c.idleSince.Load(); since > 0 {
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

// admit gives c a place in the table, for which it waits if all that are there are
// busy. It reports false once the Splitter has stopped.
func (s *Splitter) admit(c *splitConn) bool {
	for wait := s.tryAdmit(c); wait > 0; wait = s.tryAdmit(c) {
		if !s.pause(s.room, wait) {
			return false
		}
	}
	return true
}

// tryAdmit is admit without the wait, and says how long that should be at most; 0 if c
// has its place.
func (s *Splitter) tryAdmit(c *splitConn) (wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.stopped {
		return minIdle // which ends at once
	}
	if len(s.mu.table) >= s.options.MaxConns {
		s.limitLogged.Do(func() {
			s.options.Logger.Warn("connection limit reached: those that have been idle longest are closed for new ones, which wait if there are none", "limit", s.options.MaxConns)
		})
		if wait := s.dropIdlestLocked(); wait > 0 {
			return wait
		}
	}
	s.mu.table[c] = struct{}{}
	return 0
}

// dropIdlestLocked closes the connection that has been idle longest. If there is none
// that has been idle for long enough, it says when there may be one. It looks at all,
// some 100 us for 4,096: nothing is kept in order for it, so
// that requests have nothing to keep in order.
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
		return minIdle // it has become busy
	}
	return 0
}

// dropLocked closes a connection that has been idle since the moment given, unless it
// has become busy.
func (s *Splitter) dropLocked(c *splitConn, since int64) bool {
	if !c.idleSince.CompareAndSwap(since, dropped) {
		return false
	}
	_ = c.Conn.Close()
	delete(s.mu.table, c)
	return true
}

// leave takes a connection that was closed out of the table.
func (s *Splitter) leave(c *splitConn) {
	s.mu.Lock()
	delete(s.mu.table, c)
	s.mu.Unlock()
	select {
	case s.room <- struct{}{}:
	default: // it says so already
	}
}

// acceptDelay is the pause after so many failures in a row, at least one.
func acceptDelay(failures int) time.Duration {
	const doublings = 8 // to more than the longest
	return min(minAcceptDelay<<min(failures-1, doublings), maxAcceptDelay)
}

// pause waits for a value, but not for ever, and reports false if the Splitter has
// stopped.
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

// sort waits for the first byte of c, which tells its protocol, and has Accept return it.
func (s *Splitter) sort(c *splitConn) {
	first, err := s.peek(c)
	if err != nil {
		_ = c.Close()
		return
	}
	var conn net.Conn = c
	if first == tlsHandshake {
		conn = tls.Server(c, s.config)
	}
	select {
	case s.conns <- conn:
	case <-s.done:
		_ = c.Close()
	}
}

// peek reads the first byte of c and puts it back. Closing c interrupts it.
func (s *Splitter) peek(c *splitConn) (byte, error) {
	if err := c.SetReadDeadline(time.Now().Add(s.options.FirstByteTimeout)); err != nil {
		return 0, err
	}
	var first [1]byte
	if _, err := c.Conn.Read(first[:]); err != nil {
		return 0, err
	}
	c.first.Store(peekedBit | uint32(first[0]))
	return first[0], c.SetReadDeadline(time.Time{})
}
