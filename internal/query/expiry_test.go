// SPDX-License-Identifier: MIT

package query

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/sql/datum"
	"github.com/mayflydb/mayfly/internal/value"
)

// liveCase is a query, how it is answered, and its rows.
type liveCase struct{ text, plan, want string }

// expectLiving asks in pages of several sizes while the dead are still there, and
// again when they are purged. A plan that ends in … may go on.
func (f *fixture) expectLiving(cases []liveCase) {
	f.t.Helper()
	for _, when := range []string{"expired", "purged"} {
		if when == "purged" {
			f.purge()
		}
		for _, c := range cases {
			for _, size := range []int{1, 2, 1000} {
				q := f.request(c.text)
				q.MaxRows = size
				plan, err := explain(q)
				f.must(err)
				begin, open := strings.CutSuffix(c.plan, "…")
				planned := plan == c.plan || open && strings.HasPrefix(plan, begin)
				if got := strings.Join(f.all(q), " "); got != c.want || !planned {
					f.t.Errorf("%s, %s, pages of %d: got %s, %s, want %s, %s", c.text, when, size, got, plan, c.want, c.plan)
				}
			}
		}
		f.checkRows()
	}
}

// Expired items are in no answer, whether they are still there or not: not in
// counts that read no item, nor among those that OFFSET passes over, nor in the
// values of DISTINCT and GROUP BY.
func TestQueriesSeeNoExpiredItem(t *testing.T) {
	f := newFixture(t, `"defaultTtl":100`)
	for i := range 10 {
		ttl := ""
		if i%2 == 1 {
			ttl = `,"ttl":10`
		}
		f.put("k", fmt.Sprint(i), fmt.Sprintf(`"x":%d,"parity":"%d","tags":[%d,"t"]%s`, i, i%2, i, ttl))
	}
	cases := []liveCase{
		{"SELECT VALUE c.x FROM c", "scan", "0 2 4 6 8"},
		{"SELECT VALUE COUNT(1) FROM c", "total", "5"},
		{"SELECT VALUE COUNT(c) FROM c", "scan", "5"},
		{"SELECT VALUE COUNT(1) FROM c WHERE c.x >= 3", "count /x >= 3", "3"},
		{"SELECT VALUE COUNT(1) FROM c WHERE c.parity = '1'", `count /parity = "1"`, "0"},
		{"SELECT VALUE SUM(c.x) FROM c", "scan", "20"},
		{"SELECT VALUE AVG(c.x) FROM c", "scan", "4"},
		{"SELECT VALUE MIN(c.x) FROM c WHERE c.x > 0", "range /x > 0", "2"},
		{"SELECT VALUE MAX(c.x) FROM c", "scan", "8"},
		{"SELECT VALUE c.x FROM c WHERE c.parity = '1'", `seek /parity = "1"`, ""},
		{"SELECT VALUE c.x FROM c WHERE c.x IN (3, 4, 5, 6)", `seek /x = 3 4 5 … 4 values`, "4 6"},
		{"SELECT VALUE c.x FROM c WHERE c.x > 4", `gather /x > 4`, "6 8"},
		{"SELECT VALUE c.x FROM c ORDER BY c.x DESC", "ordered /x descending", "8 6 4 2 0"},
		{"SELECT VALUE c.x FROM c ORDER BY c.missing", "scan, sort", "0 2 4 6 8"},
		{"SELECT TOP 2 VALUE c.x FROM c", "scan", "0 2"},
		{"SELECT VALUE c.x FROM c OFFSET 1 LIMIT 2", "scan", "2 4"},
		{"SELECT VALUE c.x FROM c ORDER BY c.x OFFSET 1 LIMIT 2", "ordered /x", "2 4"},
		{"SELECT VALUE c.x FROM c WHERE c.x > 0 OFFSET 1 LIMIT 2", "gather /x > 0", "4 6"},
		{"SELECT DISTINCT VALUE c.parity FROM c", "scan", `"0"`},
		{"SELECT VALUE c.parity FROM c GROUP BY c.parity", "scan", `"0"`},
		{"SELECT VALUE t FROM c JOIN t IN c.tags WHERE IS_NUMBER(t)", "scan", "0 2 4 6 8"},
		{"SELECT VALUE c.x FROM c WHERE ARRAY_CONTAINS(c.tags, 3)", "seek /tags/[] = 3", ""},
		{"SELECT VALUE c.x FROM c WHERE EXISTS(SELECT VALUE t FROM t IN c.tags WHERE t = 't')", `seek /tags/[] = "t"`, "0 2 4 6 8"},
		{"SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.parity FROM c)", "scan", "1"},
	}
	f.must(f.clock.Set(startMs + 10_000))
	f.expectLiving(cases)
	f.must(f.clock.Set(startMs + 99_999))
	f.expect("SELECT VALUE COUNT(1) FROM c", "5")
	f.must(f.clock.Set(startMs + 100_000))
	f.expect("SELECT VALUE COUNT(1) FROM c", "0")
	f.expect("SELECT VALUE COUNT(1) FROM c WHERE c.x >= 0", "0")
}

