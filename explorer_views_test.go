// SPDX-License-Identifier: MIT

// Each view of the explorer, in a real browser.

package mayfly

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

// openExplorer starts a server with a container shop/carts, and opens it in a browser.
func openExplorer(t *testing.T, o Options, container string) (*browser, *testServer) {
	t.Helper()
	b := startBrowser(t)
	o.Memory = true
	s := serveTest(t, o)
	s.must(t, 201, "POST", "/dbs", `{"id":"shop"}`, nil)
	s.must(t, 201, "POST", "/dbs/shop/colls", container, nil)
	b.visit("http://" + s.addr + "/")
	b.press("Open this server")
	b.shows("shop / carts")
	return b, s
}

const carts = `{"id":"carts","partitionKey":{"paths":["/customer"],"version":2},"defaultTtl":3600}`

// goTo opens an address of the explorer.
func (b *browser) goTo(hash string) {
	b.t.Helper()
	b.eval(`location.hash = ` + literal(hash))
}

// reload loads the page anew.
func (b *browser) reload() {
	b.t.Helper()
	b.eval(`window.before = true`)
	b.call("Page.reload", nil, nil)
	b.await(`window.before === undefined && document.readyState === "complete"`)
}

// choose chooses an option of a list by its text.
func (b *browser) choose(label, option string) {
	b.t.Helper()
	b.await(field(label) + ` && [...` + field(label) + `.options].some(o => o.textContent === ` + literal(option) + `)`)
	b.eval(fmt.Sprintf(`(s => { s.value = [...s.options].find(o => o.textContent === %s).value; s.dispatchEvent(new Event("change")) })(%s)`, literal(option), field(label)))
}

// key presses a key, as on a keyboard.
func (b *browser) key(key string, modifiers int) {
	b.t.Helper()
	codes := map[string]int{"Enter": 13, "Escape": 27, " ": 32, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "End": 35, "Home": 36, "Tab": 9}
	event := map[string]any{"type": "rawKeyDown", "key": key, "modifiers": modifiers, "windowsVirtualKeyCode": codes[key]}
	if text := map[string]string{"Enter": "\r", " ": " "}[key]; modifiers == 0 && (text != "" || len(key) == 1) {
		event["type"], event["text"] = "keyDown", text
		if text == "" {
			event["text"] = key
		}
	}
	b.call("Input.dispatchKeyEvent", event, nil)
	event["type"] = "keyUp"
	delete(event, "text")
	b.call("Input.dispatchKeyEvent", event, nil)
}

// The modifiers of keys.
const (
	control = 2
	shift   = 8
)

// downloads has the page keep files that it would save, and returns the expression for the
// text of the one with a name.
func (b *browser) downloads() func(name string) string {
	b.t.Helper()
	b.eval(`(() => { window.saved = {}; const blobs = {}, make = URL.createObjectURL; URL.createObjectURL = blob => { const u = make.call(URL, blob); blobs[u] = blob; return u };
		HTMLAnchorElement.prototype.click = new Proxy(HTMLAnchorElement.prototype.click, { apply(f, a, args) { if (a.download && blobs[a.href]) { blobs[a.href].text().then(t => { saved[a.download] = t }); return } return Reflect.apply(f, a, args) } }) })()`)
	return func(name string) string {
		b.t.Helper()
		b.await(`saved[` + literal(name) + `] !== undefined`)
		text := b.eval(`saved[` + literal(name) + `]`).(string)
		b.eval(`delete saved[` + literal(name) + `]`)
		return text
	}
}

