// SPDX-License-Identifier: MIT

// Tests of the binary itself: its output, its exit code, its errors.

package main

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/kv/pebblekv"
)

// ownKey is a key other than the well-known one.
const ownKey = "YSBrZXkgb2Ygb3VyIG93biwgMzIgYnl0ZXMgbG9uZyEhISE="

// waitLimit bounds every wait for something that must happen.
const waitLimit = time.Minute

// TestBinary builds the binary once and runs all tests with it.
func TestBinary(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("stops servers with signals")
	}
	b := build(t)
	type part struct {
		name string
		test func(*testing.T, binary)
	}
	// These have to find ports free that they chose before, or take thousands of them. All
	// others run at the same time, since they wait most of it.
	for _, c := range []part{{"TakenPort", testTakenPort}, {"IdleConnections", testIdleConnections}, {"Emulator", testEmulator}, {"Docs", testDocs}, {"InitUnready", testInitUnready}} {
		t.Run(c.name, func(t *testing.T) { c.test(t, b) })
	}
	for _, c := range []part{
		{"Version", testVersion}, {"Help", testHelp}, {"BadArguments", testBadArguments}, {"ConnectionString", testConnectionString},
		{"DataInUse", testDataInUse}, {"NeedsKey", testNeedsKey}, {"Environment", testEnvironment},
		{"Signals", testSignals}, {"Sync", testSync}, {"Certificate", testCertificate}, {"Check", testCheck}, {"Clock", testClock}, {"TTL", testTTL},
		{"Memory", testMemory}, {"StartMemory", testStartMemory}, {"KeyFile", testKeyFile}, {"BadKeyFile", testBadKeyFile}, {"Hosts", testHosts}, {"Scripts", testScripts},
		{"Action", testAction}, {"Split", testSplit},
		{"Pprof", testPprof}, {"Engine", testEngine}, {"Copy", testCopy}, {"Log", testLog}, {"Items", testItems}, {"Trust", testTrust}, {"Transfer", testTransfer}, {"KilledImport", testKilledImport},
		{"Backup", testBackup}, {"Doctor", testDoctor}, {"Manual", testManual}, {"Shell", testShell}, {"Bench", testBench}, {"Init", testInit}, {"JSON", testJSON}, {"RestoreWithoutTTL", testRestoreWithoutTTL},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.test(t, b)
		})
	}
}

// binary is the path of the built binary.
type binary string

func build(t testing.TB) binary {
	t.Helper()
	b := binary(filepath.Join(t.TempDir(), "mayfly"))
	if out, err := exec.Command("go", "build", "-o", string(b), ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return b
}

// outcome is the output and exit code of a command.
type outcome struct {
	stdout, stderr string
	code           int
}

// command prepares the binary without MAYFLY_* variables, in an empty directory.
func (b binary) command(t testing.TB, env []string, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.Command(string(b), args...)
	c.Dir = t.TempDir()
	c.Env = append([]string{"HOME=" + c.Dir}, env...)
	return c
}

// run runs the binary to its end.
func (b binary) run(t *testing.T, env []string, args ...string) outcome {
	t.Helper()
	c := b.command(t, env, args...)
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	err := c.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return outcome{stdout.String(), stderr.String(), c.ProcessState.ExitCode()}
}

// fails runs the binary and checks that it fails with one sentence on standard error.
func (b binary) fails(t *testing.T, env []string, text string, args ...string) outcome {
	t.Helper()
	o := b.run(t, env, args...)
	if o.code == 0 || !strings.Contains(o.stderr, text) {
		t.Errorf("mayfly %q: exit %d, want another than 0 and %q on standard error:\n%s%s", args, o.code, text, o.stdout, o.stderr)
	}
	if !strings.HasPrefix(lastLine(o.stderr), "mayfly: ") || strings.Contains(o.stderr, "goroutine ") {
		t.Errorf("mayfly %q says %q, want a sentence", args, o.stderr)
	}
	return o
}

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return lines[len(lines)-1]
}

// process is a server that runs.
type process struct {
	cmd        *exec.Cmd
	addr       string
	greeting   string // its output, up to the connection string
	later      string // its output after that; to be read only after it has ended
	connection string // the connection string in greeting
	stderr     *journal
	ended      chan error
}

