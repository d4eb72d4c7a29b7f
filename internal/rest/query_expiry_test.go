// SPDX-License-Identifier: MIT

package rest

import (
	"strings"
	"testing"
	"time"
)

// TestMetricsOfTheLiving: scenario 55, for a query's metrics. From its deadline on, an
// expired item is in none of the numbers, purged or not.
func TestMetricsOfTheLiving(t *testing.T) {
	h := newCarts(t)
	counted := func(text string) string {
		headers := pk("ada")
		headers["Content-Type"], headers["X-Ms-Documentdb-Populatequerymetrics"] = "application/query+json", "True"
		a := call(t, h, "POST", "/dbs/d/colls/c/docs", `{"query":"`+text+`"}`, headers, 200)
		var numbers []string
		for pair := range strings.SplitSeq(a.header.Get("X-Ms-Documentdb-Query-Metrics"), ";") {
			switch name, value, _ := strings.Cut(pair, "="); name {
			case "retrievedDocumentCount", "outputDocumentCount", "indexUtilizationRatio":
				numbers = append(numbers, value)
			}
		}
		return strings.Join(numbers, " ")
	}
	f := func(when string, all, named string) {
		t.Helper()
		if got := counted("SELECT * FROM c"); got != all {
			t.Errorf("%s, all: got %s, want %s", when, got, all)
		}
		if got := counted("SELECT * FROM c WHERE c.id IN ('own', 'never')"); got != named {
			t.Errorf("%s, two by their ids: got %s, want %s", when, got, named)
		}
	}
	advance(t, h, 9999*time.Millisecond)
	f("before the deadline", "3 3 1.00", "2 2 1.00")
	advance(t, h, time.Millisecond)
	f("at the deadline", "2 2 1.00", "1 1 1.00")
	admin(t, h, "POST", "ttl/purge"+inContainer, 200)
	f("purged", "2 2 1.00", "1 1 1.00")
}
