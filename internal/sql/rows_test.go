// SPDX-License-Identifier: MIT

package sql

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/sql/datum"
	"github.com/mayflydb/mayfly/internal/sql/function"
	"github.com/mayflydb/mayfly/internal/sql/syntax"
)

// orderItem returns an item of about 1 KiB with ten properties.
func orderItem() []byte {
	return []byte(fmt.Sprintf(`{"id":"order-000042","customer":"c-7781","state":"open","lines":[%s],"note":"%s","total":129.5,`+
		`"address":{"street":"Lange Gasse 5","city":"Graz","zip":"8010"},"tags":["new","gift","abroad"],"created":1767225600,"_ts":1767225601}`,
		strings.TrimSuffix(strings.Repeat(`{"sku":"A-1000-77","amount":2,"price":12.95},`, 8), ","),
		strings.Repeat("please ring twice ", 20)))
}

func mustCompile(tb testing.TB, query string, params map[string]datum.Value) *Program {
	tb.Helper()
	q, err := syntax.Parse(query)
	if err != nil {
		tb.Fatalf("Parse(%s): %v", query, err)
	}
	p, err := Compile(q, CompileOptions{Params: params})
	if err != nil {
		tb.Fatalf("Compile(%s): %v", query, err)
	}
	return p
}

func TestFilterAllocatesNothing(t *testing.T) {
	r := mustCompile(t, `SELECT * FROM c WHERE c.total > 100 AND c.state = "open"`, nil).NewRunner(&function.Context{})
	item := datum.Raw(orderItem())
	n := testing.AllocsPerRun(100, func() {
		if ok, err := r.Filter(item); !ok || err != nil {
			t.Fatalf("Filter = %v, %v", ok, err)
		}
	})
	if n != 0 {
		t.Errorf("Filter allocates %v times", n)
	}
}

func BenchmarkFilter(b *testing.B) {
	for _, bench := range []struct{ name, query string }{
		{"two properties", `SELECT * FROM c WHERE c.total > 100 AND c.state = "open"`},
		{"nested", `SELECT * FROM c WHERE c.address.city = "Graz"`},
		{"in", `SELECT * FROM c WHERE c.state IN ("new", "open", "held")`},
		{"functions", `SELECT * FROM c WHERE STARTSWITH(c.state, "o") AND LENGTH(c.state) = 4 AND CONTAINS(c.state, "pe")`},
		{"array contains", `SELECT * FROM c WHERE ARRAY_CONTAINS(c.tags, "abroad")`},
		{"exists", `SELECT * FROM c WHERE EXISTS(SELECT VALUE l FROM l IN c.lines WHERE l.amount > 1)`},
		{"join", `SELECT VALUE l FROM c JOIN l IN c.lines WHERE l.amount > 5`},
	} {
		b.Run(bench.name, func(b *testing.B) {
			r := mustCompile(b, bench.query, nil).NewRunner(&function.Context{})
			item := datum.Raw(orderItem())
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.Filter(item); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkProjection(b *testing.B) {
	for _, bench := range []struct{ name, query string }{
		{"star", `SELECT * FROM c`},
		{"three properties", `SELECT c.id, c.total, c.address.city FROM c`},
		{"nested", `SELECT c.address, c.lines FROM c`},
		{"computed", `SELECT VALUE {"id": c.id, "gross": c.total * 1.2} FROM c`},
	} {
		b.Run(bench.name, func(b *testing.B) {
			r := mustCompile(b, bench.query, nil).NewRunner(&function.Context{})
			item := datum.Raw(orderItem())
			var dst []byte
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.Filter(item); err != nil {
					b.Fatal(err)
				}
				dst, _, _ = r.AppendProjection(dst[:0])
			}
		})
	}
}
