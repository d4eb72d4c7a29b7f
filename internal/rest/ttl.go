// SPDX-License-Identifier: MIT

// The pages under /_mayfly/ttl/: what is expired, what would expire, what will expire,
// and why; and the operator's commands to purge. Their answers are the engine's own
// types.

package rest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/mayflydb/mayfly/internal/api"
	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/engine"
	"github.com/mayflydb/mayfly/internal/store"
	"github.com/mayflydb/mayfly/internal/value"
)

// ttlPage is a page under ttl/. serve returns the answer, or nil if it has already written it.
type ttlPage struct {
	method string
	scope  scope
	params []string // beside those that name the container
	serve  func(*exchange, params, *catalog.Container) (any, error)
}

// scope is what a page may be about.
type scope int

const (
	ofContainer  scope = iota // one container
	ofAll                     // one container, or all
	ofAnyOfThese              // one container, those of a database, or all
)

var ttlPages = map[string]ttlPage{
	"status":      {http.MethodGet, ofAnyOfThese, nil, (*exchange).serveTTLStatus},
	"whatif":      {http.MethodGet, ofContainer, []string{paramTTL}, (*exchange).serveWhatIf},
	"forecast":    {http.MethodGet, ofContainer, []string{paramInterval, paramCount, paramTTL}, (*exchange).serveForecast},
	"explain":     {http.MethodGet, ofContainer, []string{paramID, paramKey}, (*exchange).serveExplain},
	"history":     {http.MethodGet, ofContainer, nil, (*exchange).serveHistory},
	"undeletable": {http.MethodGet, ofContainer, []string{paramCount}, (*exchange).serveUndeletable},
	"undelete":    {http.MethodPost, ofContainer, []string{paramID, paramKey, paramTTL}, (*exchange).serveUndelete},
	"events":      {http.MethodGet, ofContainer, []string{paramCursor, paramFrom, paramFollow}, (*exchange).serveEvents},
	"pause":       {http.MethodPost, ofAll, nil, (*exchange).servePause},
	"resume":      {http.MethodPost, ofAll, nil, (*exchange).serveResume},
	"limit":       {http.MethodPost, ofAll, []string{paramRate}, (*exchange).serveLimit},
	"purge":       {http.MethodPost, ofAll, nil, (*exchange).servePurge},
	"erase":       {http.MethodPost, ofAll, nil, (*exchange).serveErase},
	"erasure":     {http.MethodGet, ofAll, nil, (*exchange).serveErasure},
}

// serveTTL answers a page under ttl/. The client's key was already checked.
func (x *exchange) serveTTL(name string) error {
	page, known := ttlPages[name]
	switch {
	case !known:
		return errNoRoute
	case x.r.Method != page.method:
		return api.ErrMethod
	case page.method == http.MethodPost && x.r.ContentLength != 0:
		return badRequestf("This page takes no body: give its parameters in the query of the URL.")
	}
	p, err := parseParams(x.r.URL.RawQuery, append([]string{paramDatabase, paramContainer}, page.params...)...)
	if err != nil {
		return err
	}
	c, err := x.find(p, page.scope)
	if err != nil {
		return err
	}
	answer, err := page.serve(x, p, c)
	if err != nil || answer == nil {
		return err
	}
	return x.writeJSON(answer)
}

// find returns the named container, or nil if the page is about several. Both names and
// rids are accepted.
func (x *exchange) find(p params, about scope) (*catalog.Container, error) {
	n, err := p.container(about)
	switch {
	case err != nil:
		return nil, err
	case n.container == "" && about == ofContainer:
		return nil, badRequestf("Name the container with the parameters database and container.")
	case n.container == "":
		return nil, nil
	}
	c, err := x.h.engine.Catalog().Container(n.database, n.container)
	if errors.Is(err, catalog.ErrNotFound) {
		return nil, api.Refuse(404, 0, fmt.Sprintf("There is no container '%s' in a database '%s'.", value.Clip(n.container), value.Clip(n.database)))
	}
	return c, err
}

func (x *exchange) writeJSON(answer any) error {
	body, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	x.write(http.StatusOK, body)
	return nil
}

func (x *exchange) serveTTLStatus(p params, c *catalog.Container) (any, error) {
	name, given := p[paramDatabase]
	if c != nil || !given {
		return x.h.engine.TTLReport(x.r.Context(), c)
	}
	d, err := x.h.engine.Catalog().Database(name)
	if errors.Is(err, catalog.ErrNotFound) {
		return nil, api.Refuse(404, 0, fmt.Sprintf("There is no database '%s'.", value.Clip(name)))
	}
	if err != nil {
		return nil, err
	}
	return x.h.engine.TTLReportOf(x.r.Context(), d)
}

