// SPDX-License-Identifier: MIT

// The rows that a merge reads of the partitions: one after the other, or in order.

package engine

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/memory"
	"github.com/mayflydb/mayfly/internal/query"
	"github.com/mayflydb/mayfly/internal/ru"
	"github.com/mayflydb/mayfly/internal/sql/clientplan"
	"github.com/mayflydb/mayfly/internal/sql/datum"
	"github.com/mayflydb/mayfly/internal/store"
	"github.com/mayflydb/mayfly/internal/value"
)

const (
	// maxRangeRows is how many rows a partition is asked for at once, and minRangeBytes the
	// least number of bytes: half of what a merge may hold is divided among the partitions.
	maxRangeRows  = 1000
	minRangeBytes = 16 << 10
)

// rangeQuery asks for a page of a query in one partition.
type rangeQuery struct {
	Database, Container, RID, Session string
	Body                              []byte
	MaxItems, MaxBytes                int
	Continuation                      string
	Measure                           bool
	// StartEPK and EndEPK are for boundedPages.
	StartEPK, EndEPK string
}

// rangePage is that page.
type rangePage struct {
	Rows         []byte
	Count        int
	Continuation string
	LSN          uint64
	Charge       ru.Units
	Work         query.Work
	Compiled     time.Duration
	Times        query.Times
	Indexes      *query.IndexUse
	// RetryAfter is set if the partition has nothing left to spend. Then there is no page.
	RetryAfter time.Duration
}

func rangePageHere(ctx context.Context, e *Engine, c *catalog.Container, index int, _ *store.Partition, q rangeQuery) (rangePage, error) {
	return e.rangePage(ctx, index, q, nil)
}

var (
	rangePages = newOperation(operation[rangeQuery, rangePage]{"query", rangePageHere, false})
	// boundedPages has a name of its own, since nodes of an earlier version would pass over
	// the bounds.
	boundedPages = newOperation(operation[rangeQuery, rangePage]{"bounded query", rangePageHere, false})
)

// rangePage answers for a partition of this node.
func (e *Engine) rangePage(ctx context.Context, id int, q rangeQuery, share *memory.Share) (rangePage, error) {
	parsed, err := ParseQuery(q.Body)
	if err != nil {
		return rangePage{}, err
	}
	a, err := e.queryItems(ctx, &Request{
		Target: Target{Database: q.Database, Container: q.Container, IntendedRID: q.RID}, SessionToken: q.Session, Memory: share,
		Range: catalog.RangeID(id), StartEPK: q.StartEPK, EndEPK: q.EndEPK, MaxItems: q.MaxItems, maxBytes: q.MaxBytes, Continuation: q.Continuation, Query: parsed, Measure: q.Measure,
	})
	var throttled *ThrottledError
	switch {
	case errors.As(err, &throttled):
		return rangePage{RetryAfter: throttled.RetryAfter}, nil
	case errors.Is(err, ErrRangeGone) || errors.Is(err, ErrOwnerNotFound) || errors.Is(err, ErrContainerChanged):
		return rangePage{}, store.ErrClosed // it was there when the request came, which is tried again
	case err != nil:
		return rangePage{}, err
	}
	return rangePage{a.Rows, a.Count, a.Continuation, a.LSN, a.Charge, a.Work, a.Compiled, a.Times, a.Indexes, 0}, nil
}

// pageOf returns a page of a partition from its owner.
func (m *merge) pageOf(i int, q rangeQuery) (rangePage, error) {
	id := m.c.Ranges[i].ID
	page, err := m.e.rangePage(m.ctx, id, q, m.r.Memory)
	var elsewhere *NotOwnerError
	if m.e.node == nil || !errors.As(err, &elsewhere) {
		return page, err
	}
	of := rangePages
	if q.StartEPK != "" || q.EndEPK != "" {
		of = boundedPages
	}
	all, err := gatherThose(m.ctx, m.e, m.c, []int{id}, of, q)
	switch {
	case err == nil:
		return all[i], m.r.Memory.Take(m.ctx, int64(len(all[i].Rows)))
	case m.ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		return page, query.ErrQueryTime // other nodes are not waited for longer than askLimit
	case errors.Is(err, ErrUnavailable) || slices.ContainsFunc(refusals, func(known error) bool { return errors.Is(err, known) }):
		return page, err
	}
	return page, invalid("The node that owns partition %d refuses the query: %v.", id, err)
}

