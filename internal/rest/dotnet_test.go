// SPDX-License-Identifier: MIT

// What the .NET SDK sends in gateway mode and relies on, taken from its source
// (Microsoft.Azure.Cosmos 3.62). The programs in test/compat cannot run it.

package rest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
)

// dotnetHeaders go with every request of the SDK.
func dotnetHeaders(more map[string]string) map[string]string {
	h := map[string]string{
		"User-Agent":                            "cosmos-netstandard-sdk/3.62.1|1|X64|Linux|.NET 8.0|N|",
		"Accept":                                "application/json",
		"Cache-Control":                         "no-cache",
		"x-ms-version":                          "2020-07-15",
		"x-ms-activity-id":                      "7f2c8f2e-6c7e-4a3c-9b0a-0d8f2f3f6d11",
		"x-ms-noretry-449":                      "True",
		"x-ms-cosmos-sdk-supportedcapabilities": "9",
	}
	maps.Copy(h, more)
	return h
}

// The SDK reads the item count of every answer to a change feed, 304 included.
func TestDotNetChangeFeed(t *testing.T) {
	h := newTestHandler(t)
	call(t, h, "POST", "/dbs", `{"id":"d"}`, nil, 201)
	call(t, h, "POST", "/dbs/d/colls", `{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},"changeFeedPolicy":{"retentionDuration":10}}`, nil, 201)
	modes := map[string]map[string]string{
		"latest":       {"A-IM": "Incremental Feed"},
		"all versions": {"A-IM": "Full-Fidelity Feed", "x-ms-cosmos-changefeed-wire-format-version": "2021-09-15"},
	}
	for name, mode := range modes {
		t.Run(name, func(t *testing.T) {
			read := func(position string, want int) answer {
				t.Helper()
				headers := dotnetHeaders(mode)
				headers["If-None-Match"] = position
				headers["x-ms-documentdb-partitionkeyrangeid"] = "0"
				headers["x-ms-max-item-count"] = "100"
				a := call(t, h, "GET", testDocs, "", headers, want)
				if a.header.Get("ETag") == "" || !strings.HasPrefix(a.header.Get("x-ms-session-token"), "0:") {
					t.Errorf("no continuation, or no session: %v", a.header)
				}
				return a
			}
			a := read("*", 304)
			if got := a.header.Get("x-ms-item-count"); got != "0" {
				t.Errorf("304 counts %q items", got)
			}
			call(t, h, "POST", testDocs, `{"id":"`+name+`","pk":"a"}`, pk("a"), 201)
			a = read(a.header.Get("ETag"), 200)
			if got := a.header.Get("x-ms-item-count"); got != "1" {
				t.Errorf("200 counts %q items", got)
			}
			if got := read(a.header.Get("ETag"), 304).header.Get("x-ms-item-count"); got != "0" {
				t.Errorf("304 counts %q items", got)
			}
		})
	}
}

// A change feed that is requested with a query is not treated as a query, whose answer
// has no continuation for it.
func TestDotNetChangeFeedQuery(t *testing.T) {
	h := newContainer(t)
	a := call(t, h, "POST", testDocs, `{"query":"SELECT * FROM c"}`, dotnetHeaders(map[string]string{
		"A-IM": "Incremental Feed", "Content-Type": "application/query+json", "x-ms-documentdb-isquery": "True",
		"x-ms-documentdb-partitionkeyrangeid": "0",
	}), 400)
	if got := a.failureText(t, 400, 0); !strings.Contains(got, "with a query") {
		t.Errorf("got %q", got)
	}
}

