// SPDX-License-Identifier: MIT

package main

import (
	"bufio"
	"bytes"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/engine/tikv/tikvtest"
)

// waitLimit bounds every wait for something that must happen.
const waitLimit = 2 * time.Minute

// binary is the path of the built binary.
type binary string

func build(t *testing.T) binary {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("stops servers with signals")
	}
	b := binary(filepath.Join(t.TempDir(), "mayfly-tikv"))
	if out, err := exec.Command("go", "build", "-o", string(b), ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return b
}

// run runs the binary to its end, and returns what it prints.
func (b binary) run(t *testing.T, args ...string) (out string, ok bool) {
	t.Helper()
	c := exec.Command(string(b), args...)
	c.Dir, c.Env = t.TempDir(), []string{"HOME=" + t.TempDir()}
	text, err := c.CombinedOutput()
	return string(text), err == nil
}

// prints runs the binary, which must succeed and print a text.
func (b binary) prints(t *testing.T, want string, args ...string) {
	t.Helper()
	if out, ok := b.run(t, args...); !ok || !strings.Contains(out, want) {
		t.Errorf("mayfly-tikv %q prints\n%s, want %q", args, out, want)
	}
}

// fails runs the binary, which must fail and print a text.
func (b binary) fails(t *testing.T, want string, args ...string) {
	t.Helper()
	if out, ok := b.run(t, args...); ok || !strings.Contains(out, want) || strings.Contains(out, "goroutine ") {
		t.Errorf("mayfly-tikv %q prints\n%s, want it to fail with %q", args, out, want)
	}
}

var listens = regexp.MustCompile(`listens on (http://\S+) and .*, data in (.*)`)

// serve starts a server, and returns its address and what it says of its data. stop stops it.
func (b binary) serve(t *testing.T, args ...string) (address, data string, stop func()) {
	t.Helper()
	c := exec.Command(string(b), append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	c.Dir, c.Env = t.TempDir(), []string{"HOME=" + t.TempDir()}
	var log bytes.Buffer
	c.Stderr = &log
	stdout, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	watch := time.AfterFunc(waitLimit, func() { _ = c.Process.Kill() })
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		if m := listens.FindStringSubmatch(lines.Text()); m != nil {
			address, data = m[1], m[2]
			break
		}
	}
	ended := make(chan error, 1)
	go func() {
		_, _ = io.Copy(io.Discard, stdout)
		ended <- c.Wait()
	}()
	stop = func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		if err := <-ended; err != nil {
			t.Errorf("the server ends with %v: %s", err, &log)
		}
		watch.Stop()
	}
	if address == "" {
		stop()
		t.Fatalf("the server does not start: %s", &log)
	}
	return address, data, stop
}

func TestWithoutCluster(t *testing.T) {
	b := build(t)
	b.prints(t, "tikv://pd1:2379", "serve", "--help")
	b.prints(t, "postgres://user", "serve", "--help")
	b.fails(t, "must be the URL", "check", "--engine", "etcd://a/b")
	b.fails(t, "must be like tikv://pd1:2379", "check", "--engine", "tikv://a/UPPER")
	b.fails(t, "cannot be reached", "check", "--engine", "tikv://127.0.0.1:1/x")
}

// A node starts on TiKV, tells the step of its time, leaves on SIGTERM, and starts again. Tools
// work on its data, and it goes to a directory and back.
func TestNode(t *testing.T) {
	url, other := tikvtest.New(t), tikvtest.New(t)
	b := build(t)
	node := []string{"--engine", url, "--node", "a"}
	for range 2 {
		address, data, stop := b.serve(t, node...)
		if data != "the shared storage engine, node a" {
			t.Errorf("the server says that its data is in %s", data)
		}
		b.prints(t, "moves in steps of 50 ms", "cluster", "--endpoint", address)
		stop()
	}
	b.fails(t, "the key is not that of the cluster", append([]string{"serve", "--listen", "127.0.0.1:0", "--key", "YSBrZXkgb2Ygb3VyIG93biwgMzIgYnl0ZXMgbG9uZyEhISE="}, node...)...)
	b.fails(t, "cannot be erased in time", append([]string{"serve", "--listen", "127.0.0.1:0", "--erase-within", "1h"}, node...)...)
	b.prints(t, "The data has format", "cluster", "finalize", "--engine", url)
	b.prints(t, "ok: 0 items", "check", "--engine", url)
	b.prints(t, "BEGIN CERTIFICATE", "cert", "--engine", url)

	dir := filepath.Join(t.TempDir(), "data")
	b.prints(t, "copied ", "copy", "--from", url, "--to", dir)
	b.fails(t, "is not empty", "copy", "--from", dir, "--to", url)
	b.prints(t, "copied ", "copy", "--from", dir, "--to", other)
	_, _, stop := b.serve(t, "--engine", other, "--node", "a")
	stop()
}
