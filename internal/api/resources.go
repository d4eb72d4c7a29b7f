// SPDX-License-Identifier: MIT

// Databases, containers, scripts, users, permissions, client encryption keys and offers:
// all resources but items. They are listed, queried, read, written and deleted alike.
// What differs between kinds is in resourceAnswer and show.

package api

import (
	"bytes"
	"errors"
	"strconv"
	"strings"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/engine"
	"github.com/mayflydb/mayfly/internal/sql"
	"github.com/mayflydb/mayfly/internal/sql/function"
	"github.com/mayflydb/mayfly/internal/sql/syntax"
	"github.com/mayflydb/mayfly/internal/store"
	"github.com/mayflydb/mayfly/internal/value"
)

// kinds maps each type to the catalog's kind.
var kinds = [resources]struct {
	kind  catalog.Kind
	feed  string // the name of their list
	quota string // the name of scripts in quotas
}{
	Databases:      {catalog.Databases, "Databases", ""},
	Containers:     {catalog.Containers, "DocumentCollections", ""},
	Users:          {catalog.Users, "Users", ""},
	Permissions:    {catalog.Permissions, "Permissions", ""},
	EncryptionKeys: {catalog.EncryptionKeys, "ClientEncryptionKeys", ""},
	UDFs:           {catalog.UDFs, "UserDefinedFunctions", "functions"},
	Procedures:     {catalog.Procedures, "StoredProcedures", "storedProcedures"},
	Triggers:       {catalog.Triggers, "Triggers", "triggers"},
	Offers:         {catalog.Offers, "Offers", ""},
}

func (r *Request) address() catalog.Address {
	return catalog.Address{Kind: kinds[r.Resource].kind, Database: r.Database, Container: r.Container, User: r.User, ID: r.ID}
}

// listResources answers with a page of a list. The continuation is the rid of the page's
// last resource.
func (c *Call) listResources() error {
	r := &c.Request
	l, err := c.Service.Engine.Catalog().List(r.address())
	if err != nil {
		return err
	}
	first := 0
	if r.Continuation != "" {
		var ok bool
		if first, ok = l.After(r.Continuation); !ok {
			return engine.ErrContinuation
		}
	}
	last := min(first+r.feedItems(), len(l.All))
	if last < len(l.All) {
		c.Answer.Continuation = l.All[last-1].Common().RIDText
	}
	items := bytes.Join(c.bodies(l.All[first:last]), []byte(","))
	return c.page(l.Owner.Common().RIDText, kinds[r.Resource].feed, items, last-first)
}

func (c *Call) queryResource() error {
	l, err := c.Service.Engine.Catalog().List(c.Request.address())
	if err != nil {
		return err
	}
	return c.queryResources(l.Owner.Common().RIDText, kinds[c.Request.Resource].feed, c.bodies(l.All))
}

// readResource answers with a resource, or 304 if the client has this version.
func (c *Call) readResource() error {
	found, err := c.Service.Engine.Catalog().Find(c.Request.address())
	if err != nil {
		return err
	}
	body, err := c.resourceAnswer(found)
	if err != nil {
		return err
	}
	c.Answer.ETag = found.Common().ETag
	if condition := c.Request.IfNoneMatch; condition != "" && catalog.Matches(condition, c.Answer.ETag) {
		return c.Answer.empty(statusNotModified)
	}
	c.Answer.Located = true
	return c.Answer.body(statusOK, body)
}

// modes maps verbs to the catalog's ways to write.
var modes = [verbs]catalog.WriteMode{Create: catalog.Create, Upsert: catalog.Upsert, Replace: catalog.Replace}

func (c *Call) writeResource() error {
	r, a := &c.Request, &c.Answer
	w := catalog.Write{
		Address: r.address(), Mode: modes[c.Row.Verb], IfMatch: r.IfMatch, Body: r.Body, Throughput: r.Throughput, Migrate: r.Migrate,
	}
	if r.Resource == Containers && w.Mode == catalog.Create {
		w.Body = r.withSystemKey(w.Body)
	}
	written, created, err := c.Service.Engine.Write(c.Context, w)
	if err != nil {
		return err
	}
	body, err := c.resourceAnswer(written)
	if errors.Is(err, store.ErrClosed) {
		// The container was dropped since. The write has succeeded, and is not repeated.
		body, err = c.show(written), nil
	}
	if err != nil {
		return err
	}
	if c.Row.Audited {
		c.Audit(c.by, written.Common().ID)
		if p, ok := written.(*catalog.Permission); ok {
			c.Audit(c.by, auditOf(p))
		}
	}
	a.ETag, a.Located = written.Common().ETag, true
	return a.body(statusOf(created), body)
}

