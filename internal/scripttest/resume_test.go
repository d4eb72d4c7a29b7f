// SPDX-License-Identifier: MIT

package scripttest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/kv/kvtest"
	"github.com/mayflydb/mayfly/internal/sql/datum"
)

const (
	fivePartitions  = "30000"
	sevenPartitions = "42000"
	resumedItems    = 42
)

// resumedSizes are how many rows a page has; the last is more than there are.
var resumedSizes = []int{1, 2, 3, 7, 20, 1000}

func long(t *testing.T) bool { return kvtest.LongFactor(t) > 1 }

// sizes returns the sizes of pages to try: all in a long run, else the one whose turn it is.
// Which that is differs between queries, SDKs and numbers of ranges.
func sizes(t *testing.T, turn int) []int {
	if long(t) {
		return resumedSizes
	}
	return resumedSizes[turn%len(resumedSizes):][:1]
}

// resumedRanges are the numbers of ranges that containers have, and their throughput.
var resumedRanges = []struct {
	ranges     int
	throughput string
}{{1, onePartition}, {5, fivePartitions}, {7, sevenPartitions}}

// overRanges runs a test over containers with these numbers of ranges, which take turns in
// what they try.
func overRanges(t *testing.T, test func(t *testing.T, c *resumeClient, turn int)) {
	for turn, r := range resumedRanges {
		ranges, throughput := r.ranges, r.throughput
		t.Run(fmt.Sprint(ranges), func(t *testing.T) {
			t.Parallel()
			c := startResumed(t, throughput, `"defaultTtl":-1`)
			if got := len(c.newQuery("SELECT * FROM c", 1).ranges); got != ranges {
				t.Fatalf("the container has %d ranges", got)
			}
			test(t, c, turn)
		})
	}
}

// The SDKs, and what they cannot do with shapes: run them over several ranges, and go on
// with them.
var sdks = []struct {
	name    string
	open    func(*clientQuery, string) pipeline
	refused trait
	through trait // can only be run through
	five    trait // over five ranges, can only be run through: seven divide the items otherwise
}{
	{".NET", newDotnet, 0, gathers, joins},
	{"Java", newJava, hashes, gathers | joins, 0},
	{"JavaScript", newJavaScript, kinds | hashes | nulls | gathers, several | missing | joins | passes | apart, 0},
	{"Python", newPython, kinds | hashes, sorted | gathers | cuts, 0},
}

// TestClientsGoOn runs queries as each SDK does, through and stopped after each page, over
// one range, five and seven: every run must come to the same rows.
func TestClientsGoOn(t *testing.T) {
	overRanges(t, func(t *testing.T, c *resumeClient, turn int) {
		c.fillResumed("")
		for i, s := range shapes {
			want := c.unpaged(s)
			for j, sdk := range sdks {
				for _, size := range sizes(t, i+j+turn) {
					q := c.newQuery(s.text, size)
					if s.traits&sdk.refused != 0 && (len(q.ranges) > 1 || s.traits&sdk.refused&hashes != 0) {
						continue
					}
					q.sdk = sdk.name
					q.compare(s, "through", want, q.through(sdk.open))
					through := sdk.through
					if len(q.ranges) == 5 {
						through |= sdk.five
					}
					if s.traits&(through|sdk.refused) == 0 {
						q.compare(s, "resumed", want, q.resumed(sdk.open, func(int) {}))
					}
				}
			}
		}
	})
}

