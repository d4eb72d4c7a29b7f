// SPDX-License-Identifier: MIT

// What operators tell purge to do.

package rest

import (
	"net/http"
	"time"
)

// ttlPurged is the answer to POST /_mayfly/ttl/purge: what was taken away.
type ttlPurged struct {
	Purged amount `json:"purged"`
	Reason string `json:"reason"`
}

// servePurge changes what purge does, or has it done at once.
func (x *exchange) servePurge(action string) error {
	if x.r.ContentLength != 0 {
		return badRequestf("The parameters of this page go into the query of the address: it takes no body.")
	}
	allowed := []string{paramDatabase, paramContainer}
	if action == "limit" {
		allowed = append(allowed, paramRate)
	}
	p, err := parseParams(x.r.URL.RawQuery, allowed...)
	if err != nil {
		return err
	}
	name, err := p.someContainer()
	if err != nil {
		return err
	}
	if !name.all() {
		c, err := x.find(name)
		if err != nil {
			return err
		}
		name = containerName{c.DatabaseID, c.ID}
	}
	switch action {
	case "pause", "resume":
		if err := x.h.engine.PausePurge(name.database, name.container, action == "pause"); err != nil {
			return err
		}
		return x.writePurgeSettings(name)
	case "limit":
		return x.limitPurge(p, name)
	}
	return x.purgeNow(name)
}

func (x *exchange) limitPurge(p params, name containerName) error {
	if name.all() {
		return badRequestf("Name the container with the parameters database and container: each has a limit of its own.")
	}
	rate, err := p.rate()
	if err != nil {
		return err
	}
	if err := x.h.engine.LimitPurge(name.database, name.container, rate); err != nil {
		return err
	}
	return x.writePurgeSettings(name)
}

// ttlSettings is the answer to POST /_mayfly/ttl/pause, resume and limit.
type ttlSettings struct {
	// Paused says that purge is paused everywhere, or for the container that was
	// named if one was: by itself or everywhere.
	Paused bool     `json:"paused"`
	Limit  *float64 `json:"limit,omitempty"`
}

func (x *exchange) writePurgeSettings(name containerName) error {
	if name.all() {
		return x.writeJSON(ttlSettings{Paused: x.h.engine.PurgeSettings().Paused})
	}
	s, err := x.h.engine.TTLStatus(name.database, name.container)
	if err != nil {
		return err
	}
	c := containerStatus(&s)
	return x.writeJSON(ttlSettings{c.Purge.Paused, c.Purge.Limit})
}

// purgeNow may take longer than requests otherwise may. It ends with its client.
func (x *exchange) purgeNow(name containerName) error {
	x.unhurried()
	taken, err := x.h.engine.PurgeNow(x.r.Context(), name.database, name.container)
	if err != nil {
		return err
	}
	return x.writeJSON(ttlPurged{amount(taken), "forced"})
}

// unhurried lifts the limits on how long a request may take. Without the first,
// the connection would count as lost when the time to read a request is over. A
// writer that knows no such limits has none to lift.
func (x *exchange) unhurried() {
	c := http.NewResponseController(x.w)
	_ = c.SetReadDeadline(time.Time{})
	_ = c.SetWriteDeadline(time.Time{})
}
