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

// TestMeasure measures the server's CPU time for reads and creates of items of 1 KiB, over
// HTTP/1.1 and over direct mode by turns, with eight requests in flight, and logs the medians
// of all rounds, and of the ratios within each, and the means. It needs a binary
// (MAYFLY_BINARY) and a machine with nothing else to do, so it runs only if it is asked to
// (MAYFLY_MEASURE is how many rounds). MAYFLY_MEASURE_SYNC=true is for a server that syncs.
func TestMeasure(t *testing.T) {
	rounds, _ := strconv.Atoi(os.Getenv("MAYFLY_MEASURE"))
	if rounds == 0 {
		t.Skip("MAYFLY_MEASURE is not set")
	}
	m := &measured{s: startBinary(t), micros: map[string][]float64{}}
	m.s.database("d")
	m.s.container("d", "c", "/pk")
	m.create(m.direct(false), "first")
	transports := []struct {
		name string
		do   func(op, id string) error
	}{{"HTTP", m.http()}, {"direct over TLS", m.direct(true)}, {"direct without TLS", m.direct(false)}}
	for i := range rounds {
		for _, op := range []string{"read", "create"} {
			for j := range transports {
				over := transports[(i+j)%len(transports)]
				m.round(t, op, over.name, over.do)
			}
		}
	}
	for _, op := range []string{"read", "create"} {
		for _, over := range transports {
			took, http := m.micros[op+over.name], m.micros[op+"HTTP"]
			ratios := make([]float64, rounds)
			for i := range ratios {
				ratios[i] = took[i] / http[i]
			}
			t.Logf("%-7s %-20s median %5.1f us, %.2f of HTTP; mean %5.1f us, %.2f of HTTP", op, over.name, median(took), median(ratios), mean(took), mean(took)/mean(http))
		}
	}
}

type measured struct {
	s      *testServer
	micros map[string][]float64 // CPU time per request, of each round
	next   atomic.Int64
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

// item1K is an item of about 1 KiB.
func item1K(id string) string {
	return `{"id":"` + id + `","pk":"p","text":"` + strings.Repeat("x", 960) + `"}`
}

func (m *measured) create(do func(op, id string) error, id string) {
	if err := do("create", id); err != nil {
		m.s.t.Fatal(err)
	}
}

// round sends requests for a while, eight at a time.
func (m *measured) round(t *testing.T, op, over string, do func(op, id string) error) {
	const inFlight, each = 8, 500 * time.Millisecond
	before, n := cpuTime(t, m.s.pid), atomic.Int64{}
	end := time.Now().Add(each)
	var wg sync.WaitGroup
	for range inFlight {
		wg.Go(func() {
			for time.Now().Before(end) {
				id := "first"
				if op == "create" {
					id = fmt.Sprint("i", m.next.Add(1))
				}
				if err := do(op, id); err != nil {
					t.Error(err)
					return
				}
				n.Add(1)
			}
		})
	}
	wg.Wait()
	took := cpuTime(t, m.s.pid) - before
	m.micros[op+over] = append(m.micros[op+over], float64(took.Microseconds())/float64(max(n.Load(), 1)))
}

func (m *measured) direct(secure bool) func(op, id string) error {
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
	return func(op, id string) error {
		r, want := m.s.item(rntbd.Read, id, "p", ""), 200
		if op == "create" {
			r, want = m.s.item(rntbd.Create, "", "p", item1K(id)), 201
		}
		a, err := c.Do(r)
		if err == nil && a.Status != want {
			err = fmt.Errorf("%s: %d %s", op, a.Status, a.Body)
		}
		return err
	}
}

func (m *measured) http() func(op, id string) error {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}
	m.s.t.Cleanup(client.CloseIdleConnections)
	return func(op, id string) error {
		method, path, link, body, want := "GET", "/dbs/d/colls/c/docs/"+id, "dbs/d/colls/c/docs/"+id, "", 200
		if op == "create" {
			method, path, link, body, want = "POST", "/dbs/d/colls/c/docs", "dbs/d/colls/c", item1K(id), 201
		}
		r, err := http.NewRequest(method, "http://"+m.s.addr+path, strings.NewReader(body))
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
		if res.StatusCode != want {
			return fmt.Errorf("%s: %s", op, res.Status)
		}
		return nil
	}
}

var listens = regexp.MustCompile(`listens on http://(\S+) and`)

// startBinary starts the binary with data in a directory of the test.
func startBinary(t *testing.T) *testServer {
	t.Helper()
	var log bytes.Buffer
	out := &lockedBuffer{b: &log}
	cmd := exec.Command(os.Getenv("MAYFLY_BINARY"), "serve", "--listen", "127.0.0.1:0", "--data", t.TempDir(), "--sync="+cmp.Or(os.Getenv("MAYFLY_MEASURE_SYNC"), "false"))
	cmd.Stdout, cmd.Stderr, cmd.Env = out, out, []string{}
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
