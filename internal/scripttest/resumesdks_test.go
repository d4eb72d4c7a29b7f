// SPDX-License-Identifier: MIT

// How each of the SDKs goes on with a query, read from their sources: .NET by resume
// filters, Java by filters in the query, JavaScript by both filters and continuations of
// the server, Python by these alone.

package scripttest

import (
	"cmp"
	"slices"
	"strings"

	"github.com/mayflydb/mayfly/internal/sql/datum"
)

// parallel runs a query without an order: one range after the other, a page of the server
// for a page of the client. .NET, Java and JavaScript do, but that they ask for pages of
// several ranges ahead.
type parallel struct {
	q  *clientQuery
	at *producer
	stages
}

type parallelContinuation struct {
	Range int
	Token string
	stages
}

func newParallel(q *clientQuery, continuation string) pipeline {
	c := parallelContinuation{stages: q.newStages()}
	if continuation != "" {
		decode(q.t, continuation, &c)
	}
	return &parallel{q, q.inRange(c.Range, c.Token), c.stages}
}

func (q *clientQuery) inRange(at int, token string) *producer {
	return &producer{q: q, at: at, text: q.rewritten("true"), next: token}
}

func (p *parallel) next() ([]datum.Value, string) {
	p.at.fetch()
	rows, more := p.apply(p.q.info, p.at.rows)
	if p.at.done && p.at.at+1 < len(p.q.ranges) {
		p.at = p.q.inRange(p.at.at+1, "")
	} else if p.at.done {
		more = false
	}
	if !more {
		return rows, ""
	}
	return rows, encoded(parallelContinuation{p.at.at, p.at.next, p.stages})
}

// orderedContinuation is where a client has stopped in an order: at a row of a range.
type orderedContinuation struct {
	Range  int
	Token  string   // of the server, for that range
	Values []string // what the row is ordered by, as JSON; empty is undefined
	RID    string
	Skip   int // how many rows of the item the client has had
	stages
}

func (q *clientQuery) continuation(at int, token string, row datum.Value, skip int, s stages) orderedContinuation {
	c := orderedContinuation{Range: at, Token: token, Skip: skip, stages: s}
	c.RID, _ = row.Member("_rid").AsString()
	for i := range q.info.OrderBy {
		c.Values = append(c.Values, string(orderItem(row, i).AppendJSON(nil)))
	}
	return c
}

// compare tells where a row comes from where the client stopped: after it, if the result
// is positive.
func (c *orderedContinuation) compare(info *queryInfo, row datum.Value) int {
	for i, direction := range info.OrderBy {
		if order := datum.Compare(orderItem(row, i), datum.Raw([]byte(c.Values[i]))); order != 0 {
			if direction == "Descending" {
				return -order
			}
			return order
		}
	}
	return 0
}

// compareRID orders the items of two rows, as the server has told or the client thinks
// that it has.
func (c *orderedContinuation) compareRID(q *clientQuery, row datum.Value, latestFirst bool) int {
	order := cmp.Compare(rowNumber(q.t, row), ridNumber(q.t, c.RID))
	if latestFirst {
		return -order
	}
	return order
}

// sameItem counts the rows of a page that are of the item of its last.
func sameItem(rows []datum.Value) int {
	n := 0
	for _, row := range rows {
		if datum.Equal(row.Member("_rid"), rows[len(rows)-1].Member("_rid")) {
			n++
		}
	}
	return n
}

// dotnet merges pages of all ranges, and stops where one of them has to be read further.
type dotnet struct {
	q         *clientQuery
	producers []*producer
	stages
}

func newDotnet(q *clientQuery, continuation string) pipeline {
	if len(q.info.OrderBy) == 0 {
		return newParallel(q, continuation)
	}
	p := &dotnet{q: q, stages: q.newStages()}
	for i := range q.ranges {
		p.producers = append(p.producers, q.inRange(i, ""))
	}
	if continuation == "" {
		return p
	}
	var c orderedContinuation
	decode(q.t, continuation, &c)
	p.stages = c.stages
	for i, from := range p.producers {
		switch {
		case i < c.Range:
			from.resumeFilter = c.resumeFilter("", true)
		case i > c.Range:
			from.resumeFilter = c.resumeFilter("", false)
		default:
			from.resumeFilter, from.next, from.keep = c.resumeFilter(c.RID, false), c.Token, c.skipper(q)
		}
	}
	return p
}

