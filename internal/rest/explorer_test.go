// SPDX-License-Identifier: MIT

package rest

import (
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/mayflydb/mayfly/internal/docs"
)

// explorerRequest returns a request as the explorer's scripts send it from this machine.
func explorerRequest(t testing.TB, method, path, body, cookie string) *http.Request {
	t.Helper()
	r, err := http.NewRequest(method, "http://localhost:8081"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.RemoteAddr = "127.0.0.1:4711"
	r.Header.Set(headerExplorer, "1")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if method != "GET" {
		r.Header.Set("Origin", "http://localhost:8081")
	}
	if cookie != "" {
		r.Header.Set("Cookie", cookie)
	}
	return r
}

// signIn signs in, and returns the cookie.
func signIn(t testing.TB, h *Handler, body string) string {
	t.Helper()
	a := serve(h, explorerRequest(t, "POST", "/_explorer/session", body, ""))
	if a.status != 200 {
		t.Fatalf("signing in with %s: %d %s", body, a.status, a.body)
	}
	c, err := http.ParseSetCookie(a.header.Get("Set-Cookie"))
	if err != nil {
		t.Fatal(err)
	}
	if c.Name != "mayfly-http-8081" || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/_explorer/" || c.Secure || len(c.Value) < 40 {
		t.Errorf("the cookie is %s", c)
	}
	return c.Name + "=" + c.Value
}

// status serves a request and checks the status of its answer.
func status(t testing.TB, h *Handler, r *http.Request, want int) answer {
	t.Helper()
	a := serve(h, r)
	if a.status != want {
		t.Errorf("%s %s: status %d, want %d: %.300s", r.Method, r.URL.Path, a.status, want, a.body)
	}
	return a
}

// A person who opens the server's address is led to the explorer; an SDK is not.
func TestBrowsersAreLedToTheExplorer(t *testing.T) {
	h := newTestHandler(t)
	page := "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
	for path, want := range map[string]int{"/": 303, "/_explorer": 303, "/dbs": 401, "/_mayfly/ttl/status": 401} {
		r := explorerRequest(t, "GET", path, "", "")
		r.Header.Set("Accept", page)
		if a := status(t, h, r, want); want == 303 && a.header.Get("Location") != "/_explorer/" {
			t.Errorf("%s leads to %q", path, a.header.Get("Location"))
		}
	}
	for _, accept := range []string{"", "application/json", "*/*"} {
		r := explorerRequest(t, "GET", "/", "", "")
		r.Header.Set("Accept", accept)
		status(t, h, r, 401)
	}
	signed := signedRequest(t, "GET", "/", nil, map[string]string{"Accept": page})
	status(t, h, signed, 200)
}

func TestExplorerFiles(t *testing.T) {
	h := newTestHandler(t)
	for path, contentType := range map[string]string{
		"/_explorer/": "text/html; charset=utf-8", "/_explorer/index.html": "text/html; charset=utf-8",
		"/_explorer/app.js": "text/javascript; charset=utf-8", "/_explorer/style.css": "text/css; charset=utf-8",
	} {
		r := explorerRequest(t, "GET", path, "", "")
		r.Header.Del(headerExplorer)
		r.Header.Set("Sec-Fetch-Site", "none")
		a := status(t, h, r, 200)
		if got := a.header.Get("Content-Type"); got != contentType {
			t.Errorf("%s is %s", path, got)
		}
		for _, f := range explorerHeaders {
			if a.header.Get(f.name) != f.value {
				t.Errorf("%s: %s is %q", path, f.name, a.header.Get(f.name))
			}
		}
		if a.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s is open to other origins", path)
		}
		r.Header.Set("If-None-Match", a.header.Get("Etag"))
		if a := status(t, h, r, 304); len(a.body) > 0 {
			t.Errorf("%s has a body although the browser has it", path)
		}
	}
	status(t, h, explorerRequest(t, "GET", "/_explorer/nonsense", "", ""), 404)
	status(t, h, explorerRequest(t, "POST", "/_explorer/app.js", "", ""), 405)
}

