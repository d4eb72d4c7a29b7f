// SPDX-License-Identifier: MIT

// Malformed requests over a real connection. Each gets the documented status and a helpful
// message, nothing is written, and the server goes on.

package mayfly

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
)

// unchanged returns a function that checks that the lists of databases, containers and
// items have not changed.
func (s *testServer) unchanged(t *testing.T) func(after string) {
	t.Helper()
	var before [][]byte
	paths := []string{"/dbs", "/dbs/d/colls", items}
	for _, path := range paths {
		before = append(before, s.must(t, 200, "GET", path, "", nil).body)
	}
	return func(after string) {
		t.Helper()
		for i, path := range paths {
			if a := s.must(t, 200, "GET", path, "", nil); !bytes.Equal(a.body, before[i]) {
				t.Fatalf("%s: %s was\n%s, is\n%s", after, path, before[i], a.body)
			}
		}
	}
}

// refused sends a request that must be refused with a status and a text.
func (s *testServer) refused(t *testing.T, what string, want int, text, method, path, body string, headers map[string]string) {
	t.Helper()
	a := s.send(t, method, path, body, headers)
	if a.status != want {
		t.Errorf("%s: %s %s: status %d, want %d: %.300s", what, method, path, a.status, want, a.body)
		return
	}
	told := a.message(t)
	if !strings.Contains(told, text) {
		t.Errorf("%s: %s %s: the message is %q, want %q in it", what, method, path, told, text)
	}
	if len(a.body) > 4096 {
		t.Errorf("%s: an error of %d bytes", what, len(a.body))
	}
}

func nested(levels int) string {
	return `{"id":"x","pk":"p","v":` + strings.Repeat("[", levels-1) + strings.Repeat("]", levels-1) + `}`
}

