// SPDX-License-Identifier: MIT

package compose

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

const (
	root = "../.."
	// key is one of a user's own: the servers listen on all addresses.
	key       = "bWF5Zmx5IG1heWZseSBtYXlmbHkgbWF5Zmx5IG1heWZseSBtYXlmbHkgbWF5Zmx5IG1heWZseSBtYXlmbHk="
	waitLimit = time.Minute
)

// file is what this test reads of the file.
type file struct {
	Services map[string]service
	Configs  map[string]struct{ Content string }
	Volumes  map[string]any
}

type service struct {
	Image       string
	Build       struct{ Context string }
	Command     []string
	Environment map[string]string
	Ports       []string
	Configs     []struct{ Source, Target string }
	Healthcheck struct{ Test []string }
}

func read(t *testing.T) (f file) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "deploy/compose.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &f); err != nil {
		t.Fatal(err)
	}
	return f
}

// world has the processes in place of the containers.
type world struct {
	t       *testing.T
	binary  string
	replace *strings.Replacer // what is another on this machine
	nodes   map[string]*exec.Cmd
	ports   map[string]int
}

// freePorts returns ports that were free.
func freePorts(t *testing.T, n int) (ports []int) {
	t.Helper()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports
}

// start starts a program that ends with the test.
func (w *world) start(program string, env []string, args ...string) *exec.Cmd {
	w.t.Helper()
	var log bytes.Buffer
	cmd := exec.Command(program, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = env, &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if w.t.Failed() {
			w.t.Logf("%s %s:\n%s", program, args, log.Bytes())
		}
	})
	return cmd
}

func (w *world) startNode(name string, s service) {
	var env, args []string
	for k, v := range s.Environment {
		env = append(env, k+"="+w.replace.Replace(v))
	}
	for _, arg := range s.Command {
		arg = strings.ReplaceAll(arg, "0.0.0.0:8081", fmt.Sprintf("0.0.0.0:%d", w.ports[name]))
		args = append(args, w.replace.Replace(arg))
	}
	w.nodes[name] = w.start(w.binary, env, args...)
}

func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(waitLimit); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v", what, waitLimit)
		}
	}
}

// send sends a request of the protocol by way of the balancer, on a connection of its own.
func (w *world) send(method, kind, link, path, body string, headers ...string) (int, string, error) {
	date := strings.ToLower(time.Now().UTC().Format(http.TimeFormat))
	secret, err := base64.StdEncoding.DecodeString(key)
	if err != nil {
		return 0, "", err
	}
	mac := hmac.New(sha256.New, secret)
	fmt.Fprintf(mac, "%s\n%s\n%s\n%s\n\n", strings.ToLower(method), kind, link, date)
	r, err := http.NewRequest(method, fmt.Sprintf("http://127.0.0.1:%d%s", w.ports["balancer"], path), strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("Authorization", url.QueryEscape("type=master&ver=1.0&sig="+base64.StdEncoding.EncodeToString(mac.Sum(nil))))
	r.Header.Set("X-Ms-Date", date)
	r.Header.Set("X-Ms-Version", "2018-12-31")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 20 * time.Second}
	a, err := client.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer a.Body.Close()
	text, err := io.ReadAll(io.LimitReader(a.Body, 1<<20))
	return a.StatusCode, string(text), err
}

func (w *world) must(want int, method, kind, link, path, body string, headers ...string) {
	w.t.Helper()
	if status, text, err := w.send(method, kind, link, path, body, headers...); err != nil || status != want {
		w.t.Fatalf("%s %s: status %d, want %d, %v: %s", method, path, status, want, err, text)
	}
}

