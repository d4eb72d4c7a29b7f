// SPDX-License-Identifier: MIT

package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/memory"
	"github.com/mayflydb/mayfly/internal/query"
)

// mergedQueries have to be merged over partitions. Those without an order compare sorted.
var mergedQueries = []string{
	`SELECT * FROM c ORDER BY c.n`,
	`SELECT c.id, c.g FROM c ORDER BY c.g DESC`,
	`SELECT VALUE c.id FROM c WHERE c.n > 3 ORDER BY c.g OFFSET 3 LIMIT 9`,
	`SELECT TOP 7 c.id FROM c ORDER BY c.n DESC`,
	`SELECT VALUE {id: c.id, x: x} FROM c JOIN x IN c.list ORDER BY c.g`,
	`SELECT DISTINCT VALUE c.g FROM c ORDER BY c.g`,
	`SELECT DISTINCT c.g, c.s FROM c ORDER BY c.g`,
	`SELECT VALUE COUNT(1) FROM c`,
	`SELECT VALUE AVG(c.n) FROM c WHERE c.g != 1`,
	`SELECT COUNT(1), SUM(c.n) AS s, AVG(c.n) m, MIN(c.g), MAX(c.s) x FROM c`,
	`SELECT c.g, COUNT(1) AS n FROM c GROUP BY c.g`,
	`SELECT c.s, MAX(c.n) FROM c GROUP BY c.s ORDER BY c.s DESC`,
	`SELECT DISTINCT VALUE c.s FROM c`,
	`SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.s FROM c) d`,
	`SELECT * FROM c OFFSET 0 LIMIT 1000`,
}

// mergedRows reads a query to its end, and returns its rows.
func (w *world) mergedRows(r Request, between func()) (rows []string) {
	w.t.Helper()
	for n := 0; ; n++ {
		page, err := again(func() (Answer, error) { return w.e.QueryMerged(context.Background(), &r) })
		w.must(err)
		if r.MaxItems > 0 && page.Count > r.MaxItems {
			w.t.Fatalf("%s: a page has %d rows, more than %d", r.Query.Text, page.Count, r.MaxItems)
		}
		rows = append(rows, rowTexts(w.t, page.Rows)...)
		if r.Continuation = page.Continuation; r.Continuation == "" {
			return rows
		}
		if n > 1000 {
			w.t.Fatalf("%s: the pages have no end", r.Query.Text)
		}
		between()
	}
}

func crossQuery(text string, most int) Request {
	return Request{Target: Target{Database: "d", Container: "c"}, Query: Query{Text: text}, CrossPartition: true, MaxItems: most}
}

// fillForMerges writes items under so many keys.
func (w *world) fillForMerges(keys int) {
	w.t.Helper()
	for i := range keys {
		w.put("c", fmt.Sprint("key ", i), fmt.Sprint("i", i), fmt.Sprintf(`"n":%d,"g":%d,"s":"<%d>","list":[1,2,1]`, i*7%keys, i%4, i%9))
	}
}

// What the server merges of several partitions is what one partition says, in pages of all
// sizes.
func TestMergedRowsAreThoseOfOnePartition(t *testing.T) {
	answers := map[string][]string{}
	for _, partitions := range []int{1, 4} {
		w := newWorld(t)
		w.container("c", "null", partitions)
		w.fillForMerges(60)
		for _, text := range mergedQueries {
			for _, most := range []int{1, 7, -1} {
				rows := w.mergedRows(crossQuery(text, most), func() {})
				for i, row := range rows {
					rows[i] = withoutSystemProperties(row)
				}
				// Rows with equal keys have no order, and these queries have equal ones.
				slices.Sort(rows)
				switch want, known := answers[text]; {
				case !known:
					answers[text] = rows
				case strings.Contains(text, "LIMIT 9") && len(rows) == len(want): // which of the equal ones is free
				case !slices.Equal(rows, want):
					t.Errorf("%s: %d partitions, pages of %d:\n%v\nand not\n%v", text, partitions, most, rows, want)
				}
			}
		}
	}
}

func rowTexts(t testing.TB, rows []byte) (all []string) {
	t.Helper()
	list, ok := elementsOf(rows)
	if !ok {
		t.Fatalf("not rows: %s", rows)
	}
	for _, row := range list {
		all = append(all, string(row))
	}
	return all
}

// withoutSystemProperties cuts off what differs between two containers.
func withoutSystemProperties(row string) string {
	row, _, _ = strings.Cut(row, `,"_rid"`)
	return row
}

