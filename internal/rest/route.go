// SPDX-License-Identifier: MIT

// What a path addresses. Paths are dbs/{db}/colls/{container}/docs/{item} and the like.
// Each {x} is a name, percent-encoded, or a rid.

package rest

import (
	"net/url"
	"strings"

	"github.com/mayflydb/mayfly/internal/api"
)

// The path of an operation on a container. It is signed like the container.
const (
	operationsSegment  = "operations"
	operationDeleteKey = "partitionkeydelete"
)

// children maps a resource type to the types below it.
var children = map[api.Resource][]api.Resource{
	api.AccountResource: {api.Databases, api.Offers},
	api.Databases:       {api.Containers, api.Users, api.EncryptionKeys},
	api.Containers:      {api.Items, api.Ranges, api.Procedures, api.Triggers, api.UDFs, api.Conflicts},
	api.Users:           {api.Permissions},
}

const (
	maxPathBytes    = 8 << 10
	maxPathSegments = 6
)

// route is a parsed path.
type route struct {
	kind api.Resource // the resource type addressed
	feed bool         // the list of such resources, not one of them
	// The names in the path. id is that of the last resource, if the path ends with one.
	database, container, user, id string
	// link is what a signature covers: the resource itself, or the owner of the list.
	link string
}

// parseRoute parses a path that is still percent-encoded. It returns false if the path
// addresses nothing.
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
		word := segments[i]
		if r.kind == api.Containers && word == operationsSegment {
			return resolveOperation(r, segments[i+1:])
		}
		kind, ok := child(r.kind, word)
		if !ok {
			return route{}, false
		}
		r.kind, r.id = kind, ""
		if i+1 == len(segments) {
			r.feed = true
			r.link = strings.TrimSuffix(strings.TrimSuffix(link, word), "/")
			return r, true
		}
		r.id = segments[i+1]
		if r.id == "" {
			return route{}, false
		}
		switch kind {
		case api.Databases:
			r.database = r.id
		case api.Containers:
			r.container = r.id
		case api.Users:
			r.user = r.id
		}
	}
	return r, true
}

// resolveOperation parses what follows a container and the word "operations".
func resolveOperation(container route, segments []string) (route, bool) {
	if len(segments) != 1 || segments[0] != operationDeleteKey {
		return route{}, false
	}
	r := container
	r.kind = api.PartitionKeys
	r.link = strings.TrimSuffix(r.link, "/"+operationsSegment+"/"+operationDeleteKey)
	return r, true
}

// child returns the type of resource that a word means below another.
func child(parent api.Resource, word string) (api.Resource, bool) {
	for _, c := range children[parent] {
		if c.Word() == word {
			return c, true
		}
	}
	return 0, false
}
