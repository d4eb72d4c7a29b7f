// SPDX-License-Identifier: MIT

// Attacks on the explorer, in a real browser: names that point here, a stolen cookie, names
// and items whose text is markup. Pages of other origins are in explorer_test.go.

package mayfly

import (
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// A web page whose name points to this machine, by rebinding, gets nothing: neither the pages,
// nor the data, nor a session.
func TestExplorerAgainstRebinding(t *testing.T) {
	b := startBrowser(t, "--host-resolver-rules=MAP evil.example 127.0.0.1")
	s := serveTest(t, Options{Memory: true})
	_, port, err := net.SplitHostPort(s.addr)
	if err != nil {
		t.Fatal(err)
	}
	b.visit("http://" + s.addr + "/")
	b.press("Open this server")
	b.shows("There is no container yet.")
	b.visit("http://evil.example:" + port + "/_explorer/")
	b.await(`!document.getElementById("app") && document.body.innerText.length > 0`)
	for _, attack := range []string{
		`fetch("/_explorer/")`, `fetch("/_explorer/session", {method: "POST", headers: {"X-Mayfly-Explorer": "1"}, body: '{"oneClick":true}'})`,
		`fetch("/_explorer/api/dbs", {headers: {"X-Mayfly-Explorer": "1"}})`, `fetch("/dbs")`, `fetch("/_mayfly/ttl/status")`,
	} {
		if status := b.eval(attack + `.then(r => r.status)`); status != 403.0 && status != 401.0 {
			t.Errorf("%s got %v", attack, status)
		}
	}
	if got := b.eval(`fetch("/_explorer/session", {method: "POST", headers: {"X-Mayfly-Explorer": "1"}, body: '{"oneClick":true}'}).then(r => r.text())`).(string); strings.Contains(got, "signedIn") {
		t.Errorf("a page by another name signed in: %s", got)
	}
}

// A cookie that was stolen opens neither the protocol nor Mayfly's own pages, and nothing at
// all without the headers that only a browser's own page sends.
func TestExplorerStolenCookie(t *testing.T) {
	b, s := openExplorer(t, Options{}, carts)
	var got struct {
		Cookies []struct {
			Name, Value string
			HTTPOnly    bool `json:"httpOnly"`
			SameSite    string
		}
	}
	b.call("Network.getCookies", map[string]any{"urls": []string{"http://" + s.addr + "/_explorer/"}}, &got)
	if len(got.Cookies) != 1 || !got.Cookies[0].HTTPOnly || got.Cookies[0].SameSite != "Strict" {
		t.Fatalf("the cookies are %+v", got.Cookies)
	}
	cookie := got.Cookies[0].Name + "=" + got.Cookies[0].Value
	for _, path := range []string{"/", "/dbs", "/dbs/shop", "/dbs/shop/colls/carts/docs", "/offers", "/_mayfly/ttl/status", "/_mayfly/clock", "/_mayfly/metrics", "/_mayfly/cluster", "/_explorer/api/dbs"} {
		for _, method := range []string{"GET", "POST"} {
			if method == "POST" && path != "/dbs" {
				continue // wrong credentials are slowed down
			}
			r, err := http.NewRequest(method, "http://"+s.addr+path, strings.NewReader(`{"id":"stolen"}`))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Cookie", cookie)
			a, err := s.do(r)
			if err != nil {
				t.Fatal(err)
			}
			if a.status < 400 {
				t.Errorf("with the cookie alone, %s %s answers %d: %.200s", method, path, a.status, a.body)
			}
		}
	}
	// The browser does not even send it there.
	if status := b.eval(`fetch("/dbs", {credentials: "include", headers: {"X-Mayfly-Explorer": "1"}}).then(r => r.status)`); status != 401.0 {
		t.Errorf("the cookie opens the protocol: %v", status)
	}
}

// Names and texts that are markup stay texts, on every page.
func TestExplorerKeepsMarkupInert(t *testing.T) {
	b := startBrowser(t)
	s := serveTest(t, Options{Memory: true})
	const text = `<img src=x onerror='window.pwned=1'>`
	quoted := literal(text)
	s.must(t, 201, "POST", "/dbs", `{"id":`+quoted+`}`, nil)
	db := "/dbs/" + url.PathEscape(text)
	s.must(t, 201, "POST", db+"/colls", `{"id":`+quoted+`,"partitionKey":{"paths":["/pk"],"version":2},"defaultTtl":3600}`, nil)
	coll := db + "/colls/" + url.PathEscape(text)
	s.must(t, 201, "POST", coll+"/docs", `{"id":`+quoted+`,"pk":`+quoted+`,`+quoted+`:{"x":`+quoted+`},"javascript":"javascript:alert(1)"}`, map[string]string{"x-ms-documentdb-partitionkey": "[" + quoted + "]"})
	s.must(t, 201, "POST", coll+"/sprocs", `{"id":`+quoted+`,"body":"function () { /* `+strings.ReplaceAll(text, `"`, "'")+` */ }"}`, nil)
	s.must(t, 201, "POST", db+"/users", `{"id":`+quoted+`}`, nil)
	b.visit("http://" + s.addr + "/")
	b.press("Open this server")
	place := "#/" + url.PathEscape(text) + "/" + url.PathEscape(text) + "/"
	for _, view := range []struct{ hash, shows string }{
		{"#/", text + " / " + text}, {place + "items", "javascript:alert(1)"}, {place + "items?id=" + url.QueryEscape(text) + "&key=" + url.QueryEscape("["+quoted+"]"), "left."},
		{place + "query", "Run"}, {place + "ttl", "What if?"}, {place + "feed", "Follow"}, {place + "scripts", text}, {place + "settings", "Definition"}, {place + "transfer", "Import"},
		{"#/" + url.PathEscape(text) + "//access", text}, {"#/nodes", "(first)"}, {"#/" + url.PathEscape(text) + "/" + url.PathEscape("<b>") + "/items", "There is no container '<b>'"},
	} {
		b.goTo("#/connect")
		b.shows("The endpoint is")
		b.goTo(view.hash)
		b.shows(view.shows)
		switch {
		case strings.HasSuffix(view.hash, "/query"):
			b.press("Run")
			b.shows("1 rows")
			b.press("JSON")
		case strings.HasSuffix(view.hash, "/feed"):
			b.press("Follow")
			b.shows("write, first seen")
		case strings.Contains(view.hash, "?id="):
			b.key("Escape", 0)
		}
		if found := b.eval(`window.pwned ?? document.querySelectorAll("main img, main script, main b, dialog img, nav img").length`); found != 0.0 {
			t.Errorf("on %s text became markup: %v", view.hash, found)
		}
	}
}
