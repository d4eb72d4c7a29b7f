// SPDX-License-Identifier: MIT

// What queries took and which indexes they used, as clients ask for it.

package rest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"time"

	"github.com/mayflydb/mayfly/internal/engine"
	"github.com/mayflydb/mayfly/internal/query"
)

const (
	headerQueryMetrics = "X-Ms-Documentdb-Query-Metrics"
	headerIndexMetrics = "X-Ms-Cosmos-Index-Utilization"
	headerQueryInfo    = "X-Ms-Cosmos-Query-Execution-Info"

	askQueryMetrics   = "X-Ms-Documentdb-Populatequerymetrics"
	askIndexMetrics   = "X-Ms-Cosmos-Populateindexmetrics"
	askIndexMetricsV2 = "X-Ms-Cosmos-Populateindexmetrics-V2"
)

// maxIndexMetrics bounds how many indexes of one kind are told: a header has an end.
const maxIndexMetrics = 16

// setMetrics tells what a query took, in the forms that were asked for.
func (x *exchange) setMetrics(page *engine.QueryPage) {
	if x.flag(askQueryMetrics) {
		x.set(headerQueryMetrics, queryMetrics(page))
	}
	if page.Indexes != nil && x.flag(askIndexMetrics) {
		x.set(headerIndexMetrics, base64.StdEncoding.EncodeToString(indexMetrics(page.Indexes)))
	}
	if page.Indexes != nil && x.flag(askIndexMetricsV2) {
		x.set(headerIndexMetrics, url.PathEscape(string(indexMetricsV2(page.Indexes))))
	}
	// When they go on in the middle of rows that are equal in what they are ordered by,
	// clients skip rows by their rids, in the direction that they are told here.
	info := `{"reverseRidEnabled":false,"reverseIndexScan":false}`
	if page.LatestFirst {
		info = `{"reverseRidEnabled":false,"reverseIndexScan":true}`
	}
	x.set(headerQueryInfo, info)
}

// queryMetrics writes times and counts. The optimizer is a part of making the plan,
// and functions are a part of running it: their own times are told as none.
func queryMetrics(page *engine.QueryPage) string {
	t, w := &page.Times, &page.Work
	run := t.Index + t.Load + t.Run + t.Write
	return fmt.Sprintf("totalExecutionTimeInMs=%.2f;queryCompileTimeInMs=%.2f;queryLogicalPlanBuildTimeInMs=0.00;"+
		"queryPhysicalPlanBuildTimeInMs=%.2f;queryOptimizationTimeInMs=0.00;VMExecutionTimeInMs=%.2f;indexLookupTimeInMs=%.2f;"+
		"instructionCount=0;documentLoadTimeInMs=%.2f;systemFunctionExecuteTimeInMs=0.00;userFunctionExecuteTimeInMs=0.00;"+
		"retrievedDocumentCount=%d;retrievedDocumentSize=%d;outputDocumentCount=%d;outputDocumentSize=%d;writeOutputTimeInMs=%.2f;indexUtilizationRatio=%.2f",
		ms(page.Compiled+t.Plan+run), ms(page.Compiled), ms(t.Plan), ms(run), ms(t.Index), ms(t.Load),
		w.Items, w.Bytes, w.Rows, w.RowBytes, ms(t.Write), utilization(w))
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// utilization is how many of the items that were read are in the result.
func utilization(w *query.Work) float64 {
	if w.Items == 0 {
		return 1
	}
	return min(1, float64(w.Rows)/float64(w.Items))
}

type singleIndexMetric struct {
	FilterExpression, IndexSpec       string
	FilterPreciseSet, IndexPreciseSet bool
	IndexImpactScore                  string
}

type compositeIndexMetric struct {
	IndexSpecs       []string
	IndexPreciseSet  bool
	IndexImpactScore string
}

// indexMetrics writes the first form: four lists.
func indexMetrics(u *query.IndexUse) []byte {
	single := func(list []query.SingleIndex) []singleIndexMetric {
		out := []singleIndexMetric{}
		for _, i := range list[:min(len(list), maxIndexMetrics)] {
			out = append(out, singleIndexMetric{i.Filter, i.Spec, true, true, "High"})
		}
		return out
	}
	composite := func(list [][]string) []compositeIndexMetric {
		out := []compositeIndexMetric{}
		for _, specs := range list[:min(len(list), maxIndexMetrics)] {
			out = append(out, compositeIndexMetric{specs, false, "High"})
		}
		return out
	}
	return metricsJSON(struct {
		UtilizedSingleIndexes, PotentialSingleIndexes       []singleIndexMetric
		UtilizedCompositeIndexes, PotentialCompositeIndexes []compositeIndexMetric
	}{single(u.Utilized.Single), single(u.Potential.Single), composite(u.Utilized.Composite), composite(u.Potential.Composite)})
}

// indexMetricsV2 writes the second form: specifications alone.
func indexMetricsV2(u *query.IndexUse) []byte {
	type single struct{ IndexSpec string }
	type composite struct{ IndexSpecs []string }
	type indexes struct {
		SingleIndexes    []single
		CompositeIndexes []composite
	}
	all := func(i *query.Indexes) indexes {
		out := indexes{[]single{}, []composite{}}
		for _, s := range i.Single[:min(len(i.Single), maxIndexMetrics)] {
			out.SingleIndexes = append(out.SingleIndexes, single{s.Spec})
		}
		for _, specs := range i.Composite[:min(len(i.Composite), maxIndexMetrics)] {
			out.CompositeIndexes = append(out.CompositeIndexes, composite{specs})
		}
		return out
	}
	return metricsJSON(struct{ Utilized, Potential indexes }{all(&u.Utilized), all(&u.Potential)})
}

func metricsJSON(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic("rest: index metrics cannot be encoded: " + err.Error())
	}
	return raw
}