// TestClientsGoOnAfterSplits has clients begin queries, and go on when ranges were split, and what
// was made of these: they know nothing of that. Nor do clients that begin then.
func TestClientsGoOnAfterSplits(t *testing.T) {
	for turn, throughput := range []string{onePartition, fivePartitions} {
		t.Run(strconv.Itoa(turn), func(t *testing.T) {
			t.Parallel()
			c := startResumed(t, throughput, `"defaultTtl":-1`)
			c.fillResumed("")
			type begun struct {
				*clientQuery
				shape
				want, rows   []datum.Value
				continuation string
				open         func(*clientQuery, string) pipeline
				resumable    bool
			}
			var all []begun
			for i, s := range shapes {
				want := c.unpaged(s)
				for j, sdk := range sdks {
					if !long(t) && (i+turn)%len(sdks) != j { // it is another's turn
						continue
					}
					for _, size := range sizes(t, i+j+turn) {
						q := c.newQuery(s.text, size)
						if !q.info.merges() || s.traits&sdk.refused != 0 {
							continue
						}
						q.sdk = sdk.name
						b := begun{clientQuery: q, shape: s, want: want, open: sdk.open, resumable: s.traits&sdk.through == 0 && (len(q.ranges) != 5 || s.traits&sdk.five == 0)}
						if b.resumable {
							b.rows, b.continuation = sdk.open(q, "").next()
						}
						all = append(all, b)
					}
				}
			}
			last := ""
			for _, id := range []string{"0", "made", "made"} {
				if id == "made" {
					_, id, _ = strings.Cut(last, " and ")
				}
				var err error
				if last, err = awaitSplit(c.server, defaultDatabase, c.container, id); err != nil || !strings.Contains(last, " and ") {
					t.Fatalf("split %s: %s, %v", id, last, err)
				}
			}
			for _, b := range all {
				compare := b.compare
				if b.traits&cuts != 0 {
					compare = func(_ shape, how string, want, got []datum.Value) { // any rows are right
						t.Helper()
						if n := len(b.ids(got)); n != len(want) || len(got) != n {
							t.Errorf("%s: %s %s: %d rows, %d of them different, want %d", b.clientQuery.text, b.sdk, how, len(got), n, len(want))
						}
					}
				}
				compare(b.shape, "through", b.want, b.through(b.open))
				if b.resumable {
					compare(b.shape, "resumed", b.want, b.resumed(b.open, func(int) {}))
				}
				if b.continuation != "" {
					compare(b.shape, "gone on", b.want, append(b.rows, b.resumedAt(b.continuation, b.open, func(int) {})...))
				}
			}
		})
	}
}

// TestClientsGoOnInOneKey goes on with queries within a partition key. The page with the
// last row has no continuation.
func TestClientsGoOnInOneKey(t *testing.T) {
	c := startResumed(t, fivePartitions, `"defaultTtl":-1`)
	for range 10 { // for many items with the key
		c.fillResumed("")
		c.more += "+"
	}
	more := []shape{{sorted, "SELECT c.n, COUNT(1) AS k FROM c GROUP BY c.n"}, {sorted, "SELECT DISTINCT c.n, c.s FROM c WHERE c.u > 3"}}
	for i, s := range append(more, shapes...) {
		want := c.newQuery(s.text, 1000).through(newPythonKey)
		for _, size := range sizes(t, i) {
			q := c.newQuery(s.text, size)
			q.sdk = "Python"
			rows, pages := 0, 0
			got := q.resumed(func(q *clientQuery, continuation string) pipeline {
				pages++
				return newPythonKey(q, continuation)
			}, func(int) {})
			if rows = len(got); pages != max(1, (rows+size-1)/size) {
				t.Errorf("%s: %d rows in %d pages of %d", s.text, rows, pages, size)
			}
			q.compare(s, "in one key", want, got)
		}
	}
}

// TestClientsGoOnWhileItemsExpire moves the clock between the pages: what lives comes once,
// what has expired at most once.
func TestClientsGoOnWhileItemsExpire(t *testing.T) {
	overRanges(t, func(t *testing.T, c *resumeClient, turn int) {
		for i, s := range shapes {
			for j, sdk := range sdks {
				if s.traits&(sdk.through|sdk.refused|passes|cuts|apart|joins) != 0 || strings.Contains(s.text, "TOP") {
					continue
				}
				if !long(t) && (i%len(sdks) != j || i/len(sdks)%len(resumedRanges) != turn) { // it is another's turn
					continue
				}
				for _, size := range sizes(t, i+j) {
					if size < resumedItems {
						c.expireBetween(s, sdk.name, sdk.open, size)
					}
				}
			}
		}
	})
}