// journal is what a running server has written to standard error.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// await waits until the text is there, for a while, and returns all.
func (j *journal) await(text string) string {
	for range 1000 {
		if strings.Contains(j.String(), text) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return j.String()
}

var listens = regexp.MustCompile(`listens on http://(\S+) and https://(\S+), data in (.*)`)

// start starts a server on a free port, and waits for its greeting.
func (b binary) start(t testing.TB, env []string, args ...string) *process {
	t.Helper()
	c := b.command(t, env, args...)
	stdout, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: c, stderr: &journal{}, ended: make(chan error, 1)}
	c.Stderr = p.stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	greeted := make(chan struct{})
	go func() {
		lines := bufio.NewScanner(stdout)
		for lines.Scan() {
			if p.connection != "" {
				p.later += lines.Text() + "\n"
				continue
			}
			p.greeting += lines.Text() + "\n"
			if m := listens.FindStringSubmatch(lines.Text()); m != nil {
				p.addr = m[1]
			}
			if text, ok := strings.CutPrefix(lines.Text(), "Connection string: "); ok {
				p.connection = text
				close(greeted)
			}
		}
		p.ended <- c.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = c.Process.Kill()
		<-p.ended
	})
	select {
	case <-greeted:
	case <-p.ended:
		t.Fatalf("mayfly %q has ended: %s%s", args, p.greeting, p.stderr)
	case <-time.After(waitLimit):
		t.Fatalf("mayfly %q prints nothing", args)
	}
	return p
}

// stop sends a signal and checks that the server ends with 0, which it does not if a
// client has held it up until shutdownLimit.
func (p *process) stop(t *testing.T, s os.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-p.ended:
		if err != nil {
			t.Errorf("after %v: %v: %s", s, err, p.stderr)
		}
	case <-time.After(waitLimit):
		t.Fatalf("the server goes on after %v", s)
	}
}

// get reads a page with a key: a signature for pages of the protocol, a bearer token for
// Mayfly's own.
func (p *process) get(t *testing.T, path, key string) (status int, body []byte) {
	t.Helper()
	r, err := http.NewRequest("GET", "http://"+p.addr+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	if path == "/" {
		sign(t, r, key, "", "")
	}
	status, body, err = do(r)
	if err != nil {
		t.Fatal(err)
	}
	return status, body
}

// sign signs a request for a resource.
func sign(t testing.TB, r *http.Request, key, kind, link string) {
	t.Helper()
	raw, err := base64.StdEncoding.DecodeString(key)
	if err != nil {
		t.Fatal(err)
	}
	date := time.Now().UTC().Format(http.TimeFormat)
	mac := hmac.New(sha256.New, raw)
	fmt.Fprintf(mac, "%s\n%s\n%s\n%s\n\n", strings.ToLower(r.Method), kind, link, strings.ToLower(date))
	r.Header.Set("Authorization", url.QueryEscape("type=master&ver=1.0&sig="+base64.StdEncoding.EncodeToString(mac.Sum(nil))))
	r.Header.Set("X-Ms-Date", date)
}

// do sends a request on a new connection.
func do(r *http.Request) (status int, body []byte, err error) {
	transport := &http.Transport{DisableKeepAlives: true}
	res, err := (&http.Client{Transport: transport, Timeout: waitLimit}).Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	body, err = io.ReadAll(res.Body)
	return res.StatusCode, body, err
}

const anyPort = "--listen=127.0.0.1:0"

func testVersion(t *testing.T, b binary) {
	o := b.run(t, nil, "version")
	if o.code != 0 || !regexp.MustCompile(`^mayfly \S+, go1\.\d+`).MatchString(o.stdout) || o.stderr != "" {
		t.Errorf("version: %+v", o)
	}
}

func testHelp(t *testing.T, b binary) {
	o := b.run(t, nil, "--help")
	for _, text := range []string{
		"Examples:", "mayfly serve --memory --test-clock", "mayfly serve --listen 0.0.0.0:8081 --key-file mayfly.key", "mayfly check --data ./mayfly-data",
		"mayfly cert > mayfly.pem", "mayfly clock advance 90s", "serve", "check", "cert", "clock", "version",
	} {
		if o.code != 0 || !strings.Contains(o.stdout, text) {
			t.Errorf("--help lacks %q, exit %d:\n%s", text, o.code, o.stdout)
		}
	}
	o = b.run(t, nil, "serve", "--help")
	for _, text := range []string{"--listen", "--data", "--memory", "--key", "--secondary-key", "--read-only-key", "--secondary-read-only-key", "--key-file", "--secondary-key-file", "--read-only-key-file", "--secondary-read-only-key-file", "--allow-host", "--[no-]sync", "--test-clock", "--region", "--consistency", "--throughput", "report,enforce", "--advertise", "--log-level", "MAYFLY_LISTEN", "127.0.0.1:8081"} {
		if o.code != 0 || !strings.Contains(o.stdout, text) {
			t.Errorf("serve --help lacks %q, exit %d:\n%s", text, o.code, o.stdout)
		}
	}
}

func testBadArguments(t *testing.T, b binary) {
	for text, args := range map[string][]string{
		"--nosuch":      {"--nosuch"},
		"--no-such":     {"serve", "--no-such"},
		"unexpected":    {"dance"},
		"--consistency": {"serve", "--memory", "--consistency=Often"},
		"--log-level":   {"serve", "--memory", "--log-level=loud"},
		"base64":        {"serve", "--memory", anyPort, "--key=not base64!"},
		"cannot listen": {"serve", "--memory", "--listen=nowhere:x"},
		"<time>":        {"clock", "set"},
	} {
		o := b.run(t, nil, args...)
		if o.code == 0 || !strings.Contains(o.stderr, text) || strings.Contains(o.stderr, "goroutine ") {
			t.Errorf("mayfly %q: exit %d, want another than 0 and %q on standard error:\n%s%s", args, o.code, text, o.stdout, o.stderr)
		}
	}
}

// A client can use the printed connection string.
func testConnectionString(t *testing.T, b binary) {
	p := b.start(t, nil, "--memory", anyPort)
	if want := "AccountEndpoint=http://" + p.addr + "/;AccountKey=" + mayfly.WellKnownKey + ";"; p.connection != want {
		t.Errorf("the connection string is %q, want %q", p.connection, want)
	}
	if !strings.Contains(p.greeting, "data in memory") {
		t.Errorf("the greeting is %q", p.greeting)
	}
	if status, body := p.get(t, "/", mayfly.WellKnownKey); status != 200 {
		t.Errorf("the account: status %d: %s", status, body)
	}
	if status, body := p.get(t, "/_mayfly/ready", ""); status != 200 {
		t.Errorf("ready: status %d: %s", status, body)
	}
}

func testTakenPort(t *testing.T, b binary) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	o := b.fails(t, nil, l.Addr().String()+" is in use by another program", "serve", "--memory", "--listen="+l.Addr().String())
	if !strings.Contains(o.stderr, "--listen") || o.stdout != "" {
		t.Errorf("a taken port: %+v", o)
	}
}

