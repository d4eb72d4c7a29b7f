// SPDX-License-Identifier: MIT

package rest

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// clientsOf returns clients that speak one version of HTTP each, by name.
func clientsOf(t testing.TB) map[string]*http.Client {
	clients := map[string]*http.Client{}
	for name, set := range map[string]func(*http.Protocols){
		"http HTTP/1.1":  func(p *http.Protocols) { p.SetHTTP1(true) },
		"http HTTP/2.0":  func(p *http.Protocols) { p.SetUnencryptedHTTP2(true) },
		"https HTTP/1.1": func(p *http.Protocols) { p.SetHTTP1(true) },
		"https HTTP/2.0": func(p *http.Protocols) { p.SetHTTP1(true); p.SetHTTP2(true) },
	} {
		transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, Protocols: new(http.Protocols)}
		set(transport.Protocols)
		t.Cleanup(transport.CloseIdleConnections)
		clients[name] = &http.Client{Transport: transport, Timeout: time.Minute}
	}
	return clients
}

// One port serves both versions, with TLS and without.
func TestServerSpeaksAllVersions(t *testing.T) {
	addr := startServer(t, http.HandlerFunc(describeRequest), func(*http.Server) {})
	for name, client := range clientsOf(t) {
		scheme, _, _ := strings.Cut(name, " ")
		for range 2 {
			if got, err := postText(client, scheme+"://"+addr+"/", "hello"); err != nil || got != name+" hello" {
				t.Errorf("%s: %q, %v", name, got, err)
			}
		}
	}
}

// changing are the headers that differ from one answer to the next.
var changing = []string{"Date", "X-Ms-Request-Duration-Ms", "Connection"}

// Answers are the same in both versions: status, headers and body.
func TestStreamsAnswerLikeHTTP1(t *testing.T) {
	h := newContainer(t)
	call(t, h, "POST", "/dbs/d/colls/c/docs", `{"id":"i","pk":"p"}`, pk("p"), 201)
	call(t, h, "POST", "/dbs/d/colls/c/docs", `{"id":"large","pk":"p","pad":"`+strings.Repeat("x", 300_000)+`"}`, pk("p"), 201)
	addr := startServer(t, h, func(*http.Server) {})
	clients := clientsOf(t)
	const items = "/dbs/d/colls/c/docs"
	wrong := map[string]string{"Authorization": "nonsense"}
	for _, c := range []struct {
		method, path, body string
		headers            map[string]string
		want               int
	}{
		{"GET", "/", "", nil, 200},
		{"GET", "/dbs/d/colls/c", "", nil, 200},
		{"GET", items + "/i", "", pk("p"), 200},
		{"HEAD", "/", "", nil, 405},
		{"GET", items + "/large", "", pk("p"), 200},
		{"GET", items, "", nil, 200},
		{"POST", items, `{"query":"SELECT * FROM c WHERE c.id = 'i'"}`, asQuery(pk("p")), 200},
		{"POST", items, `{"id":"i","pk":"p"}`, pk("p"), 409},
		{"POST", items, `{"id":`, pk("p"), 400},
		{"POST", items, `{"id":"j","pk":"p","pad":"` + strings.Repeat("x", 3<<20) + `"}`, pk("p"), 413},
		{"GET", items + "/none", "", pk("p"), 404},
		{"GET", items + "/i", "", wrong, 401},
		{"PATCH", items, "", nil, 405},
	} {
		answers := map[string]answer{}
		for name, client := range clients {
			scheme, _, _ := strings.Cut(name, " ")
			r := signedRequest(t, c.method, c.path, []byte(c.body), c.headers)
			r.URL.Scheme, r.URL.Host, r.Host = scheme, addr, addr
			r.Header.Set(headerActivity, "a4a4a4a4-0000-0000-0000-000000000000")
			res, err := client.Do(r)
			if err != nil {
				t.Fatalf("%s %s over %s: %v", c.method, c.path, name, err)
			}
			body, err := io.ReadAll(res.Body)
			_ = res.Body.Close()
			if err != nil || res.StatusCode != c.want || !strings.HasSuffix(name, res.Proto) {
				t.Fatalf("%s %s over %s: status %d by %s, want %d: %v: %.300s", c.method, c.path, name, res.StatusCode, res.Proto, c.want, err, body)
			}
			for _, header := range changing {
				res.Header.Del(header)
			}
			answers[name] = answer{res.StatusCode, res.Header, body}
		}
		for _, scheme := range []string{"http", "https"} {
			old, young := answers[scheme+" HTTP/1.1"], answers[scheme+" HTTP/2.0"]
			if !bytes.Equal(old.body, young.body) {
				t.Errorf("%s %s: the bodies differ: %.300s\n%.300s", c.method, c.path, old.body, young.body)
			}
			if !maps.EqualFunc(old.header, young.header, func(a, b []string) bool { return fmt.Sprint(a) == fmt.Sprint(b) }) {
				t.Errorf("%s %s: the headers differ:\n%v\n%v", c.method, c.path, old.header, young.header)
			}
		}
	}
}