// If one range has all that a query asks for, the SDK sends the query unchanged, with the
// largest integer for no limit, and takes the answer as the whole result. If there are
// more pages, it goes on only when the answer says that nothing needs merging. Otherwise
// it asks for a plan and starts over.
func TestDotNetDirectQueries(t *testing.T) {
	h := newContainer(t)
	for n := range 12 {
		call(t, h, "POST", testDocs, fmt.Sprintf(`{"id":"%d","pk":"p%d","n":%d,"m":%d}`, n, n%5, n, n%3), pk(fmt.Sprintf("p%d", n%5)), 201)
	}
	rid := call(t, h, "GET", "/dbs/d/colls/c", "", nil, 200).json(t)["_rid"].(string)
	for query, want := range map[string]string{
		"SELECT VALUE c.n FROM c WHERE c.n > 7":                      `[8 9 10 11]`,
		"SELECT VALUE c.n FROM c ORDER BY c.n DESC OFFSET 1 LIMIT 3": `[10 9 8]`,
		"SELECT TOP 2 VALUE c.n FROM c ORDER BY c.n":                 `[0 1]`,
		"SELECT VALUE COUNT(1) FROM c":                               `[12]`,
		"SELECT VALUE AVG(c.n) FROM c":                               `[5.5]`,
		"SELECT MIN(c.n) AS least, MAX(c.n) AS most FROM c":          `[{"least":0,"most":11}]`,
		"SELECT DISTINCT VALUE c.m FROM c":                           `[0 1 2]`,
		"SELECT DISTINCT VALUE c.m FROM c ORDER BY c.m DESC":         `[2 1 0]`,
		"SELECT c.m, SUM(c.n) AS s FROM c GROUP BY c.m":              `[{"m":0,"s":18} {"m":1,"s":22} {"m":2,"s":26}]`,
		"SELECT VALUE COUNT(1) FROM (SELECT DISTINCT c.m FROM c)":    `[3]`,
	} {
		for _, scope := range []map[string]string{
			{"x-ms-documentdb-partitionkeyrangeid": "0", "x-ms-max-item-count": "2147483647"},
			{"x-ms-documentdb-partitionkeyrangeid": rid + ",0", "x-ms-max-item-count": "1"},
		} {
			if got := directQuery(t, h, query, scope); got != want {
				t.Errorf("%s with %v: got %s, want %s", query, scope, got, want)
			}
		}
	}
}

// directQuery reads all pages of a query.
func directQuery(t *testing.T, h *Handler, query string, scope map[string]string) string {
	t.Helper()
	headers := dotnetHeaders(map[string]string{
		"Content-Type": "application/query+json", "x-ms-documentdb-isquery": "True",
		"x-ms-documentdb-query-enablecrosspartition": "True", "x-ms-documentdb-query-parallelizecrosspartitionquery": "True",
		"x-ms-documentdb-populatequerymetrics": "True", "x-ms-cosmos-supported-serialization-formats": "JsonText, CosmosBinary",
		"x-ms-documentdb-query-iscontinuationexpected": "False", "x-ms-cosmos-query-optimisticdirectexecute": "True",
		"x-ms-cosmos-correlated-activityid": "2b0c5a2c-5a51-4b0b-8b56-4a2d5d1c0e10",
	})
	maps.Copy(headers, scope)
	var rows []string
	for range 20 {
		a := call(t, h, "POST", testDocs, `{"query":`+quoted(query)+`,"parameters":[],"clientQLCompatibilityLevel":0}`, headers, 200)
		for _, row := range decode[struct{ Documents []json.RawMessage }](t, a).Documents {
			rows = append(rows, string(row))
		}
		want := "False"
		if strings.HasPrefix(query, "SELECT DISTINCT") || strings.Contains(query, "GROUP BY") {
			want = "True" // several ranges would need merging
		}
		if got := a.header.Get("x-ms-cosmos-query-requiresdistribution"); got != want {
			t.Errorf("%s: the client is told %q of what is left to do", query, got)
		}
		if headers["x-ms-continuation"] = a.header.Get("x-ms-continuation"); headers["x-ms-continuation"] == "" {
			return fmt.Sprint(rows)
		}
	}
	t.Fatalf("%s has no end: %v", query, rows)
	return ""
}

