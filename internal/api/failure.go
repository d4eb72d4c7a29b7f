// SPDX-License-Identifier: MIT

// The one place that knows status codes. It turns every error into what the client sees.
// A client sees the message of errors that are listed here. Any other error becomes
// status 500, and its text goes to the log only.

package api

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/binaryjson"
	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/cluster"
	"github.com/mayflydb/mayfly/internal/engine"
	"github.com/mayflydb/mayfly/internal/memory"
	"github.com/mayflydb/mayfly/internal/query"
	"github.com/mayflydb/mayfly/internal/sql/clientplan"
	"github.com/mayflydb/mayfly/internal/sql/function"
	"github.com/mayflydb/mayfly/internal/sql/syntax"
	"github.com/mayflydb/mayfly/internal/store"
	"github.com/mayflydb/mayfly/internal/value"
)

// needsPlanText is the service's answer to a query that needs a plan and merging by the
// client.
const needsPlanText = "The provided cross partition query can not be directly served by the gateway. This is a first chance (internal) exception that all newer clients will know how to handle gracefully. This exception is traced, but unless you see it bubble up as an exception (which only happens on older SDK clients), then you can safely ignore this message."

// Failure is an error as a client sees it. Transports make their own with Refuse. The
// table below has those of the database.
type Failure struct {
	Status    int
	SubStatus int
	Text      string
}

func (f *Failure) Error() string { return f.Text }

// Refuse makes an error that a client sees as given.
func Refuse(status, subStatus int, text string) error { return &Failure{status, subStatus, text} }

// Invalid refuses a request as malformed, with status 400.
func Invalid(text string) error { return &Failure{400, 0, text} }

// statusCodes are the names of the status codes in error bodies.
var statusCodes = map[int]string{
	400:             "BadRequest",
	401:             "Unauthorized",
	403:             "Forbidden",
	404:             "NotFound",
	405:             "MethodNotAllowed",
	408:             "RequestTimeout",
	409:             "Conflict",
	410:             "Gone",
	412:             "PreconditionFailed",
	413:             "RequestEntityTooLarge",
	424:             "FailedDependency",
	429:             "429", // as the service spells it
	statusRetryWith: "RetryWith",
	500:             "InternalServerError",
	503:             "ServiceUnavailable",
}

// statusRetryWith is the service's own status: another write interfered, try again.
const statusRetryWith = 449

// subStatusCompile goes with a script that does not compile.
const subStatusCompile = 65535

// retryWithAfter is how long a client should wait before it repeats a request that
// another write interfered with.
const retryWithAfter = 10 * time.Millisecond

// retryScriptAfter is how long a client should wait if too many scripts are running. It
// is longer because scripts that fill the server run long.
const retryScriptAfter = 500 * time.Millisecond

// retryMemoryAfter is how long a client should wait if there was no memory. The request
// has already waited for memory by then.
const retryMemoryAfter = time.Second

// throttled is the service's message to a client that spends more than its throughput.
const throttled = "Request rate is large. More Request Units may be needed, so no changes were made. Please retry this request later. Learn more: http://aka.ms/cosmosdb-error-429"

