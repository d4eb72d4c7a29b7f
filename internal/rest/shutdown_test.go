// SPDX-License-Identifier: MIT

package rest

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A stop waits for no client without a request under way: one that is silent, one that
// has sent part of a request, one that has its answer, and the same over TLS. http.Server
// alone gives those that never sent a request five seconds.
func TestShutdownWaitsForNoIdleClient(t *testing.T) {
	certPEM, keyPEM, err := MakeCertificate(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		s := NewServer(http.NotFoundHandler(), pair, nil, slog.New(slog.DiscardHandler))
		root := newPipeListener()
		served := make(chan error, 1)
		go func() { served <- s.Serve(root) }()
		var clients []net.Conn
		for _, begin := range []string{"", "GET / HT", "GET / HTTP/1.1\r\nHost: x\r\n\r\n"} {
			plain, secure := root.dial(begin), tls.Client(root.dial(""), &tls.Config{InsecureSkipVerify: true})
			if err := secure.Handshake(); err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(secure, begin); err != nil {
				t.Fatal(err)
			}
			for _, c := range []net.Conn{plain, secure} {
				if clients = append(clients, c); len(begin) > len("GET / HT") {
					if _, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		var ended sync.WaitGroup
		for _, c := range clients {
			ended.Go(func() { _, _ = io.Copy(io.Discard, c) })
		}
		synctest.Wait()
		began := time.Now()
		if err := s.Shutdown(context.Background()); err != nil {
			t.Errorf("Shutdown = %v", err)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("the stop took %v", took)
		}
		if err := <-served; err != nil {
			t.Errorf("Serve = %v", err)
		}
		ended.Wait() // all of them
	})
}