func testDataInUse(t *testing.T, b binary) {
	dir := t.TempDir()
	b.start(t, nil, "serve", anyPort, "--data="+dir)
	o := b.fails(t, nil, "in use by another process", "serve", anyPort, "--data="+dir)
	if !strings.Contains(o.stderr, "--data") || !strings.Contains(o.stderr, dir) {
		t.Errorf("data in use: %q, want the directory and what to do", o.stderr)
	}
	b.fails(t, nil, "in use by another process", "check", "--data="+dir)
}

func testNeedsKey(t *testing.T, b binary) {
	dir := filepath.Join(t.TempDir(), "data")
	o := b.fails(t, nil, "needs a key of your own", "serve", "--listen=0.0.0.0:0", "--data="+dir)
	if o.stdout != "" || !strings.Contains(o.stderr, "--key") {
		t.Errorf("it prints %q and %q", o.stdout, o.stderr)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("a server that refuses to start has created its data")
	}
	for _, flag := range []string{"--key=", "--key=" + ownKey + " --secondary-key=", "--key=" + ownKey + " --read-only-key=", "--key=" + ownKey + " --secondary-read-only-key="} {
		short := base64.StdEncoding.EncodeToString(make([]byte, 31))
		args := append([]string{"serve", "--listen=0.0.0.0:0", "--data=" + dir}, strings.Fields(flag+short)...)
		b.fails(t, nil, "at least 32 bytes", args...)
	}
	p := b.start(t, nil, "serve", "--listen=0.0.0.0:0", "--memory", "--key="+ownKey)
	if strings.Contains(p.greeting, ownKey) || !strings.Contains(p.connection, "AccountKey=<your key>;") {
		t.Errorf("the greeting shows the key: %s", p.greeting)
	}
	_, port, _ := net.SplitHostPort(p.addr)
	p.addr = "127.0.0.1:" + port
	for key, want := range map[string]int{ownKey: 200, mayfly.WellKnownKey: 401} {
		if status, body := p.get(t, "/", key); status != want {
			t.Errorf("with %.8s…: status %d, want %d: %s", key, status, want, body)
		}
	}
	p.stop(t, syscall.SIGTERM)
	if strings.Contains(p.stderr.String(), ownKey) {
		t.Error("the log shows the key")
	}
}

