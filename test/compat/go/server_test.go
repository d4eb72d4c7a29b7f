// SPDX-License-Identifier: MIT

// Package compat runs the unmodified Go SDK of the service against the real
// binary: every test starts a server of its own as a process, and stops it. It
// never imports Mayfly. What must stay true: a test passes for a client program
// exactly if it passes here, so nothing but public API of the SDK is used, and
// requests of our own are signed by code of our own.
//
// MAYFLY_BINARY names a binary that is built already. MAYFLY_ENDPOINT names a
// server that runs already, in memory with the test clock and the well-known key;
// the tests that need a server of another kind start it all the same.
package compat

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// wellKnownKey is that of the service's emulators.
const wellKnownKey = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="

const (
	root          = "../../.." // the repository
	startLimit    = 20 * time.Second
	stopLimit     = 20 * time.Second
	requestLimit  = 20 * time.Second
	maxReplyBytes = 8 << 20
)

func TestMain(m *testing.M) {
	os.Exit(func() int {
		if os.Getenv("MAYFLY_BINARY") != "" {
			return m.Run()
		}
		dir, err := os.MkdirTemp("", "mayfly-compat")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		binary := filepath.Join(dir, "mayfly")
		build := exec.Command("go", "build", "-o", binary, "./cmd/mayfly")
		build.Dir, build.Stdout, build.Stderr = root, os.Stderr, os.Stderr
		if err := build.Run(); err != nil {
			fmt.Fprintln(os.Stderr, "cannot build the server:", err)
			return 1
		}
		os.Setenv("MAYFLY_BINARY", binary)
		return m.Run()
	}())
}

// server is a running server.
type server struct {
	address string         // host:port
	roots   *x509.CertPool // what HTTPS clients trust; nil if there is no HTTPS
}

func (s *server) http() string  { return "http://" + s.address }
func (s *server) https() string { return "https://" + s.address }

func (s *server) connection(endpoint string) string {
	return "AccountEndpoint=" + endpoint + "/;AccountKey=" + wellKnownKey + ";"
}

// startMemory starts a server without data whose time the test can move.
func startMemory(t *testing.T) *server {
	t.Helper()
	if endpoint := os.Getenv("MAYFLY_ENDPOINT"); endpoint != "" {
		return &server{address: strings.TrimRight(strings.TrimPrefix(endpoint, "http://"), "/")}
	}
	return start(t, "--memory", "--test-clock")
}

// startData starts a server on a directory, with its certificate for HTTPS.
func startData(t *testing.T, dir string, flags ...string) *server {
	t.Helper()
	s := start(t, append([]string{"--data", dir}, flags...)...)
	pem, err := exec.Command(os.Getenv("MAYFLY_BINARY"), "cert", "--data", dir).Output()
	if err != nil {
		t.Fatalf("mayfly cert: %v", err)
	}
	s.roots = x509.NewCertPool()
	if !s.roots.AppendCertsFromPEM(pem) {
		t.Fatalf("mayfly cert printed no certificate: %q", pem)
	}
	return s
}

var listens = regexp.MustCompile(`^Mayfly listens on http://(\S+) and https://`)

// start starts the binary on a free port and stops it at the end of the test.
func start(t *testing.T, flags ...string) *server {
	t.Helper()
	cmd := exec.Command(os.Getenv("MAYFLY_BINARY"), append([]string{"serve", "--listen", "127.0.0.1:0"}, flags...)...)
	cmd.Env = []string{} // so that no MAYFLY_ variable of this process has a say
	var log bytes.Buffer
	cmd.Stderr = &log
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	address := make(chan string, 1)
	ended := make(chan error, 1)
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if m := listens.FindStringSubmatch(lines.Text()); m != nil {
				address <- m[1]
			}
		}
		close(address)
		ended <- cmd.Wait()
	}()
	t.Cleanup(func() { stop(t, cmd, ended, &log) })
	s := &server{}
	select {
	case s.address = <-address:
	case <-time.After(startLimit):
	}
	if s.address == "" {
		t.Fatal("the server did not say where it listens")
	}
	s.waitReady(t)
	return s
}

