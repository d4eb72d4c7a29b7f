// SPDX-License-Identifier: MIT

package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mayflydb/mayfly"
)

// writeKey writes a text to a new file.
func writeKey(t *testing.T, text string, mode os.FileMode) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name, mode); err != nil { // Chmod ignores the umask
		t.Fatal(err)
	}
	return name
}

// Servers and tools accept a key in a file like one on the command line.
func testKeyFile(t *testing.T, b binary) {
	const readOnly = "cmVhZC1vbmx5IGtleSBvZiB0aGlzIHRlc3QsIGxvbmcgZW5vdWdo"
	// As openssl prints it: in lines.
	file := writeKey(t, ownKey[:20]+"\n"+ownKey[20:]+"\n", 0o600)
	p := b.start(t, []string{"MAYFLY_READ_ONLY_KEY_FILE=" + writeKey(t, readOnly, 0o644)},
		"serve", "--listen=0.0.0.0:0", "--memory", "--key-file="+file)
	p.addr = strings.Replace(p.addr, "[::]", "127.0.0.1", 1)
	for key, want := range map[string]int{ownKey: 200, readOnly: 200, mayfly.WellKnownKey: 401} {
		if status, body := p.get(t, "/", key); status != want {
			t.Errorf("with %.8s…: status %d, want %d: %s", key, status, want, body)
		}
	}
	for _, args := range [][]string{{"clock"}, {"ttl"}} {
		at := "--endpoint=http://" + p.addr
		if o := b.run(t, []string{"MAYFLY_KEY_FILE=" + writeKey(t, ownKey, 0o600)}, append(args, at)...); o.code != 0 {
			t.Errorf("mayfly %s with a key file: %+v", args[0], o)
		}
		if o := b.run(t, nil, append(args, at)...); o.code == 0 || !strings.Contains(o.stderr, "401") {
			t.Errorf("mayfly %s without a key: %+v", args[0], o)
		}
	}
	p.stop(t, syscall.SIGTERM)
	if log := p.stderr.String(); strings.Count(log, "can read the key") != 1 || strings.Contains(log, readOnly) {
		t.Errorf("of two key files, one of which all users can read, the log says:\n%s", log)
	}
}

// A file without a key is an error, and does not mean the well-known key.
func testBadKeyFile(t *testing.T, b binary) {
	for text, args := range map[string][]string{
		"no such file":      {"--key-file=nosuch"},
		"there is no key":   {"--key-file=" + writeKey(t, " \n", 0o600)},
		"give one of them":  {"--key-file=" + writeKey(t, ownKey, 0o600), "--key=" + ownKey},
		"too large":         {"--secondary-key-file=" + writeKey(t, strings.Repeat("A", 5<<10), 0o600)},
		"base64":            {"--read-only-key-file=" + writeKey(t, "not base64!", 0o600)},
		"is a directory":    {"--secondary-read-only-key-file=" + t.TempDir()},
		"at least 32 bytes": {"--key-file=" + writeKey(t, "c2hvcnQ=", 0o600), "--listen=0.0.0.0:0"},
	} {
		b.fails(t, nil, text, append([]string{"serve", "--memory", anyPort}, args...)...)
	}
}

// With the well-known key, requests to a host name that a page in a browser could have
// are refused unless the name is allowed.
func testHosts(t *testing.T, b binary) {
	ask := func(p *process, host string) (int, string) {
		r, err := http.NewRequest("GET", "http://"+p.addr+"/dbs", nil)
		if err != nil {
			t.Fatal(err)
		}
		sign(t, r, mayfly.WellKnownKey, "dbs", "")
		r.Host = host
		status, body, err := do(r)
		if err != nil {
			t.Fatal(err)
		}
		return status, string(body)
	}
	p := b.start(t, []string{"MAYFLY_ALLOW_HOST=one.example,two.example"}, "serve", "--memory", anyPort)
	for host, want := range map[string]int{"": 200, "localhost": 200, "one.example:8081": 200, "TWO.example": 200, "rebound.example": 403} {
		if status, body := ask(p, host); status != want || want == 403 && !strings.Contains(body, "--allow-host rebound.example") {
			t.Errorf("host %q: status %d, want %d: %s", host, status, want, body)
		}
	}
	p = b.start(t, nil, "serve", "--memory", anyPort, "--allow-host=three.example", "--allow-host=*.four.example", "--advertise=http://five.example:8081/")
	for host, want := range map[string]int{"three.example": 200, "a.four.example": 200, "five.example": 200, "one.example": 403} {
		if status, body := ask(p, host); status != want {
			t.Errorf("host %q: status %d, want %d: %s", host, status, want, body)
		}
	}
	b.fails(t, nil, "allowed host", "serve", "--memory", anyPort, "--allow-host=http://x.example/")
}
