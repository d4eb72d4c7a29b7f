// SPDX-License-Identifier: MIT

// Errors as HTTP answers.

package rest

import (
	"fmt"
	"net/http"
	"runtime/debug"
	"strconv"

	"github.com/mayflydb/mayfly/internal/api"
)

var (
	errNoRoute    = api.Refuse(404, 0, "Resource Not Found: no resource has this path. Learn more: https://aka.ms/cosmosdb-tsg-not-found")
	errDirectMode = api.Refuse(400, 0, "Direct mode is not served here: there are no addresses to resolve. Connect in gateway mode instead: in Java with CosmosClientBuilder.gatewayMode() or gatewayMode(new GatewayConnectionConfig()), in .NET with CosmosClientOptions.ConnectionMode = ConnectionMode.Gateway.")
	errBodyTooBig = api.Refuse(413, 0, "Request size is too large")
	errBodyCut    = api.Refuse(400, 0, "The input content is invalid because the body of the request could not be read to its end.")
	errBodySlow   = api.Refuse(408, 0, "The body of the request did not arrive in time.")
)

// writeError answers with an error.
func (x *exchange) writeError(err error) {
	f := x.Fail(err)
	if x.wrote { // the answer has begun
		return
	}
	x.setAnswer()
	x.setCommon()
	if f.SubStatus != 0 {
		x.set(headerSubStatus, strconv.Itoa(f.SubStatus))
	}
	if wait := api.RetryAfter(err, f); wait > 0 {
		x.set(headerRetryAfter, strconv.FormatInt(wait.Milliseconds(), 10))
	}
	if f.Status == http.StatusTooManyRequests {
		x.set(headerCharge, "0.00") // nothing was executed
	}
	x.set(headerContentType, contentJSON)
	body := x.ErrorBody(f, err)
	x.set(headerContentLength, strconv.Itoa(len(body)))
	x.begin(f.Status)
	if x.r.Method != http.MethodHead {
		_, _ = x.w.Write(body)
	}
}

// recovered answers after a panic: this client gets status 500 and the log the stack.
// Other requests are not affected.
func (x *exchange) recovered() {
	switch p := recover(); p {
	case nil:
	case http.ErrAbortHandler:
		panic(p) // net/http aborts the connection
	default:
		x.writeError(fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
	}
}
