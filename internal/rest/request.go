// SPDX-License-Identifier: MIT

// Filling a request from its path, method and headers.

package rest

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/api"
	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/value"
)

// asked holds flags that only this protocol needs to tell requests apart, and texts that
// are parsed once it is known that the request needs them.
type asked struct {
	query, plan, batch, atomic, upsert bool

	maxItems, continuationLimit string
	changes, since              string

	manual, autoscale, tokenSeconds string
	toAutoscale, toManual           bool
}

// fill takes the request's fields from its path and headers. It refuses nothing: a wrong
// header only matters to requests that need it.
func (x *exchange) fill(rt *route) {
	r := &x.Request
	r.Database, r.Container, r.User, r.ID = rt.database, rt.container, rt.user, rt.id
	for name, values := range x.r.Header {
		if len(values) > 0 {
			x.fillHeader(name, values[0])
		}
	}
	r.Host = x.r.Host
	r.Resource, r.Verb = x.classify(rt)
	x.Row = api.Lookup(r.Resource, r.Verb)
}

// fillHeader stores one header. Its name is in net/http's spelling.
func (x *exchange) fillHeader(name, text string) {
	r := &x.Request
	switch name {
	case headerPartitionKey:
		r.PartitionKey = text
	case "X-Ms-Cosmos-Intended-Collection-Rid":
		r.IntendedRID = text
	case "If-Match":
		r.IfMatch = text
	case "If-None-Match":
		r.IfNoneMatch = text
	case headerSession:
		r.SessionToken = text
	case "X-Mayfly-Sliding-Ttl":
		r.SlidingTTL = text
	case headerVersion:
		r.Version = text
	case "X-Ms-Consistency-Level":
		r.Consistency = text
	case headerRange:
		r.Range = text
	case "X-Ms-Start-Epk":
		r.StartEPK = text
	case "X-Ms-End-Epk":
		r.EndEPK = text
	case headerMaxItems:
		x.asked.maxItems = text
	case headerContinuation:
		r.Continuation = text
	case "X-Ms-Documentdb-Responsecontinuationtokenlimitinkb":
		x.asked.continuationLimit = text
	case "X-Ms-Documentdb-Pre-Trigger-Include":
		r.PreTriggers = text
	case "X-Ms-Documentdb-Post-Trigger-Include":
		r.PostTriggers = text
	case "X-Ms-Cosmos-Supported-Query-Features":
		r.Features = text
	case "A-Im":
		x.asked.changes = text
	case "If-Modified-Since":
		x.asked.since = text
	case "X-Ms-Cosmos-Changefeed-Wire-Format-Version":
		r.Wrapped = text != ""
	case headerContentType:
		media, _, _ := strings.Cut(text, ";")
		x.asked.query = x.asked.query || strings.EqualFold(strings.TrimSpace(media), "application/query+json")
	case "X-Ms-Offer-Throughput":
		x.asked.manual = text
	case "X-Ms-Cosmos-Offer-Autopilot-Settings":
		x.asked.autoscale = text
	case "X-Ms-Documentdb-Expiry-Seconds":
		x.asked.tokenSeconds = text
	case "X-Ms-Cosmos-Supported-Serialization-Formats":
		r.BinaryAnswer = strings.EqualFold(strings.TrimSpace(text), "CosmosBinary")
	case "User-Agent":
		r.Relearns = strings.HasPrefix(text, "azsdk-python-cosmos")
	case "Prefer":
		r.Minimal = r.Minimal || strings.EqualFold(text, "return=minimal")
	case "X-Ms-Cosmos-Populate-Content-Response-On-Write":
		r.Minimal = r.Minimal || strings.EqualFold(text, "false")
	default:
		x.fillFlag(name, strings.EqualFold(text, "true"))
	}
}

// fillFlag stores a header that is true or false. SDKs spell true in several ways.
func (x *exchange) fillFlag(name string, set bool) {
	r, a := &x.Request, &x.asked
	switch name {
	case "X-Ms-Documentdb-Isquery", "X-Ms-Documentdb-Query":
		a.query = a.query || set
	case "X-Ms-Cosmos-Is-Query-Plan-Request":
		a.plan = set
	case "X-Ms-Cosmos-Is-Batch-Request":
		a.batch = set
	case "X-Ms-Cosmos-Batch-Atomic":
		a.atomic = set
	case "X-Ms-Documentdb-Is-Upsert":
		a.upsert = set
	case "X-Ms-Cosmos-Batch-Continue-On-Error":
		r.ContinueOnError = set
	case headerCrossPartition:
		r.CrossPartition = set
	case "X-Ms-Documentdb-Populatequerymetrics":
		r.QueryMetrics = set
	case "X-Ms-Cosmos-Populateindexmetrics":
		r.IndexMetrics = set
	case "X-Ms-Cosmos-Populateindexmetrics-V2":
		r.IndexMetricsV2 = set
	case "X-Ms-Cosmos-Query-Optimisticdirectexecute":
		r.Optimistic = set
	case "X-Mayfly-Merge":
		r.Merge = set
	case "X-Ms-Exclude-System-Properties":
		r.PlainItem = set
	case "X-Ms-Documentdb-Script-Enable-Logging":
		r.ScriptLog = set
	case headerToAutoscale:
		a.toAutoscale = set
	case headerToManual:
		a.toManual = set
	case "X-Ms-Documentdb-Populatequotainfo":
		r.QuotaInfo = set
	case "X-Ms-Documentdb-Populatepartitionstatistics":
		r.Statistics = set
	case "X-Ms-Cosmos-Populate-Analytical-Migration-Progress":
		r.AnalyticalProgress = set
	}
}