// malformedItems are bodies that are not items, with the text of their refusal.
var malformedItems = []struct{ name, body, text string }{
	{"empty", "", "empty"},
	{"space", " \r\n\t ", "empty"},
	{"a word", "hello", "not a JSON object"},
	{"XML", "<item/>", "not a JSON object"},
	{"a form", "id=x&pk=p", "not a JSON object"},
	{"null", "null", "not a JSON object"},
	{"true", "true", "not a JSON object"},
	{"a number", "42", "not a JSON object"},
	{"a string", `"{}"`, "not a JSON object"},
	{"an array", "[]", "not a JSON object"},
	{"an array of items", `[{"id":"x","pk":"p"}]`, "not a JSON object"},
	{"truncated", `{"id":"x","pk":"p"`, "ends too early"},
	{"truncated in a string", `{"id":"x","pk":"p`, "ends too early"},
	{"only a brace", "{", "ends too early"},
	{"two items", `{"id":"x","pk":"p"}{"id":"y","pk":"p"}`, "more than one"},
	{"two lines", "{\"id\":\"x\",\"pk\":\"p\"}\n{\"id\":\"y\",\"pk\":\"p\"}", "more than one"},
	{"garbage behind", `{"id":"x","pk":"p"}garbage`, "more than one"},
	{"a comma behind", `{"id":"x","pk":"p"},`, "more than one"},
	{"a name twice", `{"id":"x","pk":"p","id":"y"}`, `"id" occurs twice`},
	{"a name twice, escaped", `{"id":"x","pk":"p","\u0069d":"y"}`, `"id" occurs twice`},
	{"a name twice, deeper", `{"id":"x","pk":"p","o":{"a":[{"b":1,"b":2}]}}`, `"b" occurs twice`},
	{"not UTF-8 in a value", "{\"id\":\"x\",\"pk\":\"p\",\"v\":\"\xff\"}", "UTF-8"},
	{"not UTF-8 in a name", "{\"id\":\"x\",\"pk\":\"p\",\"\xc3\":1}", "UTF-8"},
	{"overlong UTF-8", "{\"id\":\"x\",\"pk\":\"p\",\"v\":\"\xc0\x80\"}", "UTF-8"},
	{"a surrogate in UTF-8", "{\"id\":\"x\",\"pk\":\"p\",\"v\":\"\xed\xa0\x80\"}", "UTF-8"},
	{"cut UTF-8", "{\"id\":\"x\",\"pk\":\"p\",\"v\":\"\xe2\x82\"}", "UTF-8"},
	{"UTF-16", "{\x00\"\x00i\x00d\x00\"\x00:\x00\"\x00x\x00\"\x00}\x00", "malformed"},
	{"Latin-1", "{\"id\":\"x\",\"pk\":\"p\",\"v\":\"\xfc\"}", "UTF-8"},
	{"a lone high surrogate", `{"id":"x","pk":"p","v":"\ud800"}`, "surrogate"},
	{"a lone low surrogate", `{"id":"x","pk":"p","v":"\udc00"}`, "surrogate"},
	{"surrogates the wrong way round", `{"id":"x","pk":"p","v":"\udc00\ud800"}`, "surrogate"},
	{"a lone surrogate in a name", `{"id":"x","pk":"p","\ud800":1}`, "surrogate"},
	{"129 levels", nested(129), "nested more than 128 levels"},
	{"100,000 levels", nested(100_000), "nested more than 128 levels"},
	{"100,000 objects", `{"id":"x","pk":"p","v":` + strings.Repeat(`{"a":`, 100_000), "nested more than 128 levels"},
	{"1e400", `{"id":"x","pk":"p","v":1e400}`, "too large"},
	{"-1e400", `{"id":"x","pk":"p","v":[-1e400]}`, "too large"},
	{"a large exponent", `{"id":"x","pk":"p","v":1e99999999999999999999}`, "too large"},
	{"400 digits", `{"id":"x","pk":"p","v":` + strings.Repeat("9", 400) + `}`, "too large"},
	{"NaN", `{"id":"x","pk":"p","v":NaN}`, "malformed"},
	{"Infinity", `{"id":"x","pk":"p","v":-Infinity}`, "malformed"},
	{"a plus", `{"id":"x","pk":"p","v":+1}`, "malformed"},
	{"a leading zero", `{"id":"x","pk":"p","v":01}`, "malformed"},
	{"a bare point", `{"id":"x","pk":"p","v":1.}`, "malformed"},
	{"hexadecimal", `{"id":"x","pk":"p","v":0x10}`, "malformed"},
	{"a byte order mark", "\ufeff{\"id\":\"x\",\"pk\":\"p\"}", "not a JSON object"},
	{"NUL before", "\x00{\"id\":\"x\",\"pk\":\"p\"}", "not a JSON object"},
	{"NUL behind", "{\"id\":\"x\",\"pk\":\"p\"}\x00", "more than one"},
	{"NUL in a string", "{\"id\":\"x\x00\",\"pk\":\"p\"}", "malformed"},
	{"a form feed in a string", "{\"id\":\"x\f\",\"pk\":\"p\"}", "malformed"},
	{"a line break behind a backslash", "{\"id\":\"x\\\n\",\"pk\":\"p\"}", "malformed"},
	{"a bad escape", `{"id":"\x41","pk":"p"}`, "malformed"},
	{"a short escape", `{"id":"\u12","pk":"p"}`, "malformed"},
	{"single quotes", `{'id':'x','pk':'p'}`, "malformed"},
	{"a name without quotes", `{id:"x",pk:"p"}`, "malformed"},
	{"a comment", `{"id":"x",/* */"pk":"p"}`, "malformed"},
	{"a trailing comma", `{"id":"x","pk":"p",}`, "malformed"},
	{"no colon", `{"id" "x","pk":"p"}`, "malformed"},
	{"no comma", `{"id":"x" "pk":"p"}`, "malformed"},
	{"undefined", `{"id":"x","pk":"p","v":undefined}`, "malformed"},
	{"True", `{"id":"x","pk":"p","v":True}`, "malformed"},
}

// malformedIDs are values of id, which must be a text of 1 to 1023 bytes.
var malformedIDs = []string{
	"null", "1", "true", "{}", "[]", `["x"]`, `""`, `"` + strings.Repeat("x", 1024) + `"`, `"` + strings.Repeat("ü", 512) + `"`,
	`"` + strings.Repeat("x", 100_000) + `"`,
}

