// SPDX-License-Identifier: MIT

// User-defined functions.

package scripttest

import (
	"net/http"
	"strings"
)

// createUDF creates a user-defined function, whose text stands below it.
//
//	udf twice
//	function(x) { return 2 * x }
//	----
//	201 {"body":"function(x) { return 2 * x }","id":"twice"}
//
// A body in JSON, in place of the name, is sent as it is. It takes in=c2 db=d2 for
// the container, and etag=e to keep the answer's etag.
func createUDF(s *script, d *directive) string {
	v, path := d.view(), s.udfs(d)
	return s.single(d, request{method: http.MethodPost, path: path, body: d.udfBody(d.word("f"))}, v)
}

// replaceUDF gives a user-defined function another text. The text may be a body in
// JSON here too.
//
//	replace-udf twice if-match=e
//	function(x) { return x + x }
//	----
//	200 {"body":"function(x) { return x + x }","id":"twice"}
func replaceUDF(s *script, d *directive) string {
	v, path, header := d.view(), s.udfs(d), s.conditions(d)
	name := d.word("f")
	return s.single(d, request{method: http.MethodPut, path: append(path, name), header: header, body: d.udfBody(name)}, v)
}

// showUDF reads a user-defined function.
func showUDF(s *script, d *directive) string {
	v, path, header := d.view(), s.udfs(d), s.conditions(d)
	return s.single(d, request{method: http.MethodGet, path: append(path, d.word("f")), header: header}, v)
}

// dropUDF deletes a user-defined function.
func dropUDF(s *script, d *directive) string {
	path, header := s.udfs(d), s.conditions(d)
	return s.single(d, request{method: http.MethodDelete, path: append(path, d.word("f")), header: header}, view{})
}

// listUDFs lists the user-defined functions of a container, the oldest first. It
// takes what the verb list takes for pages.
func listUDFs(s *script, d *directive) string {
	path := s.udfs(d)
	header := map[string]string{"X-Ms-Max-Item-Count": d.option("max"), "X-Ms-Continuation": s.given(d, "from")}
	return s.list(d, request{method: http.MethodGet, path: path, header: header}, "UserDefinedFunctions")
}

func (s *script) udfs(d *directive) []string {
	return append(containerPath(d.database(), d.container()), "udfs")
}

// udfBody makes the body of a request out of a name and the text below.
func (d *directive) udfBody(name string) []byte {
	text := strings.Join(d.lines(), "\n")
	if strings.HasPrefix(name, "{") {
		return []byte(name)
	}
	if strings.HasPrefix(text, "{") {
		return []byte(text)
	}
	return []byte(`{"id":` + quoted(name) + `,"body":` + quoted(text) + `}`)
}