// failures maps the errors that are values. Most texts are the service's.
var failures = []struct {
	err error
	Failure
}{
	{store.ErrNotFound, Failure{404, 0, "Resource Not Found. Learn more: https://aka.ms/cosmosdb-tsg-not-found"}},
	{catalog.ErrNotFound, Failure{404, 0, "Resource Not Found. Learn more: https://aka.ms/cosmosdb-tsg-not-found"}},
	{engine.ErrOwnerNotFound, Failure{404, 1003, "Owner resource does not exist. Learn more: https://aka.ms/cosmosdb-tsg-not-found"}},
	{engine.ErrSession, Failure{404, 1002, "The read session is not available for the input session token."}},
	{store.ErrLive, Failure{409, 0, "There is nothing to undelete: an item with this id and partition key is live."}},
	{store.ErrFinal, Failure{403, 0, "Expired items of this container stay expired, since it has ttlFinality or a change feed of all versions."}},
	{store.ErrExists, Failure{409, 0, "Entity with the specified id already exists in the system. Resource with specified id or name already exists."}},
	{store.ErrNotUnique, Failure{409, 0, "Unique index constraint violation. Resource with specified id, name, or unique index already exists."}},
	{catalog.ErrExists, Failure{409, 0, "Resource with specified id, name, or unique index already exists."}},
	{store.ErrPrecondition, Failure{412, 0, "One of the specified pre-condition is not met. Learn more: https://aka.ms/CosmosDB/sql/errors/precondition-failed"}},
	{catalog.ErrPrecondition, Failure{412, 0, "One of the specified pre-condition is not met. Learn more: https://aka.ms/CosmosDB/sql/errors/precondition-failed"}},
	{engine.ErrPatchCondition, Failure{412, 1110, "One of the specified pre-condition is not met. Learn more: https://aka.ms/CosmosDB/sql/errors/precondition-failed"}},
	{engine.ErrBatchKeys, Failure{400, 0, "One or more operations within the batch request have a different partition key value than the request."}},
	{engine.ErrFailedDependency, Failure{424, 0, "Another operation of the batch has failed."}},
	{store.ErrTooMuch, Failure{413, 3402, "The response of the batch, or what it writes, is too large for one transaction."}},
	{store.ErrTooManyTerms, Failure{413, 0, "The item has too much to be indexed. Exclude paths in the container's indexing policy."}},
	{store.ErrLogicalFull, Failure{403, 1014, "Partition key reached maximum size: the live items with this partition key would exceed the quota. Items that have expired do not count."}},
	{store.ErrPartitionFull, Failure{403, 1005, "The container's storage quota is reached: its live items would exceed it. Items that have expired do not count."}},
	{engine.ErrCrossPartition, Failure{400, 0, "Cross partition query is required but disabled. Please set x-ms-documentdb-query-enablecrosspartition to true, specify x-ms-documentdb-partitionkey, or revise your query to avoid this exception."}},
	{engine.ErrContinuationLimit, Failure{400, 0, "The continuation token limit specified is not large enough: the continuation of this page is longer."}},
	{query.ErrToken, Failure{400, 0, "Invalid Continuation Token"}},
	{query.ErrResume, Failure{400, 0, "The resume filter does not fit the query: it must have a value for each expression of ORDER BY."}},
	{query.ErrSortTooLarge, Failure{400, 0, "The query needs more memory than it may have to sort, group or compare its rows. Narrow its filter, or order by an indexed property."}},
	{query.ErrQueryTime, Failure{400, 0, "The query ran for as long as a query may, and cannot return a part of its result, since it sorts, groups or compares rows, or makes very many rows of one item. Narrow its filter, index the paths that it filters and orders by, or start the server with a longer --query-time."}},
	{function.ErrResultTooLarge, Failure{400, 0, "The query makes a value, or a row, of more than 4 MB."}},
	{engine.ErrTooLarge, Failure{413, 0, "Request size is too large"}},
	{binaryjson.ErrTooLarge, Failure{413, 0, "Request size is too large"}},
	{binaryjson.ErrMalformed, Failure{400, 0, "The input content is invalid because it is not well-formed binary JSON."}},
	{engine.ErrNoKey, Failure{400, 0, "PartitionKey value must be supplied for this operation, in the header x-ms-documentdb-partitionkey."}},
	{engine.ErrKeyForm, Failure{400, 1001, "Partition key provided either doesn't correspond to definition in the collection or doesn't match partition key field values specified in the document."}},
	{engine.ErrKeyMismatch, Failure{400, 1001, "PartitionKey extracted from document doesn't match the one specified in the header. Learn more: https://aka.ms/CosmosDB/sql/errors/wrong-pk-value"}},
	{engine.ErrContainerChanged, Failure{400, 1024, "The container's resource id is not the one in x-ms-cosmos-intended-collection-rid: it was deleted and created again."}},
	{store.ErrRetention, Failure{400, 0, "You must read the change feed from within the retention period."}},
	{store.ErrNoVersions, Failure{400, 0, "The container does not keep all versions and deletes. Ensure to give it a changeFeedPolicy with a retentionDuration in minutes."}},
	{engine.ErrContinuation, Failure{400, 0, "Invalid Continuation Token"}},
	{engine.ErrRangeGone, Failure{410, 1002, "The requested resource is no longer available at the server: there is no such partition key range."}},
	{catalog.ErrTooMany, Failure{403, 1005, "The limit on the number of databases or containers is reached. Delete some that are not needed."}},
	{catalog.ErrTooManyScripts, Failure{403, 1005, "The limit on the number of scripts of a kind in a container is reached. Delete some that are not needed."}},
	{engine.ErrDiskFull, Failure{403, 1005, "The disk of the server is almost full: until there is space, nothing but reads and deletes is accepted."}},
	{engine.ErrDiskSpent, Failure{403, 1005, "The disk of the server is full: until there is space, nothing but reads is accepted."}},
	{engine.ErrEventsGone, Failure{410, 0, "The cursor is older than the events that are kept, so some events may be missed. Start over with from=kept or from=now."}},
	{memory.ErrFull, Failure{429, 0, "The memory of the server is taken by other requests. No changes were made. Please retry this request later."}},
	{engine.ErrScriptsBusy, Failure{429, 0, "Too many scripts are running, or wait to run. No changes were made. Please retry this request later."}},
	{store.ErrUnknown, Failure{408, 0, "The storage engine did not answer in time, so it is not known whether the change was made."}},
	{engine.ErrUnavailable, Failure{503, 0, "The storage engine cannot be reached now, or this server may not answer. No changes were made. Please retry this request."}},
	{engine.ErrStopping, Failure{503, 0, "The server is stopping."}},
	{store.ErrClosed, Failure{503, 0, "The server is stopping."}},
	{store.ErrFailed, Failure{503, 0, "The server cannot write to its disk and is stopping. What was acknowledged is safe."}},
	{engine.ErrContended, Failure{statusRetryWith, 0, "Conflicting request to resource has been attempted. Retry to avoid conflicts."}},
	{store.ErrBusy, Failure{statusRetryWith, 0, "The container's settings changed while the request was under way. Try again."}},
	{context.Canceled, Failure{statusRetryWith, 0, "The request was cancelled."}},
	{context.DeadlineExceeded, Failure{408, 0, "The request took too long."}},
}

