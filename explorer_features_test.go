// SPDX-License-Identifier: MIT

// What the explorer does besides the main way through each of its views, in a real browser.

package mayfly

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/kv/kvtest"
)

// tab presses the tab of the results with a title, which is that of a page too.
func (b *browser) tab(title string) {
	b.t.Helper()
	at := `[...document.querySelectorAll("[role=tab]")].find(t => t.textContent === ` + literal(title) + `)`
	b.await(at)
	b.eval(at + `.click()`)
}

// click waits for what a selector finds, and presses it.
func (b *browser) click(selector string) {
	b.t.Helper()
	b.await(`document.querySelector(` + literal(selector) + `)`)
	b.eval(`document.querySelector(` + literal(selector) + `).click()`)
}

// A dialog is about the page that it was opened on, and goes with it.
func TestExplorerDialogsGoWithTheirPage(t *testing.T) {
	b, _ := openExplorer(t, Options{}, carts)
	b.goTo("#/shop/carts/items")
	b.press("New item")
	b.await(`document.querySelector("dialog[open]")`)
	b.goTo("#/shop/carts/query")
	b.await(field("Query"))
	b.await(`!document.querySelector("dialog")`)
	b.eval(`history.back()`)
	b.await(button("New item") + ` && !document.querySelector("dialog")`)
	b.press("New item")
	b.await(`document.querySelector("dialog[open]")`)
}

// An item that expires while it is edited is told from one that was deleted.
func TestExplorerItemsThatGo(t *testing.T) {
	b, s := openExplorer(t, Options{TestClock: true}, carts)
	b.press("Freeze")
	b.await(button("Release"))
	for _, item := range []string{`{"id":"short","customer":"ada","ttl":60}`, `{"id":"kept","customer":"ada"}`} {
		s.must(t, 201, "POST", "/dbs/shop/colls/carts/docs", item, pk("ada"))
	}
	b.goTo("#/shop/carts/items")
	b.press("short")
	b.write("Item short as JSON", `{"id":"short","customer":"ada","note":"too late"}`)
	if err := s.Clock().Advance(2 * time.Minute); err != nil {
		t.Fatal(err)
	}
	b.press("Save")
	b.shows("The item expired at ")
	b.shows("while it was open here.")
	b.lacks("was deleted")
	b.press("Cancel")
	b.press("kept")
	b.write("Item kept as JSON", `{"id":"kept","customer":"ada","note":"too late"}`)
	s.must(t, 204, "DELETE", "/dbs/shop/colls/carts/docs/kept", "", pk("ada"))
	b.press("Save")
	b.shows("The item was deleted while it was open here.")
	b.lacks("The item expired")
	b.press("Cancel")
	for _, id := range []string{"short", "kept"} {
		s.must(t, 404, "GET", "/dbs/shop/colls/carts/docs/"+id, "", pk("ada")) // the editor has made none anew
	}
}

// A query over several partitions in pages, its metrics, its end by the button, and its results,
// which belong to their container.
func TestExplorerQueriesOfPartitions(t *testing.T) {
	b, s := openExplorer(t, Options{}, carts)
	s.must(t, 201, "POST", "/dbs/shop/colls", `{"id":"orders","partitionKey":{"paths":["/customer"],"version":2}}`, map[string]string{"x-ms-offer-throughput": "21000"})
	for i := range 250 {
		customer := fmt.Sprint("c", i%50)
		s.must(t, 201, "POST", "/dbs/shop/colls/orders/docs", fmt.Sprintf(`{"id":"%03d","customer":"%s","price":%d}`, i, customer, 999-i), pk(customer))
	}
	b.goTo("#/shop/orders/query")
	b.reload() // the container is new to the page
	run := func(query, shows string) {
		t.Helper()
		b.write("Query", query)
		b.press("Run")
		b.shows(shows)
	}
	run("SELECT VALUE COUNT(1) FROM c", "1 rows,")
	b.await(`JSON.parse(document.querySelector("#results pre").textContent)[0] === 250`)
	run("SELECT c.customer, COUNT(1) AS orders FROM c GROUP BY c.customer", "50 rows,")
	run("SELECT DISTINCT VALUE c.customer FROM c", "50 rows,")
	run("SELECT TOP 7 * FROM c", "7 rows,")
	run("SELECT VALUE c.id FROM c ORDER BY c.price", "100 rows so far")
	b.press("Next page")
	b.shows("200 rows so far")
	b.press("Next page")
	b.shows("250 rows")
	if ids := b.eval(`JSON.parse(document.querySelector("#results pre").textContent).join(" ")`).(string); !strings.HasPrefix(ids, `249 248 247`) || !strings.HasSuffix(ids, `001 000`) || len(strings.Fields(ids)) != 250 {
		t.Errorf("the rows in order are %.100s", ids)
	}

	// The tab is told from the page of the same name.
	b.tab("Metrics")
	b.await(`/retrievedDocumentCount\s+\d+/.test(document.querySelector("#results").innerText)`)
	if n := b.eval(`Number(/retrievedDocumentCount\s+(\d+)/.exec(document.querySelector("#results").innerText)[1])`).(float64); n < 50 {
		t.Errorf("the last page of 50 rows has read %v items", n)
	}
	b.shoot("query-metrics")
	b.tab("Table")

	// Another container begins without the rows, and with its own queries.
	b.goTo("#/shop/carts/query")
	b.await(field("Query") + `.value === "SELECT * FROM c"`)
	b.await(`document.querySelector("#results pre, #results td") === null && !document.body.innerText.includes("250 rows")`)
	b.tab("Metrics")
	b.shows("Run a query first.")

	// A query that takes long is given up, and another one runs.
	s.must(t, 201, "POST", "/dbs/shop/colls/orders/udfs", `{"id":"slow","body":"function (x) { for (var n = 0; n < 1e9; n++) { x = (x + n) % 7; } return x; }"}`, nil)
	b.goTo("#/shop/orders/query")
	b.await(field("Query") + `.value.includes("ORDER BY c.price")`)
	b.write("Query", "SELECT VALUE udf.slow(c.price) FROM c")
	b.press("Run")
	b.press("Cancel")
	b.shows("Cancelled.")
	b.await(`document.querySelector("#results pre, #results td") === null`)
	run("SELECT TOP 3 * FROM c", "3 rows,")
}