// expireBetween lets every other item expire when a client has had a third of them.
func (c *resumeClient) expireBetween(s shape, sdk string, open func(*clientQuery, string) pipeline, size int) {
	c.t.Helper()
	c.fillResumed(`,"ttl":20`)
	q := c.newQuery(s.text, size)
	q.sdk = sdk
	before := q.ids(c.unpaged(s))
	got := q.ids(q.resumed(open, func(page int) {
		if page == len(before)/3/size {
			c.must(200, "POST", []string{"_mayfly", "clock"}, map[string]string{"Authorization": "Bearer " + mayfly.WellKnownKey}, `{"advance":"30s"}`)
		}
	}))
	for id, n := range q.ids(c.unpaged(s)) {
		if got[id] != n {
			c.t.Errorf("%s: %s in pages of %d: %s lives and came %d times, want %d", s.text, sdk, size, id, got[id], n)
		}
	}
	for id, n := range got {
		if n > before[id] {
			c.t.Errorf("%s: %s in pages of %d: %s came %d times, and was there %d times", s.text, sdk, size, id, n, before[id])
		}
	}
}

// startResumed starts a server with one container.
func startResumed(t *testing.T, throughput, definition string) *resumeClient {
	s := &inProcess{machine: newMachine()}
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	})
	c := &resumeClient{t: t, server: s, container: defaultContainer}
	c.must(201, "POST", []string{"dbs"}, nil, `{"id":"db"}`)
	composite := func(paths ...string) string {
		for i, text := range paths {
			name, order, _ := strings.Cut(text, " ")
			paths[i] = `{"path":"/` + name + `","order":"` + map[string]string{"": "ascending", "desc": "descending"}[order] + `"}`
		}
		return "[" + strings.Join(paths, ",") + "]"
	}
	composites := strings.Join([]string{
		composite("n", "u"), composite("n", "s desc"), composite("mixed", "flag"), composite("flag", "deep"),
		composite("obj", "arr desc"), composite("maybe desc", "n"), composite("flag", "n desc", "u"),
	}, ",")
	c.must(201, "POST", []string{"dbs", "db", "colls"}, map[string]string{"X-Ms-Offer-Throughput": throughput},
		`{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},`+definition+`,"indexingPolicy":{"compositeIndexes":[`+composites+`]}}`)
	return c
}

// fillResumed writes items with values that many of them share. Every other one has more
// to it.
func (c *resumeClient) fillResumed(more string) {
	mixed := []string{"", `,"mixed":null`, `,"mixed":false`, `,"mixed":true`, `,"mixed":1`, `,"mixed":-2.5`, `,"mixed":"a"`, `,"mixed":"ab"`}
	deep := []string{`[]`, `[1]`, `[2,"x"]`, `{}`, `{"a":1}`, `{"b":[null]}`, `"text"`, `7`}
	for i := range resumedItems {
		item := fmt.Sprintf(`{"id":"i%d%s","pk":"p%d","n":%d,"u":%d,"s":"s%d","flag":%t,"nil":null,"long":"%s%d","deep":%s,"list":[%s],"arr":[%d,"x"],"obj":{"k":{"of":%d}}%s`,
			i, c.more, i%17, i%7, i, i%5, i%3 == 0, strings.Repeat("x", 300), i%6, deep[i%len(deep)], strings.Join([]string{"1", "2", "3", "4"}[:i%5], ","), i%9, i%4, mixed[(i/2)%len(mixed)])
		if i%3 == 1 {
			item += fmt.Sprintf(`,"maybe":%d`, i%5)
		}
		if i%2 == 1 {
			item += more
		}
		c.must2xx("POST", c.path("docs"), map[string]string{"X-Ms-Documentdb-Partitionkey": `["p` + strconv.Itoa(i%17) + `"]`, "X-Ms-Documentdb-Is-Upsert": "True"}, item+"}")
	}
}

