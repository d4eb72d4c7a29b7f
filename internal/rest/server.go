// SPDX-License-Identifier: MIT

// Serving: HTTP and HTTPS on one port, with limits on what a connection may do.

package rest

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

const (
	maxHeaderBytes    = 64 << 10
	readHeaderTimeout = 10 * time.Second
	readTimeout       = 60 * time.Second
	writeTimeout      = 90 * time.Second
	idleTimeout       = 3 * time.Minute
	// maxConns bounds the requests under way too: HTTP/1.1 has one on each.
	maxConns = 4096
)

// Server serves a handler on one port, over HTTP and HTTPS.
type Server struct {
	plain, secure *http.Server
	logger        *slog.Logger

	stopped atomic.Bool
}

// NewServer returns a server with the given certificate.
func NewServer(h http.Handler, certificate tls.Certificate, logger *slog.Logger) *Server {
	s := &Server{logger: logger}
	configure := func() *http.Server {
		side := &http.Server{
			Handler:           onConn(h),
			ConnState:         track,
			ConnContext:       withConn,
			MaxHeaderBytes:    maxHeaderBytes,
			ReadHeaderTimeout: readHeaderTimeout,
			ReadTimeout:       readTimeout,
			WriteTimeout:      writeTimeout,
			IdleTimeout:       idleTimeout,
			ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
			Protocols:         new(http.Protocols),
		}
		// The service speaks HTTP/1.1, and the limits above are made for it.
		side.Protocols.SetHTTP1(true)
		return side
	}
	s.plain, s.secure = configure(), configure()
	s.secure.TLSConfig = &tls.Config{
		Certificates: []tls.Certificate{certificate},
		MinVersion:   tls.VersionTLS12,
	}
	return s
}

// Serve answers clients on l, which it closes, until Shutdown is called.
func (s *Server) Serve(l net.Listener) error {
	if s.stopped.Load() {
		return l.Close()
	}
	split := Split(l, SplitOptions{MaxConns: maxConns, Logger: s.logger})
	ended := make(chan error, 2)
	go func() { ended <- s.plain.Serve(split.Plain()) }()
	go func() { ended <- s.secure.ServeTLS(split.Secure(), "", "") }()
	err := <-ended
	err = errors.Join(err, split.Close())
	if other := <-ended; !errors.Is(other, http.ErrServerClosed) {
		err = errors.Join(err, other)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// connKey is the place of a request's connection in its context.
type connKey struct{}

func withConn(ctx context.Context, c net.Conn) context.Context {
	if conn := underlying(c); conn != nil {
		return context.WithValue(ctx, connKey{}, conn)
	}
	return ctx
}

// underlying returns what a Splitter handed out, or nil.
func underlying(c net.Conn) *splitConn {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	conn, _ := c.(*splitConn)
	return conn
}

// track is told by http.Server whenever the state of a connection changes.
func track(c net.Conn, state http.ConnState) {
	conn := underlying(c)
	switch {
	case conn == nil:
	case state == http.StateActive:
		conn.begin()
	case state == http.StateIdle:
		conn.idle()
	}
}

// connOf returns the connection of a request, or nil if it came by other means.
func connOf(r *http.Request) *splitConn {
	conn, _ := r.Context().Value(connKey{}).(*splitConn)
	return conn
}

// onConn lets a handler answer, and tells the connection how far the request was read.
func onConn(h http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		conn := connOf(r)
		if conn == nil {
			h.ServeHTTP(w, r)
			return
		}
		if conn.idleSince.Load() == dropped {
			panic(http.ErrAbortHandler) // nobody would see the answer, so nothing is done
		}
		conn.lingers.Store(false) // to close it now is to cut it
		conn.unread = r.ContentLength != 0
		h.ServeHTTP(w, r)
		conn.lingers.Store(conn.unread)
	}
}

// Shutdown stops accepting, waits for the requests under way until ctx ends, and
// then closes what is left.
func (s *Server) Shutdown(ctx context.Context) error {
	s.stopped.Store(true)
	// With the listeners of both the Splitter stops, and closes the connections without
	// a request. http.Server would give those that never had one five seconds.
	done := make(chan error, 2)
	for _, h := range []*http.Server{s.plain, s.secure} {
		go func() {
			err := h.Shutdown(ctx)
			if err != nil {
				err = errors.Join(err, h.Close())
			}
			done <- err
		}()
	}
	return errors.Join(<-done, <-done)
}
