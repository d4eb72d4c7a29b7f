// SPDX-License-Identifier: MIT

package alerts

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

const (
	scrapeEvery = 15 * time.Second
	scraped     = time.Hour
)

// sample is a value at one moment.
type sample struct {
	ms    int64
	value float64
}

func (s sample) ST() int64                     { return 0 }
func (s sample) T() int64                      { return s.ms }
func (s sample) F() float64                    { return s.value }
func (s sample) H() *histogram.Histogram       { return nil }
func (s sample) FH() *histogram.FloatHistogram { return nil }
func (s sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample           { return s }

// series is a metric with its labels over time: a value now, and how much it grew each
// second before.
type series struct {
	labels labels.Labels
	value  float64
	growth float64
}

// page has the series of a server, as if it had been scraped for an hour.
type page struct {
	now time.Time
	all []series
}

// parsePage parses a metrics page, and adds what Prometheus adds.
func parsePage(t *testing.T, text string) *page {
	t.Helper()
	p := expfmt.NewTextParser(model.UTF8Validation)
	families, err := p.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	out := &page{now: time.Now()}
	out.add("up", nil, 1)
	for name, f := range families {
		for _, m := range f.Metric {
			switch {
			case m.Gauge != nil:
				out.add(name, m.Label, m.Gauge.GetValue())
			case m.Counter != nil:
				out.add(name, m.Label, m.Counter.GetValue())
			case m.Untyped != nil:
				out.add(name, m.Label, m.Untyped.GetValue())
			case m.Histogram != nil:
				for _, b := range m.Histogram.Bucket {
					out.add(name+"_bucket", m.Label, float64(b.GetCumulativeCount()), "le", fmt.Sprint(b.GetUpperBound()))
				}
			}
		}
	}
	return out
}

func (p *page) add(name string, pairs []*dto.LabelPair, value float64, more ...string) {
	all := append([]string{labels.MetricName, name, "job", "mayfly", "instance", "here"}, more...)
	for _, l := range pairs {
		all = append(all, l.GetName(), l.GetValue())
	}
	p.all = append(p.all, series{labels: labels.FromStrings(all...), value: value})
}

// with returns the page with other values for a metric, if its labels have the given texts.
func (p *page) with(t *testing.T, change func(*series), texts ...string) *page {
	t.Helper()
	out := &page{p.now, slices.Clone(p.all)}
	found := false
	for i := range out.all {
		name := out.all[i].labels.String()
		if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(name, text) }) {
			change(&out.all[i])
			found = true
		}
	}
	if !found {
		t.Fatalf("no series has %q", texts)
	}
	return out
}

// Querier implements storage.Queryable.
func (p *page) Querier(_, _ int64) (storage.Querier, error) { return p, nil }

// Select implements storage.Querier.
func (p *page) Select(_ context.Context, _ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	set := &seriesSet{}
	for _, s := range p.all {
		if slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(s.labels.Get(m.Name)) }) {
			continue
		}
		var samples []chunks.Sample
		for ago := scraped; ago >= 0; ago -= scrapeEvery {
			samples = append(samples, sample{p.now.Add(-ago).UnixMilli(), s.value - s.growth*ago.Seconds()})
		}
		set.all = append(set.all, storage.NewListSeries(s.labels, samples))
	}
	return set
}

func (*page) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (*page) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (*page) Close() error { return nil }

// seriesSet implements storage.SeriesSet.
type seriesSet struct {
	all []storage.Series
	at  int
}

func (s *seriesSet) Next() bool                        { s.at++; return s.at <= len(s.all) }
func (s *seriesSet) At() storage.Series                { return s.all[s.at-1] }
func (s *seriesSet) Err() error                        { return nil }
func (s *seriesSet) Warnings() annotations.Annotations { return nil }