// The change feed processor keeps its leases as items. It asks for no body of what it
// writes, and takes the etag from the header.
func TestDotNetLeases(t *testing.T) {
	h := newTestHandler(t)
	call(t, h, "POST", "/dbs", `{"id":"d"}`, nil, 201)
	call(t, h, "POST", "/dbs/d/colls", `{"id":"c","partitionKey":{"paths":["/partitionKey"],"kind":"Hash","version":2},"defaultTtl":-1}`, nil, 201)
	minimal := func(key string, more ...string) map[string]string {
		headers := dotnetHeaders(map[string]string{"Prefer": "return=minimal", "x-ms-documentdb-partitionkey": `["` + key + `"]`})
		for i := 0; i < len(more); i += 2 {
			headers[more[i]] = more[i+1]
		}
		return headers
	}
	written := func(a answer) string {
		t.Helper()
		if len(a.body) != 0 || a.header.Get("ETag") == "" || a.header.Get("x-ms-request-charge") == "" {
			t.Fatalf("a body, no etag or no charge: %v %s", a.header, a.body)
		}
		return a.header.Get("ETag")
	}
	const prefix = "localhost_AAAAAQ==_AAAAAYAAAAI="
	lock := `{"id":"` + prefix + `.lock","partitionKey":"` + prefix + `.lock","ttl":30}`
	locked := written(call(t, h, "POST", testDocs, lock, minimal(prefix+".lock"), 201))
	call(t, h, "POST", testDocs, lock, minimal(prefix+".lock"), 409)
	lease := `{"id":"` + prefix + `..0","partitionKey":"k","version":0,"_etag":"","LeaseToken":"0","FeedRange":{"Range":{"min":"","max":"FF"}},"Owner":%s,"ContinuationToken":%s,"properties":{},"timestamp":"2026-11-15T12:00:00.0000000Z","mode":"Incremental Feed"}`
	first := written(call(t, h, "POST", testDocs, fmt.Sprintf(lease, "null", "null"), minimal("k"), 201))
	path := testDocs + "/" + strings.ReplaceAll(prefix+"..0", "=", "%3D")
	second := written(call(t, h, "PUT", path, fmt.Sprintf(lease, `"host"`, `"\"7\""`), minimal("k", "If-Match", first), 200))
	if first == second {
		t.Error("the etag is the same")
	}
	call(t, h, "PUT", path, fmt.Sprintf(lease, `"other"`, `"\"7\""`), minimal("k", "If-Match", first), 412)
	query := `{"query":"SELECT * FROM c WHERE STARTSWITH(c.id, '` + prefix + `..')"}`
	found := call(t, h, "POST", testDocs, query, dotnetHeaders(map[string]string{
		"Content-Type": "application/query+json", "x-ms-documentdb-isquery": "True",
		"x-ms-documentdb-partitionkeyrangeid": "0", "x-ms-max-item-count": "2147483647",
	}), 200)
	leases := decode[struct{ Documents []map[string]any }](t, found).Documents
	if len(leases) != 1 || leases[0]["Owner"] != "host" || leases[0]["ContinuationToken"] != `"7"` || leases[0]["_etag"] != second {
		t.Errorf("got %s", found.body)
	}
	lockPath := testDocs + "/" + strings.ReplaceAll(prefix+".lock", "=", "%3D")
	call(t, h, "DELETE", lockPath, "", minimal(prefix+".lock", "If-Match", locked), 204)
}

