// SPDX-License-Identifier: MIT

// The connections that a Splitter hands out, bare or beneath TLS.

package rest

import (
	"errors"
	"net"
	"sync/atomic"
	"time"
)

// peekedBit tells a peeked zero byte from none.
const peekedBit = 1 << 8

// splitConn is a connection whose first byte was read already.
type splitConn struct {
	net.Conn
	splitter *Splitter
	first    atomic.Uint32 // peekedBit and the byte, until it is given back
	// idleSince is when the connection became idle, in nanoseconds after the Splitter
	// was born and at least 1; busy while a request is under way, and dropped when the
	// Splitter has closed it.
	idleSince atomic.Int64
	// lingers says that the client may still be sending a request that was answered.
	lingers atomic.Bool
	// unread says that the body of the request under way was not read to its end. It
	// belongs to the goroutine that answers.
	unread bool
	// paidUntil is when the failed authentications so far would have happened at the
	// rate that they may. It belongs to the goroutine that answers.
	paidUntil time.Time

	// The beginning of an answer that waits for the rest, and how much there will be
	// at least; see together. They belong to the goroutine that answers.
	held    []byte
	awaited int
}

// Read implements net.Conn. All but the first pay one load and one branch.
func (c *splitConn) Read(p []byte) (int, error) {
	if c.first.Load() != 0 {
		return c.readFirst(p)
	}
	return c.Conn.Read(p)
}

func (c *splitConn) readFirst(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if first := c.first.Swap(0); first != 0 {
		p[0] = byte(first)
		return 1, nil
	}
	return c.Conn.Read(p)
}

// maxHeldBytes is what a connection holds back at most.
const maxHeldBytes = 8 << 10

// together announces that at least n bytes follow at once. net/http collects 4 KiB
// and then writes what it has; of an answer that is larger, the beginning would go
// out alone, in a system call of its own and often a packet of its own. It is held
// back until the rest is there.
func (c *splitConn) together(n int) { c.awaited = n }

// Write implements net.Conn.
func (c *splitConn) Write(p []byte) (int, error) {
	if c.awaited == 0 {
		return c.Conn.Write(p)
	}
	if n := len(c.held) + len(p); n < c.awaited && n <= maxHeldBytes {
		c.held = append(c.held, p...)
		return len(p), nil
	}
	c.awaited = 0
	if len(c.held) == 0 {
		return c.Conn.Write(p)
	}
	before := len(c.held)
	both := net.Buffers{c.held, p}
	n, err := both.WriteTo(c.Conn)
	c.held = c.held[:0]
	return max(int(n)-before, 0), err
}

// What idleSince may be besides a moment.
const (
	busy    = 0
	dropped = -1
)

// idle says that no request is under way.
func (c *splitConn) idle() {
	c.lingers.Store(false)
	c.idleSince.Store(max(int64(time.Since(c.splitter.born)), 1))
}

// begin says that the beginning of a request has come. net/http may answer it by
// itself, if there is something wrong with it.
func (c *splitConn) begin() {
	if since := c.idleSince.Load(); since != dropped && c.idleSince.CompareAndSwap(since, busy) {
		c.lingers.Store(true)
	}
}

// Close implements net.Conn. The connection of a client that may still be sending
// lingers, and leaves the table when it is done with that.
func (c *splitConn) Close() error {
	c.first.Store(0)
	if c.lingers.CompareAndSwap(true, false) && c.splitter.linger(c) {
		return nil
	}
	return c.cut()
}

// cut closes the connection, whatever the client is sending.
func (c *splitConn) cut() error {
	defer c.splitter.leave(c)
	return c.Conn.Close()
}

// CloseWrite ends the stream to the client and leaves the one from it open.
// http.Server looks for this method before it closes a connection with unread bytes.
func (c *splitConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}
