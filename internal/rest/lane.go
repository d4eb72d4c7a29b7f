// SPDX-License-Identifier: MIT

// Connections of HTTP/1.1 whose requests are plain, which those of all SDKs are. net/http
// spends more on such a request than finding a small item costs: it starts a goroutine that
// waits for the client to leave, builds two maps of headers, sets four deadlines, and
// formats the date. A lane does without.
//
// A request is plain if parseHead accepts it: a part of what net/http accepts, with the
// same meaning, which a fuzz test compares. Any other request goes to net/http, byte for
// byte, and so does the rest of its connection. So every odd, malformed or hostile request
// is still net/http's to read.
//
//  1. A connection is in a lane or with net/http, and never goes back into a lane.
//  2. The lane's handler is the same as net/http's, with the same request.
//  3. An answer is written when the handler has returned, or when it outgrows a buffer.

package rest

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// laneBuffer is how many bytes a lane reads at once, and the longest head of a plain
	// request. With the answer's buffer, which is pooled, it is less than net/http has for
	// a connection.
	laneBuffer = 8 << 10
	// maxLeftBody is how much of a body that the handler did not read is read and dropped
	// to keep the connection, as in net/http.
	maxLeftBody = 256 << 10
	// deadlineSlack is how much later than necessary a deadline may be, so that not every
	// request has to move it.
	deadlineSlack = 30 * time.Second
	// goneEvery is how often a lane checks whether the client of a request that takes long
	// is still there.
	goneEvery = 100 * time.Millisecond
)

// lanes are the connections in lanes of a server.
type lanes struct {
	http    *http.Server // has the handler and the time limits
	logger  *slog.Logger
	answers sync.Pool // of *laneAnswer

	stopping atomic.Bool
	mu       sync.Mutex
	open     map[*lane]struct{}
	empty    chan struct{} // closed when the last has ended; nil unless stop waits
}

// lane is a connection.
type lane struct {
	all    *lanes
	conn   net.Conn // with TLS, if the client uses it
	under  *splitConn
	secure *tls.ConnectionState
	ctx    context.Context // of the connection
	remote string

	buffer     []byte
	start, end int // the bytes that are read and not yet used

	head  laneHead
	body  laneBody
	watch watch

	readBy, writeBy time.Time // the deadlines that are set
}

// serve serves a connection that the Splitter has sorted. It returns whether net/http
// should go on with it; otherwise the connection is closed.
func (all *lanes) serve(conn net.Conn, under *splitConn) (goOn bool) {
	file := descriptor(under.Conn)
	if file == nil {
		return true // it cannot be watched
	}
	l := &lane{all: all, conn: conn, under: under, buffer: make([]byte, laneBuffer), remote: conn.RemoteAddr().String()}
	if secure, ok := conn.(interface{ ConnectionState() tls.ConnectionState }); ok {
		state := secure.ConnectionState()
		l.secure = &state
	}
	l.ctx = context.WithValue(withConn(context.Background(), conn), http.LocalAddrContextKey, conn.LocalAddr())
	l.watch.file = file
	all.mu.Lock()
	all.open[l] = struct{}{}
	all.mu.Unlock()
	defer func() {
		all.mu.Lock()
		defer all.mu.Unlock()
		delete(all.open, l)
		if len(all.open) == 0 && all.empty != nil {
			close(all.empty)
			all.empty = nil
		}
	}()
	for !all.stopping.Load() {
		switch err := l.next(); {
		case errors.Is(err, errNotPlain):
			if l.handOver() == nil {
				return true
			}
		case err == nil && l.exchange():
			continue
		}
		break
	}
	_ = conn.Close()
	return false
}

// stop waits until the requests under way have ended, or ctx has, and then closes what is
// left. The Splitter has closed the connections without a request.
func (all *lanes) stop(ctx context.Context) error {
	all.mu.Lock()
	var empty chan struct{}
	if len(all.open) > 0 {
		empty = make(chan struct{})
		all.empty = empty
	}
	all.mu.Unlock()
	if empty == nil {
		return nil
	}
	select {
	case <-empty:
		return nil
	case <-ctx.Done():
	}
	all.close()
	return ctx.Err()
}

// close closes all connections, also during a request.
func (all *lanes) close() {
	all.stopping.Store(true)
	all.mu.Lock()
	defer all.mu.Unlock()
	for l := range all.open {
		_ = l.under.cut()
	}
}

