// SPDX-License-Identifier: MIT

package main

import (
	"strings"
	"syscall"
	"testing"

	"github.com/mayflydb/mayfly/internal/kv/pgkv/pgtest"
)

// A node starts on PostgreSQL, answers, leaves on SIGTERM, and starts again. A node with
// another key does not start, and tools work on the data or say why they cannot.
func testEngine(t *testing.T, b binary) {
	url := pgtest.New(t)
	node := []string{"--engine", url, "--node", "a"}
	for range 2 {
		p := b.start(t, nil, node...)
		if !strings.Contains(p.greeting, "the shared storage engine, node a") {
			t.Errorf("the greeting is %q", p.greeting)
		}
		if o := b.run(t, nil, "cluster", "--endpoint", "http://"+p.addr); o.code != 0 || !strings.Contains(o.stdout, "a     serving") {
			t.Errorf("mayfly cluster: exit %d: %s%s", o.code, o.stdout, o.stderr)
		}
		b.fails(t, nil, "no live node 'z'", "cluster", "--endpoint", "http://"+p.addr, "drain", "z")
		p.stop(t, syscall.SIGTERM)
	}
	b.fails(t, nil, "the key is not that of the cluster", append([]string{"serve", "--listen", "127.0.0.1:0", "--key", ownKey}, node...)...)
	b.fails(t, nil, "cannot be erased in time", append([]string{"serve", "--listen", "127.0.0.1:0", "--erase-within", "1h"}, node...)...)
	b.fails(t, nil, "needs --node", "serve", "--listen", "127.0.0.1:0", "--engine", url)
	for _, args := range [][]string{{"serve", "--listen", "127.0.0.1:0", "--node", "b"}, {"check"}, {"cert"}} {
		b.fails(t, nil, "give either --engine or --data", append(args, "--engine", url, "--data", t.TempDir())...)
		b.fails(t, []string{"MAYFLY_ENGINE=" + url}, "give either --engine or --data", append(args, "--data", t.TempDir())...)
	}
	if o := b.run(t, []string{"MAYFLY_DATA=" + t.TempDir()}, "check", "--engine", url); o.code != 0 {
		t.Errorf("check of an engine with MAYFLY_DATA: exit %d: %s%s", o.code, o.stdout, o.stderr)
	}
	b.fails(t, nil, "cannot be rewound", "clock", "rewind", "--engine", url)
	for want, args := range map[string][]string{"The data has format": {"cluster", "finalize", "--engine", url}, "ok: 0 items": {"check", "--engine", url}, "BEGIN CERTIFICATE": {"cert", "--engine", url}} {
		if o := b.run(t, nil, args...); o.code != 0 || !strings.Contains(o.stdout, want) {
			t.Errorf("mayfly %q: exit %d: %s%s, want %q", args, o.code, o.stdout, o.stderr, want)
		}
	}
}

// The data goes to PostgreSQL and back, with its items. A target with data is refused.
func testCopy(t *testing.T, b binary) {
	url, first, last := pgtest.New(t), t.TempDir()+"/first", t.TempDir()+"/last"
	p := b.start(t, nil, anyPort, "--data", first)
	p.stop(t, syscall.SIGTERM)
	b.fails(t, nil, "there is no data", "copy", "--from", t.TempDir()+"/none", "--to", url)
	for _, way := range [][2]string{{first, url}, {url, last}} {
		if o := b.run(t, nil, "copy", "--from", way[0], "--to", way[1]); o.code != 0 || !strings.Contains(o.stdout, "copied ") {
			t.Fatalf("exit %d: %s%s", o.code, o.stdout, o.stderr)
		}
		b.fails(t, nil, "is not empty", "copy", "--from", first, "--to", way[1])
	}
	b.start(t, nil, anyPort, "--data", last).stop(t, syscall.SIGTERM)
	b.start(t, nil, anyPort, "--engine", url, "--node", "a").stop(t, syscall.SIGTERM)
}
