// SPDX-License-Identifier: MIT

// Patches and batches.

package scripttest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// patchItem patches an item, by the operations below, in one request.
//
//	patch a
//	if from c where c.n = 1
//	{"op":"incr","path":"/n","value":2}
//	----
//	200 {"id":"a","n":3}
//
// It takes what create takes; {"id":"a","pk":1} in place of a tells the partition key
// too. A line that begins with the word body is the request's body, as it is.
func patchItem(s *script, d *directive) string {
	d.Helper()
	v, header, database, container := d.view(), s.itemHeader(d), d.database(), d.container()
	object := d.word("")
	if !strings.HasPrefix(object, "{") {
		object = fmt.Sprintf(`{"id":%s}`, quoted(object))
	}
	lines := d.lines()
	var condition string
	conditional := false
	if len(lines) > 0 {
		if condition, conditional = strings.CutPrefix(lines[0], "if "); conditional {
			lines = lines[1:]
		}
	}
	body := "[" + strings.Join(lines, ",") + "]"
	if conditional {
		body = fmt.Sprintf(`{"condition":%s,"operations":%s}`, quoted(condition), body)
	}
	if raw, ok := strings.CutPrefix(d.data.Input, "body "); ok {
		body = raw
	}
	d.mayKeep(1)
	header["X-Ms-Documentdb-Partitionkey"] = s.partitionKey(d, database, container, []byte(object))
	a := s.send(d, request{
		method: http.MethodPatch, path: append(containerPath(database, container), "docs", pointID([]byte(object), "")),
		header: header, body: []byte(body),
	})
	s.keep(d, a)
	return s.line(d, a, v)
}

// sendBatch does the operations below in one request: all of them or none or, with
// bulk, each by itself. The first line of what comes back is the status of it all.
//
//	batch pk="k"
//	create {"id":"a","pk":"k"}
//	read a if-none-match=e
//	patch a [{"op":"set","path":"/n","value":1}]
//	----
//	207
//	424
//	404 Resource Not Found. Learn more: https://aka.ms/cosmosdb-tsg-not-found
//	424
//
// An operation takes an id, JSON, and if-match=e, if-none-match=e, pk="x" and minimal.
// The directive takes bulk, continue, range=0 for one physical partition in place of a
// key, hybrid for HybridRow in place of JSON, prefer=minimal, session= and charge. A line
// that begins with the word body is the request's body, as it is.
func sendBatch(s *script, d *directive) string {
	d.Helper()
	v, header, charge := d.view(), s.itemHeader(d), d.flag("charge")
	header["X-Ms-Cosmos-Is-Batch-Request"] = "True"
	header["X-Ms-Cosmos-Batch-Atomic"] = "True"
	if d.flag("bulk") {
		header["X-Ms-Cosmos-Batch-Atomic"] = "False"
	}
	if d.flag("continue") {
		header["X-Ms-Cosmos-Batch-Continue-On-Error"] = "True"
	}
	database, container := d.database(), d.container()
	if header["X-Ms-Documentdb-Partitionkeyrangeid"] = s.rangeID(d); d.option("range") == "" {
		header["X-Ms-Documentdb-Partitionkey"] = s.partitionKey(d, database, container, nil)
	}
	d.mayKeep(1)
	hybrid := d.flag("hybrid")
	body, isRaw := strings.CutPrefix(d.data.Input, "body ")
	if !isRaw {
		var ops []string
		for _, line := range d.lines() {
			ops = append(ops, s.batchOp(d, line))
		}
		body = "[" + strings.Join(ops, ",") + "]"
		if hybrid {
			body = string(d.hybridBatch(ops))
		}
	}
	a := s.send(d, request{method: http.MethodPost, path: append(containerPath(database, container), "docs"), header: header, body: []byte(body)})
	s.keep(d, a)
	if a.status >= 400 {
		return s.line(d, a, v)
	}
	lines := []string{fmt.Sprint(a.status)}
	results := elements(a.body)
	if hybrid {
		results = d.hybridResults(a)
	}
	for _, raw := range results {
		lines = append(lines, s.batchLine(d, raw, v, charge))
	}
	if charge {
		lines[0] = a.charge() + " RU: " + lines[0]
	}
	return strings.Join(lines, "\n")
}

// batchOp reads an operation of a script.
func (s *script) batchOp(d *directive, line string) string {
	verb, rest, _ := strings.Cut(line, " ")
	op := []string{fmt.Sprintf(`"operationType":%s`, quoted(strings.ToUpper(verb[:1])+verb[1:]))}
	for rest = strings.TrimSpace(rest); rest != ""; rest = strings.TrimSpace(rest) {
		if strings.HasPrefix(rest, "{") || strings.HasPrefix(rest, "[") {
			dec := json.NewDecoder(bytes.NewReader([]byte(rest)))
			var raw json.RawMessage
			if err := dec.Decode(&raw); err != nil {
				d.fatalf("%s: %v", line, err)
			}
			if id, found := lookup(raw, "id"); found && verb == "replace" && len(op) == 1 {
				op = append(op, `"id":`+string(id))
			}
			op = append(op, `"resourceBody":`+string(raw))
			rest = rest[dec.InputOffset():]
			continue
		}
		word, after, _ := strings.Cut(rest, " ")
		rest = after
		key, value, isOption := strings.Cut(word, "=")
		if kept, ok := s.kept[value]; ok {
			value = kept
		}
		switch {
		case word == "minimal":
			op = append(op, `"minimalReturnPreference":true`)
		case !isOption:
			op = append(op, `"id":`+quoted(word))
		case key == "pk":
			op = append(op, `"partitionKey":`+quoted(ascii("["+value+"]")))
		case key == "if-match":
			op = append(op, `"ifMatch":`+quoted(value))
		case key == "if-none-match":
			op = append(op, `"ifNoneMatch":`+quoted(value))
		default:
			d.fatalf("%s: an operation does not take %s", line, key)
		}
	}
	return "{" + strings.Join(op, ",") + "}"
}

// batchLine writes the result of an operation.
func (s *script) batchLine(d *directive, raw []byte, v view, charge bool) string {
	var r struct {
		StatusCode    int
		SubStatusCode int
		RequestCharge float64
		ETag          *string
		Message       string
		ResourceBody  json.RawMessage
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&r); err != nil {
		d.fatalf("the result %s: %v", raw, err)
	}
	out := fmt.Sprint(r.StatusCode)
	if r.SubStatusCode != 0 {
		out += fmt.Sprint("/", r.SubStatusCode)
	}
	if charge {
		out = fmt.Sprintf("%.2f RU: %s", r.RequestCharge, out)
	}
	if len(r.ResourceBody) > 0 {
		out += " " + s.resource(r.ResourceBody, v)
		if etag, _ := lookup(r.ResourceBody, "_etag"); r.ETag == nil || unquoted(etag) != *r.ETag {
			d.fatalf("the result %s has another etag than its item", raw)
		}
	}
	if r.Message != "" {
		out += " " + collapse(r.Message)
	}
	return out
}