// An export that is paused in the middle, goes on and is whole, as an array; and one that is
// cancelled. An import that replaces items and leaves out their ttl.
func TestExplorerFilesInParts(t *testing.T) {
	b, s := openExplorer(t, Options{}, carts)
	const items = 4500
	for at := 0; at < items; at += 100 {
		var ops []string
		for i := range 100 {
			ops = append(ops, fmt.Sprintf(`{"operationType":"Create","resourceBody":{"id":"%04d","customer":"ada"}}`, at+i))
		}
		s.must(t, 200, "POST", "/dbs/shop/colls/carts/docs", "["+strings.Join(ops, ",")+"]", map[string]string{
			"x-ms-documentdb-partitionkey": `["ada"]`, "x-ms-cosmos-is-batch-request": "true", "x-ms-cosmos-batch-atomic": "true",
		})
	}
	saved := b.downloads()
	b.goTo("#/shop/carts/transfer")
	b.choose("As", "JSON, one array")
	// The export is paused as its third page comes.
	b.eval(`(() => { const get = fetch; window.pages = 0; window.fetch = async (...a) => { const got = await get(...a);
		if (a[1]?.method === "POST" && String(a[0]).endsWith("/docs") && ++pages === 3) ` + button("Pause") + `.click(); return got } })()`)
	b.press("Export")
	b.shows("2,000 items read. Paused.")
	b.press("Resume the export")
	b.shows("4,500 items exported.")
	var rows []struct{ ID string }
	if err := json.Unmarshal([]byte(saved("carts.json")), &rows); err != nil {
		t.Fatal(err)
	}
	met := map[string]bool{}
	for _, row := range rows {
		met[row.ID] = true
	}
	if len(rows) != items || len(met) != items {
		t.Errorf("the file has %d items, of which %d differ", len(rows), len(met))
	}
	b.eval(`window.pages = 0`)
	b.press("Export")
	b.shows("2,000 items read. Paused.")
	b.press("Cancel")
	b.shows("Cancelled.")
	b.await(button("Export") + ` && document.querySelectorAll("a[download]").length === 0 && Object.keys(saved).length === 0`)

	file := `{"id":"0001","customer":"ada","ttl":5,"v":2}` + "\n" + `{"id":"new","customer":"ada","ttl":5}` + "\n"
	b.upload("File to import", "two.jsonl", file)
	b.press("Import")
	b.shows("1 items imported, 1 rejected.")
	b.shows("there is an item with this id")
	b.upload("File to import", "two.jsonl", file)
	b.choose("If there is an item with its id", "replace it")
	b.eval(`(s => { s.value = "drop"; s.dispatchEvent(new Event("change")) })([...document.querySelectorAll("select")].find(s => [...s.options].some(o => o.value === "drop")))`)
	b.press("Import")
	b.shows("2 items imported, 0 rejected.")
	for id, v := range map[string]any{"0001": 2.0, "new": nil} {
		got := s.must(t, 200, "GET", "/dbs/shop/colls/carts/docs/"+id, "", pk("ada")).object(t)
		if _, has := got["ttl"]; has || got["v"] != v {
			t.Errorf("the item is %v", got)
		}
	}
}

