// SPDX-License-Identifier: MIT

// Rendering answers: status, headers and body.

package rest

import (
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/api"
	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/engine"
	"github.com/mayflydb/mayfly/internal/store"
)

// extraHeaders are the headers of values that only some answers have.
var extraHeaders = map[api.ExtraKind]string{
	api.QueryMetrics:         "X-Ms-Documentdb-Query-Metrics",
	api.IndexUtilization:     "X-Ms-Cosmos-Index-Utilization",
	api.QueryExecution:       headerQueryExecution,
	api.RequiresDistribution: "X-Ms-Cosmos-Query-Requiresdistribution",
	api.ScriptLog:            "X-Ms-Documentdb-Script-Log-Results",
	api.MaxMediaMB:           "X-Ms-Max-Media-Storage-Usage-Mb",
	api.MediaMB:              "X-Ms-Media-Storage-Usage-Mb",
	api.MinThroughput:        "X-Ms-Cosmos-Min-Throughput",
	api.ReplacePending:       "X-Ms-Offer-Replace-Pending",
	api.Quota:                headerQuota,
	api.Usage:                headerUsage,
	api.SharedThroughput:     "X-Ms-Share-Throughput",
	api.AnalyticalProgress:   "X-Ms-Cosmos-Analytical-Migration-Progress",
	api.IndexProgress:        "X-Ms-Documentdb-Collection-Index-Transformation-Progress",
}

// render sends an answer.
func (x *exchange) render() {
	a := &x.Answer
	x.setAnswer()
	switch {
	case a.Parts[0] == nil:
		x.writeEmpty(a.Status)
	case a.Binary:
		x.writeAs(a.Status, contentBinary, a.Parts[:]...)
	default:
		x.write(a.Status, a.Parts[:]...)
	}
}

// setAnswer sets the headers of an answer; for an error, as many as are known.
func (x *exchange) setAnswer() {
	a := &x.Answer
	if a.OwnerRID != "" {
		x.set(headerAltPath, headerPath(a.OwnerPath))
		x.set(headerContentPath, a.OwnerRID)
	}
	if a.Positioned {
		x.setPosition(a.Partition, a.LSN)
	}
	if a.ItemLSN != 0 {
		x.set(headerItemLSN, strconv.FormatUint(a.ItemLSN, 10))
	}
	if a.Counted {
		x.setQuota(a.Live)
	}
	if a.ETag != "" {
		x.set(headerETag, a.ETag)
	}
	if a.Continuation != "" {
		x.set(headerContinuation, a.Continuation)
	}
	if a.List {
		x.set(headerItemCount, strconv.Itoa(a.Count))
	}
	if a.Located {
		x.setLocation()
	}
	for _, e := range a.Extras {
		text := e.Text
		if e.Kind == api.ScriptLog {
			text = api.EscapeLog(text)
		}
		x.set(extraHeaders[e.Kind], text)
	}
}

// headerPath percent-encodes a path of names if a header cannot hold it as it is. Clients
// decode it.
func headerPath(path string) string {
	for i := range len(path) {
		if c := path[i]; c <= ' ' || c > '~' || c == '%' {
			return (&url.URL{Path: path}).EscapedPath()
		}
	}
	return path
}

// setPosition sets the headers with the partition that answered, its LSN, and the time
// that the request took in the server.
func (x *exchange) setPosition(partition int, lsn uint64) {
	x.set(headerRange, catalog.RangeID(partition))
	token := engine.SessionToken
	if version := x.Request.Version; version != "" && version < sessionVersionsSince {
		token = engine.OldSessionToken
	}
	session := token(partition, lsn)
	x.set(headerSession, session)
	x.set(headerLSN, session[strings.LastIndexAny(session, ":#")+1:]) // which ends with it
	x.set(headerDuration, strconv.FormatFloat(float64(time.Since(x.Began).Nanoseconds())/1e6, 'f', 4, 64))
}

// sessionVersionsSince is the protocol version since which session tokens have a version.
// Older clients parse all that follows the colon as a number.
const sessionVersionsSince = "2018-06-18"

// setLocation sets the address of the answer: for the account, for metadata, and for an
// item that is read.
func (x *exchange) setLocation() {
	x.located = true
	x.set("Content-Location", x.address(x.r.URL.EscapedPath()))
}

// address returns the address of a path, with the scheme and host that the client used.
func (x *exchange) address(path string) string {
	scheme, host := "http", x.r.Host
	if x.secure() {
		scheme = "https"
	}
	if host == "" { // HTTP/1.0 lets a client leave it out
		if a, ok := x.r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
			host = a.String()
		}
	}
	return scheme + "://" + host + path
}

// setQuota sets the quota of a container, and what the container or the partition that
// answered holds.
func (x *exchange) setQuota(live store.Amount) {
	x.set(headerQuota, x.h.quota())
	var text [128]byte
	x.set(headerUsage, string(api.AppendUsage(text[:0], live)))
	x.quotaTold = true
}
