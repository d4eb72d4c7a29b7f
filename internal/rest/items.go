// SPDX-License-Identifier: MIT

package rest

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/engine"
	"github.com/mayflydb/mayfly/internal/store"
	"github.com/mayflydb/mayfly/internal/value"
)

func (x *exchange) serveItems(rt *route) error {
	if !rt.feed {
		t, err := x.h.engine.ResolveRID(x.target(rt))
		if err != nil {
			return err
		}
		rt.id, rt.key = t.ID, t.PartitionKey
	}
	switch {
	case rt.feed && x.r.Method == http.MethodGet:
		return x.listItems(rt)
	case rt.feed && x.r.Method == http.MethodPost:
		return x.postItem(rt)
	case !rt.feed && x.r.Method == http.MethodGet:
		return x.readItem(rt)
	case !rt.feed && x.r.Method == http.MethodPut:
		return x.writeItem(rt, store.Replace)
	case !rt.feed && x.r.Method == http.MethodDelete:
		return x.writeItem(rt, store.Delete)
	case !rt.feed && x.r.Method == http.MethodPatch:
		return x.writeItem(rt, store.Update)
	}
	return errMethod
}

// postItem tells what a POST to the items of a container means.
func (x *exchange) postItem(rt *route) error {
	switch {
	case x.isQueryPlan(rt):
		return x.queryPlan(rt)
	case x.isQuery() && x.header("A-Im") != "":
		return &badRequestError{"A change feed cannot be read with a query. Read it without, and choose from what it tells."}
	case x.isQuery():
		return x.queryItems(rt)
	case x.flag("X-Ms-Cosmos-Is-Batch-Request"):
		return x.batch(rt)
	case x.flag("X-Ms-Documentdb-Is-Upsert"):
		return x.writeItem(rt, store.Upsert)
	}
	return x.writeItem(rt, store.Create)
}

func (x *exchange) target(rt *route) engine.Target {
	return engine.Target{
		Database: rt.database, Container: rt.container, ID: rt.id,
		PartitionKey: cmp.Or(x.header(headerPartitionKey), rt.key),
		IntendedRID:  x.header("X-Ms-Cosmos-Intended-Collection-Rid"),
	}
}

func (x *exchange) writeItem(rt *route, op store.Op) error {
	w := &engine.Request{
		Target: x.target(rt), Op: op,
		PreTriggers: x.header("X-Ms-Documentdb-Pre-Trigger-Include"), PostTriggers: x.header("X-Ms-Documentdb-Post-Trigger-Include"),
		IfMatch: x.header("If-Match"), IfNoneMatch: x.header("If-None-Match"), Memory: &x.share,
		SessionToken: x.header(headerSession),
	}
	if op != store.Delete {
		body, err := x.body()
		if err != nil {
			return err
		}
		w.Body = body
	}
	res, err := x.h.engine.WriteItem(x.r.Context(), w)
	x.setItem(&res)
	switch {
	case err != nil:
		return err
	case op == store.Delete:
		x.writeEmpty(http.StatusNoContent)
		return nil
	}
	status := http.StatusOK
	if res.Created {
		status = http.StatusCreated
	}
	x.set(headerETag, res.ETag)
	if x.minimal() {
		x.writeEmpty(status)
		return nil
	}
	x.write(status, x.shown(res.Body))
	return nil
}

// minimal reports whether the client wants no body in answer to a write.
func (x *exchange) minimal() bool {
	return strings.EqualFold(x.header("Prefer"), "return=minimal") ||
		strings.EqualFold(x.header("X-Ms-Cosmos-Populate-Content-Response-On-Write"), "false")
}

func (x *exchange) readItem(rt *route) error {
	room := x.h.takeRoom()
	r := &engine.Request{Target: x.target(rt), IfNoneMatch: x.header("If-None-Match"), SessionToken: x.header(headerSession), Room: room.rows}
	res, err := x.h.engine.ReadItem(r)
	defer func() { x.h.leaveRoom(room, res.Room) }()
	if n := len(res.Body); x.crowded(n) {
		res = engine.Answer{}
		if err := x.waitFor(n); err != nil {
			return err
		}
		res, err = x.h.engine.ReadItem(r)
	}
	x.setItem(&res)
	if errors.Is(err, store.ErrNotModified) {
		x.set(headerETag, res.ETag)
		x.writeEmpty(http.StatusNotModified)
		return nil
	}
	if err != nil {
		return err
	}
	x.set(headerETag, res.ETag)
	x.setLocation()
	x.write(http.StatusOK, x.shown(res.Body))
	return nil
}

