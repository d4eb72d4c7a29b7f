// SPDX-License-Identifier: MIT

// A client that stops after any page and goes on from a continuation, as the SDKs do: what
// they have in common. What each does by itself is in resumesdks_test.go.

package scripttest

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/sql/clientplan"
	"github.com/mayflydb/mayfly/internal/sql/datum"
)

// resumeClient talks to a server about one container.
type resumeClient struct {
	t         testing.TB
	server    server
	container string
	more      string // to the ids of items that are written
}

func (c *resumeClient) send(method string, path []string, header map[string]string, body []byte) answer {
	c.t.Helper()
	r := request{method: method, path: path, body: body}
	date := time.Now().UTC().Format(http.TimeFormat)
	h := http.Header{"X-Ms-Date": {date}, "X-Ms-Version": {"2020-07-15"}, "Authorization": {url.QueryEscape(r.signature(nil, date))}}
	for name, value := range header {
		if value != "" {
			h.Set(name, value)
		}
	}
	a, err := c.server.send(method, "/"+strings.Join(path, "/"), h, body)
	if err != nil {
		c.t.Fatal(err)
	}
	return a
}

func (c *resumeClient) must(want int, method string, path []string, header map[string]string, body string) answer {
	c.t.Helper()
	a := c.send(method, path, header, []byte(body))
	if a.status != want {
		c.t.Fatalf("%s %s: %d, want %d: %s", method, path, a.status, want, a.body)
	}
	return a
}

func (c *resumeClient) path(kind string) []string {
	return append(containerPath(defaultDatabase, c.container), kind)
}

// clientRange is a range of a container, as clients know it.
type clientRange struct{ ID, MinInclusive, MaxExclusive string }

// clientQuery is a query that a client runs in pages of its own.
type clientQuery struct {
	*resumeClient
	sdk    string // the client, for people
	text   string
	size   int // the most rows of a page
	info   *queryInfo
	ranges []clientRange
}

// newQuery asks for the plan of a query.
func (c *resumeClient) newQuery(text string, size int) *clientQuery {
	c.t.Helper()
	var feed struct{ PartitionKeyRanges []clientRange }
	if err := json.Unmarshal(c.must(200, "GET", c.path("pkranges"), nil, "").body, &feed); err != nil {
		c.t.Fatal(err)
	}
	a := c.must(200, "POST", c.path("docs"), map[string]string{
		"Content-Type": "application/query+json", "X-Ms-Documentdb-Isquery": "True", "X-Ms-Cosmos-Is-Query-Plan-Request": "True",
		"X-Ms-Cosmos-Supported-Query-Features": (^clientplan.FeatureSet(0)).String(),
	}, `{"query":`+quoted(text)+`}`)
	p := &queryPlan{}
	if err := json.Unmarshal(a.body, p); err != nil || p.QueryInfo == nil {
		c.t.Fatalf("%s: the plan %s: %v", text, a.body, err)
	}
	return &clientQuery{resumeClient: c, text: text, size: size, info: p.QueryInfo, ranges: feed.PartitionKeyRanges}
}

// clientPage is what a request came to.
type clientPage struct {
	rows         []datum.Value
	continuation string
	latestFirst  bool // as the answer tells
}

// post asks for a page. The resume filter is JSON, or empty.
func (q *clientQuery) post(text, resumeFilter, continuation string, header map[string]string) clientPage {
	q.t.Helper()
	body := `{"query":` + quoted(text)
	if resumeFilter != "" {
		body += `,"resumeFilter":` + resumeFilter
	}
	h := map[string]string{
		"Content-Type": "application/query+json", "X-Ms-Documentdb-Isquery": "True",
		"X-Ms-Max-Item-Count": strconv.Itoa(q.size), "X-Ms-Continuation": continuation,
	}
	for name, value := range header {
		h[name] = value
	}
	a := q.must(200, "POST", q.path("docs"), h, body+"}")
	var feed struct{ Documents []json.RawMessage }
	var told struct{ ReverseRidEnabled, ReverseIndexScan bool }
	if err := json.Unmarshal(a.body, &feed); err != nil || len(feed.Documents) > q.size {
		q.t.Fatalf("%s: a page of %d rows: %v", text, len(feed.Documents), err)
	}
	if err := json.Unmarshal([]byte(a.header.Get("X-Ms-Cosmos-Query-Execution-Info")), &told); err != nil || told.ReverseRidEnabled {
		q.t.Fatalf("%s: it is told %+v: %v", text, told, err)
	}
	p := clientPage{continuation: a.header.Get("X-Ms-Continuation"), latestFirst: told.ReverseIndexScan}
	for _, row := range feed.Documents {
		p.rows = append(p.rows, datum.Raw(row))
	}
	filtered := len(q.info.OrderBy) > 0 || strings.Contains(text, "WHERE")
	if len(p.rows) == 0 && p.continuation != "" && filtered && h["X-Ms-Documentdb-Partitionkeyrangeid"] != "" {
		q.t.Fatalf("%s: an empty page with a continuation", text)
	}
	return p
}

