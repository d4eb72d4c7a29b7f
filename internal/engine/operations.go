// SPDX-License-Identifier: MIT

// The operations of scripts on the items of their logical partition.

package engine

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/query"
	"github.com/mayflydb/mayfly/internal/ru"
	"github.com/mayflydb/mayfly/internal/script"
	"github.com/mayflydb/mayfly/internal/store"
	"github.com/mayflydb/mayfly/internal/value"
)

const (
	// scriptPageItems is the length of a page if the script does not set one.
	scriptPageItems = 100
	// maxScanBytes bounds what a script reads at once when it scans all items.
	maxScanBytes = 16 << 20
)

// scriptArgs are the arguments of an operation.
type scriptArgs struct {
	Link    string          `json:"link"`
	Body    json.RawMessage `json:"body"`
	Query   json.RawMessage `json:"query"`
	Options struct {
		ETag         string  `json:"etag"`
		IfNoneMatch  string  `json:"ifNoneMatch"`
		Continuation string  `json:"continuation"`
		PageSize     float64 `json:"pageSize"`
		KeepID       bool    `json:"disableAutomaticIdGeneration"`
	} `json:"options"`
}

// scriptReply is the result of an operation, for the script.
type scriptReply struct {
	Status   int             `json:"status,omitempty"` // of an error
	Text     string          `json:"text,omitempty"`
	Resource json.RawMessage `json:"resource,omitempty"`
	Options  scriptOptions   `json:"options"`
}

type scriptOptions struct {
	Continuation string `json:"continuation,omitempty"`
	NotModified  bool   `json:"notModified,omitempty"`
}

// operate executes an operation for a script.
func (x *transaction) operate(ctx context.Context, name, args string) string {
	reply, err := x.operation(ctx, name, args)
	if err != nil {
		reply = scriptReply{}
		reply.Status, reply.Text = x.e.options.Explain(err)
	}
	text, err := json.Marshal(reply)
	if err != nil {
		text, _ = json.Marshal(scriptReply{Status: 500, Text: err.Error()})
	}
	return string(text)
}

func (x *transaction) operation(ctx context.Context, name, args string) (scriptReply, error) {
	var a scriptArgs
	if err := json.Unmarshal([]byte(args), &a); err != nil {
		return scriptReply{}, invalid("The arguments are invalid: %s.", value.Clip(err.Error()))
	}
	switch name {
	case "create":
		return x.post(&a, store.Create)
	case "upsert":
		return x.post(&a, store.Upsert)
	case "scan":
		return x.scan(ctx)
	case "query":
		return x.query(ctx, &a)
	}
	id, err := x.itemID(a.Link)
	if err != nil {
		return scriptReply{}, err
	}
	switch name {
	case "read":
		return x.read(id, &a)
	case "replace":
		return x.replace(id, &a)
	default:
		_, err := x.write(store.Write{Op: store.Delete, Key: itemKey(x.Container, x.key, id), IfMatch: a.Options.ETag})
		return scriptReply{}, err
	}
}

// post creates or upserts an item.
func (x *transaction) post(a *scriptArgs, op store.Op) (scriptReply, error) {
	if err := x.checkLink(a.Link); err != nil {
		return scriptReply{}, err
	}
	item, err := parseItem(a.Body)
	if err != nil {
		return scriptReply{}, err
	}
	if _, has := item.Lookup("id"); !has && !a.Options.KeepID {
		if item, err = withID(item); err != nil {
			return scriptReply{}, err
		}
	}
	return x.put(item, store.Write{Op: op, IfMatch: a.Options.ETag})
}

// withID adds a unique id to an item.
func withID(item *value.Object) (*value.Object, error) {
	body := value.AppendString([]byte(`{"id":`), value.NewGUID())
	if len(item.Members()) > 0 {
		body = append(body, ',')
	}
	return parseItem(append(item.AppendMembers(body, func(string) bool { return false }), '}'))
}

func (x *transaction) replace(id string, a *scriptArgs) (scriptReply, error) {
	item, err := parseItem(a.Body)
	if err != nil {
		return scriptReply{}, err
	}
	return x.put(item, store.Write{Op: store.Replace, Key: store.Key{ID: id}, IfMatch: a.Options.ETag})
}

// put writes an item. Its partition key and new id are taken from its body.
func (x *transaction) put(item *value.Object, w store.Write) (scriptReply, error) {
	id, err := bodyID(item)
	if err != nil {
		return scriptReply{}, err
	}
	key, err := bodyKey(x.Container, item)
	if err != nil {
		return scriptReply{}, err
	}
	if !key.Equal(x.key) {
		return scriptReply{}, invalid("Requests originating from scripts cannot reference partition keys other than the one for which client request was submitted.")
	}
	if w.Op == store.Replace {
		w.NewID, id = id, w.Key.ID
	}
	w.Item, w.Key = item, itemKey(x.Container, key, id)
	res, err := x.write(w)
	return scriptReply{Resource: res.Body}, err
}

