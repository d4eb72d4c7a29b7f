// SPDX-License-Identifier: MIT

// Mayfly's own pages under /_mayfly/, beside the protocol.

package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/api"
	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/engine"
	"github.com/mayflydb/mayfly/internal/value"
)

func (x *exchange) serveAdmin(path string) error {
	switch path {
	case "health":
		return x.serveHealth(nil)
	case "ready":
		return x.serveHealth(x.h.ready())
	case "peer":
		return x.serveAsked()
	}
	if page, ok := strings.CutPrefix(path, "pprof/"); ok {
		return x.servePprof(page)
	}
	page, ttl := strings.CutPrefix(path, "ttl/")
	if !ttl && path != "clock" && path != "metrics" && path != "cluster" && path != splitPage && path != "explorer" && path != "backup" {
		return errNoRoute
	}
	by, err := x.bearer()
	x.known = err == nil
	switch {
	case err != nil:
		return x.unauthenticated(err)
	case by == api.ByReadOnlyKey && x.r.Method != http.MethodGet && x.r.Method != http.MethodHead:
		return api.ErrForbidden // a read-only key may only read
	case path == "metrics":
		return x.serveMetrics()
	}
	if err := x.h.engine.Moment(x.Context); err != nil {
		return err
	}
	if x.r.Method == http.MethodPost {
		query := x.r.URL.RawQuery
		if !x.h.service.Journal.All {
			query = api.QueryWithoutItem(query)
		}
		x.Audit(by, strings.TrimSuffix(path+" "+query, " "))
	}
	switch {
	case ttl:
		return x.serveTTL(page)
	case path == "cluster":
		return x.serveCluster()
	case path == splitPage:
		return x.serveSplit()
	case path == "backup":
		return x.serveBackup(by)
	case path == "explorer":
		return x.serveLink(by)
	}
	return x.serveClock()
}

// clusterRequest is the body of POST /_mayfly/cluster.
// One of its members is given.
type clusterRequest struct {
	Drain    string `json:"drain"`    // the name of a node
	Failover string `json:"failover"` // the name of a region
	Forget   string `json:"forget"`   // the name of a region
}

var errClusterRequest = api.Invalid(`The body must be one of {"drain":"NODE"}, {"failover":"REGION"} and {"forget":"REGION"}.`)

// serveCluster shows the nodes. A POST changes something first.
func (x *exchange) serveCluster() error {
	switch x.r.Method {
	case http.MethodGet:
	case http.MethodPost:
		body, err := x.body()
		if err != nil {
			return err
		}
		var r clusterRequest
		err = decodeStrict(body, &r)
		x.Audit(api.ByKey, "cluster "+string(body))
		switch e := x.h.engine; {
		case err != nil:
			return errClusterRequest
		case r == clusterRequest{Drain: r.Drain} && r.Drain != "":
			err = e.DrainNode(x.Context, r.Drain)
		case r == clusterRequest{Failover: r.Failover} && r.Failover != "":
			err = e.Failover(x.Context, r.Failover)
		case r == clusterRequest{Forget: r.Forget} && r.Forget != "":
			err = e.ForgetRegion(x.Context, r.Forget)
		default:
			return errClusterRequest
		}
		if err != nil {
			return clusterFailed(err)
		}
	default:
		return api.ErrMethod
	}
	s, err := x.h.engine.ClusterStatus(x.Context)
	if err != nil {
		return clusterFailed(err)
	}
	return x.writeJSON(s)
}

// clusterFailed returns the error for the client.
func clusterFailed(err error) error {
	if errors.Is(err, engine.ErrNoCluster) {
		return api.Refuse(http.StatusNotFound, 0, "This server is not a node of a cluster: it was started without --engine.")
	}
	return err
}

// serveHealth reports whether the server can serve. It needs no credential.
func (x *exchange) serveHealth(problem error) error {
	if x.r.Method != http.MethodGet && x.r.Method != http.MethodHead {
		return api.ErrMethod
	}
	if problem != nil {
		body := value.AppendString([]byte(`{"status":"unavailable","reason":`), problem.Error())
		x.write(http.StatusServiceUnavailable, append(body, '}'))
		return nil
	}
	x.write(http.StatusOK, []byte(`{"status":"ok"}`))
	return nil
}

// clockRequest is the body of POST /_mayfly/clock. Exactly one field is given.
type clockRequest struct {
	Freeze  bool   `json:"freeze"`
	Release bool   `json:"release"`
	Confirm bool   `json:"confirm"`
	Set     string `json:"set"`     // RFC 3339
	Advance string `json:"advance"` // a duration such as "90s" or "3d"
}

// serveClock shows the clock. A POST changes it first.
func (x *exchange) serveClock() error {
	c := x.h.engine.Clock()
	switch x.r.Method {
	case http.MethodGet:
	case http.MethodPost:
		body, err := x.body()
		if err != nil {
			return err
		}
		var r clockRequest
		if err := decodeStrict(body, &r); err != nil {
			return api.Invalid(clockUsage)
		}
		x.Audit(api.ByKey, "clock "+string(body))
		if err := r.apply(c); err != nil {
			return clockFailed(err)
		}
	default:
		return api.ErrMethod
	}
	return x.writeJSON(c.Status())
}

const clockUsage = `The body must be one of {"freeze":true}, {"set":"2030-01-01T00:00:00Z"}, {"advance":"90s"}, {"release":true} and {"confirm":true}.`

// decodeStrict refuses unknown fields, and more than one value.
func decodeStrict(body []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more than one JSON value")
	}
	return nil
}

func (r clockRequest) apply(c *clock.Clock) error {
	switch r {
	case clockRequest{Freeze: true}:
		return c.Freeze()
	case clockRequest{Release: true}:
		return c.Release()
	case clockRequest{Confirm: true}:
		return c.Confirm()
	case clockRequest{Set: r.Set}:
		t, err := time.Parse(time.RFC3339Nano, r.Set)
		if err != nil {
			return api.Invalid(clockUsage)
		}
		return c.Set(t.UnixMilli())
	case clockRequest{Advance: r.Advance}:
		d, err := clock.ParseDuration(r.Advance)
		if err != nil {
			return api.Invalid(clockUsage)
		}
		return c.Advance(d)
	}
	return api.Invalid(clockUsage)
}

// clockFailed turns a refusal of the clock into a bad request.
func clockFailed(err error) error {
	for _, refusal := range []error{
		clock.ErrBackwards, clock.ErrTooFar, clock.ErrTooShort, clock.ErrNotTestClock, clock.ErrNothingToConfirm, clock.ErrAhead,
	} {
		if errors.Is(err, refusal) {
			return api.Invalid(err.Error())
		}
	}
	return err
}
