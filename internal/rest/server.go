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
	"time"
)

const (
	maxHeaderBytes    = 64 << 10
	readHeaderTimeout = 10 * time.Second
	readTimeout       = 60 * time.Second
	writeTimeout      = 90 * time.Second
	idleTimeout       = 3 * time.Minute
)

// Server serves a handler on one port, over HTTP and HTTPS.
type Server struct {
	http   http.Server
	logger *slog.Logger
}

// NewServer returns a server with the given certificate.
func NewServer(h http.Handler, certificate tls.Certificate, logger *slog.Logger) *Server {
	s := &Server{logger: logger, http: http.Server{
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
		TLSConfig: &tls.Config{
			Certificates: []tls.Certificate{certificate},
			MinVersion:   tls.VersionTLS12,
			NextProtos:   []string{"http/1.1"},
		},
	}}
	// The service speaks HTTP/1.1, and the limits above are made for it.
	s.http.Protocols.SetHTTP1(true)
	return s
}

// Serve answers clients on l, which it closes, until Shutdown is called.
func (s *Server) Serve(l net.Listener) error {
	err := s.http.Serve(Split(l, s.http.TLSConfig, SplitOptions{Logger: s.logger}))
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// connKey is the place of a request's connection in its context.
type connKey struct{}

func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, underlying(c))
}

// underlying returns what is beneath a connection that a Splitter accepted.
func underlying(c net.Conn) *splitConn {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	return c.(*splitConn)
}

// track is told by http.Server whenever the state of a connection changes.
func track(c net.Conn, state http.ConnState) {
	switch state {
	case http.StateActive:
		underlying(c).begin()
	case http.StateIdle:
		underlying(c).idle()
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
	// With its listener the Splitter stops, and closes the connections without a request.
	// http.Server would give those that never had one five seconds.
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, s.http.Close())
	}
	return err
}