// Completion, parameters, charge, indexes, saved queries and files.
func TestExplorerQueries(t *testing.T) {
	b, s := openExplorer(t, Options{}, `{"id":"carts","partitionKey":{"paths":["/customer"],"version":2},"indexingPolicy":{"indexingMode":"consistent","includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/price/?"}]}}`)
	for i := range 230 {
		s.must(t, 201, "POST", "/dbs/shop/colls/carts/docs", fmt.Sprintf(`{"id":"%03d","customer":"ada","price":%d,"address":{"city":"c%d"},"formula":"=1+1"}`, i, i, i%3), pk("ada"))
	}
	saved := b.downloads()
	b.goTo("#/shop/carts/query")

	// What may come next: a path that items have, a keyword, and a parameter.
	b.write("Query", "SELECT * FROM c WHERE c.address.ci")
	b.await(`document.querySelector(".offers li code").textContent === "c.address.city"`)
	b.shoot("completion")
	b.key("Tab", 0)
	b.await(field("Query") + `.value === "SELECT * FROM c WHERE c.address.city"`)
	b.write("Parameters", `{"@city":"c1"}`)
	b.eval(field("Query") + `.setSelectionRange(999, 999), ` + field("Query") + `.focus()`)
	b.call("Input.insertText", map[string]any{"text": " = @"}, nil)
	b.await(`document.querySelector(".offers li code").textContent === "@city"`)
	b.key("ArrowDown", 0)
	b.key("Enter", 0)
	b.await(field("Query") + `.value.endsWith("= @city")`)
	b.key("Enter", control)
	b.shows("77 rows")

	// A second page, the charge of each, and files with all rows.
	b.write("Query", "SELECT c.id, c.price, c.formula FROM c ORDER BY c.id")
	b.write("Parameters", " ")
	b.key("Enter", control)
	b.press("Run")
	b.shows("100 rows so far")
	b.press("Next page")
	b.shows("200 rows so far")
	b.press("Charge")
	b.shows("request units")
	b.press("Table")
	b.press("Read all pages")
	b.shows("230 rows")
	b.press("Save as CSV")
	if csv := saved("carts.csv"); !strings.HasPrefix(csv, "id,price,formula\r\n000,0,\"\"\"=1+1\"\"\"\r\n") || strings.Count(csv, "\n") != 231 {
		t.Errorf("the CSV is %.100q", csv)
	}
	b.press("Save as JSONL")
	if lines := saved("carts.jsonl"); strings.Count(lines, "\n") != 230 || !strings.HasPrefix(lines, `{"id":"000","price":0,`) {
		t.Errorf("the JSONL is %.100q", lines)
	}

	// A query is kept under a name, also when the page is left, and forgotten.
	b.press("Save…")
	b.write("Name", "by id")
	b.press("Save")
	b.await(`document.querySelectorAll("dialog").length === 0`)
	b.goTo("#/shop/carts/items")
	b.shows("New item")
	b.lacks("230 rows") // results belong to the view
	b.goTo("#/shop/carts/query?q=SELECT%201")
	b.await(field("Query") + `.value === "SELECT 1"`)
	b.choose("Earlier and saved queries", "by id")
	b.await(field("Query") + `.value.endsWith("ORDER BY c.id")`)

	// An index that is missing is offered, alone and for two orders.
	b.write("Query", "SELECT * FROM c WHERE c.price > 5")
	b.press("Run")
	b.shows("100 rows so far")
	b.press("Indexes")
	b.press("Add this index: /price/?")
	b.shows("The index is added.")
	b.write("Query", "SELECT * FROM c ORDER BY c.price DESC, c.id")
	b.press("Run")
	b.shows("composite index")
	b.press("Add this index: /price DESC, /id ASC")
	b.lacks("corresponding composite index")
	b.write("Query", "SELECT * FROM c ORDER BY c.price DESC, c.id")
	b.press("Run")
	b.shows("100 rows so far")
	policy := fmt.Sprint(s.must(t, 200, "GET", "/dbs/shop/colls/carts", "", nil).object(t)["indexingPolicy"])
	if strings.Contains(policy, "excludedPaths:[map[path:/price/?]") || !strings.Contains(policy, "order:descending") {
		t.Errorf("the policy is %s", policy)
	}
	b.press("Forget…")
	b.press("Forget")
	b.await(`localStorage.getItem("saved/shop/carts") === "[]"`)
}

