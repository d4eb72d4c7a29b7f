// SPDX-License-Identifier: MIT

// Requests whose api.Credential is none, or no good. Each connection may make so many at
// once, and then one in a second: whoever tries keys out needs a connection for every
// try, and the table of connections has a limit. Only the answers that refuse wait, so
// that a client with a good api.Credential never does, on whatever connection.

package rest

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// maxFailuresAtOnce is more than a client makes that was given a wrong key: it has
	// a connection or two, and stops at the first refusal.
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
		Name: "mayfly_authentication_failures_total", Help: "Requests that were refused for the api.Credential that they had, or had not.",
	}, []string{"reason"})
	for _, f := range failureReasons {
		c.WithLabelValues(f.reason) // so that there is a 0 to compare with
	}
	return c
}

// unauthenticated counts a request that was refused, and holds the answer back if
// there were many on its connection. It returns err.
func (x *exchange) unauthenticated(err error) error {
	for _, f := range failureReasons {
		if errors.Is(err, f.err) {
			x.h.metrics.failures.WithLabelValues(f.reason).Inc()
			break
		}
	}
	conn := connOf(x.r)
	if conn == nil {
		return err // what serves the handler by other means has its own limits
	}
	x.pause(conn.failed(time.Now()))
	return err
}

// failed notes a failure, and returns how long its answer has to wait.
func (c *splitConn) failed(now time.Time) time.Duration {
	if c.paidUntil.Before(now) {
		c.paidUntil = now
	}
	c.paidUntil = c.paidUntil.Add(failureEvery)
	return c.paidUntil.Sub(now) - maxFailuresAtOnce*failureEvery
}
