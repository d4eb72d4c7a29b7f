// SPDX-License-Identifier: MIT

// One port for HTTP and HTTPS: the first byte of a connection tells which. A TLS
// client begins with a handshake record, whose first byte no HTTP request has.
//
//  1. A connection holds one of the slots from before it is accepted until it is
//     closed, so there are never more open connections than slots.
//  2. A connection belongs to the Splitter until Accept of one side returns it,
//     and to the caller of Accept from then on. Each closes what it owns.
//  3. Once Close has returned, no goroutine of the Splitter is left.

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
)

// SplitOptions say how a port is shared. The zero value is ready to use.
type SplitOptions struct {
	// MaxConns is how many connections may be open at once, both sides together.
	// At the limit new ones wait in the operating system's queue. Default 10,000.
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
	Silent         int64 // connections closed because they said nothing in time
	AcceptFailures int64
}

// Splitter hands each connection of one listener to one of two others. Both
// sides must be served or closed: a connection that nobody accepts keeps its slot.
type Splitter struct {
	root          net.Listener
	options       SplitOptions
	plain, secure *splitSide
	slots         chan struct{} // holds one value per slot in use
	limitLogged   sync.Once
	wg            sync.WaitGroup

	open, limitWaits, silent, acceptFailures atomic.Int64

	stopOnce sync.Once
	done     chan struct{} // closed by stop
	closeErr error         // set before done is closed

	mu struct {
		sync.Mutex
		stopped bool
		peeking map[*splitConn]struct{} // accepted, first byte awaited
	}
}

// Split starts to accept connections from root, which belongs to the Splitter
// from then on. It ends with Close, or when both sides are closed.
func Split(root net.Listener, options SplitOptions) *Splitter {
	options = options.withDefaults()
	s := &Splitter{
		root:    root,
		options: options,
		slots:   make(chan struct{}, options.MaxConns),
		done:    make(chan struct{}),
	}
	s.plain, s.secure = newSplitSide(s), newSplitSide(s)
	s.mu.peeking = map[*splitConn]struct{}{}
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
	return SplitStats{
		Open:           s.open.Load(),
		LimitWaits:     s.limitWaits.Load(),
		Silent:         s.silent.Load(),
		AcceptFailures: s.acceptFailures.Load(),
	}
}

// Close closes the root listener, both sides, and every connection that neither
// has accepted, and waits until that is done.
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
		for c := range s.mu.peeking {
			_ = c.Close()
		}
	})
}

func (s *Splitter) acceptAll() {
	failures := 0
	for s.takeSlot() {
		conn, err := s.root.Accept()
		if err == nil {
			failures = 0
			s.open.Add(1)
			c := &splitConn{Conn: conn, splitter: s}
			s.wg.Go(func() { s.sort(c) })
			continue
		}
		<-s.slots
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
		s.pause(delay)
	}
}

// takeSlot waits for a slot and reports false once the Splitter has stopped.
func (s *Splitter) takeSlot() bool {
	select {
	case <-s.done:
		return false
	case s.slots <- struct{}{}:
		return true
	default:
	}
	s.limitWaits.Add(1)
	s.limitLogged.Do(func() {
		s.options.Logger.Warn("connection limit reached, new connections wait", "limit", s.options.MaxConns)
	})
	select {
	case <-s.done:
		return false
	case s.slots <- struct{}{}:
		return true
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

func (s *Splitter) pause(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.done:
	}
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

// peek reads the first byte of c and puts it back. stop interrupts it.
func (s *Splitter) peek(c *splitConn) (byte, error) {
	s.mu.Lock()
	if s.mu.stopped {
		s.mu.Unlock()
		return 0, net.ErrClosed
	}
	s.mu.peeking[c] = struct{}{}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.mu.peeking, c)
	}()

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