func (c *resumeClient) must2xx(method string, path []string, header map[string]string, body string) {
	c.t.Helper()
	if a := c.send(method, path, header, []byte(body)); a.status/100 != 2 {
		c.t.Fatalf("%s %s: %d: %s", method, path, a.status, a.body)
	}
}

// unpaged runs a query through, in pages that hold all of a range.
func (c *resumeClient) unpaged(s shape) []datum.Value {
	c.t.Helper()
	q := c.newQuery(s.text, 1000)
	perRange := make([][]datum.Value, len(q.ranges))
	for i := range q.ranges {
		p := q.inRange(i, "")
		if p.fetch(); !p.done {
			c.t.Fatalf("%s: range %d has more than a page", s.text, i)
		}
		perRange[i] = p.rows
	}
	rows := slices.Concat(perRange...)
	if len(q.info.OrderBy) > 0 {
		rows = mergeOrdered(q.info, perRange)
	}
	if q.info.DistinctType == "Unordered" {
		rows = distinctRows(q.info, rows)
	}
	stages := q.newStages()
	rows, _ = stages.apply(q.info, rows)
	return rows
}

// through runs a query to its end.
func (q *clientQuery) through(open func(*clientQuery, string) pipeline) []datum.Value {
	q.t.Helper()
	p := open(q, "")
	var rows []datum.Value
	for range maxPages {
		page, continuation := p.next()
		rows = append(rows, page...)
		if continuation == "" {
			if q.info.DistinctType == "Unordered" {
				rows = distinctRows(q.info, rows)
			}
			return rows
		}
	}
	q.t.Fatalf("%s: %s: no end after %d pages", q.text, q.sdk, maxPages)
	return nil
}

// resumed runs a query to its end, a client for each page.
func (q *clientQuery) resumed(open func(*clientQuery, string) pipeline, between func(page int)) []datum.Value {
	q.t.Helper()
	return q.resumedAt("", open, between)
}

// resumedAt is resumed from a continuation on.
func (q *clientQuery) resumedAt(continuation string, open func(*clientQuery, string) pipeline, between func(page int)) (rows []datum.Value) {
	q.t.Helper()
	for page := range maxPages {
		var more []datum.Value
		more, continuation = open(q, continuation).next()
		if rows = append(rows, more...); continuation == "" {
			return rows
		}
		between(page)
	}
	q.t.Fatalf("%s: %s: no end after %d pages of %d, with %d rows", q.text, q.sdk, maxPages, q.size, len(rows))
	return nil
}

// rowText is what tells rows apart.
func rowText(row datum.Value) string {
	if id := row.Member("id"); !id.IsUndefined() {
		return string(row.Member("x").AppendJSON(id.AppendJSON(nil)))
	}
	return string(row.AppendCanonical(nil))
}

func (q *clientQuery) ids(rows []datum.Value) map[string]int {
	n := map[string]int{}
	for _, row := range rows {
		n[rowText(row)]++
	}
	return n
}

// compare checks that a run came to the rows that it should.
func (q *clientQuery) compare(s shape, how string, want, got []datum.Value) {
	q.t.Helper()
	texts := func(rows []datum.Value) []string {
		out := make([]string, len(rows))
		for i, row := range rows {
			out[i] = rowText(row)
		}
		if s.traits&sorted == 0 {
			slices.Sort(out)
		}
		return out
	}
	if a, b := texts(want), texts(got); !slices.Equal(a, b) {
		q.t.Errorf("%s: %s %s over %d ranges in pages of %d: %d rows, want %d\n got %.600v\nwant %.600v", s.text, q.sdk, how, len(q.ranges), q.size, len(b), len(a), b, a)
	}
}