func testEnvironment(t *testing.T, b binary) {
	dir := t.TempDir()
	p := b.start(t, []string{
		"MAYFLY_LISTEN=127.0.0.1:0", "MAYFLY_DATA=" + dir, "MAYFLY_KEY=" + ownKey, "MAYFLY_TEST_CLOCK=true", "MAYFLY_SYNC=false",
		"MAYFLY_REGION=West US,East US", "MAYFLY_CONSISTENCY=Eventual", "MAYFLY_ADVERTISE=https://db.example/", "MAYFLY_LOG_LEVEL=debug",
	})
	if !strings.Contains(p.greeting, "data in "+dir) || !strings.Contains(p.connection, "AccountEndpoint=https://db.example/;") {
		t.Errorf("the greeting is %s", p.greeting)
	}
	status, body := p.get(t, "/", ownKey)
	var account struct {
		ReadableLocations []struct{ Name, DatabaseAccountEndpoint string }
		Policy            struct{ DefaultConsistencyLevel string } `json:"userConsistencyPolicy"`
	}
	if err := json.Unmarshal(body, &account); status != 200 || err != nil {
		t.Fatalf("the account: status %d, %v: %s", status, err, body)
	}
	if r := account.ReadableLocations; len(r) != 2 || r[1].Name != "East US" || r[1].DatabaseAccountEndpoint != "https://db.example/" {
		t.Errorf("the regions are %+v", r)
	}
	if account.Policy.DefaultConsistencyLevel != "Eventual" {
		t.Errorf("the consistency is %+v", account.Policy)
	}
	if o := b.run(t, []string{"MAYFLY_ENDPOINT=http://" + p.addr, "MAYFLY_KEY=" + ownKey}, "clock", "freeze"); o.code != 0 {
		t.Errorf("clock freeze: %+v", o)
	}
	p.stop(t, os.Interrupt)
	if o := b.run(t, []string{"MAYFLY_DATA=" + dir}, "check"); o.code != 0 {
		t.Errorf("check: %+v", o)
	}
	if o := b.run(t, []string{"MAYFLY_DATA=" + dir}, "cert"); o.code != 0 {
		t.Errorf("cert: %+v", o)
	}
	// Data of a test clock opens only with a test clock.
	b.fails(t, nil, "--test-clock", "serve", anyPort, "--data="+dir)
	// A flag takes precedence over the environment.
	if p := b.start(t, []string{"MAYFLY_LISTEN=192.0.2.1:1"}, "--memory", anyPort); !strings.HasPrefix(p.addr, "127.0.0.1:") {
		t.Errorf("listens on %s", p.addr)
	}
}

// A stop takes less than a second even if clients have connections open.
func testSignals(t *testing.T, b binary) {
	dir := t.TempDir()
	for _, s := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		p := b.start(t, nil, "serve", anyPort, "--data="+dir)
		for _, begin := range []string{"", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "GET / HT"} {
			conn, err := net.Dial("tcp", p.addr)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := io.WriteString(conn, begin); err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(begin, "\r\n\r\n") { // answered, and then idle
				if _, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil {
					t.Fatal(err)
				}
			}
		}
		p.stop(t, s)
		if !strings.Contains(p.stderr.String(), "stopping") {
			t.Errorf("%v: standard error says %q", s, p.stderr)
		}
	}
}

func testSync(t *testing.T, b binary) {
	for flag, warned := range map[string]bool{"--sync=false": true, "--no-sync": true, "--sync": false, "--sync=true": false} {
		p := b.start(t, nil, "serve", anyPort, flag)
		p.stop(t, syscall.SIGTERM)
		if got := strings.Contains(p.later, "may lose the last writes"); got != warned {
			t.Errorf("%s: the greeting is %q", flag, p.greeting+p.later)
		}
	}
}