// A merge goes on where it was after partitions were split, rows in order neither twice nor
// left out, also where many have equal keys.
func TestMergesGoOnAfterSplits(t *testing.T) {
	for _, text := range []string{
		`SELECT c.id FROM c ORDER BY c.n`,
		`SELECT c.id FROM c ORDER BY c.g DESC`,
		`SELECT c.id, x FROM c JOIN x IN c.list ORDER BY c.g`,
		`SELECT c.id FROM c OFFSET 0 LIMIT 1000`,
		`SELECT c.id FROM c ORDER BY c.none`,
		`SELECT c.id, x FROM c JOIN x IN c.list ORDER BY c.none`,
		`SELECT TOP 30 c.id FROM c ORDER BY c.n`,
		`SELECT c.id FROM c ORDER BY c.n OFFSET 5 LIMIT 20`,
		`SELECT c.id FROM c WHERE c.pk IN ("key 1", "key 2", "key 3", "key 4", "key 5", "key 6", "key 7", "key 8", "key 9", "key 10", "key 11", "key 12") ORDER BY c.n`,
		`SELECT DISTINCT c.id FROM c ORDER BY c.id`,
	} {
		for _, partitions := range []int{1, 2} { // of one, the first page needs no merge
			w := newWorld(t)
			c := w.container("c", "null", partitions)
			w.fillForMerges(40)
			want := w.mergedRows(crossQuery(text, -1), func() {})
			split := []string{"0", "1"}
			got := w.mergedRows(crossQuery(text, 7), func() {
				if len(split) > 0 {
					c = w.split(split[0])
					split = split[1:]
				}
			})
			if len(c.Ranges) == partitions || !slices.Equal(sorted(got), sorted(want)) {
				t.Errorf("%s: %d partitions, and\n%v\nand not\n%v", text, len(c.Ranges), got, want)
			}
		}
	}
}

// Items that expire between two pages are gone from the second one, and cost no other row.
func TestMergesWhileItemsExpire(t *testing.T) {
	for _, text := range []string{`SELECT c.id FROM c ORDER BY c.n`, `SELECT DISTINCT c.id FROM c`, `SELECT TOP 1000 c.id FROM c`} {
		w := newWorld(t)
		w.container("c", "-1", 3)
		lasting := map[string]bool{}
		for i := range 30 {
			id, ttl := fmt.Sprint("i", i), ""
			if i%2 == 0 {
				ttl = `,"ttl":5`
			} else {
				lasting[`{"id":"`+id+`"}`] = true
			}
			w.put("c", fmt.Sprint("key ", i), id, fmt.Sprintf(`"n":%d`, i)+ttl)
		}
		shown := map[string]int{}
		for n, row := range w.mergedRows(crossQuery(text, 4), func() { w.advance(5 * time.Second) }) {
			if shown[row]++; n >= 4 && !lasting[row] {
				t.Errorf("%s: %s is on a later page, and has expired", text, row)
			}
		}
		for row := range lasting {
			if shown[row] != 1 {
				t.Errorf("%s: %s is shown %d times", text, row, shown[row])
			}
		}
	}
}

// A continuation is for its query, and not for a part of the container: with a resource token
// for one partition key it must not show the others.
func TestMergedContinuationsAreForTheirQuery(t *testing.T) {
	w := newWorld(t)
	c := w.container("c", "null", 2)
	w.fillForMerges(20)
	r := crossQuery(`SELECT * FROM c ORDER BY c.n`, 2)
	page, err := w.e.QueryMerged(t.Context(), &r)
	w.must(err)
	r.Continuation = page.Continuation
	for name, change := range map[string]func(r *Request){
		"another query":   func(r *Request) { r.Query.Text = `SELECT * FROM c ORDER BY c.s` },
		"a partition key": func(r *Request) { r.PartitionKey = `["key 1"]` },
		"a range":         func(r *Request) { r.Range = c.RIDText + ",0" },
		"no base64":       func(r *Request) { r.Continuation += "!" },
		"no merge":        func(r *Request) { r.Query.Text = `SELECT * FROM c` },
	} {
		changed := r
		change(&changed)
		if page, err := w.e.QueryMerged(t.Context(), &changed); !errors.Is(err, ErrContinuation) {
			t.Errorf("%s: %s, %v", name, page.Rows, err)
		}
	}
	if _, err := w.e.QueryItems(t.Context(), &r); err == nil {
		t.Error("a query of an SDK takes the continuation")
	}
}

// Long keys do not fit into a continuation: then the number of rows says where to go on.
func TestMergesOfLongKeys(t *testing.T) {
	w := newWorld(t)
	w.container("c", "null", 2)
	for i := range 8 {
		w.put("c", fmt.Sprint("key ", i), fmt.Sprint("i", i), fmt.Sprintf(`"s":"%s%d"`, strings.Repeat("x", 40<<10), 9-i))
	}
	rows := w.mergedRows(crossQuery(`SELECT VALUE c.id FROM c ORDER BY c.s`, 3), func() {})
	if want := []string{`"i7"`, `"i6"`, `"i5"`, `"i4"`, `"i3"`, `"i2"`, `"i1"`, `"i0"`}; !slices.Equal(rows, want) {
		t.Errorf("%v", rows)
	}
}

