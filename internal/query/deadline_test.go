// SPDX-License-Identifier: MIT

package query

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// hurry makes a request look at the time at every step. After so many looks the time is
// one that is later than all before, until the next page.
func (q *Request) hurry(looks int, late time.Duration) {
	q.every = 1
	q.Elapsed = func() time.Duration {
		if looks--; looks < 0 {
			return late
		}
		return 0
	}
}

const (
	pageIsOver  = PageTime + time.Millisecond
	queryIsOver = time.Minute + time.Millisecond
)

// hurried returns the rows of all pages, each of which ends at one of its first looks.
func (f *fixture) hurried(q Request, looks func() int) (rows []string, pages int) {
	f.t.Helper()
	q.PageTime = PageTime
	for pages < maxPages {
		q.hurry(looks(), pageIsOver)
		page := f.page(q)
		pages++
		rows = append(rows, rowsOf(f.t, page)...)
		if page.Token == "" {
			return rows, pages
		}
		if page.Token == q.Token {
			f.t.Fatalf("%s: a page ends where it began", q.Program.Query())
		}
		q.Token = page.Token
	}
	f.t.Fatalf("%s: more than %d pages", q.Program.Query(), maxPages)
	return nil, 0
}

// A page that takes long ends with what it has, whatever it passes over, and the next
// goes on. All pages together have every row once.
func TestPagesEndInTime(t *testing.T) {
	f := filled(t, 300)
	for i := range 200 {
		f.put(fmt.Sprint("other", i%7), fmt.Sprint(i), fmt.Sprintf(`"x":%d,"same":1,"tags":[1]`, 1000+i))
		f.put("k", fmt.Sprint("dead", i), fmt.Sprintf(`"ttl":1,"x":%d,"same":1`, 2000+i))
	}
	f.advance(2 * time.Second)
	for _, c := range []struct {
		text  string
		whole bool // there is one page
	}{
		{text: "SELECT VALUE c.x FROM c"},
		{text: "SELECT VALUE c.x FROM c WHERE c.x >= 100"},
		{text: "SELECT VALUE c.x FROM c WHERE c.same = 1"},
		{text: "SELECT VALUE c.x FROM c WHERE c.same = 1 AND c.x IN (1, 7, 77, 177, 277)"},
		{text: "SELECT VALUE c.x FROM c WHERE c.same = 1 OR c.x = 2"},
		{text: "SELECT VALUE c.x FROM c ORDER BY c.x DESC"},
		{text: "SELECT VALUE c.x FROM c ORDER BY c.x"},
		{text: "SELECT VALUE c.x FROM c WHERE c.x + 1 = 200"},
		{text: "SELECT VALUE t FROM c JOIN t IN c.tags"},
		{text: "SELECT VALUE c.x FROM c JOIN t IN c.tags WHERE t = 10"},
		{text: "SELECT DISTINCT VALUE c.x FROM c"},
		{text: "SELECT DISTINCT VALUE c.same FROM c"},
		{text: "SELECT VALUE c.x FROM c OFFSET 150 LIMIT 100"},
		{text: "SELECT c.x FROM c GROUP BY c.x", whole: true},
		{text: "SELECT VALUE c.x FROM c ORDER BY c.none"},
		{text: "SELECT VALUE COUNT(1) FROM c WHERE c.x > 7", whole: true},
		{text: "SELECT VALUE SUM(c.x) FROM c", whole: true},
		{text: "SELECT VALUE s FROM (SELECT DISTINCT VALUE c.x FROM c) s", whole: true},
	} {
		for name, scope := range map[string]Scope{"all": {}, "a key": {Logical: f.logical("k")}, "another": {Logical: f.logical("other3")}, "a range": {MinEPK: f.logical("other1").EPK}} {
			q := f.request(c.text)
			q.MaxRows, q.Scope = 1<<20, scope
			want := f.all(q)
			got, pages := f.hurried(q, func() int { return 3 })
			if !slices.Equal(got, want) {
				t.Errorf("%s, %s: got %d rows on %d pages, want %d: %s", c.text, name, len(got), pages, len(want), difference(got, want))
			}
			plan, err := explain(q)
			f.must(err)
			if whole := c.whole || strings.HasSuffix(plan, ", sort"); (pages == 1) != whole && len(want) > 1 {
				t.Errorf("%s, %s: got %d pages for %d rows", c.text, name, pages, len(want))
			}
		}
	}
}

// A page may end at an item that has no row, and whose value is too long for a token.
func TestPagesEndAmongLongStrings(t *testing.T) {
	f := newFixture(t, "")
	for i := range 10 {
		f.put("k", fmt.Sprint(i), fmt.Sprintf(`"n":%d,"long":"%s%d"`, i, x(2000), i/3))
	}
	for _, order := range []string{"", " DESC"} {
		q := f.request("SELECT VALUE c.n FROM c WHERE c.n + 1 = 5 OR c.n + 1 = 6 ORDER BY c.long" + order)
		if got, pages := f.hurried(q, func() int { return 0 }); len(got) != 2 || pages < 3 {
			t.Errorf("got %v on %d pages", got, pages)
		}
	}
}

