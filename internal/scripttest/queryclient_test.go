// SPDX-License-Identifier: MIT

// A client that runs queries as SDKs do: it requests the plan, sends the rewritten query to
// each physical partition of the plan, and merges the rows.

package scripttest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/mayflydb/mayfly/internal/sql/datum"
)

// queryInfo is how a plan tells a client to merge the rows of several ranges.
type queryInfo struct {
	DistinctType                string
	Top, Offset, Limit          *int
	OrderBy                     []string
	OrderByExpressions          []string
	GroupByExpressions          []string
	GroupByAliases              []string
	Aggregates                  []string
	GroupByAliasToAggregateType map[string]*string
	RewrittenQuery              string
	HasSelectValue              bool
	HasNonStreamingOrderBy      bool
	DCountInfo                  *struct{ DCountAlias *string }
}

type queryPlan struct {
	QueryInfo             *queryInfo
	HybridSearchQueryInfo *hybridInfo
	QueryRanges           []struct {
		Min, Max                       string
		IsMinInclusive, IsMaxInclusive bool
	}
}

// ordered reports whether the rows of the plan have an order.
func (p *queryPlan) ordered() bool {
	return p.HybridSearchQueryInfo != nil || len(p.QueryInfo.OrderBy) > 0
}

// merges reports whether the client has to do more than to concatenate the rows of all
// ranges.
func (i *queryInfo) merges() bool {
	return i.DistinctType != "None" || i.Top != nil || i.Limit != nil || len(i.OrderBy) > 0 || i.groups() || i.DCountInfo != nil
}

func (i *queryInfo) groups() bool {
	return len(i.Aggregates)+len(i.GroupByExpressions)+len(i.GroupByAliasToAggregateType) > 0
}

// queryCall is the query of a directive.
type queryCall struct {
	s      *script
	d      *directive
	path   []string // of the items
	header map[string]string
	text   string
	params []byte // as a JSON array
	page   int    // the most rows of a page, 0 for the server's default
	known  string // the ranges that the client knows, with commas between; empty for those that there are
	scores bool   // queries are for one score each, whose pages have all rows whatever the most is

	charge float64 // of all requests so far
}

// refusedError is an answer with an error.
type refusedError struct{ answer answer }

func (e *refusedError) Error() string { return strconv.Itoa(e.answer.status) }

// body returns a query's body.
func (q *queryCall) body(text string) []byte {
	return []byte(`{"query":` + quoted(text) + `,"parameters":` + string(q.params) + `}`)
}

func (q *queryCall) post(text string, header map[string]string) answer {
	q.d.Helper()
	h := map[string]string{"Content-Type": "application/query+json", "X-Ms-Documentdb-Isquery": "True"}
	for _, more := range []map[string]string{q.header, header} {
		for name, value := range more {
			h[name] = value
		}
	}
	if q.page > 0 {
		h["X-Ms-Max-Item-Count"] = strconv.Itoa(q.page)
	}
	a := q.s.send(q.d, request{method: http.MethodPost, path: q.path, header: h, body: q.body(text)})
	if charge, err := strconv.ParseFloat(a.charge(), 64); err == nil {
		q.charge += charge
	}
	return a
}

// rows returns the rows of a page.
func (q *queryCall) rows(a answer) []datum.Value {
	q.d.Helper()
	page := q.s.page(q.d, a, "Documents")
	if q.page > 0 && !q.scores && len(page) > q.page {
		q.d.fatalf("a page has %d rows, more than %d", len(page), q.page)
	}
	rows := make([]datum.Value, len(page))
	for i, row := range page {
		rows[i] = datum.Raw(row)
	}
	return rows
}

// all reads all pages of a query to one range or partition key.
func (q *queryCall) all(text string, header map[string]string) ([]datum.Value, error) {
	q.d.Helper()
	h := map[string]string{}
	for name, value := range header {
		h[name] = value
	}
	var rows []datum.Value
	for range maxPages {
		a := q.post(text, h)
		if a.status != http.StatusOK {
			return nil, &refusedError{a}
		}
		rows = append(rows, q.rows(a)...)
		next := a.header.Get("X-Ms-Continuation")
		if next == "" {
			return rows, nil
		}
		h["X-Ms-Continuation"] = next
	}
	q.d.fatalf("the query has no end after %d pages", maxPages)
	return nil, nil
}

// plan requests the plan of the query, for a client with the given features.
func (q *queryCall) plan(features string) (*queryPlan, answer) {
	q.d.Helper()
	a := q.post(q.text, map[string]string{
		"X-Ms-Cosmos-Is-Query-Plan-Request":    "True",
		"X-Ms-Cosmos-Query-Version":            "1.4",
		"X-Ms-Cosmos-Supported-Query-Features": features,
	})
	if a.status != http.StatusOK {
		return nil, a
	}
	p := &queryPlan{}
	if err := json.Unmarshal(a.body, p); err != nil || (p.QueryInfo == nil) == (p.HybridSearchQueryInfo == nil) {
		q.d.fatalf("not a plan: %v: %s", err, a.body)
	}
	return p, a
}