func (x *exchange) serveWhatIf(p params, c *catalog.Container) (any, error) {
	ttl, err := p.ttl()
	if err != nil {
		return nil, err
	}
	return x.h.engine.WhatIf(x.r.Context(), c, ttl)
}

func (x *exchange) serveForecast(p params, c *catalog.Container) (any, error) {
	interval, err := p.interval()
	if err != nil {
		return nil, err
	}
	count, err := p.count()
	if err != nil {
		return nil, err
	}
	ttl := c.DefaultTTL
	if _, given := p[paramTTL]; given {
		if ttl, err = p.ttl(); err != nil {
			return nil, err
		}
	}
	return x.h.engine.ForecastUnder(x.r.Context(), c, ttl, interval, count)
}

func (x *exchange) serveExplain(p params, c *catalog.Container) (any, error) {
	id, err := p.id()
	if err != nil {
		return nil, err
	}
	key, err := p.partitionKey()
	if err != nil {
		return nil, err
	}
	answer, err := x.h.engine.Explain(x.r.Context(), c, id, key)
	if errors.Is(err, store.ErrNotFound) {
		return nil, api.Refuse(404, 0, fmt.Sprintf("There is no item '%s' with the partition key %s: it was never written, was deleted, or has expired and was purged, and no event that is kept tells of it.",
			value.Clip(id), value.Clip(key.String())))
	}
	return answer, err
}

func (x *exchange) serveHistory(_ params, c *catalog.Container) (any, error) {
	return x.h.engine.History(x.r.Context(), c)
}

func (x *exchange) serveUndeletable(p params, c *catalog.Container) (any, error) {
	most, err := p.number(paramCount, defaultUndeletable, engine.MaxUndeletable)
	if err != nil {
		return nil, err
	}
	return x.h.engine.Undeletable(x.r.Context(), c, most)
}

func (x *exchange) serveUndelete(p params, c *catalog.Container) (any, error) {
	id, err := p.id()
	if err != nil {
		return nil, err
	}
	key, err := p.partitionKey()
	if err != nil {
		return nil, err
	}
	if _, given := p[paramTTL]; !given {
		return nil, badRequestf("Give the ttl that the item comes back with in the parameter ttl.")
	}
	ttl, err := p.ttl()
	if err != nil {
		return nil, err
	}
	answer, err := x.h.engine.Undelete(x.r.Context(), c, id, key, ttl)
	if errors.Is(err, store.ErrNotFound) {
		return nil, api.Refuse(404, 0, fmt.Sprintf("There is no item '%s' with the partition key %s that has expired and is not purged.", value.Clip(id), value.Clip(key.String())))
	}
	return answer, err
}

func (x *exchange) servePause(_ params, c *catalog.Container) (any, error) {
	return x.h.engine.PausePurge(x.r.Context(), c, true)
}

func (x *exchange) serveResume(_ params, c *catalog.Container) (any, error) {
	return x.h.engine.PausePurge(x.r.Context(), c, false)
}

func (x *exchange) serveLimit(p params, c *catalog.Container) (any, error) {
	if c == nil {
		return nil, badRequestf("Name the container with the parameters database and container: each has a limit of its own.")
	}
	rate, err := p.rate()
	if err != nil {
		return nil, err
	}
	return x.h.engine.LimitPurge(x.r.Context(), c, rate)
}

// servePurge may take longer than other requests. It ends when its client goes.
func (x *exchange) servePurge(_ params, c *catalog.Container) (any, error) {
	x.unhurried()
	return x.h.engine.PurgeNow(x.r.Context(), c)
}

// serveErase may take longer still.
func (x *exchange) serveErase(_ params, c *catalog.Container) (any, error) {
	x.unhurried()
	return x.h.engine.EraseNow(x.r.Context(), c)
}

func (x *exchange) serveErasure(_ params, c *catalog.Container) (any, error) {
	if c != nil {
		return nil, badRequestf("This page is about all containers: name none.")
	}
	return x.h.engine.Erasure()
}

// unhurried removes the time limits of a request. Without the read limit's removal,
// net/http would treat the connection as lost once the limit is over. Errors are ignored:
// a ResponseWriter without limits has none to remove.
func (x *exchange) unhurried() {
	c := http.NewResponseController(x.w)
	_ = c.SetReadDeadline(time.Time{})
	_ = c.SetWriteDeadline(time.Time{})
}
