// SPDX-License-Identifier: MIT

// What is counted for every request, and the page that shows it. Counting costs a request
// two readings of the clock and a few additions: counters are found by index, and nothing
// is allocated.

package rest

import (
	"context"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/semaphore"

	"github.com/mayflydb/mayfly/internal/api"
)

const (
	firstStatus = 200
	lastStatus  = 599
)

// Operations as labels name them: the rows of the table, and these.
var (
	rows = len(api.Rows)
	// opUnknown is for a request that addresses nothing, or is refused before its path is
	// parsed. opOther is for a request that has no row in the table.
	opUnknown, opAdmin, opAddressResolve, opOther = rows, rows + 1, rows + 2, rows + 3
	operations                                    = rows + len(otherOperations)

	otherOperations = []string{"unknown", "admin", "address_resolve", "other"}
)

func operationName(op int) string {
	if op < rows {
		return api.Rows[op].Name
	}
	return otherOperations[op-rows]
}

// durationBuckets are in seconds, from a read out of memory to a request that waits.
var durationBuckets = []float64{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10}

// metrics counts requests.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	units    prometheus.Counter
	failures *prometheus.CounterVec // of authentication
	// The counters of requests are made when they are first needed, since most operations
	// never end with most statuses.
	counters  [][lastStatus - firstStatus + 1]atomic.Pointer[prometheus.Counter]
	durations []prometheus.Observer
	// scrapes is held while a page is made: one at a time.
	scrapes *semaphore.Weighted
}

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mayfly_requests_total", Help: "Requests that were answered.",
		}, []string{"operation", "status"}),
		units: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "mayfly_request_units_total", Help: "Request units charged to clients.",
		}),
		failures:  newFailureCounter(),
		counters:  make([][lastStatus - firstStatus + 1]atomic.Pointer[prometheus.Counter], operations),
		durations: make([]prometheus.Observer, operations),
		scrapes:   semaphore.NewWeighted(1),
	}
	durations := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "mayfly_request_duration_seconds", Help: "Duration of requests, except those for Mayfly's own pages.", Buckets: durationBuckets,
	}, []string{"operation"})
	for op := range m.durations {
		if op != opAdmin {
			m.durations[op] = durations.WithLabelValues(operationName(op))
		}
	}
	m.registry.MustRegister(m.requests, m.units, m.failures, durations,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// observe counts a request that was answered, and has the log get its line.
func (h *Handler) observe(x *exchange) { h.ended(&x.Call, x.operation, x.status) }

// ended records how a request of any transport ended.
func (h *Handler) ended(c *api.Call, op, status int) {
	took := time.Since(c.Began)
	h.metrics.count(c, op, status, took)
	h.service.Journal.Ended(c, status, took)
}

// count counts a request. One whose connection was aborted is not counted.
func (m *metrics) count(c *api.Call, op, status int, took time.Duration) {
	if status < firstStatus || status > lastStatus {
		return
	}
	m.counter(op, status).Inc()
	if op == opAdmin {
		return
	}
	m.durations[op].Observe(took.Seconds())
	if status != http.StatusTooManyRequests { // its charge is 0, since nothing was executed
		m.units.Add(float64(c.Charged()))
	}
}

func (m *metrics) counter(op int, status int) prometheus.Counter {
	cell := &m.counters[op][status-firstStatus]
	if c := cell.Load(); c != nil {
		return *c
	}
	c := m.requests.WithLabelValues(operationName(op), strconv.Itoa(status))
	cell.Store(&c)
	return c
}

// scrapeTimeout is how long reading the figures of all containers may take: a little less
// than Prometheus's default timeout.
const scrapeTimeout = 9 * time.Second

// serveMetrics serves the metrics page. Figures that are not counted as they happen are
// read for each page, until its client gives up.
func (x *exchange) serveMetrics() error {
	if x.r.Method != http.MethodGet {
		return api.ErrMethod
	}
	ctx, cancel := context.WithTimeout(x.r.Context(), scrapeTimeout)
	defer cancel()
	m := x.h.metrics
	if err := m.scrapes.Acquire(ctx, 1); err != nil {
		return err
	}
	defer m.scrapes.Release(1)
	s, err := takeScrape(ctx, x.h)
	if err != nil {
		return err
	}
	moment := prometheus.NewRegistry()
	if err := moment.Register(s); err != nil {
		return err
	}
	x.setCommon()
	x.placeFields()
	x.wrote, x.status = true, http.StatusOK
	promhttp.HandlerFor(prometheus.Gatherers{m.registry, moment}, promhttp.HandlerOpts{}).ServeHTTP(x.w, x.r)
	return nil
}
