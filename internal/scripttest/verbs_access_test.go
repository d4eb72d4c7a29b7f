// SPDX-License-Identifier: MIT

// Users and permissions, requests with their tokens, and requests without a verb of their
// own.

package scripttest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

const defaultUser = "u"

// children are the resources of one kind below an owner.
type children struct {
	// owner returns the path of the owner.
	owner         func(d *directive) []string
	segment, kind string
}

var (
	usersOf = children{func(d *directive) []string { return databasePath(d.database()) }, "users", "Users"}

	permissionsOf = children{func(d *directive) []string {
		user := d.option("of")
		if user == "" {
			user = defaultUser
		}
		return append(databasePath(d.database()), "users", user)
	}, "permissions", "Permissions"}
)

// create makes resources, or upserts them.
//
//	user u
//	----
//	201 {"id":"u"}
//
//	permission {"id":"p","permissionMode":"Read","resource":"dbs/db/colls/c"} of=u ticket=t
//	----
//	201 {"id":"p","permissionMode":"Read","resource":"dbs/db/colls/c"}
//
// They take
//
//	upsert      write it whether it exists or not
//	of=u        the user of a permission
//	ticket=t    keep the token of a permission
//	life=10     how long it is good for, in seconds
//	db=d2       the database
//	etag=e rid=r, if-match=e
func (c children) create(s *script, d *directive) string {
	v, header, path := d.view(), s.accessHeader(d), append(c.owner(d), c.segment)
	if d.flag("upsert") {
		header["X-Ms-Documentdb-Is-Upsert"] = "True"
	}
	bodies := d.objects()
	d.mayKeep(len(bodies))
	var lines []string
	for _, body := range bodies {
		lines = append(lines, s.accessLine(d, s.send(d, request{method: http.MethodPost, path: path, header: header, body: body}), v))
	}
	return strings.Join(lines, "\n")
}

// show reads a resource.
//
//	show-user u
//	----
//	200 {"id":"u"}
func (c children) show(s *script, d *directive) string {
	v, header, path := d.view(), s.accessHeader(d), append(c.owner(d), c.segment)
	return s.accessLine(d, s.send(d, request{method: http.MethodGet, path: append(path, s.name(d)), header: header}), v)
}

// replace replaces a resource with the body in the line below.
//
//	replace-user u
//	{"id":"v"}
//	----
//	200 {"id":"v"}
func (c children) replace(s *script, d *directive) string {
	v, header, path := d.view(), s.accessHeader(d), append(c.owner(d), c.segment)
	body := []byte(strings.Join(d.lines(), "\n"))
	return s.accessLine(d, s.send(d, request{method: http.MethodPut, path: append(path, s.name(d)), header: header, body: body}), v)
}

// drop deletes a resource.
//
//	drop-user u
//	----
//	204
func (c children) drop(s *script, d *directive) string {
	header, path := s.accessHeader(d), append(c.owner(d), c.segment)
	return s.accessLine(d, s.send(d, request{method: http.MethodDelete, path: append(path, s.name(d)), header: header}), view{})
}

// list lists all, the oldest first if ordered.
//
//	users ordered
//	----
//	200, 1 item
//	{"id":"u"}
func (c children) list(s *script, d *directive) string {
	header, path := s.accessHeader(d), append(c.owner(d), c.segment)
	header["X-Ms-Max-Item-Count"], header["X-Ms-Continuation"] = d.option("max"), s.given(d, "from")
	return s.list(d, request{method: http.MethodGet, path: path, header: header}, c.kind)
}

// name is the only bare word; $r is the value kept as r.
func (s *script) name(d *directive) string { return s.named(d, d.word("")) }

func (s *script) named(d *directive, word string) string {
	if name, ok := strings.CutPrefix(word, "$"); ok {
		if s.kept[name] == "" {
			d.fatalf("nothing was kept as %q", name)
		}
		return s.kept[name]
	}
	return word
}

func (s *script) accessHeader(d *directive) map[string]string {
	h := s.conditions(d)
	h["X-Ms-Documentdb-Expiry-Seconds"] = d.option("life")
	return h
}