// ranges returns the ids of the physical partitions of a plan.
func (q *queryCall) ranges(p *queryPlan) []string {
	q.d.Helper()
	if q.known != "" {
		return strings.Split(q.known, ",")
	}
	a := q.s.send(q.d, request{method: http.MethodGet, path: append(slices.Clone(q.path[:len(q.path)-1]), "pkranges")})
	var feed struct {
		PartitionKeyRanges []struct{ ID, MinInclusive, MaxExclusive string }
	}
	if err := json.Unmarshal(a.body, &feed); err != nil || len(feed.PartitionKeyRanges) == 0 {
		q.d.fatalf("the ranges: %v: %s", err, a.body)
	}
	var ids []string
	for _, r := range feed.PartitionKeyRanges {
		for _, want := range p.QueryRanges {
			if want.Min < r.MaxExclusive && (r.MinInclusive < want.Max || want.IsMaxInclusive && r.MinInclusive == want.Max) {
				ids = append(ids, r.ID)
				break
			}
		}
	}
	return ids
}

// run runs the query over all its partitions.
func (q *queryCall) run(p *queryPlan) ([]datum.Value, error) {
	q.d.Helper()
	ids := q.ranges(p)
	if p.HybridSearchQueryInfo != nil {
		return q.hybrid(p.HybridSearchQueryInfo, ids)
	}
	perRange, err := q.each(p.QueryInfo, ids)
	if err != nil {
		return nil, err
	}
	return q.merged(p.QueryInfo, perRange), nil
}

// nothingSeen replaces the resume filter of a client that begins.
var nothingSeen = strings.NewReplacer("{documentdb-formattableorderbyquery-filter}", "true")

// each sends the query to each range.
func (q *queryCall) each(info *queryInfo, ids []string) ([][]datum.Value, error) {
	q.d.Helper()
	text := q.text
	if info.RewrittenQuery != "" {
		text = nothingSeen.Replace(info.RewrittenQuery)
	}
	perRange := make([][]datum.Value, len(ids))
	for i, id := range ids {
		rows, err := q.all(text, map[string]string{"X-Ms-Documentdb-Partitionkeyrangeid": id})
		if err != nil {
			return nil, err
		}
		perRange[i] = rows
	}
	return perRange, nil
}

// merged merges the rows of the ranges.
func (q *queryCall) merged(info *queryInfo, perRange [][]datum.Value) []datum.Value {
	var rows []datum.Value
	if len(info.OrderBy) > 0 {
		for _, row := range mergeOrdered(info, perRange) {
			rows = append(rows, payloadOf(row))
		}
	} else {
		rows = slices.Concat(perRange...)
	}
	if info.groups() {
		rows = q.mergeGroups(info, rows)
	}
	if info.DistinctType != "None" {
		rows = distinctRows(info, rows)
	}
	if c := info.DCountInfo; c != nil {
		total := datum.Int(int64(len(rows)))
		if c.DCountAlias != nil {
			var b datum.ObjectBuilder
			b.Set(*c.DCountAlias, total)
			total = b.Value()
		}
		rows = []datum.Value{total}
	}
	return sliced(rows, info.Offset, info.Limit, info.Top)
}

// payloadOf returns the payload of a row, without the values that it is merged by, as the
// server's text.
func payloadOf(row datum.Value) datum.Value {
	var of struct {
		Payload json.RawMessage `json:"payload"`
	}
	if err := json.Unmarshal([]byte(row.String()), &of); err != nil {
		return datum.Undefined()
	}
	return datum.Raw(of.Payload)
}

func sliced(rows []datum.Value, offset, limit, top *int) []datum.Value {
	if offset != nil {
		rows = rows[min(*offset, len(rows)):]
	}
	for _, most := range []*int{limit, top} {
		if most != nil {
			rows = rows[:min(*most, len(rows))]
		}
	}
	return rows
}

// mergeOrdered repeatedly takes the first of the ranges' next rows. It does not sort: each
// range must be in order.
func mergeOrdered(info *queryInfo, perRange [][]datum.Value) []datum.Value {
	var rows []datum.Value
	for {
		first := -1
		for i := range perRange {
			if len(perRange[i]) > 0 && (first < 0 || compareRows(info, perRange[i][0], perRange[first][0]) < 0) {
				first = i
			}
		}
		if first < 0 {
			return rows
		}
		rows = append(rows, perRange[first][0])
		perRange[first] = perRange[first][1:]
	}
}

