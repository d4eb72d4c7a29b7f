// SPDX-License-Identifier: MIT

package engine

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/memory"
	"github.com/mayflydb/mayfly/internal/query"
	"github.com/mayflydb/mayfly/internal/sql/clientplan"
	"github.com/mayflydb/mayfly/internal/value"
)

// parts returns what a plan has a client send to each range for a query.
func (w *world) parts(text string) (parts []string) {
	w.t.Helper()
	c := w.named("c")
	program, err := w.e.compile(w.t.Context(), c, &Query{Text: text})
	w.must(err)
	plan, err := clientplan.New(program, clientplan.Options{Features: ^clientplan.FeatureSet(0), PartitionKey: c.PartitionKey.Paths})
	w.must(err)
	if h := plan.Hybrid; h != nil {
		if h.Statistics != "" {
			parts = append(parts, h.Statistics)
		}
		for i := range h.Components {
			parts = append(parts, h.Filled(i, nil).Text(""))
		}
		return parts
	}
	return []string{plan.Query.Text(text)}
}

// pages reads pages of range 0 to the end, and returns the rows. between is called after each.
func (w *world) pages(r Request, between func(n int)) (rows []string) {
	w.t.Helper()
	for n := 0; ; n++ {
		page, err := again(func() (Answer, error) { return w.e.QueryItems(w.t.Context(), &r) })
		if err != nil {
			w.t.Fatalf("%s: page %d: %v", r.Query.Text, n, err)
		}
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
		between(n)
	}
}

func partQuery(text, id string, most int) Request {
	return Request{Target: Target{Database: "d", Container: "c"}, Query: Query{Text: text}, Range: id, CrossPartition: true, MaxItems: most}
}

