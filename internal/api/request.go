// SPDX-License-Identifier: MIT

package api

import (
	"strconv"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/engine"
)

// Request is what a client asks for. Each operation reads the fields that are for it.
type Request struct {
	// What the request is about: a resource, or the list of those of its type, in what
	// the names of the target say, and of the user, if it is a permission.
	Resource Resource
	Verb     Verb
	User     string
	engine.Request

	// Version is that of the protocol that the client speaks, as a date, or empty.
	Version string
	// Host is the name by which the client came, and Endpoint the address.
	Host, Endpoint string
	// Consistency is the level that the client asks for, or empty.
	Consistency string

	// Minimal leaves the item out of the answer to a write, and PlainItem its properties
	// that nothing depends on.
	Minimal, PlainItem bool
	// NoItems asks for a page without items: to see that the request is good, and what
	// it costs.
	NoItems bool

	// Features are those that the client can do of what a query plan may ask of it.
	Features string
	// What a query is to tell beside its rows, and whether the client hopes that it need
	// not put rows of several ranges together.
	QueryMetrics, IndexMetrics, IndexMetricsV2, Optimistic bool
	// ScriptLog asks for what a stored procedure has logged.
	ScriptLog bool

	// Throughput is what a new database or container is to have, and Migrate whether an
	// offer is to be of the other kind.
	Throughput catalog.Throughput
	Migrate    catalog.Migration
	// TokenExpires is when the tokens of permissions in the answer do.
	TokenExpires time.Time
	// What is to be told of a container beside its definition.
	QuotaInfo, Statistics, AnalyticalProgress bool
}

// Answer is what a transport tells a client.
type Answer struct {
	engine.Answer
	Status int
	// Parts are the body, in pieces, which is JSON unless it is Binary.
	Parts  [3][]byte
	Binary bool
	// OwnerPath and OwnerRID name what has the resource: clients learn the rid from it.
	OwnerPath, OwnerRID string
	// Positioned says that the answer tells which partition has answered and where that is.
	Positioned bool
	// Located says that the answer tells its address.
	Located bool
	// List says that the body is a list, whose length is Count.
	List bool
	// Extras are what only some answers have.
	Extras    []Extra
	extraRoom [4]Extra
}

// Extra is something that only some answers tell.
type Extra struct {
	Kind ExtraKind
	Text string
}

// ExtraKind is what an extra tells.
type ExtraKind int

// The kinds of extras.
const (
	QueryMetrics ExtraKind = iota
	IndexUtilization
	QueryExecution
	RequiresDistribution
	ScriptLog
	MaxMediaMB
	MediaMB
	MinThroughput
	ReplacePending
	Quota
	Usage
	SharedThroughput
	AnalyticalProgress
	IndexProgress
)

// Statuses that are no errors.
const (
	statusOK          = 200
	statusCreated     = 201
	statusNoContent   = 204
	statusMultiStatus = 207
	statusNotModified = 304
	// From these on, statuses tell of other things.
	statusesOfRedirects = 300
	statusesOfErrors    = 400

	statusFailedDependency = 424
)

// statusOf is the status of a write.
func statusOf(created bool) int {
	if created {
		return statusCreated
	}
	return statusOK
}

func (a *Answer) extra(kind ExtraKind, text string) {
	if a.Extras == nil {
		a.Extras = a.extraRoom[:0]
	}
	a.Extras = append(a.Extras, Extra{kind, text})
}

// empty is an answer without a body.
func (a *Answer) empty(status int) error {
	a.Status = status
	return nil
}

// body is an answer with one.
func (a *Answer) body(status int, json []byte) error {
	a.Status, a.Parts[0] = status, json
	return nil
}

// page is an answer with a list: items are JSON with commas between them. It may append
// to them. If the client asks for none it gets none, and no continuation: it would ask
// for the next page without end.
func (c *Call) page(owner, kind string, items []byte, n int) error {
	a := &c.Answer
	if c.Request.NoItems {
		items, n, a.Continuation = nil, 0, ""
	}
	a.Status, a.List, a.Count = statusOK, true, n
	a.Parts[0] = []byte(`{"_rid":"` + owner + `","` + kind + `":[`)
	tail := []byte(`],"_count":` + strconv.Itoa(n) + `}`)
	if len(items)+len(tail) > cap(items) {
		a.Parts[1], a.Parts[2] = items, tail // a page can be large: it is not copied once more
		return nil
	}
	// In one piece with the items, the end needs no system call of its own.
	a.Parts[1] = append(items, tail...)
	return nil
}

// owned tells which container has what was asked for.
func (a *Answer) owned(c *catalog.Container) {
	if c != nil {
		a.OwnerPath, a.OwnerRID = c.Path, c.RIDText
	}
}
