// SPDX-License-Identifier: MIT

package query

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/sql"
)

const textIndexed = `"indexingPolicy":{"fullTextIndexes":[{"path":"/text"}]}`

// Expired items have no part in full-text search, whether they are still there or not:
// neither among what is found, nor in the statistics that scores are made from.
func TestFullTextSeesNoExpiredItem(t *testing.T) {
	f := newFixture(t, `"defaultTtl":100,`+textIndexed)
	for i := range 10 {
		ttl := ""
		if i%2 == 1 {
			ttl = `,"ttl":10`
		}
		f.put("k", fmt.Sprint(i), fmt.Sprintf(`"x":%d,"text":"%s bicycle%s"%s`, i, []string{"red", "green", "blue"}[i%3], strings.Repeat(" lane", i), ttl))
	}
	f.must(f.clock.Set(startMs + 10_000))
	queries := []struct{ text, plan string }{
		{"SELECT VALUE c.x FROM c WHERE FullTextContains(c.text, 'bicycles')", "seek /text has bicycl"},
		{"SELECT VALUE c.x FROM c WHERE FullTextContainsAny(c.text, 'red', 'green')", "seek /text has red or green"},
		{"SELECT VALUE COUNT(1) FROM c WHERE FullTextContainsAll(c.text, 'red', 'lane')", "seek /text has red"},
		{"SELECT TOP 3 c.x FROM c ORDER BY RANK FullTextScore(c.text, 'red', 'lane')", "rank /text for red, lane"},
		{"SELECT c.x FROM c ORDER BY RANK FullTextScore(c.text, 'lane') OFFSET 1 LIMIT 3", "rank /text for lane"},
		{"SELECT TOP 3 VALUE c.x FROM c WHERE FullTextContains(c.text, 'lane') ORDER BY RANK FullTextScore(c.text, 'lane')", "seek /text has lane"},
		{"SELECT TOP 2 c.x FROM c ORDER BY _FullTextScore(c.text, ['lane'], 10, 50, [5]) DESC", "scores /text descending for lane, sort"},
		{"SELECT COUNT(1) AS n, SUM(_FullTextWordCount(c.text)) AS words, COUNTIF(FullTextContains(c.text, 'red')) AS red FROM c", "texts /text for red"},
	}
	for _, when := range []string{"expired", "purged"} {
		if when == "purged" {
			f.purge()
		}
		for _, q := range queries {
			want := f.naive(q.text, Scope{}, strings.HasSuffix(q.text, "DESC"))
			for _, size := range []int{1, 2, 1000} {
				r := f.request(q.text)
				r.MaxRows = size
				plan, err := explain(r)
				f.must(err)
				if got := canonical(f.all(r)); !slices.Equal(got, want) || plan != q.plan {
					t.Errorf("%s, %s, pages of %d:\ngot  %s, %s\nwant %s, %s", q.text, when, size, got, plan, want, q.plan)
				}
			}
		}
	}
	f.must(f.clock.Set(startMs + 100_000))
	for _, q := range queries {
		if got, want := f.query(q.text), f.naive(q.text, Scope{}, false); !slices.Equal(canonical(got), want) || len(got) > 1 {
			t.Errorf("%s: got %s of nothing, want %s", q.text, got, want)
		}
	}
}

// A ranking reads the items that it shows, and what is asked of all texts reads none.
func TestFullTextReadsFewItems(t *testing.T) {
	f := newFixture(t, textIndexed)
	f.fillWith(300, func(i int) string {
		return fmt.Sprintf(`"x":%d,"text":"word%d and %s"`, i, i, strings.Repeat("more ", i%10)+"common things")
	})
	for text, most := range map[string]int64{
		"SELECT c.x FROM c WHERE FullTextContains(c.text, 'word7')":                                                   1,
		"SELECT c.x FROM c WHERE FullTextContainsAll(c.text, 'common', 'word7')":                                      1,
		"SELECT c.x FROM c WHERE FullTextContains(c.text, 'common word7')":                                            1,
		"SELECT TOP 5 c.x FROM c ORDER BY RANK FullTextScore(c.text, 'word7', 'word8')":                               5,
		"SELECT TOP 5 c.x FROM c ORDER BY RANK FullTextScore(c.text, 'word7', 'common')":                              5,
		"SELECT TOP 5 c.x FROM c ORDER BY _FullTextScore(c.text, ['word7'], 300, 900, [1]) DESC":                      7,
		"SELECT COUNT(1), SUM(_FullTextWordCount(c.text)), COUNTIF(FullTextContains(c.text, 'common things')) FROM c": 300,
		"SELECT COUNT(1), SUM(_FullTextWordCount(c.text)), COUNTIF(FullTextContains(c.text, 'word7')) FROM c":         0,
	} {
		page := f.page(f.request(text))
		if page.Work.Items > most {
			t.Errorf("%s, by %s: read %d items, want at most %d", text, page.Plan(), page.Work.Items, most)
		}
	}
}