// The docs are open to everybody, with the explorer and its headers.
func TestExplorerServesDocs(t *testing.T) {
	h := newTestHandler(t)
	h.docs = docs.New(fstest.MapFS{
		"docs/README.md": {Data: []byte("# Pages\n")}, "deploy/README.md": {Data: []byte("# Deploy\n")}, "docs/a.png": {Data: []byte("PNG")},
	})
	get := func(path string, want int) answer {
		t.Helper()
		r := explorerRequest(t, "GET", path, "", "")
		r.Header.Del(headerExplorer)
		r.Header.Set("Sec-Fetch-Site", "none")
		r.RemoteAddr = "203.0.113.5:4711"
		return status(t, h, r, want)
	}
	for path, want := range map[string]string{
		"/_explorer/docs": "text/html; charset=utf-8", "/_explorer/docs/": "text/html; charset=utf-8", "/_explorer/docs/deploy": "text/html; charset=utf-8", "/_explorer/docs/a.png": "image/png",
	} {
		a := get(path, 200)
		if got := a.header.Get("Content-Type"); got != want {
			t.Errorf("%s is %s", path, got)
		}
		for _, f := range explorerHeaders {
			if a.header.Get(f.name) != f.value {
				t.Errorf("%s: %s is %q", path, f.name, a.header.Get(f.name))
			}
		}
		r := explorerRequest(t, "GET", path, "", "")
		r.Header.Set("If-None-Match", a.header.Get("Etag"))
		status(t, h, r, 304)
	}
	get("/_explorer/docs/nonsense", 404)
	status(t, h, explorerRequest(t, "POST", "/_explorer/docs/", "", ""), 405)

	off, err := New(Options{Engine: h.engine, Keys: []string{testKey}, Account: *h.service.Account, NoExplorer: true, Docs: h.docs})
	if err != nil {
		t.Fatal(err)
	}
	status(t, off, explorerRequest(t, "GET", "/_explorer/docs/", "", ""), 404)
	off.sessions = h.sessions // without docs
	status(t, off, explorerRequest(t, "GET", "/_explorer/docs/", "", ""), 404)
}

// maxExplorer is how large all files of the explorer may be together, compressed.
const maxExplorer = 150 << 10

// What the pages may contain: nothing inline, nothing of other hosts, no text as markup.
func TestExplorerFilesKeepToThePolicy(t *testing.T) {
	total := 0
	for name, file := range explorerSite() {
		text := string(file.body)
		if name != "" { // which is index.html again
			var packed bytes.Buffer
			z := gzip.NewWriter(&packed)
			if _, err := z.Write(file.body); err != nil {
				t.Fatal(err)
			}
			if err := z.Close(); err != nil {
				t.Fatal(err)
			}
			total += packed.Len()
		}
		for _, banned := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "https://cdn", "style=\"", "onclick=", "localStorage.setItem(\"key"} {
			if strings.Contains(text, banned) {
				t.Errorf("%s has %s", name, banned)
			}
		}
	}
	t.Logf("the explorer has %d bytes, compressed", total)
	if total == 0 || total > maxExplorer {
		t.Errorf("the explorer has %d bytes, compressed; at most %d are allowed", total, maxExplorer)
	}
}

