// SPDX-License-Identifier: MIT

package query

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/memory"
)

// created returns items whose x falls as they are created, and y goes round.
func created(t testing.TB, n int) *fixture {
	f := newFixture(t, `"defaultTtl":-1`)
	for i := range n {
		f.put("k", strconv.Itoa(i), fmt.Sprintf(`"x":%d,"y":%d`, n-i, i%10))
	}
	return f
}

// Without ORDER BY rows come in the order of creation, whatever the filter: up to the
// number of rows that are gathered.
func TestRowsComeAsCreated(t *testing.T) {
	const items = 300
	f := created(t, items)
	for _, c := range []struct {
		where, plan, byIndex string
	}{
		{"c.x > 0", "gather /x > 0", "range /x > 0"},
		{"c.x > 20 AND c.x <= 250", "gather /x > 20 <= 250", "range /x > 20 <= 250"},
		{"c.x <= 250 AND c.y > 4", "intersection of gather /y > 4, gather /x <= 250", "range /x <= 250"},
		{"c.y >= 2 AND c.x > 40 AND c.y < 9", "intersection of gather /y >= 2 < 9, gather /x > 40", "range /y >= 2 < 9"},
		{"c.y IN (1, 2, 3, 4, 5) AND c.x > 100", "intersection of seek /y = 1 2 3 … 5 values, gather /x > 100", "seek /y = 1 2 3 … 5 values"},
		{"c.y = 1 AND c.x > 290", "gather /x > 290", "seek /y = 1"},
	} {
		text := "SELECT VALUE c.x FROM c WHERE " + c.where
		want := f.naive(text, Scope{}, false)
		for _, size := range []int{1, 7, 1000} {
			q := f.request(text)
			q.MaxRows = size
			if got := f.all(q); !slices.Equal(got, want) || f.page(q).Plan() != c.plan {
				t.Errorf("%s, pages of %d, %s, want %s: %s", c.where, size, f.page(q).Plan(), c.plan, difference(got, want))
			}
		}
		page := f.page(f.request(text))
		if strings.HasPrefix(c.plan, "intersection") && page.Work.Items != int64(len(want)) {
			t.Errorf("%s: read %d items for %d rows", c.where, page.Work.Items, len(want))
		}
		q := f.request(text)
		q.gathered = 9
		if plan := f.page(q).Plan(); plan != c.byIndex {
			t.Errorf("%s, gathering 9 rows: %s, want %s", c.where, plan, c.byIndex)
		}
	}
}

