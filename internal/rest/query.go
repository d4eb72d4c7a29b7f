// SPDX-License-Identifier: MIT

// Queries and query plans.

package rest

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/mayflydb/mayfly/internal/engine"
	"github.com/mayflydb/mayfly/internal/query"
	"github.com/mayflydb/mayfly/internal/sql"
	"github.com/mayflydb/mayfly/internal/value"
)

const (
	headerQueryMetrics = "X-Ms-Documentdb-Query-Metrics"
	headerIndexMetrics = "X-Ms-Cosmos-Index-Utilization"
	headerQueryInfo    = "X-Ms-Cosmos-Query-Execution-Info"
)

// queryItems answers a query over a container's items.
func (x *exchange) queryItems(rt *route) error {
	q, done, err := x.query()
	defer done()
	if err != nil {
		return err
	}
	most, err := x.maxItems()
	if err != nil {
		return err
	}
	limit, err := x.continuationLimit()
	if err != nil {
		return err
	}
	page, err := x.h.engine.QueryItems(x.r.Context(), engine.ItemQuery{
		Target: x.target(rt), Query: q, MaxItems: most,
		Range:    x.header(headerRange),
		StartEPK: x.header("X-Ms-Start-Epk"), EndEPK: x.header("X-Ms-End-Epk"),
		CrossPartition: x.flag("X-Ms-Documentdb-Query-Enablecrosspartition"),
		Continuation:   x.header(headerContinuation), MaxContinuationKB: limit,
		SessionToken: x.header(headerSession),
	})
	x.charge = page.Charge
	if page.Container != nil {
		x.setOwner(page.Container)
	}
	if err != nil {
		return err
	}
	x.setPosition(page.Partition, page.LSN)
	if page.Continuation != "" {
		x.set(headerContinuation, page.Continuation)
	}
	x.setMetrics(&page.Work)
	x.writeList(page.Container.RIDText, "Documents", page.Rows, page.Count)
	return nil
}

// continuationLimit reads how long a continuation the client takes, in KB.
func (x *exchange) continuationLimit() (int, error) {
	text := x.header("X-Ms-Documentdb-Responsecontinuationtokenlimitinkb")
	if text == "" {
		return 0, nil
	}
	limit, err := strconv.Atoi(text)
	if err != nil || limit <= 0 || limit > maxContinuationLimitKB {
		return 0, &badRequestError{"Please pass in a valid continuation token size limit which must be a positive integer"}
	}
	return limit, nil
}

// maxContinuationLimitKB is far more than any continuation has.
const maxContinuationLimitKB = 1 << 20

// query reads the text and the parameters of a query.
func (x *exchange) query() (engine.Query, func(), error) {
	body, done, err := x.body()
	if err != nil {
		return engine.Query{}, done, err
	}
	q, err := parseQuery(body)
	return q, done, err
}

// maxQueryParameters bounds the parameters of a query.
const maxQueryParameters = 10_000

// parseQuery reads {"query": …, "parameters": [{"name": …, "value": …}, …]}.
func parseQuery(body []byte) (engine.Query, error) {
	refused := func(what string) error {
		return &badRequestError{"The input content is invalid: a query is {\"query\":\"SELECT …\",\"parameters\":[{\"name\":\"@x\",\"value\":1}]}, and " + what + "."}
	}
	o, err := value.ParseObject(body)
	if err != nil {
		return engine.Query{}, err
	}
	raw, _ := o.Lookup("query")
	text, _ := value.FromJSON(raw)
	q := engine.Query{Params: map[string]sql.Value{}}
	var ok bool
	if q.Text, ok = text.Text(); !ok {
		return engine.Query{}, refused("'query' must be a string")
	}
	list, found := o.Lookup("parameters")
	if !found || string(list) == "null" {
		return q, nil
	}
	elements, ok := value.Elements(list)
	if !ok || len(elements) > maxQueryParameters {
		return engine.Query{}, refused("'parameters' must be a list")
	}
	for _, raw := range elements {
		p, err := value.ParseObject(raw)
		if err != nil {
			return engine.Query{}, refused("each of the parameters must be an object")
		}
		nameText, _ := p.Lookup("name")
		v, _ := value.FromJSON(nameText)
		name, ok := v.Text()
		if !ok || !strings.HasPrefix(name, "@") {
			return engine.Query{}, refused("the name of a parameter must be a string that begins with @")
		}
		if given, ok := p.Lookup("value"); ok {
			q.Params[name] = sql.Raw(given)
		} else {
			q.Params[name] = sql.Undefined()
		}
	}
	return q, nil
}

