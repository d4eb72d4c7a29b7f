// SPDX-License-Identifier: MIT

// Stored procedures, triggers and user-defined functions.

package scripttest

import (
	"net/http"
	"net/url"
	"strings"
)

// scripts is one of the three kinds of scripts.
type scripts struct{ path, feed string }

var (
	udfs       = scripts{"udfs", "UserDefinedFunctions"}
	procedures = scripts{"sprocs", "StoredProcedures"}
	triggers   = scripts{"triggers", "Triggers"}
)

// create creates a script, whose text stands below it.
//
//	udf twice
//	function(x) { return 2 * x }
//	----
//	201 {"body":"function(x) { return 2 * x }","id":"twice"}
//
// A body in JSON, in place of the name, is sent as it is. It takes in=c2 db=d2 for
// the container, etag=e to keep the answer's etag, and for a trigger type=Pre
// op=Create.
func (k scripts) create(s *script, d *directive) string {
	v, path := d.view(), k.at(d)
	return s.single(d, request{method: http.MethodPost, path: path, body: d.scriptBody(d.word("f"))}, v)
}

// replace gives a script another text. The text may be a body in JSON here too.
//
//	replace-udf twice if-match=e
//	function(x) { return x + x }
//	----
//	200 {"body":"function(x) { return x + x }","id":"twice"}
func (k scripts) replace(s *script, d *directive) string {
	v, path, header := d.view(), k.at(d), s.conditions(d)
	name := d.word("f")
	return s.single(d, request{method: http.MethodPut, path: append(path, name), header: header, body: d.scriptBody(name)}, v)
}

// show reads a script.
func (k scripts) show(s *script, d *directive) string {
	v, path, header := d.view(), k.at(d), s.conditions(d)
	return s.single(d, request{method: http.MethodGet, path: append(path, d.word("f")), header: header}, v)
}

// drop deletes a script.
func (k scripts) drop(s *script, d *directive) string {
	path, header := k.at(d), s.conditions(d)
	return s.single(d, request{method: http.MethodDelete, path: append(path, d.word("f")), header: header}, view{})
}

// list lists the scripts of a container, the oldest first. It takes what the verb
// list takes for pages.
func (k scripts) list(s *script, d *directive) string {
	path := k.at(d)
	header := map[string]string{"X-Ms-Max-Item-Count": d.option("max"), "X-Ms-Continuation": s.given(d, "from")}
	return s.list(d, request{method: http.MethodGet, path: path, header: header}, k.feed)
}

func (k scripts) at(d *directive) []string {
	return append(containerPath(d.database(), d.container()), k.path)
}

// scriptBody makes the body of a request out of a name and the text below.
func (d *directive) scriptBody(name string) []byte {
	kind, operation := d.option("type"), d.option("op")
	text := strings.Join(d.lines(), "\n")
	if strings.HasPrefix(name, "{") {
		return []byte(name)
	}
	if strings.HasPrefix(text, "{") {
		return []byte(text)
	}
	body := `{"id":` + quoted(name) + `,"body":` + quoted(text)
	if kind != "" {
		body += `,"triggerType":` + quoted(kind) + `,"triggerOperation":` + quoted(operation)
	}
	return []byte(body + `}`)
}

// runProcedure runs a stored procedure with the arguments below, in the logical
// partition without a key unless pk= says another. With log it shows what was logged.
//
//	run add pk="a"
//	[1,2]
//	----
//	200 3
func runProcedure(s *script, d *directive) string {
	v, path, showLog := d.view(), procedures.at(d), d.flag("log")
	header := map[string]string{"X-Ms-Documentdb-Partitionkey": s.partitionKey(d, d.database(), d.container(), []byte(`{}`))}
	if showLog {
		header["X-Ms-Documentdb-Script-Enable-Logging"] = "true"
	}
	body := []byte(strings.Join(d.lines(), "\n"))
	a := s.send(d, request{method: http.MethodPost, path: append(path, d.word("f")), header: header, body: body})
	line := ""
	if a.status == http.StatusOK && len(a.body) > 0 && a.body[0] != '{' {
		line = "200 " + collapse(string(a.body))
	} else {
		line = s.line(d, a, v)
	}
	if showLog {
		text, err := url.PathUnescape(a.header.Get("X-Ms-Documentdb-Script-Log-Results"))
		if err != nil {
			d.fatalf("%v", err)
		}
		line += "\nlog: " + collapse(text)
	}
	return line
}
