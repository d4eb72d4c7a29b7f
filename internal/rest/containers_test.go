// SPDX-License-Identifier: MIT

package rest

import (
	"fmt"
	"strings"
	"testing"
)

// Before version 2018-12-31 a container could do without a partition key.
func TestContainerWithoutPartitionKey(t *testing.T) {
	h := newEngineHandler(t)
	old := map[string]string{"x-ms-version": "2018-06-18"}
	body := call(t, h, "POST", "/dbs/d/colls", `{"id":"old"}`, old, 201).json(t)
	key, _ := body["partitionKey"].(map[string]any)
	if key["systemKey"] != true || key["kind"] != "Hash" {
		t.Errorf("the partition key is %v", body["partitionKey"])
	}
	// Newer clients find its items with the empty partition key.
	none := map[string]string{headerPartitionKey: "[]", "x-ms-version": "2020-07-15"}
	call(t, h, "POST", "/dbs/d/colls/old/docs", `{"id":"a"}`, none, 201)
	call(t, h, "GET", "/dbs/d/colls/old/docs/a", "", none, 200)

	call(t, h, "POST", "/dbs/d/colls", `{"id":"null","partitionKey":null}`, old, 201)
	body = call(t, h, "POST", "/dbs/d/colls", `{"id":"given","partitionKey":{"paths":["/pk"]}}`, old, 201).json(t)
	if key, _ := body["partitionKey"].(map[string]any); key["systemKey"] != nil {
		t.Errorf("a key that was given became %v", key)
	}
	// Its paths have legacy indexes, which newer containers have not.
	const indexes = `"includedPaths":[{"path":"/*","indexes":[{"kind":"Range","dataType":"String","precision":-1}]}]`
	a := call(t, h, "POST", "/dbs/d/colls", `{"id":"indexes","indexingPolicy":{`+indexes+`}}`, old, 201)
	if !strings.Contains(string(a.body), indexes) {
		t.Errorf("the definition is %s, want %s in it", a.body, indexes)
	}
	call(t, h, "POST", "/dbs/d/colls", `{}`, old, 400)
	call(t, h, "POST", "/dbs/d/colls", `{"id":"old"`, old, 400)
	for _, version := range []string{"", "2018-12-31", "2020-07-15"} {
		call(t, h, "POST", "/dbs/d/colls", `{"id":"new"}`, map[string]string{"x-ms-version": version}, 400)
	}
}

// A container's definition has the statistics of its ranges if the request asks for them.
func TestPartitionStatistics(t *testing.T) {
	h := newTestHandler(t)
	call(t, h, "POST", "/dbs", `{"id":"d"}`, nil, 201)
	call(t, h, "POST", "/dbs/d/colls", `{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}`, map[string]string{"x-ms-offer-throughput": "11000"}, 201)
	for n := range 10 {
		key := fmt.Sprint(n)
		call(t, h, "POST", "/dbs/d/colls/c/docs", `{"id":"i","pk":"`+key+`","pad":"`+strings.Repeat("x", 1000)+`"}`, pk(key), 201)
	}
	type statistics struct {
		ID            string
		SizeInKB      int
		DocumentCount int
		PartitionKeys []any
	}
	read := func(headers map[string]string) (found []statistics) {
		t.Helper()
		a := call(t, h, "GET", "/dbs/d/colls/c", "", headers, 200)
		if a.json(t)["_etag"] == nil || a.json(t)["id"] != "c" {
			t.Fatalf("the definition is %s", a.body)
		}
		return decode[struct{ Statistics []statistics }](t, a).Statistics
	}
	if got := read(nil); got != nil {
		t.Errorf("got %v without asking for it", got)
	}
	got := read(map[string]string{"x-ms-documentdb-populatepartitionstatistics": "True"})
	if len(got) != 2 || got[0].ID != "0" || got[1].ID != "1" || got[0].DocumentCount+got[1].DocumentCount != 10 {
		t.Fatalf("the statistics are %+v", got)
	}
	for _, s := range got {
		if s.DocumentCount == 0 || s.SizeInKB < s.DocumentCount || s.SizeInKB > 2*s.DocumentCount || s.PartitionKeys == nil {
			t.Errorf("the statistics of a range are %+v", s)
		}
	}
}
