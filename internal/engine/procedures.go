// SPDX-License-Identifier: MIT

// Running stored procedures, and writes with triggers.

package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/ru"
	"github.com/mayflydb/mayfly/internal/script"
	"github.com/mayflydb/mayfly/internal/store"
	"github.com/mayflydb/mayfly/internal/value"
)

const (
	// maxTriggers is how many triggers a write may have before it, and after it.
	maxTriggers = 8
	// maxArgs bounds the length of arguments that are an array-like object.
	maxArgs = 1 << 16
)

// Execute runs the stored procedure that the target names, by name or rid, in one logical
// partition. When it returns, either all its writes are durable or there are none.
func (e *Engine) Execute(ctx context.Context, r *Request) (Answer, error) {
	args, err := parseArgs(r.Body)
	if err != nil {
		return Answer{Charge: ru.Refused}, err
	}
	var out script.Outcome
	key := func(c *catalog.Container) (value.PartitionKey, error) { return givenKey(c, r.PartitionKey) }
	x, err := e.transact(ctx, r, key, func(ctx context.Context, x *transaction) error {
		s, err := x.Container.Script(catalog.Procedures, r.ID)
		if err != nil {
			return err
		}
		out, err = x.run(ctx, s, script.Host{HasResponse: true}, args...)
		return err
	})
	a := x.Answer
	if err != nil {
		return a, err
	}
	a.Body = []byte(out.Response)
	if len(x.results) > 0 {
		a.Body = x.draft.Settle(a.Body, x.results)
	}
	return a, nil
}

