// SPDX-License-Identifier: MIT

package alerts

import (
	"context"
	"encoding/json"
	"net/url"
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

// clusterGroup is the group of alerts about nodes that share a storage engine.
const clusterGroup = "mayfly-cluster"

// loadRules returns all rules, and the names of those of the cluster and of all others.
func loadRules(t *testing.T) (all []rulefmt.Rule, alone, cluster []string) {
	t.Helper()
	groups, errs := rulefmt.ParseFile("../../deploy/prometheus/mayfly.rules.yml", false, model.UTF8Validation)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	for _, g := range groups.Groups {
		all = append(all, g.Rules...)
		for _, r := range g.Rules {
			if g.Name == clusterGroup {
				cluster = append(cluster, r.Alert)
			} else {
				alone = append(alone, r.Alert)
			}
		}
	}
	return all, alone, cluster
}

// expectation compares the alerts that fire with those that should.
type expectation struct {
	rules []rulefmt.Rule
	seen  map[string]bool
}

func (e *expectation) of(t *testing.T, what string, p *page, want string) {
	t.Helper()
	if got := firing(t, e.rules, p); got != want {
		t.Errorf("%s: firing are %q, want %q", what, got, want)
	}
	for _, name := range strings.Fields(want) {
		e.seen[name] = true
	}
}

// complete fails unless each of these alerts was seen to fire.
func (e *expectation) complete(t *testing.T, names []string) {
	t.Helper()
	for _, name := range names {
		if !e.seen[name] {
			t.Errorf("%s was never seen to fire", name)
		}
	}
}

// set and grow change a series: its value, or how much it grows each second.
func set(f float64) func(*series)  { return func(s *series) { s.value = f } }
func grow(f float64) func(*series) { return func(s *series) { s.growth = f } }

// unanswered adds requests that were answered with 503, so many each second.
func (p *page) unanswered(t *testing.T, each float64) *page {
	t.Helper()
	out := &page{p.now, slices.Clone(p.all)}
	out.add("mayfly_requests_total", nil, 1, "operation", "item_read", "status", "503")
	return out.with(t, grow(each), "mayfly_requests_total", `status="503"`)
}

// A server that is well raises no alert. What each alert is about raises it, and no other.
func TestAlerts(t *testing.T) {
	rules, alone, _ := loadRules(t)
	e := expectation{rules, map[string]bool{}}
	s := startServer(t)
	s.create(t, "/dbs", `{"id":"shop"}`)
	s.create(t, "/dbs/shop/colls", `{"id":"carts","defaultTtl":60,"partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}`)
	s.create(t, "/dbs/shop/colls/carts/docs", `{"id":"1","pk":"p"}`)
	s.own(t, "POST", "ttl/pause?database=shop&container=carts", "")
	well := parsePage(t, s.own(t, "GET", "metrics", ""))
	expect := func(what string, p *page, want string) {
		t.Helper()
		e.of(t, what, p, want)
	}
	expect("a server that is well", well, "")

	// An item has expired, and purge is paused.
	s.own(t, "POST", "clock", `{"advance":"1h"}`)
	late := parsePage(t, s.own(t, "GET", "metrics", ""))
	expect("an item that waits for an hour", late, "MayflyPurgeLag")
	if v := evaluate(t, late, "ttl_purge_lag_seconds > 300"); len(v) != 1 || v[0].F < 3530 || v[0].Metric.Get("container") != "carts" || v[0].Metric.Get("database") != "shop" {
		t.Errorf("the lag is %v", v)
	}
	for _, c := range []struct {
		what   string
		change func(*series)
		series []string
		want   string
	}{
		{"the server is down", set(0), []string{`__name__="up"`}, "MayflyDown"},
		{"items in their grace", set(2 << 30), []string{"ttl_expired_pending_bytes"}, ""},
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
	expect("a backlog", well.with(t, set(2<<30), "ttl_expired_pending_bytes").with(t, set(120), "ttl_purge_lag_seconds"), "MayflyPurgeBacklog")
	// While the clock is in doubt, purge has to wait, and its lag is no news.
	doubtful := late.with(t, set(3600), "ttl_clock_doubt_seconds").with(t, set(2<<30), "ttl_expired_pending_bytes").with(t, set(1), "ttl_clock_guard_state")
	expect("lag in doubt", doubtful, "MayflyClockInDoubt")
	expect("requests are refused by a server alone", well.unanswered(t, 1), "")
	e.complete(t, alone)
}

// Two nodes that are well raise no alert. One that is killed does, and so do partitions that
// are lost and requests that find no owner. The panels about the cluster show something.
func TestClusterAlerts(t *testing.T) {
	sockets := os.Getenv("MAYFLY_POSTGRES_SOCKETS")
	if sockets == "" {
		t.Skip("SKIPPED: needs PostgreSQL, as run starts it")
	}
	binary := build(t)
	engine := "--engine=postgres://postgres@/postgres?host=" + url.QueryEscape(sockets)
	s, _ := start(t, binary, engine, "--node=a")
	_, other := start(t, binary, engine, "--node=b")
	s.create(t, "/dbs", `{"id":"shop"}`)
	s.create(t, "/dbs/shop/colls", `{"id":"carts","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}`)
	s.create(t, "/dbs/shop/colls/carts/docs", `{"id":"1","pk":"p"}`)
	rules, _, cluster := loadRules(t)
	e := expectation{rules, map[string]bool{}}
	well := parsePage(t, s.own(t, "GET", "metrics", ""))
	e.of(t, "two nodes that are well", well, "")
	for expr := range panels(t, true) {
		if len(evaluate(t, well, expr)) == 0 {
			t.Errorf("%s shows nothing", expr)
		}
	}
	e.of(t, "partitions are lost", well.with(t, grow(0.1), "mayfly_cluster_lost_partitions_total"), "MayflyPartitionsLost")
	e.of(t, "a partition is lost now and then", well.with(t, grow(0.005), "mayfly_cluster_lost_partitions_total"), "")
	e.of(t, "requests find no owner", well.unanswered(t, 0.1), "MayflyRequestsWithoutOwner")

	if err := other.Kill(); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(noticeLimit)
	for !strings.Contains(s.own(t, "GET", "metrics", ""), `mayfly_cluster_nodes{state="dead"} 1`) {
		if time.Now().After(deadline) {
			t.Fatalf("the death of a node was not noticed within %v", noticeLimit)
		}
		time.Sleep(50 * time.Millisecond) // processes, whose clocks no test moves
	}
	e.of(t, "a node was killed", parsePage(t, s.own(t, "GET", "metrics", "")), "MayflyNodeDead")
	e.complete(t, cluster)
}

// noticeLimit is how long nodes may take to notice that another is dead.
const noticeLimit = 30 * time.Second

// Every panel of the dashboard shows something of a server in use.
func TestDashboard(t *testing.T) {
	s := startServer(t)
	s.create(t, "/dbs", `{"id":"shop"}`)
	s.create(t, "/dbs/shop/colls", `{"id":"carts","defaultTtl":60,"partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}`)
	s.create(t, "/dbs/shop/colls/carts/docs", `{"id":"1","pk":"p"}`)
	p := parsePage(t, s.own(t, "GET", "metrics", ""))
	for expr := range panels(t, false) {
		if len(evaluate(t, p, expr)) == 0 {
			t.Errorf("%s shows nothing", expr)
		}
	}
}

// panels returns the expressions of the dashboard that are about a cluster, or all others.
func panels(t *testing.T, cluster bool) map[string]bool {
	t.Helper()
	raw, err := os.ReadFile("../../deploy/grafana/mayfly.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(raw, &board); err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	variables := strings.NewReplacer("$__rate_interval", "1m", "$instance", ".*")
	for _, panel := range board.Panels {
		for _, target := range panel.Targets {
			if strings.Contains(target.Expr, "mayfly_cluster_") == cluster {
				all[variables.Replace(target.Expr)] = true
			}
		}
	}
	if len(all) == 0 {
		t.Fatalf("no panel with cluster %v", cluster)
	}
	return all
}