// stop ends the server as an operator would, which must succeed.
func stop(t *testing.T, cmd *exec.Cmd, ended <-chan error, log *bytes.Buffer) {
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Errorf("stop the server: %v", err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the server ended with %v", err)
		}
	case <-time.After(stopLimit):
		_ = cmd.Process.Kill()
		<-ended
		t.Errorf("the server did not stop within %v", stopLimit)
	}
	if t.Failed() {
		t.Logf("the server's log:\n%s", log)
	}
}

// ownsNothing is in the answer of a node that owns nothing, as those of test/compat/cluster:
// a balancer should not use it, but it answers.
const ownsNothing = "is draining"

func (s *server) waitReady(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(startLimit); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		res, err := http.Get(s.http() + "/_mayfly/ready")
		if err != nil {
			continue
		}
		body, _ := io.ReadAll(io.LimitReader(res.Body, maxReplyBytes))
		res.Body.Close()
		if res.StatusCode == http.StatusOK || bytes.Contains(body, []byte(ownsNothing)) {
			return
		}
	}
	t.Fatal("the server did not get ready")
}

// moveClock posts to /_mayfly/clock, for example {"advance":"5s"}.
func (s *server) moveClock(t *testing.T, body string) {
	t.Helper()
	s.command(t, "clock", body)
}

// pausePurge has expired items stay where they are until the test ends.
func (s *server) pausePurge(t *testing.T) {
	t.Helper()
	s.command(t, "ttl/pause", "")
	t.Cleanup(func() { s.command(t, "ttl/resume", "") })
}

// command posts to a page below /_mayfly/.
func (s *server) command(t *testing.T, page, body string) {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, s.http()+"/_mayfly/"+page, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+wellKnownKey)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxReplyBytes))
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK {
		t.Fatalf("POST /_mayfly/%s %s: %s: %s", page, body, res.Status, answer)
	}
}

// freeze stops the time, so that a test can tell one millisecond from the next.
func (s *server) freeze(t *testing.T) {
	t.Helper()
	s.moveClock(t, `{"freeze":true}`)
	t.Cleanup(func() { s.moveClock(t, `{"release":true}`) })
}

func (s *server) advance(t *testing.T, d time.Duration) {
	t.Helper()
	s.moveClock(t, `{"advance":"`+d.String()+`"}`)
}

// client returns the SDK's client for an endpoint of the server.
func (s *server) client(t *testing.T, endpoint string) *azcosmos.Client {
	t.Helper()
	o := azcosmos.ClientOptions{ClientOptions: azcore.ClientOptions{
		// A failure is to be seen, not tried again.
		Retry: policy.RetryOptions{MaxRetries: -1},
	}}
	if s.roots != nil {
		o.Transport = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: s.roots}}}
	}
	c, err := azcosmos.NewClientFromConnectionString(s.connection(endpoint), &o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// limited is the context of a test's requests.
func limited(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), requestLimit)
	t.Cleanup(cancel)
	return ctx
}

// database creates a database that no other test has.
func (s *server) database(t *testing.T) *azcosmos.DatabaseClient {
	t.Helper()
	c := s.client(t, s.http())
	id := fmt.Sprintf("%s-%d", strings.ReplaceAll(t.Name(), "/", "-"), time.Now().UnixNano())
	if _, err := c.CreateDatabase(limited(t), azcosmos.DatabaseProperties{ID: id}, nil); err != nil {
		t.Fatal(err)
	}
	d, err := c.NewDatabase(id)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// container creates the container "c", with the partition key /pk unless p says
// otherwise.
func container(t *testing.T, d *azcosmos.DatabaseClient, p azcosmos.ContainerProperties) *azcosmos.ContainerClient {
	t.Helper()
	p.ID = "c"
	if p.PartitionKeyDefinition.Paths == nil {
		p.PartitionKeyDefinition = azcosmos.PartitionKeyDefinition{Paths: []string{"/pk"}, Version: 2}
	}
	if _, err := d.CreateContainer(limited(t), p, nil); err != nil {
		t.Fatal(err)
	}
	c, err := d.NewContainer(p.ID)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// properties is an item as a client sees it.
type properties map[string]any

func decode(t *testing.T, body []byte) properties {
	t.Helper()
	var p properties
	if err := json.Unmarshal(body, &p); err != nil {
		t.Fatalf("the body %q: %v", body, err)
	}
	return p
}
