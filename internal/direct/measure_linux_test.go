// SPDX-License-Identifier: MIT

package direct_test

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/direct/directclient"
	"github.com/mayflydb/mayfly/internal/rntbd"
)

// TestMeasure measures the server's CPU time for reads and creates of items of 1 KiB, over all
// transports by turns, beside a server that only answers with 1 KiB over HTTP/1.1, which is
// what net/http takes for itself. It logs a table with the medians and means of all rounds,
// and of the ratios within each round. It needs a machine with nothing else to do, so it runs
// only if it is asked to:
//
//	MAYFLY_MEASURE=14 go test -run TestMeasure -v ./internal/direct
//
// That is the number of rounds. MAYFLY_MEASURE_CONNECTIONS is how many connections there are
// (1), MAYFLY_MEASURE_INFLIGHT how many requests each has in flight (8): over HTTP/1.1 there
// are as many connections as requests. The server syncs, as by default, unless
// MAYFLY_MEASURE_SYNC is false. MAYFLY_BINARY is another binary than that of this tree.
func TestMeasure(t *testing.T) {
	rounds := setting(t, "MAYFLY_MEASURE", 0)
	if rounds == 0 {
		t.Skip("MAYFLY_MEASURE is not set")
	}
	m := &measured{s: startBinary(t), micros: map[string][]float64{}}
	m.connections, m.inFlight = setting(t, "MAYFLY_MEASURE_CONNECTIONS", 1), setting(t, "MAYFLY_MEASURE_INFLIGHT", 8)
	m.s.database("d")
	m.s.container("d", "c", "/pk")
	null := startNull(t)
	plain, secure := "http://"+m.s.addr, "https://"+m.s.addr
	var one, two, clear http.Protocols
	one.SetHTTP1(true)
	two.SetHTTP2(true)
	clear.SetUnencryptedHTTP2(true)
	const nothing, http1 = "nothing, HTTP/1.1", "HTTP/1.1"
	transports := []struct {
		name string
		pid  int
		do   []func(op, id string) error // for each connection
	}{
		{nothing, null.pid, m.http("http://"+null.addr, &one)},
		{http1, m.s.pid, m.http(plain, &one)},
		{"HTTP/1.1 over TLS", m.s.pid, m.http(secure, &one)},
		{"HTTP/2", m.s.pid, m.http(plain, &clear)},
		{"HTTP/2 over TLS", m.s.pid, m.http(secure, &two)},
		{"direct", m.s.pid, m.direct(false)},
		{"direct over TLS", m.s.pid, m.direct(true)},
	}
	m.create(transports[1].do[0], "first")
	for i := range rounds {
		for _, op := range []string{"read", "create"} {
			for j := range transports {
				over := transports[(i+j)%len(transports)]
				m.round(t, op, over.name, over.pid, over.do)
			}
		}
	}
	t.Logf("rounds: %d, connections: %d, requests in flight on each: %d", rounds, m.connections, m.inFlight)
	t.Logf("%-26s %7s %8s %8s %7s %8s %8s", "us of CPU for a request", "MEDIAN", "/NOTHING", "/HTTP1", "MEAN", "/NOTHING", "/HTTP1")
	for _, op := range []string{"read", "create"} {
		for _, over := range transports {
			took := m.micros[op+over.name]
			line := fmt.Sprintf("%-7s %-18s %7.1f", op, over.name, median(took))
			for _, other := range []string{nothing, http1} {
				ratios := make([]float64, rounds)
				for i := range ratios {
					ratios[i] = took[i] / m.micros[op+other][i]
				}
				line += fmt.Sprintf(" %8.2f", median(ratios))
			}
			line += fmt.Sprintf(" %7.1f", mean(took))
			for _, other := range []string{nothing, http1} {
				line += fmt.Sprintf(" %8.2f", mean(took)/mean(m.micros[op+other]))
			}
			t.Log(line)
		}
	}
}

// setting returns a number from the environment.
func setting(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxSetting {
		t.Fatalf("%s is %q, want a number from 1 to %d", name, text, maxSetting)
	}
	return n
}

// maxSetting bounds the settings of a measurement.
const maxSetting = 1000

type measured struct {
	s      *testServer
	micros map[string][]float64 // CPU time per request, of each round
	next   atomic.Int64

	connections, inFlight int
}

