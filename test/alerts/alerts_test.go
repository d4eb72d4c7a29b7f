// SPDX-License-Identifier: MIT

package alerts

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
)

// evaluate returns the result of an expression.
func evaluate(t *testing.T, p *page, expr string) promql.Vector {
	t.Helper()
	e := promql.NewEngine(promql.EngineOpts{MaxSamples: 1_000_000, Timeout: time.Minute})
	defer e.Close()
	q, err := e.NewInstantQuery(context.Background(), p, nil, expr, p.now)
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	defer q.Close()
	r := q.Exec(context.Background())
	v, err := r.Vector()
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	return slices.Clone(v)
}

// firing returns the alerts whose expressions hold, each once.
func firing(t *testing.T, rules []rulefmt.Rule, p *page) string {
	t.Helper()
	var names []string
	for _, r := range rules {
		if len(evaluate(t, p, r.Expr)) > 0 {
			names = append(names, r.Alert)
		}
	}
	return strings.Join(names, " ")
}

func loadRules(t *testing.T) (all []rulefmt.Rule) {
	t.Helper()
	groups, errs := rulefmt.ParseFile("../../deploy/prometheus/mayfly.rules.yml", false, model.UTF8Validation)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	for _, g := range groups.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

// A server that is well raises no alert. What each alert is about raises it, and no other.
func TestAlerts(t *testing.T) {
	rules := loadRules(t)
	s := startServer(t)
	s.create(t, "/dbs", `{"id":"shop"}`)
	s.create(t, "/dbs/shop/colls", `{"id":"carts","defaultTtl":60,"partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}`)
	s.create(t, "/dbs/shop/colls/carts/docs", `{"id":"1","pk":"p"}`)
	s.own(t, "POST", "ttl/pause?database=shop&container=carts", "")
	well := parsePage(t, s.own(t, "GET", "metrics", ""))
	seen := map[string]bool{}
	expect := func(what string, p *page, want string) {
		t.Helper()
		if got := firing(t, rules, p); got != want {
			t.Errorf("%s: firing are %q, want %q", what, got, want)
		}
		for _, name := range strings.Fields(want) {
			seen[name] = true
		}
	}
	expect("a server that is well", well, "")

	// An item has expired, and purge is paused.
	s.own(t, "POST", "clock", `{"advance":"1h"}`)
	late := parsePage(t, s.own(t, "GET", "metrics", ""))
	expect("an item that waits for an hour", late, "MayflyPurgeLag")
	if v := evaluate(t, late, "ttl_purge_lag_seconds > 300"); len(v) != 1 || v[0].F < 3530 || v[0].Metric.Get("container") != "carts" || v[0].Metric.Get("database") != "shop" {
		t.Errorf("the lag is %v", v)
	}
	set := func(f float64) func(*series) { return func(s *series) { s.value = f } }
	grow := func(f float64) func(*series) { return func(s *series) { s.growth = f } }
	for _, c := range []struct {
		what   string
		change func(*series)
		series []string
		want   string
	}{
		{"the server is down", set(0), []string{`__name__="up"`}, "MayflyDown"},
		{"a backlog", set(2 << 30), []string{"ttl_expired_pending_bytes"}, "MayflyPurgeBacklog"},
		{"debt", set(1), []string{"ttl_purge_debt_bytes"}, "MayflyPurgeDebt"},
		{"writes pay", grow(5), []string{"ttl_purged_items_total", `reason="debt"`}, "MayflyWritesPayForPurge"},
		{"purge is at work", grow(5), []string{"ttl_purged_items_total", `reason="sweep"`}, ""},
		{"a pause", grow(1), []string{"ttl_purge_throttled_seconds_total", `cause="paused"`}, "MayflyPurgePaused"},
		{"a short pause", grow(0.1), []string{"ttl_purge_throttled_seconds_total", `cause="paused"`}, ""},
		{"erasure is at work", set(3600), []string{"ttl_erasure_lag_seconds"}, ""},
		{"erasure is late", set(1), []string{"ttl_erasure_overdue_seconds"}, "MayflyErasureOverdue"},
		{"a jump in doubt", set(1), []string{"ttl_clock_guard_state"}, "MayflyClockInDoubt"},
		{"a jump held back", set(2), []string{"ttl_clock_guard_state"}, "MayflyClockHeld"},
		{"time is ahead", set(3), []string{"ttl_clock_guard_state"}, "MayflyClockAhead"},
		{"the engine is stalled", set(1), []string{"mayfly_engine_stalled"}, "MayflyEngineStalled"},
		{"no memory", grow(0.1), []string{"mayfly_memory_refused_total"}, "MayflyRequestsRefusedForMemory"},
	} {
		expect(c.what, well.with(t, c.change, c.series...), c.want)
	}
	// While the clock is in doubt, purge has to wait, and its lag is no news.
	doubtful := late.with(t, set(3600), "ttl_clock_doubt_seconds").with(t, set(2<<30), "ttl_expired_pending_bytes").with(t, set(1), "ttl_clock_guard_state")
	expect("lag in doubt", doubtful, "MayflyClockInDoubt")
	for _, r := range rules {
		if !seen[r.Alert] {
			t.Errorf("%s was never seen to fire", r.Alert)
		}
	}
}

// Every panel of the dashboard shows something of a server in use.
func TestDashboard(t *testing.T) {
	s := startServer(t)
	s.create(t, "/dbs", `{"id":"shop"}`)
	s.create(t, "/dbs/shop/colls", `{"id":"carts","defaultTtl":60,"partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}`)
	s.create(t, "/dbs/shop/colls/carts/docs", `{"id":"1","pk":"p"}`)
	p := parsePage(t, s.own(t, "GET", "metrics", ""))
	raw, err := os.ReadFile("../../deploy/grafana/mayfly.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(raw, &board); err != nil || len(board.Panels) == 0 {
		t.Fatalf("%d panels: %v", len(board.Panels), err)
	}
	variables := strings.NewReplacer("$__rate_interval", "1m", "$instance", ".*")
	for _, panel := range board.Panels {
		for _, target := range panel.Targets {
			if len(evaluate(t, p, variables.Replace(target.Expr))) == 0 {
				t.Errorf("%s: %s shows nothing", panel.Title, target.Expr)
			}
		}
	}
}