// A merge that would take more memory than it may is refused, and gives back what it had.
func TestMergesAreBounded(t *testing.T) {
	w := newWorld(t)
	w.container("c", "null", 3)
	for i := range 60 {
		w.put("c", fmt.Sprint("key ", i), fmt.Sprint("i", i), fmt.Sprintf(`"s":"%s%d"`, strings.Repeat("x", 20<<10), i))
	}
	budget := memory.NewBudget(1 << 20)
	share := budget.Share()
	defer share.Close()
	r := crossQuery(`SELECT c.s, COUNT(1) FROM c GROUP BY c.s`, 1)
	r.Memory = &share
	if _, err := w.e.QueryMerged(t.Context(), &r); !errors.Is(err, query.ErrSortTooLarge) {
		t.Errorf("groups of 1.2 MiB in a budget of 1 MiB: %v", err)
	}
	if n := share.Used(); n > 100<<10 {
		t.Errorf("%d bytes are not given back", n)
	}
	// In order, the rows need not be held.
	r.Query.Text = `SELECT * FROM c ORDER BY c.s`
	n := 0
	for r.Continuation, r.MaxItems = "", 5; n == 0 || r.Continuation != ""; {
		share.Close()
		page, err := w.e.QueryMerged(t.Context(), &r)
		w.must(err)
		n, r.Continuation = n+page.Count, page.Continuation
	}
	if n != 60 {
		t.Errorf("%d rows in order, of 60", n)
	}
}

// A merge waits for a partition that has nothing left to spend: begun again, it would spend
// the rest of the others for nothing.
func TestMergesWaitForThroughput(t *testing.T) {
	w := newWorld(t)
	keys := spread(w.container("c", "null", 2))
	w.put("c", keys[0], "a", "")
	w.reopen(Options{Throughput: Enforce})
	w.exhaust("c", keys[1])
	if rows := w.mergedRows(crossQuery(`SELECT VALUE COUNT(1) FROM c`, -1), func() {}); len(rows) != 1 || rows[0] == "1" {
		t.Errorf("%v", rows)
	}
}

// Any node merges what all nodes own.
func TestMergesInACluster(t *testing.T) {
	ns := startNodes(t, "a", "b", "c")
	c := ns.container("c", "null", 6)
	for i := range 60 {
		if _, err := ns.put([]string{"a", "b", "c"}[i%3], "c", fmt.Sprint("key ", i), fmt.Sprint("i", i), fmt.Sprintf(`"n":%d,"g":%d`, i, i%3)); err != nil {
			t.Fatal(err)
		}
	}
	if owners := ns.owners(c); len(owners) < 2 {
		t.Fatalf("the partitions belong to %v", owners)
	}
	for _, name := range []string{"a", "b", "c"} {
		for text, want := range map[string]string{
			`SELECT VALUE COUNT(1) FROM c`:                                         "60",
			`SELECT TOP 3 VALUE c.n FROM c ORDER BY c.n DESC`:                      "59,58,57",
			`SELECT c.g, SUM(c.n) AS s FROM c GROUP BY c.g ORDER BY c.g`:           `{"g":0,"s":570},{"g":1,"s":590},{"g":2,"s":610}`,
			`SELECT DISTINCT VALUE c.g FROM c WHERE c.n >= @n ORDER BY c.g`:        "0,1,2",
			`SELECT VALUE c.n FROM c WHERE c.g = 1 ORDER BY c.n OFFSET 17 LIMIT 9`: "52,55,58",
		} {
			r := crossQuery(text, -1)
			if strings.Contains(text, "@n") {
				parsed, err := ParseQuery([]byte(`{"query":"` + text + `","parameters":[{"name":"@n","value":7}]}`))
				if err != nil {
					t.Fatal(err)
				}
				r.Query = parsed
			}
			page, err := ns.do(name, func(e *Engine) (Answer, error) { return e.QueryMerged(t.Context(), &r) })
			if err != nil || string(page.Rows) != want {
				t.Errorf("%s at %s: %s, %v", text, name, page.Rows, err)
			}
		}
		r := crossQuery(`SELECT udf.none(c.n) FROM c ORDER BY c.n`, -1)
		var refused *InvalidError
		if _, err := ns.do(name, func(e *Engine) (Answer, error) { return e.QueryMerged(t.Context(), &r) }); err == nil || errors.As(err, &refused) && refused.Message == "" {
			t.Errorf("a function that does not exist: %v", err)
		}
	}
}
