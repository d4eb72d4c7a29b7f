// SPDX-License-Identifier: MIT

// The end of a connection whose client is still sending. Closing a connection with unread
// bytes resets it, and a reset discards the answer if the client has not read it yet.
// Clients that send all of a request before they read, as .NET and Python do, would never
// learn that it was too large. So the rest is read and dropped, beneath TLS and without
// decrypting it.
//
// net/http does less. It reads 256 KiB of a body that the handler left. If there is more,
// it closes its half of the connection, waits half a second without reading, and closes.
// With "Expect: 100-continue", or "Connection: close" from the client, it closes at once.
// All of these end in splitConn.Close, and so here.

package rest

import "time"

// After its answer, a client may send for lingerTime or lingerBytes, whichever ends
// first, with pauses of up to lingerPause.
const (
	lingerTime  = 30 * time.Second
	lingerPause = 5 * time.Second
	lingerBytes = 64 << 20
	// lingerBuffer is all the memory that lingering takes: no more than net/http frees
	// when it closes a connection.
	lingerBuffer = 8 << 10
)

// linger ends a connection in the background. It returns false if the connection is
// closed or the Splitter has stopped. Meanwhile the connection is idle, so it can be
// closed for a new one.
func (s *Splitter) linger(c *splitConn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, open := s.mu.table[c]; !open || s.mu.stopped {
		return false
	}
	c.idle()
	s.wg.Go(func() {
		defer func() { _ = c.cut() }()
		_ = c.CloseWrite() // a client may wait for the end of the stream
		c.drop()
	})
	return true
}

// drop reads and drops what the client sends, until a limit is reached.
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
