// SPDX-License-Identifier: MIT

package rest

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/api"
	"github.com/mayflydb/mayfly/internal/engine"
	"github.com/mayflydb/mayfly/internal/kv/pebblekv"
)

// scrapeOf returns the values on the metrics page by name and labels.
func scrapeOf(t testing.TB, h *Handler) map[string]float64 {
	t.Helper()
	r, err := http.NewRequest("GET", "http://localhost/_mayfly/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+testKey)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != 200 || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
		t.Fatalf("the metrics page: status %d, %s: %s", w.Code, w.Header().Get("Content-Type"), w.Body)
	}
	all := map[string]float64{}
	for l := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(l, "#") {
			continue
		}
		i := strings.LastIndexByte(l, ' ')
		v, err := strconv.ParseFloat(strings.TrimSpace(l[i+1:]), 64)
		if err != nil {
			t.Fatalf("%q is no line of the page", l)
		}
		all[l[:i]] = v
	}
	return all
}

// wantFigures checks figures of the page.
func wantFigures(t *testing.T, got, want map[string]float64) {
	t.Helper()
	for name, v := range want {
		if g, found := got[name]; !found || g != v {
			t.Errorf("%s is %v (there: %v), want %v", name, g, found, v)
		}
	}
}

func TestMetricsOfTTL(t *testing.T) {
	h := newCarts(t)
	call(t, h, "POST", "/dbs/d/colls/c/docs", `{"id":"long","pk":"ada","ttl":7200}`, pk("ada"), 201)
	advance(t, h, 15*time.Second)
	m := scrapeOf(t, h)
	wantFigures(t, m, map[string]float64{
		`ttl_purge_lag_seconds{container="c",database="d"}`:              5,
		`ttl_expired_pending_items{container="c",database="d"}`:          1,
		`ttl_forecast_items{container="c",database="d",horizon="1h"}`:    1,
		`ttl_forecast_items{container="c",database="d",horizon="24h"}`:   2,
		`ttl_forecast_items{container="c",database="d",horizon="7d"}`:    2,
		`ttl_purged_items_total{reason="sweep"}`:                         0,
		`ttl_purged_items_total{reason="assisted"}`:                      0,
		`ttl_purged_items_total{reason="forced"}`:                        0,
		`ttl_purge_throttled_seconds_total{cause="rate_limit"}`:          0,
		`ttl_purge_throttled_seconds_total{cause="throughput"}`:          0,
		`ttl_purge_throttled_seconds_total{cause="clock"}`:               0,
		`ttl_clock_guard_state`:                                          0,
		`mayfly_memory_limit_bytes`:                                      testMemoryBytes,
		`mayfly_memory_bytes`:                                            0,
		`mayfly_memory_waiting`:                                          0,
		`mayfly_memory_refused_total`:                                    0,
		`mayfly_requests_total{operation="item_create",status="201"}`:    4,
		`mayfly_request_duration_seconds_count{operation="item_create"}`: 4,
	})
	for _, name := range []string{
		`ttl_expired_pending_bytes{container="c",database="d"}`, `ttl_forecast_bytes{container="c",database="d",horizon="7d"}`,
		`ttl_leftover_ru{container="c",database="d"}`, `ttl_purged_bytes_total{reason="sweep"}`, `ttl_purged_ru_total{reason="sweep"}`,
		`ttl_purge_throttled_seconds_total{cause="paused"}`, `ttl_clock_skew_seconds`, `go_goroutines`,
	} {
		if _, found := m[name]; !found {
			t.Errorf("the page lacks %s", name)
		}
	}
	admin(t, h, "POST", "ttl/purge", 200)
	m = scrapeOf(t, h)
	wantFigures(t, m, map[string]float64{
		`ttl_purged_items_total{reason="forced"}`:               1,
		`ttl_expired_pending_items{container="c",database="d"}`: 0,
		`ttl_purge_lag_seconds{container="c",database="d"}`:     0,
	})
	if m[`ttl_purged_bytes_total{reason="forced"}`] == 0 || m[`ttl_purged_ru_total{reason="forced"}`] == 0 {
		t.Errorf("a purge took no bytes or cost nothing")
	}
	// Mayfly's own pages are not charged.
	before := m[`mayfly_request_units_total`]
	if after := scrapeOf(t, h)[`mayfly_request_units_total`]; after != before || before < 20 {
		t.Errorf("request units: %v, then %v; want the same, and at least those of four creates", before, after)
	}
}

