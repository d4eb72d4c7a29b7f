// SPDX-License-Identifier: MIT

// The one place that knows status codes: every error that a client sees is made
// here. A client gets our message only for errors that were made on purpose;
// anything else is "internal", and the log has the rest.

package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/engine"
	"github.com/mayflydb/mayfly/internal/memory"
	"github.com/mayflydb/mayfly/internal/query"
	"github.com/mayflydb/mayfly/internal/sql"
	"github.com/mayflydb/mayfly/internal/store"
	"github.com/mayflydb/mayfly/internal/value"
)

var (
	errMethod     = errors.New("the request's method is not allowed here")
	errRegion     = errors.New("the region is only read")
	errDirectMode = errors.New("there is no direct mode")
	errNoRoute    = errors.New("the path addresses nothing")
	errBodyTooBig = errors.New("the request's body is too large")
	errBodyCut    = errors.New("the request's body could not be read")
	errBodySlow   = errors.New("the request's body did not come in time")
)

// badRequestError refuses a header or another part of a request.
type badRequestError struct {
	message string
}

func (e *badRequestError) Error() string { return e.message }

// needsPlanText is what the service says of a query that a client has to take apart.
const needsPlanText = "The provided cross partition query can not be directly served by the gateway. This is a first chance (internal) exception that all newer clients will know how to handle gracefully. This exception is traced, but unless you see it bubble up as an exception (which only happens on older SDK clients), then you can safely ignore this message."

// failure is an error as a client sees it.
type failure struct {
	status    int
	subStatus int
	text      string
}

// statusCodes are the names of the status codes in error bodies.
var statusCodes = map[int]string{
	http.StatusBadRequest:            "BadRequest",
	http.StatusUnauthorized:          "Unauthorized",
	http.StatusForbidden:             "Forbidden",
	http.StatusNotFound:              "NotFound",
	http.StatusMethodNotAllowed:      "MethodNotAllowed",
	http.StatusRequestTimeout:        "RequestTimeout",
	http.StatusConflict:              "Conflict",
	http.StatusGone:                  "Gone",
	http.StatusPreconditionFailed:    "PreconditionFailed",
	http.StatusRequestEntityTooLarge: "RequestEntityTooLarge",
	http.StatusFailedDependency:      "FailedDependency",
	http.StatusTooManyRequests:       "429", // as the service spells it
	statusRetryWith:                  "RetryWith",
	http.StatusInternalServerError:   "InternalServerError",
	http.StatusServiceUnavailable:    "ServiceUnavailable",
}

// statusRetryWith is the service's own: the write met another, try again.
const statusRetryWith = 449

// subStatusCompile goes with a script that does not compile.
const subStatusCompile = 65535

// retryWithAfter is how long a client should wait before it tries again what met
// another write.
const retryWithAfter = 10 * time.Millisecond

// retryScriptAfter is how long it should wait if too many scripts are running: scripts
// that fill the server take long.
const retryScriptAfter = 500 * time.Millisecond

// retryMemoryAfter is how long it should wait if there was no memory, for which it has
// waited already.
const retryMemoryAfter = time.Second

// throttled is what the service tells a client that spends too much.
const throttled = "Request rate is large. More Request Units may be needed, so no changes were made. Please retry this request later. Learn more: http://aka.ms/cosmosdb-error-429"