// classify returns the resource and the verb of a request.
func (x *exchange) classify(rt *route) (api.Resource, api.Verb) {
	method := x.r.Method
	switch {
	case rt.kind == api.PartitionKeys && method == http.MethodPost:
		return rt.kind, api.Delete
	case rt.kind == api.PartitionKeys:
	case rt.feed && method == http.MethodGet && rt.kind == api.Items && x.asked.changes != "":
		return rt.kind, api.Changes
	case rt.feed && method == http.MethodGet:
		return rt.kind, api.List
	case rt.feed && method == http.MethodPost:
		return rt.kind, x.posted(rt)
	case rt.feed:
	case method == http.MethodGet:
		return rt.kind, api.Read
	case method == http.MethodPost:
		return rt.kind, api.Execute
	case method == http.MethodPut:
		return rt.kind, api.Replace
	case method == http.MethodPatch:
		return rt.kind, api.Patch
	case method == http.MethodDelete:
		return rt.kind, api.Delete
	}
	return rt.kind, api.None
}

// posted returns the verb of a POST to a list.
func (x *exchange) posted(rt *route) api.Verb {
	a := &x.asked
	switch {
	case a.plan && rt.kind == api.Items:
		return api.QueryPlan
	case a.query:
		return api.Query
	case a.batch && rt.kind == api.Items && a.atomic:
		return api.Batch
	case a.batch && rt.kind == api.Items:
		return api.Bulk
	case a.upsert:
		return api.Upsert
	}
	return api.Create
}

// parse parses the texts that the request needs.
func (x *exchange) parse() (err error) {
	r, a := &x.Request, &x.asked
	switch r.Verb {
	case api.List, api.Changes, api.Query:
		if err := x.parseMaxItems(); err != nil {
			return err
		}
	}
	switch {
	case r.Resource == api.AccountResource:
		r.Endpoint = x.address("/")
	case r.Verb == api.Query && r.Resource == api.Items && a.changes != "":
		return api.Invalid("A change feed cannot be read with a query. Read it without one, and filter the changes.")
	case r.Verb == api.Query && r.Resource == api.Items:
		err = x.parseContinuationLimit()
	case r.Verb == api.Changes:
		err = r.SetFeed(a.changes, a.since)
	case r.Resource == api.Permissions:
		err = x.parseTokenExpiry()
	case r.Resource == api.Offers && r.Verb == api.Replace:
		r.Migrate, err = x.migration()
	case x.Row.Verb == api.Create && (r.Resource == api.Databases || r.Resource == api.Containers):
		r.Throughput, err = x.throughput()
	}
	return err
}

// parseMaxItems parses the page size.
func (x *exchange) parseMaxItems() error {
	text := x.asked.maxItems
	if text == "" {
		return nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < -1 {
		return api.Invalid("The value '" + value.Clip(text) + "' of the header x-ms-max-item-count is invalid. Ensure to provide a positive integer, or -1.")
	}
	x.Request.SetMaxItems(n)
	return nil
}

// parseContinuationLimit parses the longest continuation that the client accepts.
func (x *exchange) parseContinuationLimit() error {
	text := x.asked.continuationLimit
	if text == "" {
		return nil
	}
	limit, err := strconv.Atoi(text)
	if err != nil {
		return api.ErrContinuationLimit
	}
	return x.Request.SetContinuationLimit(limit)
}

// Headers of an offer's replace that ask for the other kind of throughput.
const (
	headerToAutoscale = "X-Ms-Cosmos-Migrate-Offer-To-Autopilot"
	headerToManual    = "X-Ms-Cosmos-Migrate-Offer-To-Manual-Throughput"
)

// migration parses whether the replace of an offer asks for the other kind of throughput.
func (x *exchange) migration() (catalog.Migration, error) {
	switch toAutoscale, toManual := x.asked.toAutoscale, x.asked.toManual; {
	case toAutoscale && toManual:
		return 0, api.Invalid("The headers " + headerToAutoscale + " and " + headerToManual + " cannot be given together.")
	case toAutoscale:
		return catalog.ToAutoscale, nil
	case toManual:
		return catalog.ToManual, nil
	}
	return catalog.NoMigration, nil
}

// parseTokenExpiry parses how long the resource tokens in the answer are valid.
func (x *exchange) parseTokenExpiry() error {
	text, seconds := x.asked.tokenSeconds, api.DefaultTokenSeconds
	if text != "" {
		var err error
		if seconds, err = strconv.Atoi(text); err != nil {
			seconds = -1 // refused as too short
		}
	}
	return x.Request.SetTokenSeconds(seconds, text, time.Now())
}

// throughput parses the throughput of a create.
func (x *exchange) throughput() (catalog.Throughput, error) {
	manual, auto := x.asked.manual, x.asked.autoscale
	switch {
	case manual != "" && auto != "":
		return catalog.Throughput{}, api.Invalid("Either x-ms-offer-throughput or x-ms-cosmos-offer-autopilot-settings can be given, not both.")
	case manual != "":
		n, err := strconv.Atoi(manual)
		if err != nil {
			return catalog.Throughput{}, api.Invalid("The value '" + value.Clip(manual) + "' of the header x-ms-offer-throughput is not an integer.")
		}
		return catalog.ManualThroughput(n)
	case auto != "":
		t, err := catalog.AutoscaleThroughput([]byte(auto))
		if errors.Is(err, catalog.ErrAutoscaleSettings) {
			return t, api.Invalid("The value '" + value.Clip(auto) + "' of the header x-ms-cosmos-offer-autopilot-settings is invalid. Ensure to provide, for example, {\"maxThroughput\":4000}.")
		}
		return t, err
	}
	return catalog.Throughput{}, nil
}
