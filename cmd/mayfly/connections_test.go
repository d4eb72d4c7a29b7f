// SPDX-License-Identifier: MIT

package main

import (
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/mayflydb/mayfly"
)

// Idle connections beyond the server's limit do not keep new clients out.
func testIdleConnections(t *testing.T, b binary) {
	const connections, workers = 4100, 20
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur < connections+200 {
		t.Skipf("a process may have %d files open, %v", limit.Cur, err)
	}
	p := b.start(t, nil, "serve", "--memory", anyPort)
	var all [workers][]net.Conn
	var wg sync.WaitGroup
	for w := range all {
		wg.Go(func() {
			for i := range connections / workers {
				conn, err := net.DialTimeout("tcp", p.addr, waitLimit)
				if err == nil {
					all[w] = append(all[w], conn)
					_, err = io.WriteString(conn, "GET /_mayfly/health HTTP/1.1\r\nHost: localhost\r\n\r\n")
				}
				if err != nil {
					t.Errorf("connection %d: %v", i, err)
					return
				}
			}
		})
	}
	wg.Wait()
	for range 5 {
		if status, body := p.get(t, "/", mayfly.WellKnownKey); status != 200 {
			t.Errorf("beside %d connections: status %d: %s", connections, status, body)
		}
	}
	for _, conns := range all {
		for _, conn := range conns {
			_ = conn.Close()
		}
	}
}

// go tool pprof fetches profiles by itself, with the key in the address.
func testPprof(t *testing.T, b binary) {
	p := b.start(t, nil, "serve", "--memory", anyPort)
	for _, page := range []string{"profile?seconds=1", "heap"} {
		out := filepath.Join(t.TempDir(), "profile")
		address := url.URL{Scheme: "http", Host: p.addr, User: url.UserPassword("", mayfly.WellKnownKey), Path: "/_mayfly/pprof/"}
		c := exec.Command("go", "tool", "pprof", "-raw", "-output="+out, address.String()+page)
		c.Env = append(os.Environ(), "PPROF_TMPDIR="+t.TempDir())
		said, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("go tool pprof of %s: %v\n%s", page, err, said)
		}
		if raw, err := os.ReadFile(out); err != nil || !strings.Contains(string(raw), "PeriodType") {
			t.Errorf("what it fetched is not a profile: %v\n%s", err, raw)
		}
	}
}