// resumeFilter says to the server where to go on.
func (c *orderedContinuation) resumeFilter(rid string, exclude bool) string {
	values := make([]string, len(c.Values))
	for i, v := range c.Values {
		values[i] = string(datum.Raw([]byte(v)).AppendResume(nil))
	}
	f := `{"value":[` + strings.Join(values, ",") + `]`
	if rid != "" {
		f += `,"rid":` + quoted(rid)
	}
	if exclude {
		return f + `,"exclude":true}`
	}
	return f + `,"exclude":false}`
}

// skipper leaves out rows up to the one at which the client stopped. From the first that
// comes after it on it lets all pass, in whatever order they come.
func (c *orderedContinuation) skipper(q *clientQuery) func(datum.Value, bool) bool {
	skip, passed := c.Skip, false
	return func(row datum.Value, latestFirst bool) bool {
		if passed {
			return true
		}
		order := c.compare(q.info, row)
		if order == 0 {
			order = c.compareRID(q, row, latestFirst)
		}
		if order == 0 {
			skip--
			passed = skip < 0
			return passed
		}
		passed = order > 0
		return passed
	}
}

func (p *dotnet) next() ([]datum.Value, string) {
	for _, from := range p.producers {
		from.fill()
	}
	var rows []datum.Value
	var from *producer
	drained := false
	for len(rows) < p.q.size && !drained {
		next := first(p.q.info, p.producers)
		if next == nil {
			break
		}
		from = next
		rows = append(rows, from.take())
		drained = len(from.rows) == 0
	}
	if from == nil {
		return nil, ""
	}
	left := slices.ContainsFunc(p.producers, func(p *producer) bool { return len(p.rows) > 0 || !p.done })
	last := rows[len(rows)-1]
	out, more := p.apply(p.q.info, rows)
	switch {
	case !left || !more:
		return out, ""
	case drained && !from.done:
		return out, encoded(p.q.continuation(from.at, from.next, last, 0, p.stages))
	}
	return out, encoded(p.q.continuation(from.at, from.start, last, sameItem(rows), p.stages))
}

// java merges all ranges into pages of one size. It goes on with the first row of the next
// page, which a filter in the query leads to, and never with a continuation of the server.
type java struct {
	q         *clientQuery
	producers []*producer
	stages
}

func newJava(q *clientQuery, continuation string) pipeline {
	if len(q.info.OrderBy) == 0 {
		return newParallel(q, continuation)
	}
	p := &java{q: q, stages: q.newStages()}
	for i := range q.ranges {
		p.producers = append(p.producers, q.inRange(i, ""))
	}
	if continuation == "" {
		return p
	}
	var c orderedContinuation
	decode(q.t, continuation, &c)
	p.stages = c.stages
	for i, from := range p.producers {
		from.text = q.rewritten(c.javaFilter(q.info, i >= c.Range))
		if i == c.Range {
			from.keep = func(row datum.Value, latestFirst bool) bool {
				return c.compare(q.info, row) != 0 || c.compareRID(q, row, latestFirst) >= 0
			}
		}
	}
	return p
}

func (p *java) next() ([]datum.Value, string) {
	var rows []datum.Value
	for {
		for _, from := range p.producers {
			from.fill()
		}
		from := first(p.q.info, p.producers)
		if from != nil && len(rows) < p.q.size {
			rows = append(rows, from.take())
			continue
		}
		out, more := p.apply(p.q.info, rows)
		if from == nil || !more {
			return out, ""
		}
		return out, encoded(p.q.continuation(from.at, "", from.rows[0], 0, p.stages))
	}
}