func compareRows(info *queryInfo, a, b datum.Value) int {
	for i, direction := range info.OrderBy {
		c := datum.Compare(a.Member("orderByItems").Index(i).Member("item"), b.Member("orderByItems").Index(i).Member("item"))
		if direction == "Descending" {
			c = -c
		}
		if c != 0 {
			return c
		}
	}
	return 0
}

func distinctRows(info *queryInfo, rows []datum.Value) []datum.Value {
	var distinct []datum.Value
	seen := map[string]bool{}
	for _, row := range rows {
		key := string(row.AppendCanonical(nil))
		if seen[key] {
			continue
		}
		if info.DistinctType == "Ordered" {
			clear(seen) // equal rows are adjacent
		}
		seen[key] = true
		distinct = append(distinct, row)
	}
	return distinct
}

// mergeGroups merges the groups of several ranges.
func (q *queryCall) mergeGroups(info *queryInfo, rows []datum.Value) []datum.Value {
	groups := map[string][]datum.Value{}
	var keys []string
	for _, row := range rows {
		key, payload := "", row
		if len(info.GroupByExpressions) > 0 {
			key = string(row.Member("groupByItems").AppendCanonical(nil))
		}
		if len(info.GroupByExpressions) > 0 || !info.HasSelectValue {
			payload = payloadOf(row)
		}
		if groups[key] == nil {
			keys = append(keys, key)
		}
		groups[key] = append(groups[key], payload)
	}
	var merged []datum.Value
	for _, key := range keys {
		if row := q.mergeGroup(info, groups[key]); !row.IsUndefined() {
			merged = append(merged, row)
		}
	}
	return merged
}

func (q *queryCall) mergeGroup(info *queryInfo, payloads []datum.Value) datum.Value {
	parts := func(of func(datum.Value) datum.Value) []datum.Value {
		list := make([]datum.Value, len(payloads))
		for i, p := range payloads {
			list[i] = of(p)
		}
		return list
	}
	if info.HasSelectValue {
		if len(info.Aggregates) == 0 {
			return payloads[0]
		}
		return q.mergeAggregate(info.Aggregates[0], parts(func(p datum.Value) datum.Value { return p.Index(0) }))
	}
	var b datum.ObjectBuilder
	for _, alias := range info.GroupByAliases {
		values := parts(func(p datum.Value) datum.Value { return p.Member(alias) })
		if aggregate := info.GroupByAliasToAggregateType[alias]; aggregate != nil {
			b.Set(alias, q.mergeAggregate(*aggregate, values))
			continue
		}
		b.Set(alias, values[0])
	}
	return b.Value()
}

// mergeAggregate merges the parts of an aggregate.
func (q *queryCall) mergeAggregate(name string, parts []datum.Value) datum.Value {
	switch name {
	case "Count", "CountIf", "Sum":
		return summed(parts, func(p datum.Value) datum.Value { return p.Member("item") })
	case "Average":
		sum := summed(parts, func(p datum.Value) datum.Value { return p.Member("item").Member("sum") })
		n, _ := summed(parts, func(p datum.Value) datum.Value { return p.Member("item").Member("count") }).AsFloat()
		x, ok := sum.AsFloat()
		if !ok || n == 0 {
			return datum.Undefined()
		}
		return datum.Float(x / n)
	case "Min", "Max":
		return extreme(name, parts)
	case "MakeList", "MakeSet":
		return collected(name, parts)
	}
	q.d.fatalf("there is no aggregate %q", name)
	return datum.Undefined()
}

func summed(parts []datum.Value, of func(datum.Value) datum.Value) datum.Value {
	sum := 0.0
	for _, p := range parts {
		x, ok := of(p).AsFloat()
		if !ok {
			return datum.Undefined()
		}
		sum += x
	}
	return datum.Float(sum)
}

func extreme(name string, parts []datum.Value) datum.Value {
	best := datum.Undefined()
	for _, p := range parts {
		detail := p.Member("item2")
		if n, _ := detail.Member("count").AsFloat(); n == 0 {
			continue
		}
		x := detail.Member(strings.ToLower(name))
		if x.IsUndefined() {
			return x
		}
		c := datum.Compare(x, best)
		if best.IsUndefined() || name == "Min" && c < 0 || name == "Max" && c > 0 {
			best = x
		}
	}
	return best
}

// collected returns the elements of all parts, in the order of their texts, since a list
// has no defined order.
func collected(name string, parts []datum.Value) datum.Value {
	var all [][]byte
	for _, p := range parts {
		for v := range p.Member("item").Elements {
			all = append(all, v.AppendCanonical(nil))
		}
	}
	slices.SortFunc(all, bytes.Compare)
	if name == "MakeSet" {
		all = slices.CompactFunc(all, bytes.Equal)
	}
	var b datum.ArrayBuilder
	for _, text := range all {
		b.Add(datum.Raw(text))
	}
	return b.Value()
}
