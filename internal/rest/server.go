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

	"github.com/mayflydb/mayfly/internal/peer"
)

const (
	maxHeaderBytes    = 64 << 10
	readHeaderTimeout = 10 * time.Second
	readTimeout       = 60 * time.Second
	writeTimeout      = 90 * time.Second
	idleTimeout       = 3 * time.Minute
)

// Server serves a handler on one port, over HTTP and HTTPS, in versions 1.1 and 2.
type Server struct {
	http     http.Server
	streams  streams
	lanes    lanes
	channels func(*Channel)
	logger   *slog.Logger
	secure   *tls.Config // of every connection; nothing changes it
	most     int         // how many connections may be open; 0 for the default
	// certificate is the one for clients. SetCertificate replaces it.
	certificate atomic.Pointer[tls.Certificate]
}

// NewServer returns a server with the given certificate. Connections of direct mode go to
// the function channels, or are taken for HTTP if it is nil.
func NewServer(h http.Handler, certificate tls.Certificate, channels func(*Channel), logger *slog.Logger) *Server {
	secure := &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"h2", "http/1.1"},
		// Small records first would help browsers, and cost all others.
		DynamicRecordSizingDisabled: true,
	}
	s := &Server{logger: logger, secure: secure, channels: channels, streams: streams{most: maxStreamsAtOnce, logger: logger}, http: http.Server{
		ConnState:         track,
		ConnContext:       withConn,
		MaxHeaderBytes:    maxHeaderBytes,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
		Protocols:         new(http.Protocols),
		HTTP2:             http2Config(),
	}}
	secure.GetCertificate = s.presented
	s.http.TLSConfig = secure.Clone() // net/http changes it when it begins to serve
	s.SetCertificate(certificate)
	s.http.Handler = onConn(h, &s.streams)
	s.lanes = lanes{http: &s.http, logger: logger, open: map[*lane]struct{}{}}
	s.http.Protocols.SetHTTP1(true)
	s.http.Protocols.SetHTTP2(true)
	s.http.Protocols.SetUnencryptedHTTP2(true)
	return s
}

// SetCertificate has new connections get another certificate.
func (s *Server) SetCertificate(c tls.Certificate) { s.certificate.Store(&c) }

// presented implements tls.Config.GetCertificate.
func (s *Server) presented(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return s.certificate.Load(), nil
}

// AcceptPeers has connections of other nodes accepted, in addition to those of clients. Call
// it before Serve.
func (s *Server) AcceptPeers(p *Peers) {
	config := p.ServerTLS()
	s.secure.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if hello.ServerName == peer.ServerName {
			return config, nil
		}
		return nil, nil
	}
}

// Serve answers clients on l, which it closes, until Shutdown is called.
func (s *Server) Serve(l net.Listener) error {
	err := s.http.Serve(Split(l, s.secure, SplitOptions{MaxConns: s.most, Logger: s.logger, Direct: s.channels, Lane: s.lanes.serve}))
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// connKey is the key of a request's connection in its context.
type connKey struct{}

func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, underlying(c))
}

// underlying returns the splitConn beneath a connection that a Splitter accepted.
func underlying(c net.Conn) *splitConn {
	if secure, ok := c.(interface{ NetConn() net.Conn }); ok { // TLS
		c = secure.NetConn()
	}
	return c.(*splitConn)
}

// track follows a connection's state for http.Server.
func track(c net.Conn, state http.ConnState) {
	switch state {
	case http.StateActive:
		underlying(c).begin()
	case http.StateIdle:
		underlying(c).idle()
	}
}

// connOf returns the connection of a request, or nil if no Server serves it.
func connOf(r *http.Request) *splitConn {
	conn, _ := r.Context().Value(connKey{}).(*splitConn)
	return conn
}

// soleConn is connOf for what concerns the one request of a connection. It returns nil for
// a stream, which shares its connection with others.
func soleConn(r *http.Request) *splitConn {
	if isStream(r) {
		return nil
	}
	return connOf(r)
}

// onConn wraps a handler and records in the connection whether the request was read, or
// that its requests are streams.
func onConn(h http.Handler, all *streams) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		conn := connOf(r)
		if conn.idleSince.Load() == dropped {
			panic(http.ErrAbortHandler) // the connection is closed, so the request is not executed
		}
		if isStream(r) {
			conn.share()
			all.serve(h, w, r)
			return
		}
		conn.lingers.Store(false) // closing the connection during the request aborts it
		conn.unread = r.ContentLength != 0
		h.ServeHTTP(w, r)
		conn.lingers.Store(conn.unread)
	}
}

// Shutdown stops accepting, waits for the requests under way until ctx ends, and then
// closes the remaining connections.
func (s *Server) Shutdown(ctx context.Context) error {
	// The Splitter stops with its listener, and closes the connections without a request.
	// http.Server alone would give connections that never had a request five seconds.
	s.lanes.stopping.Store(true)
	err := errors.Join(s.http.Shutdown(ctx), s.lanes.stop(ctx))
	if err != nil {
		err = errors.Join(err, s.http.Close())
	}
	return err
}