// ask asks a partition for a page, and waits while it has nothing left to spend. It returns
// the rows and how much memory they take, which is held.
func (m *merge) ask(i int, body []byte, continuation string) (rows []datum.Value, size int, next string, err error) {
	share := m.mostHeld() / 2 / int64(len(m.positions))
	q := rangeQuery{
		Database: m.r.Database, Container: m.r.Container, RID: m.c.RIDText, Session: m.r.SessionToken, Body: body, Continuation: continuation,
		MaxItems: max(m.wanted(), 1), MaxBytes: int(min(max(share, minRangeBytes), maxPageBytes)), Measure: m.r.Measure,
		StartEPK: m.r.StartEPK, EndEPK: m.r.EndEPK,
	}
	var page rangePage
	for {
		if err := m.look(); err != nil {
			return nil, 0, "", err
		}
		before := m.r.Memory.Used()
		if page, err = m.pageOf(i, q); err != nil {
			return nil, 0, "", err
		}
		size = int(m.r.Memory.Used() - before)
		m.held += int64(size)
		if page.RetryAfter == 0 {
			break
		}
		if err := pause(m.ctx, page.RetryAfter); err != nil {
			return nil, 0, "", err
		}
	}
	if m.held > m.mostHeld() {
		return nil, 0, "", query.ErrSortTooLarge
	}
	m.add(i, &page)
	list, _ := elementsOf(page.Rows)
	for _, row := range list {
		rows = append(rows, datum.Raw(row))
	}
	return rows, size, page.Continuation, nil
}

// elementsOf returns the rows of a page.
func elementsOf(rows []byte) ([][]byte, bool) {
	return value.Elements(slices.Concat([]byte("["), rows, []byte("]")))
}

// add adds what a partition's page took to the answer.
func (m *merge) add(i int, part *rangePage) {
	p := m.page
	p.Partition, p.LSN, p.Answered = m.c.Ranges[i].ID, part.LSN, true
	p.Charge += part.Charge
	p.Compiled += part.Compiled
	p.Work.Add(part.Work)
	p.Times.Add(part.Times)
	if p.Indexes == nil {
		p.Indexes = part.Indexes
	}
}

// listed passes the rows of the partitions on, one partition after the other, until take says
// that the page ends.
func (m *merge) listed(text string, take func(datum.Value) (end bool, err error)) error {
	body := m.body(text, nil)
	places, err := m.at.places(m.c, m.positions)
	if err != nil {
		return err
	}
	if m.part != nil && m.at.Places == nil {
		for n := range places {
			places[n].token = m.part.token
		}
	}
	for len(places) > 0 {
		rows, size, next, err := m.ask(places[0].at, body, places[0].token)
		if err != nil {
			return err
		}
		m.from = places[0].at
		for _, row := range rows {
			if end, err := take(row); end || err != nil {
				return err
			}
		}
		m.release(size)
		if places[0].token = next; next == "" {
			places = places[1:]
		}
		// A page of a part has rows of one partition: Java knows an aggregate by being alone.
		end := m.full() || m.part != nil && m.page.Count > 0
		if m.exact && end && len(places) > 0 && (m.last < 0 || m.n < m.last) {
			return m.continueAt(mergedContinuation{Places: m.named(places)})
		}
	}
	return nil
}

// cursor is where a merge is in one partition.
type cursor struct {
	at    int // its position
	body  []byte
	rows  []datum.Value // that were read and are not passed on
	keys  []datum.Value // of the first of them
	size  int           // bytes that they hold
	token string
	ended bool // there are no more to be read
	// passed is how many rows with the keys of the continuation and this item are passed over,
	// and had how many of them there were.
	item        string
	passed, had int64
}

// ordered passes the rows of the partitions on in the order of the query, until take says
// that the page ends.
func (m *merge) ordered(info *clientplan.QueryInfo, take func(datum.Value) (end bool, err error)) error {
	cursors, err := m.cursors(info)
	if err != nil {
		return err
	}
	last, at := m.at, -1
	for {
		if m.exact && m.full() && slices.ContainsFunc(cursors, func(c *cursor) bool { return len(c.rows) > 0 || !c.ended }) {
			if at >= 0 && m.part == nil && slices.Equal(last.Keys, m.at.Keys) {
				last.Begun = m.begunAfter(cursors, at)
			}
			return m.continueAt(last)
		}
		var first *cursor
		for _, c := range cursors {
			if err := m.fill(info, c); err != nil {
				return err
			}
			if len(c.rows) > 0 && (first == nil || m.before(info, c, first)) {
				first = c
			}
		}
		if first == nil {
			return nil
		}
		row := first.rows[0]
		here := behind(m.c.Ranges[first.at].ID, clientplan.RID(row), first.keys)
		if first.rows = first.rows[1:]; len(first.rows) > 0 {
			first.keys = info.SortKeys(first.rows[0])
		}
		of := mergedContinuation{RID: first.item, Keys: m.at.Keys}
		if first.passed > 0 && here.same(&of) {
			first.passed--
			continue
		}
		switch {
		case here.same(&last):
			here.Same += last.Same
		case first.had > 0 && here.same(&of):
			here.Same += first.had
		}
		last, at, m.from = here, first.at, first.at
		if end, err := take(row); end || err != nil {
			return err
		}
	}
}