// FailureOf turns an error into what the client sees. known is false for an error that
// this file does not list.
func FailureOf(err error) (f Failure, known bool) {
	var refused *Failure
	if errors.As(err, &refused) {
		return *refused, true
	}
	for i := range failures {
		if errors.Is(err, failures[i].err) {
			return failures[i].Failure, true
		}
	}
	var (
		badDefinition *catalog.InvalidError
		badRequest    *engine.InvalidError
		badJSON       *value.SyntaxError
		badTTL        *store.TTLError
		badDeadline   *store.DeadlineError
		tooMuch       *engine.ThrottledError
		badQuery      *syntax.Error
		needsPlan     *engine.NeedsPlanError
		newFeature    *clientplan.FeatureError
		noIndex       *engine.NoIndexError
		badFunction   *engine.CompileError
		badScript     *engine.ScriptError
		notOwner      *cluster.NotOwnerError
	)
	switch {
	case errors.As(err, &notOwner):
		// Over HTTP the request is passed on. A client of direct mode looks for the address
		// of the partition again.
		return Failure{410, 0, "The partition belongs to another node. Look for its address again."}, true
	case errors.As(err, &noIndex):
		f := Failure{400, 0, "The order by query does not have a corresponding composite index that it can be served from."}
		if noIndex.Index != "" {
			f.Text += " Add this one to compositeIndexes in the container's indexing policy: " + noIndex.Index
		}
		return f, true
	case errors.As(err, &badScript) && badScript.Barred:
		return Failure{403, 0, badScript.Message}, true
	case errors.As(err, &badScript) && badScript.TooLong:
		return Failure{408, 0, badScript.Message}, true
	case errors.As(err, &badScript):
		return Failure{400, badScript.Number, badScript.Message}, true
	case errors.As(err, &badFunction):
		return Failure{400, subStatusCompile, badFunction.Message}, true
	case errors.As(err, &badQuery):
		return Failure{400, 0, badQuery.Message}, true
	case errors.As(err, &needsPlan):
		return Failure{400, 1004, needsPlanText}, true
	case errors.As(err, &newFeature):
		return Failure{400, 1004, "Query contains 1 or more unsupported features. Upgrade your SDK to a version that does support the requested features: " + newFeature.Error()}, true
	case errors.As(err, &badDefinition):
		return Failure{400, 0, badDefinition.Message}, true
	case errors.As(err, &badRequest):
		return Failure{400, 0, badRequest.Message}, true
	case errors.As(err, &badJSON):
		return Failure{400, 0, "The input content is invalid because it is not well-formed JSON: " + badJSON.Error() + "."}, true
	case errors.As(err, &badTTL):
		return Failure{400, 0, badTTL.Error()}, true
	case errors.As(err, &badDeadline):
		return Failure{400, 0, badDeadline.Error()}, true
	case errors.As(err, &tooMuch):
		return Failure{429, 3200, throttled}, true
	}
	return Failure{500, 0, "Unknown server error occurred when processing this request."}, false
}

// Explain returns an error's status and message as clients see them, for scripts.
func Explain(err error) (status int, text string) {
	f, _ := FailureOf(err)
	return f.Status, f.Text
}