func testCertificate(t *testing.T, b binary) {
	dir := t.TempDir()
	b.fails(t, nil, "the server makes one when it first starts", "cert", "--data="+dir)
	b.start(t, nil, "serve", anyPort, "--data="+dir)
	o := b.run(t, nil, "cert", "--data="+dir)
	if o.code != 0 || !strings.HasPrefix(o.stdout, "-----BEGIN CERTIFICATE-----\n") || strings.Contains(o.stdout, "KEY") {
		t.Errorf("cert: %+v", o)
	}
	// A server with its data in memory is asked itself.
	p := b.start(t, nil, "serve", anyPort, "--memory", "--tls-name=db.example")
	o = b.run(t, nil, "cert", "--endpoint=http://"+p.addr)
	roots := x509.NewCertPool()
	if o.code != 0 || o.stderr != "" || !roots.AppendCertsFromPEM([]byte(o.stdout)) {
		t.Fatalf("cert of a running server: %+v", o)
	}
	conn, err := tls.Dial("tcp", p.addr, &tls.Config{RootCAs: roots, ServerName: "db.example"})
	if err != nil {
		t.Fatalf("a client that trusts it: %v", err)
	}
	_ = conn.Close()
	if _, err := tls.Dial("tcp", p.addr, &tls.Config{ServerName: "db.example"}); err == nil {
		t.Error("a client that trusts nothing has connected")
	}
	if log := p.stderr.await("a client does not trust the certificate"); !strings.Contains(log, "emulator.pem") || !strings.Contains(log, "db.example") {
		t.Errorf("the log does not say what to do about that: %s", log)
	}
	p.stop(t, os.Interrupt)
	b.fails(t, nil, "is it running?", "cert", "--endpoint=http://"+p.addr)
	b.fails(t, nil, "give both", "serve", anyPort, "--memory", "--tls-cert=x")
}

func testCheck(t *testing.T, b binary) {
	dir := t.TempDir()
	b.fails(t, nil, "there is no data in", "check", "--data="+dir)
	p := b.start(t, nil, "serve", anyPort, "--data="+dir)
	p.stop(t, syscall.SIGTERM)
	if o := b.run(t, nil, "check", "--data="+dir); o.code != 0 || !strings.HasPrefix(o.stdout, "ok: 0 items") {
		t.Errorf("check of clean data: %+v", o)
	}
	// A row that belongs to no container.
	db, err := pebblekv.Open(pebblekv.Options{Dir: filepath.Join(dir, "db")})
	if err != nil {
		t.Fatal(err)
	}
	var batch kv.Batch
	batch.Set([]byte("p\x00\x00\x00\x09\x00\x00\x00\x09\x00\x00m"), []byte("orphan"))
	if err := errors.Join(db.Commit(t.Context(), &batch), db.Close()); err != nil {
		t.Fatal(err)
	}
	o := b.fails(t, nil, "1 problem in", "check", "--data="+dir)
	if o.code != 1 || len(strings.Fields(o.stdout)) < 5 {
		t.Errorf("check of damaged data: %+v, want exit 1 and a sentence", o)
	}
	// Files that the storage engine cannot read.
	manifests, err := filepath.Glob(filepath.Join(dir, "db", "MANIFEST-*"))
	if err != nil || len(manifests) == 0 {
		t.Fatalf("no manifest in %s, %v", dir, err)
	}
	for _, name := range manifests {
		if err := os.WriteFile(name, []byte(strings.Repeat("garbage ", 100)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, command := range [][]string{{"check"}, {"serve", anyPort}} {
		if o := b.fails(t, nil, dir, append(command, "--data="+dir)...); o.code != 1 {
			t.Errorf("%s of broken files: %+v, want exit 1", command[0], o)
		}
	}
}

func testClock(t *testing.T, b binary) {
	p := b.start(t, nil, "serve", "--memory", "--test-clock", anyPort)
	at := "--endpoint=http://" + p.addr
	var first, second struct{ NowMs int64 }
	for _, c := range []struct {
		args []string
		into any
	}{
		{[]string{"clock", "freeze", at}, &first},
		{[]string{"clock", at, "advance", "90s"}, &second},
	} {
		o := b.run(t, nil, c.args...)
		if err := json.Unmarshal([]byte(o.stdout), c.into); o.code != 0 || err != nil {
			t.Errorf("mayfly %q: %+v, %v", c.args, o, err)
		}
	}
	if second.NowMs != first.NowMs+90_000 {
		t.Errorf("90 s after %d it is %d", first.NowMs, second.NowMs)
	}
	if o := b.run(t, nil, "clock", at+"/"); o.code != 0 || !strings.Contains(o.stdout, fmt.Sprint(second.NowMs)) {
		t.Errorf("clock: %+v, want %d", o, second.NowMs)
	}
	b.fails(t, nil, "backwards", "clock", "set", "2000-01-01T00:00:00Z", at)
	b.fails(t, nil, "401", "clock", "freeze", at, "--key="+ownKey)
	b.fails(t, nil, "cannot reach the server", "clock", "--endpoint=http://127.0.0.1:1")
	b.fails(t, nil, "no jump", "clock", "confirm", at)
	data := filepath.Join(t.TempDir(), "data")
	b.start(t, nil, "--data", data, anyPort).stop(t, syscall.SIGTERM)
	b.fails(t, nil, "not ahead", "clock", "rewind", "--data", data)
}
