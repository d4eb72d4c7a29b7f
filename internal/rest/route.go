// SPDX-License-Identifier: MIT

// What a path addresses. Paths are dbs/{db}/colls/{container}/docs/{item} and
// the like, each {x} a name, percent-encoded, or a rid.

package rest

import (
	"net/url"
	"strings"
)

// Resource types: the words that paths and signatures use.
const (
	typeAccount    = ""
	typeDatabases  = "dbs"
	typeContainers = "colls"
	typeItems      = "docs"
	typeRanges     = "pkranges"
	typeOffers     = "offers"
	typeUsers      = "users"

	typePermissions    = "permissions"
	typeEncryptionKeys = "clientencryptionkeys"
	typeConflicts      = "conflicts"
	typeProcedures     = "sprocs"
	typeUDFs           = "udfs"
	typeTriggers       = "triggers"
)

// An operation on a container stands below it, and is signed as if it were the
// container.
const (
	operationsSegment  = "operations"
	operationDeleteKey = "partitionkeydelete"
)

// children tells which resource types may stand below another.
var children = map[string][]string{
	typeAccount:    {typeDatabases, typeOffers},
	typeDatabases:  {typeContainers, typeUsers, typeEncryptionKeys},
	typeContainers: {typeItems, typeRanges, typeProcedures, typeTriggers, typeUDFs, typeConflicts},
	typeUsers:      {typePermissions},
}

const (
	maxPathBytes    = 8 << 10
	maxPathSegments = 6
)

// route is a parsed path.
type route struct {
	kind string // the resource type addressed
	feed bool   // the list of such resources, not one of them
	// operation is what is asked of the container at the end of the path, or empty.
	operation string
	// The names on the way; id is that of the last resource, if there is one.
	database, container, user, id string
	// key is the partition key of an item, once it was found by its rid or given in
	// the header.
	key string
	// link is what a signature covers: the resource itself, or the owner of the
	// list.
	link string
}

// parseRoute reads a path as it came, still percent-encoded. It reports false
// for a path that addresses nothing.
func parseRoute(escaped string) (route, bool) {
	path := strings.Trim(escaped, "/")
	if path == "" {
		return route{}, true
	}
	if len(path) > maxPathBytes {
		return route{}, false
	}
	var segments [maxPathSegments]string
	n := 0
	for rest, more := path, true; more; n++ {
		if n == maxPathSegments {
			return route{}, false
		}
		segments[n], rest, more = strings.Cut(rest, "/")
	}
	link := path
	if strings.Contains(path, "%") {
		for i := range n {
			s, err := url.PathUnescape(segments[i])
			if err != nil {
				return route{}, false
			}
			segments[i] = s
		}
		link = strings.Join(segments[:n], "/")
	}
	return resolve(segments[:n], link)
}

func resolve(segments []string, link string) (route, bool) {
	r := route{link: link}
	for i := 0; i < len(segments); i += 2 {
		kind := segments[i]
		if r.kind == typeContainers && kind == operationsSegment {
			return resolveOperation(r, segments[i+1:])
		}
		if !isChild(r.kind, kind) {
			return route{}, false
		}
		r.kind, r.id = kind, ""
		if i+1 == len(segments) {
			r.feed = true
			r.link = strings.TrimSuffix(strings.TrimSuffix(link, kind), "/")
			return r, true
		}
		r.id = segments[i+1]
		if r.id == "" {
			return route{}, false
		}
		switch kind {
		case typeDatabases:
			r.database = r.id
		case typeContainers:
			r.container = r.id
		case typeUsers:
			r.user = r.id
		}
	}
	return r, true
}

// resolveOperation reads what follows a container and the word "operations".
func resolveOperation(container route, segments []string) (route, bool) {
	if len(segments) != 1 || segments[0] != operationDeleteKey {
		return route{}, false
	}
	r := container
	r.operation = segments[0]
	r.link = strings.TrimSuffix(r.link, "/"+operationsSegment+"/"+operationDeleteKey)
	return r, true
}

func isChild(parent, kind string) bool {
	for _, c := range children[parent] {
		if c == kind {
			return true
		}
	}
	return false
}
