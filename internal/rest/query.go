// SPDX-License-Identifier: MIT

// Queries and query plans.

package rest

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/mayflydb/mayfly/internal/engine"
	"github.com/mayflydb/mayfly/internal/sql"
	"github.com/mayflydb/mayfly/internal/value"
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
	page, err := x.h.engine.QueryItems(x.r.Context(), engine.ItemQuery{
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
	return parseQuery(body)
}

// maxQueryParameters bounds the parameters of a query.
const maxQueryParameters = 10_000

// parseQuery reads {"query": …, "parameters": [{"name": …, "value": …}, …]}.
func parseQuery(body []byte) (engine.Query, error) {
	refused := func(what string) error {
		return &badRequestError{"The input content is invalid: a query is {\"query\":\"SELECT …\",\"parameters\":[{\"name\":\"@x\",\"value\":1}]}, and " + what + "."}
	}
	o, err := value.ParseObject(body)
	if err != nil {
		return engine.Query{}, err
	}
	raw, _ := o.Lookup("query")
	text, _ := value.FromJSON(raw)
	q := engine.Query{}
	var ok bool
	if q.Text, ok = text.Text(); !ok {
		return engine.Query{}, refused("'query' must be a string")
	}
	if raw, found := o.Lookup("resumeFilter"); found && string(raw) != "null" {
		if q.Resume, ok = parseResumeFilter(sql.Raw(raw)); !ok {
			return engine.Query{}, &badRequestError{"The input content is invalid: a resume filter is {\"value\":[…],\"rid\":\"…\",\"exclude\":false}, with null, booleans, numbers and strings as they are, [] for undefined, and {\"type\":\"array\",\"low\":1,\"high\":2} for an array or an object."}
		}
	}
	list, found := o.Lookup("parameters")
	if !found || string(list) == "null" {
		return q, nil
	}
	elements, ok := value.Elements(list)
	if !ok || len(elements) > maxQueryParameters {
		return engine.Query{}, refused("'parameters' must be a list")
	}
	q.Params = make(map[string]sql.Value, len(elements))
	for _, raw := range elements {
		p := sql.Raw(raw)
		if p.Kind() != sql.KindObject {
			return engine.Query{}, refused("each of the parameters must be an object")
		}
		name, ok := p.Member("name").AsString()
		if !ok || !strings.HasPrefix(name, "@") {
			return engine.Query{}, refused("the name of a parameter must be a string that begins with @")
		}
		q.Params[name] = p.Member("value")
	}
	return q, nil
}

// parseResumeFilter reads where a client goes on with an ordered query.
func parseResumeFilter(v sql.Value) (*engine.ResumeFilter, bool) {
	f := &engine.ResumeFilter{}
	if v.Kind() != sql.KindObject {
		return nil, false
	}
	for name, member := range v.Properties {
		ok := false
		switch name {
		case "value":
			f.Values, ok = resumeValues(member)
		case "rid":
			f.RID, ok = member.AsString()
			ok = ok || member.Kind() == sql.KindNull
		case "exclude":
			f.Exclude, ok = member.AsBool()
		}
		if !ok {
			return nil, false
		}
	}
	return f, len(f.Values) > 0
}

func resumeValues(list sql.Value) ([]sql.Value, bool) {
	var values []sql.Value
	for v := range list.Elements {
		resumed, ok := sql.Resumed(v)
		if values = append(values, resumed); !ok || len(values) > maxResumeValues {
			return nil, false
		}
	}
	return values, list.Kind() == sql.KindArray
}

// maxResumeValues is more than an ORDER BY has expressions.
const maxResumeValues = 64

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
