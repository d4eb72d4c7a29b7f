// SPDX-License-Identifier: MIT

// Databases, containers, scripts, users, permissions, client encryption keys and
// offers: what there is beside items. All are listed, queried, read, written and
// deleted alike; what goes with one of a kind is in tell, ask and show.

package rest

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/engine"
	"github.com/mayflydb/mayfly/internal/sql"
	"github.com/mayflydb/mayfly/internal/value"
)

// resourceType says how resources of a type are told apart.
type resourceType struct {
	kind    catalog.Kind
	feed    string // the name of their list
	upserts bool   // a create may replace one, if it asks to
	quota   string // what scripts are called in quotas
}

var resourceTypes = map[string]resourceType{
	typeDatabases:      {kind: catalog.Databases, feed: "Databases"},
	typeContainers:     {kind: catalog.Containers, feed: "DocumentCollections"},
	typeUsers:          {kind: catalog.Users, feed: "Users", upserts: true},
	typePermissions:    {kind: catalog.Permissions, feed: "Permissions", upserts: true},
	typeEncryptionKeys: {kind: catalog.EncryptionKeys, feed: "ClientEncryptionKeys", upserts: true},
	typeUDFs:           {kind: catalog.UDFs, feed: "UserDefinedFunctions", quota: "functions"},
	typeProcedures:     {kind: catalog.Procedures, feed: "StoredProcedures", quota: "storedProcedures"},
	typeTriggers:       {kind: catalog.Triggers, feed: "Triggers", quota: "triggers"},
	typeOffers:         {kind: catalog.Offers, feed: "Offers"},
}

// resourceRequest is a request about resources of one type.
type resourceRequest struct {
	*exchange
	resourceType
	at      catalog.Address
	expires time.Time // when the tokens of permissions do
}

func (x *exchange) serveResources(rt *route) (err error) {
	q := resourceRequest{exchange: x, resourceType: resourceTypes[rt.kind]}
	q.at = catalog.Address{Kind: q.kind, Database: rt.database, Container: rt.container, User: rt.user, ID: rt.id}
	if q.kind == catalog.Permissions {
		if q.expires, err = x.tokenExpiry(); err != nil {
			return err
		}
	}
	switch method := x.r.Method; {
	case x.operation == opOther:
		return errMethod
	case x.operation == opPartitionKeyDelete:
		return x.deletePartitionKey(rt)
	case x.operation == opProcedureExecute:
		return x.execute(rt)
	case rt.feed && method == http.MethodGet:
		return q.list()
	case rt.feed && x.isQuery():
		return q.query()
	case rt.feed && q.upserts && x.flag("X-Ms-Documentdb-Is-Upsert"):
		return q.write(catalog.Upsert)
	case rt.feed:
		return q.write(catalog.Create)
	case method == http.MethodGet:
		return q.read()
	case method == http.MethodPut:
		return q.write(catalog.Replace)
	}
	return q.remove()
}

// list answers with a page of a list. Its continuation is the rid of the last resource
// of the page.
func (q *resourceRequest) list() error {
	l, err := q.h.engine.Catalog().List(q.at)
	if err != nil {
		return err
	}
	most, err := q.feedItems()
	if err != nil {
		return err
	}
	first := 0
	if rid := q.header(headerContinuation); rid != "" {
		var ok bool
		if first, ok = l.After(rid); !ok {
			return engine.ErrContinuation
		}
	}
	last := min(first+most, len(l.All))
	if last < len(l.All) {
		q.set(headerContinuation, l.All[last-1].Common().RIDText)
	}
	items := bytes.Join(q.bodies(l.All[first:last]), []byte(","))
	q.writeList(l.Owner.Common().RIDText, q.feed, items, last-first)
	return nil
}

func (q *resourceRequest) query() error {
	l, err := q.h.engine.Catalog().List(q.at)
	if err != nil {
		return err
	}
	return q.queryResources(l.Owner.Common().RIDText, q.feed, q.bodies(l.All))
}

// read answers with a resource, or with 304 if the client has it.
func (q *resourceRequest) read() error {
	r, err := q.h.engine.Catalog().Find(q.at)
	if err != nil {
		return err
	}
	body, err := q.tell(r)
	if err != nil {
		return err
	}
	etag := r.Common().ETag
	if c := q.header("If-None-Match"); c != "" && catalog.Matches(c, etag) {
		q.set(headerETag, etag)
		q.writeEmpty(http.StatusNotModified)
		return nil
	}
	q.writeResource(http.StatusOK, etag, body)
	return nil
}

func (q *resourceRequest) write(mode catalog.WriteMode) error {
	w := catalog.Write{Address: q.at, Mode: mode, IfMatch: q.header("If-Match")}
	if err := q.ask(&w); err != nil {
		return err
	}
	r, created, err := q.h.engine.Write(q.r.Context(), w)
	if err != nil {
		return err
	}
	body, err := q.tell(r)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
	}
	q.writeResource(status, r.Common().ETag, body)
	return nil
}

func (q *resourceRequest) remove() error {
	if err := q.h.engine.Delete(q.r.Context(), q.at, q.header("If-Match")); err != nil {
		return err
	}
	q.writeEmpty(http.StatusNoContent)
	return nil
}

// ask reads what a write asks for: the body, and what headers say beside it.
func (q *resourceRequest) ask(w *catalog.Write) (err error) {
	if w.Mode == catalog.Create && (q.kind == catalog.Databases || q.kind == catalog.Containers) {
		if w.Throughput, err = q.throughput(); err != nil {
			return err
		}
	}
	if w.Body, err = q.body(); err != nil {
		return err
	}
	switch {
	case q.kind == catalog.Offers:
		w.Migrate, err = q.migration()
	case q.operation == opContainerCreate:
		w.Body = q.withSystemKey(w.Body)
	}
	return err
}