func TestMalformedItems(t *testing.T) {
	s := serveTest(t, Options{Memory: true})
	s.makeContainer(t)
	s.must(t, 201, "POST", items, `{"id":"x","pk":"p","first":true}`, pk("p"))
	unchanged := s.unchanged(t)
	upsert := maps.Clone(pk("p"))
	upsert["x-ms-documentdb-is-upsert"] = "True"
	everyWay := func(name, body, text string) {
		t.Helper()
		s.refused(t, name, 400, text, "POST", items, body, pk("p"))
		s.refused(t, name, 400, text, "POST", items, body, nil)
		s.refused(t, name, 400, text, "POST", items, body, upsert)
		s.refused(t, name, 400, text, "PUT", items+"/x", body, pk("p"))
		unchanged(name)
	}
	for _, c := range malformedItems {
		everyWay(c.name, c.body, c.text)
	}
	for _, id := range malformedIDs {
		everyWay("id "+id[:min(len(id), 20)], `{"id":`+id+`,"pk":"p"}`, "1024")
	}
	everyWay("no id", `{"pk":"p"}`, "'id; '")
	everyWay("id in upper case", `{"ID":"x","Id":"x","pk":"p"}`, "'id; '")
	// Unusual values are accepted.
	for i, body := range []string{
		strings.Replace(nested(128), `"x"`, `"%s"`, 1),
		` {"id":"%s","pk":"p","v":1e308,"w":-0,"x":1E-400,"":null}` + "\n",
		`{"id":"%s","pk":"p","😀":"\ud83d\ude00","nul":"\u0000","_ts":"mine","_rid":[]}`,
	} {
		s.must(t, 201, "POST", items, fmt.Sprintf(body, fmt.Sprintf("ok%d", i)), pk("p"))
	}
}

// partitionKeyHeaders are values of the header that are refused for an item whose
// key is "p".
var partitionKeyHeaders = []struct {
	value     string
	subStatus string
	text      string
}{
	{`p`, "", "JSON array"},
	{`"p"`, "", "JSON array"},
	{`{}`, "", "JSON array"},
	{`null`, "", "JSON array"},
	{`[`, "", "component 1 is missing"},
	{`["p"`, "", "expected"},
	{`["p]`, "", "component 1"},
	{`["p"]]`, "", "after the array"},
	{`["p"] x`, "", "after the array"},
	{`["p",]`, "", "component 2 is missing"},
	{`[,"p"]`, "", "component 1 is missing"},
	{`['p']`, "", "component 1"},
	{`[p]`, "", "component 1"},
	{`[["p"]]`, "", "component 1 is an array"},
	{`[{"a":1}]`, "", "component 1 is an object"},
	{`[NaN]`, "", "component 1"},
	{`[1e400]`, "", "component 1"},
	{`[01]`, "", "component 1"},
	{`["\ud800"]`, "", "component 1"},
	{"[\"\xff\"]", "", "component 1"},
	{"[\"a\tb\"]", "", "component 1"},
	{`["p","q","r","s"]`, "", "more than 3 components"},
	{`["` + strings.Repeat("x", 2049) + `"]`, "", "2048"},
	{`["` + strings.Repeat("ü", 1025) + `"]`, "", "2048"},
	{`["p","q"]`, "1001", "Partition key provided either doesn't correspond"},
	{`["q"]`, "1001", "PartitionKey extracted from document doesn't match"},
	{`[]`, "1001", "PartitionKey extracted from document doesn't match"},
	{`[{}]`, "1001", "PartitionKey extracted from document doesn't match"},
	{`[null]`, "1001", "PartitionKey extracted from document doesn't match"},
	{`[1]`, "1001", "PartitionKey extracted from document doesn't match"},
	{`["P"]`, "1001", "PartitionKey extracted from document doesn't match"},
	{"[\"p\u0308\"]", "1001", "PartitionKey extracted from document doesn't match"},
}