// A walk that finds nothing ends a page too: at rows of other partition keys, and at
// those of the expired.
func TestPagesEndWhereThereIsNothing(t *testing.T) {
	f := newFixture(t, `"defaultTtl":-1`)
	for i := range 400 {
		f.put(fmt.Sprint("other", i), "o", fmt.Sprintf(`"x":%d,"same":1`, i))
	}
	for i := range logicalItems + 1 {
		f.put("k", fmt.Sprint("last", i), fmt.Sprintf(`"x":%d,"same":1`, 1000+i))
	}
	for _, c := range []struct {
		name  string
		scope Scope
		dead  bool
		texts []string
	}{
		{"others", Scope{Logical: f.logical("k")}, false, []string{
			"SELECT VALUE c.x FROM c ORDER BY c.x OFFSET 0 LIMIT 1", "SELECT VALUE c.x FROM c WHERE c.same = 1 OFFSET 0 LIMIT 1",
		}},
		{"a range", Scope{MinEPK: f.logical("k").EPK, MaxEPK: append(f.logical("k").EPK, 0)}, false, []string{
			"SELECT VALUE c.x FROM c", "SELECT VALUE c.x FROM c WHERE c.x >= 0", "SELECT VALUE c.x FROM c ORDER BY c.x", "SELECT VALUE c.x FROM c WHERE c.same = 1",
			"SELECT VALUE c.x FROM c WHERE c.same = 1 AND c.x > 0",
		}},
		{"the expired", Scope{}, true, []string{
			"SELECT VALUE c.x FROM c", "SELECT VALUE c.x FROM c WHERE c.x >= 0", "SELECT VALUE c.x FROM c WHERE c.same = 1",
		}},
	} {
		if c.dead {
			for i := range 400 {
				f.put(fmt.Sprint("other", i), "o", fmt.Sprintf(`"x":%d,"same":1,"ttl":1`, i))
			}
			f.advance(2 * time.Second)
		}
		for _, text := range c.texts {
			q := f.request(text)
			q.Scope, q.PageTime, q.gathered = c.scope, PageTime, 1
			q.hurry(3, pageIsOver)
			page := f.page(q)
			if page.Count > 0 || page.Token == "" {
				t.Errorf("%s, %s (%s): got %d rows and the token %q, want none and one", c.name, text, page.Plan(), page.Count, page.Token)
			}
			if got, _ := f.hurried(q, func() int { return 3 }); len(got) == 0 {
				t.Errorf("%s, %s: there is nothing in the end", c.name, text)
			}
		}
	}
}

// A query that has taken as long as it may is refused, whatever it was doing, and ends
// at the look that told it so.
func TestQueriesEndInTime(t *testing.T) {
	f := filled(t, 100)
	f.put("k", "wide", `"wide":[`+strings.TrimSuffix(strings.Repeat("1,", 1000), ",")+`]`)
	for _, text := range []string{
		"SELECT VALUE SUM(c.x) FROM c", "SELECT c.x FROM c GROUP BY c.x", "SELECT VALUE c.x FROM c ORDER BY c.none", "SELECT VALUE COUNT(1) FROM c WHERE c.x > 3",
		"SELECT VALUE COUNT(1) FROM c JOIN a IN c.wide JOIN b IN c.wide JOIN d IN c.wide",
		"SELECT VALUE ARRAY(SELECT VALUE a FROM a IN c.wide JOIN b IN c.wide JOIN d IN c.wide WHERE a = 2) FROM c ORDER BY c.x",
		"SELECT VALUE s FROM (SELECT DISTINCT VALUE c.x FROM c) s",
		"SELECT DISTINCT VALUE c.same FROM c ORDER BY c.same",
		"SELECT VALUE c.x FROM c", "SELECT VALUE c.x FROM c ORDER BY c.x", "SELECT VALUE c.x FROM c WHERE c.same = 1 AND c.x > 1",
		`SELECT VALUE c.x FROM c ORDER BY RANK FullTextScore(c.text, "a")`,
	} {
		for looks := range 40 {
			q := f.request(text)
			q.MaxRows, q.QueryTime = 1<<20, time.Minute
			q.hurry(looks, queryIsOver)
			over := 0
			elapsed := q.Elapsed
			q.Elapsed = func() time.Duration {
				now := elapsed()
				if now > 0 {
					over++
				}
				return now
			}
			if page, err := Run(context.Background(), q); !errors.Is(err, ErrQueryTime) || over != 1 {
				t.Errorf("%s: at look %d got %d rows, %v, and looked %d times more", text, looks, page.Count, err, over-1)
			}
		}
	}
}

// A page ends at any look, or a query at any of its looks: what it gives is right.
func (f *fixture) compareHurried(t *random, q *randomQuery, s Scope, want []string) {
	r := f.request(q.String())
	r.Scope, r.MaxRows, r.gathered = s, 1+uniform(t.T, "rows", 50), q.gathered
	most := 1 + uniform(t.T, "looks", 60)
	got, pages := f.hurried(r, func() int { return uniform(t.T, "look", most) })
	if problem := judge(q, canonical(got), slices.Clone(want)); problem != "" {
		plan, err := explain(r)
		f.must(err)
		t.Fatalf("%s\nin a hurry, %d pages, plan: %s, scope %+v\n%s", q, pages, plan, s, problem)
	}
	r.QueryTime = time.Minute
	r.hurry(rapid.IntRange(0, 100).Draw(t.T, "all looks"), queryIsOver)
	if _, err := Run(context.Background(), r); err != nil && !errors.Is(err, ErrQueryTime) {
		t.Fatalf("%s\n%v", q, err)
	}
}
