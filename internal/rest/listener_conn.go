// SPDX-License-Identifier: MIT

// The connections that a Splitter returns, bare or beneath TLS.

package rest

import (
	"errors"
	"net"
	"sync/atomic"
	"time"
)

// peekedBit tells a peeked zero byte from no byte.
const peekedBit = 1 << 8

// splitConn is a connection whose first byte was already read.
type splitConn struct {
	net.Conn
	splitter *Splitter
	first    atomic.Uint32 // peekedBit and the byte, until Read returned it
	// idleSince is when the connection became idle, in nanoseconds after the Splitter's
	// start and at least 1. It is busy while a request is under way, and dropped once the
	// Splitter has closed the connection.
	idleSince atomic.Int64
	// lingers says that the client may still be sending a request that was already
	// answered.
	lingers atomic.Bool
	// unread says that the body of the current request was not read to its end. Only the
	// goroutine that answers uses it.
	unread bool
	// paidUntil is when the failed authentications so far would have happened at the
	// permitted rate. Only the goroutine that answers uses it.
	paidUntil time.Time

	// held is the start of an answer that waits for the rest, and awaited how many bytes
	// follow at least; see together. Only the goroutine that answers uses them.
	held    []byte
	awaited int
}

// Read implements net.Conn. After the first byte it costs one load and one branch.
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

// maxHeldBytes bounds how much a connection holds back.
const maxHeldBytes = 8 << 10

// together announces that at least n bytes follow at once. net/http collects 4 KiB and
// then writes them. The start of a larger answer would be sent alone, with its own system
// call and often its own packet. So it is held back until the rest is there.
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

// Values of idleSince that are no moments.
const (
	busy    = 0
	dropped = -1
)

// idle records that no request is under way.
func (c *splitConn) idle() {
	c.lingers.Store(false)
	c.idleSince.Store(max(int64(time.Since(c.splitter.born)), 1))
}

// begin records that a request has begun. net/http may answer it without calling the
// handler if it is malformed.
func (c *splitConn) begin() {
	if since := c.idleSince.Load(); since != dropped && c.idleSince.CompareAndSwap(since, busy) {
		c.lingers.Store(true)
	}
}

// Close implements net.Conn. The connection of a client that may still be sending
// lingers, and leaves the table after that.
func (c *splitConn) Close() error {
	c.first.Store(0)
	if c.lingers.CompareAndSwap(true, false) && c.splitter.linger(c) {
		return nil
	}
	return c.cut()
}

// cut closes the connection, even if the client is still sending.
func (c *splitConn) cut() error {
	defer c.splitter.leave(c)
	return c.Conn.Close()
}

// CloseWrite ends the stream to the client and leaves the one from it open. http.Server
// calls it before it closes a connection with unread bytes.
func (c *splitConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}
