// SPDX-License-Identifier: MIT

package scripttest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/sql/datum"
)

const (
	sevenPartitions = "42000"
	resumedItems    = 42
)

// What a shape has that not every SDK can go on with, whatever the server does.
type trait int

const (
	sorted  trait = 1 << iota // it has an order
	kinds                     // it is ordered by values of several kinds, which JavaScript and Python refuse to merge
	hashes                    // it is ordered by arrays or objects: Java's filters compare none, and its hash is another
	nulls                     // it is ordered by null, which JavaScript refuses to compare
	missing                   // it is ordered by what no item has: JavaScript's filters are about values
	several                   // it has several keys: of those, JavaScript's filter leaves out rows that come later
	joins                     // an item has several rows: Java begins with the item's first again, JavaScript skips too many, and .NET too few if it stops twice among the last rows of a range, as it does not here
	passes                    // it has an OFFSET: JavaScript has no continuation of a page that it passes over
	apart                     // DISTINCT, ordered: JavaScript forgets what it had
	gathers                   // DISTINCT, without an order: no SDK goes on with it
	cuts                      // TOP or LIMIT, without an order: which rows depends on the client
)

// shape is a query.
type shape struct {
	traits trait
	text   string
}

var shapes = []shape{
	{0, "SELECT * FROM c"},
	{0, "SELECT c.id FROM c WHERE c.n > 2"},
	{0, "SELECT c.id FROM c WHERE c.s = 's1'"},
	{0, "SELECT c.id, x FROM c JOIN x IN c.list"},
	{0, "SELECT c.id, x FROM c JOIN x IN c.list WHERE c.n = 3"},
	{cuts, "SELECT TOP 23 c.id FROM c"},
	{cuts, "SELECT c.id FROM c OFFSET 5 LIMIT 31"},
	{gathers, "SELECT DISTINCT c.n FROM c"},
	{sorted, "SELECT c.id FROM c ORDER BY c.n"},
	{sorted, "SELECT c.id FROM c ORDER BY c.n DESC"},
	{sorted, "SELECT VALUE c.id FROM c ORDER BY c.u"},
	{sorted, "SELECT VALUE c.id FROM c ORDER BY c.u DESC"},
	{sorted, "SELECT c.id FROM c ORDER BY c._ts"},
	{sorted, "SELECT c.id FROM c ORDER BY c._ts DESC"},
	{sorted, "SELECT * FROM c ORDER BY c.s"},
	{sorted, "SELECT * FROM c ORDER BY c.s DESC"},
	{sorted, "SELECT c.id FROM c ORDER BY c.long"},
	{sorted, "SELECT c.id FROM c ORDER BY c.long DESC"},
	{sorted, "SELECT c.id FROM c ORDER BY c.flag"},
	{sorted, "SELECT c.id FROM c ORDER BY c.flag DESC"},
	{sorted | missing, "SELECT c.id FROM c ORDER BY c.nowhere"},
	{sorted | missing, "SELECT c.id FROM c ORDER BY c.nowhere DESC"},
	{sorted | nulls, "SELECT c.id FROM c ORDER BY c.nil"},
	{sorted | nulls, "SELECT c.id FROM c ORDER BY c.nil DESC"},
	{sorted | kinds | nulls, "SELECT c.id FROM c ORDER BY c.mixed"},
	{sorted | kinds | nulls, "SELECT c.id FROM c ORDER BY c.mixed DESC"},
	{sorted | kinds | nulls, "SELECT c.id FROM c WHERE IS_DEFINED(c.mixed) ORDER BY c.mixed"},
	{sorted | kinds | hashes, "SELECT c.id FROM c ORDER BY c.deep"},
	{sorted | kinds | hashes, "SELECT c.id FROM c ORDER BY c.deep DESC"},
	{sorted | several, "SELECT c.id FROM c ORDER BY c.n, c.u"},
	{sorted | several, "SELECT c.id FROM c ORDER BY c.n DESC, c.u DESC"},
	{sorted | several, "SELECT c.id FROM c ORDER BY c.n, c.s DESC"},
	{sorted | several, "SELECT c.id FROM c ORDER BY c.n DESC, c.s"},
	{sorted | several | kinds | nulls, "SELECT c.id FROM c ORDER BY c.mixed, c.flag"},
	{sorted | several | kinds | nulls, "SELECT c.id FROM c ORDER BY c.mixed DESC, c.flag DESC"},
	{sorted | several | kinds | hashes, "SELECT c.id FROM c ORDER BY c.flag, c.deep"},
	{sorted | several | kinds | hashes, "SELECT c.id FROM c ORDER BY c.flag DESC, c.deep DESC"},
	{sorted, "SELECT c.id FROM c WHERE c.n > 2 ORDER BY c.n"},
	{sorted, "SELECT c.id FROM c WHERE c.n > 2 AND c.flag ORDER BY c.n DESC"},
	{sorted, "SELECT c.id FROM c WHERE c.s = 's1' ORDER BY c.u DESC"},
	{sorted | several, "SELECT c.id FROM c WHERE c.n = 3 ORDER BY c.n DESC, c.s"},
	{sorted, "SELECT TOP 17 c.id FROM c ORDER BY c.n DESC"},
	{sorted | passes, "SELECT c.id FROM c ORDER BY c.n OFFSET 7 LIMIT 20"},
	{sorted | passes, "SELECT c.id FROM c ORDER BY c.s DESC OFFSET 3 LIMIT 100"},
	{sorted | joins, "SELECT c.id, x FROM c JOIN x IN c.list ORDER BY c.n"},
	{sorted | joins, "SELECT c.id, x FROM c JOIN x IN c.list ORDER BY c.n DESC"},
	{sorted, `SELECT VALUE s FROM (SELECT * FROM c WHERE c.n > 1) s ORDER BY s["n"] DESC`},
	{sorted, `SELECT VALUE r FROM (SELECT VALUE {"id": root["id"], "F": root["s"]} FROM root WHERE root["n"] < 5) AS r ORDER BY r["F"]`},
	{sorted | passes, `SELECT r["id"] FROM (SELECT VALUE {"id": root["id"], "F": root["n"]} FROM root) AS r ORDER BY r["F"] DESC OFFSET 5 LIMIT 30`},
	{sorted | several, `SELECT r["id"] FROM (SELECT root["id"], root["n"], root["u"] AS U FROM root) AS r WHERE r["n"] != 3 ORDER BY r["n"], r["U"]`},
	{sorted | apart, "SELECT DISTINCT VALUE c.n FROM c ORDER BY c.n"},
	{sorted | apart, "SELECT DISTINCT c.s FROM c ORDER BY c.s DESC"},
	{sorted | apart, "SELECT DISTINCT TOP 4 c.n FROM c ORDER BY c.n DESC"},
}