// TestComposeFile: what the file says starts, and goes on while nodes are restarted one after
// another, and while one is killed.
func TestComposeFile(t *testing.T) {
	sockets, haproxy := os.Getenv("MAYFLY_POSTGRES_SOCKETS"), ""
	if sockets == "" {
		t.Skip("SKIPPED: run test/compose/run, which starts PostgreSQL")
	}
	haproxy, err := exec.LookPath("haproxy")
	if err != nil {
		if haproxy = "/usr/sbin/haproxy"; exec.Command(haproxy, "-v").Run() != nil {
			t.Fatal("haproxy is not installed")
		}
	}
	f := read(t)
	w := &world{t: t, nodes: map[string]*exec.Cmd{}, ports: map[string]int{}}
	w.build(f.Services["a"])
	ports := freePorts(t, 1+len(f.Services))
	w.ports["balancer"] = ports[0]
	replaced := []string{
		"${POSTGRES_PASSWORD}", "secret",
		"@db/", "@" + url.QueryEscape(sockets) + "/",
		"bind :8081", fmt.Sprintf("bind 127.0.0.1:%d", w.ports["balancer"]),
	}
	var names []string
	for name, s := range f.Services {
		if s.Image != "mayfly" {
			continue
		}
		names = append(names, name)
		w.ports[name] = ports[len(names)]
		replaced = append(replaced, name+":8081", fmt.Sprintf("127.0.0.1:%d", w.ports[name]))
	}
	if len(names) != 3 {
		t.Fatalf("the servers are %s, want three", names)
	}
	checkVariables(t, &f)
	w.replace = strings.NewReplacer(append(replaced, f.Services["a"].Environment["MAYFLY_KEY"], key)...)
	for _, name := range names {
		w.startNode(name, f.Services[name])
	}
	balancer := f.Services["balancer"]
	if balancer.Ports[0] != "127.0.0.1:8081:8081" || balancer.Configs[0].Target != "/usr/local/etc/haproxy/haproxy.cfg" {
		t.Errorf("the balancer is %+v", balancer)
	}
	config := filepath.Join(t.TempDir(), "haproxy.cfg")
	if err := os.WriteFile(config, []byte(w.replace.Replace(f.Configs[balancer.Configs[0].Source].Content)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(haproxy, "-c", "-f", config).CombinedOutput(); err != nil || bytes.Contains(out, []byte("[WARNING]")) {
		t.Fatalf("haproxy -c: %v: %s", err, out)
	}
	w.start(haproxy, nil, "-db", "-f", config)

	until(t, "the account is there", func() bool { status, _, err := w.send("GET", "", "", "/", ""); return err == nil && status == 200 })
	w.must(201, "POST", "dbs", "", "/dbs", `{"id":"d"}`)
	w.must(201, "POST", "colls", "dbs/d", "/dbs/d/colls", `{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}`, "x-ms-offer-throughput", "60000")
	n := 0
	write := func() {
		t.Helper()
		for range 30 {
			id := fmt.Sprint(n)
			n++
			w.must(201, "POST", "docs", "dbs/d/colls/c", "/dbs/d/colls/c/docs", fmt.Sprintf(`{"id":%q,"pk":%q}`, id, id), "x-ms-documentdb-partitionkey", `["`+id+`"]`)
		}
	}
	write()
	ready := func(name string) bool {
		a, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/_mayfly/ready", w.ports[name]))
		if err != nil {
			return false
		}
		defer a.Body.Close()
		return a.StatusCode == 200
	}
	for _, name := range names {
		until(t, "node "+name+" is ready", func() bool { return ready(name) })
	}
	w.staySignedIn()
	for _, name := range names { // as docker compose up does with a new image
		if err := w.nodes[name].Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := w.nodes[name].Wait(); err != nil {
			t.Fatalf("node %s ended with %v", name, err)
		}
		until(t, "the balancer leaves node "+name+" out", func() bool { status, _, err := w.send("GET", "", "", "/", ""); return err == nil && status == 200 })
		write()
		w.startNode(name, f.Services[name])
		until(t, "node "+name+" is ready", func() bool { return ready(name) })
	}
	if err := w.nodes["b"].Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = w.nodes["b"].Wait()
	until(t, "the balancer leaves node b out", func() bool {
		status, _, err := w.send("GET", "docs", "dbs/d/colls/c/docs/0", "/dbs/d/colls/c/docs/0", "", "x-ms-documentdb-partitionkey", `["0"]`)
		return err == nil && status == 200
	})
	time.Sleep(2 * time.Second) // two checks of the balancer fail
	for i := range n {
		id := fmt.Sprint(i)
		w.must(200, "GET", "docs", "dbs/d/colls/c/docs/"+id, "/dbs/d/colls/c/docs/"+id, "", "x-ms-documentdb-partitionkey", `["`+id+`"]`)
	}
	write()
}

// staySignedIn: a browser's session of the explorer holds on each of its connections, while
// requests of the protocol come to all nodes.
func (w *world) staySignedIn() {
	w.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		w.t.Fatal(err)
	}
	// The certificate is that of the nodes, and the test trusts it as it is.
	browser := http.Client{Jar: jar, Timeout: 20 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
	at := fmt.Sprintf("https://127.0.0.1:%d/_explorer/session", w.ports["balancer"])
	signedIn := func(method, body string) {
		w.t.Helper()
		r, err := http.NewRequest(method, at, strings.NewReader(body))
		if err != nil {
			w.t.Fatal(err)
		}
		r.Header.Set("X-Mayfly-Explorer", "1")
		r.Header.Set("Origin", strings.TrimSuffix(at, "/_explorer/session"))
		a, err := browser.Do(r)
		if err != nil {
			w.t.Fatal(err)
		}
		defer a.Body.Close()
		text, err := io.ReadAll(io.LimitReader(a.Body, 1<<20))
		if err != nil || a.StatusCode != 200 || !strings.Contains(string(text), `"signedIn":true`) {
			w.t.Fatalf("%s %s: %d, %v: %s", method, at, a.StatusCode, err, text)
		}
	}
	signedIn("POST", fmt.Sprintf(`{"key":%q}`, key))
	for range 12 { // connections, four for each node if they were shared out
		signedIn("GET", "")
	}
}

// build builds the binary as the image's recipe does.
func (w *world) build(s service) {
	w.t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "deploy/compose.yaml"))
	if err != nil {
		w.t.Fatal(err)
	}
	run := regexp.MustCompile(`(?m)^ +RUN (.* -o )/mayfly( .*)$`).FindSubmatch(text)
	if run == nil || s.Build.Context != ".." {
		w.t.Fatal("the file does not say how the image is built")
	}
	if w.binary = os.Getenv("MAYFLY_BINARY"); w.binary != "" {
		return
	}
	w.binary = filepath.Join(w.t.TempDir(), "mayfly")
	build := exec.Command("sh", "-c", string(run[1])+w.binary+string(run[2]))
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		w.t.Fatalf("%s: %v: %s", run[0], err, out)
	}
}

// checkVariables checks that the user is told which variables to set.
func checkVariables(t *testing.T, f *file) {
	t.Helper()
	for name, text := range map[string]string{
		"POSTGRES_PASSWORD": f.Services["db"].Environment["POSTGRES_PASSWORD"], "MAYFLY_KEY": f.Services["a"].Environment["MAYFLY_KEY"],
	} {
		if !strings.HasPrefix(text, "${"+name+":?") {
			t.Errorf("%s is %q, which does not say that it has to be set", name, text)
		}
	}
	for name, s := range f.Services {
		for _, c := range s.Configs {
			if f.Configs[c.Source].Content == "" {
				t.Errorf("service %s names the config %q, which is not there", name, c.Source)
			}
		}
	}
}