// What is said of one partition key, or a range of them, leaves the expired out too.
func TestScopesSeeNoExpiredItem(t *testing.T) {
	f := newFixture(t, `"defaultTtl":-1`)
	for i := range logicalItems + 10 {
		f.put("k", fmt.Sprint(i), fmt.Sprintf(`"x":%d,"ttl":%d`, i, 5+5*(i%2)))
	}
	f.put("l", "1", `"x":1`)
	f.advance(5 * time.Second)
	const want = logicalItems/2 + 5
	for _, text := range []string{"SELECT VALUE c.x FROM c", "SELECT VALUE c.x FROM c WHERE c.x >= 0", "SELECT VALUE c.x FROM c ORDER BY c.x"} {
		for _, scope := range []Scope{{Logical: f.logical("k")}, {MinEPK: f.logical("k").EPK, MaxEPK: append(slices.Clone(f.logical("k").EPK), 0)}} {
			q := f.request(text)
			q.Scope, q.MaxRows = scope, 7
			if got := f.all(q); len(got) != want {
				t.Errorf("%s: got %d rows, want %d", text, len(got), want)
			}
			q.Program = compile(t, strings.Replace(text, "c.x FROM", "COUNT(1) FROM", 1))
			if got := f.all(q); got[0] != fmt.Sprint(want) {
				t.Errorf("%s: got the count %s, want %d", q.Program.Query(), got, want)
			}
		}
	}
}

// All items of a partition key are counted by the index of a property that it is made
// of, whatever kind of value that is, if it is one.
func TestCountWithinAPartitionKey(t *testing.T) {
	f := newFixture(t, `"partitionKey":{"paths":["/a","/b/c"],"kind":"MultiHash","version":2},"defaultTtl":-1`)
	const each = logicalItems + 10
	keys := []value.Scalar{value.String("x"), value.String(x(2000)), value.Number(1.5), value.Bool(true), value.Null(), {}}
	for _, b := range keys {
		for i := range each {
			k := value.PartitionKey{value.String("a"), b}
			text := fmt.Appendf(nil, `{"id":"%d","a":"a","ttl":%d`, i, 5+5*(i%2))
			if b.Defined() {
				text = fmt.Appendf(text, `,"b":{"c":%s}`, b.AppendJSON(nil))
			}
			f.putAs(keyIn(f.under(k), fmt.Sprint(i)), append(text, '}'))
		}
	}
	f.advance(5 * time.Second)
	for _, c := range []struct {
		key  value.PartitionKey
		plan string
		want int
	}{
		{value.PartitionKey{value.String("a"), keys[0]}, "count /b/c of the partition key", each / 2},
		{value.PartitionKey{value.String("a"), keys[1]}, "scan", each / 2}, // the index has its beginning alone
		{value.PartitionKey{value.String("a"), keys[2]}, "count /b/c of the partition key", each / 2},
		{value.PartitionKey{value.String("a"), keys[3]}, "count /b/c of the partition key", each / 2},
		{value.PartitionKey{value.String("a"), keys[4]}, "count /b/c of the partition key", each / 2},
		{value.PartitionKey{value.String("a"), keys[5]}, "scan", each / 2}, // no index has what is not there
		{value.PartitionKey{value.String("a")}, "count /a of the partition key", each / 2 * len(keys)},
		{value.PartitionKey{value.String("b"), keys[0]}, "scan", 0},
	} {
		q := f.request("SELECT VALUE COUNT(1) FROM c")
		q.Scope.Logical = f.under(c.key)
		page := f.page(q)
		if got := rowsOf(t, page)[0]; got != fmt.Sprint(c.want) || page.Plan() != c.plan {
			t.Errorf("%s: got %s by %s, want %d by %s", c.key[len(c.key)-1], got, page.Plan(), c.want, c.plan)
		}
	}
}

