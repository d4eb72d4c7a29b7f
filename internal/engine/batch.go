// SPDX-License-Identifier: MIT

// Batches: several operations in one request, as a transaction in one logical partition,
// or one by one in one physical partition, which is called bulk.

package engine

import (
	"context"
	"errors"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/ru"
	"github.com/mayflydb/mayfly/internal/store"
	"github.com/mayflydb/mayfly/internal/value"
)

// Limits of the service.
const (
	maxBatchOps = 100
	// MaxBatchBytes is the size of the largest request.
	MaxBatchBytes = 2_202_010
)

var (
	// ErrBatchKeys: an operation names another partition key than its transaction.
	ErrBatchKeys = errors.New("different partition keys in one transaction")
	// ErrFailedDependency: another operation of the transaction failed, or an earlier one
	// of a bulk that stops at the first failure.
	ErrFailedDependency = errors.New("another operation has failed")
)

// Batch executes several operations, durably. It returns no error for operations that
// fail: their outcomes have it.
func (e *Engine) Batch(ctx context.Context, r *Request) (a Answer, err error) {
	a.Charge = ru.Refused
	reads := false
	for _, op := range r.Ops {
		if op.Op == store.Read {
			reads = true
			continue
		}
		if err := e.admits(op.Op); err != nil {
			return a, err
		}
	}
	switch {
	case len(r.Ops) == 0:
		return a, invalid("Batch request has no operations.")
	case len(r.Ops) > maxBatchOps:
		return a, invalid("Batch request has more operations than what is supported.")
	}
	defer e.observe(e.begin())
	seen, err := e.lookUp(r, &a, ru.Refused)
	if err != nil {
		return a, err
	}
	ops, partition, err := e.bindBatch(a.Container, r)
	if err != nil {
		return a, err
	}
	p, err := e.admit(&a, partition)
	if err != nil {
		return a, err
	}
	defer e.settle(&a, &err)
	a.LSN = p.LSN()
	if reads {
		if err := seen.check(a.Container.RangeOf(a.Partition), a.LSN); err != nil {
			return a, err
		}
	}
	if r.Atomic {
		err = a.transaction(ctx, p, ops)
	} else {
		err = a.bulk(ctx, p, ops, store.EachOptions{StopAtFailure: !r.ContinueOnError})
		e.afterSplit(&a)
	}
	e.removed() // harmless if nothing was deleted
	return a, err
}

// bindBatch returns the writes of a batch, and their partition. An invalid operation
// becomes a write that fails in its turn.
func (e *Engine) bindBatch(c *catalog.Container, r *Request) (ops []store.Write, partition int, err error) {
	var key value.PartitionKey
	switch {
	case r.PartitionKey != "" || r.Atomic:
		if key, err = givenKey(c, r.PartitionKey); err != nil {
			return nil, 0, err
		}
		partition = c.Partition(c.PartitionKey.AppendEPK(nil, key))
	case r.Range == "":
		return nil, 0, invalid("A bulk needs a partition key range, or a partition key.")
	default:
		i, err := rangeIndex(c, r.Range)
		if err != nil {
			return nil, 0, err
		}
		partition = c.Ranges[i].ID
	}
	ops = make([]store.Write, len(r.Ops))
	for i := range r.Ops {
		op := &r.Ops[i]
		text := op.PartitionKey
		if text == "" {
			text = r.PartitionKey
		} else if r.PartitionKey != "" { // a resource token may allow only the request's key
			if own, err := givenKey(c, text); err != nil || !own.Equal(key) {
				return nil, 0, ErrBatchKeys
			}
		}
		ops[i] = e.bindOp(c, *op, text)
		ops[i].Memory = r.Memory
		if ops[i].Err == nil && c.Partition(ops[i].Key.EPK) != partition {
			ops[i].Err = ErrRangeGone
		}
	}
	return ops, partition, nil
}

// bindOp turns an operation into a write for the partition.
func (e *Engine) bindOp(c *catalog.Container, op ItemOp, partitionKey string) store.Write {
	op.PartitionKey = partitionKey
	if op.Op == store.Read && op.IfNoneMatch == "" {
		// The service answers 304 to a read in a batch whose ifMatch is the item's etag.
		op.IfMatch, op.IfNoneMatch = "", op.IfMatch
	}
	if op.ID == "" && op.Op != store.Create && op.Op != store.Upsert {
		return store.Write{Err: invalid("The input content is invalid because the required properties - 'id; ' - are missing")}
	}
	d, err := draftOf(op)
	if err != nil {
		return store.Write{Err: err}
	}
	w, err := e.bind(c, &d)
	w.Err = err
	return w
}

// afterSplit tells a client which operations of a bulk were not done because the partition was
// split in the middle.
func (e *Engine) afterSplit(a *Answer) {
	for i := range a.Ops {
		if !errors.Is(a.Ops[i].Err, store.ErrClosed) {
			continue
		}
		if now, gone := e.catalog.Current(a.Container.RID); gone == nil && now.PositionOf(a.Partition) < 0 {
			a.Ops[i].Err = ErrRangeGone
		}
	}
}

// transaction executes all operations or none.
func (a *Answer) transaction(ctx context.Context, p *store.Partition, ops []store.Write) error {
	done, err := p.WriteAll(ctx, ops)
	a.Ops = make([]ItemOutcome, len(ops))
	var failed *store.WriteError
	switch {
	case errors.As(err, &failed):
		for i := range a.Ops {
			a.Ops[i].Err = ErrFailedDependency
		}
		a.Ops[failed.Index] = ItemOutcome{Err: failed.Err, Charge: ru.Refused}
		a.Charge, a.LSN = ru.Refused, p.LSN()
		return nil
	case err != nil:
		return err
	}
	a.Charge = 0
	for i := range done {
		a.take(i, ops[i].Op, &done[i])
	}
	return nil
}

// bulk executes the operations one by one.
func (a *Answer) bulk(ctx context.Context, p *store.Partition, ops []store.Write, o store.EachOptions) error {
	done, err := p.WriteEach(ctx, ops, o)
	if err != nil {
		return err
	}
	a.Ops = make([]ItemOutcome, len(ops))
	a.Charge = 0
	for i := range done {
		switch err := done[i].Err; {
		case err == nil:
			a.take(i, ops[i].Op, &done[i].Result)
		case errors.Is(err, store.ErrSkipped):
			a.Ops[i].Err = ErrFailedDependency
		default:
			a.Ops[i] = ItemOutcome{Err: err, Charge: ru.Refused}
			a.Charge += ru.Refused
		}
	}
	return nil
}

// take records the result of an operation.
func (a *Answer) take(i int, op store.Op, done *store.Result) {
	charge := done.Work.Charge()
	if op == store.Read {
		charge = ru.Read(len(done.Body))
	}
	a.Ops[i] = ItemOutcome{
		Created: done.Created, NotModified: done.NotModified, Body: done.Body, ETag: done.ETag, Charge: charge,
	}
	a.Charge += charge
	a.LSN = max(a.LSN, done.LSN)
}