func TestSigningIn(t *testing.T) {
	readOnly := secondKey
	h := newTestHandlerWith(t, testHandlerOptions{readOnlyKeys: []string{readOnly}})
	state := func(cookie string) map[string]any {
		return status(t, h, explorerRequest(t, "GET", "/_explorer/session", "", cookie), 200).json(t)
	}
	if got := state(""); got["signedIn"] != false || got["oneClick"] != true {
		t.Errorf("before signing in: %v", got)
	}
	status(t, h, explorerRequest(t, "GET", "/_explorer/api/dbs", "", ""), 401)
	status(t, h, explorerRequest(t, "GET", "/_explorer/api/dbs", "", "mayfly-http-8081=guess"), 401)
	for body, want := range map[string]int{
		`{"key":"bm90IGEga2V5"}`: 401, `{"key":""}`: 401, `{"code":"x"}`: 401, `{}`: 401, `{"key":"x","oneClick":true}`: 401,
		`nonsense`: 400, `{"other":1}`: 400, `{"key":"` + strings.Repeat("x", maxSessionBody) + `"}`: 413,
	} {
		if a := status(t, h, explorerRequest(t, "POST", "/_explorer/session", body, ""), want); a.header.Get("Set-Cookie") != "" {
			t.Errorf("%.30s sets a cookie", body)
		}
	}
	all := signIn(t, h, `{"oneClick":true}`)
	if got := state(all); got["signedIn"] != true || got["readOnly"] != false {
		t.Errorf("after signing in: %v", got)
	}
	status(t, h, explorerRequest(t, "POST", "/_explorer/api/dbs", `{"id":"d"}`, all), 201)
	status(t, h, explorerRequest(t, "GET", "/_explorer/api/dbs/d", "", all), 200)
	status(t, h, explorerRequest(t, "GET", "/_explorer/api/_mayfly/ttl/status", "", all), 200)

	some := signIn(t, h, `{"key":"`+readOnly[:20]+` `+readOnly[20:]+`"}`)
	if got := state(some); got["readOnly"] != true {
		t.Errorf("with a read-only key: %v", got)
	}
	status(t, h, explorerRequest(t, "GET", "/_explorer/api/dbs/d", "", some), 200)
	status(t, h, explorerRequest(t, "DELETE", "/_explorer/api/dbs/d", "", some), 403)
	status(t, h, explorerRequest(t, "POST", "/_explorer/api/_mayfly/ttl/purge", "", some), 403)
	status(t, h, explorerRequest(t, "GET", "/_explorer/api/_mayfly/pprof/heap", "", all), 401)

	if a := status(t, h, explorerRequest(t, "DELETE", "/_explorer/session", "", all), 200); !strings.Contains(a.header.Get("Set-Cookie"), "Max-Age=0") {
		t.Errorf("signing out leaves the cookie: %q", a.header.Get("Set-Cookie"))
	}
	status(t, h, explorerRequest(t, "GET", "/_explorer/api/dbs", "", all), 401)
	status(t, h, explorerRequest(t, "GET", "/_explorer/api/dbs", "", some), 200)
}

// A key of one's own cannot be replaced with a click.
func TestOneClickNeedsTheWellKnownKey(t *testing.T) {
	h := newTestHandlerWith(t, testHandlerOptions{keys: []string{secondKey}})
	if got := status(t, h, explorerRequest(t, "GET", "/_explorer/session", "", ""), 200).json(t); got["oneClick"] != false {
		t.Errorf("the page offers one click: %v", got)
	}
	status(t, h, explorerRequest(t, "POST", "/_explorer/session", `{"oneClick":true}`, ""), 401)
	signIn(t, h, `{"key":"`+secondKey+`"}`)
}

// Requests of other pages, of other hosts and over the network in clear are refused, whatever
// cookie the browser sends with them; and the cookie opens nothing else.
func TestExplorerRefusesOthers(t *testing.T) {
	h := newTestHandlerWith(t, testHandlerOptions{publicKey: true})
	cookie := signIn(t, h, `{"oneClick":true}`)
	change := func(f func(r *http.Request)) *http.Request {
		r := explorerRequest(t, "POST", "/_explorer/api/dbs", `{"id":"d"}`, cookie)
		f(r)
		return r
	}
	for name, f := range map[string]func(*http.Request){
		"no header of our own":  func(r *http.Request) { r.Header.Del(headerExplorer) },
		"another origin":        func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") },
		"another port":          func(r *http.Request) { r.Header.Set("Origin", "http://localhost:9999") },
		"an opaque origin":      func(r *http.Request) { r.Header.Set("Origin", "null") },
		"a page of this site":   func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") },
		"a page of another":     func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
		"typed into a browser":  func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "none") },
		"no origin at all":      func(r *http.Request) { r.Header.Del("Sec-Fetch-Site"); r.Header.Del("Origin") },
		"a name of a web page":  func(r *http.Request) { r.Host = "evil.example" },
		"another machine":       func(r *http.Request) { r.RemoteAddr = "192.168.1.7:4711" },
		"an address of no form": func(r *http.Request) { r.RemoteAddr = "" },
	} {
		t.Run(name, func(t *testing.T) { status(t, h, change(f), 403) })
	}
	secure := change(func(r *http.Request) {
		r.RemoteAddr, r.TLS = "192.168.1.7:4711", &tls.ConnectionState{}
		r.Header.Set("Cookie", strings.Replace(cookie, "http", "https", 1))
	})
	status(t, h, secure, 201)
	for _, path := range []string{"/dbs", "/dbs/d", "/_mayfly/ttl/status", "/_mayfly/clock", "/_mayfly/metrics"} {
		status(t, h, explorerRequest(t, "GET", path, "", cookie), 401)
	}
}