func TestMalformedPartitionKeys(t *testing.T) {
	s := serveTest(t, Options{Memory: true})
	s.makeContainer(t)
	s.must(t, 201, "POST", items, `{"id":"x","pk":"p"}`, pk("p"))
	unchanged := s.unchanged(t)
	for _, c := range partitionKeyHeaders {
		headers := map[string]string{"x-ms-documentdb-partitionkey": c.value}
		name := "key " + c.value[:min(len(c.value), 30)]
		for _, r := range []struct{ method, path, body string }{
			{"POST", items, `{"id":"y","pk":"p"}`}, {"PUT", items + "/x", `{"id":"x","pk":"p"}`},
		} {
			s.refused(t, name, 400, c.text, r.method, r.path, r.body, headers)
			if got := s.send(t, r.method, r.path, r.body, headers).header.Get("x-ms-substatus"); got != c.subStatus {
				t.Errorf("%s: sub-status %q, want %q", name, got, c.subStatus)
			}
		}
		// Without a body to compare with, any key that parses is accepted.
		want := 400
		if c.subStatus != "" && c.value != `["p","q"]` {
			want = 404
		}
		for _, method := range []string{"GET", "DELETE"} {
			s.refused(t, name, want, "", method, items+"/x", "", headers)
		}
		unchanged(name)
	}
	for _, method := range []string{"GET", "DELETE"} {
		s.refused(t, "no key", 400, "x-ms-documentdb-partitionkey", method, items+"/x", "", nil)
	}
	unchanged("no key")
	// The limit is the same for keys of version 1.
	s.must(t, 201, "POST", "/dbs/d/colls", `{"id":"one","partitionKey":{"paths":["/pk"]}}`, nil)
	long := strings.Repeat("x", 2049)
	s.refused(t, "version 1", 400, "2048", "POST", "/dbs/d/colls/one/docs", `{"id":"y","pk":"`+long+`"}`, pk(long))
	s.must(t, 201, "POST", "/dbs/d/colls/one/docs", `{"id":"y","pk":"`+long[1:]+`"}`, pk(long[1:]))
}

