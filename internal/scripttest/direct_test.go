// SPDX-License-Identifier: MIT

// The scripts over direct mode. What an SDK sends in frames is sent so, and the answer is
// turned into what the same answer over HTTP would be. What an SDK sends to the gateway,
// and what has no form in frames, such as a header with a wrong value, goes over HTTPS.

package scripttest

import (
	"crypto/tls"
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mayflydb/mayfly/internal/direct/directclient"
	"github.com/mayflydb/mayfly/internal/rntbd"
)

// overDirect is a whole server, and a client of it in direct mode.
type overDirect struct {
	overHTTP
	frames *atomic.Int64 // requests that were sent in frames, by all scripts

	mu struct {
		sync.Mutex
		channel *directclient.Channel
	}
}

func (o *overDirect) stop() error {
	o.mu.Lock()
	if o.mu.channel != nil {
		_ = o.mu.channel.Close()
		o.mu.channel = nil
	}
	o.mu.Unlock()
	return o.overHTTP.stop()
}

// check is made on data at rest.
func (o *overDirect) check() ([]string, error) {
	if err := o.stop(); err != nil {
		return nil, err
	}
	return o.overHTTP.check()
}

func (o *overDirect) send(method, target string, header http.Header, body []byte) (answer, error) {
	f := frame{header: header, method: method}
	if !f.make(target, body) {
		return o.overHTTP.send(method, target, header, body)
	}
	c, err := o.open()
	if err != nil {
		return answer{}, err
	}
	o.frames.Add(1)
	a, err := c.Do(&f.request)
	if err != nil {
		return answer{}, err
	}
	return httpAnswer(&a, target), nil
}

// open returns the channel, and opens it if there is none.
func (o *overDirect) open() (*directclient.Channel, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.mu.channel != nil {
		return o.mu.channel, nil
	}
	roots, err := o.roots()
	if err != nil {
		return nil, err
	}
	host := strings.TrimPrefix(o.base, "https://")
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		return nil, err
	}
	conn, err := tls.Dial("tcp", host, &tls.Config{RootCAs: roots, ServerName: name})
	if err != nil {
		return nil, err
	}
	if err := conn.SetDeadline(time.Now().Add(time.Hour)); err != nil {
		return nil, err
	}
	o.mu.channel, err = directclient.Open(conn)
	return o.mu.channel, err
}

// frame makes a frame of a request over HTTP.
type frame struct {
	method  string
	header  http.Header
	request directclient.Request
	path    []string
	feed    bool
	failed  bool // it has no form in frames
}

// make returns false if the request goes over HTTP.
func (f *frame) make(target string, body []byte) bool {
	if strings.ContainsAny(target, "?#") || f.header.Get("Host") != "" {
		return false
	}
	for segment := range strings.SplitSeq(strings.Trim(target, "/"), "/") {
		name, err := url.PathUnescape(segment)
		if err != nil || name == "" {
			return false
		}
		f.path = append(f.path, name)
	}
	f.feed = len(f.path)%2 == 1
	if !f.names() || !f.operation() {
		return false
	}
	for name, values := range f.header {
		f.token(name, values[0])
	}
	if len(body) > 0 {
		f.request.Body = body
	}
	return !f.failed
}

// names sets the resource and its names.
func (f *frame) names() bool {
	tokens := map[string]rntbd.Token{
		"dbs": rntbd.RequestDatabaseName, "colls": rntbd.RequestCollectionName, "docs": rntbd.RequestDocumentName,
		"sprocs": rntbd.RequestStoredProcedureName, "users": rntbd.RequestUserName, "permissions": rntbd.RequestPermissionName,
	}
	kinds := map[string]rntbd.Resource{
		"dbs": rntbd.Database, "dbs colls": rntbd.Collection, "dbs colls docs": rntbd.Document, "dbs colls sprocs": rntbd.StoredProcedure,
		"dbs users": rntbd.User, "dbs users permissions": rntbd.Permission,
	}
	var words []string
	for i := 0; i < len(f.path); i += 2 {
		words = append(words, f.path[i])
		if i+1 < len(f.path) {
			f.request.Tokens = rntbd.AppendText(f.request.Tokens, tokens[f.path[i]], f.path[i+1])
		}
	}
	var ok bool
	f.request.Resource, ok = kinds[strings.Join(words, " ")]
	return ok
}

func (f *frame) flag(name string) bool { return strings.EqualFold(f.header.Get(name), "true") }