// Keys go through the list; several items are patched with a look before, and deleted.
func TestExplorerListsByKeyboard(t *testing.T) {
	b, s := openExplorer(t, Options{TestClock: true}, carts)
	for i := range 40 {
		s.must(t, 201, "POST", "/dbs/shop/colls/carts/docs", fmt.Sprintf(`{"id":"item-%02d","customer":"ada","price":%d,"deep":{"x":1}}`, i, i), pk("ada"))
	}
	b.goTo("#/shop/carts/items")
	b.shows("item-00")
	b.key("/", 0)
	b.await(`document.activeElement.id === "filter"`)
	b.call("Input.insertText", map[string]any{"text": "c.price < 35"}, nil)
	b.key("Enter", 0)
	b.shows("35 items")
	if at := b.eval(`location.hash`); at != "#/shop/carts/items?filter=c.price+%3C+35" {
		t.Errorf("the address is %v", at)
	}
	b.eval(`document.querySelector(".list").focus()`)
	b.key("ArrowDown", 0)
	b.await(`document.activeElement.textContent === "item-00"`)
	b.key("ArrowDown", 0)
	b.key("End", 0)
	b.await(`document.activeElement.textContent === "item-34"`)
	b.key(" ", 0)
	b.shows("1 selected")
	b.key("Home", 0)
	b.await(`document.activeElement.textContent === "item-00"`)
	b.key(" ", 0)
	b.shows("2 selected")
	b.press("Patch…")
	b.write("Operations", `[{"op":"incr","path":"/price","value":100},{"op":"remove","path":"/deep/x"}]`)
	b.shows("price: 34 → 134")
	b.shoot("patch")
	b.write("Operations", `[{"op":"nonsense","path":"/price"}]`)
	b.shows("is no operation")
	b.write("Operations", `[{"op":"incr","path":"/price","value":100}`)
	b.press("Patch")
	b.shows("This is not JSON")
	b.write("Operations", `[{"op":"incr","path":"/price","value":100}]`)
	b.press("Patch")
	b.shows("2 patched.")
	if got := s.must(t, 200, "GET", "/dbs/shop/colls/carts/docs/item-34", "", pk("ada")).object(t); got["price"] != 134.0 {
		t.Errorf("the item is %v", got)
	}
	b.shows("33 items") // the filter still holds
	b.eval(`document.querySelector("[aria-label='Select all loaded items']").click()`)
	b.shows("33 selected")
	b.press("Delete…")
	b.shows("and 23 more")
	b.press("Delete")
	b.shows("33 deleted.")
	b.shows("No item matches.")
	b.write("Filter", " ")
	b.press("Filter")
	b.shows("item-34")

	// An item has an address of its own, and columns stay as they were chosen.
	b.press("Columns")
	b.eval(field("deep") + `.click()`)
	b.press("OK")
	b.await(`![...document.querySelectorAll("th")].some(h => h.textContent === "deep")`)
	b.visit("http://" + s.addr + "/_explorer/#/shop/carts/items?id=item-34&key=%5B%22ada%22%5D")
	b.reload()
	b.await(`document.querySelector("dialog h2")?.textContent === "item-34"`)
	b.key("Escape", 0)
	b.await(`document.querySelectorAll("dialog").length === 0`)
	if n := b.eval(`[...document.querySelectorAll("th")].filter(h => h.textContent === "deep").length`); n != 0.0 {
		t.Error("the column is back")
	}

	// The palette, and the list of keys.
	b.key("k", control)
	b.await(`document.querySelector("dialog input[role=combobox]") === document.activeElement`)
	b.call("Input.insertText", map[string]any{"text": "time carts"}, nil)
	b.await(`document.querySelectorAll("#palette-list li").length === 1`)
	b.shoot("palette")
	b.key("Enter", 0)
	b.shows("What if?")
	b.eval(`document.activeElement.blur()`)
	b.key("?", 0)
	b.shows("show what may come next in a query")
	b.press("Close")

	// The colours by the switch, which is remembered.
	b.choose("Colours", "Dark")
	b.reload()
	b.await(`getComputedStyle(document.body).backgroundColor === "rgb(20, 24, 26)"`)
}

