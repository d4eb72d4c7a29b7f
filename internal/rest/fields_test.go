// SPDX-License-Identifier: MIT

package rest

import (
	"bufio"
	"crypto/tls"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// An answer has the same headers whether the connection adds them or net/http has them in
// its map: without TLS, and above it with and without ALPN.
func TestHeadersAreTheSameOnEveryConnection(t *testing.T) {
	h := newContainer(t)
	serveOnce(t, h, signedRequest(t, "POST", "/dbs/d/colls/c/docs", []byte(`{"id":"1","pk":"a"}`), pk("a")), 201)
	requests := []struct {
		method, path string
		headers      map[string]string
	}{
		{"GET", "/dbs/d/colls/c/docs/1", pk("a")},
		{"GET", "/dbs/d/colls/c/docs/2", pk("a")}, // 404
		{"GET", "/dbs/d/colls/c/docs", nil},
		{"GET", "/dbs/d/colls/c", nil},
		{"PUT", "/dbs", nil}, // 405
	}
	pair, err := tls.X509KeyPair(testCertificate(t))
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(h, pair, func(c *Channel) { _ = c.Close() }, slog.New(slog.DiscardHandler))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { _ = s.Serve(l) })
	defer wg.Wait()
	defer func() { _ = s.Shutdown(t.Context()) }()
	for name, dial := range map[string]func() (net.Conn, error){
		"plain": func() (net.Conn, error) { return net.Dial("tcp", l.Addr().String()) },
		"TLS": func() (net.Conn, error) {
			return tls.Dial("tcp", l.Addr().String(), &tls.Config{InsecureSkipVerify: true})
		},
		"TLS with ALPN": func() (net.Conn, error) {
			return tls.Dial("tcp", l.Addr().String(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := dial()
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			answers := bufio.NewReader(conn)
			for _, c := range requests {
				r := signedRequest(t, c.method, c.path, nil, c.headers)
				r.Header.Set(headerActivity, "the-activity")
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				if err := r.Write(conn); err != nil {
					t.Fatal(err)
				}
				got := readAnswer(t, answers)
				want, sent := comparableFields(w.Header()), comparableFields(got.header)
				if got.status != w.Code || !maps.Equal(sent, want) {
					t.Errorf("%s %s: status %d with %v, want %d with %v", c.method, c.path, got.status, sent, w.Code, want)
				}
				if got.header.Get("Date") == "" || got.header.Get(headerDuration) == "" != (w.Header()[strings.ToLower(headerDuration)] == nil) {
					t.Errorf("%s %s: headers %v", c.method, c.path, got.header)
				}
			}
		})
	}
}

// comparableFields returns the headers whose values do not depend on the moment, the scheme or
// net/http.
func comparableFields(h http.Header) map[string]string {
	all := map[string]string{}
	for name, values := range h {
		switch name = http.CanonicalHeaderKey(name); name {
		case "Date", headerContentLength, headerDuration:
		case "Content-Location":
			_, all[name], _ = strings.Cut(strings.Join(values, "|"), "://")
		default:
			all[name] = strings.Join(values, "|")
		}
	}
	return all
}

// No value can add a line to an answer.
func TestFieldIsOneLine(t *testing.T) {
	for value, want := range map[string]string{
		"a":              "a",
		"":               "",
		" a b\t":         "a b",
		"a\r\nb: c":      "a  b: c",
		"\r\n\r\n<html>": "<html>",
		"a\nb\rc\r\n":    "a b c",
	} {
		if got := string(appendField(nil, "x", value)); got != "x: "+want+"\r\n" {
			t.Errorf("%q: %q", value, got)
		}
	}
}