// malformedHeaders are headers that make an otherwise good request fail.
var malformedHeaders = []struct {
	method, path, body string
	name               string
	values             []string
	status             int
	text               string
}{
	{"GET", items, "", "x-ms-max-item-count", []string{"-2", "x", "1.5", "1e3", "99999999999999999999", "0x10", "1 2", "\xff", strings.Repeat("1", 5000)}, 400, "x-ms-max-item-count"},
	{"GET", "/dbs", "", "x-ms-max-item-count", []string{"-2", "x"}, 400, "x-ms-max-item-count"},
	{"GET", "/dbs/d/colls", "", "x-ms-max-item-count", []string{"-2", "x"}, 400, "x-ms-max-item-count"},
	{"GET", items, "", "x-ms-continuation", []string{
		"x", "1", "+RID:", "+RID:#RT:1", "+RID:AQAAAA==#RT:1", "+RID:AQAAAIAAAAA=#RT:1", "+RID:!!!!#RT:1", "null", `{"token":null}`,
		"+RID:AQAAAIAAAAH///////////8=#RT:1", "\xff", strings.Repeat("A", 10_000),
	}, 400, "Invalid Continuation Token"},
	{"GET", "/dbs", "", "x-ms-continuation", []string{"x", "AAAA", "\xff", "AQAAAA", strings.Repeat("A", 10_000)}, 400, "Invalid Continuation Token"},
	{"GET", "/dbs/d/colls", "", "x-ms-continuation", []string{"x", "AAAA"}, 400, "Invalid Continuation Token"},
	{"GET", items + "/x", "", "x-ms-session-token", []string{"x", "0", "0:", "0:x#1", "x:0#1", "0:-1#x", "-1:-1#1", "\xff", strings.Repeat("0:-1#1,", 1025)}, 400, "session token"},
	{"GET", items, "", "x-ms-session-token", []string{"x", "0:", ","}, 400, "session token"},
	{"GET", items + "/x", "", "x-ms-consistency-level", []string{"x", "Strong", "BoundedStaleness", "\xff"}, 400, "consistency level"},
	{"GET", items + "/x", "", "x-ms-cosmos-intended-collection-rid", []string{"x", "AAAA", "\xff"}, 400, "x-ms-cosmos-intended-collection-rid"},
	{"GET", items, "", "x-ms-documentdb-partitionkeyrangeid", []string{"x", "1", "-1", "AAAA,0", "\xff"}, 410, "partition key range"},
	{"PUT", items + "/x", `{"id":"x","pk":"p"}`, "If-Match", []string{"x", `"x"`, `"`, "\xff", strings.Repeat("x", 10_000)}, 412, "pre-condition"},
	{"DELETE", items + "/x", "", "If-Match", []string{"x", "\xff"}, 412, "pre-condition"},
	{"DELETE", "/dbs/d/colls/c", "", "If-Match", []string{"x", "\xff"}, 412, "pre-condition"},
	{"DELETE", "/dbs/d", "", "If-Match", []string{"x", "\xff"}, 412, "pre-condition"},
	{"POST", "/dbs/d/colls", `{"id":"new","partitionKey":{"paths":["/pk"]}}`, "x-ms-offer-throughput", []string{
		"x", "400.0", "4e2", "1 000", "", "\xff", "99999999999999999999", strings.Repeat("4", 5000),
	}, 400, "x-ms-offer-throughput"},
	{"POST", "/dbs/d/colls", `{"id":"new","partitionKey":{"paths":["/pk"]}}`, "x-ms-offer-throughput", []string{"0", "-200", "399", "300"}, 400, "less than required minimum throughput 400"},
	{"POST", "/dbs/d/colls", `{"id":"new","partitionKey":{"paths":["/pk"]}}`, "x-ms-offer-throughput", []string{"401", "450"}, 400, "multiple of 100"},
	{"POST", "/dbs/d/colls", `{"id":"new","partitionKey":{"paths":["/pk"]}}`, "x-ms-offer-throughput", []string{"1000100", "2147483700"}, 400, "more than possible maximum"},
	{"POST", "/dbs", `{"id":"new"}`, "x-ms-offer-throughput", []string{"x", "1"}, 400, "throughput"},
	{"POST", "/dbs/d/colls", `{"id":"new","partitionKey":{"paths":["/pk"]}}`, "x-ms-cosmos-offer-autopilot-settings", []string{
		"x", "4000", "{}", "[]", "null", `{"maxThroughput":"4000"}`, `{"maxThroughput":null}`, `{"maxThroughput":4000.5}`, `{"maxThroughput":1e300}`,
		`{"maxThroughput":-1e300}`, `{"MaxThroughput":4000}`, `{"maxThroughput":4000`, `{"maxThroughput":4000,"maxThroughput":5000}`, "\xff", strings.Repeat("[", 5000),
	}, 400, "x-ms-cosmos-offer-autopilot-settings"},
	{"POST", "/dbs/d/colls", `{"id":"new","partitionKey":{"paths":["/pk"]}}`, "x-ms-cosmos-offer-autopilot-settings", []string{`{"maxThroughput":900}`, `{"maxThroughput":0}`, `{"maxThroughput":-1000}`}, 400, "less than required minimum throughput 1000"},
	{"POST", "/dbs/d/colls", `{"id":"new","partitionKey":{"paths":["/pk"]}}`, "x-ms-cosmos-offer-autopilot-settings", []string{`{"maxThroughput":1500}`, `{"maxThroughput":4100}`}, 400, "multiple of 1000"},
	{"POST", "/dbs/d/colls", `{"id":"new","partitionKey":{"paths":["/pk"]}}`, "x-ms-cosmos-offer-autopilot-settings", []string{`{"maxThroughput":2000000}`}, 400, "more than possible maximum"},
}

func TestMalformedHeaders(t *testing.T) {
	s := serveTest(t, Options{Memory: true})
	s.makeContainer(t)
	s.must(t, 201, "POST", items, `{"id":"x","pk":"p"}`, pk("p"))
	unchanged := s.unchanged(t)
	for _, c := range malformedHeaders {
		for _, value := range c.values {
			if value == "" {
				continue // an empty header is none
			}
			headers := map[string]string{c.name: value}
			if strings.HasPrefix(c.path, items+"/") {
				headers["x-ms-documentdb-partitionkey"] = `["p"]`
			}
			name := fmt.Sprintf("%s: %.40q", c.name, value)
			s.refused(t, name, c.status, c.text, c.method, c.path, c.body, headers)
			unchanged(name)
		}
	}
	both := map[string]string{"x-ms-offer-throughput": "400", "x-ms-cosmos-offer-autopilot-settings": `{"maxThroughput":4000}`}
	s.refused(t, "both offers", 400, "not both", "POST", "/dbs/d/colls", `{"id":"new","partitionKey":{"paths":["/pk"]}}`, both)
	s.refused(t, "both offers", 400, "not both", "POST", "/dbs", `{"id":"new"}`, both)
	unchanged("both offers")
}

