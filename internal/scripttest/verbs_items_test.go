// SPDX-License-Identifier: MIT

// Items.

package scripttest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// itemOp is an operation on items.
type itemOp struct {
	method string
	point  bool // the path names the item
	body   bool // the item is sent
	upsert bool
}

// createItems creates items.
//
//	create a {"id":"b","ttl":5}
//	----
//	201 {"id":"a"}
//	201 {"id":"b","ttl":5}
//
// It takes, as the verbs below do:
//
//	in=c2 db=d2             the container and its database
//	pk="x" pk=["x",1] pk=-  the partition key's header, as one value, as it is, or
//	                        none; by default it is taken from the item
//	if-match=e if-none-match=e    a condition: a kept etag, *, or one in quotes
//	etag=e token=s          keep the answer's etag, or its session token
//	session=s               read no earlier state than that: a kept token, or one
//	intended=r              the container as the client remembers it: a kept rid
//	pre=t post=t            triggers
//	slide=50 slide=off      restart the countdown after this share of the item's life
//	prefer=minimal          ask for an answer without a body
//	bytes=2097152           give the item a property "pad" so that it has this size
//	repeat=100              do it for each of 1 to 100 in place of %d
//	full with=_ts           what to show
//	charge                  show the charge
func createItems(s *script, d *directive) string {
	return s.items(d, itemOp{method: http.MethodPost, body: true})
}

// upsertItems creates or replaces items.
//
//	upsert {"id":"a","n":1}
//	----
//	201 {"id":"a","n":1}
func upsertItems(s *script, d *directive) string {
	return s.items(d, itemOp{method: http.MethodPost, body: true, upsert: true})
}

// replaceItems replaces items. The path has the item's id, unless it is given.
//
//	replace {"id":"a","n":2} if-match=e1
//	----
//	200 {"id":"a","n":2}
//
//	replace id=a {"id":"b"}
//	----
//	200 {"id":"b"}
func replaceItems(s *script, d *directive) string {
	return s.items(d, itemOp{method: http.MethodPut, point: true, body: true})
}

// readItems reads items.
//
//	read a {"id":"b","pk":1} with=_ts
//	----
//	200 {"id":"a","_ts":4102444800}
//	404 Resource Not Found. Learn more: https://aka.ms/cosmosdb-tsg-not-found
func readItems(s *script, d *directive) string {
	return s.items(d, itemOp{method: http.MethodGet, point: true})
}

// deleteItems deletes items.
//
//	delete a
//	----
//	204
func deleteItems(s *script, d *directive) string {
	return s.items(d, itemOp{method: http.MethodDelete, point: true})
}

// items sends one request for each item of the directive.
func (s *script) items(d *directive, op itemOp) string {
	d.Helper()
	v, charge := d.view(), d.flag("charge")
	header, database, container := s.itemHeader(d), d.database(), d.container()
	if op.upsert {
		header["X-Ms-Documentdb-Is-Upsert"] = "True"
	}
	id, size := d.option("id"), d.number("bytes")
	repeated := d.option("repeat") != ""
	objects := d.objects()
	d.mayKeep(len(objects))
	var lines []string
	statuses := map[string]int{}
	for _, object := range objects {
		object = padded(object, size)
		r := request{method: op.method, path: append(containerPath(database, container), "docs"), header: header}
		if op.body {
			r.body = object
		}
		if op.point {
			r.path = append(r.path, pointID(object, id))
		}
		header["X-Ms-Documentdb-Partitionkey"] = s.partitionKey(d, database, container, object)
		a := s.send(d, r)
		s.keep(d, a)
		line := s.line(d, a, v)
		if charge {
			line = a.charge() + " RU: " + line
		}
		lines = append(lines, line)
		statuses[strconv.Itoa(a.status)]++
	}
	if repeated {
		return counted(statuses)
	}
	return strings.Join(lines, "\n")
}

