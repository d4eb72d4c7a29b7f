// SPDX-License-Identifier: MIT

package query

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/kv/pebblekv"
	"github.com/mayflydb/mayfly/internal/store"
)

// benchSizes are how many items a query runs over. A million takes a while to write:
// MAYFLY_BENCH_MILLION asks for it.
func benchSizes() []int {
	sizes := []int{1_000, 100_000}
	if os.Getenv("MAYFLY_BENCH_MILLION") != "" {
		sizes = append(sizes, 1_000_000)
	}
	return sizes
}

// benchKeys is how many partition keys the items have in turn.
const benchKeys = 100

// benchFixture is a partition on disk with items of about 500 bytes.
func benchFixture(b *testing.B, items int) *fixture {
	b.Helper()
	db, err := pebblekv.Open(pebblekv.Options{Dir: b.TempDir(), NoSync: true, IsIndexKey: store.IsIndexKey, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := db.Close(); err != nil {
			b.Error(err)
		}
	})
	f := newWorld(b, db)
	f.create("c", `"defaultTtl":-1,"indexingPolicy":{"excludedPaths":[{"path":"/pad/*"}]}`)
	b.Cleanup(func() { f.p.Close() })
	pad := strings.Repeat("p", 300)
	f.fillUnder(func(i int) string { return fmt.Sprint("k", i%benchKeys) }, items, func(i int) string {
		return fmt.Sprintf(`"x":%d,"mixed":%d,"city":"city %d","active":%v,"pad":"%s"`, i, i*7919%items, i%100, i%3 == 0, pad)
	})
	return f
}

func (f *fixture) bench(b *testing.B, q Request, rows int) {
	b.Helper()
	b.ReportAllocs()
	f.t = b
	var work Work
	for b.Loop() {
		page, err := Run(context.Background(), q)
		if err != nil || page.Count != rows {
			b.Fatalf("got %d rows, %v, want %d", page.Count, err, rows)
		}
		work = page.Work
	}
	if work.Items > 1000 {
		b.ReportMetric(float64(work.Items)*float64(b.N)/b.Elapsed().Seconds(), "items/s")
	}
	if work.IndexRows > 1000 {
		b.ReportMetric(float64(work.IndexRows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
	}
}

func BenchmarkQuery(b *testing.B) {
	for _, items := range benchSizes() {
		b.Run(fmt.Sprintf("items=%d", items), func(b *testing.B) {
			f := benchFixture(b, items)
			list := make([]string, 100)
			for i := range list {
				list[i] = fmt.Sprint(i * items / 100)
			}
			for _, c := range []struct {
				name, text string
				rows       int
			}{
				{"equality", fmt.Sprintf("SELECT * FROM c WHERE c.x = %d", items/2), 1},
				{"id", fmt.Sprintf(`SELECT * FROM c WHERE c.id = "%d"`, items/2), 1},
				{"in100", "SELECT * FROM c WHERE c.x IN (" + strings.Join(list, ",") + ")", 100},
				{"order10", "SELECT * FROM c ORDER BY c.mixed OFFSET 0 LIMIT 10", 10},
				{"order10desc", "SELECT * FROM c ORDER BY c.mixed DESC OFFSET 0 LIMIT 10", 10},
				{"range10", fmt.Sprintf("SELECT * FROM c WHERE c.mixed >= %d OFFSET 0 LIMIT 10", items/2), 10},
				{"countrange", "SELECT VALUE COUNT(1) FROM c WHERE c.x >= 0", 1},
				{"count", "SELECT VALUE COUNT(1) FROM c", 1},
				{"scan", "SELECT VALUE c.id FROM c WHERE c.x + 1 = 0", 0},
				{"sum", "SELECT VALUE SUM(c.x) FROM c", 1},
				{"group", "SELECT c.city, COUNT(1) AS n FROM c GROUP BY c.city", 100},
				{"sort", "SELECT TOP 10 * FROM c ORDER BY c.missing", 10},
				{"page1000", "SELECT * FROM c WHERE c.active", min(1000, (items+2)/3)},
			} {
				b.Run(c.name, func(b *testing.B) { f.bench(b, f.request(c.text), c.rows) })
			}
			for _, c := range []struct {
				name, text string
				rows       int
			}{
				{"order10", "SELECT * FROM c ORDER BY c.mixed OFFSET 0 LIMIT 10", 10},
				{"range10", fmt.Sprintf("SELECT * FROM c WHERE c.mixed >= %d OFFSET 0 LIMIT 10", items/2), min(10, items/benchKeys/2)},
				{"equality10", "SELECT * FROM c WHERE c.active OFFSET 0 LIMIT 10", min(10, (items/benchKeys+1)/3)},
				{"countrange", fmt.Sprintf("SELECT VALUE COUNT(1) FROM c WHERE c.mixed >= %d", items-items/50), 1},
			} {
				q := f.request(c.text)
				q.Scope.Logical = f.logical("k7")
				b.Run("key/"+c.name, func(b *testing.B) { f.bench(b, q, c.rows) })
			}
		})
	}
}

// BenchmarkPages compares the first page of an ordered query with the second, which goes by
// the path of the first and must not cost more.
func BenchmarkPages(b *testing.B) {
	const items, rows = 10_000, 20
	f := benchFixture(b, items)
	for _, c := range []struct{ name, text string }{
		{"sorted", `SELECT * FROM c WHERE c.city = "city 7" ORDER BY c.mixed`},
		{"missing", `SELECT * FROM c WHERE c.city = "city 7" ORDER BY c.missing`},
		{"walked", "SELECT * FROM c WHERE c.active ORDER BY c.mixed"},
		{"gathered", "SELECT * FROM c WHERE c.mixed < 1000"},
		{"intersected", `SELECT * FROM c WHERE c.mixed < 1000 AND c.x < 5000`},
	} {
		q := f.request(c.text)
		q.MaxRows = rows
		b.Run(c.name+"/first", func(b *testing.B) { f.bench(b, q, rows) })
		q.Token = f.page(q).Token
		b.Run(c.name+"/second", func(b *testing.B) { f.bench(b, q, rows) })
	}
}
