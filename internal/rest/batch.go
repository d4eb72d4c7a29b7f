// SPDX-License-Identifier: MIT

// Batches: several operations in one request, in JSON or, from .NET, in HybridRow
// (hybridrow.go), and as a transaction or one by one.

package rest

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/mayflydb/mayfly/internal/engine"
	"github.com/mayflydb/mayfly/internal/store"
	"github.com/mayflydb/mayfly/internal/value"
)

// batchOp is an operation of a batch, and whether its answer may leave the item out.
type batchOp struct {
	engine.ItemOp
	minimal bool
}

// batchOps are the names of operations.
var batchOps = map[string]store.Op{
	"Create": store.Create, "Upsert": store.Upsert, "Replace": store.Replace,
	"Patch": store.Update, "Delete": store.Delete, "Read": store.Read,
}

func (x *exchange) batch(rt *route) error {
	body, err := x.bodyUpTo(engine.MaxBatchBytes)
	if err != nil {
		return err
	}
	parse, binary := parseBatch, isHybridRow(body)
	if binary {
		parse = parseHybridBatch
	}
	ops, err := parse(body)
	if err != nil {
		return err
	}
	r := &engine.Request{
		Target: x.target(rt), Range: x.header(headerRange), SessionToken: x.header(headerSession),
		Atomic:          x.flag("X-Ms-Cosmos-Batch-Atomic"),
		ContinueOnError: x.flag("X-Ms-Cosmos-Batch-Continue-On-Error"),
		Memory:          &x.share,
	}
	for i := range ops {
		r.Ops = append(r.Ops, ops[i].ItemOp)
	}
	res, err := x.h.engine.Batch(x.r.Context(), r)
	x.setBatch(&res)
	if err != nil {
		return err
	}
	results, status := x.batchResults(ops, &res)
	if binary {
		x.writeAs(status, contentBinary, appendHybridResults(nil, results))
		return nil
	}
	x.write(status, appendBatchResults(nil, results))
	return nil
}

// setBatch sets the headers that go with a batch, with an error too.
func (x *exchange) setBatch(res *engine.Answer) {
	x.charge = res.Charge
	if res.Container == nil {
		return
	}
	x.setOwner(res.Container)
	if res.LSN != 0 {
		x.setPosition(res.Partition, res.LSN)
	}
}

// parseBatch reads a list of operations in JSON.
func parseBatch(body []byte) ([]batchOp, error) {
	o, err := value.ParseObject(slices.Concat([]byte(`{"operations":`), body, []byte("}")))
	if err != nil {
		return nil, &badRequestError{"The input content is invalid: a batch is a list of operations in JSON."}
	}
	list, _ := o.Lookup("operations")
	elements, ok := value.Elements(list)
	if !ok || len(o.Members()) != 1 {
		return nil, &badRequestError{"The input content is invalid: a batch is a list of operations in JSON."}
	}
	ops := make([]batchOp, len(elements))
	for i, raw := range elements {
		fault := ""
		if ops[i], fault = parseBatchOp(raw); fault != "" {
			return nil, &badRequestError{"The input content is invalid: operation " + strconv.Itoa(i) + " of the batch " + fault + "."}
		}
	}
	return ops, nil
}

// parseBatchOp reads one operation. The fault is empty if all is well.
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

// batchResults tells what came of each operation, and the status of it all.
func (x *exchange) batchResults(ops []batchOp, res *engine.Answer) ([]batchResult, int) {
	minimal := x.minimal()
	results := make([]batchResult, len(ops))
	status := http.StatusOK
	for i := range ops {
		results[i] = x.batchResult(&ops[i], &res.Ops[i])
		if minimal && ops[i].Op != store.Read || ops[i].minimal {
			results[i].body = nil
		}
		if results[i].status >= http.StatusMultipleChoices {
			status = http.StatusMultiStatus
		}
	}
	return results, status
}

func (x *exchange) batchResult(op *batchOp, done *engine.ItemOutcome) batchResult {
	r := batchResult{status: http.StatusOK, charge: float64(done.Charge), etag: done.ETag, body: done.Body}
	switch {
	case done.Err != nil:
		f, known := failureOf(done.Err)
		if !known {
			x.h.logger.Error("an operation of a batch failed", "path", x.r.URL.Path, "activity", x.activity, "err", done.Err)
		}
		r.status, r.subStatus = f.status, f.subStatus
		if f.status != http.StatusFailedDependency {
			r.message, r.failure = f.text, x.errorBody(f, done.Err)
		}
	case done.NotModified:
		r.status = http.StatusNotModified
	case op.Op == store.Delete:
		r.status = http.StatusNoContent
	case done.Created:
		r.status = http.StatusCreated
	}
	return r
}

// appendBatchResults writes the results in JSON. Clients take a key that is there
// for one that has a value.
func appendBatchResults(dst []byte, results []batchResult) []byte {
	dst = append(dst, '[')
	for i := range results {
		r := &results[i]
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(append(dst, `{"statusCode":`...), int64(r.status), 10)
		if r.status >= http.StatusBadRequest {
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
