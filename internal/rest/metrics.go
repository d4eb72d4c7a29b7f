// SPDX-License-Identifier: MIT

// What is counted of every request, and the page that shows it. Counting costs a
// request two looks at the clock and a few additions: the places where it is
// counted are found without a search, and nothing is allocated.

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
	"github.com/mayflydb/mayfly/internal/ru"
)

const (
	firstStatus = 200
	lastStatus  = 599
)

// What requests ask for, as a label tells it: the rows of the table, and these.
var (
	rows = len(api.Rows)
	// opUnknown is of a request that addresses nothing, or is refused before it is known
	// what it addresses, and opOther of one that no resource of its type can be asked.
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

// durationBuckets are in seconds: from a read out of memory to a request that
// waits.
var durationBuckets = []float64{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10}

// metrics counts requests.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	units    prometheus.Counter
	failures *prometheus.CounterVec // of authentication
	// The children of requests are made when they are first needed: most statuses
	// never come of most operations.
	counters  [][lastStatus - firstStatus + 1]atomic.Pointer[prometheus.Counter]
	durations []prometheus.Observer
	// scrapes is held by who reads the page: it is made for one at a time.
	scrapes *semaphore.Weighted
}

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mayfly_requests_total", Help: "Requests that were answered.",
		}, []string{"operation", "status"}),
		units: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "mayfly_request_units_total", Help: "Request units that clients were charged.",
		}),
		failures:  newFailureCounter(),
		counters:  make([][lastStatus - firstStatus + 1]atomic.Pointer[prometheus.Counter], operations),
		durations: make([]prometheus.Observer, operations),
		scrapes:   semaphore.NewWeighted(1),
	}
	durations := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "mayfly_request_duration_seconds", Help: "How long requests took, without Mayfly's own pages.", Buckets: durationBuckets,
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

// observe counts a request that was answered. One that was not, since its
// connection was cut, is not counted.
func (m *metrics) observe(x *exchange) {
	if x.status < firstStatus || x.status > lastStatus {
		return
	}
	m.counter(x.operation, x.status).Inc()
	if x.operation == opAdmin {
		return
	}
	m.durations[x.operation].Observe(time.Since(x.Began).Seconds())
	if x.status != http.StatusTooManyRequests { // as the answer says: nothing was done
		m.units.Add(float64(x.charged()))
	}
}

// charged is the charge that an answer states.
func (x *exchange) charged() ru.Units {
	if x.Answer.Charge == 0 {
		return ru.Metadata
	}
	return x.Answer.Charge
}

func (m *metrics) counter(op int, status int) prometheus.Counter {
	place := &m.counters[op][status-firstStatus]
	if c := place.Load(); c != nil {
		return *c
	}
	c := m.requests.WithLabelValues(operationName(op), strconv.Itoa(status))
	place.Store(&c)
	return c
}

// scrapeTimeout is how long it may take to look at all containers: a little less
// than Prometheus waits unless told otherwise.
const scrapeTimeout = 9 * time.Second

// serveMetrics shows the page. What is not counted as it happens is looked up for
// each reader, under one clock and for as long as the reader waits.
func (x *exchange) serveMetrics() error {
	if x.r.Method != http.MethodGet {
		return errMethod
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
	x.wrote, x.status = true, http.StatusOK
	promhttp.HandlerFor(prometheus.Gatherers{m.registry, moment}, promhttp.HandlerOpts{}).ServeHTTP(x.w, x.r)
	return nil
}
