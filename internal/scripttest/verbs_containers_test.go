// SPDX-License-Identifier: MIT

// Databases and containers.

package scripttest

import (
	"fmt"
	"net/http"
	"strings"
)

// defaultKey is the partition key of containers for which a script gives none.
const defaultKey = `{"paths":["/id"],"kind":"Hash","version":2}`

// createDatabase creates a database, by its name or with the given body.
//
//	database d2
//	----
//	201 {"id":"d2"}
//
// It takes throughput=400 or autoscale=4000 for its containers to share.
func createDatabase(s *script, d *directive) string {
	v, header := d.view(), d.throughput("")
	bodies := d.objects()
	d.mayKeep(len(bodies))
	var lines []string
	for _, body := range bodies {
		a := s.send(d, request{method: http.MethodPost, path: []string{"dbs"}, header: header, body: body})
		s.keep(d, a)
		lines = append(lines, s.line(d, a, v))
	}
	return strings.Join(lines, "\n")
}

// showDatabase reads a database.
//
//	show-database d2 with=_ts
//	----
//	200 {"id":"d2","_ts":4102444800}
func showDatabase(s *script, d *directive) string {
	v, header := d.view(), s.conditions(d)
	return s.single(d, request{method: http.MethodGet, path: databasePath(d.word(defaultDatabase)), header: header}, v)
}

// dropDatabase deletes a database and all in it.
//
//	drop-database d2
//	----
//	204
func dropDatabase(s *script, d *directive) string {
	header := s.conditions(d)
	return s.single(d, request{method: http.MethodDelete, path: databasePath(d.word("")), header: header}, view{})
}

// listDatabases lists all databases, the oldest first.
//
//	databases ordered
//	----
//	200, 1 item
//	{"id":"db"}
func listDatabases(s *script, d *directive) string {
	header := map[string]string{"X-Ms-Max-Item-Count": d.option("max"), "X-Ms-Continuation": s.given(d, "from")}
	return s.list(d, request{method: http.MethodGet, path: []string{"dbs"}, header: header}, "Databases")
}

// createContainer creates a container, with the given definition or with one that
// is made from the arguments.
//
//	container c2 ttl=60
//	----
//	201 {"id":"c2","defaultTtl":60}
//
//	container {"id":"c","partitionKey":{"paths":["/pk"]}}
//	----
//	201 {"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash"}}
//
// It takes, as replace-container does:
//
//	ttl=60              the defaultTtl, in JSON
//	pk=/a pk=(/a, /b)   the partition key's paths, version=1 its version
//	throughput=21000    what to provision: 21000 makes four physical partitions, and
//	                    none asks for nothing
//	autoscale=4000      the same, for autoscale
//	db=d2               the database
//	etag=e rid=r        keep the answer's etag, or the container's rid
func createContainer(s *script, d *directive) string {
	v, database := d.view(), d.database()
	header := d.throughput(s.throughput)
	_, bodies := s.definitions(d, database)
	d.mayKeep(len(bodies))
	var lines []string
	for _, body := range bodies {
		a := s.send(d, request{
			method: http.MethodPost, path: append(databasePath(database), "colls"), body: body,
			header: header,
		})
		s.keep(d, a)
		if key, found := lookup(body, "partitionKey"); found && a.status == http.StatusCreated {
			s.keys[database+"/"+pointID(body, "")] = string(key)
		}
		lines = append(lines, s.line(d, a, v))
	}
	return strings.Join(lines, "\n")
}

// replaceContainer gives a container another definition: the given one, or one
// made from the arguments, with the partition key that it has.
//
//	replace-container ttl=10
//	----
//	200 {"id":"c","defaultTtl":10}
func replaceContainer(s *script, d *directive) string {
	v, database, header := d.view(), d.database(), s.conditions(d)
	name, bodies := s.definitions(d, database)
	d.mayKeep(len(bodies))
	var lines []string
	for _, body := range bodies {
		a := s.send(d, request{method: http.MethodPut, path: containerPath(database, name), header: header, body: body})
		s.keep(d, a)
		lines = append(lines, s.line(d, a, v))
	}
	return strings.Join(lines, "\n")
}

// showContainer reads a container.
//
//	show c2
//	----
//	200 {"id":"c2","defaultTtl":60}
func showContainer(s *script, d *directive) string {
	v, database, header := d.view(), d.database(), s.conditions(d)
	return s.single(d, request{method: http.MethodGet, path: containerPath(database, d.word(defaultContainer)), header: header}, v)
}

// dropContainer deletes a container and its items.
//
//	drop c2
//	----
//	204
func dropContainer(s *script, d *directive) string {
	database, header := d.database(), s.conditions(d)
	return s.single(d, request{method: http.MethodDelete, path: containerPath(database, d.word(defaultContainer)), header: header}, view{})
}

// listContainers lists the containers of a database.
//
//	containers ordered
//	----
//	200, 1 item
//	{"id":"c"}
func listContainers(s *script, d *directive) string {
	header := map[string]string{"X-Ms-Max-Item-Count": d.option("max"), "X-Ms-Continuation": s.given(d, "from")}
	return s.list(d, request{method: http.MethodGet, path: append(databasePath(d.database()), "colls"), header: header}, "DocumentCollections")
}

// single sends the one request of a directive.
func (s *script) single(d *directive, r request, v view) string {
	d.Helper()
	a := s.send(d, r)
	s.keep(d, a)
	return s.line(d, a, v)
}

func (s *script) conditions(d *directive) map[string]string {
	return map[string]string{
		"If-Match":      s.given(d, "if-match"),
		"If-None-Match": s.given(d, "if-none-match"),
	}
}

// definitions returns the container's name and its definitions: those that are
// given as JSON, or one made from the arguments.
func (s *script) definitions(d *directive, database string) (name string, bodies [][]byte) {
	name = defaultContainer
	ttl, paths, version := d.option("ttl"), d.options("pk"), d.option("version")
	for _, word := range d.words() {
		if strings.HasPrefix(word, "{") {
			bodies = append(bodies, []byte(word))
		} else {
			name = word
		}
	}
	for _, line := range d.lines() {
		bodies = append(bodies, []byte(line))
	}
	if len(bodies) > 0 {
		return name, bodies
	}
	key := s.keys[database+"/"+name]
	switch {
	case len(paths) > 0:
		key = keyDefinition(paths, version)
	case key == "":
		key = defaultKey
	}
	body := fmt.Sprintf(`{"id":%s,"partitionKey":%s`, quoted(name), key)
	if ttl != "" {
		body += `,"defaultTtl":` + ttl
	}
	return name, [][]byte{[]byte(body + "}")}
}

func keyDefinition(paths []string, version string) string {
	for i := range paths {
		paths[i] = quoted(paths[i])
	}
	kind := "Hash"
	if len(paths) > 1 {
		kind = "MultiHash"
	}
	if version == "" {
		version = "2"
	}
	return fmt.Sprintf(`{"paths":[%s],"kind":"%s","version":%s}`, strings.Join(paths, ","), kind, version)
}
