// SPDX-License-Identifier: MIT

package rest

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"runtime/pprof"
	"strings"
	"testing"
	"time"
)

// askPprof asks for a profile with a credential.
func askPprof(t *testing.T, h *Handler, method, page string, authorize func(*http.Request)) answer {
	t.Helper()
	r, err := http.NewRequest(method, "http://localhost/_mayfly/pprof/"+page, nil)
	if err != nil {
		t.Fatal(err)
	}
	authorize(r)
	return serve(h, r)
}

func bearerKey(key string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+key) }
}

func passwordKey(key string) func(*http.Request) {
	return func(r *http.Request) { r.SetBasicAuth("", key) }
}

func TestPprof(t *testing.T) {
	h := newTestHandlerWith(t, testHandlerOptions{keys: []string{testKey, secondKey}, readOnlyKeys: []string{readOnlyKey}})
	master := bearerKey(testKey)
	for page, want := range map[string]string{
		"": "\nheap\n", "goroutine?debug=1": "goroutine profile: total", "goroutine?debug=2": "TestPprof",
		"heap?debug=1&gc=1": "heap profile:", "trace": "go 1.",
	} {
		if a := askPprof(t, h, "GET", page, master); a.status != 200 || !strings.Contains(string(a.body), want) {
			t.Errorf("%q: status %d, %.100q, want %q in it", page, a.status, a.body, want)
		}
	}
	either := []func(*http.Request){bearerKey(testKey), passwordKey(secondKey)}
	for page, credentials := range map[string][]func(*http.Request){
		"heap": either, "heap?gc=1": either, "allocs": either, "goroutine": either, "threadcreate": either, "block": either, "mutex": either,
		"profile?seconds=1": either[1:], // which waits for a second
	} {
		for _, authorize := range credentials {
			a := askPprof(t, h, "GET", page, authorize)
			z, err := gzip.NewReader(bytes.NewReader(a.body))
			if err == nil {
				_, err = io.Copy(io.Discard, z)
			}
			if a.status != 200 || err != nil {
				t.Errorf("%s: status %d, %v: %.100q", page, a.status, err, a.body)
			}
		}
	}
	for _, c := range []struct {
		method, page string
		authorize    func(*http.Request)
		want         int
	}{
		{"GET", "heap", func(*http.Request) {}, 401},
		{"GET", "heap", bearerKey(strangeKey), 401},
		{"GET", "heap", passwordKey(strangeKey), 401},
		{"GET", "", passwordKey(""), 401},
		{"GET", "heap", bearerKey(readOnlyKey), 403},
		{"GET", "heap", passwordKey(readOnlyKey), 403},
		{"POST", "heap", master, 405},
		{"GET", "nonsense", master, 404},
		{"GET", "cmdline", master, 404}, // a key may be in it
		{"GET", "heap?debug=x", master, 400},
		{"GET", "heap?seconds=5", master, 400},
		{"GET", "profile?seconds=0", master, 400},
		{"GET", "profile?seconds=61", master, 400},
		{"GET", "trace?seconds=-1", master, 400},
	} {
		askPprof(t, h, c.method, c.page, c.authorize).failureText(t, c.want, 0)
	}
	// A password is accepted nowhere else: a browser sends one that it was given unasked.
	r, err := http.NewRequest("GET", "http://localhost/_mayfly/clock", nil)
	if err != nil {
		t.Fatal(err)
	}
	passwordKey(testKey)(r)
	serve(h, r).failureText(t, 401, 0)
}

// There is one profile at a time, and it ends with the server.
func TestPprofOneAtATime(t *testing.T) {
	h := newTestHandler(t)
	if err := pprof.StartCPUProfile(io.Discard); err != nil {
		t.Fatal(err)
	}
	a := askPprof(t, h, "GET", "profile?seconds=1", bearerKey(testKey))
	pprof.StopCPUProfile()
	a.failureText(t, 409, 0)
	h.followers.close()
	begin := time.Now()
	a = askPprof(t, h, "GET", "profile?seconds=60", bearerKey(testKey))
	if took := time.Since(begin); a.status != 200 || len(a.body) == 0 || took > 30*time.Second {
		t.Errorf("a profile of a server that stops: status %d, %d bytes after %v", a.status, len(a.body), took)
	}
}