// What expires: read with the keyboard, brought back, followed with a pause, moved by the clock.
func TestExplorerTime(t *testing.T) {
	b, s := openExplorer(t, Options{TestClock: true}, `{"id":"carts","partitionKey":{"paths":["/customer"],"version":2},"defaultTtl":600,"undeleteGraceSeconds":3600}`)
	b.press("Freeze")
	b.shows("frozen")
	for i := range 30 {
		s.must(t, 201, "POST", "/dbs/shop/colls/carts/docs", fmt.Sprintf(`{"id":"item-%02d","customer":"ada","ttl":%d}`, i, 60+15*i), pk("ada"))
	}
	b.goTo("#/shop/carts/ttl")
	b.shows("Items that expire, in steps of")
	b.await(`document.querySelectorAll("figure .bar-a").length > 3`)
	b.eval(`document.querySelector(".plot-area").focus()`)
	b.key("Home", 0)
	b.key("End", shift)
	b.await(`document.querySelector(".reads").textContent.includes("items 30")`)
	b.eval(`document.querySelector("figure summary").click()`)
	b.await(`document.querySelectorAll("figure table tbody tr").length === 40`)

	// The slider: no life, and none at all.
	b.eval(`(s => { s.value = 50; s.dispatchEvent(new Event("input")) })(` + field("Time to live to try") + `)`)
	b.shows("would expire at once")
	b.await(`document.querySelectorAll("figure .bar-b").length > 0 || document.querySelector(".legend .b")`)
	b.choose("Kind of TTL to try", "off")
	b.shows("30 would live on, and never expire")
	b.shoot("what-if")

	// Events: a pause keeps the place.
	b.press("Follow")
	b.shows("Following.")
	b.press("Pause") // of purge, the first button with this name
	b.shows("paused")
	b.press("Resume")
	b.press("+1 m")
	b.shows("shop/carts: 1")
	b.press("Move it")
	b.press("Bring back…")
	b.write("It lives for", "1h")
	b.press("Bring back")
	b.shows("item-00 is back.")
	s.must(t, 200, "GET", "/dbs/shop/colls/carts/docs/item-00", "", pk("ada"))

	b.press("Set…")
	at := b.eval(field("Time, in UTC") + `.value`).(string)
	then, err := time.Parse(time.RFC3339, at)
	if err != nil {
		t.Fatal(err)
	}
	b.write("Time, in UTC", then.Add(2*time.Minute).Format(time.RFC3339))
	b.press("Set")
	b.shows("shop/carts: ")
	b.press("Move it")
	b.await(`document.querySelector("[aria-label='Expired, and not purged yet']")?.innerText.includes("item-06")`)
	b.write("id", "item-20")
	b.write("Partition key", "ada")
	b.press("Explain")
	b.shows("360 s")
	b.press("Limit…")
	b.write("Items a second", "5")
	b.press("Set")
	b.shows("Limit: 5/s…")
	b.press("Erase…")
	b.press("Erase")
	b.shows("Erased.")
	b.goTo("#/shop/carts/items")
	b.shows("item-20")
	b.press("item-20")
	b.press("Extend…")
	b.write("It expires after", "2d")
	b.press("Extend")
	b.shows("2 d left.")
	b.press("Never expire")
	b.await(field("Item item-20 as JSON") + `.value.includes('"ttl": -1')`)
	b.press("Save")
	b.await(`document.querySelectorAll("dialog").length === 0`)
}

