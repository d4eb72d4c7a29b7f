// SPDX-License-Identifier: MIT

// Queries.

package scripttest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/mayflydb/mayfly/internal/sql/clientplan"
	"github.com/mayflydb/mayfly/internal/sql/datum"
)

// runQuery runs the query that stands below it, after the values of its parameters if
// it has any, and writes the rows.
//
//	query
//	@least = 2
//	SELECT VALUE c.id FROM c WHERE c.n >= @least
//	----
//	"b"
//	"c"
//
// The query is run as SDKs run it, over all partitions: see queryclient_test.go. Rows
// without an order are written in the order of their texts. It is also run in pages of
// one row, as clients do that know of no plans, and as those that leave the merging to the
// server, and must come to the same. It takes
//
//	in=c2 db=d2     the container and its database
//	pk="x"          one partition key, as createItems has it: the rows come as they
//	                are, and so they do for
//	range=0         one physical partition, with epk=(00, 20) for a range of effective
//	                partition keys in it, and for
//	cross           all of them, without a plan,
//	merge           all of them, merged by the server, or
//	direct          without a word on whether it may go to several
//	known=(0, 1)    these ranges, which a client with a plan knows from before a split,
//	page=2          pages of two rows
//	next=p last from=p    one page only, where there is no plan, as for lists
//	plan            show the plan, for a client with all features or with
//	features=Top,OrderBy
//	count           show only how many rows there are
//	once            run it once only, for what is never the same twice
//	charge          show the charge, of one request
//	full with=_ts   what to show of items that are rows
func runQuery(s *script, d *directive) string {
	v, charge := rowView{view: d.view(), count: d.flag("count")}, d.flag("charge")
	params, text := d.query()
	q := s.newQuery(d, text, params)
	if d.flag("plan") {
		return s.planLine(d, q)
	}
	direct := q.directHeader()
	if direct == nil {
		if charge {
			d.fatalf("charge is told of one request, not of several")
		}
		rows, ordered, err := q.planned(d.times())
		v.sorted = !ordered
		return s.rowLines(d, rows, err, v)
	}
	if d.option("next") != "" || d.option("from") != "" {
		return s.queryPage(d, q, direct, v)
	}
	rows, err := q.all(text, direct)
	out := s.rowLines(d, rows, err, v)
	if charge {
		out = fmt.Sprintf("%.2f RU\n%s", q.charge, out)
	}
	return out
}

// whereItems writes the ids of the items for which a filter holds, for each of the
// filters below it.
//
//	where
//	c.n > 1
//	c.n = 0
//	----
//	b c
//	-
func whereItems(s *script, d *directive) string {
	return s.eachLine(d, func(line string) string {
		rows, _, err := s.newQuery(d, "SELECT VALUE c.id FROM c WHERE "+line, nil).planned(againAndAgain)
		if err != nil {
			return s.refusal(d, err)
		}
		if len(rows) == 0 {
			return "-"
		}
		ids := make([]string, len(rows))
		for i, row := range rows {
			ids[i], _ = row.AsString()
		}
		slices.Sort(ids)
		return strings.Join(ids, " ")
	})
}

// valueOf writes the value of each of the expressions below it.
//
//	value
//	1 + 1
//	UPPER(1)
//	----
//	2
//	undefined
//
// With of=a they are about the item c whose id is a, and without about nothing.
func valueOf(s *script, d *directive) string {
	from, id := "", d.option("of")
	if id != "" {
		from = " FROM c WHERE c.id = " + quoted(id)
	}
	times := d.times()
	return s.eachLine(d, func(line string) string {
		rows, _, err := s.newQuery(d, "SELECT VALUE "+line+from, nil).planned(times)
		switch {
		case err != nil:
			return s.refusal(d, err)
		case len(rows) == 0:
			return "undefined"
		case len(rows) > 1:
			d.fatalf("%s has %d rows", line, len(rows))
		}
		return s.row(rows[0], view{})
	})
}

func (s *script) eachLine(d *directive, do func(line string) string) string {
	var lines []string
	for _, line := range d.lines() {
		lines = append(lines, do(line))
	}
	return strings.Join(lines, "\n")
}

// query reads what stands below a directive: lines @name = value, and the query.
func (d *directive) query() (params []byte, text string) {
	lines := d.lines()
	var list []string
	for len(lines) > 0 && strings.HasPrefix(lines[0], "@") {
		name, value, ok := strings.Cut(lines[0], " = ")
		if !ok || !json.Valid([]byte(value)) {
			d.fatalf("a parameter is written @name = value, with the value in JSON, not %s", lines[0])
		}
		list = append(list, `{"name":`+quoted(name)+`,"value":`+value+`}`)
		lines = lines[1:]
	}
	return []byte("[" + strings.Join(list, ",") + "]"), strings.Join(lines, "\n")
}

