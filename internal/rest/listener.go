// SPDX-License-Identifier: MIT

// One port for HTTP and HTTPS: the first byte of a connection tells which. A TLS
// client begins with a handshake record, whose first byte no HTTP request has.
//
//  1. A connection is in the table from before its first byte is read until it is
//     closed, and the table has room for so many. One more may be open: the one that
//     waits for its place.
//  2. A connection belongs to the Splitter until Accept of one side returns it, and
//     to the caller of Accept from then on, who says when it is busy and when it is
//     idle. It is the Splitter's again once the caller has closed it, if it lingers.
//  3. The Splitter closes a connection that is not busy whenever it has to: for a
//     newer one, the one that has been idle longest, and all of them when it stops.
//     It never closes one that is busy.
//  4. Once Close has returned, no goroutine of the Splitter is left.

package rest

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// tlsHandshake is the content type of the record that opens every TLS
	// connection (RFC 8446, section 5.1).
	tlsHandshake = 0x16

	defaultMaxConns         = 10_000
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
	// MaxConns is how many connections may be open at once, both sides together.
	// At the limit the one that has been idle longest is closed for a new one. If all
	// are busy, new ones wait in the operating system's queue. Default 10,000.
	MaxConns int
	// FirstByteTimeout is how long a connection may stay silent before it is
	// closed. Default ten seconds.
	FirstByteTimeout time.Duration
	// Logger is told of failed accepts, and once of the limit. Default slog.Default.
	Logger *slog.Logger
}

func (o SplitOptions) withDefaults() SplitOptions {
	if o.MaxConns <= 0 {
		o.MaxConns = defaultMaxConns
	}
	if o.FirstByteTimeout <= 0 {
		o.FirstByteTimeout = defaultFirstByteTimeout
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o
}

// SplitStats count what happened on a port since it was opened.
type SplitStats struct {
	Open           int64 // connections open at this moment
	LimitWaits     int64 // times that accepting had to wait for a connection to close
	LetGo          int64 // connections closed in favour of others, since they were idle
	Silent         int64 // connections closed because they said nothing in time
	AcceptFailures int64
}

// Splitter hands each connection of one listener to one of two others. Both
// sides must be served or closed: a connection that nobody accepts keeps its place.
type Splitter struct {
	root          net.Listener
	options       SplitOptions
	plain, secure *splitSide
	born          time.Time     // what idle connections count from
	room          chan struct{} // holds a value when a connection has left the table
	limitLogged   sync.Once
	wg            sync.WaitGroup

	limitWaits, letGo, silent, acceptFailures atomic.Int64

	stopOnce sync.Once
	done     chan struct{} // closed by stop
	closeErr error         // set before done is closed

	mu struct {
		sync.Mutex
		stopped bool
		table   map[*splitConn]struct{} // the connections that are open
	}
}

// Split starts to accept connections from root, which belongs to the Splitter
// from then on. It ends with Close, or when both sides are closed.
func Split(root net.Listener, options SplitOptions) *Splitter {
	options = options.withDefaults()
	s := &Splitter{
		root:    root,
		options: options,
		born:    time.Now(),
		room:    make(chan struct{}, 1),
		done:    make(chan struct{}),
	}
	s.plain, s.secure = newSplitSide(s), newSplitSide(s)
	s.mu.table = map[*splitConn]struct{}{}
	s.wg.Go(s.acceptAll)
	return s
}

// Plain returns the listener of connections that do not begin with TLS.
func (s *Splitter) Plain() net.Listener { return s.plain }

// Secure returns the listener of connections that begin with TLS. They are as
// the client sent them: the handshake is up to whoever accepts them.
func (s *Splitter) Secure() net.Listener { return s.secure }

// Stats returns the counts so far.
func (s *Splitter) Stats() SplitStats {
	s.mu.Lock()
	open := len(s.mu.table)
	s.mu.Unlock()
	return SplitStats{
		Open:           int64(open),
		LimitWaits:     s.limitWaits.Load(),
		LetGo:          s.letGo.Load(),
		Silent:         s.silent.Load(),
		AcceptFailures: s.acceptFailures.Load(),
	}
}

// Close closes the root listener, both sides, and every connection that is not busy,
// and waits until that is done.
func (s *Splitter) Close() error {
	s.stop(net.ErrClosed)
	s.wg.Wait()
	return s.closeErr
}

// stop ends everything but does not wait: http.Server closes its listener, and
// with the second side the Splitter, while it holds its own lock. cause is what
// Accept of both sides returns from now on.
func (s *Splitter) stop(cause error) {
	s.stopOnce.Do(func() {
		if err := s.root.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			s.closeErr = fmt.Errorf("close listener %s: %w", s.root.Addr(), err)
		}
		close(s.done)
		s.plain.shut(cause)
		s.secure.shut(cause)

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
		s.acceptFailures.Add(1)
		if failures++; failures == maxAcceptFailures {
			s.stop(fmt.Errorf("accept on %s, %d times in a row: %w", s.root.Addr(), failures, err))
			return
		}
		delay := acceptDelay(failures)
		s.options.Logger.Warn("cannot accept connections, trying again", "error", err, "delay", delay)
		s.mu.Lock()
		s.dropIdlestLocked()
		s.mu.Unlock()
		if !s.pause(delay) {
			return
		}
	}
}

// admit gives c a place in the table, for which it waits if all that are there are
// busy. It reports false once the Splitter has stopped.
func (s *Splitter) admit(c *splitConn) bool {
	for waited := false; ; waited = true {
		admitted, wait := s.tryAdmit(c)
		switch {
		case admitted:
			return true
		case s.pausedBy(s.room, wait):
			return false
		case !waited:
			s.limitWaits.Add(1)
		}
	}
}

// tryAdmit is admit without the wait, and says how long that should be at most.
func (s *Splitter) tryAdmit(c *splitConn) (admitted bool, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.stopped {
		return false, 0
	}
	if len(s.mu.table) >= s.options.MaxConns {
		s.limitLogged.Do(func() {
			s.options.Logger.Warn("connection limit reached: those that have been idle longest are closed for new ones, which wait if there are none", "limit", s.options.MaxConns)
		})
		if wait := s.dropIdlestLocked(); wait > 0 {
			return false, wait
		}
	}
	s.mu.table[c] = struct{}{}
	return true, 0
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
	s.letGo.Add(1)
	return 0
}

// dropLocked closes a connection that has been idle since the moment given, unless it
// has become busy.
func (s *Splitter) dropLocked(c *splitConn, since int64) bool {
	if !c.idleSince.CompareAndSwap(since, dropped) {
		return false
	}
	if c.closed.CompareAndSwap(false, true) {
		_ = c.Conn.Close()
	}
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
	delay := minAcceptDelay
	for i := 1; i < failures && delay < maxAcceptDelay; i++ {
		delay *= 2
	}
	return min(delay, maxAcceptDelay)
}

// pause waits, and reports false if the Splitter has stopped.
func (s *Splitter) pause(d time.Duration) bool { return !s.pausedBy(nil, d) }

// pausedBy waits for a value, but not for ever, and reports whether the Splitter has
// stopped.
func (s *Splitter) pausedBy(c <-chan struct{}, d time.Duration) (stopped bool) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-c:
	case <-s.done:
		return true
	}
	return false
}

// sort waits for the first byte of c and hands c to its side.
func (s *Splitter) sort(c *splitConn) {
	first, err := s.peek(c)
	if err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			s.silent.Add(1)
		}
		_ = c.Close()
		return
	}
	side := s.plain
	if first == tlsHandshake {
		side = s.secure
	}
	select {
	case side.conns <- c:
	case <-side.done:
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
