// SPDX-License-Identifier: MIT

package api

import (
	"strconv"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/engine"
)

// Request is a client's request. Each operation reads the fields that concern it.
type Request struct {
	// Resource is what the request is about: one resource or, depending on Verb, the list
	// of all. The names are in the embedded target, and User for a permission.
	Resource Resource
	Verb     Verb
	User     string
	engine.Request

	// Version is the client's protocol version, a date, or empty.
	Version string
	// Host is the host name that the client used, and Endpoint the whole address.
	Host, Endpoint string
	// Consistency is the level of the request, or empty.
	Consistency string

	// Minimal leaves the item out of the answer to a write. PlainItem leaves out the
	// item's system properties that nothing depends on.
	Minimal, PlainItem bool
	// BinaryAnswer says that the client accepts an answer in binary JSON only.
	BinaryAnswer bool
	// NoItems asks for a page without items: the client wants to know that the request is
	// valid, and its charge.
	NoItems bool

	// Features are the features of query plans that the client supports.
	Features string
	// These ask for metrics of a query.
	QueryMetrics, IndexMetrics, IndexMetricsV2 bool
	// Merge leaves it to the server to merge the rows of several partitions.
	Merge bool
	// ScriptLog asks for the log of a stored procedure.
	ScriptLog bool

	// Throughput is for a new database or container. Migrate asks an offer to change
	// between manual and autoscale.
	Throughput catalog.Throughput
	Migrate    catalog.Migration
	// TokenExpires is when the resource tokens in the answer expire.
	TokenExpires time.Time
	// What to tell about a container beside its definition.
	QuotaInfo, Statistics, AnalyticalProgress bool
}

// Answer is what a transport renders for a client.
type Answer struct {
	engine.Answer
	Status int
	// Parts are the pieces of the body, which is JSON text unless Binary is set.
	Parts  [3][]byte
	Binary bool
	// OwnerPath and OwnerRID name the resource's owner. Clients learn the owner's rid
	// from it.
	OwnerPath, OwnerRID string
	// Positioned says that the answer names its partition and that partition's LSN.
	Positioned bool
	// Located says that the answer gives the resource's address.
	Located bool
	// List says that the body is a list of Count elements.
	List bool
	// Extras are values that only some answers have.
	Extras    []Extra
	extraRoom [4]Extra
}

// Extra is a value that only some answers have.
type Extra struct {
	Kind ExtraKind
	Text string
}

// ExtraKind says what an extra is.
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

// Statuses of answers that are no errors.
const (
	statusOK          = 200
	statusCreated     = 201
	statusNoContent   = 204
	statusMultiStatus = 207
	statusNotModified = 304
	// The first status of redirects, and the first of errors.
	statusesOfRedirects = 300
	statusesOfErrors    = 400

	statusFailedDependency = 424
)

// statusOf returns the status of a write.
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

// empty makes an answer without a body.
func (a *Answer) empty(status int) error {
	a.Status = status
	return nil
}

// body makes an answer with a body in JSON.
func (a *Answer) body(status int, json []byte) error {
	a.Status, a.Parts[0] = status, json
	return nil
}

// page makes an answer with a list. items are JSON with commas between them, and page may
// append to the slice. With NoItems the list is empty and there is no continuation: the
// client would follow it without end.
func (c *Call) page(owner, kind string, items []byte, n int) error {
	a := &c.Answer
	if c.Request.NoItems {
		items, n, a.Continuation = nil, 0, ""
	}
	a.Status, a.List, a.Count = statusOK, true, n
	a.Parts[0] = []byte(`{"_rid":"` + owner + `","` + kind + `":[`)
	tail := []byte(`],"_count":` + strconv.Itoa(n) + `}`)
	if len(items)+len(tail) > cap(items) {
		a.Parts[1], a.Parts[2] = items, tail // a page can be large, so it is not copied
		return nil
	}
	// Items and tail in one slice are sent with one system call.
	a.Parts[1] = append(items, tail...)
	return nil
}

// owned sets the container as the answer's owner.
func (a *Answer) owned(c *catalog.Container) {
	if c != nil {
		a.OwnerPath, a.OwnerRID = c.Path, c.RIDText
	}
}
