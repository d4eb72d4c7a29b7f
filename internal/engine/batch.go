// SPDX-License-Identifier: MIT

// Batches: several operations in one request, as a transaction in one logical
// partition, or one by one in one physical partition, which is called bulk.

package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/memory"
	"github.com/mayflydb/mayfly/internal/ru"
	"github.com/mayflydb/mayfly/internal/store"
	"github.com/mayflydb/mayfly/internal/value"
)

// Limits of the service.
const (
	maxBatchOps = 100
	// MaxBatchBytes is the largest request.
	MaxBatchBytes = 2_202_010
)

var (
	// ErrBatchKeys: an operation names another partition key than its transaction.
	ErrBatchKeys = errors.New("different partition keys in one transaction")
	// ErrFailedDependency: another operation of the transaction, or an earlier one of
	// a bulk that is to stop then, has failed.
	ErrFailedDependency = errors.New("another operation has failed")
)

// BatchOp is an operation of a batch: Create, Upsert, Replace, Update, Delete or
// Read.
type BatchOp struct {
	Op store.Op
	ID string
	// PartitionKey is as in a Target; empty is that of the batch.
	PartitionKey         string
	IfMatch, IfNoneMatch string
	Body                 []byte
}

// Batch is a request to do several operations.
type Batch struct {
	Target
	// Range is the id of a partition key range, for a bulk.
	Range string
	// Memory is what the request may take; nil for no bounds.
	Memory *memory.Share
	Ops    []BatchOp
	// Atomic does all operations or none. Otherwise they are independent, and
	// ContinueOnError tells whether one that fails keeps back those after it.
	Atomic, ContinueOnError bool
	SessionToken            string
}

// BatchOpResult is what came of an operation.
type BatchOpResult struct {
	Err         error
	Created     bool
	NotModified bool
	Body        []byte
	ETag        string
	Charge      ru.Units
}

// BatchResult is what came of a batch, as far as it came: the container and the
// partition are set even with an error, where they were found.
type BatchResult struct {
	Container *catalog.Container
	Partition int
	LSN       uint64
	Charge    ru.Units
	// Ops has a result for each operation, in their order.
	Ops []BatchOpResult
}

// Batch does several operations, durably. Operations that fail are no error: their
// results say so.
func (e *Engine) Batch(ctx context.Context, r Batch) (BatchResult, error) {
	defer e.observe(e.begin())
	res := BatchResult{Charge: ru.Refused}
	for _, op := range r.Ops {
		if op.Op == store.Read {
			continue
		}
		if err := e.admits(op.Op); err != nil {
			return res, err
		}
	}
	switch {
	case len(r.Ops) == 0:
		return res, invalid("Batch request has no operations.")
	case len(r.Ops) > maxBatchOps:
		return res, invalid("Batch request has more operations than what is supported.")
	}
	session, err := parseSession(r.SessionToken)
	if err != nil {
		return res, err
	}
	err = whileClosed(func() error { return e.batch(ctx, &r, session, &res) })
	e.removed() // or nothing was: then looking is cheap
	return res, err
}

func (e *Engine) batch(ctx context.Context, r *Batch, seen session, res *BatchResult) error {
	c, err := e.target(r.Target)
	if err != nil {
		return err
	}
	res.Container = c
	ops, err := e.bindBatch(c, r, &res.Partition)
	if err != nil {
		return err
	}
	for i := range ops {
		ops[i].Memory = r.Memory
	}
	if err := e.meters.admit(c, res.Partition); err != nil {
		res.Charge = 0
		return err
	}
	p, err := e.partition(c, res.Partition)
	if err != nil {
		return err
	}
	reads := slices.ContainsFunc(r.Ops, func(op BatchOp) bool { return op.Op == store.Read })
	res.LSN = p.LSN()
	if reads {
		if err := seen.check(res.Partition, res.LSN); err != nil {
			return err
		}
	}
	if r.Atomic {
		err = res.transaction(ctx, p, ops)
	} else {
		err = res.bulk(ctx, p, ops, store.EachOptions{StopAtFailure: !r.ContinueOnError})
	}
	if errors.Is(err, store.ErrClosed) {
		return err
	}
	e.meters.settle(c, res.Partition, res.Charge)
	return err
}

