// SPDX-License-Identifier: MIT

package mayfly

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/kv/kvtest"
)

// metricsPage has the labels of each metric of a page, and the values of each label.
type metricsPage map[string]map[string][]string

var (
	sampleLine = regexp.MustCompile(`^([a-z_]+)(?:\{(.*)\})? \S+$`)
	labelPair  = regexp.MustCompile(`([a-z_]+)(=~|!=|!~|=)"((?:[^"\\]|\\.)*)"`)
	// selector is a metric of an expression, with its matchers.
	selector = regexp.MustCompile(`\b((?:ttl|mayfly|go|process)_[a-z0-9_]+|up)\b(?:\{([^}]*)\})?`)
	// grouping is a list of labels in an expression, and shown a label in a text.
	grouping = regexp.MustCompile(`\b(?:by|on|without|ignoring) \(([a-z_, ]*)\)`)
	shown    = regexp.MustCompile(`\{\{ *(?:\$labels\.)?([a-z_]+) *\}\}`)
)

// addedLabels are the labels that Prometheus adds to every metric.
var addedLabels = []string{"job", "instance"}

func parseMetrics(page string) metricsPage {
	m := metricsPage{}
	for line := range strings.Lines(page) {
		at := sampleLine.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if at == nil {
			continue
		}
		if m[at[1]] == nil {
			m[at[1]] = map[string][]string{}
		}
		for _, l := range labelPair.FindAllStringSubmatch(at[2], -1) {
			m[at[1]][l[1]] = append(m[at[1]][l[1]], l[3])
		}
	}
	return m
}

// check returns what an expression, and the texts beside it, name that is not on the page.
func (m metricsPage) check(expr string, texts ...string) (unknown []string) {
	known := map[string]bool{}
	for _, l := range addedLabels {
		known[l] = true
	}
	found := selector.FindAllStringSubmatch(expr, -1)
	if len(found) == 0 {
		return []string{"no metric at all"}
	}
	for _, s := range found {
		name, matchers := s[1], s[2]
		if name == "up" { // Prometheus's own
			continue
		}
		labels, exists := m[name]
		if !exists {
			unknown = append(unknown, name)
		}
		for l := range maps.Keys(labels) {
			known[l] = true
		}
		for _, p := range labelPair.FindAllStringSubmatch(matchers, -1) {
			values, has := labels[p[1]]
			switch {
			case slices.Contains(addedLabels, p[1]):
			case !has:
				unknown = append(unknown, name+"{"+p[1]+"}")
			case p[2] == "=" && !slices.Contains(values, p[3]):
				unknown = append(unknown, name+"{"+p[0]+"}")
			}
		}
	}
	var named []string
	for _, g := range grouping.FindAllStringSubmatch(expr, -1) {
		named = append(named, strings.Split(g[1], ", ")...)
	}
	for _, s := range shown.FindAllStringSubmatch(strings.Join(texts, "\n"), -1) {
		named = append(named, s[1])
	}
	for _, l := range named {
		if !known[l] {
			unknown = append(unknown, "label "+l)
		}
	}
	return unknown
}

// The alerts and the dashboard in deploy name only metrics and labels that the metrics page
// of a server has, or that of a node of a cluster.
func TestDeployedExpressionsNameWhatThereIs(t *testing.T) {
	s := serveTest(t, Options{Dir: t.TempDir()})
	s.must(t, 201, "POST", "/dbs", `{"id":"d"}`, nil)
	s.must(t, 201, "POST", "/dbs/d/colls", `{"id":"c","defaultTtl":60,"partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}`, nil)
	s.must(t, 201, "POST", items, `{"id":"i","pk":"p"}`, pk("p"))
	a := s.admin(t, "GET", "metrics", "", "Bearer "+s.Key())
	if a.status != 200 {
		t.Fatalf("status %d: %s", a.status, a.body)
	}
	node := serveNode(t, kvtest.NewModel(), "a").admin(t, "GET", "metrics", "", "Bearer "+WellKnownKey)
	if node.status != 200 {
		t.Fatalf("status %d: %s", node.status, node.body)
	}
	page := parseMetrics(string(a.body) + string(node.body))

	rules, err := os.ReadFile("deploy/prometheus/mayfly.rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	alerts := strings.Split(string(rules), "- alert: ")[1:]
	for _, alert := range alerts {
		name, rest, _ := strings.Cut(alert, "\n")
		_, expr, _ := strings.Cut(rest, "expr: ")
		expr, _, _ = strings.Cut(expr, "\n")
		if unknown := page.check(expr, rest); len(unknown) > 0 || !strings.Contains(rest, "summary: ") || !strings.Contains(rest, "severity: ") {
			t.Errorf("%s: %s: not on the page: %q", name, expr, unknown)
		}
	}
	raw, err := os.ReadFile("deploy/grafana/mayfly.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr, LegendFormat string }
		}
		Templating struct {
			List []struct {
				Query json.RawMessage
			}
		}
	}
	if err := json.Unmarshal(raw, &board); err != nil {
		t.Fatal(err)
	}
	if unknown := page.check(string(board.Templating.List[1].Query)); len(unknown) > 0 {
		t.Errorf("the dashboard's variable: not on the page: %q", unknown)
	}
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			if unknown := page.check(target.Expr, target.LegendFormat); len(unknown) > 0 {
				t.Errorf("%s: %s: not on the page: %q", p.Title, target.Expr, unknown)
			}
		}
	}
	if len(alerts) < 8 || len(board.Panels) < 10 {
		t.Errorf("only %d alerts and %d panels were found", len(alerts), len(board.Panels))
	}
	// The check itself finds what is wrong.
	for _, wrong := range []string{
		`ttl_no_such_metric > 1`, `ttl_purge_lag_seconds{horizon="1h"}`, `ttl_forecast_items{horizon="2h"}`, `sum by (reason) (ttl_purge_lag_seconds)`, `1 > 0`,
	} {
		if len(page.check(wrong)) == 0 {
			t.Errorf("%s is found on the page", wrong)
		}
	}
	if len(page.check("ttl_clock_guard_state == 1", "{{ $labels.container }}")) == 0 {
		t.Error("a text may name a label that the metric does not have")
	}
}
