// SPDX-License-Identifier: MIT

// Writing the answer to a plain request.

package rest

import (
	"errors"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// laneAnswerBytes is how much of an answer is collected before it is sent.
const laneAnswerBytes = 16 << 10

// errCut says that a handler has written less than it announced.
var errCut = errors.New("the answer is shorter than announced")

// laneAnswer is the http.ResponseWriter of a lane.
type laneAnswer struct {
	lane   *lane
	method string
	header http.Header // what is set as in net/http
	fields []byte      // what place has set, as lines
	out    []byte      // what is not yet sent
	status int         // 0 until WriteHeader
	left   int64       // how much of the body is to come; -1 if the end of the stream ends it
	silent bool        // the answer has no body
	closes bool        // the connection ends with this answer
	err    error
}

// begin makes the answer ready for a request.
func (w *laneAnswer) begin(l *lane, method string) {
	w.lane, w.method, w.left = l, method, -1
}

// release puts the answer into a pool.
func (w *laneAnswer) release(pool *sync.Pool) {
	clear(w.header)
	*w = laneAnswer{header: w.header, fields: w.fields[:0], out: w.out[:0]}
	pool.Put(w)
}

// place adds headers. It is cheaper than the map.
func (w *laneAnswer) place(fields []field) {
	for _, f := range fields {
		if f.name == headerContentLength {
			n, err := strconv.ParseInt(f.value, 10, 64)
			if err == nil {
				w.left = n
			}
			continue
		}
		w.fields = appendField(w.fields, f.name, f.value)
	}
}

// announce sets the length of the body.
func (w *laneAnswer) announce(n int) { w.left = int64(n) }

// Header implements http.ResponseWriter.
func (w *laneAnswer) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *laneAnswer) WriteHeader(status int) {
	if w.status != 0 {
		return
	}
	w.status = status
	bare := status == http.StatusNoContent || status == http.StatusNotModified
	w.silent = bare || w.method == http.MethodHead
	// As in net/http, what the client still sends is read before it is answered, if it is
	// not much.
	unread := !w.lane.body.drop()
	w.lane.under.unread = unread
	w.closes = unread || w.left < 0 && !w.silent || w.lane.all.stopping.Load()

	w.out = append(w.out, "HTTP/1.1 "...)
	w.out = strconv.AppendInt(w.out, int64(status), 10)
	w.out = append(append(append(w.out, ' '), statusText(status)...), "\r\n"...)
	w.out = append(append(w.out, w.fields...), dateLine(time.Now())...)
	for name, values := range w.header {
		for _, v := range values {
			w.out = appendField(w.out, name, v)
		}
	}
	if w.left >= 0 && !bare {
		w.out = append(w.out, "Content-Length: "...)
		w.out = append(strconv.AppendInt(w.out, w.left, 10), "\r\n"...)
	}
	if w.closes {
		w.out = append(w.out, "Connection: close\r\n"...)
	}
	w.out = append(w.out, "\r\n"...)
}

// Write implements http.ResponseWriter.
func (w *laneAnswer) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	switch {
	case w.err != nil:
		return 0, w.err
	case w.silent && w.method == http.MethodHead:
		return len(p), nil
	case w.silent:
		return 0, http.ErrBodyNotAllowed
	case w.left >= 0 && int64(len(p)) > w.left:
		return 0, http.ErrContentLength
	case w.left >= 0:
		w.left -= int64(len(p))
	}
	if len(w.out)+len(p) <= laneAnswerBytes {
		w.out = append(w.out, p...)
		return len(p), nil
	}
	if w.err = w.send(p); w.err != nil {
		return 0, w.err
	}
	return len(p), nil
}

// send sends what is collected, and p.
func (w *laneAnswer) send(p []byte) error {
	l := w.lane
	if err := l.extend(&l.writeBy, l.all.http.WriteTimeout, l.conn.SetWriteDeadline); err != nil {
		return err
	}
	defer func() { w.out = w.out[:0] }()
	if l.secure == nil && len(p) > 0 {
		both := net.Buffers{w.out, p}
		_, err := both.WriteTo(l.under.Conn)
		return err
	}
	for _, part := range [...][]byte{w.out, p} {
		if len(part) == 0 {
			continue
		}
		if _, err := l.conn.Write(part); err != nil {
			return err
		}
	}
	return nil
}

// finish sends the rest of the answer.
func (w *laneAnswer) finish() error {
	if w.status == 0 {
		w.announce(0)
		w.WriteHeader(http.StatusOK)
	}
	switch {
	case w.err != nil:
		return w.err
	case w.left > 0 && !w.silent:
		return errors.Join(errCut, w.send(nil))
	}
	return w.send(nil)
}

// statusText returns the text after a status in the first line of an answer, as in
// net/http.
func statusText(status int) string {
	if text := http.StatusText(status); text != "" {
		return text
	}
	return "status code " + strconv.Itoa(status)
}

// dated is a date header and the second that it is for.
type dated struct {
	second int64
	line   string
}

// date is the last date header that was sent.
var date atomic.Pointer[dated]

// dateLine returns the date header.
func dateLine(now time.Time) string {
	second := now.Unix()
	if d := date.Load(); d != nil && d.second == second {
		return d.line
	}
	d := &dated{second, "Date: " + now.UTC().Format(http.TimeFormat) + "\r\n"}
	date.Store(d)
	return d.line
}