// javaFilter is true for rows after where the client stopped, and with inclusive for those
// that are equal to it: for each key, that those before it are equal and that it comes
// later.
func (c *orderedContinuation) javaFilter(info *queryInfo, inclusive bool) string {
	var terms []string
	for n := range c.Values {
		var parts []string
		for i := range n {
			parts = append(parts, c.javaTerm(info, i, "="))
		}
		operator := ">"
		if info.OrderBy[n] == "Descending" {
			operator = "<"
		}
		if inclusive && n == len(c.Values)-1 {
			operator += "="
		}
		term := c.javaTerm(info, n, operator)
		for _, function := range laterKinds(datum.Raw([]byte(c.Values[n])).Kind(), info.OrderBy[n] == "Descending") {
			term += " OR " + function + "(" + info.OrderByExpressions[n] + ")"
		}
		terms = append(terms, "("+strings.Join(append(parts, "("+term+")"), " AND ")+")")
	}
	return strings.Join(terms, " OR ")
}

// javaTerm compares an expression with the value at which the client stopped. Nothing
// can be compared with undefined.
func (c *orderedContinuation) javaTerm(info *queryInfo, i int, operator string) string {
	x := info.OrderByExpressions[i]
	if c.Values[i] != "" {
		return x + " " + operator + " " + c.Values[i]
	}
	return map[string]string{
		"<": "false", "<=": "NOT IS_DEFINED(" + x + ")", "=": "NOT IS_DEFINED(" + x + ")", ">": "IS_DEFINED(" + x + ")", ">=": "true",
	}[operator]
}

// laterKinds returns the functions that tell the kinds of values that come later.
func laterKinds(kind datum.Kind, descending bool) []string {
	functions := []string{"NOT IS_DEFINED", "IS_NULL", "IS_BOOLEAN", "IS_NUMBER", "IS_STRING", "IS_ARRAY", "IS_OBJECT"}
	if descending {
		return functions[:kind]
	}
	return functions[kind+1:]
}

// javascript gathers rows until a range has to be read further, and cuts pages between
// runs of rows of one range. It goes on by a filter and a continuation of the server.
type javascript struct {
	q         *clientQuery
	producers []*producer
	gathered  []rangeRun
	last      *orderedContinuation
	stages
}

// rangeRun is rows of one range, and the continuation with which to go on after them.
type rangeRun struct {
	from  int
	rows  []datum.Value
	token string
}

func newJavaScript(q *clientQuery, continuation string) pipeline {
	if len(q.info.OrderBy) == 0 {
		return newParallel(q, continuation)
	}
	p := &javascript{q: q, stages: q.newStages()}
	for i := range q.ranges {
		p.producers = append(p.producers, q.inRange(i, ""))
	}
	if continuation == "" {
		return p
	}
	c := &orderedContinuation{}
	decode(q.t, continuation, c)
	p.stages, p.last = c.stages, c
	for i, from := range p.producers {
		from.text = q.rewritten(c.javascriptFilter(q.info, i >= c.Range))
		if i == c.Range {
			from.next, from.keep = c.Token, c.javascriptSkipper(q)
		}
	}
	return p
}

// javascriptFilter is about the first key: of several, the SDK's own is wrong.
func (c *orderedContinuation) javascriptFilter(info *queryInfo, inclusive bool) string {
	if c.Values[0] == "" {
		return "true"
	}
	operator := ">"
	if info.OrderBy[0] == "Descending" {
		operator = "<"
	}
	if inclusive {
		operator += "="
	}
	return "(" + info.OrderByExpressions[0] + " " + operator + " " + c.Values[0] + ")"
}

// javascriptSkipper looks at every row of the range. It does not read which direction the
// server has told, but takes that of the order for it.
func (c *orderedContinuation) javascriptSkipper(q *clientQuery) func(datum.Value, bool) bool {
	skip := c.Skip
	return func(row datum.Value, _ bool) bool {
		order := c.compare(q.info, row)
		if order == 0 {
			order = c.compareRID(q, row, slices.Contains(q.info.OrderBy, "Descending"))
		}
		if order == 0 && skip > 0 {
			skip--
			return false
		}
		return order >= 0
	}
}

