// SPDX-License-Identifier: MIT

package rest

import "testing"

// Before version 2018-12-31 a container could do without a partition key.
func TestContainerWithoutPartitionKey(t *testing.T) {
	h := newEngineHandler(t)
	old := map[string]string{"x-ms-version": "2018-06-18"}
	body := call(t, h, "POST", "/dbs/d/colls", `{"id":"old"}`, old, 201).json(t)
	key, _ := body["partitionKey"].(map[string]any)
	if key["systemKey"] != true || key["kind"] != "Hash" {
		t.Errorf("the partition key is %v", body["partitionKey"])
	}
	// Newer clients find its items without a key.
	none := map[string]string{headerPartitionKey: "[]", "x-ms-version": "2020-07-15"}
	call(t, h, "POST", "/dbs/d/colls/old/docs", `{"id":"a"}`, none, 201)
	call(t, h, "GET", "/dbs/d/colls/old/docs/a", "", none, 200)

	call(t, h, "POST", "/dbs/d/colls", `{"id":"null","partitionKey":null}`, old, 201)
	body = call(t, h, "POST", "/dbs/d/colls", `{"id":"given","partitionKey":{"paths":["/pk"]}}`, old, 201).json(t)
	if key, _ := body["partitionKey"].(map[string]any); key["systemKey"] != nil {
		t.Errorf("a key that was given became %v", key)
	}
	call(t, h, "POST", "/dbs/d/colls", `{}`, old, 400)
	call(t, h, "POST", "/dbs/d/colls", `{"id":"old"`, old, 400)
	for _, version := range []string{"", "2018-12-31", "2020-07-15"} {
		call(t, h, "POST", "/dbs/d/colls", `{"id":"new"}`, map[string]string{"x-ms-version": version}, 400)
	}
}
