// SPDX-License-Identifier: MIT

package rest

import (
	"net/http"
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
			return &notYetError{"queries over databases"}
		}
		if _, err := x.throughput(); err != nil {
			return err
		}
		body, done, err := x.body()
		defer done()
		if err != nil {
			return err
		}
		d, err := x.h.engine.CreateDatabase(ctx, body)
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

func (x *exchange) listDatabases() error {
	all := x.h.engine.Databases()
	return x.writeFeed("", "Databases", len(all), func(i int) (rid string, body []byte) {
		return all[i].RID.String(), all[i].Body
	})
}

// writeResource answers with a database or a container.
func (x *exchange) writeResource(status int, etag string, body []byte) {
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

// maxFeedItems is the page size of a feed of databases or containers.
const maxFeedItems = 1000

// writeFeed answers with a page of a list that is in memory. Its continuation is
// the rid of the last resource of the page.
func (x *exchange) writeFeed(owner, kind string, n int, resource func(i int) (rid string, body []byte)) error {
	most, err := x.maxItems()
	if err != nil {
		return err
	}
	if most <= 0 || most > maxFeedItems {
		most = maxFeedItems
	}
	first := 0
	if after := x.header(headerContinuation); after != "" {
		rid, ok := catalog.ParseRID(after)
		if !ok {
			return engine.ErrContinuation
		}
		for first < n && !follows(resource, first, rid) {
			first++
		}
	}
	last := min(first+most, n)
	var items []byte
	for i := first; i < last; i++ {
		rid, body := resource(i)
		if i > first {
			items = append(items, ',')
		}
		items = append(items, body...)
		if i == last-1 && last < n {
			x.set(headerContinuation, rid)
		}
	}
	x.writeList(owner, kind, items, last-first)
	return nil
}

// follows reports whether the i-th resource comes after the one with the rid,
// which may be gone.
func follows(resource func(i int) (string, []byte), i int, after catalog.RID) bool {
	text, _ := resource(i)
	rid, _ := catalog.ParseRID(text)
	if rid.Database != after.Database {
		return rid.Database > after.Database
	}
	return rid.Container.Container > after.Container.Container
}

// writeList answers with a feed: items are JSON with commas between them.
func (x *exchange) writeList(owner, kind string, items []byte, n int) {
	count := strconv.Itoa(n)
	x.set(headerItemCount, count)
	// A page can be large: it is not copied once more.
	x.write(http.StatusOK, []byte(`{"_rid":"`+owner+`","`+kind+`":[`), items, []byte(`],"_count":`+count+`}`))
}

// isQuery reports whether a POST is a query rather than a create.
func (x *exchange) isQuery() bool {
	media, _, _ := strings.Cut(x.header(headerContentType), ";")
	return strings.EqualFold(strings.TrimSpace(media), "application/query+json") ||
		x.flag("X-Ms-Documentdb-Isquery") || x.flag("X-Ms-Documentdb-Query")
}