// before reports whether the row of a cursor comes before that of an earlier partition. Clients
// expect the rows with equal keys of one partition before those of the next, and those of one
// range by their items.
func (m *merge) before(info *clientplan.QueryInfo, c, earlier *cursor) bool {
	order := info.CompareKeys(c.keys, earlier.keys)
	if order != 0 || m.part == nil {
		return order < 0
	}
	one, _ := m.c.RID.Ordinal(clientplan.RID(c.rows[0]))
	other, _ := m.c.RID.Ordinal(clientplan.RID(earlier.rows[0]))
	return one < other != m.page.LatestFirst && one != other
}

// cursors returns a cursor for each partition.
func (m *merge) cursors(info *clientplan.QueryInfo) ([]*cursor, error) {
	text := info.Text(m.r.Query.Text)
	all := make([]*cursor, len(m.positions))
	if m.part != nil {
		return m.partCursors(all), nil
	}
	whole := m.body(text, nil)
	for n, i := range m.positions {
		all[n] = &cursor{at: i, body: whole}
	}
	if !m.exact || m.at.Keys == nil {
		return all, nil
	}
	of := descendants(m.c, m.at.Range, 0, len(m.c.Ranges)-1)
	if len(of) == 0 {
		return nil, ErrContinuation
	}
	begun := map[int]mergedBegun{}
	for _, b := range append(slices.Clone(m.at.Begun), mergedBegun{m.at.Range, m.at.RID, m.at.Same}) {
		for _, i := range descendants(m.c, b.Range, 0, len(m.c.Ranges)-1) {
			begun[i] = b
		}
	}
	for _, c := range all {
		f := resumeFilter{Value: m.at.Keys}
		switch b, ok := begun[c.at]; {
		case ok:
			f.RID, c.item, c.passed, c.had = b.RID, b.RID, b.Same, b.Same
		case c.at < of[0]:
			f.Exclude = true // its rows with these keys came before
		}
		c.body = m.body(text, &f)
	}
	return all, nil
}

// begunAfter returns where the partitions behind a position go on that had begun before the page.
func (m *merge) begunAfter(cursors []*cursor, at int) (all []mergedBegun) {
	for _, c := range cursors {
		if c.at > at && c.item != "" {
			all = append(all, mergedBegun{m.c.Ranges[c.at].ID, c.item, c.had})
		}
	}
	return all
}

// fill reads rows if there is none left.
func (m *merge) fill(info *clientplan.QueryInfo, c *cursor) (err error) {
	for len(c.rows) == 0 && !c.ended {
		m.release(c.size)
		c.size = 0
		if c.rows, c.size, c.token, err = m.ask(c.at, c.body, c.token); err != nil {
			return err
		}
		c.ended = c.token == ""
		if len(c.rows) > 0 {
			c.keys = info.SortKeys(c.rows[0])
		}
	}
	return nil
}

// body returns a query as a client sends it, with the parameters of the request.
func (m *merge) body(text string, f *resumeFilter) []byte {
	var b bytes.Buffer
	b.Write(value.AppendString([]byte(`{"query":`), text))
	b.WriteString(`,"parameters":[`)
	for i, name := range slices.Sorted(maps.Keys(m.r.Query.Params)) {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(value.AppendString([]byte(`{"name":`), name))
		if v := m.r.Query.Params[name]; !v.IsUndefined() {
			b.Write(v.AppendJSON([]byte(`,"value":`)))
		}
		b.WriteByte('}')
	}
	b.WriteByte(']')
	if f != nil {
		b.Write(f.appendJSON([]byte(`,"resumeFilter":`)))
	}
	b.WriteByte('}')
	return b.Bytes()
}
