// SPDX-License-Identifier: MIT

// The end of a connection whose client is still sending. Bytes that nobody has read
// when a connection is closed reset it, and a reset takes the answer away from a
// client that has not read it yet: those that send all of a request before they read,
// as .NET and Python do, would never learn that it was too large. So the rest is read
// and dropped, beneath TLS and without a look at it.
//
// net/http does less: it reads 256 KiB of a body that the handler left. If there is
// more it closes its half of the connection, waits for half a second without reading,
// and closes; with "Expect: 100-continue", or "Connection: close" from the client, it
// closes at once. All of these end in splitConn.Close, and so here.

package rest

import "time"

// A client may send for lingerTime after it was answered, or lingerBytes, whichever
// ends first, and pause for lingerPause at most.
const (
	lingerTime  = 30 * time.Second
	lingerPause = 5 * time.Second
	lingerBytes = 64 << 20
	// lingerBuffer is all the memory that it takes: no more than net/http gives back
	// when it closes a connection.
	lingerBuffer = 8 << 10
)

// linger ends a connection in the background, and reports false if it is too late for
// that. Meanwhile the connection is idle: it makes room for another if it has to.
func (s *Splitter) linger(c *splitConn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, open := s.mu.table[c]; !open || s.mu.stopped {
		return false
	}
	c.idle()
	s.wg.Go(func() {
		defer func() { _ = c.cut() }()
		_ = c.CloseWrite() // for the client that waits for the end
		c.drop()
	})
	return true
}

// drop reads what the client sends, until it ends or goes on for too long.
func (c *splitConn) drop() {
	buffer := make([]byte, lingerBuffer)
	end := time.Now().Add(lingerTime)
	for left := lingerBytes; left > 0; {
		pause := time.Now().Add(lingerPause)
		if pause.After(end) {
			pause = end
		}
		if err := c.SetReadDeadline(pause); err != nil {
			return
		}
		n, err := c.Conn.Read(buffer)
		if err != nil {
			return
		}
		left -= n
	}
}
