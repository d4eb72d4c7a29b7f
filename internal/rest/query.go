// SPDX-License-Identifier: MIT

// Queries and query plans.

package rest

import (
	"net/http"
	"strconv"

	"github.com/mayflydb/mayfly/internal/engine"
	"github.com/mayflydb/mayfly/internal/sql"
)

// queryItems answers a query over a container's items.
func (x *exchange) queryItems(rt *route) error {
	q, err := x.query()
	if err != nil {
		return err
	}
	most, err := x.maxItems()
	if err != nil {
		return err
	}
	limit, err := x.continuationLimit()
	if err != nil {
		return err
	}
	room := x.h.takeRoom()
	page, err := x.h.engine.QueryItems(x.r.Context(), &engine.Request{
		Target: x.target(rt), Query: q, MaxItems: most,
		Range:    x.header(headerRange),
		StartEPK: x.header("X-Ms-Start-Epk"), EndEPK: x.header("X-Ms-End-Epk"),
		CrossPartition: x.flag(headerCrossPartition),
		Continuation:   x.header(headerContinuation), MaxContinuationKB: limit,
		Measure:      x.flag(askQueryMetrics) || x.flag(askIndexMetrics) || x.flag(askIndexMetricsV2),
		SessionToken: x.header(headerSession), Room: room.rows, Memory: &x.share,
	})
	defer x.h.leaveRoom(room, page.Rows)
	x.charge = page.Charge
	if page.Container != nil {
		x.setOwner(page.Container)
	}
	if err != nil {
		return err
	}
	x.setPosition(page.Partition, page.LSN)
	if page.Continuation != "" {
		x.set(headerContinuation, page.Continuation)
	}
	if x.flag("X-Ms-Cosmos-Query-Optimisticdirectexecute") {
		// .NET hoped that it need not merge anything. If there is more than this page, and
		// unless it is told so, it throws the page away, asks for a plan and begins anew.
		// The service tells it to with DISTINCT and GROUP BY, and the SDK's tests look.
		requires := "False"
		if page.Merged {
			requires = "True"
		}
		x.set("X-Ms-Cosmos-Query-Requiresdistribution", requires)
	}
	x.setMetrics(&page)
	x.writeList(page.Container.RIDText, "Documents", page.Rows, page.Count)
	return nil
}

// roomForRows is memory for the rows of a page. It is used again when they are sent.
type roomForRows struct {
	rows []byte
}

// maxKeptRoom is the largest that is kept.
const maxKeptRoom = 64 << 10

func (h *Handler) takeRoom() *roomForRows {
	room, _ := h.rooms.Get().(*roomForRows)
	if room == nil {
		room = &roomForRows{}
	}
	return room
}

// leaveRoom leaves the memory of a page, if that is more than there was.
func (h *Handler) leaveRoom(room *roomForRows, rows []byte) {
	if cap(rows) > cap(room.rows) && cap(rows) <= maxKeptRoom {
		room.rows = rows
	}
	h.rooms.Put(room)
}

// continuationLimit reads how long a continuation the client takes, in KB.
func (x *exchange) continuationLimit() (int, error) {
	text := x.header("X-Ms-Documentdb-Responsecontinuationtokenlimitinkb")
	if text == "" {
		return 0, nil
	}
	limit, err := strconv.Atoi(text)
	if err == nil && limit == 0 {
		return 0, engine.ErrContinuationLimit // no continuation is as short
	}
	if err != nil || limit < 0 || limit > maxContinuationLimitKB {
		return 0, &badRequestError{"Please pass in a valid continuation token size limit which must be a positive integer"}
	}
	return limit, nil
}

// maxContinuationLimitKB is far more than any continuation has.
const maxContinuationLimitKB = 1 << 20

// query reads the text and the parameters of a query.
func (x *exchange) query() (engine.Query, error) {
	body, err := x.body()
	if err != nil {
		return engine.Query{}, err
	}
	return engine.ParseQuery(body)
}

// queryPlan answers a client that wants to know how to ask several ranges.
func (x *exchange) queryPlan(rt *route) error {
	q, err := x.query()
	if err != nil {
		return err
	}
	features := sql.ParseFeatures(x.header("X-Ms-Cosmos-Supported-Query-Features"))
	c, plan, err := x.h.engine.QueryPlan(x.r.Context(), x.target(rt), q, features)
	if c != nil {
		x.setOwner(c)
		if err != nil {
			return &planError{err}
		}
	}
	if err != nil {
		return err
	}
	x.write(http.StatusOK, plan)
	return nil
}

// planError is a query of which there is no plan. People see from its text that it was
// the plan which a client did not get.
type planError struct{ err error }

func (e *planError) Error() string { return "plan the query: " + e.err.Error() }
func (e *planError) Unwrap() error { return e.err }

const planRefusal = ", Gateway Failed to Retrieve Query Plan"
