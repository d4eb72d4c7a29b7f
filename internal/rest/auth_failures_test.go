// SPDX-License-Identifier: MIT

package rest

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflydb/mayfly/internal/api"
)

// Each reason for a refusal is counted, once.
func TestFailuresAreCounted(t *testing.T) {
	w := newAccessWorld(t)
	const name = `mayfly_authentication_failures_total{reason="%s"}`
	for _, credential := range []string{"none", "none", "strange", "garbled", "expired", "all", "read", "key"} {
		w.try(t, "PUT", "/dbs/d/colls/c", credential)
	}
	ask := func(path, authorization string) {
		r := signedRequest(t, "GET", "/dbs", nil, map[string]string{"Authorization": authorization})
		r.URL.Path = path
		serve(w.h, r)
	}
	ask("/_mayfly/metrics", "Bearer nonsense")
	ask("/_mayfly/pprof/heap", "Bearer nonsense")
	ask("/_mayfly/ttl/status", "")
	date := dateText(time.Now().Add(-time.Hour))
	serve(w.h, signedRequest(t, "GET", "/dbs", nil, map[string]string{
		"X-Ms-Date": date, "Authorization": url.QueryEscape(masterToken(clientSignature(t, testKey, "GET", "dbs", "", date, ""))),
	}))
	got := scrapeOf(t, w.h)
	wantFigures(t, got, map[string]float64{
		fmt.Sprintf(name, "missing"): 3, fmt.Sprintf(name, "wrong"): 4, fmt.Sprintf(name, "expired"): 1, fmt.Sprintf(name, "date"): 1,
	})
}

// A connection with many failed requests gets one refusal in a second. Other connections,
// and requests that need no credential, do not wait.
func TestFailuresAreLimited(t *testing.T) {
	const maxFailuresAtOnce, failureEvery = 10, time.Second
	synctest.Test(t, func(t *testing.T) {
		h, err := New(Options{Keys: []string{testKey}, Account: api.Account{Regions: []string{"Here"}, Consistency: "Session"}, Memory: testMemory(t)})
		if err != nil {
			t.Fatal(err)
		}
		root := serveInMemory(t, h)
		connect := func() (ask func(path string, status int) time.Duration) {
			conn := root.dial("G") // and the rest of GET below
			answers, first := bufio.NewReader(conn), 1
			return func(path string, status int) time.Duration {
				t.Helper()
				begin := time.Now()
				if _, err := io.WriteString(conn, ("GET " + path + " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer guess\r\n\r\n")[first:]); err != nil {
					t.Fatal(err)
				}
				first = 0
				res, err := http.ReadResponse(answers, nil)
				if err != nil {
					t.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, res.Body)
				if res.StatusCode != status {
					t.Errorf("%s is answered %d, want %d", path, res.StatusCode, status)
				}
				return time.Since(begin)
			}
		}
		ask := connect()
		for i := range 3 * maxFailuresAtOnce {
			path := []string{"/dbs", "/_mayfly/clock", "/_mayfly/pprof/heap"}[i%3]
			want := time.Duration(0)
			if i >= maxFailuresAtOnce {
				want = failureEvery
			}
			if got := ask(path, 401); got != want {
				t.Errorf("the answer %d waited for %v, want %v", i, got, want)
			}
			if got := ask("/_mayfly/health", 200); got != 0 {
				t.Errorf("what needs no key waited for %v", got)
			}
		}
		if got := connect()("/dbs", 401); got != 0 {
			t.Errorf("another connection waited for %v", got)
		}
		time.Sleep(time.Minute)
		if got := ask("/dbs", 401); got != 0 {
			t.Errorf("a minute later the answer waited for %v", got)
		}
	})
}