// failures maps the errors that are values. The texts are the service's.
var failures = []struct {
	err error
	failure
}{
	{store.ErrNotFound, failure{404, 0, "Resource Not Found. Learn more: https://aka.ms/cosmosdb-tsg-not-found"}},
	{catalog.ErrNotFound, failure{404, 0, "Resource Not Found. Learn more: https://aka.ms/cosmosdb-tsg-not-found"}},
	{errNoRoute, failure{404, 0, "Resource Not Found: no resource has this path. Learn more: https://aka.ms/cosmosdb-tsg-not-found"}},
	{errDirectMode, failure{400, 0, "Direct mode is not served: there are no addresses to resolve. Connect in gateway mode instead: in Java with CosmosClientBuilder.gatewayMode() or gatewayMode(new GatewayConnectionConfig()), in .NET with CosmosClientOptions.ConnectionMode = ConnectionMode.Gateway."}},
	{engine.ErrOwnerNotFound, failure{404, 1003, "Owner resource does not exist. Learn more: https://aka.ms/cosmosdb-tsg-not-found"}},
	{engine.ErrSession, failure{404, 1002, "The read session is not available for the input session token."}},
	{store.ErrExists, failure{409, 0, "Entity with the specified id already exists in the system. Resource with specified id or name already exists."}},
	{store.ErrNotUnique, failure{409, 0, "Unique index constraint violation. Resource with specified id, name, or unique index already exists."}},
	{catalog.ErrExists, failure{409, 0, "Resource with specified id, name, or unique index already exists."}},
	{store.ErrPrecondition, failure{412, 0, "One of the specified pre-condition is not met. Learn more: https://aka.ms/CosmosDB/sql/errors/precondition-failed"}},
	{catalog.ErrPrecondition, failure{412, 0, "One of the specified pre-condition is not met. Learn more: https://aka.ms/CosmosDB/sql/errors/precondition-failed"}},
	{engine.ErrPatchCondition, failure{412, 1110, "One of the specified pre-condition is not met. Learn more: https://aka.ms/CosmosDB/sql/errors/precondition-failed"}},
	{engine.ErrBatchKeys, failure{400, 0, "One or more operations within the batch request have a different partition key value than the request."}},
	{engine.ErrFailedDependency, failure{424, 0, "Another operation of the batch has failed."}},
	{store.ErrTooMuch, failure{413, 3402, "The response of the batch, or what it writes, is too large for one transaction."}},
	{store.ErrTooManyTerms, failure{413, 0, "The item has too much to be indexed. Exclude paths in the container's indexing policy."}},
	{store.ErrLogicalFull, failure{403, 1014, "Partition key reached maximum size: the live items with this partition key would exceed the quota. Items that have expired do not count."}},
	{store.ErrPartitionFull, failure{403, 1005, "The container's storage quota is reached: its live items would exceed it. Items that have expired do not count."}},
	{engine.ErrCrossPartition, failure{400, 0, "Cross partition query is required but disabled. Please set x-ms-documentdb-query-enablecrosspartition to true, specify x-ms-documentdb-partitionkey, or revise your query to avoid this exception."}},
	{engine.ErrContinuationLimit, failure{400, 0, "The continuation token limit specified is not large enough: the continuation of this page is longer."}},
	{engine.ErrNoIndex, failure{400, 0, "The order by query does not have a corresponding composite index that it can be served from."}},
	{query.ErrToken, failure{400, 0, "Invalid Continuation Token"}},
	{query.ErrResume, failure{400, 0, "The resume filter does not fit the query: it must have a value for each expression of ORDER BY."}},
	{query.ErrSortTooLarge, failure{400, 0, "The query needs more memory than it may have to sort, group or compare its rows. Narrow its filter, or order by an indexed property."}},
	{query.ErrQueryTime, failure{400, 0, "The query has worked for as long as a query may, and cannot end early with a part of its answer, since it sorts, groups or compares rows, or makes very many of one item. Narrow its filter, give it an index to go by (on what it filters and orders by), or start the server with a longer --query-time."}},
	{sql.ErrResultTooLarge, failure{400, 0, "The query makes a value, or a row, of more than 4 MB."}},
	{engine.ErrTooLarge, failure{413, 0, "Request size is too large"}},
	{errBodyTooBig, failure{413, 0, "Request size is too large"}},
	{errBodyCut, failure{400, 0, "The input content is invalid because the body of the request could not be read to its end."}},
	{errBodySlow, failure{408, 0, "The body of the request did not come in time."}},
	{engine.ErrNoKey, failure{400, 0, "PartitionKey value must be supplied for this operation, in the header x-ms-documentdb-partitionkey."}},
	{engine.ErrKeyForm, failure{400, 1001, "Partition key provided either doesn't correspond to definition in the collection or doesn't match partition key field values specified in the document."}},
	{engine.ErrKeyMismatch, failure{400, 1001, "PartitionKey extracted from document doesn't match the one specified in the header. Learn more: https://aka.ms/CosmosDB/sql/errors/wrong-pk-value"}},
	{engine.ErrContainerChanged, failure{400, 1024, "The container's resource id is not the one in x-ms-cosmos-intended-collection-rid: it was deleted and created again."}},
	{store.ErrRetention, failure{400, 0, "You must read the change feed from within the retention period."}},
	{store.ErrNoVersions, failure{400, 0, "The container does not keep all versions and deletes. Ensure to give it a changeFeedPolicy with a retentionDuration in minutes."}},
	{engine.ErrContinuation, failure{400, 0, "Invalid Continuation Token"}},
	{engine.ErrRangeGone, failure{410, 1002, "The requested resource is no longer available at the server: there is no such partition key range."}},
	{catalog.ErrTooMany, failure{403, 1005, "The limit on the number of databases or containers is reached. Delete some that are not needed."}},
	{catalog.ErrTooManyScripts, failure{403, 1005, "The limit on the number of scripts of a kind in a container is reached. Delete some that are not needed."}},
	{engine.ErrDiskFull, failure{403, 1005, "The disk of the server is almost full: until there is space, nothing but reads and deletes is accepted."}},
	{engine.ErrDiskSpent, failure{403, 1005, "The disk of the server is full: until there is space, nothing but reads is accepted."}},
	{errNoAuthorization, failure{401, 0, "Required Header authorization is missing. Ensure a valid Authorization token is passed."}},
	{errBadAuthorization, failure{401, 0, "The input authorization token can't serve the request. Please check that the expected payload is built as per the protocol, and check the key being used."}},
	{errDate, failure{403, 0, "The authorization token is not valid at the current time: its date is more than 15 minutes from the server's. Check the clocks of both machines."}},
	{errPrincipalDate, failure{401, 0, "The Entra ID token is not valid at the current time: it has expired, or is not good yet."}},
	{errForbidden, failure{403, 0, "Insufficient permissions provided in the authorization header for the corresponding request. Please retry with another authorization header."}},
	{errTokenExpired, failure{403, 0, "The input authorization token is not valid at the current time. Please create another token and retry."}},
	{errNotDataPlane, failure{403, 5300, "The given request cannot be authorized by AAD token in data plane."}},
	{errPrincipal, failure{403, 5301, "Request is blocked because the principal does not have the required permissions: it may only read."}},
	{errRegion, failure{403, 3, "The requested operation cannot be performed at this region: it is only read. Write to the first of the account's writable locations."}},
	{errProfiling, failure{409, 0, "A profile is being made already, and there can be one at a time. Try again when it is done."}},
	{errMethod, failure{405, 0, "The requested verb is not supported on this resource."}},
	{engine.ErrEventsGone, failure{410, 0, "The cursor is older than the events that are kept, so that some may have been missed. Begin anew with from=kept or from=now."}},
	{errFollowers, failure{503, 0, "Too many clients follow events already. Try again later, or ask for pages."}},
	{memory.ErrFull, failure{http.StatusTooManyRequests, 0, "The memory of the server is taken by other requests. No changes were made. Please retry this request later."}},
	{engine.ErrScriptsBusy, failure{http.StatusTooManyRequests, 0, "Too many scripts are running, or wait to run. No changes were made. Please retry this request later."}},
	{engine.ErrStopping, failure{503, 0, "The server is stopping."}},
	{store.ErrClosed, failure{503, 0, "The server is stopping."}},
	{store.ErrFailed, failure{503, 0, "The server cannot write to its disk and is stopping. What was acknowledged is safe."}},
	{engine.ErrContended, failure{statusRetryWith, 0, "Conflicting request to resource has been attempted. Retry to avoid conflicts."}},
	{store.ErrBusy, failure{statusRetryWith, 0, "The container's settings changed while the request was under way. Try again."}},
	{context.Canceled, failure{statusRetryWith, 0, "The request was cancelled."}},
	{context.DeadlineExceeded, failure{408, 0, "The request took too long."}},
}

