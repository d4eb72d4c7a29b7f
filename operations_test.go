// SPDX-License-Identifier: MIT

package mayfly

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// operation is a row of a table in docs/operations.md.
type operation struct {
	name, method, path string
	headers            map[string]string
	status             int
}

var (
	operationRow = regexp.MustCompile("^\\| ([^|`]+) \\| ((?:`[^`]+`(?:, )?)+) \\| (\\d{3})[^|]* \\|$")
	codeSpan     = regexp.MustCompile("`([^`]+)`")
)

func documentedOperations(t *testing.T) []operation {
	var all []operation
	for line := range strings.Lines(read(t, "docs/operations.md")) {
		line = strings.TrimSpace(line)
		m := operationRow.FindStringSubmatch(line)
		if m == nil {
			if strings.Contains(line, " /") && strings.HasPrefix(line, "|") {
				t.Errorf("this row cannot be read: %s", line)
			}
			continue
		}
		op := operation{name: m[1], headers: map[string]string{}}
		op.status, _ = strconv.Atoi(m[3])
		for i, span := range codeSpan.FindAllStringSubmatch(m[2], -1) {
			if i == 0 {
				op.method, op.path, _ = strings.Cut(span[1], " ")
				continue
			}
			name, value, _ := strings.Cut(span[1], ": ")
			op.headers[name] = value
		}
		all = append(all, op)
	}
	return all
}

// operationBodies has the bodies of operations. Queries are not in it: all have the same
// body.
var operationBodies = map[string]string{
	"create a database":  `{"id":"d"}`,
	"create a container": `{"id":"c","partitionKey":{"paths":["/pk"],"version":2}}`, "replace a container": `{"id":"c","partitionKey":{"paths":["/pk"],"version":2}}`,
	"create an item": `{"id":"i","pk":"p"}`, "upsert an item": `{"id":"i","pk":"p"}`, "replace an item": `{"id":"i","pk":"p"}`,
	"patch an item":             `[{"op":"set","path":"/n","value":1}]`,
	"run a transactional batch": `[{"operationType":"Upsert","resourceBody":{"id":"b","pk":"p"}}]`,
	"create a stored procedure": `{"id":"s","body":"function () { getContext().getResponse().setBody(1) }"}`, "replace a stored procedure": `{"id":"s","body":"function () { getContext().getResponse().setBody(2) }"}`,
	"execute a stored procedure": `[]`,
	"create a trigger":           `{"id":"s","body":"function () {}","triggerType":"Pre","triggerOperation":"All"}`, "replace a trigger": `{"id":"s","body":"function () {}","triggerType":"Post","triggerOperation":"All"}`,
	"create a function": `{"id":"s","body":"function () { return 1 }"}`, "replace a function": `{"id":"s","body":"function () { return 2 }"}`,
	"create a user": `{"id":"u"}`, "upsert a user": `{"id":"u"}`, "replace a user": `{"id":"u"}`,
	"create a permission":             `{"id":"p","permissionMode":"Read","resource":"dbs/d/colls/c"}`,
	"upsert a permission":             `{"id":"p","permissionMode":"All","resource":"dbs/d/colls/c"}`,
	"replace a permission":            `{"id":"p","permissionMode":"Read","resource":"dbs/d/colls/c"}`,
	"create a client encryption key":  `{"id":"k","encryptionAlgorithm":"a","wrappedDataEncryptionKey":"AA==","keyWrapMetadata":{}}`,
	"replace a client encryption key": `{"id":"k","encryptionAlgorithm":"a","wrappedDataEncryptionKey":"AQ==","keyWrapMetadata":{}}`,
	"replace an offer":                `{"id":"AAAD","content":{"offerThroughput":500}}`,
}

