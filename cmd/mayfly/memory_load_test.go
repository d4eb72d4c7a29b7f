// SPDX-License-Identifier: MIT

// Loads that need many times the memory of the server. The server survives, stays below
// its limit, and answers every request with a result or with a time to try again.

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/kv/kvtest"
)

const (
	// loadMemoryMB is the memory limit of the server.
	loadMemoryMB = 512
	// loadTime is how long each load takes, times MAYFLY_LONG, up to mostLoadTime.
	loadTime     = 300 * time.Millisecond
	mostLoadTime = time.Minute
	// loadItems is how many items are sorted and grouped, times MAYFLY_LONG, up to
	// mostLoadItems.
	loadItems     = 12_000
	mostLoadItems = 300_000
	// bulkItems is how many of these are written in one request.
	bulkItems = 100
	// loadGroups is how many groups GROUP BY makes of them and has to hold.
	loadGroups = 60_000
	// arrayElements is the length of large arrays, each element of which has index rows.
	// Each writer needs a sixth of the memory, so that most of them wait.
	arrayElements = 200_000
	// arrayClients is how many write them, times MAYFLY_LONG, up to mostArrayClients.
	arrayClients     = 8
	mostArrayClients = 32
)

// load is a server and its clients.
type load struct {
	*process
	client            *http.Client
	answered, refused atomic.Int64
	late              atomic.Int64 // queries that took too long, on a machine that is busy with other work
	stopped           atomic.Int64 // functions
}

func testMemory(t *testing.T, b binary) {
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc")
	}
	p := b.start(t, nil, "serve", anyPort, "--no-sync", "--log-level=warn", fmt.Sprintf("--memory-limit=%d", loadMemoryMB<<20))
	l := &load{process: p, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 128}, Timeout: 2 * time.Minute}}
	defer l.client.CloseIdleConnections()
	l.must(t, "/dbs", "dbs", "", `{"id":"d"}`, nil, 201)
	l.must(t, "/dbs/d/colls", "colls", "dbs/d", `{"id":"c","partitionKey":{"paths":["/pk"]},
		"indexingPolicy":{"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/u/?"},{"path":"/pad/?"}]}}`, nil, 201)
	items := min(loadItems*kvtest.LongFactor(t), mostLoadItems)
	l.fill(t, items)
	for _, c := range []struct {
		name    string
		clients int
		request func(client, n int) (body string, query bool)
	}{
		{"items of 2 MB", 64, func(client, n int) (string, bool) {
			return fmt.Sprintf(`{"id":"large%d","pk":"w%d","u":"%s"}`, client, client, largeText()), false
		}},
		{"arrays", min(arrayClients*kvtest.LongFactor(t), mostArrayClients), func(client, n int) (string, bool) { return arrayItem(client, n), false }},
		{"sorts", 32, func(client, n int) (string, bool) {
			return `{"query":"SELECT * FROM c WHERE c.n >= 0 ORDER BY c.u OFFSET 5000 LIMIT 1000"}`, true
		}},
		{"groups", 32, func(client, n int) (string, bool) {
			return `{"query":"SELECT c.g, COUNT(1) AS n FROM c WHERE c.n >= 0 GROUP BY c.g"}`, true
		}},
	} {
		began := time.Now()
		l.run(t, c.clients, c.request)
		answered, refused, late := l.answered.Swap(0), l.refused.Swap(0), l.late.Swap(0)
		peak := l.peakMB(t)
		t.Logf("%s: %d answered, %d refused, %d late in %v, at most %d MB", c.name, answered, refused, late, time.Since(began).Round(time.Second), peak)
		if answered+late == 0 {
			t.Errorf("%s: no request was answered", c.name)
		}
		if peak > loadMemoryMB {
			t.Errorf("%s: the server took %d MB, more than %d", c.name, peak, loadMemoryMB)
		}
		l.idle(t)
	}
	l.bombs(t)
	l.must(t, "/dbs/d/colls/c/docs", "docs", "dbs/d/colls/c", `{"id":"after","pk":"p"}`, nil, 201)
	p.stop(t, os.Interrupt)
}