// Expired items are purged by a button; the feed begins anew; a trigger is made, changed, and
// deleted.
func TestExplorerPurgeFeedAndTriggers(t *testing.T) {
	b, s := openExplorer(t, Options{TestClock: true}, carts)
	b.press("Freeze")
	b.await(button("Release"))
	b.goTo("#/shop/carts/ttl")
	b.press("Limit…")
	b.write("Items a second", "1")
	b.press("Set")
	b.shows("Limit: 1/s…")
	for i := range 20 {
		s.must(t, 201, "POST", "/dbs/shop/colls/carts/docs", fmt.Sprintf(`{"id":"%02d","customer":"ada","ttl":60}`, i), pk("ada"))
	}
	if err := s.Clock().Advance(time.Minute); err != nil {
		t.Fatal(err)
	}
	pending := func() string {
		t.Helper()
		r, err := http.NewRequest("GET", "http://"+s.addr+"/_mayfly/ttl/status?database=shop&container=carts", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+s.Key())
		a, err := s.do(r)
		if err != nil || a.status != 200 {
			t.Fatalf("the status: %d, %v", a.status, err)
		}
		all := a.object(t)["containers"].([]any)
		return fmt.Sprint(all[0].(map[string]any)["expiredPending"].(map[string]any)["items"])
	}
	if n := pending(); n == "0" {
		t.Fatal("nothing is left to be purged")
	}
	b.press("Purge now")
	b.shows("All that has expired is purged.")
	if n := pending(); n != "0" {
		t.Errorf("%s expired items are left", n)
	}

	s.must(t, 201, "POST", "/dbs/shop/colls/carts/docs", `{"id":"first","customer":"ada"}`, pk("ada"))
	b.goTo("#/shop/carts/feed")
	changes := `document.querySelectorAll("[aria-label=Changes] tbody tr").length`
	b.press("Follow")
	b.await(changes + ` === 1`)
	s.must(t, 200, "PUT", "/dbs/shop/colls/carts/docs/first", `{"id":"first","customer":"ada","n":2}`, pk("ada"))
	b.await(changes + ` === 2`)
	b.press("Begin anew")
	b.await(changes + ` === 0 && ` + button("Follow"))
	b.press("Follow")
	b.await(changes + ` === 1`) // the latest version, from the start, and no version before
	b.shows("write, first seen")

	b.goTo("#/shop/carts/scripts")
	b.press("New trigger")
	b.write("Name", "stamp")
	b.choose("When", "Pre")
	b.choose("On", "Create")
	b.write("Program", `function () { var r = getContext().getRequest(); var item = r.getBody(); item.stamped = true; r.setBody(item); }`)
	b.shoot("trigger")
	b.press("Save")
	b.press("stamp")
	b.await(field("On") + `.selectedOptions[0].textContent === "Create"`)
	with := func(id string) map[string]any {
		headers := pk("ada")
		headers["x-ms-documentdb-pre-trigger-include"] = "stamp"
		return s.must(t, 201, "POST", "/dbs/shop/colls/carts/docs", `{"id":"`+id+`","customer":"ada"}`, headers).object(t)
	}
	if item := with("second"); item["stamped"] != true {
		t.Errorf("the trigger made %v", item)
	}
	b.write("Program", `function () { var r = getContext().getRequest(); var item = r.getBody(); item.stamped = "again"; r.setBody(item); }`)
	b.press("Save")
	b.await(`document.querySelectorAll("dialog").length === 0`)
	if item := with("third"); item["stamped"] != "again" {
		t.Errorf("the changed trigger made %v", item)
	}
	b.press("stamp")
	b.press("Delete…")
	b.press("Delete")
	b.await(`document.querySelectorAll("dialog").length === 0 && !document.querySelector("main").innerText.includes("stamp")`)
	if all := s.must(t, 200, "GET", "/dbs/shop/colls/carts/triggers", "", nil).object(t); all["_count"] != 0.0 {
		t.Errorf("the triggers are %v", all)
	}
}

