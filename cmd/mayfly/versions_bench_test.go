// SPDX-License-Identifier: MIT

package main

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
)

// BenchmarkItemsOverHTTP measures the CPU time that reads and creates of items of 1 KiB
// take of a server, over HTTP/1.1 and HTTP/2 without TLS, by the number of connections and
// of requests in flight on each. CPU time is known to a hundredth of a second, and differs
// from one run to the next, so compare the medians of several:
//
//	go test -run '^$' -bench ItemsOverHTTP -benchtime 20000x -count 5 ./cmd/mayfly
func BenchmarkItemsOverHTTP(b *testing.B) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		b.Skip("needs /proc to know what a server takes")
	}
	const items = 1_000
	s := benchServer{process: build(b).start(b, nil, "serve", "--sync=false", anyPort), items: items, keys: 1}
	s.client.Transport = &http.Transport{MaxIdleConnsPerHost: benchClients}
	s.fill(b)
	created := 0
	pad, key := strings.Repeat("x", 930), map[string]string{pkHeader: `["p0"]`}
	for _, o := range []struct {
		name   string
		op     func(c *http.Client, i int) error
		amount *int
	}{
		{"read", func(c *http.Client, i int) error {
			id := fmt.Sprintf("s%d", i*7919%items)
			return s.send(b, c, http.MethodGet, docsPath+"/"+id, "docs", docsLink+"/docs/"+id, nil, key, http.StatusOK, nil)
		}, new(int)},
		{"create", func(c *http.Client, i int) error {
			item := fmt.Appendf(nil, `{"id":"n%d","pk":"p0","kind":"bench","n":%d,"pad":%q}`, i, i, pad)
			return s.send(b, c, http.MethodPost, docsPath, "docs", docsLink, item, key, http.StatusCreated, nil)
		}, &created},
	} {
		for _, v := range []struct {
			http2              bool
			connections, depth int
		}{{false, 8, 1}, {true, 1, 8}, {false, 64, 1}, {true, 8, 8}} {
			version := "1.1"
			if v.http2 {
				version = "2"
			}
			b.Run(fmt.Sprintf("%s/HTTP-%s/connections=%d/inflight=%d", o.name, version, v.connections, v.depth), func(b *testing.B) {
				clients := benchConnections(b, v.http2, v.connections)
				s.pipeline(b, clients, v.depth, v.connections*v.depth, *o.amount, o.op) // connects
				*o.amount += v.connections * v.depth
				b.ResetTimer()
				before := s.cpuMicros(b)
				s.pipeline(b, clients, v.depth, b.N, *o.amount, o.op)
				b.ReportMetric((s.cpuMicros(b)-before)/float64(b.N), "server-us/op")
				*o.amount += b.N
			})
		}
	}
}

// benchConnections returns clients with a connection each.
func benchConnections(b *testing.B, http2 bool, n int) (clients []*http.Client) {
	for range n {
		p := &http.Protocols{}
		p.SetHTTP1(!http2)
		p.SetUnencryptedHTTP2(http2)
		t := &http.Transport{Protocols: p, MaxConnsPerHost: 1}
		b.Cleanup(t.CloseIdleConnections)
		clients = append(clients, &http.Client{Transport: t})
	}
	return clients
}

// pipeline does an operation n times, with so many in flight on each connection.
func (s *benchServer) pipeline(b *testing.B, clients []*http.Client, depth, n, from int, do func(c *http.Client, i int) error) {
	b.Helper()
	var wait sync.WaitGroup
	all := len(clients) * depth
	for w := range all {
		wait.Go(func() {
			for i := w; i < n; i += all {
				if err := do(clients[w%len(clients)], from+i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	if wait.Wait(); b.Failed() {
		b.FailNow()
	}
}