// parseArgs parses the arguments of a procedure: a list, or an array-like object with a
// length and elements, as for Function.prototype.apply.
func parseArgs(body []byte) ([][]byte, error) {
	if len(body) == 0 {
		return nil, nil
	}
	var elements []json.RawMessage
	if json.Unmarshal(body, &elements) == nil {
		return compactAll(elements)
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(body, &members) != nil {
		return nil, invalid("The input content is invalid because the arguments of a stored procedure must be a list in JSON.")
	}
	var length float64
	_ = json.Unmarshal(members["length"], &length) // anything but a number means 0
	if length > maxArgs {
		return nil, invalid("The input content is invalid because a stored procedure has at most %d arguments.", maxArgs)
	}
	elements = make([]json.RawMessage, int(max(length, 0)))
	for i := range elements {
		elements[i] = members[strconv.Itoa(i)]
	}
	return compactAll(elements)
}

// compactAll removes the white space of values. A missing value stays missing.
func compactAll(elements []json.RawMessage) ([][]byte, error) {
	all := make([][]byte, len(elements))
	for i, raw := range elements {
		if len(raw) == 0 {
			continue
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, raw); err != nil {
			return nil, err
		}
		all[i] = compact.Bytes()
	}
	return all, nil
}

// writeTriggered executes a write and its triggers as one transaction.
func (e *Engine) writeTriggered(ctx context.Context, r *Request) (Answer, error) {
	op := r.op()
	var done triggered
	x, err := e.transact(ctx, r, func(c *catalog.Container) (value.PartitionKey, error) {
		d, err := draftOf(op)
		if err != nil {
			return nil, err
		}
		k, _, err := writeKey(c, &d)
		return k.PartitionKey, err
	}, func(ctx context.Context, x *transaction) (err error) {
		done, err = x.writeTriggered(ctx, r, op)
		return err
	})
	a := x.Answer
	if err != nil {
		return a, err
	}
	main := &x.results[done.index]
	a.Created, a.Body, a.ETag, a.ItemLSN = main.Created, main.Body, main.ETag, main.LSN
	a.count(x.p, e.clock.Now())
	if done.response != "" {
		a.Body = x.draft.Settle([]byte(done.response), x.results)
	}
	return a, nil
}

// triggered is the result of a write with triggers.
type triggered struct {
	index    int    // of the write among the draft's
	response string // the answer's body, if a trigger replaced it
}

func (x *transaction) writeTriggered(ctx context.Context, r *Request, w ItemOp) (triggered, error) {
	pre, err := x.triggers(r.PreTriggers, "Pre", r.Op)
	if err != nil {
		return triggered{}, err
	}
	post, err := x.triggers(r.PostTriggers, "Post", r.Op)
	if err != nil {
		return triggered{}, err
	}
	if err := x.intend(&w); err != nil {
		return triggered{}, err
	}
	for _, s := range pre {
		out, err := x.run(ctx, s, script.Host{Request: string(w.Body), Operation: operationName(r.Op)})
		if err != nil {
			return triggered{}, err
		}
		if r.Op != store.Delete {
			w.Body = []byte(out.Request)
		}
	}
	done := triggered{index: x.draft.Writes()}
	main, err := x.main(&w)
	if err != nil {
		return triggered{}, err
	}
	answer := string(main.Body)
	for _, s := range post {
		out, err := x.run(ctx, s, script.Host{Request: string(w.Body), Response: answer, HasResponse: true, Operation: operationName(r.Op)})
		if err != nil {
			return triggered{}, err
		}
		if out.Response != answer {
			answer, done.response = out.Response, out.Response
		}
	}
	return done, nil
}

// intend turns a write into what triggers see. For a patch that is a replace with the
// patch applied to the present item, and its conditions are checked before any trigger
// runs.
func (x *transaction) intend(w *ItemOp) error {
	if w.Op != store.Update {
		return nil
	}
	p, err := parsePatch(w.Body)
	if err != nil {
		return err
	}
	change, err := x.e.change(x.Container, p)
	if err != nil {
		return err
	}
	present, etag, err := x.draft.Read(w.ID)
	if err != nil {
		return err
	}
	if !catalog.Matches(w.IfMatch, etag) || w.IfNoneMatch != "" && catalog.Matches(w.IfNoneMatch, etag) {
		return store.ErrPrecondition
	}
	item, err := change(present)
	if err != nil {
		return err
	}
	w.Op, w.Body = store.Replace, item.Bytes()
	return nil
}

// main executes the write itself.
func (x *transaction) main(op *ItemOp) (store.Result, error) {
	d, err := draftOf(*op)
	if err != nil {
		return store.Result{}, err
	}
	w, err := x.e.bind(x.Container, &d)
	if err != nil {
		return store.Result{}, err
	}
	if !w.Key.PartitionKey.Equal(x.key) {
		return store.Result{}, ErrKeyMismatch
	}
	return x.draft.Write(w)
}

func operationName(op store.Op) string {
	switch op {
	case store.Create:
		return "Create"
	case store.Upsert:
		return "Upsert"
	case store.Replace:
		return "Replace"
	case store.Update:
		return "Patch"
	}
	return "Delete"
}

// triggers finds triggers by their names, and checks that they fit the write.
func (x *transaction) triggers(names, kind string, op store.Op) ([]*catalog.Script, error) {
	if names == "" {
		return nil, nil
	}
	var all []*catalog.Script
	for name := range strings.SplitSeq(names, ",") {
		name = strings.TrimSpace(name)
		s, found := x.Container.ScriptNamed(catalog.Triggers, name)
		switch {
		case !found:
			return nil, invalid("The trigger '%s' does not exist in the container.", value.Clip(name))
		case !strings.EqualFold(s.Type, kind):
			return nil, invalid("The trigger '%s' is not a %s-trigger.", value.Clip(name), strings.ToLower(kind))
		case !triggeredBy(s.Operation, op):
			return nil, invalid("Trigger '%s' was defined with operation type '%s', and therefore is invalid for '%s'.", value.Clip(name), s.Operation, operationName(op))
		case len(all) == maxTriggers:
			return nil, invalid("An operation can have at most %d triggers of a type.", maxTriggers)
		}
		all = append(all, s)
	}
	return all, nil
}

// triggeredBy reports whether a trigger for an operation may run for a write. As in the
// service, an upsert is neither a create nor an update. The service does not define
// update: here it is a replace or a patch.
func triggeredBy(operation string, op store.Op) bool {
	switch strings.ToLower(operation) {
	case "all":
		return true
	case "create":
		return op == store.Create
	case "upsert":
		return op == store.Upsert
	case "delete":
		return op == store.Delete
	case "update":
		return op == store.Replace || op == store.Update
	}
	return op == store.Replace
}