// operation sets what the request does, if an SDK would send it in a frame.
func (f *frame) operation() bool {
	item := f.request.Resource == rntbd.Document
	query := f.flag("X-Ms-Documentdb-Isquery") || strings.HasPrefix(f.header.Get("Content-Type"), "application/query+json")
	one := f.header.Get("X-Ms-Documentdb-Partitionkey") != "" || f.header.Get("X-Ms-Documentdb-Partitionkeyrangeid") != ""
	op := rntbd.Connect
	switch {
	case f.flag("X-Ms-Cosmos-Is-Query-Plan-Request"):
	case f.feed && f.method == "POST" && query && (one || !item) && f.request.Resource != rntbd.StoredProcedure:
		op = rntbd.Query
	case f.feed && f.method == "POST" && query:
	case f.feed && f.method == "GET" && (one || !item) && f.request.Resource != rntbd.StoredProcedure:
		op = rntbd.ReadFeed
	case f.feed && f.method == "POST" && item && f.flag("X-Ms-Cosmos-Is-Batch-Request"):
		op = rntbd.Batch
	case f.feed && f.method == "POST" && item && f.flag("X-Ms-Documentdb-Is-Upsert"):
		op = rntbd.Upsert
	case f.feed && f.method == "POST" && item:
		op = rntbd.Create
	case f.feed:
	case f.method == "GET" && f.request.Resource != rntbd.Collection && f.request.Resource != rntbd.StoredProcedure:
		op = rntbd.Read
	case f.method == "POST" && f.request.Resource == rntbd.StoredProcedure:
		op = rntbd.ExecuteJavaScript
	case f.method == "PUT" && item:
		op = rntbd.Replace
	case f.method == "PATCH" && item:
		op = rntbd.Patch
	case f.method == "DELETE" && item:
		op = rntbd.Delete
	}
	f.request.Operation = op
	return op != rntbd.Connect
}

// texts are headers that are tokens of text, and flags those that are true or false.
var (
	texts = map[string]rntbd.Token{
		"Authorization": rntbd.RequestAuthorizationToken, "X-Ms-Session-Token": rntbd.RequestSessionToken,
		"X-Ms-Continuation": rntbd.RequestContinuationToken, "X-Ms-Documentdb-Partitionkey": rntbd.RequestPartitionKey,
		"X-Ms-Documentdb-Partitionkeyrangeid": rntbd.RequestPartitionKeyRangeID, "A-Im": rntbd.RequestAIM,
		"If-Modified-Since": rntbd.RequestIfModifiedSince, "X-Ms-Documentdb-Pre-Trigger-Include": rntbd.RequestPreTriggerInclude,
		"X-Ms-Documentdb-Post-Trigger-Include": rntbd.RequestPostTriggerInclude, "X-Ms-Cosmos-Intended-Collection-Rid": rntbd.RequestIntendedCollectionRID,
		"X-Ms-Cosmos-Changefeed-Wire-Format-Version": rntbd.RequestChangeFeedWireFormatVersion,
		"X-Ms-Cosmos-Supported-Query-Features":       rntbd.RequestSupportedQueryFeatures,
	}
	flags = map[string]rntbd.Token{
		"X-Ms-Cosmos-Batch-Atomic": rntbd.RequestIsBatchAtomic, "X-Ms-Cosmos-Batch-Continue-On-Error": rntbd.RequestShouldBatchContinueOnError,
		"X-Ms-Documentdb-Script-Enable-Logging": rntbd.RequestEnableLogging, "X-Ms-Documentdb-Populatequotainfo": rntbd.RequestPopulateQuotaInfo,
		"X-Ms-Documentdb-Populatequerymetrics": rntbd.RequestPopulateQueryMetrics, "X-Ms-Exclude-System-Properties": rntbd.RequestExcludeSystemProperties,
		"X-Ms-Cosmos-Populateindexmetrics": rntbd.RequestPopulateIndexMetrics,
	}
	levels = []string{"Strong", "BoundedStaleness", "Session", "Eventual", "ConsistentPrefix"}
)