// The first page decides whether rows come in the order of creation, and its token keeps
// that, though the range grows or shrinks.
func TestTheFirstPageDecidesTheOrder(t *testing.T) {
	for _, grows := range []bool{true, false} {
		f := created(t, 20)
		q := f.request("SELECT VALUE c.x FROM c WHERE c.x > 10")
		q.MaxRows, q.gathered = 3, 15
		plan := "gather /x > 10"
		want := []string{"20", "19", "18", "17", "16", "15", "14", "13", "12", "11"}
		if !grows {
			q.gathered, plan = 9, "range /x > 10"
			slices.Reverse(want)
		}
		page := f.page(q)
		got := rowsOf(t, page)
		if grows {
			for i := range 20 { // more than are gathered
				f.put("k", fmt.Sprint("more", i), fmt.Sprintf(`"x":%d`, 100+i))
				want = append(want, strconv.Itoa(100+i))
			}
		} else {
			f.remove("k", "9") // x is 11, which was shown, so that there are few enough
		}
		for q.Token = page.Token; q.Token != ""; q.Token = page.Token {
			page = f.page(q)
			got = append(got, rowsOf(t, page)...)
			if page.Plan() != plan {
				t.Errorf("a later page goes by %s, the first by %s", page.Plan(), plan)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", plan, got, want)
		}
	}
}

// A later page reads no more than the first, and goes by the same path.
func TestALaterPageCostsNoMore(t *testing.T) {
	f := created(t, 2000)
	for _, text := range []string{
		"SELECT * FROM c WHERE c.y = 1 ORDER BY c.x", "SELECT * FROM c WHERE c.y = 1 ORDER BY c.missing", "SELECT * FROM c WHERE c.y = 1 ORDER BY c.x DESC",
		"SELECT * FROM c WHERE c.y = 1 AND c.x < 1500", "SELECT * FROM c WHERE c.x > 5", "SELECT * FROM c WHERE c.y IN (1, 2) AND c.x > 100 ORDER BY c.id",
		"SELECT c.x FROM c WHERE c.x > 100 GROUP BY c.x",
	} {
		q := f.request(text)
		q.MaxRows = 10
		first := f.page(q)
		q.Token = first.Token
		second := f.page(q)
		if second.Count != 10 || second.Plan() != first.Plan() {
			t.Errorf("%s: the second page has %d rows by %s, the first by %s", text, second.Count, second.Plan(), first.Plan())
		}
		if second.Work.Items > first.Work.Items || second.Work.IndexRows > first.Work.IndexRows+1 {
			t.Errorf("%s: the second page took %+v, the first %+v", text, second.Work, first.Work)
		}
	}
}

// A query for a few rows of many items gathers few. Those of a larger range come in the
// order of the index, also within a partition key: items that are older may all lie
// outside of the range.
func TestFewRowsGatherFew(t *testing.T) {
	for _, c := range []struct {
		items, rows int
		plan        string
	}{
		{fewHits, fewHits, "gather"},
		{fewHits + 1, fewGathered, "gather"},
		{fewHits + 1, fewGathered + 1, "range"},
	} {
		f := newFixture(t, "")
		f.fillWith(c.items, func(i int) string { return fmt.Sprintf(`"x":%d`, i) })
		for _, scope := range []Scope{{}, {Logical: f.logical("k")}} {
			q := f.request(fmt.Sprintf("SELECT TOP 5 VALUE c.x FROM c WHERE c.x >= %d", c.items-c.rows))
			q.Scope = scope
			page := f.page(q)
			if want := fmt.Sprintf("%s /x >= %d", c.plan, c.items-c.rows); page.Plan() != want || page.Count != 5 {
				t.Errorf("5 of %d rows among %d items: %d by %s, want %s", c.rows, c.items, page.Count, page.Plan(), want)
			}
			if page.Work.Items > 6 {
				t.Errorf("5 of %d rows among %d items: %d items read", c.rows, c.items, page.Work.Items)
			}
		}
	}
}

// Ordinals that are gathered are a part of what a query holds in memory.
func TestGatheredOrdinalsTakeMemory(t *testing.T) {
	const items = 2 * memory.FreeBytes / ordinalBytes
	f := newFixture(t, "")
	f.fillWith(items, func(i int) string { return fmt.Sprintf(`"x":%d`, i) })
	const total = 16 << 20
	budget := memory.NewBudget(total)
	budget.Wait = time.Millisecond
	others, share := budget.Share(), budget.Share()
	if !others.TryTake(total) {
		t.Fatal("refused")
	}
	q := f.request("SELECT TOP 2000 VALUE c.x FROM c WHERE c.x >= 0")
	q.Memory, q.gathered = &share, items
	if page, err := Run(f.context(), q); !errors.Is(err, memory.ErrFull) {
		t.Errorf("got %d rows, %v, want %v", page.Count, err, memory.ErrFull)
	}
	others.Close()
	if page, err := Run(f.context(), q); err != nil || page.Count != 1000 {
		t.Errorf("got %d rows, %v", page.Count, err)
	}
	share.Close()
	if use := budget.Use(); use.Held != 0 {
		t.Errorf("at the end: %+v", use)
	}
	// A query that may not hold as much goes in the order of the index.
	small := memory.NewBudget(memory.FreeBytes)
	share = small.Share()
	q.Memory = &share
	if page, err := Run(f.context(), q); err != nil || page.Plan() != "range /x >= 0" {
		t.Errorf("with little memory: %v by %s", err, page.Plan())
	}
	share.Close()
}