// next reads the head of the next request.
func (l *lane) next() error {
	if l.start == l.end {
		l.start, l.end = 0, 0
	}
	if err := l.extend(&l.readBy, l.all.http.IdleTimeout, l.conn.SetReadDeadline); err != nil {
		return err
	}
	for scanned := 0; ; {
		if size := headEnd(l.buffer[l.start:l.end], scanned); size > 0 {
			err := l.head.parse(l.buffer[l.start : l.start+size])
			if err == nil {
				l.start += size
			}
			return err
		}
		if scanned = l.end - l.start; scanned > 0 && !mayBecomePlain(l.buffer[l.start:l.end]) {
			return errNotPlain
		}
		if l.start > 0 {
			copy(l.buffer, l.buffer[l.start:l.end])
			l.start, l.end = 0, scanned
		}
		if l.end == len(l.buffer) {
			return errNotPlain
		}
		if scanned > 0 { // the rest of the head has less time
			if err := l.limit(&l.readBy, l.all.http.ReadHeaderTimeout, l.conn.SetReadDeadline); err != nil {
				return err
			}
		}
		n, err := l.conn.Read(l.buffer[l.end:])
		if l.end += n; n == 0 {
			return err
		}
	}
}

// handOver puts the bytes that were read back, for net/http.
func (l *lane) handOver() error {
	if l.start < l.end {
		rest := l.buffer[l.start:l.end]
		if secure, ok := l.conn.(*sniffedTLS); ok {
			secure.first.rest.Store(&rest)
		} else {
			l.under.first.rest.Store(&rest)
		}
	}
	return l.conn.SetDeadline(time.Time{})
}

// exchange answers the request whose head was read. It returns whether the connection can
// have another.
func (l *lane) exchange() (again bool) {
	l.under.begin()
	ctx, cancel := context.WithCancel(l.ctx)
	l.body = laneBody{lane: l, left: l.head.length}
	r := l.head.request(ctx)
	if r.TLS, r.RemoteAddr = l.secure, l.remote; l.head.length > 0 {
		r.Body = &l.body
	}
	w, _ := l.all.answers.Get().(*laneAnswer)
	if w == nil {
		w = &laneAnswer{header: http.Header{}}
	}
	w.begin(l, r.Method)
	l.watch.begin(cancel)
	aborted := l.handle(w, r)
	l.watch.end()
	cancel()
	if aborted {
		return false
	}
	again = w.finish() == nil && !w.closes
	w.release(&l.all.answers)
	if again {
		l.under.idle()
	}
	return again
}

// handle calls the handler. It returns whether the handler has given up the connection.
func (l *lane) handle(w http.ResponseWriter, r *http.Request) (aborted bool) {
	defer func() {
		if p := recover(); p != nil {
			if aborted = true; p != http.ErrAbortHandler {
				l.all.logger.Error("a handler panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			}
		}
	}()
	l.all.http.Handler.ServeHTTP(w, r)
	return false
}

// extend moves a deadline so that it is at least d away.
func (l *lane) extend(by *time.Time, d time.Duration, set func(time.Time) error) error {
	now := time.Now()
	if left := by.Sub(now); left >= d && left <= d+deadlineSlack {
		return nil
	}
	*by = now.Add(d + deadlineSlack)
	return set(*by)
}

// limit moves a deadline to d from now, unless it is earlier.
func (l *lane) limit(by *time.Time, d time.Duration, set func(time.Time) error) error {
	if now := time.Now(); by.Sub(now) > d {
		*by = now.Add(d)
		return set(*by)
	}
	return nil
}

// laneBody is the body of a request.
type laneBody struct {
	lane  *lane
	left  int64
	timed bool // its time limit is set
}

// Read implements io.Reader.
func (b *laneBody) Read(p []byte) (int, error) {
	l := b.lane
	switch {
	case b.left == 0:
		return 0, io.EOF
	case int64(len(p)) > b.left:
		p = p[:b.left]
	}
	n, err := copy(p, l.buffer[l.start:l.end]), error(nil)
	if l.start += n; n == 0 && len(p) > 0 {
		if !b.timed { // until now the limit was that of the head
			b.timed, l.readBy = true, time.Now().Add(l.all.http.ReadTimeout)
			if err = l.conn.SetReadDeadline(l.readBy); err != nil {
				return 0, err
			}
		}
		n, err = l.conn.Read(p)
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
	}
	b.left -= int64(n)
	return n, err
}

// Close implements io.Closer.
func (b *laneBody) Close() error { return nil }

// drop reads what the handler has left. It returns whether it got to the end.
func (b *laneBody) drop() bool {
	if b.left > maxLeftBody {
		return false
	}
	_, err := io.Copy(io.Discard, b)
	return err == nil
}