// Scenario 54: a page is of one moment, however the clock moves while it is made.
func TestAPageIsOfOneMoment(t *testing.T) {
	f := newFixture(t, `"defaultTtl":-1`)
	for i := range 10 {
		f.put("k", fmt.Sprint(i), fmt.Sprintf(`"x":%d,"ttl":10`, i))
	}
	q := f.request("SELECT VALUE udf.later(c.x) FROM c")
	q.UDF = func(_ string, args []datum.Value) (datum.Value, error) {
		f.advance(5 * time.Second) // in the middle of the page
		f.purge()
		return args[0], nil
	}
	if got := strings.Join(rowsOf(t, f.page(q)), ""); got != "0123456789" {
		t.Errorf("got %s, want all that were there when the page began", got)
	}
	f.expect("SELECT VALUE c.x FROM c")
}

// Scenario 52: half of the items die between two pages: the second shows only the living, and
// none twice.
func TestPagesAcrossADeath(t *testing.T) {
	for _, text := range pagedQueries {
		f := newFixture(t, `"defaultTtl":-1`)
		for i := range 20 {
			f.put("k", fmt.Sprint("i", i), fmt.Sprintf(`"x":%d,"same":1,"tags":[1],"maybe":1,"long":"%s%02d","ttl":%d`, i, x(300), i, 10+10*(i%2)))
		}
		q := f.request(text)
		q.MaxRows = 6
		page := f.page(q)
		rows := rowsOf(t, page)
		f.advance(10 * time.Second)
		q.Token, q.NowMs = page.Token, f.clock.Now()
		for _, row := range f.all(q) {
			var n int
			if _, err := fmt.Sscanf(row, `"i%d"`, &n); err != nil || n%2 == 0 || slices.Contains(rows, row) {
				t.Errorf("%s: %s is dead, or comes a second time", text, row)
			}
			rows = append(rows, row)
		}
		living := slices.DeleteFunc(rows, func(row string) bool {
			return !strings.HasSuffix(row, `1"`) && !strings.HasSuffix(row, `3"`) && !strings.HasSuffix(row, `5"`) && !strings.HasSuffix(row, `7"`) && !strings.HasSuffix(row, `9"`)
		})
		if len(living) != 10 {
			t.Errorf("%s: got %q, want ten that live", text, living)
		}
	}
}

// Where nearly all have expired, a query that wants one item is answered, and is
// charged for what it was shown.
func TestTopOneAmongTheDead(t *testing.T) {
	f := newFixture(t, `"defaultTtl":-1`)
	f.fillWith(2000, func(i int) string {
		if i == 1500 {
			return fmt.Sprintf(`"x":%d`, i)
		}
		return fmt.Sprintf(`"x":%d,"ttl":1`, i)
	})
	f.advance(time.Minute)
	for _, text := range []string{"SELECT TOP 1 VALUE c.x FROM c", "SELECT TOP 1 VALUE c.x FROM c WHERE c.x >= 0", "SELECT TOP 1 VALUE c.x FROM c ORDER BY c.x"} {
		page := f.page(f.request(text))
		if got := string(page.Rows); got != "1500" || page.Work.Items != 1 || page.Work.IndexRows > 1 {
			t.Errorf("%s: got %s for %+v, want 1500 for one item", text, got, page.Work)
		}
	}
}
