// SPDX-License-Identifier: MIT

package rest

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
)

const testDocs = "/dbs/d/colls/c/docs"

// batchHeaders are those of a transaction with the partition key "a", with others, given
// in pairs, added or replaced.
func batchHeaders(others ...string) map[string]string {
	h := pk("a")
	h["x-ms-cosmos-is-batch-request"], h["x-ms-cosmos-batch-atomic"] = "True", "True"
	for i := 0; i < len(others); i += 2 {
		if h[others[i]] = others[i+1]; others[i+1] == "" {
			delete(h, others[i])
		}
	}
	return h
}

// opResult is a result in JSON.
type opResult struct {
	StatusCode, SubStatusCode int
	RequestCharge             float64
	ETag, Message             string
	ResourceBody              map[string]any
}

func batchAnswer(t *testing.T, a answer) []opResult {
	t.Helper()
	var results []opResult
	if err := json.Unmarshal(a.body, &results); err != nil {
		t.Fatalf("%s: %v", a.body, err)
	}
	return results
}

// A batch's answer has the same headers as that of a write.
func TestBatchHeaders(t *testing.T) {
	h := newContainer(t)
	a := call(t, h, "POST", testDocs, `[{"operationType":"Create","resourceBody":{"id":"1","pk":"a"}},{"operationType":"Upsert","resourceBody":{"id":"1","pk":"a"}}]`, batchHeaders(), 200)
	for name, want := range map[string]string{
		"Content-Type": "application/json", "Lsn": "1", "X-Ms-Session-Token": "0:-1#1", "X-Ms-Documentdb-Partitionkeyrangeid": "0",
		"X-Ms-Alt-Content-Path": "dbs/d/colls/c",
	} {
		if got := a.header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	sum := 0.0
	for _, r := range batchAnswer(t, a) {
		sum += r.RequestCharge
	}
	if charge, err := strconv.ParseFloat(a.header.Get("X-Ms-Request-Charge"), 64); err != nil || fmt.Sprintf("%.2f", sum) != fmt.Sprintf("%.2f", charge) {
		t.Errorf("the batch costs %v, its operations %v", charge, sum)
	}
	if raw := string(a.body); strings.Contains(raw, "null") || strings.Contains(raw, "message") {
		t.Errorf("what is not there is told: %s", raw)
	}
}

func TestBatchLimits(t *testing.T) {
	h := newContainer(t)
	op := `{"operationType":"Upsert","resourceBody":{"id":"1","pk":"a"}}`
	list := func(n int) string { return "[" + strings.TrimSuffix(strings.Repeat(op+",", n), ",") + "]" }
	call(t, h, "POST", testDocs, list(100), batchHeaders(), 200)
	text := call(t, h, "POST", testDocs, list(101), batchHeaders(), 400).failureText(t, 400, 0)
	if text != "Batch request has more operations than what is supported." {
		t.Errorf("got %q", text)
	}
	// A request may be a little larger than an item, which it carries.
	item := `{"id":"1","pk":"a","pad":"` + strings.Repeat("x", 2<<20-28) + `"}`
	call(t, h, "POST", testDocs, `[{"operationType":"Upsert","resourceBody":`+item+`}]`, batchHeaders("Prefer", "return=minimal"), 200)
	a := call(t, h, "POST", testDocs, `[{"operationType":"Upsert","resourceBody":`+strings.Replace(item, "xx", "xxx", 1)+`}]`, batchHeaders(), 207)
	if r := batchAnswer(t, a); r[0].StatusCode != 413 || !strings.Contains(r[0].Message, "Request size is too large") {
		t.Errorf("an item that is too large: got %+v", r)
	}
	pad := `{"operationType":"Upsert","resourceBody":{"id":"2","pk":"a","pad":"` + strings.Repeat("x", 1_101_005) + `"}}`
	call(t, h, "POST", testDocs, "["+pad+","+pad+"]", batchHeaders(), 413)
	// The total size of items read is limited too.
	reads := strings.Repeat(`{"operationType":"Read","id":"1"},`, 5) + `{"operationType":"Read","id":"1"}`
	a = call(t, h, "POST", testDocs, "["+reads+"]", batchHeaders(), 207)
	if r := batchAnswer(t, a); r[0].StatusCode != 424 || r[4].StatusCode != 413 || r[4].SubStatusCode != 3402 || r[5].StatusCode != 424 {
		t.Errorf("reads of 12 MB: got %+v", r)
	}
}

func TestBatchRefusals(t *testing.T) {
	h := newContainer(t)
	for name, c := range map[string]struct {
		body      string
		headers   map[string]string
		status    int
		subStatus int
	}{
		"nothing":               {"", batchHeaders(), 400, 0},
		"null":                  {"null", batchHeaders(), 400, 0},
		"two names":             {`[{"operationType":"Read","id":"1","id":"2"}]`, batchHeaders(), 400, 0},
		"out of its list":       {`[]},{"x":1`, batchHeaders(), 400, 0},
		"partition key":         {`[{"operationType":"Read","id":"1"}]`, batchHeaders(headerPartitionKey, "{"), 400, 0},
		"own partition key":     {`[{"operationType":"Read","id":"1","partitionKey":"["}]`, batchHeaders(), 400, 0},
		"another partition key": {`[{"operationType":"Read","id":"1","partitionKey":["b"]}]`, batchHeaders(), 400, 0},
		"unknown range":         {`[{"operationType":"Read","id":"1"}]`, batchHeaders("x-ms-cosmos-batch-atomic", "False", headerPartitionKey, "", "x-ms-documentdb-partitionkeyrangeid", "7"), 410, 1002},
		"malformed range":       {`[{"operationType":"Read","id":"1"}]`, batchHeaders("x-ms-cosmos-batch-atomic", "False", headerPartitionKey, "", "x-ms-documentdb-partitionkeyrangeid", "x"), 410, 1002},
		"session":               {`[{"operationType":"Read","id":"1"}]`, batchHeaders("x-ms-session-token", "x"), 400, 0},
		"another container":     {`[{"operationType":"Read","id":"1"}]`, batchHeaders("x-ms-cosmos-intended-collection-rid", "x"), 400, 1024},
	} {
		t.Run(name, func(t *testing.T) {
			call(t, h, "POST", testDocs, c.body, c.headers, c.status).failureText(t, c.status, c.subStatus)
		})
	}
}

// A bulk goes to a range, and each operation has its own partition key.
func TestBulkOfARange(t *testing.T) {
	h := newTestHandler(t)
	call(t, h, "POST", "/dbs", `{"id":"d"}`, nil, 201)
	call(t, h, "POST", "/dbs/d/colls", containerBody, map[string]string{"x-ms-offer-throughput": "21000"}, 201)
	const n = 40
	byRange := map[string][]string{}
	for i := range n {
		key := pk(strconv.Itoa(i))
		a := call(t, h, "POST", testDocs, fmt.Sprintf(`{"id":"seed","pk":"%d"}`, i), key, 201)
		id := a.header.Get("X-Ms-Documentdb-Partitionkeyrangeid")
		byRange[id] = append(byRange[id], strconv.Itoa(i))
	}
	if len(byRange) != 4 {
		t.Fatalf("%d ranges, want 4", len(byRange))
	}
	for id, keys := range byRange {
		var ops []string
		for _, k := range keys {
			ops = append(ops, fmt.Sprintf(`{"operationType":"Create","resourceBody":{"id":"1","pk":%q},"partitionKey":"[\"%s\"]"}`, k, k))
		}
		ops = append(ops, `{"operationType":"Read","id":"none","partitionKey":"[\"`+keys[0]+`\"]"}`)
		for other, theirs := range byRange {
			if other != id {
				ops = append(ops, `{"operationType":"Read","id":"seed","partitionKey":["`+theirs[0]+`"]}`)
				break
			}
		}
		headers := map[string]string{
			"x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "False", "x-ms-cosmos-batch-continue-on-error": "True",
			"x-ms-documentdb-partitionkeyrangeid": id,
		}
		a := call(t, h, "POST", testDocs, "["+strings.Join(ops, ",")+"]", headers, 207)
		results := batchAnswer(t, a)
		for i := range keys {
			if results[i].StatusCode != 201 || results[i].ResourceBody["pk"] != keys[i] {
				t.Errorf("range %s, operation %d: got %+v", id, i, results[i])
			}
		}
		if r := results[len(keys):]; r[0].StatusCode != 404 || r[1].StatusCode != 410 || r[1].SubStatusCode != 1002 {
			t.Errorf("range %s: got %+v, want 404 and 410/1002", id, r)
		}
		if got := a.header.Get("X-Ms-Documentdb-Partitionkeyrangeid"); got != id {
			t.Errorf("range %s answers as %s", id, got)
		}
	}
}

// A batch in HybridRow is answered in HybridRow, and does the same.
func TestHybridBatch(t *testing.T) {
	h := newContainer(t)
	upsert := func(body string) string {
		return fmt.Sprintf("81 7054E17F 43 14000000 02000000 %02X %x", len(body), body)
	}
	const remove = `81 7054E17F 13  04000000 02000000  01 31`
	request := hybridStream(t, upsert(`{"id":"1","pk":"a"}`), remove, remove)
	a := call(t, h, "POST", testDocs, request, batchHeaders(), 207)
	if a.header.Get("Content-Type") != contentBinary {
		t.Fatalf("got %s: %x", a.header.Get("Content-Type"), a.body)
	}
	var statuses []int32
	for _, r := range hybridResults(t, a.body) {
		statuses = append(statuses, r.status)
		if len(statuses) == 3 && !strings.Contains(r.body, `{"code":"NotFound","message":"Message: {\"Errors\":[\"Resource Not Found`) {
			t.Errorf("the failed operation says %q", r.body)
		}
	}
	if fmt.Sprint(statuses) != "[424 424 404]" {
		t.Errorf("got %v", statuses)
	}
	a = call(t, h, "POST", testDocs, hybridStream(t, upsert(`{"id":"1","pk":"a"}`)), batchHeaders(), 200)
	if !strings.Contains(string(a.body), `{"id":"1","pk":"a","_rid":"`) {
		t.Errorf("got %q", a.body)
	}
	call(t, h, "POST", testDocs, request[:20], batchHeaders(), 400).failureText(t, 400, 0)
	call(t, h, "GET", testDocs+"/1", "", pk("a"), 200)
}

// SDKs send patches with one content type, another, or none.
func TestPatchContentTypes(t *testing.T) {
	h := newContainer(t)
	call(t, h, "POST", testDocs, `{"id":"1","pk":"a"}`, pk("a"), 201)
	for _, kind := range []string{"application/json", "application/json_patch+json", ""} {
		headers := pk("a")
		headers["Content-Type"] = kind
		got := call(t, h, "PATCH", testDocs+"/1", `{"operations":[{"op":"incr","path":"/n","value":1}]}`, headers, 200)
		if etag := got.json(t)["_etag"]; got.header.Get("Etag") != etag {
			t.Errorf("%q: the etag is %v in the header and %v in the body", kind, got.header.Get("Etag"), etag)
		}
	}
	if n := call(t, h, "GET", testDocs+"/1", "", pk("a"), 200).json(t)["n"]; n != 3.0 {
		t.Errorf("n is %v after three patches, want 3", n)
	}
	deep := strings.Repeat(`[`, 128) + strings.Repeat(`]`, 128)
	call(t, h, "PATCH", testDocs+"/1", `{"operations":[{"op":"set","path":"/deep","value":`+deep+`}]}`, pk("a"), 400).failureText(t, 400, 0)
	deep = strings.Repeat(`[`, 125) + strings.Repeat(`]`, 125)
	call(t, h, "PATCH", testDocs+"/1", `[{"op":"set","path":"/o","value":{}},{"op":"set","path":"/o/p","value":{}},{"op":"set","path":"/o/p/q","value":{}},{"op":"set","path":"/o/p/q/r","value":`+deep+`}]`, pk("a"), 400).failureText(t, 400, 0)
}
