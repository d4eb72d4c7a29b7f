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
	// SlidingTTL, for a read of an item, says how much of its life in percent the item must
	// have used up for the read to restart its countdown; "off" means that it does not, and
	// an empty text that the container decides.
	SlidingTTL string
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
	// maxBytes bounds the rows of a query's page; 0 means maxPageBytes.
	maxBytes int
	// Continuation is where the page begins: from an earlier answer, or empty for the
	// beginning.
	Continuation string

	Query Query
	// CrossPartition allows a query over several partition keys. Optimistic says that the
	// client has sent a query as it is, and hopes to need no merging of several ranges.
	CrossPartition, Optimistic bool
	// Relearns says that the client merges ranges, and begins anew with the ranges that there
	// are, without a fault, if its first request for the last of them is refused with
	// ErrRangeGone.
	Relearns bool
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

// lookUp finds the request's container, and returns what its client has seen. It begins
// the answer, with the charge of a refused request.
func (e *Engine) lookUp(r *Request, a *Answer, refused ru.Units) (seen session, err error) {
	a.Charge = refused
	if seen, err = parseSession(r.SessionToken); err != nil {
		return nil, err
	}
	a.Container, err = e.target(r.Target)
	return seen, err
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

// admit admits a request to a partition of the answer's container, and returns the
// partition. A request that was admitted is settled. One for a partition of another node is
// neither admitted nor settled here.
func (e *Engine) admit(a *Answer, partition int) (p *store.Partition, err error) {
	a.Partition = partition
	if p, err = e.partition(a.Container, partition); err != nil {
		a.Charge = 0
		return nil, err
	}
	if err := e.meters.admit(a.Container, partition); err != nil {
		a.Charge = 0
		return nil, err
	}
	return p, nil
}

// settle settles the charge of a request that was admitted. One that found its partition
// closed is not charged, since it is tried again.
func (e *Engine) settle(a *Answer, err *error) {
	if !errors.Is(*err, store.ErrClosed) {
		e.meters.settle(a.Container, a.Partition, a.Charge)
	}
}

// Attempts counts how often a request was tried. The zero value is for a new request.
type Attempts struct{ n int }

// Again reports whether a request that ended with err is tried again, from the look-up of
// its container: its partition was closed, since the container was dropped, and another
// container may have the name by now. No write is repeated that had an effect: a closed
// partition has not executed what it refuses. After maxDropRetries, err becomes
// ErrStopping.
func (t *Attempts) Again(err *error) bool {
	if errors.Is(*err, store.ErrClosed) {
		if t.n++; t.n < maxDropRetries {
			return true
		}
		*err = ErrStopping
	}
	return false
}