// accessLine renders an answer, and keeps the token in it.
func (s *script) accessLine(d *directive, a answer, v view) string {
	s.keep(d, a)
	if name := d.option("ticket"); name != "" {
		raw, found := lookup(a.body, "_token")
		if !found {
			d.fatalf("there is no token in %s", a.body)
		}
		s.kept[name] = unquoted(raw)
	}
	return s.line(d, a, v)
}

// makeAs makes all later requests with a kept token. With nobody they have no credential,
// and with owner they are signed with the key again.
//
//	as t
//	----
//	as t
func makeAs(s *script, d *directive) string {
	name := d.word("owner")
	switch name {
	case "owner":
		s.credential = nil
	case "nobody":
		none := ""
		s.credential = &none
	default:
		token := s.named(d, "$"+name)
		s.credential = &token
	}
	return "as " + name
}

// sendAny sends a request without a verb of its own, with the body in the lines below. $r
// in its path is the value kept as r.
//
//	send GET dbs/db/colls/c/conflicts
//	----
//	200 {"_rid":"rid1","Conflicts":[],"_count":0}
//
// It takes query, for a body that is one, pk=a for the partition key header, and
// headers=(Name: value, …).
func sendAny(s *script, d *directive) string {
	v, header := d.view(), s.accessHeader(d)
	if pk := d.option("pk"); pk != "" {
		header["X-Ms-Documentdb-Partitionkey"] = "[" + ascii(pk) + "]"
	}
	body := strings.Join(d.lines(), "\n")
	if d.flag("query") {
		header["Content-Type"], header["X-Ms-Documentdb-Query-Enablecrosspartition"] = "application/query+json", "True"
		body = `{"query":` + quoted(body) + `}`
	}
	for _, h := range d.options("headers") {
		name, value, _ := strings.Cut(h, ":")
		header[name] = strings.TrimSpace(value)
	}
	words := d.words()
	if len(words) != 2 {
		d.fatalf("send takes a method and a path")
	}
	path := strings.Split(strings.Trim(words[1], "/"), "/")
	for i := range path {
		path[i] = s.named(d, path[i])
	}
	if words[1] == "/" {
		path = nil
	}
	return s.accessLine(d, s.send(d, request{method: words[0], path: path, header: header, body: []byte(body)}), v)
}

// showAccount shows the account's description: its regions and their endpoints, which are
// here unless they have one of their own.
//
//	account
//	----
//	write: South Central US here
//	read: South Central US here
//	consistency: Session
//
// Regions that all take writes are followed by "(all at once)".
func showAccount(s *script, d *directive) string {
	a := s.send(d, request{method: http.MethodGet})
	type location struct{ Name, DatabaseAccountEndpoint string }
	var account struct {
		WritableLocations, ReadableLocations []location
		EnableMultipleWriteLocations         bool
		UserConsistencyPolicy                struct{ DefaultConsistencyLevel string }
	}
	if err := json.Unmarshal(a.body, &account); err != nil || a.status != http.StatusOK {
		d.fatalf("not an account: %d %s", a.status, a.body)
	}
	text := func(all []location) string {
		var parts []string
		for _, l := range all {
			if l.DatabaseAccountEndpoint == s.server.endpoint() {
				l.DatabaseAccountEndpoint = "here"
			}
			parts = append(parts, l.Name+" "+l.DatabaseAccountEndpoint)
		}
		return strings.Join(parts, ", ")
	}
	write := text(account.WritableLocations)
	if account.EnableMultipleWriteLocations {
		write += " (all at once)"
	}
	return fmt.Sprintf("write: %s\nread: %s\nconsistency: %s", write, text(account.ReadableLocations),
		account.UserConsistencyPolicy.DefaultConsistencyLevel)
}

// authorization is the credential of a request: a signature, unless the script sets
// another.
func (s *script) authorization(d *directive, r *request, date string) string {
	if s.credential != nil {
		return url.QueryEscape(*s.credential)
	}
	return url.QueryEscape(r.signature(d, date))
}