// counted renders how often each status occurred.
func counted(statuses map[string]int) string {
	var lines []string
	for status, n := range statuses {
		lines = append(lines, fmt.Sprintf("%s, %d times", status, n))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func (d *directive) database() string {
	if name := d.option("db"); name != "" {
		return name
	}
	return defaultDatabase
}

func (d *directive) container() string {
	if name := d.option("in"); name != "" {
		return name
	}
	return defaultContainer
}

// itemHeader makes the headers that do not depend on the item.
func (s *script) itemHeader(d *directive) map[string]string {
	h := map[string]string{
		"If-Match":                             s.given(d, "if-match"),
		"If-None-Match":                        s.given(d, "if-none-match"),
		"X-Ms-Session-Token":                   s.given(d, "session"),
		"X-Ms-Cosmos-Intended-Collection-Rid":  s.given(d, "intended"),
		"X-Ms-Consistency-Level":               d.option("consistency"),
		"X-Ms-Documentdb-Pre-Trigger-Include":  d.option("pre"),
		"X-Ms-Documentdb-Post-Trigger-Include": d.option("post"),
		"X-Mayfly-Sliding-Ttl":                 d.option("slide"),
	}
	if p := d.option("prefer"); p != "" {
		h["Prefer"] = "return=" + p
	}
	return h
}

// plainName matches the name of a kept value; any other text is a value itself.
var plainName = regexp.MustCompile(`^[a-z][a-z0-9]*$`)

// given returns an option's value, which may be the name of a kept one, or bare:name for
// one without its quotes.
func (s *script) given(d *directive, key string) string {
	value := d.option(key)
	if kept, ok := s.kept[value]; ok {
		return kept
	}
	if name, bare := strings.CutPrefix(value, "bare:"); bare && s.kept[name] != "" {
		return strings.Trim(s.kept[name], `"`)
	}
	if plainName.MatchString(value) {
		d.fatalf("nothing was kept as %q", value)
	}
	return value
}

// keeps are the parts of an answer that can be kept, by option.
var keeps = map[string]func(answer) string{
	"etag":  func(a answer) string { return a.header.Get("Etag") },
	"token": func(a answer) string { return a.header.Get("X-Ms-Session-Token") },
	"next":  func(a answer) string { return a.header.Get("X-Ms-Continuation") },
	"rid": func(a answer) string {
		raw, _ := lookup(a.body, "_rid")
		return unquoted(raw)
	},
}

// mayKeep refuses to keep one value of several answers.
func (d *directive) mayKeep(answers int) {
	for key := range keeps {
		if answers != 1 && d.option(key) != "" {
			d.fatalf("%s= can be kept of one answer, not of %d", key, answers)
		}
	}
}

// keep keeps the values that the directive names.
func (s *script) keep(d *directive, a answer) {
	d.Helper()
	for key, part := range keeps {
		name := d.option(key)
		if name == "" {
			continue
		}
		if !plainName.MatchString(name) || part(a) == "" {
			d.fatalf("there is no %s in the answer %d %s to be kept as %q", key, a.status, a.body, name)
		}
		s.kept[name] = part(a)
	}
}

// number parses an optional number.
func (d *directive) number(key string) int {
	text := d.option(key)
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > longestRun {
		d.fatalf("%s=%s is no number from 1 to %d", key, text, longestRun)
	}
	return n
}

// objects returns the items of a directive: those on its line, then those below.
func (d *directive) objects() [][]byte {
	var objects [][]byte
	for _, word := range d.words() {
		if !strings.HasPrefix(word, "{") {
			word = fmt.Sprintf(`{"id":%s}`, quoted(word))
		}
		objects = append(objects, []byte(word))
	}
	for _, line := range d.lines() {
		objects = append(objects, []byte(line))
	}
	if d.option("repeat") == "" {
		return objects
	}
	var repeated [][]byte
	for i := range d.number("repeat") {
		for _, object := range objects {
			repeated = append(repeated, []byte(strings.ReplaceAll(string(object), "%d", strconv.Itoa(i+1))))
		}
	}
	return repeated
}

// padded gives an object a property "pad" so that it has the given length.
func padded(object []byte, size int) []byte {
	const frame = len(`,"pad":""}`)
	body := strings.TrimSuffix(string(object), "}")
	if size < len(body)+frame {
		return object
	}
	return []byte(body + `,"pad":"` + strings.Repeat("x", size-len(body)-frame) + `"}`)
}

// pointID returns the id by which an item is addressed.
func pointID(object []byte, given string) string {
	if given != "" {
		return given
	}
	raw, _ := lookup(object, "id")
	return unquoted(raw)
}

// partitionKey returns the header: the directive's, or what an SDK would take from the
// item.
func (s *script) partitionKey(d *directive, database, container string, object []byte) string {
	switch given := d.option("pk"); {
	case given == "-":
		return ""
	case strings.HasPrefix(given, "["):
		return ascii(given)
	case given != "":
		return ascii("[" + given + "]")
	}
	definition := s.keys[database+"/"+container]
	if definition == "" {
		definition = defaultKey
	}
	if !json.Valid(object) {
		return ""
	}
	var key struct{ Paths []string }
	if err := json.Unmarshal([]byte(definition), &key); err != nil {
		d.fatalf("the partition key definition %s: %v", definition, err)
	}
	var values []string
	for _, path := range key.Paths {
		raw := at(object, path)
		if strings.HasPrefix(raw, "{") || strings.HasPrefix(raw, "[") {
			raw = "{}" // only scalars are values of a key
		}
		values = append(values, raw)
	}
	return ascii("[" + strings.Join(values, ",") + "]")
}

// at returns the value that a path such as /a/b leads to, {} for none.
func at(object []byte, path string) string {
	raw := object
	for name := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		var found bool
		if raw, found = lookup(raw, strings.Trim(name, `"`)); !found {
			return "{}"
		}
	}
	return string(raw)
}
