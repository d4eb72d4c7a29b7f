// SPDX-License-Identifier: MIT

package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/sql/datum"
)

// A full page has a continuation, even if it holds the last row: the service does not
// look ahead, and tests of the Go SDK count the empty page that follows.
func TestContinuationOfAFullPage(t *testing.T) {
	w := newWorld(t)
	keys := spread(w.container("c", "null", 4))
	page := func(most int, continuation string) Answer {
		p, err := w.e.QueryItems(t.Context(), &Request{
			Target: Target{Database: "d", Container: "c"}, Query: Query{Text: "SELECT VALUE c.id FROM c", Params: map[string]datum.Value{}},
			CrossPartition: true, MaxItems: most, Continuation: continuation,
		})
		w.must(err)
		return p
	}
	w.put("c", keys[3], "one", "")
	w.put("c", keys[3], "two", "")
	p := page(2, "")
	for p.Count == 0 && p.Continuation != "" {
		p = page(2, p.Continuation)
	}
	if string(p.Rows) != `"one","two"` || p.Continuation == "" {
		t.Fatalf("%s with the continuation %q, want both and one", p.Rows, p.Continuation)
	}
	if p = page(2, p.Continuation); p.Count != 0 || p.Continuation != "" {
		t.Errorf("then %d rows with the continuation %q, want none", p.Count, p.Continuation)
	}
	for p = page(3, ""); p.Count == 0 && p.Continuation != ""; {
		p = page(3, p.Continuation)
	}
	if p.Count != 2 || p.Continuation != "" {
		t.Errorf("%d rows with the continuation %q on a page with room for 3", p.Count, p.Continuation)
	}
}

// A query for one of the scores that a client ranks by has all its rows on one page, whatever
// was asked for: the SDKs of Java and Python read one page of it.
func TestOnePageOfAScore(t *testing.T) {
	w := newWorld(t)
	key := spread(w.container("c", "null", 1))[0]
	for i := range defaultPageItems + 1 {
		w.put("c", key, fmt.Sprint("item ", i), "")
	}
	check := func() {
		t.Helper()
		for _, order := range []string{`_FullTextScore(c.id, ["item"], 9, 9, [9]) DESC`, "_VectorScore(c.none, [1, 2])"} {
			for _, most := range []int{0, 2} {
				score, _, _ := strings.Cut(order, " DESC")
				p, err := w.e.QueryItems(t.Context(), &Request{
					Target: Target{Database: "d", Container: "c"}, Range: catalog.RangeID(0), MaxItems: most,
					Query: Query{Text: `SELECT TOP 120 c._rid, [{"item": ` + score + `}] AS orderByItems, {"payload": c.id} AS payload FROM c ORDER BY ` + order},
				})
				w.must(err)
				if p.Count != defaultPageItems+1 || p.Continuation != "" {
					t.Errorf("%s, %d: %d rows with the continuation %q, want all", order, most, p.Count, p.Continuation)
				}
			}
		}
	}
	check()
	w.split("0") // the ranges that were made from it answer for it
	check()
}

// A page ends with its partition, even if there is room for more rows, and a partition
// without rows has an empty page.
func TestPagesEndWithTheirPartition(t *testing.T) {
	w := newWorld(t)
	keys := spread(w.container("c", "null", 4))
	for _, i := range []int{1, 1, 3} {
		w.put("c", keys[i], fmt.Sprint("of ", i, " at ", w.e.Clock().Now()), "")
		w.must(w.e.Clock().Advance(time.Millisecond))
	}
	var pages []int
	for continuation := ""; len(pages) < 9; {
		p, err := w.e.QueryItems(t.Context(), &Request{
			Target: Target{Database: "d", Container: "c"}, Query: Query{Text: "SELECT * FROM c"},
			CrossPartition: true, MaxItems: 100, Continuation: continuation,
		})
		w.must(err)
		pages = append(pages, p.Count)
		if continuation = p.Continuation; continuation == "" {
			break
		}
	}
	if want := []int{0, 2, 0, 1}; !slices.Equal(pages, want) {
		t.Errorf("pages of %v rows, want %v", pages, want)
	}
}
