// SPDX-License-Identifier: MIT

package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mayflydb/mayfly"
)

// emulatorOutput collects what a server writes to standard output, write by write, as
// container engines pass it on.
type emulatorOutput struct {
	mu     sync.Mutex
	frames []string
}

func (o *emulatorOutput) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.frames = append(o.frames, string(p))
	return len(p), nil
}

func (o *emulatorOutput) all() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Join(o.frames, "")
}

// contains reports whether any line so far matches, line ends included.
func (o *emulatorOutput) contains(pattern string) bool {
	re := regexp.MustCompile(pattern)
	for line := range strings.Lines(o.all()) {
		if re.MatchString(line) {
			return true
		}
	}
	return false
}

// startEmulator starts the binary as an image in emulator mode does, and waits for a line of
// its output. There is no container engine here: this is all that the modules can tell from
// outside, but for the file system of a container.
func (b binary) startEmulator(t *testing.T, env []string, args []string, line string) (*emulatorOutput, func()) {
	t.Helper()
	c := b.command(t, append([]string{"MAYFLY_EMULATOR=true", "MAYFLY_DATA=" + t.TempDir()}, env...), append([]string{"serve"}, args...)...)
	out, log := &emulatorOutput{}, &bytes.Buffer{}
	c.Stdout, c.Stderr = out, log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	var once sync.Once
	stop := func() {
		once.Do(func() {
			_ = c.Process.Signal(syscall.SIGTERM)
			if err := <-ended; err != nil {
				t.Errorf("the emulator ended with %v: %s", err, log)
			}
		})
	}
	t.Cleanup(stop)
	for deadline := time.Now().Add(waitLimit); !out.contains(line); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) || c.ProcessState != nil {
			t.Fatalf("no line %q: %s%s", line, out.all(), log)
		}
	}
	return out, stop
}

// otherAddress returns an address of this machine that is not loopback, as a container's
// clients come from, or skips the test.
func otherAddress(t *testing.T) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.To4() != nil && !ip.IP.IsLoopback() {
			return ip.IP.String()
		}
	}
	t.Skip("this machine has no address but loopback")
	return ""
}

