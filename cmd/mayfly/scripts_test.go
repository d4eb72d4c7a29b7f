// SPDX-License-Identifier: MIT

package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mayflydb/mayfly"
)

// A server stops on a signal even while scripts loop in its workers, and a server that is
// killed leaves no workers behind.
func testScripts(t *testing.T, b binary) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("needs /proc to find workers")
	}
	for _, s := range []os.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		p := b.start(t, nil, "serve", anyPort, "--memory")
		p.post(t, "/dbs", "dbs", "", `{"id":"d"}`)
		p.post(t, "/dbs/d/colls", "colls", "dbs/d", `{"id":"c","partitionKey":{"paths":["/pk"]}}`)
		if found := workers(p.cmd.Process.Pid); len(found) != 0 {
			t.Errorf("before any script there are workers: %v", found)
		}
		const container = "dbs/d/colls/c"
		p.post(t, "/"+container+"/udfs", "udfs", container, `{"id":"spin","body":"function() { return [...{[Symbol.iterator]: () => ({next: Reflect.get.bind(null, {r: {done: false}}, 'r')})}] }"}`)
		const scripts = 3
		for range scripts {
			// Each client calls again and again: on a busy machine the first call may end
			// before the last begins.
			go func() {
				for {
					r, err := http.NewRequest("POST", "http://"+p.addr+"/"+container+"/docs", strings.NewReader(`{"query":"SELECT VALUE udf.spin()"}`))
					if err != nil {
						t.Error(err)
						return
					}
					r.Header.Set("Content-Type", "application/query+json")
					r.Header.Set("X-Ms-Documentdb-Isquery", "true")
					r.Header.Set("X-Ms-Documentdb-Partitionkey", `["k"]`)
					sign(t, r, mayfly.WellKnownKey, "docs", container)
					if _, _, err := do(r); err != nil {
						return // the server has ended
					}
				}
			}()
		}
		found := awaitWorkers(t, p.cmd.Process.Pid, scripts)
		if s == syscall.SIGTERM {
			p.stop(t, s)
		} else {
			_ = p.cmd.Process.Kill()
			<-p.ended
		}
		for _, pid := range found {
			await(t, fmt.Sprintf("worker %s ends", pid), func() bool {
				text, err := os.ReadFile(filepath.Join("/proc", pid, "cmdline"))
				return err != nil || !strings.Contains(string(text), "mayfly-script-worker")
			})
		}
	}
}

// workers returns the processes that a server has started.
func workers(pid int) []string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if len(text) == 0 {
		return nil
	}
	var found []string
	all, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range all {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended meanwhile
		}
		// The state and the parent follow the name in parentheses.
		_, rest, _ := strings.Cut(string(text), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == fmt.Sprint(pid) && fields[0] != "Z" {
			found = append(found, filepath.Base(filepath.Dir(name)))
		}
	}
	return found
}

func awaitWorkers(t *testing.T, pid, n int) (found []string) {
	t.Helper()
	await(t, fmt.Sprintf("there are %d workers", n), func() bool {
		found = workers(pid)
		return len(found) >= n
	})
	return found
}

// await waits until a condition holds.
func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(waitLimit); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited too long until %s", what)
		}
	}
}
