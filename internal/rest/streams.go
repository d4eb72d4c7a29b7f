// SPDX-License-Identifier: MIT

// HTTP/2: a connection has several requests under way, each a stream. net/http speaks it.
// What it keeps for a connection or a stream is outside the budget of requests, so it is
// bounded here.

package rest

import (
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxStreams is how many requests a client may have under way on a connection: the
	// least that RFC 9113, section 6.5.2, recommends.
	maxStreams = 100
	// maxStreamsAtOnce is how many may be under way on all connections together: as many
	// as HTTP/1.1 can have.
	maxStreamsAtOnce = defaultMaxConns
	// maxFrameBytes is the largest frame that is read, the least that the protocol
	// permits. net/http keeps a buffer of that size for each connection.
	maxFrameBytes = 16 << 10
	// windowBytes is how much of a body a client may send before it is read: what the
	// protocol permits before a client knows any limit. net/http buffers it, so all
	// streams together bound it.
	windowBytes = 64 << 10
	// connWindowBytes is the same for all bodies of a connection, the most that net/http
	// permits. Otherwise a few bodies that wait for memory would hold up all others.
	connWindowBytes = 4<<20 - 1
	// pieceBytes is how much of an answer is passed to net/http at a time. It copies
	// that, if the client permits frames of that size, and keeps the buffer.
	pieceBytes = 64 << 10
	// stalledTimeout closes a connection that takes no byte for so long. The time limit
	// of a stream does not help there: net/http would send the client a frame.
	stalledTimeout = 30 * time.Second
	// strangerTimeout is how long a client without a valid credential may take to accept
	// its answer, however small it is: it may have left no room for it.
	strangerTimeout = 5 * time.Second
	// maxStreamPause is how long a refused request waits at most if there were many. They
	// would wait side by side.
	maxStreamPause = time.Second
)

// http2Config returns the limits that net/http knows.
func http2Config() *http.HTTP2Config {
	return &http.HTTP2Config{
		MaxConcurrentStreams:          maxStreams,
		MaxReadFrameSize:              maxFrameBytes,
		MaxReceiveBufferPerConnection: connWindowBytes,
		MaxReceiveBufferPerStream:     windowBytes,
		WriteByteTimeout:              stalledTimeout,
	}
}

// isStream reports whether other requests may be under way on a request's connection.
func isStream(r *http.Request) bool { return r.ProtoMajor > 1 }

// streams are the requests under way on all connections of HTTP/2.
type streams struct {
	most        int64
	now         atomic.Int64
	logger      *slog.Logger
	limitLogged sync.Once
}

// serve answers a stream. Clients can open streams faster than they are answered, and
// reset them at once, so both are handled before anything else is done.
func (s *streams) serve(h http.Handler, w http.ResponseWriter, r *http.Request) {
	if r.Context().Err() != nil {
		return // the client has reset it
	}
	if s.now.Add(1) > s.most {
		s.now.Add(-1)
		s.limitLogged.Do(func() {
			s.logger.Warn("limit of requests under way over HTTP/2 reached: more of them get 429", "limit", s.most)
		})
		// Without headers of ours, net/http does not wait until the client has accepted
		// the answer. A refusal that waits would be no limit.
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	defer s.now.Add(-1)
	h.ServeHTTP(w, r)
}

// put writes a part of the body.
func (x *exchange) put(part []byte) {
	for isStream(x.r) && len(part) > pieceBytes {
		if _, err := x.w.Write(part[:pieceBytes]); err != nil {
			return
		}
		part = part[pieceBytes:]
	}
	_, _ = x.w.Write(part)
}

// isStranger reports whether a stream's client has shown no valid credential. Such clients
// must not be able to hold all streams, nor more memory than streams may.
func (x *exchange) isStranger() bool { return isStream(x.r) && !x.known }

// hurry limits the time that a stranger may take to accept its answer.
func (x *exchange) hurry() {
	if x.isStranger() {
		_ = http.NewResponseController(x.w).SetWriteDeadline(time.Now().Add(strangerTimeout))
	}
}

// seeOff waits until a stranger has accepted its answer. net/http waits too, but only after
// the handler has returned, when the stream is no longer counted. Clients with a credential
// are not worth another frame: each connection bounds theirs.
func (x *exchange) seeOff() {
	if x.isStranger() {
		_ = http.NewResponseController(x.w).Flush()
	}
}