// The SDKs, and what they cannot do with shapes: run them over several ranges, and go on
// with them.
var sdks = []struct {
	name    string
	open    func(*clientQuery, string) pipeline
	refused trait
	through trait // can only be run through
}{
	{".NET", newDotnet, 0, gathers},
	{"Java", newJava, hashes, gathers | joins},
	{"JavaScript", newJavaScript, kinds | hashes | nulls | gathers, several | missing | joins | passes | apart},
	{"Python", newPython, kinds | hashes, sorted | gathers | cuts},
}

// TestClientsGoOn runs queries as each SDK does, through and stopped after each page, over
// one range and seven: every run must come to the same rows.
func TestClientsGoOn(t *testing.T) {
	for name, throughput := range map[string]string{"one range": onePartition, "seven ranges": sevenPartitions} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := startResumed(t, throughput, `"defaultTtl":-1`)
			c.fillResumed("")
			for _, s := range shapes {
				want := c.unpaged(s)
				for _, sdk := range sdks {
					for _, size := range []int{1, 2, 3, 7, 20, 100} {
						q := c.newQuery(s.text, size)
						if s.traits&sdk.refused != 0 && (len(q.ranges) > 1 || s.traits&sdk.refused&hashes != 0) {
							continue
						}
						q.sdk = sdk.name
						q.compare(s, "through", want, q.through(sdk.open))
						if s.traits&(sdk.through|sdk.refused) == 0 {
							q.compare(s, "resumed", want, q.resumed(sdk.open, func(int) {}))
						}
					}
				}
			}
		})
	}
}