func (s *script) newQuery(d *directive, text string, params []byte) *queryCall {
	if params == nil {
		params = []byte("[]")
	}
	return &queryCall{
		s: s, d: d, text: text, params: params, page: d.number("page"),
		path:   append(containerPath(d.database(), d.container()), "docs"),
		known:  d.option("known"),
		header: map[string]string{"X-Ms-Session-Token": s.given(d, "session")},
	}
}

// directHeader returns the headers of a query that is sent as it is, nil if the query needs
// a plan.
func (q *queryCall) directHeader() map[string]string {
	d, h := q.d, map[string]string{}
	if d.option("pk") != "" {
		h["X-Ms-Documentdb-Partitionkey"] = q.s.partitionKey(d, d.database(), d.container(), nil)
	}
	if id := q.s.rangeID(d); id != "" {
		h["X-Ms-Documentdb-Partitionkeyrangeid"] = id
	}
	d.cutOut(h)
	if d.flag("cross") {
		h["X-Ms-Documentdb-Query-Enablecrosspartition"] = "True"
	}
	if d.flag("merge") {
		h["X-Ms-Documentdb-Query-Enablecrosspartition"], h["X-Mayfly-Merge"] = "True", "True"
	}
	if !d.flag("direct") && len(h) == 0 {
		return nil
	}
	return h
}

// times is how often a query is run.
type times int

const (
	againAndAgain times = iota // in all ways that must have the same result
	once
)

func (d *directive) times() times {
	if d.flag("once") {
		return once
	}
	return againAndAgain
}

// planned runs the query as SDKs do and, unless it is to be run once, in other ways that
// must have the same result.
func (q *queryCall) planned(n times) (rows []datum.Value, ordered bool, err error) {
	q.d.Helper()
	plan, a := q.plan((^clientplan.FeatureSet(0)).String())
	if plan == nil {
		return nil, false, &refusedError{a}
	}
	rows, err = q.run(plan)
	if err != nil || n == once {
		return rows, plan.ordered(), err
	}
	if q.page == 0 {
		q.page = 1
		again, err := q.run(plan)
		q.page = 0
		q.same("in pages of one row", plan, rows, again, err)
	}
	if q.known != "" {
		return rows, plan.ordered(), nil
	}
	q.withoutPlan(plan, rows)
	q.byServer(plan, rows)
	return rows, plan.ordered(), nil
}

// byServer checks the result for clients that leave the merging to the server, which is none of
// the ways of direct mode: in pages as they come, and in small ones.
func (q *queryCall) byServer(plan *queryPlan, rows []datum.Value) {
	q.d.Helper()
	page := q.page
	defer func() { q.page = page }()
	for _, q.page = range []int{page, 1, 2} {
		again, err := q.all(q.text, map[string]string{"X-Ms-Documentdb-Query-Enablecrosspartition": "True", "X-Mayfly-Merge": "True"})
		q.same("merged by the server, in pages of "+strconv.Itoa(q.page), plan, rows, again, err)
	}
}

// withoutPlan checks the result for clients that do not use plans. They are refused if
// several partitions have to be merged.
func (q *queryCall) withoutPlan(plan *queryPlan, rows []datum.Value) {
	q.d.Helper()
	ids := q.ranges(plan)
	if len(ids) == 1 {
		again, err := q.all(q.text, map[string]string{"X-Ms-Documentdb-Partitionkeyrangeid": ids[0]})
		q.same("in its one partition", plan, rows, again, err)
	}
	again, err := q.all(q.text, map[string]string{"X-Ms-Documentdb-Query-Enablecrosspartition": "True"})
	merges := plan.HybridSearchQueryInfo != nil || plan.QueryInfo.merges()
	var refused *refusedError
	if !merges || err == nil && len(ids) == 1 {
		q.same("without a plan", plan, rows, again, err)
		return
	}
	if !errors.As(err, &refused) || refused.answer.status != http.StatusBadRequest || refused.answer.header.Get("X-Ms-Substatus") != "1004" {
		q.d.fatalf("%s: without a plan it comes to %v, %v", q.text, again, err)
	}
	var told queryPlan
	info, _ := lookup(refused.answer.body, "additionalErrorInfo")
	if err := json.Unmarshal([]byte(unquoted(info)), &told); err != nil || told.ordered() != plan.ordered() {
		q.d.fatalf("%s: the refusal tells another plan: %s", q.text, info)
	}
}