// freePort returns a port that is free now, as the module for Node.js finds one.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// trustAll is a client as the modules use it before they have the certificate.
func trustAll() *http.Client {
	return &http.Client{Timeout: waitLimit, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
}

func wantPage(t *testing.T, c *http.Client, url string, status int) []byte {
	t.Helper()
	res, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != status {
		t.Fatalf("GET %s: %s, %v, want %d: %s", url, res.Status, err, status, body)
	}
	return body
}

// testEmulator does what the existing modules and documents do with the emulators' images.
// The environment, the lines and the pages are those in their sources.
func testEmulator(t *testing.T, b binary) {
	host := otherAddress(t)
	quiet := []string{"EXPLORER_PORT=0", "MAYFLY_HEALTH_LISTEN=127.0.0.1:0"} // ports of their own
	for _, c := range []struct {
		name string
		env  []string
		args []string
		line string // for which the program waits
		then func(t *testing.T, port string)
	}{
		{"TestcontainersGo", nil, []string{"--enable-explorer", "false"}, "Started", func(t *testing.T, port string) {
			accountIs(t, "http://"+host+":"+port)
		}},
		{"TestcontainersNode", []string{"PROTOCOL=http", "ENABLE_TELEMETRY=false", "ENABLE_EXPLORER=false"}, nil, "Now listening on: ", func(t *testing.T, port string) {
			accountIs(t, "http://"+host+":"+port)
		}},
		{"TestcontainersNodeHTTPS", []string{"PROTOCOL=https", "ENABLE_TELEMETRY=false", "ENABLE_EXPLORER=false"}, nil, "Now listening on: ", func(t *testing.T, port string) {
			accountIs(t, "https://"+host+":"+port)
		}},
		{"TestcontainersJava", nil, nil, `(?s)^.*Started\r\n$`, func(t *testing.T, port string) {
			pem := wantPage(t, trustAll(), "https://"+host+":"+port+"/_explorer/emulator.pem", 200)
			roots := x509.NewCertPool()
			if !roots.AppendCertsFromPEM(pem) || bytes.Count(pem, []byte("BEGIN")) != 1 {
				t.Fatalf("the certificate is %s", pem)
			}
			conn, err := tls.Dial("tcp", "127.0.0.1:"+port, &tls.Config{RootCAs: roots, ServerName: "localhost"})
			if err != nil {
				t.Fatal(err)
			}
			_ = conn.Close()
		}},
		{"TestcontainersDotNet", []string{"ENABLE_EXPLORER=false"}, nil, "Now listening", func(t *testing.T, port string) {
			wantPage(t, trustAll(), "http://"+host+":"+port+"/", 200) // without a credential
		}},
		{"TestcontainersPython", []string{
			"AZURE_COSMOS_EMULATOR_PARTITION_COUNT=None", "AZURE_COSMOS_EMULATOR_IP_ADDRESS_OVERRIDE=" + host,
			"AZURE_COSMOS_EMULATOR_ENABLE_DATA_PERSISTENCE=False", "AZURE_COSMOS_EMULATOR_KEY=" + mayfly.WellKnownKey,
		}, nil, `Started\s*$`, func(t *testing.T, port string) {
			wantPage(t, trustAll(), "https://"+host+":"+port+"/_explorer/index.html", 200)
			accountIs(t, "https://"+host+":"+port)
		}},
		{"Aspire", []string{"AZURE_COSMOS_EMULATOR_ENABLE_DATA_PERSISTENCE=true"}, nil, "Now listening", func(t *testing.T, port string) {
			accountIs(t, "http://"+host+":"+port)
		}},
		{"Documentation", []string{"GATEWAY_PUBLIC_ENDPOINT=cosmos", "LOG_LEVEL=trace"}, []string{"--protocol", "https"}, "System is now fully ready to accept requests", func(t *testing.T, port string) {
			chain := presentedBy(t, "127.0.0.1:"+port)
			if err := chain[0].VerifyHostname("cosmos"); err != nil {
				t.Error(err)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			port := freePort(t)
			out, stop := b.startEmulator(t, append(append([]string{"PORT=" + port}, quiet...), c.env...), c.args, c.line)
			c.then(t, port)
			stop()
			if !strings.Contains(out.all(), "WARNING: emulator mode") {
				t.Errorf("the output does not warn: %s", out.all())
			}
			if frames := out.frames; !strings.HasSuffix(frames[len(frames)-1], "Started\r\n") {
				t.Errorf("the last that is written is %q", frames[len(frames)-1])
			}
		})
	}

	t.Run("Health", func(t *testing.T) {
		port := freePort(t)
		out, _ := b.startEmulator(t, append([]string{"PORT=" + port}, quiet...), nil, "Started")
		m := regexp.MustCompile(`Health is at (http://\S+)/ready`).FindStringSubmatch(out.all())
		e := regexp.MustCompile(`The explorer is at http://\S+:(\d+) too`).FindStringSubmatch(out.all())
		if m == nil || e == nil {
			t.Fatalf("the output is %s", out.all())
		}
		if o := b.run(t, []string{"MAYFLY_EMULATOR=true", "PORT=" + port}, "health"); o.code != 0 || o.stdout != "ready\n" {
			t.Errorf("health: %+v", o)
		}
		if o := b.run(t, []string{"MAYFLY_LISTEN=" + freePort(t)}, "health"); o.code == 0 || !strings.Contains(o.stderr, "does not answer") {
			t.Errorf("health of no server: %+v", o)
		}
		for page, status := range map[string]int{"/alive": 200, "/ready": 200, "/status": 200, "/": 404, "/_mayfly/metrics": 404} {
			wantPage(t, trustAll(), m[1]+page, status)
		}
		// The explorer is open without TLS from elsewhere, for that is how it is published.
		if body := wantPage(t, trustAll(), "http://"+host+":"+e[1]+"/_explorer/", 200); !bytes.Contains(body, []byte("<html")) {
			t.Errorf("the explorer is %s", body)
		}
		r, err := http.NewRequest("GET", "http://"+host+":"+e[1]+"/_explorer/session", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Mayfly-Explorer", "1")
		if status, body, err := do(r); err != nil || status != 200 {
			t.Errorf("a session over HTTP: %d, %v: %s", status, err, body)
		}
	})

	t.Run("Certificate", func(t *testing.T) {
		dir := t.TempDir()
		file := filepath.Join(dir, "sub", "emulator.pem")
		out, stop := b.startEmulator(t, append([]string{"PORT=" + freePort(t), "MAYFLY_WRITE_CERT=" + file}, quiet...), nil, "Started")
		stop()
		if pem, err := os.ReadFile(file); err != nil || !bytes.Contains(pem, []byte("BEGIN CERTIFICATE")) {
			t.Errorf("the certificate in the file: %v: %s (%s)", err, pem, out.all())
		}
		pfx := filepath.Join(dir, "cert.pfx")
		if err := os.WriteFile(pfx, []byte{0x30, 0x82, 1, 2}, 0o600); err != nil {
			t.Fatal(err)
		}
		for text, env := range map[string][]string{
			"PFX are not read": {"CERT_PATH=" + pfx}, "http, https": {"PROTOCOL=gopher"}, "true or false": {"ENABLE_EXPLORER=perhaps"}, "quiet, error": {"LOG_LEVEL=loud"},
		} {
			if o := b.run(t, append(env, "MAYFLY_EMULATOR=true")); o.code == 0 || !strings.Contains(o.stderr, text) {
				t.Errorf("%v: exit %d, want %q in %s", env, o.code, text, o.stderr)
			}
		}
	})

	// Without emulator mode its variables mean nothing, and nobody gets in without a key.
	t.Run("Off", func(t *testing.T) {
		p := b.start(t, []string{"PORT=1", "LOG_LEVEL=loud", "ENABLE_EXPLORER=false"}, "serve", anyPort, "--memory")
		wantPage(t, trustAll(), "http://"+p.addr+"/", 401)
	})
}

// presentedBy returns the certificates that a server presents.
func presentedBy(t *testing.T, address string) []*x509.Certificate {
	t.Helper()
	conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates
}

// accountIs reads the account with the public key, as an SDK does, and makes a database.
func accountIs(t *testing.T, endpoint string) {
	t.Helper()
	r, err := http.NewRequest("GET", endpoint+"/dbs", nil)
	if err != nil {
		t.Fatal(err)
	}
	sign(t, r, mayfly.WellKnownKey, "dbs", "")
	res, err := trustAll().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != 200 {
		t.Fatalf("with the public key: %s", res.Status)
	}
}