// Fail turns an error into what the client sees, and keeps it for the log, which also gets
// an error that clients may not see.
func (c *Call) Fail(err error) Failure {
	f, known := FailureOf(err)
	if f.Status == 404 && (errors.Is(err, store.ErrNotFound) || errors.Is(err, catalog.ErrNotFound) || errors.Is(err, engine.ErrOwnerNotFound)) {
		f.Text += c.missing()
	}
	if c.failure = f; !known {
		c.cause = err
	}
	return f
}

// missing says what of a request's resource does not exist.
func (c *Call) missing() string {
	r := &c.Request
	if c.Row == nil || c.Service.Engine == nil || r.Database == "" {
		return ""
	}
	known := c.Service.Engine.Catalog()
	if _, err := known.Database(r.Database); err != nil {
		return ". There is no database '" + value.Clip(r.Database) + "'."
	}
	if r.Container != "" {
		if _, err := known.Container(r.Database, r.Container); err != nil {
			return ". There is no container '" + value.Clip(r.Container) + "' in the database '" + value.Clip(r.Database) + "'."
		}
	}
	if r.User != "" {
		if _, err := known.Find(catalog.Address{Kind: catalog.Users, Database: r.Database, ID: r.User}); err != nil {
			return ". There is no user '" + value.Clip(r.User) + "' in the database '" + value.Clip(r.Database) + "'."
		}
	}
	switch {
	case r.Resource == Items:
		text := ". There is no such item"
		if r.ID != "" {
			text = ". There is no item '" + value.Clip(r.ID) + "'"
		}
		if r.PartitionKey != "" {
			text += " with the partition key " + value.Clip(r.PartitionKey)
		}
		return text + " in the container '" + value.Clip(r.Container) + "': it was never written, was deleted, or has expired."
	case r.ID != "":
		return ". There is no " + strings.ReplaceAll(names[r.Resource], "_", " ") + " '" + value.Clip(r.ID) + "'."
	}
	return ""
}

// RetryAfter returns how long a client should wait before it tries again; 0 if trying
// again would not help.
func RetryAfter(err error, f Failure) time.Duration {
	var tooMuch *engine.ThrottledError
	switch {
	case errors.As(err, &tooMuch):
		return tooMuch.RetryAfter
	case f.Status == statusRetryWith:
		return retryWithAfter
	case errors.Is(err, engine.ErrScriptsBusy):
		return retryScriptAfter
	case errors.Is(err, memory.ErrFull):
		return retryMemoryAfter
	}
	return 0
}

// ErrorBody returns the service's form: a message that holds JSON and a trailer. Refused
// query plans have a message in plain text, as from the service's gateway. The exception
// is an error with a position in the query: Data Explorer reads it from JSON on the first
// line, and shows other JSON as nothing.
func (c *Call) ErrorBody(f Failure, err error) []byte {
	var (
		message  []byte
		badQuery *syntax.Error
		noPlan   *planError
	)
	switch {
	case errors.As(err, &noPlan) && !(errors.As(err, &badQuery) && badQuery.Code != ""):
		message = append(message, f.Text...)
	default:
		message = append(append(message, "Message: "...), Refusal(f, err)...)
	}
	message = append(message, "\r\nActivityId: "...)
	message = append(message, c.Activity...)
	message = append(message, ", Request URI: "...)
	message = append(message, c.Path...)
	message = append(message, ", RequestStats: , SDK: Mayfly"...)
	if noPlan != nil {
		message = append(message, planRefusal...)
	}
	body := append([]byte(`{"code":"`), f.Code()...)
	body = append(body, `","message":`...)
	body = value.AppendString(body, string(message))
	var needsPlan *engine.NeedsPlanError
	if errors.As(err, &needsPlan) {
		body = value.AppendString(append(body, `,"additionalErrorInfo":`...), string(needsPlan.Plan))
	}
	return append(body, '}')
}

// Refusal returns an error as the service's backend writes it: JSON, which its gateway
// puts into the message of an error body. Clients of direct mode get it as it is.
func Refusal(f Failure, err error) []byte {
	var badQuery *syntax.Error
	if errors.As(err, &badQuery) { // it has its own JSON
		return []byte(badQuery.JSON())
	}
	return append(value.AppendString([]byte(`{"Errors":[`), f.Text), "]}"...)
}

// Code returns the name of the status in error bodies.
func (f *Failure) Code() string {
	if name, ok := statusCodes[f.Status]; ok {
		return name
	}
	return strconv.Itoa(f.Status)
}