// containerProperties says, for every property of a container, which kinds of JSON values
// it may have. null counts as absent, except in lists.
var containerProperties = []struct {
	name  string // the property that has the value
	body  string // %s is the value
	kinds string // of values that may be accepted: string, number, bool, object, array, null
	hint  string // in the message of every refusal
}{
	{"id", `{"id":%s,"partitionKey":{"paths":["/pk"]}}`, "string", "id"},
	{"partitionKey", `{"id":"n","partitionKey":%s}`, "", "partitionKey"},
	{"partitionKey.paths", `{"id":"n","partitionKey":{"paths":%s}}`, "", "paths"},
	{"partitionKey.paths[]", `{"id":"n","partitionKey":{"paths":[%s]}}`, "", "path"},
	{"partitionKey.kind", `{"id":"n","partitionKey":{"paths":["/pk"],"kind":%s}}`, "null", "kind"},
	{"partitionKey.version", `{"id":"n","partitionKey":{"paths":["/pk"],"version":%s}}`, "null", "version"},
	{"partitionKey.systemKey", `{"id":"n","partitionKey":{"paths":["/pk"],"systemKey":%s}}`, "bool null", "systemKey"},
	{"defaultTtl", `{"id":"n","partitionKey":{"paths":["/pk"]},"defaultTtl":%s}`, "null", "defaultTtl"},
	{"ttlPropertyPath", `{"id":"n","partitionKey":{"paths":["/pk"]},"defaultTtl":1,"ttlPropertyPath":%s}`, "null", "ttlPropertyPath"},
	{"indexingPolicy", `{"id":"n","partitionKey":{"paths":["/pk"]},"indexingPolicy":%s}`, "object null", "indexingPolicy"},
	{"indexingPolicy.indexingMode", `{"id":"n","partitionKey":{"paths":["/pk"]},"indexingPolicy":{"indexingMode":%s}}`, "null", "ndexing"},
	{"indexingPolicy.automatic", `{"id":"n","partitionKey":{"paths":["/pk"]},"indexingPolicy":{"automatic":%s}}`, "bool null", "automatic"},
	{"indexingPolicy.includedPaths", `{"id":"n","partitionKey":{"paths":["/pk"]},"indexingPolicy":{"includedPaths":%s}}`, "array null", "includedPaths"},
	{"indexingPolicy.includedPaths[]", `{"id":"n","partitionKey":{"paths":["/pk"]},"indexingPolicy":{"includedPaths":[{"path":"/*"},%s]}}`, "", "includedPaths[]"},
	{"indexingPolicy.includedPaths[].path", `{"id":"n","partitionKey":{"paths":["/pk"]},"indexingPolicy":{"includedPaths":[{"path":"/*"},{"path":%s}]}}`, "", "path"},
	{"indexingPolicy.excludedPaths", `{"id":"n","partitionKey":{"paths":["/pk"]},"indexingPolicy":{"excludedPaths":%s}}`, "array null", "excludedPaths"},
	{"indexingPolicy.excludedPaths[]", `{"id":"n","partitionKey":{"paths":["/pk"]},"indexingPolicy":{"excludedPaths":[%s]}}`, "", "excludedPaths[]"},
	{"indexingPolicy.compositeIndexes", `{"id":"n","partitionKey":{"paths":["/pk"]},"indexingPolicy":{"compositeIndexes":%s}}`, "array null", "compositeIndexes"},
	{"indexingPolicy.compositeIndexes[]", `{"id":"n","partitionKey":{"paths":["/pk"]},"indexingPolicy":{"compositeIndexes":[%s]}}`, "", "omposite"},
	{"indexingPolicy.compositeIndexes[][]", `{"id":"n","partitionKey":{"paths":["/pk"]},"indexingPolicy":{"compositeIndexes":[[{"path":"/a"},%s]]}}`, "", "compositeIndexes[][]"},
	{"indexingPolicy.compositeIndexes[][].order", `{"id":"n","partitionKey":{"paths":["/pk"]},"indexingPolicy":{"compositeIndexes":[[{"path":"/a"},{"path":"/b","order":%s}]]}}`, "", "order"},
	{"indexingPolicy.spatialIndexes", `{"id":"n","partitionKey":{"paths":["/pk"]},"indexingPolicy":{"spatialIndexes":%s}}`, "array null", "spatialIndexes"},
	{"indexingPolicy.spatialIndexes[]", `{"id":"n","partitionKey":{"paths":["/pk"]},"indexingPolicy":{"spatialIndexes":[%s]}}`, "", "spatialIndexes[]"},
	{"indexingPolicy.vectorIndexes", `{"id":"n","partitionKey":{"paths":["/pk"]},"indexingPolicy":{"vectorIndexes":%s}}`, "array null", "vectorIndexes"},
	{"indexingPolicy.fullTextIndexes", `{"id":"n","partitionKey":{"paths":["/pk"]},"indexingPolicy":{"fullTextIndexes":%s}}`, "array null", "fullTextIndexes"},
	{"uniqueKeyPolicy", `{"id":"n","partitionKey":{"paths":["/pk"]},"uniqueKeyPolicy":%s}`, "object null", "uniqueKeyPolicy"},
	{"uniqueKeyPolicy.uniqueKeys", `{"id":"n","partitionKey":{"paths":["/pk"]},"uniqueKeyPolicy":{"uniqueKeys":%s}}`, "array null", "uniqueKeys"},
	{"uniqueKeyPolicy.uniqueKeys[]", `{"id":"n","partitionKey":{"paths":["/pk"]},"uniqueKeyPolicy":{"uniqueKeys":[%s]}}`, "", "uniqueKeys[]"},
	{"uniqueKeyPolicy.uniqueKeys[].paths", `{"id":"n","partitionKey":{"paths":["/pk"]},"uniqueKeyPolicy":{"uniqueKeys":[{"paths":%s}]}}`, "", "paths"},
	{"uniqueKeyPolicy.uniqueKeys[].paths[]", `{"id":"n","partitionKey":{"paths":["/pk"]},"uniqueKeyPolicy":{"uniqueKeys":[{"paths":[%s]}]}}`, "", "path"},
	{"conflictResolutionPolicy", `{"id":"n","partitionKey":{"paths":["/pk"]},"conflictResolutionPolicy":%s}`, "object null", "conflictResolutionPolicy"},
	{"conflictResolutionPolicy.mode", `{"id":"n","partitionKey":{"paths":["/pk"]},"conflictResolutionPolicy":{"mode":%s}}`, "null", "mode"},
	{"conflictResolutionPolicy.conflictResolutionPath", `{"id":"n","partitionKey":{"paths":["/pk"]},"conflictResolutionPolicy":{"conflictResolutionPath":%s}}`, "null", "onflict"},
	{"conflictResolutionPolicy.conflictResolutionProcedure", `{"id":"n","partitionKey":{"paths":["/pk"]},"conflictResolutionPolicy":{"mode":"Custom","conflictResolutionProcedure":%s}}`, "string null", "conflictResolutionProcedure"},
	{"geospatialConfig", `{"id":"n","partitionKey":{"paths":["/pk"]},"geospatialConfig":%s}`, "null", "geospatial"},
	{"geospatialConfig.type", `{"id":"n","partitionKey":{"paths":["/pk"]},"geospatialConfig":{"type":%s}}`, "", "type"},
	{"computedProperties", `{"id":"n","partitionKey":{"paths":["/pk"]},"computedProperties":%s}`, "array null", "computedProperties"},
	{"changeFeedPolicy", `{"id":"n","partitionKey":{"paths":["/pk"]},"changeFeedPolicy":%s}`, "object null", "changeFeedPolicy"},
	{"vectorEmbeddingPolicy", `{"id":"n","partitionKey":{"paths":["/pk"]},"vectorEmbeddingPolicy":%s}`, "object null", "vectorEmbeddingPolicy"},
	{"fullTextPolicy", `{"id":"n","partitionKey":{"paths":["/pk"]},"fullTextPolicy":%s}`, "object null", "fullTextPolicy"},
	{"clientEncryptionPolicy", `{"id":"n","partitionKey":{"paths":["/pk"]},"clientEncryptionPolicy":%s}`, "object null", "clientEncryptionPolicy"},
	{"analyticalStorageTtl", `{"id":"n","partitionKey":{"paths":["/pk"]},"analyticalStorageTtl":%s}`, "null", "analyticalStorageTtl"},
}