// tell sets the headers that go with a resource, and returns how it is shown by itself.
func (q *resourceRequest) tell(r catalog.Any) ([]byte, error) {
	switch r := r.(type) {
	case *catalog.Container:
		return q.tellContainer(r)
	case *catalog.Script:
		q.tellScripts()
	case *catalog.Offer:
		q.set("X-Ms-Cosmos-Min-Throughput", strconv.Itoa(r.Minimum()))
		q.set("X-Ms-Offer-Replace-Pending", "false") // a change holds at once
	}
	return q.show(r), nil
}

// tellScripts tells of the container that has a script, and how many of its kind that
// has and may have. If the container has gone meanwhile nothing is told: what was asked
// for has been done.
func (q *resourceRequest) tellScripts() {
	l, err := q.h.engine.Catalog().List(q.at)
	if err != nil {
		return
	}
	q.setOwner(l.Owner.(*catalog.Container))
	q.set(headerQuota, q.quota+"="+strconv.Itoa(q.kind.Max())+";")
	q.set(headerUsage, q.quota+"="+strconv.Itoa(len(l.All))+";")
}

// show returns the response for a resource: that of a permission has a new token.
func (q *resourceRequest) show(r catalog.Any) []byte {
	p, ok := r.(*catalog.Permission)
	if !ok {
		return r.Common().Body
	}
	body := append([]byte(nil), p.Body[:len(p.Body)-len("}")]...)
	body = value.AppendString(append(body, `,"_token":`...), q.h.newToken(p, q.expires))
	return append(body, '}')
}

func (q *resourceRequest) bodies(all []catalog.Any) [][]byte {
	bodies := make([][]byte, len(all))
	for i, r := range all {
		bodies[i] = q.show(r)
	}
	return bodies
}

// What asks for the other kind of throughput.
const (
	headerToAutoscale = "X-Ms-Cosmos-Migrate-Offer-To-Autopilot"
	headerToManual    = "X-Ms-Cosmos-Migrate-Offer-To-Manual-Throughput"
)

// migration reads whether the replace of an offer asks for the other kind of throughput.
func (x *exchange) migration() (catalog.Migration, error) {
	switch toAutoscale, toManual := x.flag(headerToAutoscale), x.flag(headerToManual); {
	case toAutoscale && toManual:
		return 0, &badRequestError{"The headers " + headerToAutoscale + " and " + headerToManual + " cannot be given together."}
	case toAutoscale:
		return catalog.ToAutoscale, nil
	case toManual:
		return catalog.ToManual, nil
	}
	return catalog.NoMigration, nil
}

// How long a token is good for, in seconds: what the service takes.
const (
	defaultTokenSeconds = 3600
	minTokenSeconds     = 10
	maxTokenSeconds     = 24 * 3600
)

// tokenExpiry returns when the tokens of this request's answer expire, by the wall
// clock.
func (x *exchange) tokenExpiry() (time.Time, error) {
	seconds := defaultTokenSeconds
	if text := x.header("X-Ms-Documentdb-Expiry-Seconds"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < minTokenSeconds || n > maxTokenSeconds {
			return time.Time{}, &badRequestError{"The value '" + value.Clip(text) + "' of the header x-ms-documentdb-expiry-seconds is invalid. Ensure to provide an integer from " +
				strconv.Itoa(minTokenSeconds) + " to " + strconv.Itoa(maxTokenSeconds) + "."}
		}
		seconds = n
	}
	return time.Now().Add(time.Duration(seconds) * time.Second), nil
}

// writeResource answers with a resource, and where it was found.
func (x *exchange) writeResource(status int, etag string, body []byte) {
	x.setLocation()
	x.set(headerETag, etag)
	x.write(status, body)
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

// maxFeedItems is the page size of a feed of resources.
const maxFeedItems = 1000

// feedItems returns how many resources a page may have.
func (x *exchange) feedItems() (int, error) {
	most, err := x.maxItems()
	if most <= 0 || most > maxFeedItems {
		most = maxFeedItems
	}
	return most, err
}

// resourceRows begins the continuation of a query over resources, which goes on with
// how many rows were told.
const resourceRows = "rows:"

// queryResources answers a query over resources: there are few of them, and all are in
// memory, so that each page makes all rows anew.
func (x *exchange) queryResources(owner, kind string, bodies [][]byte) error {
	q, err := x.query()
	if err != nil {
		return err
	}
	most, err := x.feedItems()
	if err != nil {
		return err
	}
	told := uint64(0)
	if token := x.header(headerContinuation); token != "" {
		text, ok := strings.CutPrefix(token, resourceRows)
		if told, err = strconv.ParseUint(text, 10, 32); err != nil || !ok {
			return engine.ErrContinuation
		}
	}
	parsed, err := sql.Parse(q.Text)
	if err != nil {
		return err
	}
	look := x.h.engine.Watch(x.r.Context())
	p, err := sql.Compile(parsed, sql.CompileOptions{Params: q.Params, Interrupted: look})
	if err != nil {
		return err
	}
	cx := &sql.Context{NowMs: x.h.engine.Clock().Now(), Interrupted: look}
	rows, err := sql.Naive(p, bodies, cx)
	if err != nil {
		return err
	}
	first := min(int(told), len(rows))
	last := min(first+most, len(rows))
	if last < len(rows) {
		x.set(headerContinuation, resourceRows+strconv.Itoa(last))
	}
	x.writeList(owner, kind, bytes.Join(rows[first:last], []byte(",")), last-first)
	return nil
}