// queryPlan answers a client that wants to know how to ask several ranges.
func (x *exchange) queryPlan(rt *route) error {
	q, done, err := x.query()
	defer done()
	if err != nil {
		return err
	}
	features := sql.ParseFeatures(x.header("X-Ms-Cosmos-Supported-Query-Features"))
	c, plan, err := x.h.engine.QueryPlan(x.target(rt), q, features)
	if c != nil {
		x.setOwner(c)
		if err != nil {
			return &planError{err}
		}
	}
	if err != nil {
		return err
	}
	x.write(http.StatusOK, plan)
	return nil
}

// planError is a query of which there is no plan. Clients see from its text that it
// was the plan which they did not get.
type planError struct{ err error }

func (e *planError) Error() string { return "plan the query: " + e.err.Error() }
func (e *planError) Unwrap() error { return e.err }

const planRefusal = "Gateway Failed to Retrieve Query Plan: "

// setMetrics tells what a query took, in the forms that were asked for. Times are
// not measured apart from each other, and told as none.
func (x *exchange) setMetrics(w *query.Work) {
	if x.flag("X-Ms-Documentdb-Populatequerymetrics") {
		x.set(headerQueryMetrics, fmt.Sprintf("totalExecutionTimeInMs=0.00;queryCompileTimeInMs=0.00;queryLogicalPlanBuildTimeInMs=0.00;"+
			"queryPhysicalPlanBuildTimeInMs=0.00;queryOptimizationTimeInMs=0.00;VMExecutionTimeInMs=0.00;indexLookupTimeInMs=0.00;"+
			"instructionCount=0;documentLoadTimeInMs=0.00;systemFunctionExecuteTimeInMs=0.00;userFunctionExecuteTimeInMs=0.00;"+
			"retrievedDocumentCount=%d;retrievedDocumentSize=%d;outputDocumentCount=%d;outputDocumentSize=%d;writeOutputTimeInMs=0.00;indexUtilizationRatio=%.2f",
			w.Items, w.Bytes, w.Rows, w.RowBytes, utilization(w)))
	}
	if x.flag("X-Ms-Cosmos-Populateindexmetrics") {
		x.set(headerIndexMetrics, base64.StdEncoding.EncodeToString([]byte(indexMetrics)))
	}
	if x.flag("X-Ms-Cosmos-Populateindexmetrics-V2") {
		x.set(headerIndexMetrics, url.PathEscape(indexMetricsV2))
	}
	x.set(headerQueryInfo, `{"reverseRidEnabled":false,"reverseIndexScan":false}`)
}

// What is told of indexes: that of the partition key finds the items.
const (
	indexMetrics = `{"UtilizedSingleIndexes":[{"FilterExpression":"","IndexSpec":"/_epk/?","FilterPreciseSet":true,"IndexPreciseSet":true,"IndexImpactScore":"High"}],` +
		`"PotentialSingleIndexes":[],"UtilizedCompositeIndexes":[],"PotentialCompositeIndexes":[]}`
	indexMetricsV2 = `{"Utilized":{"SingleIndexes":[{"IndexSpec":"/_epk/?"}],"CompositeIndexes":[]},"Potential":{"SingleIndexes":[],"CompositeIndexes":[]}}`
)

// utilization is how many of the items that were read are in the result.
func utilization(w *query.Work) float64 {
	if w.Items == 0 {
		return 1
	}
	return min(1, float64(w.Rows)/float64(w.Items))
}
