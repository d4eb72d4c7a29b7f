// SPDX-License-Identifier: MIT

// Connections of direct mode, as the Splitter passes them on. They are in its table, so
// they count in its limit and are closed when they are idle, like those of HTTP.

package rest

import (
	"bufio"
	"net"
	"sync"
)

// Channel is a connection of direct mode, with TLS or without. It belongs to the function
// that it was passed to.
type Channel struct {
	net.Conn
	under *splitConn
}

// Begin records that a request is under way, until Idle. It returns false if the
// connection was closed, since it was idle: then the request must not be executed.
func (c *Channel) Begin() bool {
	for {
		since := c.under.idleSince.Load()
		if since == dropped {
			return false
		}
		if c.under.idleSince.CompareAndSwap(since, busy) {
			return true
		}
	}
}

// Idle records that no request is under way.
func (c *Channel) Idle() { c.under.idle() }

// Hold keeps back what is written, until Flush.
func (c *Channel) Hold() { c.under.cork.hold() }

// Flush sends what was kept back, with one system call.
func (c *Channel) Flush() error { return c.under.cork.flush(c.under.Conn) }

// BeforeRead has f called before each read of the connection that may wait for the client.
// With TLS, frames that have arrived are read without one.
func (c *Channel) BeforeRead(f func()) { c.under.ahead.before = f }

// aheadBytes is how much is read of a channel at once, beneath TLS: several requests that
// write small items.
const aheadBytes = 16 << 10

// ahead reads a channel's connection. TLS asks for little more than one record at a time, so
// beneath it a buffer takes all that has arrived.
type ahead struct {
	from   net.Conn
	before func()
	buffer *bufio.Reader // nil without TLS
}

// Read reads from the network.
func (a *ahead) Read(p []byte) (int, error) {
	if a.before != nil {
		a.before()
	}
	return a.from.Read(p)
}

func (a *ahead) read(p []byte) (int, error) {
	if a.buffer != nil {
		return a.buffer.Read(p)
	}
	return a.Read(p)
}

const (
	// maxCorked is how many bytes a cork keeps back at most: several frames, or a large
	// one. Then they are sent.
	maxCorked = 64 << 10
	// maxKeptCork is the largest buffer that a cork keeps while nothing is held.
	maxKeptCork = 16 << 10
)

// cork keeps back what is written to a connection, beneath TLS: each frame needs a TLS
// record of its own, but not a system call. TLS may write on its own, so a cork has a
// lock.
type cork struct {
	mu   sync.Mutex
	held bool
	kept []byte
}

func (k *cork) hold() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.held = true
}

func (k *cork) write(to net.Conn, p []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.held && len(k.kept)+len(p) <= maxCorked {
		k.kept = append(k.kept, p...)
		return len(p), nil
	}
	if len(k.kept) > 0 {
		before := len(k.kept)
		both := net.Buffers{k.kept, p}
		n, err := both.WriteTo(to)
		k.kept = k.kept[:0]
		return max(int(n)-before, 0), err
	}
	return to.Write(p)
}

func (k *cork) flush(to net.Conn) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.held = false
	if len(k.kept) == 0 {
		return nil
	}
	_, err := to.Write(k.kept)
	if k.kept = k.kept[:0]; cap(k.kept) > maxKeptCork {
		k.kept = nil
	}
	return err
}