// producer gets the rows of one range, a page at a time.
type producer struct {
	q            *clientQuery
	at           int // which range
	text         string
	resumeFilter string
	// keep says whether a row is one that the client has not had yet; nil is always.
	keep func(row datum.Value, latestFirst bool) bool

	rows        []datum.Value // of a page, those that are still to come
	start, next string        // the continuation of that page, and of the one after it
	done        bool
}

// fetch gets a page.
func (p *producer) fetch() {
	p.q.t.Helper()
	page := p.q.post(p.text, p.resumeFilter, p.next, map[string]string{"X-Ms-Documentdb-Partitionkeyrangeid": p.q.ranges[p.at].ID})
	p.start, p.next, p.done = p.next, page.continuation, page.continuation == ""
	p.rows = page.rows
	if p.keep != nil {
		p.rows = slices.DeleteFunc(p.rows, func(row datum.Value) bool { return !p.keep(row, page.latestFirst) })
	}
}

// fill gets pages until there is a row, or none follows.
func (p *producer) fill() {
	p.q.t.Helper()
	for n := 0; len(p.rows) == 0 && !p.done; n++ {
		if p.fetch(); n > maxPages {
			p.q.t.Fatalf("%s: no end after %d pages", p.text, n)
		}
	}
}

// rewritten is the query for one range, with a filter of rows that the client has had.
func (q *clientQuery) rewritten(filter string) string {
	if q.info.RewrittenQuery == "" {
		return q.text
	}
	return strings.ReplaceAll(q.info.RewrittenQuery, "{documentdb-formattableorderbyquery-filter}", filter)
}

// first returns the producer with the first row of all, the leftmost of several.
func first(info *queryInfo, producers []*producer) *producer {
	var best *producer
	for _, p := range producers {
		if len(p.rows) > 0 && (best == nil || compareRows(info, p.rows[0], best.rows[0]) < 0) {
			best = p
		}
	}
	return best
}

func (p *producer) take() datum.Value {
	row := p.rows[0]
	p.rows = p.rows[1:]
	return row
}

// orderItem returns what a row is ordered by.
func orderItem(row datum.Value, i int) datum.Value {
	return row.Member("orderByItems").Index(i).Member("item")
}

// rowNumber returns the number by which clients order items: it is in the rid.
func rowNumber(t testing.TB, row datum.Value) uint64 {
	t.Helper()
	text, _ := row.Member("_rid").AsString()
	return ridNumber(t, text)
}

func ridNumber(t testing.TB, text string) uint64 {
	t.Helper()
	raw, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(text, "-", "/"))
	if err != nil || len(raw) != 16 || raw[15] >= 1<<4 {
		t.Fatalf("%q is no item's rid: %v", text, err)
	}
	return binary.LittleEndian.Uint64(raw[8:])
}

// stages is what a client does with merged rows, and remembers from page to page.
type stages struct {
	Last         string // of DISTINCT
	Offset, Take int
}

func (q *clientQuery) newStages() stages {
	s := stages{Take: -1}
	if q.info.Offset != nil {
		s.Offset = *q.info.Offset
	}
	for _, most := range []*int{q.info.Limit, q.info.Top} {
		if most != nil {
			s.Take = *most
		}
	}
	return s
}

// apply makes the client's rows of merged ones. It reports whether more may follow.
func (s *stages) apply(info *queryInfo, rows []datum.Value) (out []datum.Value, more bool) {
	for _, row := range rows {
		if len(info.OrderBy) > 0 {
			row = payloadOf(row)
		}
		if info.DistinctType == "Ordered" {
			text := string(row.AppendCanonical(nil))
			if text == s.Last {
				continue
			}
			s.Last = text
		}
		switch {
		case s.Offset > 0:
			s.Offset--
		case s.Take != 0:
			s.Take--
			out = append(out, row)
		}
	}
	return out, s.Take != 0
}

// pipeline is a query that a client is running.
type pipeline interface {
	// next returns the rows of the client's next page, and the continuation from which
	// another client can go on: empty, if there is nothing more.
	next() (rows []datum.Value, continuation string)
}

// encoded writes a continuation.
func encoded(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

func decode(t testing.TB, text string, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), v); err != nil {
		t.Fatalf("the continuation %s: %v", text, err)
	}
}
