// SPDX-License-Identifier: MIT

package rest

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
)

const udfs = "/dbs/d/colls/c/udfs"

func udfBody(name, text string) string {
	return `{"id":` + quoted(name) + `,"body":` + quoted(text) + `}`
}

// The statuses and headers of creating, reading, replacing and deleting a function.
func TestUDFs(t *testing.T) {
	h := newContainer(t)
	created := call(t, h, "POST", udfs, udfBody("f", "x => 2 * x"), nil, 201)
	u := created.json(t)
	if created.header.Get("Etag") != u["_etag"] || u["body"] != "x => 2 * x" || u["id"] != "f" {
		t.Errorf("created %s with etag %s", created.body, created.header.Get("Etag"))
	}
	call(t, h, "POST", udfs, udfBody("f", "x => x"), nil, 409)
	if read := call(t, h, "GET", udfs+"/f/", "", nil, 200); string(read.body) != string(created.body) {
		t.Errorf("read %s, want %s", read.body, created.body)
	}
	call(t, h, "GET", udfs+"/f", "", map[string]string{"If-None-Match": created.header.Get("Etag")}, 304)
	call(t, h, "PUT", udfs+"/f", udfBody("f", "x => x"), map[string]string{"If-Match": `"other"`}, 412)
	call(t, h, "PUT", udfs+"/f", udfBody("f", "x => x"), nil, 200)
	call(t, h, "DELETE", udfs+"/f", "", nil, 204)
	call(t, h, "GET", udfs+"/f", "", nil, 404).failureText(t, 404, 0)
	call(t, h, "GET", "/dbs/d/colls/none/udfs/f", "", nil, 404).failureText(t, 404, 1003)
	if text := call(t, h, "POST", udfs, udfBody("f", "function("), nil, 400).failureText(t, 400, 65535); !strings.Contains(text, "Encountered exception while compiling Javascript.") {
		t.Error(text)
	}
	if text := call(t, h, "POST", udfs, `{"id":"f"}`, nil, 400).failureText(t, 400, 0); text != "The input content is invalid because the required properties - 'body; ' - are missing" {
		t.Error(text)
	}
}

// A function can be addressed by rids, and then only the last of them is signed.
func TestUDFsByRID(t *testing.T) {
	h := newContainer(t)
	u := call(t, h, "POST", udfs, udfBody("f", "x => x"), nil, 201).json(t)
	self, rid := u["_self"].(string), u["_rid"].(string)
	call(t, h, "GET", "/"+self, "", nil, 200)
	r := httptest.NewRequest("GET", "/"+self, nil)
	signRequest(t, r, "udfs", strings.ToLower(rid))
	if a := serve(h, r); a.status != 200 || a.json(t)["id"] != "f" {
		t.Errorf("%d %s", a.status, a.body)
	}
	// The name of a function is no rid, so it cannot be signed alone.
	r = httptest.NewRequest("GET", udfs+"/f", nil)
	signRequest(t, r, "udfs", "f")
	if a := serve(h, r); a.status != 401 {
		t.Errorf("%d %s", a.status, a.body)
	}
}

func TestUDFFeed(t *testing.T) {
	h := newContainer(t)
	for i := range 5 {
		call(t, h, "POST", udfs, udfBody(fmt.Sprint("f", i), "x => x"), nil, 201)
	}
	var ids []string
	header := map[string]string{"x-ms-max-item-count": "2"}
	for range 3 {
		page := call(t, h, "GET", udfs, "", header, 200)
		for _, u := range page.json(t)["UserDefinedFunctions"].([]any) {
			ids = append(ids, u.(map[string]any)["id"].(string))
		}
		header["x-ms-continuation"] = page.header.Get("X-Ms-Continuation")
	}
	if got := strings.Join(ids, " "); got != "f0 f1 f2 f3 f4" || header["x-ms-continuation"] != "" {
		t.Errorf("%s, and then %q", got, header["x-ms-continuation"])
	}
	call(t, h, "GET", udfs, "", map[string]string{"x-ms-continuation": "nonsense"}, 400)
	found := call(t, h, "POST", udfs, `{"query":"SELECT * FROM root r WHERE r.id = @id","parameters":[{"name":"@id","value":"f3"}]}`, queryHeaders, 200).json(t)
	if list := found["UserDefinedFunctions"].([]any); len(list) != 1 || list[0].(map[string]any)["id"] != "f3" {
		t.Errorf("found %v", found)
	}
}

// The client sees what a function throws, and nothing internal.
func TestUDFExceptions(t *testing.T) {
	h := newContainer(t)
	call(t, h, "POST", udfs, udfBody("f", `function() { throw new Error("<\"é\n" + "x".repeat(100000)) }`), nil, 201)
	headers := map[string]string{"Content-Type": "application/query+json", "x-ms-documentdb-isquery": "True", "x-ms-documentdb-query-enablecrosspartition": "True"}
	text := call(t, h, "POST", "/dbs/d/colls/c/docs", `{"query":"SELECT VALUE udf.f()"}`, headers, 400).failureText(t, 400, 0)
	if !strings.Contains(text, "Exception = Error: <\"é\nxxx") || len(text) > 2000 || strings.Contains(text, ".go") {
		t.Errorf("the client is told %.300s… of %d bytes", text, len(text))
	}
}
