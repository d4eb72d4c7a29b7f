// SPDX-License-Identifier: MIT

// A client of HTTP/2 that sends frames one by one, so that it can break the rules.

package rest

import (
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// Types of frames, flags and settings: RFC 9113, section 6.
const (
	frameData         = 0x0
	frameHeaders      = 0x1
	frameReset        = 0x3
	frameSettings     = 0x4
	framePing         = 0x6
	frameGoAway       = 0x7
	frameWindow       = 0x8
	frameContinuation = 0x9

	endStream  = 0x1
	endHeaders = 0x4

	settingTable  = 0x1
	settingWindow = 0x4
	settingFrame  = 0x5
)

type frame struct {
	kind, flags byte
	stream      uint32
	payload     []byte
}

// frameConn is a connection that speaks HTTP/2 from its first byte. It reads all the time,
// unless it is stalled.
type frameConn struct {
	net.Conn
	got  chan frame // closed at the end of the connection
	away int        // the code of the last GOAWAY, -1 before
}

// maxFramesKept is more than any test receives at once.
const maxFramesKept = 1 << 12

// speak begins HTTP/2 on a connection, with settings of the client.
func speak(t testing.TB, conn net.Conn, settings ...uint32) *frameConn {
	t.Helper()
	c := startStalled(t, conn, settings...)
	go c.read()
	return c
}

// startStalled is speak for a client that reads nothing until it calls read.
func startStalled(t testing.TB, conn net.Conn, settings ...uint32) *frameConn {
	t.Helper()
	t.Cleanup(func() { _ = conn.Close() })
	c := &frameConn{conn, make(chan frame, maxFramesKept), -1}
	payload := binary.BigEndian.AppendUint16(nil, settingTable) // no table, for statusOf
	payload = binary.BigEndian.AppendUint32(payload, 0)
	for i := 0; i < len(settings); i += 2 {
		payload = binary.BigEndian.AppendUint16(payload, uint16(settings[i]))
		payload = binary.BigEndian.AppendUint32(payload, settings[i+1])
	}
	if _, err := io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if err := c.send(frameSettings, 0, 0, payload); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *frameConn) read() {
	defer close(c.got)
	for {
		var head [9]byte
		if _, err := io.ReadFull(c.Conn, head[:]); err != nil {
			return
		}
		f := frame{kind: head[3], flags: head[4], stream: binary.BigEndian.Uint32(head[5:])}
		f.payload = make([]byte, binary.BigEndian.Uint32(head[:])>>8)
		if _, err := io.ReadFull(c.Conn, f.payload); err != nil {
			return
		}
		if f.kind == frameData && len(f.payload) > 0 { // returns the connection's room
			_ = c.send(frameWindow, 0, 0, binary.BigEndian.AppendUint32(nil, uint32(len(f.payload))))
		}
		c.got <- f
	}
}

// frameOf encodes a frame.
func frameOf(kind, flags byte, stream uint32, payload []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(payload))<<8|uint32(kind))
	b = binary.BigEndian.AppendUint32(append(b, flags), stream)
	return append(b, payload...)
}

func (c *frameConn) send(kind, flags byte, stream uint32, payload []byte) error {
	_, err := c.Write(frameOf(kind, flags, stream, payload))
	return err
}

// request encodes a request without its body, of which more tells whether one follows.
func (c *frameConn) request(stream uint32, r *http.Request, more bool) []byte {
	fields := []string{":method", r.Method, ":scheme", "http", ":path", r.URL.RequestURI(), ":authority", "localhost"}
	for name, values := range r.Header {
		fields = append(fields, strings.ToLower(name), values[0])
	}
	block := fieldsOf(fields...)
	flags := byte(endStream)
	if more {
		flags = 0
	}
	var out []byte
	kind := byte(frameHeaders)
	for first := true; first || len(block) > 0; first = false {
		n := min(len(block), maxFrameBytes)
		if n == len(block) {
			flags |= endHeaders
		}
		out = append(out, frameOf(kind, flags, stream, block[:n])...)
		kind, flags, block = frameContinuation, 0, block[n:]
	}
	return out
}

// begin sends a request without its body.
func (c *frameConn) begin(t testing.TB, stream uint32, r *http.Request, more bool) {
	t.Helper()
	if _, err := c.Write(c.request(stream, r, more)); err != nil {
		t.Fatalf("stream %d: %v", stream, err)
	}
}

// fieldsOf encodes headers as literals (RFC 7541, section 6.2.2).
func fieldsOf(namesAndValues ...string) []byte {
	var b []byte
	for i, text := range namesAndValues {
		if i%2 == 0 {
			b = append(b, 0)
		}
		n := len(text)
		if n < 127 {
			b = append(b, byte(n))
		} else {
			b = binary.AppendUvarint(append(b, 127), uint64(n-127))
		}
		b = append(b, text...)
	}
	return b
}

// statusOf decodes the status at the start of a header block.
func statusOf(block []byte) int {
	for block[0]&0xe0 == 0x20 { // the size of the table
		block = block[1:]
	}
	if block[0]&0x80 != 0 {
		return []int{200, 204, 206, 304, 400, 404, 500}[block[0]&0x7f-8]
	}
	n := int(block[1] & 0x7f)
	if text := block[2 : 2+n]; block[1]&0x80 == 0 {
		return int(text[0]-'0')*100 + int(text[1]-'0')*10 + int(text[2]-'0')
	}
	var bits uint64
	for _, b := range block[2 : 2+n] {
		bits = bits<<8 | uint64(b)
	}
	status := 0
	for left, digits := n*8, 0; digits < 3; digits++ { // Huffman codes of digits
		if d := bits >> (left - 5) & 0x1f; d < 3 {
			status, left = status*10+int(d), left-5
		} else {
			status, left = status*10+int(bits>>(left-6)&0x3f-0x19)+3, left-6
		}
	}
	return status
}

// streamEnd is how a stream ended: with an answer, a reset, or both.
type streamEnd struct {
	status int
	body   []byte
	reset  int // -1 for none
}

// ends waits until each of the streams has ended, or the connection has.
func (c *frameConn) ends(t testing.TB, streams ...uint32) map[uint32]*streamEnd {
	t.Helper()
	limit := time.After(2 * time.Minute)
	all, open := map[uint32]*streamEnd{}, slices.Clone(streams)
	for len(open) > 0 {
		select {
		case f, ok := <-c.got:
			if !ok {
				return all
			}
			s := all[f.stream]
			if s == nil {
				s = &streamEnd{reset: -1}
				all[f.stream] = s
			}
			switch f.kind {
			case frameHeaders:
				s.status = statusOf(f.payload)
			case frameData:
				s.body = append(s.body, f.payload...)
			case frameReset:
				s.reset = int(binary.BigEndian.Uint32(f.payload))
			case frameGoAway:
				c.away = int(binary.BigEndian.Uint32(f.payload[4:]))
			}
			if f.kind == frameReset || f.kind <= frameHeaders && f.flags&endStream != 0 {
				open = slices.DeleteFunc(open, func(id uint32) bool { return id == f.stream })
			}
		case <-limit:
			t.Fatalf("streams %v have not ended", open)
		}
	}
	return all
}

// goodbye waits for the end of the connection, and returns the code of its last GOAWAY, or
// -1 if there was none.
func (c *frameConn) goodbye() int {
	for f := range c.got {
		if f.kind == frameGoAway {
			c.away = int(binary.BigEndian.Uint32(f.payload[4:]))
		}
	}
	return c.away
}