func TestSessionsEnd(t *testing.T) {
	h := newTestHandler(t)
	now := time.Now()
	h.sessions.now = func() time.Time { return now }
	cookie := signIn(t, h, `{"oneClick":true}`)
	look := func(want int) {
		t.Helper()
		status(t, h, explorerRequest(t, "GET", "/_explorer/api/dbs", "", cookie), want)
	}
	for range 3 { // each use begins the time anew
		now = now.Add(sessionIdle - time.Second)
		look(200)
	}
	now = now.Add(sessionIdle)
	look(401)

	// However many there are, the oldest make room.
	cookie = signIn(t, h, `{"oneClick":true}`)
	for range maxSessions {
		now = now.Add(time.Millisecond)
		signIn(t, h, `{"oneClick":true}`)
	}
	look(401)
	if n := len(h.sessions.open); n != maxSessions {
		t.Errorf("%d sessions are open", n)
	}
}

// A link signs in once, and for a few minutes.
func TestLinks(t *testing.T) {
	h := newTestHandlerWith(t, testHandlerOptions{readOnlyKeys: []string{secondKey}})
	now := time.Now()
	h.sessions.now = func() time.Time { return now }
	link := func(key string, want int) string {
		r := explorerRequest(t, "POST", "/_mayfly/explorer", "", "")
		r.Header.Set("Authorization", "Bearer "+key)
		a := status(t, h, r, want)
		path, _ := a.json(t)["path"].(string)
		_, code, _ := strings.Cut(path, "#code=")
		return code
	}
	link("nonsense", 401)
	link(secondKey, 403)
	code := link(testKey, 200)
	signIn(t, h, `{"code":"`+code+`"}`)
	status(t, h, explorerRequest(t, "POST", "/_explorer/session", `{"code":"`+code+`"}`, ""), 401)
	late := link(testKey, 200)
	now = now.Add(linkLife)
	status(t, h, explorerRequest(t, "POST", "/_explorer/session", `{"code":"`+late+`"}`, ""), 401)
}

func TestExplorerCanBeOff(t *testing.T) {
	h := newTestHandler(t)
	h.sessions = nil
	for _, path := range []string{"/_explorer/", "/_explorer/session", "/_explorer/api/dbs"} {
		status(t, h, explorerRequest(t, "GET", path, "", ""), 404)
	}
	r := explorerRequest(t, "GET", "/", "", "")
	r.Header.Set("Accept", "text/html")
	status(t, h, r, 401)
}

// A session is known to one node only. What it asks of partitions of other nodes is passed on
// with a credential of the same rights, without the cookie, and the answer has the explorer's
// headers.
func TestSessionsReachOtherNodes(t *testing.T) {
	w := newPeerWorld(t, "a", "b")
	w.container()
	w.own("b")
	h := w.nodes["a"].handler
	cookie := signIn(t, h, `{"oneClick":true}`)
	r := explorerRequest(t, "POST", "/_explorer/api/dbs/d/colls/c/docs", `{"id":"ü /1","pk":"a"}`, cookie)
	r.Header.Set(headerPartitionKey, `["a"]`)
	status(t, h, r, 201)
	r = explorerRequest(t, "GET", "/_explorer/api/dbs/d/colls/c/docs/%C3%BC%20%2F1", "", cookie)
	r.Header.Set(headerPartitionKey, `["a"]`)
	a := status(t, h, r, 200)
	if a.json(t)["id"] != "ü /1" || a.header.Get("Cache-Control") != "no-store" || a.header.Get("Content-Security-Policy") != explorerPolicy {
		t.Errorf("the answer is %s with %v", a.body, a.header)
	}
	if n := w.nodes["b"].executed.Load(); n != 2 {
		t.Errorf("the owner has answered %d requests", n)
	}

	// Mayfly's own pages take a key as it is.
	x := &exchange{h: h, r: explorerRequest(t, "GET", "/_mayfly/ttl/status", "", cookie), signedIn: true}
	header := x.signed()
	if header.Get("Cookie") != "" || header.Get("Authorization") != "Bearer "+testKey {
		t.Errorf("a page is asked for with %v", header)
	}
}