// shown returns an item as the client wants to see it: without the system properties that
// nothing depends on, if it says so. The service does this for items that were created
// with the same header only; here every item has them, and shows them or not.
func (x *exchange) shown(item []byte) []byte {
	if !x.flag("X-Ms-Exclude-System-Properties") {
		return item
	}
	o, err := value.ParseObject(item)
	if err != nil {
		return item // a trigger has put something else in its place
	}
	out := o.AppendMembers([]byte("{"), func(name string) bool { return name == "_self" || name == "_attachments" })
	return append(out, '}')
}

// setItem sets the headers that go with an item, with an error too.
func (x *exchange) setItem(res *engine.Answer) {
	x.charge = res.Charge
	if res.Container == nil {
		return
	}
	x.setOwner(res.Container)
	if res.LSN == 0 && !res.Answered {
		return
	}
	x.setPosition(res.Partition, res.LSN)
	if res.ItemLSN != 0 {
		x.set(headerItemLSN, strconv.FormatUint(res.ItemLSN, 10))
	}
	if res.Counted {
		x.tellQuota(res.Live)
	}
}

// setOwner sets the headers from which clients learn the container's rid.
func (x *exchange) setOwner(c *catalog.Container) {
	x.set(headerAltPath, headerPath(c.Path))
	x.set(headerContentPath, c.RIDText)
}

// headerPath percent-encodes a path of names where a header needs it. Clients
// decode it.
func headerPath(path string) string {
	for i := range len(path) {
		if c := path[i]; c <= ' ' || c > '~' || c == '%' {
			return (&url.URL{Path: path}).EscapedPath()
		}
	}
	return path
}

// setPosition sets the headers that say which partition answered, where it is, and
// how long that took in the server.
func (x *exchange) setPosition(partition int, lsn uint64) {
	x.set(headerRange, catalog.RangeID(partition))
	token := engine.SessionToken
	if version := x.header(headerVersion); version != "" && version < sessionVersionsSince {
		token = engine.OldSessionToken
	}
	x.set(headerSession, token(partition, lsn))
	x.set(headerLSN, strconv.FormatUint(lsn, 10))
	x.set(headerDuration, strconv.FormatFloat(float64(time.Since(x.began).Nanoseconds())/1e6, 'f', 4, 64))
}

// sessionVersionsSince is the version of the protocol from which on session tokens have a
// version. Clients of older ones take what follows the colon for a number.
const sessionVersionsSince = "2018-06-18"

func (x *exchange) listItems(rt *route) error {
	if x.header("A-Im") != "" {
		return x.changeFeed(rt)
	}
	most, err := x.maxItems()
	if err != nil {
		return err
	}
	r := &engine.Request{
		Target: x.target(rt), MaxItems: most,
		Range:        x.header(headerRange),
		StartEPK:     x.header("X-Ms-Start-Epk"),
		EndEPK:       x.header("X-Ms-End-Epk"),
		Continuation: x.header(headerContinuation),
		SessionToken: x.header(headerSession),
	}
	page, err := x.h.engine.ListItems(x.r.Context(), r)
	if n := len(page.Rows); x.crowded(n) {
		page = engine.Answer{}
		if err := x.waitFor(n); err != nil {
			return err
		}
		page, err = x.h.engine.ListItems(x.r.Context(), r)
	}
	x.charge = page.Charge
	if page.Container != nil {
		x.setOwner(page.Container)
	}
	if err != nil {
		return err
	}
	x.setPosition(page.Partition, page.LSN)
	if page.Continuation != "" {
		x.set(headerContinuation, page.Continuation)
	}
	x.writeList(page.Container.RIDText, "Documents", page.Rows, page.Count)
	return nil
}
