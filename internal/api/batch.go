// SPDX-License-Identifier: MIT

// Batches: several operations in one request, in JSON or, from .NET, in HybridRow
// (hybridrow.go). They are a transaction, or independent operations.

package api

import (
	"slices"
	"strconv"
	"strings"

	"github.com/mayflydb/mayfly/internal/binaryjson"
	"github.com/mayflydb/mayfly/internal/engine"
	"github.com/mayflydb/mayfly/internal/store"
	"github.com/mayflydb/mayfly/internal/value"
)

// batchOp is an operation of a batch. If it is minimal, its result leaves the item out.
type batchOp struct {
	engine.ItemOp
	minimal bool
}

// batchOps maps the names of operations.
var batchOps = map[string]store.Op{
	"Create": store.Create, "Upsert": store.Upsert, "Replace": store.Replace,
	"Patch": store.Update, "Delete": store.Delete, "Read": store.Read,
}

func (c *Call) batch() error {
	r, a := &c.Request, &c.Answer
	parse, write := parseBatch, appendBatchResults
	if isHybridRow(r.Body) {
		parse, write, a.Binary = parseHybridBatch, appendHybridResults, true
	}
	ops, err := parse(r.Body)
	if err != nil {
		return err
	}
	r.Atomic = c.Row.Verb == Batch
	r.Ops = make([]engine.ItemOp, len(ops))
	for i := range ops {
		op := &ops[i].ItemOp
		if binaryjson.Is(op.Body) {
			if op.Body, err = c.textOf(op.Body, engine.MaxItemBytes); err != nil {
				return err
			}
		}
		r.Ops[i] = *op
	}
	a.Answer, err = c.Service.Engine.Batch(c.Context, &r.Request)
	a.owned(a.Container)
	a.Positioned = a.LSN != 0
	if err != nil {
		return err
	}
	results, status := c.batchResults(ops)
	return a.body(status, write(nil, results))
}

// parseBatch reads a list of operations in JSON.
func parseBatch(body []byte) ([]batchOp, error) {
	o, err := value.ParseObject(slices.Concat([]byte(`{"operations":`), body, []byte("}")))
	if err != nil {
		return nil, Invalid("The input content is invalid: a batch is a list of operations in JSON.")
	}
	list, _ := o.Lookup("operations")
	elements, ok := value.Elements(list)
	if !ok || len(o.Members()) != 1 {
		return nil, Invalid("The input content is invalid: a batch is a list of operations in JSON.")
	}
	ops := make([]batchOp, len(elements))
	for i, raw := range elements {
		fault := ""
		if ops[i], fault = parseBatchOp(raw); fault != "" {
			return nil, Invalid("The input content is invalid: operation " + strconv.Itoa(i) + " of the batch " + fault + ".")
		}
	}
	return ops, nil
}

// parseBatchOp reads one operation. The fault is empty if the operation is valid.
func parseBatchOp(raw []byte) (op batchOp, fault string) {
	members, ok := value.Members(raw)
	if !ok {
		return op, "is no object"
	}
	for _, m := range members {
		v, scalar := value.FromJSON(m.Raw)
		text, isText := v.Text()
		if scalar && v.Kind() == value.KindNull && m.Name != "partitionKey" {
			continue
		}
		switch m.Name {
		case "operationType":
			op.Op = batchOps[text]
		case "id":
			op.ID = text
		case "ifMatch":
			op.IfMatch = text
		case "ifNoneMatch":
			op.IfNoneMatch = text
		case "resourceBody":
			op.Body = m.Raw
			continue
		case "partitionKey":
			if op.PartitionKey = text; !isText {
				op.PartitionKey = string(m.Raw)
			}
			continue
		case "minimalReturnPreference":
			op.minimal, isText = v.Bool()
		default:
			continue
		}
		if !isText {
			return op, "has a value of the wrong type for '" + m.Name + "'"
		}
	}
	if op.Op == 0 {
		return op, "must have an 'operationType' of Create, Upsert, Replace, Patch, Delete or Read"
	}
	return op, ""
}

// batchResult is the result of an operation as a client sees it.
type batchResult struct {
	status, subStatus int
	charge            float64
	etag              string
	body              []byte // the item, or nil
	failure           []byte // the body of an error, or nil
	message           string // of an error
}

// batchResults returns the result of each operation, and the status of the batch.
func (c *Call) batchResults(ops []batchOp) ([]batchResult, int) {
	results := make([]batchResult, len(ops))
	status := statusOK
	for i := range ops {
		results[i] = c.batchResult(&ops[i], &c.Answer.Ops[i])
		if c.Request.Minimal && ops[i].Op != store.Read || ops[i].minimal {
			results[i].body = nil
		}
		if results[i].status >= statusesOfRedirects {
			status = statusMultiStatus
		}
	}
	return results, status
}

func (c *Call) batchResult(op *batchOp, done *engine.ItemOutcome) batchResult {
	r := batchResult{status: statusOK, charge: float64(done.Charge), etag: done.ETag, body: done.Body}
	switch {
	case done.Err != nil:
		f, known := FailureOf(done.Err)
		if !known {
			c.cause = done.Err
		}
		r.status, r.subStatus = f.Status, f.SubStatus
		if f.Status != statusFailedDependency {
			if r.message = f.Text; c.Bare {
				r.failure = Refusal(f, done.Err)
			} else {
				r.failure = c.ErrorBody(f, done.Err)
			}
		}
	case done.NotModified:
		r.status = statusNotModified
	case op.Op == store.Delete:
		r.status = statusNoContent
	case done.Created:
		r.status = statusCreated
	}
	return r
}

// appendBatchResults writes the results in JSON. A key without a value is left out, since
// clients assume that a key which is there has a value.
func appendBatchResults(dst []byte, results []batchResult) []byte {
	dst = append(dst, '[')
	for i := range results {
		r := &results[i]
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(append(dst, `{"statusCode":`...), int64(r.status), 10)
		if r.status >= statusesOfErrors {
			dst = strconv.AppendInt(append(dst, `,"subStatusCode":`...), int64(r.subStatus), 10)
		}
		dst = strconv.AppendFloat(append(dst, `,"requestCharge":`...), r.charge, 'f', 2, 64)
		if r.etag != "" {
			dst = value.AppendString(append(dst, `,"eTag":`...), r.etag)
		}
		if r.body != nil {
			dst = append(append(dst, `,"resourceBody":`...), r.body...)
		}
		if r.message != "" {
			dst = value.AppendString(append(dst, `,"message":`...), strings.TrimSpace(r.message))
		}
		dst = append(dst, '}')
	}
	return append(dst, ']')
}
