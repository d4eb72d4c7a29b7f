// SPDX-License-Identifier: MIT

package alerts

import (
	"bufio"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// key is the well-known key of emulators, which a server uses that has no other.
const key = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="

var listens = regexp.MustCompile(`listens on (http://\S+) `)

// server is the address of a server in a process of its own.
type server string

// build builds the server.
func build(t *testing.T) (binary string) {
	t.Helper()
	binary = filepath.Join(t.TempDir(), "mayfly")
	build := exec.Command("go", "build", "-o", binary, "./cmd/mayfly")
	build.Dir = filepath.Join("..", "..")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v: %s", err, text)
	}
	return binary
}

// startServer starts a server, with data on disk and a clock to move.
func startServer(t *testing.T) server {
	t.Helper()
	s, _ := start(t, build(t), "--data="+filepath.Join(t.TempDir(), "data"))
	return s
}

// start starts a server in a process of its own, which ends with the test.
func start(t *testing.T, binary string, flags ...string) (server, *os.Process) {
	t.Helper()
	c := exec.Command(binary, append([]string{"serve", "--test-clock", "--listen=127.0.0.1:0"}, flags...)...)
	c.Env = []string{}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	at := listens.FindStringSubmatch(line)
	if at == nil {
		t.Fatalf("the server prints %q, %v", line, err)
	}
	return server(at[1]), c.Process
}

// send sends a request and returns the body of its answer.
func (s server) send(t *testing.T, method, path, authorization, body string) string {
	t.Helper()
	r, err := http.NewRequest(method, string(s)+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	date := strings.ToLower(time.Now().UTC().Format(http.TimeFormat))
	if authorization == "" {
		authorization = signature(path, date)
	}
	r.Header.Set("Authorization", authorization)
	r.Header.Set("x-ms-date", date)
	r.Header.Set("x-ms-version", "2020-07-15")
	r.Header.Set("x-ms-documentdb-partitionkey", `["p"]`)
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil || a.StatusCode >= 300 {
		t.Fatalf("%s %s: status %d, %v: %s", method, path, a.StatusCode, err, text)
	}
	return string(text)
}

// signature signs a POST to a list of resources.
func signature(path, date string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	kind, link := parts[len(parts)-1], strings.Join(parts[:len(parts)-1], "/")
	secret, err := base64.StdEncoding.DecodeString(key)
	if err != nil {
		panic(err)
	}
	h := hmac.New(sha256.New, secret)
	fmt.Fprintf(h, "post\n%s\n%s\n%s\n\n", kind, link, date)
	return url.QueryEscape("type=master&ver=1.0&sig=" + base64.StdEncoding.EncodeToString(h.Sum(nil)))
}

func (s server) create(t *testing.T, path, body string) {
	t.Helper()
	s.send(t, "POST", path, "", body)
}

// own requests one of Mayfly's own pages.
func (s server) own(t *testing.T, method, page, body string) string {
	t.Helper()
	return s.send(t, method, "/_mayfly/"+page, "Bearer "+key, body)
}
