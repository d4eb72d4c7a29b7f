// SPDX-License-Identifier: MIT

package rest

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/engine"
)

func (x *exchange) serveDatabases(rt *route) error {
	ctx := x.r.Context()
	switch {
	case rt.feed && x.r.Method == http.MethodGet:
		return x.listDatabases()
	case rt.feed && x.r.Method == http.MethodPost:
		if x.isQuery() {
			return x.queryDatabases()
		}
		t, err := x.throughput()
		if err != nil {
			return err
		}
		body, err := x.body()
		if err != nil {
			return err
		}
		d, err := x.h.engine.CreateDatabase(ctx, body, t)
		if err != nil {
			return err
		}
		x.writeResource(http.StatusCreated, d.ETag, d.Body)
		return nil
	case !rt.feed && x.r.Method == http.MethodGet:
		d, err := x.h.engine.Database(rt.id)
		if err != nil {
			return err
		}
		x.writeIfModified(d.ETag, d.Body)
		return nil
	case !rt.feed && x.r.Method == http.MethodDelete:
		if err := x.h.engine.DeleteDatabase(ctx, rt.id, x.header("If-Match")); err != nil {
			return err
		}
		x.writeEmpty(http.StatusNoContent)
		return nil
	}
	return errMethod
}

func (x *exchange) queryDatabases() error {
	var bodies [][]byte
	for _, d := range x.h.engine.Databases() {
		bodies = append(bodies, d.Body)
	}
	return x.queryResources("", "Databases", bodies)
}

func (x *exchange) listDatabases() error {
	all := x.h.engine.Databases()
	return x.writeFeed(&feed{
		kind: "Databases", n: len(all),
		resource: func(i int) (rid string, body []byte) { return all[i].RID.String(), all[i].Body },
		after:    func(rid string) (int, bool) { return firstAfter(all, rid, databaseOrder) },
	})
}

// writeResource answers with a database or a container, and where it was found.
func (x *exchange) writeResource(status int, etag string, body []byte) {
	x.setLocation()
	x.set(headerETag, etag)
	x.write(status, body)
}

// writeIfModified answers with a resource, or with 304 if the client has it.
func (x *exchange) writeIfModified(etag string, body []byte) {
	if c := x.header("If-None-Match"); c != "" && catalog.Matches(c, etag) {
		x.set(headerETag, etag)
		x.writeEmpty(http.StatusNotModified)
		return
	}
	x.writeResource(http.StatusOK, etag, body)
}

// maxFeedItems is the page size of a feed of databases, containers or offers.
const maxFeedItems = 1000

// feed is a list that is in memory, in the order of rids.
type feed struct {
	owner, kind string
	n           int
	resource    func(i int) (rid string, body []byte)
	// after returns the first resource that follows the one with the rid, which may
	// be gone. It reports false for what is no rid.
	after func(rid string) (int, bool)
}

// writeFeed answers with a page of a list. Its continuation is the rid of the last
// resource of the page.
func (x *exchange) writeFeed(f *feed) error {
	most, err := x.maxItems()
	if err != nil {
		return err
	}
	if most <= 0 || most > maxFeedItems {
		most = maxFeedItems
	}
	first := 0
	if rid := x.header(headerContinuation); rid != "" {
		var ok bool
		if first, ok = f.after(rid); !ok {
			return engine.ErrContinuation
		}
	}
	last := min(first+most, f.n)
	var items []byte
	for i := first; i < last; i++ {
		rid, body := f.resource(i)
		if i > first {
			items = append(items, ',')
		}
		items = append(items, body...)
		if i == last-1 && last < f.n {
			x.set(headerContinuation, rid)
		}
	}
	x.writeList(f.owner, f.kind, items, last-first)
	return nil
}

// firstAfter finds the first of the databases or containers that comes after the
// one with the rid.
func firstAfter[T any](all []T, rid string, order func(T, catalog.RID) int) (int, bool) {
	after, ok := catalog.ParseRID(rid)
	if !ok {
		return 0, false
	}
	i, found := slices.BinarySearchFunc(all, after, order)
	if found {
		i++
	}
	return i, true
}

func databaseOrder(d *catalog.Database, rid catalog.RID) int { return cmp.Compare(d.RID, rid.Database) }

func containerOrder(c *catalog.Container, rid catalog.RID) int {
	return cmp.Or(cmp.Compare(c.RID.Database, rid.Database), cmp.Compare(c.RID.Container, rid.Container.Container))
}

// writeList answers with a feed: items are JSON with commas between them. It may
// append to them. If the client asks for none it gets none, and no continuation: it
// would ask for the next page without end.
func (x *exchange) writeList(owner, kind string, items []byte, n int) {
	if x.asksForNone() {
		items, n = nil, 0
		delete(x.w.Header(), wireName(headerContinuation))
	}
	count := strconv.Itoa(n)
	x.set(headerItemCount, count)
	head, tail := []byte(`{"_rid":"`+owner+`","`+kind+`":[`), []byte(`],"_count":`+count+`}`)
	if len(items)+len(tail) > cap(items) {
		x.write(http.StatusOK, head, items, tail) // a page can be large: it is not copied once more
		return
	}
	// In one piece with the items, the end needs no system call of its own.
	x.write(http.StatusOK, head, append(items, tail...))
}

// isQuery reports whether a POST is a query rather than a create.
func (x *exchange) isQuery() bool {
	media, _, _ := strings.Cut(x.header(headerContentType), ";")
	return strings.EqualFold(strings.TrimSpace(media), "application/query+json") ||
		x.flag("X-Ms-Documentdb-Isquery") || x.flag("X-Ms-Documentdb-Query")
}