// startStreams serves h in a bubble, with changes to the server.
func startStreams(t *testing.T, h http.Handler, change func(*Server)) (*Server, *pipeListener) {
	t.Helper()
	pair, err := tls.X509KeyPair(testCertificate(t))
	if err != nil {
		t.Fatal(err)
	}
	s, root := NewServer(h, pair, nil, slog.New(slog.DiscardHandler)), newPipeListener()
	change(s)
	served := make(chan error, 1)
	go func() { served <- s.Serve(root) }()
	t.Cleanup(func() {
		_ = s.Shutdown(t.Context())
		if err := <-served; err != nil {
			t.Errorf("Serve = %v", err)
		}
	})
	return s, root
}

// heldHandler answers when the test says so.
type heldHandler struct{ arrived, finish chan struct{} }

func newHeldHandler() *heldHandler {
	return &heldHandler{make(chan struct{}, 1000), make(chan struct{})}
}

func (h *heldHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.arrived <- struct{}{}
	select {
	case <-h.finish:
	case <-r.Context().Done():
	}
	_, _ = io.WriteString(w, "done")
}

func plainRequest(t testing.TB, method, path string) *http.Request {
	r, err := http.NewRequest(method, "http://localhost"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A connection has a limit of streams, and all connections together have one. Streams
// beyond are refused at once, and later ones are served.
func TestStreamLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = maxStreams + 10
		h := newHeldHandler()
		logger, full := waitForLog("limit of requests under way")
		s, root := startStreams(t, h, func(s *Server) { s.streams.most, s.streams.logger = most, logger })
		get := plainRequest(t, "GET", "/")
		first, second := speak(t, root.dial("")), speak(t, root.dial(""))
		ids := func(from, n int) (ids []uint32) {
			for i := range n {
				ids = append(ids, uint32(2*(from+i)+1))
			}
			return ids
		}
		for _, id := range ids(0, maxStreams+5) {
			first.begin(t, id, get, false)
		}
		for id, end := range first.ends(t, ids(maxStreams, 5)...) {
			if id != 0 && (end.status != 0 || end.reset <= 0) {
				t.Errorf("stream %d beyond the connection's limit: status %d, reset %d", id, end.status, end.reset)
			}
		}
		for _, id := range ids(0, 15) {
			second.begin(t, id, get, false)
			synctest.Wait() // so that the last ones are refused
		}
		for id, end := range second.ends(t, ids(10, 5)...) {
			if id != 0 && end.status != 429 {
				t.Errorf("stream %d beyond the server's limit: status %d, reset %d", id, end.status, end.reset)
			}
		}
		<-full
		if got := s.streams.now.Load(); got != most || len(h.arrived) != most {
			t.Errorf("%d streams are under way, and %d requests, want %d", got, len(h.arrived), most)
		}
		close(h.finish)
		for id, end := range second.ends(t, ids(0, 10)...) {
			if id != 0 && (end.status != 200 || string(end.body) != "done") {
				t.Errorf("stream %d: status %d: %s", id, end.status, end.body)
			}
		}
		first.ends(t, ids(0, maxStreams)...)
		synctest.Wait()
		if got := s.streams.now.Load(); got != 0 {
			t.Errorf("%d streams are under way at the end", got)
		}
	})
}

// A server that stops says so on every connection of HTTP/2, gives no new stream to the
// handler, and finishes those under way.
func TestShutdownOfStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHeldHandler()
		s, root := startStreams(t, h, func(*Server) {})
		get := plainRequest(t, "GET", "/")
		idle, busy := speak(t, root.dial("")), speak(t, root.dial(""))
		idle.begin(t, 1, get, false)
		<-h.arrived
		h.finish <- struct{}{}
		idle.ends(t, 1)
		busy.begin(t, 1, get, false)
		<-h.arrived
		synctest.Wait()

		began := time.Now()
		var stopping sync.WaitGroup
		stopping.Go(func() {
			if err := s.Shutdown(context.Background()); err != nil {
				t.Errorf("Shutdown = %v", err)
			}
		})
		if code := idle.goodbye(); code != 0 {
			t.Errorf("the idle connection ended with code %d", code)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("the idle connection ended after %v", took)
		}
		time.Sleep(time.Minute)
		busy.begin(t, 3, get, false)
		synctest.Wait()
		if len(h.arrived) != 0 {
			t.Error("a stream was begun after the goodbye")
		}
		close(h.finish)
		if end := busy.ends(t, 1)[1]; end == nil || end.status != 200 || string(end.body) != "done" {
			t.Errorf("the stream under way ended with %+v", end)
		}
		busy.goodbye()
		stopping.Wait()
	})
}

// A connection without streams ends with a goodbye, after as long as one of HTTP/1.1.
func TestIdleConnectionOfStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, root := startStreams(t, http.HandlerFunc(describeRequest), func(*Server) {})
		c := speak(t, root.dial(""))
		c.begin(t, 1, plainRequest(t, "GET", "/"), false)
		c.ends(t, 1)
		began := time.Now()
		if code := c.goodbye(); code != 0 {
			t.Errorf("the connection ended with code %d", code)
		}
		if took := time.Since(began); took < idleTimeout || took > idleTimeout+2*time.Second {
			t.Errorf("the connection ended after %v", took)
		}
	})
}