// Users, tokens, throughput, indexes, scripts in the tree, metrics, nodes and programs.
func TestExplorerServerAndAccess(t *testing.T) {
	b, s := openExplorer(t, Options{}, carts)
	s.must(t, 201, "POST", "/dbs/shop/colls/carts/docs", `{"id":"1","customer":"ada"}`, pk("ada"))
	b.press("Users and permissions")
	b.shows("There are no users.")
	b.press("New user")
	b.write("Name", "phone")
	b.press("Create")
	b.press("New permission")
	b.write("Name", "reads")
	b.write("Partition key", "ada")
	b.press("Create")
	b.shows(`["ada"]`)
	b.shoot("access")
	b.press("Mint a token…")
	b.write("It works for, in seconds", "600")
	b.press("Mint")
	b.shows("it is shown once")
	token := b.eval(field("Token") + `.value`).(string)
	b.press("Done")
	if kept := b.eval(`document.documentElement.outerHTML.includes(` + literal(token) + `) || JSON.stringify(localStorage).includes(` + literal(token) + `)`); kept != false {
		t.Error("the token is kept in the page")
	}
	for path, want := range map[string]int{"/dbs/shop/colls/carts/docs/1": 200, "/dbs/shop/colls/carts/docs/2": 404, "/dbs/shop": 403} {
		r, err := http.NewRequest("GET", "http://"+s.addr+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{"Authorization": token, "X-Ms-Date": time.Now().UTC().Format(http.TimeFormat), "X-Ms-Version": "2020-07-15", "X-Ms-Documentdb-Partitionkey": `["ada"]`} {
			r.Header.Set(name, value)
		}
		if a, err := s.do(r); err != nil || a.status != want {
			t.Errorf("with the token, %s answers %d %s, want %d (%v)", path, a.status, a.body, want, err)
		}
	}

	// A container with a rate, which is changed, and becomes autoscale.
	b.press("+ New container")
	b.write("Name", "limited")
	b.choose("Throughput", "a fixed rate")
	b.write("Request units a second", "500")
	b.press("Create")
	b.shows("There are no items here.")
	b.goTo("#/shop/limited/settings")
	b.shows("500 request units a second.")
	b.write("Request units a second", "700")
	b.press("Set the throughput")
	b.shows("700 request units a second.")
	b.choose("Kind", "up to a rate (autoscale)")
	b.write("Request units a second", "4000")
	b.press("Set the throughput")
	b.shows("Up to 4000 request units a second.")
	b.write("Path", "/secret/*")
	b.choose("What", "leave it out")
	b.press("Set the path")
	b.await(`document.querySelector("[aria-label=Indexes]").innerText.includes("/secret/*")`)
	b.write("New value", "2h")
	b.press("Set")
	b.shows("Now: 2 h.")
	b.shoot("settings")
	b.write("New value", "soon")
	b.press("Set")
	b.shows("soon is no duration.")
	b.press("Delete this container…")
	b.write("Type limited to delete it", "limited")
	b.press("Delete")
	b.await(`!document.querySelector(".tree").innerText.includes("limited")`)

	// A script is a line in the tree, and has an address.
	s.must(t, 201, "POST", "/dbs/shop/colls/carts/udfs", `{"id":"twice","body":"function (x) { return 2 * x; }"}`, nil)
	b.goTo("#/shop/carts/scripts")
	b.shows("Stored procedures")
	b.reload()
	b.await(button("ƒ twice"))
	b.goTo("#/shop/carts/scripts?kind=udfs&id=twice")
	b.await(field("Program") + `.value.includes("2 * x")`)
	b.write("Program", "function (x) { return 3 * x; }")
	b.press("Save")
	b.shows("Saved.")

	b.press("Metrics")
	b.shows("Requests a second")
	b.await(`document.querySelectorAll("figure .line-a, figure .dot").length > 0`)
	b.write("Filter", "authentication_failures")
	b.shows("reason=missing")
	b.shoot("metrics")
	b.press("Nodes and partitions")
	b.shows("This server is not a node of a cluster")
	b.shows("(first)")
	b.shoot("nodes")
	b.press("Connect")
	for language, has := range map[string]string{"Rust": "azure_data_cosmos", "Java": "trustStore", ".NET": "SSL_CERT_FILE", "Go": "azcosmos", "Python": "connection_verify", "curl": "--cacert", "JavaScript": "NODE_EXTRA_CA_CERTS"} {
		b.choose("Language", language)
		b.shows(has)
	}
	b.shoot("connect")
	if b.eval(`document.body.innerText.includes(`+literal(s.Key())+`)`) != false {
		t.Error("the page shows the key")
	}
	b.goTo("#/shop/nothing/items")
	b.shows("There is no container 'nothing' in the database 'shop'.")
	b.goTo("#/nowhere/nothing/items")
	b.shows("There is no database 'nowhere'.")
}

// An import that is paused and cancelled, an array of JSON, an export of CSV with what is left of the TTL.
func TestExplorerFiles(t *testing.T) {
	b, s := openExplorer(t, Options{TestClock: true}, carts)
	saved := b.downloads()
	b.press("Freeze")
	b.goTo("#/shop/carts/transfer")
	b.upload("File to import", "all.json", `[ {"id":"a","customer":"ada","ttl":100}, {"id":"b","customer":"ada","tags":["x,\"y\""]}, 3, {"id":"c"} ]`)
	b.press("Import")
	b.shows("3 items imported, 1 rejected.")
	b.press("Save what was rejected")
	if rows := saved("carts-rejected.jsonl"); rows != `{"error":"An item is a JSON object.","row":"3"}`+"\n" {
		t.Errorf("rejected is %s", rows)
	}
	b.press("+1 m")
	b.await(button("Release"))
	b.goTo("#/shop/carts/transfer")
	b.choose("As", "CSV, for spreadsheets")
	b.choose("The ttl of items", "what is left of it")
	b.press("Export")
	b.shows("3 items exported.")
	rows, err := csv.NewReader(strings.NewReader(saved("carts.csv"))).ReadAll()
	if err != nil || len(rows) != 4 {
		t.Fatalf("the CSV is %q, %v", rows, err)
	}
	got := map[string]string{}
	for _, row := range rows[1:] {
		for i, name := range rows[0] {
			got[row[slices.Index(rows[0], "id")]+"."+name] = row[i]
		}
	}
	for name, want := range map[string]string{"a.ttl": "40", "b.ttl": "3540", "c.ttl": "3540", "a.customer": "ada", "c.customer": "", "b.tags": `["x,\"y\""]`, "a.tags": ""} {
		if got[name] != want {
			t.Errorf("in the CSV, %s is %q, want %q", name, got[name], want)
		}
	}
	var lines strings.Builder
	for i := range 20000 {
		fmt.Fprintf(&lines, `{"id":"bulk-%05d","customer":"eve"}`+"\n", i)
	}
	b.upload("File to import", "bulk.jsonl", lines.String())
	b.press("Import")
	b.press("Pause the import")
	b.await(button("Resume the import"))
	b.press("Resume the import")
	b.press("Pause the import")
	b.await(button("Resume the import"))
	imported := b.eval(`Number(/([\d,]+) items imported, 0 rejected/.exec(document.body.innerText)[1].replaceAll(",", ""))`).(float64)
	b.press("Cancel")
	b.shows("Cancelled, after")
	counted := s.must(t, 200, "POST", "/dbs/shop/colls/carts/docs", `{"query":"SELECT VALUE COUNT(1) FROM c WHERE c.customer = 'eve'"}`,
		map[string]string{"Content-Type": "application/query+json", "x-ms-documentdb-isquery": "true", "x-ms-documentdb-partitionkey": `["eve"]`}).object(t)
	if n := counted["Documents"].([]any)[0].(float64); n != imported || n == 0 || n == 20000 {
		t.Errorf("%v items are there, and the page says %v", n, imported)
	}
	b.upload("File to import", "cut.json", `[{"id":"z"},`)
	b.press("Import")
	b.shows("The array has no end: the file is cut off.")
	b.upload("File to import", "open.csv", "id,customer\nlong,zoe,more\ngood,zoe\nopen,\"zoe\nlast,zoe\n")
	b.press("Import")
	b.shows("The file ends within a cell: a quote is not closed.")
	b.shows("1 items imported, 1 rejected. The last: The row has 3 cells for 2 names.")
	b.press("Save what was rejected")
	if rows := saved("carts-rejected.jsonl"); rows != `{"error":"The row has 3 cells for 2 names.","row":["long","zoe","more"]}`+"\n" {
		t.Errorf("rejected is %s", rows)
	}
}

// A pause of events that is longer than they are kept: the page says so, and begins anew.
func TestExplorerEventsThatAreGone(t *testing.T) {
	b, s := openExplorer(t, Options{TestClock: true}, `{"id":"carts","partitionKey":{"paths":["/customer"],"version":2},"defaultTtl":600}`)
	s.must(t, 201, "POST", "/dbs/shop/colls/carts/docs", `{"id":"first","customer":"ada","ttl":1}`, pk("ada"))
	if err := s.Clock().Advance(time.Minute); err != nil {
		t.Fatal(err)
	}
	b.goTo("#/shop/carts/ttl")
	b.press("Follow")
	b.await(`document.querySelector(".events tbody").textContent.includes("first")`)
	b.eval(`[...document.querySelectorAll("section")].find(s => s.textContent.includes("as they expire")).querySelector("button").click()`)
	b.shows("Paused. Events are kept for an hour.")
	if err := s.Clock().Advance(2 * time.Hour); err != nil {
		t.Fatal(err)
	}
	b.press("Resume")
	b.shows("some events may be missed")
	b.press("Follow")
	b.shows("Following.")
}

// Both modes of the change feed: differences, deletes and expiries, a pause, a time to begin.
func TestExplorerFeed(t *testing.T) {
	b, s := openExplorer(t, Options{TestClock: true}, `{"id":"carts","partitionKey":{"paths":["/customer"],"version":2},"defaultTtl":3600,"changeFeedPolicy":{"retentionDuration":60}}`)
	b.goTo("#/shop/carts/feed")
	b.choose("Show", "all versions and deletes")
	b.choose("From", "now")
	b.press("Follow")
	b.shows("Following.")
	b.await(`performance.getEntriesByType("resource").some(e => e.name.endsWith("/docs"))`)
	s.must(t, 201, "POST", "/dbs/shop/colls/carts/docs", `{"id":"1","customer":"ada","price":1}`, pk("ada"))
	s.must(t, 200, "PUT", "/dbs/shop/colls/carts/docs/1", `{"id":"1","customer":"ada","price":2}`, pk("ada"))
	b.shows("price: 1 → 2")
	b.press("Pause")
	b.shows("Nothing will be missed.")
	s.must(t, 204, "DELETE", "/dbs/shop/colls/carts/docs/1", "", pk("ada"))
	s.must(t, 201, "POST", "/dbs/shop/colls/carts/docs", `{"id":"2","customer":"ada","ttl":1}`, pk("ada"))
	if err := s.Clock().Advance(time.Minute); err != nil {
		t.Fatal(err)
	}
	b.press("Resume")
	b.shows("delete")
	b.shows("expired")
	b.shoot("feed-all")
	b.choose("Show", "latest versions")
	b.choose("From", "a time")
	b.write("Time, in UTC", "nonsense")
	b.press("Follow")
	b.shows("Give a time such as")
	b.write("Time, in UTC", "2020-01-01T00:00:00Z")
	s.must(t, 201, "POST", "/dbs/shop/colls/carts/docs", `{"id":"3","customer":"ada"}`, pk("ada"))
	b.press("Follow")
	b.shows("write, first seen")
}

// The main pages as the documentation shows them, in light and dark, each searched by axe.
func TestExplorerPictures(t *testing.T) {
	b, s := openExplorer(t, Options{TestClock: true}, carts)
	b.press("Freeze")
	b.await(button("Release"))
	for i := range 60 {
		ttl := ""
		if i%3 == 0 {
			ttl = fmt.Sprintf(`,"ttl":%d`, 45+i*60)
		} else if i%7 == 1 {
			ttl = `,"ttl":-1`
		}
		s.must(t, 201, "POST", "/dbs/shop/colls/carts/docs", fmt.Sprintf(`{"id":"cart-%03d","customer":"ada","items":%d,"total":%d.5,"city":"%s"%s}`, i, 1+i%5, 10+7*i%90, []string{"Lisbon", "Oslo", "Kyoto"}[i%3], ttl), pk("ada"))
	}
	for _, dark := range []bool{false, true} {
		b.resize(1200, 760, dark)
		suffix := map[bool]string{false: "light", true: "dark"}[dark]
		b.goTo("#/shop/carts/items")
		b.shows("cart-002")
		b.shoot("explorer-items-" + suffix)
		b.goTo("#/shop/carts/query?q=" + url.QueryEscape("SELECT c.city, COUNT(1) AS carts, AVG(c.total) AS total\nFROM c\nWHERE c.items > @few -- more than a few\nGROUP BY c.city"))
		b.write("Parameters", `{"@few": 2}`)
		b.write("Partition key", "ada")
		b.press("Run")
		b.shows("3 rows")
		b.shoot("explorer-query-" + suffix)
		b.goTo("#/shop/carts/ttl")
		b.await(`document.querySelectorAll("figure .bar-a").length > 3`)
		b.write("Time to live to try, typed", "20m")
		b.eval(field("Time to live to try, typed") + `.dispatchEvent(new Event("change"))`)
		b.await(`document.querySelectorAll("figure .bar-b").length > 0`)
		b.shoot("explorer-ttl-" + suffix)
		b.goTo("#/shop/carts/feed")
		b.press("Follow")
		b.shows("write, first seen")
		b.shoot("explorer-feed-" + suffix)
		for hash, shows := range map[string]string{"#/": "Live items", "#/connect": "Trust the certificate", "#/metrics": "Requests a second", "#/nodes": "(first)", "#/shop//access": "There are no users.",
			"#/shop/carts/scripts": "Stored procedures", "#/shop/carts/settings": "Definition", "#/shop/carts/transfer": "Export"} {
			b.goTo(hash)
			b.shows(shows)
			b.axe(hash + " in " + suffix)
		}
	}
}
