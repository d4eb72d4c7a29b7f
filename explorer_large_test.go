// SPDX-License-Identifier: MIT

// The explorer where there is much: a thousand containers, and a container of a million items.

package mayfly

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// A thousand containers: the page opens, the tree and the palette find one by its name.
func TestExplorerOfManyContainers(t *testing.T) {
	b, s := openExplorer(t, Options{}, carts)
	const containers = 1000
	for i := range containers {
		s.must(t, 201, "POST", "/dbs/shop/colls", fmt.Sprintf(`{"id":"c-%04d","partitionKey":{"paths":["/pk"],"version":2},"defaultTtl":60}`, i), nil)
	}
	b.reload()
	b.shows("shop / c-0998")
	b.write("Find a container", "c-0777")
	b.shows("1 found")
	b.await(`[...document.querySelectorAll(".tree a")].some(a => a.textContent === "c-0777" && a.checkVisibility())`)
	if n := b.eval(`document.querySelectorAll(".tree a").length`).(float64); n > 20 {
		t.Errorf("the tree draws %v lines for one container", n)
	}
	b.press("c-0777")
	b.shows("There are no items here.")
	b.key("k", control)
	b.await(`document.querySelector("dialog input[role=combobox]") === document.activeElement`)
	b.call("Input.insertText", map[string]any{"text": "c-0123 settings"}, nil)
	b.key("Enter", 0)
	b.shows("Delete this container…")
	b.write("Find a container", " ")
	b.await(`document.querySelectorAll(".tree a").length > 200`)
	if n := b.eval(`document.querySelectorAll(".tree a").length`).(float64); n > 320 {
		t.Errorf("the tree draws %v lines", n)
	}
	b.axe("a thousand containers")
}

// million is how many items the container has in the long run.
const million = 1_000_000

// A container of a million items: how long the first rows take, and whether the page stands
// still while it is scrolled.
func TestExplorerOfAMillionItems(t *testing.T) {
	if os.Getenv("MAYFLY_LONG") == "" {
		t.Skip("SKIPPED: it takes minutes; MAYFLY_LONG=1 runs it")
	}
	b, s := openExplorer(t, Options{}, `{"id":"carts","partitionKey":{"paths":["/customer"],"version":2},"defaultTtl":86400,"indexingPolicy":{"indexingMode":"consistent","includedPaths":[{"path":"/price/?"}],"excludedPaths":[{"path":"/*"}]}}`)
	const batch, writers = 100, 4
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := w * batch; i < million; i += writers * batch {
				var ops strings.Builder
				for n := range batch {
					fmt.Fprintf(&ops, `,{"operationType":"Create","resourceBody":{"id":"item-%07d","customer":"c%d","price":%d,"note":"some words that every item has"}}`, i+n, i/batch, n)
				}
				a := s.send(t, "POST", "/dbs/shop/colls/carts/docs", "["+ops.String()[1:]+"]", map[string]string{
					"x-ms-documentdb-partitionkey": fmt.Sprintf(`["c%d"]`, i/batch), "x-ms-cosmos-is-batch-request": "true", "x-ms-cosmos-batch-atomic": "true",
				})
				if a.status != 200 {
					t.Errorf("a batch: %d %.200s", a.status, a.body)
					return
				}
			}
		})
	}
	wg.Wait()

	// From the moment that the view is asked for, to a drawn row.
	var firsts []float64
	for range 5 {
		b.goTo("#/connect")
		b.shows("The endpoint is")
		ms := b.eval(`new Promise(done => { const began = performance.now(); location.hash = "#/shop/carts/items";
			const look = () => document.querySelector(".list tbody button.link") ? requestAnimationFrame(() => done(performance.now() - began)) : requestAnimationFrame(look); look() })`).(float64)
		t.Logf("first list after %.0f ms", ms)
		firsts = append(firsts, ms)
	}
	slices.Sort(firsts)
	if median := firsts[len(firsts)/2]; median > 300 {
		t.Errorf("the first list took %.0f ms, more than 300", median)
	}

	// Scrolling, a screen with each frame; then back to the top, whose pages are gone.
	got := b.eval(`new Promise(done => { const list = document.querySelector(".list"), until = performance.now() + 10_000; let last = performance.now(), gaps = [];
		const step = now => { gaps.push(now - last); last = now; list.scrollTop += 1500; now < until ? requestAnimationFrame(step) : (gaps.sort((a, b) => a - b),
			done({frames: gaps.length, median: gaps[gaps.length >> 1], most: gaps.at(-1), slow: gaps.filter(g => g > 100).length, rows: document.querySelectorAll(".list tbody tr").length, status: document.querySelector(".bar:last-child").innerText, heap: performance.memory.usedJSHeapSize / 2 ** 20})) };
		requestAnimationFrame(step) })`).(map[string]any)
	t.Logf("scrolling for 10 s: %v", got)
	if got["rows"].(float64) > 100 || got["most"].(float64) > 500 || got["slow"].(float64) > got["frames"].(float64)/20 {
		t.Errorf("scrolling is not smooth: %v", got)
	}
	b.eval(`document.querySelector(".list").scrollTop = 0`)
	began := time.Now()
	b.shows("item-")
	t.Logf("back at the top after %v", time.Since(began))

	// All the way down, which is more than a browser draws as one piece, and up again.
	began = time.Now()
	b.eval(`window.down = setInterval(() => { const list = document.querySelector(".list"); list.scrollTop = list.scrollHeight }, 5)`)
	for status := ""; status != "1,000,000 items"; {
		if time.Since(began) > 15*time.Minute {
			t.Fatalf("after a quarter of an hour the list ends with %s", status)
		}
		time.Sleep(time.Second)
		status = b.eval(`/^[\d,]+\+? items/.exec(document.querySelector(".bar:last-child").innerText)?.[0] ?? ""`).(string)
	}
	t.Logf("all %d rows known after %v", million, time.Since(began))
	b.eval(`clearInterval(down)`)
	b.eval(`document.querySelector(".list").focus()`)
	b.key("End", 0)
	b.await(`document.activeElement.closest("tr")?.item && document.activeElement.getBoundingClientRect().bottom <= innerHeight && document.querySelector(".list tbody:nth-of-type(2) tr:last-child").contains(document.activeElement)`)
	last := b.eval(`document.activeElement.textContent`)
	b.key("Home", 0)
	top := `document.querySelector(".list tbody button.link").textContent`
	b.await(`document.querySelector(".list").scrollTop === 0 && ` + top + ` !== ` + literal(fmt.Sprint(last)))
	first := b.eval(top).(string)
	t.Logf("the first is %v, the last %v", first, last)
	if first > "item-0001000" || fmt.Sprint(last) < "item-0990000" {
		t.Errorf("the first row is %v, and the last %v", first, last)
	}
	b.write("Filter", "c.price = 7 AND c.customer = 'c5000'")
	b.press("Filter")
	b.shows("item-0500007")
}
