// SPDX-License-Identifier: MIT

package main

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/mayflydb/mayfly"
)

const (
	benchClients = 8
	// itemsPerKey is how many items have one partition key.
	itemsPerKey = 10_000
	// readBefore is the number of items per query that warms up the server before the
	// measurement.
	readBefore = 5
	// ticksPerSecond is the unit in which Linux reports the CPU time of a process.
	ticksPerSecond = 100
)

// BenchmarkQueryOverHTTP measures the CPU time that queries take of a server with 1,000
// items of 1 KiB with ten indexed properties, and with 1,000,000 if MAYFLY_BENCH_MILLION
// is set. Most of the items have been read before. CPU time is known to a hundredth of a
// second, so the benchmark needs many queries:
//
//	go test -run '^$' -bench QueryOverHTTP -benchtime 20000x ./cmd/mayfly
func BenchmarkQueryOverHTTP(b *testing.B) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		b.Skip("needs /proc to know what a server takes")
	}
	sizes := []int{1_000}
	if os.Getenv("MAYFLY_BENCH_MILLION") != "" {
		sizes = append(sizes, 1_000_000)
	}
	built := build(b)
	for _, items := range sizes {
		s := benchServer{process: built.start(b, nil, "serve", anyPort), items: items, keys: max(1, items/itemsPerKey)}
		s.client.Transport = &http.Transport{MaxIdleConnsPerHost: benchClients}
		s.fill(b)
		for _, c := range []struct {
			name, query string
			inKey       bool
			rows        int
		}{
			{"order", "SELECT * FROM c ORDER BY c.h OFFSET 0 LIMIT 10", false, 10},
			{"order-from", "SELECT * FROM c WHERE c.h >= @a ORDER BY c.h OFFSET 0 LIMIT 10", false, 10},
			{"range", "SELECT * FROM c WHERE c.f >= @a OFFSET 0 LIMIT 10", false, 10},
			{"key/order-from", "SELECT * FROM c WHERE c.h >= @a ORDER BY c.h OFFSET 0 LIMIT 10", true, 10},
			{"key/range", "SELECT * FROM c WHERE c.f >= @a OFFSET 0 LIMIT 10", true, 10},
			{"equality", "SELECT * FROM c WHERE c.a = @a", false, 1},
		} {
			ask := func(int) error { return s.ask(b, c.query, c.inKey, c.rows) }
			s.drive(b, items/readBefore, ask)
			b.Run(fmt.Sprintf("items=%d/%s", items, c.name), func(b *testing.B) {
				before := s.cpuMicros(b)
				s.drive(b, b.N, ask)
				b.ReportMetric((s.cpuMicros(b)-before)/float64(b.N), "server-us/op")
			})
		}
	}
}

// benchServer is a server with items whose partition keys alternate.
type benchServer struct {
	*process
	client      http.Client
	items, keys int
}

// cpuMicros returns the CPU time of the server so far.
func (s *benchServer) cpuMicros(b *testing.B) float64 {
	b.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	if err != nil {
		b.Fatal(err)
	}
	// The name of the process, in parentheses, may have spaces in it.
	fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
	user, err1 := strconv.Atoi(fields[11])
	system, err2 := strconv.Atoi(fields[12])
	if err1 != nil || err2 != nil {
		b.Fatalf("/proc tells %q", raw)
	}
	return float64(user+system) * 1e6 / ticksPerSecond
}

// drive calls a function n times, from several goroutines.
func (s *benchServer) drive(b *testing.B, n int, do func(i int) error) {
	b.Helper()
	var wait sync.WaitGroup
	for c := range benchClients {
		wait.Go(func() {
			for i := c; i < n; i += benchClients {
				if err := do(i); err != nil {
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

func (s *benchServer) fill(b *testing.B) {
	b.Helper()
	create := func(path, link, kind, body string) error {
		return s.post(b, path, kind, link, []byte(body), nil, http.StatusCreated, nil)
	}
	if err := create("/dbs", "", "dbs", `{"id":"d"}`); err != nil {
		b.Fatal(err)
	}
	if err := create("/dbs/d/colls", "dbs/d", "colls", `{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}`); err != nil {
		b.Fatal(err)
	}
	pad := strings.Repeat("x", 800)
	s.drive(b, s.items, func(i int) error {
		item := fmt.Appendf(nil, `{"id":"s%d","pk":"p%d","a":%d,"b":"b%d","c":%d,"d":"d%d","e":%t,"f":%d,"g":"g%d","h":%d,"pad":%q}`,
			i, i%s.keys, i, i%100, i%10, i, i%2 == 0, i, i, i, pad)
		return s.post(b, docsPath, "docs", docsLink, item, map[string]string{pkHeader: fmt.Sprintf(`["p%d"]`, i%s.keys)}, http.StatusCreated, nil)
	})
}

const (
	docsPath = "/dbs/d/colls/c/docs"
	docsLink = "dbs/d/colls/c"
	pkHeader = "X-Ms-Documentdb-Partitionkey"
)

// ask queries items from a random value on, within one partition key or in all of them.
func (s *benchServer) ask(b *testing.B, query string, inKey bool, rows int) error {
	a := rand.IntN(s.items - min(s.items/2, 10*rows*s.keys))
	headers := map[string]string{"Content-Type": "application/query+json", "X-Ms-Documentdb-Isquery": "True"}
	if inKey {
		headers[pkHeader] = fmt.Sprintf(`["p%d"]`, a%s.keys)
	} else {
		headers["X-Ms-Documentdb-Partitionkeyrangeid"] = "0"
		headers["X-Ms-Documentdb-Query-Enablecrosspartition"] = "True"
	}
	body := fmt.Appendf(nil, `{"query":%q,"parameters":[{"name":"@a","value":%d}]}`, query, a)
	return s.post(b, docsPath, "docs", docsLink, body, headers, http.StatusOK, func(h http.Header) error {
		if got := h.Get("X-Ms-Item-Count"); got != strconv.Itoa(rows) {
			return fmt.Errorf("%s: got %s rows, want %d", body, got, rows)
		}
		return nil
	})
}

// post sends a signed POST and reads the answer to its end.
func (s *benchServer) post(b *testing.B, path, kind, link string, body []byte, headers map[string]string, want int, check func(http.Header) error) error {
	return s.send(b, &s.client, http.MethodPost, path, kind, link, body, headers, want, check)
}

// send is post with a client and a method.
func (s *benchServer) send(b *testing.B, client *http.Client, method, path, kind, link string, body []byte, headers map[string]string, want int, check func(http.Header) error) error {
	r, err := http.NewRequest(method, "http://"+s.addr+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	sign(b, r, mayfly.WellKnownKey, kind, link)
	res, err := client.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	switch {
	case err != nil:
		return err
	case res.StatusCode != want:
		return fmt.Errorf("%s %s: %d %s", path, body, res.StatusCode, text)
	case check == nil:
		return nil
	}
	return check(res.Header)
}
