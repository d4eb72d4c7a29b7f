// SPDX-License-Identifier: MIT

// The explorer in a real browser, as a person uses it.

package mayfly

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// A new user opens the server's address, makes a container, sees an item count down and
// vanish, mends a query, and looks at what expires.
func TestExplorerFromTheStart(t *testing.T) {
	b := startBrowser(t)
	s := serveTest(t, Options{Memory: true, TestClock: true})
	b.visit("http://" + s.addr + "/")
	b.shows("Open this server")
	b.shoot("sign-in")
	b.press("Open this server")
	b.shows("There is no container yet.")
	b.shoot("empty")

	b.press("Create a database and a container")
	b.write("Name", "shop")
	b.press("Create")
	b.shows("New container in shop")
	b.write("Name", "carts")
	b.write("Partition key", "/customer")
	b.write("Default time to live", "1h")
	b.shoot("new-container")
	b.press("Create")
	b.shows("There are no items here.")

	// The clock stands, so that the countdown is the same in every run.
	b.press("Freeze")
	b.shows("Release")
	for _, item := range []string{
		`{"id":"short","customer":"ada","price":5,"ttl":30}`,
		`{"id":"long","customer":"ada","price":50}`,
		`{"id":"forever","customer":"bob","price":7,"ttl":-1}`,
		`{"id":"<img src=x onerror=alert(1)>","customer":"<script>alert(1)</script>","price":1,"note":"\u0000'\"<b>"}`,
	} {
		b.press("New item")
		b.write("Item as JSON", item)
		b.press("Create")
		b.await(`document.querySelectorAll("dialog").length === 0`)
	}
	b.shows("30 s")
	b.shows("1 h")
	b.shows("never")
	b.shows("<script>alert(1)</script>")
	if b.eval(`document.querySelectorAll("main img, main script, main b").length`) != 0.0 {
		t.Error("text of an item became markup")
	}
	b.shoot("items")

	// The item that lives for 30 seconds is announced before the clock moves, and gone after.
	b.press("+1 m")
	b.shows("shop/carts: 1")
	b.press("Move it")
	b.lacks("short")
	b.shows("long")

	// Editing: a save that comes second sees both versions.
	b.press("long")
	b.shows("its container's defaultTtl is 3600 s")
	b.write("Item long as JSON", `{"id":"long","customer":"ada","price":51}`)
	b.shoot("editor")
	s.must(t, 200, "PUT", "/dbs/shop/colls/carts/docs/long", `{"id":"long","customer":"ada","price":50,"note":"from elsewhere"}`, pk("ada"))
	b.press("Save")
	b.shows("The item was changed meanwhile")
	b.shoot("conflict")
	b.press("Save these")
	b.await(`document.querySelectorAll("dialog").length === 0`)
	got := s.must(t, 200, "GET", "/dbs/shop/colls/carts/docs/long", "", pk("ada")).object(t)
	if got["price"] != 51.0 || got["note"] != "from elsewhere" {
		t.Errorf("the merged item is %v", got)
	}

	// Several at once.
	b.await(`document.querySelector("main table")?.innerText.includes("from elsewhere") || document.querySelector("main table")?.innerText.includes("51")`)
	b.eval(`document.querySelector("[aria-label='Select long']").click()`)
	b.press("Never expire")
	b.shows("1 changed.")
	if got := s.must(t, 200, "GET", "/dbs/shop/colls/carts/docs/long", "", pk("ada")).object(t); got["ttl"] != -1.0 {
		t.Errorf("the item is %v", got)
	}

	// A query with an error, and mended.
	b.press("Query")
	b.write("Query", "SELECT * FROM c WHER c.price > 5")
	b.press("Run")
	b.shows("Syntax error")
	b.await(`document.querySelector("mark")?.textContent.length > 0`)
	b.shoot("query-error")
	b.write("Query", "SELECT c.id, c.price FROM c WHERE c.price > 5 ORDER BY c.price")
	b.press("Run")
	b.shows("2 rows")
	b.lacks("Syntax error")
	b.shoot("query")
	b.press("Indexes")
	b.shows("/price/")
	b.write("Query", "SELECT VALUE COUNT(1) FROM c")
	b.press("Run")
	b.press("JSON")
	b.shows("3")

	// What expires, and what would.
	b.press("Time to live")
	b.shows("Items that expire, in steps of")
	b.write("Time to live to try, typed", "2h")
	b.eval(field("Time to live to try, typed") + `.dispatchEvent(new Event("change"))`)
	b.shows("0 items would expire at once")
	b.press("Pause")
	b.shows("paused")
	b.press("Follow")
	b.shows("short")
	b.shoot("ttl")
	b.press("Apply…")
	b.write("Type carts to set it", "wrong")
	b.press("Set it")
	b.shows("This is not the container's name.")
	b.write("Type carts to set it", "carts")
	b.press("Set it")
	b.shows("The default TTL is set, for all items.")
	if got := s.must(t, 200, "GET", "/dbs/shop/colls/carts", "", nil).object(t); got["defaultTtl"] != 7200.0 {
		t.Errorf("the container is %v", got)
	}

	// The change feed, while it goes on.
	b.press("Change feed")
	b.press("Follow")
	b.shows("forever")
	s.must(t, 200, "PUT", "/dbs/shop/colls/carts/docs/forever", `{"id":"forever","customer":"bob","price":8,"ttl":-1}`, pk("bob"))
	b.shows("price: 7 → 8")
	b.shoot("feed")

	// A stored procedure.
	b.press("Scripts")
	b.press("New stored procedure")
	b.write("Name", "hello")
	b.press("Save")
	b.press("Run hello…")
	b.write("Partition key", "ada")
	b.write("Arguments", `["Ada"]`)
	b.press("Run")
	b.shows(`"Hello, Ada"`)
	b.shoot("scripts")
	b.press("Cancel")

	// Export, and import of a file with a row that cannot be one.
	b.press("Import and export")
	b.press("Export")
	b.shows("3 items exported.")
	b.upload("File to import", "more.jsonl", `{"id":"in-1","customer":"eve"}`+"\n"+`{"id":"long","customer":"ada"}`+"\n"+`nonsense`+"\n"+`{"id":"in-2","customer":"eve"}`+"\n")
	b.press("Import")
	b.shows("2 items imported, 2 rejected.")
	b.shows("Save what was rejected")
	b.shoot("import")
	s.must(t, 200, "GET", "/dbs/shop/colls/carts/docs/in-2", "", pk("eve"))
	b.upload("File to import", "more.csv", "id,customer,price,note\r\ncsv-1,eve,5,\"a, \"\"b\"\"\"\r\n")
	b.press("Import")
	b.shows("1 items imported, 0 rejected.")
	if got := s.must(t, 200, "GET", "/dbs/shop/colls/carts/docs/csv-1", "", pk("eve")).object(t); got["price"] != 5.0 || got["note"] != `a, "b"` {
		t.Errorf("the row of CSV became %v", got)
	}

	b.press("Settings")
	b.shows("Delete this container…")
	b.press("Overview")
	b.shows("Connect")

	// Small, and dark.
	b.eval(`location.hash = "#/shop/carts/items"`)
	b.shows("long")
	b.resize(390, 800, true)
	b.shoot("phone-dark")
	if wide := b.eval(`document.documentElement.scrollWidth`); wide.(float64) > 390 {
		t.Errorf("on a phone the page is %v wide", wide)
	}
	b.press("Sign out")
	b.shows("Open this server")
	if cookies := b.eval(`document.cookie`); cookies != "" {
		t.Errorf("scripts see the cookie %v", cookies)
	}
}