// Three nodes of a cluster: the page shows all, queries read of all, and one is drained.
func TestExplorerOfACluster(t *testing.T) {
	b := startBrowser(t)
	db := kvtest.NewModel()
	one, two, three := serveNode(t, db, "a"), serveNode(t, db, "b"), serveNode(t, db, "c")
	one.must(t, 201, "POST", "/dbs", `{"id":"shop"}`, nil)
	two.must(t, 201, "POST", "/dbs/shop/colls", `{"id":"carts","partitionKey":{"paths":["/customer"],"version":2}}`, map[string]string{"x-ms-offer-throughput": "60000"})
	for i := range 40 {
		customer := fmt.Sprint("c", i)
		[]*testServer{one, two, three}[i%3].must(t, 201, "POST", "/dbs/shop/colls/carts/docs", fmt.Sprintf(`{"id":"%02d","customer":"%s"}`, i, customer), pk(customer))
	}
	name, other := "b", two
	if len(other.engine.Node().Owned()) == 0 {
		name, other = "c", three
	}
	if len(other.engine.Node().Owned()) == 0 {
		t.Fatal("one node owns all")
	}
	b.visit("http://" + one.addr + "/")
	b.press("Open this server")
	b.shows("shop / carts")
	b.goTo("#/shop/carts/query")
	b.write("Query", "SELECT VALUE c.id FROM c ORDER BY c.id DESC")
	b.press("Run")
	b.shows("40 rows,")
	b.await(`JSON.parse(document.querySelector("#results pre").textContent).join(" ").startsWith("39 38 37")`)

	row := func(name string) string {
		return `[...document.querySelectorAll("[aria-label=Nodes] tbody tr")].find(r => r.cells[0].textContent.startsWith(` + literal(name) + `))`
	}
	b.press("Nodes and partitions")
	b.shows("3 nodes and 10 partitions")
	b.shows("This page is answered by a.")
	b.await(row("a") + `.cells[0].textContent === "a (this one)" && ` + row(name) + `.cells[1].textContent === "serving"`)
	b.await(`Number(` + row(name) + `.cells[4].textContent) > 0`)
	b.shoot("cluster")
	b.click(`[aria-label="Drain ` + name + `"]`)
	b.shows("Then it can be stopped without anybody noticing.")
	b.press("Drain")
	b.await(`document.querySelectorAll("dialog").length === 0`)
	b.await(row(name) + `?.cells[1].textContent !== "serving"`)
	if owned := other.engine.Node().Owned(); len(owned) != 0 {
		t.Errorf("the drained node owns %v", owned)
	}
	b.goTo("#/shop/carts/query")
	b.write("Query", "SELECT VALUE COUNT(1) FROM c")
	b.press("Run")
	b.shows("1 rows,")
	b.await(`JSON.parse(document.querySelector("#results pre").textContent)[0] === 40`)
}

// A list of more rows than a browser draws as one piece: its end can be reached, and its
// beginning again. The rows are made in the page, as a million items take minutes to write.
func TestExplorerListsAreOfAnyLength(t *testing.T) {
	const rows = 500_000
	b, _ := openExplorer(t, Options{}, `{"id":"carts","partitionKey":{"paths":["/customer"],"version":2}}`)
	b.eval(fmt.Sprintf(`(() => { const get = fetch; window.fetch = async (path, o) => {
		if (o?.method !== "POST" || !String(path).endsWith("/docs")) return get(path, o);
		const from = Number(o.headers["x-ms-continuation"] ?? 0), n = Math.min(Number(o.headers["x-ms-max-item-count"]), %[1]d - from);
		const Documents = Array.from({length: n}, (_, i) => ({id: "row-" + (from + i), customer: "ada", _rid: "r" + (from + i)}));
		return new Response(JSON.stringify({Documents}), {headers: from + n < %[1]d ? {"x-ms-continuation": String(from + n)} : {}}) } })()`, rows))
	b.goTo("#/shop/carts/items")
	b.shows("row-3")
	b.eval(`window.down = setInterval(() => { const list = document.querySelector(".list"); list.scrollTop = list.scrollHeight }, 1)`)
	status := `document.querySelector(".bar:last-child").innerText`
	for end := time.Now().Add(3 * time.Minute); b.eval(status+`.startsWith("500,000 items")`) != true; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the end is not reached: %v", b.eval(status))
		}
	}
	b.eval(`clearInterval(down)`)
	inView := func(id string) string {
		return `(() => { const list = document.querySelector(".list").getBoundingClientRect(), row = [...document.querySelectorAll(".list button.link")].find(l => l.textContent === "` + id + `")?.getBoundingClientRect(); return row && row.top >= list.top && row.bottom <= list.bottom })()`
	}
	b.eval(`document.querySelector(".list").scrollTop = 1e9`)
	b.await(inView("row-499999"))
	if high := b.eval(`document.querySelector(".list").scrollHeight`).(float64); high > 16e6 {
		t.Errorf("the list is %.0f pixels high, which Firefox does not draw", high)
	}
	// By keys, and up again by the bar alone.
	for _, id := range []string{"row-499999", "row-0"} {
		b.eval(`document.querySelector(".list").focus()`)
		b.key(map[string]string{"row-499999": "End", "row-0": "Home"}[id], 0)
		b.await(inView(id))
	}
	b.key("End", 0)
	b.await(inView("row-499999"))
	b.eval(`window.up = setInterval(() => { const list = document.querySelector(".list"); if (list.scrollTop > 0) list.scrollTop = Math.max(0, list.scrollTop - 2e6) }, 20)`)
	b.await(inView("row-0"))
	b.eval(`clearInterval(up)`)
}