func TestMetricsOfRequests(t *testing.T) {
	h := newContainer(t)
	item := "/dbs/d/colls/c/docs/1"
	upsert := pk("a")
	upsert["x-ms-documentdb-is-upsert"] = "true"
	call(t, h, "POST", "/dbs/d/colls/c/docs", `{"id":"1","pk":"a"}`, upsert, 201)
	call(t, h, "POST", "/dbs/d/colls/c/docs", `{"id":"1","pk":"a"}`, upsert, 200)
	call(t, h, "POST", "/dbs/d/colls/c/docs", `{"id":"1","pk":"a"}`, pk("a"), 409)
	call(t, h, "GET", item, "", pk("a"), 200)
	call(t, h, "GET", item+"x", "", pk("a"), 404)
	call(t, h, "PUT", item, `{"id":"1","pk":"a"}`, pk("a"), 200)
	call(t, h, "PATCH", item, `[{"op":"set","path":"/n","value":1}]`, pk("a"), 200)
	call(t, h, "DELETE", item, "", pk("a"), 204)
	batch := pk("a")
	batch["x-ms-cosmos-is-batch-request"], batch["x-ms-cosmos-batch-atomic"] = "True", "True"
	call(t, h, "POST", "/dbs/d/colls/c/docs", `[{"operationType":"Read","id":"1"}]`, batch, 207)
	delete(batch, "x-ms-cosmos-batch-atomic")
	call(t, h, "POST", "/dbs/d/colls/c/docs", `[{"operationType":"Read","id":"1","partitionKey":"[\"a\"]"}]`, batch, 207)
	call(t, h, "POST", "/dbs/d/users", `{"id":"u"}`, upsert, 201)
	call(t, h, "POST", "/dbs", `{"id":"e"}`, upsert, 201) // there is no upsert of databases
	call(t, h, "PUT", "/dbs/d/users", `{"id":"u"}`, nil, 405)
	call(t, h, "GET", "/dbs/d/colls/c/docs", "", nil, 200)
	call(t, h, "POST", "/dbs/d/colls/c/docs", `{}`, map[string]string{"Content-Type": "application/query+json"}, 400)
	call(t, h, "GET", "/dbs/d/colls/c/pkranges", "", nil, 200)
	call(t, h, "GET", "/", "", nil, 200)
	call(t, h, "GET", "/offers", "", nil, 200)
	serve(h, httptest.NewRequest("GET", "http://localhost/dbs/d", nil)) // not signed
	serve(h, httptest.NewRequest("GET", "http://localhost/no/such/path", nil))
	admin(t, h, "GET", "clock", 200)
	m := scrapeOf(t, h)
	for _, c := range []struct {
		operation string
		status    int
		n         float64
	}{
		{"database_create", 201, 2}, {"item_bulk", 207, 1}, {"user_upsert", 201, 1}, {"other", 405, 1}, {"container_create", 201, 1}, {"item_upsert", 201, 1}, {"item_upsert", 200, 1}, {"item_create", 409, 1},
		{"item_read", 200, 1}, {"item_read", 404, 1}, {"item_replace", 200, 1}, {"item_patch", 200, 1}, {"item_delete", 204, 1}, {"item_batch", 207, 1},
		{"item_list", 200, 1}, {"item_query", 400, 1}, {"range_list", 200, 1}, {"account_read", 200, 1}, {"offer_list", 200, 1},
		{"unknown", 401, 1}, {"unknown", 404, 1}, {"admin", 200, 1},
	} {
		name := fmt.Sprintf(`mayfly_requests_total{operation="%s",status="%d"}`, c.operation, c.status)
		wantFigures(t, m, map[string]float64{name: c.n})
	}
	if _, found := m[`mayfly_request_duration_seconds_count{operation="admin"}`]; found {
		t.Error("Mayfly's own pages have durations: a follower's would be hours")
	}
}

// Labels are a fixed set: each operation has its own name.
func TestOperationNames(t *testing.T) {
	seen := map[string]bool{}
	for op := range operations {
		name := operationName(op)
		if name == "" || seen[name] {
			t.Errorf("operation %d has the name %q", op, name)
		}
		seen[name] = true
	}
	for _, name := range []string{"unknown", "admin", "address_resolve", "other", "account_read", "database_create", "container_replace", "item_query_plan", "item_changes",
		"item_batch", "item_bulk", "partition_key_delete", "range_list", "procedure_execute", "encryption_key_replace", "permission_upsert", "conflict_query"} {
		if !seen[name] {
			t.Errorf("there is no operation %s", name)
		}
	}
}

// Shared throughput belongs to the database, and is reported once.
func TestMetricsOfSharedThroughput(t *testing.T) {
	h := newTestHandler(t)
	call(t, h, "POST", "/dbs", `{"id":"d"}`, map[string]string{"x-ms-offer-throughput": "500"}, 201)
	for _, id := range []string{"a", "b"} {
		call(t, h, "POST", "/dbs/d/colls", `{"id":"`+id+`","partitionKey":{"paths":["/pk"]}}`, nil, 201)
	}
	m := scrapeOf(t, h)
	wantFigures(t, m, map[string]float64{`ttl_leftover_ru{container="",database="d"}`: 500})
	if _, found := m[`ttl_leftover_ru{container="a",database="d"}`]; found {
		t.Error("a container has what is its database's")
	}
}