// A text with too many words for the index is found by looking at it.
func TestLongTextsAreFound(t *testing.T) {
	f := newFixture(t, `"defaultTtl":-1,`+textIndexed)
	var long strings.Builder
	for i := range 25_000 {
		fmt.Fprintf(&long, "w%d ", i)
	}
	f.put("k", "long", `"text":"`+long.String()+`needle in hay"`)
	f.put("k", "dead", `"ttl":5,"text":"`+long.String()+`needle in hay"`)
	f.put("k", "short", `"text":"a needle"`)
	f.put("k", "other", `"text":"w7 pins"`)
	f.advance(5 * time.Second)
	f.checkRows()
	for _, text := range []string{
		"SELECT VALUE c.id FROM c WHERE FullTextContains(c.text, 'needle')",
		"SELECT VALUE c.id FROM c WHERE FullTextContains(c.text, 'needle hay')",
		"SELECT VALUE c.id FROM c WHERE FullTextContainsAny(c.text, 'w24999', 'pin')",
		"SELECT VALUE c.id FROM c ORDER BY RANK FullTextScore(c.text, 'needle', 'w7')",
		"SELECT VALUE c.id FROM c ORDER BY _FullTextScore(c.text, ['w8'], 3, 5, [1]) DESC",
		"SELECT SUM(_FullTextWordCount(c.text)) AS n, COUNTIF(FullTextContains(c.text, 'needle')) AS hits FROM c",
	} {
		if got, want := canonical(f.query(text)), f.naive(text, Scope{}, strings.HasSuffix(text, "DESC")); !slices.Equal(got, want) {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
	for _, id := range []string{"long", "short"} {
		f.remove("k", id)
	}
	f.purge()
	f.checkRows()
}

// What a client runs for the parts of a ranking gives what the ranking gives.
func TestStatisticsOfScopes(t *testing.T) {
	f := newFixture(t, textIndexed)
	for i := range 250 {
		f.put(partitionKeys[i%len(partitionKeys)], fmt.Sprint(i), fmt.Sprintf(`"text":"w%d w%d"`, i%7, i%11))
	}
	const text = "SELECT COUNT(1) AS n, [{words: SUM(_FullTextWordCount(c.text)), hits: [COUNTIF(FullTextContains(c.text, 'w3'))]}] AS t FROM c"
	for _, s := range []Scope{{}, {Logical: f.logical("k")}, {MinEPK: f.logical("l").EPK}, {MaxEPK: f.logical("l").EPK}} {
		q := f.request(text)
		q.Scope = s
		if got, want := canonical(f.all(q)), f.naive(text, s, false); !slices.Equal(got, want) {
			t.Errorf("%+v: got %s, want %s", s, got, want)
		}
	}
	if _, ok := compile(t, text+" WHERE c.x > 1").TextAggregates(); ok {
		t.Error("a filter is overlooked")
	}
	if q, ok := compile(t, text).TextAggregates(); !ok || len(q) != 3 || !slices.Equal(q[2].Path, sql.Path{{Name: "text"}}) {
		t.Errorf("got %+v", q)
	}
}

// An item that has too much for the index of a new policy is found all the same: then
// no query goes by that index.
func TestTooMuchToIndexIsFound(t *testing.T) {
	const none = `"indexingPolicy":{"includedPaths":[{"path":"/x/?"}],"excludedPaths":[{"path":"/*"}]}`
	f := newFixture(t, none)
	numbers := make([]string, 70_000)
	for i := range numbers {
		numbers[i] = fmt.Sprint(i)
	}
	f.put("k", "1", `"x":1,"text":"red"`)
	f.put("k", "2", fmt.Sprintf(`"x":2,"text":"red","%s":[%s]`, x(250), strings.Join(numbers, ",")))
	f.put("k", "3", `"x":3,"text":"red"`)
	find := func(plan string) {
		t.Helper()
		for _, text := range []string{"SELECT VALUE c.x FROM c WHERE c.x >= 1 AND FullTextContains(c.text, 'red')", "SELECT VALUE c.x FROM c WHERE c.x IN (1, 2, 3)"} {
			page := f.page(f.request(text))
			if got := string(page.Rows); got != "1,2,3" || page.Plan() != plan {
				t.Errorf("%s: got %s by %s, want 1,2,3 by %s", text, got, page.Plan(), plan)
			}
		}
	}
	f.reconfigure(textIndexed)
	f.reindex(1)
	find("scan")
	f.reopen()
	f.put("k", "1", `"x":1,"text":"red","more":true`)
	f.reindex(10)
	find("scan")
	f.checkRows()
	f.remove("k", "2")
	f.checkRows()
	f.reconfigure(none)
	f.reindex(10)
	f.put("k", "4", `"x":4`)
	if got := f.page(f.request("SELECT VALUE c.x FROM c WHERE c.x > 1")); string(got.Rows) != "3,4" || got.Plan() != "gather /x > 1" {
		t.Errorf("got %s by %s", got.Rows, got.Plan())
	}
	f.checkRows()
}

// Rows that are equally good come in the order of their creation, also where they are
// found in another.
func TestEqualRanksKeepTheirOrder(t *testing.T) {
	f := newFixture(t, textIndexed)
	for i := range 6 {
		f.put("k", fmt.Sprint(i), fmt.Sprintf(`"x":%d,"text":"red"`, 9-i))
	}
	const text = "SELECT VALUE c.x FROM c WHERE c.x > 4 ORDER BY RANK FullTextScore(c.text, 'red')"
	if plan := f.page(f.request(text)).Plan(); plan != "range /x > 4" {
		t.Fatalf("found by %s", plan)
	}
	f.expect(text, "9", "8", "7", "6", "5")
}