// wrongValues has, for each kind, a value for properties that do not accept that kind.
var wrongValues = map[string]string{
	"string": `"wrong"`, "number": "3.5", "bool": "true", "object": `{"wrong":1}`, "array": "[1]", "null": "null",
}

// acceptable has, for each kind, a value for properties that accept that kind.
var acceptable = map[string]string{
	"string": `"n"`, "bool": "false", "object": "{}", "array": "[]", "null": "null",
}

func TestMalformedContainers(t *testing.T) {
	s := serveTest(t, Options{Memory: true})
	s.makeContainer(t)
	unchanged := s.unchanged(t)
	for _, p := range containerProperties {
		for kind, wrong := range wrongValues {
			if strings.Contains(p.kinds, kind) {
				continue
			}
			body := fmt.Sprintf(p.body, wrong)
			if !json.Valid([]byte(body)) {
				t.Fatalf("%s is not JSON", body)
			}
			name := p.name + " " + wrong
			s.refused(t, name, 400, p.hint, "POST", "/dbs/d/colls", body, nil)
			s.refused(t, name, 400, p.hint, "PUT", "/dbs/d/colls/c", strings.Replace(body, `"id":"n"`, `"id":"c"`, 1), nil)
			unchanged(name)
		}
	}
	for _, p := range containerProperties {
		for kind := range strings.FieldsSeq(p.kinds) {
			s.must(t, 201, "POST", "/dbs/d/colls", fmt.Sprintf(p.body, acceptable[kind]), nil)
			s.must(t, 204, "DELETE", "/dbs/d/colls/n", "", nil)
		}
	}
	for _, types := range []string{"null", `"Point"`, "1", "true", "{}", "[]"} {
		body := `{"id":"n","partitionKey":{"paths":["/pk"]},"indexingPolicy":{"spatialIndexes":[{"path":"/a/?","types":` + types + `}]}}`
		s.refused(t, "spatial types "+types, 400, "types", "POST", "/dbs/d/colls", body, nil)
	}
	for _, c := range malformedItems {
		for _, path := range []string{"/dbs", "/dbs/d/colls"} {
			s.refused(t, c.name, 400, c.text, "POST", path, c.body, nil)
		}
		s.refused(t, c.name, 400, c.text, "PUT", "/dbs/d/colls/c", c.body, nil)
	}
	unchanged("bodies that are not JSON")
}

