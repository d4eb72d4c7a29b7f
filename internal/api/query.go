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
	if r.Merge {
		a.Answer, err = c.Service.Engine.QueryMerged(c.Context, &r.Request)
	} else {
		c.takeRoom()
		a.Answer, err = c.Service.Engine.QueryItems(c.Context, &r.Request)
	}
	if err == nil && r.Optimistic {
		// .NET sent the query without a plan, and hopes that no merging is needed. If
		// there are more pages, and the answer does not say False here, the SDK drops the
		// page, asks for a plan and starts over. The service says True for DISTINCT and
		// GROUP BY, and the SDK's tests check it.
		requires := "False"
		if a.Merged {
			requires = "True"
		}
		a.extra(RequiresDistribution, requires)
	}
	if err == nil {
		c.addMetrics()
	}
	return c.items(err)
}

// planQuery answers with the plan by which a client queries several ranges.
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

// planError is an error of planning. Its text shows that the client asked for a plan, and
// not for rows.
type planError struct{ err error }

func (e *planError) Error() string { return "plan the query: " + e.err.Error() }
func (e *planError) Unwrap() error { return e.err }

const planRefusal = ", Gateway Failed to Retrieve Query Plan"