// A batch has no content type. A bulk names the range, and each operation its partition
// key. The result of a failed operation has the body of an error.
func TestDotNetBulk(t *testing.T) {
	h := newContainer(t)
	row := func(kind, present int, parts ...string) string {
		text := fmt.Sprintf("81 7054E17F %02X %02X000000 02000000", present, kind)
		for _, part := range parts {
			text += fmt.Sprintf(" %02X %x", len(part), part)
		}
		return text
	}
	const minimalReturn = " 03 0C"
	const create, patch, read, remove = 0, 1, 2, 4
	bulk := hybridStream(t,
		row(create, 0x47, `["a"]`, `{"id":"1","pk":"a","n":1}`),
		row(create, 0x47, `["b"]`, `{"id":"1","pk":"b"}`)+minimalReturn,
		row(patch, 0x57, `["a"]`, "1", `{"operations":[{"op":"incr","path":"/n","value":4}],"condition":"FROM c WHERE c.n = 1"}`),
		row(patch, 0x57, `["a"]`, "1", `{"operations":[{"op":"incr","path":"/n","value":4}],"condition":"FROM c WHERE c.n = 1"}`),
		row(read, 0x17, `["b"]`, "1"),
		row(remove, 0x17, `["c"]`, "1"),
	)
	a := call(t, h, "POST", testDocs, bulk, dotnetHeaders(map[string]string{
		"x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "False",
		"x-ms-cosmos-batch-continue-on-error": "True", "x-ms-documentdb-partitionkeyrangeid": "0",
	}), 207)
	var got []string
	for _, r := range hybridResults(t, a.body) {
		told := fmt.Sprintf("%d/%d", r.status, r.subStatus)
		if r.etag != "" {
			told += " etag " + map[bool]string{true: "quoted"}[strings.HasPrefix(r.etag, `"`)]
		}
		if r.body != "" {
			told += " " + bulkBody(t, []byte(r.body))
		}
		got = append(got, told)
	}
	want := []string{
		"201/0 etag quoted item 1",
		"201/0 etag quoted",
		"200/0 etag quoted item 5",
		"412/1110 error PreconditionFailed",
		"200/0 etag quoted item <nil>",
		"404/0 error NotFound",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// bulkBody returns what the body of a result contains.
func bulkBody(t *testing.T, body []byte) string {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	if v["code"] != nil {
		return fmt.Sprint("error ", v["code"])
	}
	return fmt.Sprint("item ", v["n"])
}

// Many items are read by a query for each range, in a form that no other SDK uses.
func TestDotNetReadMany(t *testing.T) {
	h := newContainer(t)
	call(t, h, "POST", testDocs, `{"id":"1","pk":"a"}`, pk("a"), 201)
	call(t, h, "POST", testDocs, `{"id":"1","pk":"b"}`, pk("b"), 201)
	call(t, h, "POST", testDocs, `{"id":"2"}`, map[string]string{"x-ms-documentdb-partitionkey": `[{}]`}, 201)
	for query, want := range map[string]int{
		`SELECT * FROM c WHERE ( ( c.id = @param_id0 AND c[\"pk\"] = @param_pk00 ) OR ( c.id = @param_id1 AND IS_DEFINED(c[\"pk\"]) = false ) )`: 2,
		`SELECT * FROM c WHERE c.id IN ( @param_id0,@param_id1 )`:                                                                                3,
	} {
		body := `{"query":"` + query + `","parameters":[{"name":"@param_id0","value":"1"},{"name":"@param_pk00","value":"a"},{"name":"@param_id1","value":"2"}]}`
		a := call(t, h, "POST", testDocs, body, dotnetHeaders(map[string]string{
			"Content-Type": "application/query+json", "x-ms-documentdb-isquery": "True",
			"x-ms-documentdb-partitionkeyrangeid": "0", "x-ms-documentdb-query-iscontinuationexpected": "False",
		}), 200)
		if got := len(decode[struct{ Documents []any }](t, a).Documents); got != want {
			t.Errorf("%s: got %d items, want %d", query, got, want)
		}
	}
}

// The SDK writes a container's definition back with the properties that it knows.
func TestDotNetContainers(t *testing.T) {
	h := newTestHandler(t)
	call(t, h, "POST", "/dbs", `{"id":"d"}`, nil, 201)
	created := call(t, h, "POST", "/dbs/d/colls", `{"id":"c",
		"changeFeedPolicy":{"retentionDuration":5},
		"indexingPolicy":{"automatic":true,"indexingMode":"consistent",
			"includedPaths":[{"path":"/*","indexes":[]}],"excludedPaths":[{"path":"/big/*"}],
			"compositeIndexes":[[{"path":"/a","order":"ascending"},{"path":"/b","order":"descending"}]],
			"spatialIndexes":[{"path":"/at/*","types":["Point","Polygon","LineString","MultiPolygon"]}]},
		"geospatialConfig":{"type":"Geography"},
		"uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/mail"]}]},
		"conflictResolutionPolicy":{"mode":"LastWriterWins","conflictResolutionPath":"/_ts"},
		"defaultTtl":-1,"partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}`,
		dotnetHeaders(map[string]string{"x-ms-offer-throughput": "400"}), 201)
	again := call(t, h, "PUT", "/dbs/d/colls/c", string(created.body), dotnetHeaders(nil), 200)
	before, after := created.json(t), again.json(t)
	for _, v := range []map[string]any{before, after} {
		delete(v, "_etag")
		delete(v, "_ts")
	}
	if fmt.Sprint(before) != fmt.Sprint(after) {
		t.Errorf("got %s, want %s", again.body, created.body)
	}

	query := `{"query":"select * from root r where r.offerResourceId= @targetRID","parameters":[{"name":"@targetRID","value":"` + after["_rid"].(string) + `"}]}`
	found := call(t, h, "POST", "/offers", query, dotnetHeaders(map[string]string{
		"Content-Type": "application/query+json", "x-ms-documentdb-isquery": "True", "x-ms-max-item-count": "2147483647",
	}), 200)
	offers := decode[struct{ Offers []map[string]any }](t, found).Offers
	if len(offers) != 1 {
		t.Fatalf("got %s", found.body)
	}
	offer := offers[0]
	offer["content"] = map[string]any{"offerThroughput": 500}
	body, err := json.Marshal(offer)
	if err != nil {
		t.Fatal(err)
	}
	replaced := call(t, h, "PUT", "/"+strings.TrimSuffix(offer["_self"].(string), "/"), string(body), dotnetHeaders(nil), 200)
	if got := replaced.json(t)["content"].(map[string]any)["offerThroughput"]; got != 500.0 {
		t.Errorf("got %s", replaced.body)
	}
	if replaced.header.Get("x-ms-cosmos-min-throughput") == "" || replaced.header.Get("x-ms-offer-replace-pending") != "false" {
		t.Errorf("got %v", replaced.header)
	}
}

// The features of a plan request are separated by a comma and a space.
func TestDotNetQueryPlan(t *testing.T) {
	h := newContainer(t)
	a := call(t, h, "POST", testDocs, `{"query":"SELECT c.m, COUNTIF(c.n > 1) AS s FROM c GROUP BY c.m"}`, dotnetHeaders(map[string]string{
		"Content-Type": "application/query+json", "x-ms-cosmos-is-query-plan-request": "True", "x-ms-cosmos-query-version": "1.0",
		"x-ms-cosmos-supported-query-features": "Aggregate, Distinct, GroupBy, MultipleAggregates, MultipleOrderBy, OffsetAndLimit, OrderBy, Top, NonValueAggregate, DCount, NonStreamingOrderBy, CountIf, HybridSearch, WeightedRankFusion, HybridSearchSkipOrderByRewrite",
	}), 200)
	info := a.json(t)["queryInfo"].(map[string]any)
	if got := fmt.Sprint(info["groupByAliasToAggregateType"]); got != "map[m:<nil> s:CountIf]" {
		t.Errorf("got %s: %s", got, a.body)
	}
}

// Rows with equal ORDER BY values come in the direction that the answer names, however
// they are found: by a range index, by a composite one, or sorted. The SDKs skip rows by
// their rids when they resume, and would lose rows in another order.
func TestTiesComeAsIsTold(t *testing.T) {
	h := newTestHandler(t)
	call(t, h, "POST", "/dbs", `{"id":"d"}`, nil, 201)
	call(t, h, "POST", "/dbs/d/colls", `{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},"indexingPolicy":{
		"compositeIndexes":[[{"path":"/n"},{"path":"/m","order":"descending"}],[{"path":"/m"},{"path":"/n"}]]}}`, nil, 201)
	for i := range 30 {
		call(t, h, "POST", testDocs, fmt.Sprintf(`{"id":"%d","pk":"a","i":%d,"n":%d,"m":%d}`, i, i, i%3, i%2), pk("a"), 201)
	}
	for _, order := range []string{
		"c.n", "c.n DESC", "c._ts", "c._ts DESC", "c.none", "c.none DESC",
		"c.n, c.m DESC", "c.n DESC, c.m", "c.m, c.n", "c.m DESC, c.n DESC",
	} {
		a := call(t, h, "POST", testDocs, `{"query":"SELECT c.i, c.n, c.m FROM c ORDER BY `+order+`"}`, dotnetHeaders(map[string]string{
			"Content-Type": "application/query+json", "x-ms-documentdb-isquery": "True", "x-ms-documentdb-partitionkeyrangeid": "0",
		}), 200)
		var page struct {
			Documents []struct{ I, N, M int } // I is in the order of rids
		}
		var info struct{ ReverseRidEnabled, ReverseIndexScan bool }
		if err := errors.Join(json.Unmarshal(a.body, &page), json.Unmarshal([]byte(a.header.Get("x-ms-cosmos-query-execution-info")), &info)); err != nil || len(page.Documents) != 30 {
			t.Fatalf("%s: %v: %s", order, err, a.body)
		}
		for i, next := range page.Documents[1:] {
			last := page.Documents[i]
			tied := (next.N == last.N || !strings.Contains(order, "c.n") || strings.Contains(order, "none")) && (next.M == last.M || !strings.Contains(order, "c.m"))
			if back := next.I < last.I; tied && back != info.ReverseIndexScan {
				t.Fatalf("%s: told %+v, and %v comes after %v", order, info, next, last)
			}
		}
	}
}

// A resume filter says where an ordered query resumes. A malformed one, or one for
// another query, is refused.
func TestDotNetResumeFilter(t *testing.T) {
	h := newContainer(t)
	var rids []string
	for i := range 6 {
		a := call(t, h, "POST", testDocs, fmt.Sprintf(`{"id":"%d","pk":"a","n":%d}`, i, i/3), pk("a"), 201)
		rids = append(rids, a.json(t)["_rid"].(string))
	}
	ask := func(query, filter string, want int) answer {
		t.Helper()
		return call(t, h, "POST", testDocs, `{"query":"`+query+`","parameters":[],"resumeFilter":`+filter+`}`, dotnetHeaders(map[string]string{
			"Content-Type": "application/query+json", "x-ms-documentdb-isquery": "True", "x-ms-documentdb-partitionkeyrangeid": "0",
		}), want)
	}
	const ascending, descending = "SELECT VALUE c.id FROM c ORDER BY c.n", "SELECT VALUE c.id FROM c ORDER BY c.n DESC"
	for _, c := range []struct{ query, filter, want string }{
		{ascending, `null`, `["0","1","2","3","4","5"]`},
		{ascending, `{"value":[0],"exclude":false}`, `["0","1","2","3","4","5"]`},
		{ascending, `{"value":[0],"exclude":true}`, `["3","4","5"]`},
		{ascending, `{"value":[0],"rid":"` + rids[1] + `","exclude":false}`, `["1","2","3","4","5"]`},
		{ascending, `{"value":[0.5],"exclude":false}`, `["3","4","5"]`},
		{ascending, `{"value":[[]],"exclude":true}`, `["0","1","2","3","4","5"]`},
		{ascending, `{"value":["x"],"exclude":false}`, `[]`},
		{ascending, `{"value":[{"type":"array","low":1,"high":-2}],"exclude":false}`, `[]`},
		{descending, `{"value":[1],"exclude":false}`, `["5","4","3","2","1","0"]`},
		{descending, `{"value":[1],"exclude":true}`, `["2","1","0"]`},
		{descending, `{"value":[1],"rid":"` + rids[4] + `","exclude":false}`, `["4","3","2","1","0"]`},
		{descending, `{"value":[[]],"exclude":false}`, `[]`},
		{descending, `{"value":[{"type":"object","low":1,"high":-2}],"exclude":true}`, `["5","4","3","2","1","0"]`},
		{"SELECT VALUE c.id FROM c WHERE c.n = 1 ORDER BY c.n", `{"value":[0],"exclude":true}`, `["3","4","5"]`},
		{"SELECT VALUE c.id FROM c WHERE c.n < 1 ORDER BY c.n", `{"value":[7],"exclude":true}`, `[]`},
		{"SELECT VALUE c.id FROM c WHERE c.n < 1 ORDER BY c.n DESC", `{"value":[-7],"exclude":true}`, `[]`},
	} {
		rows, err := json.Marshal(ask(c.query, c.filter, 200).json(t)["Documents"])
		if err != nil || string(rows) != c.want {
			t.Errorf("%s with %s: %s, %v, want %s", c.query, c.filter, rows, err, c.want)
		}
	}
	for _, bad := range []string{
		`7`, `[]`, `{}`, `{"value":[]}`, `{"value":7}`, `{"value":[[1]]}`, `{"value":[{"type":"array","low":1}]}`,
		`{"value":[{"type":"number","low":1,"high":2}]}`, `{"value":[1],"exclude":1}`, `{"value":[1],"rid":7}`,
		`{"value":[1],"rid":"x"}`, `{"value":[1],"rid":"AAAAAA=="}`, `{"value":[1],"more":1}`, `{"value":[1,2]}`,
		`{"value":[` + strings.Repeat("1,", 100) + `1]}`,
	} {
		ask(ascending, bad, 400)
	}
	for _, query := range []string{"SELECT * FROM c", "SELECT VALUE 1", "SELECT VALUE COUNT(1) FROM c", "SELECT c.n FROM c GROUP BY c.n ORDER BY c.n"} {
		ask(query, `{"value":[1],"exclude":false}`, 400)
	}
}
