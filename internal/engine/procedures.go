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
	"github.com/mayflydb/mayfly/internal/memory"
	"github.com/mayflydb/mayfly/internal/ru"
	"github.com/mayflydb/mayfly/internal/script"
	"github.com/mayflydb/mayfly/internal/store"
	"github.com/mayflydb/mayfly/internal/value"
)

const (
	// maxTriggers is how many triggers may come before a write, or after it.
	maxTriggers = 8
	// maxArgs is how many arguments an object may say that it has.
	maxArgs = 1 << 16
)

// Execution is a request to run a stored procedure.
type Execution struct {
	ScriptTarget
	PartitionKey string // the text of the header
	IntendedRID  string
	Args         []byte // a list, or an object like one, as JSON; empty for none
	Wire         ScriptWire
	// Memory is what the request may take; nil for no bounds.
	Memory *memory.Share
}

// ExecutionResult is what came of it, as far as it came.
type ExecutionResult struct {
	Container *catalog.Container
	Partition int
	LSN       uint64
	Charge    ru.Units
	Body      []byte // JSON; empty for none
	Log       string
}

// Execute runs a stored procedure in one logical partition: everything that it writes
// is durable together when it returns, or nothing is written.
func (e *Engine) Execute(ctx context.Context, r Execution) (ExecutionResult, error) {
	defer e.observe(e.begin())
	args, err := parseArgs(r.Args)
	if err != nil {
		return ExecutionResult{Charge: ru.Refused}, err
	}
	target := Target{Database: r.Database, Container: r.Container, IntendedRID: r.IntendedRID}
	var out script.Outcome
	key := func(c *catalog.Container) (value.PartitionKey, error) { return headerKey(c, r.PartitionKey) }
	x, err := e.transact(ctx, target, r.Wire, key, func(ctx context.Context, x *transaction) error {
		x.draft.Memory = r.Memory
		s, err := x.c.Script(catalog.StoredProcedure, r.Script)
		if err != nil {
			return err
		}
		out, err = x.run(ctx, s, script.Host{HasResponse: true}, args...)
		return err
	})
	res := ExecutionResult{Container: x.c, Partition: x.partition, LSN: x.lsn, Charge: x.charge, Log: x.log}
	if err != nil {
		return res, err
	}
	res.Body = []byte(out.Response)
	if len(x.results) > 0 {
		res.Body = x.draft.Settle(res.Body, x.results)
	}
	return res, nil
}

// parseArgs reads the arguments of a procedure: a list, or an object that says like one
// how long it is and what it has at each place, as Function.prototype.apply takes them.
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
	_ = json.Unmarshal(members["length"], &length) // what is no number is 0
	if length > maxArgs {
		return nil, invalid("The input content is invalid because a stored procedure has at most %d arguments.", maxArgs)
	}
	elements = make([]json.RawMessage, int(max(length, 0)))
	for i := range elements {
		elements[i] = members[strconv.Itoa(i)]
	}
	return compactAll(elements)
}

// compactAll writes values without the space between their parts. One that is missing
// stays so.
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

// Triggers are the names of what comes before a write and after it, as the headers
// list them.
type Triggers struct {
	Pre, Post string
	Wire      ScriptWire
}

// Any reports whether there are some.
func (t *Triggers) Any() bool { return t.Pre != "" || t.Post != "" }

// writeTriggered does a write together with what its triggers do.
func (e *Engine) writeTriggered(ctx context.Context, r *ItemWrite) (ItemResult, error) {
	var done triggered
	x, err := e.transact(ctx, r.Target, r.Triggers.Wire, func(c *catalog.Container) (value.PartitionKey, error) {
		item, err := r.parse()
		if err != nil {
			return nil, err
		}
		k, _, err := writeKey(c, r, item)
		return k.PartitionKey, err
	}, func(ctx context.Context, x *transaction) (err error) {
		x.draft.Memory = r.Memory
		done, err = x.writeTriggered(ctx, r)
		return err
	})
	res := ItemResult{Container: x.c, Partition: x.partition, LSN: x.lsn, Charge: x.charge}
	if err != nil {
		return res, err
	}
	main := &x.results[done.index]
	res.Created, res.Body, res.ETag, res.ItemLSN = main.Created, main.Body, main.ETag, main.LSN
	if p, err := e.partition(x.c, x.partition); err == nil {
		res.count(p, e.clock.Now())
	}
	if done.response != "" {
		res.Body = x.draft.Settle([]byte(done.response), x.results)
	}
	return res, nil
}

// triggered is what came of a write with triggers.
type triggered struct {
	index    int    // of the write among the draft's
	response string // what a trigger has put in place of the answer
}

func (x *transaction) writeTriggered(ctx context.Context, r *ItemWrite) (triggered, error) {
	pre, err := x.triggers(r.Triggers.Pre, "Pre", r.Op)
	if err != nil {
		return triggered{}, err
	}
	post, err := x.triggers(r.Triggers.Post, "Post", r.Op)
	if err != nil {
		return triggered{}, err
	}
	w, err := x.intended(r)
	if err != nil {
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

// intended is the write as triggers see it. That of a patch is the item with the patch
// applied, which is to replace the present one: conditions are met before any trigger
// runs.
func (x *transaction) intended(r *ItemWrite) (ItemWrite, error) {
	w := *r
	if r.Op != store.Update {
		return w, nil
	}
	p, err := parsePatch(r.Body)
	if err != nil {
		return w, err
	}
	change, err := x.e.change(x.c, p)
	if err != nil {
		return w, err
	}
	present, etag, err := x.draft.Read(r.ID)
	if err != nil {
		return w, err
	}
	if !catalog.Matches(r.IfMatch, etag) || r.IfNoneMatch != "" && catalog.Matches(r.IfNoneMatch, etag) {
		return w, store.ErrPrecondition
	}
	item, err := change(present)
	if err != nil {
		return w, err
	}
	w.Op, w.Body = store.Replace, item.Bytes()
	return w, nil
}

// main does the write itself.
func (x *transaction) main(r *ItemWrite) (store.Result, error) {
	item, err := r.parse()
	if err != nil {
		return store.Result{}, err
	}
	k, newID, err := writeKey(x.c, r, item)
	if err != nil {
		return store.Result{}, err
	}
	if !k.PartitionKey.Equal(x.key) {
		return store.Result{}, ErrKeyMismatch
	}
	return x.draft.Write(store.Write{Op: r.Op, Key: k, Item: item, NewID: newID, IfMatch: r.IfMatch, IfNoneMatch: r.IfNoneMatch})
}

// parse returns the item that is to be written, nil for a delete and a patch.
func (r *ItemWrite) parse() (*value.Object, error) {
	if r.Op == store.Delete || r.Op == store.Update {
		return nil, nil
	}
	return parseItem(r.Body)
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

// triggers finds triggers by their names, for a write of a kind.
func (x *transaction) triggers(names, kind string, op store.Op) ([]*catalog.Script, error) {
	if names == "" {
		return nil, nil
	}
	var all []*catalog.Script
	for name := range strings.SplitSeq(names, ",") {
		name = strings.TrimSpace(name)
		s, found := x.c.ScriptNamed(catalog.Trigger, name)
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

// triggeredBy reports whether a trigger for an operation may be called for a write. An
// upsert is neither a create nor an update, as in the service. What it takes for an
// update it does not say: here it is what changes an item that must be there.
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