// A range that was split before or in the middle of a part of a query, and again and again, has
// the rows that it had, in the order that it had them in.
func TestPartsAfterSplits(t *testing.T) {
	for i, text := range []string{
		`SELECT * FROM c ORDER BY c.n`,
		`SELECT c.id FROM c ORDER BY c.g`,
		`SELECT c.id FROM c ORDER BY c.g DESC`,
		`SELECT c.id FROM c ORDER BY c.absent`,
		`SELECT c.id FROM c ORDER BY c.mixed DESC`,
		`SELECT c.id, c.v FROM c WHERE c.n > 3 ORDER BY c.s`,
		`SELECT TOP 17 c.id FROM c ORDER BY c.g`,
		`SELECT c.id FROM c ORDER BY c.g OFFSET 3 LIMIT 20`,
		`SELECT VALUE {id: c.id, x: x} FROM c JOIN x IN c.list ORDER BY c.g`,
		`SELECT DISTINCT VALUE c.g FROM c ORDER BY c.g`,
		`SELECT TOP 17 c.id FROM c`,
		`SELECT c.id FROM c OFFSET 5 LIMIT 30`,
		`SELECT c.n, COUNT(1) AS k FROM c GROUP BY c.n ORDER BY c.n DESC`,
		`SELECT DISTINCT VALUE c.id FROM c`,
	} {
		for n, most := range []int{1, 7, -1} {
			for _, at := range [][]int{{-1, 0, 1}, {0}, {-1}}[(n+i)%3] { // the page after which the range is split
				w := newWorld(t)
				w.container("c", "null", 1)
				w.fillForParts(40)
				part := w.parts(text)[0]
				want := w.pages(partQuery(part, "0", most), func(int) {})
				ranges := []string{"0", "1", "2"}
				split := func(int) {
					if len(ranges) > 0 {
						w.split(ranges[0])
						ranges = ranges[1:]
					}
				}
				if at < 0 {
					split(0)
				}
				got := w.pages(partQuery(part, "0", most), func(n int) {
					if n >= at {
						split(n)
					}
				})
				if !strings.Contains(text, "ORDER BY") && !strings.Contains(text, "TOP") && !strings.Contains(text, "LIMIT") {
					slices.Sort(got)
					slices.Sort(want)
				}
				switch {
				case len(got) != len(want):
					t.Errorf("%s: pages of %d, split after %d: got %d rows, want %d", part, most, at, len(got), len(want))
				case !strings.Contains(text, "ORDER BY") && len(want) < 40: // any are right
				case !slices.Equal(got, want):
					t.Errorf("%s: pages of %d, split after %d: got\n%s\nwant\n%s", part, most, at, strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
				w.close() // a server has connections for some dozen worlds
			}
		}
	}
}

// fillForParts writes items with equal, missing and mixed values.
func (w *world) fillForParts(n int) {
	w.t.Helper()
	for i := range n {
		mixed := []string{`null`, `true`, `[1]`, `{"a":1}`, `1.5`, `"x"`}[i%6]
		w.put("c", fmt.Sprint("key ", i), fmt.Sprintf("i%02d", i), fmt.Sprintf(`"n":%d,"g":%d,"s":"<%d>","list":[1,2,1],"mixed":%s`, i*7%n, i%4, i%9, mixed))
	}
}

// A client that learns of new ranges in the middle of a part goes on in each of them, whatever
// that is, and once they were split again. Together they have what is left.
func TestPartsGoOnInNewRanges(t *testing.T) {
	for _, text := range []string{
		`SELECT c.id FROM c ORDER BY c.g`,
		`SELECT VALUE {id: c.id, x: x} FROM c JOIN x IN c.list ORDER BY c.g DESC`,
		`SELECT DISTINCT VALUE c.id FROM c`,
		`SELECT c.n, COUNT(1) AS k FROM c GROUP BY c.n`,
		`SELECT c.n, COUNT(1) AS k FROM c GROUP BY c.n ORDER BY c.n DESC`,
	} {
		w := newWorld(t)
		w.container("c", "null", 1)
		w.fillForParts(40)
		r := partQuery(w.parts(text)[0], "0", 7)
		want := w.pages(r, func(int) {})
		var got []string
		page := func(id string) {
			t.Helper()
			r.Range = id
			page, err := again(func() (Answer, error) { return w.e.QueryItems(t.Context(), &r) })
			w.must(err)
			got, r.Continuation = append(got, rowTexts(t, page.Rows)...), page.Continuation
		}
		page("0")
		w.split("0")
		page("0")
		page("0")
		w.split("1")
		for _, id := range []string{"1", "2"} {
			one := r
			one.Range = id
			got = append(got, w.pages(one, func(int) {})...)
		}
		if !slices.Equal(sorted(got), sorted(want)) {
			t.Errorf("%s: got\n%s\nwant\n%s", text, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// Items that expire between two pages of a part are gone from the second one, and cost no other
// row; what is written behind the place where the page ended comes too.
func TestPartsWhileItemsComeAndGo(t *testing.T) {
	for _, text := range []string{`SELECT VALUE c.id FROM c ORDER BY c.n`, `SELECT DISTINCT VALUE c.id FROM c`} {
		w := newWorld(t)
		w.container("c", "-1", 1)
		for i := range 30 {
			ttl := ""
			if i%2 == 0 {
				ttl = `,"ttl":5`
			}
			w.put("c", fmt.Sprint("key ", i), fmt.Sprintf("i%02d", i), fmt.Sprintf(`"n":%d`, i)+ttl)
		}
		r := partQuery(w.parts(text)[0], "0", 4)
		w.split("0")
		shown := map[string]int{}
		late := false
		for _, row := range w.pages(r, func(n int) {
			if n == 1 {
				w.advance(5 * time.Second)
				w.put("c", "key 29", "new", `"n":40`)
				late = true
			}
		}) {
			id := row[strings.LastIndex(row[:len(row)-2], `"`)+1:]
			shown[strings.Trim(id, `"}`)]++
		}
		for i := range 30 {
			id := fmt.Sprintf("i%02d", i)
			if n := shown[id]; i%2 == 1 && n != 1 || n > 1 {
				t.Errorf("%s: %s is shown %d times", text, id, n)
			}
		}
		if !late || shown["new"] > 1 || strings.Contains(text, "ORDER") && shown["new"] != 1 {
			t.Errorf("%s: the new item is shown %d times", text, shown["new"])
		}
	}
}

// Java takes a row that is alone on its page for what aggregates say.
func TestPartsOfAggregatesAreAlone(t *testing.T) {
	w := newWorld(t)
	w.container("c", "null", 1)
	w.fillForParts(40)
	r := partQuery(w.parts(`SELECT VALUE COUNT(1) FROM c`)[0], "0", -1)
	w.split("0")
	w.split("1")
	for n := range 3 {
		page, err := again(func() (Answer, error) { return w.e.QueryItems(t.Context(), &r) })
		w.must(err)
		if page.Count != 1 || (page.Continuation == "") != (n == 2) {
			t.Errorf("page %d: %s, continued at %q", n, page.Rows, page.Continuation)
		}
		r.Continuation = page.Continuation
	}
}

// What is no part, or goes on with something else, is refused.
func TestPartsAreRefused(t *testing.T) {
	w := newWorld(t)
	w.container("c", "null", 2)
	w.fillForParts(40)
	r := partQuery(w.parts(`SELECT c.id FROM c ORDER BY c.n`)[0], "0", 4)
	w.split("0")
	page, err := w.e.QueryItems(t.Context(), &r)
	w.must(err)
	next := page.Continuation
	place := func(change func(*mergedContinuation)) string {
		at, _, err := parseMergedContinuation(partPrefix, next)
		w.must(err)
		change(&at)
		raw, err := json.Marshal(at)
		w.must(err)
		return partPrefix + base64.RawURLEncoding.EncodeToString(raw)
	}
	for name, c := range map[string]struct {
		change func(r *Request)
		want   error
	}{
		"a query that is sent as it is": {func(r *Request) { r.Optimistic = true }, ErrRangeGone},
		"no such range":                 {func(r *Request) { r.Range = "17" }, ErrRangeGone},
		"of another container":          {func(r *Request) { r.Range = "AAAAAAAAAAA=,0" }, ErrRangeGone},
		"another query":                 {func(r *Request) { r.Continuation, r.Query.Text = next, w.parts(`SELECT c.id FROM c ORDER BY c.g`)[0] }, ErrContinuation},
		"no part":                       {func(r *Request) { r.Continuation, r.Query.Text = next, `SELECT c.id FROM c` }, ErrContinuation},
		"a partition key":               {func(r *Request) { r.Continuation, r.PartitionKey = next, `["key 1"]` }, ErrContinuation},
		"no range":                      {func(r *Request) { r.Continuation, r.Range = next, "" }, ErrContinuation},
		"no base64":                     {func(r *Request) { r.Continuation = next + "!" }, ErrContinuation},
		"a token":                       {func(r *Request) { r.Continuation = "0.x" }, query.ErrToken},
		"of the range":                  {func(r *Request) { r.Continuation = "1.x" }, ErrContinuation},
		"more keys": {func(r *Request) {
			r.Continuation = place(func(at *mergedContinuation) { at.Keys = append(at.Keys, "1") })
		}, ErrContinuation},
		"no keys": {func(r *Request) { r.Continuation = place(func(at *mergedContinuation) { at.Keys = nil }) }, ErrContinuation},
		"odd keys": {func(r *Request) {
			r.Continuation = place(func(at *mergedContinuation) { at.Keys = []string{`{"type":"what"}`} })
		}, nil},
		"an odd item": {func(r *Request) { r.Continuation = place(func(at *mergedContinuation) { at.RID = "x" }) }, nil},
		"odd bounds":  {func(r *Request) { r.StartEPK = "x" }, nil},
	} {
		changed := r
		c.change(&changed)
		page, err := w.e.QueryItems(t.Context(), &changed)
		var invalid *InvalidError
		if c.want == nil && !errors.As(err, &invalid) || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %d rows, %v, want %v", name, page.Count, err, c.want)
		}
	}
}

// A place that is too long for a header, and work that is too much for one request, are refused
// as requests for the range are: its clients go on in the new ranges, from where they were.
func TestPartsThatAreTooMuch(t *testing.T) {
	w := newWorld(t)
	w.container("c", "null", 1)
	for i := range 8 {
		w.put("c", fmt.Sprint("key ", i), fmt.Sprint("i", i), fmt.Sprintf(`"s":"%d%s"`, 9-i, strings.Repeat("x", 20<<10)))
	}
	r := partQuery(w.parts(`SELECT VALUE c.id FROM c ORDER BY c.s`)[0], "0", 3)
	page, err := w.e.QueryItems(t.Context(), &r)
	w.must(err)
	r.Continuation = page.Continuation
	w.split("0")
	if page, err := again(func() (Answer, error) { return w.e.QueryItems(t.Context(), &r) }); !errors.Is(err, ErrRangeGone) {
		t.Errorf("a long key: %d rows, %v", page.Count, err)
	}
	n := 3
	for _, r.Range = range []string{"1", "2"} {
		n += len(w.pages(r, func(int) {}))
	}
	if n != 8 {
		t.Errorf("%d rows, of 8", n)
	}
	r.Range, r.MaxContinuationKB, r.Query.Text = "0", 1, w.parts(`SELECT VALUE c.id FROM c ORDER BY c.id`)[0]
	r.Continuation = ""
	if rows := w.pages(r, func(int) {}); len(rows) != 8 {
		t.Errorf("%d rows with short continuations", len(rows))
	}
	budget := memory.NewBudget(64 << 10)
	share := budget.Share()
	defer share.Close()
	r.Memory, r.Query.Text = &share, w.parts(`SELECT * FROM c ORDER BY c.id`)[0]
	if page, err := w.e.QueryItems(t.Context(), &r); !errors.Is(err, ErrRangeGone) {
		t.Errorf("rows of 160 KiB in a budget of 64: %d rows, %v", page.Count, err)
	}
}

// Any node answers a part from partitions of all nodes, within bounds too.
func TestPartsInACluster(t *testing.T) {
	ns := newNodes(t)
	ns.settled = 100 * time.Millisecond // partitions move
	ns.begin("a")
	ns.container("c", "null", 1)
	var want []string
	for i := range 40 {
		id := fmt.Sprintf("i%02d", i)
		if _, err := ns.put("a", "c", fmt.Sprint("key ", i), id, fmt.Sprintf(`"n":%d`, i)); err != nil {
			t.Fatal(err)
		}
		want = append(want, id)
	}
	w := &world{t: t, e: ns.all["a"]}
	text := w.parts(`SELECT VALUE c.id FROM c ORDER BY c.n`)[0]
	for _, id := range []string{"0", "1", "2", "3", "4", "5", "6"} {
		w.split(id)
	}
	ns.start("b")
	ns.meet()
	for began := time.Now(); len(ns.owners(ns.find("a", "c"))) < 2; time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > 20*time.Second {
			t.Fatal("no partition moves")
		}
		for i, id := range want { // who is asked opens what has moved to it
			if _, err := ns.read("b", "c", fmt.Sprint("key ", i), id); err != nil {
				t.Fatal(err)
			}
		}
	}
	middle := value.EPKText(ns.find("a", "c").Ranges[3].Min)
	middle = middle[:3] + "0" + middle[4:]
	for _, name := range []string{"a", "b"} {
		read := func(start, end string) (got []string) {
			r := partQuery(text, "0", 7)
			r.StartEPK, r.EndEPK = start, end
			for range 100 {
				page, err := ns.do(name, func(e *Engine) (Answer, error) { return e.QueryItems(t.Context(), &r) })
				if err != nil {
					t.Fatalf("at %s: %v", name, err)
				}
				for _, row := range rowTexts(t, page.Rows) {
					_, id, _ := strings.Cut(row, `"payload":"`)
					got = append(got, strings.Trim(id, `"}`))
				}
				if r.Continuation = page.Continuation; r.Continuation == "" {
					break
				}
			}
			return got
		}
		if got := read("", ""); !slices.Equal(got, want) {
			t.Errorf("at %s: %v", name, got)
		}
		low, high := read("", middle), read(middle, "")
		if len(low) == 0 || len(high) == 0 || !slices.IsSorted(low) || !slices.IsSorted(high) || !slices.Equal(sorted(slices.Concat(low, high)), want) {
			t.Errorf("at %s, in two parts: %v and %v", name, low, high)
		}
	}
}

// A client that begins anew if it is refused learns the new ranges by that: when a query begins
// with the last range, and not when rows of others would come twice or it goes on.
func TestPartsOfClientsThatRelearn(t *testing.T) {
	w := newWorld(t)
	w.container("c", "null", 2)
	w.fillForParts(40)
	text := w.parts(`SELECT c.id FROM c ORDER BY c.n`)[0]
	ask := func(id, continuation string, relearns bool) (Answer, error) {
		r := partQuery(text, id, 4)
		r.Continuation, r.Relearns = continuation, relearns
		return again(func() (Answer, error) { return w.e.QueryItems(t.Context(), &r) })
	}
	begun, err := ask("1", "", true)
	w.must(err)
	w.split("0")
	w.split("1")
	for name, c := range map[string]struct {
		id, continuation string
		relearns         bool
		want             error
	}{
		"the last range":         {"1", "", true, ErrRangeGone},
		"goes on":                {"1", begun.Continuation, true, nil},
		"another range":          {"0", "", true, nil},
		"another kind of client": {"1", "", false, nil},
	} {
		if page, err := ask(c.id, c.continuation, c.relearns); !errors.Is(err, c.want) || c.want == nil && page.Count != 4 {
			t.Errorf("%s: %d rows, %v", name, page.Count, err)
		}
	}
}
