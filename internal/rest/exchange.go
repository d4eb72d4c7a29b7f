// SPDX-License-Identifier: MIT

// One request and its answer: reading headers and bodies within limits, and writing them.

package rest

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/mayflydb/mayfly/internal/api"
	"github.com/mayflydb/mayfly/internal/engine"
	"github.com/mayflydb/mayfly/internal/memory"
	"github.com/mayflydb/mayfly/internal/peer"
	"github.com/mayflydb/mayfly/internal/value"
)

const (
	// maxBodyBytes is the default limit of a body: an item, or a definition.
	maxBodyBytes = engine.MaxItemBytes
	// announcedByHTTP is the length up to which net/http sets Content-Length itself. One
	// header less keeps an item's headers within what their map holds before it grows.
	announcedByHTTP = 2 << 10
	// maxActivityBytes is the length up to which a client's activity id is echoed.
	maxActivityBytes = 64
)

// Header names in net/http's canonical spelling, so that setting them needs no
// conversion.
const (
	headerActivity       = "X-Ms-Activity-Id"
	headerAltPath        = "X-Ms-Alt-Content-Path"
	headerAuthorization  = "Authorization"
	headerCharge         = "X-Ms-Request-Charge"
	headerContentLength  = "Content-Length"
	headerContentPath    = "X-Ms-Content-Path"
	headerContentType    = "Content-Type"
	headerContinuation   = "X-Ms-Continuation"
	headerCrossPartition = "X-Ms-Documentdb-Query-Enablecrosspartition"
	headerDuration       = "X-Ms-Request-Duration-Ms"
	headerETag           = "Etag"
	headerItemCount      = "X-Ms-Item-Count"
	headerItemLSN        = "X-Ms-Item-Lsn"
	headerLSN            = "Lsn"
	headerMoment         = "X-Mayfly-Moment"
	headerMaxItems       = "X-Ms-Max-Item-Count"
	headerPartitionKey   = "X-Ms-Documentdb-Partitionkey"
	headerQueryExecution = "X-Ms-Cosmos-Query-Execution-Info"
	headerQuota          = "X-Ms-Resource-Quota"
	headerRetryAfter     = "X-Ms-Retry-After-Ms"
	headerRange          = "X-Ms-Documentdb-Partitionkeyrangeid"
	headerSession        = "X-Ms-Session-Token"
	headerSubStatus      = "X-Ms-Substatus"
	headerUsage          = "X-Ms-Resource-Usage"
	headerVersion        = "X-Ms-Version"
)

const (
	contentJSON   = "application/json"
	contentBinary = "application/octet-stream"
	contentText   = "text/plain; charset=utf-8"
)

// versionHeaders go with every answer. An answer with the quota omits the second and the
// third, and a read item omits all: over HTTP/2 a header costs every request about half a
// microsecond under load, and the fifteenth makes net/http's map grow, which costs three
// more. So there are none that no client reads, and an item has fourteen.
var versionHeaders = []struct {
	name  string
	value string
}{
	{"x-ms-serviceversion", "version=2.14.0.0"},
	{"x-ms-gatewayversion", "version=2.14.0"},
	{"x-ms-schemaversion", "1.16"},
}

// wireNames are the headers that are set often, in lower case, as the service sends them.
// The Java SDK finds them in no other spelling.
var wireNames = lowerCase(headerActivity, headerAltPath, headerCharge, headerContentPath, headerContinuation, headerDuration, headerETag,
	headerItemCount, headerItemLSN, headerLSN, headerQueryExecution, headerQuota, headerRange, headerSession, headerSubStatus, headerUsage)

func lowerCase(names ...string) map[string]string {
	m := map[string]string{}
	for _, name := range names {
		m[name] = strings.ToLower(name)
	}
	// net/http looks for these two in its own spelling.
	m[headerContentLength], m[headerContentType] = headerContentLength, headerContentType
	return m
}

func wireName(name string) string {
	if wire, ok := wireNames[name]; ok {
		return wire
	}
	return strings.ToLower(name)
}