// write writes to the draft.
func (x *transaction) write(w store.Write) (store.Result, error) {
	if w.Item != nil && len(w.Item.Bytes()) > MaxItemBytes {
		return store.Result{}, ErrTooLarge
	}
	return x.draft.Write(w)
}

func (x *transaction) read(id string, a *scriptArgs) (scriptReply, error) {
	body, etag, err := x.draft.Read(id)
	if err != nil {
		x.Charge += ru.NotFound
		return scriptReply{}, err
	}
	x.Charge += ru.Read(len(body))
	if a.Options.IfNoneMatch != "" && catalog.Matches(a.Options.IfNoneMatch, etag) {
		return scriptReply{Options: scriptOptions{NotModified: true}}, nil
	}
	return scriptReply{Resource: body}, nil
}

// query returns a page of a query. The query is a string, or an object with text and
// parameters.
func (x *transaction) query(ctx context.Context, a *scriptArgs) (scriptReply, error) {
	if err := x.checkLink(a.Link); err != nil {
		return scriptReply{}, err
	}
	body := []byte(a.Query)
	if len(body) > 0 && body[0] == '"' {
		body = append(append([]byte(`{"query":`), body...), '}')
	}
	q, err := ParseQuery(body)
	if err != nil {
		return scriptReply{}, err
	}
	rows := scriptPageItems
	if n := a.Options.PageSize; n >= 1 {
		rows = int(min(n, 1<<20))
	}
	page, err := x.page(ctx, q, query.Request{MaxRows: rows, MaxBytes: maxPageBytes, Token: a.Options.Continuation})
	if err != nil {
		return scriptReply{}, err
	}
	return scriptReply{Resource: list(page.Rows), Options: scriptOptions{Continuation: page.Token}}, nil
}

// scan returns all items.
func (x *transaction) scan(ctx context.Context) (scriptReply, error) {
	page, err := x.page(ctx, Query{Text: "SELECT * FROM c"}, query.Request{MaxRows: 1 << 20, MaxBytes: maxScanBytes})
	if err == nil && page.Token != "" {
		err = store.ErrTooMuch
	}
	return scriptReply{Resource: list(page.Rows)}, err
}

func list(rows []byte) []byte { return append(append([]byte{'['}, rows...), ']') }

// page runs a query over the draft. The functions that it calls run in the script's seat,
// since waiting for another one could deadlock.
func (x *transaction) page(ctx context.Context, q Query, r query.Request) (query.Page, error) {
	program, calls, err := x.e.prepare(ctx, x.Container, &q)
	if err != nil {
		return query.Page{}, err
	}
	r.Program, r.Partition, r.Scope, r.NowMs = program, x.p, keyScope(x.Container, x.key).Scope, x.nowMs
	r.Random, r.UDF = rand.Float64, calls.bind(ctx, x.seat, x.nowMs)
	r.Elapsed, r.Began = x.e.meters.elapsed, x.e.meters.elapsed()
	r.QueryTime = max(x.endsAt-r.Began, 1) // the rest of the script's time
	page, err := query.RunOn(ctx, r, x.draft.Reader())
	if errors.Is(err, query.ErrQueryTime) {
		err = script.ErrTime
	}
	if err != nil {
		return page, err
	}
	x.Charge += ru.QueryWork{IndexRows: page.Work.IndexRows, Items: page.Work.Items, Bytes: page.Work.Bytes, RowBytes: page.Work.RowBytes}.Charge()
	return page, nil
}

// checkLink checks that a link is that of the container, by rid or by name.
func (x *transaction) checkLink(link string) error {
	switch strings.Trim(link, "/") {
	case strings.Trim(selfLink(x.Container), "/"), x.Container.Path:
		return nil
	}
	return invalid("The link '%s' is not that of the container.", value.Clip(link))
}

// itemID returns the id of the item that a link addresses, by rid or by name.
func (x *transaction) itemID(link string) (string, error) {
	const items = "/docs/"
	name := strings.Trim(link, "/")
	i := strings.Index(name, items)
	if i < 0 {
		return "", invalid("The link '%s' is not that of an item.", value.Clip(link))
	}
	if err := x.checkLink(name[:i]); err != nil {
		return "", err
	}
	name = name[i+len(items):]
	if id, err := x.draft.IDOf(name); err == nil {
		return id, nil
	}
	return name, nil
}