// TestOperationsAreAsDocumented sends every row of docs/operations.md, and checks that
// each is an operation of its own in the metrics.
func TestOperationsAreAsDocumented(t *testing.T) {
	s := serveTest(t, Options{Memory: true})
	names := strings.NewReplacer("{db}", "d", "{container}", "c", "{item}", "i", "{script}", "s", "{user}", "u", "{permission}", "p", "{key}", "k")
	all := documentedOperations(t)
	if len(all) < 70 {
		t.Fatalf("docs/operations.md has %d rows that can be read", len(all))
	}
	labels := map[string]string{} // the names of operations
	for _, op := range all {
		path := names.Replace(op.path)
		if strings.Contains(path, "{offer}") {
			path = strings.ReplaceAll(path, "{offer}", offerOf(t, s))
		}
		body := operationBodies[op.name]
		if strings.HasPrefix(op.name, "query ") || op.name == "ask for a query plan" {
			body = `{"query":"SELECT * FROM c"}`
		}
		op.headers["x-ms-documentdb-partitionkey"] = `["p"]`
		if strings.HasPrefix(path, "/dbs/d/colls/c/operations/") { // it is signed as its container
			for name, value := range signedHeaders(t, s.Key(), op.method, "/dbs/d/colls/c") {
				op.headers[name] = value[0]
			}
		}
		if strings.HasPrefix(path, "/addresses/") { // it is signed as what it asks for
			for name, value := range signedHeaders(t, s.Key(), op.method, "/dbs") {
				op.headers[name] = value[0]
			}
		}
		before := s.operationsAsked(t)
		if got := s.send(t, op.method, path, body, op.headers); got.status != op.status {
			t.Errorf("docs/operations.md says that %q, %s %s, is answered %d. It is %d: correct its row, or the server: %s",
				op.name, op.method, op.path, op.status, got.status, got.body)
		}
		label := counted(before, s.operationsAsked(t))
		switch {
		case op.status == http.StatusMethodNotAllowed: // no operation at all
			if label != "other" {
				t.Errorf("%q is counted as %q", op.name, label)
			}
		case label == "unknown" && op.status == http.StatusNotFound: // the path addresses nothing
		case label == "" || label == "other" || label == "unknown" || labels[label] != "":
			t.Errorf("%q is counted as %q, as is %q", op.name, label, labels[label])
		default:
			labels[label] = op.name
		}
	}
}

// counted returns the operation whose count has grown by one.
func counted(before, after map[string]int) string {
	for label, n := range after {
		if n == before[label]+1 {
			return label
		}
	}
	return ""
}

var operationCount = regexp.MustCompile(`(?m)^mayfly_requests_total\{operation="([a-z_]+)",status="\d+"\} (\d+)$`)

// operationsAsked returns the number of requests of each operation, without Mayfly's own
// pages.
func (s *testServer) operationsAsked(t *testing.T) map[string]int {
	t.Helper()
	asked := map[string]int{}
	page := s.must(t, 200, "GET", "/_mayfly/metrics", "", map[string]string{"Authorization": "Bearer " + s.Key()})
	for _, m := range operationCount.FindAllSubmatch(page.body, -1) {
		n, err := strconv.Atoi(string(m[2]))
		if err != nil {
			t.Fatal(err)
		}
		asked[string(m[1])] += n
	}
	delete(asked, "admin")
	return asked
}

// TestEveryResourceTypeIsDocumented checks that the page has every resource type.
func TestEveryResourceTypeIsDocumented(t *testing.T) {
	page := read(t, "docs/operations.md")
	for _, path := range []string{
		"`GET /`", "/dbs`", "/dbs/{db}`", "/colls`", "/colls/{container}`", "/docs`", "/docs/{item}`", "/pkranges`",
		"/sprocs`", "/sprocs/{script}`", "/triggers`", "/triggers/{script}`", "/udfs`", "/udfs/{script}`", "/conflicts`", "/conflicts/{item}`",
		"/users`", "/users/{user}`", "/permissions`", "/permissions/{permission}`", "/clientencryptionkeys`", "/clientencryptionkeys/{key}`",
		"/offers`", "/offers/{offer}`", "/operations/partitionkeydelete`", "/operations/dtc`",
	} {
		if !strings.Contains(page, path) {
			t.Errorf("docs/operations.md has no row with %s", path)
		}
	}
}

func offerOf(t *testing.T, s *testServer) string {
	t.Helper()
	var list struct {
		Offers []struct {
			RID string `json:"_rid"`
		}
	}
	a := s.must(t, 200, "GET", "/offers", "", nil)
	if err := json.Unmarshal(a.body, &list); err != nil || len(list.Offers) != 1 {
		t.Fatalf("not one offer: %v: %s", err, a.body)
	}
	return list.Offers[0].RID
}