// bindBatch returns what the partition has to do. An operation that cannot be done
// fails in its turn.
func (e *Engine) bindBatch(c *catalog.Container, r *Batch, partition *int) ([]store.Write, error) {
	var key value.PartitionKey
	var err error
	switch {
	case r.PartitionKey != "" || r.Atomic:
		if key, err = headerKey(c, r.PartitionKey); err != nil {
			return nil, err
		}
		*partition = c.Partition(c.PartitionKey.AppendEPK(nil, key))
	case r.Range == "":
		return nil, invalid("A bulk needs a partition key range, in the header x-ms-documentdb-partitionkeyrangeid, or a partition key.")
	default:
		if *partition, _, err = listScope(c, &ItemList{Range: r.Range}, &store.List{}); err != nil {
			return nil, err
		}
	}
	ops := make([]store.Write, len(r.Ops))
	for i := range r.Ops {
		op := &r.Ops[i]
		text := op.PartitionKey
		if text == "" {
			text = r.PartitionKey
		} else if r.PartitionKey != "" { // whoever names a key keeps to it: a token may be for it alone
			if own, err := headerKey(c, text); err != nil || !own.Equal(key) {
				return nil, ErrBatchKeys
			}
		}
		ops[i] = e.bindOp(c, op, text)
		if ops[i].Err == nil && c.Partition(ops[i].Key.EPK) != *partition {
			ops[i].Err = ErrRangeGone
		}
	}
	return ops, nil
}

// bindOp makes what a partition can do of an operation.
func (e *Engine) bindOp(c *catalog.Container, op *BatchOp, partitionKey string) store.Write {
	r := ItemWrite{
		Target: Target{ID: op.ID, PartitionKey: partitionKey}, Op: op.Op, Body: op.Body,
		IfMatch: op.IfMatch, IfNoneMatch: op.IfNoneMatch,
	}
	if op.Op == store.Read && r.IfNoneMatch == "" {
		// The service answers 304 to a read in a batch whose ifMatch is the item's etag.
		r.IfMatch, r.IfNoneMatch = "", op.IfMatch
	}
	if op.ID == "" && op.Op != store.Create && op.Op != store.Upsert {
		return store.Write{Err: invalid("The input content is invalid because the required properties - 'id; ' - are missing")}
	}
	d, err := draftOf(r)
	if err != nil {
		return store.Write{Err: err}
	}
	w, err := e.bind(c, &d)
	w.Err = err
	return w
}

// transaction does all operations or none.
func (res *BatchResult) transaction(ctx context.Context, p *store.Partition, ops []store.Write) error {
	done, err := p.WriteAll(ctx, ops)
	res.Ops = make([]BatchOpResult, len(ops))
	var failed *store.WriteError
	switch {
	case errors.As(err, &failed):
		for i := range res.Ops {
			res.Ops[i].Err = ErrFailedDependency
		}
		res.Ops[failed.Index] = BatchOpResult{Err: failed.Err, Charge: ru.Refused}
		res.Charge, res.LSN = ru.Refused, p.LSN()
		return nil
	case err != nil:
		return err
	}
	res.Charge = 0
	for i := range done {
		res.take(i, ops[i].Op, &done[i])
	}
	return nil
}

// bulk does the operations one by one.
func (res *BatchResult) bulk(ctx context.Context, p *store.Partition, ops []store.Write, o store.EachOptions) error {
	done, err := p.WriteEach(ctx, ops, o)
	if err != nil {
		return err
	}
	res.Ops = make([]BatchOpResult, len(ops))
	res.Charge = 0
	for i := range done {
		switch err := done[i].Err; {
		case err == nil:
			res.take(i, ops[i].Op, &done[i].Result)
		case errors.Is(err, store.ErrSkipped):
			res.Ops[i].Err = ErrFailedDependency
		default:
			res.Ops[i] = BatchOpResult{Err: err, Charge: ru.Refused}
			res.Charge += ru.Refused
		}
	}
	return nil
}

// take notes what an operation has done.
func (res *BatchResult) take(i int, op store.Op, done *store.Result) {
	charge := done.Work.Charge()
	if op == store.Read {
		charge = ru.Read(len(done.Body))
	}
	res.Ops[i] = BatchOpResult{
		Created: done.Created, NotModified: done.NotModified, Body: done.Body, ETag: done.ETag, Charge: charge,
	}
	res.Charge += charge
	res.LSN = max(res.LSN, done.LSN)
}