// largeText is as long as fits into an item with its id and key.
var largeText = sync.OnceValue(func() string { return strings.Repeat("x", 2<<20-200) })

// arrayItem returns an item with a large array of numbers that hardly any other item has.
func arrayItem(client, n int) string {
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"id":"array%d","pk":"w%d","a":[`, client, client)
	for i := range arrayElements {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(i*7 + client + n))
	}
	b.WriteString(`]}`)
	return b.String()
}

// fill writes the items that are sorted and grouped.
func (l *load) fill(t *testing.T, items int) {
	t.Helper()
	pad := strings.Repeat("p", 100)
	for first := 0; first < items; first += bulkItems {
		ops := make([]string, 0, bulkItems)
		for i := first; i < first+bulkItems; i++ {
			ops = append(ops, fmt.Sprintf(`{"operationType":"Create","resourceBody":{"id":"i%d","pk":"p","n":%d,"u":"%08d","g":"group%d","pad":"%s"}}`,
				i, i, i*7919%items, i%loadGroups, pad))
		}
		l.must(t, "/dbs/d/colls/c/docs", "docs", "dbs/d/colls/c", "["+strings.Join(ops, ",")+"]", map[string]string{
			"x-ms-cosmos-is-batch-request": "true", "x-ms-documentdb-partitionkey": `["p"]`,
		}, 200)
	}
}

// run lets clients send requests, one after the other, for the time of a load.
func (l *load) run(t *testing.T, clients int, request func(client, n int) (body string, query bool)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), min(loadTime*time.Duration(kvtest.LongFactor(t)), mostLoadTime))
	defer cancel()
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				body, query := request(i, n)
				headers := map[string]string{"x-ms-documentdb-is-upsert": "true", "Prefer": "return=minimal"}
				if query {
					headers = map[string]string{
						"x-ms-documentdb-isquery": "true", "Content-Type": "application/query+json",
						"x-ms-documentdb-partitionkey": `["p"]`, "x-ms-max-item-count": "1000",
					}
				}
				status, after, answer, err := l.post(t, "/dbs/d/colls/c/docs", "docs", "dbs/d/colls/c", body, headers)
				switch {
				case err == nil && (status == 200 || status == 201):
					l.answered.Add(1)
				case err == nil && status == 429 && after != "" && strings.Contains(answer, "memory"):
					l.refused.Add(1)
				case err == nil && status == 400 && strings.Contains(answer, "as long as a query may"):
					l.late.Add(1)
				case err == nil && (status == 400 || status == 408) && strings.Contains(answer, "the function "):
					l.stopped.Add(1) // for its memory, or for its time where the machine is busy
				case err == nil && status == 403 && strings.Contains(answer, "is blocked for execution"):
					l.refused.Add(1)
				case err == nil && status == 429 && after != "" && strings.Contains(answer, "scripts"):
					l.refused.Add(1)
				default:
					t.Errorf("status %d, %v: %.300s", status, err, answer)
					cancel()
				}
			}
		})
	}
	all.Wait()
}

// bombClients is how many clients call functions that take all memory they can.
const bombClients = 8

// bombs runs functions that fill their memory, in steps and in one piece. The server and
// all workers together must stay below the limit.
func (l *load) bombs(t *testing.T) {
	t.Helper()
	for id, body := range map[string]string{
		"grow":  `function() { const all = []; for (;;) all.push(new Array(1000).fill(0)) }`,
		"ropes": `function() { let s = 'x'; for (;;) { s += s; s.indexOf('y') } }`,
	} {
		l.must(t, "/dbs/d/colls/c/udfs", "udfs", "dbs/d/colls/c", fmt.Sprintf(`{"id":%q,"body":%q}`, id, body), nil, 201)
	}
	most := make(chan int, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		peak := 0
		for ; ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
			// Memory mapped from files, above all the program, is not counted: the system
			// reclaims such pages before it runs out of memory.
			together := statusMB(fmt.Sprint(l.cmd.Process.Pid), "RssAnon:")
			for _, pid := range workers(l.cmd.Process.Pid) {
				// Until it runs the worker's program, a new process shares the server's memory.
				if line, _ := os.ReadFile(filepath.Join("/proc", pid, "cmdline")); bytes.Contains(line, []byte("script-worker")) {
					together += statusMB(pid, "RssAnon:")
				}
			}
			peak = max(peak, together)
		}
		most <- peak
	}()
	l.run(t, bombClients, func(client, n int) (string, bool) {
		return fmt.Sprintf(`{"query":"SELECT VALUE udf.%s()"}`, []string{"grow", "ropes"}[(client+n)%2]), true
	})
	cancel()
	peak := <-most
	t.Logf("bombs: %d stopped, %d refused, at most %d MB with the workers", l.stopped.Load(), l.refused.Load(), peak)
	if l.stopped.Load() == 0 || peak > loadMemoryMB {
		t.Errorf("bombs: %d were stopped, and %d MB taken", l.stopped.Load(), peak)
	}
	l.idle(t)
}

func (l *load) must(t *testing.T, path, kind, link, body string, headers map[string]string, want int) {
	t.Helper()
	if status, _, answer, err := l.post(t, path, kind, link, body, headers); err != nil || status != want {
		t.Fatalf("POST %s: status %d, %v: %.300s", path, status, err, answer)
	}
}

func (l *load) post(t *testing.T, path, kind, link, body string, headers map[string]string) (status int, after, answer string, err error) {
	r, err := http.NewRequest("POST", "http://"+l.addr+path, strings.NewReader(body))
	if err != nil {
		return 0, "", "", err
	}
	sign(t, r, mayfly.WellKnownKey, kind, link)
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	res, err := l.client.Do(r)
	if err != nil {
		return 0, "", "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return res.StatusCode, res.Header.Get("x-ms-retry-after-ms"), string(text), err
}

// startLimitBytes is what a server may allocate until it answers the first request, with 8 MiB
// of the tables of the row cache, which are not touched before they are used. What a start
// leaves stays in memory, since the collector has no reason to run.
const startLimitBytes = 12 << 20

var allocated = regexp.MustCompile(`(?m)^go_memstats_alloc_bytes_total (\S+)$`)

// A server takes little memory before it is used.
func testStartMemory(t *testing.T, b binary) {
	p := b.start(t, nil, "--memory", anyPort)
	_, page := p.get(t, "/_mayfly/metrics", mayfly.WellKnownKey)
	m := allocated.FindSubmatch(page)
	if m == nil {
		t.Fatal("the metrics do not have what was allocated")
	}
	bytes, err := strconv.ParseFloat(string(m[1]), 64)
	if err != nil || bytes > startLimitBytes {
		t.Errorf("the start has allocated %.1f MiB, want at most %d: %v", bytes/(1<<20), startLimitBytes>>20, err)
	}
	t.Logf("the start has allocated %.1f MiB", bytes/(1<<20))
}

// peakMB returns the most memory that the server has had so far.
func (l *load) peakMB(t *testing.T) int {
	t.Helper()
	peak := statusMB(fmt.Sprint(l.cmd.Process.Pid), "VmHWM:")
	if peak == 0 {
		t.Fatal("/proc does not show the server's memory")
	}
	return peak
}

// statusMB returns a figure of a process's memory, or 0 if there is no such process.
func statusMB(pid, name string) int {
	text, _ := os.ReadFile(filepath.Join("/proc", pid, "status"))
	_, rest, _ := strings.Cut(string(text), name)
	var kB int
	_, _ = fmt.Sscan(rest, &kB)
	return kB / 1024
}

var memoryFigure = regexp.MustCompile(`(?m)^mayfly_memory_(bytes|waiting) (\S+)$`)

// idle waits until the server holds no memory for requests. There must be none under way.
func (l *load) idle(t *testing.T) {
	t.Helper()
	var found [][]string
	for limit := time.Now().Add(waitLimit); time.Now().Before(limit); time.Sleep(10 * time.Millisecond) {
		_, page := l.get(t, "/_mayfly/metrics", mayfly.WellKnownKey)
		found = memoryFigure.FindAllStringSubmatch(string(page), -1)
		if len(found) == 2 && found[0][2] == "0" && found[1][2] == "0" {
			return
		}
	}
	t.Errorf("without a request: %v", found)
}
