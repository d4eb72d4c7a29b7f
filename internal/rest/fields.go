// SPDX-License-Identifier: MIT

// The headers of an answer, from where they are set to the connection. net/http has a map
// for them: it grows, is copied, sorted, and written line by line. That costs a read of a
// small item more than finding the item does. So over HTTP/1.1 the connection itself adds
// the headers, as one piece, after the status line that net/http writes. Those that
// net/http acts on are still in its map.

package rest

import (
	"bytes"
	"errors"
	"strings"
	"sync"
)

// fieldsAtOnce is how many headers an exchange has room for without an allocation.
const fieldsAtOnce = 16

// field is a header of the answer, its name as it is sent.
type field struct{ name, value string }

// set sets a response header; the name is in net/http's spelling.
func (x *exchange) set(name, value string) { x.setWire(wireName(name), value) }

// setWire is set with the name as it is sent.
func (x *exchange) setWire(name, value string) {
	for i := range x.fields {
		if x.fields[i].name == name {
			x.fields[i].value = value
			return
		}
	}
	if x.fields == nil {
		x.fields = x.fieldRoom[:0]
	}
	x.fields = append(x.fields, field{name, value})
}

// placeFields passes the headers on: to the connection, or to net/http where requests share
// a connection or it is not one that adds headers. Nothing can be set after it.
func (x *exchange) placeFields() {
	all := x.w.Header()
	var next *head
	if conn := soleConn(x.r); conn != nil && conn.heads != nil {
		next = conn.heads.begin()
	}
	values := []string(nil)
	if next == nil {
		values = make([]string, 0, len(x.fields))
	}
	for _, f := range x.fields {
		switch {
		case f.name == headerContentType || f.name == headerContentLength:
			all[f.name] = []string{f.value}
		case next != nil:
			next.fields = appendField(next.fields, f.name, f.value)
		default:
			values = append(values, f.value)
			all[f.name] = values[len(values)-1 : len(values) : len(values)]
		}
	}
}

// appendField appends a header as a line. A value cannot end its line: as in net/http, a
// line end in it becomes a space.
func appendField(to []byte, name, value string) []byte {
	to = append(append(to, name...), ": "...)
	start := len(to)
	to = append(to, strings.Trim(value, " \t\r\n")...)
	for i, c := range to[start:] {
		if c == '\r' || c == '\n' {
			to[start+i] = ' '
		}
	}
	return append(to, "\r\n"...)
}

// heads adds headers to the answers that net/http writes to a connection. Only the
// goroutine that answers uses it.
type heads struct {
	pool *sync.Pool // of *head, shared by all connections
	next *head      // of the answer that is about to be written
}

// head has the lines of headers to add to an answer.
type head struct{ fields, start []byte }

// maxKeptHead is the largest buffer that the pool keeps.
const maxKeptHead = 16 << 10

// begin returns the empty head of the next answer.
func (h *heads) begin() *head {
	if h.next, _ = h.pool.Get().(*head); h.next == nil {
		h.next = &head{}
	}
	h.next.fields = h.next.fields[:0]
	return h.next
}

// errNoStatusLine cannot happen: net/http collects 4 KiB before it writes.
var errNoStatusLine = errors.New("the answer does not begin with a whole status line")

// write writes p, the start of an answer, with the headers added after its first line.
func (h *heads) write(write func([]byte) (int, error), p []byte) (int, error) {
	next := h.next
	h.next = nil
	line := bytes.IndexByte(p, '\n') + 1
	if line == 0 {
		return 0, errNoStatusLine
	}
	next.start = append(append(append(next.start[:0], p[:line]...), next.fields...), p[line:]...)
	n, err := write(next.start)
	if err != nil {
		return min(max(n-len(next.fields), 0), len(p)), err
	}
	if cap(next.start) <= maxKeptHead && cap(next.fields) <= maxKeptHead {
		h.pool.Put(next)
	}
	return len(p), nil
}