// token appends the token of a header.
func (f *frame) token(name, text string) {
	b := f.request.Tokens
	reads := f.request.Operation == rntbd.Read || f.request.Operation == rntbd.ReadFeed
	number := func(id rntbd.Token) {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < -1 {
			f.failed = true
		}
		b = rntbd.AppendULong(b, id, uint32(n))
	}
	switch name {
	case "X-Ms-Date":
		b = rntbd.AppendSmall(b, rntbd.RequestDate, text)
	case "X-Ms-Version":
		b = rntbd.AppendSmall(b, rntbd.RequestClientVersion, text)
	case "X-Ms-Max-Item-Count":
		number(rntbd.RequestPageSize)
	case "X-Ms-Documentdb-Expiry-Seconds":
		number(rntbd.RequestResourceTokenExpiry)
	case "If-Match", "If-None-Match":
		f.failed = f.failed || reads != (name == "If-None-Match")
		b = rntbd.AppendText(b, rntbd.RequestMatch, text)
	case "X-Ms-Start-Epk":
		b = rntbd.AppendBytes(b, rntbd.RequestStartEpk, text)
	case "X-Ms-End-Epk":
		b = rntbd.AppendBytes(b, rntbd.RequestEndEpk, text)
	case "X-Ms-Read-Key-Type":
		b = rntbd.AppendByte(b, rntbd.RequestReadFeedKeyType, rntbd.ByEffectivePartitionKeyRange)
	case "X-Ms-Consistency-Level":
		level := slices.Index(levels, text)
		f.failed = f.failed || level < 0 || f.request.Resource != rntbd.Document
		b = rntbd.AppendByte(b, rntbd.RequestConsistencyLevel, byte(level))
	case "Prefer":
		f.failed = f.failed || text != "return=minimal"
		b = rntbd.AppendByte(b, rntbd.RequestReturnPreference, rntbd.ReturnMinimal)
	case "X-Ms-Documentdb-Isquery", "X-Ms-Documentdb-Is-Upsert", "X-Ms-Cosmos-Is-Batch-Request", "Content-Type",
		"X-Ms-Documentdb-Query-Enablecrosspartition", "X-Ms-Cosmos-Query-Version": // the operation says it
	default:
		if id, ok := texts[name]; ok {
			f.failed = f.failed || len(text) > rntbd.MaxText
			b = rntbd.AppendText(b, id, text)
		} else if id, ok := flags[name]; ok {
			b = rntbd.AppendFlag(b, id, strings.EqualFold(text, "true"))
		} else {
			f.failed = true
		}
	}
	f.request.Tokens = b
}

// answerTexts are the headers of tokens of text, and answerNumbers those of numbers.
var (
	answerTexts = map[rntbd.Token]string{
		rntbd.ResponseContinuationToken: "X-Ms-Continuation", rntbd.ResponseETag: "Etag", rntbd.ResponsePartitionKeyRangeID: "X-Ms-Documentdb-Partitionkeyrangeid",
		rntbd.ResponseLogResults: "X-Ms-Documentdb-Script-Log-Results", rntbd.ResponseQueryExecutionInfo: "X-Ms-Cosmos-Query-Execution-Info",
		rntbd.ResponseStorageMaxResourceQuota: "X-Ms-Resource-Quota", rntbd.ResponseStorageResourceQuotaUsage: "X-Ms-Resource-Usage",
		rntbd.ResponseOwnerFullName: "X-Ms-Alt-Content-Path", rntbd.ResponseOwnerID: "X-Ms-Content-Path",
		rntbd.ResponseQueryMetrics: "X-Ms-Documentdb-Query-Metrics", rntbd.ResponseIndexUtilization: "X-Ms-Cosmos-Index-Utilization",
	}
	answerNumbers = map[rntbd.Token]string{
		rntbd.ResponseItemCount: "X-Ms-Item-Count", rntbd.ResponseSubStatus: "X-Ms-Substatus", rntbd.ResponseLSN: "Lsn",
		rntbd.ResponseItemLSN: "X-Ms-Item-Lsn", rntbd.ResponseRetryAfterMilliseconds: "X-Ms-Retry-After-Ms",
	}
)

// httpAnswer returns an answer in frames as the gateway would give it.
func httpAnswer(a *directclient.Response, target string) answer {
	h := http.Header{"X-Ms-Activity-Id": {a.Activity.String()}}
	for id, name := range answerTexts {
		if _, ok := a.Token(id); ok {
			h.Set(name, a.Text(id))
		}
	}
	for id, name := range answerNumbers {
		if _, ok := a.Token(id); ok {
			h.Set(name, strconv.FormatInt(a.Number(id), 10))
		}
	}
	charge, _ := a.Token(rntbd.ResponseRequestCharge)
	h.Set("X-Ms-Request-Charge", strconv.FormatFloat(charge.Double(), 'f', 2, 64))
	if session := a.Text(rntbd.ResponseSessionToken); session != "" {
		h.Set("X-Ms-Session-Token", a.Text(rntbd.ResponsePartitionKeyRangeID)+":"+session)
	}
	body := a.Body
	if a.Status >= http.StatusBadRequest {
		// An HTTP client gets an error in the gateway's form.
		body, _ = json.Marshal(map[string]string{
			"code":    strings.ReplaceAll(http.StatusText(a.Status), " ", ""),
			"message": "Message: " + string(a.Body) + "\r\nActivityId: " + a.Activity.String() + ", Request URI: " + target,
		})
	}
	return answer{a.Status, h, body, true}
}
