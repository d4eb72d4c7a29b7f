// SPDX-License-Identifier: MIT

package api

import (
	"errors"
	"strings"

	"github.com/mayflydb/mayfly/internal/store"
	"github.com/mayflydb/mayfly/internal/value"
)

// resolve replaces a rid in the request's target by the id and key of its item.
func (c *Call) resolve() (err error) {
	c.Request.Target, err = c.Service.Engine.ResolveRID(c.Context, c.Request.Target)
	return err
}

// ops maps verbs to operations on items.
var ops = [verbs]store.Op{Create: store.Create, Upsert: store.Upsert, Replace: store.Replace, Patch: store.Update, Delete: store.Delete}

func (c *Call) writeItem() (err error) {
	r, a := &c.Request, &c.Answer
	if err := c.resolve(); err != nil {
		return err
	}
	r.Op = ops[c.Row.Verb]
	a.Answer, err = c.Service.Engine.WriteItem(c.Context, &r.Request)
	a.setPosition()
	switch {
	case err != nil:
		return err
	case r.Op == store.Delete:
		return a.empty(statusNoContent)
	}
	if r.Minimal {
		return a.empty(statusOf(a.Created))
	}
	return a.body(statusOf(a.Created), r.shown(a.Body))
}

func (c *Call) readItem() (err error) {
	r, a := &c.Request, &c.Answer
	if err := c.resolve(); err != nil {
		return err
	}
	c.takeRoom()
	a.Answer, err = c.Service.Engine.ReadItem(&r.Request)
	if err := c.hold(len(a.Body)); err != nil {
		return err
	}
	a.setPosition()
	if errors.Is(err, store.ErrNotModified) {
		return a.empty(statusNotModified)
	}
	if err != nil {
		return err
	}
	a.Located = true
	return a.body(statusOK, r.shown(a.Body))
}

// setPosition sets the fields about the container and the position, also for an error.
func (a *Answer) setPosition() {
	a.owned(a.Container)
	a.Positioned = a.Container != nil && (a.LSN != 0 || a.Answered)
}

// shown returns an item as the client asks for it: PlainItem leaves out system properties
// that nothing depends on. The service leaves them out only of items that were created
// with the same option. Here every item has them, and each request says whether to show
// them.
func (r *Request) shown(item []byte) []byte {
	if !r.PlainItem {
		return item
	}
	o, err := value.ParseObject(item)
	if err != nil {
		return item // a trigger replaced the body by something that is no object
	}
	out := o.AppendMembers([]byte("{"), func(name string) bool { return name == "_self" || name == "_attachments" })
	return append(out, '}')
}

func (c *Call) listItems() (err error) {
	c.Answer.Answer, err = c.Service.Engine.ListItems(c.Context, &c.Request.Request)
	if err := c.hold(len(c.Answer.Rows)); err != nil {
		return err
	}
	return c.items(err)
}

// items answers with a page of items, unless there was an error.
func (c *Call) items(err error) error {
	a := &c.Answer
	a.owned(a.Container)
	if err != nil {
		return err
	}
	a.Positioned = true
	return c.page(a.Container.RIDText, "Documents", a.Rows, a.Count)
}

// readChanges answers with a page of the change feed. Its etag is the continuation.
func (c *Call) readChanges() (err error) {
	r, a := &c.Request, &c.Answer
	r.Continuation = changePosition(r.IfNoneMatch)
	a.Answer, err = c.Service.Engine.ReadChangeFeed(c.Context, &r.Request)
	if err := c.hold(len(a.Rows)); err != nil {
		return err
	}
	if err := c.items(err); err != nil {
		return err
	}
	a.ETag, a.Continuation = `"`+a.Continuation+`"`, ""
	if a.Count == 0 && !a.More {
		a.Parts = [3][]byte{}
		return a.empty(statusNotModified)
	}
	return nil
}

// changePosition returns the continuation in the etag of a page of the change feed.
func changePosition(etag string) string {
	etag = strings.TrimPrefix(strings.TrimSpace(etag), "W/")
	if n := len(etag); n >= 2 && etag[0] == '"' && etag[n-1] == '"' {
		return etag[1 : n-1]
	}
	return etag
}

// deletePartitionKey deletes all items with the request's partition key.
func (c *Call) deletePartitionKey() (err error) {
	c.Answer.Answer, err = c.Service.Engine.DeletePartitionKey(c.Context, &c.Request.Request)
	c.Answer.setPosition()
	if err != nil {
		return err
	}
	return c.Answer.empty(statusOK)
}

// execute runs a stored procedure.
func (c *Call) execute() (err error) {
	a := &c.Answer
	a.Answer, err = c.Service.Engine.Execute(c.Context, &c.Request.Request)
	a.owned(a.Container)
	a.Positioned = a.LSN != 0
	if c.Request.ScriptLog {
		a.extra(ScriptLog, a.Log)
	}
	if err != nil {
		return err
	}
	if len(a.Body) == 0 {
		a.Body = []byte(`""`)
	}
	return a.body(statusOK, a.Body)
}