// failureOf turns an error into what the client sees. known is false for errors
// that nobody made on purpose.
func failureOf(err error) (f failure, known bool) {
	for i := range failures {
		if errors.Is(err, failures[i].err) {
			return failures[i].failure, true
		}
	}
	var (
		badDefinition *catalog.InvalidError
		badRequest    *engine.InvalidError
		badJSON       *value.SyntaxError
		badTTL        *store.TTLError
		tooMuch       *engine.ThrottledError
		badHeader     *badRequestError
		missing       *notFoundError
		badQuery      *sql.Error
		needsPlan     *engine.NeedsPlanError
		newFeature    *sql.FeatureError
		badFunction   *engine.CompileError
		badScript     *engine.ScriptError
		badHost       *hostError
	)
	switch {
	case errors.As(err, &badScript) && badScript.Barred:
		return failure{403, 0, badScript.Message}, true
	case errors.As(err, &badScript) && badScript.TooLong:
		return failure{408, 0, badScript.Message}, true
	case errors.As(err, &badScript):
		return failure{400, badScript.Number, badScript.Message}, true
	case errors.As(err, &badFunction):
		return failure{400, subStatusCompile, badFunction.Message}, true
	case errors.As(err, &badQuery):
		return failure{400, 0, badQuery.Message}, true
	case errors.As(err, &needsPlan):
		return failure{400, 1004, needsPlanText}, true
	case errors.As(err, &newFeature):
		return failure{400, 1004, "Query contains 1 or more unsupported features. Upgrade your SDK to a version that does support the requested features: " + newFeature.Error()}, true
	case errors.As(err, &badDefinition):
		return failure{400, 0, badDefinition.Message}, true
	case errors.As(err, &badRequest):
		return failure{400, 0, badRequest.Message}, true
	case errors.As(err, &badJSON):
		return failure{400, 0, "The input content is invalid because it is not well-formed JSON: " + badJSON.Error() + "."}, true
	case errors.As(err, &badTTL):
		return failure{400, 0, badTTL.Error()}, true
	case errors.As(err, &tooMuch):
		return failure{429, 3200, throttled}, true
	case errors.As(err, &badHeader):
		return failure{400, 0, badHeader.message}, true
	case errors.As(err, &missing):
		return failure{404, 0, missing.message}, true
	case errors.As(err, &badHost):
		return failure{403, 0, badHost.Error()}, true
	}
	return failure{500, 0, "Unknown server error occurred when processing this request."}, false
}

