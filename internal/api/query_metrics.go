// SPDX-License-Identifier: MIT

// Query metrics and index metrics, for requests that ask for them.

package api

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/query"
)

// maxIndexMetrics bounds how many indexes of one kind the header lists, and
// maxIndexMetricBytes their total length. Python accepts no header line of more than 64
// KiB, and an index's name is as long as its path.
const (
	maxIndexMetrics     = 16
	maxIndexMetricBytes = 48 << 10
)

// headerRoom is the number of bytes left in the header.
type headerRoom int

// fitting returns the first indexes of a list that there is room for. bytes returns the
// length of one.
func fitting[T any](room *headerRoom, list []T, bytes func(T) int) []T {
	for i, index := range list[:min(len(list), maxIndexMetrics)] {
		if *room -= headerRoom(bytes(index)); *room < 0 {
			return list[:i]
		}
	}
	return list[:min(len(list), maxIndexMetrics)]
}

// addMetrics adds the metrics in the forms that the request asks for.
func (c *Call) addMetrics() {
	r, page := &c.Request, &c.Answer
	if r.QueryMetrics {
		page.extra(QueryMetrics, queryMetrics(page))
	}
	switch {
	case page.Indexes == nil:
	case r.IndexMetricsV2:
		page.extra(IndexUtilization, url.PathEscape(string(indexMetricsV2(page.Indexes))))
	case r.IndexMetrics:
		page.extra(IndexUtilization, base64.StdEncoding.EncodeToString(indexMetrics(page.Indexes)))
	}
	// A client that resumes among rows with equal ORDER BY values skips rows by their
	// rids, in the direction given here.
	info := `{"reverseRidEnabled":false,"reverseIndexScan":false}`
	if page.LatestFirst {
		info = `{"reverseRidEnabled":false,"reverseIndexScan":true}`
	}
	page.extra(QueryExecution, info)
}

// queryMetrics writes times and counts. The optimizer's time is part of the plan's, and
// the functions' time part of the execution's, so both are given as 0.
//
// Clients subtract the parts from the total to get the engine's own time, and take a part
// of 0 as a step that did not happen. So each part that happened is rounded up to the
// smallest unit, and totals are sums of the rounded parts.
func queryMetrics(page *Answer) string {
	t, w := &page.Times, &page.Work
	compile, plan, run := atLeastOne(page.Compiled), upToHundredths(t.Plan), atLeastOne(t.Run)
	index, load, write := upToHundredths(t.Index), upToHundredths(t.Load), upToHundredths(t.Write)
	if w.IndexRows > 0 {
		index = max(index, 1)
	}
	if w.Items > 0 {
		load = max(load, 1)
	}
	execution := index + load + run + write
	return fmt.Sprintf("totalExecutionTimeInMs=%v;queryCompileTimeInMs=%v;queryLogicalPlanBuildTimeInMs=0.00;"+
		"queryPhysicalPlanBuildTimeInMs=%v;queryOptimizationTimeInMs=0.00;VMExecutionTimeInMs=%v;indexLookupTimeInMs=%v;"+
		"instructionCount=0;documentLoadTimeInMs=%v;systemFunctionExecuteTimeInMs=0.00;userFunctionExecuteTimeInMs=0.00;"+
		"retrievedDocumentCount=%d;retrievedDocumentSize=%d;outputDocumentCount=%d;outputDocumentSize=%d;writeOutputTimeInMs=%v;indexUtilizationRatio=%.2f",
		compile+plan+execution, compile, plan, execution, index, load,
		w.Items, w.Bytes, w.Rows, w.RowBytes, write, utilization(w))
}

// metricTime is a time in hundredths of a millisecond, the precision of the metrics.
type metricTime int64

func (h metricTime) String() string { return fmt.Sprintf("%d.%02d", h/100, h%100) }

func upToHundredths(d time.Duration) metricTime {
	const one = time.Millisecond / 100
	return metricTime((d + one - 1) / one)
}

// atLeastOne is for steps of every query, which may take less than a tick of the clock.
func atLeastOne(d time.Duration) metricTime { return max(1, upToHundredths(d)) }

// utilization is the share of the items read that passed the filter. It is 1 if no item
// was read.
func utilization(w *query.Work) float64 {
	if w.Items == 0 {
		return 1
	}
	return float64(w.Matched) / float64(w.Items)
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
	room := headerRoom(maxIndexMetricBytes)
	single := func(list []query.SingleIndex) []singleIndexMetric {
		out := []singleIndexMetric{}
		for _, i := range fitting(&room, list, func(s query.SingleIndex) int { return base64.StdEncoding.EncodedLen(len(s.Spec) + len(s.Filter)) }) {
			out = append(out, singleIndexMetric{i.Filter, i.Spec, true, true, "High"})
		}
		return out
	}
	composite := func(list [][]string) []compositeIndexMetric {
		out := []compositeIndexMetric{}
		for _, specs := range fitting(&room, list, func(specs []string) int { return base64.StdEncoding.EncodedLen(len(strings.Join(specs, ""))) }) {
			out = append(out, compositeIndexMetric{specs, false, "High"})
		}
		return out
	}
	return metricsJSON(struct {
		UtilizedSingleIndexes, PotentialSingleIndexes       []singleIndexMetric
		UtilizedCompositeIndexes, PotentialCompositeIndexes []compositeIndexMetric
	}{single(u.Utilized.Single), single(u.Potential.Single), composite(u.Utilized.Composite), composite(u.Potential.Composite)})
}

// indexMetricsV2 writes the second form: only specifications, each of them once.
func indexMetricsV2(u *query.IndexUse) []byte {
	type single struct{ IndexSpec string }
	type composite struct {
		IndexSpecs       []string
		IndexImpactScore string
	}
	type indexes struct {
		SingleIndexes    []single
		CompositeIndexes []composite
	}
	room := headerRoom(maxIndexMetricBytes)
	all := func(i *query.Indexes) indexes {
		out := indexes{[]single{}, []composite{}}
		for _, s := range fitting(&room, i.Single, func(s query.SingleIndex) int { return len(url.PathEscape(s.Spec)) }) {
			if spec := (single{s.Spec}); !slices.Contains(out.SingleIndexes, spec) {
				out.SingleIndexes = append(out.SingleIndexes, spec)
			}
		}
		for _, specs := range fitting(&room, i.Composite, func(specs []string) int { return len(url.PathEscape(strings.Join(specs, ""))) }) {
			out.CompositeIndexes = append(out.CompositeIndexes, composite{specs, "High"})
		}
		return out
	}
	return metricsJSON(struct{ UtilizedIndexes, PotentialIndexes indexes }{all(&u.Utilized), all(&u.Potential)})
}

func metricsJSON(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic("api: index metrics cannot be encoded: " + err.Error())
	}
	return raw
}
