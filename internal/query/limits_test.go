// SPDX-License-Identifier: MIT

package query

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// filled is a partition with so many items.
func filled(t testing.TB, items int) *fixture {
	t.Helper()
	f := newFixture(t, `"defaultTtl":-1`)
	f.fillWith(items, func(i int) string {
		return fmt.Sprintf(`"x":%d,"same":1,"tags":[1,2,3,4,5,6,7,8,9,10]`, i)
	})
	return f
}

// A query whose client has gone ends soon, whatever it was doing.
func TestCancelledQueriesEnd(t *testing.T) {
	f := filled(t, 3000)
	for i := range 3000 { // expired: a walk that shows nothing ends too
		f.put("dead", fmt.Sprint(i), `"ttl":1,"x":-1,"gone":1`)
	}
	f.advance(2 * time.Second)
	for _, text := range []string{
		"SELECT VALUE c.x FROM c WHERE c.x < 0 OR c.same = 2",
		"SELECT VALUE c.x FROM c WHERE c.same = 1 AND c.x < 0 OR c.y = 1",
		"SELECT VALUE c.x FROM c WHERE c.x > 0 AND c.same > 2 OR c.y > 1",
		"SELECT VALUE c.x FROM c WHERE c.x >= -1 AND c.same > 1",
		"SELECT VALUE c.x FROM c WHERE c.same IN (1, 2) AND c.x < 0",
		"SELECT VALUE c.x FROM c WHERE c.same IN (1, 2) AND c.same IN (1, 3)",
		"SELECT VALUE c.x FROM c ORDER BY c.y",
		"SELECT VALUE c.x FROM c WHERE c.y > 1 OR c.z > 1 ORDER BY c.x DESC",
		"SELECT c.x, COUNT(1) FROM c GROUP BY c.x",
		"SELECT DISTINCT VALUE c.same FROM c",
		"SELECT VALUE COUNT(1) FROM c WHERE c.x >= 0",
		"SELECT VALUE SUM(c.x) FROM c",
		"SELECT VALUE COUNT(1) FROM c JOIN a IN c.tags JOIN b IN c.tags JOIN d IN c.tags JOIN e IN c.tags",
		"SELECT VALUE s FROM (SELECT DISTINCT VALUE c.x FROM c) s",
		"SELECT VALUE c.x FROM c WHERE c.gone = 1",
		"SELECT VALUE c.x FROM c WHERE c.gone >= 1",
	} {
		for _, scope := range []Scope{{}, {Logical: f.logical("k")}, {MinEPK: []byte{0xff}}} { // the last has no item
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			q := f.request(text)
			q.Scope, q.MaxRows, q.MaxBytes = scope, 1<<20, 1<<30
			if page, err := Run(ctx, q); !errors.Is(err, context.Canceled) {
				t.Errorf("%s, %+v: got %v and %+v, want that it is cancelled", text, scope, err, page.Work)
			}
		}
	}
}

// What has to be held in memory is bounded; what need not be is not.
func TestSortTooLarge(t *testing.T) {
	f := newFixture(t, "")
	const items, size = 40, 100 << 10
	for i := range items { // twenty rows of each are more than may be held
		f.put("k", fmt.Sprint(i), fmt.Sprintf(`"x":%d,"pad":"%s%d","tags":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20]`, i, x(size), i))
	}
	for text, large := range map[string]bool{
		"SELECT * FROM c ORDER BY c.y":                                                          false, // is made when it is shown
		"SELECT c.id FROM c ORDER BY c.y OFFSET 30 LIMIT 5":                                     false,
		"SELECT * FROM c ORDER BY c.x":                                                          false,
		"SELECT c.pad, t FROM c JOIN t IN c.tags ORDER BY c.x":                                  true,
		"SELECT DISTINCT c.pad, t FROM c JOIN t IN c.tags":                                      false, // a hash of each is held
		"SELECT c.pad, COUNT(1) AS n FROM c GROUP BY c.pad":                                     false,
		"SELECT c.pad, t FROM c JOIN t IN c.tags GROUP BY c.pad,t":                              true,
		"SELECT VALUE MAX(c.pad) FROM c":                                                        false,
		"SELECT VALUE s.x FROM (SELECT DISTINCT c.x, c.pad FROM c) s":                           false,
		"SELECT VALUE s.t FROM (SELECT DISTINCT c.x, c.pad, t FROM c JOIN t IN c.tags) s":       true,
		"SELECT VALUE s.n FROM (SELECT c.pad, COUNT(1) AS n FROM c GROUP BY c.pad) s":           false,
		"SELECT VALUE c.id FROM c WHERE c.x >= 0 AND LENGTH(c.pad) > 1 ORDER BY c.x DESC":       false,
		"SELECT VALUE t FROM c JOIN t IN c.tags ORDER BY c.pad":                                 true,
		"SELECT VALUE c.id FROM c ORDER BY c.pad":                                               false,
		"SELECT VALUE c.id FROM c WHERE NOT IS_DEFINED(c.pad) OR c.x = 1 ORDER BY c.pad":        false,
		"SELECT DISTINCT VALUE LENGTH(c.pad) FROM c":                                            false,
		"SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.pad FROM c)":                       false,
		"SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE [c.pad, t] FROM c JOIN t IN c.tags)": true,
	} {
		q := f.request(text)
		q.MaxBytes = 40 << 20
		var err error
		for first := true; (first || q.Token != "") && err == nil; first = false {
			var page Page
			page, err = Run(context.Background(), q)
			q.Token = page.Token
		}
		if errors.Is(err, ErrSortTooLarge) != large || !large && err != nil {
			t.Errorf("%s: got %v, want ErrSortTooLarge: %v", text, err, large)
		}
	}
}

