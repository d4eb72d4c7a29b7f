// SPDX-License-Identifier: MIT

// Package mayfly is a document database that forgets on time, embedded in a Go
// program. It speaks the REST protocol of Azure Cosmos DB for NoSQL, so the
// official SDKs use it unchanged. This package wires the parts together and
// decides nothing itself; the binary cmd/mayfly is a thin layer over it.
package mayfly

import (
	"context"
	"errors"
	"net"
	"net/http"

	"github.com/mayflydb/mayfly/internal/rest"
)

// Options say how a server is opened. The zero value is ready to use.
type Options struct{}

// Server is an open database that can serve clients.
type Server struct {
	http *http.Server
}

// Open opens the database.
func Open(Options) (*Server, error) {
	return &Server{http: &http.Server{Handler: &rest.Handler{}}}, nil
}

// Serve answers clients on l until Shutdown is called.
func (s *Server) Serve(l net.Listener) error {
	if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Shutdown stops serving, after the requests under way.
func (s *Server) Shutdown(ctx context.Context) error { return s.http.Shutdown(ctx) }