// writeError answers with an error.
func (x *exchange) writeError(err error) {
	f, known := failureOf(err)
	if !known {
		x.h.logger.Error("request failed", "method", x.r.Method, "path", x.r.URL.Path, "activity", x.activity, "err", err)
	}
	if x.wrote { // the client has an answer, or the start of one
		return
	}
	x.setCommon()
	if f.subStatus != 0 {
		x.set(headerSubStatus, strconv.Itoa(f.subStatus))
	}
	if wait := retryAfter(err, f); wait > 0 {
		x.set(headerRetryAfter, strconv.FormatInt(wait.Milliseconds(), 10))
	}
	if f.status == http.StatusTooManyRequests {
		x.set(headerCharge, "0.00") // nothing was done
	}
	x.set(headerContentType, contentJSON)
	body := x.errorBody(f, err)
	x.set(headerContentLength, strconv.Itoa(len(body)))
	x.begin(f.status)
	if x.r.Method != http.MethodHead {
		_, _ = x.w.Write(body)
	}
}

// retryAfter returns how long a client should wait before it tries again, 0 if that
// would not help.
func retryAfter(err error, f failure) time.Duration {
	var tooMuch *engine.ThrottledError
	switch {
	case errors.As(err, &tooMuch):
		return tooMuch.RetryAfter
	case f.status == statusRetryWith:
		return retryWithAfter
	case errors.Is(err, engine.ErrScriptsBusy):
		return retryScriptAfter
	case errors.Is(err, memory.ErrFull):
		return retryMemoryAfter
	}
	return 0
}

// recovered answers for a panic, which is a fault of ours: this client gets an
// internal error, the log what happened, and the others notice nothing.
func (x *exchange) recovered() {
	switch p := recover(); p {
	case nil:
	case http.ErrAbortHandler:
		panic(p) // how net/http is told to cut a connection
	default:
		x.writeError(fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
	}
}

// errorBody is the service's form: a message that holds JSON and a trailer. Where no plan
// was made it is the gateway that speaks, in plain text, but for errors that have a place
// in the query: Data Explorer reads these off the first line, and shows other JSON as
// nothing.
func (x *exchange) errorBody(f failure, err error) []byte {
	var (
		message  []byte
		badQuery *sql.Error
		noPlan   *planError
	)
	switch {
	case errors.As(err, &noPlan) && !(errors.As(err, &badQuery) && badQuery.Code != ""):
		message = append(message, f.text...)
	case errors.As(err, &badQuery): // which has a form of its own
		message = append(append(message, "Message: "...), badQuery.JSON()...)
	default:
		message = value.AppendString(append(message, `Message: {"Errors":[`...), f.text)
		message = append(message, "]}"...)
	}
	message = append(message, "\r\nActivityId: "...)
	message = append(message, x.activity...)
	message = append(message, ", Request URI: "...)
	message = append(message, x.r.URL.EscapedPath()...)
	message = append(message, ", RequestStats: , SDK: Mayfly"...)
	if noPlan != nil {
		message = append(message, planRefusal...)
	}
	body := append([]byte(`{"code":"`), codeName(f.status)...)
	body = append(body, `","message":`...)
	body = value.AppendString(body, string(message))
	var needsPlan *engine.NeedsPlanError
	if errors.As(err, &needsPlan) {
		body = value.AppendString(append(body, `,"additionalErrorInfo":`...), string(needsPlan.Plan))
	}
	return append(body, '}')
}

func codeName(status int) string {
	if name, ok := statusCodes[status]; ok {
		return name
	}
	return strconv.Itoa(status)
}
