// SPDX-License-Identifier: MIT

// What clients ask of the items of a container, and what they are answered. A transport
// fills a request and renders an answer.

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

// Target names a container, and an item or a script in it, as a request does.
type Target struct {
	Database, Container string
	// ID is that of the item; for a create or upsert it is in the body.
	ID string
	// PartitionKey is a list in JSON, empty if none was given.
	PartitionKey string
	// IntendedRID is the container's rid as the client remembers it, or empty.
	IntendedRID string
}

// Request is what a client asks of the items of a container. Each operation reads the
// fields that are for it.
type Request struct {
	Target
	IfMatch, IfNoneMatch string
	// SessionToken must be one, if it is given. A write does not wait for it.
	SessionToken string
	// Memory is what the request may take; nil for no bounds. What a page of a query
	// takes is not given back.
	Memory *memory.Share
	// Room is memory for the item or the rows, or nil. The answer may have other memory,
	// if it needs more.
	Room []byte

	// Op is what a write does, and Body the item or the patch. For a stored procedure,
	// Body is its arguments.
	Op   store.Op
	Body []byte
	// PreTriggers and PostTriggers are the names of what comes before a write and after
	// it, with commas between them.
	PreTriggers, PostTriggers string

	// Ops are the operations of a batch. If it is Atomic all are done or none. Otherwise
	// they are independent, and ContinueOnError tells whether one that fails keeps back
	// those after it.
	Ops                     []ItemOp
	Atomic, ContinueOnError bool

	// Range is the id of the one partition key range that a page, or a batch that is not
	// atomic, is about. StartEPK and EndEPK bound the effective partition keys, as
	// hexadecimal text. All may be empty.
	Range, StartEPK, EndEPK string
	// MaxItems is what the client asked for: 0 for nothing, -1 for as many as fit.
	MaxItems int
	// Continuation is where the page begins: what an earlier answer gave, or empty for
	// the beginning.
	Continuation string

	Query Query
	// CrossPartition allows a query over several partition keys.
	CrossPartition bool
	// MaxContinuationKB bounds the continuation of a query's page; 0 is no bound.
	MaxContinuationKB int
	// Measure asks for times and for what is told of indexes.
	Measure bool

	// SinceMs is the moment from which a change feed without a continuation begins; 0 is
	// the beginning. AllVersions asks for all versions and deletes, and Wrapped for items
	// with what is known of their change beside them.
	SinceMs              int64
	AllVersions, Wrapped bool
}

// ItemOp is an operation on an item: Create, Upsert, Replace, Update, Delete or, in a
// batch, Read.
type ItemOp struct {
	Op store.Op
	ID string
	// PartitionKey is as in a Target; in a batch, empty is that of the batch.
	PartitionKey         string
	IfMatch, IfNoneMatch string
	Body                 []byte
}

// op is the operation of a request to write an item.
func (r *Request) op() ItemOp {
	return ItemOp{Op: r.Op, ID: r.ID, PartitionKey: r.PartitionKey, IfMatch: r.IfMatch, IfNoneMatch: r.IfNoneMatch, Body: r.Body}
}

// Answer is what came of a request, as far as it came: the container and the partition
// are set even with an error, where they were found.
type Answer struct {
	Container *catalog.Container
	// Partition is the one that has answered, or the last that a page has looked at.
	Partition int
	// LSN is the partition's, ItemLSN that of the item's last write.
	LSN, ItemLSN uint64
	// Answered says that a partition did. Its LSN is 0 if it was never written to.
	Answered bool
	Charge   ru.Units
	// Live is what the partition has, as of a second ago at most, if it is Counted.
	Live    store.Amount
	Counted bool

	// Body is the item, or what a stored procedure has answered.
	Body    []byte
	ETag    string
	Created bool
	// Room is the memory that the body or the rows lie in, to be used again.
	Room []byte
	Log  string        // of a stored procedure
	Ops  []ItemOutcome // of a batch, in the order of its operations

	// Rows are those of a page, as JSON with commas between them.
	Rows  []byte
	Count int
	// Continuation asks for the next page. It is empty after the last; a change feed
	// always has one, and More says that its next page need not be waited for.
	Continuation string
	More         bool

	// LatestFirst says how the rows of a query come that are equal in what they are
	// ordered by.
	LatestFirst bool
	// Merged says that clients put the rows of several ranges together by telling them
	// apart or by groups.
	Merged bool
	Work   query.Work
	// Compiled is how long it took to understand the query. Like Times and Indexes it
	// is told if it was asked for.
	Compiled time.Duration
	Times    query.Times
	Indexes  *query.IndexUse
}

// ItemOutcome is what came of an operation of a batch.
type ItemOutcome struct {
	Err         error
	Created     bool
	NotModified bool
	Body        []byte
	ETag        string
	Charge      ru.Units
}

// serve does what a request asks of its container, again as long as that is dropped under
// it. The answer begins anew each time, with the charge of a request that is refused.
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

// whileClosed does something again as long as the partition that it goes to is closed: a
// container was dropped, and another one may have its name by now. It ends when the
// database stops.
func whileClosed(do func() error) error {
	for range maxDropRetries {
		if err := do(); !errors.Is(err, store.ErrClosed) {
			return err
		}
	}
	return ErrStopping
}

// target looks a container up for an operation on its items.
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

// onPartition does something with the partition of an effective partition key, admits it
// and settles its charge.
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
