// SPDX-License-Identifier: MIT

// The connections that a Splitter returns, bare or beneath TLS.

package rest

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/mayflydb/mayfly/internal/api"
	"github.com/mayflydb/mayfly/internal/peer"
	"github.com/mayflydb/mayfly/internal/rntbd"
)

// peeked is the start of a stream that was read and put back. It is a pointer, so that
// reading costs a load and a branch once it is used up.
type peeked struct {
	rest atomic.Pointer[[]byte]
}

// peek reads the first byte of a stream, or as many as tell direct mode from all else, and
// puts them back.
func (p *peeked) peek(from io.Reader, far bool) ([]byte, error) {
	var room [rntbd.SniffBytes]byte
	n, err := from.Read(room[:1])
	for err == nil && far && n < len(room) && rntbd.Sniff(room[:n]) {
		var more int
		more, err = from.Read(room[n:])
		n += more
	}
	if n == 0 {
		return nil, err
	}
	first := room[:n] // a stream that ends early is left to its protocol
	p.rest.Store(&first)
	return first, nil
}

// read returns bytes that were put back, or 0 if there are none.
func (p *peeked) read(into []byte) int {
	rest := p.rest.Load()
	if rest == nil || len(into) == 0 {
		return 0
	}
	n := copy(into, *rest)
	if left := (*rest)[n:]; len(left) > 0 {
		p.rest.CompareAndSwap(rest, &left)
	} else {
		p.rest.CompareAndSwap(rest, nil)
	}
	return n
}

// splitConn is a connection whose first bytes were already read.
type splitConn struct {
	net.Conn
	splitter *Splitter
	first    peeked
	// idleSince is when the connection became idle, in nanoseconds after the Splitter's
	// start and at least 1. It is busy while a request is under way, and dropped once the
	// Splitter has closed the connection.
	idleSince atomic.Int64
	// lingers says that the client may still be sending a request that was already
	// answered.
	lingers atomic.Bool
	// shared says that requests come as streams of HTTP/2.
	shared atomic.Bool
	// unread says that the body of the current request was not read to its end. Only the
	// goroutine that answers uses it.
	unread bool
	// link is that of a connection of another node; nil before its first request.
	link atomic.Pointer[peer.Link]
	// failures are the connection's failed authentications.
	failures api.Failures
	// cork holds back the frames of a channel, and ahead reads them; nil for HTTP.
	cork  *cork
	ahead *ahead
}

// Read implements net.Conn. After the first bytes it costs two loads and two branches.
func (c *splitConn) Read(p []byte) (int, error) {
	if c.first.rest.Load() != nil {
		if n := c.first.read(p); n > 0 {
			return n, nil
		}
	}
	if c.ahead != nil {
		return c.ahead.read(p)
	}
	return c.Conn.Read(p)
}

// sniffedTLS is a connection of HTTP/1.1 over TLS after its handshake. Some of its bytes may
// have been read already. net/http takes its TLS state from it.
type sniffedTLS struct {
	*tls.Conn
	first peeked
}

// Read implements net.Conn.
func (c *sniffedTLS) Read(p []byte) (int, error) {
	if c.first.rest.Load() != nil {
		if n := c.first.read(p); n > 0 {
			return n, nil
		}
	}
	return c.Conn.Read(p)
}

// Write implements net.Conn.
func (c *splitConn) Write(p []byte) (int, error) {
	if c.cork != nil {
		return c.cork.write(c.Conn, p)
	}
	return c.Conn.Write(p)
}

// Values of idleSince that are no moments.
const (
	busy    = 0
	dropped = -1
)

// idle records that no request is under way.
func (c *splitConn) idle() {
	c.lingers.Store(false)
	if since := c.idleSince.Load(); since != dropped {
		c.idleSince.CompareAndSwap(since, c.now())
	}
}

// now is the present moment for idleSince.
func (c *splitConn) now() int64 { return max(int64(time.Since(c.splitter.born)), 1) }

// spare records that the request under way waits for a client without a valid credential, so
// that the connection may be closed as if it were idle. Otherwise such clients could keep
// all connections busy: by not sending the rest of a body, not reading answers, or having
// refusals wait. It does not concern other nodes, nor streams, which streams.go bounds.
func (c *splitConn) spare() {
	if !c.shared.Load() && c.link.Load() == nil {
		c.idleSince.CompareAndSwap(busy, c.now())
	}
}

// begin records that a request has begun. net/http may answer it without calling the
// handler if it is malformed.
func (c *splitConn) begin() {
	if since := c.idleSince.Load(); since != dropped && c.idleSince.CompareAndSwap(since, busy) {
		c.lingers.Store(!c.shared.Load())
	}
}

// share records that requests come as streams. Then the connection does not linger:
// net/http itself reads on after an early answer, and for a second before it closes a
// connection.
func (c *splitConn) share() {
	if !c.shared.Load() {
		c.shared.Store(true)
		c.lingers.Store(false)
	}
}

// Close implements net.Conn. The connection of a client that may still be sending
// lingers, and leaves the table after that.
func (c *splitConn) Close() error {
	c.first.rest.Store(nil)
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