// The certificate that the explorer offers is the one that clients must trust.
func TestExplorerOffersTheCertificate(t *testing.T) {
	s := serveTest(t, Options{Memory: true})
	get := func(client *http.Client, url string) []byte {
		t.Helper()
		res, err := client.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		body, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != 200 {
			t.Fatalf("%s: %s, %v", url, res.Status, err)
		}
		return body
	}
	trusted := x509.NewCertPool()
	if !trusted.AppendCertsFromPEM(get(s.client, "http://"+s.addr+"/_explorer/emulator.pem")) {
		t.Fatal("it is no certificate")
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}}
	defer transport.CloseIdleConnections()
	get(&http.Client{Transport: transport, Timeout: waitLimit}, "https://"+s.addr+"/_mayfly/health")
}

// A link signs a browser in, and is not kept in its address. A read-only key shows no buttons
// that change anything.
func TestExplorerLinksAndReadOnlyKeys(t *testing.T) {
	b := startBrowser(t)
	const readOnly = "cmVhZC1vbmx5IGtleSB0aGF0IGlzIGxvbmcgZW5vdWdo"
	s := serveTest(t, Options{Memory: true, TestClock: true, ReadOnlyKey: readOnly})
	s.must(t, 201, "POST", "/dbs", `{"id":"shop"}`, nil)
	s.must(t, 201, "POST", "/dbs/shop/colls", `{"id":"carts","partitionKey":{"paths":["/customer"],"version":2},"defaultTtl":60}`, nil)
	const items = 1000
	for i := range items {
		s.must(t, 201, "POST", "/dbs/shop/colls/carts/docs", fmt.Sprintf(`{"id":"item-%04d","customer":"ada"}`, i), pk("ada"))
	}
	r, err := http.NewRequest("POST", "http://"+s.addr+"/_mayfly/explorer", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.Key())
	a, err := s.do(r)
	if err != nil {
		t.Fatal(err)
	}
	b.visit("http://" + s.addr + a.object(t)["path"].(string))
	b.shows("shop / carts")
	if at := b.eval("location.href"); at != "http://"+s.addr+"/_explorer/" {
		t.Errorf("the address is %v", at)
	}
	b.press("Sign out")
	b.write("Or sign in with another key of this server", "bm9uc2Vuc2U=")
	b.press("Sign in")
	b.shows("This is not a key of this server.")
	b.write("Or sign in with another key of this server", readOnly)
	b.press("Sign in")
	b.shows("read-only")
	b.lacks("New database")

	// A long list draws the rows that are visible, and reads on as it is scrolled.
	b.press("shop / carts")
	b.shows("item-0000")
	b.lacks("New item")
	b.await(`(l => { l.scrollTop = l.scrollHeight; return l.innerText.includes("item-0999") })(document.querySelector(".list"))`)
	if n := b.eval(`document.querySelectorAll("tbody tr").length`).(float64); n > 100 {
		t.Errorf("%v rows are drawn", n)
	}
	b.shoot("scrolled")

	// The countdown runs by itself, and the item fades once its deadline is over.
	b.await(`/\b[345]\d s\b/.test(document.querySelector(".list").innerText)`)
	b.press("item-0999")
	b.shows("It expires at")
	if err := s.Clock().Advance(2 * time.Minute); err != nil {
		t.Fatal(err)
	}
	b.press("Close")
	b.lacks("item-0999")
}