func median(of []float64) float64 {
	sorted := slices.Sorted(slices.Values(of))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// mean has the flushes and compactions of the store in it, which fall into some rounds.
func mean(of []float64) float64 {
	sum := 0.0
	for _, v := range of {
		sum += v
	}
	return sum / float64(len(of))
}

func (m *measured) create(do func(op, id string) error, id string) {
	if err := do("create", id); err != nil {
		m.s.t.Fatal(err)
	}
}

// round sends requests for a while, over all connections.
func (m *measured) round(t *testing.T, op, over string, pid int, do []func(op, id string) error) {
	const each = 500 * time.Millisecond
	before, n := cpuTime(t, pid), atomic.Int64{}
	end := time.Now().Add(each)
	var wg sync.WaitGroup
	for i := range m.connections * m.inFlight {
		wg.Go(func() {
			for time.Now().Before(end) {
				id := "first"
				if op == "create" {
					id = fmt.Sprint("i", m.next.Add(1))
				}
				if err := do[i%m.connections](op, id); err != nil {
					t.Error(err)
					return
				}
				n.Add(1)
			}
		})
	}
	wg.Wait()
	took := cpuTime(t, pid) - before
	m.micros[op+over] = append(m.micros[op+over], float64(took.Microseconds())/float64(max(n.Load(), 1)))
}

func (m *measured) direct(secure bool) (all []func(op, id string) error) {
	for range m.connections {
		conn, err := net.Dial("tcp", m.s.addr)
		if err != nil {
			m.s.t.Fatal(err)
		}
		if secure {
			conn = tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
		}
		c, err := directclient.Open(conn)
		if err != nil {
			m.s.t.Fatal(err)
		}
		m.s.t.Cleanup(func() { _ = c.Close() })
		all = append(all, func(op, id string) error {
			r, want := m.s.item(rntbd.Read, id, "p", ""), 200
			if op == "create" {
				r, want = m.s.item(rntbd.Create, "", "p", item1K(id)), 201
			}
			a, err := c.Do(r)
			if err == nil && a.Status != want {
				err = fmt.Errorf("%s: %d %s", op, a.Status, a.Body)
			}
			return err
		})
	}
	return all
}

// http sends requests over versions of HTTP. A client has one connection of HTTP/2, and one of
// HTTP/1.1 for each request in flight.
func (m *measured) http(url string, versions *http.Protocols) (all []func(op, id string) error) {
	for range m.connections {
		client := &http.Client{Transport: &http.Transport{
			MaxIdleConnsPerHost: m.inFlight, Protocols: versions, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		}}
		m.s.t.Cleanup(client.CloseIdleConnections)
		all = append(all, func(op, id string) error {
			method, path, link, body, want := "GET", "/dbs/d/colls/c/docs/"+id, "dbs/d/colls/c/docs/"+id, "", 200
			if op == "create" {
				method, path, link, body, want = "POST", "/dbs/d/colls/c/docs", "dbs/d/colls/c", item1K(id), 201
			}
			r, err := http.NewRequest(method, url+path, strings.NewReader(body))
			if err != nil {
				return err
			}
			m.s.sign(r, "docs", link)
			r.Header.Set("x-ms-documentdb-partitionkey", `["p"]`)
			res, err := client.Do(r)
			if err != nil {
				return err
			}
			defer res.Body.Close()
			if _, err := io.Copy(io.Discard, res.Body); err != nil {
				return err
			}
			if major := res.ProtoMajor; res.StatusCode != want || (major == 1) != versions.HTTP1() {
				return fmt.Errorf("%s: %s over HTTP/%d", op, res.Status, major)
			}
			return nil
		})
	}
	return all
}

func startNull(t *testing.T) *testServer {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = []string{nullServer + "=1"}
	return startServer(t, cmd)
}

var listens = regexp.MustCompile(`listens on http://(\S+) and`)

// startBinary starts the binary with data in a directory of the test.
func startBinary(t *testing.T) *testServer {
	t.Helper()
	binary := os.Getenv("MAYFLY_BINARY")
	if binary == "" {
		binary = filepath.Join(t.TempDir(), "mayfly")
		if out, err := exec.Command("go", "build", "-o", binary, "github.com/mayflydb/mayfly/cmd/mayfly").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	cmd := exec.Command(binary, "serve", "--listen", "127.0.0.1:0", "--data", t.TempDir(), "--sync="+cmp.Or(os.Getenv("MAYFLY_MEASURE_SYNC"), "true"))
	cmd.Env = []string{}
	return startServer(t, cmd)
}

// startServer starts a program, and waits until it says where it listens.
func startServer(t *testing.T, cmd *exec.Cmd) *testServer {
	t.Helper()
	var log bytes.Buffer
	out := &lockedBuffer{b: &log}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	for end := time.Now().Add(waitLimit); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if found := listens.FindStringSubmatch(out.String()); found != nil {
			return &testServer{t: t, addr: found[1], masterKey: mayfly.WellKnownKey, pid: cmd.Process.Pid}
		}
	}
	t.Fatalf("the server does not start: %s", out)
	return nil
}

type lockedBuffer struct {
	mu sync.Mutex
	b  *bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// cpuTime returns the CPU time that a process has taken.
func cpuTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	const tick = 10 * time.Millisecond
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	var ticks int64
	for _, field := range fields[11:13] { // user and system
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * tick
}
