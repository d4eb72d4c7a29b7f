// SPDX-License-Identifier: MIT

// Requests without a credential, or with a wrong one. Each connection may make
// maxFailuresAtOnce of them, and then one in a second. An attacker who tries keys faster
// needs many connections, and their number is limited. Only refusals wait: a client with
// a valid credential never does, on any connection.

package rest

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// maxFailuresAtOnce is more than a client with a wrong key makes: it has a connection
	// or two, and stops at the first refusal.
	maxFailuresAtOnce = 10
	failureEvery      = time.Second
)

// failureReasons are the labels of the errors by which authentication fails.
var failureReasons = []struct {
	err    error
	reason string
}{
	{errNoAuthorization, "missing"},
	{errBadAuthorization, "wrong"},
	{errDate, "date"},
	{errPrincipalDate, "date"},
	{errTokenExpired, "expired"},
}

func newFailureCounter() *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "mayfly_authentication_failures_total", Help: "Requests that were refused because their credential was missing or wrong.",
	}, []string{"reason"})
	for _, f := range failureReasons {
		c.WithLabelValues(f.reason) // so that the counter exists with value 0
	}
	return c
}

// unauthenticated counts a refused request, and delays its answer if there were many on
// its connection. It returns err.
func (x *exchange) unauthenticated(err error) error {
	for _, f := range failureReasons {
		if errors.Is(err, f.err) {
			x.h.metrics.failures.WithLabelValues(f.reason).Inc()
			break
		}
	}
	conn := connOf(x.r)
	if conn == nil {
		return err // not served by a Splitter
	}
	x.pause(conn.failed(time.Now()))
	return err
}

// failed records a failure, and returns how long its answer has to wait.
func (c *splitConn) failed(now time.Time) time.Duration {
	if c.paidUntil.Before(now) {
		c.paidUntil = now
	}
	c.paidUntil = c.paidUntil.Add(failureEvery)
	return c.paidUntil.Sub(now) - maxFailuresAtOnce*failureEvery
}