// A page has no more rows than it may have, and ends soon after its bytes.
func TestPagesAreBounded(t *testing.T) {
	f := filled(t, 100)
	for _, text := range []string{
		"SELECT VALUE c.x FROM c", "SELECT VALUE c.x FROM c WHERE c.x >= 0", "SELECT VALUE c.x FROM c ORDER BY c.x", "SELECT VALUE c.x FROM c ORDER BY c.y",
		"SELECT VALUE t FROM c JOIN t IN c.tags", "SELECT VALUE c.x FROM c GROUP BY c.x", "SELECT DISTINCT VALUE c.x FROM c",
		"SELECT VALUE s FROM (SELECT DISTINCT VALUE c.x FROM c) s",
	} {
		q := f.request(text)
		q.MaxRows = 7
		if page := f.page(q); page.Count != 7 || page.Token == "" {
			t.Errorf("%s: got %d rows, want 7 and that there are more", text, page.Count)
		}
		q.MaxRows, q.MaxBytes = 1000, 20
		if page := f.page(q); len(page.Rows) < 20 || len(page.Rows) > 30 || page.Token == "" {
			t.Errorf("%s: got %d bytes, want about 20 and that there are more", text, len(page.Rows))
		}
	}
	for text, want := range map[string]int{
		"SELECT TOP 0 * FROM c": 0, "SELECT TOP 7 * FROM c": 7, "SELECT TOP 7 * FROM c ORDER BY c.y": 7, "SELECT TOP 7 * FROM c ORDER BY c.x": 7,
		"SELECT * FROM c OFFSET 98 LIMIT 7": 2, "SELECT * FROM c OFFSET 200 LIMIT 7": 0, "SELECT * FROM c ORDER BY c.y OFFSET 98 LIMIT 7": 2,
	} {
		q := f.request(text)
		q.MaxRows = 7
		if page := f.page(q); page.Count != want || want == 7 && page.Token != "" {
			t.Errorf("%s: got %d rows and the token %q, want %d and none", text, page.Count, page.Token, want)
		}
	}
}

// The page with the last row has no token, and a row that is left to the next page is none
// of a page's work. All items, without a filter, are not looked ahead of.
func TestLastPages(t *testing.T) {
	f := filled(t, 20)
	for text, ahead := range map[string]bool{
		"SELECT * FROM c": false, "SELECT VALUE c.x FROM c WHERE c.x >= 0": true, "SELECT VALUE c.x FROM c ORDER BY c.x": true,
		"SELECT VALUE c.x FROM c ORDER BY c.y": true, "SELECT VALUE c.x FROM c GROUP BY c.x": true, "SELECT DISTINCT VALUE c.x FROM c": true,
		"SELECT DISTINCT VALUE c.x FROM c ORDER BY c.y": true, "SELECT VALUE s FROM (SELECT DISTINCT VALUE c.x FROM c) s": true,
		"SELECT VALUE c.x FROM c WHERE c.x < 1e9 AND NOT (c.x > 1e9)": true,
	} {
		q := f.request(text)
		q.MaxRows = 5
		pages, items := 0, int64(0)
		for pages < 10 {
			page := f.page(q)
			pages++
			items += page.Work.Items
			if q.Token = page.Token; q.Token == "" {
				break
			}
		}
		if want := map[bool]int{true: 4, false: 5}[ahead]; pages != want {
			t.Errorf("%s: %d pages, want %d", text, pages, want)
		}
		if strings.Contains(text, "WHERE") && items != 20 {
			t.Errorf("%s: %d items were counted, want 20", text, items)
		}
	}
}