func TestMetricsAreBounded(t *testing.T) {
	h := newCarts(t)
	for i := range maxMeteredContainers + 1 {
		call(t, h, "POST", "/dbs/d/colls", fmt.Sprintf(`{"id":"c%03d","defaultTtl":5,"partitionKey":{"paths":["/pk"]}}`, i), nil, 201)
	}
	last := fmt.Sprintf("/dbs/d/colls/c%03d/docs", maxMeteredContainers)
	call(t, h, "POST", last, `{"id":"1","pk":"ada"}`, pk("ada"), 201)
	advance(t, h, 7*time.Second)
	m := scrapeOf(t, h)
	// Two containers have no throughput of their own, and one of them has an expired
	// item.
	wantFigures(t, m, map[string]float64{
		`ttl_expired_pending_items{container="other",database=""}`: 1,
		`ttl_purge_lag_seconds{container="other",database=""}`:     2,
	})
	// Two times 400, minus what a create may have used in the last second.
	if left := m[`ttl_leftover_ru{container="other",database=""}`]; left <= 700 || left > 800 {
		t.Errorf("the others left %v over", left)
	}
	n := 0
	for name := range m {
		if strings.HasPrefix(name, "ttl_purge_lag_seconds{") {
			n++
		}
	}
	if n != maxMeteredContainers+1 {
		t.Errorf("%d containers have figures, want %d and the others", n, maxMeteredContainers)
	}
}

// newEngineHandler returns a handler whose storage engine reports its health, with a
// container.
func newEngineHandler(t *testing.T) *Handler {
	t.Helper()
	db, err := pebblekv.OpenMemory(pebblekv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.Open(engine.Options{DB: db, Health: db.Health, Explain: api.Explain})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(e.Close(), db.Close()); err != nil {
			t.Error(err)
		}
	})
	h, err := New(Options{Engine: e, Keys: []string{testKey}, Account: api.Account{Regions: []string{"Here"}, Consistency: "Session"}})
	if err != nil {
		t.Fatal(err)
	}
	call(t, h, "POST", "/dbs", `{"id":"d"}`, nil, 201)
	call(t, h, "POST", "/dbs/d/colls", containerBody, nil, 201)
	return h
}

func TestMetricsOfTheEngine(t *testing.T) {
	m := scrapeOf(t, newEngineHandler(t))
	for _, name := range []string{
		"read_amplification", "compaction_debt_bytes", "flushing_memtables", "stalled", "stalls_total", "disk_bytes", "wal_bytes",
		"spare_wal_bytes", "garbage_bytes", "tombstones", "memtable_bytes", "cache_bytes", "cache_hits_total", "cache_misses_total",
		"flushes_total", "flushed_bytes_total", "compactions_total", "compacted_bytes_total",
	} {
		if _, found := m["mayfly_engine_"+name]; !found {
			t.Errorf("the page lacks mayfly_engine_%s", name)
		}
	}
	// An engine that reports no health has no figures.
	for name := range scrapeOf(t, newTestHandler(t)) {
		if strings.HasPrefix(name, "mayfly_engine_") {
			t.Errorf("the page has %s", name)
		}
	}
}

// Counting must be cheap: no allocation, and a fraction of a microsecond.
func TestObserveAllocatesNothing(t *testing.T) {
	h, _ := logged(t)
	h.service.Journal.Slow = api.DefaultSlowRequest
	x := &exchange{operation: api.Lookup(api.Items, api.Read).Number, status: 200}
	x.Began, x.Answer.Charge = time.Now(), 1
	x.Row, x.Origin = api.Lookup(api.Items, api.Read), x
	if n := testing.AllocsPerRun(1000, func() { h.observe(x) }); n != 0 {
		t.Errorf("%v allocations for each request", n)
	}
}

func BenchmarkObserve(b *testing.B) {
	h := newTestHandler(b)
	r := signedRequest(b, "GET", "/dbs/d/colls/c/docs/1", nil, pk("a"))
	rt, _ := parseRoute(r.URL.EscapedPath())
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		x := h.exchange(nil, r)
		x.status, x.Answer.Charge = 200, 1
		for pb.Next() {
			x.Began = time.Now()
			x.fill(&rt)
			x.operation = x.Row.Number
			h.observe(x)
		}
	})
}

// The docs page lists every metric.
func TestMetricsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/ttl.md")
	if err != nil {
		t.Fatal(err)
	}
	for name := range scrapeOf(t, newEngineHandler(t)) {
		name, _, _ = strings.Cut(name, "{")
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			name = strings.TrimSuffix(name, suffix)
		}
		ours := strings.HasPrefix(name, "ttl_") || strings.HasPrefix(name, "mayfly_")
		if ours && !bytes.Contains(page, []byte("`"+name+"`")) {
			t.Errorf("docs/ttl.md lacks %s", name)
		}
	}
}
