// SPDX-License-Identifier: MIT

// Queries and query plans.

package api

import (
	"github.com/mayflydb/mayfly/internal/engine"
	"github.com/mayflydb/mayfly/internal/sql/clientplan"
)

// queryItems answers a query over a container's items.
func (c *Call) queryItems() (err error) {
	r, a := &c.Request, &c.Answer
	if r.Query, err = engine.ParseQuery(r.Body); err != nil {
		return err
	}
	r.Measure = r.QueryMetrics || r.IndexMetrics || r.IndexMetricsV2
	c.takeRoom()
	a.Answer, err = c.Service.Engine.QueryItems(c.Context, &r.Request)
	if err == nil && r.Optimistic {
		// .NET hoped that it need not merge anything. If there is more than this page, and
		// unless it is told so, it throws the page away, asks for a plan and begins anew.
		// The service tells it to with DISTINCT and GROUP BY, and the SDK's tests look.
		requires := "False"
		if a.Merged {
			requires = "True"
		}
		a.extra(RequiresDistribution, requires)
	}
	if err == nil {
		c.tellMetrics()
	}
	return c.items(err)
}

// planQuery answers a client that wants to know how to ask several ranges.
func (c *Call) planQuery() error {
	q, err := engine.ParseQuery(c.Request.Body)
	if err != nil {
		return err
	}
	of, plan, err := c.Service.Engine.QueryPlan(c.Context, c.Request.Target, q, clientplan.ParseFeatures(c.Request.Features))
	c.Answer.owned(of)
	switch {
	case err != nil && of != nil:
		return &planError{err}
	case err != nil:
		return err
	}
	return c.Answer.body(statusOK, plan)
}

// planError is a query of which there is no plan. People see from its text that it was
// the plan which a client did not get.
type planError struct{ err error }

func (e *planError) Error() string { return "plan the query: " + e.err.Error() }
func (e *planError) Unwrap() error { return e.err }

const planRefusal = ", Gateway Failed to Retrieve Query Plan"
