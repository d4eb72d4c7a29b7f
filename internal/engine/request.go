// SPDX-License-Identifier: MIT

// Requests for the items of a container, and their answers. A transport fills a request
// and renders an answer.

package engine

import (
	"errors"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/memory"
	"github.com/mayflydb/mayfly/internal/query"
	"github.com/mayflydb/mayfly/internal/ru"
	"github.com/mayflydb/mayfly/internal/store"
)

// Target names a container, and an item or a script in it.
type Target struct {
	Database, Container string
	// ID is the item's; for a create or upsert it is in the body.
	ID string
	// PartitionKey is a list in JSON; empty if none is given.
	PartitionKey string
	// IntendedRID is the container's rid as the client knows it, or empty.
	IntendedRID string
}

// Request is a client's request for items of a container. Each operation reads the fields
// that concern it.
type Request struct {
	Target
	IfMatch, IfNoneMatch string
	// SessionToken must be valid if it is given. A write does not check its LSN.
	SessionToken string
	// Memory is the request's share; nil for no bound. Memory for a page of a query is
	// not given back by the engine.
	Memory *memory.Share
	// Room is a buffer for the item or the rows, or nil. The answer has another one if
	// this is too small.
	Room []byte

	// Op is the kind of a write, and Body the item or the patch. For a stored procedure,
	// Body is its arguments.
	Op   store.Op
	Body []byte
	// PreTriggers and PostTriggers are the names of the triggers before and after a
	// write, separated by commas.
	PreTriggers, PostTriggers string

	// Ops are the operations of a batch. If Atomic is set, all are executed or none.
	// Otherwise they are independent, and without ContinueOnError those after a failed
	// one are not executed.
	Ops                     []ItemOp
	Atomic, ContinueOnError bool

	// Range is the id of the partition key range that a page, or a batch that is not
	// atomic, is restricted to. StartEPK and EndEPK bound the effective partition keys,
	// in hexadecimal. All may be empty.
	Range, StartEPK, EndEPK string
	// MaxItems is the page size that the client asks for: 0 for none, -1 for as many as
	// fit.
	MaxItems int
	// Continuation is where the page begins: from an earlier answer, or empty for the
	// beginning.
	Continuation string

	Query Query
	// CrossPartition allows a query over several partition keys.
	CrossPartition bool
	// MaxContinuationKB bounds the continuation of a query's page; 0 means no bound.
	MaxContinuationKB int
	// Measure asks for times and index metrics.
	Measure bool

	// SinceMs is where a change feed without a continuation begins; 0 means the
	// beginning. AllVersions asks for all versions and deletes, and Wrapped for items
	// with metadata of their change.
	SinceMs              int64
	AllVersions, Wrapped bool
}

// ItemOp is an operation on an item: Create, Upsert, Replace, Update, Delete or, in a
// batch, Read.
type ItemOp struct {
	Op store.Op
	ID string
	// PartitionKey is as in a Target. In a batch, empty means that of the batch.
	PartitionKey         string
	IfMatch, IfNoneMatch string
	Body                 []byte
}

// op returns the operation of a request to write an item.
func (r *Request) op() ItemOp {
	return ItemOp{Op: r.Op, ID: r.ID, PartitionKey: r.PartitionKey, IfMatch: r.IfMatch, IfNoneMatch: r.IfNoneMatch, Body: r.Body}
}

// Answer is the result of a request. With an error, the container and the partition are
// set if they were found.
type Answer struct {
	Container *catalog.Container
	// Partition is the one that answered, or the last one that a page has read.
	Partition int
	// LSN is the partition's, and ItemLSN that of the item's last write.
	LSN, ItemLSN uint64
	// Answered says that a partition answered. Its LSN is 0 if it was never written to.
	Answered bool
	Charge   ru.Units
	// Live is what the partition holds, at most a second old, if Counted is set.
	Live    store.Amount
	Counted bool

	// Body is the item, or the result of a stored procedure.
	Body    []byte
	ETag    string
	Created bool
	// Room is the buffer that holds the body or the rows, for reuse.
	Room []byte
	Log  string        // of a stored procedure
	Ops  []ItemOutcome // of a batch, in the order of its operations

	// Rows are the rows of a page, as JSON separated by commas.
	Rows  []byte
	Count int
	// Continuation asks for the next page. It is empty after the last one. A change feed
	// always has one, and More says that its next page already has changes.
	Continuation string
	More         bool

	// LatestFirst says that of rows with equal ORDER BY values the latest item comes
	// first.
	LatestFirst bool
	// Merged says that clients must merge the rows of several ranges, for DISTINCT or
	// GROUP BY.
	Merged bool
	Work   query.Work
	// Compiled is how long parsing and compiling took. Like Times and Indexes it is for
	// requests that ask for it.
	Compiled time.Duration
	Times    query.Times
	Indexes  *query.IndexUse
}

// ItemOutcome is the result of an operation of a batch.
type ItemOutcome struct {
	Err         error
	Created     bool
	NotModified bool
	Body        []byte
	ETag        string
	Charge      ru.Units
}

// serve finds the request's container and calls do, again if the container is dropped
// meanwhile. The answer is reset each time, with the charge of a refused request.
func (e *Engine) serve(r *Request, a *Answer, refused ru.Units, do func(seen session) error) error {
	defer e.observe(e.begin())
	a.Charge = refused
	seen, err := parseSession(r.SessionToken)
	if err != nil {
		return err
	}
	return whileClosed(func() error {
		c, err := e.target(r.Target)
		*a = Answer{Container: c, Charge: refused}
		if err != nil {
			return err
		}
		return do(seen)
	})
}

// whileClosed calls do again while its partition is closed: the container was dropped,
// and another one may have its name by now. It gives up after maxDropRetries, as when the
// database stops.
func whileClosed(do func() error) error {
	for range maxDropRetries {
		if err := do(); !errors.Is(err, store.ErrClosed) {
			return err
		}
	}
	return ErrStopping
}

// target finds the container for an operation on its items.
func (e *Engine) target(t Target) (*catalog.Container, error) {
	c, err := e.catalog.Container(t.Database, t.Container)
	if err != nil {
		return nil, ErrOwnerNotFound
	}
	if t.IntendedRID != "" && t.IntendedRID != c.RIDText {
		return nil, ErrContainerChanged
	}
	return c, nil
}

// onPartition calls do with the partition of an effective partition key, between
// admitting the request and settling its charge.
func (e *Engine) onPartition(a *Answer, epk []byte, do func(*store.Partition) error) error {
	a.Partition = a.Container.Partition(epk)
	return e.metered(a, do)
}

// metered is onPartition for the partition that the answer names.
func (e *Engine) metered(a *Answer, do func(*store.Partition) error) error {
	if err := e.meters.admit(a.Container, a.Partition); err != nil {
		a.Charge = 0
		return err
	}
	p, err := e.partition(a.Container, a.Partition)
	if err == nil {
		err = do(p)
	}
	if !errors.Is(err, store.ErrClosed) {
		e.meters.settle(a.Container, a.Partition, a.Charge)
	}
	return err
}