// auditOf says in the log what a permission allows.
func auditOf(p *catalog.Permission) string {
	mode := "Read"
	if p.All {
		mode = "All"
	}
	text := p.ID + " " + mode + " dbs/" + p.Database + "/colls/" + p.Container
	if p.Kind != "" {
		text += "/" + p.Kind + "/" + p.Child
	}
	return text
}

func (c *Call) deleteResource() error {
	if err := c.Service.Engine.Delete(c.Context, c.Request.address(), c.Request.IfMatch); err != nil {
		return err
	}
	return c.Answer.empty(statusNoContent)
}

// resourceAnswer sets what an answer with one resource has, and returns the resource's body.
func (c *Call) resourceAnswer(found catalog.Any) ([]byte, error) {
	switch r := found.(type) {
	case *catalog.Container:
		return c.containerAnswer(r)
	case *catalog.Script:
		c.scriptAnswer()
	case *catalog.Offer:
		c.Answer.extra(MinThroughput, strconv.Itoa(r.Minimum()))
		c.Answer.extra(ReplacePending, strconv.FormatBool(r.Pending))
	}
	return c.show(found), nil
}

// scriptAnswer sets the owner of a script, and how many scripts of its kind the container
// has and may have. If the container was deleted meanwhile it sets nothing: the request
// itself has succeeded.
func (c *Call) scriptAnswer() {
	l, err := c.Service.Engine.Catalog().List(c.Request.address())
	if err != nil {
		return
	}
	c.Answer.owned(l.Owner.(*catalog.Container))
	k := kinds[c.Request.Resource]
	c.Answer.extra(Quota, k.quota+"="+strconv.Itoa(k.kind.Max())+";")
	c.Answer.extra(Usage, k.quota+"="+strconv.Itoa(len(l.All))+";")
}

// show returns the body of a resource; a permission's has a new resource token.
func (c *Call) show(r catalog.Any) []byte {
	p, ok := r.(*catalog.Permission)
	if !ok {
		return r.Common().Body
	}
	body := append([]byte(nil), p.Body[:len(p.Body)-len("}")]...)
	body = value.AppendString(append(body, `,"_token":`...), c.Service.Token(p, c.Request.TokenExpires))
	return append(body, '}')
}

func (c *Call) bodies(all []catalog.Any) [][]byte {
	bodies := make([][]byte, len(all))
	for i, r := range all {
		bodies[i] = c.show(r)
	}
	return bodies
}

// maxFeedItems is the page size of a list of resources.
const maxFeedItems = 1000

// feedItems returns how many resources a page may have.
func (r *Request) feedItems() int {
	if r.MaxItems <= 0 || r.MaxItems > maxFeedItems {
		return maxFeedItems
	}
	return r.MaxItems
}

// resourceRows begins the continuation of a query over resources. The number of rows
// already sent follows.
const resourceRows = "rows:"

// queryResources answers a query over resources. They are few and in memory, so each page
// evaluates the whole query again.
func (c *Call) queryResources(owner, kind string, bodies [][]byte) error {
	r, e := &c.Request, c.Service.Engine
	q, err := engine.ParseQuery(r.Body)
	if err != nil {
		return err
	}
	returned := uint64(0)
	if r.Continuation != "" {
		text, ok := strings.CutPrefix(r.Continuation, resourceRows)
		if returned, err = strconv.ParseUint(text, 10, 32); err != nil || !ok {
			return engine.ErrContinuation
		}
	}
	parsed, err := syntax.Parse(q.Text)
	if err != nil {
		return err
	}
	look := e.Watch(c.Context)
	p, err := sql.Compile(parsed, sql.CompileOptions{Params: q.Params, Interrupted: look})
	if err != nil {
		return err
	}
	rows, err := sql.Evaluate(p, bodies, &function.Context{NowMs: e.Clock().Now(), Interrupted: look})
	if err != nil {
		return err
	}
	first := min(int(returned), len(rows))
	last := min(first+r.feedItems(), len(rows))
	if last < len(rows) {
		c.Answer.Continuation = resourceRows + strconv.Itoa(last)
	}
	return c.page(owner, kind, bytes.Join(rows[first:last], []byte(",")), last-first)
}