// gather merges rows until a range has to be read further.
func (p *javascript) gather() {
	for _, from := range p.producers {
		if len(from.rows) == 0 && !from.done {
			from.fetch()
		}
	}
	for {
		from := first(p.q.info, p.producers)
		if from == nil || slices.ContainsFunc(p.producers, func(p *producer) bool { return len(p.rows) == 0 && !p.done }) {
			return
		}
		row := from.take()
		token := from.next
		if len(from.rows) > 0 {
			token = from.start
		}
		if n := len(p.gathered); n > 0 && p.gathered[n-1].from == from.at {
			p.gathered[n-1].rows, p.gathered[n-1].token = append(p.gathered[n-1].rows, row), token
			continue
		}
		p.gathered = append(p.gathered, rangeRun{from.at, []datum.Value{row}, token})
	}
}

func (p *javascript) next() ([]datum.Value, string) {
	if len(p.gathered) == 0 {
		p.gather()
	}
	if len(p.gathered) == 0 {
		if slices.ContainsFunc(p.producers, func(p *producer) bool { return !p.done }) && p.last != nil {
			p.last.Token = p.producers[p.last.Range].next
			return nil, encoded(p.last)
		}
		return nil, ""
	}
	var rows []datum.Value
	var last rangeRun
	for len(p.gathered) > 0 && len(rows)+len(p.gathered[0].rows) <= p.q.size {
		last, p.gathered = p.gathered[0], p.gathered[1:]
		rows = append(rows, last.rows...)
	}
	out, more := p.apply(p.q.info, rows)
	if !more {
		return out, ""
	}
	c := p.q.continuation(last.from, last.token, rows[len(rows)-1], sameItem(rows), p.stages)
	p.last = &c
	return out, encoded(c)
}

// python sends a query that needs no merging as it is, and goes on by the continuation of
// the server. Others it merges, from the beginning to the end.
type python struct {
	q      *clientQuery
	token  string
	merged []*producer // nil if nothing needs merging
	stages
}

func newPython(q *clientQuery, continuation string) pipeline {
	p := &python{q: q, token: continuation, stages: q.newStages()}
	if q.info.merges() {
		for i := range q.ranges {
			p.merged = append(p.merged, q.inRange(i, ""))
		}
	}
	return p
}

func (p *python) next() ([]datum.Value, string) {
	if p.merged == nil {
		page := p.q.post(p.q.text, "", p.token, map[string]string{"X-Ms-Documentdb-Query-Enablecrosspartition": "True"})
		p.token = page.continuation
		return page.rows, page.continuation
	}
	var rows []datum.Value
	for len(rows) < p.q.size {
		for _, from := range p.merged {
			from.fill()
		}
		from := firstOf(p.q.info, p.merged)
		if from == nil {
			out, _ := p.apply(p.q.info, rows)
			return out, ""
		}
		rows = append(rows, from.take())
	}
	out, more := p.apply(p.q.info, rows)
	if !more {
		return out, ""
	}
	return out, "more" // which it cannot go on from
}

// firstOf is first, or without an order the first that has rows.
func firstOf(info *queryInfo, producers []*producer) *producer {
	if len(info.OrderBy) > 0 {
		return first(info, producers)
	}
	i := slices.IndexFunc(producers, func(p *producer) bool { return len(p.rows) > 0 })
	if i < 0 {
		return nil
	}
	return producers[i]
}

// pythonKey is a query within one partition key, which Python sends as it is, whatever it
// is.
type pythonKey struct {
	q     *clientQuery
	token string
}

func newPythonKey(q *clientQuery, continuation string) pipeline { return &pythonKey{q, continuation} }

func (p *pythonKey) next() ([]datum.Value, string) {
	page := p.q.post(p.q.text, "", p.token, map[string]string{"X-Ms-Documentdb-Partitionkey": `["p3"]`})
	if len(page.rows) == 0 && page.continuation != "" {
		p.q.t.Fatalf("%s: an empty page with a continuation", p.q.text)
	}
	p.token = page.continuation
	return page.rows, page.continuation
}