// TestClientsGoOnInOneKey goes on with queries within a partition key. The page with the
// last row has no continuation.
func TestClientsGoOnInOneKey(t *testing.T) {
	c := startResumed(t, sevenPartitions, `"defaultTtl":-1`)
	for range 10 { // for many items with the key
		c.fillResumed("")
		c.more += "+"
	}
	more := []shape{{sorted, "SELECT c.n, COUNT(1) AS k FROM c GROUP BY c.n"}, {sorted, "SELECT DISTINCT c.n, c.s FROM c WHERE c.u > 3"}}
	for _, s := range append(more, shapes...) {
		want := c.newQuery(s.text, 1000).through(newPythonKey)
		for _, size := range []int{1, 2, 3, 7, 10, 100} {
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
	for name, throughput := range map[string]string{"one range": onePartition, "seven ranges": sevenPartitions} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := startResumed(t, throughput, `"defaultTtl":-1`)
			for _, s := range shapes {
				for _, sdk := range sdks {
					if s.traits&(sdk.through|sdk.refused|passes|cuts|apart|joins) != 0 || strings.Contains(s.text, "TOP") {
						continue
					}
					c.fillResumed(`,"ttl":20`)
					q := c.newQuery(s.text, 4)
					q.sdk = sdk.name
					before := q.ids(c.unpaged(s))
					got := q.ids(q.resumed(sdk.open, func(page int) {
						if page == 3 {
							c.must(200, "POST", []string{"_mayfly", "clock"}, map[string]string{"Authorization": "Bearer " + mayfly.WellKnownKey}, `{"advance":"30s"}`)
						}
					}))
					for id, n := range q.ids(c.unpaged(s)) {
						if got[id] != n {
							t.Errorf("%s: %s: %s lives and came %d times, want %d", s.text, sdk.name, id, got[id], n)
						}
					}
					for id, n := range got {
						if n > before[id] {
							t.Errorf("%s: %s: %s came %d times, and was there %d times", s.text, sdk.name, id, n, before[id])
						}
					}
				}
			}
		})
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
	composite := func(a, b string) string {
		path := func(text string) string {
			name, order, _ := strings.Cut(text, " ")
			return `{"path":"/` + name + `","order":"` + map[string]string{"": "ascending", "desc": "descending"}[order] + `"}`
		}
		return "[" + path(a) + "," + path(b) + "]"
	}
	c.must(201, "POST", []string{"dbs", "db", "colls"}, map[string]string{"X-Ms-Offer-Throughput": throughput},
		`{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},`+definition+`,"indexingPolicy":{"compositeIndexes":[`+
			composite("n", "u")+","+composite("n", "s desc")+","+composite("mixed", "flag")+","+composite("flag", "deep")+`]}}`)
	return c
}

// fillResumed writes items with values that many of them share. Every other one has more
// to it.
func (c *resumeClient) fillResumed(more string) {
	mixed := []string{"", `,"mixed":null`, `,"mixed":false`, `,"mixed":true`, `,"mixed":1`, `,"mixed":-2.5`, `,"mixed":"a"`, `,"mixed":"ab"`}
	deep := []string{`[]`, `[1]`, `[2,"x"]`, `{}`, `{"a":1}`, `{"b":[null]}`, `"text"`, `7`}
	for i := range resumedItems {
		item := fmt.Sprintf(`{"id":"i%d%s","pk":"p%d","n":%d,"u":%d,"s":"s%d","flag":%t,"nil":null,"long":"%s%d","deep":%s,"list":[%s]%s`,
			i, c.more, i%17, i%7, i, i%5, i%3 == 0, strings.Repeat("x", 300), i%6, deep[i%len(deep)], strings.Join([]string{"1", "2", "3", "4"}[:i%5], ","), mixed[(i/2)%len(mixed)])
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
	continuation := ""
	var rows []datum.Value
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