func TestMalformedNames(t *testing.T) {
	s := serveTest(t, Options{Memory: true})
	s.makeContainer(t)
	unchanged := s.unchanged(t)
	for _, id := range []string{
		"null", "1", "true", "{}", "[]", `""`, `"a/b"`, `"a\\b"`, `"a?b"`, `"a#b"`, `"a "`, `" "`,
		`"` + strings.Repeat("x", 256) + `"`, `"` + strings.Repeat("ü", 256) + `"`, `"` + strings.Repeat("x", 1_000_000) + `"`,
	} {
		name := "name " + id[:min(len(id), 20)]
		text := "'id"
		if strings.HasPrefix(id, `"`) {
			text = "Ensure to provide a unique non-empty string less than '255' characters."
		}
		s.refused(t, name, 400, text, "POST", "/dbs", `{"id":`+id+`}`, nil)
		s.refused(t, name, 400, text, "POST", "/dbs/d/colls", `{"id":`+id+`,"partitionKey":{"paths":["/pk"]}}`, nil)
		unchanged(name)
	}
	s.refused(t, "no name", 400, "'id; '", "POST", "/dbs", `{}`, nil)
	s.refused(t, "no partition key", 400, "'partitionKey; '", "POST", "/dbs/d/colls", `{"id":"n"}`, nil)
	s.must(t, 201, "POST", "/dbs", `{"id":"`+strings.Repeat("ü", 255)+`"}`, nil)
}