// Pages of other origins cannot reach the explorer, although the browser has its cookie.
func TestExplorerAgainstOtherPages(t *testing.T) {
	b := startBrowser(t)
	s := serveTest(t, Options{Memory: true})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	evil := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<iframe src="http://%[1]s/_explorer/"></iframe><form method=post enctype=text/plain action="http://%[1]s/_explorer/api/dbs"><input name='{"id":"form","x":"' value='"}'></form>`, s.addr)
	})}
	served := make(chan error, 1)
	go func() { served <- evil.Serve(l) }()
	t.Cleanup(func() { _ = evil.Close(); <-served })

	b.visit("http://" + s.addr + "/")
	b.press("Open this server")
	b.shows("There is no container yet.")
	if status := b.eval(`fetch("/dbs").then(r => r.status)`); status != 401.0 {
		t.Errorf("the cookie opens the protocol: %v", status)
	}
	b.visit("http://" + l.Addr().String() + "/") // the same host, so that the browser sends the cookie
	for _, attack := range []string{
		`fetch("http://%s/_explorer/api/dbs", {credentials: "include"}).then(r => r.text(), () => "refused")`,
		`fetch("http://%s/_explorer/api/dbs", {credentials: "include", headers: {"X-Mayfly-Explorer": "1"}}).then(r => r.text(), () => "refused")`,
		`fetch("http://%s/_explorer/api/dbs", {method: "POST", credentials: "include", headers: {"X-Mayfly-Explorer": "1"}, body: '{"id":"fetch"}'}).then(r => r.text(), () => "refused")`,
		`fetch("http://%s/_explorer/api/dbs", {method: "POST", mode: "no-cors", credentials: "include", body: '{"id":"simple"}'}).then(() => "refused", () => "refused")`,
		`fetch("http://%s/_explorer/session", {method: "POST", mode: "no-cors", credentials: "include", body: '{"oneClick":true}'}).then(() => "refused", () => "refused")`,
	} {
		if got := b.eval(fmt.Sprintf(attack, s.addr)); got != "refused" {
			t.Errorf("%s got %v", attack, got)
		}
	}
	if n := b.eval(`(() => { try { return document.querySelector("iframe").contentDocument === null ? 0 : document.querySelector("iframe").contentDocument.body.children.length } catch { return 0 } })()`); n != 0.0 {
		t.Errorf("the explorer can be framed: %v", n)
	}
	b.eval(`document.querySelector("form").submit()`)
	b.shows("Only the explorer's own pages may make this request.")
	if got := s.must(t, 200, "GET", "/dbs", "", nil).object(t); got["_count"] != 0.0 {
		t.Errorf("another page has made databases: %v", got)
	}
	b.mu.Lock()
	b.problems = nil // what the policy refused was expected
	b.mu.Unlock()
}