// exchange is a request and its answer.
type exchange struct {
	api.Call
	h     *Handler
	w     http.ResponseWriter
	r     *http.Request
	asked asked
	known bool // the client has a valid credential
	// signedIn says that the request came by way of the explorer, whose session has the
	// rights of the credential by.
	signedIn bool
	by       api.Credential
	wrote    bool // the status has been sent
	// received is the body, once it was read, and whole says that there is one.
	received []byte
	whole    bool
	// passed says that another node has passed the request on, with this note.
	passed bool
	note   peer.Note
	// quotaTold and located say that the answer has the headers of the quota and of its
	// address.
	quotaTold, located bool
	// For the metrics.
	operation int
	status    int

	fields    []field // the headers of the answer, until they are placed
	fieldRoom [fieldsAtOnce]field
}

// CameFrom implements api.Origin.
func (x *exchange) CameFrom() (activity, client string) { return x.Activity, x.r.RemoteAddr }

// setCommon sets the headers that go with every answer.
func (x *exchange) setCommon() {
	versions := versionHeaders
	switch {
	case x.quotaTold && x.located:
		versions = nil
	case x.quotaTold:
		versions = versions[:1]
	}
	for _, v := range versions {
		x.setWire(v.name, v.value)
	}
	// Strict-Transport-Security for this machine's own names would also apply to the
	// other servers on it.
	if x.secure() && !x.h.hosts.check(x.r.Host).loopback {
		x.setWire("Strict-Transport-Security", "max-age=31536000")
	}
	if x.FromMs != 0 {
		x.set(headerMoment, strconv.FormatInt(x.FromMs, 10)+"-"+strconv.FormatInt(x.h.engine.Clock().Now(), 10))
	}
	x.set(headerActivity, x.Activity)
	x.set(headerCharge, strconv.FormatFloat(float64(x.Charged()), 'f', 2, 64))
}

// write answers with a JSON body, which may come in parts.
func (x *exchange) write(status int, body ...[]byte) { x.writeAs(status, contentJSON, body...) }

// writeAs is write with a body of another kind.
func (x *exchange) writeAs(status int, contentType string, body ...[]byte) {
	n := 0
	for _, part := range body {
		n += len(part)
	}
	x.setCommon()
	x.set(headerContentType, contentType)
	if lane, ok := x.w.(*laneAnswer); ok {
		lane.announce(n)
	} else if n > announcedByHTTP || x.r.Method == http.MethodHead {
		x.set(headerContentLength, strconv.Itoa(n))
	}
	x.Keep(int64(n))
	x.begin(status)
	for _, part := range body {
		x.put(part)
	}
}

// writeEmpty answers without a body.
func (x *exchange) writeEmpty(status int) {
	if lane, ok := x.w.(*laneAnswer); ok {
		lane.announce(0)
	}
	x.setCommon()
	x.begin(status)
}

// begin sends the status and the headers.
func (x *exchange) begin(status int) {
	x.wrote, x.status = true, status
	x.hurry()
	x.spare()
	x.placeFields()
	x.w.WriteHeader(status)
}

// headerOf is r.Header.Get for a name in net/http's spelling.
func headerOf(r *http.Request, name string) string {
	if v := r.Header[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// body reads the request's body.
func (x *exchange) body() ([]byte, error) { return x.bodyUpTo(maxBodyBytes) }

// bodyUpTo is body with a limit of its own.
func (x *exchange) bodyUpTo(limit int) ([]byte, error) {
	if x.whole {
		return x.received, nil // the request is repeated
	}
	most := limit + 1 // if the length is unknown, or the body longer than announced
	if n := x.r.ContentLength; n > int64(limit) {
		return nil, errBodyTooBig
	} else if n >= 0 {
		most = int(n)
	}
	x.spare()
	x.Share.AwaitClient(true)
	body, err := x.Receive(x.r.Body, most)
	x.Share.AwaitClient(false)
	switch {
	case errors.Is(err, memory.ErrFull) || errors.Is(err, context.Canceled):
		return nil, err
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, errBodySlow
	case err != nil || len(body) < int(x.r.ContentLength):
		return nil, errBodyCut
	case len(body) > limit:
		return nil, errBodyTooBig
	}
	if conn := soleConn(x.r); conn != nil {
		conn.unread = false
	}
	x.received, x.whole = body, true
	return body, x.TakeCopies(body)
}

// activityID returns the client's activity id if it can be echoed, or a new one.
func activityID(r *http.Request) string {
	if v := r.Header[headerActivity]; len(v) > 0 && v[0] != "" && len(v[0]) <= maxActivityBytes && printable(v[0]) {
		return v[0]
	}
	return value.NewGUID()
}

func printable(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
