// SPDX-License-Identifier: MIT

// What queries took and which indexes they used, as clients ask for it.

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

// A header has an end: maxIndexMetrics bounds how many indexes of one kind are told, and
// maxIndexMetricBytes how long all of them together are. Python takes no line of more than
// 64 KiB, and an index has as long a name as its path.
const (
	maxIndexMetrics     = 16
	maxIndexMetricBytes = 48 << 10
)

// headerRoom is what is left of a header.
type headerRoom int

// told returns the first of the indexes of one kind that there is room for, each of which
// takes so many bytes.
func told[T any](room *headerRoom, list []T, bytes func(T) int) []T {
	for i, index := range list[:min(len(list), maxIndexMetrics)] {
		if *room -= headerRoom(bytes(index)); *room < 0 {
			return list[:i]
		}
	}
	return list[:min(len(list), maxIndexMetrics)]
}

// tellMetrics tells what a query took, in the forms that were asked for.
func (c *Call) tellMetrics() {
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
	// When they go on in the middle of rows that are equal in what they are ordered by,
	// clients skip rows by their rids, in the direction that they are told here.
	info := `{"reverseRidEnabled":false,"reverseIndexScan":false}`
	if page.LatestFirst {
		info = `{"reverseRidEnabled":false,"reverseIndexScan":true}`
	}
	page.extra(QueryExecution, info)
}

// queryMetrics writes times and counts. The optimizer is a part of making the plan,
// and functions are a part of running it: their own times are told as none.
//
// Clients take what the engine does itself for the rest of the execution when its parts
// are taken off, and none of these is nothing if it happened. So the parts are rounded up
// to what can be told, and their sums are of what is told.
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

// metricTime is a time in hundredths of a millisecond, which is what metrics tell.
type metricTime int64

func (h metricTime) String() string { return fmt.Sprintf("%d.%02d", h/100, h%100) }

func upToHundredths(d time.Duration) metricTime {
	const one = time.Millisecond / 100
	return metricTime((d + one - 1) / one)
}

// atLeastOne is for what happens in every query, though the clock may not have moved.
func atLeastOne(d time.Duration) metricTime { return max(1, upToHundredths(d)) }

// utilization is how many of the items that were read the filter has let pass: what the
// index was good for. If none was read, it was good for all.
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
		for _, i := range told(&room, list, func(s query.SingleIndex) int { return base64.StdEncoding.EncodedLen(len(s.Spec) + len(s.Filter)) }) {
			out = append(out, singleIndexMetric{i.Filter, i.Spec, true, true, "High"})
		}
		return out
	}
	composite := func(list [][]string) []compositeIndexMetric {
		out := []compositeIndexMetric{}
		for _, specs := range told(&room, list, func(specs []string) int { return base64.StdEncoding.EncodedLen(len(strings.Join(specs, ""))) }) {
			out = append(out, compositeIndexMetric{specs, false, "High"})
		}
		return out
	}
	return metricsJSON(struct {
		UtilizedSingleIndexes, PotentialSingleIndexes       []singleIndexMetric
		UtilizedCompositeIndexes, PotentialCompositeIndexes []compositeIndexMetric
	}{single(u.Utilized.Single), single(u.Potential.Single), composite(u.Utilized.Composite), composite(u.Potential.Composite)})
}

// indexMetricsV2 writes the second form: specifications alone, each of them once.
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
		for _, s := range told(&room, i.Single, func(s query.SingleIndex) int { return len(url.PathEscape(s.Spec)) }) {
			if spec := (single{s.Spec}); !slices.Contains(out.SingleIndexes, spec) {
				out.SingleIndexes = append(out.SingleIndexes, spec)
			}
		}
		for _, specs := range told(&room, i.Composite, func(specs []string) int { return len(url.PathEscape(strings.Join(specs, ""))) }) {
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