// same checks that a query has the same rows again.
func (q *queryCall) same(how string, plan *queryPlan, want, got []datum.Value, err error) {
	q.d.Helper()
	if err != nil {
		var refused *refusedError
		if errors.As(err, &refused) {
			q.d.fatalf("%s: %s it is refused: %s", q.text, how, refused.answer.body)
		}
		q.d.fatalf("%s: %s: %v", q.text, how, err)
	}
	a, b := canonical(want), canonical(got)
	if !plan.ordered() {
		slices.Sort(a)
		slices.Sort(b)
	}
	if !slices.Equal(a, b) {
		q.d.fatalf("%s: %s it comes to\n%s\nand not to\n%s", q.text, how, strings.Join(b, "\n"), strings.Join(a, "\n"))
	}
}

func canonical(rows []datum.Value) []string {
	texts := make([]string, len(rows))
	for i, row := range rows {
		texts[i] = string(row.AppendCanonical(nil))
	}
	return texts
}

// queryPage runs one page of a query.
func (s *script) queryPage(d *directive, q *queryCall, header map[string]string, v rowView) string {
	last := d.flag("last")
	header["X-Ms-Continuation"] = s.given(d, "from")
	if d.option("next") == "" && !last {
		rows, err := q.all(q.text, header)
		return s.rowLines(d, rows, err, v)
	}
	a := q.post(q.text, header)
	if a.status != http.StatusOK {
		return s.line(d, a, v.view)
	}
	if last && a.header.Get("X-Ms-Continuation") != "" {
		d.fatalf("this is not the last page")
	}
	if !last {
		s.keep(d, a)
	}
	return s.rowLines(d, q.rows(a), nil, v)
}

// planLine renders a plan, without its empty parts.
func (s *script) planLine(d *directive, q *queryCall) string {
	features := (^clientplan.FeatureSet(0)).String()
	if _, given := d.data.Arg("features"); given {
		features = d.option("features")
		d.used["features"] = true
	}
	_, a := q.plan(features)
	if a.status != http.StatusOK {
		return s.line(d, a, view{})
	}
	var lines []string
	for _, m := range members(a.body) {
		if m.name == "partitionedQueryExecutionInfoVersion" {
			continue
		}
		if m.name == "queryRanges" {
			lines = append(lines, m.name+" "+string(m.raw))
			continue
		}
		for _, part := range members(m.raw) {
			if !slices.Contains([]string{"null", "[]", "{}", `""`, "false", `"None"`}, string(part.raw)) {
				lines = append(lines, part.name+" "+string(part.raw))
			}
		}
	}
	return strings.Join(lines, "\n")
}

func (s *script) refusal(d *directive, err error) string {
	var refused *refusedError
	if !errors.As(err, &refused) {
		d.fatalf("%v", err)
	}
	return s.line(d, refused.answer, view{})
}

// rowView is how a script shows rows.
type rowView struct {
	view
	count  bool // only the number of rows
	sorted bool // by their texts, since they have no order
}

// rowLines writes rows, one to a line.
func (s *script) rowLines(d *directive, rows []datum.Value, err error, v rowView) string {
	d.Helper()
	if err != nil {
		return s.refusal(d, err)
	}
	switch {
	case v.count && len(rows) == 1:
		return "1 row"
	case v.count:
		return fmt.Sprintf("%d rows", len(rows))
	case len(rows) == 0:
		return "no rows"
	}
	lines := make([]string, len(rows))
	for i, row := range rows {
		lines[i] = s.row(row, v.view)
	}
	if v.sorted {
		slices.Sort(lines)
	}
	return strings.Join(lines, "\n")
}

// row renders a row. In whole items, at any depth, the system properties are left out as
// elsewhere.
func (s *script) row(row datum.Value, v view) string {
	return collapse(string(s.appendRow(nil, row.AppendJSON(nil), v)))
}

func (s *script) appendRow(dst, raw []byte, v view) []byte {
	switch raw[0] {
	case '{':
		if _, item := lookup(raw, "_self"); item {
			return append(dst, s.resource(raw, v)...)
		}
		dst = append(dst, '{')
		for i, m := range members(raw) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(append(dst, quoted(m.name)...), ':')
			if strings.HasPrefix(m.name, "_") {
				dst = append(dst, s.stable(m)...)
				continue
			}
			dst = s.appendRow(dst, m.raw, v)
		}
		return append(dst, '}')
	case '[':
		dst = append(dst, '[')
		for i, element := range elements(raw) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = s.appendRow(dst, element, v)
		}
		return append(dst, ']')
	}
	return append(dst, raw...)
}
